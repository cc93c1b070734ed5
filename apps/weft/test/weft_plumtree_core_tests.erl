%% SPDX-License-Identifier: Apache-2.0
%% @doc Plumtree: its rules one by one. Whole clusters are in the simulator's tests.
-module(weft_plumtree_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').
-define(CORE, weft_plumtree_core).
-define(ID(N), {{'root@host', 1}, N}).

a_broadcast_is_delivered_here_and_pushed_to_all_test() ->
    {_, Effects} = event({command, ref, {broadcast, <<"hello">>}}, linked_to([?B, ?C])),
    {reply, ref, {ok, Id}} = lists:last(Effects),
    ?assertEqual([{notice, {deliver, Id, 0, <<"hello">>}}
                  | [{send, Node, {1, {gossip, Id, 1, <<"hello">>}}} || Node <- [?B, ?C]]],
                 lists:droplast(Effects)).

messages_of_a_node_are_numbered_test() ->
    {Node, First} = event({command, r, {broadcast, <<>>}}, linked_to([])),
    {_, Second} = event({command, r, {broadcast, <<>>}}, Node),
    {reply, r, {ok, {Origin, 1}}} = lists:last(First),
    ?assertEqual({reply, r, {ok, {Origin, 2}}}, lists:last(Second)).

a_new_message_is_delivered_and_passed_on_test() ->
    {_, Effects} = gossip(?ID(1), 3, ?B, 0, linked_to([?B, ?C])),
    ?assertEqual([{notice, {deliver, ?ID(1), 3, <<"m">>}},
                  {send, ?C, {1, {gossip, ?ID(1), 4, <<"m">>}}}], Effects).

a_message_that_comes_twice_makes_the_link_lazy_on_both_ends_test() ->
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B, ?C])),
    {Node1, [{send, ?C, {1, {prune, all}}}]} = gossip(?ID(1), 1, ?C, 0, Node0),
    ?assertEqual([?B], ?CORE:eager(any, Node1)),
    {Node2, []} = event({message, ?B, {1, {prune, all}}}, Node1),
    ?assertEqual([], ?CORE:eager(any, Node2)).

lazy_neighbours_get_a_batch_of_names_test() ->
    {Node0, []} = event({message, ?C, {1, {prune, all}}}, linked_to([?B, ?C])),
    {Node1, Effects} = gossip(?ID(1), 1, ?B, 0, Node0),
    ?assertEqual([20], [Ms || {after_ms, Ms, batch} <- Effects]),
    {Node2, _} = gossip(?ID(2), 1, ?B, 5, Node1),
    ?assertMatch({_, [{send, ?C, {1, {ihave, [{?ID(1), 2}, {?ID(2), 2}]}}}]},
                 event({timer, batch}, Node2)).

what_was_named_and_does_not_come_is_asked_for_one_after_the_other_test() ->
    {Node0, _} = event({message, ?B, {1, {prune, all}}}, linked_to([?B, ?C])),
    {Node1, [{after_ms, 250, Timer1}]} = ihave(?ID(1), ?B, 0, Node0),
    {Node2, []} = ihave(?ID(1), ?C, 100, Node1),
    {Node3, Effects} = at(250, {timer, Timer1}, Node2),
    ?assertEqual([{send, ?B, {1, {graft, all, [?ID(1)]}}}], sent(Effects)),
    ?assertEqual([?B, ?C], ?CORE:eager(any, Node3)),
    [{125, Timer2}] = [{Ms, Timer} || {after_ms, Ms, Timer} <- Effects],
    {Node4, Again} = at(375, {timer, Timer2}, Node3),
    ?assertEqual([{send, ?C, {1, {graft, all, [?ID(1)]}}}], sent(Again)),
    [Timer3] = [Timer || {after_ms, _, Timer} <- Again],
    ?assertMatch({_, []}, at(500, {timer, Timer3}, Node4)).

what_came_in_time_is_not_asked_for_test() ->
    {Node0, [{after_ms, _, Timer}]} = ihave(?ID(1), ?B, 0, linked_to([?B, ?C])),
    {Node1, _} = gossip(?ID(1), 1, ?C, 100, Node0),
    ?assertMatch({_, []}, at(250, {timer, Timer}, Node1)).

who_asks_gets_the_message_and_an_eager_link_test() ->
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B, ?C])),
    {Node1, _} = event({message, ?C, {1, {prune, all}}}, Node0),
    {Node2, Effects} = event({message, ?C, {1, {graft, all, [?ID(1), ?ID(9)]}}}, Node1),
    ?assertEqual([{send, ?C, {1, {gossip, ?ID(1), 2, <<"m">>}}}], Effects),
    ?assertEqual([?B, ?C], ?CORE:eager(any, Node2)).

a_much_shorter_way_is_taken_test() ->
    {Node0, _} = event({message, ?C, {1, {prune, all}}}, linked_to([?B, ?C])),
    {Node1, _} = ihave(?ID(1), 2, ?C, 0, Node0),
    {Node2, Effects} = gossip(?ID(1), 6, ?B, 100, Node1),
    ?assertEqual([{send, ?C, {1, {graft, all, []}}}, {send, ?B, {1, {prune, all}}}], sent(Effects)),
    ?assertEqual([?C], ?CORE:eager(any, Node2)),
    {Node3, _} = gossip(?ID(1), 5, ?B, 100, Node1),
    ?assertEqual([?B], ?CORE:eager(any, Node3)).

one_sender_at_a_time_shapes_the_shared_tree_test() ->
    Other = {{'zzz@host', 1}, 1},
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B, ?C])),
    {Node1, _} = gossip(Other, 1, ?B, 100, Node0),
    {Node2, []} = gossip(Other, 1, ?C, 100, Node1),
    ?assertEqual([?B, ?C], ?CORE:eager(any, Node2)),
    ?assertMatch({_, [{send, ?C, {1, {prune, all}}}]}, gossip(Other, 1, ?C, 10000, Node2)).

each_root_can_have_a_tree_of_its_own_test() ->
    {New, _} = ?CORE:init(?A, #{seed => 1, trees => per_root, trees_max => 2}),
    Node = lists:foldl(fun up/2, New, [?B, ?C]),
    Pruned = lists:foldl(fun(Root, S0) ->
                             {S, _} = event({message, ?B, {1, {prune, Root}}}, S0),
                             S
                         end, Node, [r1, r2, r3]),
    ?assertEqual([[?B, ?C], [?C], [?C], [?B, ?C]],
                 [?CORE:eager(Root, Pruned) || Root <- [r1, r2, r3, r4]]).

a_new_neighbour_is_told_what_is_in_the_cache_and_asks_for_what_it_lacks_test() ->
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B])),
    {_, [{send, ?C, {1, {have, Summary}}}]} = event({neighbour_up, ?C}, Node0),
    ?assertMatch({_, [{send, ?A, {1, {want, [?ID(1)]}}}]},
                 event({message, ?A, {1, {have, Summary}}}, linked_to([?A]))),
    ?assertMatch({_, [{send, ?C, {1, {gossip, ?ID(1), 2, <<"m">>}}}]},
                 event({message, ?C, {1, {want, [?ID(1)]}}}, up(?C, Node0))),
    ?assertMatch({_, [{send, ?C, {1, {ihave, [{?ID(1), 2}]}}}]},
                 event({message, ?C, {1, {have, []}}}, up(?C, Node0))).

an_absurd_summary_is_not_unfolded_test() ->
    {_, [{send, ?B, {1, {want, Ids}}}]} =
        event({message, ?B, {1, {have, [{{root, 1}, [{1, 1 bsl 60}]}]}}}, linked_to([?B])),
    ?assertEqual(1000, length(Ids)).

a_message_missed_for_good_is_told_test() ->
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B])),
    {Node1, _} = gossip(?ID(4), 1, ?B, 0, Node0),
    {_, Effects} = at(120000, {timer, exchange}, Node1),
    ?assertEqual([{missed, 'root@host', [{2, 3}]}], [Notice || {notice, Notice} <- Effects]).

a_message_of_a_newer_version_is_ignored_test() ->
    ?assertMatch({_, []}, event({message, ?B, {2, whatever}}, linked_to([?B]))).

linked_to(Neighbours) ->
    {New, _} = ?CORE:init(?A, #{seed => 1}),
    lists:foldl(fun up/2, New, Neighbours).

up(Node, State0) ->
    {State, _} = event({neighbour_up, Node}, State0),
    State.

gossip(Id, Hops, From, NowMs, State) ->
    at(NowMs, {message, From, {1, {gossip, Id, Hops, <<"m">>}}}, State).

ihave(Id, From, NowMs, State) ->
    ihave(Id, 1, From, NowMs, State).

ihave(Id, Hops, From, NowMs, State) ->
    at(NowMs, {message, From, {1, {ihave, [{Id, Hops}]}}}, State).

sent(Effects) ->
    [Effect || {send, _, _} = Effect <- Effects].

event(Event, State) ->
    at(0, Event, State).

at(NowMs, Event, State) ->
    ?CORE:handle(Event, NowMs, State).
