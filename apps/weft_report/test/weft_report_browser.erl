%% SPDX-License-Identifier: Apache-2.0
%% @doc Reports in a real browser (Chromium, without a window): they load without a complaint, show
%% something, and a script that is added to a copy finds no label cut or hidden by another one,
%% nothing wider than the window, and no text that is hard to tell from its ground, in the light
%% and in the dark.
-module(weft_report_browser).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([find/0, looks_well/2, looks_well/3, measured/3, drawn_percent/2, width/0]).

-define(BROWSER_MS, 150000).
-define(WIDTH, 1100).
-define(HEIGHT, 900).

%% @doc Where the browser is.
-spec find() -> {ok, file:filename()} | none.
find() ->
    case [Path || Name <- ["chromium", "chromium-browser", "google-chrome"],
                  Path <- [os:find_executable(Name)], Path =/= false] of
        [Browser | _] -> {ok, Browser};
        [] -> none
    end.

%% @doc Of the window.
-spec width() -> pos_integer().
width() -> ?WIDTH.

%% @doc What is on a page, as seen in the light; fails if it does not look well. Config has the
%% `browser' and `priv_dir'.
-spec looks_well(file:filename(), [{atom(), term()}]) -> #{string() => term()}.
looks_well(File, Config) ->
    [Light, _Dark] = [looks_well(File, Scheme, Config) || Scheme <- ["light", "dark"]],
    ?assert(drawn_percent(File, Config) > 10),
    Light.

%% @doc The same in one of the two only, "light" or "dark", and without a picture.
-spec looks_well(file:filename(), Scheme :: string(), [{atom(), term()}]) -> #{string() => term()}.
looks_well(File, Scheme, Config) ->
    {Seen, Complaints} = measured(File, Scheme, Config),
    ct:log("~ts, ~ts: ~p~n~p", [File, Scheme, Seen, Complaints]),
    ?assertEqual([], Complaints),
    ?assertEqual(Scheme, maps:get("scheme", Seen)),
    [?assertEqual({Scheme, Problem, []}, {Scheme, Problem, maps:get(Problem, Seen)})
     || Problem <- ["cut", "overlapping", "empty", "pale"]],
    ?assert(maps:get("width", Seen) =< ?WIDTH),
    Seen.

%% @doc What the script finds on the page, and of what the browser complains.
-spec measured(file:filename(), Scheme :: string(), [{atom(), term()}]) ->
          {#{string() => term()}, [string()]}.
measured(File, Scheme, Config) ->
    {ok, Page} = file:read_file(File),
    Copy = filename:rootname(File) ++ "-measured.html",
    [Before, After] = binary:split(Page, <<"</body>">>),
    ok = file:write_file(Copy, [Before, "<script>", script(), "</script></body>", After]),
    Output = browser(["--dump-dom", "--enable-logging=stderr"], Copy, Scheme, Config),
    {match, [Json]} = re:run(Output, "<pre id=\"measured\">(.*?)</pre>",
                             [dotall, {capture, all_but_first, list}]),
    {term(Json), [Said || Said <- matches("CONSOLE[^\\n]*", Output), not is_browsers_own(Said)]}.

%% A browser has pages of its own, too.
is_browsers_own(Complaint) -> string:find(Complaint, "source: chrome://") =/= nomatch.

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

%% @doc Of a hundred lines of a picture of the page those with more than one colour.
-spec drawn_percent(file:filename(), [{atom(), term()}]) -> number().
drawn_percent(File, Config) ->
    drawn_percent(screenshot(File, Config)).

%% Where bytes of a line of a PNG file, which are differences to their neighbours, are not all the
%% same but for the first pixel.
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
                                                "weft_report_browser_data/measure.js")),
    Script.

source() -> proplists:get_value(source, module_info(compile)).
