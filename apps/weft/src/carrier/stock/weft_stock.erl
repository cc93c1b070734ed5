%% SPDX-License-Identifier: Apache-2.0
%% @doc The stock protocol, for nodes without weft: remsh, tools, and clusters that are moving to
%% weft.
%%
%% A connection that begins with a stock handshake, or to a node that does not answer our hello, is
%% what the stock carrier makes: one connection without a session, with the VM's own TCP driver as
%% controller, or over TLS with that of `weft_stock_tls'.
%% With {stock_nodes, deny} such nodes are refused.
%%
%% The kernel makes an atom of a stock node's name before it checks the node's cookie, and atoms are
%% never freed. So a node whose name is no atom yet has to prove first that it knows the cookie
%% (`weft_stock_proof'). A node that asks to be given a name gets it before any proof. If it comes
%% from a host of which no node is known, this is done a limited number of times, and only while
%% there is room for atoms.
-module(weft_stock).

-export([init/0, offer/3, accept/6, setup/5]).
-export([no_options/2, tick/1, getstat/1]).
-export_type([offered/0, first/0]).

-include_lib("kernel/include/net_address.hrl").
-include_lib("kernel/include/dist.hrl").
-include_lib("kernel/include/dist_util.hrl").

%% Version 6 of the distribution protocol, OTP 23 and later.
-define(DIST_VERSION, 6).

%% Names given to nodes of hosts of which no node is known: so many at once, then one in this time.
-define(NEW_HOSTS_MAX, 1000).
-define(NEW_HOST_MS, 60000).

%% What was read from a connection before dist_util has it: nothing, a message, or a whole proof.
-type first() :: none | binary() | weft_stock_proof:proof().
-type offered() :: {stock, weft_transport:socket(), first()}.

%% @doc Called once, when the carrier starts.
-spec init() -> ok.
init() ->
    NewHosts = atomics:new(1, []),
    atomics:put(NewHosts, 1, erlang:monotonic_time(millisecond)),
    persistent_term:put(?MODULE, NewHosts).

%% @doc In the process that accepted a connection: offers it to the kernel.
-spec offer(weft_transport:socket(), binary(), weft_stranger:place()) -> ok | {error, term()}.
offer(Socket, FirstMessage, Place) ->
    ok = weft_stranger:heard(Place),
    case weft_config:get(stock_nodes) of
        deny -> {error, stock_denied};
        allow -> offer_proven(first(Socket, FirstMessage, name(FirstMessage)), Socket, Place)
    end.

offer_proven({ok, Proof}, Socket, Place) when is_tuple(Proof) ->
    ok = weft_stranger:settle(Place, true),
    case offer_socket(Socket, Proof) of
        {ok, _Connection} -> ok;
        {error, Reason} -> {error, Reason}
    end;
offer_proven({ok, First}, Socket, Place) ->
    case offer_socket(Socket, First) of
        {ok, Connection} -> proven(Connection, Place);
        {error, Reason} -> {error, Reason}
    end;
offer_proven({error, Reason}, _Socket, _Place) ->
    {error, Reason}.

%% It keeps its place until it has proved in the handshake that it knows the cookie. If it has to
%% make room, this process is killed, and the connection ends with it.
proven(Connection, Place) ->
    Monitor = monitor(process, Connection),
    true = link(Connection),
    receive
        {?MODULE, up, Connection} ->
            true = unlink(Connection),
            true = demonitor(Monitor, [flush]),
            weft_stranger:settle(Place, true);
        {'DOWN', Monitor, process, _, _} ->
            ok
    end.

%% dist_util would crash on a malformed one: flags, creation, name (if the node asks for a name: its
%% host).
name(<<$N, Flags:64, _Creation:32, Size:16, Name:Size/binary, _/binary>>) when Size > 0 ->
    case is_list(unicode:characters_to_list(Name)) of
        true when Flags band ?DFLAG_NAME_ME =/= 0 -> {host, Name};
        true -> {name, Name};
        false -> error
    end;
name(_) ->
    error.

first(Socket, FirstMessage, {name, Name}) ->
    case is_known(Name) of
        true -> {ok, FirstMessage};
        false -> weft_stock_proof:prove(Socket, FirstMessage, Name)
    end;
first(_Socket, FirstMessage, {host, Host}) ->
    NewHosts = persistent_term:get(?MODULE),
    case has_room() andalso (has_nodes(binary_to_list(Host)) orelse is_admitted(NewHosts)) of
        true -> {ok, FirstMessage};
        false -> {error, too_many_new_hosts}
    end;
first(_Socket, _FirstMessage, error) ->
    {error, malformed}.

%% With the function by which dist_util makes the atom.
is_known(Name) ->
    try is_atom(list_to_existing_atom(binary_to_list(Name)))
    catch error:_ -> false
    end.

%% Names are used again after a failure, so a host has as many atoms as nodes at the same time.
has_nodes(Host) ->
    lists:any(fun(Node) -> lists:suffix([$@ | Host], atom_to_list(Node)) end, nodes(known)).

%% The counter holds the time until which all admissions so far are paid for.
is_admitted(NewHosts) ->
    NowMs = erlang:monotonic_time(millisecond),
    PaidMs = atomics:get(NewHosts, 1),
    NextMs = max(NowMs, PaidMs) + ?NEW_HOST_MS,
    NextMs - NowMs =< ?NEW_HOSTS_MAX * ?NEW_HOST_MS
        andalso (atomics:compare_exchange(NewHosts, 1, PaidMs, NextMs) =:= ok
                 orelse is_admitted(NewHosts)).

has_room() ->
    erlang:system_info(atom_count) < erlang:system_info(atom_limit) div 2.

offer_socket(Socket, First) ->
    net_kernel ! {accept, self(), {stock, Socket, First}, weft_config:get(family), weft},
    receive
        {_Kernel, controller, Pid} ->
            %% If the socket is closed by now Pid will find out.
            _ = weft_transport:controlling_process(Socket, Pid),
            Pid ! {self(), controller},
            {ok, Pid};
        {_Kernel, unsupported_protocol} ->
            {error, unsupported_protocol}
    after weft_config:get(handshake_timeout_ms) ->
            {error, timeout}
    end.

%% @doc Serves the handshake of a connection that a stock node began.
-spec accept(pid(), pid(), offered(), node(), list(), non_neg_integer()) -> no_return().
accept(Kernel, AcceptPid, {stock, Socket, First}, MyNode, Allowed, SetupTime) ->
    Monitor = monitor(process, AcceptPid),
    receive
        {AcceptPid, controller} -> true = demonitor(Monitor, [flush]);
        %% It has made room for others.
        {'DOWN', Monitor, process, AcceptPid, _} -> ?shutdown(no_node)
    end,
    Timer = dist_util:start_timer(SetupTime),
    case weft_transport:peername(Socket) of
        {ok, Address} ->
            HsData = tells(AcceptPid, hs_data(Kernel, Socket, First, MyNode, Timer, Address)),
            dist_util:handshake_other_started(HsData#hs_data{allowed = Allowed});
        {error, _} ->
            ?shutdown(no_node)
    end.

%% Who offered the connection hears when it is up.
tells(Examiner, #hs_data{f_setopts_post_nodeup = Setopts} = HsData) ->
    HsData#hs_data{f_setopts_post_nodeup = fun(Socket) ->
                                               Examiner ! {?MODULE, up, self()},
                                               Setopts(Socket)
                                           end}.

%% The name message was read already, to find out what kind of connection it is.
recv(Socket, Length, TimeoutMs) ->
    case erase(weft_first_message) of
        FirstMessage when is_binary(FirstMessage) -> {ok, binary_to_list(FirstMessage)};
        _ -> gen_tcp:recv(Socket, Length, TimeoutMs)
    end.

%% @doc Calls a node that did not answer our hello, in the process that dist_util will run in.
-spec setup(pid(), node(), normal | hidden, node(), pid()) -> no_return().
setup(Kernel, Node, Type, MyNode, Timer) ->
    dist_util:reset_timer(Timer),
    case weft_config:get(stock_nodes) =:= allow andalso connect(Node) of
        {ok, Socket, Address} ->
            HsData = hs_data(Kernel, Socket, none, MyNode, Timer, Address),
            dist_util:handshake_we_started(
              HsData#hs_data{other_node = Node, other_version = ?DIST_VERSION,
                             request_type = Type});
        _ ->
            ?shutdown2(Node, {weft, stock_denied})
    end.

connect(Node) ->
    TimeoutMs = weft_config:get(handshake_timeout_ms),
    case weft_dialer:resolve(Node, TimeoutMs) of
        {ok, {Ip, Port} = Address, _Kind} ->
            [_, Host] = string:split(atom_to_list(Node), "@"),
            case weft_transport:connect(Ip, Port, Host, TimeoutMs) of
                {ok, Socket} -> {ok, Socket, Address};
                Error -> Error
            end;
        Error ->
            Error
    end.

hs_data(Kernel, Socket, First, MyNode, Timer, Address)
  when First =:= none; is_binary(First) ->
    Common = #hs_data{kernel_pid = Kernel, this_node = MyNode, timer = Timer, this_flags = 0,
                      f_address = fun(_, Node) -> address(Node, Address) end},
    case weft_transport:tcp_socket(Socket) of
        {ok, Tcp} -> tcp_hs_data(Tcp, First, Common);
        error -> tls_hs_data(Socket, First, Common)
    end;
hs_data(Kernel, Socket, Proof, MyNode, Timer, Address) ->
    weft_stock_proof:played(Proof, hs_data(Kernel, Socket, none, MyNode, Timer, Address)).

tls_hs_data(Socket, FirstMessage, Common) ->
    case weft_stock_tls:start_link(Socket, FirstMessage) of
        {ok, Controller} ->
            Common#hs_data{socket = Controller,
                           f_send = fun weft_stock_tls:send/2,
                           f_recv = fun weft_stock_tls:recv/3,
                           f_setopts_pre_nodeup = fun(_) -> ok end,
                           f_setopts_post_nodeup = fun(_) -> ok end,
                           f_getll = fun(Pid) -> {ok, Pid} end,
                           f_handshake_complete = fun weft_stock_tls:handshake_complete/3,
                           mf_tick = fun weft_stock_tls:tick/1,
                           mf_getstat = fun weft_stock_tls:getstat/1,
                           mf_setopts = fun ?MODULE:no_options/2,
                           mf_getopts = fun ?MODULE:no_options/2};
        {error, _} ->
            ?shutdown(no_node)
    end.

tcp_hs_data(Socket, FirstMessage, Common) ->
    put(weft_first_message, FirstMessage),
    %% A socket that is closed by now fails in the handshake.
    _ = inet:setopts(Socket, [list, {packet, 2}]),
    Nodelay = {nodelay, application:get_env(kernel, dist_nodelay, true)},
    Common#hs_data{
             socket = Socket,
             f_send = fun gen_tcp:send/2,
             f_recv = fun recv/3,
             f_setopts_pre_nodeup =
                 fun(S) -> inet:setopts(S, [{active, false}, {packet, 4}, Nodelay]) end,
             f_setopts_post_nodeup =
                 fun(S) ->
                         inet:setopts(S, [{active, true}, {deliver, port}, {packet, 4}, binary,
                                          Nodelay])
                 end,
             f_getll = fun inet:getll/1,
             mf_tick = fun ?MODULE:tick/1,
             mf_getstat = fun ?MODULE:getstat/1,
             mf_setopts = fun inet:setopts/2,
             mf_getopts = fun inet:getopts/2}.

address(Node, Address) ->
    [_, Host] = string:split(atom_to_list(Node), "@"),
    #net_address{host = Host, address = Address, protocol = tcp, family = weft_config:get(family)}.

%% dist_util keeps these as long as the connection lasts, so they are functions by name; see
%% `weft_dist_socket'.

%% @private
-spec no_options(pid(), list()) -> {error, enotsup}.
no_options(_Controller, _Options) -> {error, enotsup}.

%% @private
-spec tick(inet:socket()) -> ok | {error, term()}.
tick(Socket) ->
    case inet_tcp:send(Socket, [], [force]) of
        {error, closed} -> self() ! {tcp_closed, Socket}, {error, closed};
        Result -> Result
    end.

%% @private
-spec getstat(inet:socket()) ->
          {ok, non_neg_integer(), non_neg_integer(), non_neg_integer()} | {error, term()}.
getstat(Socket) ->
    case inet:getstat(Socket, [recv_cnt, send_cnt, send_pend]) of
        {ok, Stats} ->
            #{recv_cnt := Received, send_cnt := Sent, send_pend := Pending} =
                maps:from_list(Stats),
            {ok, Received, Sent, Pending};
        Error ->
            Error
    end.
