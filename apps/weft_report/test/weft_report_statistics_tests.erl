%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_statistics_tests).

-include_lib("eunit/include/eunit.hrl").

the_median_is_in_the_middle_test() ->
    ?assertEqual(3, weft_report_statistics:median([9, 1, 3])),
    ?assertEqual(2.5, weft_report_statistics:median([4, 1, 3, 2])),
    ?assertEqual(7, weft_report_statistics:median([7])).

percentiles_are_values_of_the_list_test() ->
    Values = lists:reverse(lists:seq(1, 1000)),
    ?assertEqual(500, weft_report_statistics:percentile(50, Values)),
    ?assertEqual(990, weft_report_statistics:percentile(99, Values)),
    ?assertEqual(999, weft_report_statistics:percentile(99.9, Values)),
    ?assertEqual(1000, weft_report_statistics:percentile(100, Values)).

the_99th_of_few_values_is_the_largest_test() ->
    ?assertEqual(30, weft_report_statistics:percentile(99, [10, 30, 20])).

latencies_test() ->
    ?assertEqual(#{latency_p50_us => 2, latency_p99_us => 3, latency_p999_us => 3,
                   latency_max_us => 3, calls => 3},
                 weft_report_statistics:latencies([3, 1, 2])).

the_range_test() ->
    ?assertEqual({1, 9}, weft_report_statistics:range([4, 9, 1])).
