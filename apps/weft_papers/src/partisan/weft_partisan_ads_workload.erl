%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads of `weft_partisan_ads':
%%
%% ```
%% ads            the advertisement counter on `pairs' nodes, until all know that it is over. In
%%                weft_groups each node is linked with the first one only (client and server);
%%                weft_peers is peer to peer
%% crdt_counter   bytes of a counter with `pairs' actors, and of one change of it
%% crdt_set       bytes of a set with `pairs' elements, and of one change of it
%% '''
-module(weft_partisan_ads_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(CALL_MS, 30000).
-define(OVER_MS, 60000).
-define(AGAIN_MS, 100).

%% @private
cells(quick) ->
    sizes([8, 128], [10, 1000]) ++ [ads(4, 5)];
cells(full) ->
    sizes([8, 32, 128, 1024], [10, 100, 1000, 10000])
        ++ [ads(Count, 30) || Count <- [8, 16, 32]]
        ++ [(ads(Count, 30))#{variants := [weft_groups, weft_peers], repetitions_max := 1,
                              cost_ms := 15000 + 600 * Count} || Count <- [64, 128]].

ads(Count, Impressions) ->
    Groups = [[1, Number] || Number <- lists:seq(2, Count)],
    (cell(ads, Count))#{layout => {cluster, weft_bench_cluster:shape(Count, Groups)},
                        variants => [weft_mesh, weft_groups, weft_peers], fresh => true,
                        repetitions_max => 2, cost_ms => 3000 + 300 * Impressions + 300 * Count,
                        with => #{impressions => Impressions}}.

sizes(Actors, Elements) ->
    [(cell(Workload, Count))#{layout => alone, variants => [weft_1], repetitions_max => 1,
                              cost_ms => 500}
     || {Workload, Counts} <- [{crdt_counter, Actors}, {crdt_set, Elements}], Count <- Counts].

cell(Workload, Pairs) ->
    #{suite => store, workload => Workload, size_bytes => 0, pairs => Pairs, streams => 0,
      link => weft_bench_link:loopback(), on_demand => true}.

%% @private
run(#{workload := ads, pairs := Count, with := #{impressions := Impressions}}, Nodes) ->
    Roles = lists:sort(weft_bench_nodes:roles(Nodes)),
    _ = [ok = call(Nodes, Role, weft_partisan_ads, begin_node, [Number])
         || {n, Number} = Role <- Roles],
    Max = Count * Impressions,
    Before = bytes(Roles, Nodes),
    StartMs = erlang:monotonic_time(millisecond),
    ok = call(Nodes, hd(Roles), weft_partisan_ads, serve, [Max]),
    Shown = over(Nodes, Roles, Max, StartMs + ?OVER_MS + Impressions * 400),
    ElapsedMs = erlang:monotonic_time(millisecond) - StartMs,
    [Server | _] = Received = [After - Of || {Of, After} <- lists:zip(Before, bytes(Roles, Nodes))],
    {ok, [{received_bytes, lists:sum(Received)}, {server_received_bytes, Server},
          {duration_s, ElapsedMs / 1000}, {shown_too_often, Shown - Max}]};
run(#{workload := Workload, pairs := Count}, Nodes) ->
    {State, Delta} = call(Nodes, a, weft_partisan_ads, sizes, [Workload, Count]),
    {ok, [{state_bytes, State}, {delta_bytes, Delta}]}.

%% Until all have the same count, and no advertisement. Nobody shows one then.
over(Nodes, Roles, Max, DeadlineMs) ->
    State = fun(Role) -> call(Nodes, Role, weft_partisan_ads, state, []) end,
    case lists:usort(weft_kv_crew:map(State, Roles, length(Roles))) of
        [{Shown, []}] when Shown >= Max -> Shown;
        States ->
            erlang:monotonic_time(millisecond) < DeadlineMs
                orelse erlang:error({not_over, States}),
            receive after ?AGAIN_MS -> over(Nodes, Roles, Max, DeadlineMs) end
    end.

%% Links of peer to peer come and go while it runs.
bytes(Roles, Nodes) ->
    [call(Nodes, Role, weft_bench_cluster, received_bytes, []) || Role <- Roles].

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS}).
