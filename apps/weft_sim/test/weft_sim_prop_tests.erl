%% SPDX-License-Identifier: Apache-2.0
%% @doc Properties over small random worlds. Unlike the scenarios, what fails here shrinks to a few
%% nodes, links and verbs.
-module(weft_sim_prop_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@sim', 'b@sim', 'c@sim', 'd@sim', 'e@sim', 'f@sim']).
-define(STEPS_MS, 20000).
-define(SETTLE_MS, 25000).

routes_are_free_of_loops_always_and_shortest_once_quiet_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_router(), [{numtests, 600}, {to_file, user}]))}.

%% What was cut, crashed or paused stays so: each component must be right by itself.
prop_router() ->
    ?FORALL({Seed, Links, Steps}, {integer(), links(), list(step())},
            begin
                Machines = [{topology, weft_static_core, #{links => Links}},
                            {router, weft_router_core, #{}}],
                World = run(Seed, Machines, starts() ++ Steps,
                            [{weft_sim_loop_checker, #{}}, {weft_sim_distance_checker, #{}},
                             {weft_sim_route_checker, #{}}]),
                none =:= weft_sim_world:violation(World)
            end).

routes_are_right_with_batches_of_any_length_and_tight_hop_limits_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_router_options(), [{numtests, 300},
                                                                      {to_file, user}]))}.

prop_router_options() ->
    ?FORALL({Seed, Links, Steps, BatchMs, EntriesMax},
            {integer(), links(), list(step()), integer(1, 500), integer(1, 4)},
            begin
                Machines = [{topology, weft_static_core, #{links => Links}},
                            {router, weft_router_core, #{batch_ms => BatchMs, hop_limit => 6,
                                                         entries_max => EntriesMax,
                                                         digest_ms => 2000}}],
                World = run(Seed, Machines, starts() ++ Steps,
                            [{weft_sim_loop_checker, #{}}, {weft_sim_distance_checker, #{}},
                             {weft_sim_route_checker, #{}}]),
                none =:= weft_sim_world:violation(World)
            end).

members_agree_once_healed_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_members(), [{numtests, 300},
                                                               {to_file, user}]))}.

prop_members() ->
    ?FORALL({Seed, Steps}, {integer(), list(step())},
            begin
                Pairs = [{A, B} || A <- ?NODES, B <- ?NODES, A < B],
                Machines = [{topology, weft_full_mesh_core, #{seeds => ['a@sim']}}],
                World = run(Seed, Machines, starts() ++ Steps ++ [{?STEPS_MS, heal_all}],
                            [{weft_sim_membership_checker, #{}},
                             {weft_sim_link_checker, #{pairs => Pairs}}]),
                none =:= weft_sim_world:violation(World)
                    andalso [length(?NODES)] =:= lists:usort(
                                                   [maps:size(weft_sim_world:views(Node, World))
                                                    || Node <- ?NODES])
            end).

%% Whatever is cut, crashed or paused meanwhile. Nobody is told of an end that its witness alone
%% knew of and took with it.
news_of_the_end_of_nodes_reach_all_and_are_forgotten_by_all_test_() ->
    [{timeout, 600, ?_assert(proper:quickcheck(prop_obituaries(KeepMs, Forgotten),
                                               [{numtests, 300}, {to_file, user}]))}
     || {KeepMs, Forgotten} <- [{1000000, false}, {5000, true}]].

prop_obituaries(KeepMs, Forgotten) ->
    ?FORALL({Seed, Links, Steps, News}, {integer(), links(), list(step()), list(obituary())},
            begin
                Machines = [{topology, weft_static_core, #{links => Links}},
                            {router, weft_router_core, #{}},
                            {obituary, weft_obituary_core, #{keep_ms => KeepMs}}],
                World = run(Seed, Machines, starts() ++ Steps ++ News,
                            [{weft_sim_obituary_checker, #{forgotten => Forgotten}}]),
                none =:= weft_sim_world:violation(World)
            end).

obituary() ->
    {integer(0, ?STEPS_MS - 1),
     {notice, oneof(?NODES), obituary, {died, oneof(['x@sim', 'y@sim']), integer(1, 3)}}}.

the_same_seed_gives_the_same_world_test_() ->
    {timeout, 600, fun() ->
        [?assertEqual(traced(Name), traced(Name))
         || Name <- weft_sim_scenario:names() -- [mesh_split]]
    end}.

traced(Name) ->
    {Result, Trace} = weft_sim:run_traced(Name, 5, 4),
    {maps:remove(real_ms, Result), Trace}.

%% --- generators ---

%% Each node but the first is linked to an earlier one, and some more pairs are linked.
links() ->
    [First | Rest] = ?NODES,
    ?LET({Tree, More}, {tree(Rest, [First]), list(pair())},
         lists:usort([{min(A, B), max(A, B)} || {A, B} <- Tree ++ More])).

tree([], _Placed) -> [];
tree([Node | Rest], Placed) -> [{Node, oneof(Placed)} | tree(Rest, [Node | Placed])].

pair() ->
    ?SUCHTHAT({A, B}, {oneof(?NODES), oneof(?NODES)}, A =/= B).

step() ->
    {integer(0, ?STEPS_MS - 1), verb()}.

verb() ->
    Node = oneof(?NODES),
    oneof([?LET({A, B}, pair(), {cut, A, B}),
           ?LET({A, B}, pair(), {cut_one_way, A, B}),
           ?LET({A, B}, pair(), {heal, A, B}),
           {crash, Node}, {start, Node}, {start, Node, 0}, {pause, Node}, {resume, Node},
           {partition, [['a@sim', 'b@sim', 'c@sim'], ['d@sim', 'e@sim', 'f@sim']]},
           ?LET({A, B}, pair(), {notice, A, router, {link_cost, B, integer(1, 100000)}})]).

starts() ->
    [{0, {start, Node}} || Node <- ?NODES].

%% --- running ---

run(Seed, Machines, Steps, Checkers) ->
    World0 = weft_sim_world:new(#{seed => Seed, machines => fun(_Node) -> Machines end,
                                  checkers => Checkers, detection_ms => {10, 3000},
                                  observer => {weft_sim_answers, weft_sim_answers:new()}}),
    World = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end, World0,
                        known_machines(Machines, Steps)),
    weft_sim_world:settled(weft_sim_world:run_until(?STEPS_MS + ?SETTLE_MS, World)).

%% Costs are told to the router only where there is one.
known_machines(Machines, Steps) ->
    case lists:keymember(router, 1, Machines) of
        true -> Steps;
        false -> [Step || Step <- Steps, not is_notice(Step)]
    end.

is_notice({_AtMs, {notice, _, _, _}}) -> true;
is_notice(_Step) -> false.
