%% SPDX-License-Identifier: Apache-2.0
%% @doc The files of several loads in one: intervals are added as histograms.
-module(weft_load_files_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SECOND_US, 1000000).

%% Of two nodes, one has 99 fast operations and the other one slow one: half of all are fast, and
%% 99 of 100. A mean of the nodes' percentiles would be far from both.
intervals_are_added_as_histograms_test() ->
    Dirs = [written(Name, Intervals)
            || {Name, Intervals} <- [{"fast", [lists:duplicate(99, 10), [20]]},
                                     {"slow", [[200], [20, 200]]}]],
    {Sum, #{get := #{service := Service, failed := 4}}} = added_up("sum", Dirs),
    ?assertEqual(103, weft_load_histogram:count(Service)),
    ?assertEqual([[1.0, 1.0, 102, 100, 2], [2.0, 1.0, 5, 3, 2]], rows(Sum, "summary.csv")),
    %% elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors
    ?assertEqual([[1.0, 1.0, 100, 10, 11.9, 10, 10, 10, 200, 200, 2],
                  [2.0, 1.0, 3, 20, 80.0, 20, 200, 200, 200, 200, 2]],
                 rows(Sum, "get_latencies.csv")).

%% What was being written when a node was lost, and a node that had not begun to.
what_was_cut_is_left_out_test() ->
    Whole = written("whole", [[10], [10]]),
    Cut = written("cut", [[10], [10]]),
    File = filename:join(Cut, "histograms.terms"),
    {ok, Terms} = file:read_file(File),
    ok = file:write_file(File, binary:part(Terms, 0, byte_size(Terms) - 1)),
    {Sum, _} = added_up("sum_of_cut", [Whole, Cut, dir("never_begun")]),
    ?assertMatch([[_, _, _, 2, _], [_, _, _, 1, _]], rows(Sum, "summary.csv")).

%% An interval that was read late belongs to the same one of the others; a short last one does not.
late_and_short_intervals_test() ->
    OnTime = written_at("on_time", [{1000000, [10]}, {2000000, [10]}, {2700000, [10]}]),
    Late = written_at("late", [{1300000, [10]}, {2010000, [10]}, {2700000, [10]}]),
    {Sum, _} = added_up("sum_of_late", [OnTime, Late]),
    ?assertMatch([[1.3, 1.3, 4, 2, 2], [2.01, 0.71, 4, 2, 2], [2.7, 0.69, 4, 2, 2]],
                 rows(Sum, "summary.csv")).

%% A load that was ended has no total.csv; it is made of its intervals, or of those of its nodes.
ended_loads_are_recovered_test() ->
    Dir = written("ended", [[10], [10, 30]]),
    {ok, Total} = file:read_file(filename:join(Dir, "total.csv")),
    ok = file:delete(filename:join(Dir, "total.csv")),
    ?assertEqual(0, weft_bench_cli:main(["report", Dir])),
    ?assertMatch([[<<"2.0">>, <<"get">>, <<"3">> | _]], texts(Dir, "total.csv")),
    ?assertNotEqual({ok, Total}, file:read_file(filename:join(Dir, "total.csv"))),
    ?assertEqual(2, weft_bench_cli:main(["report", Dir, "--pictures"])),
    Both = dir("ended_nodes"),
    _ = [written("ended_nodes/" ++ Node, [[10], [10]]) || Node <- ["1", "2"]],
    ?assertEqual(0, weft_bench_cli:main(["report", Both])),
    ?assertMatch([[<<"2.0">>, <<"get">>, <<"4">> | _]], texts(Both, "total.csv")),
    ?assertMatch([[_, _, <<"2">> | _], [_, _, <<"2">> | _]], texts(Both, "series.csv")),
    %% One of them has written more since.
    made_before(Both, "total.csv"),
    _ = written("ended_nodes/2", [[10], [10], [10]]),
    ?assertEqual(0, weft_bench_cli:main(["report", Both])),
    ?assertMatch([[<<"3.0">>, <<"get">>, <<"5">> | _]], texts(Both, "total.csv")),
    ?assertMatch([_, _, [_, _, <<"1">> | _]], texts(Both, "series.csv")).

%% Its files are those of the load: a report must not write to what is still written to, and has
%% what there is by then, each time.
a_load_that_still_runs_has_reports_test() ->
    Dir = dir("running"),
    Second = fun(Number, Files0) ->
                     {ok, Files} = weft_load_files:window(Number * ?SECOND_US, reading([10]),
                                                          Files0),
                     Files
             end,
    Files3 = lists:foldl(Second, open(Dir), [1, 2, 3]),
    Untouched = fun() -> [file:read_file(filename:join(Dir, File))
                          || File <- ["series.csv", "environment.csv"]]
                end,
    Before = Untouched(),
    ?assertEqual(0, weft_bench_cli:main(["report", Dir])),
    ?assertEqual(Before, Untouched()),
    ?assertMatch([[<<"3.0">>, <<"get">>, <<"3">> | _]], texts(Dir, "total.csv")),
    Files4 = Second(4, Files3),
    ?assertMatch([_, _, _, [<<"4.0">>, <<"get">>, <<"1">> | _]], texts(Dir, "series.csv")),
    %% Times of files are seconds.
    made_before(Dir, "total.csv"),
    ok = file:write_file(filename:join(Dir, "errors.csv"), "\"error\",\"count\"\n\"one\",\"1\"\n"),
    ?assertEqual(0, weft_bench_cli:main(["report", Dir])),
    ?assertMatch([[<<"4.0">>, <<"get">>, <<"4">> | _]], texts(Dir, "total.csv")),
    ?assertMatch([[<<"one">>, <<"1">>]], texts(Dir, "errors.csv")),
    ok = weft_load_files:finish(outcome(reading([]), 4 * ?SECOND_US), Files4),
    ok = weft_load_files:close(Files4),
    ?assertEqual(0, weft_bench_cli:main(["report", Dir])),
    ?assertMatch([[<<"4.0">>, <<"get">>, <<"0">> | _]], texts(Dir, "total.csv")),
    ?assertEqual([], filelib:wildcard("*.new", Dir)).

made_before(Dir, File) ->
    ok = file:change_time(filename:join(Dir, File), {{2000, 1, 1}, {0, 0, 0}}).

%% What had waited when the run ended is beside how long it took in the end, also of several loads:
%% but not in files of before.
what_has_waited_in_the_run_is_a_column_test() ->
    #{get := Meter} = Reading = reading([5000]),
    Write = fun(Name, Readings) ->
                    Files = lists:foldl(fun({Number, Of}, Files0) ->
                                                {ok, Files} = weft_load_files:window(
                                                                Number * ?SECOND_US, Of, Files0),
                                                Files
                                        end, open(dir(Name)), numbered(Readings)),
                    ok = weft_load_files:close(Files),
                    [lists:nthtail(13, Line) || Line <- texts(dir(Name), "series.csv")]
            end,
    Waited = #{get => Meter#{waited_us => 700}},
    ?assertEqual([[<<"5000">>, <<"5000">>], [<<"5000">>, <<"700">>]],
                 [lists:sublist(Fields, 2, 2) || Fields <- Write("waited/1", [Reading, Waited])]),
    _ = Write("waited/2", [Reading, #{get => Meter#{waited_us => 900}}]),
    ?assertEqual(0, weft_bench_cli:main(["report", dir("waited")])),
    ?assertEqual([<<"5000">>, <<"900">>],
                 [lists:last(Line) || Line <- texts(dir("waited"), "series.csv")]),
    [of_before(filename:join(dir("waited"), File)) || File <- ["1/series.csv", "2/series.csv"]],
    made_before(dir("waited"), "total.csv"),
    ?assertEqual(0, weft_bench_cli:main(["report", dir("waited")])),
    {ok, Series} = file:read_file(filename:join(dir("waited"), "series.csv")),
    ?assertEqual([15, 15, 15], [length(Line) || Line <- weft_report_csv:parse(Series)]).

of_before(File) ->
    {ok, Text} = file:read_file(File),
    ok = file:write_file(File, [weft_report_csv:line(lists:droplast(Line))
                                || Line <- weft_report_csv:parse(Text)]).

%% Of a load that is killed at any second the report has all seconds, and so has the sum with what a
%% host did that was lost. Intervals that are over are there once.
seconds_of_an_interval_that_is_not_over_are_kept_test() ->
    [begin
         Dir = killed_at(Second),
         ?assertEqual(0, weft_bench_cli:main(["report", Dir])),
         [[_, <<"get">>, Count | _]] = texts(Dir, "total.csv"),
         ?assertEqual(Second, binary_to_integer(Count))
     end || Second <- [1, 8, 10, 12, 23]],
    ?assert(terms_bytes(killed_at(10)) < terms_bytes(killed_at(9))),
    Dirs = [killed_at(Second) || Second <- [9, 20]],
    {Sum, #{get := #{units := 29}}} = added_up("sum_of_killed", Dirs, 10),
    ?assertEqual([[10.0, 10.0, 38, 19, 19], [20.0, 10.0, 20, 10, 10]], rows(Sum, "summary.csv")).

%% Once a second, in intervals of ten; nothing is finished.
killed_at(Second) ->
    Dir = dir("killed_at_" ++ integer_to_list(Second)),
    _ = file:del_dir_r(Dir),
    Write = fun(Number, Files0) ->
                {ok, Files} = weft_load_files:window(Number * ?SECOND_US, reading([Number]),
                                                     Files0),
                Files
            end,
    ok = weft_load_files:close(lists:foldl(Write, open(Dir, 10), lists:seq(1, Second))),
    Dir.

terms_bytes(Dir) -> filelib:file_size(filename:join(Dir, "histograms.terms")).

%% All that is left of a load on several hosts whose command was killed: each has a directory of its
%% own, and what another load writes there would be added to it.
what_hosts_have_written_is_kept_test() ->
    ?assertEqual(ok, weft_load_files:is_free(dir("killed"))),
    _ = written("killed/2", [[10]]),
    {error, Text} = weft_load_files:is_free(dir("killed")),
    ?assertMatch({match, _}, re:run(Text, "2/series.csv")).

texts(Dir, File) ->
    {ok, Text} = file:read_file(filename:join(Dir, File)),
    tl(weft_report_csv:parse(Text)).

%% Of three million operations more than half of the percentiles are above 99.9 %.
the_last_percentiles_are_told_apart_test() ->
    Many = lists:foldl(fun(_, Sum) -> weft_load_files:sum([Sum, Sum]) end,
                       reading(lists:seq(1, 3000)), lists:seq(1, 10)),
    Files = open(dir("many")),
    ok = weft_load_files:finish(outcome(Many, ?SECOND_US), Files),
    ok = weft_load_files:close(Files),
    Percents = [binary_to_float(Percent)
                || [_, <<"service">>, Percent, _] <- texts(dir("many"), "distribution.csv")],
    ?assertEqual(lists:usort(Percents), Percents),
    ?assertMatch([_], [Percent || Percent <- Percents, Percent >= 100]).

%% Of a key that has a default, too, the value that the load runs with.
what_counts_of_a_configuration_is_recorded_test() ->
    {ok, Config} = weft_load_config:check([{driver, none}, {mode, {rate, 7}}, {mode, max}]),
    ?assertEqual([{"config_mode", "{rate,7}"}],
                 [Pair || {"config_mode", _} = Pair <- weft_load_files:environment(Config)]).

nothing_to_recover_test() ->
    Dir = dir("nothing"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    ok = file:write_file(filename:join(Dir, "series.csv"), "head\n"),
    {error, Text} = weft_load_files:recover(Dir),
    ?assertMatch({match, _}, re:run(Text, "no interval of a load")),
    ?assertEqual(2, weft_bench_cli:main(["report", Dir])).

written(Name, Intervals) ->
    written_at(Name, [{Number * ?SECOND_US, Values} || {Number, Values} <- numbered(Intervals)]).

numbered(Values) -> lists:zip(lists:seq(1, length(Values)), Values).

%% One failure in each interval.
written_at(Name, Intervals) ->
    Dir = dir(Name),
    {_, Files} = lists:foldl(fun({AtUs, Values}, {_, Files0}) ->
                                     {ok, Files} = weft_load_files:window(AtUs, reading(Values),
                                                                          Files0),
                                     {AtUs, Files}
                             end, {0, open(Dir)}, Intervals),
    {LastUs, _} = lists:last(Intervals),
    ok = weft_load_files:finish(outcome(reading([]), LastUs), Files),
    ok = weft_load_files:close(Files),
    Dir.

added_up(Name, Dirs) -> added_up(Name, Dirs, 1).

added_up(Name, Dirs, IntervalS) ->
    Files0 = open(dir(Name), IntervalS),
    {ok, {Total, LastUs}, Files} = weft_load_files:add_up(Dirs, Files0),
    ok = weft_load_files:finish(outcome(Total, LastUs), Files),
    ok = weft_load_files:close(Files),
    {dir(Name), Total}.

open(Dir) -> open(Dir, 1).

open(Dir, IntervalS) ->
    {ok, Files} = weft_load_files:open(Dir, config(IntervalS), [get], [{"machine", "none"}]),
    Files.

config(IntervalS) ->
    {ok, Config} = weft_load_config:check([{driver, none}, {operations, [{get, 1}]},
                                           {report_interval, IntervalS}]),
    Config.

reading(Values) ->
    Histogram = weft_load_histogram:new(),
    lists:foreach(fun(Value) -> weft_load_histogram:record(Value, Histogram) end, Values),
    Times = weft_load_histogram:snapshot(Histogram),
    #{get => #{service => Times, response => Times, units => length(Values), failed => 1}}.

outcome(Total, ElapsedUs) ->
    #{total => Total, elapsed_us => ElapsedUs, began_us => 0, errors => [], hung => 0,
      finished => 0, crashed => [], unfinished => 0}.

%% Of this emulator alone: the system gives numbers of processes more than once.
dir(Name) ->
    filename:join([code:lib_dir(weft_bench), "..", "..", "load_files_tests", run_name(), Name]).

run_name() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Name = lists:concat([os:getpid(), "-", os:system_time()]),
            ok = persistent_term:put(?MODULE, Name),
            Name;
        Name ->
            Name
    end.

rows(Dir, File) -> weft_report_sample:read_numbers(filename:join(Dir, File)).
