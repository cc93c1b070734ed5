%% SPDX-License-Identifier: Apache-2.0
%% @doc Has a node of a workload watched as a user would: agents and metrics on each node, and on
%% one of them a dashboard with a browser, and a Prometheus that scrapes all of them. These two are
%% processes of that node, and what they take is counted as its own: so monitoring seems to cost a
%% little more than it does.
%%
%% Called on the nodes. The settings are the defaults, but scrapes come three times as often as
%% those of most Prometheus servers, so that there is at least one in a run of some seconds.
-module(weft_watched_node).

-export([begin_node/0, end_node/0, begin_viewers/1, end_viewers/0]).

-define(SCRAPE_MS, 5000).
-define(ANSWER_MS, 10000).
-define(BUFFER_BYTES, 65536).
%% Any 16 bytes will do, and nobody tries to guess them here (RFC 6455, section 4.1).
-define(KEY, "d2VmdCBpcyB3YXRjaGVkIQ==").

%% @doc Starts agents and metrics. The port is that of the metrics.
-spec begin_node() -> inet:port_number().
begin_node() ->
    ok = application:set_env(weft_ops, http, #{port => 0}),
    {ok, _} = application:ensure_all_started(weft_ops),
    weft_ops_http:port().

%% @doc Stops them.
-spec end_node() -> ok.
end_node() ->
    application:stop(weft_ops).

%% @doc Starts the dashboard, and who looks at it and at the metrics on these ports of this host.
%% Returns when the browser has its first model.
-spec begin_viewers([inet:port_number()]) -> ok.
begin_viewers(Ports) ->
    ok = application:set_env(weft_dashboard, port, 0),
    {ok, _} = application:ensure_all_started(weft_dashboard),
    Port = weft_dashboard:port(),
    Self = self(),
    {Viewers, Ref} = spawn_monitor(fun() ->
                                           true = register(?MODULE, self()),
                                           _ = spawn_link(fun() -> scrape(Ports) end),
                                           look(open(Port), Self)
                                   end),
    receive
        {Viewers, looking} -> true = demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Viewers, Reason} -> error({no_browser, Reason})
    end.

%% @doc Ends all that.
-spec end_viewers() -> ok.
end_viewers() ->
    case whereis(?MODULE) of
        undefined ->
            error(the_browser_has_ended);
        Viewers ->
            Ref = monitor(process, Viewers),
            true = exit(Viewers, kill),
            receive {'DOWN', Ref, process, Viewers, _} -> ok end
    end,
    application:stop(weft_dashboard).

%% --- the browser: it acknowledges each model, and does nothing with it --------------------------

open(Port) ->
    {ok, Socket} = connect(Port, [{packet, http_bin}]),
    ok = gen_tcp:send(Socket, ["GET /live HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\n"
                               "upgrade: websocket\r\nsec-websocket-version: 13\r\n"
                               "sec-websocket-key: " ?KEY "\r\n\r\n"]),
    {ok, {http_response, _, 101, _}} = gen_tcp:recv(Socket, 0, ?ANSWER_MS),
    ok = headers(Socket),
    ok = inet:setopts(Socket, [{packet, raw}]),
    Socket.

headers(Socket) ->
    case gen_tcp:recv(Socket, 0, ?ANSWER_MS) of
        {ok, http_eoh} -> ok;
        {ok, {http_header, _, _, _, _}} -> headers(Socket)
    end.

look(Socket, Starter) ->
    case frame(Socket) of
        {text, Text} ->
            {match, [Number]} = re:run(Text, "\"number\":([0-9]+)", [{capture, [1], binary}]),
            Ack = <<"{\"type\":\"ack\",\"number\":", Number/binary, "}">>,
            ok = gen_tcp:send(Socket, [<<1:1, 0:3, 1:4, 1:1, (byte_size(Ack)):7, 0:32>>, Ack]),
            _ = Starter =:= none orelse (Starter ! {self(), looking}),
            look(Socket, none);
        ping ->
            look(Socket, Starter)
    end.

frame(Socket) ->
    {ok, <<1:1, 0:3, Code:4, 0:1, Length:7>>} = gen_tcp:recv(Socket, 2),
    Payload = payload(Length, Socket),
    case Code of
        1 -> {text, Payload};
        9 -> ping
    end.

payload(127, Socket) -> <<Length:64>> = bytes(8, Socket), bytes(Length, Socket);
payload(126, Socket) -> <<Length:16>> = bytes(2, Socket), bytes(Length, Socket);
payload(Length, Socket) -> bytes(Length, Socket).

bytes(0, _Socket) -> <<>>;
bytes(Length, Socket) -> {ok, Bytes} = gen_tcp:recv(Socket, Length, ?ANSWER_MS), Bytes.

%% --- Prometheus ---------------------------------------------------------------------------------

-spec scrape([inet:port_number()]) -> no_return().
scrape(Ports) ->
    lists:foreach(fun scraped/1, Ports),
    receive after ?SCRAPE_MS -> scrape(Ports) end.

scraped(Port) ->
    {ok, Socket} = connect(Port, [{buffer, ?BUFFER_BYTES}]),
    ok = gen_tcp:send(Socket, "GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                              "connection: close\r\n\r\n"),
    {ok, <<"HTTP/1.1 200">>} = gen_tcp:recv(Socket, 12, ?ANSWER_MS),
    to_its_end(Socket).

to_its_end(Socket) ->
    case gen_tcp:recv(Socket, 0, ?ANSWER_MS) of
        {ok, _Some} -> to_its_end(Socket);
        {error, closed} -> ok
    end.

connect(Port, Options) ->
    gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false} | Options], ?ANSWER_MS).
