%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `aco_tl', `aco_ml', `aco_gr' and `aco_sr': the four versions of the program
%% `weft_aco' on clusters of the same size with the same number of colonies, so that they do the
%% same work; `aco_quality', two levels on five problems, with more and more colonies; and for the
%% reliable versions a longer run, `_steady' and `_killed', while processes are killed.
%%
%% What replaces lost processes finds them by names: of `global' where all nodes are connected, of
%% weft_names over the whole cluster or in groups on weft, or registered locally on stock.
-module(weft_aco_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).
-export([names/2, quality_options/1]).

-define(RUN_MS, 150000).
-define(OPEN_MS, 60000).
-define(JOBS, 40).
-define(REPETITIONS_MAX, 3).
-define(MANY_LEVELS, 5).
-define(KILL_EVERY_MS, 300).
%% What nodes with a small part of a core need for the same.
-define(QUOTA_MS, 4000).
%% The costs of the five problems below that a local search found from each of many beginnings.
-define(BEST_KNOWN, [17049, 18183, 18867, 15957, 10781]).

%% @private
cells(quick) ->
    Rounds = #{ants => 4, rounds => 4, iterations => 2},
    [version(aco_tl, 3, 2, Rounds, [stock_mesh]),
     version(aco_ml, 3, 2, Rounds, [stock_mesh, weft_groups]),
     version(aco_gr, 3, 2, Rounds, [stock_mesh]),
     version(aco_sr, 3, 2, Rounds, [stock, weft_groups]),
     quality(1, 1, Rounds), quality(4, 1, Rounds)
     | [reliable(Workload, Rounds#{rounds => 40}) || Workload <- [aco_sr_steady, aco_sr_killed]]];
cells(full) ->
    Rounds = #{ants => 4, rounds => 20, iterations => 5},
    [version(Version, Levels, 2, Rounds, variants(Version))
     || Levels <- [2, 3, 4, 5],
        Version <- [aco_tl, aco_ml, aco_gr, aco_sr]]
        ++ [quality(Colonies, 5, #{ants => 10, rounds => 10, iterations => 10})
            || Colonies <- [1, 2, 4, 8, 16]]
        ++ [reliable(Workload, Rounds#{rounds => 100})
            || Workload <- [aco_gr_steady, aco_gr_killed, aco_sr_steady, aco_sr_killed]].

variants(Workload) when Workload =:= aco_gr_steady; Workload =:= aco_gr_killed ->
    [stock_mesh, weft_groups];
variants(Workload) when Workload =:= aco_sr_steady; Workload =:= aco_sr_killed ->
    [stock, weft_groups];
variants(aco_gr) -> [stock_mesh, weft_mesh, weft_groups];
variants(aco_sr) -> [stock, weft_mesh, weft_groups];
variants(_) -> [stock_mesh, weft_mesh, weft_groups, weft_peers].

version(Version, Levels, Degree, Rounds, Variants) ->
    Count = weft_aco_tree:needed(Levels, Degree),
    Colonies = weft_aco_tree:colonies(Levels, Degree),
    Shape = weft_bench_cluster:shape(Count, weft_aco_tree:groups(Levels, Degree)),
    CostMs = 1500 + 200 * Count + work_ms(Colonies, Rounds),
    (cell(Version, Count, Colonies, Shape))#{
      repetitions_max := repetitions_max(Levels), variants => Variants, cost_ms => CostMs,
      with_quota => #{repetitions_max => ?REPETITIONS_MAX, cost_ms => CostMs + ?QUOTA_MS},
      with => {version, Rounds#{degree => Degree}}}.

%% What is counted is nearly the same each time, and what takes long to start is counted once.
repetitions_max(Levels) when Levels >= ?MANY_LEVELS -> 1;
repetitions_max(_Levels) -> ?REPETITIONS_MAX.

reliable(Workload, Rounds) ->
    #{cost_ms := CostMs} = Cell = version(Workload, 3, 2, Rounds, variants(Workload)),
    case lists:member(Workload, [aco_gr_killed, aco_sr_killed]) of
        true -> Cell#{cost_ms := 2 * CostMs, with => {killed, Rounds#{degree => 2}}};
        false -> Cell
    end.

quality(Colonies, Problems, Rounds) ->
    Shape = weft_bench_cluster:shape(1 + Colonies, []),
    CostMs = 1500 + 200 * Colonies,
    (cell(aco_quality, 1 + Colonies, Colonies, Shape))#{
      variants => [stock], cost_ms => CostMs + Problems * work_ms(Colonies, Rounds),
      with_quota => #{cost_ms => CostMs + Problems * ?QUOTA_MS},
      with => {quality, Problems, Rounds}}.

cell(Workload, Count, Colonies, Shape) ->
    #{suite => aco, workload => Workload, size_bytes => 0, pairs => Count, streams => Colonies,
      link => weft_bench_link:loopback(), layout => {cluster, Shape}, on_demand => true,
      fresh => true, repetitions_max => ?REPETITIONS_MAX}.

%% A schedule is made in about a millisecond, and cores are few.
work_ms(Colonies, #{ants := Ants, rounds := Rounds, iterations := Iterations}) ->
    Colonies * Ants * Rounds * Iterations div 2.

%% @doc The registry that a version of the program uses with a variant.
-spec names(tl | ml | gr | sr, weft_bench_variant:variant()) -> weft_aco_names:names().
names(gr, Variant) ->
    case weft_bench_variant:connects_all(Variant) of
        true -> global;
        false -> {weft, cluster}
    end;
names(sr, weft_groups) -> {weft, groups};
names(sr, _Variant) -> local;
names(_Version, _Variant) -> none.

%% @private
run(#{with := {version, _}} = Cell, Nodes) ->
    {ok, version_run(Cell, Nodes)};
run(#{with := {killed, _}} = Cell, Nodes) ->
    {Values, Kills} = weft_aco_killer:during(Nodes, ?KILL_EVERY_MS,
                                             fun() -> version_run(Cell, Nodes) end),
    {ok, Values ++ [{kills, Kills}]};
run(#{with := {quality, Problems, _}} = Cell, Nodes) ->
    Results = [weft_bench_cluster:run(weft_aco, Options, Nodes, ?RUN_MS)
               || Options <- quality_options(Cell)],
    {ok, [{Metric, lists:sum([proplists:get_value(Metric, Result) || Result <- Results])
                       / Problems}
          || Metric <- [cost_error_percent, duration_s]]}.

%% @private For tests: what the program gets for each problem. Each repetition draws something else,
%% and the same with all numbers of colonies.
-spec quality_options(weft_bench_workload:cell()) -> [map()].
quality_options(#{streams := Colonies, repetition := Repetition,
                  with := {quality, Problems, Rounds}}) ->
    [Rounds#{version => tl, colonies => Colonies, seed => Repetition, problem => problem(Number),
             best_known => Best}
     || {Number, Best} <- lists:zip(lists:seq(1, Problems), lists:sublist(?BEST_KNOWN, Problems))].

version_run(#{workload := Workload, streams := Colonies, with := {_, Rounds}}, Nodes) ->
    Version = version(Workload),
    Options = Rounds#{version => Version, colonies => Colonies,
                      names => names(Version, weft_bench_nodes:variant(Nodes)),
                      problem => problem(1), best_known => hd(?BEST_KNOWN)},
    ok = opened(Options, Nodes),
    %% With fewer colonies it would do less work.
    weft_bench_cluster:run(weft_aco, Options, Nodes, ?RUN_MS, #{given_up => 0}).

%% Connections that are made when they are used belong to set-up, as those of a mesh do: packets of
%% the run are counted from here on.
opened(Options, Nodes) ->
    {ok, {_Settings, Tree}} = weft_aco:plan(Options, weft_bench_cluster:nodes(Nodes)),
    weft_bench_nodes:call(Nodes, {n, 1}, weft_aco_ways, open, {[Tree], ?OPEN_MS}).

version(Workload) ->
    case atom_to_list(Workload) of
        "aco_tl" ++ _ -> tl;
        "aco_ml" ++ _ -> ml;
        "aco_gr" ++ _ -> gr;
        "aco_sr" ++ _ -> sr
    end.

problem(Number) ->
    weft_aco_problem:generate(Number, ?JOBS, 0.6, 0.6).
