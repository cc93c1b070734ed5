%% SPDX-License-Identifier: Apache-2.0
%% @doc Messages of a session come out in the order sent, whichever of them take the longer way.
-module(weft_driver_order_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(M, weft_driver_order).

messages_of_an_unknown_session_are_not_taken_test() ->
    ?assertEqual(unknown, ?M:arrived(1, 1, a, ?M:new())),
    Up = ?M:up(1, n@h, ?M:new()),
    ?assertEqual(unknown, ?M:arrived(2, 1, a, Up)),
    ?assertEqual(unknown, ?M:arrived(1, 1, a, ?M:down(n@h, Up))),
    ?assertMatch({n@h, [a], _}, ?M:arrived(1, 1, a, ?M:down(m@h, Up))).

sessions_do_not_wait_for_each_other_test() ->
    Up = ?M:up(2, m@h, ?M:up(1, n@h, ?M:new())),
    {n@h, [], Waiting} = ?M:arrived(1, 2, b, Up),
    {m@h, [x], Other} = ?M:arrived(2, 1, x, Waiting),
    ?assertMatch({n@h, [a, b], _}, ?M:arrived(1, 1, a, Other)).

%% What came before the word that the session is up comes again after it, amid what came later.
in_order_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_in_order(), [{numtests, 500}, {to_file, user}]))}.

prop_in_order() ->
    ?FORALL({Count, Seed}, {range(1, 40), integer()},
            begin
                Numbers = shuffled(lists:seq(1, Count), Seed),
                {Out, _} = lists:foldl(fun(N, {Acc, Order0}) ->
                                           {n@h, Ms, Order} = ?M:arrived(7, N, N, Order0),
                                           {Acc ++ Ms, Order}
                                       end, {[], ?M:up(7, n@h, ?M:new())}, Numbers),
                Out =:= lists:seq(1, Count)
            end).

shuffled(List, Seed) ->
    {Keys, _} = lists:mapfoldl(fun(X, R0) -> {K, R} = rand:uniform_s(R0), {{K, X}, R} end,
                               rand:seed_s(exsss, Seed), List),
    [X || {_, X} <- lists:sort(Keys)].
