%% SPDX-License-Identifier: Apache-2.0
%% @doc Scenarios have what they are named for, in the smallest worlds too.
-module(weft_sim_scenario_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SEEDS, [1, 2]).
-define(NODES, [4, 7]).

each_scenario_has_faults_and_checkers_test_() ->
    [{atom_to_list(Name), fun() ->
         #{steps := Steps, lasting := Lasting, world := #{checkers := Checkers}} = Scenario,
         ?assertMatch([_ | _], [Verb || {_, Verb} <- Steps ++ Lasting, element(1, Verb) =/= start]),
         ?assertMatch([_ | _], weft_sim_checker:asked_in_the_end(Checkers))
     end} || {Name, Scenario} <- built(weft_sim_scenario:names(), [1], [4])].

some_links_stay_cut_test_() ->
    [{atom_to_list(Name),
      ?_assertMatch([_ | _], [Pair || {_, {cut, _, _} = Pair} <- Lasting])}
     || {Name, #{lasting := Lasting}} <- built([static_churn, static_costs, static_restarts,
                                                router_restarts, groups_churn, group_changes,
                                                mesh_churn, mesh_leave, mesh_split, swim_churn,
                                                swim_leave, swim_split, peers_churn, peers_leave,
                                                peers_split, peers_near])].

there_are_clients_test() ->
    [?assertMatch({Name, [_ | _]}, {Name, Clients})
     || {Name, Scenario} <- built([clients_churn, clients_loss]),
        #{clients := Clients} <- [checked(weft_sim_client_server_checker, Scenario)]].

there_are_groups_that_overlap_test() ->
    [?assertMatch([_, _ | _], maps:to_list(Groups))
     || {_, #{world := #{machines := Machines}}} <- built([groups_churn]),
        {topology, _, #{groups := Groups}} <- Machines('n001@sim')].

there_are_gateways_test() ->
    [?assertMatch({Name, [_ | _]}, {Name, Gateways})
     || {Name, Scenario} <- built([session_faults, session_silence], ?SEEDS, [2]),
        #{gateways := Gateways} <- [checked(weft_sim_circuit_checker, Scenario)]].

built(Names) ->
    built(Names, ?SEEDS, ?NODES).

built(Names, Seeds, Counts) ->
    [{Name, weft_sim_scenario:build(Name, Seed, Count)}
     || Name <- Names, Seed <- Seeds, Count <- Counts].

checked(Checker, #{world := #{checkers := Checkers}}) ->
    {Checker, Options} = lists:keyfind(Checker, 1, Checkers),
    Options.
