%% SPDX-License-Identifier: Apache-2.0
%% @doc Accepts connections on the node's one port and finds out what they are.
%%
%% Each connection is authenticated in a process of its own under a deadline. At most
%% pending_handshakes_max wait for that; `weft_strangers' decides which of them is dropped for a
%% newcomer. A weft peer's connection becomes a lane of its link. One that begins like a stock node
%% is given to the function Stock. All others are refused, with one log event, and have no further
%% effect.
%%
%% If there is no descriptor, port or memory for another connection, this is logged once; some
%% callers are dropped by the emulator and the others wait in the kernel's queue. When the listening
%% socket is closed this process ends.
-module(weft_listener).

-behaviour(gen_server).

-export([start_link/2, tunnelled/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([accept_loop/4, examine/3, no_node/3]).

%% Connections that are being authenticated may end and make room meanwhile.
-define(NO_ROOM_PAUSE_MS, 100).

%% Called with a socket, the first message, and the connection's place among those that wait; in the
%% connection's own process, which owns the socket.
-type stock() :: {module(), Function :: atom()}.

-record(listener, {listen :: inet:socket(),
                   stock :: stock(),
                   acceptor :: pid()}).

%% @doc Starts to accept; linked to the caller. Stock is called for connections that begin like
%% those of a stock node, with the first message of the distribution handshake already read, and
%% returns ok or {error, Reason}.
-spec start_link(inet:socket(), stock()) -> {ok, pid()}.
start_link(Listen, Stock) ->
    gen_server:start_link(?MODULE, {Listen, Stock}, [{spawn_opt, [{priority, max}]}]).

%% @private
init({Listen, Stock}) ->
    process_flag(trap_exit, true),
    {ok, #listener{listen = Listen, stock = Stock, acceptor = acceptor(Listen, Stock)}}.

acceptor(Listen, Stock) ->
    spawn_opt(?MODULE, accept_loop, [Listen, Stock, weft_strangers:new(), ok],
              [link, {priority, max}]).

%% @private
handle_call(Request, _From, Listener) ->
    {reply, weft_stray:call(Request), Listener}.

%% @private
handle_cast(Request, Listener) ->
    ok = weft_stray:message(Request),
    {noreply, Listener}.

%% @private
handle_info({'EXIT', Acceptor, closed}, #listener{acceptor = Acceptor} = Listener) ->
    {stop, {shutdown, closed}, Listener};
%% The acceptor waits in a call of old code, and is killed if that is purged. The connections that
%% it had accepted then end by themselves.
handle_info({'EXIT', Acceptor, _Reason}, #listener{acceptor = Acceptor} = Listener) ->
    #listener{listen = Listen, stock = Stock} = Listener,
    {noreply, Listener#listener{acceptor = acceptor(Listen, Stock)}};
handle_info(Message, Listener) ->
    ok = weft_stray:message(Message),
    {noreply, Listener}.

%% @private
-spec accept_loop(inet:socket(), stock(), weft_strangers:strangers(), Before :: ok | no_room) ->
          no_return().
accept_loop(Listen, Stock, Strangers, Before) ->
    case weft_transport:accept(Listen) of
        {ok, Socket} ->
            Come = weft_strangers:come(Socket, {?MODULE, examine, Stock}, Strangers),
            ?MODULE:accept_loop(Listen, Stock, Come, ok);
        {error, closed} ->
            exit(closed);
        {error, Reason} ->
            _ = Before =:= no_room orelse weft_refusals:report(undefined, {no_room, Reason}),
            %% To accept again at once would be a busy loop.
            receive after ?NO_ROOM_PAUSE_MS -> ok end,
            ?MODULE:accept_loop(Listen, Stock, Strangers, no_room)
    end.

%% @doc The same for a connection that came by a tunnel: runs in the caller, which owns it and
%% bounds how many wait. There are no stock nodes in tunnels.
-spec tunnelled(weft_tunnel:connection()) -> ok.
tunnelled(Connection) ->
    Deadline = erlang:monotonic_time(millisecond) + weft_config:get(handshake_timeout_ms),
    case identify(Connection, {?MODULE, no_node}, Deadline, none) of
        ok -> ok;
        {error, Reason} -> refuse(Connection, undefined, Reason)
    end.

%% @private
-spec no_node(weft_tunnel:connection(), binary(), weft_stranger:place()) ->
          {error, {not_a_node, binary()}}.
no_node(_Connection, <<Start:8/binary, _/binary>>, _Place) -> {error, {not_a_node, Start}};
no_node(_Connection, Start, _Place) -> {error, {not_a_node, Start}}.

%% @private
-spec examine(weft_stranger:place(), {inet:socket(), weft_strangers:peername()}, stock()) -> ok.
examine(Place, {Tcp, Peername}, Stock) ->
    TimeoutMs = weft_config:get(handshake_timeout_ms),
    Deadline = erlang:monotonic_time(millisecond) + TimeoutMs,
    case weft_transport:secure_accepted(Tcp, TimeoutMs) of
        {ok, Socket} ->
            case identify(Socket, Stock, Deadline, Place) of
                ok -> ok;
                {error, Reason} -> refuse(Socket, Peername, Reason)
            end;
        {error, Reason} ->
            refuse(Tcp, Peername, {tls, Reason})
    end.

identify(Socket, {Module, Function}, Deadline, Place) ->
    case weft_handshake:first_message(Socket, Deadline) of
        {hello, Hello} -> answer(Socket, Hello, Deadline, Place);
        {stock, Name} -> Module:Function(Socket, Name, Place);
        {error, Reason} -> {error, Reason}
    end.

answer(Socket, Hello, Deadline, Place) ->
    case weft_handshake:answer(Socket, Hello, Deadline, Place, {weft_links, admit}) of
        {ok, Peer, Purpose} ->
            ok = weft_stranger:settle(Place, true),
            weft_links:attach(Socket, Peer, Purpose);
        {error, Reason} ->
            {error, Reason}
    end.

%% Not logged, because nothing is wrong: calls that cross, and lanes that come after their link was
%% replaced.
refuse(Socket, _Peername, {Reason, _}) when Reason =:= simultaneous; Reason =:= outdated_lane ->
    weft_transport:close(Socket);
refuse(Socket, Peername, Reason) ->
    weft_refusals:report(Peername, Reason),
    weft_transport:close(Socket).
