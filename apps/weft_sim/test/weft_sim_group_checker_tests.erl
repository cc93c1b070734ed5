%% SPDX-License-Identifier: Apache-2.0
%% @doc The checker of groups finds what is wrong, and nothing in a world that is right.
-module(weft_sim_group_checker_tests).

-include_lib("eunit/include/eunit.hrl").

nothing_is_wrong_in_the_end_test() ->
    ?assertEqual(ok, judged([{3000, create('a@sim', ['a@sim', 'b@sim'])}], 10000)).

a_change_without_an_answer_is_found_test() ->
    found("without an answer", [{3000, create('a@sim', ['a@sim', 'b@sim'])}], 3000).

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
                {groups, weft_group_gossip_core, #{}}],
    World = lists:foldl(fun({AtMs, Verb}, W) -> weft_sim_world:schedule(AtMs, Verb, W) end,
                        weft_sim_world:new(#{seed => 1, machines => fun(_) -> Machines end}),
                        [{0, {start, Node}} || Node <- ['a@sim', 'b@sim', 'c@sim']] ++ Steps),
    weft_sim_group_checker:settled(weft_sim_world:run_until(UntilMs, World), Options).
