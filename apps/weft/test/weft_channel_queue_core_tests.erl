%% SPDX-License-Identifier: Apache-2.0
%% @doc The queue of a channel against simple models: what goes in comes out once and in order or is
%% told to be dropped; a monotonic channel sends the newest of each slot, at most once per window.
-module(weft_channel_queue_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(Q, weft_channel_queue_core).
-define(MAX, 1000).
-define(ALONE, 300).
-define(WINDOW, 50).

properties_test_() ->
    [{Name, {timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 500}, quiet]))}}
     || {Name, Property} <- [{"fifo", prop_fifo()}, {"drop oldest", prop_drop_oldest()},
                             {"newest wins", prop_monotonic()}]].

step() ->
    frequency([{5, {in, range(1, 4), range(1, 400)}}, {2, {batch, range(1, 600)}},
               {2, {pass, range(1, 80)}}]).

steps() -> ?SIZED(Size, resize(10 * Size, list(step()))).

new(Policy, Window) ->
    ?Q:new(#{policy => Policy, queue_bytes => ?MAX, monotonic => Window}).

%% Nothing is lost and nothing changes places; batches keep to their size.
prop_fifo() ->
    ?FORALL(Steps, steps(),
            begin
                {Queue, In, Out, []} = run(Steps, new(block, undefined)),
                {Rest, Bytes, _} = ?Q:batch(1 bsl 40, 1 bsl 40, 0, Queue),
                In =:= Out ++ Rest andalso Bytes =:= ?Q:bytes(Queue)
                    andalso ?Q:is_empty(Queue) =:= (Rest =:= [])
            end).

prop_drop_oldest() ->
    ?FORALL(Steps, steps(),
            begin
                {Queue, In, Out, Dropped} = run(Steps, new(drop_oldest, undefined)),
                Rest = [Item || {_, Item} <- ?Q:all(Queue)],
                %% Each item has one fate; what was sent and what waits is in order, and the newest
                %% is never dropped.
                lists:sort(In) =:= lists:sort(Out ++ Rest ++ Dropped)
                    andalso Out ++ Rest =:= lists:sort(Out ++ Rest)
                    andalso (In =:= [] orelse not lists:member(lists:last(In), Dropped))
            end).

run(Steps, Queue) ->
    {_, Last, In, Out, Dropped} = lists:foldl(fun checked/2, {1, Queue, [], [], []}, Steps),
    {Last, lists:reverse(In), lists:append(lists:reverse(Out)), lists:append(Dropped)}.

checked({in, Slot, Cost}, {N, Queue0, In, Out, Dropped}) ->
    {Gone, Queue} = ?Q:in(Slot, Cost, {N, Cost}, Queue0),
    true = ?Q:bytes(Queue) =:= lists:sum([C || {C, _} <- ?Q:all(Queue)]),
    {N + 1, Queue, [{N, Cost} | In], Out, [[Item || {_, Item} <- Gone] | Dropped]};
checked({batch, Bytes}, {N, Queue0, In, Out, Dropped}) ->
    {Items, Sum, Queue} = ?Q:batch(Bytes, ?ALONE, 0, Queue0),
    true = Sum =:= lists:sum([Cost || {_, Cost} <- Items]),
    true = Items =:= [] orelse Sum - element(2, lists:last(Items)) < Bytes,
    true = length(Items) =< 1 orelse lists:all(fun({_, Cost}) -> Cost < ?ALONE end, Items),
    {N, Queue, In, [Items | Out], Dropped};
checked({pass, _}, Model) ->
    Model.

%% The model knows for each slot when it sent last and what was put in since.
prop_monotonic() ->
    ?FORALL(Steps, steps(),
            begin
                {Now, Queue, Sent, Waiting, _} =
                    lists:foldl(fun monotonic/2,
                                {0, new(block, ?WINDOW), #{}, #{}, 1}, Steps),
                %% Left alone, everything that waits goes out within a window, and then nothing
                %% is remembered.
                Woken = ?Q:wake(Now + ?WINDOW, Queue),
                {Items, _, Quiet} = ?Q:batch(1 bsl 40, 1 bsl 40, Now + ?WINDOW, Woken),
                is_map(Sent) andalso lists:sort(Items) =:= lists:sort(maps:values(Waiting))
                    andalso ?Q:bytes(Quiet) =:= 0
                    andalso ?Q:is_empty(?Q:wake(Now + 2 * ?WINDOW, Quiet))
            end).

monotonic({in, Slot, Cost}, {Now, Queue0, Sent, Waiting, N}) ->
    Item = {Slot, N, Cost},
    {Gone, Queue} = ?Q:in(Slot, Cost, Item, Queue0),
    true = [I || {_, I} <- Gone] =:= [I || #{Slot := I} <- [Waiting]],
    {Now, Queue, Sent, Waiting#{Slot => Item}, N + 1};
monotonic({batch, Bytes}, {Now, Queue0, Sent0, Waiting, N}) ->
    {Items, _, Queue} = ?Q:batch(Bytes, ?ALONE, Now, ?Q:wake(Now, Queue0)),
    Sent = lists:foldl(fun({Slot, _, _} = Item, Acc) ->
                               #{Slot := Item} = Waiting,
                               true = Now - maps:get(Slot, Acc, -?WINDOW) >= ?WINDOW,
                               Acc#{Slot => Now}
                       end, Sent0, Items),
    {Now, Queue, Sent, maps:without([Slot || {Slot, _, _} <- Items], Waiting), N};
monotonic({pass, Ms}, {Now, Queue, Sent, Waiting, N}) ->
    {Now + Ms, Queue, Sent, Waiting, N}.

one_timer_is_enough_test() ->
    Queue0 = new(block, ?WINDOW),
    ?assertEqual(never, ?Q:due_ms(Queue0)),
    {[], Queue1} = ?Q:in(a, 10, first, Queue0),
    {[first], 10, Queue2} = ?Q:batch(1000, 1000, 7, Queue1),
    ?assertEqual(7 + ?WINDOW, ?Q:due_ms(Queue2)),
    {[], Queue3} = ?Q:in(a, 10, second, Queue2),
    {[{10, second}], Queue4} = ?Q:in(a, 20, third, Queue3),
    ?assertNot(?Q:is_ready(?Q:wake(6 + ?WINDOW, Queue4))),
    {[third], 20, _} = ?Q:batch(1000, 1000, 7 + ?WINDOW, ?Q:wake(7 + ?WINDOW, Queue4)).

who_may_enter_test() ->
    [?assertEqual(Verdict, ?Q:admit(Policy, Before, ?MAX))
     || {Policy, Before, Verdict} <- [{block, ?MAX - 1, accept}, {block, ?MAX, wait},
                                      {drop_newest, ?MAX - 1, accept}, {drop_newest, ?MAX, drop},
                                      {error, ?MAX - 1, accept}, {error, ?MAX, refuse},
                                      {drop_oldest, 2 * ?MAX - 1, accept},
                                      {drop_oldest, 2 * ?MAX, wait}]].
