%% SPDX-License-Identifier: Apache-2.0
-module(weft_link_check_tests).
-include_lib("eunit/include/eunit.hrl").

checks_are_late_only_at_rest_and_until_a_lane_is_used_test_() ->
    with(50, 3600000,
         [?_assertEqual(checked, within(200, weft_link_check:first())),
          ?_assertEqual(checked, within(200, weft_link_check:soon(weft_link_check:first()))),
          ?_assertEqual(not_checked, within(200, at_rest())),
          ?_assertEqual(checked, within(200, weft_link_check:soon(at_rest())))]).

%% One message and no more, also if that of the late check was on its way already.
a_check_comes_once_test_() ->
    with(50, 50,
         fun() ->
                 Check = at_rest(),
                 receive keepalive -> self() ! keepalive end,
                 Soon = weft_link_check:soon(Check),
                 ?assertEqual([checked, not_checked], [within(200, Soon) || _ <- [1, 2]])
         end).

%% Each time by a quarter more than the time of rest, but not for ever.
a_check_is_put_off_by_what_is_heard_test_() ->
    with(50, 400,
         fun() ->
                 Began = erlang:monotonic_time(millisecond),
                 Heard = fun Again(Check) ->
                             receive keepalive -> erlang:monotonic_time(millisecond) - Began
                             after 100 -> Again(weft_link_check:later(Check))
                             end
                         end,
                 LastedMs = Heard(at_rest()),
                 ?assert(LastedMs =< 4 * 400 + 150),
                 Check = weft_link_check:later(at_rest()),
                 ?assertEqual([not_checked, checked], [within(Ms, Check) || Ms <- [300, 400]])
         end).

a_check_that_is_soon_is_not_put_off_test_() ->
    with(50, 3600000,
         ?_assertEqual(checked, within(200, weft_link_check:later(weft_link_check:first())))).

at_rest() ->
    Before = weft_link_check:first(),
    receive keepalive -> weft_link_check:next(true, Before) end.

%% What a link has used before its lanes come to rest is given back, once.
memory_is_given_back_at_rest_test_() ->
    with(50, 3600000,
         fun() ->
                 Check = weft_link_check:first(),
                 Garbage = lists:seq(1, 100000),
                 ?assertEqual(100000, length(Garbage)),
                 {memory, Before} = process_info(self(), memory),
                 _ = weft_link_check:next(true, Check),
                 {memory, After} = process_info(self(), memory),
                 ?assert(After < Before div 2)
         end).

within(Ms, _Check) ->
    receive keepalive -> checked after Ms -> not_checked end.

with(KeepaliveMs, IdleMs, Tests) ->
    {setup,
     fun() ->
             application:set_env(weft, keepalive_ms, KeepaliveMs),
             application:set_env(weft, idle_keepalive_ms, IdleMs)
     end,
     fun(_) -> [application:unset_env(weft, Key) || Key <- [keepalive_ms, idle_keepalive_ms]] end,
     Tests}.
