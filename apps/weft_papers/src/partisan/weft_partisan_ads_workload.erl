%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads of `weft_partisan_ads':
%%
%% ```
%% ads            the advertisement counter on `pairs' nodes, 50 times as fast as in the paper,
%%                until all know that it is over. In weft_groups each node is linked with the first
%%                one only (client and server); weft_peers is peer to peer
%% slow_ads       the same at the times of the paper, for ten minutes
%% simulated_ads  the same in virtual time (`weft_partisan_ads_simulated'), on the most nodes for
%%                one minute
%% crdt_counter   bytes of a counter with `pairs' actors, and of one change of it
%% crdt_set       bytes of a set with `pairs' elements, and of one change of it
%% '''
-module(weft_partisan_ads_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(CALL_MS, 30000).
-define(OVER_MS, 60000).
-define(AGAIN_MS, 100).
-define(LOOK_MS, 500).

%% @private
cells(quick) ->
    sizes([8, 128], [10, 1000]) ++ [ads(4, 5), slow(4, 2), simulated(8, 2)];
cells(full) ->
    sizes([8, 32, 128, 1024], [10, 100, 1000, 10000])
        ++ [ads(Count, 30) || Count <- [8, 16, 32]]
        ++ [(ads(Count, 30))#{variants := [weft_groups, weft_peers], repetitions_max := 1,
                              cost_ms := 15000 + 600 * Count} || Count <- [64, 128]]
        ++ [slow(Count, 60) || Count <- [32, 64, 128, 256]]
        ++ [simulated(Count, 60) || Count <- [32, 64, 128, 256]]
        ++ [simulated(Count, 6) || Count <- [512, 1024]].

ads(Count, Impressions) ->
    Groups = [[1, Number] || Number <- lists:seq(2, Count)],
    (cell(ads, Count))#{layout => {cluster, weft_bench_cluster:shape(Count, Groups)},
                        variants => [weft_mesh, weft_groups, weft_peers], fresh => true,
                        repetitions_max => 2, cost_ms => 3000 + 300 * Impressions + 300 * Count,
                        with => #{impressions => Impressions, faster => 50}}.

slow(Count, Impressions) ->
    (ads(Count, Impressions))#{workload => slow_ads, variants := [weft_groups, weft_peers],
                               repetitions_max := 1,
                               cost_ms := 60000 + 10000 * Impressions + 600 * Count,
                               with := #{impressions => Impressions, faster => 1}}.

simulated(Count, Impressions) ->
    (cell(simulated_ads, Count))#{layout => alone, variants => [weft_1], repetitions_max => 1,
                                  cost_ms => 1000 + Count * Count * Count * Impressions div 2400,
                                  with => #{impressions => Impressions}}.

sizes(Actors, Elements) ->
    [(cell(Workload, Count))#{layout => alone, variants => [weft_1], repetitions_max => 1,
                              cost_ms => 500}
     || {Workload, Counts} <- [{crdt_counter, Actors}, {crdt_set, Elements}], Count <- Counts].

cell(Workload, Pairs) ->
    #{suite => store, workload => Workload, size_bytes => 0, pairs => Pairs, streams => 0,
      link => weft_bench_link:loopback(), on_demand => true}.

%% @private
run(#{pairs := Count, with := #{impressions := Impressions, faster := Faster}}, Nodes) ->
    Roles = lists:sort(weft_bench_nodes:roles(Nodes)),
    _ = [ok = call(Nodes, Role, weft_partisan_ads, begin_node, [Number, Faster])
         || {n, Number} = Role <- Roles],
    Max = Count * Impressions,
    Before = bytes(Roles, Nodes),
    Watched = watched(Roles, Nodes),
    StartMs = erlang:monotonic_time(millisecond),
    ok = call(Nodes, hd(Roles), weft_partisan_ads, serve, [Max]),
    %% Twice what the impressions take.
    LastMs = StartMs + ?OVER_MS + 2 * Impressions * weft_partisan_ads:impression_ms() div Faster,
    Over = over(Nodes, Roles, Max, LastMs),
    ElapsedMs = erlang:monotonic_time(millisecond) - StartMs,
    Busy = busy(Watched, Roles, Nodes),
    [Server | _] = Received = [After - Of || {Of, After} <- lists:zip(Before, bytes(Roles, Nodes))],
    case Over of
        {ok, Shown} ->
            {ok, [{received_bytes, lists:sum(Received)}, {server_received_bytes, Server},
                  {duration_s, ElapsedMs / 1000}, {shown_too_often, Shown - Max} | Busy]};
        {not_over, States} ->
            erlang:error({not_over, Busy, States})
    end;
run(#{workload := simulated_ads, pairs := Count, cost_ms := CostMs, repetition := Seed,
      with := #{impressions := Impressions}}, Nodes) ->
    {ok, weft_bench_nodes:call(Nodes, a, weft_partisan_ads_simulated, run,
                               {[Count, Impressions, Seed], ?CALL_MS + 4 * CostMs})};
run(#{workload := Workload, pairs := Count}, Nodes) ->
    {State, Delta} = call(Nodes, a, weft_partisan_ads, sizes, [Workload, Count]),
    {ok, [{state_bytes, State}, {delta_bytes, Delta}]}.

%% Until all have the same count, and no advertisement. Nobody shows one then.
over(Nodes, Roles, Max, DeadlineMs) ->
    State = fun(Role) -> call(Nodes, Role, weft_partisan_ads, state, []) end,
    case lists:usort(weft_kv_crew:map(State, Roles, length(Roles))) of
        [{Shown, []}] when Shown >= Max -> {ok, Shown};
        States ->
            case erlang:monotonic_time(millisecond) < DeadlineMs of
                true -> receive after ?AGAIN_MS -> over(Nodes, Roles, Max, DeadlineMs) end;
                false -> {not_over, States}
            end
    end.

%% What may end client and server: the server has too much to do.
watched([Server | _] = Roles, Nodes) ->
    #{since_us => erlang:monotonic_time(microsecond),
      cpu_us => [cpu_us(Role, Nodes) || Role <- Roles],
      looking => call(Nodes, Server, weft_store_mailbox, start, [all, ?LOOK_MS])}.

busy(#{since_us := SinceUs, cpu_us := Before, looking := Looking}, [Server | _] = Roles, Nodes) ->
    ElapsedUs = erlang:monotonic_time(microsecond) - SinceUs,
    [OfServer | _] = Percents = [100 * (cpu_us(Role, Nodes) - Us) / ElapsedUs
                                 || {Us, Role} <- lists:zip(Before, Roles)],
    Seen = call(Nodes, Server, weft_store_mailbox, stop, [Looking]),
    [{server_cpu_percent, OfServer}, {nodes_cpu_percent, lists:sum(Percents)},
     {server_mailbox_max, lists:max([0 | [Messages || {_, Messages} <- Seen]])}].

cpu_us(Role, Nodes) -> weft_bench_nodes:cpu_us_of(weft_bench_nodes:os_pid(Nodes, Role)).

%% Links of peer to peer come and go while it runs.
bytes(Roles, Nodes) ->
    [call(Nodes, Role, weft_bench_cluster, received_bytes, []) || Role <- Roles].

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS}).
