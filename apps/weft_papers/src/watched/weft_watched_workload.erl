%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `watched_im' and `watched_aco': the Instant Messenger and ACO on the same nodes,
%% with and without monitoring (`weft_watched_node'); and `watched_deploy', how long a deployment
%% takes whose nodes are monitored from their start, and one whose nodes are not.
%%
%% Both programs run four times in a repetition, on the same nodes: without, with, with, without;
%% and once before, which does not count. So it is with deployments.
%% These are two pairs, of which each begins with another one, so what drifts counts for both. What
%% is compared is processor time, for each message that somebody said and for each schedule of an
%% ant, and throughput: messages or schedules per second, of programs that always have more to do.
-module(weft_watched_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(RUN_MS, 120000).
-define(CALL_MS, 30000).
-define(SETTLE_MS, 2000).
-define(ORDER, [without, with, with, without]).
-define(IM_SIZE, #{routers => 1, servers => 2, client_nodes => 1}).
-define(ACO_TREE, #{levels => 2, degree => 2}).
%% Many nodes on the same cores: each of them is monitored, and does less.
-define(CROWDED_IM_SIZE, #{routers => 2, servers => 2, client_nodes => 1}).
-define(CROWDED_ACO_TREE, #{levels => 3, degree => 2}).
-define(CROWDED_REPETITIONS_MAX, 3).
-define(JOBS, 40).
-define(DEPLOY_MS, 700).

%% @private
cells(quick) ->
    [im(?IM_SIZE, #{count => 40, scale => 0.01, warm_up_ms => 200, run_ms => 1500}),
     aco(?ACO_TREE, #{ants => 4, rounds => 10, iterations => 2}), deploy(3)];
cells(full) ->
    Talk = #{count => 240, scale => 0.001, warm_up_ms => 500, run_ms => 5000},
    [im(?IM_SIZE, Talk), aco(?ACO_TREE, #{ants => 4, rounds => 60, iterations => 32}),
     crowded(im(?CROWDED_IM_SIZE, Talk)),
     crowded(aco(?CROWDED_ACO_TREE, #{ants => 4, rounds => 30, iterations => 32}))
     | [deploy(Count) || Count <- [5, 10, 20]]].

crowded(Cell) -> Cell#{repetitions_max => ?CROWDED_REPETITIONS_MAX}.

im(Size, #{count := Count, warm_up_ms := WarmUpMs, run_ms := RunMs} = Talk) ->
    Nodes = weft_im_plan:needed(Size),
    (cell(watched_im, Nodes, Count))#{
      layout => {cluster, weft_bench_cluster:shape(Nodes, weft_im_plan:groups(Size))},
      variants => [weft_groups], cost_ms => 7000 + 5 * (1500 + WarmUpMs + RunMs),
      with => maps:merge(Size, Talk)}.

aco(#{levels := Levels, degree := Degree},
    #{ants := Ants, rounds := Rounds, iterations := Iterations} = Work) ->
    Nodes = weft_aco_tree:needed(Levels, Degree),
    Colonies = weft_aco_tree:colonies(Levels, Degree),
    (cell(watched_aco, Nodes, Colonies))#{
      layout => {cluster, weft_bench_cluster:shape(Nodes, weft_aco_tree:groups(Levels, Degree))},
      variants => [weft_groups], cost_ms => 8000 + Colonies * Ants * Rounds * Iterations,
      with => Work#{degree => Degree}}.

deploy(Count) ->
    (cell(watched_deploy, Count, 0))#{layout => alone, variants => [weft_1],
                                      cost_ms => 5 * Count * ?DEPLOY_MS, with => none}.

cell(Workload, Nodes, Streams) ->
    #{suite => watched, workload => Workload, size_bytes => 0, pairs => Nodes, streams => Streams,
      link => weft_bench_link:loopback(), on_demand => true, fresh => true}.

%% @private
run(Cell, Nodes) ->
    case code:which(prometheus) of
        non_existing -> {skipped, "the library prometheus.erl is not on the code path: name the "
                                  "directory that contains it in ERL_LIBS"};
        _ -> measured(Cell, Nodes)
    end.

measured(#{workload := watched_deploy, pairs := Count, dir := Dir}, _Nodes) ->
    %% The first one finds nothing in the caches of the machine.
    _ = weft_watched_deploy:apply_ms(Count, without, Dir),
    Ms = [{How, weft_watched_deploy:apply_ms(Count, How, Dir)} || How <- ?ORDER],
    {ok, compared({duration_s, watched_percent},
                  fun(Times) -> lists:sum(Times) / length(Times) / 1000 end, Ms)};
measured(Cell, Nodes) ->
    _ = ran(without, Cell, Nodes),
    Runs = [{How, ran(How, Cell, Nodes)} || How <- ?ORDER],
    {ok, compared({cpu_us_per_message, watched_percent}, fun used_us/1, Runs)
     ++ compared({messages_per_s, watched_rate_percent}, fun rate/1, Runs)}.

used_us(Runs) ->
    lists:sum([Us || #{cpu_us := Us} <- Runs]) / lists:sum([Count || #{count := Count} <- Runs]).

rate(Runs) -> lists:sum([Rate || #{rate := Rate} <- Runs]) / length(Runs).

%% The metric without monitoring, and that with it in percent.
compared({Metric, Percent}, Mean, All) ->
    Of = fun(How) -> Mean([Value || {Had, Value} <- All, Had =:= How]) end,
    [{Metric, Of(without)}, {Percent, 100 * Of(with) / Of(without)}].

%% Processor time of all nodes, for how many messages or schedules, and how many of them a second.
ran(with, Cell, Nodes) ->
    Ports = [call(Nodes, Role, begin_node, []) || Role <- weft_bench_nodes:roles(Nodes)],
    ok = call(Nodes, {n, 1}, begin_viewers, [Ports]),
    receive after ?SETTLE_MS -> ok end, % pacing: what it takes to start is not what it costs
    Run = ran(without, Cell, Nodes),
    ok = call(Nodes, {n, 1}, end_viewers, []),
    _ = [ok = call(Nodes, Role, end_node, []) || Role <- weft_bench_nodes:roles(Nodes)],
    Run;
ran(without, Cell, Nodes) ->
    BeforeUs = weft_bench_nodes:cpu_us(Nodes),
    {Count, Rate} = work(Cell, Nodes),
    #{cpu_us => weft_bench_nodes:cpu_us(Nodes) - BeforeUs, count => Count, rate => Rate}.

call(Nodes, Role, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, weft_watched_node, Function, {Arguments, ?CALL_MS}).

work(#{workload := watched_im, with := Settings}, Nodes) ->
    Options = Settings#{is_grouped => true,
                        names => weft_im_workload:names(true, weft_bench_nodes:variant(Nodes))},
    {ok, #{said := Said, delivered_per_min := PerMin}} =
        weft_bench_cluster:program(weft_im, Options, Nodes, ?RUN_MS),
    {Said, PerMin / 60};
%% The same work each time.
work(#{workload := watched_aco, streams := Colonies, with := Work}, Nodes) ->
    Options = Work#{version => sr, colonies => Colonies,
                    problem => weft_aco_problem:generate(1, ?JOBS, 0.6, 0.6),
                    names => weft_aco_workload:names(sr, weft_bench_nodes:variant(Nodes))},
    {Us, {ok, _}} = timer:tc(fun() -> weft_bench_cluster:program(weft_aco, Options, Nodes, ?RUN_MS)
                             end),
    #{ants := Ants, rounds := Rounds, iterations := Iterations} = Work,
    Count = Colonies * Ants * Rounds * Iterations,
    {Count, Count / (Us / 1.0e6)}.
