%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node does that has lost its disk, or has an old one, in the world of
%% `weft_ring_world'.
-module(weft_ring_forgotten_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_ring_world, [started/2, cut/2, heal/1, crash/2, restart/2, forget/2, command/3,
                          deliver_all/1, ring/2, mine/2, rounds/2, quiet/1, full/1, full/2,
                          commit/3, wrong_in_the_end/2]).

owns_nothing_until_it_joins_again_test() ->
    World0 = full([a, b, c]),
    World1 = quiet(restart(b, forget(b, crash(b, World0)))),
    ?assertEqual([forgotten], map_get(warnings, World1)),
    ?assertEqual([], mine(b, World1)),
    %% By now it knows the ring again.
    ?assertEqual([], mine(b, quiet(restart(b, crash(b, World1))))),
    removed_and_joined_again(World1).

%% It has all that it owns from another life, and asks for the ring before it is told.
is_no_owner_for_having_asked_test() ->
    Forgotten = restart(b, forget(b, crash(b, full([a, b, c])))),
    World = quiet(command(b, {join, a}, Forgotten)),
    ?assertEqual({[], [forgotten], true},
                 {mine(b, World), map_get(warnings, World),
                  map_get(b, map_get(forgotten, World))}),
    ?assertEqual([], mine(b, quiet(restart(b, crash(b, World))))),
    removed_and_joined_again(World).

removed_and_joined_again(Forgotten) ->
    World0 = quiet(commit(a, [{b, remove}], Forgotten)),
    ?assertEqual(16, length(mine(a, World0)) + length(mine(c, World0))),
    World1 = rounds(2, command(b, {join, a}, World0)),
    World = quiet(commit(c, [{b, join}], World1)),
    ?assertEqual([], wrong_in_the_end([a, b, c], World)),
    ?assertEqual([], wrong_in_the_end([a, b, c], quiet(restart(b, crash(b, World))))).

%% That it was removed it hears when the ring has forgotten it.
may_join_when_it_was_forgotten_test() ->
    World0 = full([a, b, c], #{gone_max => 0}),
    World1 = quiet(restart(b, forget(b, crash(b, World0)))),
    World2 = quiet(commit(a, [{b, remove}], crash(b, World1))),
    World3 = rounds(3, restart(b, World2)),
    ?assertEqual([], mine(b, World3)),
    World = quiet(commit(c, [{b, join}], rounds(2, command(b, {join, a}, World3)))),
    ?assertEqual([], wrong_in_the_end([a, b, c], World)).

%% The ring that it was in is told to it first. It has asked another one.
hears_of_no_ring_but_the_one_it_has_asked_test() ->
    World0 = command(d, create, started(d, cut([{d, N} || N <- [a, b, c]], full([a, b, c])))),
    Forgotten = restart(b, forget(b, crash(b, World0))),
    Told = deliver_all(command(b, {join, d}, Forgotten)),
    ?assertEqual({none, []}, {ring(b, Told), map_get(warnings, Told)}),
    World = rounds(2, heal(Told)),
    ?assertEqual(weft_ring_table:id(ring(d, World)), weft_ring_table:id(ring(b, World))).

%% The answer to its request was lost, and others have let it in meanwhile.
who_is_let_in_before_it_hears_of_that_is_a_member_test() ->
    Asked = command(d, {join, a}, started(d, full([a, b, c]))),
    [{d, a, Join} | _] = [M || {d, a, {ring, 1, {join, _}}} = M <- map_get(queue, Asked)],
    World0 = weft_ring_world:event(a, {message, d, Join}, Asked),
    World1 = commit(b, [{d, join}], deliver_all(cut([{d, N} || N <- [a, b, c]], World0))),
    World = quiet(heal(World1)),
    ?assertEqual({[], []}, {wrong_in_the_end([a, b, c, d], World), map_get(warnings, World)}).

%% An operator has removed it, and it is started again later.
who_was_removed_does_not_ask_to_join_again_test() ->
    World0 = quiet(commit(a, [{b, remove}], full([a, b, c]))),
    World = quiet(restart(b, crash(b, World0))),
    ?assertEqual([gone, gone], [weft_ring_table:member(b, ring(Node, World)) || Node <- [a, b]]).

%% Earlier code has left on its disk whom it had asked.
an_old_wish_to_join_is_not_asked_again_test() ->
    #{asked := Asked} = World0 = crash(b, full([a, b, c])),
    World1 = quiet(restart(b, World0#{asked := Asked#{b => a}})),
    World = quiet(restart(b, crash(b, commit(a, [{b, remove}], World1)))),
    ?assertEqual(gone, weft_ring_table:member(b, ring(a, World))).

%% By the old one it owns what it has handed over since, and may own what it got back later.
who_has_an_old_disk_counts_as_one_that_has_forgotten_test() ->
    #{kept := #{b := Old}} = World0 = full([a, b]),
    Joined = rounds(1, command(c, {join, a}, started(c, World0))),
    #{kept := Kept} = World1 = crash(b, quiet(commit(a, [{c, join}], Joined))),
    World2 = quiet(restart(b, World1#{kept := Kept#{b := Old}})),
    ?assertEqual({[], [forgotten]}, {mine(b, World2), map_get(warnings, World2)}),
    removed_and_joined_again(World2).
