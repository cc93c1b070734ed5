%% SPDX-License-Identifier: Apache-2.0
%% @doc Reports in a real browser (Chromium, without a window): they load without a complaint, show
%% something, and a script that is added to a copy finds no label cut or hidden by another one,
%% nothing wider than the window, and no text that is hard to tell from its ground, in the light
%% and in the dark.
-module(weft_bench_screenshot_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([benchmark_report/1, figures_of_papers/1, load_report/1, a_bad_page_is_noticed/1]).

-define(BROWSER_MS, 60000).
-define(WIDTH, 1100).
-define(HEIGHT, 900).
-define(LINK, <<"20ms-400mbit-1%">>).

suite() -> [{timetrap, {minutes, 4}}].

all() -> [benchmark_report, figures_of_papers, load_report, a_bad_page_is_noticed].

init_per_suite(Config) ->
    case [Path || Name <- ["chromium", "chromium-browser", "google-chrome"],
                  Path <- [os:find_executable(Name)], Path =/= false] of
        [Browser | _] -> [{browser, Browser} | Config];
        [] -> {skip, "no Chromium here (Debian package chromium)"}
    end.

end_per_suite(_Config) -> ok.

%% --- pages --------------------------------------------------------------------------------------

benchmark_report(Config) ->
    Dir = dir("benchmark", Config),
    ok = weft_bench_sample:write(Dir, sample(), weft_bench_sample:environment()),
    {ok, _} = weft_bench_report:write(Dir),
    Seen = looks_well(weft_bench_report:file(Dir), Config),
    ?assert(maps:get("charts", Seen) >= 12),
    ?assert(maps:get("tables", Seen) >= 4).

figures_of_papers(Config) ->
    Figures = weft_bench_paper:figures(),
    File = filename:join(dir("paper", Config), "paper.html"),
    Rows = weft_bench_sample:rows(sample()),
    ok = file:write_file(File, weft_bench_paper:page([{Figure, maps:get(id, Figure), {ok, Rows}}
                                                      || Figure <- Figures])),
    Seen = looks_well(File, Config),
    ?assertEqual(length(Figures), maps:get("tables", Seen)),
    ?assert(maps:get("charts", Seen) >= length(Figures)),
    {ok, Page} = file:read_file(File),
    ?assertEqual(nomatch, binary:match(Page, <<"there are no numbers for it">>)).

load_report(Config) ->
    {ok, Load} = weft_load_config:check([{mode, {rate, 200}}, {duration, {seconds, 2}},
                                         {driver, weft_load_driver_ets},
                                         {operations, [{get, 8}, {put, 2}]}]),
    Dir = dir("load", Config),
    {ok, _} = weft_load:run(Load, #{dir => Dir, progress => fun weft_load:silent/1}),
    ok = weft_load_report:write(Dir),
    Seen = looks_well(weft_load_report:file(Dir), Config),
    ?assertEqual(4, maps:get("charts", Seen)),
    ?assert(maps:get("tables", Seen) >= 2).

%% The checks are able to fail.
a_bad_page_is_noticed(Config) ->
    Dir = dir("bad", Config),
    Text = fun(X, Y, Words) -> weft_bench_html:tag(text, [{x, X}, {y, Y}], Words) end,
    Chart = weft_bench_html:tag(svg, [{class, "chart"}, {viewBox, "0 0 380 250"}, {width, 380}],
                                [Text(20, 20, "one above"), Text(24, 22, "another"),
                                 Text(350, 90, "beyond the edge")]),
    Body = [Chart, weft_bench_html:tag('div', [{style, "width:3000px"}], "wide"),
            weft_bench_html:tag(p, [{style, "color:#ccc"}], "pale"),
            weft_bench_html:tag(script, [], "nobodyWroteThis()")],
    Bad = filename:join(Dir, "bad.html"),
    ok = file:write_file(Bad, weft_bench_html:page("bad", "", Body)),
    {Seen, Complaints} = measured(Bad, "light", Config),
    ?assertMatch([_], maps:get("overlapping", Seen)),
    ?assertMatch([_], maps:get("cut", Seen)),
    ?assertMatch([_], maps:get("pale", Seen)),
    ?assert(maps:get("width", Seen) > ?WIDTH),
    ?assertMatch([_ | _], Complaints),
    Blank = filename:join(Dir, "blank.html"),
    ok = file:write_file(Blank, weft_bench_html:page("blank", "", "")),
    ?assert(drawn_percent(screenshot(Blank, Config)) < 1).

%% --- what is looked at --------------------------------------------------------------------------

looks_well(File, Config) ->
    [Light, _Dark] = [looks_well(File, Scheme, Config) || Scheme <- ["light", "dark"]],
    ?assert(drawn_percent(screenshot(File, Config)) > 10),
    Light.

looks_well(File, Scheme, Config) ->
    {Seen, Complaints} = measured(File, Scheme, Config),
    ct:log("~ts, ~ts: ~p~n~p", [File, Scheme, Seen, Complaints]),
    ?assertEqual([], Complaints),
    ?assertEqual(Scheme, maps:get("scheme", Seen)),
    [?assertEqual({Scheme, Problem, []}, {Scheme, Problem, maps:get(Problem, Seen)})
     || Problem <- ["cut", "overlapping", "empty", "pale"]],
    ?assert(maps:get("width", Seen) =< ?WIDTH),
    Seen.

%% What the script finds on the page, and of what the browser complains.
measured(File, Scheme, Config) ->
    {ok, Page} = file:read_file(File),
    Copy = filename:rootname(File) ++ "-measured.html",
    [Before, After] = binary:split(Page, <<"</body>">>),
    ok = file:write_file(Copy, [Before, "<script>", script(), "</script></body>", After]),
    Output = browser(["--dump-dom", "--enable-logging=stderr"], Copy, Scheme, Config),
    {match, [Json]} = re:run(Output, "<pre id=\"measured\">(.*?)</pre>",
                             [dotall, {capture, all_but_first, list}]),
    {term(Json), matches("CONSOLE[^\\n]*", Output)}.

matches(Pattern, Text) ->
    case re:run(Text, Pattern, [global, {capture, first, list}]) of
        {match, Found} -> lists:append(Found);
        nomatch -> []
    end.

term(Json) ->
    Maps = re:replace(re:replace(Json, "\":", "\"=>", [global]), "\\{", "#{",
                      [global, {return, list}]),
    {ok, Tokens, _} = erl_scan:string(Maps ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

screenshot(File, Config) ->
    Picture = filename:rootname(File) ++ ".png",
    _ = browser(["--hide-scrollbars", "--screenshot=" ++ filename:absname(Picture)], File, "light",
                Config),
    ct:log("<a href=\"file://~ts\">~ts</a>", [filename:absname(Picture), Picture]),
    {ok, Png} = file:read_file(Picture),
    Png.

%% Its own profile, so that it is nobody's browser; no sandbox, as all pages are ours.
browser(What, File, Scheme, Config) ->
    Profile = filename:join(?config(priv_dir, Config), "profile"),
    Colours = case Scheme of "dark" -> "0"; "light" -> "1" end,
    Arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-extensions", "--disable-component-update",
                 "--user-data-dir=" ++ filename:absname(Profile),
                 "--blink-settings=preferredColorScheme=" ++ Colours,
                 lists:concat(["--window-size=", ?WIDTH, ",", ?HEIGHT])]
        ++ What ++ ["file://" ++ filename:absname(File)],
    Port = open_port({spawn_executable, ?config(browser, Config)},
                     [{args, Arguments}, exit_status, stderr_to_stdout, binary]),
    collect(Port, erlang:monotonic_time(millisecond) + ?BROWSER_MS, []).

collect(Port, EndMs, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, EndMs, [Output, Data]);
        {Port, {exit_status, 0}} -> iolist_to_binary(Output);
        {Port, {exit_status, Status}} -> error({browser, Status, iolist_to_binary(Output)})
    after max(0, EndMs - erlang:monotonic_time(millisecond)) ->
        {os_pid, Pid} = erlang:port_info(Port, os_pid),
        _ = os:cmd("kill -KILL " ++ integer_to_list(Pid)),
        error({browser, timeout, iolist_to_binary(Output)})
    end.

%% Of a hundred lines of a picture those with more than one colour: where bytes of a line of a PNG
%% file, which are differences to their neighbours, are not all the same but for the first pixel.
drawn_percent(<<137, "PNG\r\n", 26, "\n", Chunks/binary>>) ->
    <<Width:32, Height:32, 8, Type, 0, 0, 0>> = chunk(<<"IHDR">>, Chunks),
    Bytes = case Type of 2 -> 3; 6 -> 4 end,
    Lines = zlib:uncompress(chunk(<<"IDAT">>, Chunks)),
    Drawn = length([x || <<_Filter, _:Bytes/binary, Line:(Bytes * (Width - 1))/binary>>
                             <= Lines, not is_even(Line, Bytes)]),
    100 * Drawn / Height.

is_even(Line, Bytes) ->
    Rest = byte_size(Line) - Bytes,
    <<Tail:Rest/binary, _/binary>> = Line,
    Tail =:= binary:part(Line, Bytes, Rest).

chunk(Wanted, Chunks) ->
    iolist_to_binary([Data || {Name, Data} <- chunks(Chunks), Name =:= Wanted]).

chunks(<<>>) -> [];
chunks(<<Size:32, Name:4/binary, Data:Size/binary, _Crc:32, More/binary>>) ->
    [{Name, Data} | chunks(More)].

script() ->
    {ok, Script} = file:read_file(filename:join(filename:dirname(source()),
                                                "weft_bench_screenshot_SUITE_data/measure.js")),
    Script.

source() -> proplists:get_value(source, module_info(compile)).

dir(Name, Config) ->
    Dir = filename:join(?config(priv_dir, Config), Name),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Dir.

%% --- a run that was never measured, with all that a report can show ------------------------------

sample() ->
    plain() ++ programs() ++ de_bench() ++ partisan().

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
                                     {<<"_emptied">>, 5}]],
    [{#{suite => Suite, workload => Workload, size_bytes => 0, pairs => Nodes, streams => Streams},
      Variant, Metric, [Times * Value, Times * Value * 1.1]}
     || {Suite, Cells} <- [{<<"orbit">>, Orbit}, {<<"aco">>, Aco}, {<<"im">>, Messenger}],
        {Workload, Nodes, Streams} <- Cells, {Variant, Times} <- Variants,
        {Metric, Value} <- [{duration_s, 0.7}, {connections_max, 4}, {received_packets, 2000},
                            {received_bytes, 300000}, {cost_error_percent, 12}, {kills, 3},
                            {delivered_per_min, 3000}, {lost_messages, 0}]].

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
                                {<<"key_value">>, [calls_per_s, latency_p50_us]}],
        Metric <- Metrics, Link <- [<<"loopback">>, <<"1ms-800mbit">>, <<"20ms-400mbit">>],
        Pairs <- [1, 16, 64],
        {Variant, Rate} <- rates(),
        lists:member(Variant, [stock, weft_1, weft_8, channel, channel_8])].
