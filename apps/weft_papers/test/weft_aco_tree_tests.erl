%% SPDX-License-Identifier: Apache-2.0
-module(weft_aco_tree_tests).

-include_lib("eunit/include/eunit.hrl").

names(Count) -> [list_to_atom("n" ++ integer_to_list(Number)) || Number <- lists:seq(1, Count)].

levels_are_those_of_the_formula_test() ->
    ?assertEqual(131, weft_aco_tree:needed(3, 5)),
    ?assertEqual(3, weft_aco_tree:levels(150, 5)),
    ?assertEqual([{4, 1}, {5, 2}, {10, 2}, {11, 3}, {22, 3}, {23, 4}],
                 [{Nodes, weft_aco_tree:levels(Nodes, 2)} || Nodes <- [4, 5, 10, 11, 22, 23]]),
    ?assertEqual(0, weft_aco_tree:levels(1, 2)).

%% Three levels of degree 5: 5 + 25 submasters and 125 colonies report to another process.
as_many_report_as_have_names_test() ->
    {ok, Tree} = weft_aco_tree:multi_level(5, names(150)),
    ?assertEqual((5 * 5 * 5 * 5 - 5) div (5 - 1), weft_aco_tree:reporters(Tree)),
    Colonies = [Node || #{kind := colony, node := Node} <- all(Tree)],
    ?assertEqual({125, 125}, {length(Colonies), length(lists:usort(Colonies))}),
    ?assertEqual(131, length(lists:usort([Node || #{node := Node} <- all(Tree)]))).

all(#{children := Children} = Process) ->
    [Process | lists:append([all(Child) || Child <- Children])].

a_tree_of_eleven_nodes_test() ->
    {ok, #{node := n1, path := [], children := [First, Second]} = Tree} =
        weft_aco_tree:multi_level(2, names(12)),
    ?assertMatch(#{node := n1, path := [1], group := 1, kind := submaster}, First),
    ?assertEqual([{[1, 1], n2, 1}, {[1, 2], n2, 1}], below(First)),
    ?assertEqual([{[2, 1], n3, 1}, {[2, 2], n3, 1}], below(Second)),
    ?assertEqual([{[1, 1, 1], n4, 2}, {[1, 1, 2], n5, 2}, {[1, 2, 1], n6, 2}, {[1, 2, 2], n7, 2},
                  {[2, 1, 1], n8, 3}, {[2, 1, 2], n9, 3}, {[2, 2, 1], n10, 3},
                  {[2, 2, 2], n11, 3}],
                 [{Path, Node, Group}
                  || #{kind := colony, path := Path, node := Node, group := Group} <- all(Tree)]),
    ?assertEqual(lists:seq(1, 8), [Number || #{kind := colony, number := Number} <- all(Tree)]).

below(#{children := Children}) ->
    [{Path, Node, Group} || #{path := Path, node := Node, group := Group} <- Children].

%% Who reports to whom shares a group, and no one else needs to.
groups_are_parents_and_children_test() ->
    ?assertEqual([[1, 2, 3], [2, 4, 5, 6, 7], [3, 8, 9, 10, 11]], weft_aco_tree:groups(3, 2)),
    [begin
         Groups = weft_aco_tree:groups(Levels, Degree),
         {ok, Tree} = weft_aco_tree:multi_level(Degree,
                                                lists:seq(1, weft_aco_tree:needed(Levels,
                                                                                  Degree))),
         [?assert(lists:member(Parent, Members) andalso lists:member(Child, Members))
          || #{node := Parent, children := Children} <- all(Tree),
             #{node := Child, group := Group} <- Children,
             Members <- [lists:nth(Group, Groups)]]
     end || {Levels, Degree} <- [{2, 2}, {2, 3}, {3, 2}, {4, 2}, {3, 3}]].

too_few_nodes_are_told_test() ->
    {error, Text} = weft_aco_tree:multi_level(3, names(9)),
    ?assertEqual([], weft_report_said:missing([9, {"degree", 3}, {"need", 10}], Text)).

names_are_different_test() ->
    {ok, Tree} = weft_aco_tree:multi_level(11, names(11 * 11 + 1)),
    Paths = [Path || #{path := Path} <- all(Tree)],
    ?assertEqual(length(Paths), length(lists:usort(Paths))).
