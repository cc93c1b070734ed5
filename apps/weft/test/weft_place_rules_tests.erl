%% SPDX-License-Identifier: Apache-2.0
%% @doc Predicates and orders of placement, and distances in the sample tree of the original
%% library.
-module(weft_place_rules_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

predicates_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Where])),
      ?_assertEqual(Expected, weft_place_rules:choose(#{where => Where}, candidates()))}
     || {Where, Expected} <-
            [{[], [a, b, c, d]},
             {[{cores, ge, 4}], [b, c]},
             {[{cores, gt, 4}], [c]},
             {[{cores, eq, 2}], [a]},
             {[{cores, ne, 2}], [b, c]},
             {[{cores, lt, 4}], [a]},
             {[{cores, le, 4}], [a, b]},
             {[{cores, ge, 4}, {ssd, true}], [b]},
             {[{ssd, yes}], [b]},
             {[{ssd, no}], [a]},
             {[{ssd, false}], [a]},
             {[{role, db}], [b, d]},
             {[{role, none}], []},
             {[{zone, [eu]}], [a, b]},
             {[{zone, [eu, dc2]}], [b]},
             {[{distance, le, 0.5}], [a, b]},
             {[near], [b]},
             {[far], [c, d]},
             {[near, {cores, eq, 2}], []},
             {[{unheard_of, eq, 1}], []}]].

what_is_no_list_has_no_role_and_is_in_no_zone_test_() ->
    [?_assertEqual([b], weft_place_rules:choose(#{where => [Predicate]},
                                                [{a, #{roles => Wrong, zone => Wrong}},
                                                 {b, #{roles => [db], zone => [eu, dc2]}}]))
     || Predicate <- [{role, db}, {zone, [eu]}],
        Wrong <- [db, <<"eu">>, {automatic, eu}, [eu | db], 1.5]].

orders_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Order])),
      ?_assertEqual(Expected, weft_place_rules:choose(#{order => Order}, candidates()))}
     || {Order, Expected} <-
            [{[{cores, ascending}], [a, b, c, d]},
             {[{cores, descending}], [c, b, a, d]},
             {[near], [a, b, c, d]},
             {[far], [c, d, b, a]},
             {[far, {cores, descending}], [c, d, b, a]},
             {[{load, ascending}, {cores, descending}], [c, b, a, d]}]].

what_has_to_be_asked_for_test() ->
    ?assertEqual([cores, load, roles, zone],
                 weft_place_rules:attributes(#{where => [{cores, gt, 1}, {role, x}, near,
                                                         {distance, lt, 1}],
                                               order => [{load, ascending}, far]})).

what_is_no_rule_is_an_error_test_() ->
    [?_assertEqual({error, Expected}, weft_place_rules:check(Rules))
     || {Rules, Expected} <- [{#{where => [{cores, more, 1}]}, {bad_predicate, {cores, more, 1}}},
                              {#{where => [{cores, 4}]}, {bad_predicate, {cores, 4}}},
                              {#{where => [{zone, eu}]}, {bad_predicate, {zone, eu}}},
                              {#{where => [{zone, [a | b]}]}, {bad_predicate, {zone, [a | b]}}},
                              {#{where => [close]}, {bad_predicate, close}},
                              {#{order => [{cores, up}]}, {bad_order, {cores, up}}},
                              {#{order => [cores]}, {bad_order, cores}}]].

%% Seen from a, in [eu, dc1].
candidates() ->
    [{a, #{cores => 2, ssd => no, zone => [eu, dc1], distance => 0.0, load => 1.0}},
     {b, #{cores => 4, ssd => true, zone => [eu, dc2], roles => [db, web], distance => 0.5,
           load => 1.0}},
     {c, #{cores => 8, zone => [us], distance => 1.0, load => 0.5}},
     {d, #{roles => [db], distance => 1.0}}].

%% cloud{clusterA{lanA1{ash, bay}, lanA2{cypress}}, clusterB{..}}; there the root and the machine
%% count as well.
the_sample_tree_has_the_distances_of_the_original_test_() ->
    Anne = {'Anne@ash', [cluster_a, lan_a1, ash]},
    [?_assertEqual(Expected, weft_distance:between(Anne, Other))
     || {Other, Expected} <- [{Anne, 0.0},
                              {{'Brian@ash', [cluster_a, lan_a1, ash]}, 0.125},
                              {{'Derek@bay', [cluster_a, lan_a1, bay]}, 0.25},
                              {{'Henrietta@cypress', [cluster_a, lan_a2, cypress]}, 0.5},
                              {{'Aud@Thor', [cluster_b, thor]}, 1.0}]].

distances_are_an_ultrametric_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_ultrametric(), [{to_file, user}]))}.

prop_ultrametric() ->
    Place = {oneof([n1, n2, n3, n4]), list(oneof([x, y]))},
    ?FORALL({A, B, C}, {Place, Place, Place},
            begin
                D = fun weft_distance:between/2,
                D(A, B) =:= D(B, A) andalso D(A, B) >= 0.0 andalso D(A, B) =< 1.0
                    andalso (element(1, A) =:= element(1, B) orelse element(1, B) =:= element(1, C)
                             orelse element(1, A) =:= element(1, C)
                             orelse D(A, C) =< max(D(A, B), D(B, C)))
            end).
