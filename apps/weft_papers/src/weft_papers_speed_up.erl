%% SPDX-License-Identifier: Apache-2.0
%% @doc How many times as fast a program does the same work on more nodes, where each node has a
%% quota (`weft_bench_quota').
-module(weft_papers_speed_up).

-export([all/2, rises/2, text/1, chart/2]).
-export_type([speed_up/0]).

-type speed_up() :: #{workload := binary(), variant := binary(), fewest := pos_integer(),
                      more := [{Nodes :: pos_integer(), weft_report_results:ratio()}, ...],
                      %% In terms of the time on the next fewer nodes.
                      steps := [weft_report_results:ratio()]}.

-define(TIME, <<"duration_s">>).

%% @doc For each workload and variant that was measured on several numbers of nodes: in terms of the
%% time on fewest, from few nodes to many.
-spec all([binary()], weft_report_results:results()) -> [speed_up()].
all(Workloads, Results) ->
    [#{workload => Workload, variant => Variant, fewest => Fewest, more => More,
       steps => [Ratio || {{_, Fewer}, {_, Cell}} <- lists:zip(lists:droplast(All), Others),
                          Ratio <- times(Fewer, Cell, Variant, Results)]}
     || Workload <- Workloads, Variant <- variants(Results),
        [{Fewest, First} | Others] = All <- [measured(Workload, Variant, Results)],
        [_ | _] = More <- [[{Nodes, Ratio} || {Nodes, Cell} <- Others,
                                              Ratio <- times(First, Cell, Variant, Results)]]].

%% How many times as fast a cell is as another one.
times(Other, Cell, Variant, Results) ->
    [Ratio || {ok, Ratio} <- [weft_report_results:ratio({Other, Variant, ?TIME},
                                                        {Cell, Variant, ?TIME}, Results)]].

variants(Results) ->
    weft_report_chart:variants(weft_report_results:cells(Results), Results).

measured(Workload, Variant, Results) ->
    lists:sort([{Nodes, Cell}
                || {_, Of, _, Nodes, _, _} = Cell <- weft_report_results:cells(Results),
                   Of =:= Workload,
                   {ok, _} <- [weft_report_results:measured(Cell, Variant, ?TIME, Results)]]).

%% @doc Is the program as fast with each number of nodes as with fewer ones, or faster, up to so
%% many?
-spec rises(UpTo :: pos_integer(), speed_up()) -> weft_papers_verdict:verdict().
rises(UpTo, #{steps := Steps, more := More}) ->
    {Most, _} = lists:last(More),
    weft_papers_verdict:up_to(
      UpTo, Most,
      weft_papers_verdict:all([weft_papers_verdict:at_least(1, Step) || Step <- Steps])).

%% @doc It in words.
-spec text(speed_up()) -> iolist().
text(#{workload := Workload, variant := Variant, fewest := Fewest, more := More}) ->
    [weft_report_words:workload(Workload), ", ", weft_report_words:variant(Variant), ": ",
     lists:join(", ", [[weft_report_words:ratio(Times), " times as fast on ",
                        integer_to_list(Nodes)] || {Nodes, #{median := Times}} <- More]),
     " nodes as on ", integer_to_list(Fewest)].

%% @doc The speed-up of a workload with each variant, over the number of nodes.
-spec chart(Workload :: binary(), weft_report_results:results()) -> weft_report_svg:chart().
chart(Workload, Results) ->
    Lines = [{weft_report_words:variant(Variant),
              [{Nodes, weft_report_chart:ratio(Times)} || {Nodes, Times} <- More]}
             || #{variant := Variant, more := More} <- all([Workload], Results)],
    weft_report_chart:in_terms(
      weft_report_chart:lines([weft_report_words:workload(Workload), ", speed-up"], "nodes",
                              linear, ?TIME, "times as fast", Lines), "the time on fewest nodes").
