%% SPDX-License-Identifier: Apache-2.0
%% @doc What counts as the same result of a suite.
-module(weft_migrate_suites_tests).

-include_lib("eunit/include/eunit.hrl").

results_are_those_that_are_told_last_test() ->
    File = string:trim(os:cmd("mktemp")),
    ok = file:write_file(File, "{a, none, passed, \"\"}.\n{a, none, failed, \"no\"}.\n"
                               "{b, g, passed, \"\"}.\n{b, g, passed, \"\"}.\n"
                               "{c, g, skipped, \"why\"}.\n"),
    Results = weft_migrate_suites:results(File),
    ok = file:delete(File),
    ?assertEqual(#{{a, none} => [{failed, "no"}], {b, g} => [{passed, ""}, {passed, ""}],
                   {c, g} => [{skipped, "why"}]}, Results),
    ?assertEqual(#{}, weft_migrate_suites:results(File)).

same_cases_have_to_end_in_the_same_way_test_() ->
    Passed = [{passed, ""}],
    Failed = [{failed, "x"}],
    [?_assertEqual(Different, weft_migrate_suites:different(Before, After))
     || {Before, After, Different} <-
            [{#{a => Passed}, #{a => Passed}, []},
             {#{a => Failed}, #{a => [{failed, "y"}]}, []},
             {#{a => Passed, b => Passed}, #{a => Passed}, [{b, Passed, []}]},
             {#{a => Passed}, #{a => Failed}, [{a, Passed, Failed}]},
             {#{a => Passed}, #{a => Passed ++ Passed}, [{a, Passed, Passed ++ Passed}]}]].
