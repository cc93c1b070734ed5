%% SPDX-License-Identifier: Apache-2.0
%% @doc A connection with a node that uses the stock TLS carrier (`-proto_dist inet_tls').
%%
%% Stock TLS distribution is packets after 32 bit lengths, in the handshake and after it. As in the
%% stock carrier the controller is a process: it fetches from the VM and sends. A second process
%% reads and delivers, so that a full socket in one direction does not stop the other.
-module(weft_stock_tls).
-behaviour(gen_server).

-export([start_link/2, send/2, recv/3, handshake_complete/3, tick/1, getstat/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(PACKETS_IN, 1).
-define(PACKETS_OUT, 2).

%% So long the reader may take to deliver what came before the socket was closed, at most.
-define(CLOSING_MS, 5000).

-record(connection, {socket :: ssl:sslsocket(),
                     first :: binary() | none,
                     packets :: counters:counters_ref(),
                     handle :: erlang:dist_handle() | undefined,
                     is_closed = false :: boolean()}).

%% @doc The controller of a socket that the caller owns; First is a message that was read already.
%% It is linked to the caller, the process of `dist_util', and becomes the owner of the socket.
-spec start_link(ssl:sslsocket(), First :: binary() | none) -> {ok, pid()} | {error, term()}.
start_link(Socket, First) ->
    Packets = counters:new(2, [write_concurrency]),
    {ok, Pid} = gen_server:start_link(?MODULE, {Socket, First, Packets},
                                      [{spawn_opt, [{priority, max}]}]),
    put({?MODULE, Pid}, Packets),
    case ssl:setopts(Socket, [binary, {packet, 4}, {nodelay, true}]) of
        ok -> owned(ssl:controlling_process(Socket, Pid), Pid);
        {error, Reason} -> {error, Reason}
    end.

owned(ok, Pid) -> {ok, Pid};
owned({error, Reason}, _Pid) -> {error, Reason}.

-spec send(pid(), iodata()) -> ok | {error, term()}.
send(Pid, Packet) -> gen_server:call(Pid, {send, Packet}, infinity).

-spec recv(pid(), non_neg_integer(), timeout()) -> {ok, list()} | {error, term()}.
recv(Pid, _Length, TimeoutMs) -> gen_server:call(Pid, {recv, TimeoutMs}, infinity).

-spec handshake_complete(pid(), node(), erlang:dist_handle()) -> ok.
handshake_complete(Pid, _Node, Handle) ->
    gen_server:call(Pid, {handshake_complete, Handle}, infinity).

-spec tick(pid()) -> ok.
tick(Pid) -> Pid ! tick, ok.

%% @doc For the ticker, in the process that started the connection. Asks no process: the controller
%% may be busy sending.
-spec getstat(pid()) -> {ok, non_neg_integer(), non_neg_integer(), 0}.
getstat(Pid) ->
    Packets = get({?MODULE, Pid}),
    {ok, counters:get(Packets, ?PACKETS_IN), counters:get(Packets, ?PACKETS_OUT), 0}.

%% @private
init({Socket, First, Packets}) ->
    {ok, #connection{socket = Socket, first = First, packets = Packets}}.

%% @private
handle_call({send, Packet}, _From, #connection{socket = Socket} = Connection) ->
    {reply, ssl:send(Socket, Packet), Connection};
handle_call({recv, TimeoutMs}, _From, #connection{socket = Socket, first = none} = Connection) ->
    Result = case ssl:recv(Socket, 0, TimeoutMs) of
                 {ok, Packet} -> {ok, binary_to_list(Packet)};
                 Error -> Error
             end,
    {reply, Result, Connection};
handle_call({recv, _TimeoutMs}, _From, #connection{first = First} = Connection) ->
    {reply, {ok, binary_to_list(First)}, Connection#connection{first = none}};
handle_call({handshake_complete, Handle}, _From, #connection{socket = Socket} = Connection) ->
    #connection{packets = Packets} = Connection,
    {ok, Reader} = weft_stock_tls_reader:start_link(Socket, Handle, {Packets, ?PACKETS_IN}),
    ok = ssl:controlling_process(Socket, Reader),
    ok = erlang:dist_ctrl_input_handler(Handle, Reader),
    ok = weft_stock_tls_reader:begins(Reader),
    process_flag(priority, normal),
    erlang:dist_ctrl_get_data_notification(Handle),
    {reply, ok, Connection#connection{handle = Handle}};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
handle_cast(Request, Connection) ->
    ok = weft_stray:message(Request),
    {noreply, Connection}.

%% @private
-spec handle_info(term(), #connection{}) -> {noreply, #connection{}}.
handle_info(give_up, Connection) ->
    %% As in `weft_session', the end is an exit signal and not a crash report.
    exit(self(), connection_closed),
    {noreply, Connection};
handle_info(Request, #connection{is_closed = true} = Connection)
  when Request =:= dist_data; Request =:= tick ->
    {noreply, Connection};
handle_info(dist_data, #connection{handle = Handle} = Connection) ->
    case drain(Connection) of
        ok -> erlang:dist_ctrl_get_data_notification(Handle), {noreply, Connection};
        closed -> {noreply, closed(Connection)}
    end;
handle_info(tick, Connection) ->
    case transmit([], Connection) of
        ok -> {noreply, Connection};
        closed -> {noreply, closed(Connection)}
    end;
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

drain(#connection{handle = Handle} = Connection) ->
    case erlang:dist_ctrl_get_data(Handle) of
        none -> ok;
        Frame ->
            case transmit(Frame, Connection) of
                ok -> drain(Connection);
                closed -> closed
            end
    end.

transmit(Frame, #connection{socket = Socket, packets = Packets}) ->
    counters:add(Packets, ?PACKETS_OUT, 1),
    case ssl:send(Socket, Frame) of
        ok -> ok;
        {error, _} -> closed
    end.

%% The end of this process is the nodedown. The reader, which ends it, may still have messages that
%% came before the socket was closed.
closed(Connection) ->
    _ = erlang:send_after(?CLOSING_MS, self(), give_up),
    Connection#connection{is_closed = true}.
