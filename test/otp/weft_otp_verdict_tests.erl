%% SPDX-License-Identifier: Apache-2.0
%% @doc What counts as a difference from stock, and what the list of accepted ones may say.
-module(weft_otp_verdict_tests).

-include_lib("eunit/include/eunit.hrl").

%%% Differences

a_case_that_passes_on_stock_only_is_a_difference_with_its_reason_test() ->
    Stock = #{a => passed(), b => passed(), c => passed()},
    Variant = #{a => passed(), b => failed("timetrap"), c => skipped("no")},
    ?assertEqual([#{'case' => b, status => failed, reason => "timetrap", groups => [none]},
                  #{'case' => c, status => skipped, reason => "no", groups => [none]}],
                 weft_otp_verdict:differences(Stock, Variant, done)).

what_fails_or_is_skipped_on_stock_is_no_difference_test() ->
    Stock = #{a => failed("no network"), b => skipped("no")},
    ?assertEqual([], weft_otp_verdict:differences(Stock, #{a => passed()}, done)).

a_case_that_did_not_run_is_a_difference_with_the_reason_of_the_end_test() ->
    Stock = #{a => (passed())#{groups := [g]}},
    ?assertEqual([#{'case' => a, status => not_run, reason => "ended after 5 minutes",
                    groups => [g]}],
                 weft_otp_verdict:differences(Stock, #{}, "ended after 5 minutes")).

%%% The list

a_listed_difference_is_accepted_and_any_other_unexpected_test() ->
    Variant = #{a => failed("x"), b => failed("y")},
    [A, B] = weft_otp_verdict:differences(#{a => passed(), b => passed()}, Variant, done),
    ?assertEqual(#{accepted => [{A, "why"}], unexpected => [B], stale => []},
                 weft_otp_verdict:judge([A, B], Variant, #{a => "why"})).

a_listed_case_that_passes_is_stale_and_one_that_did_not_run_is_not_test() ->
    ?assertMatch(#{accepted := [], unexpected := [], stale := [a]},
                 weft_otp_verdict:judge([], #{a => passed()}, #{a => "why", b => "why"})).

a_listed_case_that_stock_fails_as_well_says_nothing_test() ->
    Variant = #{a => failed("x")},
    Differences = weft_otp_verdict:differences(#{a => failed("x")}, Variant, done),
    ?assertEqual(#{accepted => [], unexpected => [], stale => []},
                 weft_otp_verdict:judge(Differences, Variant, #{a => "why"})).

the_list_is_by_suite_and_variant_test() ->
    Entries = [{accepted, pg, a, [weft, to_weft], "one"}, {accepted, pg, b, [weft], "two"}],
    ?assertEqual(#{{pg, weft} => #{a => "one", b => "two"}, {pg, to_weft} => #{a => "one"}},
                 weft_otp_verdict:accepted(Entries)).

a_list_that_is_wrong_is_refused_test_() ->
    [?_assertError({Why, _}, weft_otp_verdict:accepted([Entry]))
     || {Why, Entry} <- [{no_accepted_difference, {accepted, pg, a, [weft], ""}},
                         {no_accepted_difference, {accepted, pg, a, [], "why"}},
                         {unknown_variant, {accepted, pg, a, [stock], "why"}}]].

an_entry_may_be_there_once_only_test() ->
    Entry = {accepted, pg, a, [weft], "why"},
    ?assertError({listed_twice, {pg, weft}, a}, weft_otp_verdict:accepted([Entry, Entry])).

%%% Numbers, and what runs again

preparation_of_a_suite_is_not_counted_test() ->
    Results = #{a => passed(), b => failed("x"), c => skipped("y"), init_per_group => failed("z")},
    ?assertEqual({1, 1, 1}, weft_otp_verdict:counts(Results)).

cases_run_again_in_each_of_their_groups_test() ->
    Difference = fun(Case, Groups) ->
                         #{'case' => Case, status => failed, reason => "", groups => Groups}
                 end,
    ?assertEqual([{g, [a, b]}, {none, [c]}],
                 weft_otp_verdict:again([Difference(a, [g]), Difference(b, [g]),
                                         Difference(c, [none])])).

%%% What the hook tells

the_worst_of_several_results_of_a_case_counts_test() ->
    Events = [{a, g, passed, ""}, {a, h, failed, "x"}, {a, i, passed, ""}, {b, none, passed, ""},
              {b, none, skipped, "y"}],
    ?assertEqual(#{a => #{status => failed, reason => "x", groups => [g, h, i]},
                   b => #{status => skipped, reason => "y", groups => [none]}},
                 results(Events)).

a_suite_that_told_nothing_has_no_results_test() ->
    ?assertEqual(#{}, weft_otp_run:results("no-such-file")).

%%% Makefiles of data

variables_of_a_makefile_are_filled_in_test() ->
    Text = <<"all: a@dll@\n\t@CC@ -I@erl_include@ $@ user@host @unknown@.\n">>,
    ?assertEqual(<<"all: a.so\n\tcc -I/include $@ user@host .\n">>,
                 iolist_to_binary(weft_otp_build:filled_in(
                     Text, #{"dll" => ".so", "CC" => "cc", "erl_include" => "/include"}))).

passed() -> #{status => passed, reason => "", groups => [none]}.

failed(Reason) -> #{status => failed, reason => Reason, groups => [none]}.

skipped(Reason) -> #{status => skipped, reason => Reason, groups => [none]}.

results(Events) ->
    File = string:trim(os:cmd("mktemp")),
    ok = file:write_file(File, [io_lib:format("~p.~n", [Event]) || Event <- Events]),
    Results = weft_otp_run:results(File),
    ok = file:delete(File),
    Results.
