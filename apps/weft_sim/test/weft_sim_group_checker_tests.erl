%% SPDX-License-Identifier: Apache-2.0
%% @doc The checker of groups finds what is wrong, and nothing in a world that is right. This module
%% is a machine that forgets some changes, with an answer or without one; else it is
%% `weft_group_gossip_core'.
-module(weft_sim_group_checker_tests).
-behaviour(weft_core).

-include_lib("eunit/include/eunit.hrl").

-export([init/2, handle/3]).

init(Self, Options) -> weft_group_gossip_core:init(Self, Options).

handle({command, Ref, {create, answered, Nodes}}, _NowMs, State) ->
    {State, [{reply, Ref, {ok, #{members => Nodes, unreachable => []}}}]};
handle({command, _Ref, {create, silent, _Nodes}}, _NowMs, State) ->
    {State, []};
handle(Event, NowMs, State) ->
    weft_group_gossip_core:handle(Event, NowMs, State).

nothing_is_wrong_in_the_end_test() ->
    ?assertEqual(ok, judged([{3000, create('a@sim', ['a@sim', 'b@sim'])}], 10000)).

a_change_without_an_answer_is_found_test() ->
    found("without an answer", [{3000, create('a@sim', ['a@sim', 'b@sim'])}], 3000).

a_change_that_is_forgotten_is_found_whatever_the_core_says_test() ->
    Ask = fun(Name) -> {3000, {command, 'a@sim', groups, {create, Name, ['a@sim']}}} end,
    found("without an answer", [Ask(silent)], 20000),
    found("the last change of answered made it", [Ask(answered)], 20000),
    %% Its node was started again, so it may be forgotten.
    Again = {4000, {restart_machine, 'a@sim', groups}},
    ?assertEqual(ok, judged([Ask(silent), Ask(answered), Again], 20000)).

nodes_that_know_different_groups_are_found_test() ->
    found("knows the groups", [{3000, create('a@sim', ['a@sim'])}], 3000).

members_that_are_not_linked_are_found_test() ->
    Apart = [{2000, {cut, 'a@sim', 'c@sim'}}, {3000, create('a@sim', ['a@sim', 'c@sim'])}],
    found("not linked", Apart, 30000),
    ?assertEqual(ok, judged(Apart, 30000, #{apart => [{'a@sim', 'c@sim'}]})).

create(Node, Nodes) -> {command, Node, groups, {create, g, Nodes}}.

found(Words, Steps, UntilMs) ->
    {violation, Text} = judged(Steps, UntilMs),
    ?assertNotEqual(nomatch, string:find(lists:flatten(Text), Words)).

judged(Steps, UntilMs) -> judged(Steps, UntilMs, #{}).

judged(Steps, UntilMs, Options) ->
    Machines = [{topology, weft_static_core, #{links => [{'a@sim', 'b@sim'}, {'b@sim', 'c@sim'}]}},
                {groups, ?MODULE, #{}}],
    World = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end,
                        weft_sim_world:new(#{seed => 1, machines => fun(_) -> Machines end,
                                             observer => {weft_sim_answers,
                                                          weft_sim_answers:new()}}),
                        [{0, {start, Node}} || Node <- ['a@sim', 'b@sim', 'c@sim']] ++ Steps),
    weft_sim_group_checker:settled(weft_sim_world:run_until(UntilMs, World), Options).
