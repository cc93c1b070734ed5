%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `orbit' (distributed) and `orbit_grouped': the program `weft_orbit' on clusters of
%% a master and groups of equal size, whose heads and the master are a group as well. What the two
%% forms are compared for is what the distributed one costs in connections.
-module(weft_orbit_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).
-export([groups/2, group_count/1]).

-define(RUN_MS, 120000).
-define(WORKERS, 2).
-define(GATEWAYS, 2).
%% How clusters are cut: groups of so many nodes, and a master.
-define(CUTS, [{2, 3}, {3, 4}, {4, 5}]).
%% The same for orbits that are to become faster, where nodes have quotas.
-define(FASTER, [{1, 1}, {2, 2}, {3, 4}, {4, 6}, {6, 6}]).
-define(FASTER_SPACE, 25000).
-define(REPETITIONS_MAX, 3).

%% @private
cells(quick) ->
    [cell(Workload, Cut, 3000, [1, 2], [stock, weft_groups])
     || Cut <- [{1, 1}, {2, 3}], Workload <- [orbit, orbit_grouped]];
cells(full) ->
    Variants = [stock, stock_mesh, weft_mesh, weft_groups, weft_peers],
    [cell(Workload, Cut, 20000, [1, 2], Variants)
     || Cut <- ?CUTS, Workload <- [orbit, orbit_grouped]]
        ++ [(cell(Workload, Cut, ?FASTER_SPACE, [1, 2], [stock, weft_groups]))#{
              cost_ms := 14000}
            || Cut <- ?FASTER, Workload <- [orbit, orbit_grouped]]
        ++ [cell(Workload, {2, 3}, 20000, [1, 2, 4], Variants)
            || Workload <- [orbit, orbit_grouped]].

cell(Workload, {Groups, Size}, Space, Generators, Variants) ->
    Shape = weft_bench_cluster:shape(1 + Groups * Size, groups(Groups, Size)),
    #{suite => orbit, workload => workload(Workload, Generators), size_bytes => 0,
      pairs => 1 + Groups * Size, streams => Space, link => weft_bench_link:loopback(),
      layout => {cluster, Shape}, variants => Variants, on_demand => true, fresh => true,
      repetitions_max => ?REPETITIONS_MAX,
      cost_ms => 1500 + 200 * Groups * Size,
      with => #{generators => Generators, is_grouped => Workload =:= orbit_grouped}}.

%% The set with expensive vertices has a name of its own.
workload(orbit, [1, 2]) -> orbit;
workload(orbit_grouped, [1, 2]) -> orbit_grouped;
workload(orbit, _) -> orbit_uneven;
workload(orbit_grouped, _) -> orbit_grouped_uneven.

%% @doc The groups of a cluster: the master (node 1) with the heads, and so many groups of a size.
-spec groups(Groups :: pos_integer(), Size :: pos_integer()) -> [[pos_integer(), ...]].
groups(Groups, Size) ->
    Heads = [2 + Number * Size || Number <- lists:seq(0, Groups - 1)],
    [[1 | Heads] | [lists:seq(Head, Head + Size - 1) || Head <- Heads]].

%% @doc Into how many groups a cluster of so many nodes is cut.
-spec group_count(Nodes :: pos_integer()) -> pos_integer().
group_count(Nodes) ->
    [Groups | _] = [Groups || {Groups, Size} <- ?CUTS ++ ?FASTER, 1 + Groups * Size =:= Nodes],
    Groups.

%% @private
run(#{streams := Space, layout := {cluster, #{groups := [_ | Groups]}},
      with := #{generators := Generators, is_grouped := IsGrouped}}, Nodes) ->
    Options = #{generators => Generators, space => Space, workers => ?WORKERS},
    Names = list_to_tuple(weft_bench_cluster:nodes(Nodes)),
    Grouped = #{gateways => ?GATEWAYS,
                groups => [[element(Number, Names) || Number <- Group] || Group <- Groups]},
    All = case IsGrouped of
              true -> maps:merge(Options, Grouped);
              false -> Options
          end,
    {ok, weft_bench_cluster:run(weft_orbit, All, Nodes, ?RUN_MS)}.
