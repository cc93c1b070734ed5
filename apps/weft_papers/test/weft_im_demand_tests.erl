%% SPDX-License-Identifier: Apache-2.0
-module(weft_im_demand_tests).

-include_lib("eunit/include/eunit.hrl").

settings(Other) ->
    maps:merge(#{count => 2, seed => 1, scale => 0.02, warm_up_ms => 0, run_ms => 15000}, Other).

per_min(Other) -> weft_im_demand:typed_per_min(settings(Other)).

%% A conversation has 13 to 60 messages, of which all but the first are typed, for 1 to 20 seconds.
people_say_what_they_type_on_average_test() ->
    OfOne = 36.5 / (35.5 * 10.5 * 0.02) * 60,
    Typed = per_min(#{count => 80, warm_up_ms => 20000, run_ms => 60000}),
    ?assert(abs(Typed / (40 * OfOne) - 1) < 0.02),
    Faster = per_min(#{count => 80, warm_up_ms => 10000, run_ms => 30000, scale => 0.01}),
    ?assert(abs(Faster / (80 * OfOne) - 1) < 0.02).

%% Two who talk: the times of the first conversation, added up from its script.
only_what_is_said_in_the_measured_time_counts_test() ->
    Script = weft_im_script:new(1, {<<"tc1">>, <<"tc2">>, 0}, 0.02),
    Typing = [TypingMs || Index <- lists:seq(2, weft_im_script:steps(Script)),
                          {_, TypingMs} <- [weft_im_script:line(Index, Script)]],
    {Times, EndMs} = lists:mapfoldl(fun(Ms, At) -> {At, At + Ms} end, 0, Typing),
    All = Times ++ [EndMs],
    [?assertEqual({FromMs, ToMs, length([At || At <- All, FromMs =< At, At < ToMs])},
                  {FromMs, ToMs, round(per_min(#{warm_up_ms => FromMs, run_ms => ToMs - FromMs})
                                       * (ToMs - FromMs) / 60000)})
     || {FromMs, ToMs} <- [{0, 1}, {0, lists:nth(5, All)}, {1, EndMs}, {EndMs div 2, EndMs}]].

%% What is asked of a service is that of the cell, whatever carries it.
each_cell_knows_what_its_people_would_say_test() ->
    [?assert(weft_im_demand:typed_per_min(With#{seed => 1}) > 100 * Count)
     || #{with := #{count := Count} = With} <- weft_im_workload:cells(quick)].
