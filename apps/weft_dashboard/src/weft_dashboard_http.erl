%% SPDX-License-Identifier: Apache-2.0
%% @doc The listener for browsers: the page (files of priv/www), GET /live for its websocket, and
%% /api for what it asks and does. Each request passes `weft_dashboard_guard' first.
-module(weft_dashboard_http).

-export([start/1, stop/0, port/0]).

%% Beside the websockets: a browser opens up to six for other requests.
-define(OTHER_CONNECTIONS_MAX, 64).
-define(REQUEST_MS, 5000).

%% @doc Begins to listen. The text of an error says what to do.
-spec start(weft_dashboard_config:config()) -> ok | {error, Text :: string()}.
start(#{ip := Ip, port := Port, browsers_max := BrowsersMax} = Config) ->
    Place = #{ip => Ip, port => Port, what => "dashboard"},
    Transport = #{max_connections => BrowsersMax + ?OTHER_CONNECTIONS_MAX},
    Protocol = #{env => #{dispatch => cowboy_router:compile([{'_', routes(Config)}]),
                          access => weft_dashboard_guard:access(Config)},
                 middlewares => [weft_dashboard_guard, cowboy_router, cowboy_handler],
                 %% By HTTP/2 one connection could have any number of requests that wait.
                 max_concurrent_streams => 1,
                 request_timeout => ?REQUEST_MS},
    weft_http_listener:start(?MODULE, Place, Transport, Protocol).

routes(Config) ->
    [{"/live", weft_dashboard_live, []},
     {"/api/[...]", weft_dashboard_api, Config},
     {"/", cowboy_static, {priv_file, weft_dashboard, "www/index.html"}},
     {"/[...]", cowboy_static, {priv_dir, weft_dashboard, "www"}}].

%% @doc Closes the listener and its connections.
-spec stop() -> ok.
stop() -> weft_http_listener:stop(?MODULE).

%% @doc The port it listens on, for one that was given as 0.
-spec port() -> inet:port_number().
port() -> weft_http_listener:port(?MODULE).
