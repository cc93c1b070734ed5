%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_progress_tests).

-include_lib("eunit/include/eunit.hrl").

what_comes_and_how_long_it_takes_is_told_test() ->
    Progress = weft_bench_progress:new(false, [60000, 65000]),
    _ = weft_bench_progress:next(Progress, "a cell", "9 1/s"),
    ?assertEqual("[1/2] ETA 2:05  a cell  (before: 9 1/s)\n", ?capturedOutput).

elsewhere_than_on_a_terminal_there_is_a_line_now_and_then_test() ->
    Shown = weft_bench_progress:next(weft_bench_progress:new(false, [1, 1]), "first", ""),
    _ = weft_bench_progress:next(weft_bench_progress:done(Shown, 1), "second", ""),
    ?assertEqual(nomatch, string:find(?capturedOutput, "second")).

on_a_terminal_each_is_shown_in_the_same_line_test() ->
    Shown = weft_bench_progress:next(weft_bench_progress:new(true, [1, 1]), "first", ""),
    _ = weft_bench_progress:next(weft_bench_progress:done(Shown, 1), "second", ""),
    Output = ?capturedOutput,
    ?assertEqual(nomatch, string:find(Output, "\n")),
    ?assertNotEqual(nomatch, string:find(Output, "[2/2] ETA 0:00  second")).

%% Ten seconds of work were done in no time, so the others will take none either.
the_estimate_follows_what_was_needed_until_now_test() ->
    Progress = weft_bench_progress:done(weft_bench_progress:new(true, [10000, 60000]), 10000),
    _ = weft_bench_progress:next(Progress, "the rest", ""),
    ?assertNotEqual(nomatch, string:find(?capturedOutput, "ETA 0:00")).
