%% SPDX-License-Identifier: Apache-2.0
%% @doc A stock node's part of the handshake, message by message, for tests that leave some out or
%% say what is not true.
-module(weft_stock_client).

-export([connect/1, name/2, host/2, status/1, challenge/1, reply/3, acknowledgement/1, close/1,
         is_closed/1, register_at_epmd/3]).

-define(NAME_ME, 16#200000000).
-define(TIMEOUT_MS, 10000).

connect(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}, {packet, 2},
                                                          {nodelay, true}]),
    Socket.

close(Socket) -> gen_tcp:close(Socket).

%% @doc Says who it is.
name(Socket, Name) -> first(Socket, flags(), Name).

%% @doc Wants to be given a name.
host(Socket, Host) -> first(Socket, flags() bor ?NAME_ME, Host).

first(Socket, Flags, Name) ->
    gen_tcp:send(Socket, [<<$N, Flags:64, 1:32, (length(Name)):16>>, Name]).

flags() -> element(2, erts_internal:get_dflags()).

status(Socket) ->
    {ok, <<$s, Status/binary>>} = recv(Socket),
    Status.

challenge(Socket) ->
    {ok, <<$N, _Flags:64, Challenge:32, _/binary>>} = recv(Socket),
    Challenge.

reply(Socket, Challenge, Cookie) ->
    gen_tcp:send(Socket, [<<$r, 17:32>>, digest(Challenge, Cookie)]).

%% @doc The other side knows the cookie too?
acknowledgement(Socket) ->
    case recv(Socket) of
        {ok, <<$a, Digest/binary>>} -> {ok, Digest};
        Error -> Error
    end.

digest(Challenge, Cookie) -> erlang:md5([Cookie | integer_to_list(Challenge)]).

is_closed(Socket) -> recv(Socket) =:= {error, closed}.

recv(Socket) -> gen_tcp:recv(Socket, 0, ?TIMEOUT_MS).

%% @doc A program that is no VM and listens on Port; it is known until the socket is closed.
register_at_epmd(EpmdPort, Name, Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, EpmdPort, [binary, {active, false}]),
    Request = [<<$x, Port:16, $H, 0, 6:16, 5:16, (length(Name)):16>>, Name, <<0:16>>],
    ok = gen_tcp:send(Socket, [<<(iolist_size(Request)):16>>, Request]),
    {ok, <<_, 0, _/binary>>} = gen_tcp:recv(Socket, 4, ?TIMEOUT_MS),
    Socket.
