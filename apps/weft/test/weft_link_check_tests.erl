%% SPDX-License-Identifier: Apache-2.0
-module(weft_link_check_tests).
-include_lib("eunit/include/eunit.hrl").

checks_are_late_only_at_rest_and_until_a_lane_is_used_test_() ->
    with(50, 3600000,
         [?_assertEqual(checked, within(20000, weft_link_check:first())),
          ?_assertEqual(checked, within(20000, weft_link_check:soon(weft_link_check:first()))),
          ?_assertEqual(not_checked, within(200, at_rest())),
          ?_assertEqual(checked, within(20000, weft_link_check:soon(at_rest())))]).

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
    with(50, 400, {timeout, 60, fun a_check_is_put_off_by_what_is_heard/0}).

%% For 1600 ms at most. Any limit will do here: without its own it would go on for ever.
a_check_is_put_off_by_what_is_heard() ->
    BeganMs = now_ms(),
    Heard = fun Again(Check) ->
                receive keepalive -> now_ms() - BeganMs
                after 100 -> Again(weft_link_check:later(Check))
                end
            end,
    ?assert(Heard(at_rest()) =< 20000),
    ?assert(put_off_ms(10) >= 500).

%% From one word of the peer to the check. None is put off beyond a multiple of 1600 ms, and one
%% that is due is not put off any more. So a try begins with such a multiple; where the machine was
%% slow from there on, there is another one.
put_off_ms(Tries) when Tries > 0 ->
    NowMs = now_ms(),
    FromMs = weft_period:next_ms(NowMs, 1600),
    receive after FromMs - NowMs -> ok end, % pacing: until then
    Resting = at_rest(),
    HeardMs = now_ms(),
    _ = weft_link_check:later(Resting),
    IsInTime = now_ms() < FromMs + 400,
    PutOffMs = receive keepalive -> now_ms() - HeardMs after 20000 -> error(not_checked) end,
    case IsInTime of
        true -> PutOffMs;
        false -> put_off_ms(Tries - 1)
    end.

a_check_that_is_soon_is_not_put_off_test_() ->
    with(50, 3600000,
         ?_assertEqual(checked, within(20000, weft_link_check:later(weft_link_check:first())))).

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

now_ms() -> erlang:monotonic_time(millisecond).

with(KeepaliveMs, IdleMs, Tests) ->
    {setup,
     fun() ->
             application:set_env(weft, keepalive_ms, KeepaliveMs),
             application:set_env(weft, idle_keepalive_ms, IdleMs)
     end,
     fun(_) -> [application:unset_env(weft, Key) || Key <- [keepalive_ms, idle_keepalive_ms]] end,
     Tests}.
