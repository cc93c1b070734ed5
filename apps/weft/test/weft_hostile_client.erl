%% SPDX-License-Identifier: Apache-2.0
%% @doc A client that speaks the handshake and packets of a link, well or badly, from a process
%% that is no distributed node. What it says of itself is in `claims()'.
-module(weft_hostile_client).

-export([claims/1, hello/1, connect/1, say/2, hear/1, close/1, begin_handshake/2, prove/4,
         authenticate/3, send_packet/2, recv_packet/1, closed_by_peer/1]).
-export_type([claims/0]).

-define(TIMEOUT_MS, 10000).

-type claims() :: weft_hello:hello().

%% @doc A hello that the node called Target would accept.
-spec claims(node()) -> claims().
claims(Target) ->
    #{versions => {1, 1}, purpose => link, nonce => crypto:strong_rand_bytes(32),
      incarnation => 4711, listens => false, cluster => <<"default">>,
      name => <<"hostile@nowhere">>, target => atom_to_binary(Target)}.

-spec hello(claims()) -> binary().
hello(Claims) -> weft_hello:hello(Claims).

-spec connect(inet:port_number()) -> inet:socket().
connect(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port,
                                   [binary, {active, false}, {packet, raw}, {nodelay, true}],
                                   ?TIMEOUT_MS),
    Socket.

%% @doc A message of the handshake: behind a length of 16 bits.
-spec say(inet:socket(), iodata()) -> ok | {error, term()}.
say(Socket, Message) ->
    gen_tcp:send(Socket, [<<(iolist_size(Message)):16>>, Message]).

-spec hear(inet:socket()) -> {ok, binary()} | {error, term()}.
hear(Socket) ->
    case gen_tcp:recv(Socket, 2, ?TIMEOUT_MS) of
        {ok, <<Size:16>>} -> gen_tcp:recv(Socket, Size, ?TIMEOUT_MS);
        Error -> Error
    end.

-spec close(inet:socket()) -> ok.
close(Socket) -> gen_tcp:close(Socket).

%% @doc Says a hello. Returns the challenge as it came and its status.
-spec begin_handshake(inet:socket(), iodata()) -> {weft_hello:status(), binary()}.
begin_handshake(Socket, Hello) ->
    ok = say(Socket, Hello),
    {ok, Challenge} = hear(Socket),
    {ok, #{status := Status}} = weft_hello:parse_challenge(Challenge),
    {Status, Challenge}.

%% @doc Proves knowledge of a cookie. Returns the status of the answer.
-spec prove(inet:socket(), binary(), binary(), binary()) -> weft_hello:status() | {error, term()}.
prove(Socket, Cookie, Hello, Challenge) ->
    _ = say(Socket, weft_hello:mac(Cookie, dialer, Hello, Challenge)),
    case hear(Socket) of
        {ok, Answer} ->
            {ok, Status, _} = weft_hello:parse_answer(Answer),
            Status;
        Error ->
            Error
    end.

%% @doc The whole handshake with the right cookie: an authenticated connection.
-spec authenticate(inet:port_number(), claims(), binary()) -> inet:socket().
authenticate(Port, Claims, Cookie) ->
    Socket = connect(Port),
    Hello = hello(Claims),
    {ok, Challenge} = begin_handshake(Socket, Hello),
    ok = prove(Socket, Cookie, Hello, Challenge),
    ok = inet:setopts(Socket, [{packet, 4}]),
    Socket.

-spec send_packet(inet:socket(), iodata()) -> ok | {error, term()}.
send_packet(Socket, Packet) -> gen_tcp:send(Socket, Packet).

%% @doc The next packet that is no keepalive, control message or incarnation, decoded.
-spec recv_packet(inet:socket()) -> weft_wire:packet() | {error, term()}.
recv_packet(Socket) ->
    case gen_tcp:recv(Socket, 0, ?TIMEOUT_MS) of
        {ok, Packet} ->
            case weft_wire:decode(Packet) of
                {Keepalive, _} when Keepalive =:= ping; Keepalive =:= pong -> recv_packet(Socket);
                {control, _, _} -> recv_packet(Socket);
                {incarnation, _, _} -> recv_packet(Socket);
                Decoded -> Decoded
            end;
        Error ->
            Error
    end.

%% @doc Waits until the peer has closed the connection, whatever it says before that.
-spec closed_by_peer(inet:socket()) -> true | {error, term()}.
closed_by_peer(Socket) ->
    case gen_tcp:recv(Socket, 0, ?TIMEOUT_MS) of
        {ok, _} -> closed_by_peer(Socket);
        {error, closed} -> true;
        Error -> Error
    end.
