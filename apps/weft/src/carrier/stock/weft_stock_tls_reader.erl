%% SPDX-License-Identifier: Apache-2.0
%% @doc The half of `weft_stock_tls' that reads: it passes what arrives to the VM. It ends, and the
%% connection with it, when the socket is closed.
-module(weft_stock_tls_reader).
-behaviour(gen_server).

-export([start_link/3, begins/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(reader, {socket :: ssl:sslsocket(),
                 handle :: erlang:dist_handle(),
                 %% Where packets are counted.
                 packets :: {counters:counters_ref(), Index :: pos_integer()}}).

%% @doc A reader, linked to the caller, which is to make it the owner of the socket.
-spec start_link(ssl:sslsocket(), erlang:dist_handle(),
                 {counters:counters_ref(), Index :: pos_integer()}) -> {ok, pid()}.
start_link(Socket, Handle, Packets) ->
    gen_server:start_link(?MODULE, #reader{socket = Socket, handle = Handle, packets = Packets},
                          []).

%% @doc It owns the socket and is the VM's input handler, so it may read now.
-spec begins(pid()) -> ok.
begins(Reader) -> gen_server:cast(Reader, begins).

%% @private
init(Reader) ->
    {ok, Reader}.

%% @private
handle_call(Request, _From, Reader) ->
    {reply, weft_stray:call(Request), Reader}.

%% @private
handle_cast(begins, #reader{socket = Socket} = Reader) ->
    case ssl:setopts(Socket, [{active, true}]) of
        ok -> {noreply, Reader};
        {error, _} -> closed(Reader)
    end.

%% @private
handle_info({ssl, Socket, Frame}, #reader{socket = Socket, handle = Handle,
                                          packets = {Counters, Index}} = Reader) ->
    counters:add(Counters, Index, 1),
    %% An empty one is a tick.
    _ = Frame =:= <<>> orelse erlang:dist_ctrl_put_data(Handle, Frame),
    {noreply, Reader};
handle_info({ssl_closed, Socket}, #reader{socket = Socket} = Reader) ->
    closed(Reader);
handle_info({ssl_error, Socket, _Reason}, #reader{socket = Socket} = Reader) ->
    closed(Reader);
handle_info(Message, Reader) ->
    ok = weft_stray:message(Message),
    {noreply, Reader}.

%% As in `weft_session', the end is an exit signal and not a crash report.
closed(Reader) ->
    exit(self(), connection_closed),
    {noreply, Reader}.
