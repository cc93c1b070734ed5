%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_agents_tests).

-include_lib("eunit/include/eunit.hrl").

-define(GROUPS, #{g1 => ['c@h', 'a@h'], g2 => ['b@h', 'c@h']}).

a_node_reports_to_each_of_its_groups_test() ->
    ?assertEqual(#{{group, g1} => ['a@h', 'c@h'], {group, g2} => ['b@h', 'c@h']},
                 weft_ops_agents:of_node('c@h', ?GROUPS)).

a_free_node_is_its_own_agent_test() ->
    ?assertEqual(#{{node, 'f@h'} => ['f@h']}, weft_ops_agents:of_node('f@h', ?GROUPS)).

there_is_an_agent_for_each_group_and_each_free_node_test() ->
    ?assertEqual(#{{group, g1} => ['a@h', 'c@h'], {group, g2} => ['b@h', 'c@h'],
                   {node, 'f@h'} => ['f@h']},
                 weft_ops_agents:all(['a@h', 'b@h', 'c@h', 'f@h'], ?GROUPS)).

%% The last one has the first one, so each has one node to watch.
a_free_node_has_the_next_free_one_as_witness_test_() ->
    Of = fun(Node, Nodes) -> weft_ops_agents:witnesses(Node, Nodes, ?GROUPS) end,
    [?_assertEqual(['g@h', 'd@h', 'e@h'], Of('f@h', ['e@h', 'g@h', 'd@h', 'f@h'])),
     ?_assertEqual(['d@h', 'e@h', 'f@h'], Of('g@h', ['d@h', 'e@h', 'f@h', 'g@h'])),
     ?_assertEqual(['g@h', 'h@h', 'i@h'], Of('f@h', ['g@h', 'h@h', 'i@h', 'j@h'])),
     %% Groups have agents.
     ?_assertEqual(['g@h'], Of('f@h', ['a@h', 'b@h', 'g@h'])),
     ?_assertEqual([], Of('a@h', ['f@h', 'g@h'])),
     ?_assertEqual([], Of('f@h', ['f@h']))].

only_members_that_are_connected_are_there_test_() ->
    [?_assertEqual(['b@h'], weft_ops_agents:there(['a@h', 'b@h', 'c@h'], ['b@h', 'shell@h'])),
     %% Without a topology nobody is a member.
     ?_assertEqual(['b@h'], weft_ops_agents:there([], ['b@h']))].
