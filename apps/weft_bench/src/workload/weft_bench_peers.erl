%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `peers': what it costs to look up the way to a peer in a node that knows 10 or
%% 1,000 of them. The links are registered and not dialled, the routes are rows as the router writes
%% them, by way of one gateway: this is the cost of the tables, paid wherever a path is chosen.
%%
%% Measured twice: with many lookups of a peer before those of the next one, as traffic comes, which
%% shows whether the cost grows with the number of peers; and with each peer in turn, which adds
%% what it costs that all of their rows do not fit into the processor's first cache.
-module(weft_bench_peers).
-behaviour(weft_bench_workload).

-export([cells/1, run/2, measure/2]).

-define(LOOKUPS, 300000).
-define(IN_A_ROW, 100).
-define(CALL_MS, 60000).

%% @private
cells(_Scope) ->
    [#{suite => i, workload => peers, size_bytes => 0, pairs => Peers, streams => 0,
       link => weft_bench_link:loopback(), layout => alone, variants => [weft_1], cost_ms => 300}
     || Peers <- [10, 1000]].

%% @private
run(#{pairs := Peers}, Nodes) ->
    {WarmNs, ColdNs} = weft_bench_nodes:call(Nodes, a, ?MODULE, measure,
                                             {[Peers, ?LOOKUPS], ?CALL_MS}),
    {ok, [{lookup_ns, WarmNs}, {cold_lookup_ns, ColdNs}]}.

%% @doc On the node: registers so many peers, and returns nanoseconds per lookup.
-spec measure(Peers :: pos_integer(), Lookups :: pos_integer()) ->
          {WarmNs :: float(), ColdNs :: float()}.
measure(Peers, Lookups) ->
    [Gateway | _] = Nodes = [list_to_atom(lists:concat(["peer", Number, "@192.0.2.1"]))
                             || Number <- lists:seq(1, Peers)],
    lists:foreach(fun(Node) -> register_peer(Node, Gateway) end, Nodes),
    [] = [Node || Node <- tl(Nodes), weft_next_hop:choose(Node) =/= {via, Gateway}],
    _ = time_ns(Nodes, Lookups div 10, 1),
    {time_ns(Nodes, Lookups, ?IN_A_ROW), time_ns(Nodes, Lookups, 1)}.

time_ns(Nodes, Lookups, InARow) ->
    Rounds = Lookups div (length(Nodes) * InARow),
    {ElapsedUs, ok} = timer:tc(fun() -> look_up_all(Nodes, Rounds, InARow) end),
    ElapsedUs * 1000 / (Rounds * length(Nodes) * InARow).

register_peer(Node, Gateway) ->
    {ok, _} = weft_links:ensure(Node),
    weft_view:put(?MODULE, {route, Node}, {Gateway, 1000, 2}).

look_up_all(_Nodes, 0, _InARow) ->
    ok;
look_up_all(Nodes, Rounds, InARow) ->
    lists:foreach(fun(Node) -> look_up(Node, InARow) end, Nodes),
    look_up_all(Nodes, Rounds - 1, InARow).

look_up(_Node, 0) ->
    ok;
look_up(Node, Left) ->
    _ = weft_next_hop:choose(Node),
    look_up(Node, Left - 1).
