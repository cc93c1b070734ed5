%% SPDX-License-Identifier: Apache-2.0
%% @doc What the figures about scaling make of results that are made up.
-module(weft_papers_scaling_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_papers_found, [findings/2, says/3]).

%% ---- DE-Bench with quotas ----

de(Workload, Nodes, Streams) ->
    #{suite => <<"de_bench">>, workload => Workload, size_bytes => 10, pairs => Nodes,
      streams => Streams}.

rates(Workload, Variant, Streams, Rates) ->
    lists:append([[{de(Workload, Nodes, Streams), Variant, calls_per_s, [Rate]},
                   {de(Workload, Nodes, Streams), Variant, quota_percent, [4]}]
                  || {Nodes, Rate} <- Rates]).

what_grows_with_the_nodes_is_linear_test() ->
    says([{agrees, [stock_mesh, "1 ms", {"100 /s", 2}, {"1.50 k/s", 40}, {"15.0", "20.0"}]}],
         "de_9_quota", rates(<<"de_heavy">>, stock_mesh, 1000, [{2, 100}, {40, 1500}])),
    ?assertMatch([{differs, _}], findings("de_9_quota", rates(<<"de_heavy">>, weft_mesh, 1000,
                                                              [{2, 100}, {40, 1300}]))).

without_quotas_nothing_is_found_test() ->
    [says([{open, ["quotas"]}], Id,
          [{(de(Workload, Nodes, 1000))#{suite => Suite}, Variant, Metric, [100 * Nodes]}
           || Nodes <- [2, 40]])
     || {Id, Suite, Workload, Variant, Metric}
            <- [{"de_9_quota", <<"de_bench">>, <<"de_heavy">>, stock_mesh, calls_per_s},
                {"orbit_quota", <<"orbit">>, <<"orbit">>, stock, duration_s},
                {"aco_8_quota", <<"aco">>, <<"aco_quality">>, stock, duration_s},
                {"aco_9_quota", <<"aco">>, <<"aco_sr">>, stock, duration_s},
                {"riak_throughput_quota", <<"store">>, <<"riak_get">>, weft_mesh, calls_per_s},
                {"city_quota", <<"city">>, <<"city_weather">>, stock, duration_s},
                {"im_11_quota", <<"im">>, <<"im_rd_grown">>, stock_mesh, delivered_per_min}]].

%% Then nodes may have had less than their quotas.
on_a_machine_that_was_too_busy_nothing_is_found_test() ->
    Rows = fun(Busy) -> grown(machine_busy_percent, Busy) end,
    ?assertMatch([{agrees, _}], findings("de_9_quota", Rows(95))),
    says([{open, [stock_mesh, {"15.0", "20.0"}]}], "de_9_quota", Rows(96)).

%% Then they had more.
where_quotas_did_not_bind_nothing_is_found_test() ->
    Rows = fun(Used) -> grown(quota_used_percent, Used) end,
    ?assertMatch([{agrees, _}], findings("de_9_quota", Rows(110))),
    ?assertMatch([{open, _}], findings("de_9_quota", Rows(111))).

%% Fifteen times as much with twenty times the nodes, in a run of which that is told.
grown(Metric, Value) ->
    rates(<<"de_heavy">>, stock_mesh, 1000, [{2, 100}, {40, 1500}])
        ++ [{de(<<"de_heavy">>, 40, 1000), stock_mesh, Metric, [Value]}].

%% There is nothing that it could be so many times of.
what_begins_with_nothing_is_open_test() ->
    ?assertMatch([{open, _}], findings("de_9_quota", rates(<<"de_heavy">>, stock_mesh, 1000,
                                                           [{2, 0}, {40, 1500}]))),
    ?assertMatch([{open, _}], findings("de_9", rates(<<"de_heavy">>, stock_mesh, 1000,
                                                     [{2, 0}, {24, 1500}]))),
    ?assertMatch([{open, _}], findings("de_12", [{de(<<"de_calls">>, Nodes, 1), stock_mesh, Metric,
                                                  [Us]}
                                                 || {Nodes, Us} <- [{2, 0}, {24, 10}],
                                                    Metric <- [remote_call_mean_us,
                                                               spawning_mean_us]])).

peaks_come_sooner_with_more_global_commands_test() ->
    None = rates(<<"de_global">>, stock_mesh, 0, [{2, 100}, {8, 400}, {24, 1200}, {40, 2000}]),
    Some = fun(Rates) -> rates(<<"de_global">>, stock_mesh, 100, Rates) end,
    Sooner = None ++ Some([{2, 90}, {8, 200}, {24, 150}, {40, 80}]),
    [{agrees, Text} | _] = findings("de_5_quota", Sooner),
    ?assertEqual([], weft_report_said:missing(
                       [stock_mesh, {"0.0 % global", 40}, {"100 /s", 2}, {"400 /s", 8},
                        {"1.20 k/s", 24}, {"2.00 k/s", 40}, {"1.0 % global", 8}], Text)),
    ?assertMatch([{differs, _} | _],
                 findings("de_5_quota", None ++ Some([{2, 90}, {8, 200}, {24, 900}, {40, 901}]))).

%% ---- programs ----

as_many_more_messages_as_servers_test() ->
    Rows = fun(Last) ->
               [{#{suite => <<"im">>, workload => <<"im_rd_grown">>, size_bytes => 0,
                   pairs => Nodes, streams => People}, stock_mesh, Metric, [Value]}
                || {Nodes, People, Count} <- [{6, 120, 1000}, {25, 640, Last}],
                   {Metric, Value} <- [{delivered_per_min, Count}, {quota_percent, 4}]]
           end,
    says([{agrees, ["RD", stock_mesh, {1000, 120}, {4000, 640}, {"4.00", "5.33"}]}],
         "im_11_quota", Rows(4000)),
    ?assertMatch([{differs, _}], findings("im_11_quota", Rows(3000))).

an_orbit_is_faster_on_more_nodes_test() ->
    Rows = [{#{suite => <<"orbit">>, workload => <<"orbit">>, size_bytes => 0, pairs => Nodes,
               streams => 25000}, Variant, Metric, [Value]}
            || Variant <- [stock, weft_groups],
               {Nodes, Seconds} <- [{2, 20}, {5, 8}, {37, 4}],
               {Metric, Value} <- [{duration_s, Seconds}, {quota_percent, 4}]],
    says([{agrees, ["orbit", stock, {"2.50", 5}, {"5.00", 37}, 2]},
          {open, ["orbit", weft_groups, {"2.50", 5}, {"5.00", 37}, 2]}], "orbit_quota", Rows),
    Fewer = [Row || {#{pairs := Nodes}, stock, _, _} = Row <- Rows, Nodes < 37],
    says([{open, ["orbit", stock, {"2.50", 5}, 2]}], "orbit_quota", Fewer).

%% With the same work for each colony.
time_grows_less_than_the_work_test() ->
    Rows = fun(Last) ->
               [{#{suite => <<"aco">>, workload => <<"aco_quality">>, size_bytes => 0,
                   pairs => 1 + Colonies, streams => Colonies}, stock, Metric, [Value]}
                || {Colonies, Seconds} <- [{1, 2}, {16, Last}],
                   {Metric, Value} <- [{duration_s, Seconds}, {quota_percent, 4}]]
           end,
    says([{agrees, [{1, "2.00 s"}, {16, "3.00 s"}, "1.50", "16.0"]}], "aco_8_quota", Rows(3)),
    ?assertMatch([{differs, _}], findings("aco_8_quota", Rows(33))),
    ?assertMatch([{differs, _}], findings("aco_8_quota", Rows(1.9))).

versions_are_in_the_order_of_the_paper_test() ->
    Rows = fun(SrS) ->
               [{#{suite => <<"aco">>, workload => Workload, size_bytes => 0, pairs => 47,
                   streams => 32}, Variant, Metric, Values}
                || {Workload, Variant, Seconds} <- [{<<"aco_tl">>, stock_mesh, 2.1},
                                                    {<<"aco_ml">>, stock_mesh, 2},
                                                    {<<"aco_gr">>, stock_mesh, 9},
                                                    {<<"aco_sr">>, stock, SrS}],
                   {Metric, Values} <- [{duration_s, [Seconds, Seconds]}, {quota_percent, [3]}]]
           end,
    says([{agrees, [47, {"SR", "1.50 s"}, {"GR", "9.00 s"}]}], "aco_9_quota", Rows(1.5)),
    ?assertMatch([{differs, _}], findings("aco_9_quota", Rows(2.2))).

a_store_does_as_many_times_more_as_it_has_nodes_test() ->
    Rows = fun(Last) ->
               [{#{suite => <<"store">>, workload => <<"riak_get">>, size_bytes => 1024,
                   pairs => Nodes, streams => 4 * Nodes}, weft_mesh, Metric, [Value]}
                || {Nodes, Rate} <- [{4, 500}, {24, Last}],
                   {Metric, Value} <- [{calls_per_s, Rate}, {quota_percent, 4}]]
           end,
    says([{agrees, ["get", weft_mesh, {"500 /s", 4}, {"2.50 k/s", 24}, "5.00", "6.00"]}],
         "riak_throughput_quota", Rows(2500)),
    ?assertMatch([{differs, _}], findings("riak_throughput_quota", Rows(2000))).

%% As fast as on the fewest is not enough: it was faster before.
an_orbit_must_not_fall_test() ->
    Rows = fun(Last) ->
               [{#{suite => <<"orbit">>, workload => <<"orbit_grouped">>, size_bytes => 0,
                   pairs => Nodes, streams => 25000}, stock, Metric, Values}
                || {Nodes, Seconds} <- [{2, [20, 21]}, {13, [4, 5]}, {37, Last}],
                   {Metric, Values} <- [{duration_s, Seconds}, {quota_percent, [4]}]]
           end,
    ?assertMatch([{agrees, _}], findings("orbit_quota", Rows([2, 3]))),
    ?assertMatch([{differs, _}], findings("orbit_quota", Rows([10, 11]))),
    ?assertMatch([{open, _}], findings("orbit_quota", Rows([4.5, 5.5]))).

%% Up to sixteen nodes, in the paper.
a_city_is_faster_on_more_nodes_test() ->
    Rows = fun(Last) ->
               [{#{suite => <<"city">>, workload => <<"city_weather">>, size_bytes => 0,
                   pairs => Nodes, streams => 120}, weft_mesh, Metric, [Value]}
                || {Nodes, Seconds} <- [{1, 60}, {4, 20}, {16, Last}],
                   {Metric, Value} <- [{duration_s, Seconds}, {quota_percent, 10}]]
           end,
    says([{agrees, ["city weather", weft_mesh, {"3.00", 4}, {"4.00", 16}, 1]}],
         "city_quota", Rows(15)),
    ?assertMatch([{differs, _}], findings("city_quota", Rows(21))).

%% The claim is of two parts: how a time grows, and what it is beside that of spawn.
only_the_time_of_rpc_may_grow_test() ->
    Rows = fun(Metric, Times) ->
               [{de(<<"de_calls">>, Nodes, 1), stock_mesh, Which, [Mean]}
                || {Nodes, Us, Spawn} <- Times, {Which, Mean} <- [{Metric, Us},
                                                                  {spawning_mean_us, Spawn}]]
           end,
    Kinds = fun(Metric, Times) -> [Kind || {Kind, _} <- findings("de_12", Rows(Metric, Times))] end,
    ?assertEqual([agrees], Kinds(gen_server_call_mean_us, [{2, 100, 110}, {24, 150, 160}])),
    ?assertEqual([differs], Kinds(gen_server_call_mean_us, [{2, 100, 110}, {24, 1400, 1500}])),
    ?assertEqual([agrees], Kinds(remote_call_mean_us, [{2, 100, 110}, {24, 900, 150}])),
    ?assertEqual([differs], Kinds(remote_call_mean_us, [{2, 800, 110}, {24, 900, 150}])).

%% Connecting the nodes is not part of the program.
packets_are_those_after_set_up_if_they_were_counted_test() ->
    Rows = [{#{suite => <<"aco">>, workload => Workload, size_bytes => 0, pairs => 47,
               streams => 8}, Variant, Metric, [Packets]}
            || {Workload, Variant, SetUp, After} <- [{<<"aco_tl">>, stock_mesh, 5000, 190},
                                                     {<<"aco_ml">>, stock_mesh, 5000, 200},
                                                     {<<"aco_gr">>, stock_mesh, 5000, 300},
                                                     {<<"aco_sr">>, stock, 6000, 100}],
               {Metric, Packets} <- [{run_packets, After}, {received_packets, SetUp + After}]],
    says([{agrees, [47, "packets after set-up",
                    {"SR", 100}, {"ML", 200}, {"TL", 190}, {"GR", 300}]},
          {agrees, [47, {"ML", "2.0"}, "packets after set-up", "SR", 2]}, {agrees, ["GR"]}],
         "aco_10", Rows).

%% ---- the same load ----

gossip_is_told_beside_requests_test() ->
    Cell = #{suite => <<"e">>, workload => <<"key_value">>, size_bytes => 1048576, pairs => 16,
             streams => 0},
    Rows = [{Cell, Variant, Metric, [Value]}
            || {Variant, Calls, Gossip} <- [{stock, 20, 10}, {channel, 30, 40}],
               {Metric, Value} <- [{calls_per_s, Calls}, {background_megabytes_per_s, Gossip}]],
    [_, {open, Text}] = findings("partisan_2", Rows),
    ?assertEqual([], weft_report_said:missing(["loopback", 16, {channel, "1.50"}, stock,
                                               {"4.00", "gossip"}], Text)),
    %% Requests alone do not say how much gossip there was.
    Requests = [Row || {_, _, calls_per_s, _} = Row <- Rows],
    [_, {open, Uncounted}] = findings("partisan_2", Requests),
    ?assertEqual([], weft_report_said:missing(["loopback", 16, {channel, "1.50"}, stock,
                                               "not counted"], Uncounted)).

requests_are_judged_where_as_much_is_gossiped_test() ->
    Cell = #{suite => <<"e">>, workload => <<"key_value_paced">>, size_bytes => 1048576,
             pairs => 16, streams => 0},
    Rows = fun(Requests, Gossip) ->
               [{Cell, Variant, Metric, [Value]}
                || {Variant, Calls, Bytes} <- [{stock, 20, 10}, {channel, Requests, Gossip}],
                   {Metric, Value} <- [{calls_per_s, Calls}, {background_megabytes_per_s, Bytes}]]
           end,
    says([{agrees, ["loopback", 16, {channel, "1.10"}, stock, {"1.04", "gossip"}]}],
         "partisan_2_paced", Rows(22, 10.4)),
    ?assertMatch([{differs, _}], findings("partisan_2_paced", Rows(19, 9.6))),
    [?assertMatch({_, [{open, _}]}, {Gossip, findings("partisan_2_paced", Rows(22, Gossip))})
     || Gossip <- [9.4, 10.6]],
    Uncounted = [Row || {_, _, calls_per_s, _} = Row <- Rows(22, 10)],
    ?assertMatch([{open, _}], findings("partisan_2_paced", Uncounted)).

a_wall_is_ten_times_the_wait_under_the_same_load_test() ->
    Rows = fun(P99) ->
               [{#{suite => <<"store">>, workload => Workload, size_bytes => 1024, pairs => 64,
                   streams => 1}, weft_mesh, Metric, [Value]}
                || {Workload, Us, Waiting} <- [{<<"riak_spawned_rate">>, 1000, 2},
                                               {<<"riak_supervised_rate">>, P99, 64}],
                   {Metric, Value} <- [{asked_per_s, 800}, {latency_p99_us, Us},
                                       {mailbox_max, Waiting}]]
           end,
    says([{agrees, ["1 node", "64 clients", "800 /s", "1.00 ms", "800 /s", "20.0 ms", "20.0",
                    {64, "wait"}]}], "riak_wall", Rows(20000)),
    ?assertMatch([{differs, _}], findings("riak_wall", Rows(9000))).

%% ---- what papers say is drawn beside ----

what_the_text_says_is_a_line_of_its_own_test() ->
    Rows = [{de(<<"de_global">>, Nodes, 500), stock_mesh, register_mean_us, [1000 * Nodes]}
            || Nodes <- [2, 24]],
    [Charts] = [Of || #{id := "de_6", charts := Of} <- weft_papers_figures:figures()],
    [#{series := Series}] = [Chart || #{series := [_ | _]} = Chart
                                          <- Charts(weft_report_sample:results(Rows))],
    ?assertMatch([_, #{class := "said", points := [{100, 20000000, _, _, _}]}], Series).

%% On how many nodes most is done; of shares of which no text speaks nothing is said.
peaks_are_drawn_beside_those_of_the_texts_test() ->
    Rows = rates(<<"de_global">>, stock_mesh, 0, [{2, 100}, {40, 200}])
        ++ rates(<<"de_global">>, stock_mesh, 50, [{2, 100}, {8, 150}, {40, 90}]),
    [Charts] = [Of || #{id := "de_5_quota", charts := Of} <- weft_papers_figures:figures()],
    [#{series := [#{points := Ours}, #{class := "said", points := Said}],
       x := {categories, [_, _]}} | _] = Charts(weft_report_sample:results(Rows)),
    ?assertEqual([{1, 40}, {2, 8}], [{X, Y} || {X, Y, _, _, _} <- Ours]),
    ?assertEqual([{2, 50}], [{X, Y} || {X, Y, _, _, _} <- Said]).

without_an_impact_a_deployment_takes_as_long_test() ->
    Rows = [{#{suite => <<"watched">>, workload => <<"watched_deploy">>, size_bytes => 0,
               pairs => Nodes, streams => 0}, weft_1, watched_percent, [102]} || Nodes <- [4, 20]],
    [Charts] = [Of || #{id := "sd_18", charts := Of} <- weft_papers_figures:figures()],
    [#{series := [_, #{class := "said", points := Said}]}] =
        Charts(weft_report_sample:results(Rows)),
    ?assertEqual([{1, 100}, {2, 100}], [{X, Y} || {X, Y, _, _, _} <- Said]).

%% From the least to the most that many repetitions would have.
a_speed_up_has_its_interval_as_whiskers_test() ->
    Rows = [{#{suite => <<"city">>, workload => <<"city_weather">>, size_bytes => 0,
               pairs => Nodes, streams => 120}, stock, duration_s, Seconds}
            || {Nodes, Seconds} <- [{1, [40, 44]}, {4, [20, 22]}]],
    [Charts] = [Of || #{id := "city_quota", charts := Of} <- weft_papers_figures:figures()],
    [#{series := [#{points := [{4, Times, Low, High, _}]}, #{points := Said}]}] =
        Charts(weft_report_sample:results(Rows)),
    ?assert(Low < Times andalso Times < High),
    ?assertEqual([{2, 1.5}, {4, 2.2}, {16, 3.45}], [{X, Y} || {X, Y, _, _, _} <- Said]).

of_a_million_operations_37_beside_millions_fail_test() ->
    Rows = [{#{suite => <<"store">>, workload => <<"riak_availability">>, size_bytes => 1024,
               pairs => 6, streams => 24}, weft_mesh, Metric, Values}
            || {Metric, Values} <- [{calls, [999990, 999990]}, {failed_operations, [5, 15]}]],
    [Charts] = [Of || #{id := "riak_availability", charts := Of} <- weft_papers_figures:figures()],
    #{series := [#{points := [{1, Ours, _, _, _}]}, #{points := [{1, Said, _, _, _}]}]} =
        lists:last(Charts(weft_report_sample:results(Rows))),
    ?assertEqual({10, 11}, {round(Ours), round(Said)}).

%% Claims with numbers that are no values of what is drawn, and why.
-define(NOT_DRAWN,
        [{"orbit", "each connection is held against the formulas; of 40 hosts no value is said"},
         {"orbit_quota", "where it falls, which is beyond the nodes here, and no value"},
         {"aco_7", "numbers of colonies"},
         {"im_11", "numbers of servers"}, {"im_11_quota", "numbers of servers"},
         {"im_12", "times between kills"},
         {"city", "the speed-up is in city_quota; minutes are those of a larger city"},
         {"de_5", "where throughput falls, and no value; with quotas it is drawn"},
         {"de_7", "sizes of data"}, {"de_7_quota", "sizes of data"},
         {"de_9", "a load, and how many nodes"}, {"de_9_quota", "a load, and how many nodes"},
         {"riak", "a share of commands"}, {"riak_quota", "a share of commands"},
         {"riak_wall", "how many nodes; the other numbers are goals of weft"},
         {"riak_throughput", "how many nodes; the other numbers are goals of weft"},
         {"riak_throughput_quota", "how many nodes"},
         {"riak_cost", "how many nodes; the other numbers are goals of weft"},
         {"riak_rings", "how many nodes; the other numbers are goals of weft"},
         {"riak_elasticity", "failures of millions of operations are in riak_availability"},
         {"partisan_1", "delays of links"}, {"partisan_4", "a size"},
         {"partisan_6", "sizes, and the time of a disk"}, {"partisan_7", "numbers of nodes"},
         {"partisan_7_minutes", "numbers of nodes"}, {"partisan_7_simulated", "numbers of nodes"}]).

%% Claims whose values are words.
-define(IN_WORDS, [{"sd_18", "no impact is as long"}]).

numbers_of_claims_are_drawn_beside_ours_test_() ->
    [{Id, {timeout, 60,
           ?_assertEqual(has_numbers(Claim) andalso not lists:keymember(Id, 1, ?NOT_DRAWN)
                         orelse lists:keymember(Id, 1, ?IN_WORDS),
                         has_said(Figure))}}
     || #{id := Id, claim := Claim} = Figure <- weft_papers_figures:figures()].

what_is_not_drawn_has_numbers_test() ->
    ?assertEqual([], [Id || {Id, _Why} <- ?NOT_DRAWN]
                     -- [Id || #{id := Id, claim := Claim} <- weft_papers_figures:figures(),
                              has_numbers(Claim)]).

has_numbers(Claim) -> re:run(Claim, "[0-9]") =/= nomatch.

%% As if all its cells had been measured, with every metric.
has_said(#{cells := Cells} = Figure) ->
    Run = weft_papers_run:new("run", {ok, weft_report_sample:rows(
                                            weft_papers_found:measured(Cells))}),
    lists:any(fun(#{series := Series}) -> [said || #{class := "said"} <- Series] =/= [] end,
              weft_papers_figures:charts(Figure, Run)).
