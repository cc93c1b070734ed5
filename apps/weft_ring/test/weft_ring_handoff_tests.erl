%% SPDX-License-Identifier: Apache-2.0
%% @doc Both ends of a handoff, with counters as data: what is lost or applied twice is in the sum.
%% The messages are lost, doubled and reordered, and either end is killed after any effect.
-module(weft_ring_handoff_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(TRANSFER, {3, {{0, a}, 0}, b}).

%% Each end has what is durable (`store', and `log' or `mark') and a core that dies with it.
%% `fuses': after how many effects more an end is killed. `expected': what was applied for a caller.
-record(world, {sender, store, log = none, receiver, copy = #{}, mark = none, to_receiver = [],
                to_sender = [], timers = [], starts = 1, expected, done = false, ready = false,
                fuses = #{}, killed = 0, refused = 0, options = #{}, clock_ms = -1000}).

%% --- rules ------------------------------------------------------------------------------------

all_items_arrive_test() ->
    #world{copy = Copy, expected = Expected} = ended(world(12, #{}), []),
    ?assertEqual(Expected, Copy).

%% Clocks of real nodes are below zero.
the_first_batch_is_read_at_any_time_test() ->
    {State, _} = weft_ring_handoff_sender_core:init(?TRANSFER, {2, 0, []}, #{}),
    Resume = {message, {handoff, 1, {resume, {0, 1}, session, start, 0}}},
    ?assertMatch({_, [{read, start, 500}]},
                 weft_ring_handoff_sender_core:handle(Resume, -576460752303, State)).

%% The answer was lost on the way. Once the session has begun, it is no question any more.
a_start_that_comes_again_is_answered_again_test() ->
    Start = {message, {handoff, 1, {start, {?TRANSFER, 1}, 7}}},
    S0 = weft_ring_handoff_receiver_core:init(none, #{}),
    {S1, [{clear, _}, Answer]} = weft_ring_handoff_receiver_core:handle(Start, S0),
    {send, {handoff, 1, {resume, 7, Session, start, 0}}} = Answer,
    {S2, [Answer]} = weft_ring_handoff_receiver_core:handle(Start, S1),
    Items = {message, {handoff, 1, {items, Session, 1, [], done, 0}}},
    {S3, [_, _]} = weft_ring_handoff_receiver_core:handle(Items, S2),
    ?assertEqual({S3, []}, weft_ring_handoff_receiver_core:handle(Start, S3)).

an_empty_partition_is_handed_over_test() ->
    ?assertEqual(#{}, (ended(world(0, #{}), []))#world.copy).

%% A receiver that was killed has applied and not acknowledged.
either_end_is_killed_after_each_of_its_effects_test_() ->
    [{atom_to_list(End), {timeout, 60, fun() -> killed_everywhere([End], 1) end}}
     || End <- [sender, receiver]].

both_ends_are_killed_after_any_of_their_effects_test_() ->
    {timeout, 120,
     fun() ->
         [check(ended(world(7, #{sender => A, receiver => B}), updates(5)), {A, B})
          || A <- lists:seq(1, 40), B <- lists:seq(1, 30)]
     end}.

killed_everywhere([End], After) ->
    World = ended(world(12, #{End => After}), updates(20)),
    check(World, {End, After}),
    World#world.killed =:= 0 orelse killed_everywhere([End], After + 1).

check(#world{copy = Copy, expected = Expected}, Where) ->
    ?assertEqual({Where, Expected}, {Where, Copy}).

updates(Count) -> [{I * 5 rem 14, 1000 + I} || I <- lists:seq(1, Count)].

%% Killed between the new attempt and the first update without a log.
a_full_log_and_a_kill_test_() ->
    [{integer_to_list(After), fun() -> killed_with_a_full_log(After) end}
     || After <- lists:seq(1, 12)].

killed_with_a_full_log(After) ->
    Applied = deliver(to_receiver, 0, once, deliver_all(deliver_all(world(1, #{})))),
    ?assertEqual(#{0 => 1}, Applied#world.copy),
    Full = lists:foldl(fun(_, W) -> update({0, 1}, W) end,
                       sender(link_down, Applied#world{to_sender = []}), lists:seq(1, 7)),
    Fused = Full#world{fuses = #{sender => After}},
    check(ended(lists:foldl(fun(_, W) -> update({0, 1}, W) end, Fused, lists:seq(1, 2)), []),
          After).

updates_are_refused_when_all_is_handed_over_test() ->
    World = update({1, 5}, ended(world(3, #{}), [])),
    ?assertEqual(1, World#world.refused).

%% A path that is down: the log grows up to its limit, then all begins anew.
the_log_is_bounded_test() ->
    World0 = lists:foldl(fun(_, W) -> deliver_all(W) end, world(6, #{}), lists:seq(1, 2)),
    Down = sender(link_down, World0#world{to_receiver = [], to_sender = []}),
    Updated = lists:foldl(fun(I, W) ->
                              Next = update({I rem 6, 1}, W),
                              ?assert(weft_ring_handoff_sender_core:log_length(Next#world.sender)
                                          =< 8),
                              Next
                          end, Down, lists:seq(1, 100)),
    ?assertMatch({Attempt, _, _} when Attempt > 1, Updated#world.log),
    check(ended(sender(link_up, Updated), []), the_log_is_bounded).

%% Some updates may be large. One more than fits is in it, as with one alone.
the_log_is_bounded_in_bytes_test() ->
    Large = binary:copy(<<1>>, 300),
    {Sender0, _} = weft_ring_handoff_sender_core:init(?TRANSFER, {2, 0, []},
                                                      #{log_bytes_max => 1000}),
    Update = fun(Number, Op, {Sender, Attempts}) ->
                 {Next, Effects} = weft_ring_handoff_sender_core:handle(
                                     {update, Number, Number, Op}, 0, Sender),
                 {Next, Attempts ++ [Attempt || {reset, Attempt} <- Effects]}
             end,
    {Sender1, []} = lists:foldl(fun(N, Sender) -> Update(N, Large, Sender) end, {Sender0, []},
                                [1, 2, 3, 4]),
    ?assertEqual(4, weft_ring_handoff_sender_core:log_length(Sender1)),
    {Sender2, [3]} = Update(5, small, {Sender1, []}),
    ?assertEqual(0, weft_ring_handoff_sender_core:log_length(Sender2)),
    %% After a restart, too.
    Kept = [{N, N, Large} || N <- [1, 2, 3, 4]],
    {Again, _} = weft_ring_handoff_sender_core:init(?TRANSFER, {2, 4, Kept},
                                                    #{log_bytes_max => 1000}),
    ?assertMatch({_, [3]}, Update(5, small, {Again, []})).

what_is_acknowledged_takes_no_room_test() ->
    Entries = [{N, key, binary:copy(<<N>>, 100 * N)} || N <- lists:seq(1, 9)],
    Log = weft_ring_handoff_log:new(Entries),
    Of = fun(L) ->
             {weft_ring_handoff_log:entries(L), weft_ring_handoff_log:count(L),
              weft_ring_handoff_log:bytes(L)}
         end,
    [begin
         Left = lists:nthtail(N, Entries),
         Size = lists:sum([erlang:external_size(Entry) || Entry <- Left]),
         ?assertEqual({Left, 9 - N, Size}, Of(weft_ring_handoff_log:acknowledged(N, L)))
         %% Code that was loaded in the midst of a handoff finds a list.
     end || N <- lists:seq(0, 9), L <- [Log, Entries]],
    ?assertEqual(Of(Log), Of(weft_ring_handoff_log:add(lists:last(Entries),
                                                       lists:droplast(Entries)))),
    ?assertEqual(Of(Log), Of(weft_ring_handoff_log:add(lists:last(Entries),
                                                       weft_ring_handoff_log:new(
                                                         lists:droplast(Entries))))).

after_a_cancelled_handoff_the_copy_is_not_trusted_test() ->
    Half = deliver_all(world(6, #{})),
    Cancelled = sender(cancel, Half),
    {2, _, []} = Log = Cancelled#world.log,
    Store = (Cancelled#world.store)#{1 => 77},
    Again = started(sender, Cancelled#world{store = Store, expected = Store, log = Log}),
    check(ended(Again, []), cancelled).

a_late_start_of_an_earlier_attempt_changes_nothing_test() ->
    Receiver0 = weft_ring_handoff_receiver_core:init({{?TRANSFER, 2}, done, 9}, #{}),
    Start = {message, {handoff, 1, {start, {?TRANSFER, 1}, r}}},
    {Receiver, Effects} = weft_ring_handoff_receiver_core:handle(Start, Receiver0),
    Refusal = {refuse, r, {outdated, {?TRANSFER, 2}}},
    ?assertEqual({Receiver0, [{send, {handoff, 1, Refusal}}]}, {Receiver, Effects}).

%% Attempts are numbered by the clock, which may be behind when the process of the owner starts
%% again: it would be refused until it has caught up.
who_starts_with_an_earlier_clock_begins_anew_test() ->
    Receiver = weft_ring_handoff_receiver_core:init({{?TRANSFER, 9}, {'after', 3}, 4}, #{}),
    {Sender, [{send, Start} | _]} = weft_ring_handoff_sender_core:init(?TRANSFER, {2, 7, []}, #{}),
    {_, [{send, Refusal}]} = weft_ring_handoff_receiver_core:handle({message, Start}, Receiver),
    {_, [{reset, 10}, {send, Again} | _]} =
        weft_ring_handoff_sender_core:handle({message, Refusal}, 0, Sender),
    ?assertMatch({_, [{clear, {{?TRANSFER, 10}, start, 0}},
                      {send, {handoff, 1, {resume, _, _, start, 0}}}]},
                 weft_ring_handoff_receiver_core:handle({message, Again}, Receiver)).

batches_keep_their_pace_test() ->
    {Sender1, [{read, start, 500}]} = resumed(#{pace_ms => 50}, 10),
    Batch = {batch, [{k, 1}], {'after', k}},
    {Sender2, Effects} = weft_ring_handoff_sender_core:handle(Batch, 10, Sender1),
    %% At first it is not as fast as it may be.
    [PaceMs] = [Ms || {after_ms, Ms, pace} <- Effects],
    ?assert(PaceMs > 50),
    ?assertMatch({_, [{read, {'after', k}, 500}]},
                 weft_ring_handoff_sender_core:handle({timer, pace}, 10 + PaceMs, Sender2)).

%% What is acknowledged late makes it slower.
batches_give_way_test() ->
    Waits = fun(DelayMs) -> waits_ms(DelayMs, 10, 0, resumed(#{pace_ms => 20}, 0), []) end,
    ?assertEqual([20, 20, 20], lists:nthtail(7, Waits(1))),
    Slower = Waits(fun(1) -> 1; (_) -> 1000 end),
    ?assertEqual([160, 160, 160], lists:nthtail(7, Slower)).

%% The times between batches, of which each is acknowledged so much later, but before the next one.
waits_ms(_, 0, _, _, Waits) ->
    lists:reverse(Waits);
waits_ms(Delay, Left, NowMs, {Sender0, [{read, _, _}]}, Waits) ->
    Batch = {batch, [{Left, 1}], {'after', Left}},
    {Sender1, Effects} = weft_ring_handoff_sender_core:handle(Batch, NowMs, Sender0),
    [N] = [N || {send, {handoff, 1, {items, s, N, _, _, _}}} <- Effects],
    [WaitMs] = [Ms || {after_ms, Ms, pace} <- Effects],
    DelayMs = case Delay of Ms when is_integer(Ms) -> Ms; _ -> Delay(N) end,
    Ack = {message, {handoff, 1, {ack, s, N, 0}}},
    {Sender2, []} = weft_ring_handoff_sender_core:handle(
                      Ack, NowMs + min(DelayMs, WaitMs - 1), Sender1),
    waits_ms(Delay, Left - 1, NowMs + WaitMs,
             weft_ring_handoff_sender_core:handle({timer, pace}, NowMs + WaitMs, Sender2),
             [WaitMs | Waits]).

%% Or a partition that is written to more often than there is a way to the other node and back
%% would never be handed over.
more_updates_than_batches_are_under_way_test() ->
    {Sender0, [{read, _, _}]} = resumed(#{pace_ms => 50}, 0),
    {Sender1, Effects1} = weft_ring_handoff_sender_core:handle(
                            {batch, [{5, 1}], {'after', 5}}, 0, Sender0),
    {Sender2, Effects2} = lists:foldl(
                            fun(N, {Sender, Effects}) ->
                                Update = {update, N, 1, N},
                                {Next, More} = weft_ring_handoff_sender_core:handle(Update, 0,
                                                                                    Sender),
                                {Next, Effects ++ More}
                            end, {Sender1, Effects1}, lists:seq(1, 150)),
    ?assertEqual(1 + 99, length(sent(Effects2))),
    Ack = {message, {handoff, 1, {ack, s, 60, 59}}},
    {Sender3, Effects3} = weft_ring_handoff_sender_core:handle(Ack, 0, Sender2),
    ?assertEqual([100 + N || N <- lists:seq(1, 51)], sent(Effects3)),
    ?assertEqual(91, weft_ring_handoff_sender_core:log_length(Sender3)).

%% The receiver is busy, or the way to it is.
what_is_not_acknowledged_is_sent_again_less_often_test() ->
    {Sender0, [{read, _, _}]} = resumed(#{retry_ms => 1000, window => 1}, 0),
    Batch = {batch, [{5, 1}], {'after', 5}},
    {Sender1, Effects} = weft_ring_handoff_sender_core:handle(Batch, 0, Sender0),
    Again = fun({Sender, More}) ->
                [{Ms, Retry}] = [{Ms, T} || {after_ms, Ms, {retry, _} = T} <- More],
                {Ms, weft_ring_handoff_sender_core:handle({timer, Retry}, Ms, Sender)}
            end,
    {1000, Second} = Again({Sender1, Effects}),
    {2000, Third} = Again(Second),
    {4000, Fourth} = Again(Third),
    {8000, Fifth} = Again(Fourth),
    {8000, {Sender2, _}} = Again(Fifth),
    ?assertEqual([1], sent(element(2, Fifth))),
    %% It moves on, so the next one is waited for as at first.
    Ack = {message, {handoff, 1, {ack, s, 1, 0}}},
    {Sender3, [{read, _, _}]} = weft_ring_handoff_sender_core:handle(Ack, 9000, Sender2),
    ?assertMatch({1000, _}, Again(weft_ring_handoff_sender_core:handle(
                                    {batch, [{6, 1}], {'after', 6}}, 9000, Sender3))).

%% With nothing to be written, no more batches than before.
no_more_than_the_window_of_batches_is_under_way_test() ->
    {Sender, Effects} = resumed(#{window => 4}, 0),
    ?assertEqual([1, 2, 3, 4], batches(Sender, Effects)).

batches(Sender0, Effects0) ->
    case [read || {read, _, _} <- Effects0] of
        [] -> [];
        [read] ->
            {Sender, Effects} = weft_ring_handoff_sender_core:handle(
                                  {batch, [{1, 1}], {'after', 1}}, 0, Sender0),
            sent(Effects) ++ batches(Sender, Effects)
    end.

sent(Effects) ->
    [element(3, Msg) || {send, {handoff, 1, Msg}} <- Effects,
                        lists:member(element(1, Msg), [items, update])].

%% Requests wait while a batch is read.
a_batch_that_takes_long_to_read_is_smaller_test() ->
    ?assertEqual([500, 250, 125, 62], sizes([3, 3, 3, 3])),
    ?assertEqual(1, lists:last(sizes(lists:duplicate(12, 3)))),
    %% And larger again, up to what is allowed.
    [500, 250 | Larger] = sizes([3 | lists:duplicate(12, 2)]),
    ?assertEqual(Larger, lists:sort(Larger)),
    ?assertEqual(500, lists:last(Larger)).

%% How many items are asked for, if reading takes so long.
sizes(ReadMs) ->
    {Sender, [{read, _, Items}]} = resumed(#{window => 1000}, 0),
    sizes(ReadMs, Items, 0, Sender).

sizes([], _, _, _) -> [];
sizes([Ms | ReadMs], Items, NowMs, Sender0) ->
    {Sender, Effects} = weft_ring_handoff_sender_core:handle(
                          {batch, [{NowMs, 1}], {'after', NowMs}}, NowMs + Ms, Sender0),
    [Next] = [Max || {read, _, Max} <- Effects],
    [Items | sizes(ReadMs, Next, NowMs + Ms, Sender)].

%% One timer is enough, however many updates and acknowledgements come before.
the_next_batch_has_one_timer_test() ->
    {Sender0, [{read, _, _}]} = resumed(#{pace_ms => 50}, 0),
    Batch = {batch, [{5, 1}], {'after', 5}},
    {Sender1, Effects} = weft_ring_handoff_sender_core:handle(Batch, 0, Sender0),
    ?assertMatch([{after_ms, _, pace}], [E || {after_ms, _, pace} = E <- Effects]),
    {Sender2, More} = weft_ring_handoff_sender_core:handle({update, r, 1, 1}, 1, Sender1),
    ?assertEqual([], [E || {after_ms, _, pace} = E <- More]),
    %% It came too early, by another clock.
    {_, [Again]} = weft_ring_handoff_sender_core:handle({timer, pace}, 2, Sender2),
    ?assertMatch({after_ms, _, pace}, Again).

resumed(Options, NowMs) ->
    {Sender, _} = weft_ring_handoff_sender_core:init(?TRANSFER, none, Options),
    Resume = {message, {handoff, 1, {resume, {0, 1}, s, start, 0}}},
    weft_ring_handoff_sender_core:handle(Resume, NowMs, Sender).

%% There may be something else that has to get there before.
what_is_ready_goes_on_until_it_is_to_finish_test() ->
    {Sender0, [{read, start, 500}]} = resumed(#{finish => when_asked}, 0),
    {Sender1, _} = weft_ring_handoff_sender_core:handle({batch, [{1, 1}], done}, 0, Sender0),
    Acknowledged = fun(N, Number, Sender) ->
                       weft_ring_handoff_sender_core:handle(
                         {message, {handoff, 1, {ack, s, N, Number}}}, 0, Sender)
                   end,
    {Sender2, [ready]} = Acknowledged(1, 0, Sender1),
    {Sender3, Effects} = weft_ring_handoff_sender_core:handle({update, r, 1, 5}, 0, Sender2),
    ?assertMatch([{apply, r, 1, 5, 1}, {send, {handoff, 1, {update, s, 2, 1, 1, 5}}} | _],
                 Effects),
    %% It is said once.
    ?assertMatch({_, [{truncate, 1}]}, Acknowledged(2, 1, Sender3)),
    {Sender4, []} = weft_ring_handoff_sender_core:handle(finish, 0, Sender3),
    {Sender5, [{truncate, 1}, done]} = Acknowledged(2, 1, Sender4),
    ?assertEqual({Sender5, [{refuse, r, moved}]},
                 weft_ring_handoff_sender_core:handle({update, r, 1, 5}, 0, Sender5)).

a_refused_handoff_has_failed_test() ->
    {Sender, Effects} = weft_ring_handoff_sender_core:init(?TRANSFER, none, #{}),
    [Start] = [Msg || {send, Msg} <- Effects],
    [{send, Refusal}] = weft_ring_handoff_receiver_core:refuse(Start, busy),
    ?assertMatch({_, [{failed, busy}]},
                 weft_ring_handoff_sender_core:handle({message, Refusal}, 0, Sender)).

%% --- any schedule -----------------------------------------------------------------------------

any_schedule_test_() ->
    {timeout, 240, ?_assert(proper:quickcheck(prop_schedule(), [{numtests, count()}, quiet]))}.

count() ->
    case os:getenv("FULL") of false -> 5000; _ -> 50000 end.

prop_schedule() ->
    ?FORALL({Items, PaceMs, Finish, Steps},
            {range(0, 12), oneof([0, 2]), oneof([at_once, when_asked]),
             ?SIZED(Size, resize(4 * Size, list(step())))},
            begin
                Wrong = wrong(Items, PaceMs, Finish, Steps),
                ?WHENFAIL(io:format("~p~n~p~n~p~n~p~n~p~n",
                                    [Items, PaceMs, Finish, Steps, Wrong]),
                          Wrong =:= [])
            end).

wrong(Items, PaceMs, Finish, Steps) ->
    World = world(Items, #{}, #{pace_ms => PaceMs, finish => Finish}),
    try ended(lists:foldl(fun perform/2, World, Steps), []) of
        #world{copy = Same, expected = Same} -> [];
        #world{copy = Copy, expected = Expected} -> [{expected, Expected}, {copy, Copy}]
    catch
        error:Reason:Stack -> [{Reason, Stack}]
    end.

step() ->
    frequency([{12, {deliver, to_receiver, range(0, 6), how()}},
               {12, {deliver, to_sender, range(0, 6), how()}},
               {8, {update, {range(0, 13), range(1, 1000)}}}, {3, timer},
               {1, {fuse, sender, range(1, 4)}}, {1, {fuse, receiver, range(1, 4)}},
               {1, link_down}, {2, link_up}, {2, finish}]).

how() -> frequency([{8, once}, {1, twice}, {1, never}]).

perform({deliver, Direction, Nth, How}, World) -> deliver(Direction, Nth, How, World);
perform({update, Update}, World) -> update(Update, World);
perform(timer, World) -> timer(World);
perform(finish, World) -> finished(World);
perform({fuse, End, Effects}, #world{fuses = Fuses} = World) ->
    World#world{fuses = Fuses#{End => Effects}};
perform(link_down, World) -> sender(link_down, World#world{to_receiver = [], to_sender = []});
perform(link_up, World) -> sender(link_up, World).

%% --- the world --------------------------------------------------------------------------------

world(Items, Fuses) -> world(Items, Fuses, #{pace_ms => 0}).

world(Items, Fuses, Given) ->
    Store = maps:from_list([{Key, 1 + Key} || Key <- lists:seq(0, Items - 1)]),
    Options = Given#{batch_items => 2, window => 2, update_window => 4, log_max => 8},
    started(sender, started(receiver, #world{store = Store, expected = Store, options = Options,
                                             fuses = Fuses})).

started(receiver, #world{mark = Mark, starts = Starts} = World) ->
    World#world{receiver = weft_ring_handoff_receiver_core:init(Mark, #{incarnation => Starts}),
                starts = Starts + 1};
started(sender, #world{log = Log, starts = Starts, options = Options} = World) ->
    {Sender, Effects} = weft_ring_handoff_sender_core:init(?TRANSFER, Log,
                                                           Options#{incarnation => Starts}),
    effects(sender, Effects, World#world{sender = Sender, starts = Starts + 1, timers = [],
                                         done = false, ready = false}).

sender(Event, #world{sender = Sender0, clock_ms = NowMs} = World) ->
    {Sender, Effects} = weft_ring_handoff_sender_core:handle(Event, NowMs, Sender0),
    effects(sender, Effects, World#world{sender = Sender, clock_ms = NowMs + 1}).

receiver(Event, #world{receiver = Receiver0} = World) ->
    {Receiver, Effects} = weft_ring_handoff_receiver_core:handle(Event, Receiver0),
    effects(receiver, Effects, World#world{receiver = Receiver}).

update(Update, World) -> sender({update, Update, element(1, Update), element(2, Update)}, World).

%% An effect is carried out wholly; the end may be killed after it.
effects(_, [], World) ->
    World;
effects(End, [Effect | Effects], #world{fuses = Fuses} = World0) ->
    World = effect(Effect, World0),
    case Fuses of
        #{End := 1} ->
            started(End, World#world{fuses = maps:remove(End, Fuses),
                                     killed = World#world.killed + 1});
        #{End := Left} ->
            effects(End, Effects, World#world{fuses = Fuses#{End := Left - 1}});
        #{} ->
            effects(End, Effects, World)
    end.

effect({send, {handoff, 1, Msg} = Message}, World) ->
    case lists:member(element(1, Msg), [start, items, update]) of
        true -> World#world{to_receiver = World#world.to_receiver ++ [Message]};
        false -> World#world{to_sender = World#world.to_sender ++ [Message]}
    end;
effect({after_ms, _, Timer}, World) -> World#world{timers = World#world.timers ++ [Timer]};
effect(done, World) -> World#world{done = true};
effect(ready, World) -> World#world{ready = true};
effect({failed, {outdated, _}}, World) -> World;
effect({refuse, _, moved}, World) -> World#world{refused = World#world.refused + 1};
effect({read, Cursor, Max}, World) -> read(Cursor, Max, World);
effect({apply, _, Key, Op, Number}, #world{store = Store, expected = Expected} = World) ->
    World#world{store = add(Key, Op, Store), expected = add(Key, Op, Expected),
                log = logged(Number, Key, Op, World#world.log)};
effect({truncate, Number}, #world{log = {Attempt, Last, Log}} = World) ->
    World#world{log = {Attempt, Last, [E || {N, _, _} = E <- Log, N > Number]}};
effect({reset, Attempt}, #world{log = Log} = World) ->
    Last = case Log of none -> 0; {_, L, _} -> L end,
    World#world{log = {Attempt, Last, []}};
effect({clear, Mark}, World) -> World#world{copy = #{}, mark = Mark};
effect({items, Items, Mark}, #world{copy = Copy} = World) ->
    World#world{mark = Mark,
                copy = lists:foldl(fun({Key, Value}, C) -> add(Key, Value, C) end, Copy, Items)};
effect({update, Key, Op, Mark}, #world{copy = Copy} = World) ->
    World#world{mark = Mark, copy = add(Key, Op, Copy)}.

logged(none, _, _, Log) -> Log;
logged(Number, Key, Op, {Attempt, _, Log}) -> {Attempt, Number, Log ++ [{Number, Key, Op}]}.

add(Key, Amount, Map) -> maps:update_with(Key, fun(Before) -> Before + Amount end, Amount, Map).

read(Cursor, Max, #world{store = Store} = World) ->
    Left = [Item || {Key, _} = Item <- lists:sort(maps:to_list(Store)),
                    not weft_ring_handoff_receiver_core:has(Key, Cursor)],
    Items = lists:sublist(Left, Max),
    sender({batch, Items, case length(Left) =< Max of
                              true -> done;
                              false -> {'after', element(1, lists:last(Items))}
                          end}, World).

deliver(to_receiver, _, _, #world{to_receiver = []} = World) -> World;
deliver(to_receiver, Nth, How, #world{to_receiver = Queue} = World) ->
    {Message, Left} = taken(Nth, How, Queue),
    delivered(How, fun(W) -> receiver({message, Message}, W) end, World#world{to_receiver = Left});
deliver(to_sender, _, _, #world{to_sender = []} = World) -> World;
deliver(to_sender, Nth, How, #world{to_sender = Queue} = World) ->
    {Message, Left} = taken(Nth, How, Queue),
    delivered(How, fun(W) -> sender({message, Message}, W) end, World#world{to_sender = Left}).

taken(Nth, How, Queue) ->
    Message = lists:nth(Nth rem length(Queue) + 1, Queue),
    {Message, case How of twice -> Queue; _ -> lists:delete(Message, Queue) end}.

delivered(never, _, World) -> World;
delivered(_, Deliver, World) -> Deliver(World).

deliver_all(#world{to_receiver = Out, to_sender = In} = World) ->
    Delivered = lists:foldl(fun(_, W) -> deliver(to_receiver, 0, once, W) end, World, Out),
    lists:foldl(fun(_, W) -> deliver(to_sender, 0, once, W) end, Delivered, In).

timer(#world{timers = []} = World) -> World;
timer(#world{timers = [Timer | Timers]} = World) ->
    sender({timer, Timer}, World#world{timers = Timers}).

%% With an update now and then, until the handoff is done.
ended(World, Updates) -> ended(500, sender(link_up, World), Updates).

ended(_, #world{done = true} = World, _) -> World;
ended(Left, World, []) when Left > 0 ->
    ended(Left - 1, timer(deliver_all(finished(World))), []);
ended(Left, World, [Update | Updates]) when Left > 0 ->
    ended(Left - 1, timer(deliver_all(update(Update, finished(World)))), Updates).

%% It is asked for as soon as that may be.
finished(#world{ready = true} = World) -> sender(finish, World#world{ready = false});
finished(World) -> World.
