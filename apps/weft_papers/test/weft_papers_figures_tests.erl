%% SPDX-License-Identifier: Apache-2.0
%% @doc What figures make of results that are made up. That they can be measured is tested in
%% weft_paper_SUITE.
-module(weft_papers_figures_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_papers_found, [findings/2, says/3]).

orbit(Workload, Nodes) ->
    #{suite => <<"orbit">>, workload => Workload, size_bytes => 0, pairs => Nodes,
      streams => 20000}.

connections_are_held_against_the_formula_test() ->
    Rows = [{orbit(<<"orbit">>, 13), stock, connections_max, [12, 12]},
            {orbit(<<"orbit">>, 13), weft_groups, connections_max, [6]},
            {orbit(<<"orbit_grouped">>, 13), stock, connections_max, [6]},
            {orbit(<<"orbit_grouped">>, 13), stock, program_messages, [31000]},
            {orbit(<<"orbit_grouped">>, 7), stock, connections_max, [5]}],
    says([{agrees, ["orbit", 13, stock, 12]}, {open, ["orbit", 13, weft_groups, 6, 12]},
          {agrees, ["orbit grouped", 13, stock, 6]}, {open, ["orbit grouped", 13, 20000, 31000]},
          {differs, ["orbit grouped", 7, stock, {5, "connections"}, 4]}], "orbit", Rows).

aco(Version, Colonies) ->
    #{suite => <<"aco">>, workload => <<"aco_", Version/binary>>, size_bytes => 0, pairs => 47,
      streams => Colonies}.

packets(Sr, Ml, Gr) ->
    [{aco(<<"tl">>, 8), stock_mesh, received_packets, [1200]},
     {aco(<<"ml">>, 8), stock_mesh, received_packets, [Ml]},
     {aco(<<"gr">>, 8), stock_mesh, received_packets, [Gr]},
     {aco(<<"sr">>, 8), stock, received_packets, [Sr]}].

versions_are_put_in_order_test() ->
    says([{agrees, [47, {"SR", 500}, {"ML", 1300}, {"TL", 1200}, {"GR", 1700}]},
          {differs, [47, "SR", {"ML", "2.6"}, 2]}, {agrees, [47, "SR", {"GR", "3.4"}, 3]}],
         "aco_10", packets(500, 1300, 1700)),
    ?assertMatch([{agrees, _}, {agrees, _}, {differs, _}],
                 findings("aco_10", packets(600, 1300, 4000))),
    ?assertMatch([{differs, _} | _], findings("aco_10", packets(1500, 1300, 4000))),
    ?assertMatch([{differs, _} | _], findings("aco_10", packets(270, 1300, 1250))),
    Three = lists:droplast(packets(270, 1300, 4000)),
    says([{open, [47, {"ML", 1300}, {"TL", 1200}, {"GR", 4000}]}], "aco_10", Three),
    [{open, Text}] = findings("aco_10", Three),
    ?assertEqual(["SR"], weft_report_said:missing(["SR"], Text)).

%% Two repetitions that are the same tell how much they differ; one does not.
times_of_one_repetition_are_open_test() ->
    Rows = fun(Repetitions) ->
               [{aco(Version, 8), Variant, duration_s, lists:duplicate(Repetitions, Seconds)}
                || {Version, Variant, Seconds} <- [{<<"tl">>, stock_mesh, 1.1},
                                                   {<<"ml">>, stock_mesh, 1.0},
                                                   {<<"gr">>, stock_mesh, 2.0},
                                                   {<<"sr">>, stock, 0.8}]]
           end,
    says([{open, [47, {"SR", "0.80 s"}, {"GR", "2.00 s"}]}], "aco_9", Rows(1)),
    says([{agrees, [47, {"SR", "0.80 s"}, {"GR", "2.00 s"}]}], "aco_9", Rows(2)).

city(Workload, Nodes) ->
    #{suite => <<"city">>, workload => Workload, size_bytes => 0, pairs => Nodes, streams => 360}.

packets_of_the_city_rise_with_the_nodes_test() ->
    says([{agrees, ["city", stock, {0, 1}, {500, 2}, {900, 8}]},
          {differs, ["city", weft_mesh, {700, 2}, {600, 8}]},
          {open, ["city districts", stock, {3, 1}, {4, 2}]}],
         "city", [{city(Workload, Nodes), Variant, received_packets, [Packets]}
                  || {Workload, Nodes, Variant, Packets} <- [{<<"city">>, 8, stock, 900},
                                                             {<<"city">>, 1, stock, 0},
                                                             {<<"city">>, 2, stock, 500},
                                                             {<<"city">>, 2, weft_mesh, 700},
                                                             {<<"city">>, 8, weft_mesh, 600},
                                                             {<<"city">>, 8, weft_groups, 1},
                                                             {<<"city_districts">>, 1, stock, 3},
                                                             {<<"city_districts">>, 2, stock, 4}]]).

events_of_phold_are_told_per_second_test() ->
    Cell = fun(Nodes) -> city(<<"phold">>, Nodes) end,
    says([{open, ["phold", stock, {900, 1}, {500, 2}]}, {open, ["phold", weft_groups, {400, 4}]}],
         "phold", [{Cell(2), stock, events_per_s, [500]}, {Cell(1), stock, events_per_s, [900]},
                   {Cell(2), stock, received_packets, [7]},
                   {Cell(4), weft_groups, events_per_s, [400]}]),
    ?assertEqual([], findings("phold", [{city(<<"city">>, 2), stock, events_per_s, [500]}])).

watched(Workload, Nodes, Percents) ->
    [{#{suite => <<"watched">>, workload => Workload, size_bytes => 0, pairs => Nodes}, weft_groups,
      watched_percent, Percents}].

monitoring_may_cost_little_test() ->
    says([{agrees, ["watched deployment", {5, "101.0 %"}]},
          {differs, ["watched deployment", {20, "106.0 %"}]}],
         "sd_18",
         watched(<<"watched_deploy">>, 20, [106]) ++ watched(<<"watched_deploy">>, 5, [101])),
    ?assertMatch([{differs, _}, {agrees, _}],
                 findings("sd_19", watched(<<"watched_im">>, 8, [101.3])
                                       ++ watched(<<"watched_aco">>, 11, [101.4]))),
    says([{open, ["watched ACO", {11, "101.0 %"}]}],
         "sd_19", watched(<<"watched_aco">>, 11, [99, 100, 101, 103, 105])),
    Rate = fun(Percent) -> [{Cell, Variant, watched_rate_percent, [Percent]}
                            || {Cell, Variant, _, _} <- watched(<<"watched_im">>, 8, [100])] end,
    says([{agrees, ["watched Instant Messenger", 8, {"throughput", "98.8 %"}]}],
         "sd_19", Rate(98.8)),
    ?assertMatch([{differs, _}], findings("sd_19", Rate(98.6))).

the_error_has_to_fall_test() ->
    Rows = fun(Errors) -> [{aco(<<"quality">>, Colonies), stock, cost_error_percent, [Error]}
                           || {Colonies, Error} <- Errors] end,
    says([{agrees, [{1, "9.0 %"}, {16, "4.5 %"}]}], "aco_7", Rows([{16, 4.5}, {1, 9}])),
    ?assertMatch([{differs, _}], findings("aco_7", Rows([{1, 9}, {16, 9}]))),
    ?assertEqual([], findings("aco_7", [])).

failures_may_cost_a_little_test() ->
    Rows = fun(Steady, Seconds) ->
               [{aco(<<"sr_steady">>, 8), stock, duration_s, Steady},
                {aco(<<"sr_killed">>, 8), stock, duration_s, [Seconds]},
                {aco(<<"sr_killed">>, 8), stock, kills, [7]},
                {aco(<<"gr_steady">>, 8), stock_mesh, duration_s, [3]}]
           end,
    Unhurt = [case Row of
                  {Cell, Variant, kills, _} -> {Cell, Variant, kills, [0]};
                  _ -> Row
              end || Row <- Rows([2, 2], 2.19)],
    says([{open, ["SR", stock, {0, "killed"}, "none"]}], "aco_failures", Unhurt),
    says([{agrees, ["SR", stock, "2.00 s", {7, "2.19 s"}, "2.20 s"]}],
         "aco_failures", Rows([2, 2], 2.19)),
    ?assertMatch([{differs, _}], findings("aco_failures", Rows([2, 2], 2.21))),
    %% One run without failures was as slow.
    ?assertMatch([{agrees, _}], findings("aco_failures", Rows([2, 2, 2.4], 2.4))),
    ?assertMatch([{differs, _}], findings("aco_failures", Rows([2, 2, 2.4], 2.41))).

de_bench(Workload, Nodes, Streams) ->
    #{suite => <<"de_bench">>, workload => Workload, size_bytes => 10, pairs => Nodes,
      streams => Streams}.

global(Nodes, Streams, Rate, Register) ->
    Cell = de_bench(<<"de_global">>, Nodes, Streams),
    [{Cell, stock_mesh, calls_per_s, [Rate]}, {Cell, stock_mesh, register_mean_us, [Register]},
     {Cell, stock_mesh, spawning_mean_us, [200]}].

global_commands_hold_up_the_others_test() ->
    Rows = global(2, 0, 300, 1) ++ global(24, 0, 3600, 1) ++ global(2, 100, 300, 2000),
    says([{agrees, [stock_mesh, "1.0 %", {"100 %", 2}, {"50 %", 24}]},
          {agrees, [stock_mesh, 24, {"0.0 %", "3.60 k/s"}, {"1.0 %", "1.80 k/s"}]}],
         "de_5", Rows ++ global(24, 100, 1800, 900000)),
    ?assertMatch([{differs, _}, {differs, _}],
                 findings("de_5", Rows ++ global(24, 100, 3590, 900000))),
    says([{agrees, [stock_mesh, {"2.00 ms", 2}, {"900 ms", 24}, {"spawn", "200 µs"}]}],
         "de_6", Rows ++ global(24, 100, 1800, 900000)),
    ?assertMatch([{differs, _}], findings("de_6", Rows ++ global(24, 100, 1800, 2100))).

names_of_weft_are_flat_test() ->
    Rows = fun(Rate) ->
               [{de_bench(<<"de_global">>, Nodes, Streams), weft_mesh, calls_per_s, [Value]}
                || {Nodes, Streams, Value} <- [{2, 0, 100}, {60, 0, 3000}, {2, 500, 101},
                                               {60, 500, Rate}]]
           end,
    says([{agrees, [weft_mesh, "5.0 %", {"101 %", 2}, {"95 %", 60}]},
          {agrees, [weft_mesh, 60, {"0.0 %", "3.00 k/s"}, {"5.0 %", "2.86 k/s"}]}],
         "de_5", Rows(2860)),
    ?assertMatch([{differs, _}, {differs, _}], findings("de_5", Rows(2840))),
    ?assertMatch([{differs, _}, {differs, _}], findings("de_5", Rows(3160))).

less_within_noise_is_open_test() ->
    Rows = fun(Larger) ->
               [{de_bench(<<"de_size">>, 4, 10), stock_mesh, calls_per_s, [90, 100, 110]},
                {(de_bench(<<"de_size">>, 4, 10))#{size_bytes => 10000}, stock_mesh, calls_per_s,
                 Larger}]
           end,
    ?assertMatch([{agrees, _}], findings("de_7", Rows([50, 60, 70]))),
    ?assertMatch([{open, _}], findings("de_7", Rows([80, 95, 115]))),
    ?assertMatch([{differs, _}], findings("de_7", Rows([120, 130, 140]))).

weft_is_shown_beside_and_not_judged_test() ->
    Rows = [{de_bench(<<"de_size">>, 4, 10), Variant, calls_per_s, [5]}
            || Variant <- [stock_mesh, weft_mesh]],
    Larger = [{Cell#{size_bytes => 10000}, Variant, Metric, [4]}
              || {Cell, Variant, Metric, _} <- Rows],
    says([{agrees, [stock_mesh, 4, {"10 B", "5.00 /s"}, {"10000 B", "4.00 /s"}]},
          {open, [weft_mesh]}], "de_7", Rows ++ Larger),
    ?assertMatch([{differs, _}, {open, _}], findings("de_7", Rows)).

as_much_for_each_node_is_linear_test() ->
    Rows = fun(Last) -> [{de_bench(<<"de_heavy">>, 2, 1000), stock_mesh, calls_per_s, [30]},
                         {de_bench(<<"de_heavy">>, 24, 1000), stock_mesh, calls_per_s, [Last]}] end,
    says([{agrees, [stock_mesh, {"30.0", 2}, {"28.0", 24}]}], "de_9", Rows(644)),
    ?assertMatch([{differs, _}], findings("de_9", Rows(368))).

%% Of what grows with the nodes a quick run says nothing, which has few of them, and neither does
%% one that has had no time for the most.
growth_is_not_judged_by_few_nodes_test() ->
    City = fun(Most) -> [{city(<<"city">>, Nodes), stock, received_packets, [Nodes]}
                         || Nodes <- [1, Most]] end,
    Colonies = fun(Most) -> [{aco(<<"quality">>, Count), stock, cost_error_percent, [9 / Count]}
                             || Count <- [1, Most]] end,
    Linear = fun(Most) -> [{de_bench(<<"de_heavy">>, Nodes, 1000), stock_mesh, calls_per_s,
                            [30 * (Nodes - 1)]} || Nodes <- [2, Most]] end,
    Calls = fun(Most) -> [{de_bench(<<"de_heavy">>, Nodes, 1000), stock_mesh, Metric, [Us]}
                          || {Nodes, Metric, Us} <- [{2, remote_call_mean_us, 100},
                                                     {2, spawning_mean_us, 10},
                                                     {Most, remote_call_mean_us, 900},
                                                     {Most, spawning_mean_us, 100}]] end,
    Cost = fun(Most) -> [{store(<<"riak_get">>, Nodes, 4), weft_mesh, Metric, [Value]}
                         || Nodes <- [4, Most],
                            {Metric, Value} <- [{store_cpu_us, 400}, {calls_per_s, 2000},
                                                {clients_cpu_us, 40}]] end,
    [begin
         ?assertMatch({Id, [{agrees, _}]}, {Id, findings(Id, Rows(Most))}),
         ?assertMatch({Id, [{open, _}]}, {Id, findings(Id, Rows(Most - 1))})
     end || {Id, Rows, Most} <- [{"city", City, 8}, {"aco_7", Colonies, 16}, {"de_9", Linear, 24},
                                 {"de_10", Calls, 24}, {"riak_throughput", Cost, 24}]].

unicast(Link, Variant, Seconds) ->
    {#{suite => <<"e">>, workload => <<"unicast">>, size_bytes => 1048576, pairs => 16,
       link => Link}, Variant, duration_s, [Seconds]}.

parallel_connections_are_judged_with_delay_test() ->
    Rows = [unicast(Link, Variant, Seconds)
            || Link <- [<<"loopback">>, <<"20ms-400mbit">>],
               {Variant, Seconds} <- [{stock, 4}, {weft_1, 4.2}, {weft_8, 2}]],
    says([{agrees, ["20 ms", "400 Mbit/s", 16, {weft_8, "2.00"}, stock]},
          {open, ["loopback", 16, {weft_8, "2.00"}, stock]}], "partisan_4", Rows),
    ?assertMatch([{agrees, _}, {agrees, _}], findings("partisan_1", Rows)),
    ?assertMatch([{differs, _}],
                 findings("partisan_1", [unicast(<<"loopback">>, stock, 1),
                                         unicast(<<"loopback">>, weft_1, 2)])).

channels_are_held_against_ten_times_test() ->
    Cell = #{suite => <<"e">>, workload => <<"key_value">>},
    Rows = fun(Rate) -> [{Cell, stock, calls_per_s, [10]}, {Cell, channel, calls_per_s, [Rate]}]
           end,
    says([{agrees, [{"channels", "11.0"}]}, {open, []}], "partisan_2", Rows(110)),
    ?assertMatch([{differs, _}, {open, _}], findings("partisan_2", Rows(30))),
    ?assertEqual([], findings("partisan_2", [])).

%% So are those that are asked for where nodes have quotas.
repetitions_that_are_asked_for_are_made_with_quotas_test() ->
    Minutes = fun(Repetitions) ->
                  #{minutes := Expected} =
                      weft_bench_cli:expected(
                        ["--suites", "aco", "--quota", "3", "--only", "aco sr, 47", "--minutes",
                         "600", "--repetitions", integer_to_list(Repetitions)],
                        weft_papers:more()),
                  Expected
              end,
    ?assert(Minutes(20) > 2 * Minutes(5)).

%% On the ring of weft, too.
requests_to_partitions_are_judged_in_the_same_way_test() ->
    Cell = fun(Workload) -> #{suite => <<"store">>, workload => Workload, size_bytes => 1048576,
                              pairs => 16, link => <<"20ms-400mbit">>} end,
    Gossip = fun(Rate) ->
                 [{Cell(<<"vnode_gossip">>), Variant, Metric, [Value]}
                  || {Variant, Calls} <- [{stock, 10}, {channel, Rate}],
                     {Metric, Value} <- [{calls_per_s, Calls}, {background_megabytes_per_s, 5}]]
             end,
    says([{agrees, [{"channels", "11.0"}]}, {open, ["20 ms", 16, {"1.00", "gossip"}]}],
         "partisan_2_ring", Gossip(110)),
    ?assertMatch([{differs, _}, {open, _}], findings("partisan_2_ring", Gossip(30))),
    Echo = fun(Rate) -> [{Cell(<<"vnode_echo">>), weft_1, calls_per_s, [10]},
                         {Cell(<<"vnode_echo">>), weft_8, calls_per_s, [Rate]}] end,
    says([{agrees, ["20 ms", 16, {weft_8, "2.00"}, weft_1]}], "partisan_3_ring", Echo(20)),
    ?assertMatch([{differs, _}], findings("partisan_3_ring", Echo(11))).

store(Workload, Pairs, Streams) ->
    #{suite => <<"store">>, workload => Workload, size_bytes => 1024, pairs => Pairs,
      streams => Streams}.

a_supervisor_is_judged_with_many_clients_test() ->
    Rows = fun(Clients, Rate) ->
               lists:append([[{store(Workload, Clients, 1), weft_mesh, calls_per_s, [Calls]},
                              {store(Workload, Clients, 1), weft_mesh, latency_p50_us, [P50]},
                              {store(Workload, Clients, 1), weft_mesh, latency_p99_us, [P99]},
                              {store(Workload, Clients, 1), weft_mesh, mailbox_max, [Waiting]}]
                             || {Workload, Calls, P50, P99, Waiting}
                                    <- [{<<"riak_spawned">>, Rate, 10, 20, 2},
                                        {<<"riak_supervised">>, 1000, 15, 50, 64}]])
           end,
    says([{agrees, ["1 node", "64 clients", {"without", "3.00"}, {"p99", "2.50"}, {"p50", "1.50"},
                    {64, "wait"}, {2, "without"}]}], "riak_wall", Rows(64, 3000)),
    ?assertMatch([{differs, _}], findings("riak_wall", Rows(64, 2900))),
    ?assertMatch([{open, _}, {differs, _}],
                 findings("riak_wall", Rows(64, 2900) ++ Rows(4, 2900))).

%% With the most clients; and of the requests that the store does without it.
what_a_supervisor_can_start_is_told_where_it_was_measured_test() ->
    Rows = fun(Clients, Us) ->
               [{store(<<"riak_spawned">>, Clients, 3), weft_mesh, store_cpu_us, [600]},
                {store(<<"riak_supervised">>, Clients, 3), weft_mesh, store_cpu_us, [900]},
                {store(<<"riak_supervised">>, Clients, 3), weft_mesh, supervisor_us, [Us]}]
           end,
    says([{open, ["3 nodes", "64 clients", "50.0 µs", "20.0 k/s", "600 µs", {"12.0", "cores"}]}],
         "riak_wall", Rows(16, 40) ++ Rows(64, 50)),
    ?assertEqual([], findings("riak_wall", Rows(16, 40) ++ lists:droplast(Rows(64, 50)))).

processor_time_has_to_stay_the_same_test() ->
    Rows = fun(Last) ->
               lists:append([[{store(<<"riak_get">>, Nodes, 4), weft_mesh, store_cpu_us, [Us]},
                              {store(<<"riak_get">>, Nodes, 4), weft_mesh, calls_per_s, [2000]},
                              {store(<<"riak_get">>, Nodes, 4), weft_mesh, clients_cpu_us, [40]}]
                             || {Nodes, Us} <- [{24, Last}, {4, 400}]])
           end,
    ?assertMatch([{agrees, _}], findings("riak_throughput", Rows(436))),
    ?assertMatch([{differs, _}], findings("riak_throughput", Rows(444))).

%% In the worst of all repetitions; with one supervisor it is another figure.
few_messages_have_to_wait_test() ->
    Rows = fun(Most) ->
               [{store(<<"riak_get">>, 4, 4), weft_mesh, mailbox_max, [7, 3]},
                {store(<<"riak_update">>, 24, 4), weft_mesh, mailbox_max, [5, Most, 6]},
                {store(<<"riak_update">>, 24, 4), stock_mesh, mailbox_max, [5000]},
                {store(<<"riak_supervised">>, 24, 4), weft_mesh, mailbox_max, [5000]}]
           end,
    says([{agrees, [1000]}], "riak_throughput", Rows(1000)),
    says([{differs, [1001]}], "riak_throughput", Rows(1001)),
    %% Of what has no name it is told, and judged, where it was looked at in all cells.
    Named = "with a name",
    OfAll = fun(Most) ->
                [{store(Workload, Nodes, 4), weft_mesh, mailbox_all_max, [Most, 4]}
                 || {Workload, Nodes} <- [{<<"riak_get">>, 4}, {<<"riak_update">>, 24}]]
            end,
    says([{agrees, [900, Named]}], "riak_throughput", Rows(900)),
    says([{agrees, [1000, Named]}], "riak_throughput", Rows(900) ++ tl(OfAll(1000))),
    [{agrees, Told}] = findings("riak_throughput", Rows(900) ++ OfAll(1000)),
    ?assertEqual([Named], weft_report_said:missing([1000, Named], Told)),
    says([{differs, [1001]}], "riak_throughput", Rows(900) ++ OfAll(1001)).

%% With the fewest and the most nodes, where bytes were counted; on disk in one size. Some systems
%% do not count what is written.
what_an_operation_takes_is_told_where_it_was_counted_test() ->
    Rows = fun(Workload, Pairs, Streams, Received) ->
               [{store(Workload, Pairs, Streams), weft_mesh, Metric, [Value]}
                || {Metric, Value} <- [{store_cpu_us, 400}, {call_received_bytes, Received},
                                       {store_node_bytes, 6.0e7}]]
           end,
    Written = fun(Pairs) -> [{store(<<"riak_insert_disk">>, Pairs, 16), weft_mesh,
                              call_written_bytes, [12288]}] end,
    says([{open, ["riak insert disk", {4, "400 µs"}, {"9.00 kB", "received"},
                  {"12.3 kB", "written"}, "60.0 MB"]}], "riak_throughput",
         Rows(<<"riak_insert_disk">>, 4, 16, 9000) ++ Written(4)),
    Gets = lists:append([Rows(<<"riak_get">>, Nodes, 4 * Nodes, 1000 * Nodes)
                         || Nodes <- [8, 24, 4]]),
    Told = lists:last(findings("riak_throughput", Gets)),
    ?assertMatch({open, _}, Told),
    ?assertEqual(["8.00 kB", "written"],
                 weft_report_said:missing(["riak get", "4.00 kB", "8.00 kB", "24.0 kB", "written"],
                                          element(2, Told))),
    Uncounted = [Row || {_, _, Metric, _} = Row <- Gets, Metric =/= call_received_bytes],
    ?assertEqual(lists:droplast(findings("riak_throughput", Gets)),
                 findings("riak_throughput", Uncounted)),
    says([{open, ["3 nodes", "64 clients", {"spawned", "400 µs"}, "5.00 kB",
                  {"one supervisor", "400 µs"}, "7.00 kB"]}], "riak_wall",
         lists:append([Rows(<<"riak_spawned">>, 64, 3, 5000), Rows(<<"riak_spawned">>, 1, 3, 4000),
                       Rows(<<"riak_supervised">>, 64, 3, 7000)])).

%% Of the client, at a rate. What was asked for has to be seen.
an_operation_has_to_take_the_same_at_the_same_load_test() ->
    Rows = fun(Last) ->
               Cell = fun(Nodes) -> store(<<"riak_insert_rate">>, Nodes, 4) end,
               lists:append([[{Cell(Nodes), weft_mesh, store_cpu_us, [Us]},
                              {Cell(Nodes), weft_mesh, calls_per_s, [30 * Nodes - 1]},
                              {Cell(Nodes), weft_mesh, asked_per_s, [30 * Nodes]},
                              {Cell(Nodes), weft_mesh, clients_cpu_us, [40]}]
                             || {Nodes, Us} <- [{24, Last}, {4, 400}]])
           end,
    says([{agrees, ["119 /s", "719 /s", "120 /s", "720 /s", {"clients", "40.0 µs"}]}],
         "riak_cost", Rows(436)),
    ?assertMatch([{differs, _}], findings("riak_cost", Rows(444))),
    ?assertMatch([{differs, _}], findings("riak_cost", Rows(350))),
    ?assertEqual([], findings("riak_throughput", Rows(436))).

%% Of small rings and a large one, all of them on as many nodes.
an_operation_has_to_take_the_same_in_a_large_ring_test() ->
    Rows = fun(Size, Us) ->
               lists:append([[{store(<<"riak_get_rings">>, OfRing, 96), weft_mesh, Metric, [Value]}
                              || {Metric, Value} <- [{store_cpu_us, OfCell}, {calls_per_s, 959},
                                                     {asked_per_s, 960}, {clients_cpu_us, 40}]]
                             || {OfRing, OfCell} <- [{Size, Us}, {4, 400}]])
           end,
    says([{agrees, ["riak get rings", "400 µs", {"rings", "4 nodes"}, "436 µs",
                    {"rings", "24 nodes"}, "1.09", "960 /s"]}], "riak_rings", Rows(24, 436)),
    ?assertMatch([{differs, _}], findings("riak_rings", Rows(24, 444))),
    ?assertMatch([{differs, _}], findings("riak_rings", Rows(24, 350))),
    ?assertMatch([{open, _}], findings("riak_rings", Rows(8, 400))),
    ?assertEqual([], findings("riak_cost", Rows(24, 436))).

%% What is compared there has the same nodes, clients, requests, and keys for each node; and about
%% as many partitions.
rings_of_any_size_have_the_same_load_test() ->
    Compared = fun(#{layout := Layout, streams := Clients, pairs := OfRing, cost_ms := CostMs,
                     with := #{size := Size, rings := Rings, keys := Keys, partitions := Parts,
                               per_node := PerNode, duration_ms := Ms, rest_ms := RestMs}}) ->
                   ?assertEqual(Size, Rings * OfRing),
                   ?assert(Parts / OfRing >= 4 andalso Parts / OfRing < 6),
                   {Layout, Clients, Size, Keys / OfRing, PerNode, Ms, RestMs, CostMs}
               end,
    Cells = [{Workload, Cell} || #{workload := Workload, with := #{rings := _}} = Cell
                                     <- weft_store_workload:cells(full)],
    [begin
         Two = [Cell || {Of, Cell} <- Cells, Of =:= Workload],
         ?assertEqual([4, 24], [OfRing || #{pairs := OfRing} <- Two]),
         ?assertMatch([_], lists:usort(lists:map(Compared, Two)))
     end || Workload <- [riak_get_rings, riak_insert_rings, riak_update_rings]].

throughput_has_to_come_back_test() ->
    Cell = store(<<"riak_elasticity">>, 6, 24),
    Rows = [{Cell, weft_mesh, Metric, Values}
            || {Metric, Values} <- [{calls, [9000, 9000]}, {failed_operations, [9, 9]},
                                    {kills, [2, 2]}, {recovery_kill_s, [3, 5]},
                                    {recovery_start_s, [4]}]],
    says([{agrees, [6, {2, "killed"}, "95 %", {2, 2}, "4 s", {3, 5}]},
          {differs, [6, {2, "started"}, "95 %", {1, 2}, "4 s", {4, 4}]},
          {open, [{9, "failed"}, 9000]}], "riak_elasticity", Rows).

%% In the worst repetition. Back in the end is not back soon.
throughput_has_to_come_back_soon_test() ->
    Rows = fun(Kill, Start) ->
               [{store(<<"riak_elasticity">>, 6, 24), weft_mesh, Metric, Values}
                || {Metric, Values} <- [{calls, [9000, 9000]}, {failed_operations, [9, 9]},
                                        {kills, [2, 2]}, {recovery_kill_s, [3, Kill]},
                                        {recovery_start_s, [4, Start]}]]
           end,
    Verdicts = fun(Found) -> [Verdict || {Verdict, _} <- Found] end,
    ?assertEqual([agrees, agrees, open], Verdicts(findings("riak_elasticity", Rows(30, 30)))),
    ?assertEqual([differs, agrees, open], Verdicts(findings("riak_elasticity", Rows(31, 30)))),
    ?assertEqual([agrees, differs, open], Verdicts(findings("riak_elasticity", Rows(30, 31)))).

%% In all repetitions together, and not before there were so many.
few_of_millions_may_fail_test() ->
    Rows = fun(Calls, Failed, Kills) ->
               Cell = store(<<"riak_availability">>, 6, 24),
               [{Cell, weft_mesh, Metric, Values}
                || {Metric, Values} <- [{calls, Calls}, {failed_operations, Failed},
                                        {repeated_operations, [3, 4]}, {kills, Kills}]]
           end,
    Says = fun(Findings, Calls, Failed) ->
               says(Findings, "riak_availability", Rows(Calls, Failed, [5, 6]))
           end,
    says([{open, [6, {0, "kills"}, "none"]}], "riak_availability",
         Rows([1000000, 2000000], [0, 0], [0, 0])),
    says([{open, [6, {11, "kills"}, "none"]}], "riak_availability",
         Rows([1000000, 2000000], [0, 0], [11, 0])),
    Says([{agrees, [6, {11, "kills"}, {29, "failed"}, 3000000, 7]}], [1000000, 2000000], [20, 9]),
    Says([{differs, [{31, "failed"}]}], [1000000, 2000000], [20, 11]),
    Says([{open, [{0, "failed"}]}], [1000000, 1999000], [0, 0]),
    Says([{differs, [{1, "failed"}]}], [10000, 10000], [0, 1]),
    %% One key that is lost is one too many.
    Kept = fun(Lost) ->
               Cell = store(<<"riak_availability">>, 6, 24),
               Rows([2000000, 2000000], [0, 0], [5, 6])
                   ++ [{Cell, weft_mesh, read_keys, [400, 500]}, {Cell, weft_mesh, lost_keys, Lost}]
           end,
    says([{agrees, [{900, "inserted keys"}, {0, "were not there"}]}], "riak_availability",
         Kept([0, 0])),
    says([{differs, [{900, "inserted keys"}, {1, "were not there"}]}], "riak_availability",
         Kept([0, 1])).

%% At the rate at which two quiet cores did them (docs/benchmarks/paper/riak_availability).
there_is_time_for_millions_test() ->
    [Figure] = [Of || #{id := "riak_availability"} = Of <- weft_papers_figures:figures()],
    #{repetitions := Repetitions} =
        weft_bench_cli:expected(weft_papers_figures:arguments(Figure, []), weft_papers:more()),
    [Ms] = [DurationMs || #{workload := riak_availability, with := #{duration_ms := DurationMs}}
                              <- weft_store_workload:cells(full)],
    ?assert(Repetitions * Ms / 1000 * 3400 > 3000000).

%% Whatever was wrong in it, the numbers of the others do not tell.
a_repetition_that_failed_leaves_a_claim_about_failures_open_test() ->
    Elastic = store(<<"riak_elasticity">>, 6, 24),
    Available = store(<<"riak_availability">>, 6, 24),
    [begin
         ?assertMatch({Id, [{agrees, _} | _]}, {Id, findings(Id, Rows)}),
         [{open, Told} | _] = findings(Id, Rows ++ [{Failed, Variant, failed, [<<"wrong">>]}]),
         ?assertEqual({Id, []}, {Id, weft_report_said:missing(["one repetition failed"], Told)})
     end || {Id, Failed, Variant, Rows}
                <- [{"aco_failures", aco(<<"sr_killed">>, 8), stock,
                     [{aco(<<"sr_steady">>, 8), stock, duration_s, [2]},
                      {aco(<<"sr_killed">>, 8), stock, duration_s, [2]},
                      {aco(<<"sr_killed">>, 8), stock, kills, [7]}]},
                    {"riak_elasticity", Elastic, weft_mesh,
                     [{Elastic, weft_mesh, Metric, [9]}
                      || Metric <- [calls, kills, recovery_kill_s, recovery_start_s]]},
                    {"riak_availability", Available, weft_mesh,
                     [{Available, weft_mesh, Metric, [Value]}
                      || {Metric, Value} <- [{calls, 4000000}, {failed_operations, 0},
                                             {kills, 3}]]}]].

%% Who waits while a node is lost, and gets an answer in the end, has waited.
the_longest_operation_is_told_test() ->
    Cell = store(<<"riak_availability">>, 6, 24),
    Rows = [{Cell, weft_mesh, Metric, Values}
            || {Metric, Values} <- [{calls, [4000, 4000]}, {failed_operations, [0, 0]},
                                    {kills, [3, 3]}]],
    [{open, Without}] = findings("riak_availability", Rows),
    ?assertEqual(nomatch, string:find(Without, "longest")),
    says([{open, ["longest took 2.50 s"]}], "riak_availability",
         Rows ++ [{Cell, weft_mesh, latency_max_us, [2500000, 40000]}]).

%% ---- all of them ----

%% Its bound is what somebody can hold the verdict against.
each_figure_says_what_is_judged_test() ->
    Run = weft_papers_run:new("run", {ok, []}),
    [begin
         [{claimed, Claim}, {judged, Bound} | _] = weft_papers_figures:told(Figure, Run),
         Said = unicode:characters_to_list(Bound),
         ?assertMatch({Id, true}, {Id, length(Said) > 20}),
         ?assertNotEqual({Id, Claim}, {Id, Said}),
         ?assertEqual({Id, $.}, {Id, lists:last(Said)})
     end || #{id := Id} = Figure <- weft_papers_figures:figures()].

%% They stand beside names of `global', which are of another kind. In sd_19 all that is compared has
%% the same names.
eventual_names_are_told_where_there_are_some_test() ->
    [?assertEqual({Id, true}, {Id, string:find(NotShown, weft_papers_remarks:names()) =/= nomatch})
     || #{id := Id, cells := Cells, not_shown := NotShown} <- weft_papers_figures:figures(),
        [] =/= [Variant || #{variants := Variants} = Cell <- weft_papers_found:cells(Cells),
                           Variant <- Variants, are_eventual(Cell, Variant)], Id =/= "sd_19"].

are_eventual(#{suite := aco, workload := Workload}, Variant) when Workload =/= aco_quality ->
    "aco_" ++ [V1, V2 | _] = atom_to_list(Workload),
    is_tuple(weft_aco_workload:names(list_to_atom([V1, V2]), Variant));
are_eventual(#{suite := im, workload := Workload}, Variant) ->
    is_tuple(weft_im_workload:names(lists:prefix("im_rsd", atom_to_list(Workload)), Variant));
are_eventual(#{workload := Workload}, Variant)
  when Workload =:= de_global; Workload =:= de_names -> weft_bench_variant:is_weft(Variant);
are_eventual(_Cell, _Variant) -> false.

%% A script is told by its exit status.
a_repetition_that_failed_is_told_by_the_status_test() ->
    [Figure] = [Of || #{id := "aco_7"} = Of <- weft_papers_figures:figures()],
    Cell = aco(<<"quality">>, 16),
    Status = fun(Rows) ->
                 Run = weft_papers_run:new("aco_7", {ok, weft_report_sample:rows(Rows)}),
                 weft_papers_figures:status([{Figure, Run}])
             end,
    Rows = [{aco(<<"quality">>, 1), stock, cost_error_percent, [9]},
            {Cell, stock, cost_error_percent, [4]}],
    ?assertEqual(0, Status(Rows)),
    ?assertEqual(0, Status(Rows ++ [{Cell, stock, skipped, [<<"no time">>]}])),
    ?assertEqual(1, Status(Rows ++ [{Cell, stock, failed, [<<"wrong">>]}])),
    ?assertEqual(1, Status([])),
    ?assertEqual(1, weft_papers_figures:status(
                      [{Figure, weft_papers_run:new("aco_7", {error, "no"})}])).

each_figure_has_cells_test() ->
    [?assertEqual({Id, 0}, {Id, weft_papers_cli:main(["--list" | Options ++ Cells])})
     || #{id := Id, cells := Cells} <- weft_papers_figures:figures(),
        Options <- [[], ["--quick"]]].

%% What is compared in it has the same emulators, on few nodes and on many.
all_clusters_of_a_figure_have_the_same_flags_test() ->
    [?assertMatch({Id, [_]}, {Id, Flags})
     || #{id := Id, cells := Cells} <- weft_papers_figures:figures(), Options <- [[], ["--quick"]],
        [_ | _] = Flags <- [lists:usort([weft_bench_nodes:flags(stock, Layout)
                                         || #{layout := {_, _} = Layout}
                                                <- weft_papers_found:cells(Cells ++ Options)])]].

%% As if all its cells had been measured, with every metric.
each_figure_finds_something_in_its_cells_test_() ->
    [{lists:flatten([Id, $\s, Options]),
      ?_assertMatch([_ | _], findings(Id, weft_papers_found:measured(Cells ++ Options)))}
     || #{id := Id, cells := Cells} <- weft_papers_figures:figures(),
        Options <- [[], ["--quick"]]].

%% None takes 20 minutes, or more than it says, and all are measured twice at least, but for
%% clusters of many nodes without quotas; those with quotas for as long as they need three times.
each_figure_takes_less_than_twenty_minutes_test() ->
    [begin
         #{minutes := Minutes, repetitions := Repetitions} =
             weft_bench_cli:expected(weft_papers_figures:arguments(Figure, []),
                                     weft_papers:more()),
         ?assertMatch({Id, true, true},
                      {Id, Minutes < maps:get(minutes, Figure, 18),
                       Repetitions > case Figure of #{minutes := _} -> 2; #{} -> 1 end})
     end || #{id := Id} = Figure <- weft_papers_figures:figures()].

as_many_repetitions_as_fit_test() ->
    [Cells] = [Of || #{id := "partisan_1", cells := Of} <- weft_papers_figures:figures()],
    Expected = fun(Arguments) ->
                   weft_bench_cli:expected(Arguments ++ Cells, weft_papers:more())
               end,
    ?assertMatch(#{repetitions := 5}, Expected([])),
    ?assertMatch(#{repetitions := 5}, Expected(["--minutes", "600"])),
    ?assertMatch(#{repetitions := 2, minutes := 8}, Expected(["--minutes", "9"])),
    ?assertMatch(#{repetitions := 1, minutes := 1}, Expected(["--minutes", "1"])),
    ?assertMatch(#{repetitions := 4}, Expected(["--minutes", "5", "--repetitions", "4"])),
    ?assertMatch(#{repetitions := 2, minutes := 1}, Expected(["--quick"])).

%% Though all others may take eighteen.
a_quick_figure_takes_three_minutes_test() ->
    [?assertMatch({Id, Minutes} when Minutes =< 3,
                  {Id, map_get(minutes, weft_bench_cli:expected(
                                          weft_papers_figures:arguments(Figure, ["--quick"]),
                                          weft_papers:more()))})
     || #{id := Id} = Figure <- weft_papers_figures:figures()].

figures_are_listed_test() ->
    ?assertEqual(0, weft_papers_cli:main(["paper"])),
    Listed = [hd(string:lexemes(Line, " ")) || Line <- string:lexemes(?capturedOutput, "\n")],
    ?assertEqual([], [Id || #{id := Id} <- weft_papers_figures:figures()] -- Listed).

bad_arguments_are_refused_test_() ->
    [?_assertEqual(2, weft_papers_cli:main(["paper" | Arguments]))
     || Arguments <- [["aco_99"], ["aco_7", "--what"], ["aco_7,none"], [","],
                          ["aco_7", "--minutes", "few"], ["aco_7", "--minutes", "0"],
                          ["aco_7", "--repetitions", "-1"]]].

%% Other figures may be measured beside them.
figures_are_not_written_over_test() ->
    Dir = filename:join(filename:basedir(user_cache, ?MODULE_STRING), os:getpid()),
    File = filename:join([Dir, "aco_7", "environment.csv"]),
    try
        ok = filelib:ensure_dir(File),
        ok = file:write_file(File, "old"),
        ?assertEqual(2, weft_papers_cli:main(["paper", "city,aco_7", "--quick", "--out", Dir])),
        ?assertEqual({ok, <<"old">>}, file:read_file(File)),
        ?assertEqual(["aco_7"], filelib:wildcard("*", Dir))
    after
        file:del_dir_r(Dir)
    end.

without_a_list_the_figures_are_told_on_a_terminal_too_test() ->
    ?assertEqual(0, weft_papers_figures:main([])),
    ?assertEqual(0, weft_papers_figures:main(["--terminal"])).
