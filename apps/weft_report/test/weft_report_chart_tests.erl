%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_chart_tests).

-include_lib("eunit/include/eunit.hrl").

chart(Ratios) ->
    weft_report_chart:in_terms(
      weft_report_chart:lines("speed-up", "nodes", linear, <<"duration_s">>, "times as fast",
                              [{"stock", [{Nodes, weft_report_chart:ratio(Ratio)}
                                          || {Nodes, Ratio} <- Ratios]}]), "one node").

ratio(Median, Interval) -> #{median => Median, interval => Interval, superiority => 1.0}.

the_interval_of_a_ratio_are_its_whiskers_test() ->
    #{series := [#{points := [Once, Often]}]} =
        chart([{2, ratio(1.5, none)}, {4, ratio(2.0, {1.8, 2.2})}]),
    {2, 1.5, 1.5, 1.5, OnceTip} = Once,
    {4, 2.0, 1.8, 2.2, OftenTip} = Often,
    ?assertEqual({[], []},
                 {weft_report_said:missing(["1.50 times"], OnceTip),
                  weft_report_said:missing(["2.00 times", "1.80", "2.20"], OftenTip)}).

%% Who does not see in what two values differ could not tell which is which.
each_name_has_a_mark_of_its_own_test() ->
    Chart = weft_report_chart:said("GR", [{145, 3, "3 times"}],
                                   weft_report_chart:said("ML", [{145, 2, "2 times"}],
                                                          chart([{11, ratio(2.6, none)}]))),
    ?assertMatch([{<<"s1">>, 1, <<"stock">>}, {<<"said">>, 3, <<"ML">>}, {<<"said">>, 4, <<"GR">>}],
                 lists:keysort(2, weft_report_chart:marks([Chart]))).

what_has_no_place_is_beside_each_point_test() ->
    #{series := [_, #{class := "said", points := Points}]} =
        weft_report_chart:said_level("linear", 8, "8 times",
                                     chart([{1, ratio(1.0, none)}, {16, ratio(5.0, none)}])),
    ?assertEqual([{1, 8}, {16, 8}], [{X, Y} || {X, Y, _, _, _} <- Points]).

%% It is beside what was measured, and nothing alone.
without_a_line_nothing_is_said_test() ->
    ?assertMatch(#{series := []}, weft_report_chart:said("GR", [{145, 3, "3 times"}], chart([]))).
