%% SPDX-License-Identifier: Apache-2.0
%% @doc `bin/bench hour': do clusters that have nothing to do stay as they are?
%%
%% For each number of nodes there is a cluster of each variant, connected as in `weft_bench_form',
%% which is left alone for an hour. Once a minute the processor time and the resident memory of its
%% nodes are read, from outside: no node is woken by that. What the hour has changed is the last ten
%% minutes against the first ten.
%%
%% The clusters run one after another, or those with the same number of nodes at the same time
%% (`--at-once'), which takes a third of the time: then they share the machine, and all their nodes
%% are in `vms_per_core'. `clusters_at_once' tells which it was. The files are those of
%% `weft_report_record'.
-module(weft_bench_hour).

-export([command/0, run/1, measured/3]).
-export_type([plan/0]).

-type plan() :: #{nodes := [pos_integer(), ...], variants := [weft_bench_variant:variant(), ...],
                  at_once := boolean(), settle_ms := non_neg_integer(), samples := pos_integer(),
                  each_ms := pos_integer(), out := file:filename()}.

-define(NODES, [8, 24, 40]).
-define(VARIANTS, [stock_mesh, weft_mesh, weft_swim]).
-define(MINUTES, 60).
-define(MINUTE_MS, 60000).
%% What forming a cluster has begun goes on for some time.
-define(SETTLE_MS, 120000).
%% Samples of the beginning and of the end that are compared.
-define(COMPARED, 10).

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "an hour of rest: processor time and memory of idle clusters",
      arguments =>
          [#{name => nodes, long => "-nodes", type => {list, {integer, [{min, 2}]}},
             default => ?NODES, value => "N,N",
             help => "how many each cluster has (default 8,24,40)"},
           #{name => variants, long => "-variants",
             type => {list, {atom, weft_bench_variant:of_clusters()}}, default => ?VARIANTS,
             value => "V,V", help => "of clusters (default stock_mesh,weft_mesh,weft_swim)"},
           #{name => minutes, long => "-minutes", type => {integer, [{min, 2}]},
             default => ?MINUTES, value => "N", help => "how long each (default 60)"},
           #{name => at_once, long => "-at-once", type => boolean, default => false,
             help => "all variants at the same time, not one after another"}
           | weft_bench_arguments:common("where the results go", "hour")],
      handler => fun(#{minutes := Minutes} = Given) ->
                         weft_bench_arguments:recorded(
                           Given#{settle_ms => ?SETTLE_MS, samples => Minutes,
                                  each_ms => ?MINUTE_MS}, fun run/1)
                 end}.

%% @doc Measures all clusters, and makes the report.
-spec run(plan()) -> ok | {failed | error, unicode:chardata()}.
run(#{out := Dir} = Plan) ->
    Run = weft_bench_arguments:run_name(),
    ok = weft_report_file:directory(filename:join(Dir, "logs")),
    ok = weft_report_record:write_environment(Dir, environment(Run, Plan)),
    File = weft_report_file:open(weft_report_record:results_file(Dir),
                                 weft_report_record:header()),
    ok = weft_bench_interrupt:afterwards(hour, fun() -> weft_report_page:main([Dir]) end),
    Write = fun(Count, Variant, Values, Note) ->
                    weft_report_file:append(
                      weft_report_record:results_file(Dir), File,
                      [weft_report_record:line(row(Run, Count, Variant, Value, Note))
                       || Value <- Values])
            end,
    Failed = lists:sum([clusters(Count, Variants, Write, Plan)
                        || {Count, Variants} <- together(Plan)]),
    ok = file:close(File),
    case weft_report_page:main([Dir]) of
        0 when Failed > 0 -> {failed, "some were not measured; why is in results.csv"};
        0 -> ok;
        _ -> {error, "there is no report"}
    end.

environment(Run, #{out := Dir, at_once := AtOnce, nodes := Counts, samples := Samples,
                   variants := Variants}) ->
    weft_bench_environment:gather(
      weft_bench_environment:of_nodes([{Variant, layout(Count)}
                                       || Variant <- Variants, Count <- Counts])
      ++ [{"congestion_control", weft_bench_environment:congestion_control(Dir)},
       {"run", Run}, {"scope", "hour"}, {"repetitions", "1"}, {"quota", "none"},
       {"nodes", lists:flatten(io_lib:format("~w", [Counts]))},
       {"samples", integer_to_list(Samples)},
       {"clusters", case AtOnce of
                        true -> "those with as many nodes at the same time";
                        false -> "one after another"
                    end}]).

%% Which clusters are there at the same time.
together(#{nodes := Counts, variants := Variants, at_once := true}) ->
    [{Count, Variants} || Count <- Counts];
together(#{nodes := Counts, variants := Variants, at_once := false}) ->
    [{Count, [Variant]} || Count <- Counts, Variant <- Variants].

%% How many of them failed. One that does not start or form is not there for the others.
clusters(Count, Variants, Write, #{out := Dir} = Plan) ->
    io:format("~b nodes: ~ts~n", [Count, lists:join(", ", [atom_to_list(V) || V <- Variants])]),
    Of = fun(Variant, Values) -> Write(Count, Variant, Values, "") end,
    In = fun(Place) ->
                 Started = [{Variant, started(Variant, Count, Place, Dir)} || Variant <- Variants],
                 try
                     [{Variant, Why} || {Variant, {error, Why}} <- Started]
                         ++ kept([{Variant, Nodes} || {Variant, {ok, Nodes}} <- Started], Plan, Of)
                 after
                     [weft_bench_nodes:stop(Nodes) || {_, {ok, Nodes}} <- Started]
                 end
         end,
    Failed = case weft_bench_place:with(weft_bench_link:loopback(), Dir, In) of
                 {error, Why} -> [{Variant, Why} || Variant <- Variants];
                 Some -> Some
             end,
    lists:foreach(fun({Variant, Text}) ->
                          io:format("failed: ~ts: ~ts~n", [Variant, Text]),
                          Write(Count, Variant, [{failed, 0}], Text)
                  end, Failed),
    length(Failed).

%% A node or a connection that is lost ends the measurement of all clusters that are there: it was
%% no hour of rest.
kept(Clusters, Plan, Of) ->
    try
        ok = measured(Clusters, Plan, Of),
        []
    catch
        error:Why ->
            [{Variant, weft_bench_error:text("~0tp", [Why])} || {Variant, _} <- Clusters]
    end.

layout(Count) -> {apart, weft_bench_cluster:shape(Count, [])}.

started(Variant, Count, Place, Dir) ->
    Context = #{place => Place, log_dir => filename:join(Dir, "logs")},
    case weft_bench_nodes:start(Variant, layout(Count), Context) of
        {ok, Nodes} ->
            try
                Roles = weft_bench_nodes:roles(Nodes),
                ok = weft_bench_form:load(Roles, Nodes),
                _ = weft_bench_form:form(Roles, Nodes),
                {ok, Nodes}
            catch
                _:Why ->
                    ok = weft_bench_nodes:stop(Nodes),
                    {error, weft_bench_error:text("~0tp", [Why])}
            end;
        {error, Text} ->
            {error, Text}
    end.

%% @doc Hands over what clusters do that are connected, and are there at the same time: each sample
%% when it is taken, and at the end what follows from all.
-spec measured([{weft_bench_variant:variant(), weft_bench_nodes:nodes()}], plan(),
               fun((weft_bench_variant:variant(), [weft_bench_workload:measurement()]) -> ok)) ->
          ok.
measured([], _Plan, _Write) ->
    ok;
measured(Clusters, #{settle_ms := SettleMs, samples := Count, each_ms := EachMs}, Write) ->
    receive after SettleMs -> ok end,
    BeganMs = now_ms(),
    Each = fun(N, Before) ->
                   receive after max(0, BeganMs + N * EachMs - now_ms()) -> ok end,
                   After = [used(Nodes) || {_, Nodes} <- Clusters],
                   Samples = lists:zipwith(fun(B, A) -> sample(BeganMs, B, A) end, Before, After),
                   [ok = Write(Variant, series(Sample))
                    || {{Variant, _}, Sample} <- lists:zip(Clusters, Samples)],
                   {Samples, After}
           end,
    {All, _} = lists:mapfoldl(Each, [used(Nodes) || {_, Nodes} <- Clusters], lists:seq(1, Count)),
    [ok = weft_bench_form:still_formed(weft_bench_nodes:roles(Nodes), Nodes)
     || {_, Nodes} <- Clusters],
    Shared = shared(Clusters),
    lists:foreach(fun({Number, {Variant, _}}) ->
                          Of = [lists:nth(Number, Samples) || Samples <- All],
                          ok = Write(Variant, metrics(Of) ++ Shared)
                  end, lists:enumerate(Clusters)).

now_ms() -> erlang:monotonic_time(millisecond).

used(Nodes) ->
    Roles = weft_bench_nodes:roles(Nodes),
    #{at_ms => now_ms(), nodes => length(Roles), cpu_us => weft_bench_idle:cpu_us(Nodes, Roles),
      bytes => lists:sum([weft_bench_nodes:resident_bytes(Nodes, Role) || Role <- Roles])}.

%% What a node used since the sample before, and what memory it has now.
sample(BeganMs, #{at_ms := Ms0, cpu_us := CpuUs0},
       #{at_ms := Ms, cpu_us := CpuUs, nodes := Count, bytes := Bytes}) ->
    {Ms - BeganMs, (CpuUs - CpuUs0) / Count / (Ms - Ms0) / 10, Bytes / Count}.

%% All nodes that are there share the cores, of whatever cluster they are.
shared(Clusters) ->
    All = lists:sum([length(weft_bench_nodes:roles(Nodes)) || {_, Nodes} <- Clusters]),
    [{vms_per_core, weft_bench_cluster:vms_per_core(All)},
     {clusters_at_once, length(Clusters)}].

metrics(Samples) ->
    Compared = min(?COMPARED, length(Samples) div 2),
    First = lists:sublist(Samples, Compared),
    Last = lists:nthtail(length(Samples) - Compared, Samples),
    [{idle_percent, mean(2, Samples)},
     {idle_changed_percent, changed(2, First, Last)},
     {memory_changed_percent, changed(3, First, Last)},
     {measured_s, element(1, lists:last(Samples)) / 1000}].

series({AtMs, Percent, Bytes}) ->
    [{idle_minute_percent, Percent, AtMs}, {node_memory_bytes, Bytes, AtMs}].

changed(Position, First, Last) ->
    case mean(Position, First) of
        Before when Before == 0 -> 0;
        Before -> 100 * (mean(Position, Last) / Before - 1)
    end.

mean(Position, Samples) ->
    lists:sum([element(Position, Sample) || Sample <- Samples]) / length(Samples).

row(Run, Count, Variant, {Metric, Value}, Note) ->
    row(Run, Count, Variant, {Metric, Value, 0}, Note);
row(Run, Count, Variant, {Metric, Value, AtMs}, Note) ->
    #{run => Run, suite => hour, workload => hour, variant => Variant, size_bytes => 0,
      pairs => Count, streams => 0, link => loopback, rtt_ms => 0, rate_mbit => 0,
      loss_percent => 0, repetition => 1, metric => Metric,
      unit => weft_report_words:unit(atom_to_binary(Metric)), value => Value, at_ms => AtMs,
      note => Note}.
