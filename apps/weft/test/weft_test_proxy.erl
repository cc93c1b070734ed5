%% SPDX-License-Identifier: Apache-2.0
%% @doc A network between two nodes that can swallow, and may be slow or hang up on the first ones:
%% forwards TCP connections to a port of this host, and stops forwarding one of them on demand, both
%% ways, without closing it.
-module(weft_test_proxy).

-export([start_link/1, start_link/2, port/1, connections/1, stall/2]).

-record(proxy, {listen :: inet:socket(), stalls = [] :: [atomics:atomics_ref()]}).

%% @doc Forwards to TargetPort; linked to the caller.
-spec start_link(inet:port_number()) -> pid().
start_link(TargetPort) -> start_link(TargetPort, #{}).

%% @doc The same. `bytes_per_ms': it forwards that much each way, with little on its way.
%% `hang_ups': so many connections are closed first, each when something has come.
-spec start_link(inet:port_number(), #{bytes_per_ms => pos_integer(),
                                       hang_ups => non_neg_integer()}) -> pid().
start_link(TargetPort, Options) ->
    BytesPerMs = maps:get(bytes_per_ms, Options, infinity),
    Starter = self(),
    Proxy = spawn_link(fun() ->
                               {ok, Listen} = gen_tcp:listen(0, options(BytesPerMs)),
                               Self = self(),
                               spawn_link(fun() ->
                                              hang_up(maps:get(hang_ups, Options, 0), Listen),
                                              accept(Listen, {TargetPort, BytesPerMs}, Self)
                                          end),
                               Starter ! {Self, ready},
                               serve(#proxy{listen = Listen})
                       end),
    receive {Proxy, ready} -> Proxy end.

options(infinity) ->
    [binary, {active, false}, {ip, {127, 0, 0, 1}}, {nodelay, true}];
options(_BytesPerMs) ->
    [{recbuf, 32768}, {sndbuf, 32768}, {buffer, 16384} | options(infinity)].

-spec port(pid()) -> inet:port_number().
port(Proxy) -> ask(Proxy, port).

%% @doc How many connections there have been.
-spec connections(pid()) -> non_neg_integer().
connections(Proxy) -> ask(Proxy, connections).

%% @doc Swallows from now on what the N-th connection (from 1) carries.
-spec stall(pid(), pos_integer()) -> ok.
stall(Proxy, N) -> ask(Proxy, {stall, N}).

ask(Proxy, Question) ->
    Ref = make_ref(),
    Proxy ! {ask, self(), Ref, Question},
    receive {Ref, Answer} -> Answer end.

serve(#proxy{listen = Listen, stalls = Stalls} = Proxy) ->
    receive
        {connection, Stall} ->
            serve(Proxy#proxy{stalls = Stalls ++ [Stall]});
        {ask, From, Ref, port} ->
            {ok, Port} = inet:port(Listen),
            From ! {Ref, Port},
            serve(Proxy);
        {ask, From, Ref, connections} ->
            From ! {Ref, length(Stalls)},
            serve(Proxy);
        {ask, From, Ref, {stall, N}} ->
            ok = atomics:put(lists:nth(N, Stalls), 1, 1),
            From ! {Ref, ok},
            serve(Proxy)
    end.

hang_up(Times, Listen) ->
    lists:foreach(fun(_) ->
                          {ok, Near} = gen_tcp:accept(Listen),
                          {ok, _} = gen_tcp:recv(Near, 0),
                          ok = gen_tcp:close(Near)
                  end, lists:seq(1, Times)).

accept(Listen, {TargetPort, BytesPerMs} = Target, Proxy) ->
    {ok, Near} = gen_tcp:accept(Listen),
    case gen_tcp:connect({127, 0, 0, 1}, TargetPort, options(BytesPerMs)) of
        {ok, Far} -> Proxy ! {connection, connected(Near, Far, BytesPerMs)};
        {error, _} -> gen_tcp:close(Near)
    end,
    accept(Listen, Target, Proxy).

connected(Near, Far, BytesPerMs) ->
    Stall = atomics:new(1, []),
    _ = [spawn_link(fun() -> forward(From, To, {Stall, BytesPerMs}) end)
         || {From, To} <- [{Near, Far}, {Far, Near}]],
    Stall.

forward(From, To, {Stall, BytesPerMs} = How) ->
    case gen_tcp:recv(From, 0) of
        {ok, Bytes} ->
            _ = atomics:get(Stall, 1) =:= 0 andalso gen_tcp:send(To, Bytes),
            paced(byte_size(Bytes), BytesPerMs),
            forward(From, To, How);
        {error, _} ->
            swallow_end(atomics:get(Stall, 1), To)
    end.

paced(_Bytes, infinity) -> ok;
paced(Bytes, BytesPerMs) ->
    receive after Bytes div BytesPerMs -> ok end. % pacing: of the slow network

%% The end of a swallowed connection is swallowed too.
swallow_end(0, To) -> gen_tcp:close(To);
swallow_end(1, _To) -> ok.
