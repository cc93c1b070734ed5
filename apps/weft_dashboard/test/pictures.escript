#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput
%% Makes the pictures of docs/guide/dashboard.md, of a cluster that is made up, with Chromium. Run
%% it in the root of the project after `rebar3 ct --compile_only'.

-define(PICTURES, [{"dashboard-graph", "view=graph&theme=light&from=n021@host"},
                   {"dashboard-matrix", "view=matrix&theme=dark&by=rtt_us&row=n007@host"
                                        "&column=n001@host"}]).

main([]) ->
    true = code:add_pathsa(filelib:wildcard("_build/test/lib/*/{ebin,test}")) =:= ok,
    {ok, _} = file:script("rebar.config.script", [{'CONFIG', []}]),
    Dir = string:trim(os:cmd("mktemp -d")),
    {_Supervisor, Port} = weft_dashboard_made_up:start(24, 3),
    {ok, Browser} = weft_dashboard_chromium:start(#{dir => Dir, size => {940, 690}}),
    lists:foreach(fun(Picture) -> picture(Picture, Port, Browser) end, ?PICTURES),
    ok = weft_dashboard_chromium:stop(Browser),
    ok = file:del_dir_r(Dir).

%% Three seconds after the first model there have been some.
picture({Name, Address}, Port, Browser) ->
    true = weft_dashboard_chromium:go("about:blank", Browser),
    true = weft_dashboard_chromium:go(["http://127.0.0.1:", integer_to_list(Port), "/#", Address],
                                      Browser),
    true = weft_dashboard_chromium:until("performance.now() > 3000 + (performance"
                                         ".getEntriesByName('first-model')[0]?.startTime ?? "
                                         "Infinity)", Browser),
    File = filename:join("docs/guide/pictures", Name ++ ".png"),
    ok = filelib:ensure_dir(File),
    ok = weft_dashboard_chromium:screenshot(File, Browser).
