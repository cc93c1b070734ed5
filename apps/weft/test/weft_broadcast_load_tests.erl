%% SPDX-License-Identifier: Apache-2.0
-module(weft_broadcast_load_tests).

-include_lib("eunit/include/eunit.hrl").

-define(L, weft_broadcast_load).
-define(MEGABYTE, 1048576).

number_and_size_are_bounded_test() ->
    ?assertEqual([false, true], [element(1, ?L:came(100, N, ?L:new())) || N <- [20000, 20001]]),
    Large = after_many(?MEGABYTE),
    ?assertEqual([false, true], [element(1, ?L:came(?MEGABYTE, N, Large)) || N <- [60, 70]]).

%% Those that wait are not as large.
one_that_is_large_is_no_reason_test() ->
    ?assertMatch({false, _}, ?L:came(?MEGABYTE, 1000, after_many(100))).

once_over_it_is_so_until_half_is_left_test() ->
    {true, Over} = ?L:came(100, 20001, ?L:new()),
    {true, Still} = ?L:came(100, 10001, Over),
    {false, Under} = ?L:looked(10000, Still),
    ?assertMatch({false, _}, ?L:looked(20000, Under)).

after_many(Bytes) ->
    lists:foldl(fun(_, Load) -> element(2, ?L:came(Bytes, 0, Load)) end, ?L:new(),
                lists:seq(1, 200)).
