%% SPDX-License-Identifier: Apache-2.0
%% @doc A session: the process under one distribution connection, the VM's distribution controller.
%%
%% It fetches what the VM wants to send, queues it fairly (`weft_outlet') and pushes it to its
%% stream (`weft_stream'). The stream numbers payloads, writes them to the lanes of the current path
%% itself and survives the loss of paths. While there is no path the queues fill and senders wait,
%% as on any busy connection. When the stream ends the session ends, and this is the nodedown.
%%
%% A connection has these processes: the process of `dist_util' (handshake, ticks), this one, and
%% the one that delivers input (`weft_session_input'). They end together.
-module(weft_session).
-behaviour(gen_server).

-export([start_link/1, accept/4, connect/1, send_handshake/2, recv_handshake/2,
         handshake_complete/3, await_earlier/1, tick/2, counters/1, setopts/2, getopts/2,
         peername/2, info/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

%% On the way of each message: not calls.
-compile({inline, [at_once/2]}).

%% What goes out at a disconnect, at most.
-define(LAST_PACKETS, 10000).

%% With more than that to send it takes more memory than usual, until there is nothing at a tick.
-define(BUSY_QUEUE_BYTES, 131072).

-record(session, {node :: node() | undefined,
                  name :: binary(),
                  counters :: weft_session_counters:counters(),
                  input :: pid(),
                  hosted :: boolean(),
                  stream :: weft_stream:stream(),
                  outlet :: weft_outlet:outlet(),
                  handle :: erlang:dist_handle() | undefined,
                  usual_heap :: weft_session_memory:usual() | undefined,
                  connecting :: gen_server:from() | undefined,
                  %% Does the kernel know of this attempt?
                  is_begun = false :: boolean(),
                  handshake = weft_handshake_stream:new() :: weft_handshake_stream:stream()}).

%% --- interface --------------------------------------------------------------------------------

%% @doc A session to a node, not yet connected. It is linked to the process that dist_util will run
%% in. That is not its parent, because the end of a session is no error of a server.
-spec start_link(node()) -> {ok, pid()} | {error, term()}.
start_link(Node) ->
    gen_server:start(?MODULE, {initiator, Node, self()}, spawn_options()).

%% @doc The other end of a session that a peer has opened; called for the switch, which is told by
%% `weft_circuit:join/5'. Starts the distribution handshake with the kernel. Host is the process
%% that will deliver input, or `own_process' for a process of its own.
-spec accept(weft_sessions:id(), Peer :: binary(), weft_stream:path(),
             Host :: pid() | own_process) ->
          {ok, Session :: pid()} | {error, term()}.
accept(Id, Peer, Path, Host) ->
    gen_server:start(?MODULE, {acceptor, Id, Peer, Path, Host}, spawn_options()).

spawn_options() ->
    [{spawn_opt, [{priority, weft_turn:priority(data)},
                  {message_queue_data, off_heap}, {fullsweep_after, 10}]}].

%% @doc Opens a path. Returns when the peer has accepted it; the caller's setup timer bounds it.
-spec connect(pid()) -> ok | {error, term()}.
connect(Session) -> gen_server:call(Session, connect, infinity).

-spec send_handshake(pid(), iodata()) -> ok | {error, term()}.
send_handshake(Session, Packet) -> gen_server:call(Session, {send, Packet}, infinity).

-spec recv_handshake(pid(), timeout()) -> {ok, list()} | {error, term()}.
recv_handshake(Session, TimeoutMs) -> gen_server:call(Session, {recv, TimeoutMs}, infinity).

-spec handshake_complete(pid(), node(), erlang:dist_handle()) -> ok.
handshake_complete(Session, Node, Handle) ->
    gen_server:call(Session, {handshake_complete, Node, Handle}, infinity).

%% @doc Waits as long as another session with the same peer is still in its handshake after the peer
%% has closed it. Until that one has ended the kernel takes it to be pending, and would refuse this
%% one or mistake it for the other. The caller's setup timer bounds the wait. `closed': the peer has
%% closed this one by then; for the kernel it would be pending until it has failed, and with it
%% whoever wants to connect meanwhile.
-spec await_earlier(pid()) -> ok | closed.
await_earlier(Session) ->
    #{name := Peer} = gen_server:call(Session, info, infinity),
    ok = lists:foreach(fun await_end_of_handshake/1,
                       weft_sessions:of_distribution(Peer) -- [Session]),
    case gen_server:call(Session, is_closed, infinity) of
        true -> closed;
        false -> ok
    end.

await_end_of_handshake(Session) ->
    Monitor = erlang:monitor(process, Session),
    try gen_server:call(Session, is_to_end, infinity) of
        true -> receive {'DOWN', Monitor, process, Session, _} -> ok end;
        false -> erlang:demonitor(Monitor, [flush])
    catch
        exit:_ -> erlang:demonitor(Monitor, [flush])
    end.

%% @doc A tick of the kernel. The process of a session at rest is not woken for it.
-spec tick(pid(), weft_session_counters:counters()) -> ok.
tick(Session, Counters) ->
    _ = weft_stream:tick_at_rest(Session, Counters) orelse (Session ! tick),
    ok.

-spec counters(pid()) -> weft_session_counters:counters().
counters(Session) -> gen_server:call(Session, counters, infinity).

%% @doc Socket options of the lane that the session uses now.
-spec setopts(pid(), list()) -> ok | {error, term()}.
setopts(Session, Options) -> gen_server:call(Session, {setopts, Options}, infinity).

-spec getopts(pid(), list()) -> {ok, list()} | {error, term()}.
getopts(Session, Options) -> gen_server:call(Session, {getopts, Options}, infinity).

%% @doc The address at the other end of the connection that the session uses now, if there is one
%% for all of it, which leads to Node and to nobody else.
-spec peername(node(), pid()) ->
          {ok, {inet:ip_address(), inet:port_number()}} | {error, circuit | lanes | term()}.
peername(Node, Session) -> gen_server:call(Session, {peername, Node}, infinity).

%% @doc Peer, path, state, bytes, resumes and the last error, for `weft:why/1' and status.
-spec info(pid()) -> map().
info(Session) -> gen_server:call(Session, info).

%% --- start ------------------------------------------------------------------------------------

%% @private
init({initiator, Node, Creator}) ->
    case weft_links:owner() of
        undefined -> {stop, {shutdown, not_running}};
        _Runs -> initiator(Node, Creator)
    end;
init({acceptor, Id, Peer, Path, Host}) ->
    Counters = weft_session_counters:new(),
    {Input, Hosted} = weft_session_input:of_acceptor(Host, Counters),
    case weft_stream:acceptor(distribution, Id, Peer, Path, Counters, Input) of
        {ok, Stream} ->
            ok = weft_circuit:join(Path, distribution, Peer, Input, Counters),
            net_kernel ! {accept, self(), self(), weft_config:get(family), weft},
            {ok, #session{name = Peer, counters = Counters, input = Input, hosted = Hosted,
                          outlet = outlet(), stream = weft_stream:say_accepted(Stream)}};
        {error, taken} ->
            {stop, {shutdown, taken}}
    end.

initiator(Node, Creator) ->
    link(Creator),
    Counters = weft_session_counters:new(),
    {Input, Hosted} = weft_session_input:of_initiator(Node, Counters),
    {ok, #session{node = Node, name = atom_to_binary(Node), counters = Counters, input = Input,
                  hosted = Hosted, outlet = outlet(),
                  stream = weft_stream:initiator(distribution, Node, Counters, Input)}}.

outlet() ->
    weft_outlet:new(weft_config:get(queue_bytes)).

%% --- calls ------------------------------------------------------------------------------------

%% @private
handle_call(connect, From, #session{stream = Stream} = Session) ->
    next(Session#session{connecting = From, is_begun = true,
                         stream = weft_stream:connect(Stream)});
handle_call({send, Packet}, _From, #session{handshake = Stream} = Session) ->
    case weft_handshake_stream:is_closed(Stream) of
        true -> reply({error, closed}, Session);
        false -> reply(ok, send_packet(iolist_to_binary(Packet), Session))
    end;
handle_call({recv, TimeoutMs}, From, Session) ->
    #session{handshake = Stream} = Session,
    next(Session#session{is_begun = true,
                         handshake = weft_handshake_stream:recv(From, TimeoutMs, Stream)});
handle_call({handshake_complete, Node, Handle}, _From, Session) ->
    Connected = connected(Node, Handle, Session),
    _ = weft_handshake_stream:is_closed(Session#session.handshake) andalso ended(Connected),
    reply(ok, Connected);
handle_call(is_to_end, _From, #session{is_begun = IsBegun, handle = Handle} = Session) ->
    reply(IsBegun andalso Handle =:= undefined
              andalso weft_handshake_stream:is_to_end(Session#session.handshake), Session);
handle_call(is_closed, _From, #session{handshake = Stream} = Session) ->
    reply(weft_handshake_stream:is_closed(Stream), Session);
handle_call(counters, _From, #session{counters = Counters} = Session) ->
    reply(Counters, Session);
handle_call({setopts, Options}, _From, Session) ->
    reply(weft_session_socket:setopts(Options, Session#session.stream), Session);
handle_call({getopts, Options}, _From, Session) ->
    reply(weft_session_socket:getopts(Options, Session#session.stream), Session);
handle_call({peername, Node}, _From, Session) ->
    reply(weft_session_socket:peername(Node, Session#session.stream), Session);
handle_call(info, _From, Session) ->
    reply(info_of(Session), Session);
handle_call(Request, _From, Session) ->
    reply(weft_stray:call(Request), Session).

%% @private
handle_cast(Request, Session) ->
    ok = weft_stray:message(Request),
    next(Session).

%% @private
code_change(_Version, #session{stream = Stream, outlet = Outlet} = Session, _Extra) ->
    {ok, Session#session{stream = weft_stream:code_change(Stream),
                         outlet = weft_outlet_core:code_change(Outlet)}}.

%% The VM has a handle for the connection: from now on this process fetches and delivers its frames.
connected(Node, Handle, #session{input = Input, hosted = Hosted, outlet = Outlet} = Session) ->
    _ = process_flag(trap_exit, true),
    ok = erlang:dist_ctrl_input_handler(Handle, Input),
    ok = weft_session_input:connected(Handle, {Input, Hosted}),
    %% What the handshake left would stay for many messages.
    _ = erlang:garbage_collect(),
    Session#session{node = Node, handle = Handle, outlet = weft_outlet:connected(Handle, Outlet)}.

%% --- messages ---------------------------------------------------------------------------------

%% @private
-spec handle_info(term(), #session{}) ->
          {noreply, #session{}} | {noreply, #session{}, 0 | hibernate}.
handle_info(timeout, Session) ->
    next(pump(Session));
handle_info(dist_data, #session{stream = Stream, outlet = Outlet} = Session) ->
    at_once(weft_outlet:at_once(weft_stream:room(express, Stream), Outlet), Session);
handle_info(tick, Session) ->
    rest(send_tick(Session));
handle_info({may_suspend, Key}, #session{outlet = Outlet} = Session) ->
    next(Session#session{outlet = weft_outlet:may_suspend(Key, Outlet)});
handle_info({weft_handshake, Packet}, #session{handshake = Stream} = Session) ->
    next(Session#session{handshake = weft_handshake_stream:arrived(Packet, Stream)});
handle_info({recv_timeout, From}, #session{handshake = Stream} = Session) ->
    next(Session#session{handshake = weft_handshake_stream:timeout(From, Stream)});
handle_info({Kernel, controller, Supervisor}, Session) when is_pid(Kernel) ->
    link(Supervisor),
    Supervisor ! {self(), controller},
    next(Session);
handle_info({Kernel, unsupported_protocol}, Session) when is_pid(Kernel) ->
    die(unsupported_protocol, Session);
handle_info({'EXIT', _Pid, disconnect}, #session{outlet = Outlet} = Session) ->
    %% First send what was sent before the disconnect.
    More = weft_outlet_core:more(Outlet),
    die(disconnect, drained(?LAST_PACKETS, Session#session{outlet = More}));
handle_info({'EXIT', _Pid, net_tick_timeout}, #session{stream = Stream} = Session) ->
    ok = weft_stream:timed_out(Stream),
    die(net_tick_timeout, Session);
handle_info({'EXIT', _Pid, normal}, Session) ->
    next(Session);
handle_info({'EXIT', _Pid, Reason}, Session) ->
    die(Reason, Session);
handle_info(Message, #session{stream = Stream0} = Session) ->
    case weft_stream:handle(Message, Stream0) of
        {Outcome, Stream} -> outcome(Outcome, Session#session{stream = Stream});
        unknown -> next(Session)
    end.

outcome(ok, Session) ->
    next(Session);
outcome(connected, #session{connecting = From} = Session) ->
    gen_server:reply(From, ok),
    next(Session#session{connecting = undefined});
outcome({failed, Reason}, #session{connecting = From} = Session) ->
    gen_server:reply(From, {error, Reason}),
    next(Session#session{connecting = undefined});
outcome(ended, Session) ->
    ended(Session);
outcome(lost, #session{stream = Stream} = Session) ->
    die(weft_stream:ended(Stream), Session).

%% The end is no error of this process, so it is an exit signal and not a crash report. The kernel
%% turns it into the nodedown, before which all has to be delivered that has come.
die(Reason, #session{handle = Handle, input = Input, hosted = Hosted} = Session) ->
    _ = Handle =:= undefined orelse weft_session_input:finish({Input, Hosted}),
    _ = process_flag(trap_exit, false),
    exit(self(), Reason),
    {noreply, Session}.

%% During the handshake it is dist_util that sees the end and decides what it means.
ended(#session{handle = undefined, handshake = Handshake, stream = Stream} = Session) ->
    {noreply, Session#session{handshake = weft_handshake_stream:close(Handshake),
                              stream = weft_stream:close(Stream)}};
ended(#session{stream = Stream} = Session) ->
    die(weft_stream:ended(Stream), Session).

%% --- sending ----------------------------------------------------------------------------------

at_once({none, Outlet}, Session) ->
    next(Session#session{outlet = Outlet});
at_once({Left, Payload, Bytes, Outlet}, #session{stream = Stream} = Session0) ->
    Session = Session0#session{outlet = Outlet,
                               stream = weft_stream:push(frames, Payload, Bytes, Stream)},
    case Left of
        all -> {noreply, Session};
        more -> next(Session)
    end.

send_tick(#session{stream = Stream} = Session) ->
    usual_heap(Session#session{stream = weft_stream:spare(weft_stream:tick(Stream))}).

send_packet(Packet, #session{stream = Stream} = Session) ->
    Session#session{stream = weft_stream:push(handshake, Packet, byte_size(Packet), Stream)}.

%% Messages first, then one packet, then messages again.
next(Session) ->
    case ready(Session) of
        true -> {noreply, Session, 0};
        false -> {noreply, Session}
    end.

%% Nothing was sent since the last tick of the kernel: the process gives its memory back. If nothing
%% waits any more, which is mostly so one tick later, it gets no more ticks. Until then there is
%% little to give.
rest(#session{outlet = Outlet, stream = Stream} = Session) ->
    case weft_session_core:may_rest(weft_stream:core(Stream), Outlet) of
        true ->
            case weft_stream:rest(Stream) of
                true -> {noreply, Session, hibernate};
                false -> resting(weft_session_memory:is_little(), Session)
            end;
        false ->
            next(Session)
    end.

resting(true, Session) -> {noreply, Session};
resting(false, Session) -> {noreply, Session, hibernate}.

reply(Reply, Session) ->
    case ready(Session) of
        true -> {reply, Reply, Session, 0};
        false -> {reply, Reply, Session}
    end.

ready(#session{stream = Stream, outlet = Outlet}) ->
    weft_session_core:is_ready(weft_stream:core(Stream), Outlet).

pump(#session{stream = Stream0, outlet = Outlet} = Session) ->
    case weft_session_core:first(weft_stream:core(Stream0), Outlet) of
        flush ->
            {ok, Stream} = weft_stream:flush(Stream0),
            Session#session{stream = Stream};
        fetch ->
            send_next(with_heap(Session#session{outlet = weft_outlet:fetch(Outlet)}));
        send ->
            send_next(Session)
    end.

%% Sends as much as window and lanes take at once: a disconnect does not wait for a slow peer.
drained(0, Session) ->
    Session;
drained(Packets, Session) ->
    case ready(Session) of
        true -> drained(Packets - 1, pump(Session));
        false -> Session
    end.

with_heap(#session{usual_heap = undefined, outlet = Outlet} = Session) ->
    case weft_outlet_core:queued_bytes(Outlet) > ?BUSY_QUEUE_BYTES of
        true -> Session#session{usual_heap = weft_session_memory:take()};
        false -> Session
    end;
with_heap(Session) ->
    Session.

usual_heap(#session{usual_heap = [_ | _] = Usual, outlet = Outlet} = Session) ->
    case weft_outlet_core:queued_bytes(Outlet) of
        0 ->
            ok = weft_session_memory:give_back(Usual),
            Session#session{usual_heap = undefined};
        _ ->
            Session
    end;
usual_heap(Session) ->
    Session.

send_next(#session{stream = Stream, outlet = Outlet0} = Session) ->
    Room = weft_stream:room(express, Stream),
    case weft_outlet:take(Room, weft_stream:window_bytes(Stream), Outlet0) of
        {Payload, Bytes, Order, Outlet} ->
            Session#session{outlet = Outlet,
                            stream = weft_stream:push(Order, Payload, Bytes, Stream)};
        empty ->
            Session
    end.

%% --- what others see --------------------------------------------------------------------------

info_of(#session{stream = Stream, handle = Handle, outlet = Outlet} = Session) ->
    Info = #{link := Link} = maps:merge(weft_stream:info(Stream), weft_outlet_core:info(Outlet)),
    Info#{node => Session#session.node, name => Session#session.name,
          %% One that begins has no path yet, either, but has lost none.
          state => case {Handle, Link} of
                       {undefined, _} -> handshake;
                       {_, undefined} -> resuming;
                       {_, _} -> up
                   end}.
