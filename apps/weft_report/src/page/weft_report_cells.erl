%% SPDX-License-Identifier: Apache-2.0
%% @doc The part of a report that has all numbers: a table for each workload, folded up, with a row
%% for each cell, variant and metric, and what was skipped or failed with the reason.
-module(weft_report_cells).

-export([section/1]).

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).

%% @doc All tables under one heading.
-spec section(weft_report_results:results()) -> weft_report_html:html().
section(Results) ->
    Cells = weft_report_results:cells(Results),
    Groups = lists:usort([{Suite, Workload, Link} || {Suite, Workload, _, _, _, Link} <- Cells]),
    ?E(section, [],
       [?E(h2, [], ?T("All cells")),
        [group(Group, [Cell || {S, W, _, _, _, L} = Cell <- Cells, {S, W, L} =:= Group], Results)
         || Group <- Groups]]).

group({Suite, Workload, Link}, Cells, Results) ->
    Title = [Suite, ": ", weft_report_words:workload(Workload), ", ",
             weft_report_words:network(Link)],
    Heads = [{"Cell", ""}, {"Variant", "nowrap"}, {"Metric", "nowrap"}, {"Median", "number"},
             {"Spread", "number"}, {"Repetitions", "number"}, {[16#d7, " stock"], "number"},
             {"95 % interval", "number"}, {"", "nowrap"}],
    ?E(details, [],
       [?E(summary, [], ?T(Title)),
        weft_report_html:table(Title, Heads, lists:append([rows(Cell, Results) || Cell <- Cells])),
        troubles(Cells, Results)]).

rows({_, Workload, _, _, _, _} = Cell, Results) ->
    [row(Cell, Variant, Metric, Measured, Results)
     || Metric <- metrics(Workload),
        Variant <- weft_report_results:variants(Cell, Results),
        {ok, Measured} <- [weft_report_results:measured(Cell, Variant, Metric, Results)]].

%% Those that say most first.
metrics(Workload) ->
    First = weft_report_results:headline_metrics(Workload),
    First ++ ([atom_to_binary(Metric) || {Metric, _, _, _} <- weft_report_record:metrics()]
              -- First).

row(Cell, Variant, Metric, Measured, Results) ->
    #{median := Median, low := Low, high := High, count := Count} = Measured,
    Unit = weft_report_words:unit(Metric),
    {Ratio, Interval, Noise} = ratio({Cell, Variant, Metric}, Results),
    [?T(weft_report_words:cell(Cell)), ?T(weft_report_words:variant(Variant)),
     ?T(weft_report_words:metric(Metric)), ?T(weft_report_words:value(Median, Unit)),
     ?T(weft_report_words:range(Low, High, Unit)), integer_to_list(Count), ?T(Ratio), ?T(Interval),
     ?T(Noise)].

ratio(Key, Results) ->
    case weft_report_results:against_stock(Key, Results) of
        {ok, #{median := Median, interval := Interval}} ->
            {weft_report_words:ratio(Median), weft_report_words:interval(Interval),
             weft_report_words:noise(Interval)};
        none ->
            {"", "", ""}
    end.

troubles(Cells, Results) ->
    Found = [?E(li, [], ?T([weft_report_words:cell(Cell), ", ", weft_report_words:variant(Variant),
                            ": ", atom_to_list(Kind), ", ", Note]))
             || Cell <- Cells, Variant <- weft_report_results:variants(Cell, Results),
                {Kind, Note} <- lists:usort(weft_report_results:trouble(Cell, Variant, Results))],
    [?E(ul, [{class, "dim"}], Found) || Found =/= []].
