%% SPDX-License-Identifier: Apache-2.0
%% @doc Shapes of groups, and what they cost on paper.
-module(grouping_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

a_ring_of_three_test() ->
    ?assertEqual(#{1 => [a, b, c], 2 => [c, d, e], 3 => [e, f, a]},
                 grouping:groups(ring, [a, b, c, d, e, f], #{size => 2, gateways => 1})).

two_groups_touch_once_in_a_ring_test() ->
    ?assertEqual(#{1 => [a, b, c], 2 => [c, d]},
                 grouping:groups(ring, [a, b, c, d], #{size => 2, gateways => 1})).

children_get_different_gateways_test() ->
    ?assertEqual(#{1 => [a, b], 2 => [c, d, a], 3 => [e, f, b], 4 => [g, c]},
                 grouping:groups(tree, [a, b, c, d, e, f, g], #{size => 2, gateways => 1})).

heads_are_the_hub_test() ->
    ?assertEqual(#{1 => [a, b], 2 => [c, d], 3 => [e], hub => [a, c, e]},
                 grouping:groups(hub, [a, b, c, d, e], #{size => 2, gateways => 1})).

a_block_has_its_gateways_test() ->
    ?assertError({smaller_than_its_gateways, [c]},
                 grouping:groups(hub, [a, b, c], #{size => 2})).

one_block_is_a_mesh_test() ->
    [?assertEqual(#{1 => [a, b]}, grouping:groups(Shape, [a, b], #{size => 6}))
     || Shape <- [ring, tree, hub]].

%% Worked out by hand: a - b - c, d behind b. b relays 6 of 12 ways, and without it nobody is left
%% with anybody.
facts_of_a_star_test() ->
    ?assertEqual(#{nodes => 4, connections_max => 3, connections_mean => 1.5, hops_mean => 1.5,
                   hops_max => 2, relayed => 0.5, cut_off => 1.0},
                 grouping_facts:facts(#{1 => [a, b], 2 => [b, c], 3 => [b, d]})).

%% A square: each pair of opposite nodes has two ways, which share.
facts_of_a_square_test() ->
    #{relayed := Relayed, cut_off := Cut} =
        grouping_facts:facts(#{1 => [a, b], 2 => [b, c], 3 => [c, d], 4 => [d, a]}),
    ?assertEqual({1 / 12, 0.0}, {Relayed, Cut}).

facts_of_a_mesh_test() ->
    ?assertEqual(#{nodes => 5, connections_max => 4, connections_mean => 4.0, hops_mean => 1.0,
                   hops_max => 1, relayed => 0.0, cut_off => 0.0}, grouping_facts:mesh(5)).

what_the_guide_says_is_what_is_counted_test_() ->
    {timeout, 60, fun what_the_guide_says_is_what_is_counted/0}.

what_the_guide_says_is_what_is_counted() ->
    {ok, Said} = file:read_file("docs/benchmarks/shape/facts.csv"),
    ?assertEqual(Said, iolist_to_binary(grouping_facts:table())).

shapes_hold_together_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_hold_together(),
                                             [{numtests, 100}, {to_file, user}]))}.

%% Each node is in a group, the topology is accepted, and with two gateways no single death cuts.
prop_hold_together() ->
    ?FORALL({Shape, Count, Size, Gateways, Degree},
            {oneof([ring, tree, hub]), range(4, 30), range(2, 7), range(1, 2), range(1, 3)},
            ?IMPLIES(Count rem Size =:= 0 orelse Count rem Size >= Gateways,
                     holds(Shape, [list_to_atom(lists:concat([n, I, "@h"]))
                                   || I <- lists:seq(1, Count)], Size, Gateways, Degree))).

holds(Shape, Nodes, Size, Gateways, Degree) ->
    Groups = grouping:groups(Shape, Nodes, #{size => Size, gateways => Gateways,
                                             degree => Degree}),
    #{nodes := Count, cut_off := Cut} = grouping_facts:facts(Groups),
    Count =:= length(Nodes)
        andalso weft_groups_core:validate(hd(Nodes), #{groups => Groups}) =:= ok
        andalso (Gateways =:= 1 orelse Cut < 1.0e-9).
