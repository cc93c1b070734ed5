%% SPDX-License-Identifier: Apache-2.0
%% @doc Which handoffs begin, by themselves and in the world of `weft_ring_world'.
-module(weft_ring_slots_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_ring_world, [cut/2, crash/2, restart/2, command/3, rounds/2, quiet/1, joined/2,
                          world/1, commit/3, wrong_in_the_end/2]).

-define(OPTIONS, #{running => [], failed => [], stalled => [], up => [b, c], max => 2}).

as_many_as_may_begin_test() ->
    [T1, T2, T3] = Due = [{1, e, b}, {2, e, b}, {3, e, c}],
    ?assertEqual({[], [T1, T2]}, weft_ring_slots:chosen(Due, ?OPTIONS)),
    ?assertEqual({[T3], [T1]}, weft_ring_slots:chosen(Due, ?OPTIONS#{running := [T3]})),
    ?assertEqual({[T1, T2], []}, weft_ring_slots:chosen(Due, ?OPTIONS#{running := [T1, T2]})),
    ?assertEqual({[], [T2, T3]}, weft_ring_slots:chosen(Due, ?OPTIONS#{failed := [T1]})),
    ?assertEqual({[T2], []}, weft_ring_slots:chosen([T2], ?OPTIONS#{running := [T1, T2]})).

%% Those that have begun go on when it is back.
who_is_away_holds_up_nobody_test() ->
    [T1, T2, T3, T4] = Due = [{1, e, b}, {2, e, b}, {3, e, b}, {4, e, c}],
    Away = ?OPTIONS#{up := [c]},
    ?assertEqual({[], [T4]}, weft_ring_slots:chosen(Due, Away)),
    ?assertEqual({[T1, T2], [T4]}, weft_ring_slots:chosen(Due, Away#{running := [T1, T2]})),
    ?assertEqual({[T1, T2, T4], []},
                 weft_ring_slots:chosen([T1, T2, T3, T4], ?OPTIONS#{running := [T1, T2, T4]})).

%% The disk of one partition may hang, or that of the whole node.
who_is_stalled_holds_up_nobody_test() ->
    [T1, T2, T3, T4] = Due = [{1, e, b}, {2, e, b}, {3, e, b}, {4, e, c}],
    Chosen = fun(Stalled) ->
                 weft_ring_slots:chosen(Due, ?OPTIONS#{running := [T1, T2], stalled := Stalled})
             end,
    ?assertEqual({[T1, T2], [T3]}, Chosen([T1])),
    ?assertEqual({[T1, T2], [T4]}, Chosen([T1, T2])).

%% What it shall have begins when it is back.
a_node_that_is_away_gets_nothing_and_delays_nothing_test() ->
    Away = crash(b, asked([b, c])),
    #{running := Running} = World = commit(a, [{b, join}, {c, join}], Away),
    ?assertEqual([c, c], [To || {a, {_, _, To}} <- Running]),
    Without = quiet(World),
    ?assertEqual({[], []}, {map_get(running, Without),
                            [P || P <- weft_ring_world:mine(a, Without),
                                  lists:nth(P + 1, planned(Without)) =:= c]}),
    ?assertMatch([b, b], [To || {a, {_, _, To}} <- map_get(running, restart(b, Without))]),
    ?assertEqual([], wrong_in_the_end([a, b, c], quiet(restart(b, Without)))).

a_slot_is_free_when_the_next_owner_has_gone_test() ->
    #{running := Before} = World = commit(a, [{b, join}, {c, join}], asked([b, c])),
    #{running := Running} = cut([{a, b}], World),
    ?assertMatch({[b, c], [b, c, c]}, {to(Before), to(Running)}).

%% What stalled counts again when it has failed and is tried again.
a_slot_is_free_when_a_handoff_stalls_test() ->
    #{running := [{a, T1}, {a, T2}]} = World0 = commit(a, [{b, join}], asked([b])),
    #{running := Three} = World1 = command(a, {handoff, stalled, T1}, World0),
    ?assertMatch([{a, T1}, {a, T2}, {a, _}], Three),
    #{running := Again} = rounds(1, all_failed(World1)),
    ?assertEqual([{a, T1}, {a, T2}], Again).

all_failed(#{running := []} = World) -> World;
all_failed(#{running := [{From, Transfer} | Others]} = World) ->
    all_failed(command(From, {handoff, failed, Transfer}, World#{running := Others})).

to(Running) -> lists:sort([To || {a, {_, _, To}} <- Running]).

%% They have asked, and a owns all.
asked(Nodes) -> joined([a | Nodes], world([a | Nodes])).

planned(World) -> weft_ring_table:planned(weft_ring_world:ring(a, World)).
