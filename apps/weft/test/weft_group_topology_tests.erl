%% SPDX-License-Identifier: Apache-2.0
%% @doc The topology of a table of groups, and that no table makes the cluster fall apart.
-module(weft_group_topology_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['a@h', 'b@h', 'c@h', 'd@h', 'e@h', 'f@h']).

groups_that_share_nodes_are_the_topology_test() ->
    Groups = #{g1 => ['a@h', 'b@h', 'c@h'], g2 => ['c@h', 'd@h']},
    ?assertEqual(Groups, weft_group_topology:topology(Groups, ['a@h'])).

groups_without_common_nodes_are_joined_by_two_nodes_each_test() ->
    Groups = #{g1 => ['a@h', 'b@h', 'c@h'], g2 => ['d@h', 'e@h'], g3 => ['f@h', 'e@h']},
    ?assertEqual(Groups#{weft_bridge => ['a@h', 'b@h', 'd@h', 'e@h']},
                 weft_group_topology:topology(Groups, [])).

free_nodes_are_linked_to_each_other_and_to_two_of_each_part_test() ->
    ?assertEqual(#{weft_bridge => ['a@h', 'b@h']},
                 weft_group_topology:topology(#{}, ['b@h', 'a@h'])),
    ?assertEqual(#{g => ['a@h', 'b@h', 'c@h'], weft_bridge => ['a@h', 'b@h', 'd@h', 'e@h']},
                 weft_group_topology:topology(#{g => ['a@h', 'b@h', 'c@h']}, ['d@h', 'e@h'])).

the_bridge_is_no_group_that_somebody_made_test() ->
    ?assertEqual(#{g => ['a@h']}, weft_group_topology:without_bridge(#{g => ['a@h'],
                                                                   weft_bridge => ['a@h']})).

%% The checks of the topology itself are the judge.
every_topology_is_connected_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_connected(), [{numtests, 500},
                                                                {to_file, user}]))}.

prop_connected() ->
    ?FORALL(Groups, list({oneof([g1, g2, g3, g4]), list(oneof(?NODES))}),
            begin
                Plain = maps:map(fun(_, Nodes) -> lists:usort(Nodes) end, maps:from_list(Groups)),
                Topology = weft_group_topology:topology(Plain, ?NODES),
                lists:all(fun(Node) ->
                              ok =:= weft_groups_core:validate(Node, #{groups => Topology})
                          end, ?NODES)
            end).
