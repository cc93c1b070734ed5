%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of the router, event by event. Whole networks are in the simulator's tests.
%%
%% The node under test is a@host, its neighbours b@host and c@host; z@host is somewhere behind them.
-module(weft_router_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').
-define(Z, 'z@host').
-define(COST, 1000).
%% Drawn at the start of a router; with the seed of these tests always the same.
-define(START, 1650603130).

%% --- what a node tells ---

a_new_link_gets_all_routes_test() ->
    {_, Effects} = handle({neighbour_up, ?B}, start()),
    ?assertEqual([{?B, {full, ?START, last, [{?A, 5, 0, 0}]}}], sent(Effects)),
    ?assertEqual([{view, {neighbour, ?B}, ?COST}], views(Effects)).

a_route_learned_is_shown_and_told_to_all_but_its_next_hop_test() ->
    {_, Effects} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    ?assertEqual([{view, {route, ?Z}, {?B, 2000 + ?COST, 3}}], views(Effects)),
    ?assertEqual([{?C, {update, [{?Z, 1, 2000 + ?COST, 3}], []}}], sent(Effects)),
    ?assert(lists:member({notice, {route, ?Z, ?B}}, Effects)).

changes_shortly_after_one_another_go_out_in_one_message_test() ->
    {S1, First} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    ?assertEqual([{10, flush}], timers(First)),
    {S2, []} = without_views(hear(?B, [{'y@host', 1, 2000, 2}], S1)),
    {S3, []} = without_views(hear(?B, [{'x@host', 1, 2000, 2}], S2)),
    {_, Flushed} = handle({timer, flush}, S3),
    ?assertEqual([{?C, {update, [{'x@host', 1, 3000, 3}, {'y@host', 1, 3000, 3}], []}}],
                 sent(Flushed)).

a_route_that_turns_to_a_neighbour_is_retracted_there_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 5000, 2}], linked([?B, ?C])),
    {S2, _} = handle({timer, flush}, S1),
    {_, Effects} = hear(?C, [{?Z, 1, 100, 1}], S2),
    ?assertEqual([{?B, {update, [{?Z, 1, 1100, 2}], []}}, {?C, {update, [], [?Z]}}],
                 lists:sort(sent(Effects))).

a_lost_neighbour_is_retracted_at_once_test() ->
    {S1, _} = hear(?B, [{?B, 1, 0, 0}, {?Z, 1, 2000, 2}], linked([?B, ?C])),
    {S2, _} = handle({timer, flush}, S1),
    {S3, Effects} = handle({neighbour_down, ?B, timeout}, S2),
    ?assertEqual([{?C, {update, [], [?B, ?Z]}}], sent(Effects)),
    ?assertEqual([{view, {neighbour, ?B}, delete}, {view, {route, ?B}, delete},
                  {view, {route, ?Z}, delete}], lists:sort(views(Effects))),
    ?assert(lists:member({notice, {route, ?Z, unreachable}}, Effects)),
    ?assertEqual({S3, []}, weft_router_core:handle({neighbour_down, ?B, timeout}, 0, S3)).

a_lost_destination_is_shown_as_lost_until_it_is_found_or_forgotten_test() ->
    {S1, First} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    ?assertEqual([], lost(First)),
    {S2, Lost} = weft_router_core:handle({message, ?B, {1, {update, [], [?Z]}}}, 7, S1),
    ?assertEqual([{view, {lost, ?Z}, 7}], lost(Lost)),
    {_, Found} = hear(?C, [{?Z, 2, 2000, 2}], S2),
    ?assertEqual([{view, {lost, ?Z}, delete}], lost(Found)),
    {S3, Soon} = weft_router_core:handle({timer, digest}, 180007, S2),
    ?assertEqual([], lost(Soon)),
    {_, Late} = weft_router_core:handle({timer, digest}, 180008, S3),
    ?assertEqual([{view, {lost, ?Z}, delete}], lost(Late)).

when_the_last_link_came_up_is_shown_test() ->
    {_, Effects} = weft_router_core:handle({neighbour_up, ?C}, 9, linked([?B])),
    ?assertEqual([{view, link_up_ms, 9}], [View || {view, Key, _} = View <- Effects, is_atom(Key)]).

large_tables_go_out_in_parts_of_bounded_size_test() ->
    Routes = [{list_to_atom("n" ++ integer_to_list(N) ++ "@host"), 1, 10, 1}
              || N <- lists:seq(1, 25)],
    State = linked([?B], start(#{entries_max => 10})),
    {S1, _} = hear(?B, Routes, State),
    {_, Effects} = handle({neighbour_up, ?C}, S1),
    ?assertMatch([{?C, {full, _, more, _}}, {?C, {full, _, more, _}}, {?C, {full, _, last, _}}],
                 sent(Effects)),
    ?assertEqual([10, 10, 6], [length(Part) || {_, {full, _, _, Part}} <- sent(Effects)]).

a_node_that_does_not_relay_announces_only_itself_test() ->
    {S1, Effects1} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C], start(#{relay => false}))),
    ?assertEqual([], sent(Effects1)),
    ?assertEqual([{view, {route, ?Z}, {?B, 3000, 3}}], views(Effects1)),
    {S2, Effects2} = handle({neighbour_up, 'd@host'}, S1),
    ?assertEqual([{'d@host', {full, ?START, last, [{?A, 5, 0, 0}]}}], sent(Effects2)),
    ?assertMatch({_, []}, handle(from(?C, {request, ?Z, 2, 10}), S2)).

a_node_that_closes_its_transit_retracts_all_but_itself_and_opens_it_again_test() ->
    {S1, _} = hear(?B, [{?B, 1, 0, 0}, {?Z, 1, 2000, 2}], linked([?B, ?C])),
    {S2, _} = handle({timer, flush}, S1),
    {S3, Closed} = handle({notice, {transit, false}}, S2),
    ?assertEqual([{?C, {update, [{?A, 5, 0, 0}], [?B, ?Z]}}],
                 [Sent || {?C, _} = Sent <- sent(Closed)]),
    ?assertEqual([], views(Closed)),
    {S4, _} = handle({timer, flush}, S3),
    {S5, Learnt} = hear(?B, [{'y@host', 1, 2000, 2}], S4),
    ?assertEqual([], sent(Learnt)),
    {S6, _} = handle({timer, flush}, S5),
    {_, Open} = handle({notice, {transit, true}}, S6),
    [{?C, {update, Routes, []}}] = [Sent || {?C, _} = Sent <- sent(Open)],
    ?assertEqual([?A, ?B, 'y@host', ?Z], lists:sort([Dest || {Dest, _, _, _} <- Routes])).

%% --- what a node believes ---

a_worse_route_does_not_displace_a_better_one_and_takes_over_when_that_is_lost_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    {S2, []} = without_views(hear(?C, [{?Z, 1, 2500, 3}], S1)),
    {_, Effects} = retract(?B, [?Z], S2),
    ?assertEqual([{view, {route, ?Z}, {?C, 3500, 4}}], views(Effects)).

an_unfeasible_route_is_not_taken_but_a_newer_seqno_is_asked_for_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    {S2, _} = hear(?C, [{?Z, 1, 9000, 9}], S1),
    {S3, Effects} = retract(?B, [?Z], S2),
    ?assertEqual([{view, {route, ?Z}, delete}], views(Effects)),
    ?assert(lists:member({?C, {request, ?Z, 2, 64}}, sent(Effects))),
    {_, Answered} = hear(?C, [{?Z, 2, 9000, 9}], S3),
    ?assertEqual([{view, {route, ?Z}, {?C, 10000, 10}}], views(Answered)).

a_better_but_unfeasible_route_is_asked_for_while_the_old_one_serves_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 1000, 1}], linked([?B, ?C])),
    {S2, Worse} = hear(?B, [{?Z, 1, 9000, 9}], S1),
    ?assertEqual([{view, {route, ?Z}, {?B, 10000, 10}}], views(Worse)),
    {_, Effects} = hear(?C, [{?Z, 1, 3000, 3}], S2),
    ?assertEqual([], views(Effects)),
    ?assertEqual([{?C, {request, ?Z, 2, 64}}], sent(Effects)).

a_request_is_repeated_with_growing_pauses_while_it_lasts_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    {S2, _} = hear(?C, [{?Z, 1, 9000, 9}], S1),
    {S3, Effects} = retract(?B, [?Z], S2),
    ?assert(lists:member({500, retry}, timers(Effects))),
    {S4, Early} = weft_router_core:handle({timer, retry}, 499, S3),
    ?assertEqual([], sent(Early)),
    {S5, Again} = weft_router_core:handle({timer, retry}, 500, S4),
    ?assertEqual([{?C, {request, ?Z, 2, 64}}], sent(Again)),
    {S6, Waiting} = weft_router_core:handle({timer, retry}, 1499, S5),
    ?assertEqual([], sent(Waiting)),
    {S7, _} = retract(?C, [?Z], S6),
    {_, Over} = weft_router_core:handle({timer, retry}, 1500, S7),
    ?assertEqual([], sent(Over) ++ timers(Over)).

a_restarted_destination_with_a_lower_seqno_is_asked_to_rise_test() ->
    {S1, _} = hear(?B, [{?B, 100, 0, 0}], linked([?B, ?C])),
    {S2, _} = handle({neighbour_down, ?B, crash}, S1),
    {S3, _} = handle({neighbour_up, ?B}, S2),
    {S4, Accepted} = hear(?B, [{?B, 1, 0, 0}], S3),
    ?assertEqual([], views(Accepted)),
    ?assertEqual([{?B, {request, ?B, 101, 64}}], sent(Accepted)),
    {_, Risen} = hear(?B, [{?B, 101, 0, 0}], S4),
    ?assertEqual([{view, {route, ?B}, {?B, ?COST, 1}}], views(Risen)).

routes_longer_than_the_hop_limit_are_not_taken_test() ->
    State = linked([?B], start(#{hop_limit => 3})),
    ?assertMatch({_, [{view, {route, ?Z}, {?B, _, 3}}]}, only_views(hear(?B, [{?Z, 1, 9, 2}],
                                                                        State))),
    ?assertMatch({_, []}, only_views(hear(?B, [{?Z, 1, 9, 3}], State))).

a_neighbour_can_not_fill_the_table_beyond_its_bound_test() ->
    State = linked([?B], start(#{destinations_max => 1})),
    {_, Effects} = hear(?B, [{?Z, 1, 9, 2}, {'y@host', 1, 9, 2}, {'x@host', 1, 9, 2}], State),
    ?assertMatch([{view, {route, ?Z}, _}], views(Effects)),
    ?assertEqual([{routes_full, 'y@host'}], [W || {notice, {warning, W}} <- Effects]).

messages_of_strangers_and_of_unknown_versions_are_ignored_test() ->
    State = linked([?B]),
    ?assertMatch({State, []}, hear('stranger@host', [{?Z, 1, 9, 2}], State)),
    ?assertEqual({State, []}, weft_router_core:handle({message, ?B, {2, new}}, 0, State)),
    ?assertError(function_clause, handle({command, ref, anything}, State)).

%% --- requests for others and for us ---

a_request_for_us_raises_our_seqno_once_test() ->
    {S1, Effects} = handle(from(?B, {request, ?A, 6, 10}), linked([?B, ?C])),
    ?assertEqual([{?B, {update, [{?A, 6, 0, 0}], []}}, {?C, {update, [{?A, 6, 0, 0}], []}}],
                 sent(Effects)),
    {_, Again} = handle(from(?C, {request, ?A, 6, 10}), S1),
    ?assertEqual([{?C, {update, [{?A, 6, 0, 0}], []}}], sent(Again)).

a_request_is_passed_on_towards_the_destination_and_the_answer_back_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    {S2, _} = handle({timer, flush}, S1),
    {S3, Effects} = handle(from(?C, {request, ?Z, 2, 10}), S2),
    ?assertEqual([{?B, {request, ?Z, 2, 9}}], sent(Effects)),
    {S4, Twice} = handle(from(?C, {request, ?Z, 2, 10}), S3),
    ?assertEqual([], sent(Twice)),
    {_, Answer} = hear(?B, [{?Z, 2, 2000, 2}], S4),
    ?assertEqual([{?C, {update, [{?Z, 2, 3000, 3}], []}}], sent(Answer)).

a_request_that_our_route_satisfies_is_answered_at_once_test() ->
    {S1, _} = hear(?B, [{?Z, 7, 2000, 2}], linked([?B, ?C])),
    {S2, _} = handle({timer, flush}, S1),
    {_, Effects} = handle(from(?C, {request, ?Z, 7, 10}), S2),
    ?assertEqual([{?C, {update, [{?Z, 7, 3000, 3}], []}}], sent(Effects)).

a_request_is_not_sent_back_to_where_it_came_from_nor_for_ever_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    {_, Back} = handle(from(?B, {request, ?Z, 2, 10}), S1),
    ?assertEqual([], sent(Back)),
    {_, Tired} = handle(from(?C, {request, ?Z, 2, 1}), S1),
    ?assertEqual([], sent(Tired)).

a_new_seqno_alone_is_told_to_nobody_who_did_not_ask_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    {S2, _} = handle({timer, flush}, S1),
    ?assertMatch({_, []}, hear(?B, [{?Z, 2, 2000, 2}], S2)).

%% --- healing ---

equal_digests_are_silent_and_different_ones_bring_everything_anew_test() ->
    {A, _} = hear(?C, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    {_, Effects} = handle({timer, digest}, A),
    [{?B, Digest}, {?C, _}] = sent(Effects),
    {B0, _} = weft_router_core:init(?B, #{incarnation => 9}),
    {B1, _} = handle({neighbour_up, ?A}, B0),
    {B2, _} = handle(from(?A, {full, ?START, last, [{?A, 5, 0, 0}]}), B1),
    {B3, Missing} = handle(from(?A, Digest), B2),
    ?assertEqual([{?A, refresh}], sent(Missing)),
    {_, Refresh} = handle(from(?B, refresh), A),
    [{?B, {full, ?START, last, All}}] = sent(Refresh),
    ?assertEqual([{?A, 5, 0, 0}, {?Z, 1, 3000, 3}], lists:sort(All)),
    {B4, _} = handle(from(?A, {full, ?START, last, All}), B3),
    ?assertMatch({_, []}, handle(from(?A, Digest), B4)).

%% A change begins anew, also one that is told to one neighbour only.
digests_come_more_and_more_rarely_while_nothing_changes_test() ->
    Rounds = fun(State0, Count) ->
                 {Sent, State} = lists:mapfoldl(
                                   fun(_, S0) ->
                                       {S, Effects} = handle({timer, digest}, S0),
                                       {sent(Effects) =/= [], S}
                                   end, State0, lists:seq(1, Count)),
                 {[Round || {Round, true} <- lists:zip(lists:seq(1, Count), Sent)], State}
             end,
    {First, S1} = Rounds(linked([?B, ?C]), 50),
    ?assertEqual([1, 2, 4, 8, 16, 32, 48], First),
    {S2, _} = hear(?B, [{?Z, 1, 2000, 2}], S1),
    {Then, S3} = Rounds(S2, 5),
    ?assertEqual([1, 2, 4], Then),
    {S4, _} = handle(from(?B, refresh), S3),
    ?assertMatch({[1, 2, 4, 8], _}, Rounds(S4, 9)).

%% It has no rounds in its state, but among its options.
a_router_of_before_goes_on_when_this_code_is_loaded_test() ->
    {Running, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    Before = erlang:delete_element(tuple_size(Running), Running),
    ?assertEqual(handle({timer, digest}, Running), handle({timer, digest}, Before)).

what_a_full_table_does_not_name_is_gone_and_the_rest_undisturbed_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}, {'y@host', 1, 2000, 2}], linked([?B])),
    {_, Effects} = handle(from(?B, {full, 7, last, [{?Z, 1, 2000, 2}]}), S1),
    ?assertEqual([{view, {route, 'y@host'}, delete}], views(Effects)).

a_table_in_parts_counts_when_the_last_one_is_there_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B])),
    {S2, []} = handle(from(?B, {full, 7, more, [{'y@host', 1, 1, 1}]}), S1),
    {_, Effects} = handle(from(?B, {full, 7, last, [{'x@host', 1, 1, 1}]}), S2),
    ?assertEqual([{view, {route, 'x@host'}, {?B, 1001, 2}},
                  {view, {route, 'y@host'}, {?B, 1001, 2}},
                  {view, {route, ?Z}, delete}], lists:sort(views(Effects))).

a_neighbour_whose_router_was_restarted_is_told_everything_anew_test() ->
    {S1, First} = handle(from(?B, {full, 7, last, [{?B, 1, 0, 0}]}), linked([?B])),
    ?assertEqual([], sent(First)),
    {S2, Same} = handle(from(?B, {full, 7, last, [{?B, 1, 0, 0}]}), S1),
    ?assertEqual([], sent(Same) ++ views(Same)),
    {_, Other} = handle(from(?B, {full, 8, last, [{?B, 1, 0, 0}]}), S2),
    ?assertEqual([{?B, {full, ?START, last, [{?A, 5, 0, 0}]}}], sent(Other)),
    ?assert(lists:member({view, {route, ?B}, delete}, Other)).

a_feasibility_distance_is_forgotten_long_after_the_destination_was_lost_test() ->
    {S1, _} = hear(?B, [{?Z, 9, 2000, 2}], linked([?B, ?C])),
    {S2, _} = retract(?B, [?Z], S1),
    {S3, _} = weft_router_core:handle({timer, digest}, 180000, S2),
    ?assertMatch({_, []}, only_views(hear(?B, [{?Z, 1, 2000, 2}], S3))),
    {S4, _} = weft_router_core:handle({timer, digest}, 180001, S2),
    ?assertMatch({_, [{view, {route, ?Z}, _}]}, only_views(hear(?B, [{?Z, 1, 2000, 2}], S4))).

%% --- costs ---

a_measured_cost_replaces_the_default_and_small_changes_are_ignored_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 2000, 2}], linked([?B, ?C])),
    {S2, Effects} = handle({notice, {link_cost, ?B, 400}}, S1),
    ?assertEqual([{view, {neighbour, ?B}, 400}, {view, {route, ?Z}, {?B, 2400, 3}}],
                 views(Effects)),
    ?assertMatch({_, []}, only_views(handle({notice, {link_cost, ?B, 499}}, S2))),
    {_, Larger} = handle({notice, {link_cost, ?B, 500}}, S2),
    ?assertEqual([{view, {neighbour, ?B}, 500}, {view, {route, ?Z}, {?B, 2500, 3}}],
                 views(Larger)).

a_cost_measured_before_the_link_is_up_counts_when_it_comes_test() ->
    {S1, []} = handle({notice, {link_cost, ?B, 42}}, start()),
    ?assertMatch({_, [{view, {neighbour, ?B}, 42}]}, only_views(handle({neighbour_up, ?B}, S1))).

a_cheaper_way_is_taken_when_costs_change_test() ->
    {S1, _} = hear(?B, [{?Z, 1, 100, 2}], linked([?B, ?C])),
    {S2, _} = hear(?C, [{?Z, 2, 100, 2}], S1),
    {_, Effects} = handle({notice, {link_cost, ?C, 1}}, S2),
    ?assertEqual([{view, {neighbour, ?C}, 1}, {view, {route, ?Z}, {?C, 101, 3}}], views(Effects)).

%% --- parts ---

start() -> start(#{}).

start(Options) ->
    {State, _} = weft_router_core:init(?A, Options#{incarnation => 5}),
    State.

linked(Nodes) -> linked(Nodes, start()).

linked(Nodes, State) ->
    lists:foldl(fun(Node, S0) -> {S, _} = handle({neighbour_up, Node}, S0), S end, State, Nodes).

handle(Event, State) -> weft_router_core:handle(Event, 0, State).

hear(From, Routes, State) -> handle(from(From, {update, Routes, []}), State).

retract(From, Dests, State) -> handle(from(From, {update, [], Dests}), State).

from(Node, Message) -> {message, Node, {1, Message}}.

sent(Effects) -> [{To, Message} || {send, To, {1, Message}} <- Effects].

%% Neighbours and routes.
views(Effects) -> [View || {view, {Kind, _}, _} = View <- Effects, Kind =/= lost].

lost(Effects) -> [View || {view, {lost, _}, _} = View <- Effects].

timers(Effects) -> [{Ms, Timer} || {after_ms, Ms, Timer} <- Effects].

only_views({State, Effects}) -> {State, views(Effects)}.

without_views({State, Effects}) ->
    {State, [E || E <- Effects, element(1, E) =/= view, element(1, E) =/= notice]}.
