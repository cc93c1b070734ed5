%% SPDX-License-Identifier: Apache-2.0
%% What a node logs and prints takes a bounded place, while it runs.
-module(weft_deploy_log_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODE, "n1@h").
-define(BYTES_MAX, 10000000).

what_a_node_logs_and_prints_is_bounded_test_() ->
    {timeout, 60, fun what_a_node_logs_and_prints_is_bounded/0}.

%% The log is rotated: one of 13 MB is in two files. What is printed is put aside and begun anew.
what_a_node_logs_and_prints_is_bounded() ->
    Dir = directory(),
    Log = "[logger:error(\"~ts\", [lists:duplicate(100000, $l)]) || _ <- lists:seq(1, 130)], "
        "logger:error(\"the last line\"), "
        "[io:put_chars(lists:duplicate(100000, $p)) || _ <- lists:seq(1, 110)].",
    Files = run(Dir, "[].", Log, fun() -> size(Dir, "output.1") =:= ?BYTES_MAX end),
    ?assertEqual(["log", "log.0", "output", "output.1"], Files),
    ?assert(is_within([size(Dir, "log"), size(Dir, "log.0")], ?BYTES_MAX + 200000)),
    ?assert(size(Dir, "output") < ?BYTES_MAX),
    {ok, Last} = file:read_file(file(Dir, "log")),
    ?assertMatch({_, _}, binary:match(Last, <<"the last line">>)),
    ok = file:del_dir_r(Dir).

a_node_goes_on_printing_where_its_output_was_emptied_test_() ->
    {timeout, 60, fun a_node_goes_on_printing_where_its_output_was_emptied/0}.

a_node_goes_on_printing_where_its_output_was_emptied() ->
    Dir = directory(),
    Print = "[io:put_chars(lists:duplicate(100000, $p)) || _ <- lists:seq(1, 110)], "
        "fun Await() -> case filelib:file_size(\"output\") of 0 -> ok; _ -> "
        "erlang:yield(), Await() end end(), io:put_chars(\"after\").",
    _ = run(Dir, "[].", Print, fun() -> file:read_file(file(Dir, "output")) =:= {ok, <<"after">>}
                               end),
    ok = file:del_dir_r(Dir).

the_logger_that_somebody_has_configured_is_that_of_the_node_test_() ->
    {timeout, 60, fun the_logger_that_somebody_has_configured_is_that_of_the_node/0}.

the_logger_that_somebody_has_configured_is_that_of_the_node() ->
    Dir = directory(),
    Own = "[{kernel, [{logger, [{handler, default, logger_std_h, "
        "#{config => #{file => \"own\"}}}]}]}].",
    Files = run(Dir, Own, "logger:error(\"here\"), logger_std_h:filesync(default).",
                fun() -> size(Dir, "own") > 0 end),
    ?assertEqual([], [File || File <- Files, lists:prefix("log", File)]),
    ok = file:del_dir_r(Dir).

%% Why an application does not start was printed, and what it said was logged.
the_end_of_both_is_shown_test() ->
    Dir = directory(),
    ok = filelib:ensure_path(file(Dir, "")),
    ok = file:write_file(file(Dir, "log"), "logged\n"),
    ok = file:write_file(file(Dir, "output"), "printed\n"),
    ?assertEqual(<<"logged\nprinted\n">>, script(Dir, weft_deploy_shell:log_tail(Dir, ?NODE))),
    ok = file:del_dir_r(Dir).

%% All files of both, and what the emulator has left. Those of an earlier node of the name go, also
%% where they were put by an earlier version.
what_a_node_has_logged_stays_when_it_is_removed_test_() ->
    {timeout, 60, fun what_a_node_has_logged_stays_when_it_is_removed/0}.

what_a_node_has_logged_stays_when_it_is_removed() ->
    Dir = directory(),
    Kept = Dir ++ "/logs/" ++ ?NODE,
    _ = script(Dir, weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    [ok = file:write_file(Old, "old") || Old <- [Kept, Kept ++ ".output"]],
    Removed = fun(Names) ->
                  ok = filelib:ensure_path(file(Dir, "")),
                  [ok = file:write_file(file(Dir, Name), Name) || Name <- ["id" | Names]],
                  _ = script(Dir, weft_deploy_shell:remove(Dir, [?NODE])),
                  ?assertNot(filelib:is_file(file(Dir, ""))),
                  filelib:is_dir(Kept) andalso lists:sort(element(2, file:list_dir_all(Kept)))
              end,
    %% One that has never run leaves nothing, and takes nothing away.
    ?assertNot(Removed([])),
    ?assert(filelib:is_regular(Kept)),
    All = ["crash_dump", "log", "log.0", "log.1", "log.2", "log.3", "log.4", "output", "output.1"],
    ?assertEqual(All, Removed(All)),
    ?assertEqual([{ok, list_to_binary(Name)} || Name <- All],
                 [file:read_file(filename:join(Kept, Name)) || Name <- All]),
    %% The next one has logged less. It was ended when it had put the first file aside.
    ok = filelib:ensure_path(Kept ++ ".new"),
    ok = file:write_file(Kept ++ ".new/log", "log"),
    ?assertEqual(["log", "output"], Removed(["output"])),
    ?assertEqual({ok, [?NODE]}, file:list_dir_all(Dir ++ "/logs")),
    ok = file:del_dir_r(Dir).

%% --- a node -------------------------------------------------------------------------------------

%% Runs an emulator as a node of a host until that is so; which files of these kinds it has made.
run(Dir, Config, Program, Until) ->
    _ = script(Dir, weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    _ = script(Dir, weft_deploy_shell:define(
                      Dir, #{node => ?NODE, id => "one", config => Config, healthy => "x.",
                             environment => [],
                             words => [filename:join([code:root_dir(), "bin", "erl"]), "-noinput",
                                       "+S", "1:1", "-config", "sys", "-eval", Program,
                                       "-extra", ?NODE]})),
    _ = script(Dir, weft_deploy_shell:launch(Dir, [?NODE])),
    try ok = weft_test_nodes:until(Until)
    after script(Dir, weft_deploy_shell:stop(Dir, [?NODE], 10))
    end,
    {ok, Names} = file:list_dir(file(Dir, "")),
    [Name || Name <- lists:sort(Names),
             lists:prefix("log", Name) orelse lists:prefix("output", Name),
             Name =/= "logger.config"].

script(Dir, Script) ->
    {ok, Connection} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    {ok, Output} = weft_deploy_host:script(Connection, Script),
    ok = weft_deploy_host:close(Connection),
    Output.

is_within(Sizes, Max) -> lists:all(fun(Size) -> Size > 0 andalso Size =< Max end, Sizes).

size(Dir, Name) -> filelib:file_size(file(Dir, Name)).

file(Dir, Name) -> filename:join([Dir, "nodes", ?NODE, Name]).

directory() ->
    filename:join("/tmp", lists:concat(["weft deploy's log-", os:getpid(), "-",
                                        erlang:unique_integer([positive])])).
