%% SPDX-License-Identifier: Apache-2.0
%% @doc The part of a report that tells what several lanes are worth: the numbers that say most
%% about each workload, as ratios to the same carrier with one lane.
-module(weft_report_lanes).

-export([section/1]).

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).

%% @doc A table under a heading; nothing if no variant has both.
-spec section(weft_report_results:results()) -> weft_report_html:html().
section(Results) ->
    case lists:append([rows(Cell, Results) || Cell <- weft_report_results:cells(Results)]) of
        [] -> [];
        Rows -> ?E(section, [], [?E(h2, [], ?T("Several lanes against one")), table(Rows)])
    end.

table(Rows) ->
    Heads = [{"Cell", ""}, {"Variant", "nowrap"}, {"Metric", "nowrap"},
             {[16#d7, " one lane"], "number"}, {"95 % interval", "number"}, {"", "nowrap"}],
    Title = io_lib:format("~b numbers", [length(Rows)]),
    ?E(details, [], [?E(summary, [], ?T(Title)), weft_report_html:table(Title, Heads, Rows)]).

rows({_, Workload, _, _, _, _} = Cell, Results) ->
    [row(Key, Ratio)
     || Metric <- weft_report_results:headline_metrics(Workload),
        Variant <- weft_report_results:variants(Cell, Results),
        Key <- [{Cell, Variant, Metric}],
        {_, _, _} = OneLane <- [weft_report_results:one_lane(Key, Results)],
        {ok, Ratio} <- [weft_report_results:ratio(Key, OneLane, Results)]].

row({Cell, Variant, Metric}, #{median := Median, interval := Interval}) ->
    [?T(weft_report_words:cell(Cell)), ?T(weft_report_words:variant(Variant)),
     ?T(weft_report_words:metric(Metric)), ?T(weft_report_words:ratio(Median)),
     ?T(weft_report_words:interval(Interval)), ?T(weft_report_words:noise(Interval))].
