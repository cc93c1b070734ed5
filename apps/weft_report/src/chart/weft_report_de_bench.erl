%% SPDX-License-Identifier: Apache-2.0
%% @doc What was measured of the workloads of `weft_de_bench_workload', over the number of nodes:
%% charts as those of the paper, a chart for each carrier.
-module(weft_report_de_bench).

-export([groups/1, throughput/2, shares/2, latencies/4]).
-export([variants/2, parameters/2, points/5, measured/5, parameter/2]).
-export_type([parameter/0]).

%% What is varied: the size of data, and what `streams' is in the workload.
-type parameter() :: {SizeBytes :: non_neg_integer(), Streams :: non_neg_integer()}.

-define(WORKLOADS, [<<"de_global">>, <<"de_names">>, <<"de_size">>, <<"de_compute">>,
                    <<"de_heavy">>, <<"de_server">>, <<"de_calls">>]).
%% Their workers are as fast as they can be, and so wait for the cores.
-define(FAST, [<<"de_size">>, <<"de_compute">>, <<"de_server">>]).
-define(OPERATIONS, ["register", "unregister", "whereis", "spawning", "remote_call", "rex_call",
                     "gen_server_call", "fsm_server_call", "local_register", "local_whereis",
                     "local_unregister"]).

%% @doc For the report of a run.
-spec groups(weft_report_results:results()) ->
          [{Title :: string(), Explanation :: string(), [weft_report_svg:chart()]}].
groups(Results) ->
    lists:append(
      [[{title(Workload, "throughput"),
         "Commands done per second by all nodes together, over the number of nodes.",
         throughput(Workload, Results)}
        | [{title(Workload, weft_report_words:varied(Workload, element(2, Parameter))),
            "Mean times of commands over the number of nodes, logarithmic.",
            latencies(Workload, Parameter, ?OPERATIONS, Results)}
           || Parameter <- parameters(Workload, Results),
              not lists:member(Workload, ?FAST)]]
       || Workload <- ?WORKLOADS]).

title(Workload, More) ->
    lists:flatten(["DE-Bench, ", weft_report_words:workload(Workload), ": ", More]).

%% @doc Commands per second over nodes, a line for each value of what is varied.
-spec throughput(Workload :: binary(), weft_report_results:results()) -> [weft_report_svg:chart()].
throughput(Workload, Results) ->
    Metric = <<"calls_per_s">>,
    Lines = fun(Variant) ->
                [{parameter(Workload, Parameter),
                  points(Workload, Parameter, Variant, Metric, Results)}
                 || Parameter <- parameters(Workload, Results)]
            end,
    charts(Workload, Metric, {"per second", scale(Workload)}, Lines, Results).

%% @doc Commands per second on most nodes, over what is varied, a line for each carrier.
-spec shares(Workload :: binary(), weft_report_results:results()) -> [weft_report_svg:chart()].
shares(Workload, Results) ->
    Cells = cells(Workload, Results),
    Most = lists:max([0 | [Nodes || {_, _, _, Nodes, _, _} <- Cells]]),
    [(weft_report_chart:over(fun({_, _, SizeBytes, _, Streams, _}) ->
                                     parameter(Workload, {SizeBytes, Streams})
                             end, "of all commands",
                             lists:keysort(5, [Cell || {_, _, _, Nodes, _, _} = Cell <- Cells,
                                                       Nodes =:= Most]), <<"calls_per_s">>,
                             [weft_report_words:workload(Workload), ", ", integer_to_list(Most),
                              " nodes"], Results))#{y := linear} || Cells =/= []].

%% What computes for long is done a thousand times less often.
scale(<<"de_compute">>) -> log;
scale(_Workload) -> linear.

%% @doc Mean times of commands over nodes, a line for each command.
-spec latencies(Workload :: binary(), parameter(), Operations :: [string()],
                weft_report_results:results()) -> [weft_report_svg:chart()].
latencies(Workload, Parameter, Operations, Results) ->
    charts(Workload, <<"register_mean_us">>, {"mean time", log},
           fun(Variant) ->
               [{string:replace(Operation, "_", " "),
                 points(Workload, Parameter, Variant, list_to_binary(Operation ++ "_mean_us"),
                        Results)}
                || Operation <- Operations]
           end, Results).

charts(Workload, Metric, {YLabel, Scale}, Lines, Results) ->
    [weft_report_chart:lines([weft_report_words:workload(Workload), ", ",
                              weft_report_words:variant(Variant)], "nodes", Scale, Metric, YLabel,
                             Lines(Variant))
     || Variant <- variants(Workload, Results)].

%% @doc The carriers on which a workload was measured.
-spec variants(Workload :: binary(), weft_report_results:results()) -> [binary()].
variants(Workload, Results) ->
    weft_report_chart:variants(cells(Workload, Results), Results).

%% @doc The values of what is varied.
-spec parameters(Workload :: binary(), weft_report_results:results()) -> [parameter()].
parameters(Workload, Results) ->
    lists:usort([{SizeBytes, Streams} || {_, _, SizeBytes, _, Streams, _}
                                             <- cells(Workload, Results)]).

%% @doc Such a value in words.
-spec parameter(Workload :: binary(), parameter()) -> iolist().
parameter(<<"de_size">>, {SizeBytes, _}) -> io_lib:format("~b B", [SizeBytes]);
parameter(Workload, {_, Streams}) -> weft_report_words:varied(Workload, Streams).

%% @doc A metric over the number of nodes.
-spec points(Workload :: binary(), parameter(), Variant :: binary(), Metric :: binary(),
             weft_report_results:results()) ->
          [{Nodes :: pos_integer(), weft_report_results:measured()}].
points(Workload, Parameter, Variant, Metric, Results) ->
    [{Nodes, Measured}
     || {Nodes, Cell} <- measured(Workload, Parameter, Variant, Metric, Results),
        {ok, Measured} <- [weft_report_results:measured(Cell, Variant, Metric, Results)]].

%% @doc Where a metric was measured, by the number of nodes.
-spec measured(Workload :: binary(), parameter(), Variant :: binary(), Metric :: binary(),
               weft_report_results:results()) ->
          [{Nodes :: pos_integer(), weft_report_record:cell()}].
measured(Workload, {SizeBytes, Streams}, Variant, Metric, Results) ->
    lists:sort([{Nodes, Cell}
                || {_, _, Size, Nodes, Varied, _} = Cell <- cells(Workload, Results),
                   Size =:= SizeBytes, Varied =:= Streams,
                   {ok, _} <- [weft_report_results:measured(Cell, Variant, Metric, Results)]]).

cells(Workload, Results) ->
    [Cell || {_, Of, _, _, _, _} = Cell <- weft_report_results:cells(Results), Of =:= Workload].
