%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_workload_tests).

-include_lib("eunit/include/eunit.hrl").

cells_are_told_apart_test() ->
    [?assertEqual(length(Cells), length(lists:usort([key(Cell) || Cell <- Cells])))
     || Cells <- [cells(quick), cells(full)]].

cells(Scope) -> weft_bench_workload:cells(weft_bench_workload:modules(), Scope).

key(#{suite := Suite, workload := Workload, size_bytes := SizeBytes, pairs := Pairs,
      streams := Streams, link := #{label := Label}}) ->
    {Suite, Workload, SizeBytes, Pairs, Streams, Label}.

all_suites_have_cells_test() ->
    [?assertEqual([], [a, b, c, d, f, g, h, i, j, k]
                      -- [Suite || #{suite := Suite} <- cells(Scope)])
     || Scope <- [quick, full]].

the_time_of_a_warm_up_is_recorded_test() ->
    % pacing: the time itself is the subject
    WarmUp = fun() -> timer:sleep(50) end,
    [{calls, 7}, {warm_up_s, WarmUpS}, {measured_s, MeasuredS}] =
        weft_bench_workload:warmed_up(WarmUp, fun() -> [{calls, 7}] end),
    ?assert(WarmUpS >= 0.05),
    ?assert(MeasuredS < WarmUpS).

variants_exist_test() ->
    Known = weft_bench_variant:all(),
    [?assertEqual([], Variants -- Known)
     || #{variants := Variants} <- cells(full)].

what_a_target_names_is_measured_test() ->
    Cells = cells(full),
    [?assertNotEqual({Id, []}, {Id, [Cell || Cell <- Cells, is_selected(Where, Variant, Cell)]})
     || #{id := Id, where := Where, variant := Variant} <- weft_report_targets:all()].

is_selected(Where, Variant, #{variants := Variants, link := #{label := Label}} = Cell) ->
    lists:member(Variant, Variants)
        andalso lists:all(fun({link, Links}) -> lists:member(Label, Links);
                             ({Column, Values}) -> lists:member(maps:get(Column, Cell), Values)
                          end, maps:to_list(Where)).

what_is_on_demand_has_a_title_in_words_test() ->
    Cell = #{suite => orbit, workload => orbit_grouped, size_bytes => 0, pairs => 7,
             streams => 3000, link => weft_bench_link:loopback(), on_demand => true},
    ?assertEqual("orbit: orbit grouped, 7 nodes, space of 3000", weft_bench_workload:title(Cell)).

titles_are_for_people_test() ->
    Link = weft_bench_link:emulated(20, 400, 0.1),
    Cell = #{suite => d, workload => bulk, size_bytes => 65536, pairs => 16, streams => 0,
             link => Link},
    ?assertEqual("d bulk 64 KB x 16 20ms-400mbit-0.1%", weft_bench_workload:title(Cell)),
    ?assertEqual("d bulk 1 MB x 16 beside 8",
                 weft_bench_workload:title(Cell#{link := weft_bench_link:loopback(), streams := 8,
                                                 size_bytes := 1048576})).

links_have_room_for_one_round_trip_test() ->
    #{queue_bytes := Long} = weft_bench_link:emulated(20, 400, 0),
    ?assertEqual(1000000, Long),
    #{queue_bytes := Short} = weft_bench_link:emulated(1, 800, 0),
    ?assertEqual(500000, Short).

links_with_small_buffers_have_a_name_of_their_own_test() ->
    Link = weft_bench_link:with_buffers(131072, weft_bench_link:emulated(20, 400, 0)),
    ?assertMatch(#{label := '20ms-400mbit-128KB', buffer_bytes := 131072, queue_bytes := 1000000},
                 Link).

%% By their numbers the signals of this one would be for processes of this machine.
no_signals_for_nodes_on_other_hosts_test_() ->
    [?_assertEqual([], [x || #{workload := slow_receiver} <- weft_bench_hosts:cells(cells(Scope))])
     || Scope <- [quick, full]]
        ++ [?_assertMatch([_ | _], weft_bench_hosts:cells(cells(full)))].
