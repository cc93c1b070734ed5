%% SPDX-License-Identifier: Apache-2.0
%% @doc What waits for a neighbour: in which order keys have their turn, and that nothing is lost on
%% the way.
-module(weft_crdt_buffer_tests).

-include_lib("eunit/include/eunit.hrl").

-define(BUFFER, weft_crdt_buffer).

%% Each message has room for one key, and whatever was sent has changed when it has arrived.
keys_that_change_all_the_time_hold_up_no_others_test() ->
    Keys = lists:seq(1, 40),
    {Sent, _} = lists:mapfoldl(fun changed_on_its_way/2, counted(Keys, 1, ?BUFFER:new(0)),
                               lists:seq(2, 81)),
    {Once, Twice} = lists:split(40, Sent),
    ?assertEqual({Keys, Keys}, {lists:sort(Once), lists:sort(Twice)}).

changed_on_its_way(N, Before) ->
    {Seq, [], [{Key, gcounter, _}], Buffer} = ?BUFFER:next(1, Before),
    {Key, ?BUFFER:acked(Seq, counted(Key, N, Buffer))}.

%% What is left over for one message has the rest of its room filled.
a_message_has_keys_of_both_turns_test() ->
    %% Atoms take less from OTP 26 on.
    One = erlang:external_size({1, gcounter, #{{a, 1} => 1}}),
    {Seq, [], Some, Buffer} = ?BUFFER:next(One + 1, counted([1, 2, 3], 1, ?BUFFER:new(0))),
    Sent = [Key || {Key, _, _} <- Some],
    ?assertMatch([_, _], Sent),
    {_, [], All, _} = ?BUFFER:next(1000, ?BUFFER:acked(Seq, counted(Sent, 2, Buffer))),
    ?assertEqual([1, 2, 3], lists:sort([Key || {Key, _, _} <- All])).

%% Of a message that was lost, and of what has changed since, wherever it waits.
what_was_not_acknowledged_comes_with_what_has_changed_since_test() ->
    {Seq, [], [{Lost, _, _}], Buffer} = ?BUFFER:next(1, counted([1, 2, 3], 1, ?BUFFER:new(0))),
    Again = lost(Seq, counted([Lost, 4], 2, Buffer)),
    ?assertEqual(4, ?BUFFER:count(Again)),
    Expected = [{Key, gcounter, #{{a, 1} => case lists:member(Key, [Lost, 4]) of
                                                true -> 2;
                                                false -> 1
                                            end}} || Key <- [1, 2, 3, 4]],
    {_, [], Items, Empty} = ?BUFFER:next(1000, Again),
    ?assertEqual(Expected, lists:sort(Items)),
    ?assertEqual(none, ?BUFFER:next(1000, Empty)).

%% It may take minutes to arrive.
what_is_late_is_not_sent_again_before_a_question_is_answered_test() ->
    {Seq, [], [_], Sent} = ?BUFFER:next(1, counted([1], 1, ?BUFFER:new(0))),
    {ask, First, Once} = ?BUFFER:late(Seq, Sent),
    {ask, Second, Twice} = ?BUFFER:late(Seq, Once),
    ?assertEqual([Seq, First, Second], lists:usort([Seq, First, Second])),
    [?assertEqual(none, ?BUFFER:next(1, Buffer))
     || Buffer <- [Once, Twice, ?BUFFER:acked(Second + 1, Twice), ?BUFFER:acked(Seq - 1, Twice),
                   ?BUFFER:acked(what, Twice)]],
    {Again, [], [{1, _, _}], Repeated} = ?BUFFER:next(1, ?BUFFER:acked(First, Twice)),
    %% The answer to the other question says nothing of it.
    ?assertEqual(none, ?BUFFER:next(1, ?BUFFER:acked(Second, Repeated))),
    ?assertEqual(0, ?BUFFER:count(?BUFFER:acked(Again, Repeated))),
    %% It was only late.
    Arrived = ?BUFFER:acked(Seq, Twice),
    ?assertEqual({0, no}, {?BUFFER:count(Arrived), ?BUFFER:late(Seq, Arrived)}).

%% A comparison meanwhile finds what has not arrived yet.
what_is_on_its_way_is_not_offered_again_test() ->
    Offer = fun(Counts, B) -> ?BUFFER:offer(1, gcounter, Counts, 100, B) end,
    {Seq, [], [_], Sent} = ?BUFFER:next(1, Offer(#{{a, 1} => 3}, ?BUFFER:new(0))),
    Same = Offer(#{{a, 1} => 3}, Sent),
    ?assertEqual(none, ?BUFFER:next(1, ?BUFFER:acked(Seq, Same))),
    More = Offer(#{{a, 1} => 3, {b, 1} => 1}, Sent),
    ?assertMatch({_, [], [{1, gcounter, #{{b, 1} := 1} = Rest}], _} when map_size(Rest) =:= 1,
                 ?BUFFER:next(1, ?BUFFER:acked(Seq, More))),
    ?assertMatch({_, [], [{1, gcounter, #{{a, 1} := 3, {b, 1} := 1}}], _},
                 ?BUFFER:next(1, lost(Seq, More))).

both_turns_count_for_what_may_wait_test() ->
    {Seq, [], [_], Buffer} = ?BUFFER:next(1, counted([1, 2], 1, ?BUFFER:new(0))),
    Full = counted([3, 4, 5], 1, 3, ?BUFFER:acked(Seq, Buffer)),
    {Last, [], [_, _, _], Sent} = ?BUFFER:next(1000, Full),
    ?assertNot(?BUFFER:is_behind(Full)),
    ?assertNot(?BUFFER:is_behind(Sent)),
    ?assert(?BUFFER:is_behind(?BUFFER:acked(Last, Sent))).

what_was_heard_waits_in_neither_turn_test() ->
    {Seq, [], [{First, _, _}], Buffer} = ?BUFFER:next(1, counted([1, 2], 1, ?BUFFER:new(0))),
    [Second] = [1, 2] -- [First],
    Both = counted([3], 1, ?BUFFER:acked(Seq, Buffer)),
    Heard = lists:foldl(fun(Key, B) ->
                            ?BUFFER:heard(Key, gcounter, #{{a, 1} => 1}, weft_crdt_retired:new(), B)
                        end, Both, [Second, 3]),
    ?assertEqual(none, ?BUFFER:next(1000, Heard)).

%% A store that runs while code is loaded has one map of what waits; a key that is on its way may be
%% in it.
what_waits_is_read_in_its_former_shape_test() ->
    Change = fun(N) -> {gcounter, #{{a, 1} => N}, own} end,
    Former = {buffer, #{1 => Change(7), 2 => Change(1)}, {5, #{1 => Change(6)}}, 5, 0, false},
    ?assertEqual(3, ?BUFFER:count(Former)),
    ?assertEqual(4, ?BUFFER:count(counted([3], 1, Former))),
    {_, [], Items, _} = ?BUFFER:next(1000, lost(5, counted([3], 1, Former))),
    ?assertEqual([{1, gcounter, #{{a, 1} => 7}}, {2, gcounter, #{{a, 1} => 1}},
                  {3, gcounter, #{{a, 1} => 1}}], lists:sort(Items)).

%% The neighbour has got the question behind it, and not the message.
lost(Seq, Buffer) ->
    {ask, Question, Asked} = ?BUFFER:late(Seq, Buffer),
    ?BUFFER:acked(Question, Asked).

counted(Keys, N, Buffer) -> counted(Keys, N, 100, Buffer).

counted(Keys, N, Max, Buffer) when is_list(Keys) ->
    lists:foldl(fun(Key, B) -> ?BUFFER:add(Key, gcounter, #{{a, 1} => N}, own, Max, B) end, Buffer,
                Keys);
counted(Key, N, Max, Buffer) -> counted([Key], N, Max, Buffer).
