%% SPDX-License-Identifier: Apache-2.0
%% @doc What a claim promises, counted here once more and independently: balance, windows, moves,
%% and that the answer names what gave way.
-module(weft_ring_claim_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [{Name, {timeout, 120, ?_assert(proper:quickcheck(Property, [{numtests, Count}, quiet]))}}
     || {Name, Count, Property} <- [{"any members, one after the other", 15, prop_any()},
                                    {"nodes join and leave", 15, prop_joins()}]].

%% --- examples ---------------------------------------------------------------------------------

one_node_owns_all_test() ->
    {ok, #{owners := Owners, moves := 8, gave_way := [{distinct_nodes, few_nodes}]}} =
        claim(8, 3, #{a => here}, []),
    ?assertEqual([a], lists:usort(Owners)).

three_nodes_can_not_have_windows_of_three_in_eight_test() ->
    {ok, #{gave_way := GaveWay}} = claim(8, 3, own(3), []),
    ?assertMatch([{distinct_nodes, _} | _], GaveWay).

two_locations_alternate_test() ->
    {ok, #{owners := Owners, gave_way := [{distinct_locations, few_locations}]}} =
        claim(16, 3, #{a => x, b => x, c => y, d => y}, []),
    Places = [case Owner of a -> x; b -> x; _ -> y end || Owner <- Owners],
    ?assertEqual(0, repeated(Places, 2)).

a_location_with_most_nodes_gives_way_to_balance_test() ->
    {ok, #{owners := Owners, gave_way := GaveWay}} =
        claim(64, 3, #{a => x, b => x, c => x, d => x, e => y, f => z}, []),
    ?assert(is_balanced(Owners, [a, b, c, d, e, f])),
    ?assertEqual(0, repeated(Owners, 3)),
    ?assertMatch([{distinct_locations, _}], GaveWay).

the_fourth_node_of_four_needs_more_moves_than_balance_test() ->
    {ok, #{owners := Three}} = claim(64, 4, own(3), []),
    {ok, #{moves := Moves, gave_way := GaveWay}} = claim(64, 4, own(4), Three),
    ?assertEqual([{moves, Moves, 16}], GaveWay).

bad_requests_test_() ->
    [?_assertEqual({error, Reason}, claim(Q, N, Members, Before))
     || {Q, N, Members, Before, Reason} <-
            [{12, 3, own(3), [], {bad, partitions, 12}}, {4, 3, own(3), [], {bad, partitions, 4}},
             {2048, 3, own(3), [], {bad, partitions, 2048}}, {64, 0, own(3), [], {bad, n_val, 0}},
             {8, 9, own(3), [], {bad, n_val, 9}}, {8, 3, #{}, [], no_members},
             {8, 3, own(3), [a], {bad, before, 1}}]].

%% A circle of Q places has windows of N distinct colours as soon as there are N + ceil(R / P)
%% colours, where Q = P * N + R. The claim finds them whenever they exist.
windows_are_distinct_whenever_that_is_possible_test_() ->
    [{timeout, 60, ?_assertMatch({ok, #{gave_way := []}}, claim(Q, NVal, own(Nodes), []))}
     || Q <- [8, 16, 32, 64, 256, 1024], NVal <- [2, 3, 4], More <- [0, 1, 2],
        Nodes <- [least_nodes(Q, NVal) + More]].

least_nodes(Q, NVal) ->
    {Rounds, Rest} = {Q div NVal, Q rem NVal},
    NVal + (Rest + Rounds - 1) div Rounds.

%% Seconds would depend on the machine. This many are far less than one.
hundred_nodes_take_little_work_test() ->
    {ok, #{owners := Owners}} = claim(1024, 4, located(100, 9), []),
    {reductions, Before} = process_info(self(), reductions),
    {ok, #{gave_way := GaveWay}} = claim(1024, 4, located(101, 9), Owners),
    {reductions, After} = process_info(self(), reductions),
    ?assertEqual([], [Fault || {Kind, _} = Fault <- GaveWay, Kind =/= moves]),
    ?assert(After - Before < 30000000).

%% --- properties -------------------------------------------------------------------------------

%% Members come and go at will, several at a time, in few locations.
prop_any() ->
    ?FORALL({Q, NVal, Sets}, {partitions(), range(1, 5), non_empty(list(members()))},
            lists:foldl(fun(Members, Before) ->
                            checked(Q, NVal, Members, Before)
                        end, [], lists:sublist(Sets, 3)) =/= []).

partitions() ->
    frequency([{8, oneof([8, 16, 32, 64])}, {2, oneof([128, 256])}, {1, oneof([512, 1024])}]).

members() ->
    ?LET(Pairs, non_empty(resize(60, list({range(1, 100), range(1, 6)}))),
         maps:from_list([{name(I), Location} || {I, Location} <- Pairs])).

checked(Q, NVal, Members, Before) ->
    {ok, #{owners := Owners, moves := Moves, gave_way := GaveWay}} =
        Answer = claim(Q, NVal, Members, Before),
    Answer = claim(Q, NVal, maps:from_list(lists:reverse(maps:to_list(Members))), Before),
    Q = length(Owners),
    true = is_balanced(Owners, maps:keys(Members)),
    Moves = moves(Before, Owners),
    NodeFaults = repeated(Owners, min(NVal, map_size(Members))),
    NodeFaults = given_way(distinct_nodes, GaveWay),
    Locations = length(lists:usort(maps:values(Members))),
    LocationFaults = repeated([maps:get(Owner, Members) || Owner <- Owners], min(NVal, Locations)),
    LocationFaults = given_way(distinct_locations, GaveWay),
    true = not lists:member({distinct_nodes, few_nodes}, GaveWay)
        orelse map_size(Members) < NVal,
    Owners.

%% From twice as many nodes as are in a window on nothing gives way when a node joins, and what the
%% requirements say of moves holds to the letter. When a node leaves, what moves besides is named.
prop_joins() ->
    ?FORALL({Q, NVal, First, Steps},
            {partitions(), range(2, 4), range(1, 40), resize(8, list(oneof([join, leave])))},
            begin
                {ok, #{owners := Owners}} = claim(Q, NVal, own(First), []),
                Start = {lists:seq(1, First), First + 1, Owners},
                _ = lists:foldl(fun(Step, Ring) -> step(Step, Q, NVal, Ring) end, Start, Steps),
                true
            end).

step(join, Q, NVal, {Members, Next, Owners0}) ->
    Joined = Members ++ [Next],
    {ok, #{owners := Owners, moves := Moves, gave_way := GaveWay}} =
        claim(Q, NVal, named(Joined), Owners0),
    case length(Members) >= 2 * NVal of
        true ->
            true = Moves =< ceil(Q / length(Joined)),
            [] = GaveWay;
        false ->
            true = Moves =< ceil(Q / length(Joined)) orelse lists:keymember(moves, 1, GaveWay)
    end,
    {Joined, Next + 1, Owners};
step(leave, _Q, _NVal, {[_] = Members, Next, Owners}) ->
    {Members, Next, Owners};
step(leave, Q, NVal, {Members, Next, Owners0}) ->
    Leaver = lists:nth(length(Members) div 2 + 1, Members),
    Left = lists:delete(Leaver, Members),
    {ok, #{owners := Owners, moves := Moves, gave_way := GaveWay}} =
        claim(Q, NVal, named(Left), Owners0),
    Owned = length([Owner || Owner <- Owners0, Owner =:= name(Leaver)]),
    true = Moves =:= Owned orelse lists:member({moves, Moves, Owned}, GaveWay),
    true = length(Left) < 2 * NVal orelse Moves =< 2 * Owned + 2 * NVal,
    {Left, Next, Owners}.

%% --- counted anew -----------------------------------------------------------------------------

claim(Q, NVal, Members, Before) ->
    weft_ring_claim:claim(#{partitions => Q, n_val => NVal, members => Members, before => Before}).

own(Count) -> named(lists:seq(1, Count)).

named(Numbers) -> maps:from_list([{name(I), I} || I <- Numbers]).

located(Count, Locations) ->
    maps:from_list([{name(I), I rem Locations} || I <- lists:seq(1, Count)]).

name(I) -> list_to_atom("n" ++ integer_to_list(I)).

is_balanced(Owners, Members) ->
    Counts = [length([Owner || Owner <- Owners, Owner =:= Member]) || Member <- Members],
    lists:max(Counts) - lists:min(Counts) =< 1 andalso lists:sum(Counts) =:= length(Owners).

repeated(Values, Window) ->
    Size = length(Values),
    Around = list_to_tuple(Values ++ Values),
    length([P || P <- lists:seq(1, Size),
                 lists:member(element(P, Around),
                              [element(P + Step, Around) || Step <- lists:seq(1, Window - 1)])]).

moves([], Owners) -> length(Owners);
moves(Before, Owners) -> length([x || {A, B} <- lists:zip(Before, Owners), A =/= B]).

given_way(Kind, GaveWay) ->
    lists:sum([Count || {K, Count} <- GaveWay, K =:= Kind, is_integer(Count)]).

%% With locations a join may need more moves than balance does (here ten), but few: what was moved
%% to make room goes back if it can.
locations_cost_few_moves_test_() ->
    {timeout, 60, fun() -> ?assert(lists:sum([moves_of_a_join(L) || L <- [2, 3, 5, 9]]) =< 52) end}.

moves_of_a_join(Locations) ->
    {ok, #{owners := Owners}} = claim(1024, 4, located(100, Locations), []),
    {ok, #{moves := Moves}} = claim(1024, 4, located(101, Locations), Owners),
    Moves.
