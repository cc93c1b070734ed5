%% SPDX-License-Identifier: Apache-2.0
%% @doc A real browser for suites: Chromium without a window, told what to do by the DevTools
%% protocol over a websocket. One process has the websocket and ends the browser with itself.
%%
%% Where there is no Chromium start/1 says so. What is waited for has a deadline.
-module(weft_dashboard_chromium).

-export([start/1, stop/1, go/2, evaluate/2, until/2, key/2, type/2, click/2, before/2,
         command/3, screenshot/2, errors/1]).

-define(NAMES, ["chromium", "chromium-browser", "google-chrome"]).
-define(MS, 60000).
-define(POLL_MS, 50).
%% Ends the browser when its standard input ends, which is when the port is closed, or its owner has
%% died.
-define(RUN, "\"$@\" 2>&1 < /dev/null & pid=$!; cat > /dev/null; kill $pid").

%% @doc Starts a browser with one page of that size; its files are in that directory. It ends with
%% the process `lives_with', which is the caller unless it is given.
-spec start(#{dir := file:filename(), size => {pos_integer(), pos_integer()},
              lives_with => pid()}) -> {ok, pid()} | {error, no_chromium}.
start(Options) ->
    case [Path || Name <- ?NAMES, Path <- [os:find_executable(Name)], Path =/= false] of
        [] ->
            {error, no_chromium};
        [Path | _] ->
            Test = self(),
            {Pid, Ref} = spawn_monitor(fun() -> run(Test, Path, Options) end),
            receive
                {Pid, ready} -> demonitor(Ref, [flush]), {ok, Pid};
                {'DOWN', Ref, _, _, Reason} -> error({no_browser, Reason})
            end
    end.

-spec stop(pid()) -> ok.
stop(Browser) ->
    Ref = monitor(process, Browser),
    Browser ! stop,
    receive {'DOWN', Ref, _, _, _} -> ok after ?MS -> error(browser_runs) end.

%% --- what a user does ---------------------------------------------------------------------------

%% @doc Opens an address.
go(Url, Browser) ->
    _ = command(<<"Page.navigate">>, #{url => unicode:characters_to_binary(Url)}, Browser),
    until("document.readyState === 'complete'", Browser).

%% @doc The value of an expression, of a promise what becomes of it.
evaluate(Expression, Browser) ->
    Answer = command(<<"Runtime.evaluate">>,
                     #{expression => unicode:characters_to_binary(Expression),
                       returnByValue => true, awaitPromise => true}, Browser),
    case Answer of
        #{<<"exceptionDetails">> := Details} -> error({in_browser, Details});
        #{<<"result">> := #{<<"value">> := Value}} -> Value;
        #{<<"result">> := _} -> undefined
    end.

%% @doc Waits until an expression is true, and gives its value.
until(Expression, Browser) -> until(Expression, Browser, now_ms() + ?MS).

until(Expression, Browser, DeadlineMs) ->
    case {evaluate(Expression, Browser), now_ms() > DeadlineMs} of
        {Value, _} when Value =/= false, Value =/= undefined, Value =/= null -> Value;
        {_, true} -> error({not_true, Expression, evaluate("document.body.innerText", Browser)});
        {_, false} ->
            receive after ?POLL_MS -> ok end, % pacing: looks again
            until(Expression, Browser, DeadlineMs)
    end.

%% @doc Presses a key, such as <<"Enter">>, <<"Tab">> or <<"a">>.
key(Key, Browser) ->
    Code = case Key of
               <<"Enter">> -> #{windowsVirtualKeyCode => 13, text => <<"\r">>};
               <<"Tab">> -> #{windowsVirtualKeyCode => 9};
               <<"Escape">> -> #{windowsVirtualKeyCode => 27};
               <<"Arrow", _/binary>> -> #{windowsVirtualKeyCode => arrow(Key)};
               <<Char>> -> #{text => <<Char>>}
           end,
    Event = Code#{key => Key, code => Key},
    _ = command(<<"Input.dispatchKeyEvent">>, Event#{type => <<"keyDown">>}, Browser),
    _ = command(<<"Input.dispatchKeyEvent">>, (maps:remove(text, Event))#{type => <<"keyUp">>},
                Browser),
    ok.

arrow(<<"ArrowLeft">>) -> 37;
arrow(<<"ArrowUp">>) -> 38;
arrow(<<"ArrowRight">>) -> 39;
arrow(<<"ArrowDown">>) -> 40.

%% @doc Types into what has the focus.
type(Text, Browser) ->
    _ = command(<<"Input.insertText">>, #{text => unicode:characters_to_binary(Text)}, Browser),
    ok.

%% @doc Presses the mouse at a place of the page.
click(#{<<"x">> := X, <<"y">> := Y}, Browser) ->
    Event = #{x => X, y => Y, button => <<"left">>, clickCount => 1},
    [_ = command(<<"Input.dispatchMouseEvent">>, Event#{type => Type}, Browser)
     || Type <- [<<"mouseMoved">>, <<"mousePressed">>, <<"mouseReleased">>]],
    ok.

%% @doc Each page that is opened from now on runs that first, until the fun that this gives is
%% called.
before(Script, Browser) ->
    #{<<"identifier">> := Id} =
        command(<<"Page.addScriptToEvaluateOnNewDocument">>,
                #{source => unicode:characters_to_binary(Script)}, Browser),
    fun() ->
            command(<<"Page.removeScriptToEvaluateOnNewDocument">>, #{identifier => Id}, Browser)
    end.

%% @doc Writes a picture of the page, as PNG.
screenshot(File, Browser) ->
    #{<<"data">> := Data} = command(<<"Page.captureScreenshot">>, #{format => <<"png">>}, Browser),
    file:write_file(File, base64:decode(Data)).

%% @doc What the page complained of since the last time: exceptions, and what the policy refused.
errors(Browser) -> ask(errors, Browser).

%% @doc A command of the DevTools protocol.
command(Method, Parameters, Browser) ->
    case ask({command, Method, Parameters}, Browser) of
        #{<<"result">> := Result} -> Result;
        #{<<"error">> := Error} -> error({refused, Method, Error})
    end.

ask(What, Browser) ->
    Ref = monitor(process, Browser),
    Browser ! {What, self(), Ref},
    receive
        {Ref, Answer} -> demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, _, _, Reason} -> error({browser_ended, Reason})
    after ?MS -> error({browser_silent, What})
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% --- the process --------------------------------------------------------------------------------

run(Test, Path, Options) ->
    TestRef = monitor(process, maps:get(lives_with, Options, Test)),
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", ?RUN, "sh", Path | arguments(Options)]}, binary,
                      {line, 4096}]),
    DevTools = listening(Port),
    Socket = weft_dashboard_browser:websocket(DevTools, page(DevTools)),
    State = #{port => Port, socket => Socket, test => TestRef, number => 0, errors => []},
    Ready = lists:foldl(fun(Method, Before) ->
                                element(2, said(Method, #{}, Before))
                        end, State, [<<"Page.enable">>, <<"Runtime.enable">>, <<"Log.enable">>]),
    Test ! {self(), ready},
    loop(Ready).

arguments(#{dir := Dir} = Options) ->
    {Width, Height} = maps:get(size, Options, {1280, 800}),
    ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
     "--no-first-run", "--disable-extensions", "--disable-background-networking",
     "--disable-component-update", "--hide-scrollbars", "--remote-debugging-port=0",
     "--user-data-dir=" ++ filename:absname(Dir),
     io_lib:format("--window-size=~b,~b", [Width, Height]), "about:blank"].

listening(Port) ->
    receive
        {Port, {data, {_, Line}}} ->
            case re:run(Line, "DevTools listening on ws://127.0.0.1:([0-9]+)/",
                        [{capture, [1], list}]) of
                {match, [Text]} -> list_to_integer(Text);
                nomatch -> listening(Port)
            end
    after ?MS -> error(no_devtools)
    end.

%% The path of the websocket of the first page.
page(DevTools) ->
    {200, Targets} = weft_dashboard_browser:json(
                       weft_dashboard_browser:request(DevTools, "/json/list")),
    case [Url || #{<<"type">> := <<"page">>, <<"webSocketDebuggerUrl">> := Url} <- Targets] of
        [Url | _] -> maps:get(path, uri_string:parse(Url));
        [] -> page(DevTools)
    end.

loop(#{port := Port, test := TestRef, errors := Errors} = State) ->
    receive
        {{command, Method, Parameters}, From, Ref} ->
            {Answer, Next} = said(Method, Parameters, State),
            From ! {Ref, Answer},
            loop(Next);
        {errors, From, Ref} ->
            From ! {Ref, lists:reverse(Errors)},
            loop(State#{errors := []});
        {Port, {data, _Talk}} ->
            loop(State);
        stop ->
            true = port_close(Port);
        {'DOWN', TestRef, _, _, _} ->
            true = port_close(Port)
    end.

said(Method, Parameters, #{socket := Socket, number := Before} = State) ->
    Number = Before + 1,
    Text = weft_json:encode(#{id => Number, method => Method, params => Parameters}),
    ok = weft_dashboard_browser:say(iolist_to_binary(Text), #{socket => Socket}),
    answered(Number, State#{number := Number}).

answered(Number, #{socket := Socket, errors := Errors} = State) ->
    case weft_dashboard_browser:frame(#{socket => Socket}) of
        {text, #{<<"id">> := Number} = Answer} ->
            {Answer, State};
        {text, #{<<"method">> := <<"Runtime.exceptionThrown">>, <<"params">> := What}} ->
            answered(Number, State#{errors := [What | Errors]});
        {text, #{<<"method">> := <<"Log.entryAdded">>,
                 <<"params">> := #{<<"entry">> := #{<<"level">> := <<"error">>} = What}}} ->
            answered(Number, State#{errors := [What | Errors]});
        {text, _Other} ->
            answered(Number, State)
    end.
