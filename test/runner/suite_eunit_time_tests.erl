%% SPDX-License-Identifier: Apache-2.0
-module(suite_eunit_time_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TIMES, 3).

one() -> ok.

%% However it is written.
one_test_has_a_minute_test() ->
    [?assertEqual({timeout, 60, Test}, suite_eunit_time:longer(Test, ?TIMES))
     || Test <- [fun one/0, {?MODULE, one}, {test, ?MODULE, one}, {17, fun one/0},
                 {"title", fun one/0}, {<<"title">>, {17, fun one/0}}]].

what_one_asks_for_is_multiplied_test() ->
    [?assertEqual({timeout, Longer, Test}, suite_eunit_time:longer({timeout, Asked, Test}, ?TIMES))
     || {Asked, Longer} <- [{1, 3}, {100, 300}], Test <- [fun one/0, {"title", fun one/0},
                                                           [fun one/0]]].

%% The time that a list has is not that of each in it.
each_of_a_list_has_its_own_test() ->
    One = fun one/0,
    ?assertEqual({timeout, 300, [{timeout, 60, One}, {timeout, 60, {"title", One}}]},
                 suite_eunit_time:longer({timeout, 100, [One, {"title", One}]}, ?TIMES)).

tests_of_fixtures_have_it_too_test() ->
    One = fun one/0,
    Setup = fun() -> 5 end,
    Given = fun(N) -> fun() -> N end end,
    ?assertEqual({setup, Setup, {"title", [{timeout, 60, One}, {timeout, 60, One}]}},
                 suite_eunit_time:longer({setup, Setup, {"title", [One, One]}}, ?TIMES)),
    {foreach, Setup, [Made, Same]} =
        suite_eunit_time:longer({foreach, Setup, [Given, One]}, ?TIMES),
    {timeout, 60, Test} = Made(5),
    ?assertEqual({5, {timeout, 60, One}}, {Test(), Same}).

generated_ones_have_it_too_test() ->
    One = fun one/0,
    {generator, Tests} = suite_eunit_time:longer({generator, fun() -> [One] end}, ?TIMES),
    ?assertEqual([{timeout, 60, One}], Tests()).

all_of_a_module_are_found_test() ->
    [{"module 'suite_eunit_time_tests'", Tests}] = suite_eunit_time:module(?MODULE, ?TIMES),
    ?assert(lists:member({timeout, 60, {test, ?MODULE, ?FUNCTION_NAME}}, Tests)),
    ?assertEqual(6, length(Tests)).
