%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_results_tests).

-include_lib("eunit/include/eunit.hrl").

-define(STOCK, [100, 200, 400]).

results() ->
    weft_report_sample:results([{#{}, weft_1, messages_per_s, [800, 600, 1600]},
                                {#{}, stock, messages_per_s, ?STOCK},
                                {#{size_bytes => 100}, stock, messages_per_s, [0]},
                                {#{size_bytes => 100}, weft_1, messages_per_s, [5]},
                                {#{size_bytes => 100}, channel, skipped, [<<"no channels">>]},
                                {#{size_bytes => 100}, weft_4, failed, [<<"one">>, <<"two">>]}]).

key(Cell, Variant, Metric) -> {weft_report_sample:cell(Cell), Variant, Metric}.

a_measurement_is_its_median_and_its_range_test() ->
    ?assertEqual({ok, #{median => 800, low => 600, high => 1600, count => 3, sum => 3000}},
                 weft_report_results:measured(weft_report_sample:cell(#{}), <<"weft_1">>,
                                              <<"messages_per_s">>, results())),
    ?assertEqual(none, weft_report_results:measured(weft_report_sample:cell(#{pairs => 7}),
                                                    <<"weft_1">>, <<"messages_per_s">>, results())).

%% Medians 800 and 200; at most 1600 by 100, at least 600 by 400.
a_ratio_is_of_medians_with_its_interval_test() ->
    ?assertEqual({ok, #{median => 4.0, interval => {1.5, 16.0}, superiority => 1.0}},
                 weft_report_results:ratio(key(#{}, <<"weft_1">>, <<"messages_per_s">>),
                                           key(#{}, <<"stock">>, <<"messages_per_s">>), results())).

a_ratio_to_another_run_has_an_interval_too_test() ->
    Key = key(#{}, <<"stock">>, <<"messages_per_s">>),
    New = weft_report_sample:results([{#{}, stock, messages_per_s, [50, 50]}]),
    ?assertEqual({ok, #{median => 0.25, interval => {0.125, 0.5}, superiority => 0.0}},
                 weft_report_results:ratio(Key, New, Key, results())).

stock_has_no_noise_against_itself_test() ->
    ?assertEqual({ok, #{median => 1.0, interval => none, superiority => 0.5}},
                 weft_report_results:against_stock(key(#{}, <<"stock">>, <<"messages_per_s">>),
                                                   results())).

%% A number of calls is no achievement.
what_only_informs_is_not_compared_with_stock_test() ->
    Results = weft_report_sample:results([{#{}, weft_1, calls, [9, 9]},
                                          {#{}, stock, calls, [5, 6]}]),
    ?assertEqual(none, weft_report_results:against_stock(key(#{}, <<"weft_1">>, <<"calls">>),
                                                         Results)).

nothing_is_compared_with_zero_or_with_nothing_test() ->
    Metric = <<"messages_per_s">>,
    Small = #{size_bytes => 100},
    ?assertEqual(none, weft_report_results:ratio(key(Small, <<"weft_1">>, Metric),
                                                 key(Small, <<"stock">>, Metric), results())),
    ?assertEqual(none, weft_report_results:ratio(key(Small, <<"weft_1">>, Metric),
                                                 key(Small, <<"channel">>, Metric), results())).

one_repetition_has_no_interval_test() ->
    Results = weft_report_sample:results([{#{}, weft_1, messages_per_s, [400]},
                                          {#{}, stock, messages_per_s, ?STOCK}]),
    ?assertMatch({ok, #{median := 2.0, interval := none}},
                 weft_report_results:ratio(key(#{}, <<"weft_1">>, <<"messages_per_s">>),
                                           key(#{}, <<"stock">>, <<"messages_per_s">>), Results)).

cells_come_in_the_order_of_the_run_and_variants_in_theirs_test() ->
    Second = weft_report_sample:cell(#{size_bytes => 100}),
    ?assertEqual([weft_report_sample:cell(#{}), Second], weft_report_results:cells(results())),
    ?assertEqual([<<"stock">>, <<"weft_1">>, <<"weft_4">>, <<"channel">>],
                 weft_report_results:variants(Second, results())),
    ?assertEqual([<<"stock">>, <<"unheard_of">>],
                 weft_report_results:variant_order([<<"unheard_of">>, <<"stock">>, <<"stock">>])).

trouble_is_kept_with_its_reason_test() ->
    Cell = weft_report_sample:cell(#{size_bytes => 100}),
    ?assertEqual([{failed, <<"one">>}, {failed, <<"two">>}],
                 weft_report_results:trouble(Cell, <<"weft_4">>, results())),
    ?assertEqual([{skipped, <<"no channels">>}],
                 weft_report_results:trouble(Cell, <<"channel">>, results())),
    ?assertEqual([], weft_report_results:trouble(Cell, <<"stock">>, results())).

a_series_is_that_of_the_repetition_with_the_highest_value_test() ->
    Rows = [Row#{repetition := Repetition}
            || {Repetition, Values} <- [{1, [{50, 0}, {70, 1000}]}, {2, [{90, 1000}, {60, 0}]}],
               Row <- weft_report_sample:rows([{#{}, stock, sender_memory_bytes, Values}])],
    ?assertEqual([{0, 60}, {1000, 90}],
                 weft_report_results:series(weft_report_sample:cell(#{}), <<"stock">>,
                                            <<"sender_memory_bytes">>,
                                            weft_report_results:new(Rows))).

several_lanes_are_compared_with_one_test() ->
    Metric = <<"latency_p99_us">>,
    Results = weft_report_sample:results([{#{}, Variant, latency_p99_us, [5, 6]}
                                          || Variant <- [weft_1, weft_4, channel_8, weft_tls_4,
                                                         weft_tls_1, weft_mesh]]
                                         ++ [{#{}, Variant, calls, [5]}
                                             || Variant <- [weft_1, weft_4]]),
    OneLane = fun(Variant, Of) -> weft_report_results:one_lane(key(#{}, Variant, Of), Results) end,
    ?assertEqual(key(#{}, <<"weft_1">>, Metric), OneLane(<<"weft_4">>, Metric)),
    ?assertEqual(key(#{}, <<"weft_tls_1">>, Metric), OneLane(<<"weft_tls_4">>, Metric)),
    [?assertEqual({Variant, none}, {Variant, OneLane(Variant, Of)})
     || {Variant, Of} <- [{<<"weft_1">>, Metric}, {<<"weft_tls_1">>, Metric},
                          {<<"weft_mesh">>, Metric}, {<<"channel_8">>, Metric},
                          {<<"weft_4">>, <<"calls">>}]].
