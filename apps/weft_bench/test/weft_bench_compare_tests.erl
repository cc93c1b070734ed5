%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_compare_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OLD, [100, 104, 96]).

verdicts(Old, New) ->
    [{Variant, Verdict}
     || #{variant := Variant, verdict := Verdict}
            <- weft_bench_compare:changes(weft_report_sample:results(Old),
                                          weft_report_sample:results(New), 0.9)].

verdict(Metric, Old, New) ->
    Cell = case Metric of
               failed_operations -> #{suite => <<"load">>, workload => <<"load get">>};
               _ -> #{}
           end,
    [{<<"weft_1">>, Verdict}] = verdicts([{Cell, weft_1, Metric, Old}],
                                         [{Cell, weft_1, Metric, New}]),
    Verdict.

a_change_counts_if_it_is_beyond_threshold_and_noise_test_() ->
    [?_assertEqual(Expected, verdict(messages_per_s, ?OLD, New))
     || {New, Expected} <- [{[85, 88, 82], worse}, {[95, 93, 94], same}, {[85, 99, 82], noise},
                            {[120, 125, 115], better}, {[120, 125, 101], noise},
                            {?OLD, same}, {[0, 0, 0], worse}]].

%% Where nothing failed before.
from_zero_there_is_no_ratio_test_() ->
    [?_assertEqual(Expected, verdict(failed_operations, Old, New))
     || {Old, New, Expected} <- [{[0], [3], worse}, {[0], [0], same}, {[3], [0], better},
                                 %% The median of two zeros is 0.0.
                                 {[0], [0, 0], same},
                                 {[0, 0, 1], [0, 1, 1], noise}, {[0, 0, 0], [2, 3, 2], worse}]].

%% Seven of them: one that is far off does not make a change noise.
a_repetition_that_is_far_off_is_not_the_interval_test() ->
    ?assertEqual(worse, verdict(messages_per_s, [100, 101, 99, 100, 102],
                                [80, 81, 79, 82, 78, 80, 100])).

%% Nothing is known of the noise then.
one_repetition_counts_as_it_is_test() ->
    ?assertEqual(worse, verdict(messages_per_s, ?OLD, [89])),
    ?assertEqual(same, verdict(messages_per_s, ?OLD, [91])).

of_times_less_is_better_test_() ->
    [?_assertEqual(Expected, verdict(cpu_us_per_message, ?OLD, New))
     || {New, Expected} <- [{[120, 125, 115], worse}, {[85, 88, 82], better}]].

%% Each workload has numbers of its own; of one that is not known here all of them count.
other_numbers_than_those_of_calls_are_compared_test_() ->
    [?_assertEqual([{<<"weft_1">>, worse}],
                   verdicts([{#{workload => Workload}, weft_1, Metric, [100]}],
                            [{#{workload => Workload}, weft_1, Metric, [Now]}]))
     || {Workload, Metric, Now} <- [{<<"watched_aco">>, watched_percent, 150},
                                    {<<"watched_deploy">>, duration_s, 150},
                                    {<<"flood_to_busy">>, computed_percent, 50},
                                    {<<"one_of_tomorrow">>, events_per_s, 50}]].

what_fails_now_is_worse_and_what_is_gone_is_told_test() ->
    Old = [{#{}, weft_1, messages_per_s, ?OLD}, {#{}, weft_4, messages_per_s, ?OLD}],
    %% The last one is how many fail.
    ?assertEqual([{<<"weft_1">>, fails}, {<<"weft_4">>, gone}, {<<"weft_1">>, worse}],
                 verdicts(Old, [{#{}, weft_1, failed, [<<"timeout">>]}])).

what_is_lost_or_fails_is_worse_however_fast_it_is_test_() ->
    [?_assertEqual([{<<"weft_1">>, worse}],
                   verdicts([{#{workload => Workload}, weft_1, Metric, [0]}],
                            [{#{workload => Workload}, weft_1, Metric, [9]}]))
     || {Workload, Metric} <- [{<<"im_rsd_killed">>, lost_messages},
                               {<<"de_calls">>, failed_operations},
                               {<<"riak_get">>, failed_operations},
                               {<<"call_to_busy">>, timeouts}, {<<"call_to_high">>, nodedowns}]].

%% The cell was measured, but for this number.
a_number_that_is_not_there_any_more_is_worse_test() ->
    Cell = #{workload => <<"riak_elasticity">>},
    Old = [{Cell, weft_1, calls_per_s, ?OLD}, {Cell, weft_1, recovery_kill_s, [3]}],
    New = [{Cell, weft_1, calls_per_s, ?OLD}],
    ?assertEqual([{<<"weft_1">>, same}, {<<"weft_1">>, worse}], verdicts(Old, New)),
    ?assertEqual([{<<"weft_1">>, same}], verdicts(New, Old)),
    ?assertEqual(1, main(Old, New, [])),
    Text = weft_bench_compare:text(
             weft_bench_compare:changes(weft_report_sample:results(Old),
                                        weft_report_sample:results(New), 0.9), []),
    ?assertMatch({match, _}, re:run(Text, "recovery kill s +3.00 s +- +gone", [unicode])).

%% Those of a cell that only the new run has, too; it may have nothing else.
failures_are_told_also_if_there_are_no_more_of_them_test_() ->
    Run = fun(Worked, Failures) ->
                  weft_report_sample:results(
                    [{#{}, weft_1, messages_per_s, lists:duplicate(Worked, 100)}
                     || Worked > 0]
                    ++ [{#{}, weft_1, failed, lists:duplicate(Failures, <<"timeout">>)}])
          end,
    [{lists:concat([Title, " ", Old]),
      ?_assertMatch({match, _},
                    re:run(weft_bench_compare:text(
                             weft_bench_compare:changes(Before, Now, 0.9), []),
                           ["\n", Title, ": 1\n.*weft, 1 lane +failed +", Old, " +", New, "\\b"],
                           [dotall, unicode]))}
     || {Title, Before, Now, Old, New} <-
            [{"other failures", Run(3, 1), Run(3, 1), "1 of 4 fail", "1 of 4 fail"},
             {"other failures", Run(0, 3), Run(0, 2), "3 of 3 fail", "2 of 2 fail"},
             {"other failures", Run(0, 0), Run(0, 2), "-", "2 of 2 fail"},
             {"better", Run(3, 2), Run(3, 0), "2 of 5 fail", "0 of 3 fail"},
             {"better", Run(0, 3), Run(2, 1), "3 of 3 fail", "1 of 3 fail"}]].

%% Of nothing that works in both runs it can not be said that it did not get worse.
what_fails_in_both_runs_is_not_compared_test() ->
    Fails = {#{}, weft_1, failed, [<<"timeout">>]},
    ?assertEqual(2, main([Fails], [Fails], [])),
    Works = {#{}, weft_4, messages_per_s, ?OLD},
    ?assertEqual(0, main([Fails, Works], [Fails, Works], [])).

%% Also if the others are as fast as before.
more_repetitions_that_fail_are_worse_test_() ->
    Run = fun(Failures) ->
                  weft_report_sample:results(
                    [{#{}, weft_1, messages_per_s, ?OLD},
                     {#{}, weft_1, failed, lists:duplicate(Failures, <<"timeout">>)}])
          end,
    [?_assertEqual(Expected, [{Old, New} || #{metric := <<"failed">>, verdict := worse, old := Old,
                                              new := New}
                                                <- weft_bench_compare:changes(Run(Before), Run(Now),
                                                                              0.9)])
     || {Before, Now, Expected} <- [{0, 2, [{{0, 3}, {2, 5}}]}, {1, 2, [{{1, 4}, {2, 5}}]},
                                    {1, 1, []}, {2, 1, []}]]
        ++ [?_assertMatch({match, _},
                          re:run(weft_bench_compare:text(
                                   weft_bench_compare:changes(Run(0), Run(2), 0.9), []),
                                 "WORSE: 1.*weft, 1 lane +failed +0 of 3 fail +2 of 5 fail",
                                 [dotall, unicode]))].

the_text_tells_the_worst_first_and_that_stock_changed_test() ->
    Old = weft_report_sample:results([{#{}, weft_1, messages_per_s, ?OLD},
                                      {#{}, weft_4, messages_per_s, ?OLD},
                                      {#{}, channel, messages_per_s, ?OLD},
                                      {#{}, stock, messages_per_s, ?OLD}]),
    New = weft_report_sample:results([{#{}, weft_1, messages_per_s, [80, 81]},
                                      {#{}, weft_4, messages_per_s, [50, 51]},
                                      {#{}, channel, messages_per_s, [150, 151]},
                                      {#{}, stock, messages_per_s, [70, 71]}]),
    Text = unicode:characters_to_list(
             weft_bench_compare:text(weft_bench_compare:changes(Old, New, 0.9),
                                     [{<<"kernel">>, <<"6.1">>, <<"6.2">>}])),
    ?assertMatch({match, _},
                 re:run(Text, "note: kernel was 6.1, is 6.2.*not of weft: x 0.70.*"
                        "WORSE: 2.*weft, 4 lanes +messages +100 /s +50.5 /s +0.51 +0.48 - 0.53.*"
                        "weft, 1 lane .* 0.81.*better: 1.*channel .*not of weft, changed: 1.*"
                        "2 worse, 0 fail now, 1 better, 0 the same", [dotall])),
    ?assert(lists:all(fun(Line) -> length(Line) =< 100 end, string:split(Text, "\n", all))).

%% The exit status of a comparison of two directories.
main(Old, New, More) ->
    compared(fun cells/2, Old, New, More).

compared(Write, Old, New, More) ->
    Base = filename:join(filename:basedir(user_cache, "weft_bench_compare_tests"),
                         integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    Dirs = [filename:join(Base, Name) || Name <- ["old", "new"]],
    try
        [ok = Write(Dir, Rows) || {Dir, Rows} <- lists:zip(Dirs, [Old, New])],
        weft_bench_compare:main(Dirs ++ More)
    after
        file:del_dir_r(Base)
    end.

cells(Dir, Rows) -> weft_report_sample:write(Dir, Rows, weft_report_sample:environment()).

%% Seconds of an operation: how many were done, how many failed, p50 and p99; and what was waited.
load(Dir, Seconds) ->
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Line = fun({Second, Of}) ->
                   [Count, Failed, P50, P99 | Waited] = tuple_to_list(Of),
                   [Second / 1, get, Count, Count, Failed, P50 / 1, P50, P99, P99, P99, P99, P50,
                    P99, P99, P99 | Waited]
           end,
    Head = [list_to_atom("column_" ++ integer_to_list(N)) || N <- lists:seq(1, 15)],
    ok = file:write_file(filename:join(Dir, "series.csv"),
                         [weft_report_csv:line(Fields)
                          || Fields <- [Head | lists:map(Line, lists:enumerate(Seconds))]]),
    weft_report_record:write_environment(Dir, [{"config_concurrent", "4"}]).

%% Several figures, each in a directory of its own.
figures(Dir, Figures) ->
    lists:foreach(fun({Id, Rows}) -> ok = cells(filename:join(Dir, Id), Rows) end, Figures).

the_exit_status_is_for_scripts_test_() ->
    Old = [{#{}, weft_1, messages_per_s, ?OLD}, {#{}, stock, messages_per_s, ?OLD}],
    Slower = [{#{}, weft_1, messages_per_s, [80, 81, 82]}, {#{}, stock, messages_per_s, ?OLD}],
    StockSlower = [{#{}, weft_1, messages_per_s, ?OLD}, {#{}, stock, messages_per_s, [50]}],
    [?_assertEqual(0, main(Old, Old, [])),
     ?_assertEqual(1, main(Old, Slower, [])),
     ?_assertEqual(0, main(Old, Slower, ["--threshold", "0.7"])),
     ?_assertEqual(0, main(Old, StockSlower, [])),
     ?_assertEqual(2, main(Old, Old, ["--threshold", "90%"])),
     ?_assertEqual(2, main(Old, Old, ["--treshold"])),
     ?_assertEqual(2, main(Old, Old, ["third"])),
     ?_assertEqual(2, weft_bench_compare:main(["", ""])),
     ?_assertEqual(2, weft_bench_compare:main(["no/such/run", "no/such/run"]))].

%% A script must not take it for a run in which nothing got worse. Stock tells of the machine only.
runs_without_a_common_cell_can_not_be_compared_test_() ->
    Old = [{#{}, weft_1, messages_per_s, ?OLD}, {#{}, stock, messages_per_s, ?OLD}],
    [?_assertEqual(2, main(Old, New, []))
     || New <- [[{#{pairs => 7}, weft_1, messages_per_s, ?OLD}],
                [{#{}, stock, messages_per_s, ?OLD}],
                [{#{}, stock, messages_per_s, [1, 1]}],
                [{#{}, stock, messages_per_s, ?OLD},
                 {#{pairs => 7}, weft_1, messages_per_s, ?OLD}]]].

loads_are_compared_by_parts_of_them_test_() ->
    Old = [{100, 0, 10, 50}, {104, 0, 11, 52}, {98, 0, 10, 51}],
    [?_assertEqual(Status, compared(fun load/2, Old, New, []))
     || {Status, New} <- [{0, Old},
                          {1, [{70, 0, 10, 50}, {71, 0, 11, 52}, {69, 0, 10, 51}]},
                          {1, [{100, 0, 10, 90}, {104, 0, 11, 95}, {98, 0, 10, 91}]},
                          %% One second that is slow is noise.
                          {0, [{100, 0, 10, 50}, {104, 0, 11, 90}, {98, 0, 10, 51}]},
                          %% So is one operation that fails, but not nine of three hundred.
                          {0, [{100, 1, 10, 50}, {104, 0, 11, 52}, {98, 0, 10, 51}]},
                          {1, [{100, 9, 10, 50}, {104, 0, 11, 52}, {98, 0, 10, 51}]}]].

%% Which of two states a run is in for how long is chance; seconds would have been 200 repetitions.
a_state_that_lasts_is_noise_test_() ->
    Seconds = fun(Counts) -> [{Count, 0, 10, 50} || {Times, Count} <- Counts,
                                                    _ <- lists:seq(1, Times)]
              end,
    [?_assertEqual(Status, compared(fun load/2, Seconds(Old), Seconds(New), []))
     || {Status, Old, New} <- [{0, [{124, 130}, {76, 100}], [{76, 130}, {124, 100}]},
                               {1, [{100, 130}, {100, 128}], [{100, 100}, {100, 102}]}]].

%% Of its nodes only how many there are: their names are of each run.
what_is_another_one_in_two_loads_is_told_test() ->
    Write = fun(Dir, Environment) ->
                    ok = load(Dir, [{100, 0, 10, 50}, {100, 0, 10, 50}]),
                    weft_report_record:write_environment(Dir, Environment)
            end,
    Same = [{"config_concurrent", "4"}, {"config_packet_size", "1000"}],
    ?assertEqual(0, compared(Write, [{"config_driver", "one"}, {"config_nodes", "[a]"},
                                     {"config_rounds_per_us", "7.1"}, {"node_count", "4"}
                                     | Same],
                             [{"config_driver", "two"}, {"config_nodes", "[b]"},
                              {"config_rounds_per_us", "7.2"}, {"node_count", "8"},
                              {"variant", "weft_mesh"},
                              {"config_operations", lists:duplicate(100, $x)} | Same], [])),
    Lines = string:lexemes(unicode:characters_to_list(?capturedOutput), "\n"),
    ?assertEqual(["note: variant was -, is weft_mesh", "note: node_count was 4, is 8",
                  "note: config_driver was one, is two",
                  "note: config_operations is another one, see environment.csv"],
                 [Line || "note: " ++ _ = Line <- Lines]).

%% Of so many operations, done or failed.
failures_are_compared_by_their_share_test_() ->
    Run = fun(Failed, Of) -> [{failed_operations, [Failed]}, {calls, [Of - Failed]}] end,
    [?_assertEqual([Expected], of_load(Run(Was, OfOld), Run(Is, OfNew)))
     || {Was, OfOld, Is, OfNew, Expected} <- [{0, 1000000, 0, 1000000, same},
                                              {3, 1000000, 4, 1000000, noise},
                                              {0, 1000000, 1, 1000000, noise},
                                              {0, 1000000, 9, 1000000, worse},
                                              {10, 1000000, 1000, 1000000, worse},
                                              {1000, 1000000, 10, 1000000, better},
                                              {9, 1000000, 0, 1000000, better},
                                              %% For ten times as long.
                                              {100, 1000000, 1000, 10000000, same},
                                              {3, 1000000, 40, 10000000, noise},
                                              {100, 1000000, 2000, 10000000, worse}]].

%% Several repetitions tell more of the noise than one number does.
failures_of_several_repetitions_are_compared_as_others_test() ->
    Run = fun(Failed) -> [{failed_operations, Failed}, {calls, [1000, 1000, 1000]}] end,
    ?assertEqual([noise], of_load(Run([10, 100, 500]), Run([50, 300, 700]))),
    Once = [{failed_operations, [900]}, {calls, [1000]}],
    ?assertEqual([worse], of_load(Run([10, 100, 500]), Once)).

%% Seconds that stalled, of so many.
stalls_are_compared_by_their_share_test_() ->
    Run = fun(StalledS, Of) -> [{stalled_s, [StalledS]}, {measured_s, [Of]}] end,
    [?_assertEqual([Expected], of_load(Run(Was, OfOld), Run(Is, OfNew)))
     || {Was, OfOld, Is, OfNew, Expected} <- [{0, 60, 0, 60, same}, {0, 60, 3, 60, worse},
                                              {3, 60, 0, 60, better}, {1.2, 60, 1.6, 60, noise},
                                              {6, 60, 9, 60, worse}, {6, 60, 60, 600, same}]].

of_load(Old, New) ->
    Cell = #{suite => <<"load">>, workload => <<"load get">>},
    [Verdict || {_Variant, Verdict} <- verdicts([{Cell, weft_1, Metric, Values}
                                                 || {Metric, Values} <- Old],
                                                [{Cell, weft_1, Metric, Values}
                                                 || {Metric, Values} <- New])].

%% Half of eight seconds could as well be other ones.
a_second_of_nothing_is_noise_test() ->
    Seconds = fun(Counts) -> [{Count, 0, 10, 50} || Count <- Counts] end,
    ?assertEqual(0, compared(fun load/2, Seconds([0, 2, 1, 3, 2, 2, 0, 3]),
                             Seconds([1, 1, 0, 2, 1, 2, 1, 0]), [])).

%% Seconds in which nothing was done have no times, and are too few for the medians.
an_outage_is_worse_than_none_test_() ->
    Second = {100, 0, 10, 50},
    Old = lists:duplicate(10, Second),
    Outage = lists:duplicate(6, Second) ++ lists:duplicate(3, {0, 0, 0, 0})
        ++ [{400, 0, 10, 3000000}],
    [?_assertEqual(1, compared(fun load/2, Old, Outage, [])),
     ?_assertEqual(0, compared(fun load/2, Outage, Old, []))].

%% Of what waited in several seconds for the same end, each moment counts once.
an_outage_is_as_long_as_what_waited_for_its_end_test() ->
    Second = {100, 0, 10, 50},
    Outage = fun(Seconds) -> lists:duplicate(2, Second) ++ lists:duplicate(5, {0, 0, 0, 0})
                                 ++ [{400, 0, 10, 6000000} | Seconds]
             end,
    ?assertEqual(0, round(stalled_s([Second, Second]))),
    ?assertEqual(6, round(stalled_s(Outage([Second])))),
    ?assertEqual(7, round(stalled_s(Outage([{400, 0, 10, 3000000}])))),
    ?assertEqual(8, round(stalled_s(Outage([Second, {400, 0, 10, 2000000}])))).

%% Up to the end of the run, which is the last column; older files do not have it.
what_waits_beyond_the_end_stalls_up_to_the_end_test() ->
    Second = {100, 0, 10, 50},
    At = fun(WaitedUs) -> lists:duplicate(9, Second) ++ [{1, 0, 10, 5000000, WaitedUs}] end,
    ?assertEqual(2, round(stalled_s(At(2000000)))),
    ?assert(stalled_s(At(900000)) == 0).

stalled_s(Seconds) ->
    Dir = filename:join(filename:basedir(user_cache, "weft_bench_compare_tests"),
                        "stalled" ++ os:getpid()),
    try
        ok = load(Dir, Seconds),
        {ok, Results, _Environment} = weft_load_results:read(Dir),
        [Cell] = weft_report_results:cells(Results),
        {ok, #{median := StalledS}} =
            weft_report_results:measured(Cell, <<"load">>, <<"stalled_s">>, Results),
        StalledS
    after
        file:del_dir_r(Dir)
    end.

figures_are_compared_one_by_one_test_() ->
    Fast = [{#{}, weft_1, messages_per_s, ?OLD}],
    Slow = [{#{}, weft_1, messages_per_s, [80, 81, 82]}],
    Elsewhere = [{#{pairs => 7}, weft_1, messages_per_s, ?OLD}],
    Both = [{"one", Fast}, {"two", Fast}],
    [?_assertEqual(Status, compared(fun figures/2, Both, New, []))
     || {Status, New} <- [{0, Both}, {1, [{"one", Fast}, {"two", Slow}]}, {0, [{"one", Fast}]},
                          {2, [{"three", Fast}]},
                          %% Nothing of the second one, and then of both.
                          {0, [{"one", Fast}, {"two", Elsewhere}]},
                          {2, [{"one", Elsewhere}, {"two", Elsewhere}]}]]
        ++ [?_assertEqual(2, compared(fun(Dir, {Write, Rows}) -> Write(Dir, Rows) end,
                                      {fun figures/2, Both}, {fun cells/2, Fast}, []))].

%% ---- tables of other commands ----

-define(STORES, "docs/benchmarks/stores").
-define(ETS, "docs/benchmarks/ets").
-define(NAMES, "docs/benchmarks/names").
-define(GROUPS, "docs/benchmarks/groups").
-define(TOPOLOGIES, "docs/benchmarks/topologies").
-define(COSTS, "docs/benchmarks/costs/idle").

published_tables_are_compared_test_() ->
    [{Dir, {timeout, 60, ?_assertEqual(0, weft_bench_compare:main([Dir, Dir]))}}
     || Dir <- [?STORES, ?ETS, ?NAMES, ?GROUPS, ?TOPOLOGIES, ?COSTS]].

%% The stores of others only tell what became of the machine; BenchErl has nothing of weft.
what_is_slower_in_a_table_is_worse_test_() ->
    [{lists:concat([Dir, " ", Line]),
      {timeout, 60, ?_assertEqual(Status, changed_table(Dir, Name, Line, Slower))}}
     || {Status, Dir, Name, Line, Slower}
            <- [{1, ?STORES, "stores.csv", "^weft,put,", fun store_is_slower/1},
                {0, ?STORES, "stores.csv", "^redis,put,", fun store_is_slower/1},
                {1, ?ETS, "results.csv", "sched,1,.*set,no,0,.* insert\"", fun bench_is_slower/1},
                {1, ?NAMES, "names.csv", "^strong,10,one,", fun(Row) -> other(6, Row) end},
                {0, ?NAMES, "names.csv", "^global,10,one,", fun(Row) -> other(6, Row) end},
                {1, ?GROUPS, "groups.csv", "^weft_groups,3,master,", fun(Row) -> other(7, Row) end},
                {0, ?GROUPS, "groups.csv", "^stock_mesh,", fun(Row) -> other(7, Row) end},
                {1, ?TOPOLOGIES, "topologies.csv", "^star,", fun(Row) -> other(9, Row) end},
                {1, ?COSTS, "totals.csv", "weft_mesh,.*,calls,all,", fun(Row) -> other(6, Row) end},
                %% A part of it is in the sum.
                {0, ?COSTS, "totals.csv", "weft_mesh,.*,calls,erlang,",
                 fun(Row) -> other(6, Row) end}]].

%% A number that is worse, whatever is worse of it: a rate or another one.
other(Position, Row) ->
    {Before, [Number | After]} = lists:split(Position - 1, Row),
    Rate = Position =:= 6 andalso length(Row) =:= 9,
    Before ++ [case Rate of true -> <<"1.0">>; false -> <<"9", Number/binary>> end | After].

%% Every turn of it, one of several, and what the stores of others only tell of the machine.
what_fails_in_a_table_is_worse_test_() ->
    [{lists:concat([Dir, " ", Line]),
      {timeout, 60, ?_assertEqual(Status, changed_table(Dir, Name, Line, fun fails/1))}}
     || {Status, Dir, Name, Line} <- [{1, ?STORES, "stores.csv", "^weft,put,16,"},
                                      {1, ?STORES, "stores.csv", "^weft,put,16,1,"},
                                      {0, ?STORES, "stores.csv", "^redis,put,16,1,"},
                                      {1, ?ETS, "results.csv", "sched,1,.*set,no,0,.* insert\""}]].

fails([Bench, Otp, Args, Axis, At, What, _Ms]) -> [Bench, Otp, Args, Axis, At, What, none];
fails([Store, Operation, Clients, Turn | Numbers]) ->
    [Store, Operation, Clients, Turn | [none || _ <- Numbers]].

%% A phase has no name where a run fails, and a run has none where its emulator does not start. They
%% are known from the other table, if not from an earlier iteration.
what_fails_in_bencherl_is_told_by_its_name_test_() ->
    Old = [{1, "[1] in", 2}, {1, "[1] out", 3}, {1, "[1] in", 2}, {1, "[1] out", 3},
           {1, "[10] in", 2}, {2, "[1] in", 1}],
    [{Title, ?_assertEqual(Expected, lists:sort(failed_of(Old, New)))}
     || {Title, New, Expected} <-
            [{"a run", [{1, "[1] in", 2}, {1, "[1] out", 3}, {1, "[1]", none}, {1, "[10] in", 2},
                        {2, "[1] in", 1}],
              [{worse, <<"bencherl bench [1] in">>, 1, 2},
               {worse, <<"bencherl bench [1] out">>, 1, 2}]},
             {"a point", [{1, "", none}, {1, "", none}, {2, "[1] in", 1}],
              [{Verdict, <<"bencherl bench ", What/binary>>, 2, 2}
               || Verdict <- [fails, worse],
                  What <- [<<"[10] in">>, <<"[1] in">>, <<"[1] out">>]]},
             {"what nobody knows", Old ++ [{3, "", none}],
              [{failing, <<"bencherl bench">>, 1, 1}]}]].

%% What is said of failures, each with how many failed of how many in the new run.
failed_of(Old, New) ->
    Base = filename:join(filename:basedir(user_cache, "weft_bench_compare_tests"),
                         "bencherl" ++ os:getpid()),
    [OldDir, NewDir] = Dirs = [filename:join(Base, Name) || Name <- ["old", "new"]],
    try
        [ok = bencherl(Dir, Lines) || {Dir, Lines} <- lists:zip(Dirs, [Old, New])],
        {ok, Before, _} = weft_bench_tables:read(OldDir, NewDir),
        {ok, Now, _} = weft_bench_tables:read(NewDir, OldDir),
        lists:usort([{Verdict, Workload, Failed, Failed + measured(Cell, Variant, Now)}
                     || #{verdict := Verdict, variant := Variant,
                          cell := {_, Workload, _, _, _, _} = Cell}
                            <- weft_bench_compare:changes(Before, Now, 0.9),
                        Failed <- [length(weft_report_results:trouble(Cell, Variant, Now))],
                        Failed > 0, Verdict =/= same])
    after
        file:del_dir_r(Base)
    end.

measured(Cell, Variant, Results) ->
    case weft_report_results:measured(Cell, Variant, <<"run_us">>, Results) of
        {ok, #{count := Count}} -> Count;
        none -> 0
    end.

bencherl(Dir, Lines) ->
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    ok = file:write_file(filename:join(Dir, "results.csv"),
                         ["bench,otp,erl_args,axis,at,what,ms\n"
                          | [weft_report_csv:line([bench, 25, "", sched, At, What, Ms])
                             || {At, What, Ms} <- Lines]]),
    weft_report_record:write_environment(Dir, [{"cores", "2"}]).

store_is_slower([Store, Operation, Clients, Turn, Calls, Errors, _PerS | Times]) ->
    [Store, Operation, Clients, Turn, Calls, Errors, <<"1.0">> | Times].

bench_is_slower(Fields) -> lists:droplast(Fields) ++ [<<"100000.0">>].

%% A published table, and the same with other lines of some kind.
changed_table(Dir, Name, Kind, Change) ->
    {ok, Text} = file:read_file(filename:join(Dir, Name)),
    Changed = [case re:run(Line, Kind) of
                   {match, _} ->
                       [Fields] = weft_report_csv:parse(<<Line/binary, "\n">>),
                       weft_report_csv:line(Change(Fields));
                   nomatch ->
                       [Line, $\n]
               end || Line <- binary:split(Text, <<"\n">>, [global, trim])],
    Write = fun(To, Lines) ->
                    ok = filelib:ensure_dir(filename:join(To, Name)),
                    ok = file:write_file(filename:join(To, Name), Lines),
                    _ = file:copy(filename:join(Dir, "environment.csv"),
                                  filename:join(To, "environment.csv")),
                    ok
            end,
    compared(Write, Text, Changed, []).

%% What is there, and by what else it may be known.
what_can_not_be_compared_is_told_test() ->
    {error, Text} = weft_bench_tables:read("docs/benchmarks/shape", "docs/benchmarks/shape"),
    ?assertNotEqual(nomatch, string:find(Text, "nothing to be compared")).

-define(LOCKS, "module,nodes,rate,seconds,asked,granted,aborted,running,p50_ms,p99_ms,queue_max,"
        "processes_max,memory_growth_max_mb,drain_s\n"
        "global,30,500,20,10000,800,9200,0,12.5,900.1,7,900,3.1,-1\n").

%% Fewer that are granted, more that are given up, and a storm that does not end.
locks_are_compared_test_() ->
    Write = fun(Dir, Line) ->
                    ok = filelib:ensure_dir(filename:join(Dir, "x")),
                    file:write_file(filename:join(Dir, "locks.csv"), [?LOCKS, Line, "\n"])
            end,
    Old = "weft_global,30,500,20,10000,9900,100,0,3.5,20.0,7,900,3.1,2.5",
    [?_assertEqual(Status, compared(Write, Old, New, []))
     || {Status, New} <-
            [{0, Old},
             {1, "weft_global,30,500,20,10000,8000,100,0,3.5,20.0,7,900,3.1,2.5"},
             {1, "weft_global,30,500,20,10000,9900,2000,0,3.5,20.0,7,900,3.1,2.5"},
             {1, "weft_global,30,500,20,10000,9900,100,0,3.5,20.0,7,900,3.1,-1"},
             {1, "weft_global,30,500,20,10000,9900,100,0,3.5,none,7,900,3.1,2.5"}]].

cells_are_no_table_test() ->
    Dir = "docs/benchmarks/quick",
    ?assertEqual(none, weft_bench_tables:read(Dir, Dir)).
