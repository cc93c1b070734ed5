%% SPDX-License-Identifier: Apache-2.0
-module(weft_dashboard_stores_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_dashboard_stores, [answer/2]).

ring(Owned, Moving) ->
    #{members => #{member => 2, joining => 1, leaving => 0, gone => 0}, partitions => 8,
      owned => Owned, moving => Moving, handoffs => #{running => 1, done => 2, failed => 3},
      processes => 9, longest => 1}.

kv(Gets) ->
    #{requests => #{get => Gets, put => 2, delete => 3},
      request_us => #{get => 400, put => 500, delete => 600},
      errors => #{caller => 1, timeout => 2},
      running => 1, entropy => #{}, strong => #{}, hints => 5, objects => 6, memory_bytes => 7,
      file_bytes => 8, unwritable => 0}.

what_each_counts_is_added_and_what_all_know_is_not_test() ->
    #{at_ms := 7, nodes := [#{node := a@h, has := A}, #{node := b@h, has := B}],
      together := All} = answer([{a@h, #{ring => ring(5, 1), kv => kv(10)}},
                                 {b@h, #{ring => ring(3, 2), kv => kv(20)}}], 7),
    ?assertEqual(#{members => 2, partitions => 8, moving => 1, owned => 5, handing_over => 1,
                   handed_over => 2, handoffs_failed => 3, get => 10, get_us => 400, put => 2,
                   put_us => 500, delete => 3, delete_us => 600, errors => 3, running => 1,
                   hints => 5, objects => 6, memory_bytes => 7, file_bytes => 8}, A),
    ?assertMatch(#{owned := 3, get := 20}, B),
    ?assertEqual(#{members => 2, partitions => 8, moving => 2, owned => 8, handing_over => 2,
                   handed_over => 4, handoffs_failed => 6, get => 30, get_us => 800, put => 4,
                   put_us => 1000, delete => 6, delete_us => 1200, errors => 6, running => 2,
                   hints => 10, objects => 12, memory_bytes => 14, file_bytes => 16}, All).

who_runs_neither_is_left_out_test() ->
    ?assertMatch(#{nodes := [], together := Empty} when Empty =:= #{}, answer([{a@h, #{}}], 1)),
    #{nodes := [#{node := b@h, has := Has}]} = answer([{a@h, #{crdt => #{}}},
                                                       {b@h, #{ring => ring(5, 1)}}], 1),
    ?assertNot(is_map_key(get, Has)).
