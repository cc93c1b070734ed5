%% SPDX-License-Identifier: Apache-2.0
%% @doc A session: the reliable, ordered packet stream under one distribution connection.
%%
%% This process is the VM's distribution controller. It fetches what the VM wants to send, joins
%% small frames to batches, numbers them (`weft_outbound_core') and writes them to the lane of its
%% current path itself. The path is a circuit that `weft_switch' opened: {Link, Lane, Label}.
%% When the path breaks the session stays: the VM's queue fills and senders wait as on any busy
%% connection, while the node that began the session looks for another path (the link again, or a
%% route around it) and the other one waits to be found. On the new path both sides say what they
%% have received and repeat the rest. After resume_timeout_ms without a path the session ends, and
%% that is the nodedown.
%%
%% The processes of a connection: the process of `dist_util' (handshake, ticks), this one, and the
%% one that delivers input (`weft_input'). They end together.
-module(weft_session).
-behaviour(gen_server).

-export([start_link/1, accept/4, connect/1, send_handshake/2, recv_handshake/2,
         handshake_complete/3, tick/1, counters/1, setopts/2, getopts/2, peername/1,
         info/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% An opened path that is not answered in this time is given up for another try.
-define(OPEN_TIMEOUT_MS, 3000).
-define(RETRY_MIN_MS, 10).
-define(RETRY_MAX_MS, 250).

-type path() :: {Link :: pid(), weft_lane:lane(), weft_wire:label()}.

-record(session, {id :: weft_sessions:id(),
                  role :: initiator | acceptor,
                  node :: node() | undefined,
                  name :: binary(),
                  counters :: weft_session_counters:counters(),
                  input :: pid(),
                  hosted :: boolean(),
                  out :: weft_outbound_core:state(),
                  path :: path() | undefined,
                  opening :: {pid(), weft_wire:label()} | undefined,
                  link_monitor :: reference() | undefined,
                  established = false :: boolean(),
                  resend = [] :: [weft_outbound_core:item()],
                  waiting = false :: boolean(),
                  handle :: erlang:dist_handle() | undefined,
                  more = false :: boolean(),
                  connecting :: gen_server:from() | undefined,
                  handshake = weft_handshake_stream:new() :: weft_handshake_stream:stream(),
                  retry_ms = ?RETRY_MIN_MS :: pos_integer(),
                  retry_timer :: reference() | undefined,
                  give_up :: reference() | undefined,
                  down_since_ms :: integer() | undefined,
                  resumes = 0 :: non_neg_integer(),
                  last_break :: term(),
                  last_resume_ms :: non_neg_integer() | undefined}).

%% --- interface --------------------------------------------------------------------------------

%% @doc A session to a node, not yet connected; linked to the process that dist_util will run in.
-spec start_link(node()) -> {ok, pid()}.
start_link(Node) ->
    gen_server:start_link(?MODULE, {initiator, Node}, spawn_options()).

%% @doc The other end of a session that a peer has opened; called by the switch. Starts the
%% distribution handshake with the kernel. Host is the process that will deliver input, or
%% `own_process' for one of its own.
-spec accept(weft_sessions:id(), Peer :: binary(), path(), Host :: pid() | own_process) ->
          {ok, Session :: pid(), Input :: pid(), weft_session_counters:counters()}.
accept(Id, Peer, Path, Host) ->
    {ok, Session} = gen_server:start(?MODULE, {acceptor, Id, Peer, Path, Host}, spawn_options()),
    {Input, Counters} = gen_server:call(Session, accepted, infinity),
    {ok, Session, Input, Counters}.

spawn_options() ->
    [{spawn_opt, [{message_queue_data, off_heap}, {fullsweep_after, 10}]}].

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

-spec tick(pid()) -> ok.
tick(Session) -> Session ! tick, ok.

-spec counters(pid()) -> weft_session_counters:counters().
counters(Session) -> gen_server:call(Session, counters, infinity).

%% @doc Socket options of the lane that the session uses now.
-spec setopts(pid(), list()) -> ok | {error, term()}.
setopts(Session, Options) -> gen_server:call(Session, {setopts, Options}, infinity).

-spec getopts(pid(), list()) -> {ok, list()} | {error, term()}.
getopts(Session, Options) -> gen_server:call(Session, {getopts, Options}, infinity).

%% @doc The address at the other end of the lane that the session uses now.
-spec peername(pid()) -> {ok, {inet:ip_address(), inet:port_number()}} | {error, term()}.
peername(Session) -> gen_server:call(Session, peername, infinity).

%% @doc Peer, path, state, bytes, resumes and the last error, for `weft:why/1' and status.
-spec info(pid()) -> map().
info(Session) -> gen_server:call(Session, info).

%% --- start ------------------------------------------------------------------------------------

%% @private
init({initiator, Node}) ->
    process_flag(priority, max),
    Counters = weft_session_counters:new(),
    Id = weft_random:bytes(16),
    {Input, Hosted} = case weft_path:choose(Node) of
                          direct ->
                              {ok, Link} = weft_links:ensure(Node),
                              weft_link:handler(Link, {host, self(), Counters}),
                              {Link, true};
                          _ ->
                              {own_input(Counters), false}
                      end,
    {ok, new(#session{id = Id, role = initiator, node = Node, name = atom_to_binary(Node),
                      counters = Counters, input = Input, hosted = Hosted, out = outbound()})};
init({acceptor, Id, Peer, Path, Host}) ->
    process_flag(priority, max),
    Counters = weft_session_counters:new(),
    {Input, Hosted} = case Host of
                          own_process -> {own_input(Counters), false};
                          Link -> {Link, true}
                      end,
    Session = new(#session{id = Id, role = acceptor, name = Peer, counters = Counters,
                           input = Input, hosted = Hosted, out = outbound(), established = true}),
    {ok, on_path(Path, Session)}.

new(#session{id = Id, input = Input, name = Name} = Session) ->
    weft_sessions:add(Id, self(), Input, Name),
    Session.

outbound() ->
    weft_outbound_core:new(weft_config:get(window_bytes)).

own_input(Counters) ->
    {ok, Input} = weft_input_proc:start_link(self(), Counters, weft_config:get(window_bytes)),
    Input.

%% --- calls ------------------------------------------------------------------------------------

%% @private
handle_call(accepted, _From, #session{input = Input, counters = Counters} = Session) ->
    net_kernel ! {accept, self(), self(), weft_config:get(family), weft},
    reply({Input, Counters}, say_accepted(Session));
handle_call(connect, From, Session) ->
    next(attach(Session#session{connecting = From}));
handle_call({send, Packet}, _From, #session{handshake = Stream} = Session) ->
    case weft_handshake_stream:is_closed(Stream) of
        true -> reply({error, closed}, Session);
        false -> reply(ok, push(handshake, iolist_to_binary(Packet), Session))
    end;
handle_call({recv, TimeoutMs}, From, Session) ->
    #session{handshake = Stream} = Session,
    next(Session#session{handshake = weft_handshake_stream:recv(From, TimeoutMs, Stream)});
handle_call({handshake_complete, Node, Handle}, _From, Session) ->
    Connected = connected(Node, Handle, Session),
    _ = weft_handshake_stream:is_closed(Session#session.handshake) andalso ended(Connected),
    reply(ok, Connected);
handle_call(counters, _From, #session{counters = Counters} = Session) ->
    reply(Counters, Session);
handle_call({setopts, Options}, _From, Session) ->
    reply(with_socket(fun(S) -> weft_transport:user_setopts(S, Options) end, Session), Session);
handle_call(peername, _From, Session) ->
    reply(with_socket(fun weft_transport:peername/1, Session), Session);
handle_call({getopts, Options}, _From, Session) ->
    reply(with_socket(fun(S) -> weft_transport:getopts(S, Options) end, Session), Session);
handle_call(info, _From, Session) ->
    reply(info_of(Session), Session).

%% @private
handle_cast(Request, Session) ->
    {stop, {unexpected_cast, Request}, Session}.

with_socket(Fun, #session{path = {_, Lane, _}}) -> Fun(weft_lane:socket(Lane));
with_socket(_Fun, #session{path = undefined}) -> {error, enotconn}.

%% The VM has a handle for the connection: from now on its frames are ours to fetch and deliver.
connected(Node, Handle, #session{input = Input, hosted = Hosted} = Session) ->
    ok = erlang:dist_ctrl_input_handler(Handle, Input),
    ok = case Hosted of
             true -> weft_link:handler(Input, {connected, self(), Handle});
             false -> weft_input_proc:connected(Input, Handle)
         end,
    false = erlang:dist_ctrl_set_opt(Handle, get_size, true),
    process_flag(priority, normal),
    erlang:dist_ctrl_get_data_notification(Handle),
    Session#session{node = Node, handle = Handle}.

%% --- messages ---------------------------------------------------------------------------------

%% @private
-spec handle_info(dist_data | tick | {weft_lane, ready, weft_transport:socket()}
                  | {weft_ack, weft_wire:sequence()} | {weft_handshake, binary()}
                  | {weft_path, opening, pid(), weft_wire:label()}
                  | {weft_path, accepted | reattached, pid(), weft_lane:lane(), weft_wire:label(),
                     weft_wire:sequence()}
                  | {weft_path, closed, pid(), weft_wire:label() | any, term()}
                  | term(), #session{}) ->
          {noreply, #session{}} | {noreply, #session{}, 0}.
handle_info(timeout, Session) ->
    next(pump(Session));
handle_info(dist_data, Session) ->
    next(Session#session{more = true});
handle_info({weft_ack, Sequence}, #session{out = Out} = Session) ->
    next(Session#session{out = weft_outbound_core:acked(Sequence, Out)});
handle_info({weft_lane, ready, Socket}, Session) ->
    next(lane_ready(Socket, Session));
handle_info(tick, Session) ->
    next(send_tick(Session));
handle_info({weft_handshake, Packet}, Session) ->
    #session{handshake = Stream} = Session,
    next(Session#session{handshake = weft_handshake_stream:arrived(Packet, Stream)});
handle_info({recv_timeout, From}, #session{handshake = Stream} = Session) ->
    next(Session#session{handshake = weft_handshake_stream:timeout(From, Stream)});
handle_info({weft_path, opening, Link, Label}, Session) ->
    next(retry_after(?OPEN_TIMEOUT_MS, Session#session{opening = {Link, Label}}));
handle_info({weft_path, accepted, Link, Lane, Label, Received},
            #session{opening = {Link, Label}} = Session) ->
    next(accepted({Link, Lane, Label}, Received, Session));
handle_info({weft_path, reattached, Link, Lane, Label, Received}, Session) ->
    next(reattached({Link, Lane, Label}, Received, Session));
handle_info({weft_path, available, Link}, #session{path = {Other, _, _}} = Session)
  when Other =/= Link ->
    next(attach(Session));
handle_info({weft_path, closed, Link, Label, Reason}, Session) ->
    closed(Link, Label, Reason, Session);
handle_info(retry, #session{path = undefined} = Session) ->
    next(attach(Session#session{retry_timer = undefined}));
handle_info(give_up, #session{path = undefined} = Session) ->
    ended(Session);
handle_info({'DOWN', Ref, process, Link, _},
            #session{link_monitor = Ref, input = Link} = Session) ->
    ended(Session);
handle_info({'DOWN', Ref, process, Link, Reason}, #session{link_monitor = Ref} = Session) ->
    closed(Link, any, {link_process, Reason}, Session#session{link_monitor = undefined});
handle_info({Kernel, controller, Supervisor}, Session) when is_pid(Kernel) ->
    link(Supervisor),
    Supervisor ! {self(), controller},
    next(Session);
handle_info({Kernel, unsupported_protocol}, Session) when is_pid(Kernel) ->
    exit(self(), unsupported_protocol),
    {noreply, Session};
handle_info(_Stale, Session) ->
    next(Session).

%% Unnumbered: when the path is down there is nothing to prove life with.
send_tick(#session{path = {_, Lane, Label}, counters = Counters} = Session) ->
    _ = weft_lane:send(Lane, weft_wire:tick(Label), 5),
    weft_session_counters:packet_out(Counters, 5),
    Session;
send_tick(Session) ->
    Session.

%% --- paths ------------------------------------------------------------------------------------

%% The initiator asks for a path; the acceptor waits to be found.
attach(#session{role = acceptor} = Session) ->
    Session;
attach(#session{handshake = Stream} = Session) ->
    case weft_handshake_stream:is_closed(Stream) of
        true -> Session;
        false -> open(Session)
    end.

open(#session{opening = {Link, Label}} = Session) ->
    weft_link:handler(Link, {drop, Label}),
    open(Session#session{opening = undefined});
open(#session{node = Node, established = Established, id = Id, input = Input,
              counters = Counters} = Session0) ->
    case path_link(Node) of
        {ok, Link, IsUp} ->
            Session = case Session0 of
                          #session{path = undefined} -> watch_link(Link, Session0);
                          _ -> Session0
                      end,
            Open = #{mode => case Established of true -> resume; false -> new end,
                     hops => weft_config:get(hop_limit), session => Id,
                     received => weft_session_counters:received(Counters),
                     source => weft_identity:name(), target => atom_to_binary(Node)},
            weft_link:handler(Link, {open, self(), Input, Open}),
            wait_for_link(IsUp, Session#session{opening = undefined});
        {error, Reason} ->
            failed(Reason, Session0)
    end.

%% A link that is down opens when it comes up; by then the router may know a way around.
wait_for_link(false, #session{established = true, retry_ms = RetryMs} = Session) ->
    retry_after(RetryMs, Session#session{retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)});
wait_for_link(_IsUp, Session) ->
    retry_after(?OPEN_TIMEOUT_MS, Session).

path_link(Node) ->
    case weft_path:choose(Node) of
        direct -> link_of(Node, weft_links:up(Node));
        {via, NextHop} -> up_link(NextHop, weft_links:up(NextHop));
        no_route -> {error, no_route}
    end.

%% A next hop whose link is down is one that the router is about to replace.
up_link(NextHop, true) -> link_of(NextHop, true);
up_link(_NextHop, false) -> {error, broken}.

link_of(Node, IsUp) ->
    {ok, Link} = weft_links:ensure(Node),
    {ok, Link, IsUp}.

watch_link(Link, #session{link_monitor = Monitor} = Session) ->
    is_reference(Monitor) andalso erlang:demonitor(Monitor, [flush]),
    Session#session{link_monitor = erlang:monitor(process, Link)}.

%% A first attempt that fails tells the caller; later ones go on until the session gives up.
failed(Reason, #session{established = false, connecting = From} = Session)
  when From =/= undefined, Reason =/= broken, Reason =/= {dial, simultaneous} ->
    gen_server:reply(From, {error, Reason}),
    Session#session{connecting = undefined};
failed(Reason, #session{retry_ms = RetryMs} = Session) ->
    retry_after(RetryMs, Session#session{last_break = Reason, opening = undefined,
                                         retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)}).

retry_after(DelayMs, #session{retry_timer = Timer} = Session) ->
    is_reference(Timer) andalso erlang:cancel_timer(Timer),
    Session#session{retry_timer = erlang:send_after(DelayMs, self(), retry)}.

%% Our open was accepted: the first path, or one that resumes.
accepted(Path, _Received, #session{established = false, connecting = From} = Session) ->
    gen_server:reply(From, ok),
    on_path(Path, Session#session{established = true, connecting = undefined});
accepted(Path, Received, Session) ->
    resume(Path, Received, drop_path(Session)).

%% The peer found us by another path. Our count goes first, so that it can repeat from there.
reattached(Path, Received, Session) ->
    resume(Path, Received, say_accepted(on_path(Path, drop_path(Session)))).

say_accepted(#session{path = {_, Lane, Label}, counters = Counters} = Session) ->
    Received = weft_session_counters:received(Counters),
    _ = weft_lane:send(Lane, weft_wire:accept(Label, Received), 13),
    Session.

resume(Path, Received, #session{out = Out0, resumes = Resumes} = Session0) ->
    case weft_outbound_core:resume(Received, Out0) of
        {ok, Items, Out} ->
            Session = on_path(Path, Session0),
            Session#session{out = Out, resend = Items, resumes = Resumes + 1};
        {error, lost} ->
            exit(self(), connection_closed),
            Session0#session{last_break = resume_lost}
    end.

on_path({Link, _, _} = Path, #session{give_up = GiveUp, retry_timer = Retry, counters = Counters,
                                      down_since_ms = SinceMs} = Session0) ->
    _ = [erlang:cancel_timer(Timer) || Timer <- [GiveUp, Retry], is_reference(Timer)],
    weft_session_counters:set_path(Counters, up),
    Session = watch_link(Link, Session0),
    Session#session{path = Path, opening = undefined, give_up = undefined,
                    retry_timer = undefined, retry_ms = ?RETRY_MIN_MS, waiting = false,
                    resend = [], down_since_ms = undefined,
                    last_resume_ms = case SinceMs of
                                         undefined -> Session0#session.last_resume_ms;
                                         _ -> now_ms() - SinceMs
                                     end}.

drop_path(#session{path = {Link, _, Label}} = Session) ->
    weft_link:handler(Link, {drop, Label}),
    path_down(replaced, Session);
drop_path(Session) ->
    Session.

path_down(Reason, #session{counters = Counters} = Session) ->
    weft_session_counters:set_path(Counters, down),
    GiveUp = erlang:send_after(weft_config:get(resume_timeout_ms), self(), give_up),
    Session#session{path = undefined, give_up = GiveUp, down_since_ms = now_ms(),
                    last_break = Reason, waiting = false, resend = []}.

%% `ended' and `gone' are the peer's or the network's word that there is nothing to resume.
closed(_Link, _Label, Reason, #session{established = true} = Session)
  when Reason =:= ended; Reason =:= gone ->
    ended(Session);
closed(Link, Label, Reason, #session{path = {Link, _, Current}} = Session)
  when Label =:= Current; Label =:= any ->
    next(attach(path_down(Reason, Session)));
closed(_Link, _Label, _Reason, #session{path = Path} = Session) when Path =/= undefined ->
    next(Session);
closed(Link, Label, Reason, #session{opening = {Link, Opening}} = Session)
  when Label =:= Opening; Label =:= any ->
    next(failed(Reason, Session));
closed(_Link, any, Reason, #session{opening = undefined} = Session) ->
    next(failed(Reason, Session));
closed(_Link, _Label, _Reason, Session) ->
    next(Session).

%% The end is no error of this process, so it is an exit signal and not a crash report. The kernel
%% turns it into the nodedown. During the handshake it is for dist_util to see and to judge.
ended(#session{handle = undefined, handshake = Stream} = Session) ->
    {noreply, Session#session{handshake = weft_handshake_stream:close(Stream), path = undefined}};
ended(Session) ->
    exit(self(), connection_closed),
    {noreply, Session}.

%% --- sending ----------------------------------------------------------------------------------

%% Messages first, then one packet, then messages again.
next(Session) ->
    case ready(Session) of
        true -> {noreply, Session, 0};
        false -> {noreply, Session}
    end.

reply(Reply, Session) ->
    case ready(Session) of
        true -> {reply, Reply, Session, 0};
        false -> {reply, Reply, Session}
    end.

ready(#session{path = undefined}) -> false;
ready(#session{waiting = true}) -> false;
ready(#session{resend = [_ | _]}) -> true;
ready(#session{more = true, out = Out}) -> weft_outbound_core:room(Out);
ready(_Session) -> false.

pump(#session{resend = [Item | Items]} = Session) ->
    transmit(Item, Session#session{resend = Items});
pump(#session{handle = Handle, more = true} = Session) ->
    case weft_batch:fetch(Handle) of
        none -> Session#session{more = false};
        {Payload, Bytes, More} -> push(frames, Payload, Bytes, Session#session{more = More})
    end;
pump(Session) ->
    Session.

push(Kind, Packet, Session) ->
    push(Kind, Packet, byte_size(Packet), Session).

push(Kind, Payload, Bytes, #session{out = Out0} = Session0) ->
    {Item, Out} = weft_outbound_core:push(Kind, Payload, Bytes, Out0),
    Session = Session0#session{out = Out},
    case Session of
        #session{path = undefined} -> Session;
        #session{waiting = true} -> Session#session{resend = Session#session.resend ++ [Item]};
        #session{resend = [_ | _] = Items} -> Session#session{resend = Items ++ [Item]};
        _ -> transmit(Item, Session)
    end.

transmit({Sequence, Kind, Payload, Bytes}, #session{path = {_, Lane, Label},
                                                    counters = Counters} = Session) ->
    weft_session_counters:packet_out(Counters, Bytes),
    case weft_lane:send(Lane, weft_wire:data(Label, Sequence, Kind, Payload), Bytes + 14, notify) of
        ok -> Session;
        queued -> Session#session{waiting = true};
        %% The link will say that the path is broken; until then nothing can be sent.
        {error, _} -> Session#session{waiting = true}
    end.

lane_ready(Socket, #session{path = {_, Lane, _}} = Session) ->
    case weft_lane:socket(Lane) of
        Socket -> Session#session{waiting = false};
        _Old -> Session
    end;
lane_ready(_Socket, Session) ->
    Session.

%% --- what others see --------------------------------------------------------------------------

info_of(#session{path = Path, out = Out, counters = Counters} = Session) ->
    Stats = weft_session_counters:read(Counters),
    Stats#{node => Session#session.node, name => Session#session.name,
           role => Session#session.role,
           state => case {Session#session.handle, Path} of
                        {_, undefined} -> resuming;
                        {undefined, _} -> handshake;
                        {_, _} -> up
                    end,
           link => case Path of {Link, _, _} -> Link; undefined -> undefined end,
           lane => case Path of {_, Lane, _} -> weft_lane:index(Lane); undefined -> undefined end,
           label => case Path of {_, _, Label} -> Label; undefined -> undefined end,
           unacked_bytes => weft_outbound_core:unacked_bytes(Out),
           resumes => Session#session.resumes, last_error => Session#session.last_break,
           last_resume_ms => Session#session.last_resume_ms}.

now_ms() -> erlang:monotonic_time(millisecond).
