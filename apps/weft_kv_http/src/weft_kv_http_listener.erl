%% SPDX-License-Identifier: Apache-2.0
%% @doc The listener for clients. Each request passes `weft_kv_http_crowd' and `weft_kv_http_guard',
%% and is answered by `weft_kv_http_handler'. One connection has one request at a time. There may be
%% twice as many connections as requests, so that one more request is told so; only when there are
%% still more connections, others wait.
%%
%% While a request runs, nothing comes from its client, however long that takes: the store bounds
%% it (`timeout_ms'), so there is no limit for connections at rest. What else a client can be slow
%% with has one: a request without its value `HEADERS_MS', also that which is left of a value that
%% nobody reads; the value `body_ms'; and an answer that is not taken, what ranch has for that. A
%% connection of HTTP/2 without a request ends when nothing has come for five minutes (cowboy's
%% `inactivity_timeout').
-module(weft_kv_http_listener).

-export([start/1, stop/0, port/0]).

-define(HEADERS_MS, 5000).
%% A key has up to 4096 bytes, each of which may be `%XX'.
-define(LINE_BYTES_MAX, 16384).
%% A context grows with each process of a partition that has written the key.
-define(HEADER_BYTES_MAX, 65536).

%% @doc Begins to listen, if there is a port. The text of an error says what to do.
-spec start(weft_kv_http_config:config()) -> ok | {error, Text :: string()}.
start(#{port := none}) ->
    ok;
start(#{ip := Ip, port := Port, connections_max := Max} = Config) ->
    Transport = #{max_connections => 2 * Max},
    Place = #{ip => Ip, port => Port, what => "store by HTTP"},
    Protocol = #{env => #{handler => weft_kv_http_handler, handler_opts => Config},
                 middlewares => [weft_kv_http_guard, cowboy_handler],
                 stream_handlers => [weft_kv_http_crowd, cowboy_stream_h],
                 crowd => weft_kv_http_crowd:new(Max), max_concurrent_streams => 1,
                 max_request_line_length => ?LINE_BYTES_MAX,
                 max_header_value_length => ?HEADER_BYTES_MAX,
                 request_timeout => ?HEADERS_MS, idle_timeout => infinity},
    weft_http_listener:start(?MODULE, Place, Transport, Protocol).

%% @doc Closes the listener and its connections.
-spec stop() -> ok.
stop() -> weft_http_listener:stop(?MODULE).

%% @doc The port it listens on, for one that was given as 0.
-spec port() -> inet:port_number().
port() -> weft_http_listener:port(?MODULE).
