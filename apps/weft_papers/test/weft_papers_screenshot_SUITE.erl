%% SPDX-License-Identifier: Apache-2.0
%% @doc Reports in a real browser, see weft_report_browser. They are of runs that are made up, with
%% all that a report can show; a page of measured figures is in weft_paper_SUITE. With FULL=1 all of
%% them in the light and in the dark, otherwise one of them in the light.
-module(weft_papers_screenshot_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([benchmark_report/1, figures_of_papers/1, load_report/1, bencherl_report/1,
         a_bad_page_is_noticed/1]).

-define(LINK, <<"20ms-400mbit-1%">>).

suite() -> [{timetrap, {minutes, 4}}].

all() ->
    [load_report, a_bad_page_is_noticed]
        ++ [Case || is_full(), Case <- [benchmark_report, figures_of_papers, bencherl_report]].

is_full() -> os:getenv("FULL") =/= false.

init_per_suite(Config) ->
    case weft_report_browser:find() of
        {ok, Browser} -> [{browser, Browser} | Config];
        none -> weft_test_missing:skip("chromium")
    end.

end_per_suite(_Config) -> ok.

looks_well(File, Scheme, Config) ->
    case is_full() of
        false -> weft_report_browser:looks_well(File, Scheme, Config);
        true -> weft_report_browser:looks_well(File, Config)
    end.

%% --- pages --------------------------------------------------------------------------------------

benchmark_report(Config) ->
    Dir = dir("benchmark", Config),
    ok = weft_report_sample:write(Dir, sample(), weft_report_sample:environment()),
    {ok, _, _} = weft_report_page:write(Dir),
    File = weft_report_page:file(Dir),
    Seen = looks_well(File, "light", Config),
    ?assert(maps:get("charts", Seen) >= 12),
    ?assert(maps:get("tables", Seen) >= 4).

figures_of_papers(Config) ->
    Figures = weft_papers_figures:figures(),
    File = filename:join(dir("paper", Config), "paper.html"),
    Run = weft_papers_run:new("run", {ok, weft_report_sample:rows(sample())}),
    ok = file:write_file(File, weft_papers_figures:page([{Figure, Run} || Figure <- Figures])),
    Seen = looks_well(File, "dark", Config),
    ?assertEqual(length(Figures), maps:get("tables", Seen)),
    ?assert(maps:get("charts", Seen) >= length(Figures)),
    {ok, Page} = file:read_file(File),
    ?assertEqual(nomatch, binary:match(Page, <<"there are no numbers for it">>)).

load_report(Config) ->
    {ok, Load} = weft_load_config:check([{mode, {rate, 200}}, {duration, {seconds, 2}},
                                         {driver, weft_load_driver_ets},
                                         {operations, [{get, 8}, {put, 2}]}]),
    Dir = dir("load", Config),
    {ok, _} = weft_load:run(Load, #{dir => Dir, progress => fun(_Second) -> ok end}),
    ok = weft_report_load:write(Dir),
    Seen = looks_well(weft_report_load:file(Dir), "light", Config),
    %% Four over time, and the distributions of two times.
    ?assertEqual(4 + 2, maps:get("charts", Seen)),
    ?assert(maps:get("tables", Seen) >= 2).

%% Both axes, two sets of arguments, a benchmark with more series than a chart takes, and one that
%% was measured at one point only.
bencherl_report(Config) ->
    Dir = dir("bencherl", Config),
    Row = fun(Bench, Args, Axis, At, What, Ms) ->
                  #{bench => Bench, otp => "27", erl_args => Args, axis => Axis, at => At,
                    what => What, ms => Ms}
          end,
    Tables = [lists:concat(["[", Type, ",", Concurrency, ",{50,50,0},150000,1000000] mix"])
              || {Type, Concurrency} <- bencherl_ets:sets()],
    ok = weft_bencherl_report:write(
           Dir, [Row("ets_random_ops", Args, sched, At, What, 900 * (0.6 + N / 8) / At + Range)
                 || Args <- ["", "+sbt u"], At <- [1, 2, 4], {N, What} <- lists:enumerate(Tables),
                    Range <- [0, 70]]
               ++ [Row("ran", "", Axis, At, "[2]", 120.5 / (1 + At))
                   || Axis <- [sched, node], At <- [1, 2]]
               ++ [Row("bang", "", sched, 1, "[32,3200]", 0.4)]),
    Seen = looks_well(weft_bencherl_report:file(Dir), "light", Config),
    %% Eight tables need two pairs for each set of arguments.
    ?assertEqual(2 * (2 * 2 + 2 + 1), maps:get("charts", Seen)),
    ?assertEqual(1, maps:get("tables", Seen)).

%% The checks are able to fail.
a_bad_page_is_noticed(Config) ->
    Dir = dir("bad", Config),
    Text = fun(X, Y, Words) -> weft_report_html:tag(text, [{x, X}, {y, Y}], Words) end,
    Chart = weft_report_html:tag(svg, [{class, "chart"}, {viewBox, "0 0 380 250"}, {width, 380}],
                                 [Text(20, 20, "one above"), Text(24, 22, "another"),
                                  Text(350, 90, "beyond the edge")]),
    Body = [Chart, weft_report_html:tag('div', [{style, "width:3000px"}], "wide"),
            weft_report_html:tag(p, [{style, "color:#ccc"}], "pale"),
            weft_report_html:tag(script, [], "nobodyWroteThis()")],
    Bad = filename:join(Dir, "bad.html"),
    ok = file:write_file(Bad, weft_report_html:page("bad", "", Body)),
    {Seen, Complaints} = weft_report_browser:measured(Bad, "light", Config),
    ?assertMatch([_], maps:get("overlapping", Seen)),
    ?assertMatch([_], maps:get("cut", Seen)),
    ?assertMatch([_], maps:get("pale", Seen)),
    ?assert(maps:get("width", Seen) > weft_report_browser:width()),
    ?assertMatch([_ | _], Complaints),
    is_full() andalso a_blank_page_is_noticed(Dir, Config).

a_blank_page_is_noticed(Dir, Config) ->
    Blank = filename:join(Dir, "blank.html"),
    ok = file:write_file(Blank, weft_report_html:page("blank", "", "")),
    ?assert(weft_report_browser:drawn_percent(Blank, Config) < 1).

dir(Name, Config) ->
    Dir = filename:join(?config(priv_dir, Config), Name),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Dir.

%% --- a run that was never measured, with all that a report can show ------------------------------

sample() ->
    plain() ++ programs() ++ de_bench() ++ partisan() ++ riak() ++ applications() ++ watched().

plain() ->
    [{#{size_bytes => Size, pairs => Pairs}, Variant, Metric, [Rate, Rate * 1.2]}
     || Size <- [10, 100, 1024], Pairs <- [1, 128], {Variant, Rate} <- rates(),
        Metric <- [messages_per_s, cpu_us_per_message]]
        ++ [{#{workload => <<"bulk">>, size_bytes => 65536, pairs => 16, link => Link}, Variant,
             megabytes_per_s, [Rate / 4000]}
            || Link <- [<<"loopback">>, ?LINK], {Variant, Rate} <- rates()]
        ++ [{#{workload => <<"call_beside_bulk">>, size_bytes => 1048576, streams => Streams},
             Variant, Metric, [Rate / 1000 * (1 + Streams)]}
            || Streams <- [0, 32], {Variant, Rate} <- rates(),
               Metric <- [latency_p50_us, latency_p99_us, latency_p999_us, latency_max_us]]
        ++ [{#{workload => <<"slow_receiver">>}, weft_1, Metric,
             [{60000000 + 20000000 * Second, 1000 * Second} || Second <- lists:seq(0, 9)]}
            || Metric <- [sender_memory_bytes, receiver_memory_bytes]].

rates() ->
    [{stock, 200000}, {weft_1, 900000}, {weft_4, 1200000}, {weft_8, 700000}, {weft_gateway, 90000},
     {channel, 1400000}, {channel_8, 1100000}, {stock_tls, 100000}, {weft_tls_1, 400000}].

programs() ->
    Variants = [{stock, 1}, {stock_mesh, 3}, {weft_mesh, 4}, {weft_groups, 2}, {weft_peers, 2.2}],
    Orbit = [{<<"orbit">>, 7, 20000}, {<<"orbit">>, 13, 20000}, {<<"orbit_grouped">>, 13, 20000}],
    Aco = [{<<"aco_", Version/binary>>, 11, 8}
           || Version <- [<<"tl">>, <<"ml">>, <<"gr">>, <<"sr">>, <<"sr_steady">>, <<"sr_killed">>]]
        ++ [{<<"aco_quality">>, 1 + Colonies, Colonies} || Colonies <- [1, 2, 4, 8]],
    Messenger = [{<<Form/binary, How/binary>>, Nodes, 40}
                 || Form <- [<<"im_rd">>, <<"im_rsd">>],
                    {How, Nodes} <- [{<<>>, 5}, {<<>>, 13}, {<<"_steady">>, 5}, {<<"_killed">>, 5},
                                     {<<"_emptied">>, 5}, {<<"_grown">>, 5}, {<<"_grown">>, 13}]],
    City = [{Workload, Nodes, 360}
            || Workload <- [<<"city">>, <<"city_districts">>, <<"phold">>], Nodes <- [1, 2, 4]],
    [{#{suite => Suite, workload => Workload, size_bytes => 0, pairs => Nodes, streams => Streams},
      Variant, Metric, [Times * Value, Times * Value * 1.1]}
     || {Suite, Cells} <- [{<<"orbit">>, Orbit}, {<<"aco">>, Aco}, {<<"im">>, Messenger},
                            {<<"city">>, City}],
        {Workload, Nodes, Streams} <- Cells, {Variant, Times} <- Variants,
        {Metric, Value} <- [{duration_s, 0.7}, {connections_max, 4}, {received_packets, 2000},
                            {received_bytes, 300000}, {cost_error_percent, 12}, {kills, 3},
                            {delivered_per_min, 3000}, {lost_messages, 0}, {events_per_s, 5000}]].

watched() ->
    [{#{suite => <<"watched">>, workload => Workload, size_bytes => 0, pairs => Nodes,
        streams => Streams}, Variant, watched_percent, [101, 102, 103]}
     || {Workload, Variant, Nodes, Streams} <-
            [{<<"watched_deploy">>, weft_1, Nodes, 0} || Nodes <- [5, 10, 20]]
            ++ [{<<"watched_aco">>, weft_groups, 11, 8}, {<<"watched_im">>, weft_groups, 8, 240}]].

de_bench() ->
    Cells = [{<<"de_global">>, 10, Streams} || Streams <- [0, 1, 50, 100]]
        ++ [{<<"de_names">>, 10, 200}, {<<"de_heavy">>, 1000, 1000}]
        ++ [{<<"de_size">>, Size, 10} || Size <- [10, 100, 1000, 10000]]
        ++ [{<<"de_compute">>, 10, Us} || Us <- [10, 1000, 100000]]
        ++ [{Workload, 10, Percent} || Workload <- [<<"de_server">>, <<"de_calls">>],
                                       Percent <- [1, 50, 100]],
    [{#{suite => <<"de_bench">>, workload => Workload, size_bytes => Size, pairs => Nodes,
        streams => Streams}, Variant, Metric, [Value * Nodes * Times]}
     || {Workload, Size, Streams} <- Cells, Nodes <- [2, 4, 8, 16, 24],
        {Variant, Times} <- [{stock_mesh, 1}, {weft_mesh, 0.8}],
        {Metric, Value} <- [{calls_per_s, 250 - Streams / 1000}, {register_mean_us, 30000},
                            {unregister_mean_us, 20000}, {whereis_mean_us, 8},
                            {spawning_mean_us, 90}, {remote_call_mean_us, 110},
                            {rex_call_mean_us, 170}, {gen_server_call_mean_us, 60},
                            {fsm_server_call_mean_us, 70}, {local_register_mean_us, 2},
                            {local_whereis_mean_us, 1}]].

partisan() ->
    [{#{suite => <<"e">>, workload => Workload, size_bytes => 1048576, pairs => Pairs,
        link => Link}, Variant, Metric, [Rate / 100000 * Pairs]}
     || {Workload, Metrics} <- [{<<"unicast">>, [duration_s]},
                                {<<"key_value">>, [calls_per_s, latency_p50_us]},
                                {<<"key_value_paced">>, [calls_per_s,
                                                         background_megabytes_per_s]}],
        Metric <- Metrics, Link <- [<<"loopback">>, <<"1ms-800mbit">>, <<"20ms-400mbit">>],
        Pairs <- [1, 16, 64],
        {Variant, Rate} <- rates(),
        lists:member(Variant, [stock, weft_1, weft_8, channel, channel_8])].

riak() ->
    Cells = [{Workload, Clients, Size} || Workload <- [<<"riak_spawned">>, <<"riak_supervised">>],
                                          Clients <- [1, 16, 64], Size <- [1, 3]]
        ++ [{Workload, Nodes, 4 * Nodes}
            || Workload <- [<<"riak_get">>, <<"riak_insert">>, <<"riak_update">>,
                            <<"riak_get_rate">>, <<"riak_insert_rate">>, <<"riak_update_rate">>],
               Nodes <- [4, 8, 24]]
        ++ [{Workload, Nodes, 96}
            || Workload <- [<<"riak_get_rings">>, <<"riak_insert_rings">>, <<"riak_update_rings">>],
               Nodes <- [4, 24]]
        ++ [{<<"riak_elasticity">>, 6, 24}, {<<"riak_availability">>, 6, 24}],
    [{#{suite => <<"store">>, workload => Workload, size_bytes => 1024, pairs => Pairs,
        streams => Streams}, weft_mesh, Metric, Values}
     || {Workload, Pairs, Streams} <- Cells,
        {Metric, Values} <- [{calls_per_s, [7000 - Pairs, 7100]}, {latency_p50_us, [1200 * Pairs]},
                             {latency_p99_us, [14000 * Pairs]}, {store_cpu_us, [87 + Pairs]},
                             {clients_cpu_us, [37]}, {mailbox_max, [Pairs]}, {calls, [20000]},
                             {call_received_bytes, [9000]}, {store_node_bytes, [6.0e7]},
                             {supervisor_us, [40]},
                             {failed_operations, [21]}, {repeated_operations, [30]}, {kills, [2]},
                             {recovery_kill_s, [5, 6]},
                             {mailbox, [{Pairs * (At rem 3), 100 * At} || At <- lists:seq(1, 20)]},
                             {operations_per_s, [{7000 - 100 * (At rem 7), 1000 * At}
                                                 || At <- lists:seq(1, 40)]}]].

applications() ->
    [{#{suite => <<"store">>, workload => Workload, size_bytes => 1048576, pairs => Pairs,
        link => Link}, Variant, Metric, [Rate / 100 * Pairs]}
     || Workload <- [<<"vnode_echo">>, <<"vnode_quorum">>, <<"vnode_gossip">>],
        Link <- [<<"loopback">>, <<"1ms-800mbit">>], Pairs <- [1, 16, 64],
        Metric <- [calls_per_s, latency_p50_us], {Variant, Rate} <- rates(),
        lists:member(Variant, [stock, weft_1, weft_8, channel])]
        ++ [{#{suite => <<"store">>, workload => Workload, size_bytes => 0, pairs => Nodes},
             Variant, Metric, [Value * Nodes]}
            || Workload <- [<<"ads">>, <<"slow_ads">>], Nodes <- [8, 16, 32],
               Variant <- [weft_mesh, weft_groups, weft_peers],
               {Metric, Value} <- [{received_bytes, 25000}, {duration_s, 0.1},
                                   {shown_too_often, 1}]]
        ++ [{#{suite => <<"store">>, workload => <<"simulated_ads">>, size_bytes => 0,
               pairs => Nodes}, weft_1, Metric, [Value * Nodes]}
            || Nodes <- [32, 1024],
               {Metric, Value} <- [{client_server_bytes, 25000}, {client_server_most_bytes, 12000},
                                   {peer_to_peer_bytes, 50000}, {peer_to_peer_most_bytes, 1000},
                                   {duration_s, 1}, {shown_too_often, 1}]]
        ++ [{#{suite => <<"store">>, workload => Workload, size_bytes => 0, pairs => Count},
             weft_1, Metric, [Value * Count]}
            || Workload <- [<<"crdt_counter">>, <<"crdt_set">>], Count <- [8, 128, 1024],
               {Metric, Value} <- [{state_bytes, 24}, {delta_bytes, 0.3}]].
