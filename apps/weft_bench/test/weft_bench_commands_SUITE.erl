%% SPDX-License-Identifier: Apache-2.0
%% @doc What ends measurements before their time: a disk that is full, or with FULL=1 becomes full,
%% nodes that do not start, a crash, an interrupt. The command says so, and ends with 2, 3 after a
%% crash, or 130 after an interrupt. Each row that was measured before can be read.
-module(weft_bench_commands_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([full_from_the_start/1, full_while_it_measures/1, cut_while_it_measures/1,
         nodes_that_do_not_start/1, crashed/1, load_interrupted/1, cells_interrupted/1,
         figures_interrupted/1, loads_end_anyway/1, script_killed/1]).

%% So many blocks of 512 bytes a file of results may have: room for some rows.
-define(BLOCKS_MAX, 1).
-define(TIMEOUT_MS, 120000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [full_from_the_start, nodes_that_do_not_start, crashed, load_interrupted, cells_interrupted,
     figures_interrupted, loads_end_anyway, script_killed]
        ++ [Case || os:getenv("FULL") =/= false,
                    Case <- [cut_while_it_measures, full_while_it_measures]].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% What is written to /dev/full is refused as by a full disk, before any node is started; with
%% FULL=1 by each of them.
full_from_the_start(Config) ->
    [begin
         Dir = dir(Config, "full_" ++ Command),
         File = Command ++ ".csv",
         ok = file:make_symlink("/dev/full", filename:join(Dir, File)),
         {2, Output} = run([], Arguments ++ ["--out", Dir]),
         ?assertMatch({match, _}, re:run(Output, File ++ ": no space left on device")),
         ?assertEqual(nomatch, re:run(Output, "nodes"))
     end || [Command | _] = Arguments <- usual(small())].

%% A limit for the size of a file, which ends writes to it as a full disk does.
full_while_it_measures(Config) ->
    Dir = dir(Config, "limit"),
    %% This file would be too large as well.
    ok = file:make_symlink("/dev/null", filename:join(Dir, "environment.csv")),
    Limit = io_lib:format("trap '' XFSZ; ulimit -f ~b; ", [?BLOCKS_MAX]),
    {2, Output} = run(Limit, names(Dir)),
    ?assertMatch({match, _}, re:run(Output, "names.csv: file too large. "
                                            "What was measured before is kept")),
    %% It is told when it happens, not at the end.
    ?assertEqual(nomatch, re:run(Output, "eventual, 2 nodes")),
    Rows = rows(Dir, "names.csv"),
    ?assert(length(Rows) > 3),
    [?assertEqual(9, length(Row)) || Row <- Rows].

%% Whatever ends the command, a row is in the file as soon as it is measured; with FULL=1 of each of
%% them. Its nodes are gone with the next place for nodes.
cut_while_it_measures(Config) ->
    [begin
         Dir = dir(Config, "cut_" ++ Name),
         Port = weft_bench_command:open(["exec ", weft_bench_command:line(Arguments
                                                                          ++ ["--out", Dir])]),
         {os_pid, OsPid} = erlang:port_info(Port, os_pid),
         weft_test_nodes:until(fun() -> rows(Dir, Name ++ ".csv") =/= [] end, ?TIMEOUT_MS),
         [] = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
         {Status, _} = weft_bench_command:collect(Port),
         ?assert(Status > 2),
         ?assertMatch([_ | _], rows(Dir, Name ++ ".csv")),
         ok = weft_bench_place:with(weft_bench_link:loopback(), Dir, fun(_Place) -> ok end),
         weft_test_nodes:until(fun() -> os:cmd("pgrep -f [c]ut_" ++ Name ++ "/logs") =:= "" end,
                               ?TIMEOUT_MS)
     end || [Name | _] = Arguments <- usual(small())].

%% The first of some, all with FULL=1.
usual([First | More]) -> [First | [One || os:getenv("FULL") =/= false, One <- More]].

%% With the reason of each of them.
nodes_that_do_not_start(Config) ->
    [begin
         Dir = dir(Config, "no_nodes_" ++ Command),
         {2, Output} = run([], ["os:putenv(\"ERL_FLAGS\", \"-s erlang halt\"), "],
                           [Command, "--nodes", "7", "--out", Dir | More]),
         ?assertMatch({match, _},
                      re:run(Output, "the nodes of stock_mesh do not start: n1-stock_mesh-.*: its "
                                     "emulator ended with status 0; .* more. See what they say "
                                     "above and in .*logs; ")),
         ?assertEqual([], rows(Dir, Command ++ ".csv"))
     end || [Command | More] <- usual([["names"], ["locks"], ["groups", "--groups", "3"]])].

%% Which is no wrong use, nor a full disk.
crashed(_Config) ->
    {3, Output} = run([], "halt(weft_bench_interrupt:run(fun() -> error(on_purpose) end)), ", []),
    ?assertMatch({match, _}, re:run(Output, "the command has crashed: \\{on_purpose")).

%% As with Ctrl-C, by the script: the load ends, and its files are those of a shorter one. That some
%% operations failed does not change the status.
load_interrupted(Config) ->
    Dir = dir(Config, "load_interrupted"),
    File = driver("every_second", "run(_, _, _, Id) ->\n"
                                  "    case put(fails, get(fails) =/= true) of\n"
                                  "        true -> {error, odd, Id};\n"
                                  "        _ -> {ok, Id}\n"
                                  "    end.\n", "{rate, 100}", dir(Config, "every_second")),
    {Status, Output} = interrupted(["load", File, "--out", Dir], Config,
                                   fun() -> texts(Dir, "series.csv") =/= [] end, 1),
    ?assertEqual(130, Status),
    ?assertMatch({match, _}, re:run(Output, "interrupted; what is under way is ended")),
    [[_, <<"get">>, Count | _]] = texts(Dir, "total.csv"),
    ?assertEqual(binary_to_integer(Count),
                 lists:sum([binary_to_integer(Done)
                            || [_, _, Done | _] <- texts(Dir, "series.csv")])),
    ?assert(filelib:is_regular(filename:join(Dir, "report.html"))).

%% Nodes, namespaces and control groups are gone, the report is there, and no key lies beside it.
cells_interrupted(Config) ->
    Dir = dir(Config, "cells_interrupted"),
    Arguments = ["--suites", "a", "--quick", "--only", "100.B", "--variants", "weft_tls_1",
                 "--repetitions", "50", "--quota", "90", "--out", Dir],
    {OsPid, Status} = ended(Arguments, fun() -> length(rows(Dir, "results.csv")) > 3 end),
    ?assertEqual(130, Status),
    ?assert(filelib:is_regular(filename:join(Dir, "report.html"))),
    ?assertEqual([], filelib:wildcard("**/*.pem", Dir)),
    Namespaces = filelib:wildcard(lists:concat(["/run/netns/weft-bench-", OsPid, "-*"])),
    ?assertEqual([], Namespaces),
    ?assertEqual([], filelib:wildcard(lists:concat(["/sys/fs/cgroup/{.,cpu*}/weft-bench-", OsPid,
                                                    "-*"]))),
    weft_test_nodes:until(fun() -> os:cmd("pgrep -f [c]ells_interrupted/logs") =:= "" end,
                          ?TIMEOUT_MS).

%% The figure that is under way has its page and the report of its run; of the next one there is
%% nothing. No node is left.
figures_interrupted(Config) ->
    Dir = dir(Config, "figures_interrupted"),
    Run = filename:join(Dir, "partisan_1"),
    {_, Status} = ended(["paper", "partisan_1,partisan_2", "--quick", "--repetitions", "50",
                         "--out", Dir], fun() -> length(rows(Run, "results.csv")) > 20 end),
    ?assertEqual(130, Status),
    {ok, Page} = file:read_file(filename:join(Dir, "paper.html")),
    ?assertMatch({match, [[<<"partisan_1">>]]},
                 re:run(Page, "<section id=\"([^\"]+)\"",
                        [global, {capture, all_but_first, binary}])),
    ?assert(filelib:is_regular(filename:join(Run, "report.html"))),
    ?assertNot(filelib:is_dir(filename:join(Dir, "partisan_2"))),
    weft_test_nodes:until(fun() -> os:cmd("pgrep -f [f]igures_interrupted/") =:= "" end,
                          ?TIMEOUT_MS).

%% A command that gets the signal of an interrupt when it is time.
ended(Arguments, IsTime) ->
    Port = weft_bench_command:open(["exec ", weft_bench_command:line(Arguments)]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    weft_test_nodes:until(IsTime, ?TIMEOUT_MS),
    [] = os:cmd(io_lib:format("kill -TERM ~b", [OsPid])),
    {Status, _} = weft_bench_command:collect(Port),
    {OsPid, Status}.

%% A driver that hangs is not waited for if the interrupt is repeated. What was written is kept.
loads_end_anyway(Config) ->
    Dir = dir(Config, "loads_end_anyway"),
    Out = filename:join(Dir, "out"),
    {130, _} = interrupted(["load", hanging(Dir), "--out", Out], Config,
                           fun() -> texts(Out, "summary.csv") =/= [] end, 2),
    ?assertMatch([[_, <<"get">> | _]], texts(Out, "total.csv")),
    ?assert(filelib:is_regular(filename:join(Out, "report.html"))).

%% Nobody can interrupt it any more: so the emulator ends by itself, and with it its nodes. With
%% FULL=1 also that of a load that hangs.
script_killed(Config) ->
    Dir = dir(Config, "no_script"),
    %% More than there is time for.
    Long = names("global", 2 * ?TIMEOUT_MS div 1000),
    Hanging = ["load", hanging(Dir)],
    [begin
         Out = filename:join(Dir, Command),
         {Port, OsPid} = script(Arguments ++ ["--out", Out], Config),
         weft_test_nodes:until(fun() -> rows(Out, File) =/= [] end, ?TIMEOUT_MS),
         [] = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
         {137, _} = weft_bench_command:collect(Port),
         Mine = lists:concat(["pgrep -f '", Dir, "/[", [hd(Command)], "]", tl(Command), "'"]),
         weft_test_nodes:until(fun() -> os:cmd(Mine) =:= "" end, ?TIMEOUT_MS)
     end || {[Command | _] = Arguments, File} <- usual([{Long, "names.csv"},
                                                        {Hanging, "summary.csv"}])].

%% The configuration of a load whose second worker hangs.
hanging(Dir) ->
    driver("hangs", "run(_, _, _, 1 = Id) -> {ok, Id};\n"
                    "run(_, _, _, _) -> receive never -> ok end.\n", "max", Dir).

%% The configuration of a load with a driver of its own.
driver(Name, Run, Mode, Dir) ->
    File = filename:join(Dir, Name ++ ".config"),
    ok = file:write_file(filename:join(Dir, Name ++ ".erl"),
                         ["-module(", Name, "). -export([new/1, run/4]).\n",
                          "new(Id) -> {ok, Id}.\n", Run]),
    ok = file:write_file(File, io_lib:format("{driver, ~ts}. {source_dir, ~p}. {mode, ~ts}.\n"
                                             "{operations, [{get, 1}]}. {concurrent, 2}.\n"
                                             "{report_interval, 1}.\n", [Name, Dir, Mode])),
    File.

%% The script, interrupted so many times once this is true.
interrupted(Arguments, Config, IsTime, Times) ->
    {Port, OsPid} = script(Arguments, Config),
    weft_test_nodes:until(IsTime, ?TIMEOUT_MS),
    interrupt(OsPid, Times, Port, <<>>).

script(Arguments, Config) ->
    Build = dir(Config, "build"),
    Lib = filename:absname(filename:dirname(code:lib_dir(weft_bench))),
    _ = file:make_symlink(filename:dirname(Lib), filename:join(Build, "default")),
    Port = weft_bench_command:open(["REBAR_BASE_DIR='", Build, "' exec ", script(), " ",
                                    lists:join(" ", Arguments)]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    {Port, OsPid}.

interrupt(OsPid, Times, Port, Output) ->
    [] = os:cmd(io_lib:format("kill -INT ~b", [OsPid])),
    case Times of
        1 ->
            {Status, More} = weft_bench_command:collect(Port),
            {Status, <<Output/binary, More/binary>>};
        _ ->
            interrupt(OsPid, Times - 1, Port, said(<<"Interrupt again">>, Port, Output))
    end.

said(Words, Port, Output) ->
    case binary:match(Output, Words) of
        nomatch ->
            receive {Port, {data, Data}} -> said(Words, Port, <<Output/binary, Data/binary>>) end;
        _ ->
            Output
    end.

script() ->
    Source = proplists:get_value(source, module_info(compile)),
    Apps = filename:dirname(filename:dirname(filename:dirname(Source))),
    filename:join([filename:dirname(Apps), "bin", "bench"]).

texts(Dir, File) ->
    [[string:trim(Field) || Field <- Row] || Row <- rows(Dir, File)].

%% Of several rows each.
small() ->
    [["names", "--nodes", "2", "--kinds", "global", "--workloads", "one,visible,all", "--seconds",
      "5"],
     ["locks", "--nodes", "2", "--seconds", "2", "--rate", "40"],
     ["groups", "--nodes", "5", "--groups", "2", "--idle_s", "1"]].

%% More rows than there is room for, before it is the turn of the second kind.
names(Dir) -> names("global,eventual", 12) ++ ["--out", Dir].

names(Kinds, Rows) ->
    ["names", "--nodes", "2", "--kinds", Kinds, "--workloads", "all", "--seconds", "1",
     "--callers", lists:join(",", lists:duplicate(Rows, "1"))].

dir(Config, Name) ->
    Dir = filename:join(?config(priv_dir, Config), Name),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Dir.

%% Whole lines after the first.
rows(Dir, File) ->
    case file:read_file(filename:join(Dir, File)) of
        {ok, Text} -> lists:append([Rows || [_Head | Rows] <- [weft_report_csv:parse(Text)]]);
        {error, enoent} -> []
    end.

run(Before, Arguments) -> run(Before, "", Arguments).

run(Before, Expression, Arguments) ->
    weft_bench_command:run([Before, weft_bench_command:line(Expression, Arguments)]).
