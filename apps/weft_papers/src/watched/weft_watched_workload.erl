%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `watched_im' and `watched_aco': the Instant Messenger and ACO on the same nodes,
%% with and without monitoring (`weft_watched_node'); and `watched_deploy', how long a deployment
%% takes whose nodes are monitored from their start, and one whose nodes are not.
%%
%% Both programs run four times in a repetition: without, with, with, without, so that what drifts
%% counts for both. What is compared is processor time: for each message that somebody said, and for
%% the same number of schedules. The time that goes by says the same with more noise, as the cores
%% are busy all the time.
-module(weft_watched_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(RUN_MS, 120000).
-define(CALL_MS, 30000).
-define(SETTLE_MS, 2000).
-define(ORDER, [without, with, with, without]).
-define(IM_SIZE, #{routers => 2, servers => 2, client_nodes => 1}).
-define(JOBS, 40).
-define(DEPLOY_MS, 700).

%% @private
cells(quick) ->
    [im(#{count => 40, scale => 0.01, warm_up_ms => 200, run_ms => 1500}),
     aco(#{ants => 4, rounds => 10, iterations => 2}), deploy(3)];
cells(full) ->
    [im(#{count => 240, scale => 0.001, warm_up_ms => 500, run_ms => 3500}),
     aco(#{ants => 4, rounds => 30, iterations => 16})
     | [deploy(Count) || Count <- [5, 10, 20]]].

im(#{count := Count, warm_up_ms := WarmUpMs, run_ms := RunMs} = Talk) ->
    Nodes = weft_im_plan:needed(?IM_SIZE),
    (cell(watched_im, Nodes, Count))#{
      layout => {cluster, weft_bench_cluster:shape(Nodes, weft_im_plan:groups(?IM_SIZE))},
      variants => [weft_groups], cost_ms => 7000 + 5 * (1500 + WarmUpMs + RunMs),
      with => maps:merge(?IM_SIZE, Talk)}.

aco(#{ants := Ants, rounds := Rounds, iterations := Iterations} = Work) ->
    {Levels, Degree} = {3, 2},
    Nodes = weft_aco_tree:needed(Levels, Degree),
    Colonies = weft_aco_tree:colonies(Levels, Degree),
    (cell(watched_aco, Nodes, Colonies))#{
      layout => {cluster, weft_bench_cluster:shape(Nodes, weft_aco_tree:groups(Levels, Degree))},
      variants => [weft_groups], cost_ms => 11000 + Colonies * Ants * Rounds * Iterations,
      with => Work#{degree => Degree}}.

deploy(Count) ->
    (cell(watched_deploy, Count, 0))#{layout => alone, variants => [weft_1],
                                      cost_ms => 4 * Count * ?DEPLOY_MS, with => none}.

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
    Ms = [{How, weft_watched_deploy:apply_ms(Count, How, Dir)} || How <- ?ORDER],
    {ok, compared(duration_s, fun(Times) -> lists:sum(Times) / length(Times) / 1000 end, Ms)};
measured(Cell, Nodes) ->
    _ = used_us(without, Cell, Nodes),
    Used = [{How, used_us(How, Cell, Nodes)} || How <- ?ORDER],
    Mean = fun(Runs) ->
               lists:sum([Us || {Us, _} <- Runs]) / lists:sum([Count || {_, Count} <- Runs])
           end,
    {ok, compared(cpu_us_per_message, Mean, Used)}.

%% The metric without and with monitoring, and the one in percent of the other.
compared(Metric, Mean, All) ->
    Of = fun(How) -> Mean([Value || {Had, Value} <- All, Had =:= How]) end,
    [{Metric, Of(without)}, {watched_percent, 100 * Of(with) / Of(without)}].

%% Processor time of all nodes, and what it is divided by.
used_us(with, Cell, Nodes) ->
    Ports = [call(Nodes, Role, begin_node, []) || Role <- weft_bench_nodes:roles(Nodes)],
    ok = call(Nodes, {n, 1}, begin_viewers, [Ports]),
    receive after ?SETTLE_MS -> ok end, % pacing: what it takes to start is not what it costs
    Used = used_us(without, Cell, Nodes),
    ok = call(Nodes, {n, 1}, end_viewers, []),
    _ = [ok = call(Nodes, Role, end_node, []) || Role <- weft_bench_nodes:roles(Nodes)],
    Used;
used_us(without, Cell, Nodes) ->
    BeforeUs = weft_bench_nodes:cpu_us(Nodes),
    Count = work(Cell, Nodes),
    {weft_bench_nodes:cpu_us(Nodes) - BeforeUs, Count}.

call(Nodes, Role, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, weft_watched_node, Function, {Arguments, ?CALL_MS}).

work(#{workload := watched_im, with := Settings}, Nodes) ->
    Options = Settings#{is_grouped => true,
                        names => weft_im_workload:names(true, weft_bench_nodes:variant(Nodes))},
    {ok, #{said := Said}} = weft_bench_cluster:program(weft_im, Options, Nodes, ?RUN_MS),
    Said;
%% The same work each time.
work(#{workload := watched_aco, streams := Colonies, with := Work}, Nodes) ->
    Options = Work#{version => sr, colonies => Colonies,
                    problem => weft_aco_problem:generate(1, ?JOBS, 0.6, 0.6),
                    names => weft_aco_workload:names(sr, weft_bench_nodes:variant(Nodes))},
    {ok, _} = weft_bench_cluster:program(weft_aco, Options, Nodes, ?RUN_MS),
    #{ants := Ants, rounds := Rounds, iterations := Iterations} = Work,
    Colonies * Ants * Rounds * Iterations.
