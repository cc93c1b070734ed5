%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `peers': what it costs to look up the way to a peer in a node that knows 10 or
%% 1,000 of them. The links are registered and not dialled, the routes are rows as the router writes
%% them, by way of one gateway: this is the cost of the tables, paid wherever a path is chosen.
-module(weft_bench_peers).
-behaviour(weft_bench_workload).

-export([cells/1, run/2, measure/2]).

-define(LOOKUPS, 200000).
-define(CALL_MS, 60000).

%% @private
cells(_Scope) ->
    [#{suite => i, workload => peers, size_bytes => 0, pairs => Peers, streams => 0,
       link => weft_bench_link:loopback(), layout => alone, variants => [weft_1], cost_ms => 300}
     || Peers <- [10, 1000]].

%% @private
run(#{pairs := Peers}, Nodes) ->
    LookupNs = weft_bench_nodes:call(Nodes, a, ?MODULE, measure, {[Peers, ?LOOKUPS], ?CALL_MS}),
    {ok, [{lookup_ns, LookupNs}]}.

%% @doc On the node: registers so many peers, and returns nanoseconds per lookup.
-spec measure(Peers :: pos_integer(), Lookups :: pos_integer()) -> float().
measure(Peers, Lookups) ->
    [Gateway | _] = Nodes = [list_to_atom(lists:concat(["peer", Number, "@192.0.2.1"]))
                             || Number <- lists:seq(1, Peers)],
    lists:foreach(fun(Node) -> register_peer(Node, Gateway) end, Nodes),
    [] = [Node || Node <- tl(Nodes), weft_path:choose(Node) =/= {via, Gateway}],
    Rounds = Lookups div Peers,
    look_up(Nodes, Rounds div 10 + 1),
    {ElapsedUs, ok} = timer:tc(fun() -> look_up(Nodes, Rounds) end),
    ElapsedUs * 1000 / (Rounds * Peers).

register_peer(Node, Gateway) ->
    {ok, _} = weft_links:ensure(Node),
    weft_view:put(?MODULE, {route, Node}, {Gateway, 1000, 2}).

look_up(_Nodes, 0) ->
    ok;
look_up(Nodes, Rounds) ->
    lists:foreach(fun weft_path:choose/1, Nodes),
    look_up(Nodes, Rounds - 1).
