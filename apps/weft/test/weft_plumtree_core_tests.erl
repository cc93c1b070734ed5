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
    {Node2, Effects} = gossip(?ID(1), 4, ?B, 100, Node1),
    ?assertEqual([{send, ?C, {1, {graft, all, []}}}, {send, ?B, {1, {prune, all}}}], sent(Effects)),
    ?assertEqual([?C], ?CORE:eager(any, Node2)),
    {Node3, _} = gossip(?ID(1), 3, ?B, 100, Node1),
    ?assertEqual([?B], ?CORE:eager(any, Node3)).

%% Who heard of it in time is not who is first: the shorter way may be slow this time.
a_much_shorter_way_that_is_slower_is_taken_too_test() ->
    {Node0, _} = event({message, ?C, {1, {prune, all}}}, linked_to([?B, ?C])),
    {Node1, _} = gossip(?ID(1), 6, ?B, 0, Node0),
    {Node2, Effects} = ihave(?ID(1), 4, ?C, 100, Node1),
    ?assertEqual([{send, ?C, {1, {graft, all, []}}}, {send, ?B, {1, {prune, all}}}], Effects),
    ?assertEqual([?C], ?CORE:eager(any, Node2)),
    ?assertMatch({_, []}, ihave(?ID(1), 3, ?C, 100, Node2)).

the_second_copy_stays_if_it_came_over_far_fewer_hops_test() ->
    {Node0, _} = gossip(?ID(1), 6, ?B, 0, linked_to([?A, ?B, ?C])),
    {Node1, Effects} = gossip(?ID(1), 4, ?C, 10, Node0),
    ?assertEqual([{send, ?C, {1, {graft, all, []}}}, {send, ?B, {1, {prune, all}}}], Effects),
    {Node2, [{send, ?A, {1, {prune, all}}}]} = gossip(?ID(1), 3, ?A, 20, Node1),
    ?assertEqual([?C], ?CORE:eager(any, Node2)).

one_sender_at_a_time_shapes_the_shared_tree_test() ->
    Other = {{'zzz@host', 1}, 1},
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B, ?C])),
    {Node1, _} = gossip(Other, 1, ?B, 100, Node0),
    {Node2, []} = gossip(Other, 1, ?C, 100, Node1),
    ?assertEqual([?B, ?C], ?CORE:eager(any, Node2)),
    ?assertMatch({_, [{send, ?C, {1, {prune, all}}}]}, gossip(Other, 1, ?C, 30000, Node2)).

%% c is lazy, and the last message came over 4 hops.
a_sender_that_does_not_shape_spreads_its_message_over_all_links_at_first_test() ->
    {Node0, _} = event({message, ?C, {1, {prune, all}}}, linked_to([?B, ?C])),
    {Node1, _} = at(0, {message, ?B, {1, {gossip, {{'a@a', 1}, 1}, 4, <<"m">>}}}, Node0),
    {_, Effects} = at(1000, {command, r, {broadcast, <<"own">>}}, Node1),
    [{reply, r, {ok, Id}}] = [Reply || {reply, _, _} = Reply <- Effects],
    ?assertEqual([{send, Node, {1, {spread, Id, 1, 1, <<"own">>}}} || Node <- [?B, ?C]],
                 sent(Effects)).

what_is_spread_goes_over_all_links_then_over_the_tree_test() ->
    {Node, _} = event({message, ?C, {1, {prune, all}}}, linked_to([?A, ?B, ?C])),
    {Far, All} = event({message, ?A, {1, {spread, ?ID(1), 2, 1, <<"m">>}}}, Node),
    ?assertEqual([{send, To, {1, {spread, ?ID(1), 3, 0, <<"m">>}}} || To <- [?B, ?C]], sent(All)),
    {_, Eager} = event({message, ?A, {1, {spread, ?ID(2), 2, 0, <<"m">>}}}, Far),
    ?assertEqual([{send, ?B, {1, {spread, ?ID(2), 3, tree, <<"m">>}}}], sent(Eager)),
    {_, Tree} = event({message, ?A, {1, {spread, ?ID(3), 2, tree, <<"m">>}}}, Far),
    ?assertEqual([{send, ?B, {1, {spread, ?ID(3), 3, tree, <<"m">>}}}], sent(Tree)).

%% Its ways start at many places, and where they meet is no circle to cut.
what_is_spread_does_not_shape_the_tree_test() ->
    Lazy = fun(Node0) -> element(1, event({message, ?C, {1, {prune, all}}}, Node0)) end,
    {Node1, _} = event({message, ?B, {1, {spread, ?ID(1), 6, 2, <<"m">>}}},
                       Lazy(linked_to([?B, ?C]))),
    {Node2, []} = event({message, ?C, {1, {spread, ?ID(1), 2, tree, <<"m">>}}}, Node1),
    ?assertEqual([?B], ?CORE:eager(any, Node2)),
    {Node3, _} = event({message, ?C, {1, {spread, ?ID(2), 2, 1, <<"m">>}}}, Node2),
    ?assertEqual([?B], ?CORE:eager(any, Node3)),
    {Node4, _} = event({message, ?C, {1, {spread, ?ID(3), 2, tree, <<"m">>}}}, Node3),
    ?assertEqual([?B, ?C], ?CORE:eager(any, Node4)).

%% In a full mesh all would be the whole cluster.
only_some_lazy_links_are_used_to_spread_test() ->
    Names = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, 50)],
    Prune = fun(Name, N0) -> element(1, event({message, Name, {1, {prune, all}}}, N0)) end,
    Node = lists:foldl(Prune, linked_to(Names), Names),
    {_, Effects} = event({message, n1, {1, {spread, ?ID(1), 1, 3, <<"m">>}}}, Node),
    ?assertEqual(5, length(sent(Effects))).

each_root_can_have_a_tree_of_its_own_test() ->
    {New, _} = ?CORE:init(?A, #{seed => 1, trees => per_root, trees_max => 2}),
    Node = lists:foldl(fun up/2, New, [?B, ?C]),
    Pruned = lists:foldl(fun(Root, S0) ->
                             {S, _} = event({message, ?B, {1, {prune, Root}}}, S0),
                             S
                         end, Node, [r1, r2, r3]),
    ?assertEqual([[?B, ?C], [?C], [?C], [?B, ?C]],
                 [?CORE:eager(Root, Pruned) || Root <- [r1, r2, r3, r4]]).

what_happened_is_counted_test() ->
    Node0 = linked_to([?B, ?C, 'd@host']),
    Node = lists:foldl(fun(Event, S0) -> {S, _} = event(Event, S0), S end, Node0,
                       [{message, From, {1, Message}}
                        || {From, Message} <- [{?B, {gossip, ?ID(1), 1, <<"m">>}},
                                               {?C, {gossip, ?ID(1), 1, <<"m">>}},
                                               {'d@host', {prune, all}},
                                               {?C, {graft, all, []}}, {?C, {prune, all}},
                                               {?B, {spread, ?ID(1), 2, tree, <<"m">>}},
                                               {?B, {ihave, [{?ID(2), 1}]}}]]),
    {Later, _} = at(1000, {timer, {graft, 250}}, Node),
    {_, [{reply, ref, Info}]} = event({command, ref, info}, Later),
    ?assertEqual(#{trees => 1, eager => 1, lazy => 2, duplicates => 2, grafts_out => 1,
                   grafts_in => 1, prunes_out => 1, prunes_in => 2, missing => 1, cached => 1},
                 Info).

a_new_neighbour_is_told_what_is_in_the_cache_and_asks_for_what_it_lacks_test() ->
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B])),
    {_, [{send, ?C, {1, {have, Summary}}}]} = event({neighbour_up, ?C}, Node0),
    ?assertMatch({_, [{send, ?A, {1, {want, [?ID(1)]}}}]},
                 event({message, ?A, {1, {have, Summary}}}, linked_to([?A]))),
    ?assertMatch({_, [{send, ?C, {1, {gossip, ?ID(1), 2, <<"m">>}}}]},
                 event({message, ?C, {1, {want, [?ID(1)]}}}, up(?C, Node0))),
    ?assertMatch({_, [{send, ?C, {1, {ihave, [{?ID(1), 2}]}}}]},
                 event({message, ?C, {1, {have, []}}}, up(?C, Node0))).

%% News that got lost on the way, or whose link was not there, come with that.
now_and_then_a_neighbour_is_told_what_is_in_the_cache_test() ->
    {Node, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B, ?C])),
    {_, Effects} = at(10000, {timer, exchange}, Node),
    ?assertMatch([{send, _, {1, {have, [_]}}}], sent(Effects)),
    ?assertMatch([_], [Ms || {after_ms, Ms, exchange} <- Effects]).

an_absurd_summary_is_not_unfolded_test() ->
    {_, [{send, ?B, {1, {want, Ids}}}]} =
        event({message, ?B, {1, {have, [{{root, 1}, [{1, 1 bsl 60}]}]}}}, linked_to([?B])),
    ?assertEqual(1000, length(Ids)).

a_message_missed_for_good_is_told_test() ->
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B])),
    {Node1, _} = gossip(?ID(4), 1, ?B, 0, Node0),
    {_, Effects} = at(120000, {timer, exchange}, Node1),
    ?assertEqual([{missed, 'root@host', 2}], [Notice || {notice, Notice} <- Effects]).

%% Its sender says nothing more, and a neighbour that got it late keeps it for twice the time.
a_message_that_is_kept_for_long_is_delivered_once_test() ->
    KeepMs = 3600000,
    Have = {message, ?B, {1, {have, [{{'root@host', 1}, [{1, 1}]}]}}},
    {Node0, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B], #{cache_ms => KeepMs})),
    lists:foldl(fun(Ms, Before) ->
                        {Node, _} = at(Ms, {timer, exchange}, Before),
                        ?assertMatch({_, []}, at(Ms, Have, Node)),
                        Node
                end, Node0, [KeepMs div 2, KeepMs - 1, 2 * KeepMs]).

%% The host stood still, or the exchange is late: others may have forgotten that they had it.
what_is_too_old_is_neither_told_nor_given_test() ->
    {Node, _} = gossip(?ID(1), 1, ?B, 0, linked_to([?B, ?C])),
    Events = [{neighbour_up, ?A} | [{message, ?C, {1, Message}}
                                    || Message <- [{have, []}, {want, [?ID(1)]},
                                                   {graft, all, [?ID(1)]}]]],
    [?assertEqual({Event, Count}, {Event, length(sent(element(2, at(Ms, Event, Node))))})
     || {Ms, Count} <- [{59999, 1}, {700000, 0}], Event <- Events].

a_message_of_a_newer_version_is_ignored_test() ->
    ?assertMatch({_, []}, event({message, ?B, {2, whatever}}, linked_to([?B]))).

linked_to(Neighbours) ->
    linked_to(Neighbours, #{}).

linked_to(Neighbours, Options) ->
    {New, _} = ?CORE:init(?A, Options#{seed => 1}),
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
