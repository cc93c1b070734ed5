%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `city' and `city_districts': the program `weft_city' on clusters of 1 to 8 nodes,
%% each of which has an equal part of the actors. In `city_districts' what is near each other in the
%% city is on one node. All have the same result, which each run checks.
%%
%% `city_weather' computes more than it sends, for clusters of 1 to 16 nodes that have quotas
%% (`weft_bench_quota').
%%
%% `phold' is the workload by which engines of simulation are compared: half of its events go to any
%% actor, so that with N nodes N-1 of N of these leave their node.
%%
%% In groups the first node, on which the root manager runs, is in both groups.
-module(weft_city_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).
-export([groups/1]).

-define(RUN_MS, 150000).
-define(REPETITIONS_MAX, 3).
%% Instead of 20: most of the four seconds of a core that the whole takes on one node.
-define(WEATHER_STEPS, 10000).

%% @private
cells(quick) ->
    [cell(city, Nodes, 120, [stock, weft_mesh]) || Nodes <- [1, 2]]
        ++ [phold(Nodes, 100, [stock, weft_mesh]) || Nodes <- [1, 2]]
        ++ [weather(Nodes, 2000, [stock, weft_mesh]) || Nodes <- [1, 2]];
cells(full) ->
    Variants = [stock, stock_mesh, weft_mesh, weft_groups, weft_peers],
    [cell(Workload, Nodes, 360, Variants)
     || Nodes <- [1, 2, 4, 8], Workload <- [city, city_districts]]
        ++ [phold(Nodes, 4000, Variants) || Nodes <- [1, 2, 4, 8]]
        ++ [(weather(Nodes, ?WEATHER_STEPS, [stock, weft_mesh, weft_groups]))#{
              cost_ms := 12000 + 32000 div Nodes + 400 * Nodes}
            || Nodes <- [1, 2, 4, 8, 16]].

weather(Nodes, Steps, Variants) ->
    #{with := #{options := Options} = With} = Cell = cell(city_weather, Nodes, 120, Variants),
    Cell#{with := With#{options := Options#{weather_steps => Steps}}}.

phold(Nodes, Ticks, Variants) ->
    (cell(phold, Nodes, Ticks, Variants))#{
      with := #{workload => phold, ticks => Ticks, options => #{away_percent => 50}}}.

cell(Workload, Count, Ticks, Variants) ->
    #{suite => city, workload => Workload, size_bytes => 0, pairs => Count, streams => Ticks,
      link => weft_bench_link:loopback(),
      layout => {cluster, weft_bench_cluster:shape(Count, groups(Count))}, variants => Variants,
      on_demand => true, fresh => true, repetitions_max => ?REPETITIONS_MAX,
      cost_ms => 2500 + 400 * Count,
      with => #{workload => city, ticks => Ticks,
                options => #{scale => small, districts => Workload =:= city_districts}}}.

%% @doc Two groups that share the first node, if there are nodes enough.
-spec groups(Nodes :: pos_integer()) -> [[pos_integer(), ...]].
groups(Count) when Count < 3 ->
    [];
groups(Count) ->
    Half = (Count + 1) div 2,
    [lists:seq(1, Half), [1 | lists:seq(Half + 1, Count)]].

%% @private
run(#{with := Options, layout := Layout, quota := Quota}, Nodes) ->
    {ok, Hash} = weft_city:hash(Options),
    %% With a quota a handshake takes long, and only the nodes of stock would have to make any.
    _ = [ok = weft_bench_cluster:connect(Nodes) || Quota =/= none],
    Run = fun() ->
              weft_bench_cluster:run(weft_city, Options#{hash => Hash}, Nodes, ?RUN_MS)
          end,
    %% What it takes to find out the hash here is not what the nodes share the machine with.
    {Values, Sharing} = weft_bench_sharing:measured(Layout, Quota, Nodes, Run),
    {ok, Values ++ Sharing}.
