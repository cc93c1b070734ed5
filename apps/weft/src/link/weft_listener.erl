%% SPDX-License-Identifier: Apache-2.0
%% @doc Accepts connections on the node's one port and finds out what they are.
%%
%% Each connection is authenticated in a process of its own under a deadline; at most
%% pending_handshakes_max are under way, further ones are closed at once. A weft peer's connection
%% becomes a lane of its link; one that begins like a stock node is given to the Stock function;
%% all else is refused, with one log event, and nobody else notices.
%%
%% While there is no descriptor, port or memory for another connection, which is logged once, some
%% callers are dropped by the emulator and the others wait in the kernel's queue. When the listening
%% socket is closed this process ends.
-module(weft_listener).

-export([start_link/2, tunnelled/1]).
-export([accept_loop/4]).

%% Connections in hand may end and make room meanwhile.
-define(NO_ROOM_PAUSE_MS, 100).

-type stock() :: fun((weft_transport:socket(), FirstMessage :: binary()) -> ok | {error, term()}).

%% @doc Starts to accept; linked to the caller. Stock is called in the connection's own process,
%% which owns the socket, with the first message of the distribution handshake already read.
-spec start_link(inet:socket(), stock()) -> pid().
start_link(Listen, Stock) ->
    Pending = counters:new(1, []),
    spawn_opt(?MODULE, accept_loop, [Listen, Stock, Pending, ok], [link, {priority, max}]).

%% @private
-spec accept_loop(inet:socket(), stock(), counters:counters_ref(), Before :: ok | no_room) ->
          no_return().
accept_loop(Listen, Stock, Pending, Before) ->
    case weft_transport:accept(Listen) of
        {ok, Socket} ->
            admit(Socket, Stock, Pending, counters:get(Pending, 1)),
            accept_loop(Listen, Stock, Pending, ok);
        {error, closed} ->
            exit(closed);
        {error, Reason} ->
            _ = Before =:= no_room orelse weft_refusals:report(undefined, {no_room, Reason}),
            %% Accepting at once would spin.
            receive after ?NO_ROOM_PAUSE_MS -> ok end,
            accept_loop(Listen, Stock, Pending, no_room)
    end.

admit(Socket, Stock, Pending, Count) ->
    case Count < weft_config:get(pending_handshakes_max) of
        true ->
            counters:add(Pending, 1, 1),
            Pid = spawn_opt(fun() -> examine_own(Stock, Pending) end,
                            [{priority, weft_turn:priority(control)}]),
            _ = weft_transport:controlling_process(Socket, Pid),
            Pid ! {socket, Socket},
            ok;
        false ->
            weft_config:get(transport) =:= tcp andalso weft_handshake:decline(Socket, overload),
            refuse(Socket, peername(Socket), overload)
    end.

examine_own(Stock, Pending) ->
    receive
        {socket, Socket} ->
            try examine(Socket, Stock)
            after counters:sub(Pending, 1, 1)
            end
    end.

%% @doc The same for a connection that came by a tunnel: runs in the caller, which owns it and
%% bounds how many wait. There are no stock nodes in tunnels.
-spec tunnelled(weft_tunnel:connection()) -> ok.
tunnelled(Connection) ->
    Deadline = erlang:monotonic_time(millisecond) + weft_config:get(handshake_timeout_ms),
    Stock = fun(_Connection, <<Start:8/binary, _/binary>>) -> {error, {not_a_node, Start}};
               (_Connection, Start) -> {error, {not_a_node, Start}}
            end,
    case identify(Connection, Stock, Deadline) of
        ok -> ok;
        {error, Reason} -> refuse(Connection, undefined, Reason)
    end.

examine(Tcp, Stock) ->
    %% Asked now: a socket that was closed does not know any more.
    Peername = peername(Tcp),
    TimeoutMs = weft_config:get(handshake_timeout_ms),
    Deadline = erlang:monotonic_time(millisecond) + TimeoutMs,
    case weft_transport:secure_accepted(Tcp, TimeoutMs) of
        {ok, Socket} ->
            case identify(Socket, Stock, Deadline) of
                ok -> ok;
                {error, Reason} -> refuse(Socket, Peername, Reason)
            end;
        {error, Reason} ->
            refuse(Tcp, Peername, {tls, Reason})
    end.

peername(Socket) ->
    case weft_transport:peername(Socket) of
        {ok, Peername} -> Peername;
        {error, _} -> undefined
    end.

identify(Socket, Stock, Deadline) ->
    case weft_handshake:first_message(Socket, Deadline) of
        {hello, Hello} -> answer(Socket, Hello, Deadline);
        {stock, Name} -> Stock(Socket, Name);
        {error, Reason} -> {error, Reason}
    end.

answer(Socket, Hello, Deadline) ->
    case weft_handshake:answer(Socket, Hello, Deadline) of
        {ok, Peer, Purpose} -> weft_links:attach(Socket, Peer, Purpose);
        {error, Reason} -> {error, Reason}
    end.

%% Crossing calls are no fault of anybody.
refuse(Socket, _Peername, {simultaneous, _}) ->
    weft_transport:close(Socket);
refuse(Socket, Peername, Reason) ->
    weft_refusals:report(Peername, Reason),
    weft_transport:close(Socket).
