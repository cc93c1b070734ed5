%% SPDX-License-Identifier: Apache-2.0
%% @doc What the experiments with the store leave: nothing of nodes that are killed and started
%% again when what needs them has ended, and no copies on disk. What is measured is in
%% weft_paper_SUITE.
-module(weft_store_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([nodes_that_were_started_again_end_with_what_fails/1, copies_on_disk_are_removed/1,
         rings_know_nothing_of_each_other/1]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [nodes_that_were_started_again_end_with_what_fails, copies_on_disk_are_removed,
     rings_know_nothing_of_each_other].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

nodes_that_were_started_again_end_with_what_fails(Config) ->
    Dir = ?config(priv_dir, Config),
    weft_bench_test_cluster:with_nodes(
      weft_mesh, weft_bench_cluster:shape(3, []), Config,
      fun(Nodes) ->
          Victims = [{n, 2}, {n, 3}],
          ok = weft_store_ring:form(Nodes, [{n, 1} | Victims], Dir),
          _ = [ok = weft_bench_nodes:kill(Nodes, Role) || Role <- Victims],
          Ring = {Dir, weft_bench_cluster:nodes(Nodes)},
          Self = self(),
          Fails = fun(New) ->
                      Self ! {again, [weft_bench_nodes:os_pid(New, Role) || Role <- Victims]},
                      erlang:error(on_purpose)
                  end,
          ?assertError(on_purpose,
                       weft_store_ring:again(
                         Nodes, {n, 2}, Ring,
                         fun(One) -> weft_store_ring:again(One, {n, 3}, Ring, Fails) end)),
          [_, _] = OsPids = receive {again, Both} -> Both after 0 -> [] end,
          _ = [?assertNot(lists:member(weft_bench_nodes:os_pid(Nodes, Role), OsPids))
               || Role <- Victims],
          weft_test_nodes:until(fun() -> not lists:any(fun is_running/1, OsPids) end)
      end).

%% They are there, in the files of each node, while the store runs.
copies_on_disk_are_removed(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "on_disk"),
    weft_bench_test_cluster:with_nodes(
      weft_mesh, weft_bench_cluster:shape(3, []), Config,
      fun(Nodes) ->
          Store = [{n, 1}, {n, 2}, {n, 3}],
          ok = weft_store_ring:form(Nodes, Store, Dir, #{on_disk => true}),
          ok = weft_bench_nodes:call(Nodes, {n, 1}, weft_store_clients, fill,
                                     {[lists:seq(1, 100), 1024], 60000}),
          Bytes = fun() -> lists:sum([filelib:file_size(File) || File <- files(Dir)]) end,
          ?assert(Bytes() > 3 * 100 * 1024),
          ok = weft_store_ring:removed(Nodes, Store, Dir),
          ?assertEqual([], files(Dir)),
          ok = weft_store_ring:removed(Nodes, Store, Dir)
      end).

files(Dir) -> filelib:wildcard(filename:join(Dir, "copies/*/*.log")).

%% Two of two nodes, each asked by a node of its own, do what one ring does.
rings_know_nothing_of_each_other(Config) ->
    Shape = weft_bench_cluster:shape(6, []),
    weft_bench_test_cluster:with_nodes(
      weft_mesh, Shape, Config,
      fun(Nodes) ->
          Cell = #{dir => ?config(priv_dir, Config), workload => riak_insert_rings, repetition => 1,
                   layout => {cluster, Shape}, quota => none, pairs => 2, streams => 8,
                   with => #{size => 4, rings => 2, keys => 20, partitions => 16, per_node => 40,
                             duration_ms => 1000, rest_ms => 100}},
          {ok, Values} = weft_store_workload:run(Cell, Nodes),
          ?assertEqual(0, proplists:get_value(failed_operations, Values)),
          %% What was done before it was measured is there, too.
          Inserted = proplists:get_value(calls, Values),
          ?assert(Inserted > 20),
          On = fun(Number, Function, Arguments) ->
                   weft_bench_nodes:call(Nodes, {n, Number}, weft_kv, Function, {Arguments, 30000})
               end,
          [{ok, One}, {ok, Same}, {ok, Other}] = [On(Number, list, [bench]) || Number <- [1, 2, 3]],
          ?assertEqual(lists:sort(One), lists:sort(Same)),
          ?assert(length(One) + length(Other) >= 2 * 20 + Inserted),
          ?assertEqual(20, length([Key || Key <- One, lists:member(Key, Other)]))
      end).

is_running(OsPid) -> filelib:is_dir("/proc/" ++ OsPid).
