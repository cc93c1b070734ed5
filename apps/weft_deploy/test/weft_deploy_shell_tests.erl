%% SPDX-License-Identifier: Apache-2.0
%% The scripts of hosts, run by the shell that is here, and what is read of their output.
-module(weft_deploy_shell_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Shells that start one after the other take their time on a busy machine.
-define(SECONDS, 60).

a_quoted_word_is_one_word_whatever_is_in_it_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_quote(), [{numtests, 60}, quiet]))}.

%% An accent that follows a quote is part of no word of the shell.
an_accent_after_a_quote_test_() ->
    {timeout, 60, fun an_accent_after_a_quote/0}.

an_accent_after_a_quote() ->
    Word = [$a, $', 16#301, $;, $b],
    ?assertEqual(unicode:characters_to_binary(Word),
                 sh(["printf '%s' ", weft_deploy_shell:quote(Word)])).

prop_quote() ->
    ?FORALL(Word, list(oneof([range($\s, $~), $', $\\, $$, $`, $", $\n, 16#e9, 16#301])),
            begin
                Text = unicode:characters_to_binary(Word),
                Script = ["printf '%s.' ", weft_deploy_shell:quote(Word)],
                <<Text/binary, ".">> =:= sh(Script)
            end).

%% The profile of a host may print something before.
what_a_node_was_made_with_test_() ->
    {timeout, 60, fun what_a_node_was_made_with/0}.

what_a_node_was_made_with() ->
    Script = ["made=$(mktemp -d); cd \"$made\"; mkdir -p nodes/a@h\n"
              "echo '[].' > nodes/a@h/sys.config; echo \"somebody's host\"\n",
              weft_deploy_shell:configuration(".", "a@h"), "\nrm -r \"$made\"\n"],
    ?assertEqual(<<"[].\n">>, weft_deploy_shell:configured(sh(Script))).

sh(Script) ->
    {0, Output} = run(Script),
    Output.

%% By way of a file, as the provider does it.
run(Script) ->
    Dir = directory(),
    {ok, Connection} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Result = weft_deploy_local:run(Dir, unicode:characters_to_binary(Script), 20000),
    ok = weft_deploy_host:close(Connection),
    ok = file:del_dir_r(Dir),
    {ok, Status, Output} = Result,
    {Status, Output}.

%% Nothing of it goes on.
a_script_that_takes_too_long_is_ended_test_() ->
    {timeout, 60, fun a_script_that_takes_too_long_is_ended/0}.

a_script_that_takes_too_long_is_ended() ->
    Dir = directory(),
    {ok, _} = weft_deploy_local:open("127.0.0.1", #{dir => Dir}),
    Script = ["echo $$ > ", weft_deploy_shell:quote(pid_file(Dir)), "; sleep 3600 & wait"],
    ?assertEqual({error, "a command took too long"}, weft_deploy_local:run(Dir, Script, 3000)),
    {ok, OsPid} = file:read_file(pid_file(Dir)),
    ?assertEqual("", processes_of_session(string:trim(binary_to_list(OsPid)), 100)),
    ok = file:del_dir_r(Dir).

pid_file(Dir) -> filename:join(Dir, "pid").

%% They are signalled, and take a moment to go.
processes_of_session(Session, Tries) ->
    case os:cmd("ps -o pid= -g " ++ Session) of
        [_ | _] when Tries > 0 ->
            receive after 50 -> ok end, % pacing: they are looked for until they are gone
            processes_of_session(Session, Tries - 1);
        Left ->
            Left
    end.

directory() ->
    filename:join("/tmp", "weft deploy's " ++ os:getpid() ++ "-"
                  ++ integer_to_list(erlang:unique_integer([positive]))).

%% A node here is a shell that waits; its name and the directory are on its command line.
a_node_is_started_seen_changed_undone_and_stopped_test_() ->
    {timeout, 60, fun life/0}.

%% While a process becomes another program it has no words in /proc.
first_read_is_empty(Dir) ->
    Read = weft_deploy_shell:quote(Dir ++ "/read"),
    ["tr() { if [ -f ", Read, " ]; then command tr \"$@\"; else : > ", Read, "; fi; }\n"].

life() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    See = fun() -> weft_deploy_shell:parse(Do(weft_deploy_shell:observe(Dir))) end,
    ?assertMatch(#{nodes := Nodes, releases := []} when map_size(Nodes) =:= 0, See()),
    Do(weft_deploy_shell:prepare(Dir, "shop", "it's secret")),
    Mode = mode(filename:join(Dir, ".erlang.cookie")),
    ?assertEqual(8#400, Mode band 8#777),
    ok = weft_deploy_host:put(C, Dir ++ "/upload/v1", tarball()),
    Do(weft_deploy_shell:unpack(Dir, "v1")),
    Do(weft_deploy_shell:define(Dir, definition(Dir, "one"))),
    ?assertMatch(#{releases := ["v1"], nodes := #{"n1@h" := #{up := false, id := "one",
                                                             previous := none}}}, See()),
    Do(weft_deploy_shell:launch(Dir, ["n1@h"])),
    #{nodes := #{"n1@h" := #{os_pid := OsPid}}} = until_up(See),
    Do([first_read_is_empty(Dir), weft_deploy_shell:launch(Dir, ["n1@h"])]),
    ?assert(filelib:is_file(Dir ++ "/read")),
    ?assertMatch(#{closed := [], nodes := #{"n1@h" := #{os_pid := OsPid, up := true}}}, See()),
    Closed = Dir ++ "/nodes/n1@h/closed",
    ok = file:write_file(Closed, <<>>),
    ?assertMatch(#{closed := ["n1@h"], nodes := #{"n1@h" := #{up := true, left := false}}}, See()),
    Left = Dir ++ "/nodes/n1@h/left",
    ok = file:write_file(Left, <<>>),
    ?assertMatch(#{closed := [], nodes := #{"n1@h" := #{up := true, left := true}}}, See()),
    {error, Refused} = weft_deploy_host:script(C, weft_deploy_shell:prepare(Dir, "shop", "new")),
    ?assertMatch({match, _}, re:run(Refused, "n1@h runs with another cookie")),
    ?assertEqual({ok, <<"it's secret">>}, file:read_file(Dir ++ "/.erlang.cookie")),
    Do(weft_deploy_shell:define(Dir, definition(Dir, "two"))),
    ?assertMatch(#{nodes := #{"n1@h" := #{id := "two", previous := "one"}}}, See()),
    Do(weft_deploy_shell:undo(Dir, "n1@h")),
    ?assertEqual({ok, [one]}, file:consult(Dir ++ "/nodes/n1@h/healthy")),
    ?assertMatch(#{nodes := #{"n1@h" := #{id := "one", previous := none}}}, See()),
    ?assertEqual([], weft_deploy_shell:killed(Do(weft_deploy_shell:stop(Dir, ["n1@h"], 5)))),
    ?assertMatch(#{nodes := #{"n1@h" := #{up := false}}}, See()),
    ?assertEqual([false, false], [filelib:is_file(File) || File <- [Closed, Left]]),
    Do(weft_deploy_shell:remove(Dir, ["n1@h"])),
    ?assertMatch(#{nodes := Nodes} when map_size(Nodes) =:= 0, See()),
    Do(weft_deploy_shell:prepare(Dir, "shop", "new")),
    ok = file:del_dir_r(Dir).

a_cookie_that_is_there_is_not_written_again_test_() ->
    {timeout, ?SECONDS, fun a_cookie_that_is_there_is_not_written_again/0}.

a_cookie_that_is_there_is_not_written_again() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    File = Dir ++ "/.erlang.cookie",
    Prepare = fun(Cookie) ->
                  {ok, _} = weft_deploy_host:script(C, weft_deploy_shell:prepare(Dir, "shop",
                                                                                 Cookie))
              end,
    Prepare("one"),
    Before = {{2020, 1, 1}, {0, 0, 0}},
    ok = file:change_time(File, Before),
    Prepare("one"),
    ?assertEqual(Before, filelib:last_modified(File)),
    Prepare("two"),
    ?assertEqual({{ok, <<"two">>}, 8#400}, {file:read_file(File), mode(File) band 8#777}),
    ?assertNot(filelib:is_file(File ++ ".new")),
    ok = file:del_dir_r(Dir).

%% That of the `erl' of the nodes, wherever an Erlang has it.
the_epmd_beside_erl_is_ended_test_() ->
    {timeout, ?SECONDS, fun the_epmd_beside_erl_is_ended/0}.

the_epmd_beside_erl_is_ended() ->
    Dir = directory(),
    [begin
         Epmd = Dir ++ Name,
         ok = filelib:ensure_dir(Epmd),
         ok = filelib:ensure_path(Dir ++ "/bin"),
         ok = file:write_file(Epmd, "#!/bin/sh\necho \"$@\" > \"$0.told\"\n"),
         ok = file:change_mode(Epmd, 8#700),
         _ = sh(weft_deploy_shell:end_epmd(Dir, Dir ++ "/bin/erl", 4369)),
         ?assertEqual({error, enoent}, file:read_file(Epmd ++ ".told")),
         _ = sh(weft_deploy_shell:end_epmd(Dir, Dir ++ "/bin/erl", 4390)),
         ?assertEqual({ok, <<"-port 4390 -kill\n">>}, file:read_file(Epmd ++ ".told")),
         ok = file:del_dir_r(Dir)
     end || Name <- ["/bin/epmd", "/erts-1.2/bin/epmd"]].

%% It has left its process id. One that runs stays.
a_node_that_was_killed_is_forgotten_test_() ->
    {timeout, ?SECONDS, fun a_node_that_was_killed_is_forgotten/0}.

a_node_that_was_killed_is_forgotten() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    See = fun() -> weft_deploy_shell:parse(Do(weft_deploy_shell:observe(Dir))) end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    Do(weft_deploy_shell:define(Dir, definition(Dir, "one"))),
    Do(weft_deploy_shell:launch(Dir, ["n1@h"])),
    #{nodes := #{"n1@h" := #{os_pid := OsPid}}} = until_up(See),
    Do(weft_deploy_shell:remove(Dir, ["n1@h"])),
    ?assertMatch(#{nodes := #{"n1@h" := #{up := true}}}, See()),
    [] = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
    weft_test_nodes:until(fun() ->
                              #{nodes := #{"n1@h" := #{up := IsUp}}} = See(),
                              not IsUp
                          end),
    Do(weft_deploy_shell:remove(Dir, ["n1@h"])),
    ?assertEqual(#{}, maps:get(nodes, See())),
    ok = file:del_dir_r(Dir).

%% The script that starts it has not come to write the process id, by what it would write it with.
a_node_is_known_also_when_its_start_was_ended_test_() ->
    {timeout, ?SECONDS, fun a_node_is_known_also_when_its_start_was_ended/0}.

a_node_is_known_also_when_its_start_was_ended() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    See = fun() -> weft_deploy_shell:parse(Do(weft_deploy_shell:observe(Dir))) end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    Do(weft_deploy_shell:define(Dir, definition(Dir, "one"))),
    _ = weft_deploy_host:script(C, ["echo() { return 1; }\nmv() { return 1; }\n",
                                    weft_deploy_shell:launch(Dir, ["n1@h"])]),
    #{nodes := #{"n1@h" := #{os_pid := OsPid}}} = until_up(See),
    Do(weft_deploy_shell:launch(Dir, ["n1@h"])),
    ?assertMatch(#{nodes := #{"n1@h" := #{os_pid := OsPid}}}, See()),
    Do(weft_deploy_shell:stop(Dir, ["n1@h"], 5)),
    ?assertMatch(#{nodes := #{"n1@h" := #{up := false}}}, See()),
    ok = file:del_dir_r(Dir).

a_health_check_is_seen_and_written_alone_test_() ->
    {timeout, 60, fun a_health_check_is_seen_and_written_alone/0}.

a_health_check_is_seen_and_written_alone() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    Health = fun() ->
                 maps:get(health, weft_deploy_shell:parse(Do(weft_deploy_shell:observe(Dir))))
             end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    Definition = fun(Check) ->
                     Text = io_lib:format("%% coding: utf-8~n~0tp.~n", [{[shop], Check}]),
                     (definition(Dir, "one"))#{healthy := unicode:characters_to_binary(Text)}
                 end,
    Do(weft_deploy_shell:define(Dir, Definition(none))),
    ?assertEqual(#{"n1@h" => none}, Health()),
    Check = {shop, is_good, ["it's \t\\ \"\x{e9}\"", #{a => 1}]},
    Do(weft_deploy_shell:recheck(Dir, (Definition(Check))#{config := "other", id := "two"})),
    ?assertEqual(#{"n1@h" => Check}, Health()),
    [?assertEqual({ok, Text}, file:read_file(filename:join([Dir, "nodes/n1@h", File])))
     || {File, Text} <- [{"sys.config", <<"[].">>}, {"id", <<"one\n">>}]],
    ok = file:write_file(filename:join(Dir, "nodes/n1@h/healthy"), "%%\n{[],\n"),
    ?assertEqual(#{"n1@h" => unreadable}, Health()),
    ok = file:del_dir_r(Dir).

what_is_of_somebody_else_stays_test_() ->
    {timeout, ?SECONDS, fun what_is_of_somebody_else_stays/0}.

what_is_of_somebody_else_stays() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    ok = file:write_file(Dir ++ "/program", "of somebody else"),
    Do(weft_deploy_shell:purge(Dir)),
    ?assertEqual(["program"], filelib:wildcard("{*,.*}", Dir)),
    ok = file:delete(Dir ++ "/program"),
    Do(weft_deploy_shell:purge(Dir)),
    ?assertNot(filelib:is_dir(Dir)).

%% The first of these scripts was ended when all but the id was written.
what_was_ended_half_way_is_repeated_test_() ->
    {timeout, ?SECONDS, fun what_was_ended_half_way_is_repeated/0}.

what_was_ended_half_way_is_repeated() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    Define = fun(Id, Config) ->
                 Do(weft_deploy_shell:define(Dir, (definition(Dir, Id))#{config => Config}))
             end,
    Home = Dir ++ "/nodes/n1@h/",
    Config = fun() -> {ok, Text} = file:read_file(Home ++ "sys.config"), Text end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    Define("one", "old"),
    Define("two", "new"),
    ok = file:write_file(Home ++ "id", "one\n"),
    Define("two", "new"),
    %% And this one when it had replaced the first files.
    {ok, _} = file:copy(Home ++ "previous/start", Home ++ "start"),
    Do(weft_deploy_shell:undo(Dir, "n1@h")),
    ?assertEqual({<<"old">>, {ok, <<"one\n">>}}, {Config(), file:read_file(Home ++ "id")}),
    ok = file:del_dir_r(Dir).

an_undo_is_repeated_wherever_it_was_ended_test_() ->
    {timeout, ?SECONDS, fun an_undo_is_repeated_wherever_it_was_ended/0}.

an_undo_is_repeated_wherever_it_was_ended() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Home = Dir ++ "/nodes/n1@h/",
    %% A directory in the place of one file after the other ends the script there.
    [begin
         Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
         Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
         [Do(weft_deploy_shell:define(Dir, (definition(Dir, Id))#{config => Config}))
          || {Id, Config} <- [{"one", "old"}, {"two", "new"}]],
         ok = file:delete(Home ++ File),
         ok = filelib:ensure_path(Home ++ File ++ "/" ++ File ++ ".new/x"),
         {error, _} = weft_deploy_host:script(C, weft_deploy_shell:undo(Dir, "n1@h")),
         ok = file:del_dir_r(Home ++ File),
         Do(weft_deploy_shell:undo(Dir, "n1@h")),
         ?assertEqual({File, [{ok, <<"one\n">>}, {ok, <<"old">>}]},
                      {File, [file:read_file(Home ++ Name) || Name <- ["id", "sys.config"]]}),
         ok = file:del_dir_r(Home)
     end || File <- ["healthy", "sys.config", "start", "id"]],
    ok = file:del_dir_r(Dir).

nothing_stays_of_a_release_that_can_not_be_unpacked_test_() ->
    {timeout, ?SECONDS, fun nothing_stays_of_a_release_that_can_not_be_unpacked/0}.

nothing_stays_of_a_release_that_can_not_be_unpacked() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    {ok, _} = weft_deploy_host:script(C, weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    Whole = tarball(),
    Half = binary:part(Whole, 0, byte_size(Whole) div 2),
    ok = weft_deploy_host:put(C, Dir ++ "/upload/v1", Half),
    {error, _} = weft_deploy_host:script(C, weft_deploy_shell:unpack(Dir, "v1")),
    ?assertEqual([], filelib:wildcard("{releases,upload}/*", Dir)),
    ok = file:del_dir_r(Dir).

mode(File) ->
    {ok, Info} = file:read_file_info(File),
    element(8, Info).

the_newest_release_is_the_first_one_and_others_go_test_() ->
    {timeout, ?SECONDS, fun the_newest_release_is_the_first_one_and_others_go/0}.

the_newest_release_is_the_first_one_and_others_go() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    See = fun() -> weft_deploy_shell:parse(Do(weft_deploy_shell:observe(Dir))) end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    [begin
         ok = weft_deploy_host:put(C, Dir ++ "/upload/" ++ Version, tarball()),
         Do(weft_deploy_shell:unpack(Dir, Version))
     end || Version <- ["v1", "v2"]],
    ok = file:change_time(Dir ++ "/releases/v2", {{2020, 1, 1}, {0, 0, 0}}),
    ?assertMatch(#{releases := ["v1", "v2"]}, See()),
    Do(weft_deploy_shell:prune(Dir, ["v1"])),
    ?assertMatch(#{releases := ["v2"]}, See()),
    ok = file:del_dir_r(Dir).

%% It takes any words, as `erl' does.
definition(Dir, Id) ->
    Program = filename:join(Dir, "program"),
    ok = file:write_file(Program, "#!/bin/sh\nwhile :; do sleep 1; done\n"),
    ok = file:change_mode(Program, 8#700),
    #{node => "n1@h", id => Id, environment => [{"KEY", "it's"}], config => "[].",
      healthy => [Id, "."],
      words => [Program, "n1@h"]}.

tarball() ->
    File = filename:join("/tmp", "weft_deploy_" ++ os:getpid() ++ ".tar.gz"),
    ok = erl_tar:create(File, [{"lib/app/ebin/app.app", <<"x">>}], [compressed]),
    {ok, Content} = file:read_file(File),
    ok = file:delete(File),
    Content.

until_up(See) ->
    case See() of
        #{nodes := #{"n1@h" := #{up := true}}} = Seen -> Seen;
        _ -> until_up(See)
    end.

the_process_of_somebody_else_is_left_alone_test_() ->
    {timeout, 60, fun foreign/0}.

foreign() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    Do(weft_deploy_shell:define(Dir, definition(Dir, "one"))),
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "read -r x", "n1@h"]}]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    ok = file:write_file(Dir ++ "/nodes/n1@h/pid", integer_to_list(OsPid) ++ "\n"),
    #{nodes := #{"n1@h" := Seen}} = weft_deploy_shell:parse(Do(weft_deploy_shell:observe(Dir))),
    ?assertMatch(#{up := false}, Seen),
    Do(weft_deploy_shell:stop(Dir, ["n1@h"], 1)),
    ?assertMatch({os_pid, OsPid}, erlang:port_info(Port, os_pid)),
    true = port_close(Port),
    ok = file:del_dir_r(Dir).

%% A node that does not end is looked at ten times a second: by the shell itself.
who_waits_for_a_node_starts_no_program_test_() ->
    {timeout, ?SECONDS, fun who_waits_for_a_node_starts_no_program/0}.

who_waits_for_a_node_starts_no_program() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    See = fun() -> weft_deploy_shell:parse(Do(weft_deploy_shell:observe(Dir))) end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    #{words := [Program | _]} = Definition = definition(Dir, "one"),
    Do(weft_deploy_shell:define(Dir, Definition)),
    ok = file:write_file(Program, "#!/bin/sh\ntrap '' TERM\n: > deaf\n"
                                  "while :; do sleep 1; done\n"),
    Do(weft_deploy_shell:launch(Dir, ["n1@h"])),
    _ = until_up(See),
    ok = until_there(Dir ++ "/nodes/n1@h/deaf"),
    Reads = Dir ++ "/reads",
    Said = Do(["tr() { echo >> ", weft_deploy_shell:quote(Reads), "; command tr \"$@\"; }\n",
               weft_deploy_shell:stop(Dir, ["n1@h"], 1)]),
    ?assertEqual({["n1@h"], []}, {weft_deploy_shell:killed(Said), weft_deploy_shell:left(Said)}),
    ?assertMatch(#{nodes := #{"n1@h" := #{up := false}}}, See()),
    {ok, Lines} = file:read_file(Reads),
    %% Before each signal, and perhaps one that has just ended.
    ?assert(byte_size(Lines) =< 3),
    ok = file:del_dir_r(Dir).

until_there(File) ->
    case filelib:is_file(File) of
        true -> ok;
        false -> receive after 20 -> until_there(File) end % pacing: a program that starts
    end.

nodes_that_run_on_are_told_test() ->
    ?assertEqual(["a@h"], weft_deploy_shell:left(<<"kill: not permitted\nleft\ta@h\n">>)).

%% Its nodes would be stopped, as ones that the file does not have.
the_directory_of_another_deployment_is_left_alone_test_() ->
    {timeout, ?SECONDS, fun the_directory_of_another_deployment_is_left_alone/0}.

the_directory_of_another_deployment_is_left_alone() ->
    Dir = directory(),
    Host = Dir ++ "/host",
    {ok, C} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Host}),
    {ok, _} = weft_deploy_host:script(C, weft_deploy_shell:prepare(Host, "other", "cookie")),
    {ok, _} = weft_deploy_host:script(C, weft_deploy_shell:define(Host, definition(Host, "one"))),
    File = deployment(Dir, [{dir, Host}]),
    {wanting, #{lost := [#{why := Why}], forget := []}, _} = weft_deploy:plan(File,
                                                                              #{root => Dir}),
    ?assertMatch({match, _}, re:run(Why, "of the deployment other")),
    %% No node of this one is known.
    ?assertMatch({wanting, #{nodes := [], lost := [_]}, _},
                 weft_deploy:status(File, #{root => Dir})),
    {wanting, _, _} = weft_deploy:down(File, #{root => Dir, purge => true}),
    ?assert(filelib:is_file(Host ++ "/nodes/n1@h/id")),
    ok = file:del_dir_r(Dir).

%% They have it by a file server, or are one machine with two names. The node would be one that
%% shall not be there, and be stopped.
a_directory_that_two_hosts_have_is_told_of_test_() ->
    {timeout, ?SECONDS, fun a_directory_that_two_hosts_have_is_told_of/0}.

a_directory_that_two_hosts_have_is_told_of() ->
    Dir = directory(),
    {ok, C} = weft_deploy_host:open(local, "h", #{dir => Dir}),
    Do = fun(Script) -> {ok, Output} = weft_deploy_host:script(C, Script), Output end,
    Do(weft_deploy_shell:prepare(Dir, "shop", "cookie")),
    Do(weft_deploy_shell:define(Dir, definition(Dir, "one"))),
    Look = fun(Hosts) ->
               Spec = #{name => "shop", parallel => 2, hosts => [#{host => Host} || Host <- Hosts]},
               #{seen := Seen} = weft_deploy_session:look(
                                   #{dir => Dir, spec => Spec, seen => #{},
                                     hosts => maps:from_list([{Host, {ok, C}} || Host <- Hosts])}),
               Seen
           end,
    #{"h" := {ok, #{nodes := #{"n1@h" := _}}}, "other" := {error, Why}} = Look(["h", "other"]),
    ?assertEqual(Dir ++ " has n1@h: each host needs a directory of its own, and one name", Why),
    %% The host has another name by now.
    ?assertMatch(#{"other" := {ok, #{nodes := #{"n1@h" := _}}}}, Look(["other"])),
    ok = file:del_dir_r(Dir).

%% Such as when a disk is full.
a_node_that_can_not_be_written_is_not_started_test_() ->
    {timeout, ?SECONDS, fun a_node_that_can_not_be_written_is_not_started/0}.

a_node_that_can_not_be_written_is_not_started() ->
    Dir = directory(),
    Place = Dir ++ "/deploy/shop/host/nodes/web1@127.0.0.1",
    ok = filelib:ensure_dir(Place),
    ok = file:write_file(Place, "where the directory should be"),
    {wanting, #{started := [], failed := [#{why := Why}]}, _} =
        weft_deploy:apply(deployment(Dir, [{erl, "/bin/false"}, {healthy_s, 1}]), #{root => Dir}),
    ?assertMatch({match, _}, re:run(Why, "mkdir")),
    ok = file:del_dir_r(Dir).

lines_that_are_none_of_ours_are_passed_over_test() ->
    Output = <<"banner\ncores\tmany\nnode\tx\nnode\ta@h\tup\t12\tid\t-\nrelease\tv1\n\n">>,
    ?assertEqual(#{cores => 1, releases => ["v1"], closed => [], health => #{},
                   nodes => #{"a@h" => #{up => true, left => false, os_pid => 12, id => "id",
                                         previous => none}}}, weft_deploy_shell:parse(Output)).

results_of_nodes_are_read_and_noise_is_not_test() ->
    ?assertEqual([{"a@h", ok, 12, ""}, {"b@h", bad, 0, "why"}],
                 weft_deploy_ask:results(<<"=ERROR\nweft\ta@h\tok\t12\t\nweft\tb@h\tbad\tx\twhy\n",
                                           "weft\tshort\n">>)).

%% --- what the command remembers -----------------------------------------------------------------

a_scaled_number_is_forgotten_when_the_file_has_changed_test() ->
    Dir = directory(),
    Scaled = fun(Count) ->
                 Families = [#{name => web, count => Count}],
                 {ok, State} = weft_deploy_state:load(Dir),
                 {ok, _} = weft_deploy_session:save(State, here(Dir, State, Families, #{})),
                 {ok, #{scaled := Now}} = weft_deploy_state:load(Dir),
                 Now
             end,
    {ok, _} = weft_deploy_state:save(Dir, #{scaled => #{web => {3, 5}}, bad => [],
                                            placed => #{}}),
    ?assertEqual(#{web => {3, 5}}, Scaled(3)),
    ?assertEqual(#{}, Scaled(4)),
    ?assertEqual(#{}, Scaled(3)),
    ok = file:del_dir_r(Dir).

%% The hosts are none that answer.
here(Dir, State, Families, Seen) ->
    #{root => Dir, dir => Dir, hosts => #{}, seen => Seen, state => State,
      spec => #{name => "shop", parallel => 1, families => Families}}.

%% One that was stopped on a host is not taken for one of it when the host is lost.
where_a_node_was_is_forgotten_where_it_is_not_any_more_test() ->
    Dir = directory(),
    State = #{scaled => #{}, bad => [],
              placed => #{"web1" => "h1", "web2" => "h1", "web3" => "h2"}},
    Here = #{nodes => #{"web1@h1" => #{}}},
    {ok, #{state := Saved}} =
        weft_deploy_session:save(State, here(Dir, State, [], #{"h1" => {ok, Here},
                                                               "h2" => {error, "gone"}})),
    ?assertEqual(#{"web1" => "h1", "web3" => "h2"}, maps:get(placed, Saved)),
    ?assertEqual({ok, Saved}, weft_deploy_state:load(Dir)),
    ok = file:del_dir_r(Dir).

state_is_what_was_saved_test() ->
    Dir = directory(),
    {ok, Empty} = weft_deploy_state:load(Dir),
    State = Empty#{scaled := #{web => {1, 2}}, bad := ["x"]},
    {ok, Saved} = weft_deploy_state:save(Dir, State),
    ?assertEqual({ok, Saved}, weft_deploy_state:load(Dir)),
    ?assertEqual(State#{revision := 1}, Saved),
    %% The first line is for hosts, which say no more than the revision.
    {ok, <<"%% 1\n", _/binary>> = Text} = file:read_file(Dir ++ "/state"),
    ?assertEqual({ok, Saved}, weft_deploy_state:parse(Text)),
    %% Whoever saves something older by then: what is saved last counts.
    ?assertMatch({ok, #{revision := 2}}, weft_deploy_state:save(Dir, State)),
    ?assertMatch({ok, #{revision := 8}}, weft_deploy_state:save(Dir, State#{revision := 7})),
    %% An earlier version has written no revision.
    ok = file:write_file(Dir ++ "/state", "{1, #{scaled => #{}, bad => [], placed => #{}}}."),
    ?assertMatch({ok, #{revision := 1}}, weft_deploy_state:load(Dir)),
    ok = file:write_file(Dir ++ "/state", "{2, new}."),
    ?assertMatch({error, _}, weft_deploy_state:load(Dir)),
    ?assertMatch({error, _}, weft_deploy_state:save(Dir, State)),
    [?assertEqual(error, weft_deploy_state:parse(Other))
     || Other <- [<<>>, <<"{2, new}.">>, <<"{1, #{}}.">>, <<"{1,">>, <<255>>]],
    ok = file:del_dir_r(Dir).

a_cookie_is_made_once_and_others_can_not_read_it_test() ->
    Dir = directory(),
    {ok, Cookie} = weft_deploy_state:cookie(Dir, default),
    ?assertEqual({ok, Cookie}, weft_deploy_state:cookie(Dir, default)),
    Mode = mode(Dir ++ "/cookie"),
    ?assertEqual(8#400, Mode band 8#777),
    ok = file:write_file(Dir ++ "/short", "abc"),
    ?assertMatch({error, _}, weft_deploy_state:cookie(Dir, Dir ++ "/short")),
    ok = file:del_dir_r(Dir).

one_command_at_a_time_changes_a_deployment_test() ->
    Dir = directory(),
    ok = weft_deploy_state:lock(Dir),
    ?assertMatch({error, _}, weft_deploy_state:lock(Dir)),
    ok = weft_deploy_state:unlock(Dir),
    ok = file:write_file(Dir ++ "/lock", "999999999"),
    ?assertEqual(ok, weft_deploy_state:lock(Dir)),
    ?assertEqual(["lock"], filelib:wildcard("lock*", Dir)),
    ok = file:del_dir_r(Dir).

a_lock_that_is_just_being_written_is_not_taken_over_test() ->
    Dir = directory(),
    ok = filelib:ensure_path(Dir),
    ok = file:write_file(Dir ++ "/lock", <<>>),
    ?assertMatch({error, _}, weft_deploy_state:lock(Dir)),
    ?assertEqual({ok, <<>>}, file:read_file(Dir ++ "/lock")),
    ok = file:del_dir_r(Dir).

%% What it would see before it has the lock may be old when it has it.
a_command_without_the_lock_looks_at_nothing_test_() ->
    {timeout, 60, fun a_command_without_the_lock_looks_at_nothing/0}.

a_command_without_the_lock_looks_at_nothing() ->
    Dir = directory(),
    Own = Dir ++ "/deploy/shop",
    ok = weft_deploy_state:lock(Own),
    ok = file:write_file(Own ++ "/state", "not read"),
    {failed, Text} = weft_deploy:apply(deployment(Dir, []), #{root => Dir}),
    ?assertMatch({match, _}, re:run(Text, "another weft deploy")),
    ?assertEqual(["lock", "state"], lists:sort(filelib:wildcard("*", Own))),
    ok = file:del_dir_r(Dir).

a_plan_makes_no_cookie_test_() ->
    {timeout, 60, fun a_plan_makes_no_cookie/0}.

a_plan_makes_no_cookie() ->
    Dir = directory(),
    {ok, #{start := [_]}, _} = weft_deploy:plan(deployment(Dir, []), #{root => Dir}),
    ?assertNot(filelib:is_file(Dir ++ "/deploy/shop/cookie")),
    ok = file:del_dir_r(Dir).

deployment(Dir, Terms) ->
    File = Dir ++ "/shop.deploy",
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, [io_lib:format("~p.~n", [T])
                                || T <- [{name, shop}, {family, web, #{paths => []}} | Terms]]),
    File.

one_that_crashes_does_not_stop_the_others_test() ->
    ?assertMatch([1, {error, "it crashed" ++ _}, 3],
                 weft_deploy_parallel:map(2, fun(2) -> exit(oops); (N) -> N end, [1, 2, 3])).

not_more_at_a_time_than_allowed_test() ->
    Counter = counters:new(2, []),
    Work = fun(_) ->
               counters:add(Counter, 1, 1),
               Now = counters:get(Counter, 1),
               Now > counters:get(Counter, 2) andalso counters:put(Counter, 2, Now),
               erlang:yield(),
               counters:sub(Counter, 1, 1)
           end,
    _ = weft_deploy_parallel:map(3, Work, lists:seq(1, 200)),
    ?assert(counters:get(Counter, 2) =< 3).

words_of_scale_are_checked_test() ->
    Families = [#{name => web, count => 3}],
    ?assertEqual({ok, #{web => {3, 5}}}, weft_deploy_text:numbers(["web=5"], Families)),
    [?assertMatch({error, _}, weft_deploy_text:numbers(Words, Families))
     || Words <- [[], ["web"], ["web=x"], ["web=-1"], ["web=99999"], ["other=1"]]].
