%% SPDX-License-Identifier: Apache-2.0
%% @doc Small real runs: nodes, namespaces if there may be any, files. The numbers do not matter,
%% that there are numbers does.
-module(weft_bench_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([run_is_recorded/1, cluster_has_its_vms_per_core/1,
         quotas_bind/1, lookups_are_timed/1,
         what_there_is_no_time_for_is_left_out/1, emulated_link_has_its_round_trip/1,
         carrier_that_does_not_boot_is_told/1, nodes_at_rest_are_measured/1]).

suite() -> [{timetrap, {seconds, 60}}].

all() ->
    [run_is_recorded, quotas_bind, what_there_is_no_time_for_is_left_out,
     emulated_link_has_its_round_trip, carrier_that_does_not_boot_is_told,
     nodes_at_rest_are_measured]
        ++ [Case || is_full(), Case <- [lookups_are_timed, cluster_has_its_vms_per_core]].

is_full() -> os:getenv("FULL") =/= false.

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

run_is_recorded(Config) ->
    %% Those with TLS are in weft_bench_commands_SUITE and weft_bench_tls_SUITE.
    Variants = ["stock", "weft_gateway"]
        ++ [More || is_full(), More <- ["weft_1", "weft_tls_1"]],
    Rows = run(["--quick", "--only", "a small 100 B x 16", "--variants",
                lists:append(lists:join(",", Variants)), "--repetitions", "1"], Config),
    ?assertEqual([], [Row || #{metric := <<"failed">>} = Row <- Rows]),
    Rates = [{Variant, Rate} || #{metric := <<"messages_per_s">>, variant := Variant,
                                  value := Rate} <- Rows],
    ?assertEqual(lists:sort([list_to_binary(Variant) || Variant <- Variants]),
                 lists:sort([Variant || {Variant, _} <- Rates])),
    [?assert(Rate > 1000) || {_, Rate} <- Rates],
    [?assertEqual({Metric, length(Variants)},
                  {Metric, length([Value || #{metric := Name, value := Value} <- Rows,
                                            Name =:= Metric, Value > 0])})
     || Metric <- [<<"warm_up_s">>, <<"measured_s">>]],
    {ok, Environment} = weft_report_record:read_environment(dir(Config)),
    ?assertEqual(list_to_binary(erlang:system_info(otp_release)),
                 maps:get(<<"otp_release">>, Environment)),
    ?assertNotEqual(<<>>, maps:get(<<"congestion_control">>, Environment)).

%% One sends to eight.
cluster_has_its_vms_per_core(Config) ->
    Rows = run(["--quick", "--only", "h fan_out", "--variants", "stock", "--repetitions", "1"],
               Config),
    ?assertEqual([round(9.0e4 / erlang:system_info(logical_processors_available))],
                 [round(Value * 1.0e4) || #{metric := <<"vms_per_core">>, value := Value} <- Rows]).

%% A node that wants more does not get it, and the run says so; or it says why there are no quotas.
quotas_bind(Config) ->
    Rows = run(["--quick", "--only", "a small 100 B x 16", "--variants", "stock",
                "--repetitions", "1", "--quota", "20"], Config),
    {ok, #{<<"quota">> := Told}} = weft_report_record:read_environment(dir(Config)),
    Recorded = maps:from_list([{Metric, Value} || #{metric := Metric, value := Value} <- Rows]),
    case weft_bench_quota:possible() of
        {ok, _} ->
            #{<<"quota_percent">> := 20, <<"throttled_percent">> := Throttled,
              <<"quota_used_percent">> := Used} = Recorded,
            ?assertMatch(<<"20 % of a core for each node, ", _/binary>>, Told),
            ?assert(Throttled > 0),
            ?assert(Used > 0 andalso Used < 120);
        {error, Why} ->
            ?assertEqual(<<"none; 20 % were asked for: ", (list_to_binary(Why))/binary>>, Told),
            ?assertNot(is_map_key(<<"quota_percent">>, Recorded))
    end.

lookups_are_timed(Config) ->
    Rows = run(["--quick", "--suites", "i", "--repetitions", "1"], Config),
    ?assertMatch([_, _], [Ns || #{metric := <<"lookup_ns">>, value := Ns} <- Rows, Ns > 0]).

%% The first cell is expected to take longer than there is, the second one is not.
what_there_is_no_time_for_is_left_out(Config) ->
    [First, Second] = weft_bench_workload:cells([weft_bench_peers], quick),
    {ok, 0} = weft_bench_runner:run(#{run => "limit", dir => dir(Config), build_dir => dir(Config),
                                      cells => [First#{cost_ms := 120000}, Second],
                                      repetitions => 1, terminal => false, limit_ms => 60000,
                                      quota => none}),
    {ok, Rows} = weft_report_record:read(dir(Config)),
    ?assertMatch([{<<"skipped">>, <<"no time was left in this run">>}],
                 [{Metric, Note} || #{metric := Metric, note := Note, pairs := Peers} <- Rows,
                                    Peers =:= maps:get(pairs, First)]),
    ?assertMatch([Ns] when Ns > 0,
                 [Ns || #{metric := <<"lookup_ns">>, value := Ns, pairs := Peers} <- Rows,
                        Peers =:= maps:get(pairs, Second)]).

emulated_link_has_its_round_trip(Config) ->
    case weft_bench_place:can_emulate(dir(Config)) of
        ok -> emulated(Config);
        {error, Why} -> {skip, Why}
    end.

emulated(Config) ->
    {ok, Place} = weft_bench_place:start(weft_bench_link:emulated(20, 400, 0), dir(Config)),
    try
        Context = #{place => Place, log_dir => dir(Config)},
        {ok, Nodes} = weft_bench_nodes:start(stock, pair, Context),
        Echo = weft_bench_nodes:call(Nodes, b, weft_bench_ping, start_echo, {[], 5000}),
        %% What else runs on the machine makes a round trip longer, but not always.
        LatenciesUs = [latency_us(Nodes, Echo) || _ <- lists:seq(1, 3)],
        %% Of two versions of a library it is the same that they load.
        ?assertEqual(weft_bench_nodes:code_path(),
                     weft_bench_nodes:call(Nodes, a, weft_bench_nodes, code_path, {[], 5000})),
        ok = weft_bench_nodes:stop(Nodes),
        ?assert(lists:min(LatenciesUs) >= 20000),
        ?assert(lists:min(LatenciesUs) < 60000)
    after
        weft_bench_place:stop(Place)
    end.

latency_us(Nodes, Echo) ->
    #{latency_p50_us := LatencyUs} =
        weft_bench_nodes:call(Nodes, a, weft_bench_ping, run, {[plain, Echo, 500], 10000}),
    LatencyUs.

carrier_that_does_not_boot_is_told(Config) ->
    {ok, Place} = weft_bench_place:start(weft_bench_link:loopback(), dir(Config)),
    %% Now there is no epmd there.
    ok = weft_bench_place:stop(Place),
    ?assertMatch({error, "" ++ _},
                 weft_bench_nodes:start(stock, pair, #{place => Place, log_dir => dir(Config)})).

%% Three nodes that knew nothing of each other: each variant forms a cluster in its way.
nodes_at_rest_are_measured(Config) ->
    Forming = ["weft_swim" | ["stock" || is_full()]],
    Rows = [Row || {Cell, Variants} <- [{"form", lists:join(",", Forming)},
                                        {"connection", "weft_mesh"}]
                                       ++ [{"idle", "weft_1"} || is_full()],
                   Row <- run(["--quick", "--suites", "rest", "--only", "rest: " ++ Cell,
                               "--variants", lists:flatten(Variants), "--repetitions", "1"],
                              Config)],
    ?assertEqual([], [Row || #{metric := <<"failed">>} = Row <- Rows]),
    Of = fun(Metric) -> [{Variant, Value} || #{metric := M, variant := Variant, value := Value}
                                                 <- Rows, M =:= Metric] end,
    ?assertEqual(lists:sort([list_to_binary(Variant) || Variant <- Forming]),
                 lists:sort([Variant || {Variant, _} <- Of(<<"formed_s">>)])),
    [?assert(Value > 0) || Metric <- [<<"formed_s">>, <<"forming_cpu_ms">>, <<"idle_percent">>,
                                      <<"idle_wakeups_per_s">>],
                           {_Variant, Value} <- Of(Metric)],
    %% A link, what writes to it, a session and the process of the kernel are the least, and the
    %% goal is one more at most.
    [{_, Processes}] = Of(<<"connection_processes">>),
    ?assert(Processes >= 4 andalso Processes =< 5),
    [{_, Bytes}] = Of(<<"connection_bytes">>),
    ?assert(Bytes > 10000),
    is_full() andalso an_hour_in_short(Config).

%% Two clusters at the same time: a sample of each minute, at its time, and their mean; and all
%% nodes are counted.
an_hour_in_short(Config) ->
    Dir = filename:join(dir(Config), "hour"),
    ?assertEqual(ok, weft_bench_hour:run(#{nodes => [3], variants => [stock_mesh, weft_mesh],
                                           at_once => true, settle_ms => 1000, samples => 4,
                                           each_ms => 500, out => Dir})),
    {ok, Rows} = weft_report_record:read(Dir),
    [begin
         Of = fun(Metric) -> [{AtMs, Value} || #{metric := M, value := Value, at_ms := AtMs,
                                                 variant := V} <- Rows, M =:= Metric, V =:= Variant]
              end,
         [_, _, _, _] = Minutes = Of(<<"idle_minute_percent">>),
         [?assert(AtMs >= 500 * N) || {N, {AtMs, _}} <- lists:enumerate(Minutes)],
         [{0, Mean}] = Of(<<"idle_percent">>),
         ?assert(abs(Mean - lists:sum([Value || {_, Value} <- Minutes]) / 4) < 0.001),
         ?assertMatch([_, _, _, _], [Bytes || {_, Bytes} <- Of(<<"node_memory_bytes">>),
                                              Bytes > 10000000]),
         ?assertEqual([{0, 6 / erlang:system_info(logical_processors_available)}],
                      Of(<<"vms_per_core">>))
     end || Variant <- [<<"stock_mesh">>, <<"weft_mesh">>]].

%% All runs are in one directory, so what the one before has left there goes first.
run(Arguments, Config) ->
    _ = [file:delete(File) || File <- [weft_report_record:results_file(dir(Config)),
                                       weft_report_record:environment_file(dir(Config))]],
    ?assertEqual(0, weft_bench_cli:main(["--out", dir(Config) | Arguments])),
    {ok, Rows} = weft_report_record:read(dir(Config)),
    Rows.

dir(Config) ->
    ?config(priv_dir, Config).
