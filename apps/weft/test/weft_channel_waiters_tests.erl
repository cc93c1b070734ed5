%% SPDX-License-Identifier: Apache-2.0
%% @doc Who may go on when there is room in the queue of a channel again, and who has to wait.
-module(weft_channel_waiters_tests).

-include_lib("eunit/include/eunit.hrl").

-define(W, weft_channel_waiters).
%% Callers are woken from half of it on. What one that is woken is taken to send is 16384 bytes at
%% that half, and less where less is left to send.
-define(LIMIT, 100000).

%% Each in a process of its own, which has the callers and the timers of no other test.
waiters_test_() ->
    [{spawn, Test}
     || Test <- [fun below_half_of_the_limit_nobody_waits/0,
                 fun above_half_of_the_limit_all_wait/0, fun as_many_go_on_as_have_room/0,
                 fun a_large_message_leaves_room_for_fewer/0,
                 fun all_go_on_when_nothing_is_left_to_send/0,
                 fun nothing_that_is_freed_wakes_nobody/0,
                 fun what_is_freed_is_counted_if_nobody_waits/0,
                 fun who_has_given_up_is_not_woken/0,
                 fun callers_of_a_queue_that_drops_go_on_above_its_limit/0,
                 fun others_are_woken_for_those_that_have_ended/0,
                 fun there_is_one_timer_at_a_time/0, fun what_nobody_claims_is_freed/0,
                 fun what_is_on_its_way_is_not_freed/0, fun a_former_state_goes_on/0]].

below_half_of_the_limit_nobody_waits() ->
    [A] = callers(1),
    ?assertEqual([A], woken(in([A], waiters(?LIMIT div 2, block)))).

above_half_of_the_limit_all_wait() ->
    ?assertEqual([], woken(in(callers(2), waiters(?LIMIT div 2 + 1, block)))).

%% 50,000 bytes, 66,384, 82,768, and 99,152 after the third.
as_many_go_on_as_have_room() ->
    Callers = callers(6),
    Waiters = in(Callers, waiters(?LIMIT div 2 + 100, block)),
    ?assertEqual(lists:sublist(Callers, 4), woken(?W:freed(100, Waiters))).

a_large_message_leaves_room_for_fewer() ->
    [A, B, C] = callers(3),
    Waiters = ?W:in(C, 10, ?W:in(B, 60000, in([A], waiters(?LIMIT div 2 + 1, block)))),
    ?assertEqual([A, B], woken(?W:freed(1, Waiters))).

all_go_on_when_nothing_is_left_to_send() ->
    Callers = callers(100),
    ?assertEqual(Callers, woken(?W:freed(?LIMIT, in(Callers, waiters(?LIMIT, block))))).

nothing_that_is_freed_wakes_nobody() ->
    Bytes = counter(?LIMIT),
    Waiters = in(callers(1), ?W:new(Bytes, channel(block))),
    ok = atomics:put(Bytes, 1, 0),
    ?assertEqual([], woken(?W:freed(0, Waiters))).

what_is_freed_is_counted_if_nobody_waits() ->
    Bytes = counter(?LIMIT),
    _ = ?W:freed(1000, ?W:new(Bytes, channel(block))),
    ?assertEqual(?LIMIT - 1000, atomics:get(Bytes, 1)).

who_has_given_up_is_not_woken() ->
    [A, B, C] = callers(3),
    Waiters = in([A, B, C], waiters(?LIMIT, block)),
    ?assertEqual([A, C], woken(?W:freed(?LIMIT, ?W:out(B, Waiters)))).

%% The queue of those that drop the oldest is full all the time.
callers_of_a_queue_that_drops_go_on_above_its_limit() ->
    [A] = callers(1),
    Waiters = in([A], waiters(?LIMIT * 3 div 2 + 1, drop_oldest)),
    ?assertEqual([], woken(Waiters)),
    ?assertEqual([A], woken(?W:freed(1, Waiters))).

%% They have added nothing, so no bytes will be freed any more.
others_are_woken_for_those_that_have_ended() ->
    Callers = callers(6),
    Some = ?W:freed(1, in(Callers, waiters(?LIMIT div 2 + 1, block))),
    ?assertEqual(lists:sublist(Callers, 4), woken(Some)),
    ?assertEqual(set, timer(30000)),
    ?assertEqual(lists:nthtail(4, Callers), woken(?W:wake_more(Some))),
    ?assertEqual(none, timer(500)).

there_is_one_timer_at_a_time() ->
    Callers = callers(20),
    Some = ?W:freed(1, in(Callers, waiters(?LIMIT div 2 + 1, block))),
    More = ?W:out(lists:last(Callers), Some),
    ?assertEqual({set, none}, {timer(30000), timer(500)}),
    _ = ?W:wake_more(More),
    ?assertEqual({set, none}, {timer(30000), timer(500)}),
    _ = woken(More).

%% A caller was killed before it gave its message, and others wait for the room.
what_nobody_claims_is_freed() ->
    Bytes = counter(?LIMIT),
    [A] = callers(1),
    Waiters = in([A], ?W:new(Bytes, channel(block))),
    {?LIMIT, Once} = ?W:unclaimed(0, Waiters),
    ?assertEqual({[], ?LIMIT}, {woken(Once), atomics:get(Bytes, 1)}),
    {0, Twice} = ?W:unclaimed(?LIMIT, Once),
    ?assertEqual({[A], 0}, {woken(Twice), atomics:get(Bytes, 1)}).

%% It has not been there since the last look, or is there no more.
what_is_on_its_way_is_not_freed() ->
    Bytes = counter(300),
    Waiters = ?W:new(Bytes, channel(block)),
    ?assertMatch({200, _}, ?W:unclaimed(100, Waiters)),
    ?assertEqual(200, atomics:get(Bytes, 1)),
    ok = atomics:put(Bytes, 1, 0),
    ?assertMatch({0, _}, ?W:unclaimed(200, Waiters)),
    ?assertEqual(0, atomics:get(Bytes, 1)).

%% A load of code finds callers that wait.
a_former_state_goes_on() ->
    [A, B, C] = callers(3),
    Queue = queue:from_list([{A, 10}, {B, 10}]),
    Waiters = ?W:of_former_shape(counter(?LIMIT), channel(block), Queue, false),
    ?assertEqual([A, B, C], woken(?W:freed(?LIMIT, in([C], Waiters)))).

waiters(Bytes, Policy) -> ?W:new(counter(Bytes), channel(Policy)).

channel(Policy) -> #{name => c, counters => none, queue_bytes => ?LIMIT, policy => Policy}.

counter(Bytes) ->
    Counter = atomics:new(1, [{signed, true}]),
    ok = atomics:put(Counter, 1, Bytes),
    Counter.

%% All of them are this process.
callers(Count) -> [alias() || _ <- lists:seq(1, Count)].

in(Callers, Waiters) ->
    lists:foldl(fun(Caller, Others) -> ?W:in(Caller, 10, Others) end, Waiters, Callers).

woken(Waiters) ->
    receive {Caller, go} -> [Caller | woken(Waiters)] after 0 -> [] end.

%% One that is set ends after 100 ms.
timer(WithinMs) ->
    receive wake_more -> set after WithinMs -> none end.
