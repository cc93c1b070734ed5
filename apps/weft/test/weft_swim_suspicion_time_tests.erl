%% SPDX-License-Identifier: Apache-2.0
%% @doc The time that a suspected member gets, by example and by rule.
-module(weft_swim_suspicion_time_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

plain_swim_waits_a_fixed_time_whoever_confirms_test() ->
    Plain = suspicion(100, #{lifeguard => []}),
    ?assertEqual(8000, weft_swim_suspicion_time:due_ms(Plain)),
    ?assertEqual(old, weft_swim_suspicion_time:confirm(b, 0, Plain)).

the_time_grows_with_the_logarithm_of_the_members_test() ->
    Options = weft_swim_options:complete(#{}),
    ?assertEqual([4000, 4000, 8000, 12000],
                 [weft_swim_suspicion_time:min_ms(N, Options) || N <- [1, 10, 100, 1000]]).

confirmations_shorten_the_time_from_the_longest_to_the_shortest_test() ->
    %% A thousand members: 12 to 72 seconds, two confirmations wanted.
    S0 = suspicion(1000, #{}),
    {confirmed, S1} = weft_swim_suspicion_time:confirm(b, 1000, S0),
    {confirmed, S2} = weft_swim_suspicion_time:confirm(c, 1000, S1),
    ?assertEqual([72000, 34144, 12000], [weft_swim_suspicion_time:due_ms(S) || S <- [S0, S1, S2]]),
    ?assertEqual(old, weft_swim_suspicion_time:confirm(d, 1000, S2)).

nobody_confirms_twice_nor_the_first_accuser_test() ->
    S0 = suspicion(1000, #{}),
    ?assertEqual(old, weft_swim_suspicion_time:confirm(a, 0, S0)),
    {confirmed, S1} = weft_swim_suspicion_time:confirm(b, 0, S0),
    ?assertEqual(old, weft_swim_suspicion_time:confirm(b, 0, S1)).

a_late_confirmation_ends_the_time_now_and_not_in_the_past_test() ->
    {confirmed, S1} = weft_swim_suspicion_time:confirm(b, 50000, suspicion(1000, #{})),
    ?assertEqual(50000, weft_swim_suspicion_time:due_ms(S1)).

a_cluster_with_nobody_to_confirm_waits_the_shortest_time_test() ->
    ?assertEqual(4000, weft_swim_suspicion_time:due_ms(suspicion(3, #{}))),
    ?assertEqual(24000, weft_swim_suspicion_time:due_ms(suspicion(4, #{}))).

a_postponed_suspicion_gets_the_shortest_time_again_test() ->
    S = weft_swim_suspicion_time:postpone(100000, suspicion(100, #{})),
    ?assertEqual(108000, weft_swim_suspicion_time:due_ms(S)).

the_time_is_within_its_bounds_and_never_grows_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_bounds(), [{numtests, 500}, {to_file, user}]))}.

prop_bounds() ->
    ?FORALL({Members, Multiplier, MaxMultiplier, Accusers},
            {integer(1, 10000), integer(1, 10), integer(1, 10), list(integer(1, 10))},
            begin
                Options = weft_swim_options:complete(#{suspicion_multiplier => Multiplier,
                                                       suspicion_max_multiplier => MaxMultiplier}),
                MinMs = weft_swim_suspicion_time:min_ms(Members, Options),
                S0 = weft_swim_suspicion_time:new({1, t}, 1, Members, 0, Options),
                Dues = dues(Accusers, S0),
                lists:all(fun(DueMs) -> DueMs >= MinMs andalso DueMs =< MinMs * MaxMultiplier end,
                          Dues)
                    andalso Dues =:= lists:reverse(lists:sort(Dues))
                    andalso (length(lists:usort([1 | Accusers])) < Multiplier - 1
                             orelse lists:last(Dues) =:= MinMs)
            end).

dues(Accusers, S0) ->
    {Dues, Last} = lists:mapfoldl(fun(Accuser, S) ->
                                      case weft_swim_suspicion_time:confirm(Accuser, 0, S) of
                                          {confirmed, Next} ->
                                              {weft_swim_suspicion_time:due_ms(S), Next};
                                          old -> {weft_swim_suspicion_time:due_ms(S), S}
                                      end
                                  end, S0, Accusers),
    Dues ++ [weft_swim_suspicion_time:due_ms(Last)].

suspicion(Members, Options) ->
    weft_swim_suspicion_time:new({1, token}, a, Members, 0, weft_swim_options:complete(Options)).
