%% SPDX-License-Identifier: Apache-2.0
%% @doc What was measured of the workloads of `weft_de_bench_workload', over the number of nodes:
%% charts as those of the paper, a chart for each carrier.
-module(weft_de_bench_plots).

-export([group/1, throughput/2, latencies/4]).
-export([variants/2, parameters/2, points/5, parameter/2]).
-export_type([parameter/0]).

%% What is varied: the size of data, and what `streams' is in the workload.
-type parameter() :: {SizeBytes :: non_neg_integer(), Streams :: non_neg_integer()}.

-define(WORKLOADS, [<<"de_global">>, <<"de_names">>, <<"de_size">>, <<"de_compute">>,
                    <<"de_heavy">>, <<"de_server">>, <<"de_calls">>]).
-define(NAMES, ["register", "unregister", "whereis"]).
-define(PEER, ["spawning", "remote_call"]).

%% @doc For the report of a run.
-spec group(weft_bench_results:results()) -> {string(), string(), [weft_bench_svg:chart()]}.
group(Results) ->
    {"DE-Bench",
     "Commands done per second by all nodes together, and mean times of those that involve names, "
     "over the number of nodes. Times are logarithmic.",
     lists:append([throughput(Workload, Results) || Workload <- ?WORKLOADS])
         ++ lists:append([latencies(Workload, Parameter, ?NAMES ++ ?PEER, Results)
                          || Workload <- [<<"de_global">>, <<"de_names">>],
                             Parameter <- last(parameters(Workload, Results))])}.

last([]) -> [];
last(Parameters) -> [lists:last(Parameters)].

%% @doc Commands per second over nodes, a line for each value of what is varied.
-spec throughput(Workload :: binary(), weft_bench_results:results()) -> [weft_bench_svg:chart()].
throughput(Workload, Results) ->
    Metric = <<"calls_per_s">>,
    Lines = fun(Variant) ->
                [{parameter(Workload, Parameter),
                  points(Workload, Parameter, Variant, Metric, Results)}
                 || Parameter <- parameters(Workload, Results)]
            end,
    [Chart#{y := scale(Workload)}
     || Chart <- charts(Workload, Metric, "commands per second", Lines, Results)].

%% What computes for long is done a thousand times less often.
scale(<<"de_compute">>) -> log;
scale(_Workload) -> linear.

%% @doc Mean times of commands over nodes, a line for each command.
-spec latencies(Workload :: binary(), parameter(), Operations :: [string()],
                weft_bench_results:results()) -> [weft_bench_svg:chart()].
latencies(Workload, Parameter, Operations, Results) ->
    charts(Workload, <<"register_mean_us">>, "mean time",
           fun(Variant) ->
               [{string:replace(Operation, "_", " "),
                 points(Workload, Parameter, Variant, list_to_binary(Operation ++ "_mean_us"),
                        Results)}
                || Operation <- Operations]
           end, Results).

charts(Workload, Metric, YLabel, Lines, Results) ->
    Counts = counts(Workload, Results),
    [weft_bench_chart:lines([weft_bench_words:workload(Workload), ", ",
                             weft_bench_words:variant(Variant)], "nodes",
                            [integer_to_list(Count) || Count <- Counts], Metric, YLabel,
                            [{Name, placed(Points, Counts)} || {Name, Points} <- Lines(Variant)])
     || Variant <- variants(Workload, Results)].

placed(Points, Counts) ->
    Places = maps:from_list(lists:zip(Counts, lists:seq(1, length(Counts)))),
    [{map_get(Count, Places), Measured} || {Count, Measured} <- Points].

%% @doc The carriers on which a workload was measured.
-spec variants(Workload :: binary(), weft_bench_results:results()) -> [binary()].
variants(Workload, Results) ->
    weft_bench_chart:variants(cells(Workload, Results), Results).

%% @doc The values of what is varied.
-spec parameters(Workload :: binary(), weft_bench_results:results()) -> [parameter()].
parameters(Workload, Results) ->
    lists:usort([{SizeBytes, Streams} || {_, _, SizeBytes, _, Streams, _}
                                             <- cells(Workload, Results)]).

%% @doc Such a value in words.
-spec parameter(Workload :: binary(), parameter()) -> iolist().
parameter(<<"de_size">>, {SizeBytes, _}) -> io_lib:format("~b B", [SizeBytes]);
parameter(Workload, {_, Streams}) -> weft_bench_words:varied(Workload, Streams).

%% @doc A metric over the number of nodes.
-spec points(Workload :: binary(), parameter(), Variant :: binary(), Metric :: binary(),
             weft_bench_results:results()) ->
          [{Nodes :: pos_integer(), weft_bench_results:measured()}].
points(Workload, {SizeBytes, Streams}, Variant, Metric, Results) ->
    lists:sort([{Nodes, Measured}
                || {_, _, Size, Nodes, Varied, _} = Cell <- cells(Workload, Results),
                   Size =:= SizeBytes, Varied =:= Streams,
                   {ok, Measured} <- [weft_bench_results:measured(Cell, Variant, Metric,
                                                                  Results)]]).

counts(Workload, Results) ->
    lists:usort([Nodes || {_, _, _, Nodes, _, _} <- cells(Workload, Results)]).

cells(Workload, Results) ->
    [Cell || {_, Of, _, _, _, _} = Cell <- weft_bench_results:cells(Results), Of =:= Workload].
