%% SPDX-License-Identifier: Apache-2.0
%% @doc A browser for the suite: requests as they are written, and a websocket (RFC 6455) that keeps
%% the model up to date, as slowly as it is told to.
-module(weft_dashboard_browser).

-export([request/2, request/4, json/1, open/1, open/2, websocket/2, say/2, frame/1, take/1, ack/2,
         close/1]).

-define(MS, 20000).

%% @doc GET, with the answer.
request(Port, Path) -> request(Port, {<<"GET">>, Path}, [], <<>>).

%% @doc The path and headers are sent as they are. A Host is added if there is none.
request(Port, {Method, Path}, Headers, Body) ->
    Socket = connect(Port),
    ok = gen_tcp:send(Socket, [Method, " ", Path, " HTTP/1.1\r\n",
                               [[Name, ": ", Value, "\r\n"]
                                || {Name, Value} <- host(Port, Headers)],
                               "connection: close\r\ncontent-length: ",
                               integer_to_list(byte_size(Body)), "\r\n\r\n", Body]),
    Answer = {_Status, _, _} = answered(Socket),
    ok = gen_tcp:close(Socket),
    Answer.

connect(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false},
                                                          {packet, http_bin}]),
    Socket.

host(Port, Headers) ->
    [{"host", ["127.0.0.1:", integer_to_list(Port)]}
     || not lists:keymember("host", 1, Headers)] ++ Headers.

answered(Socket) ->
    {ok, {http_response, _, Status, _}} = gen_tcp:recv(Socket, 0, ?MS),
    Headers = headers(Socket),
    ok = inet:setopts(Socket, [{packet, raw}]),
    Body = case Headers of
               #{<<"content-length">> := <<"0">>} -> <<>>;
               #{<<"content-length">> := Length} ->
                   {ok, Bytes} = gen_tcp:recv(Socket, binary_to_integer(Length), ?MS),
                   Bytes;
               #{} -> <<>>
           end,
    {Status, Headers, Body}.

headers(Socket) ->
    case gen_tcp:recv(Socket, 0, ?MS) of
        {ok, {http_header, _, Name, _, Value}} ->
            (headers(Socket))#{string:lowercase(name(Name)) => Value};
        {ok, http_eoh} -> #{}
    end.

name(Name) when is_atom(Name) -> atom_to_binary(Name);
name(Name) -> Name.

json({Status, _Headers, Body}) ->
    {ok, Json} = weft_json:decode(Body),
    {Status, Json}.

%% --- the websocket ------------------------------------------------------------------------------

open(Port) -> open(Port, []).

%% @doc Opens /live; what the server said instead, if it refused.
open(Port, Headers) ->
    case opened(Port, "/live", Headers) of
        {Socket, {101, _, <<>>}} -> {ok, #{socket => Socket, has => none}};
        {_Socket, Refused} -> {refused, Refused}
    end.

%% @doc The socket of another websocket than that of the dashboard.
websocket(Port, Path) ->
    {Socket, {101, _, <<>>}} = opened(Port, Path, []),
    Socket.

opened(Port, Path, Headers) ->
    Socket = connect(Port),
    ok = gen_tcp:send(Socket, ["GET ", Path, " HTTP/1.1\r\n",
                               [[Name, ": ", Value, "\r\n"]
                                || {Name, Value} <- host(Port, Headers)],
                               "connection: upgrade\r\nupgrade: websocket\r\n"
                               "sec-websocket-version: 13\r\n"
                               "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"]),
    {Socket, answered(Socket)}.

%% @doc A text or {binary, Bytes}, masked as it has to be.
say(Say, #{socket := Socket}) ->
    {Code, Payload} = case Say of {binary, Bytes} -> {2, Bytes}; Text -> {1, Text} end,
    Length = case byte_size(Payload) of
                 Short when Short < 126 -> <<1:1, Short:7>>;
                 Long when Long < 65536 -> <<1:1, 126:7, Long:16>>;
                 Longest -> <<1:1, 127:7, Longest:64>>
             end,
    gen_tcp:send(Socket, [<<1:1, 0:3, Code:4>>, Length, <<0:32>>, Payload]).

%% @doc The next frame that is no ping: {text, Json}, {close, Code} or closed.
frame(#{socket := Socket} = Browser) ->
    case gen_tcp:recv(Socket, 2, ?MS) of
        {ok, <<1:1, 0:3, Code:4, 0:1, Length:7>>} ->
            case {Code, payload(Length, Socket)} of
                {1, Text} -> {text, element(2, {ok, _} = weft_json:decode(Text))};
                {8, <<Reason:16, _/binary>>} -> {close, Reason};
                {9, _} -> frame(Browser)
            end;
        {error, closed} ->
            closed
    end.

payload(127, Socket) -> bytes(bytes(8, Socket), Socket);
payload(126, Socket) -> bytes(bytes(2, Socket), Socket);
payload(Length, Socket) -> bytes(Length, Socket).

bytes(0, _Socket) -> <<>>;
bytes(Length, Socket) when is_binary(Length) -> bytes(binary:decode_unsigned(Length), Socket);
bytes(Length, Socket) ->
    {ok, Bytes} = gen_tcp:recv(Socket, Length, ?MS),
    Bytes.

%% @doc Takes the next frame into the model, without an acknowledgement.
take(#{has := Has} = Browser) ->
    case {frame(Browser), Has} of
        {{text, #{<<"type">> := <<"snapshot">>, <<"number">> := Number,
                  <<"model">> := Model}}, _} ->
            Browser#{has := {Number, Model}};
        {{text, #{<<"type">> := <<"patch">>, <<"number">> := Number, <<"after">> := After,
                  <<"patch">> := Patch}}, {After, Old}} ->
            Browser#{has := {Number, weft_dashboard_merge_patch_tests:apply_patch(Old, Patch)}}
    end.

ack(Number, Browser) ->
    say(iolist_to_binary(weft_json:encode(#{type => ack, number => Number})), Browser).

close(#{socket := Socket}) -> gen_tcp:close(Socket).
