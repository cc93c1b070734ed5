%% SPDX-License-Identifier: Apache-2.0
%% @doc Gossiped membership, event by event. Whole clusters are in the simulator's tests.
-module(weft_full_mesh_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').

a_node_knows_itself_and_dials_its_seeds_but_not_itself_test() ->
    {_, Effects} = weft_full_mesh_core:init(?A, #{seeds => [?B, ?A], incarnation => 7}),
    ?assertEqual([{view, {member, ?A}, 7}], views(Effects)),
    ?assertEqual([?B], dialled(Effects)).

a_link_that_comes_up_gets_the_whole_table_test() ->
    {_, Effects} = handle({neighbour_up, ?B}, start()),
    ?assertEqual([{send, ?B, {{full_mesh, 1}, {pull, [{?A, 1, member}]}}}], Effects).

a_member_heard_of_is_shown_dialled_and_passed_on_test() ->
    State0 = linked([?B, ?C], start()),
    {_, Effects} = handle(from(?B, {delta, [{'d@host', 3, member}]}), State0),
    ?assertEqual([{view, {member, 'd@host'}, 3}], views(Effects)),
    ?assertEqual(['d@host'], dialled(Effects)),
    ?assertEqual([{?C, {delta, [{'d@host', 3, member}]}}], sent(Effects)),
    ?assert(lists:member({notice, {member, 'd@host', joined}}, Effects)).

old_news_is_not_passed_on_test() ->
    State0 = linked([?B, ?C], start()),
    {State, _} = handle(from(?B, {delta, [{'d@host', 3, member}]}), State0),
    ?assertMatch({_, []}, handle(from(?C, {delta, [{'d@host', 3, member}]}), State)),
    ?assertMatch({_, []}, handle(from(?C, {delta, [{'d@host', 2, left}]}), State)).

whoever_asks_gets_what_it_lacks_test() ->
    State0 = linked([?B], start()),
    {State, _} = handle(from(?B, {delta, [{?C, 3, member}, {'d@host', 1, member},
                                          {'d@host', 1, left}]}), State0),
    {_, Effects} = handle(from(?B, {pull, [{?A, 1, member}, {?C, 2, member}]}), State),
    ?assertEqual([{?B, {delta, [{?C, 3, member}, {'d@host', 1, left}]}}], sent(Effects)).

news_that_got_lost_is_found_by_the_digest_test() ->
    {A0, _} = handle(from(?C, {delta, [{'d@host', 3, member}]}), linked([?B], start())),
    B0 = linked([?A], start(?B)),
    {_, DigestEffects} = handle({timer, digest}, A0),
    [{?B, {digest, _} = Digest}] = sent(DigestEffects),
    {B1, PullEffects} = handle(from(?A, Digest), B0),
    [{?A, {pull, _} = Pull}] = sent(PullEffects),
    {A1, DeltaEffects} = handle(from(?B, Pull), A0),
    [{?B, {delta, _} = Delta}] = sent(DeltaEffects),
    {B2, _} = handle(from(?A, Delta), B1),
    {_, Again} = handle({timer, digest}, A1),
    [{?B, Digest2}] = sent(Again),
    ?assertMatch({_, []}, handle(from(?A, Digest2), B2)).

a_node_called_left_takes_a_higher_incarnation_test() ->
    {_, Effects} = handle(from(?B, {delta, [{?A, 1, left}]}), linked([?B, ?C], start())),
    ?assertEqual([{view, {member, ?A}, 2}], views(Effects)),
    ?assertEqual([{?C, {delta, [{?A, 2, member}]}}], sent(Effects)).

a_node_whose_clock_went_back_takes_an_incarnation_above_its_former_one_test() ->
    {State, Effects} = handle(from(?B, {pull, [{?A, 9, member}]}), linked([?B], start())),
    ?assertEqual([{view, {member, ?A}, 10}], views(Effects)),
    ?assertEqual([{?B, {delta, [{?A, 10, member}]}}], sent(Effects)),
    ?assertMatch({_, []}, handle(from(?B, {delta, [{?A, 10, member}]}), State)).

a_member_that_left_is_given_up_and_not_revived_by_old_news_test() ->
    {State0, _} = handle(from(?B, {delta, [{?C, 3, member}]}), linked([?B, ?C], start())),
    {State, Effects} = handle(from(?B, {delta, [{?C, 3, left}]}), State0),
    ?assertEqual([{view, {member, ?C}, delete}], views(Effects)),
    ?assert(lists:member({disconnect, ?C}, Effects)),
    ?assertMatch({_, []}, handle(from(?B, {delta, [{?C, 3, member}]}), State)),
    {_, Back} = handle(from(?B, {delta, [{?C, 4, member}]}), State),
    ?assertEqual([{view, {member, ?C}, 4}], views(Back)).

leaving_tells_all_neighbours_then_drops_the_links_and_answers_test() ->
    {State0, Effects0} = handle({command, ref, leave}, linked([?B, ?C], start())),
    Gone = {delta, [{?A, 1, left}]},
    ?assertEqual([{?B, Gone}, {?C, Gone}], sent(Effects0)),
    ?assertEqual([], [R || {reply, _, R} <- Effects0]),
    [{500, left}] = [{Ms, T} || {after_ms, Ms, T} <- Effects0],
    {State, Effects} = handle({timer, left}, State0),
    ?assertEqual([{disconnect, ?B}, {disconnect, ?C}, {reply, ref, ok}], Effects),
    ?assertMatch({_, []}, handle(from(?B, {delta, [{'d@host', 1, member}]}), State)),
    ?assertMatch({_, [{reply, again, ok}]}, handle({command, again, leave}, State)).

a_member_that_will_not_come_back_can_be_forgotten_test() ->
    {State0, _} = handle(from(?B, {delta, [{?C, 3, member}]}), linked([?B], start())),
    {State, Effects} = handle({command, ref, {forget, ?C}}, State0),
    ?assertEqual([{view, {member, ?C}, delete}], views(Effects)),
    ?assertEqual([{?B, {delta, [{?C, 3, left}]}}], sent(Effects)),
    ?assert(lists:member({reply, ref, ok}, Effects)),
    ?assertMatch({_, [{reply, ref, {error, unknown_member}}]},
                 handle({command, ref, {forget, ?C}}, State)),
    ?assertMatch({_, [{reply, ref, {error, self}}]}, handle({command, ref, {forget, ?A}}, State)).

%% A seed, or a member of a topology that ran before. Nobody has met it, so the news has no
%% incarnation of it, and whichever it has when it comes is later.
who_is_dialled_and_was_never_met_can_be_forgotten_test() ->
    [begin
         {Begun, _} = weft_full_mesh_core:init(?A, #{incarnation => 1, Why => [?C, ?B]}),
         {State, Effects} = handle({command, ref, {forget, ?C}}, linked([?B], Begun)),
         ?assertEqual([?C], [Node || {disconnect, Node} <- Effects]),
         ?assertEqual([{?B, {delta, [{?C, 0, left}]}}], sent(Effects)),
         ?assert(lists:member({reply, ref, ok}, Effects)),
         ?assertEqual([?B], weft_full_mesh_core:neighbours(State)),
         ?assertMatch({_, []}, handle({notice, {seeds, [?C]}}, State)),
         {_, Back} = handle(from(?B, {delta, [{?C, 1, member}]}), State),
         ?assertEqual([?C], dialled(Back))
     end || Why <- [seeds, known]].

who_is_told_that_a_stranger_is_forgotten_gives_it_up_test() ->
    {Begun, _} = weft_full_mesh_core:init(?A, #{incarnation => 1, known => [?B, ?C]}),
    {State, Effects} = handle(from(?B, {delta, [{?C, 0, left}]}), linked([?B], Begun)),
    ?assertEqual([?C], [Node || {disconnect, Node} <- Effects]),
    ?assertEqual([?B], weft_full_mesh_core:neighbours(State)).

seeds_that_come_later_are_dialled_and_strangers_left_out_are_given_up_test() ->
    {State0, _} = weft_full_mesh_core:init(?A, #{seeds => [?B], incarnation => 1}),
    {State1, Effects1} = handle({notice, {seeds, [?A, ?B, ?C, 'd@host']}}, State0),
    ?assertEqual([?C, 'd@host'], dialled(Effects1)),
    {State2, _} = handle(from(?B, {delta, [{?C, 1, member}]}), State1),
    {State, Effects} = handle({notice, {seeds, ['e@host']}}, State2),
    ?assertEqual(['e@host'], dialled(Effects)),
    ?assertEqual(['d@host'], [Node || {disconnect, Node} <- Effects]),
    ?assertEqual([?B, ?C, 'e@host'], weft_full_mesh_core:neighbours(State)).

a_seed_that_left_is_not_dialled_test() ->
    {State, _} = handle(from(?B, {delta, [{?C, 3, left}]}), linked([?B], start())),
    ?assertMatch({_, []}, handle({notice, {seeds, [?C]}}, State)).

a_full_table_is_told_once_test() ->
    {State0, _} = weft_full_mesh_core:init(?A, #{members_max => 1}),
    {State, Effects} = handle(from(?B, {delta, [{?B, 1, member}, {?C, 1, member}]}), State0),
    ?assertEqual([{notice, {warning, {members_full, ?B}}}], Effects),
    ?assertMatch({_, []}, handle(from(?B, {delta, [{?B, 1, member}]}), State)).

messages_of_an_unknown_version_are_ignored_and_unknown_commands_crash_test() ->
    State = linked([?B], start()),
    ?assertEqual({State, []}, handle({message, ?B, {{full_mesh, 2}, anything}}, State)),
    ?assertEqual({State, []}, handle({message, ?B, {1, {digest, {1, 1}}}}, State)),
    ?assertError(function_clause, handle({command, ref, levae}, State)).

%% --- parts ---

start() -> start(?A).

start(Self) ->
    {State, _} = weft_full_mesh_core:init(Self, #{incarnation => 1}),
    State.

linked(Nodes, State) ->
    lists:foldl(fun(Node, S0) -> {S, _} = handle({neighbour_up, Node}, S0), S end, State, Nodes).

handle(Event, State) ->
    weft_full_mesh_core:handle(Event, 0, State).

from(Node, Message) -> {message, Node, {{full_mesh, 1}, Message}}.

sent(Effects) -> [{To, Message} || {send, To, {{full_mesh, 1}, Message}} <- Effects].

views(Effects) -> [View || {view, _, _} = View <- Effects].

dialled(Effects) -> [Node || {after_ms, _, {dial, Node, _}} <- Effects].
