%% SPDX-License-Identifier: Apache-2.0
%% @doc What ends the measurements of names, locks and groups before their time: a disk that is full
%% or becomes full, nodes that do not start. The command says so, ends with 2, and each row that was
%% measured before can be read.
-module(weft_bench_commands_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([full_from_the_start/1, full_while_it_measures/1, cut_while_it_measures/1,
         nodes_that_do_not_start/1]).

%% So many blocks of 512 bytes a file of results may have: room for some rows.
-define(BLOCKS_MAX, 1).
-define(TIMEOUT_MS, 120000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [full_from_the_start, full_while_it_measures, cut_while_it_measures, nodes_that_do_not_start].

%% What is written to /dev/full is refused as by a full disk, before any node is started.
full_from_the_start(Config) ->
    [begin
         Dir = dir(Config, "full_" ++ Command),
         File = Command ++ ".csv",
         ok = file:make_symlink("/dev/full", filename:join(Dir, File)),
         {2, Output} = run([], Arguments ++ ["--out", Dir]),
         ?assertMatch({match, _}, re:run(Output, File ++ ": no space left on device")),
         ?assertEqual(nomatch, re:run(Output, "nodes"))
     end || [Command | _] = Arguments <- small()].

%% A limit for the size of a file, which ends writes to it as a full disk does.
full_while_it_measures(Config) ->
    Dir = dir(Config, "limit"),
    Limit = io_lib:format("trap '' XFSZ; ulimit -f ~b; ", [?BLOCKS_MAX]),
    {2, Output} = run(Limit, names(Dir, 12)),
    ?assertMatch({match, _}, re:run(Output, "names.csv: file too large. "
                                            "What was measured before is kept")),
    %% It is told when it happens, not at the end.
    ?assertEqual(nomatch, re:run(Output, "eventual, 2 nodes")),
    Rows = rows(Dir, "names.csv"),
    ?assert(length(Rows) > 3),
    [?assertEqual(9, length(Row)) || Row <- Rows].

%% Whatever ends the command, a row is in the file as soon as it is measured.
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
         ?assertMatch([_ | _], rows(Dir, Name ++ ".csv"))
     end || [Name | _] = Arguments <- small()].

%% With the reason of each of them.
nodes_that_do_not_start(Config) ->
    [begin
         Dir = dir(Config, "no_nodes_" ++ Command),
         {2, Output} = run([], ["os:putenv(\"ERL_FLAGS\", \"-s erlang halt\"), "],
                           [Command, "--out", Dir]),
         ?assertMatch({match, _},
                      re:run(Output, "the nodes of stock_mesh do not start: n1-stock_mesh-.*: its "
                                     "emulator ended with status 0; .* more. See what they say "
                                     "above and in .*logs; ")),
         ?assertEqual([], rows(Dir, Command ++ ".csv"))
     end || Command <- ["names", "locks", "groups"]].

%% Of several rows each.
small() ->
    [["names", "--nodes", "2", "--kinds", "global", "--workloads", "one,all,mix", "--seconds", "2"],
     ["locks", "--nodes", "2", "--seconds", "2"],
     ["groups", "--nodes", "5", "--groups", "2", "--idle_s", "1"]].

names(Dir, Times) ->
    ["names", "--nodes", "2", "--kinds", "global,eventual", "--workloads", "all", "--seconds", "1",
     "--callers", lists:join(",", lists:duplicate(Times, "1")), "--out", Dir].

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
