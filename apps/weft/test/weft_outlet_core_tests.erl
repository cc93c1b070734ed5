%% SPDX-License-Identifier: Apache-2.0
-module(weft_outlet_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SMALL, 100).
-define(LARGE, 20000).
-define(MIB, 1048576).
-define(PINS, 1).

%% --- past the queue ---------------------------------------------------------------------------

small_frames_go_past_the_queue_test() ->
    {all, Payload, Bytes, Outlet} = at_once(all, with([frame(?SMALL, 1), frame(?SMALL, 2)])),
    ?assertEqual({[1, 2], iolist_size(Payload)}, {weft_test_frames:marks(Payload), Bytes}),
    ?assertEqual({[], 0}, {weft_outlet_core:awaits(Outlet), weft_outlet_core:queued_bytes(Outlet)}).

the_frame_behind_them_is_sent_next_test() ->
    Last = frame(?SMALL, 3),
    {more, Payload, _, Outlet} = at_once(all, with([frame(?SMALL, 1), frame(?LARGE, 2), Last])),
    ?assertEqual([1], weft_test_frames:marks(Payload)),
    ?assertEqual({[Last], ?LARGE + 4}, {weft_outlet_core:handle(Outlet),
                                        weft_outlet_core:queued_bytes(Outlet)}),
    ?assertEqual([2], taken(Outlet)).

a_large_frame_does_not_go_past_the_queue_test() ->
    {none, Outlet} = at_once(all, with([frame(?LARGE, 1)])),
    ?assertEqual([1], taken(Outlet)).

no_more_goes_past_the_queue_than_a_payload_has_test() ->
    {more, _, Bytes, Outlet} = at_once(all, with([frame(16000, N) || N <- lists:seq(1, 9)])),
    ?assertEqual({5 * 16004, 4}, {Bytes, length(weft_outlet_core:handle(Outlet))}),
    ?assert(weft_outlet_core:to_fetch(Outlet)).

%% What waits or has to be repeated is first, and classes that have changed are read first.
nothing_goes_past_what_comes_first_test() ->
    Frames = [frame(?SMALL, 1)],
    Idle = with(Frames),
    Waits = weft_outlet_core:connected(Frames, fetched(with([frame(?SMALL, 2)]))),
    Pinned = weft_outlet_core:repinned(?PINS, #{1 => control}, Idle),
    Before = weft_outlet_core:repinned(?PINS - 1, #{}, Idle),
    ?assertMatch({all, _, _, _}, at_once(all, Idle)),
    [?assertEqual({none, weft_outlet_core:more(Outlet)}, at_once(Room, Outlet))
     || {Room, Outlet} <- [{none, Idle}, {express, Idle}, {bypass, Idle}, {all, Waits},
                           {all, Pinned}, {all, Before}]].

%% --- fetching and sending ---------------------------------------------------------------------

%% A notification is asked for then, and not before.
who_has_frames_is_awaited_once_all_are_fetched_test() ->
    Told = weft_outlet_core:more(with([frame(?SMALL, 1)])),
    ?assertEqual({true, none}, fetches_and_awaits(Told)),
    ?assertEqual({false, []}, fetches_and_awaits(fetched(Told))),
    Many = [frame(?LARGE, N) || N <- lists:seq(1, 700)],
    ?assertEqual({true, none}, fetches_and_awaits(fetched(with(Many)))),
    ?assertEqual({false, none}, fetches_and_awaits(fetched(with(10, Many)))),
    ?assertEqual({false, none}, fetches_and_awaits(weft_outlet_core:new(?MIB, false))).

fetches_and_awaits(Outlet) ->
    {weft_outlet_core:to_fetch(Outlet), weft_outlet_core:awaits(Outlet)}.

nothing_is_taken_without_room_test() ->
    Outlet = fetched(with([frame(?SMALL, 1)])),
    ?assertEqual({true, false, empty}, {weft_outlet_core:ready(all, Outlet),
                                        weft_outlet_core:ready(none, Outlet),
                                        weft_outlet_core:take(none, ?MIB, Outlet)}).

%% Then another sender has its turn, though the message goes on. All is fetched, in three times.
a_message_in_progress_goes_on_for_sixteen_windows_test() ->
    Window = 131072,
    Message = [{iolist_size(F), F}
               || Left <- lists:seq(64, 1, -1),
                  F <- [weft_test_frames:fragment(1, 1, {case Left of 64 -> first; _ -> later end,
                                                         Left}, 1, 65536)]],
    Others = [{iolist_size(F), F} || _ <- lists:seq(1, 9),
                                     F <- [weft_test_frames:whole(2, 2, 131072)]],
    InARow = in_a_row(1, Window, fetched(fetched(fetched(with(Message ++ Others))))),
    ?assert(InARow >= 16 * Window),
    ?assert(InARow =< 18 * Window).

in_a_row(Mark, Window, Outlet0) ->
    {Payload, Bytes, _, Outlet} = weft_outlet_core:take(all, Window, Outlet0),
    case lists:usort(weft_test_frames:marks(Payload)) of
        [Mark] -> Bytes + in_a_row(Mark, Window, Outlet);
        _ -> 0
    end.

%% --- senders ----------------------------------------------------------------------------------

who_sends_more_than_its_share_is_suspended_and_resumed_test() ->
    Flooded = fetched(with(flood())),
    {[{suspend, 1}], Suspended} = weft_outlet_core:effects(Flooded),
    ?assertEqual(none, weft_outlet_core:effects(Suspended)),
    ?assertEqual([{resume, 1}], effects_of_emptying(Suspended)).

%% It may say that it is not to be suspended, or be resumed before it has said anything.
a_sender_with_the_flag_is_asked_first_test() ->
    New = weft_outlet_core:new(64 * ?MIB, true),
    {[{ask, 1}], Asked} =
        weft_outlet_core:effects(fetched(weft_outlet_core:connected(flood(), New))),
    {true, Suspended} = weft_outlet_core:may_suspend(1, Asked),
    ?assertMatch({false, _}, weft_outlet_core:may_suspend(1, Suspended)),
    ?assertEqual([{resume, 1}], effects_of_emptying(Suspended)),
    ?assertEqual([], effects_of_emptying(Asked)).

effects_of_emptying(Outlet0) ->
    case weft_outlet_core:take(all, ?MIB, Outlet0) of
        {_, _, _, Outlet} ->
            {Effects, Next} = case weft_outlet_core:effects(Outlet) of
                                  none -> {[], Outlet};
                                  Some -> Some
                              end,
            Effects ++ effects_of_emptying(Next);
        empty ->
            []
    end.

flood() -> [frame(?LARGE, 1) || _ <- lists:seq(1, 100)].

%% --- outlets and frames -----------------------------------------------------------------------

with(Frames) -> with(64 * ?MIB, Frames).

with(QueueBytes, Frames) ->
    weft_outlet_core:connected(Frames,
                               weft_outlet_core:repinned(?PINS, #{},
                                                         weft_outlet_core:new(QueueBytes, false))).

at_once(Room, Outlet) -> weft_outlet_core:at_once(Room, fun out/1, ?PINS, Outlet).

fetched(Outlet) -> weft_outlet_core:fetch(fun out/1, Outlet).

taken(Outlet) ->
    {Payload, _, _, _} = weft_outlet_core:take(all, ?MIB, Outlet),
    weft_test_frames:marks(Payload).

%% The mark is the sender, too.
frame(Size, Sender) -> {Size, weft_test_frames:whole(Sender, Sender, Size)}.

out([{Size, Data} | Left]) -> {Size, Data, Left};
out([]) -> none.
