%% SPDX-License-Identifier: Apache-2.0
%% @doc Accepts connections on the node's one port and finds out what they are.
%%
%% Each connection is authenticated in a process of its own under a deadline; at most
%% pending_handshakes_max are under way, further ones are closed at once. A weft peer's connection
%% becomes a lane of its link; one that begins like a stock node is given to the function Stock;
%% all else is refused, with one log event, and nobody else notices.
%%
%% While there is no descriptor, port or memory for another connection, which is logged once, some
%% callers are dropped by the emulator and the others wait in the kernel's queue. When the listening
%% socket is closed this process ends.
-module(weft_listener).

-behaviour(gen_server).

-export([start_link/2, tunnelled/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([accept_loop/4, examine_own/2, no_node/2]).

%% Connections in hand may end and make room meanwhile.
-define(NO_ROOM_PAUSE_MS, 100).

%% Called with a socket and the first message, in the connection's own process, which owns it.
-type stock() :: {module(), Function :: atom()}.

-record(listener, {listen :: inet:socket(),
                   stock :: stock(),
                   pending :: counters:counters_ref(),
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
    Pending = counters:new(1, []),
    {ok, #listener{listen = Listen, stock = Stock, pending = Pending,
                   acceptor = acceptor(Listen, Stock, Pending)}}.

acceptor(Listen, Stock, Pending) ->
    spawn_opt(?MODULE, accept_loop, [Listen, Stock, Pending, ok], [link, {priority, max}]).

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
%% It waits in a call of old code, should that be purged.
handle_info({'EXIT', Acceptor, _Reason}, #listener{acceptor = Acceptor} = Listener) ->
    #listener{listen = Listen, stock = Stock, pending = Pending} = Listener,
    {noreply, Listener#listener{acceptor = acceptor(Listen, Stock, Pending)}};
handle_info(Message, Listener) ->
    ok = weft_stray:message(Message),
    {noreply, Listener}.

%% @private
-spec accept_loop(inet:socket(), stock(), counters:counters_ref(), Before :: ok | no_room) ->
          no_return().
accept_loop(Listen, Stock, Pending, Before) ->
    case weft_transport:accept(Listen) of
        {ok, Socket} ->
            admit(Socket, Stock, Pending, counters:get(Pending, 1)),
            ?MODULE:accept_loop(Listen, Stock, Pending, ok);
        {error, closed} ->
            exit(closed);
        {error, Reason} ->
            _ = Before =:= no_room orelse weft_refusals:report(undefined, {no_room, Reason}),
            %% Accepting at once would spin.
            receive after ?NO_ROOM_PAUSE_MS -> ok end,
            ?MODULE:accept_loop(Listen, Stock, Pending, no_room)
    end.

admit(Socket, Stock, Pending, Count) ->
    case Count < weft_config:get(pending_handshakes_max) of
        true ->
            counters:add(Pending, 1, 1),
            Pid = spawn_opt(?MODULE, examine_own, [Stock, Pending],
                            [{priority, weft_turn:priority(control)}]),
            _ = weft_transport:controlling_process(Socket, Pid),
            Pid ! {socket, Socket},
            ok;
        false ->
            weft_config:get(transport) =:= tcp andalso weft_handshake:decline(Socket, overload),
            refuse(Socket, peername(Socket), overload)
    end.

%% @private
-spec examine_own(stock(), counters:counters_ref()) -> ok.
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
    case identify(Connection, {?MODULE, no_node}, Deadline) of
        ok -> ok;
        {error, Reason} -> refuse(Connection, undefined, Reason)
    end.

%% @private
-spec no_node(weft_tunnel:connection(), binary()) -> {error, {not_a_node, binary()}}.
no_node(_Connection, <<Start:8/binary, _/binary>>) -> {error, {not_a_node, Start}};
no_node(_Connection, Start) -> {error, {not_a_node, Start}}.

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
        {stock, Name} -> offer(Stock, Socket, Name);
        {error, Reason} -> {error, Reason}
    end.

offer({Module, Function}, Socket, FirstMessage) -> Module:Function(Socket, FirstMessage).

answer(Socket, Hello, Deadline) ->
    case weft_handshake:answer(Socket, Hello, Deadline) of
        {ok, Peer, Purpose} -> weft_links:attach(Socket, Peer, Purpose);
        {error, Reason} -> {error, Reason}
    end.

%% Crossing calls are no fault of anybody, nor are lanes that come after their link was made anew.
refuse(Socket, _Peername, {Reason, _}) when Reason =:= simultaneous; Reason =:= outdated_lane ->
    weft_transport:close(Socket);
refuse(Socket, Peername, Reason) ->
    weft_refusals:report(Peername, Reason),
    weft_transport:close(Socket).
