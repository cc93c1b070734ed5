%% SPDX-License-Identifier: Apache-2.0
%% @doc The listener for clients. Each request passes `weft_kv_http_crowd' and `weft_kv_http_guard',
%% and is answered by `weft_kv_http_handler'. One connection has one request at a time. There may be
%% twice as many connections as requests, so that one more request is told so; only when there are
%% still more connections, others wait.
-module(weft_kv_http_listener).

-export([start/1, stop/0, port/0]).

-define(ACCEPTORS, 2).
-define(HEADERS_MS, 5000).
-define(IDLE_MS, 30000).

%% @doc Begins to listen, if there is a port. The text of an error says what to do.
-spec start(weft_kv_http_config:config()) -> ok | {error, Text :: string()}.
start(#{port := none}) ->
    ok;
start(#{ip := Ip, port := Port, connections_max := Max} = Config) ->
    %% The limit is that of each supervisor of connections.
    Transport = #{max_connections => 2 * Max, num_acceptors => ?ACCEPTORS, num_conns_sups => 1,
                  socket_opts => [{port, Port}, {ip, Ip}]},
    Protocol = #{env => #{handler => weft_kv_http_handler, handler_opts => Config},
                 middlewares => [weft_kv_http_guard, cowboy_handler],
                 stream_handlers => [weft_kv_http_crowd, cowboy_stream_h],
                 crowd => weft_kv_http_crowd:new(Max), max_concurrent_streams => 1,
                 request_timeout => ?HEADERS_MS, idle_timeout => ?IDLE_MS},
    case cowboy:start_clear(?MODULE, Transport, Protocol) of
        {ok, _Listener} -> ok;
        {error, Reason} -> {error, refused(Reason, Ip, Port)}
    end.

refused(Reason, Ip, Port) ->
    lists:flatten(io_lib:format("no store by HTTP on ~ts port ~b: ~ts. Choose another port or ip, "
                                "or stop what listens there.",
                                [inet:ntoa(Ip), Port, explained(Reason)])).

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
