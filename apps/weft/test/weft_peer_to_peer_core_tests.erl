%% SPDX-License-Identifier: Apache-2.0
%% @doc HyParView: its rules one by one, and a few nodes against a simple model of the network.
%%
%% The model is a list of messages per direction, delivered in any order of the directions, and
%% links that break at any time. Time stands still unless a timer is fired, so all that can cross
%% does.
-module(weft_peer_to_peer_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').
-define(D, 'd@host').
-define(E, 'e@host').
-define(F, 'f@host').
-define(CORE, weft_peer_to_peer_core).

%% --- rules ------------------------------------------------------------------------------------

a_node_joins_by_a_seed_and_the_seed_tells_its_neighbours_test() ->
    {New, Effects} = init(?A, #{seeds => [?A, ?B]}),
    ?assert(lists:member({connect, ?B}, Effects)),
    {_, [{send, ?B, {1, {neighbour, 1, 7, join}}}]} = event({neighbour_up, ?B}, New),
    Seed = neighbour_of([?C, ?D], ?B, #{}),
    {Joined, Answer} = event({message, ?A, {1, {neighbour, 1, 7, join}}}, up(?A, Seed)),
    ?assert(lists:member({send, ?A, {1, {accept, 1, 7}}}, Answer)),
    ?assertEqual([{?C, {forward_join, {?A, 7}, 6}}, {?D, {forward_join, {?A, 7}, 6}}],
                 [{To, Join} || {send, To, {1, {forward_join, _, _} = Join}} <- Answer]),
    ?assertEqual([?A, ?C, ?D], ?CORE:neighbours(Joined)).

a_full_seed_parts_with_somebody_for_one_who_joins_test() ->
    Seed = neighbour_of([?C, ?D], ?B, #{active => 2}),
    {Joined, Effects} = event({message, ?A, {1, {neighbour, 1, 7, join}}}, up(?A, Seed)),
    [Gone] = [To || {send, To, {1, {disconnect, _}}} <- Effects],
    ?assert(lists:member(Gone, [?C, ?D])),
    ?assert(lists:member({disconnect, Gone}, Effects)),
    ?assertEqual(lists:sort([?A | [?C, ?D] -- [Gone]]), ?CORE:neighbours(Joined)),
    ?assertEqual([Gone], ?CORE:passive(Joined)).

who_has_neighbours_is_declined_by_a_full_node_and_who_has_none_is_not_test() ->
    Full = up(?A, neighbour_of([?C, ?D], ?B, #{active => 2})),
    {Declined, Effects} = event({message, ?A, {1, {neighbour, 4, 7, low}}}, Full),
    ?assert(lists:member({send, ?A, {1, {decline, 4}}}, Effects)),
    ?assertEqual([?C, ?D], ?CORE:neighbours(Declined)),
    {Agreed, _} = event({message, ?A, {1, {neighbour, 4, 7, high}}}, Full),
    ?assert(lists:member(?A, ?CORE:neighbours(Agreed))),
    ?assertEqual(2, length(?CORE:neighbours(Agreed))).

a_lost_neighbour_is_called_again_and_then_replaced_test() ->
    Node = passive([?D], neighbour_of([?B, ?C], ?A, #{active => 2})),
    {Lost, Effects} = event({neighbour_down, ?B, timeout}, Node),
    ?assertEqual([?B], [Called || {connect, Called} <- Effects]),
    {_, Replaced} = event({neighbour_down, ?B, connect_failed}, Lost),
    ?assertEqual([?D], [Called || {connect, Called} <- Replaced]).

an_answer_to_an_earlier_question_does_not_count_test() ->
    {Node0, _} = init(?A, #{seeds => [?B]}),
    {Node1, _} = event({neighbour_up, ?B}, Node0),
    {Node2, Effects} = event({message, ?B, {1, {accept, 99, 7}}}, Node1),
    ?assertEqual({[], []}, {?CORE:neighbours(Node2), Effects}),
    {Node3, _} = event({message, ?B, {1, {accept, 1, 7}}}, Node2),
    ?assertEqual([?B], ?CORE:neighbours(Node3)).

who_takes_us_for_a_neighbour_in_error_is_told_test_() ->
    Node = up(?C, neighbour_of([?B], ?A, #{})),
    [?_assertMatch({_, [{send, ?C, {1, {disconnect, []}}}]},
                   event({message, ?C, {1, Message}}, Node))
     || Message <- [{accept, 3, 7}, {beat, {?B, {1, 1}}}]].

a_node_that_leaves_is_forgotten_until_it_comes_back_test() ->
    Node = up(?D, neighbour_of([?B, ?C], ?A, #{})),
    {Left, Effects} = event({message, ?B, {1, {left, ?C, 7}}}, Node),
    ?assertEqual([?B], ?CORE:neighbours(Left)),
    ?assertEqual([], ?CORE:passive(Left)),
    ?assert(lists:member({disconnect, ?C}, Effects)),
    Stale = passive([?C], Left),
    ?assertEqual([], ?CORE:passive(Stale)),
    {Back, _} = event({message, ?D, {1, {shuffle_reply, [?A], [{?C, 8}]}}}, Stale),
    ?assertEqual([?C], ?CORE:passive(Back)).

leaving_is_told_to_all_neighbours_and_nobody_gets_in_again_test() ->
    Node0 = neighbour_of([?B, ?C], ?A, #{}),
    {Node1, Effects} = event({command, ref, leave}, Node0),
    ?assertEqual([?B, ?C], [To || {send, To, {1, {left, ?A, 7}}} <- Effects]),
    ?assertEqual([?B, ?C], [Node || {disconnect, Node} <- Effects]),
    [gone] = [Timer || {after_ms, _, Timer} <- Effects],
    {Node2, [{reply, ref, ok}]} = event({timer, gone}, Node1),
    ?assertMatch({_, [{send, ?D, {1, {decline, 1}}}]},
                 event({message, ?D, {1, {neighbour, 1, 7, high}}}, up(?D, Node2))),
    ?assertMatch({_, []}, event({neighbour_down, ?B, closed}, Node2)).

a_shuffle_ends_at_the_end_of_its_walk_and_goes_back_the_same_way_test() ->
    End = neighbour_of([?B, ?C], ?A, #{}),
    Shuffle = {shuffle, [?B, ?D], [{?D, 7}, {?E, 7}], 1, false},
    {Learnt, Effects} = event({message, ?B, {1, Shuffle}}, passive(['x@host'], End)),
    ?assertMatch([{shuffle_reply, [?B, ?D], [{'x@host', 7} | _]}],
                 [Reply || {send, ?B, {1, Reply}} <- Effects]),
    ?assertEqual([?D, ?E, 'x@host'], ?CORE:passive(Learnt)),
    {_, Passed} = event({message, ?C, {1, {shuffle_reply, [?A, ?B, ?D], [{?E, 7}]}}}, End),
    ?assertEqual([{send, ?B, {1, {shuffle_reply, [?B, ?D], [{?E, 7}]}}}], Passed).

%% In a ring of four, each walk ends at a node that has the one it came from as its neighbour.
who_knows_few_others_names_its_neighbours_test() ->
    End = neighbour_of([?B, ?C], ?A, #{}),
    Names = fun(Given, Node) ->
                    Shuffle = {shuffle, [?B], [{Name, 7} || Name <- Given], 1, false},
                    {_, Effects} = event({message, ?B, {1, Shuffle}}, Node),
                    [Reply] = [Reply || {send, ?B, {1, {shuffle_reply, [?B], Reply}}} <- Effects],
                    lists:sort([Name || {Name, 7} <- Reply])
            end,
    ?assertEqual([?B, ?C], Names([?B, ?D], End)),
    ?assertEqual([?B, ?C, ?E], Names([?B, ?D, ?F], passive([?E], End))),
    ?assertEqual([?E], Names([?B], passive([?E], End))).

who_lacks_a_neighbour_offers_itself_to_another_one_test() ->
    Connects = fun(IsLacking, Options) ->
                       Shuffle = {shuffle, [?B, x, y, ?D], [], 1, IsLacking},
                       {_, Effects} = event({message, ?B, {1, Shuffle}},
                                            neighbour_of([?B, ?C], ?A, Options)),
                       [Node || {connect, Node} <- Effects]
               end,
    ?assertEqual([?D], Connects(true, #{active => 3})),
    ?assertEqual([], Connects(true, #{active => 2})),
    ?assertEqual([], Connects(false, #{active => 3})).

another_part_of_the_cluster_is_linked_to_test() ->
    {Told, []} = event({notice, {seeds, [?C]}}, neighbour_of([?B], ?A, #{active => 2})),
    {Node0, _} = event({message, ?B, {1, {beat, {?B, {1, 1}}}}}, Told),
    {Node1, Effects} = event({timer, probe}, Node0),
    ?assert(lists:member({connect, ?C}, Effects)),
    {Node2, [{send, ?C, {1, {probe, {?B, {1, 1}}, 7}}}]} = event({neighbour_up, ?C}, Node1),
    {_, Other} = event({message, ?C, {1, {probed, {?E, {1, 5}}, 7}}}, Node2),
    ?assertMatch([{neighbour, _, 7, high}], [Sent || {send, ?C, {1, Sent}} <- Other]),
    {_, Same} = event({message, ?C, {1, {probed, {?B, {1, 1}}, 7}}}, Node2),
    ?assertEqual([{disconnect, ?C}], Same).

who_knows_no_other_node_always_probes_a_seed_test() ->
    {Told, []} = event({notice, {seeds, [?C]}}, neighbour_of([?B], ?A, #{active => 2})),
    lists:foldl(fun(_, Node0) ->
                    {Node1, Effects} = event({timer, probe}, Node0),
                    ?assert(lists:member({connect, ?C}, Effects)),
                    {Node2, _} = event({neighbour_down, ?C, connect_failed}, Node1),
                    Node2
                end, Told, lists:seq(1, 20)).

a_node_without_reachable_seeds_tries_for_ever_and_says_so_once_test() ->
    {Node, Effects} = init(?A, #{seeds => [?B, ?C], retry_max_ms => 1600}),
    {Pauses, Warnings} = unreachable(20, Node, Effects, [], []),
    ?assertEqual([{warning, {no_seed_answers, [?B, ?C]}}], Warnings),
    ?assert(length(Pauses) >= 6),
    ?assert(lists:max(Pauses) =< 2000).

%% Each dial fails, each pause ends.
unreachable(0, _Node, _Effects, Pauses, Warnings) ->
    {Pauses, Warnings};
unreachable(Count, Node0, Effects0, Pauses, Warnings) ->
    {Node, Effects} = case {[N || {connect, N} <- Effects0],
                            [Ms || {after_ms, Ms, again} <- Effects0]} of
                          {[Called], []} -> event({neighbour_down, Called, refused}, Node0);
                          {[], [_]} -> event({timer, again}, Node0)
                      end,
    unreachable(Count - 1, Node, Effects,
                Pauses ++ [Ms || {after_ms, Ms, again} <- Effects],
                Warnings ++ [Notice || {notice, Notice} <- Effects]).

a_message_of_a_newer_version_is_ignored_test() ->
    ?assertMatch({_, []}, event({message, ?B, {2, whatever}}, neighbour_of([?B], ?A, #{}))).

further_seeds_are_used_as_well_test() ->
    {Node, []} = without_timers(init(?A, #{seeds => []})),
    {_, Effects} = event({notice, {seeds, [?B]}}, Node),
    ?assert(lists:member({connect, ?B}, Effects)).

without_timers({Node, Effects}) ->
    {Node, [E || E <- Effects, element(1, E) =/= after_ms, element(1, E) =/= view]}.

%% --- a model ----------------------------------------------------------------------------------

both_ends_agree_once_all_is_delivered_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_agreement(), [{numtests, 1000},
                                                                 {max_size, 150},
                                                                 {to_file, user}]))}.

both_ends_agree_also_after_exchanges_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_exchanges(), [{numtests, 3000},
                                                                 {max_size, 500},
                                                                 {to_file, user}]))}.

-define(NODES, [?A, ?B, ?C, ?D]).

%% The views are small, so that places are fought for. A link that nobody wants any more ends at
%% once, or lives on, as it does while something else needs it.
prop_agreement() ->
    agreement(?NODES, #{}).

%% As long as other things happen, so long is a round trip; so exchanges begin, and stop anywhere.
prop_exchanges() ->
    agreement([?E, ?F | ?NODES], #{optimise => rtt, unbiased => 0, mix_from => 0, mix_rounds => 0}).

agreement(Nodes, Options) ->
    ?FORALL({Seed, IsLasting, Steps}, {integer(), boolean(), list(step(Nodes))},
            begin
                World = drained(lists:foldl(fun step/2, started(Nodes, Seed, IsLasting, Options),
                                            Steps)),
                Views = [{Node, ?CORE:neighbours(State), ?CORE:passive(State)}
                         || {Node, State} <- maps:to_list(maps:get(states, World))],
                conjunction(
                  [{symmetric, [] =:= [{N, P} || {N, Active, _} <- Views, P <- Active,
                                                 not lists:member(N, active(P, Views))]},
                   {linked, [] =:= [{N, P} || {N, Active, _} <- Views, P <- Active,
                                              not is_map_key(pair(N, P), maps:get(links, World))]},
                   {small, lists:all(fun({_, Active, _}) -> length(Active) =< 2 end, Views)},
                   {apart, lists:all(fun({N, Active, Passive}) ->
                                         [] =:= [P || P <- [N | Active], lists:member(P, Passive)]
                                     end, Views)}])
            end).

active(Node, Views) ->
    {Node, Active, _} = lists:keyfind(Node, 1, Views),
    Active.

step(Nodes) ->
    Node = oneof(Nodes),
    frequency([{20, {deliver, integer(0, 1000)}},
               {4, {fire, Node, integer(0, 1000)}},
               {1, ?LET({A, B}, ?SUCHTHAT({A, B}, {Node, Node}, A =/= B), {break, A, B})}]).

started(Nodes, Seed, IsLasting, Options0) ->
    World = #{states => #{}, links => #{}, queues => #{}, timers => [], lasting => IsLasting,
              now => 0},
    Options = Options0#{seeds => [?A, ?B], active => 2, passive => 3, seed => Seed,
                        incarnation => 7},
    lists:foldl(fun(Node, W) ->
                    {State, Effects} = ?CORE:init(Node, Options),
                    #{states := States} = W,
                    perform(Node, Effects, W#{states := States#{Node => State}})
                end, World, Nodes).

%% One message of some direction, one timer of some node, or the end of a link.
step({deliver, N}, #{queues := Queues} = World) ->
    case [Direction || {Direction, [_ | _]} <- lists:sort(maps:to_list(Queues))] of
        [] -> World;
        Directions -> deliver(lists:nth(1 + N rem length(Directions), Directions), World)
    end;
step({fire, Node, N}, #{timers := Timers} = World) ->
    case [Timer || {To, _} = Timer <- Timers, To =:= Node] of
        [] -> World;
        Own ->
            {Node, Timer} = Fired = lists:nth(1 + N rem length(Own), Own),
            happen(Node, {timer, Timer}, World#{timers := lists:delete(Fired, Timers)})
    end;
step({break, A, B}, #{links := Links, queues := Queues} = World) ->
    Pair = pair(A, B),
    case is_map_key(Pair, Links) of
        %% What is under way is lost; both ends hear of it at some time.
        true -> World#{links := maps:remove(Pair, Links),
                       queues := Queues#{{A, B} => [down], {B, A} => [down]}};
        false -> World
    end.

deliver({From, To} = Direction, #{queues := Queues} = World0) ->
    #{Direction := [First | Rest]} = Queues,
    World = World0#{queues := Queues#{Direction := Rest}},
    case First of
        up -> happen(To, {neighbour_up, From}, World);
        down -> happen(To, {neighbour_down, From, lost}, World);
        Message -> happen(To, {message, From, Message}, World)
    end.

%% Everything takes a millisecond.
happen(Node, Event, #{states := States, now := NowMs} = World) ->
    {State, Effects} = ?CORE:handle(Event, NowMs, map_get(Node, States)),
    perform(Node, Effects, World#{states := States#{Node := State}, now := NowMs + 1}).

perform(Node, Effects, World) ->
    lists:foldl(fun(Effect, W) -> perform_one(Effect, Node, W) end, World, Effects).

perform_one({send, To, Message}, Node, #{links := Links} = World) ->
    case is_map_key(pair(Node, To), Links) of
        true -> queue(Node, To, Message, World);
        false -> World
    end;
perform_one({connect, Peer}, Node, #{links := Links} = World) ->
    Pair = pair(Node, Peer),
    case is_map_key(Pair, Links) of
        true -> World;
        false -> queue(Node, Peer, up, queue(Peer, Node, up, World#{links := Links#{Pair => []}}))
    end;
perform_one({disconnect, _Peer}, _Node, #{lasting := true} = World) ->
    World;
perform_one({disconnect, Peer}, Node, #{links := Links} = World) ->
    Pair = pair(Node, Peer),
    case is_map_key(Pair, Links) of
        %% Unlike a break, an orderly end loses nothing.
        true -> queue(Node, Peer, down, queue(Peer, Node, down,
                                              World#{links := maps:remove(Pair, Links)}));
        false -> World
    end;
perform_one({after_ms, _Ms, {attempt, _, _} = Timer}, Node, #{timers := Timers} = World) ->
    World#{timers := [{Node, Timer} | Timers]};
perform_one({after_ms, _Ms, {exchange, _, _} = Timer}, Node, #{timers := Timers} = World) ->
    World#{timers := [{Node, Timer} | Timers]};
perform_one({after_ms, _Ms, Timer}, Node, #{timers := Timers} = World)
  when Timer =:= shuffle; Timer =:= optimise ->
    World#{timers := [{Node, Timer} | Timers]};
perform_one(_Effect, _Node, World) ->
    World.

queue(From, To, What, #{queues := Queues} = World) ->
    World#{queues := Queues#{{From, To} => maps:get({From, To}, Queues, []) ++ [What]}}.

pair(A, B) ->
    {min(A, B), max(A, B)}.

%% Everything under way arrives, until nothing is. Only answers start anything.
drained(World) -> drained(5000, World).

drained(Left, #{queues := Queues} = World) when Left > 0 ->
    case lists:all(fun(Queue) -> Queue =:= [] end, maps:values(Queues)) of
        true -> World;
        false -> drained(Left - 1, step({deliver, Left}, World))
    end.

%% --- parts of tests ---------------------------------------------------------------------------

init(Self, Options) ->
    ?CORE:init(Self, Options#{seed => 1, incarnation => 7}).

event(Event, State) ->
    ?CORE:handle(Event, 0, State).

up(Node, State0) ->
    {State, _} = event({neighbour_up, Node}, State0),
    State.

%% A node that has these neighbours, since they asked.
neighbour_of(Others, Self, Options) ->
    {State, _} = init(Self, Options),
    lists:foldl(fun(Other, S0) ->
                    {S, _} = event({message, Other, {1, {neighbour, 1, 7, low}}}, up(Other, S0)),
                    S
                end, State, Others).

%% A shuffle brought these names.
passive(Nodes, State0) ->
    Self = state_self(State0),
    {State, _} = event({message, ?B, {1, {shuffle_reply, [Self], [{N, 7} || N <- Nodes]}}}, State0),
    State.

state_self(State) ->
    element(2, State).
