%% SPDX-License-Identifier: Apache-2.0
%% @doc Whole runs of BenchErl on fresh emulators.
-module(weft_bencherl_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0]).
-export([schedulers_are_swept/1, tables_are_swept/1, arguments_of_a_number_of_schedulers/1,
         nodes_are_swept/1, benchmarks_of_a_directory/1, an_emulator_that_does_not_start/1]).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [schedulers_are_swept, tables_are_swept, arguments_of_a_number_of_schedulers, nodes_are_swept,
     benchmarks_of_a_directory, an_emulator_that_does_not_start].

run(Given, Config) ->
    Dir = filename:join(?config(priv_dir, Config), "results"),
    weft_bencherl:run(maps:merge((weft_bencherl_config:defaults())
                                 #{iterations := 2, results := Dir, timeout_ms := 5000}, Given),
                      fun(Line) -> ct:pal("~ts", [Line]) end).

schedulers_are_swept(Config) ->
    {ok, #{dir := Dir, rows := Rows, failed := [], insane := []}} =
        run(#{include => ["bang", "mbrot"], schedulers => [1, 2]}, Config),
    ?assertEqual([{"bang", 1}, {"bang", 2}, {"mbrot", 1}, {"mbrot", 2}],
                 lists:usort([{Bench, At} || #{bench := Bench, at := At} <- Rows])),
    [?assert(Ms > 0) || #{ms := Ms} <- Rows],
    Otp = erlang:system_info(otp_release),
    {ok, Speedups} = file:read_file(filename:join([Dir, "mbrot", "measurements",
                                                   Otp ++ ".sched.speedup"])),
    ?assertMatch([[_, <<"1">>, <<"1.000">>], [_, <<"2">>, _]],
                 [binary:split(Line, <<"\t">>, [global])
                  || Line <- binary:split(Speedups, <<"\n">>, [global, trim])]),
    {ok, Page} = file:read_file(weft_bencherl_report:file(Dir)),
    {_, _} = xmerl_scan:string(unicode:characters_to_list(
                                 string:replace(Page, "<!DOCTYPE html>\n", ""))).

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
    %% Four phases of the one and one of the other are timed, of eight tables.
    ?assertEqual([8 * (4 + 1), 8 * (4 + 1)],
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
        run(#{include => ["pings"], bench_dir => Dir, slaves => [0, 2], schedulers => [1]}, Config),
    ?assertEqual([{node, 0}, {node, 2}, {sched, 1}],
                 lists:usort([{Axis, At} || #{axis := Axis, at := At} <- Rows])).

%% In the layout of BenchErl, unchanged. One prints something else each time, one crashes: both are
%% told of, and the third is measured.
benchmarks_of_a_directory(Config) ->
    Dir = source(Config, "steady", "bench_args(_, _) -> [[1]].\nrun([1], _, _) -> ok.\n"),
    _ = source(Config, "unsteady", "bench_args(_, _) -> [[1]].\n"
               "run([1], _, _) -> io:format(\"~p~n\", [os:system_time()]), ok.\n"),
    _ = source(Config, "crashing", "bench_args(_, _) -> [[1]].\nrun([1], _, _) -> exit(bad).\n"),
    {ok, #{rows := Rows, failed := Failed, insane := Insane}} =
        run(#{include => ["steady", "unsteady", "crashing"], bench_dir => Dir,
              schedulers => [1, 2]}, Config),
    ?assertEqual(["steady", "unsteady"], lists:usort([Bench || #{bench := Bench} <- Rows])),
    ?assertMatch([_, _], Failed),
    ?assertEqual(["unsteady"], Insane).

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
