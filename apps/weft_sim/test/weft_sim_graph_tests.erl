%% SPDX-License-Identifier: Apache-2.0
%% @doc Figures of graphs that are known by hand.
-module(weft_sim_graph_tests).

-include_lib("eunit/include/eunit.hrl").

%% A triangle a b c with a tail d at c, and a pair e f.
graph() ->
    #{a => [b, c], b => [a, c], c => [a, b, d], d => [c], e => [f], f => [e]}.

parts_are_found_the_largest_first_test() ->
    ?assertEqual([[a, b, c, d], [e, f]],
                 [lists:sort(Part) || Part <- weft_sim_graph:components(graph())]).

one_sided_links_are_found_and_can_be_left_out_test() ->
    Graph = (graph())#{d := [c, e]},
    ?assertEqual([{d, e}], weft_sim_graph:asymmetric(Graph)),
    ?assertEqual(graph(), weft_sim_graph:symmetric(Graph)),
    ?assertEqual([], weft_sim_graph:asymmetric(graph())).

degrees_are_counted_test() ->
    ?assertEqual([{1, 3}, {2, 2}, {3, 1}], weft_sim_graph:degrees(graph())).

clustering_is_the_share_of_triangles_test() ->
    %% a and b: 1; c: 1 of 3 pairs; the others have no pair.
    %% Sums of the same in another order differ in the last digit.
    ?assert(abs((1 + 1 + 1 / 3) / 6 - weft_sim_graph:clustering(graph())) < 1.0e-12).

paths_are_measured_from_the_given_nodes_test() ->
    ?assertEqual({(1 + 1 + 2) / 3, 2}, weft_sim_graph:path_lengths([a], graph())).
