%% SPDX-License-Identifier: Apache-2.0
%% @doc From keys to nodes, with all nodes up and with some down; and the look-up without a process.
-module(weft_ring_preference_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Bytes and places that must never change: data is found by them.
a_key_has_the_same_partition_for_ever_test_() ->
    [?_assertEqual(Partition, weft_ring_preference:partition(Key, Size))
     || {Key, Size, Partition} <- [{<<"weft">>, 64, 12}, {{<<"bucket">>, <<"weft">>}, 64, 27},
                                   {<<"weft">>, 1024, 205}]].

%% 16 keys a partition: with this many an even hash leaves no partition without any.
keys_spread_over_all_partitions_test() ->
    Partitions = [weft_ring_preference:partition(integer_to_binary(I), 64)
                  || I <- lists:seq(1, 1024)],
    ?assertEqual(lists:seq(0, 63), lists:usort(Partitions)).

a_bucket_is_not_part_of_the_key_test() ->
    ?assertNotEqual(weft_ring_preference:partition({<<"ab">>, <<"c">>}, 1024),
                    weft_ring_preference:partition({<<"a">>, <<"bc">>}, 1024)).

primaries_go_on_across_the_end_test() ->
    ?assertEqual([{7, d, primary}, {0, a, primary}, {1, b, primary}],
                 weft_ring_preference:primaries(7, 3, 8, owner())).

the_next_node_up_stands_in_test() ->
    IsUp = fun(Node) -> not lists:member(Node, [b]) end,
    ?assertEqual([{0, a, primary}, {1, d, fallback}, {2, c, primary}],
                 weft_ring_preference:active(0, 3, IsUp, 8, owner())).

without_enough_nodes_the_list_is_shorter_test() ->
    IsUp = fun(Node) -> lists:member(Node, [c, d]) end,
    ?assertEqual([{0, d, fallback}, {2, c, primary}],
                 weft_ring_preference:active(0, 3, IsUp, 8, owner())).

owner() -> fun(P) -> element(P rem 4 + 1, {a, b, c, d}) end.

property_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_active(), [{numtests, 300}, quiet]))}.

%% Nodes of the list are up and distinct, primaries that are up are in it, and it is as long as it
%% can be.
prop_active() ->
    ?FORALL({Nodes, Size, N, Down, Key},
            {range(1, 12), oneof([8, 16, 64]), range(1, 5), list(range(1, 12)), binary()},
            begin
                {ok, #{owners := Owners}} =
                    weft_ring_claim:claim(#{partitions => Size, n_val => min(N, Nodes),
                                            members => maps:from_list([{name(I), I}
                                                    || I <- lists:seq(1, Nodes)])}),
                Owner = fun(P) -> lists:nth(P + 1, Owners) end,
                IsUp = fun(Node) -> not lists:member(Node, [name(I) || I <- Down]) end,
                From = weft_ring_preference:partition(Key, Size),
                Active = weft_ring_preference:active(From, N, IsUp, Size, Owner),
                All = weft_ring_preference:primaries(From, N, Size, Owner),
                Primaries = [P || {_, Node, _} = P <- All, IsUp(Node)],
                Up = [Node || Node <- lists:usort(Owners), IsUp(Node)],
                [] =:= Primaries -- Active
                    andalso lists:all(fun({_, Node, _}) -> IsUp(Node) end, Active)
                    andalso repeated(Active) =< repeated(Primaries)
                    andalso (repeated(All) > 0 orelse length(Active) =:= min(N, length(Up)))
            end).

%% Windows are not always distinct: three nodes can not divide eight partitions so.
repeated(Preferences) ->
    length(Preferences) - length(lists:usort([Node || {_, Node, _} <- Preferences])).

name(I) -> list_to_atom("n" ++ integer_to_list(I)).

%% --- look-up ----------------------------------------------------------------------------------

a_ring_is_looked_up_without_a_process_test() ->
    Ring = weft_ring_table:create({a, 1}, here, 8, 3),
    ok = weft_ring_lookup:publish(?MODULE, Ring),
    ?assertMatch({ok, [{_, a, primary}]}, weft_ring_lookup:primaries(?MODULE, <<"k">>, 1)),
    {ok, P} = weft_ring_lookup:partition(?MODULE, <<"k">>),
    ok = weft_ring_lookup:publish(?MODULE, weft_ring_table:give(P, {{0, a}, 0}, b, Ring)),
    ?assertEqual({ok, [{P, b, primary}]}, weft_ring_lookup:primaries(?MODULE, <<"k">>, 1)),
    ?assertEqual({ok, [{P, a, fallback}]},
                 weft_ring_lookup:active(?MODULE, <<"k">>, 1, fun(Node) -> Node =:= a end)),
    ?assertEqual({ok, []}, weft_ring_lookup:active(?MODULE, <<"k">>, 1)),
    ok = weft_ring_lookup:withdraw(?MODULE),
    ?assertEqual({error, no_ring}, weft_ring_lookup:primaries(?MODULE, <<"k">>, 1)).

%% Until it hands it on.
who_has_a_partition_by_force_is_known_test() ->
    Created = weft_ring_table:create({a, 1}, here, 8, 3),
    Ring = weft_ring_table:set_plan(weft_ring_table:version({a, Created}), [{b, here}],
                                    lists:duplicate(8, b), Created),
    Seized = fun() ->
                 [P || P <- lists:seq(0, 8), weft_ring_lookup:is_seized(?MODULE, P)]
             end,
    Owner = fun() -> weft_ring_lookup:owner(?MODULE, 2) end,
    ?assertEqual([], Seized()),
    ok = weft_ring_lookup:publish(?MODULE, Ring),
    ?assertEqual({[], {ok, a}}, {Seized(), Owner()}),
    By = weft_ring_table:seize([2], weft_ring_table:version({b, Ring}), Ring),
    ok = weft_ring_lookup:publish(?MODULE, By),
    ?assertEqual({[2], {ok, b}}, {Seized(), Owner()}),
    ?assertEqual({ok, [a, a, b, a, a, a, a, a]},
                 case weft_ring_lookup:owners(?MODULE) of
                     {ok, Owners} -> {ok, [Node || {_, Node, primary} <- Owners]}
                 end),
    {Baton, b} = weft_ring_table:holder(2, By),
    ok = weft_ring_lookup:publish(?MODULE, weft_ring_table:give(2, Baton, a, By)),
    ?assertEqual({[], {ok, a}}, {Seized(), Owner()}),
    ok = weft_ring_lookup:withdraw(?MODULE).

%% A change of owners replaces no persistent term.
a_new_owner_costs_no_new_term_test() ->
    Ring = weft_ring_table:give(1, {{0, a}, 0}, b, weft_ring_table:create({a, 1}, here, 8, 3)),
    ok = weft_ring_lookup:publish(?MODULE, Ring),
    Before = persistent_term:get({weft_ring_lookup, ?MODULE}),
    ok = weft_ring_lookup:publish(?MODULE, weft_ring_table:give(2, {{0, a}, 0}, b, Ring)),
    ?assertEqual(Before, persistent_term:get({weft_ring_lookup, ?MODULE})),
    Key = hd([K || I <- lists:seq(1, 1000), K <- [integer_to_binary(I)],
                   weft_ring_preference:partition(K, 8) =:= 2]),
    ?assertEqual({ok, [{2, b, primary}]}, weft_ring_lookup:primaries(?MODULE, Key, 1)),
    ok = weft_ring_lookup:withdraw(?MODULE).
