%% SPDX-License-Identifier: Apache-2.0
%% @doc What is told of suites that pass, fail, skip, hang and die.
-module(suite_run_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SECONDS, 60).

tells_test_() ->
    [{timeout, 2 * ?SECONDS, Test}
     || Test <- [fun cases_are_counted_and_named/0, fun chosen_cases_run_again/0,
                 fun cases_in_sequence_run_again_together/0,
                 fun a_suite_that_dies_has_no_sum/0, fun tests_are_counted_and_named/0,
                 fun a_group_that_is_not_set_up_is_told/0, fun tests_that_cannot_run_are_told/0]].

%% One group is skipped, and one cannot be prepared: its case did not run, which is a failure. So is
%% a case whose end fails.
cases_are_counted_and_named() ->
    Events = told(ct_suite(), "all"),
    ?assertEqual([{sum, #{passed => 2, failed => 4, skipped => 2}}], sums(Events)),
    ?assertEqual(["no", "not here"], lists:usort([Why || {skipped, Why} <- Events])),
    ?assertEqual([{[], init_per_group}, {[], passes}, {[], end_per_group},
                  {[outer, inner], fails}, {[], fails}, {[], ends_badly}], parts(Events)),
    ?assert(tells(Events, fails, "on_purpose")),
    ?assert(tells(Events, ends_badly, "at_its_end")).

chosen_cases_run_again() ->
    Events = told(ct_suite(), "[{[], passes}, {[outer, inner], fails}]"),
    ?assertEqual([{sum, #{passed => 1, failed => 1, skipped => 0}}], sums(Events)),
    ?assertEqual([{[outer, inner], fails}], parts(Events)).

cases_in_sequence_run_again_together() ->
    Source = "-module(sample_SUITE).\n-export([suite/0, all/0, first/1, second/1]).\n"
             "suite() -> [{userdata, in_sequence}].\nall() -> [first, second].\n"
             "first(_) -> ok.\nsecond(_) -> error(on_purpose).\n",
    ?assertEqual([unknown], parts(told({sample_SUITE, Source}, "all"))).

a_suite_that_dies_has_no_sum() ->
    Source = "-module(sample_SUITE).\n-export([all/0, dies/1]).\nall() -> [dies].\n"
             "dies(_) -> halt(3).\n",
    ?assertEqual([], told({sample_SUITE, Source}, "all")).

tests_are_counted_and_named() ->
    Source = "-module(sample_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"
             "passes_test() -> ok.\n"
             "fails_test() -> ?assert(1 =:= length([])).\n"
             "hangs_test_() -> {timeout, 1, fun() -> receive after infinity -> ok end end}.\n",
    Events = told({sample_tests, Source}, "all"),
    ?assertEqual([{sum, #{passed => 1, failed => 3, skipped => 0}}], sums(Events)),
    ?assertMatch([{sample_tests, fails_test}, {sample_tests, _Hangs}, {sample_tests, group}],
                 parts(Events)),
    ?assert(tells(Events, fails_test, "1 =:= length ( [ ] )")).

a_group_that_is_not_set_up_is_told() ->
    Source = "-module(sample_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"
             "first_test() -> ok.\n"
             "group_test_() -> {setup, fun() -> error(no) end, [fun() -> ok end]}.\n"
             "last_test() -> ok.\n",
    Events = told({sample_tests, Source}, "all"),
    ?assertEqual([{sum, #{passed => 2, failed => 1, skipped => 0}}], sums(Events)),
    ?assertEqual([unknown], parts(Events)).

%% A group without tests is one of them only if it says so.
tests_that_cannot_run_are_told() ->
    Source = "-module(sample_tests).\n-include_lib(\"eunit/include/eunit.hrl\").\n"
             "first_test() -> ok.\n"
             "skipped_test_() -> {\"skipped: no groff here\", []}.\n"
             "empty_test_() -> {\"nothing\", []}.\n"
             "named_test_() -> {\"a group\", [fun() -> ok end, {\"skipped: it too\", []}]}.\n",
    Events = told({sample_tests, Source}, "all"),
    ?assertEqual([{sum, #{passed => 2, failed => 0, skipped => 2}}], sums(Events)),
    ?assertEqual(["it too", "no groff here"], lists:sort([Why || {skipped, Why} <- Events])).

ct_suite() ->
    {sample_SUITE,
     "-module(sample_SUITE).\n"
     "-export([all/0, groups/0, init_per_group/2, end_per_group/2, end_per_testcase/2, passes/1,\n"
     "         fails/1, ends_badly/1, skips/1]).\n"
     "all() -> [{group, skipped}, {group, broken}, {group, outer}, passes, fails, ends_badly,\n"
     "          skips].\n"
     "groups() -> [{skipped, [], [passes]}, {broken, [], [passes]},\n"
     "             {outer, [], [{group, inner}]}, {inner, [], [passes, fails]}].\n"
     "init_per_group(skipped, _) -> {skip, \"not here\"};\n"
     "init_per_group(broken, _) -> error(broken);\n"
     "init_per_group(_, Config) -> Config.\n"
     "end_per_group(_, _) -> ok.\n"
     "end_per_testcase(ends_badly, _) -> error(at_its_end);\n"
     "end_per_testcase(_, _) -> ok.\n"
     "passes(_) -> ok.\nends_badly(_) -> ok.\nfails(_) -> error(on_purpose).\n"
     "skips(_) -> {skip, \"no\"}.\n"}.

%% --- an emulator that runs them ---------------------------------------------------------------

told({Module, Source}, Cases) ->
    Dir = string:trim(os:cmd("mktemp -d")),
    File = filename:join(Dir, atom_to_list(Module)),
    ok = file:write_file(File ++ ".erl", Source),
    {ok, Module} = compile:file(File, [{outdir, Dir}, report]),
    Events = filename:join(Dir, "events"),
    _ = run(["-noinput", "-pa", Dir, filename:dirname(code:which(suite_run)),
             "-eval", lists:flatten(call(Module, Dir, Cases, Events))]),
    Told = case file:consult(Events) of
               {ok, Terms} -> Terms;
               {error, enoent} -> []
           end,
    ok = file:del_dir_r(Dir),
    Told.

call(sample_tests, _Dir, _All, Events) ->
    io_lib:format("suite_run:eunit([sample_tests], ~p).", [Events]);
call(sample_SUITE, Dir, Cases, Events) ->
    io_lib:format("suite_run:ct(sample_SUITE, ~p, ~s, ~p).", [Dir, Cases, Events]).

run(Arguments) ->
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, Arguments}, exit_status, stderr_to_stdout, hide]),
    wait(Port).

wait(Port) ->
    receive
        {Port, {data, _}} -> wait(Port);
        {Port, {exit_status, Status}} -> Status
    after ?SECONDS * 1000 -> error(no_end)
    end.

tells(Events, Case, Words) ->
    [Why | _] = [Why || {failed, {_, Name}, _Text, Why} <- Events, Name =:= Case],
    string:find(Why, Words) =/= nomatch.

sums(Events) -> [Sum || {sum, _} = Sum <- Events].

parts(Events) -> [Part || {failed, Part, _Text, _Why} <- Events].
