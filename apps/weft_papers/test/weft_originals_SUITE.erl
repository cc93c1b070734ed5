%% SPDX-License-Identifier: Apache-2.0
%% @doc What others wrote runs as it is: drivers and configurations of Basho Bench, those of
%% DE-Bench, the benchmarks of BenchErl. They are not part of this repository: WEFT_BASHO,
%% WEFT_DEBENCH and WEFT_BENCHERL are directories with clones of github.com/basho/basho_bench,
%% amirghaffari/DEbench and softlab-ntua/bencherl, absolute or from the root of this repository on.
%% Without its directory a case is skipped. The comment of a case says what was run, and what was
%% refused, with the reason.
-module(weft_originals_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("common_test/include/ct.hrl").

-export([suite/0, all/0, basho/1, de_bench/1, bencherl/1]).

%% Those that need no other system.
-define(DRIVERS, [basho_bench_driver_null, basho_bench_driver_ets, basho_bench_driver_dets]).
%% What the script of DE-Bench puts in.
-define(TEMPLATE, [{"duration, minutes", "duration, 1"},
                   {"report_interval_seconds", "6"}, {"\\[Here_put_VMs_names\\]", "[]"},
                   {"[a-z_]+_percentage", "1"}, {"sleep_time_here", "0"}]).
%% With this release the guide says that all run.
-define(OTP, "25").

suite() -> [{timetrap, {hours, 1}}].

all() -> [basho, de_bench, bencherl].

originals(Variable, Run) ->
    case os:getenv(Variable) of
        false -> {skip, Variable ++ " is no directory with originals: docs/guide/load.md"};
        Dir -> Run(filename:absname(Dir, weft_guide:root()))
    end.

%% Examples for these drivers, but for a few seconds each; there is none for the last one.
basho(Config) ->
    originals("WEFT_BASHO", fun(Dir) -> basho(Dir, Config) end).

basho(Dir, Config) ->
    Examples = [{Driver, filename:basename(File, ".config"), Text}
                || File <- filelib:wildcard(filename:join([Dir, "examples", "*.config"])),
                   {ok, Terms} <- [file:consult(File)],
                   Driver <- [proplists:get_value(driver, Terms)], lists:member(Driver, ?DRIVERS),
                   {ok, Text} <- [file:read_file(File)]],
    Ran = [{Driver, Name, load(Name, Text, Dir, Config)}
           || {Driver, Name, Text} <- Examples
                  ++ [{basho_bench_driver_dets, "dets", dets(Config)}]],
    ?assertEqual([], ?DRIVERS -- [Driver || {Driver, _, ran} <- Ran]),
    said([[Name, ": ", outcome(Outcome)] || {_, Name, Outcome} <- Ran]).

dets(Config) ->
    io_lib:format("{driver, basho_bench_driver_dets}. {mode, max}. {concurrent, 2}.~n"
                  "{operations, [{get, 1}, {put, 1}, {delete, 1}]}. {dets_file, ~p}.~n",
                  [filename:join(?config(priv_dir, Config), "table.dets")]).

%% The first of two values of a key is the one that counts. Operations may fail, as those of an
%% example are to do.
load(Name, Text, Dir, Config) ->
    File = filename:join(?config(priv_dir, Config), Name ++ ".config"),
    ok = file:write_file(File, ["{duration, {seconds, 3}}. {report_interval, 1}.\n", Text]),
    Out = filename:join(?config(priv_dir, Config), Name),
    case bench(["load", File, "--source", filename:join(Dir, "src"), "--out", Out]) of
        {2, Said} ->
            {refused, lists:last(["" | string:lexemes(Said, "\n")])};
        {Status, _} when Status < 2 ->
            ?assert(lists:sum([Done + Failed || {_, Done, Failed} <- counts(Out)]) > 0),
            ran
    end.

outcome(ran) -> "ran";
outcome({refused, Why}) -> ["refused: ", Why].

%% One as it is, the other with the numbers that its script puts into it.
de_bench(Config) ->
    originals("WEFT_DEBENCH", fun(Dir) -> de_bench(Dir, Config) end).

de_bench(Dir, Config) ->
    {ok, Template} = file:read_file(filename:join(Dir, "template_bench.config")),
    Filled = filename:join(?config(priv_dir, Config), "template_bench.config"),
    ok = file:write_file(Filled, lists:foldl(fun({Word, Number}, Text) ->
                                                 re:replace(Text, Word, Number, [global])
                                             end, Template, ?TEMPLATE)),
    said([de_bench_of(File, Config) || File <- [filename:join(Dir, "bench.config"), Filled]]).

de_bench_of(File, Config) ->
    Name = filename:basename(File, ".config"),
    Out = filename:join(?config(priv_dir, Config), Name),
    {Status, _} = bench(["de_bench", File, "--nodes", "3", "--out", Out]),
    ?assert(Status < 2),
    Counts = counts(Out),
    ?assertEqual([], [<<"spawning">>, <<"remote_call">>]
                     -- [Operation || {Operation, Done, _} <- Counts, Done > 0]),
    io_lib:format("~ts: ~b operations", [Name, lists:sum([Done || {_, Done, _} <- Counts])]).

%% Those that the guide names, each with its shortest input.
bencherl(Config) ->
    originals("WEFT_BENCHERL", fun(Dir) -> bencherl(Dir, Config) end).

bencherl(Dir, Config) ->
    {ok, Page} = file:read_file(filename:join(weft_guide:root(),
                                              "docs/guide/bencherl.md")),
    {match, [Named]} = re:run(Page, "\nINCLUDE_BENCH=(bang,\\S+)", [{capture, [1], list}]),
    {ok, Run} = weft_bencherl_config:parse(
                  unicode:characters_to_binary(
                    ["BENCH_DIR=", filename:join(Dir, "bench"), "\nINCLUDE_BENCH=", Named,
                     "\nVERSION=short\nITERATIONS=1\nNUMBER_OF_SCHEDULERS=1\nRESULTS=",
                     filename:join(?config(priv_dir, Config), "bencherl"), "\n"])),
    {ok, #{rows := Rows, failed := Failed}} =
        weft_bencherl:run(Run, fun(Line) -> ct:pal("~ts", [Line]) end),
    Names = lists:sort(string:lexemes(Named, ",")),
    erlang:system_info(otp_release) =/= ?OTP
        orelse ?assertEqual({Names, []}, {lists:usort([Name || #{bench := Name} <- Rows]), Failed}),
    said([io_lib:format("~ts: ~b times", [Name, length([x || #{bench := Same} <- Rows,
                                                             Same =:= Name])])
          || Name <- Names] ++ Failed).

%% --- what is run, and told -----------------------------------------------------------------------

bench(Arguments) ->
    {Status, Output} = weft_bench_command:run(weft_bench_command:line(Arguments)),
    {Status, unicode:characters_to_list(Output)}.

%% How many of each operation were done, and how many failed.
counts(Dir) ->
    {ok, Text} = file:read_file(filename:join(Dir, "total.csv")),
    [{Operation, binary_to_integer(Done), binary_to_integer(Failed)}
     || [_, Operation, Done, _Units, Failed | _] <- tl(weft_report_csv:parse(Text))].

said(Lines) -> {comment, lists:flatten(lists:join("; ", Lines))}.
