%% SPDX-License-Identifier: Apache-2.0
%% @doc What `dist_util' takes for the socket of a connection: a session, with its counters.
%%
%% The process of `dist_util' keeps these functions as long as the connection lasts. So they are
%% functions by name, which call the newest code after a code change. Closures would belong to the
%% old code, and the second change would end the connection.
-module(weft_dist_socket).

-export([hs_data/4, address/0]).
-export([send/2, recv/3, setopts_of_handshake/1, getll/1, address/2, handshake_complete/3, tick/1,
         getstat/1, setopts/2, getopts/2]).

-include_lib("kernel/include/net_address.hrl").
-include_lib("kernel/include/dist_util.hrl").

-type socket() :: {Session :: pid(), weft_session_counters:counters()}.

%% @doc The handshake data that both ends share.
-spec hs_data(pid(), Session :: pid(), node(), Timer :: pid()) -> #hs_data{}.
hs_data(Kernel, Session, MyNode, Timer) ->
    #hs_data{kernel_pid = Kernel, this_node = MyNode, timer = Timer,
             socket = {Session, weft_session:counters(Session)},
             this_flags = 0, reject_flags = 0,
             f_send = fun ?MODULE:send/2,
             f_recv = fun ?MODULE:recv/3,
             f_setopts_pre_nodeup = fun ?MODULE:setopts_of_handshake/1,
             f_setopts_post_nodeup = fun ?MODULE:setopts_of_handshake/1,
             f_getll = fun ?MODULE:getll/1,
             f_address = fun ?MODULE:address/2,
             f_handshake_complete = fun ?MODULE:handshake_complete/3,
             mf_tick = fun ?MODULE:tick/1,
             mf_getstat = fun ?MODULE:getstat/1,
             mf_setopts = fun ?MODULE:setopts/2,
             mf_getopts = fun ?MODULE:getopts/2}.

%% @private
-spec send(socket(), iodata()) -> ok | {error, term()}.
send({Session, _}, Packet) -> weft_session:send_handshake(Session, Packet).

%% @private
-spec recv(socket(), Length :: 0, timeout()) -> {ok, list()} | {error, term()}.
recv({Session, _}, _Length, TimeoutMs) -> weft_session:recv_handshake(Session, TimeoutMs).

%% @private
-spec setopts_of_handshake(socket()) -> ok.
setopts_of_handshake(_Socket) -> ok.

%% @private
-spec getll(socket()) -> {ok, pid()}.
getll({Session, _}) -> {ok, Session}.

%% @doc The address of this node, as far as it is known without a connection.
-spec address() -> #net_address{}.
address() ->
    {ok, Host} = inet:gethostname(),
    #net_address{host = Host, protocol = weft, family = weft_config:get(family)}.

%% @private
%% Monitors look for the one socket with this peer name, and take its bytes for those of Node. So
%% there is no address if it is another node's, as over a circuit, or one of several lanes.
-spec address(socket(), node()) -> #net_address{}.
address({Session, _}, Node) ->
    [_, Host] = string:split(atom_to_list(Node), "@"),
    Address = case weft_session:peername(Node, Session) of
                  {ok, Peername} -> Peername;
                  {error, _} -> undefined
              end,
    (address())#net_address{host = Host, address = Address}.

%% @private
-spec handshake_complete(socket(), node(), erlang:dist_handle()) -> ok.
handshake_complete({Session, _}, Node, Handle) ->
    weft_session:handshake_complete(Session, Node, Handle).

%% @private
-spec tick(socket()) -> ok.
tick({Session, Counters}) -> weft_session:tick(Session, Counters).

%% @private
-spec getstat(socket()) -> {ok, non_neg_integer(), non_neg_integer(), non_neg_integer()}.
getstat({_, Counters}) -> weft_session_counters:getstat(Counters).

%% @private
-spec setopts(socket(), list()) -> ok | {error, term()}.
setopts({Session, _}, Options) -> weft_session:setopts(Session, Options).

%% @private
-spec getopts(socket(), list()) -> {ok, list()} | {error, term()}.
getopts({Session, _}, Options) -> weft_session:getopts(Session, Options).
