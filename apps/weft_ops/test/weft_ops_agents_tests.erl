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

%% Whoever comes before the agent would take its place at once.
who_would_be_agent_before_the_one_that_is_has_to_be_seen_first_test_() ->
    Of = fun(Agents, Candidates) -> weft_ops_agents:unproven(Agents, Candidates, 'c@h') end,
    Four = ['a@h', 'b@h', 'c@h', 'd@h'],
    [?_assertEqual(['a@h'], Of(#{{group, g} => 'b@h'}, #{{group, g} => Four})),
     ?_assertEqual([], Of(#{{group, g} => 'a@h'}, #{{group, g} => Four})),
     %% Of a group that this node has joined, and of one that the agent has left.
     ?_assertEqual(['a@h', 'b@h'], Of(#{{node, 'c@h'} => 'c@h'}, #{{group, g} => Four})),
     ?_assertEqual(['a@h', 'b@h'], Of(#{{group, g} => 'x@h'}, #{{group, g} => Four})),
     %% Nobody gives a witness anything.
     ?_assertEqual([], Of(#{{node, 'c@h'} => 'c@h'}, #{{node, 'c@h'} => ['c@h'],
                                                       witness => ['d@h', 'a@h']}))].

who_has_lost_a_role_is_told_who_has_it_test_() ->
    [?_assertEqual([], weft_ops_agents:parted(#{{group, g} => 'a@h'}, #{{group, g} => 'a@h'})),
     ?_assertEqual([{'a@h', {group, g}, 'b@h'}],
                   weft_ops_agents:parted(#{{group, g} => 'a@h'}, #{{group, g} => 'b@h'})),
     ?_assertEqual([{'w@h', witness, 'v@h'}],
                   weft_ops_agents:parted(#{{node, 'c@h'} => 'c@h', witness => 'w@h'},
                                          #{{node, 'c@h'} => 'c@h', witness => 'v@h'})),
     ?_assertEqual([{'w@h', witness, 'a@h'}, {'c@h', {node, 'c@h'}, 'a@h'}],
                   weft_ops_agents:parted(#{{node, 'c@h'} => 'c@h', witness => 'w@h'},
                                          #{{group, g} => 'a@h'})),
     %% It has left one of two groups, which had one agent.
     ?_assertEqual([], weft_ops_agents:parted(#{{group, f} => 'a@h', {group, g} => 'a@h'},
                                              #{{group, g} => 'a@h'}))].

%% It would say that the alarms of the former agent are over.
no_witness_is_given_alarms_test_() ->
    Left = #{{group, g} => 'a@h'},
    [?_assertEqual([{'a@h', {group, g}, 'c@h'}],
                   weft_ops_agents:parted(Left, #{{node, 'c@h'} => 'c@h', witness => Witness}))
     || Witness <- ['w@h', 'a@h']].
