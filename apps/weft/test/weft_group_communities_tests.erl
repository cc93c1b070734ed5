%% SPDX-License-Identifier: Apache-2.0
%% @doc Communities of graphs whose communities are known, and what a proposal of groups promises.
-module(weft_group_communities_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

cliques_with_a_thread_between_them_are_communities_test() ->
    Weights = maps:merge(maps:merge(clique([a, b, c, d], 100), clique([e, f, g], 100)),
                         #{{d, e} => 1}),
    ?assertEqual([[a, b, c, d], [e, f, g]], weft_group_communities:find(Weights)).

all_alike_are_one_community_test() ->
    ?assertEqual([[a, b, c, d]], weft_group_communities:find(clique([a, b, c, d], 5))),
    ?assertEqual([], weft_group_communities:find(#{})).

%% Ring of four cliques of three, Q by hand: 4 * (3/16 - (8/32)^2).
modularity_is_the_published_sum_test() ->
    Cliques = [[a1, a2, a3], [b1, b2, b3], [c1, c2, c3], [d1, d2, d3]],
    Weights = lists:foldl(fun(Nodes, W) -> maps:merge(W, clique(Nodes, 1)) end,
                          #{{a3, b1} => 1, {b3, c1} => 1, {c3, d1} => 1, {a1, d3} => 1}, Cliques),
    ?assert(abs(weft_group_communities:modularity(Cliques, Weights) - 0.5) < 1.0e-9),
    ?assert(abs(weft_group_communities:modularity([lists:append(Cliques)], Weights)) < 1.0e-9),
    ?assertEqual(Cliques, weft_group_communities:find(Weights)).

%% Zachary's karate club (1977): published for this algorithm is Q = 0.3807 with three communities.
the_karate_club_has_the_published_modularity_test() ->
    Weights = maps:from_list([{Edge, 1} || Edge <- karate()]),
    Found = weft_group_communities:find(Weights),
    ?assertEqual(3, length(Found)),
    ?assert(abs(weft_group_communities:modularity(Found, Weights) - 0.3807) < 0.0005).

nobody_is_lost_and_no_better_union_of_two_is_left_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_partition(), [{numtests, 200},
                                                                {to_file, user}]))}.

prop_partition() ->
    ?FORALL(Edges, list({integer(1, 9), integer(1, 9), integer(1, 1000)}),
            begin
                Weights = maps:from_list([{{A, B}, W} || {A, B, W} <- Edges, A < B]),
                Found = weft_group_communities:find(Weights),
                Q = weft_group_communities:modularity(Found, Weights),
                lists:sort(lists:append(Found)) =:=
                    lists:usort(lists:append([[A, B] || {A, B} <- maps:keys(Weights)]))
                    andalso lists:all(fun({One, Other}) ->
                                          Union = [One ++ Other | Found -- [One, Other]],
                                          weft_group_communities:modularity(Union, Weights)
                                              =< Q + 1.0e-9
                                      end, [{X, Y} || X <- Found, Y <- Found, X < Y])
            end).

clique(Nodes, Weight) ->
    maps:from_list([{{A, B}, Weight} || A <- Nodes, B <- Nodes, A < B]).

karate() ->
    [{min(A, B), max(A, B)}
     || {A, Bs} <- [{1, [2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32]},
                    {2, [3, 4, 8, 14, 18, 20, 22, 31]}, {3, [4, 8, 9, 10, 14, 28, 29, 33]},
                    {4, [8, 13, 14]}, {5, [7, 11]}, {6, [7, 11, 17]}, {7, [17]}, {9, [31, 33, 34]},
                    {10, [34]}, {14, [34]}, {15, [33, 34]}, {16, [33, 34]}, {19, [33, 34]},
                    {20, [34]}, {21, [33, 34]}, {23, [33, 34]}, {24, [26, 28, 30, 33, 34]},
                    {25, [26, 28, 32]}, {26, [32]}, {27, [30, 34]}, {28, [34]}, {29, [32, 34]},
                    {30, [33, 34]}, {31, [33, 34]}, {32, [33, 34]}, {33, [34]}],
        B <- Bs].
