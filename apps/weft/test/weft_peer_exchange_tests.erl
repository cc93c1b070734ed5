%% SPDX-License-Identifier: Apache-2.0
%% @doc The four parts in an exchange of neighbours, each by itself. (All four together, with
%% crashes in between, are in the tests of the simulator, random orders of messages in
%% `weft_peer_to_peer_core_tests'.)
-module(weft_peer_exchange_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CORE, weft_peer_to_peer_core).
-define(SELF, 'self@host').
%% The neighbours, and what their links cost; the first one is protected.
-define(FAR, 'far@host').
-define(MIDDLE, 'middle@host').
-define(NEAR, 'near@host').
-define(COSTS, [{?FAR, 100}, {?MIDDLE, 50}, {?NEAR, 4}]).
-define(OTHER, 'other@host').
-define(PEER, 'peer@host').

%% --- initiator --------------------------------------------------------------------------------

a_near_candidate_is_asked_and_takes_the_place_of_the_worst_neighbour_test() ->
    {Asked, Effects} = measured(?OTHER, 5, begun(measuring())),
    [{neighbour, Number, 7, Question}] = sent(?OTHER, Effects),
    ?assertEqual({exchange, ?MIDDLE, 45}, Question),
    {Done, Parting} = event({message, ?OTHER, {1, {accept, Number, 7}}}, Asked),
    ?assertEqual([{disconnect, []}], sent(?MIDDLE, Parting)),
    ?assertEqual(lists:sort([?FAR, ?NEAR, ?OTHER]), ?CORE:neighbours(Done)).

a_candidate_that_is_no_nearer_is_released_test() ->
    {_, Effects} = measured(?OTHER, 46, begun(measuring())),
    ?assertEqual({[], [?OTHER]}, {sent(?OTHER, Effects), released(Effects)}).

who_waits_for_an_answer_begins_nothing_and_asks_nobody_else_test() ->
    {Asked, _} = measured(?OTHER, 5, begun(measuring())),
    {Waiting, Effects} = event({timer, optimise}, passive([?PEER], Asked)),
    ?assertEqual([], connected(Effects)),
    {_, Parted} = event({message, ?MIDDLE, {1, {disconnect, []}}}, Waiting),
    ?assertEqual([], connected(Parted)).

without_the_option_nothing_is_measured_test() ->
    {Node, Effects} = ?CORE:init(?SELF, #{seeds => [], incarnation => 7}),
    ?assertEqual([], [Timer || {after_ms, _, optimise = Timer} <- Effects]),
    {_, Answer} = event({message, ?PEER, {1, {ping, 3, 2}}}, up(?PEER, Node)),
    ?assertEqual([{pong, 3, 2}], sent(?PEER, Answer)).

nodes_that_are_still_mixing_exchange_nothing_test() ->
    {_, Effects} = event({timer, optimise}, passive([?OTHER], measuring(#{mix_rounds => 5}))),
    ?assertEqual([], connected(Effects)).

%% --- candidate --------------------------------------------------------------------------------

a_full_candidate_asks_its_worst_neighbour_to_go_test() ->
    {Pending, Effects} = exchange(measuring()),
    ?assertEqual([{replace, ?PEER, ?OTHER, 90}], sent(?MIDDLE, Effects)),
    ?assertEqual([], sent(?PEER, Effects)),
    {Done, Answer} = event({message, ?MIDDLE, {1, {disconnect, []}}}, Pending),
    ?assertEqual([{accept, 3, 7}], sent(?PEER, Answer)),
    ?assertEqual(lists:sort([?FAR, ?NEAR, ?PEER]), ?CORE:neighbours(Done)).

the_initiator_also_gets_the_place_of_one_that_is_lost_test() ->
    {Pending, _} = exchange(measuring()),
    {Done, Answer} = event({neighbour_down, ?MIDDLE, lost}, Pending),
    ?assertEqual([{accept, 3, 7}], sent(?PEER, Answer)),
    ?assertEqual(lists:sort([?FAR, ?NEAR, ?PEER]), ?CORE:neighbours(Done)).

if_nobody_goes_the_initiator_is_declined_test_() ->
    {Pending, Effects} = exchange(measuring()),
    [Timer] = [T || {after_ms, _, {exchange, _, _} = T} <- Effects],
    [?_assertEqual([{decline, 3}], sent(?PEER, element(2, event(Event, Pending))))
     || Event <- [{message, ?MIDDLE, {1, keep}}, {timer, Timer}]].

an_initiator_that_gave_up_gets_nothing_test() ->
    {Pending, _} = exchange(measuring()),
    {GivenUp, _} = event({message, ?PEER, {1, {disconnect, []}}}, Pending),
    {Done, Effects} = event({message, ?MIDDLE, {1, {disconnect, []}}}, GivenUp),
    ?assertEqual({[], [?FAR, ?NEAR]}, {sent(?PEER, Effects), ?CORE:neighbours(Done)}).

a_candidate_with_a_free_place_takes_the_initiator_at_once_test() ->
    {Done, Effects} = exchange(measuring(#{active => 4})),
    ?assertEqual([{accept, 3, 7}], sent(?PEER, Effects)),
    ?assertEqual(4, length(?CORE:neighbours(Done))).

a_candidate_takes_part_in_one_exchange_at_a_time_test() ->
    {Pending, _} = exchange(measuring()),
    Question = {neighbour, 1, 7, {exchange, ?PEER, 40}},
    {_, Effects} = event({message, ?OTHER, {1, Question}}, up(?OTHER, Pending)),
    ?assertEqual([{decline, 1}], sent(?OTHER, Effects)).

who_does_not_optimise_declines_test() ->
    {_, Effects} = exchange(unmeasured(#{optimise => none})),
    ?assertEqual([{decline, 3}], sent(?PEER, Effects)).

%% --- the neighbour that is to go --------------------------------------------------------------

it_goes_to_the_old_neighbour_if_the_sum_falls_test() ->
    {Measuring, Connecting} = replace(?MIDDLE, 90),
    ?assertEqual([?OTHER], connected(Connecting)),
    {Asked, Effects} = measured(?OTHER, 81, Measuring),
    [{neighbour, Number, 7, {switch, ?PEER}}] = sent(?OTHER, Effects),
    {Done, Parting} = event({message, ?OTHER, {1, {accept, Number, 7}}}, Asked),
    ?assertEqual([{disconnect, []}], sent(?MIDDLE, Parting)),
    ?assertEqual(lists:sort([?FAR, ?NEAR, ?OTHER]), ?CORE:neighbours(Done)),
    {_, Declined} = event({message, ?OTHER, {1, {decline, Number}}}, Asked),
    ?assertEqual([keep], sent(?MIDDLE, Declined)).

it_stays_if_the_sum_does_not_fall_test() ->
    {Measuring, _} = replace(?MIDDLE, 90),
    {_, Effects} = measured(?OTHER, 82, Measuring),
    ?assertEqual({[keep], [?OTHER]}, {sent(?MIDDLE, Effects), released(Effects)}).

it_stays_if_it_is_the_neighbour_of_the_old_one_already_test() ->
    {_, Effects} = event({message, ?MIDDLE, {1, {replace, ?PEER, ?NEAR, 200}}}, measuring()),
    ?assertEqual([keep], sent(?MIDDLE, Effects)).

it_stays_if_it_takes_part_in_another_exchange_test() ->
    {Pending, _} = exchange(measuring()),
    {_, Effects} = event({message, ?FAR, {1, {replace, ?PEER, ?OTHER, 200}}}, Pending),
    ?assertEqual({[keep], []}, {sent(?FAR, Effects), connected(Effects)}).

%% --- the old neighbour ------------------------------------------------------------------------

the_old_neighbour_takes_the_one_and_parts_with_the_other_test() ->
    {Done, Effects} = switch(?MIDDLE),
    ?assertEqual({[{accept, 3, 7}], [{disconnect, []}]},
                 {sent(?PEER, Effects), sent(?MIDDLE, Effects)}),
    ?assertEqual(lists:sort([?FAR, ?NEAR, ?PEER]), ?CORE:neighbours(Done)).

the_old_neighbour_declines_if_the_initiator_is_no_neighbour_test() ->
    {_, Effects} = switch(?OTHER),
    ?assertEqual([{decline, 3}], sent(?PEER, Effects)).

%% --- parts of tests ---------------------------------------------------------------------------

exchange(Node) ->
    Question = {neighbour, 3, 7, {exchange, ?OTHER, 40}},
    event({message, ?PEER, {1, Question}}, up(?PEER, Node)).

replace(Candidate, BudgetMs) ->
    event({message, Candidate, {1, {replace, ?PEER, ?OTHER, BudgetMs}}}, measuring()).

switch(Initiator) ->
    event({message, ?PEER, {1, {neighbour, 3, 7, {switch, Initiator}}}}, up(?PEER, measuring())).

measuring() -> measuring(#{}).

%% A node whose neighbours are measured.
measuring(Options) ->
    {Pinging, Effects} = event({timer, optimise}, unmeasured(Options)),
    NoPings = [] =:= [To || {send, To, {1, {ping, 0, 0}}} <- Effects],
    lists:foldl(fun(_, State) when NoPings -> State;
                   ({Neighbour, Ms}, State) -> pong(Neighbour, 0, Ms, State)
                end, Pinging, ?COSTS).

unmeasured(Options) ->
    All = maps:merge(#{seeds => [], seed => 1, incarnation => 7, active => 3, optimise => rtt,
                       mix_from => 0, mix_rounds => 0}, Options),
    {Empty, _} = ?CORE:init(?SELF, All),
    lists:foldl(fun({Neighbour, _}, State0) ->
                    Question = {neighbour, 1, 7, low},
                    {State, _} = event({message, Neighbour, {1, Question}}, up(Neighbour, State0)),
                    State
                end, Empty, ?COSTS).

%% It found a candidate to measure.
begun(Node) ->
    {Begun, Effects} = event({timer, optimise}, passive([?OTHER], Node)),
    ?assertEqual([?OTHER], connected(Effects)),
    Begun.

passive(Nodes, State0) ->
    Reply = {shuffle_reply, [?SELF], [{Node, 7} || Node <- Nodes]},
    {State, _} = event({message, ?NEAR, {1, Reply}}, State0),
    State.

%% A link to the node comes up; the first round trip takes twice as long.
measured(Node, Ms, State0) ->
    {State1, First} = event({neighbour_up, Node}, State0),
    ?assertEqual([{ping, 0, 2}], sent(Node, First)),
    {State2, Second} = ?CORE:handle({message, Node, {1, {pong, 0, 2}}}, 2 * Ms, State1),
    ?assertEqual([{ping, 2 * Ms, 1}], sent(Node, Second)),
    State3 = pong(Node, 1, Ms, State2),
    ?CORE:handle({message, Node, {1, {pong, 0, 0}}}, Ms, State3).

pong(Node, Left, Ms, State0) ->
    {State, _} = ?CORE:handle({message, Node, {1, {pong, 0, Left}}}, Ms, State0),
    State.

event(Event, State) ->
    ?CORE:handle(Event, 0, State).

up(Node, State0) ->
    {State, _} = event({neighbour_up, Node}, State0),
    State.

sent(To, Effects) ->
    [Message || {send, Node, {1, Message}} <- Effects, Node =:= To].

connected(Effects) -> [Node || {connect, Node} <- Effects].

released(Effects) -> [Node || {disconnect, Node} <- Effects].
