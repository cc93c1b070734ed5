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
