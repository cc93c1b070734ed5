%% SPDX-License-Identifier: Apache-2.0
%% @doc The clock of another node is known as well as is told.
-module(weft_profile_clock_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

the_shortest_round_trip_counts_test() ->
    Estimate = weft_profile_clock:estimate([{0, 1500, 1000}, {2000, 3050, 2100}]),
    ?assertEqual(#{ahead => 1000, error => 50}, Estimate),
    ?assertEqual(2050, weft_profile_clock:here(3050, Estimate)).

the_error_is_never_more_than_is_told_test_() ->
    ?_assert(proper:quickcheck(prop_error(), [{to_file, user}, quiet, {numtests, 300}])).

prop_error() ->
    ?FORALL({Ahead, Trips},
            {proper_types:integer(),
             proper_types:non_empty(proper_types:list({proper_types:non_neg_integer(),
                                                       proper_types:non_neg_integer(),
                                                       proper_types:integer()}))},
            begin
                #{ahead := Guess, error := Error} =
                    weft_profile_clock:estimate([{At, At + There + Ahead, At + There + Back}
                                                 || {There, Back, At} <- Trips]),
                abs(Guess - Ahead) =< Error
            end).
