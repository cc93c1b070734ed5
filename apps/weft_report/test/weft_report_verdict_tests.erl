%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_verdict_tests).

-include_lib("eunit/include/eunit.hrl").

-define(AT_LEAST_4, #{id => test, text => "test", where => #{workload => [small], pairs => [1, 16]},
                      variant => weft_1, metric => messages_per_s, with => {variant, stock},
                      comparison => at_least, threshold => 4}).

judge(Target, Short) ->
    weft_report_verdict:judge(Target, weft_report_sample:results(Short)).

pair(Cell, Ours, Stock) ->
    [{Cell, weft_1, messages_per_s, Ours}, {Cell, stock, messages_per_s, Stock}].

a_target_is_met_if_it_is_in_all_its_cells_test() ->
    Met = pair(#{}, [500, 400, 450], [100, 100, 100]),
    Missed = pair(#{pairs => 16}, [390, 300, 395], [100, 100, 100]),
    Elsewhere = pair(#{pairs => 128}, [1], [100]) ++ pair(#{pairs => 2}, [1], [9]),
    ?assertMatch(#{verdict := met, checks := [_], unmeasured := []},
                 judge(?AT_LEAST_4, Met ++ Elsewhere)),
    ?assertMatch(#{verdict := missed,
                   checks := [#{verdict := met}, #{verdict := missed}],
                   worst := #{result := #{median := 3.9, interval := {3.0, 3.95}}}},
                 judge(?AT_LEAST_4, Met ++ Missed)).

exactly_the_threshold_is_met_test() ->
    ?assertMatch(#{verdict := met}, judge(?AT_LEAST_4, pair(#{}, [400], [100]))),
    AtMost = ?AT_LEAST_4#{comparison := at_most},
    ?assertMatch(#{verdict := met}, judge(AtMost, pair(#{}, [400], [100]))),
    ?assertMatch(#{verdict := missed}, judge(AtMost, pair(#{}, [401], [100]))).

what_was_not_measured_is_no_success_test() ->
    ?assertMatch(#{verdict := not_measured, checks := [], worst := none}, judge(?AT_LEAST_4, [])),
    Skipped = [{#{}, stock, messages_per_s, [100]}, {#{}, weft_1, skipped, [<<"no root">>]}],
    ?assertMatch(#{verdict := not_measured, unmeasured := [_]}, judge(?AT_LEAST_4, Skipped)),
    StockFails = [{#{}, stock, failed, [<<"timeout">>]}, {#{}, weft_1, messages_per_s, [100]}],
    ?assertMatch(#{verdict := not_measured}, judge(?AT_LEAST_4, StockFails)).

who_fails_where_stock_works_misses_test() ->
    Fails = [{#{}, stock, messages_per_s, [100]}, {#{}, weft_1, failed, [<<"timeout">>]}],
    ?assertMatch(#{verdict := missed, worst := #{result := {failed, <<"timeout">>}}},
                 judge(?AT_LEAST_4, Fails ++ pair(#{pairs => 16}, [500], [100]))).

another_threshold_holds_where_stock_was_fast_test() ->
    Target = ?AT_LEAST_4#{fast => {600, 1.2}},
    ?assertMatch(#{verdict := met, worst := #{is_fast := true, threshold := 1.2}},
                 judge(Target, pair(#{}, [900], [601]))),
    ?assertMatch(#{verdict := missed, worst := #{is_fast := false, threshold := 4}},
                 judge(Target, pair(#{}, [900], [600]))).

a_target_may_compare_metrics_cells_or_nothing_test() ->
    Starvation = ?AT_LEAST_4#{metric := latency_max_us, with := {metric, latency_p99_us},
                              comparison := at_most, threshold := 20},
    ?assertMatch(#{verdict := missed, worst := #{result := #{median := 25.0}}},
                 judge(Starvation, [{#{}, weft_1, latency_max_us, [250]},
                                    {#{}, weft_1, latency_p99_us, [10]}])),
    Growth = ?AT_LEAST_4#{with := none, comparison := at_most, threshold := 500},
    ?assertMatch(#{verdict := met, worst := #{result := #{median := 500}}},
                 judge(Growth, [{#{}, weft_1, messages_per_s, [500]}])),
    Peers = ?AT_LEAST_4#{where := #{pairs => [1000]}, with := {pairs, 10}, threshold := 1.5},
    ?assertMatch(#{verdict := met, worst := #{result := #{median := 2.0}}},
                 judge(Peers, [{#{pairs => 1000}, weft_1, messages_per_s, [200]},
                               {#{pairs => 10}, weft_1, messages_per_s, [100]}])).

a_threshold_within_the_interval_is_neither_met_nor_missed_test() ->
    Noise = pair(#{}, [380, 450, 420], [100, 100, 100]),
    ?assertMatch(#{verdict := within_noise, worst := #{result := #{median := 4.2}}},
                 judge(?AT_LEAST_4, Noise)),
    AtMost = ?AT_LEAST_4#{comparison := at_most},
    ?assertMatch(#{verdict := within_noise}, judge(AtMost, Noise)),
    Below = pair(#{}, [380, 390, 399], [100, 100, 100]),
    ?assertMatch(#{verdict := missed}, judge(?AT_LEAST_4, Below)),
    ?assertMatch(#{verdict := met}, judge(AtMost, Below)).

the_worst_cell_is_one_with_the_verdict_of_the_target_test() ->
    Met = pair(#{pairs => 16}, [500, 500], [100, 100]),
    Noise = pair(#{}, [100, 420], [100, 100]),
    Missed = pair(#{pairs => 16}, [390, 391], [100, 100]),
    ?assertMatch(#{verdict := within_noise, worst := #{verdict := within_noise}},
                 judge(?AT_LEAST_4, Met ++ Noise)),
    ?assertMatch(#{verdict := missed, worst := #{result := #{median := 3.905}}},
                 judge(?AT_LEAST_4, Missed ++ Noise)).

a_value_is_judged_by_its_interval_too_test() ->
    Growth = ?AT_LEAST_4#{with := none, comparison := at_most, threshold := 500},
    [?assertMatch(#{verdict := Verdict}, judge(Growth, [{#{}, weft_1, messages_per_s, Values}]))
     || {Verdict, Values} <- [{met, [400, 450, 500]}, {within_noise, [400, 450, 600]},
                              {missed, [501, 600, 700]}, {met, [500]}, {missed, [501]}]].

one_repetition_is_judged_as_it_is_and_told_test() ->
    Once = judge(?AT_LEAST_4, pair(#{}, [401], [100, 90])),
    ?assertMatch(#{verdict := met, worst := #{result := #{interval := none}}}, Once),
    ?assertNot(weft_report_verdict:has_interval(maps:get(worst, Once))),
    #{worst := Twice} = judge(?AT_LEAST_4, pair(#{}, [401, 402], [100, 90])),
    ?assert(weft_report_verdict:has_interval(Twice)).

every_target_of_ours_can_be_judged_test() ->
    Judged = weft_report_verdict:all(weft_report_sample:results([])),
    ?assertEqual(length(weft_report_targets:all()), length(Judged)),
    ?assertEqual(#{met => 0, missed => 0, within_noise => 0, not_measured => length(Judged)},
                 weft_report_verdict:counts(Judged)).

%% Repetitions of both, and the verdict on the goal of these cells: 1.4 is more than 1.1 and 1.25
%% times as long, less than 1.5 and 2 times, and 0.7 times as many a second.
goals_of_cells_are_judged_test_() ->
    Call = #{workload => <<"call">>, size_bytes => 100},
    Bulk = #{workload => <<"bulk">>, size_bytes => 65536},
    Beside = #{workload => <<"call_beside_bulk">>, size_bytes => 1048576, streams => 8},
    Large = Beside#{workload := <<"call_beside_large">>, streams := 1},
    Mesh = #{workload => <<"mesh_calls">>, size_bytes => 100, pairs => 24, streams => 1},
    Rest = #{size_bytes => 0, pairs => 24},
    [{atom_to_list(Id),
      ?_assertEqual([Verdict], [Of || #{target := #{id := Known}, verdict := Of} <- all(Rows),
                                      Known =:= Id])}
     || {Id, Verdict, Rows}
            <- [{call, missed, times(Call, weft_1, stock, latency_p50_us)},
                {call_paused, missed, times(Call#{workload := <<"call_paused">>}, weft_1, stock,
                                            latency_p50_us)},
                {bulk_64k, missed, times(Bulk#{pairs => 8}, stock, weft_1, messages_per_s)},
                {bulk_64k, not_measured, times(Bulk#{pairs => 64}, stock, weft_1, messages_per_s)},
                {bulk_10m, met, times(Bulk#{size_bytes := 10485760, pairs => 8}, weft_1, stock,
                                      messages_per_s)},
                {lanes_beside_8, met, times(Beside, weft_4, weft_1, latency_p99_us)},
                {lanes_8_beside_8, met, times(Beside, weft_8, weft_1, latency_p99_us)},
                {lanes_beside_large, met, times(Large, weft_4, weft_1, latency_p99_us)},
                {lanes_8_beside_large, met, times(Large, weft_8, weft_1, latency_p99_us)},
                {mesh_24_1, missed, times(Mesh, stock, weft_1, calls_per_s)},
                {mesh_40_1, met, times(Mesh#{pairs := 40}, stock, weft_1, calls_per_s)},
                {maps_channel, missed, times(Bulk#{workload := <<"maps">>}, channel, stock,
                                             messages_per_s)},
                {bulk_gateway, met, times(Bulk, stock, weft_gateway, messages_per_s)},
                {form, missed, times(Rest#{workload => <<"form">>}, weft_1, stock, formed_s)},
                {form_swim, met, times(Rest#{workload => <<"form">>}, weft_swim, stock_mesh,
                                       formed_s)}]
                ++ [{Id, Verdict, [{Rest#{workload => Workload}, Variant, Metric, Values}]}
                    || {Id, Verdict, Workload, Variant, Metric, Values}
                           <- [{connection_bytes_weft_1, within_noise, <<"connection">>, weft_1,
                                connection_bytes, [199000, 201000]},
                               {connection_processes_weft_mesh, met, <<"connection">>, weft_mesh,
                                connection_processes, [5, 5]},
                               {idle_weft_swim, missed, <<"idle">>, weft_swim, idle_percent,
                                [0.031, 0.04]},
                               {idle_weft_mesh, met, <<"hour">>, weft_mesh, idle_percent,
                                [0.03]}]]].

all(Rows) -> weft_report_verdict:all(weft_report_sample:results(Rows)).

times(Cell, More, Less, Metric) ->
    [{Cell, More, Metric, [1400, 1401]}, {Cell, Less, Metric, [1000, 1000]}].

losses_are_all_in_which_a_variant_is_behind_worst_first_test() ->
    Losses = weft_report_verdict:losses(weft_report_sample:results(
        pair(#{}, [50, 60, 40], [100, 100, 100])
        ++ [{#{}, weft_4, messages_per_s, [90, 110, 80]},
            {#{}, channel, messages_per_s, [200]},
            {#{}, weft_1, cpu_us_per_message, [8]}, {#{}, stock, cpu_us_per_message, [2]},
            {#{}, stock_tls, messages_per_s, [10]}, {#{}, weft_tls_1, messages_per_s, [20]}])),
    ?assertMatch([#{variant := <<"weft_1">>, metric := <<"cpu_us_per_message">>,
                    ratio := #{median := 0.25, interval := none}},
                  #{variant := <<"weft_1">>, metric := <<"messages_per_s">>,
                    ratio := #{median := 0.5, interval := {0.4, 0.6}, superiority := 0.0}},
                  #{variant := <<"weft_4">>, ratio := #{median := 0.9, interval := {0.8, 1.1}}}],
                 Losses).

clusters_are_compared_with_the_stock_that_is_connected_as_they_are_test() ->
    Losses = weft_report_verdict:losses(weft_report_sample:results(
        [{#{workload => <<"de_names">>}, stock_mesh, remote_call_mean_us, [200]},
         {#{workload => <<"de_names">>}, weft_mesh, remote_call_mean_us, [800]},
         {#{workload => <<"orbit">>}, stock, duration_s, [1]},
         {#{workload => <<"orbit">>}, stock_mesh, duration_s, [4]},
         {#{workload => <<"orbit">>}, weft_mesh, duration_s, [8]},
         {#{workload => <<"orbit">>}, weft_groups, duration_s, [8]}])),
    ?assertMatch([#{variant := <<"weft_groups">>, metric := <<"duration_s">>,
                    ratio := #{median := 0.125}},
                  #{variant := <<"weft_mesh">>, metric := <<"remote_call_mean_us">>,
                    ratio := #{median := 0.25}},
                  #{variant := <<"weft_mesh">>, metric := <<"duration_s">>,
                    ratio := #{median := 0.5}}],
                 Losses).
