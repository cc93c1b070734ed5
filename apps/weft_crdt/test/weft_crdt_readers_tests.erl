%% SPDX-License-Identifier: Apache-2.0
%% @doc Readers and subscribers of a store: how often a value is looked at for them, that they keep
%% no place when they have ended, and who gets one value at a time.
-module(weft_crdt_readers_tests).

-include_lib("eunit/include/eunit.hrl").

-define(READERS, weft_crdt_readers).

%% --- how often --------------------------------------------------------------------------------

%% The value of a set is all of it.
a_key_that_changes_all_the_time_is_looked_at_now_and_then_test() ->
    Looked = counters:new(1, []),
    ValueOf = fun(k) -> ok = counters:add(Looked, 1, 1), {ok, 0} end,
    {Waiting, _} = read(60000, ?READERS:new()),
    {Changed, Effects} = lists:foldl(fun(_, {R0, Acc}) ->
                                         {R, More} = ?READERS:changed(k, ValueOf, R0),
                                         {R, Acc ++ More}
                                     end, {Waiting, []}, lists:seq(1, 1000)),
    ?assertEqual(1, counters:get(Looked, 1)),
    [{after_ms, 20, Timer}] = Effects,
    {Told, [{after_ms, 20, Next}]} = ?READERS:timer(Timer, ValueOf, Changed),
    ?assertEqual(2, counters:get(Looked, 1)),
    %% It is not quiet yet.
    {Again, []} = ?READERS:changed(k, ValueOf, Told),
    ?assertEqual(2, counters:get(Looked, 1)),
    ?assertMatch({_, [{reply, ref, {ok, 1}} | _]}, ?READERS:timer(Next, value(1), Again)).

%% So nobody waits longer than for the timer, and after that time not even for it.
a_key_that_was_quiet_is_looked_at_at_once_test() ->
    {Waiting, _} = read(60000, ?READERS:new()),
    {First, [{after_ms, _, Timer}]} = ?READERS:changed(k, value(0), Waiting),
    {Told, [{after_ms, _, Next}]} = ?READERS:timer(Timer, value(0), First),
    {Quiet, []} = ?READERS:timer(Next, value(0), Told),
    ?assertMatch({_, [{reply, ref, {ok, 1}} | _]}, ?READERS:changed(k, value(1), Quiet)).

%% What was derived.
a_value_that_is_forgotten_is_not_told_test() ->
    {Followed, _} = ?READERS:command({follow, k, self()}, ref, value(0), ?READERS:new()),
    {Waiting, _} = read(60000, Followed),
    {Changed, [{after_ms, _, Timer}]} = ?READERS:changed(k, value(0), Waiting),
    {Forgotten, Effects} = ?READERS:timer(Timer, fun(_) -> error end, Changed),
    ?assertEqual([], tells(Effects)),
    [Next] = timers(Effects),
    {Again, _} = ?READERS:changed(k, value(1), Forgotten),
    ?assertMatch({_, [{reply, ref, {ok, 1}} | _]}, ?READERS:timer(Next, value(1), Again)).

%% The disk is full: what each of these changes asks for is done, but that it has changed is undone.
changes_that_can_not_be_written_are_no_reason_to_tell_more_often_test() ->
    {Subscribed, _} = ?READERS:command({subscribe, k, self()}, ref, value(0), ?READERS:new()),
    Refused = lists:append([timers(element(2, ?READERS:changed(k, value(0), Subscribed)))
                            || _ <- lists:seq(1, 10)]),
    ?assertEqual(10, length(Refused)),
    {Changed, Effects} = ?READERS:changed(k, value(1), Subscribed),
    {Last, Told, [Next]} = lists:foldl(fun fire/2, {Changed, [], []}, Refused ++ timers(Effects)),
    ?assertEqual([1], Told),
    ?assertMatch({_, [1], [_]}, fire(Next, {Last, [], []})).

%% A timer, and another change after it.
fire(Timer, {Readers0, Told, Timers}) ->
    {Readers1, First} = ?READERS:timer(Timer, value(1), Readers0),
    {Readers, Second} = ?READERS:changed(k, value(1), Readers1),
    Effects = First ++ Second,
    {Readers, Told ++ tells(Effects), Timers ++ timers(Effects)}.

%% --- processes that end -----------------------------------------------------------------------

a_process_is_watched_as_long_as_it_has_a_place_test() ->
    {Waiting, First} = read(60000, ?READERS:new()),
    {Twice, Second} = read(60000, Waiting),
    {Both, Third} = ?READERS:command({subscribe, k, self()}, ref, value(0), Twice),
    ?assertEqual([true, false, false], [lists:member({watch, self()}, Effects)
                                        || Effects <- [First, Second, Third]]),
    {Passed, Replies} = ?READERS:changed(k, value(1), Both),
    ?assertEqual({2, false}, {length([R || {reply, R, {ok, 1}} <- Replies]),
                              lists:member({unwatch, self()}, Replies)}),
    ?assertMatch({_, [{unwatch, _}, {reply, ref, ok}]},
                 ?READERS:command({unsubscribe, k, self()}, ref, value(1), Passed)).

who_has_ended_makes_room_test() ->
    Full = lists:foldl(fun(_, R) -> element(1, read(1 bsl 60, R)) end, ?READERS:new(),
                       lists:seq(1, 10000)),
    Other = spawn(fun() -> ok end),
    Read = {read, k, {is, 1}, 1000, Other},
    ?assertMatch({_, [{reply, ref, {error, busy}}]},
                 ?READERS:command(Read, ref, value(0), Full)),
    {Subscribed, _} = ?READERS:command({subscribe, k, self()}, ref, value(0), Full),
    Left = ?READERS:gone(self(), Subscribed),
    ?assertEqual(#{waiting => 0, subscriptions => 0}, ?READERS:info(Left)),
    {One, _} = ?READERS:command(Read, ref, value(0), Left),
    ?assertMatch(#{waiting := 1}, ?READERS:info(?READERS:gone(self(), One))).

%% A read of a day that was answered at once has no timer of a day.
a_long_time_is_waited_for_in_slices_test() ->
    {Waiting, [Slice | _]} = read(12000, ?READERS:new()),
    ?assertEqual([5000, 5000, 2000, timeout], slices(Slice, Waiting)),
    {Passed, _} = ?READERS:changed(k, value(1), Waiting),
    ?assertEqual([5000], slices(Slice, Passed)).

slices({after_ms, Ms, Timer}, Readers0) ->
    [Ms | case ?READERS:timer(Timer, value(0), Readers0) of
              {Readers, [{after_ms, _, _} = Next]} -> slices(Next, Readers);
              {_, [{reply, ref, {error, timeout}} | _]} -> [timeout];
              {_, []} -> []
          end].

%% --- one value at a time ----------------------------------------------------------------------

%% Who subscribes gets each of them.
who_follows_a_key_gets_the_next_value_when_he_is_done_test() ->
    {Followed, [_, {reply, ref, {ok, 0}}]} =
        ?READERS:command({follow, k, self()}, ref, value(0), ?READERS:new()),
    {One, First} = told(1, Followed),
    {Three, Meanwhile} = lists:foldl(fun(N, {R0, Acc}) ->
                                         {R, More} = told(N, R0),
                                         {R, Acc ++ More}
                                     end, {One, []}, [2, 3]),
    ?assertEqual({[1], []}, {First, Meanwhile}),
    {Busy, Effects} = ?READERS:next(k, self(), value(3), Three),
    ?assertEqual([3], tells(Effects)),
    {Ready, []} = ?READERS:next(k, self(), value(3), Busy),
    ?assertMatch({_, [4]}, told(4, Ready)),
    {Subscribed, _} = ?READERS:command({subscribe, k, self()}, ref, value(0), ?READERS:new()),
    {Told, [1]} = told(1, Subscribed),
    ?assertMatch({_, [2]}, told(2, Told)).

%% --- code that is loaded anew -----------------------------------------------------------------

what_code_of_before_has_left_goes_on_test() ->
    Before = {readers, 7, #{k => #{7 => {ref, {is, 1}}}}, 1, #{k => #{self() => []}}, #{}},
    Now = ?READERS:current(Before),
    ?assertEqual(Now, ?READERS:current(Now)),
    ?assertEqual(#{waiting => 1, subscriptions => 1}, ?READERS:info(Now)),
    ?assertMatch({_, [1]}, told(1, Now)),
    %% Its timer was not numbered.
    Unnumbered = {readers, 0, #{}, 0, #{k => #{self() => []}}, #{k => []}, #{}},
    {_, Effects} = ?READERS:timer(notify, value(1), ?READERS:current(Unnumbered)),
    ?assertMatch({[1], [_]}, {tells(Effects), timers(Effects)}),
    ?assertMatch({_, [{reply, ref, {error, timeout}}]},
                 ?READERS:timer({read, k, 7}, value(0), Now)),
    ?assertMatch(#{subscriptions := 0}, ?READERS:info(?READERS:gone(self(), Now))).

%% --- helpers ----------------------------------------------------------------------------------

value(Value) -> fun(k) -> {ok, Value} end.

read(TimeoutMs, Readers) ->
    ?READERS:command({read, k, {is, 1}, TimeoutMs, self()}, ref, value(0), Readers).

%% What subscribers hear of this value, which it has for some time.
told(Value, Readers0) ->
    {Readers1, Changed} = ?READERS:changed(k, value(Value), Readers0),
    [Timer] = timers(Changed),
    {Readers2, Effects} = ?READERS:timer(Timer, value(Value), Readers1),
    [Next] = timers(Effects),
    {Readers, _} = ?READERS:timer(Next, value(Value), Readers2),
    {Readers, tells(Effects)}.

timers(Effects) -> [Timer || {after_ms, 20, Timer} <- Effects].

tells(Effects) -> [Value || {tell, _, {weft_crdt, k, Value}} <- Effects].
