%% SPDX-License-Identifier: Apache-2.0
%% @doc Each checker finds what it is for: worlds in which its invariant is broken on purpose.
%%
%% Three nodes, all linked. A scripted machine writes the views that a wrong router would.
-module(weft_sim_checker_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@sim').
-define(B, 'b@sim').
-define(C, 'c@sim').
-define(NODES, [?A, ?B, ?C]).
-define(TRIANGLE, [{?A, ?B}, {?B, ?C}, {?A, ?C}]).
-define(CUT_OFF_C, [{5000, {cut, ?A, ?C}}, {5000, {cut, ?B, ?C}}]).

%% --- loops ---

next_hops_in_a_circle_are_a_loop_test() ->
    Steps = [show(?A, {route, ?C}, {?B, 2, 2}), show(?B, {route, ?C}, {?A, 2, 2})],
    ?assertMatch({_, _, "routes to c@sim form a loop: [b@sim,a@sim,b@sim]"},
                 scripted(Steps, {weft_sim_loop_checker, #{}})).

next_hops_over_a_dead_link_are_no_loop_test() ->
    Steps = [{5000, {cut, ?A, ?B}}, show(?A, {route, ?C}, {?B, 2, 2}),
             show(?B, {route, ?C}, {?A, 2, 2})],
    ?assertEqual(none, scripted(Steps, {weft_sim_loop_checker, #{}})).

%% a and b lose c, and each believes that the other still knows the way.
a_router_without_feasibility_condition_forms_loops_test() ->
    Violations = [violation([topology(), {router, weft_sim_naive_router, #{}}], ?CUT_OFF_C,
                            [{weft_sim_loop_checker, #{}}], Seed) || Seed <- lists:seq(1, 20)],
    ?assert(lists:any(fun(Violation) -> Violation =/= none end, Violations)).

the_router_forms_none_where_the_naive_one_does_test() ->
    [?assertEqual(none, violation([topology(), {router, weft_router_core, #{}}], ?CUT_OFF_C,
                                  [{weft_sim_loop_checker, #{}}, {weft_sim_distance_checker, #{}},
                                   {weft_sim_route_checker, #{}}], Seed))
     || Seed <- lists:seq(1, 20)].

%% --- feasibility distances ---

a_next_hop_that_is_no_nearer_is_found_test() ->
    Machines = [topology(), {router, weft_router_core, #{}}, {script, weft_sim_script, #{}}],
    ?assertMatch({_, weft_sim_distance_checker, "a@sim has distance" ++ _},
                 violation(Machines, [show(?A, {route, ?C}, {?B, 2000, 2})],
                           [{weft_sim_distance_checker, #{}}], 1)).

%% --- routes ---

right_routes_are_accepted_test() ->
    ?assertEqual(none, scripted(right_routes(), {weft_sim_route_checker, #{}})).

a_missing_route_is_found_test() ->
    ?assertMatch({_, _, "a@sim lacks routes to [c@sim]" ++ _},
                 scripted(right_routes() ++ [show(?A, {route, ?C}, delete)],
                          {weft_sim_route_checker, #{}})).

a_route_to_an_unreachable_node_is_found_test() ->
    ?assertMatch({_, _, "a@sim lacks routes to [] and has routes to unreachable [c@sim]"},
                 scripted(right_routes() ++ ?CUT_OFF_C ++ [show(?C, {route, ?A}, delete),
                                                           show(?C, {route, ?B}, delete),
                                                           show(?B, {route, ?C}, delete)],
                          {weft_sim_route_checker, #{}})).

a_route_over_a_dead_link_is_found_test() ->
    ?assertMatch({_, _, "the route from a@sim to c@sim ends after [a@sim]"},
                 scripted(right_routes() ++ [{5000, {cut, ?A, ?C}},
                                             show(?A, {route, ?C}, {?C, 14, 1})],
                          {weft_sim_route_checker, #{}})).

a_detour_is_found_unless_it_is_allowed_test() ->
    Detour = right_routes() ++ [show(?A, {route, ?C}, {?B, 14, 2})],
    ?assertMatch({_, _, "a@sim has metric 14 to c@sim, the shortest path has 7"},
                 scripted(Detour, {weft_sim_route_checker, #{}})),
    ?assertEqual(none, scripted(Detour, {weft_sim_route_checker, #{is_shortest => false}})).

right_routes() ->
    [show(Node, Key, Value) || Node <- ?NODES, Peer <- ?NODES, Peer =/= Node,
                               {Key, Value} <- [{{route, Peer}, {Peer, 7, 1}},
                                                {{neighbour, Peer}, 7}]].

%% --- members and links ---

equal_members_are_accepted_and_different_ones_found_test() ->
    Checker = {weft_sim_membership_checker, #{}},
    ?assertEqual(none, scripted([], Checker)),
    ?assertMatch({_, _, "a@sim sees members" ++ _},
                 scripted([show(?B, {member, ?C}, 5)], Checker)),
    ?assertMatch({_, _, "a@sim does not know [c@sim]" ++ _},
                 scripted([show(?A, {member, ?C}, delete)], Checker)),
    ?assertMatch({_, _, "a@sim does not know [] and still knows [c@sim], who left"},
                 scripted([], {weft_sim_membership_checker, #{left => [?C]}})).

a_link_that_stays_down_is_found_test() ->
    Checker = {weft_sim_link_checker, #{pairs => ?TRIANGLE}},
    ?assertEqual(none, scripted([], Checker)),
    ?assertMatch({_, _, "links not up: [{a@sim,b@sim}]"},
                 scripted([{5000, {cut, ?A, ?B}}], Checker)).

%% --- rest ---

a_world_that_does_not_come_to_rest_is_found_test() ->
    Checker = {weft_sim_quiet_checker, #{}},
    ?assertEqual(none, scripted([show(?A, {route, ?C}, {?B, 2, 2})], Checker)),
    ?assertMatch({_, _, "a view changed 4999 ms ago"},
                 scripted([setelement(1, show(?A, {route, ?C}, {?B, 2, 2}), 25001)], Checker)).

%% --- parts ---

show(Node, Key, Value) ->
    {20000, {command, Node, script, {perform, [{view, Key, Value}]}}}.

scripted(Steps, Checker) ->
    violation([topology(), {script, weft_sim_script, #{}}], Steps, [Checker], 1).

topology() ->
    {topology, weft_static_core, #{links => ?TRIANGLE}}.

violation(Machines, Steps, Checkers, Seed) ->
    World0 = weft_sim_world:new(#{seed => Seed, machines => fun(_Node) -> Machines end,
                                  checkers => Checkers}),
    World = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end, World0,
                        [{0, {start, Node}} || Node <- ?NODES] ++ Steps),
    weft_sim_world:violation(weft_sim_world:settled(weft_sim_world:run_until(30000, World))).
