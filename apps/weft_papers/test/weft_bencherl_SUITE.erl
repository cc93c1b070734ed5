%% SPDX-License-Identifier: Apache-2.0
%% @doc Whole runs of BenchErl on fresh emulators.
-module(weft_bencherl_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0]).
-export([schedulers_are_swept/1, tables_are_swept/1, arguments_of_a_number_of_schedulers/1,
         nodes_are_swept/1, benchmarks_of_a_directory/1, ours_are_replaced/1,
         iterations_differ/1, as_bencherl_is_configured/1, hangs_are_told/1,
         an_emulator_that_hangs/1, times_are_kept_at_once/1, full_from_the_start/1,
         full_while_it_measures/1, an_emulator_that_does_not_start/1]).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [schedulers_are_swept, arguments_of_a_number_of_schedulers, nodes_are_swept,
     benchmarks_of_a_directory, ours_are_replaced, iterations_differ, as_bencherl_is_configured,
     hangs_are_told, an_emulator_that_hangs, times_are_kept_at_once, full_while_it_measures,
     an_emulator_that_does_not_start]
        ++ [Case || is_full(), Case <- [tables_are_swept, full_from_the_start]].

is_full() -> os:getenv("FULL") =/= false.

%% What is measured after something that fails is in benchmarks_of_a_directory, too.
after_it(Bench) -> [Bench || is_full()].

run(Given, Config) ->
    weft_bencherl:run(maps:merge((weft_bencherl_config:defaults())
                                 #{iterations := 2, results := results(Config),
                                   timeout_ms := 5000}, Given),
                      fun(Line) -> ct:pal("~ts", [Line]) end).

schedulers_are_swept(Config) ->
    Benches = ["mbrot"] ++ ["bang" || is_full()],
    {ok, #{dir := Dir, rows := Rows, failed := [], insane := []}} =
        run(#{include => Benches, schedulers => [1, 2]}, Config),
    ?assertEqual([{Bench, At} || Bench <- lists:sort(Benches), At <- [1, 2]],
                 lists:usort([{Bench, At} || #{bench := Bench, at := At} <- Rows])),
    [?assert(Ms > 0) || #{ms := Ms} <- Rows],
    Otp = erlang:system_info(otp_release),
    what_was_run_is_told(Otp, length(Benches), Dir),
    {ok, Speedups} = file:read_file(filename:join([Dir, "mbrot", "measurements",
                                                   Otp ++ ".sched.speedup"])),
    ?assertMatch([[_, <<"1">>, <<"1.000">>], [_, <<"2">>, _]],
                 [binary:split(Line, <<"\t">>, [global])
                  || Line <- binary:split(Speedups, <<"\n">>, [global, trim])]),
    {ok, Page} = file:read_file(weft_bencherl_report:file(Dir)),
    {_, _} = xmerl_scan:string(unicode:characters_to_list(
                                 string:replace(Page, "<!DOCTYPE html>\n", ""))).

%% Each point with what its emulator says itself, and what the run was told.
what_was_run_is_told(Otp, Benches, Dir) ->
    {ok, Text} = file:read_file(filename:join(Dir, "points.csv")),
    [Heads | Lines] = weft_report_csv:parse(Text),
    Points = [maps:from_list(lists:zip(Heads, Line)) || Line <- Lines],
    ?assertEqual(2 * Benches, length(Points)),
    Release = list_to_binary(Otp),
    ?assertMatch([#{<<"schedulers">> := <<"1">>, <<"schedulers_online">> := <<"1">>,
                    <<"emulator_flags">> := <<"+S 1:1">>},
                  #{<<"schedulers">> := <<"2">>, <<"schedulers_online">> := <<"2">>,
                    <<"slaves">> := <<"0">>, <<"version">> := <<"short">>,
                    <<"iterations">> := <<"2">>, <<"otp_release">> := Release,
                    <<"arguments">> := <<"[", _/binary>>}],
                 [Point || #{<<"bench">> := <<"mbrot">>} = Point <- Points]),
    {ok, Environment} = weft_report_record:read_environment(Dir),
    ?assertMatch(#{<<"config_schedulers">> := <<"[1,2]">>, <<"config_version">> := <<"short">>,
                   <<"config_iterations">> := <<"2">>, <<"config_otps">> := _, <<"benches">> := _},
                 Environment),
    ?assertNot(is_map_key(<<"config_cookie">>, Environment)).

%% Both workloads of ETS, with few operations; all tables are in the speed-ups.
tables_are_swept(Config) ->
    Dir = source(Config, "tables",
                 "bench_args(_, _) ->\n"
                 "    Of = [{bencherl_ets_bench, [10, 256, 512, 1024]},\n"
                 "          {bencherl_ets_random_ops, [{20, 10, 70}, 5000, 100]}],\n"
                 "    [[Module, T, C | Args] || {Module, Args} <- Of,\n"
                 "                              {T, C} <- bencherl_ets:sets()].\n"
                 "run([State, Module | Args], Slaves, Conf) when is_tuple(State) ->\n"
                 "    Module:run([State | Args], Slaves, Conf);\n"
                 "run([Module | Args], Slaves, Conf) -> Module:run(Args, Slaves, Conf).\n"),
    {ok, #{dir := Results, failed := [], insane := []}} =
        run(#{include => ["tables"], bench_dir => Dir, schedulers => [1, 2]}, Config),
    {ok, Text} = file:read_file(filename:join([Results, "tables", "measurements",
                                               erlang:system_info(otp_release)
                                               ++ ".sched.speedup"])),
    Speedups = [binary:split(Line, <<"\t">>, [global])
                || Line <- binary:split(Text, <<"\n">>, [global, trim])],
    %% Four phases of the one and one of the other are timed, of each table.
    Timed = (4 + 1) * length(bencherl_ets:sets()),
    ?assertEqual([Timed, Timed],
                 [length([What || [What, At, _] <- Speedups, At =:= Wanted])
                  || Wanted <- [<<"1">>, <<"2">>]]).

%% There is nothing to be compared then, and no speed-up; the times are there all the same.
arguments_of_a_number_of_schedulers(Config) ->
    Dir = source(Config, "own",
                 "bench_args(_, Conf) -> [[proplists:get_value(schedulers, Conf)]].\n"
                 "run([_], _, _) -> ok.\n"),
    {ok, #{rows := Rows, failed := []}} =
        run(#{include => ["own"], bench_dir => Dir, schedulers => [1, 2]}, Config),
    ?assertEqual([{"[1]", 1}, {"[2]", 2}],
                 lists:usort([{What, At} || #{what := What, at := At} <- Rows])).

%% The slaves are there when the benchmark runs.
nodes_are_swept(Config) ->
    Dir = source(Config, "pings",
                 "bench_args(_, _) -> [[go]].\n"
                 "run([go], Slaves, _) -> [pong = net_adm:ping(S) || S <- Slaves], ok.\n"),
    {ok, #{rows := Rows, failed := []}} =
        run(#{include => ["pings"], bench_dir => Dir, slaves => [0, 1], schedulers => [1]}, Config),
    ?assertEqual([{node, 0}, {node, 1}, {sched, 1}],
                 lists:usort([{Axis, At} || #{axis := Axis, at := At} <- Rows])).

%% In the layout of BenchErl, unchanged. One prints something else each time, one crashes: both are
%% told of, and the third is measured. What crashes is in the table with all that it left out.
benchmarks_of_a_directory(Config) ->
    Dir = source(Config, "steady", "bench_args(_, _) -> [[1]].\nrun([1], _, _) -> ok.\n"),
    _ = source(Config, "unsteady", "bench_args(_, _) -> [[1]].\n"
               "run([1], _, _) -> io:format(\"~p~n\", [os:system_time()]), ok.\n"),
    _ = source(Config, "crashing", "bench_args(_, _) -> [[1], [2]].\n"
               "run([1], _, _) -> ok;\nrun([2], _, _) -> exit(bad).\n"),
    {ok, #{rows := Rows, failed := Failed, insane := Insane}} =
        run(#{include => ["steady", "unsteady", "crashing"], bench_dir => Dir,
              schedulers => [1]}, Config),
    ?assertEqual(["crashing", "steady", "unsteady"],
                 lists:usort([Bench || #{bench := Bench} <- Rows])),
    ?assertMatch([_], Failed),
    ?assertEqual(["unsteady"], Insane),
    ?assertEqual([{<<"crashing">>, <<"[2]">>}, {<<"crashing">>, <<"[2]">>}], without_time(Config)),
    {ok, Times} = weft_bencherl_files:read(results(Config)),
    ?assertEqual(length(Rows), length(Times)).

%% The lines of the table that have none.
without_time(Config) ->
    {ok, Text} = file:read_file(filename:join(results(Config), "results.csv")),
    [{Bench, What} || [Bench, _, _, _, _, What, <<"none">>] <- weft_report_csv:parse(Text)].

%% The original of a benchmark is run instead of ours, not beside it.
ours_are_replaced(Config) ->
    Dir = source(Config, "ran", "bench_args(_, _) -> [[original]].\nrun([_], _, _) -> ok.\n"),
    {ok, #{rows := Rows, failed := []}} =
        run(#{include => ["ran"], bench_dir => Dir, schedulers => [1]}, Config),
    ?assertEqual([{"ran", "[original]"}, {"ran", "[original]"}],
                 [{Bench, What} || #{bench := Bench, what := What} <- Rows]).

%% What was printed is compared within a point too, as also in benchmarks_of_a_directory, unless it
%% is not wanted.
iterations_differ(Config) ->
    Dir = source(Config, "uneven", "bench_args(_, _) -> [[1]].\n"
                 "run([1], _, _) -> io:format(\"~p~n\", [os:system_time()]), ok.\n"),
    Insane = fun(Sanity) ->
                 {ok, #{failed := [], insane := Of}} =
                     run(#{include => ["uneven"], bench_dir => Dir, schedulers => [1],
                           sanity => Sanity}, Config),
                 Of
             end,
    is_full() andalso ?assertEqual(["uneven"], Insane(true)),
    ?assertEqual([], Insane(false)).

%% An installation instead of an emulator, labels of arguments, data and a bench.conf.
as_bencherl_is_configured(Config) ->
    Dir = source(Config, "configured",
                 "bench_args(_, _) -> [[1]].\n"
                 "run([1], _, Conf) ->\n"
                 "    Data = proplists:get_value(datadir, Conf),\n"
                 "    {ok, <<\"data\">>} = file:read_file(filename:join(Data, \"file\")),\n"
                 "    {ok, [[\"1\"]]} = init:get_argument(common),\n"
                 "    {ok, [[\"2\"]]} = init:get_argument(own),\n"
                 "    \"value\" = os:getenv(\"OF_THE_BENCH\"),\n"
                 "    {chocolate, {ok, Data}} = {erlang:get_cookie(), file:get_cwd()},\n"
                 "    ok.\n"),
    [begin
         File = filename:join([Dir, "configured", Name]),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, Text)
     end || {Name, Text} <- [{"data/file", "data"},
                             {"conf/bench.conf",
                              ["EXTRA_ERL_ARGS=\"-own 2\"\nERL_ENV=\"OF_THE_BENCH=value\"\n"
                               "ITERATIONS=1\nOUTPUT_FORMAT=plain\nWORKING_DIRECTORY=",
                               filename:join([Dir, "configured", "data"]), "\n"]}]],
    {ok, Run} = weft_bencherl_config:parse(
                  unicode:characters_to_binary(
                    ["OTPS=here=", code:root_dir(), "\nERL_ARGS=\"A=-common 1\"\nITERATIONS=2\n"
                     "INCLUDE_BENCH=configured\nCOOKIE=chocolate\nNUMBER_OF_SCHEDULERS=1\n"
                     "BENCH_DIR=", Dir, "\nRESULTS=", results(Config), "\n"])),
    {ok, #{dir := Results, rows := Rows, failed := []}} =
        weft_bencherl:run(Run, fun(_) -> ok end),
    ?assertMatch([#{otp := "here", erl_args := "A"}], Rows),
    ?assert(filelib:is_file(filename:join([Results, "configured", "measurements",
                                           "here_A.sched.time"]))).

%% Before anything is timed, too; the next one is measured.
hangs_are_told(Config) ->
    Dir = source(Config, "hanging", "bench_args(_, _) -> receive never -> [] end.\n"
                 "run(_, _, _) -> ok.\n"),
    _ = source(Config, "other", "bench_args(_, _) -> [[1]].\nrun([1], _, _) -> ok.\n"),
    {ok, #{rows := Rows, failed := [Text]}} =
        run(#{include => ["hanging" | after_it("other")], bench_dir => Dir, schedulers => [1],
              timeout_ms => 1000}, Config),
    ?assertEqual(2 * length(after_it("other")), length(Rows)),
    ?assertEqual([{<<"hanging">>, <<>>}, {<<"hanging">>, <<>>}], without_time(Config)),
    ?assertMatch({match, _}, re:run(Text, "hanging:bench_args/2 did not end within 1 s")).

%% It hears nothing, so it is not told to end but ended. It has to stand still before its time is
%% up, or it tells that itself. It may go on for a moment after the signal was sent.
an_emulator_that_hangs(Config) ->
    Dir = source(Config, "stopping",
                 "bench_args(_, _) -> [[1]].\n"
                 "run([1], _, Conf) ->\n"
                 "    File = filename:join(proplists:get_value(datadir, Conf), \"pid\"),\n"
                 "    ok = filelib:ensure_dir(File),\n"
                 "    ok = file:write_file(File, os:getpid()),\n"
                 "    os:cmd(\"kill -STOP \" ++ os:getpid()), receive never -> ok end.\n"),
    _ = source(Config, "walking", "bench_args(_, _) -> [[1]].\nrun([1], _, _) -> ok.\n"),
    {ok, #{rows := Rows, failed := [Text]}} =
        run(#{include => ["stopping" | after_it("walking")], bench_dir => Dir, schedulers => [1]},
            Config),
    ?assertEqual(2 * length(after_it("walking")), length(Rows)),
    ?assertMatch({match, _}, re:run(Text, "did not answer within")),
    {ok, Pid} = file:read_file(filename:join([Dir, "stopping", "data", "pid"])),
    Process = filename:join(["/proc", Pid, "exe"]),
    weft_test_nodes:until(fun() -> {error, enoent} =:= file:read_link_all(Process) end, 10000).

%% A benchmark finds the times of its earlier iterations in the results, and so does who ends it.
times_are_kept_at_once(Config) ->
    File = filename:join(results(Config), "results.csv"),
    Dir = source(Config, "curious",
                 ["bench_args(_, _) -> [[1], [2]].\nrun([1], _, _) -> ok;\n"
                  "run([2], _, _) -> {ok, Text} = file:read_file(\"", File, "\"),\n"
                  "    {error, {lines, length(binary:matches(Text, <<\"\\n\">>))}}.\n"]),
    {ok, #{rows := Rows, failed := [Text]}} =
        run(#{include => ["curious"], bench_dir => Dir, schedulers => [1]}, Config),
    ?assertMatch({match, _}, re:run(Text, "{lines,3}")),
    ?assertMatch([#{what := "[1]"}, #{what := "[1]"}], Rows).

%% What is written to /dev/full is refused as by a full disk.
full_from_the_start(Config) ->
    File = filename:join([?config(priv_dir, Config), "full", "results.csv"]),
    ok = filelib:ensure_dir(File),
    ok = file:make_symlink("/dev/full", File),
    {2, Output} = weft_bench_command:run(bench(["--bench", "ran", "--out",
                                                filename:dirname(File)])),
    ?assertMatch({match, _}, re:run(Output, "results.csv: no space left on device")).

%% A file system of a few pages, in a mount namespace of its own, which the benchmark fills.
full_while_it_measures(Config) ->
    case os:cmd("unshare -m true 2>&1") of
        "" -> on_small_disk(Config);
        Why -> {skip, "needs a small file system: " ++ Why}
    end.

on_small_disk(Config) ->
    [Small, Kept] = [filename:join(?config(priv_dir, Config), Name) || Name <- ["small", "kept"]],
    [ok = filelib:ensure_dir(filename:join(Dir, "x")) || Dir <- [Small, Kept]],
    Dir = source(Config, "filling",
                 ["bench_args(_, _) -> [[N, lists:seq(1, 40)] || N <- lists:seq(1, 200)].\n"
                  "run([1, _], _, _) -> os:cmd(\"cat /dev/zero >", Small, "/zero\"), ok;\n"
                  "run(_, _, _) -> ok.\n"]),
    RunConf = filename:join(?config(priv_dir, Config), "run.conf"),
    ok = file:write_file(RunConf, ["BENCH_DIR=", Dir, "\nINCLUDE_BENCH=filling\nITERATIONS=1\n"
                                   "NUMBER_OF_SCHEDULERS=1\n"]),
    Script = ["mount -t tmpfs -o size=256k none ", Small, " && { ",
              bench([RunConf, "--out", filename:join(Small, "out")]),
              "; status=\\$?; cp ", Small, "/out/results.csv ", Kept, "; exit \\$status; }"],
    {2, Output} = weft_bench_command:run(["unshare -m sh -c \"", Script, "\""]),
    ?assertMatch({match, _}, re:run(Output, "out/results.csv: no space left on device. "
                                            "What was measured before is kept")),
    {ok, Text} = file:read_file(filename:join(Kept, "results.csv")),
    ?assertMatch([_Head, <<"filling,", _/binary>>, <<"filling,", _/binary>> | _],
                 binary:split(Text, <<"\n">>, [global])).

bench(Arguments) -> weft_bench_command:line(["bencherl" | Arguments]).

results(Config) -> filename:absname(filename:join(?config(priv_dir, Config), "results")).

source(Config, Name, Text) ->
    Dir = filename:join(?config(priv_dir, Config), "bench"),
    File = filename:join([Dir, Name, "src", Name ++ ".erl"]),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, ["-module(", Name, ").\n-export([bench_args/2, run/3]).\n", Text]),
    Dir.

an_emulator_that_does_not_start(Config) ->
    {ok, #{rows := [], failed := [Text]}} =
        run(#{include => ["bang"], otps => [{"none", "/nowhere/erl"}], schedulers => [1]}, Config),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"does not start">>)).
