%% SPDX-License-Identifier: Apache-2.0
%% @doc The page in a real browser, where the test says what the server sends and answers: what no
%% server does, or none when a test needs it. In weft_dashboard_page_frames_data, server.js stands
%% between the two, and canvases.js reads what is drawn.
-module(weft_dashboard_page_frames).

-include_lib("common_test/include/ct.hrl").

-import(weft_dashboard_chromium, [evaluate/2, errors/1]).

-export([begin_suite/1, end_suite/1, opened/2, of_model/3, patch/2, answer/3, a_while/1, json/1]).

%% @doc The configuration of a suite with a browser and a server. Without a Chromium the suite is
%% skipped.
begin_suite(Config) ->
    Started = weft_test_nodes:begin_suite(Config),
    Options = #{dir => filename:join(?config(priv_dir, Config), "chromium"),
                lives_with => whereis(weft_test_nodes)},
    case weft_dashboard_chromium:start(Options) of
        {ok, Browser} ->
            [weft_dashboard_chromium:before(script(File), Browser)
             || File <- ["server.js", "canvases.js"]],
            {Keeper, Port} = served(),
            [{browser, Browser}, {keeper, Keeper}, {port, Port} | Started];
        {error, no_chromium} ->
            ok = weft_test_nodes:end_suite(Started),
            weft_test_missing:skip("chromium")
    end.

end_suite(Config) ->
    ok = weft_dashboard_chromium:stop(?config(browser, Config)),
    Ref = monitor(process, ?config(keeper, Config)),
    ?config(keeper, Config) ! stop,
    receive {'DOWN', Ref, _, _, _} -> ok end,
    weft_test_nodes:end_suite(Config).

script(File) ->
    Source = proplists:get_value(source, module_info(compile)),
    {ok, Script} = file:read_file(filename:join([filename:dirname(Source),
                                                 "weft_dashboard_page_frames_data", File])),
    Script.

%% Twelve nodes in three groups, which are not there. Their server ends with the process that has
%% started it.
served() ->
    Suite = self(),
    {Keeper, Ref} =
        spawn_monitor(fun() ->
                              {Supervisor, Port} = weft_dashboard_made_up:start(12, 3),
                              Suite ! {self(), Port},
                              receive stop -> weft_dashboard_made_up:stop(Supervisor) end
                      end),
    receive
        {Keeper, Port} -> demonitor(Ref, [flush]), {Keeper, Port};
        {'DOWN', Ref, _, _, Reason} -> error({not_served, Reason})
    end.

%% @doc The page with that model instead of the server's.
of_model(Model, Address, Config) ->
    Undo = weft_dashboard_chromium:before(["window.model = ", json(Model), ";"],
                                          ?config(browser, Config)),
    Browser = opened(Address, Config),
    _ = Undo(),
    Browser.

opened(Address, Config) ->
    Browser = ?config(browser, Config),
    ok = weft_dashboard_page_steps:open(Address, maps:from_list(Config), Browser),
    _ = errors(Browser),
    Browser.

%% @doc The server sends that change of the model.
patch(Patch, Browser) ->
    _ = evaluate(["patch(", json(iolist_to_binary(json(Patch))), ")"], Browser).

%% @doc From now on the server answers so.
answer(Path, Answer, Browser) ->
    _ = evaluate(["answers['", Path, "'] = ", json(Answer), "; 0"], Browser).

%% @doc In which what is asked again and again is asked five times.
a_while(Browser) -> _ = evaluate("new Promise((done) => later(done, 500)).then(() => 0)", Browser).

json(Term) -> weft_json:encode(Term).
