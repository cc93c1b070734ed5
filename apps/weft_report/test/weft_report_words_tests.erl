%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_words_tests).

-include_lib("eunit/include/eunit.hrl").

text(Data) -> unicode:characters_to_list(Data).

values_have_three_digits_and_a_unit_that_fits_test_() ->
    [?_assertEqual(Expected, text(weft_report_words:value(Value, Unit)))
     || {Value, Unit, Expected} <-
            [{263700, "1/s", "264 k/s"}, {1260000.0, "1/s", "1.26 M/s"}, {3.4, "1/s", "3.40 /s"},
             {68, "us", "68.0 µs"}, {1850, "us", "1.85 ms"}, {5532000, "us", "5.53 s"},
             {0.25, "us", "0.25 µs"}, {4512.3, "MB/s", "4.51 GB/s"}, {0.05, "MB/s", "50.0 kB/s"},
             {97.3, "MB/s", "97.3 MB/s"}, {100663296, "bytes", "101 MB"}, {0, "bytes", "0 B"},
             {-5000000, "bytes", "-5.00 MB"}, {120, "ns", "120 ns"}, {12.5, "s", "12.5 s"},
             {7, "", "7.00"}]].

%% What is rounded to a thousand is one of the next unit, if there is one.
rounding_leads_to_the_next_unit_test_() ->
    [?_assertEqual(Expected, text(weft_report_words:value(Value, Unit)))
     || {Value, Unit, Expected} <-
            [{999499, "bytes", "999 kB"}, {999500, "bytes", "1.00 MB"}, {999.6, "us", "1.00 ms"},
             {-999600, "us", "-1.00 s"}, {999400000, "ns", "999 ms"},
             {999600000, "ns", "1.00 s"}, {0.9996, "MB/s", "1.00 MB/s"},
             {999.6, "MB/s", "1.00 GB/s"}, {999600.0, "1/s", "1.00 M/s"},
             {999.6, "/min", "1.00 k/min"}, {99.96, "s", "100 s"}, {99.94, "s", "99.9 s"},
             {9.996, "s", "10.0 s"}, {9.994, "s", "9.99 s"}]].

a_range_has_one_unit_test() ->
    ?assertEqual("0.90 – 1.20 ms", text(weft_report_words:range(900, 1200, "us"))),
    ?assertEqual("0.50 – 1.00 MB", text(weft_report_words:range(500000, 999600, "bytes"))),
    ?assertEqual("0 – 0 B", text(weft_report_words:range(0, 0, "bytes"))).

small_ratios_keep_their_digits_test_() ->
    [?_assertEqual(Expected, text(weft_report_words:ratio(Ratio)))
     || {Ratio, Expected} <- [{4, "4.00"}, {12.34, "12.3"}, {0.067, "0.067"}, {0.0053, "0.0053"},
                              {250.4, "250"}, {0, "0"}]].

%% As many digits as what it is rounded to.
ratios_are_rounded_to_one_of_the_next_power_of_ten_test_() ->
    [?_assertEqual(Expected, text(weft_report_words:ratio(Ratio)))
     || {Ratio, Expected} <- [{99.94, "99.9"}, {99.96, "100"}, {-99.96, "-100"}, {9.994, "9.99"},
                              {9.996, "10.0"}, {0.0994, "0.099"}, {0.09996, "0.10"},
                              {0.00994, "0.0099"}, {0.009996, "0.010"}]].

ticks_are_short_test_() ->
    [?_assertEqual(Expected, text(weft_report_words:tick(Value, Unit)))
     || {Value, Unit, Expected} <- [{1000.0, "us", "1 ms"}, {500, "us", "500 µs"}, {0, "", "0"},
                                    {0.5, "", "0.50"}, {1.5, "", "1.5"}, {2.0e5, "1/s", "200 k/s"},
                                    {math:pow(10, 6), "1/s", "1 M/s"}, {5.0e5, "", "500000"}]].

cells_are_told_in_words_test_() ->
    [?_assertEqual(Expected, text(weft_report_words:cell(weft_report_sample:cell(Cell))))
     || {Cell, Expected} <-
            [{#{}, "small 10 B, 1 pair"},
             {#{workload => <<"bulk">>, size_bytes => 65536, pairs => 16,
                link => <<"20ms-400mbit-0.1%">>},
              "bulk 64 KB, 16 pairs, 20 ms, 400 Mbit/s, 0.1 % loss"},
             {#{workload => <<"bulk">>, link => <<"20ms-400mbit-128KB">>},
              "bulk 10 B, 1 pair, 20 ms, 400 Mbit/s, buffers of 128 KB"},
             {#{workload => <<"bulk">>, link => <<"20ms-400mbit">>},
              "bulk 10 B, 1 pair, 20 ms, 400 Mbit/s"},
             {#{workload => <<"call_beside_bulk">>, size_bytes => 1048576, streams => 8},
              "call beside bulk 1 MB, 8 streams"},
             {#{workload => <<"call_beside_bulk">>, size_bytes => 1048576},
              "call beside bulk 1 MB, idle"},
             {#{workload => <<"stores put">>, size_bytes => 0}, "stores put, 1 client"},
             {#{workload => <<"bencherl bang [16]">>, size_bytes => 0, pairs => 2},
              "bencherl bang [16], 2 schedulers"},
             {#{workload => <<"bencherl bang [16]">>, size_bytes => 0, pairs => 0, streams => 1},
              "bencherl bang [16], 1 slave node"},
             {#{workload => <<"peers">>, size_bytes => 0, pairs => 1000}, "peers, 1000 peers"},
             {#{workload => <<"rpc">>, pairs => 16, link => <<"odd">>},
              "rpc 10 B, 16 callers, odd"}]].

every_variant_and_metric_has_a_name_of_its_own_test() ->
    Names = [text(weft_report_words:variant(atom_to_binary(V)))
             || V <- weft_report_record:variants()],
    ?assertEqual(length(Names), length(lists:usort(Names))),
    Metrics = [text(weft_report_words:metric(atom_to_binary(M)))
               || {M, _, _, _} <- weft_report_record:metrics()],
    ?assertEqual(length(Metrics), length(lists:usort(Metrics))).

how_nodes_shared_the_machine_test_() ->
    Sharings = [{[{"4.00", "20.0"}], #{<<"vms_per_core">> => {4.0, 20.0}}},
                {[{"20.0", "per core"}, "4 %", {81, "98 %"}],
                 #{<<"vms_per_core">> => {20.0, 20.0}, <<"quota_percent">> => {4, 4},
                   <<"throttled_percent">> => {81.2, 97.9}}}],
    [?_assertEqual("", lists:flatten(weft_report_words:sharing(#{})))
     | [?_assertEqual([], weft_report_said:missing(Said, weft_report_words:sharing(Sharing)))
        || {Said, Sharing} <- Sharings]].

%% As they come from a file: a share is a number with a fraction, a quota a whole one.
shares_are_gathered_from_all_cells_test() ->
    Results = weft_report_sample:results([{#{pairs => Nodes}, stock, Metric, [Value]}
                                          || {Nodes, Throttled} <- [{2, 81.2}, {40, 97}],
                                             {Metric, Value} <- [{quota_percent, 4},
                                                                 {throttled_percent, Throttled}]]),
    Sharing = weft_report_results:sharing(weft_report_results:cells(Results), Results),
    ?assertEqual([], weft_report_said:missing(["4 %", {81, "97 %"}],
                                              weft_report_words:sharing(Sharing))).
