%% SPDX-License-Identifier: Apache-2.0
%% @doc What is unsteady each time is no accident.
-module(suite_history_tests).

-include_lib("eunit/include/eunit.hrl").

-define(UNSTEADY, {run, ["a", "b"], [{"a", "one"}]}).
-define(STEADY, {run, ["a", "b"], []}).
-define(OF_ANOTHER, {run, ["b"], []}).

three_times_in_a_row_is_a_habit_test() ->
    ?assertEqual(habit, judged("one", [?STEADY, ?UNSTEADY, ?UNSTEADY, ?UNSTEADY])).

two_times_are_none_test() ->
    ?assertEqual(accident, judged("one", [?UNSTEADY, ?UNSTEADY])).

a_steady_run_ends_it_test() ->
    ?assertEqual(accident, judged("one", [?UNSTEADY, ?UNSTEADY, ?UNSTEADY, ?STEADY])).

runs_without_the_suite_do_not_count_test() ->
    ?assertEqual(habit, judged("one", [?UNSTEADY, ?UNSTEADY, ?OF_ANOTHER, ?UNSTEADY,
                                       ?OF_ANOTHER])).

another_case_is_not_it_test() ->
    ?assertEqual(accident, judged("two", [?UNSTEADY, ?UNSTEADY, ?UNSTEADY])).

judged(Case, Runs) ->
    suite_history:judge("a", Case, [], Runs).

%% A fresh clone has no history; another suite may have a case of the same name.
what_has_a_row_may_not_be_unsteady_again_test_() ->
    [?_assertEqual({Verdict, Suite, Case},
                   {suite_history:judge(Suite, Case, [{"a", "one"}, {"b", "two"}], Runs), Suite,
                    Case})
     || {Verdict, Suite, Case, Runs} <-
            [{known, "a", "one", []}, {known, "a", "one", [?STEADY, ?STEADY, ?STEADY]},
             {habit, "a", "one", [?UNSTEADY, ?UNSTEADY, ?UNSTEADY]}, {accident, "a", "two", []},
             {accident, "b", "one", []}]].

what_is_written_is_read_test() ->
    File = file(),
    ?assertEqual([], suite_history:read(File)),
    ok = suite_history:add(File, ?UNSTEADY, []),
    ok = suite_history:add(File, ?STEADY, suite_history:read(File)),
    ?assertEqual([?UNSTEADY, ?STEADY], suite_history:read(File)),
    ok = file:write_file(File, "{run, [\"a"),
    ?assertEqual([], suite_history:read(File)),
    ok = file:delete(File).

old_runs_are_forgotten_test() ->
    File = file(),
    [ok = suite_history:add(File, ?STEADY, suite_history:read(File)) || _ <- lists:seq(1, 30)],
    ?assertEqual(20, length(suite_history:read(File))),
    ok = file:delete(File).

a_cause_is_told_of_its_case_only_test() ->
    Config = [{first, "a"}, {unsteady, "a", "one", "busy"}, {unsteady, "b", any, "not found"}],
    ?assertEqual(["busy"], suite_history:causes("a", "one", Config)),
    ?assertEqual([], suite_history:causes("a", "two", Config)),
    ?assertEqual(["not found"], suite_history:causes("b", "two", Config)).

%% A case is named as the run does: by a string, which ends with a function of the suite.
known_causes_are_of_cases_that_there_are_test() ->
    {ok, Config} = file:consult("test/suites.config"),
    ?assertEqual([], [{Suite, Case} || {unsteady, Suite, Case, _Cause} <- Config, Case =/= any,
                                       not has_case(Suite, Case)]).

has_case("ct " ++ Path, Case) when is_list(Case) ->
    {ok, Source} = file:read_file(Path ++ ".erl"),
    Function = lists:last(string:lexemes(Case, ".")),
    re:run(Source, ["^", Function, "\\("], [multiline]) =/= nomatch;
has_case("eunit " ++ _Dir, Case) ->
    is_list(Case);
has_case(_Suite, _Case) ->
    false.

file() ->
    string:trim(os:cmd("mktemp -u")).
