%% SPDX-License-Identifier: Apache-2.0
%% @doc The application weft_dashboard: while it runs, the listener for browsers is open, and one
%% process has the newest model of the cluster. Without a browser nothing is asked.
-module(weft_dashboard_app).
-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case weft_dashboard_config:read() of
        {ok, Config} -> supervise(Config);
        {error, Text} -> {error, {weft_dashboard, Text}}
    end.

supervise(Config) ->
    case weft_dashboard:start(Config) of
        {ok, Supervisor} -> {ok, Supervisor};
        {error, Text} -> {error, {weft_dashboard, Text}}
    end.

%% @private
-spec prep_stop(term()) -> term().
prep_stop(State) ->
    ok = weft_dashboard_http:stop(),
    State.

%% @private Does it again: nobody has called prep_stop if the supervisor has ended by itself.
-spec stop(term()) -> ok.
stop(_State) ->
    weft_dashboard_http:stop().
