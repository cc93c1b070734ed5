%% SPDX-License-Identifier: Apache-2.0
%% @doc Shapes of clusters. Clusters themselves are in weft_orbit_SUITE and weft_aco_SUITE.
-module(weft_bench_cluster_tests).

-include_lib("eunit/include/eunit.hrl").

without_groups_all_are_in_one_test() ->
    ?assertEqual(#{nodes => 3, groups => [[1, 2, 3]]}, weft_bench_cluster:shape(3, [])).

groups_get_names_and_nodes_test() ->
    Shape = weft_bench_cluster:shape(5, [[1, 2, 3], [3, 4, 5]]),
    ?assertEqual([{n, 1}, {n, 2}, {n, 3}, {n, 4}, {n, 5}], weft_bench_cluster:roles(Shape)),
    NameOf = fun({n, Number}) -> list_to_atom("n" ++ integer_to_list(Number)) end,
    ?assertEqual(#{seeds => [n1], groups => #{group_1 => [n1, n2, n3], group_2 => [n3, n4, n5]}},
                 weft_bench_cluster:named(Shape, NameOf)).

nodes_that_are_not_there_can_not_be_reached_test() ->
    ?assertEqual(['none@nowhere'], weft_bench_cluster:unreachable([node(), 'none@nowhere'])).
