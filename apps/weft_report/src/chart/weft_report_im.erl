%% SPDX-License-Identifier: Apache-2.0
%% @doc Charts of the Instant Messenger: throughput, latency and connections over the number of
%% nodes, and with and without failures. The same people talk in all of them, but where their number
%% grows with that of the servers.
-module(weft_report_im).

-export([group/1, sizes/1, failures/1, grown/1, by_people/3]).

-define(METRICS, [<<"delivered_per_min">>, <<"latency_p99_us">>, <<"connections_max">>]).

%% @doc For the report of a run.
-spec group(weft_report_results:results()) -> {string(), string(), [weft_report_svg:chart()]}.
group(Results) ->
    {"Instant Messenger",
     "Messages delivered per minute, half of the time until they are acknowledged, and connections "
     "of the node that has most of them. RD is the distributed form, RSD the grouped one.",
     sizes(Results) ++ failures(Results) ++ grown(Results)}.

%% @doc Over the number of nodes, with one router.
-spec sizes(weft_report_results:results()) -> [weft_report_svg:chart()].
sizes(Results) ->
    [weft_report_chart:over(fun({_, _, _, Nodes, _, _}) -> Nodes end, "nodes",
                            cells([Workload], Results), Metric,
                            [form(Workload), ", ", weft_report_words:metric(Metric)], Results)
     || Workload <- [<<"im_rd">>, <<"im_rsd">>], Metric <- ?METRICS].

form(<<"im_rd", _/binary>>) -> "RD";
form(<<"im_rsd", _/binary>>) -> "RSD".

%% @doc Without failures, with processes killed, with databases killed, for each number of nodes.
-spec failures(weft_report_results:results()) -> [weft_report_svg:chart()].
failures(Results) ->
    All = cells([<<Form/binary, How/binary>>
                   || Form <- [<<"im_rd">>, <<"im_rsd">>],
                      How <- [<<"_steady">>, <<"_killed">>, <<"_emptied">>]], Results),
    [weft_report_chart:over(fun({_, <<"im_", Workload/binary>>, _, _, _, _}) ->
                                    weft_report_words:workload(Workload)
                            end, "form and failures", [Cell || {_, _, _, Of, _, _} = Cell <- All,
                                                               Of =:= Nodes],
                            Metric, [weft_report_words:metric(Metric), ", ", integer_to_list(Nodes),
                                     " nodes"], Results)
     || Nodes <- lists:usort([Nodes || {_, _, _, Nodes, _, _} <- All]), Metric <- ?METRICS].

%% @doc Over the number of people, with as many more servers, a line for each form and carrier.
-spec grown(weft_report_results:results()) -> [weft_report_svg:chart()].
grown(Results) ->
    [weft_report_chart:lines(["more servers, ", weft_report_words:metric(Metric)], "people", linear,
                             Metric, weft_report_words:metric(Metric),
                             [{[form(Workload), ", ", weft_report_words:variant(Variant)],
                               [{People, Measured}
                                || {People, Cell} <- by_people(Workload, Variant, Results),
                                   {ok, Measured} <- [weft_report_results:measured(Cell, Variant,
                                                                                   Metric,
                                                                                   Results)]]}
                              || {Workload, Variant} <- [{<<"im_rd_grown">>, <<"stock_mesh">>},
                                                         {<<"im_rsd_grown">>, <<"stock">>},
                                                         {<<"im_rsd_grown">>, <<"weft_groups">>}]])
     || cells([<<"im_rd_grown">>, <<"im_rsd_grown">>], Results) =/= [],
        Metric <- [<<"delivered_per_min">>, <<"latency_p99_us">>]].

%% @doc Where throughput was measured on a carrier, by the number of people.
-spec by_people(Workload :: binary(), Variant :: binary(), weft_report_results:results()) ->
          [{People :: pos_integer(), weft_report_record:cell()}].
by_people(Workload, Variant, Results) ->
    lists:sort([{People, Cell}
                || {_, _, _, _, People, _} = Cell <- cells([Workload], Results),
                   {ok, _} <- [weft_report_results:measured(Cell, Variant, <<"delivered_per_min">>,
                                                            Results)]]).

cells(Workloads, Results) ->
    [Cell || Workload <- Workloads,
             {_, Of, _, _, _, _} = Cell <- lists:sort(weft_report_results:cells(Results)),
             Of =:= Workload].
