%% SPDX-License-Identifier: Apache-2.0
%% @doc Replicas of partitions: an odd number of different voters, and few moves when voters change.
-module(weft_names_strong_placement_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(PLACEMENT, weft_names_strong_placement).

as_many_as_wanted_and_always_odd_test() ->
    Count = fun(Voters, Replicas) -> length(?PLACEMENT:replicas(0, voters(Voters), Replicas)) end,
    ?assertEqual([1, 1, 3, 3, 3, 3], [Count(N, 3) || N <- [1, 2, 3, 4, 5, 60]]),
    ?assertEqual([1, 1, 3, 3, 5, 5], [Count(N, 5) || N <- [1, 2, 3, 4, 5, 60]]).

a_majority_is_more_than_half_test() ->
    ?assertEqual([1, 2, 2, 3, 3], [?PLACEMENT:majority(N) || N <- [1, 2, 3, 4, 5]]).

properties_test_() ->
    [{timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 200}, {to_file, user}]))}
     || Property <- [prop_different_and_known(), prop_one_voter_less()]].

prop_different_and_known() ->
    ?FORALL({Voters, P}, {some_voters(), range(0, 63)},
            begin
                Replicas = ?PLACEMENT:replicas(P, Voters, 3),
                length(lists:usort(Replicas)) =:= length(Replicas) andalso Replicas -- Voters =:= []
                    andalso Replicas =:= ?PLACEMENT:replicas(P, lists:reverse(Voters), 3)
            end).

%% Replicas that stay keep their order, so most leaders stay as well.
prop_one_voter_less() ->
    ?FORALL({Voters, P, N}, {some_voters(), range(0, 63), range(1, 100)},
            begin
                Gone = lists:nth(N rem length(Voters) + 1, Voters),
                Before = ?PLACEMENT:replicas(P, Voters, 3),
                Kept = Before -- [Gone],
                Kept =:= lists:sublist(?PLACEMENT:replicas(P, Voters -- [Gone], 3), length(Kept))
            end).

first_replicas_are_spread_test() ->
    First = [hd(?PLACEMENT:replicas(P, voters(5), 3)) || P <- lists:seq(0, 63)],
    [?assert(length([F || F <- First, F =:= V]) >= 5) || V <- voters(5)].

some_voters() ->
    ?LET(Count, range(5, 20), voters(Count)).

voters(Count) ->
    [list_to_atom("n" ++ integer_to_list(N) ++ "@x") || N <- lists:seq(1, Count)].
