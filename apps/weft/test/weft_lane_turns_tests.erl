%% SPDX-License-Identifier: Apache-2.0
%% @doc No lane is forgotten or in two places, whatever comes and goes; what bypasses others has a
%% lane of its own if there are several.
-module(weft_lane_turns_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(LARGE, 20000).
-define(SMALL, 100).

lanes_are_kept_count_of_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_lanes(), [{numtests, 2000}, quiet]))}.

%% Lanes that there are, those that are busy, and what the module says.
prop_lanes() ->
    ?FORALL(Steps, list(step()),
            begin
                _ = lists:foldl(fun step/2, {[1], [], weft_lane_turns:new([1], [])}, Steps),
                true
            end).

step() ->
    oneof([{send, oneof([in_order, bypass]), oneof([?LARGE, ?SMALL]), oneof([free, free, busy])},
           {free, range(1, 5)}, {lanes, ?LET(L, non_empty(list(range(1, 5))), lists:usort(L))},
           spare]).

step(Step, State) ->
    {Lanes, Busy, Turns} = Next = done(Step, State),
    Lanes = lists:sort(weft_lane_turns:all(Turns)),
    true = not weft_lane_turns:can(in_order, Turns) orelse weft_lane_turns:can(bypass, Turns),
    %% All can be used but for the one that is kept.
    case length(Lanes -- Busy) of
        0 -> false = weft_lane_turns:can(bypass, Turns);
        1 -> true = weft_lane_turns:can(bypass, Turns);
        _ -> true = weft_lane_turns:can(in_order, Turns)
    end,
    Next.

done({send, Order, Bytes, Outcome}, {Lanes, Busy, Turns0} = State) ->
    case weft_lane_turns:can(Order, Turns0) of
        true ->
            {Lane, Turns} = weft_lane_turns:lane(Order, Turns0),
            true = lists:member(Lane, Lanes -- Busy),
            {Lanes, [Lane || Outcome =:= busy] ++ Busy,
             weft_lane_turns:sent(Lane, Bytes, Outcome, Turns)};
        false ->
            State
    end;
done({free, Lane}, {Lanes, Busy, Turns}) ->
    {Lanes, lists:delete(Lane, Busy), weft_lane_turns:free(Lane, Turns)};
done({lanes, Now}, {Lanes, Busy, Turns0}) ->
    {New, Lost, Turns} = weft_lane_turns:change(Now, Turns0),
    ?assertEqual({Now -- Lanes, Lanes -- Now}, {New, lists:sort(Lost)}),
    {Now, [Lane || Lane <- Busy, lists:member(Lane, Now)], Turns};
done(spare, {Lanes, Busy, Turns}) ->
    {Lanes, Busy, weft_lane_turns:spare(Turns)}.

large_payloads_take_turns_and_small_ones_do_not_test() ->
    {Large, _} = sent(4, in_order, ?LARGE, weft_lane_turns:new([a, b, c], [])),
    ?assertEqual([a, b, c, a], Large),
    {Small, _} = sent(3, in_order, ?SMALL, weft_lane_turns:new([a, b, c], [])),
    ?assertEqual([a, a, a], Small).

what_bypasses_others_has_its_lane_while_it_is_used_test() ->
    {[a, a], Kept} = sent(2, bypass, ?SMALL, weft_lane_turns:new([a, b, c], [])),
    {Others, Next} = sent(4, in_order, ?LARGE, Kept),
    ?assertEqual([b, c, b, c], Others),
    {[a], Used} = sent(1, bypass, ?LARGE, weft_lane_turns:spare(Next)),
    {_, Again} = sent(1, in_order, ?SMALL, weft_lane_turns:spare(weft_lane_turns:spare(Used))),
    {After, _} = sent(3, in_order, ?LARGE, Again),
    ?assertEqual([a, b, c], lists:sort(After)).

one_lane_is_for_all_test() ->
    {[a, a], Turns} = sent(2, bypass, ?SMALL, weft_lane_turns:new([a], [])),
    ?assertMatch({[a], _}, sent(1, in_order, ?SMALL, Turns)),
    {[b], Kept} = sent(1, bypass, ?SMALL, weft_lane_turns:new([b, c], [])),
    {[], [c], Left} = weft_lane_turns:change([b], Kept),
    ?assertMatch({[b], _}, sent(1, in_order, ?SMALL, Left)).

%% Its lane is busy: then any other.
what_bypasses_others_does_not_wait_for_its_lane_test() ->
    {a, Turns} = weft_lane_turns:lane(bypass, weft_lane_turns:new([a, b, c], [])),
    Busy = weft_lane_turns:sent(a, ?SMALL, busy, Turns),
    ?assertMatch({[b], _}, sent(1, bypass, ?SMALL, Busy)),
    ?assertMatch({[a], _}, sent(1, bypass, ?SMALL, weft_lane_turns:free(a, Busy))).

sent(0, _Order, _Bytes, Turns) ->
    {[], Turns};
sent(Count, Order, Bytes, Turns0) ->
    {Lane, Turns1} = weft_lane_turns:lane(Order, Turns0),
    {Lanes, Turns} = sent(Count - 1, Order, Bytes, weft_lane_turns:sent(Lane, Bytes, free, Turns1)),
    {[Lane | Lanes], Turns}.

%% What the window allows, while there is a lane for it; beside what is repeated, and on the kept
%% lane alone, only what bypasses others.
room_is_that_of_the_window_and_the_lanes_test() ->
    Idle = weft_lane_turns:new([a, b], []),
    {b, Kept} = weft_lane_turns:lane(bypass, weft_lane_turns:new([b], [a])),
    Busy = weft_lane_turns:new([], [a, b]),
    [?assertEqual(Room, weft_lane_turns:room(Room, false, Idle))
     || Room <- [all, express, bypass, none]],
    ?assertEqual([bypass, none], [weft_lane_turns:room(Room, true, Idle) || Room <- [all, none]]),
    ?assertEqual([bypass, none], [weft_lane_turns:room(Room, false, Kept) || Room <- [all, none]]),
    ?assertEqual(none, weft_lane_turns:room(all, false, Busy)).
