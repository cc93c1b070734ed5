%% SPDX-License-Identifier: Apache-2.0
%% @doc The listener for browsers: the page (files of priv/www), GET /live for its websocket, and
%% /api for what it asks and does. Each request passes `weft_dashboard_guard' first.
-module(weft_dashboard_http).

-export([start/1, stop/0, port/0]).

-define(ACCEPTORS, 2).
%% Beside the websockets: a browser opens up to six for other requests.
-define(OTHER_CONNECTIONS_MAX, 64).
-define(REQUEST_MS, 5000).

%% @doc Begins to listen. The text of an error says what to do.
-spec start(weft_dashboard_config:config()) -> ok | {error, Text :: string()}.
start(#{ip := Ip, port := Port, browsers_max := BrowsersMax} = Config) ->
    Transport = #{max_connections => BrowsersMax + ?OTHER_CONNECTIONS_MAX,
                  num_acceptors => ?ACCEPTORS, socket_opts => [{port, Port}, {ip, Ip}]},
    Protocol = #{env => #{dispatch => cowboy_router:compile([{'_', routes(Config)}]),
                          access => weft_dashboard_guard:access(Config)},
                 middlewares => [weft_dashboard_guard, cowboy_router, cowboy_handler],
                 request_timeout => ?REQUEST_MS},
    case cowboy:start_clear(?MODULE, Transport, Protocol) of
        {ok, _Listener} -> ok;
        {error, Reason} -> {error, refused(Reason, Ip, Port)}
    end.

routes(Config) ->
    [{"/live", weft_dashboard_live, []},
     {"/api/[...]", weft_dashboard_api, Config},
     {"/", cowboy_static, {priv_file, weft_dashboard, "www/index.html"}},
     {"/[...]", cowboy_static, {priv_dir, weft_dashboard, "www"}}].

refused(Reason, Ip, Port) ->
    Text = io_lib:format("no dashboard on ~ts port ~b: ~ts. Choose another port or ip, or stop "
                         "what listens there.", [inet:ntoa(Ip), Port, explained(Reason)]),
    lists:flatten(Text).

explained(Reason) when is_atom(Reason) -> inet:format_error(Reason);
explained(Reason) -> io_lib:format("~0tp", [Reason]).

%% @doc Closes the listener and its connections, if it is open. Not every release of ranch answers
%% `not_found' if it is not.
-spec stop() -> ok.
stop() ->
    try cowboy:stop_listener(?MODULE) of
        ok -> ok;
        {error, not_found} -> ok
    catch
        error:badarg -> ok
    end.

%% @doc The port it listens on, for one that was given as 0.
-spec port() -> inet:port_number().
port() -> ranch:get_port(?MODULE).
