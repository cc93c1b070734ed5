%% SPDX-License-Identifier: Apache-2.0
%% @doc The dashboard apart from the application: for whoever runs it where the application can not
%% be started, such as the command `weft dashboard'. There `cowboy' has to be started before.
-module(weft_dashboard).

-export([start/1, port/0]).

%% @doc Starts the processes, linked to the caller, and the listener. The text of an error says what
%% to do.
-spec start(weft_dashboard_config:config()) -> {ok, Supervisor :: pid()} | {error, string()}.
start(Config) ->
    case weft_dashboard_sup:start_link(Config) of
        {ok, Supervisor} -> listen(Supervisor, Config);
        {error, Reason} -> {error, lists:flatten(io_lib:format("~0tp", [Reason]))}
    end.

listen(Supervisor, Config) ->
    case weft_dashboard_http:start(Config) of
        ok ->
            {ok, Supervisor};
        {error, Text} ->
            true = unlink(Supervisor),
            true = exit(Supervisor, shutdown),
            {error, Text}
    end.

%% @doc The port it listens on, for one that was given as 0.
-spec port() -> inet:port_number().
port() -> weft_dashboard_http:port().
