%% SPDX-License-Identifier: Apache-2.0
%% @doc The full mesh with SWIM, event by event: what a change of the members means for the links.
-module(weft_swim_mesh_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').
-define(D, 'd@host').

a_node_alone_dials_its_seeds_but_not_itself_test() ->
    {_, Effects} = weft_swim_mesh_core:init(?A, #{seeds => [?A, ?B, ?C]}),
    ?assertEqual([?B, ?C], dialled(Effects)).

who_joins_is_dialled_test() ->
    {_, Effects} = handle(gossip(?B, {alive, ?D, 1}), cluster([?B, ?C])),
    ?assert(lists:member({notice, {member, ?D, joined}}, Effects)),
    ?assertEqual([?D], dialled(Effects)).

who_joins_over_a_link_that_is_up_is_claimed_test() ->
    {State, _} = handle({neighbour_up, ?D}, cluster([?B, ?C])),
    {_, Effects} = handle(gossip(?B, {alive, ?D, 1}), State),
    ?assert(lists:member({connect, ?D}, Effects)).

a_member_that_lives_is_dialled_again_when_its_link_is_lost_test() ->
    {_, Effects} = handle({neighbour_down, ?C, closed}, cluster([?B, ?C])),
    ?assertEqual([?C], dialled(Effects)).

a_member_that_failed_loses_its_link_and_is_not_dialled_at_once_test() ->
    {State, Effects} = handle(gossip(?B, {dead, ?C, 1}), cluster([?B, ?C])),
    ?assertEqual([{break, ?C}, {disconnect, ?C}],
                 [E || E <- Effects, lists:member(element(1, E), [break, connect, disconnect])]),
    {_, Lost} = handle({neighbour_down, ?C, closed}, State),
    ?assertEqual([], dialled(Lost)).

one_that_failed_is_dialled_now_and_then_and_given_up_if_it_does_not_answer_test() ->
    {State0, _} = handle(gossip(?B, {dead, ?C, 1}), cluster([?B, ?C, ?D])),
    {State1, _} = handle(gossip(?B, {dead, ?D, 1}), State0),
    {State2, _} = handle({neighbour_down, ?C, closed}, State1),
    {State3, _} = handle({neighbour_down, ?D, closed}, State2),
    {State, Effects} = handle({timer, reconnect}, State3),
    [Node] = dialled(Effects),
    ?assert(lists:member(Node, [?C, ?D])),
    {_, Failed} = handle({neighbour_down, Node, connect_failed}, State),
    ?assertEqual([{disconnect, Node}], [E || {disconnect, _} = E <- Failed]),
    ?assertEqual([], dialled(Failed)).

a_failed_member_that_is_back_is_told_and_refutes_test() ->
    {State0, _} = handle(gossip(?B, {dead, ?C, 1}), cluster([?B, ?C])),
    {State1, _} = handle({neighbour_down, ?C, closed}, State0),
    {State, Up} = handle({neighbour_up, ?C}, State1),
    ?assertMatch([{send, ?C, {1, {digest, _, _}, [{dead, ?C, 1} | _]}}],
                 [E || {send, _, _} = E <- Up]),
    {_, Back} = handle(gossip(?C, {alive, ?C, 2}), State),
    ?assert(lists:member({connect, ?C}, Back)).

a_node_whose_members_all_failed_dials_its_seeds_again_test() ->
    {State0, _} = handle(gossip(?B, {dead, ?B, 1}), cluster([?B])),
    {State1, _} = handle({neighbour_down, ?B, closed}, State0),
    {State, Effects} = handle({timer, reconnect}, State1),
    ?assertEqual([?B], dialled(Effects)),
    {_, Failed} = handle({neighbour_down, ?B, connect_failed}, State),
    ?assertEqual([?B], dialled(Failed)).

%% It was cut off from all, and its seed is gone for good.
a_node_whose_members_all_failed_dials_one_of_them_besides_test() ->
    State = all_failed([?B, ?C, ?D]),
    {Tried, Effects} = handle({timer, reconnect}, State),
    [Other] = dialled(Effects) -- [?B],
    ?assert(lists:member(Other, [?C, ?D])),
    {_, Failed} = handle({neighbour_down, Other, connect_failed}, Tried),
    ?assertEqual([], dialled(Failed)),
    {_, [_, _] = Both} = lists:foldl(fun(_, {S, Dialled}) -> another(S, Dialled) end, {State, []},
                                     lists:seq(1, 20)),
    ?assertEqual([?C, ?D], lists:sort(Both)).

another(State0, Dialled) ->
    {State1, Effects} = handle({timer, reconnect}, State0),
    [Other] = dialled(Effects) -- [?B],
    {State, _} = handle({neighbour_down, Other, connect_failed}, State1),
    {State, [Other | lists:delete(Other, Dialled)]}.

a_seed_that_has_left_is_not_dialled_test() ->
    {Left, _} = handle(gossip(?B, {left, ?B, 1}), cluster([?B, ?C])),
    {Parted, Lost} = handle({neighbour_down, ?B, closed}, Left),
    ?assertEqual([], dialled(Lost)),
    ?assertEqual([], dialled_by({timer, reconnect}, Parted)),
    %% Nor if there is nobody else.
    {Alone, _} = handle(gossip(?C, {left, ?C, 1}), Parted),
    ?assertEqual([], dialled_by({timer, reconnect}, Alone)).

a_seed_that_was_found_and_has_left_is_not_dialled_test() ->
    {Left, _} = handle(gossip(?B, {left, ?C, 1}), cluster([?B, ?C])),
    {Parted, _} = handle({neighbour_down, ?C, closed}, Left),
    ?assertEqual([?D], dialled_by({notice, {seeds, [?C, ?D]}}, Parted)).

%% A seed of the configuration, and a member of a topology that ran before.
a_seed_that_was_never_met_can_be_forgotten_test() ->
    {Begun, _} = weft_swim_mesh_core:init(?A, #{seeds => [?B, ?C], known => [?D]}),
    {State, Effects} = lists:foldl(fun(Node, {S0, Before}) ->
                                           {S, More} = handle({command, ref, {forget, Node}}, S0),
                                           {S, Before ++ More}
                                   end, {Begun, []}, [?C, ?D]),
    ?assertEqual([{reply, ref, ok}, {disconnect, ?C}, {reply, ref, ok}, {disconnect, ?D}], Effects),
    ?assertEqual([?B], weft_swim_mesh_core:neighbours(State)),
    ?assertEqual([], dialled_by({notice, {seeds, []}}, State)),
    ?assertEqual([], dialled_by({timer, reconnect}, State)),
    ?assertMatch({_, [{reply, ref, {error, unknown_member}}]},
                 handle({command, ref, {forget, ?D}}, State)).

dialled_by(Event, State) ->
    {_, Effects} = handle(Event, State),
    dialled(Effects).

a_lost_link_is_evidence_but_a_failed_dial_is_none_test() ->
    {Lost, _} = handle({neighbour_down, ?D, closed}, cluster([?B, ?C, ?D])),
    ?assertEqual([?D], asked_for(Lost)),
    %% Its turn may come, but it does not go first with every seed.
    ?assertNotEqual([['e@host']], lists:usort([asked_for(after_failed_dial('e@host', Seed))
                                               || Seed <- lists:seq(1, 20)])).

after_failed_dial(Node, Seed) ->
    {Never, _} = handle(gossip(?B, {alive, Node, 1}), cluster([?B, ?C, ?D], Seed)),
    element(1, handle({neighbour_down, Node, econnrefused}, Never)).

leaving_drops_the_links_once_the_news_is_out_test() ->
    {State0, Effects0} = handle({command, ref, leave}, cluster([?B, ?C])),
    ?assertEqual([], [E || {disconnect, _} = E <- Effects0]),
    {_, Effects} = handle({timer, leave}, State0),
    ?assertEqual([{reply, ref, ok}, {disconnect, ?B}, {disconnect, ?C}],
                 [E || E <- Effects, lists:member(element(1, E), [reply, disconnect])]).

a_member_with_the_other_detector_is_told_once_test() ->
    {State, Effects} = handle({message, ?B, {{full_mesh, 1}, {digest, {1, 1}}}}, cluster([?B])),
    ?assertEqual([{notice, {warning, {other_detector, ?B}}}], Effects),
    ?assertMatch({_, []}, handle({message, ?B, {{full_mesh, 1}, {digest, {1, 1}}}}, State)),
    ?assertMatch({_, []}, handle({message, ?B, {2, future}}, State)),
    {Mesh, _} = weft_full_mesh_core:init(?A, #{}),
    ?assertMatch({_, []}, weft_full_mesh_core:handle({message, ?B, {1, gossip, []}}, 0, Mesh)).

%%% Parts

cluster(Nodes) -> cluster(Nodes, 1).

cluster(Nodes, Seed) ->
    {State, _} = weft_swim_mesh_core:init(?A, #{seeds => [?B], incarnation => 1, seed => Seed}),
    Linked = lists:foldl(fun(Node, S) -> element(1, handle({neighbour_up, Node}, S)) end,
                         State, Nodes),
    element(1, handle({message, ?B, {1, {push, [{Node, 1, alive} || Node <- Nodes]}, []}},
                      Linked)).

all_failed(Nodes) ->
    lists:foldl(fun(Node, S0) ->
                        {S1, _} = handle(gossip(?B, {dead, Node, 1}), S0),
                        element(1, handle({neighbour_down, Node, closed}, S1))
                end, cluster(Nodes), lists:reverse(Nodes)).

%% The node that others are asked for in the first round.
asked_for(State) ->
    {_, Effects} = handle({timer, {round, 0}}, State),
    lists:usort([Target || {send, _, {1, {ping_req, _, Target}, _}} <- Effects]).

handle(Event, State) -> weft_swim_mesh_core:handle(Event, 0, State).

gossip(From, Update) -> {message, From, {1, gossip, [Update]}}.

dialled(Effects) -> lists:sort([Node || {after_ms, _, {dial, Node, _}} <- Effects]).
