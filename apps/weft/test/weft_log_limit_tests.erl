%% SPDX-License-Identifier: Apache-2.0
%% @doc What lasts is told after a while, and then more and more rarely.
-module(weft_log_limit_tests).

-include_lib("eunit/include/eunit.hrl").

what_passes_soon_is_not_told_test() ->
    {Told, _} = run([{bad, 0}, {bad, 5000}, good, {bad, 10000}, {bad, 15000}]),
    ?assertEqual([], Told).

what_lasts_is_told_at_growing_pauses_of_ten_minutes_at_most_test() ->
    {Told, _} = run([{bad, Ms} || Ms <- lists:seq(0, 3600000, 1000)]),
    ?assertEqual([10, 30, 70, 150, 310, 630, 1230, 1830, 2430, 3030], Told).

what_was_over_starts_anew_test() ->
    {Told, _} = run([{bad, 0}, {bad, 10000}, good, {bad, 11000}, {bad, 20000}, {bad, 21000}]),
    ?assertEqual([10, 10], Told).

subjects_do_not_disturb_each_other_test() ->
    {quiet, Limit0} = weft_log_limit:bad(a, 0, weft_log_limit:new()),
    {quiet, Limit1} = weft_log_limit:bad(b, 10000, Limit0),
    {{tell, 10000}, Limit2} = weft_log_limit:bad(a, 10000, Limit1),
    Limit = weft_log_limit:good(a, Limit2),
    ?assertMatch({{tell, 10000}, _}, weft_log_limit:bad(b, 20000, Limit)).

%% When it was told, in seconds.
run(Events) ->
    lists:foldl(fun(good, {Told, Limit}) -> {Told, weft_log_limit:good(subject, Limit)};
                   ({bad, NowMs}, {Told, Limit0}) ->
                        case weft_log_limit:bad(subject, NowMs, Limit0) of
                            {{tell, Ms}, Limit} -> {Told ++ [Ms div 1000], Limit};
                            {quiet, Limit} -> {Told, Limit}
                        end
                end, {[], weft_log_limit:new()}, Events).
