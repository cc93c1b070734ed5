%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery on one network without any server: nodes announce themselves by UDP.
%% `{gossip, #{}}' uses multicast; a broadcast address works too.
%%
%% Every `interval_ms' a node sends a beacon (`weft_beacon', authenticated with the cookie) and
%% remembers the nodes whose beacons it heard. A node that was not heard for twenty intervals is
%% forgotten. A beacon with another cookie is logged once, because the configuration may be wrong.
%% If the socket can not be opened (no network yet, port in use), `discover/1' answers with that
%% error, and the socket is tried again at each interval.
-module(weft_discovery_gossip).
-behaviour(weft_discovery).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([discover/1, start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(SILENT_INTERVALS, 20).
-define(HEARD_MAX, 1000).
%% So many datagrams are taken before the socket has to be asked for more: strangers may send any
%% number.
-define(BURST, 100).

-record(gossip, {socket = {error, not_open} :: {ok, gen_udp:socket()} | {error, term()},
                 options :: map(),
                 key :: weft_beacon:key(),
                 cluster :: binary(),
                 heard = #{} :: #{node() => AtMs :: integer()},
                 is_stranger_told = false :: boolean()}).

%% @doc See `weft_discovery'. Errors: those of `gen_udp:open/2'.
-spec discover(map()) -> {ok, [node()]} | {error, {udp, inet:posix()} | not_running}.
discover(_Options) ->
    try
        gen_server:call(?MODULE, heard)
    catch
        exit:{noproc, _} -> {error, not_running}
    end.

%% @doc Starts to announce this node and to listen.
-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Options) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

%% @private
-spec init(map()) -> {ok, #gossip{}}.
init(Options) ->
    self() ! announce,
    {ok, #gossip{options = Options, cluster = weft_identity:cluster(),
                 key = weft_beacon:key(erlang:get_cookie())}}.

open(#gossip{socket = {error, _}, options = #{port := Port} = Options} = State) ->
    State#gossip{socket = gen_udp:open(Port, socket_options(Options))};
open(State) ->
    State.

%% Several nodes of a host listen on the same port.
socket_options(#{address := Address, interface := Interface, ttl := Ttl}) ->
    [binary, {active, ?BURST}, {reuseaddr, true}] ++ reuse_port(os:type())
        ++ case is_multicast(Address) of
               true -> [{multicast_if, Interface}, {multicast_loop, true}, {multicast_ttl, Ttl},
                        {add_membership, {Address, Interface}}];
               false -> [{broadcast, true}]
           end.

%% On Linux reuseaddr is enough; the BSD family needs SO_REUSEPORT (of SOL_SOCKET).
reuse_port({unix, linux}) -> [];
reuse_port({unix, _Bsd}) -> [{raw, 16#ffff, 16#0200, <<1:32/native>>}];
reuse_port(_) -> [].

is_multicast({A, _, _, _}) -> A >= 224 andalso A =< 239.

%% @private
-spec handle_call(term(), gen_server:from(), #gossip{}) ->
          {reply, {ok, [node()]} | {error, {udp, term()}}, #gossip{}}.
handle_call(heard, _From, #gossip{socket = {error, Reason}} = State) ->
    {reply, {error, {udp, Reason}}, State};
handle_call(heard, _From, #gossip{heard = Heard} = State) ->
    {reply, {ok, lists:sort(maps:keys(Heard))}, State};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
-spec handle_cast(term(), #gossip{}) -> {noreply, #gossip{}}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), #gossip{}) -> {noreply, #gossip{}}.
handle_info(announce, #gossip{options = #{interval_ms := IntervalMs}} = State) ->
    _ = erlang:send_after(IntervalMs * 3 div 4 + rand:uniform(IntervalMs div 2), self(), announce),
    {noreply, announce(open(expire(State)))};
handle_info({udp, _Socket, Ip, _Port, Datagram}, #gossip{key = Key, cluster = Cluster} = State) ->
    {noreply, heard(weft_beacon:decode(Key, Cluster, Datagram), Ip, State)};
handle_info({udp_passive, Socket}, State) ->
    ok = inet:setopts(Socket, [{active, ?BURST}]),
    {noreply, State};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% A network that is down now may come up.
announce(#gossip{socket = {ok, Socket}, key = Key, cluster = Cluster,
                 options = #{address := Address, port := Port}} = State) ->
    _ = gen_udp:send(Socket, Address, Port, weft_beacon:encode(Key, Cluster, node())),
    State;
announce(State) ->
    State.

expire(#gossip{heard = Heard, options = #{interval_ms := IntervalMs}} = State) ->
    SinceMs = now_ms() - ?SILENT_INTERVALS * IntervalMs,
    State#gossip{heard = maps:filter(fun(_, AtMs) -> AtMs >= SinceMs end, Heard)}.

heard({ok, Name}, _Ip, #gossip{heard = Heard} = State) ->
    case [Node || Node <- weft_discovery_names:nodes([Name]), Node =/= node()] of
        [Node] when is_map_key(Node, Heard); map_size(Heard) < ?HEARD_MAX ->
            State#gossip{heard = Heard#{Node => now_ms()}};
        _OwnOrTooMany ->
            State
    end;
heard({error, other_cookie}, Ip, #gossip{is_stranger_told = false} = State) ->
    ?LOG_NOTICE(#{weft => discovery, what => "a node on this network announces itself with another "
                  "cookie; it and others like it are ignored", address => inet:ntoa(Ip)}),
    State#gossip{is_stranger_told = true};
heard({error, _}, _Ip, State) ->
    State.

now_ms() -> erlang:monotonic_time(millisecond).
