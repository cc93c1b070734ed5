%% SPDX-License-Identifier: Apache-2.0
%% @doc Which cells are left out or fail as a whole, and why, and which nodes are there beside those
%% that are measured; what is done with the others is in weft_bench_SUITE.
-module(weft_bench_runner_tests).

-include_lib("eunit/include/eunit.hrl").

%% Without root there are none.
only_emulated_links_need_to_be_emulated_test() ->
    [Cell | _] = weft_bench_throughput:cells(quick),
    Host = #{address => "localhost", erl => "erl", code => [],
             command => fun([Program | Arguments]) -> {Program, Arguments} end},
    [OnHosts] = weft_bench_hosts:on(#{near => Host, far => Host, epmd_port => 4369}, [Cell]),
    No = {error, "no network namespaces"},
    [?assertEqual({Label, Expected}, {Label, weft_bench_runner:why_not(Of, stock, none, No)})
     || {#{link := #{label := Label}} = Of, Expected}
            <- [{Cell, ok}, {OnHosts, ok},
                {Cell#{link := weft_bench_link:emulated(1, 800, 0)}, No}]].

%% All nodes of a layout have it, however they are arranged.
a_quota_is_for_all_nodes_of_a_layout_test() ->
    Cores = erlang:system_info(logical_processors_available),
    [Cell | _] = cells(full),
    [?assertEqual({Layout, Variant, IsEnough},
                  {Layout, Variant, ok =:= weft_bench_runner:why_not(Cell#{layout := Layout},
                                                                     Variant, Quota, ok)})
     || {Layout, Variant, Count} <- [{alone, stock, 1}, {pair, stock, 2}, {pair, weft_gateway, 3},
                                     {trio, stock, 3}, {{fan, 10}, stock, 11},
                                     {{cluster, weft_bench_cluster:shape(7, [])}, stock, 7}],
        {Quota, IsEnough} <- [{90 * Cores / (Count + 0.5), true},
                              {90 * Cores / (Count - 0.5), false}]].

%% Those of a cluster have the machine for themselves, which is what is told of it.
no_other_nodes_are_there_beside_many_test() ->
    Both = [stock, weft_1],
    [?assertEqual({Workload, Stopped},
                  {Workload, weft_bench_runner:stopped_before(Cell, stock, Both)})
     || #{workload := Workload, layout := Layout} = Cell <- cells(quick) ++ cells(full),
        Stopped <- [case Layout of
                        {_Many, _} -> Both;
                        _ when is_map_key(fresh, Cell) -> [stock];
                        _ -> []
                    end]].

cells(Scope) -> weft_bench_workload:cells(weft_bench_workload:modules(), Scope).

%% A link that may be there, and can not be made in the end: its program is a directory.
what_has_no_place_has_failed_test() ->
    Dir = filename:join(filename:basedir(user_cache, ?MODULE_STRING),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    Program = filename:join(Dir, "linkem"),
    ok = filelib:ensure_dir(filename:join(Program, "x")),
    ok = file:change_time(Program, {{2000, 1, 1}, {0, 0, 0}}),
    [#{variants := Variants, link := Link} = Cell | _] = cells(quick),
    ByHosts = Cell#{link := Link#{label := hosts, hosts => #{}}},
    try
        ?assertEqual({ok, 2 * length(Variants)},
                     weft_bench_runner:run(#{run => "no_place", dir => Dir, build_dir => Dir,
                                             cells => [ByHosts], repetitions => 2, quota => none,
                                             terminal => false, limit_ms => infinity})),
        {ok, Rows} = weft_report_record:read(Dir),
        ?assertEqual([<<"failed">>], lists:usort([Metric || #{metric := Metric} <- Rows]))
    after
        file:del_dir_r(Dir)
    end.
