%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_page_tests).

-include_lib("eunit/include/eunit.hrl").

-define(BULK, #{workload => <<"bulk">>, size_bytes => 65536, link => <<"20ms-400mbit-1%">>}).
-define(CALL, #{workload => <<"call_beside_bulk">>, size_bytes => 1048576, streams => 8}).

sample() ->
    [{#{}, stock, messages_per_s, [200000, 210000, 190000]},
     {#{}, weft_1, messages_per_s, [900000, 950000, 880000]},
     {#{}, weft_gateway, messages_per_s, [100000, 110000, 120000]},
     {#{}, weft_1, cpu_us_per_message, [2.1]},
     {?BULK, stock, megabytes_per_s, [1.0, 1.1]}, {?BULK, weft_8, megabytes_per_s, [6, 7]},
     {?CALL, stock, latency_p99_us, [17000]}, {?CALL, weft_1, latency_p99_us, [520]},
     {?CALL, weft_4, failed, [<<"{exit, \"<timeout>\" & more}">>]},
     {#{workload => <<"slow_receiver">>}, weft_1, sender_memory_bytes,
      [{60000000, 0}, {70000000, 1000}]}].

in_dir(Test) ->
    Dir = filename:join(filename:basedir(user_cache, "weft_report_page_tests"),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    try Test(Dir) after file:del_dir_r(Dir) end.

report(Dir) ->
    ok = weft_report_sample:write(Dir, sample(), weft_report_sample:environment()),
    {ok, _, _} = weft_report_page:write(Dir),
    {ok, Html} = file:read_file(weft_report_page:file(Dir)),
    Html.

a_report_is_well_formed_test() ->
    in_dir(fun(Dir) -> {ok, _, _} = xmerl_sax_parser:stream(report(Dir), []) end).

a_report_needs_no_network_test() ->
    in_dir(fun(Dir) ->
               Html = report(Dir),
               [?assertEqual(nomatch, binary:match(Html, Part))
                || Part <- [<<"http:">>, <<"https:">>, <<"<script">>, <<"<link">>, <<"url(">>,
                            <<"src=">>]]
           end).

a_report_tells_wins_and_losses_and_why_something_is_missing_test() ->
    in_dir(fun(Dir) ->
               Html = report(Dir),
               [?assertMatch({match, _}, re:run(Html, Pattern, [dotall, unicode]), Pattern)
                || Pattern <-
                       [%% the target that is met, with its ratio and spread
                        "unchanged !, 10 B to 1 KB</th>.{1,80}≥ 4.00 ×.{1,60}4.50 ×.{1,60}"
                        "4.19 – 5.00.{1,99}>met<",
                        %% the one that is not
                        "over one gateway, against stock direct</th>.{1,300}>missed<",
                        "class=\"not_measured\"><b>\\d+</b>not measured",
                        "Where weft is behind.*weft, 1 gateway.{1,120}0.55.{1,90}100 %",
                        "class=\"within_noise\"><b>\\d+</b>within noise",
                        "failed, \\{exit, &quot;&lt;timeout&gt;&quot; &amp; more\\}",
                        "Warnings.*congestion control reno.{1,60}cubic",
                        "bistable", "bound by memory copies", "href=\"results.csv\"",
                        "A &amp; B &lt;C&gt;"]]
           end).

the_ratios_of_a_report_are_a_file_too_test() ->
    in_dir(fun(Dir) ->
               Html = report(Dir),
               ?assertMatch({match, _}, re:run(Html, "href=\"ratios.csv\"")),
               {ok, Text} = file:read_file(weft_report_ratios:file(Dir)),
               [Heads | Lines] = weft_report_csv:parse(Text),
               Ratios = [maps:from_list(lists:zip(Heads, Line)) || Line <- Lines],
               ?assertMatch([#{<<"stock">> := <<"stock">>, <<"ratio">> := <<"4.5">>,
                               <<"low">> := <<"4.1905">>, <<"high">> := <<"5.0">>,
                               <<"within_noise">> := <<"false">>, <<"superiority">> := <<"1.0">>}],
                            [Ratio || #{<<"variant">> := <<"weft_1">>,
                                        <<"workload">> := <<"small">>} = Ratio <- Ratios]),
               %% Measured once.
               ?assertMatch([#{<<"low">> := <<>>, <<"within_noise">> := <<>>}],
                            [Ratio || #{<<"metric">> := <<"latency_p99_us">>} = Ratio <- Ratios]),
               ?assertEqual([], [Ratio || #{<<"variant">> := <<"stock">>} = Ratio <- Ratios])
           end).

%% Once in the file for programs, once in the page; each has the interval.
several_lanes_are_compared_with_one_lane_too_test() ->
    Cell = #{workload => <<"call_beside_bulk">>, size_bytes => 1048576, streams => 8},
    in_dir(fun(Dir) ->
               Rows = [{Cell, stock, latency_p99_us, [9000, 9100]},
                       {Cell, weft_1, latency_p99_us, [1000, 1000]},
                       {Cell, weft_4, latency_p99_us, [1200, 1300]}],
               ok = weft_report_sample:write(Dir, Rows, weft_report_sample:environment()),
               {ok, _, _} = weft_report_page:write(Dir),
               {ok, Html} = file:read_file(weft_report_page:file(Dir)),
               ?assertMatch({match, _},
                            re:run(Html, "Several lanes against one.*weft, 4 lanes.{1,80}p99.{1,60}"
                                   "1.25.{1,60}1.20 – 1.30.*All cells", [dotall, unicode])),
               {ok, Text} = file:read_file(weft_report_ratios:file(Dir)),
               ?assertEqual([[<<"1.25">>, <<"1.2">>, <<"1.3">>, <<"false">>, <<"1.0">>]],
                            [Ratio || [_, _, _, _, _, _, <<"weft_4">>, _, <<"weft_1">> | Ratio]
                                          <- weft_report_csv:parse(Text)])
           end).

a_report_has_the_charts_for_which_there_is_data_test() ->
    in_dir(fun(Dir) ->
               Html = report(Dir),
               [?assertNotEqual({Title, nomatch}, {Title, binary:match(Html, Title)})
                || Title <- [<<">small, 1 pair<">>, <<">small, 1 pair, against stock<">>,
                             <<">beside 8 x 1 MB, loopback<">>,
                             <<">64 KB x 1, 20 ms, 400 Mbit/s<">>, <<">sending node<">>]],
               ?assertEqual(nomatch, binary:match(Html, <<">receiving node<">>))
           end).

a_report_has_charts_of_programs_test() ->
    Orbit = #{suite => <<"orbit">>, workload => <<"orbit">>, size_bytes => 0, pairs => 7,
              streams => 20000},
    Ants = Orbit#{suite => <<"aco">>, workload => <<"aco_sr">>, streams => 8},
    City = Orbit#{suite => <<"city">>, workload => <<"city">>, streams => 360},
    in_dir(fun(Dir) ->
               Rows = [{Orbit, stock, connections_max, [6]},
                       {Orbit, weft_groups, connections_max, [4]},
                       {Ants, weft_groups, received_packets, [1700]},
                       {City, stock, received_packets, [2700]},
                       {Ants#{workload => <<"aco_quality">>}, stock, cost_error_percent, [9]}],
               ok = weft_report_sample:write(Dir, Rows, weft_report_sample:environment()),
               {ok, _, _} = weft_report_page:write(Dir),
               {ok, Html} = file:read_file(weft_report_page:file(Dir)),
               {ok, _, _} = xmerl_sax_parser:stream(Html, []),
               [?assertNotEqual({Title, nomatch}, {Title, binary:match(Html, Title)})
                || Title <- [<<">orbit, connections, most<">>, <<">7 nodes, packets<">>,
                             <<">city, packets<">>,
                             <<">above the best known cost<">>, <<"weft, groups">>]],
               ?assertEqual(nomatch, binary:match(Html, <<">orbit, duration<">>))
           end).

each_group_of_charts_is_a_picture_if_wanted_test() ->
    in_dir(fun(Dir) ->
               _ = report(Dir),
               Before = filelib:wildcard("*", Dir),
               ?assertEqual(0, weft_report_page:main([Dir, "--pictures"])),
               Pictures = filelib:wildcard("*", Dir) -- Before,
               ?assert(lists:member("throughput_against_stock.svg", Pictures)),
               [begin
                    {ok, Svg} = file:read_file(filename:join(Dir, File)),
                    {ok, _, _} = xmerl_sax_parser:stream(Svg, [])
                end || File <- Pictures]
           end).

tables_have_headers_that_can_be_read_aloud_test() ->
    in_dir(fun(Dir) ->
               Html = report(Dir),
               Tables = length(binary:matches(Html, <<"<table">>)),
               ?assert(Tables >= 4),
               ?assertEqual(Tables, length(binary:matches(Html, <<"<caption>">>))),
               ?assertEqual(nomatch, binary:match(Html, <<"<th>">>))
           end).

a_run_that_is_not_there_is_an_error_with_its_name_test() ->
    {error, Text} = weft_report_page:write("no/such/run"),
    ?assertMatch({match, _}, re:run(Text, "^no/such/run/results.csv: no such file")).
