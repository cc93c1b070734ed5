%% SPDX-License-Identifier: Apache-2.0
-module(weft_strangers_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(C, weft_strangers_core).

%% Connections {Id, Address} that come one a millisecond; who had to go, in order.
come(Arrivals, State) ->
    come(Arrivals, 0, State).

come(Arrivals, FirstMs, State) ->
    lists:foldl(fun({NowMs, {Id, Address}}, {Gone, S0}) ->
                        {G, S} = come_one(Id, Address, NowMs, S0),
                        {Gone ++ G, S}
                end, {[], State},
                lists:zip(lists:seq(FirstMs, FirstMs + length(Arrivals) - 1), Arrivals)).

come_one(Id, Address, NowMs, State) ->
    case ?C:is_full(State) of
        true ->
            Victim = ?C:next_to_go(Address, State),
            {[Victim], ?C:come(Id, Address, NowMs, ?C:gone(Victim, State))};
        false ->
            {[], ?C:come(Id, Address, NowMs, State)}
    end.

while_there_is_room_nobody_goes_test() ->
    {Gone, State} = come([{1, a}, {2, a}, {3, b}], ?C:new(3)),
    ?assertEqual({[], 3}, {Gone, ?C:count(State)}).

the_oldest_goes_for_a_newcomer_test() ->
    {Gone, State} = come([{N, a} || N <- lists:seq(1, 6)], ?C:new(4)),
    ?assertEqual({[1, 2], 4}, {Gone, ?C:count(State)}).

many_of_one_address_do_not_drive_out_another_test() ->
    {Gone, _} = come([{node, b} | [{N, a} || N <- lists:seq(1, 100)]], ?C:new(4)),
    ?assertNot(lists:member(node, Gone)).

addresses_share_the_places_test() ->
    {[], Full} = come([{{a, N}, a} || N <- lists:seq(1, 6)], ?C:new(6)),
    {Gone, _} = come([{{b, N}, b} || N <- lists:seq(1, 20)], 6, Full),
    ?assertEqual([a, a, a], [a || {a, _} <- Gone]).

who_has_spoken_stays_longer_than_the_silent_test() ->
    {[], State} = come([{node, a} | [{N, a} || N <- [1, 2, 3]]], ?C:new(4)),
    {Gone, _} = come([{N, a} || N <- lists:seq(4, 900)], 4, ?C:heard(node, State)),
    ?assertNot(lists:member(node, Gone)).

%% Not for ever: speaking costs nothing.
who_has_only_spoken_goes_at_last_test() ->
    {[], State} = come([{node, a} | [{N, a} || N <- [1, 2, 3]]], ?C:new(4)),
    {Gone, _} = come([{N, a} || N <- lists:seq(4, 2000)], 4, ?C:heard(node, State)),
    ?assert(lists:member(node, Gone)).

room_is_kept_for_those_who_have_been_here_test() ->
    {[], Met} = come([{peer, p}], ?C:new(8)),
    Known = ?C:authenticated(peer, Met),
    ?assert(?C:is_known(p, Known)),
    {[], Back} = come([{again, p}], Known),
    %% Each from an address of its own.
    {Gone, _} = come([{N, N} || N <- lists:seq(1, 5000)], Back),
    ?assertNot(lists:member(again, Gone)).

a_known_address_does_not_take_the_places_of_strangers_test() ->
    {[], Met} = come([{peer, p}], ?C:new(8)),
    {[], Alone} = come([{{p, N}, p} || N <- lists:seq(1, 8)], ?C:authenticated(peer, Met)),
    {Gone, _} = come([{N, N} || N <- [1, 2, 3, 4]], 8, Alone),
    ?assertEqual([{p, N} || N <- [1, 2, 3, 4]], Gone).

what_has_gone_is_nothing_test() ->
    {[], State} = come([{1, a}], ?C:new(2)),
    Empty = ?C:gone(1, State),
    ?assertEqual(0, ?C:count(Empty)),
    [?assertEqual(Empty, Same) || Same <- [?C:gone(1, Empty), ?C:heard(1, Empty),
                                           ?C:authenticated(1, Empty)]].

known_addresses_are_bounded_test() ->
    Many = lists:foldl(fun(N, S0) ->
                               {[], S} = come_one(N, {host, N}, N, S0),
                               ?C:authenticated(N, S)
                       end, ?C:new(2), lists:seq(1, 5000)),
    ?assertNot(?C:is_known({host, 1}, Many)),
    ?assert(?C:is_known({host, 5000}, Many)),
    ?assertEqual(4096, length([N || N <- lists:seq(1, 5000), ?C:is_known({host, N}, Many)])).

%% --- properties -------------------------------------------------------------------------------

property_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_places(), [quiet, {numtests, 300}]))}.

step() ->
    frequency([{6, {come, range(1, 40), oneof([a, b, c, d, e])}}, {2, {heard, range(1, 40)}},
               {1, {gone, range(1, 40)}}, {1, {authenticated, range(1, 40)}}]).

%% Against a list of those that wait: never more than places, only somebody who waits goes, only
%% when all places are taken, and never of an address that has fewer than another of its half.
prop_places() ->
    ?FORALL({Max, Steps}, {range(2, 8), list(step())},
            begin
                {Verdict, _, _, _} = lists:foldl(fun step/2, {true, 0, [], ?C:new(Max)},
                                                 [{Max, Step} || Step <- Steps]),
                Verdict
            end).

step({Max, {come, _, Address}}, {Verdict, Ms, Waiting, State0}) ->
    Id = {id, Ms},
    Half = ?C:is_known(Address, State0),
    {Gone, State} = come_one(Id, Address, Ms, State0),
    Left = [{I, A, H} || {I, A, H} <- Waiting, not lists:member(I, Gone)],
    Good = length(Gone) =:= case length(Waiting) < Max of true -> 0; false -> 1 end
        andalso length(Left) =:= length(Waiting) - length(Gone)
        andalso lists:all(fun(Victim) -> is_of_the_most(Victim, Waiting) end, Gone)
        andalso ?C:count(State) =:= length(Left) + 1,
    {Verdict andalso Good, Ms + 1, [{Id, Address, Half} | Left], State};
step({_Max, {What, N}}, {Verdict, Ms, Waiting, State}) ->
    Id = {id, N},
    Left = case What of
               heard -> Waiting;
               _ -> lists:keydelete(Id, 1, Waiting)
           end,
    {Verdict, Ms, Left, ?C:What(Id, State)}.

is_of_the_most(Victim, Waiting) ->
    {_, Address, Half} = lists:keyfind(Victim, 1, Waiting),
    Of = fun(A) -> length([I || {I, B, H} <- Waiting, B =:= A, H =:= Half]) end,
    lists:all(fun(A) -> Of(A) =< Of(Address) end, [A || {_, A, H} <- Waiting, H =:= Half]).
