%% SPDX-License-Identifier: Apache-2.0
-module(weft_period_tests).

-include_lib("eunit/include/eunit.hrl").

periods_end_at_the_same_moments_test_() ->
    [?_assertEqual(NextMs, weft_period:next_ms(NowMs, 1000))
     || {NowMs, NextMs} <- [{0, 1000}, {1, 1000}, {999, 1000}, {1000, 2000}, {-1, 0}, {-999, 0},
                            {-1000, 0}, {-1001, -1000}]].

the_message_comes_at_the_end_of_the_period_test() ->
    BeganMs = erlang:monotonic_time(millisecond),
    _ = weft_period:send(200, over),
    receive over -> ok after 5000 -> error(nothing_came) end,
    ?assert(erlang:monotonic_time(millisecond) >= weft_period:next_ms(BeganMs, 200)).
