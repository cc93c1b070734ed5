%% SPDX-License-Identifier: Apache-2.0
%% @doc A disk that is full, or not ours: the command says so, ends with 2, and what was measured
%% before can be read.
-module(weft_bench_disk_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([full_from_the_start/1, full_while_it_measures/1, not_a_directory/1]).

%% Results have a page of four beside those of the other files: 43 lines.
-define(DISK_KB, 8).
-define(REPETITIONS, 14).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [full_from_the_start, not_a_directory]
        ++ [full_while_it_measures || os:getenv("FULL") =/= false].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% What is written to /dev/full is refused as by a full disk.
full_from_the_start(Config) ->
    Dir = dir(Config, "full"),
    ok = file:make_symlink("/dev/full", weft_report_record:results_file(Dir)),
    {2, Output} = bench(arguments(Dir)),
    ?assertMatch({match, _}, re:run(Output, "full/results.csv: no space left on device")).

%% A file system of a few pages, in a mount namespace of its own.
full_while_it_measures(Config) ->
    case os:cmd("unshare -m true 2>&1") of
        "" -> on_small_disk(dir(Config, "small"), Config);
        Why -> {skip, "needs a small file system: " ++ Why}
    end.

on_small_disk(Dir, Config) ->
    Kept = dir(Config, "kept"),
    Script = io_lib:format("mount -t tmpfs -o size=~bk none ~ts && { ~ts; status=$?; "
                           "cp ~ts/out/*.csv ~ts; exit $status; }",
                           [?DISK_KB, Dir,
                            weft_bench_command:line(arguments(filename:join(Dir, "out"))), Dir,
                            Kept]),
    {2, Output} = weft_bench_command:run(["unshare -m sh -c \"",
                                          string:replace(Script, "$", "\\$", all), "\""]),
    ?assertMatch({match, _}, re:run(Output, "out/results.csv: no space left on device. "
                                            "What was measured before is kept")),
    {ok, Rows} = weft_report_record:read(Kept),
    ?assert(length(Rows) > 20),
    ?assertMatch({ok, _, _}, weft_report_page:write(Kept)).

not_a_directory(Config) ->
    File = filename:join(dir(Config, "file"), "x"),
    ok = file:write_file(File, ""),
    {2, Output} = bench(arguments(File)),
    ?assertMatch({match, _}, re:run(Output, "file/x.*: (not a directory|file already exists)")).

dir(Config, Name) ->
    Dir = filename:join(?config(priv_dir, Config), Name),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Dir.

%% The workload whose nodes are up soonest.
arguments(Dir) ->
    ["--quick", "--suites", "i", "--repetitions", integer_to_list(?REPETITIONS), "--out", Dir].

bench(Arguments) -> weft_bench_command:run(weft_bench_command:line(Arguments)).
