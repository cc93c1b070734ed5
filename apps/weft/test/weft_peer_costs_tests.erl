%% SPDX-License-Identifier: Apache-2.0
-module(weft_peer_costs_tests).

-include_lib("eunit/include/eunit.hrl").

a_cost_falls_at_once_and_rises_slowly_test() ->
    Costs = samples([{a, 80}, {a, 16}]),
    ?assertEqual(16, weft_peer_costs:get(a, Costs)),
    ?assertEqual(18.0, weft_peer_costs:get(a, weft_peer_costs:sample(a, 32, Costs))).

the_worst_is_the_most_expensive_one_that_is_not_protected_test() ->
    Costs = samples([{a, 5}, {b, 90}, {c, 40}, {other, 99}]),
    Worst = fun(Protected) -> weft_peer_costs:worst([a, b, c, new], Protected, Costs) end,
    ?assertEqual([{b, 90}, {c, 40}, {a, 5}, none], [Worst(N) || N <- [0, 1, 2, 3]]),
    ?assertEqual({c, 40}, weft_peer_costs:worst([a, b, c], 0, weft_peer_costs:keep([a, c], Costs))).

only_a_clear_difference_counts_test_() ->
    [?_assertEqual(Expected, weft_peer_costs:is_less(Ms, Than))
     || {Ms, Than, Expected} <- [{1, 3, true}, {2, 3, false}, {90, 100, true}, {91, 100, false},
                                 {100, 90, false}]].

samples(Samples) ->
    lists:foldl(fun({Node, Ms}, Costs) -> weft_peer_costs:sample(Node, Ms, Costs) end,
                weft_peer_costs:new(), Samples).
