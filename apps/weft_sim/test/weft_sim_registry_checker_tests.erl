%% SPDX-License-Identifier: Apache-2.0
%% @doc Names and groups of processes: the checker finds what all nodes have lost, and changes go on
%% after the healing. This module is a machine that answers a registration and forgets it; else it
%% is `weft_names_eventual_core'.
-module(weft_sim_registry_checker_tests).
-behaviour(weft_core).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, handle/3]).

-define(NODES, 5).

init(Self, Options) -> weft_names_eventual_core:init(Self, Options).

handle({command, Ref, {register, {name, {_, _}}, _, _, _}}, _NowMs, State) ->
    {State, [{reply, Ref, {ok, 0}}]};
handle(Event, NowMs, State) ->
    weft_names_eventual_core:handle(Event, NowMs, State).

a_name_that_was_given_and_is_nowhere_is_found_test() ->
    #{world := #{machines := Machines} = World} = Scenario =
        weft_sim_scenario:build(names_churn, 1, ?NODES),
    Forgetful = fun(Node) -> lists:keyreplace(weft_names_eventual_core, 2, Machines(Node),
                                              machine(Node, Machines))
                end,
    ?assertMatch({_, weft_sim_registry_checker, "names: answered and not undone is" ++ _},
                 violation(Scenario#{world := World#{machines := Forgetful}})),
    ?assertEqual(none, violation(Scenario)).

machine(Node, Machines) ->
    {Name, weft_names_eventual_core, Options} = lists:keyfind(names, 1, Machines(Node)),
    {Name, ?MODULE, Options}.

violation(Scenario) ->
    {#{violation := Violation}, _} = weft_sim:run_scenario(1, Scenario),
    Violation.

changes_go_on_after_the_healing_test() ->
    #{world := World, heal_at_ms := HealMs} = Scenario =
        weft_sim_scenario:build(names_churn, 1, ?NODES),
    {_, Trace} = weft_sim:run_scenario(1, Scenario#{world := World#{trace => true}}),
    Later = [Command || {Us, {command, _, _, Command}} <- Trace, Us > HealMs * 1000],
    ?assertMatch([_, _, _ | _], Later).
