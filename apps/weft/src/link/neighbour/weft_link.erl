%% SPDX-License-Identifier: Apache-2.0
%% @doc The link to one peer: brings its lanes up, reads them all, and notices when they are dead.
%%
%% One process for each peer. It owns the sockets of the lanes and reads them (`weft_link_lanes').
%% Pings and control messages end here; all other packets go to the handler above (`weft_switch').
%% The link is brought up when the overlay wants it or something in the handler needs it: first at
%% once, then with pauses that grow (`weft_link_dial'). Either side may dial; `weft_link_admission'
%% settles crossing calls. A lane that does not answer for link_timeout_ms is closed. What a loss
%% means for the link is in `weft_link_loss', what is dialled then in `weft_link_need', and what it
%% says about the node of the peer is decided by `weft_link_peer'.
%%
%% A link belongs to the side that dialled it. This side releases (closes) it once the overlay does
%% not want it any more and sessions can go another way. If the other side wants it, that one dials.
-module(weft_link).
-behaviour(gen_server).

-export([start_link/4, attach/4, want/2, agree/2, admitting/2, break/1, doubt/1, retry/1, hurry/1,
         subscribe/3, unsubscribe/2, info/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-import(weft_link_state, [publish/1, is_up/1, up/1, incarnation/1, above/1]).
-import(weft_link_need, [need/1, find_out/1, wanted/2, pause/2, cancel_pause/1, retry_later/1]).
-import(weft_link_loss, [lose/3, lose_all/2, drop_lane/3, drop_all/2, drop_published/2, moved/3,
                         concluded/2, told/2]).

-include("weft_link_state.hrl").

%% Time for the router to hear that a link was released, before sessions may ask for it again.
-define(RELEASED_MS, 1000).

%% @doc Called by `weft_link_sup'.
-spec start_link(Handler :: module(), weft_links:key(), [{weft_links:core(), pid()}],
                 Admitting :: weft_links:core() | none) -> {ok, pid()} | {error, term()}.
start_link(Handler, Key, Subscribers, Admitting) ->
    Cores = weft_link_cores:new(Key, Subscribers, Admitting),
    gen_server:start_link(?MODULE, {Key, Handler, Cores},
                          [{spawn_opt, [{priority, weft_turn:priority(data)},
                                         {message_queue_data, off_heap}, {fullsweep_after, 10}]}]).

%% @doc Hands over an authenticated connection owned by the caller.
-spec attach(pid(), weft_transport:socket(), weft_handshake:peer(), weft_hello:purpose()) ->
          ok | {error, term()}.
attach(Link, Socket, Peer, Purpose) ->
    case weft_transport:controlling_process(Socket, Link) of
        ok -> gen_server:cast(Link, {attach, Socket, Peer, Purpose, undefined});
        Error -> Error
    end.

%% @doc Should the link be up for its own sake?
-spec want(pid(), boolean()) -> ok.
want(Link, Wanted) -> gen_server:cast(Link, {want, Wanted}).

%% @doc Is the peer a neighbour, in the eyes of the core that decides about it?
-spec agree(pid(), boolean()) -> ok.
agree(Link, IsAgreed) -> gen_server:cast(Link, {agree, IsAgreed}).

-spec admitting(pid(), weft_links:core() | none) -> ok.
admitting(Link, Admitting) -> gen_server:cast(Link, {admitting, Admitting}).

-spec break(pid()) -> ok.
break(Link) -> gen_server:cast(Link, break).

%% @doc Somebody claims to be the peer in an earlier incarnation. If it is, after a restart at which
%% its clock was set back, its host answers a ping on the lanes of the other one by a reset.
-spec doubt(pid()) -> ok.
doubt(Link) -> gen_server:cast(Link, doubt).

-spec retry(pid()) -> ok.
retry(Link) -> gen_server:cast(Link, retry).

%% @doc A process needs the peer now: the next attempt does not wait for the end of a pause. Later
%% pauses are as long as they would be.
-spec hurry(pid()) -> ok.
hurry(Link) -> gen_server:cast(Link, hurry).

-spec subscribe(pid(), weft_links:core(), pid()) -> ok.
subscribe(Link, Core, Pid) -> gen_server:cast(Link, {subscribe, Core, Pid}).

%% @doc The process of a core has ended.
-spec unsubscribe(pid(), pid()) -> ok.
unsubscribe(Link, Pid) -> gen_server:cast(Link, {unsubscribe, Pid}).

-spec info(pid()) -> map().
info(Link) -> gen_server:call(Link, info).

%% @private
init({Key, Handler, Cores}) ->
    process_flag(trap_exit, true),
    {ok, weft_link_state:new(Key, Handler, Cores)}.

%% @private
handle_call(info, _From, Link) ->
    {reply, weft_link_state:info(Link), Link};
handle_call(Request, _From, Link) ->
    {reply, weft_stray:call(Request), Link}.

%% @private
handle_cast(Request, #link{check = Check} = Link) ->
    {noreply, cast(Request, Link#link{check = weft_link_check:soon(Check)})}.

cast({attach, Socket, Peer, Purpose, Address}, Link) ->
    publish(attached(Socket, Peer, Purpose, Address, Link));
cast({want, Wanted}, Link) -> need(publish(wanted(Wanted, Link)));
cast({agree, true}, Link) -> agreed(true, Link);
cast({agree, false}, #link{demand = Demand} = Link) ->
    Link#link{demand = weft_link_demand:part(Demand)};
cast({admitting, Admitting}, #link{cores = Cores} = Link) ->
    cores_changed(weft_link_cores:admitting(Admitting, up(Link), Cores), Link);
cast(break, Link) -> publish(lose_all(broken, Link#link{last_error = broken}));
cast(doubt, #link{lanes = Lanes} = Link) ->
    lists:foreach(fun weft_lane_ping:send_unless_busy/1, weft_link_lanes:all(Lanes)),
    Link;
cast(retry, #link{dial = Dial} = Link) ->
    need(Link#link{dial = weft_link_dial:retry_at_once(Dial)});
cast(hurry, Link) -> need(cancel_pause(Link));
cast({subscribe, Core, Pid}, #link{cores = Cores} = Link) ->
    cores_changed(weft_link_cores:subscribe(Core, Pid, up(Link), Cores), Link);
cast({unsubscribe, Pid}, #link{cores = Cores} = Link) ->
    Link#link{cores = weft_link_cores:unsubscribe(Pid, up(Link), Cores)};
cast(Request, Link) ->
    ok = weft_stray:message(Request),
    Link.

%% @private
-spec handle_info(term(), #link{}) -> {noreply, #link{}} | {stop, normal, #link{}}.
handle_info({Tag, Socket, Packet}, #link{lanes = Lanes} = Link)
  when Tag =:= tcp, is_map_key(Socket, Lanes); Tag =:= ssl, is_map_key(Socket, Lanes) ->
    BeganUs = weft_turn:begins(),
    {Lane, Lanes1} = weft_link_lanes:received(Socket, Lanes),
    Taken = case weft_wire:decode(Packet) of
                %% Most are payloads.
                {data, _, _, _, _} = Data ->
                    #link{handler = Handler, above = Above} = Link,
                    Link#link{lanes = Lanes1, above = Handler:packet(Data, Packet, Lane, Above)};
                Decoded ->
                    packet(Decoded, Packet, Lane, Link#link{lanes = Lanes1})
            end,
    ok = weft_turn:worked(BeganUs),
    {noreply, Taken};
handle_info({weft_handler, Message}, Link) ->
    {noreply, need(above_gets(Message, Link))};
handle_info(Message, Link) when element(1, Message) =:= weft_packet ->
    {noreply, above_gets(Message, Link)};
%% From OTP 26 on a send to a busy socket may leave its monitor of the port behind.
handle_info({'DOWN', _Ref, port, _Socket, _Reason}, Link) -> {noreply, Link};
handle_info(Message, #link{check = Check} = Link) when element(1, Message) =:= 'DOWN' ->
    {noreply, above_gets(Message, Link#link{check = weft_link_check:soon(Check)})};
handle_info(keepalive, Link) -> keepalive(Link);
handle_info({weft_lane, used, _Socket}, #link{check = Check} = Link) ->
    {noreply, Link#link{check = weft_link_check:soon(Check)}};
handle_info(unwanted, Link) -> {noreply, release(now_ms(), Link)};
handle_info({return_is_due, Ups}, #link{ups = Ups, peer = Peer} = Link) ->
    {noreply, concluded(weft_link_peer:not_returned(is_up(Link), Peer), Link)};
handle_info({find_out, Ups}, #link{ups = Ups} = Link) ->
    {noreply, find_out(Link)};
handle_info({moved, Lane, Reason}, Link) -> {noreply, moved(Lane, Reason, Link)};
handle_info({timeout, Timer, parted}, #link{demand = Demand} = Link) ->
    case weft_link_demand:is_parted(Timer, Demand) of
        true -> {noreply, release(now_ms(), agreed(false, Link))};
        false -> {noreply, Link}
    end;
handle_info(dial, #link{dial = Dial} = Link) ->
    {noreply, need(publish(Link#link{dial = weft_link_dial:pause_is_over(Dial),
                                     is_released = false}))};
handle_info({Told, Pid}, #link{dial = Dial} = Link) when Told =:= waiting; Told =:= calling ->
    {noreply, publish(Link#link{dial = weft_link_dial:told(Told, Pid, Dial)})};
handle_info({dialled, Pid, Result}, #link{dial = Dial} = Link) ->
    {noreply, attempt_ended(weft_link_dial:ended(Pid, Dial), Result, Link)};
handle_info({'EXIT', Pid, normal}, Link) when is_pid(Pid) -> {noreply, Link};
handle_info({'EXIT', Pid, Reason}, #link{lanes = Lanes, dial = Dial} = Link) when is_pid(Pid) ->
    case {weft_link_lanes:of_writer(Pid, Lanes), weft_link_dial:ended(Pid, Dial)} of
        {none, Ended} -> {noreply, attempt_ended(Ended, {error, Reason}, Link)};
        {Lane, none} -> {noreply, publish(lose(weft_lane:socket(Lane), writer_died, Link))}
    end;
handle_info(Message, #link{lanes = Lanes} = Link) ->
    case weft_transport:lost(Message) of
        {Socket, emsgsize} when is_map_key(Socket, Lanes) ->
            {noreply, violated(Socket, emsgsize, Link)};
        {Socket, Reason} -> {noreply, publish(lose(Socket, Reason, Link))};
        none -> {noreply, Link} % a socket is passive, or a timer came late
    end.

%% @private An orderly stop of this node: peers need not wait for a resume. If this process ends for
%% another reason the lanes are closed too, but without a goodbye.
terminate(shutdown, #link{lanes = Lanes}) -> weft_link_lanes:say_goodbye(Lanes);
terminate(_Reason, #link{lanes = Lanes}) -> weft_link_lanes:abort(Lanes).

%% --- packets ----------------------------------------------------------------------------------

packet({ping, TimeUs}, _Raw, Lane, #link{lanes = Lanes} = Link) ->
    ok = weft_lane_ping:answer(TimeUs, Lane),
    %% The first ping says that the peer has the link up: further lanes are welcome.
    need(Link#link{lanes = weft_link_lanes:answered(Lane, Lanes)});
packet({pong, TimeUs}, _Raw, _Lane, Link) ->
    Link#link{rtt_us = weft_lane_ping:round_trip_us(TimeUs, Link#link.rtt_us)};
packet({control, Core, Payload}, _Raw, Lane, #link{cores = Cores0} = Link) ->
    case weft_link_cores:control(Core, Payload, incarnation(Link), Cores0) of
        {ok, Cores} -> Link#link{cores = Cores};
        malformed -> violated(weft_lane:socket(Lane), bad_control_message, Link)
    end;
packet({listening, Port}, _Raw, _Lane, #link{dial = Dial} = Link) ->
    Link#link{dial = weft_link_dial:listening(Port, Dial)};
packet(goodbye, _Raw, _Lane, Link) ->
    publish(lose_all(gone, told(died, Link#link{last_error = peer_stopped})));
packet(empty, _Raw, _Lane, Link) ->
    Link;
packet({tick, _} = Tick, Raw, Lane, #link{handler = Handler, above = Above} = Link) ->
    {Check, Lanes} = weft_link_lanes:ticked(Link#link.check, Link#link.lanes),
    Link#link{check = Check, lanes = Lanes, above = Handler:packet(Tick, Raw, Lane, Above)};
packet(Packet, Raw, Lane, #link{handler = Handler, above = Above} = Link) ->
    Link#link{above = Handler:packet(Packet, Raw, Lane, Above)}.

%% An authenticated peer violates the protocol: this is logged once, and the lane is closed.
violated(Socket, Reason, #link{lanes = Lanes} = Link) ->
    weft_refusals:report(weft_link_lanes:peername(Socket, Lanes), Reason),
    publish(lose(Socket, Reason, Link)).

%% --- lanes come and go ------------------------------------------------------------------------

attached(Socket, Peer, Purpose, Address,
         #link{key = Key, lanes = Lanes, peer = Before, up_us = UpUs} = Link0) ->
    {Concluded, Welcome} =
        weft_link_welcome:met(Purpose, Peer,
                              #{own_name => weft_identity:name(), peer => Before, up_us => UpUs,
                                lanes => weft_link_lanes:roles(Lanes),
                                is_cut => weft_fault_table:is_cut(Key)}),
    Link = concluded(Concluded, Link0),
    case Welcome =/= refused
        andalso weft_transport:activate(Socket, weft_wire:packet_bytes_max()) of
        {ok, UntilMore} ->
            add_lane(Socket, Purpose, Peer, UntilMore, Address, make_room(Welcome, Link));
        false ->
            weft_transport:close(Socket),
            Link;
        {error, Reason} ->
            weft_transport:close(Socket),
            Link#link{last_error = Reason}
    end.

%% Nothing is dialled from here, because a new lane is about to come.
make_room({welcome, nothing}, Link) -> Link;
make_room({welcome, {link_down, Reason}}, Link) ->
    drop_all(Reason, Link#link{last_error = replaced});
make_room({welcome, {lane_down, Lane}}, Link) -> drop_lane(Lane, replaced, Link).

add_lane(Socket, Purpose, Peer, UntilMore, Address,
         #link{key = Key, handler = Handler, lanes = Lanes, dial = Dial, ups = Ups} = Link0) ->
    Node = case Key of {anonymous, _} -> undefined; _ -> Key end,
    Lane = weft_lane:new(Socket, weft_link_welcome:key(Purpose),
                         {weft_fault_table, lateness, [Node]}),
    WasUp = is_up(Link0),
    IsFirst = Purpose =:= link,
    %% Published first, because sessions that are told of the lane look whether the link is up.
    Link = publish(Link0#link{
        lanes = weft_link_lanes:add(Lane, Peer, UntilMore, Lanes),
        check = weft_link_check:soon(Link0#link.check),
        peer = weft_link_welcome:peer(Purpose, Peer, Link0#link.peer),
        up_us = case IsFirst of true -> now_us(); false -> Link0#link.up_us end,
        dial = weft_link_dial:reached(Address, Dial), is_released = false,
        ups = case WasUp of true -> Ups; false -> Ups + 1 end}),
    _ = WasUp orelse weft_link_cores:link_up(Lane, Link#link.cores),
    _ = WasUp orelse weft_link_distribution:at_once(Key, Link#link.peer, Link#link.cores),
    ok = weft_lane_ping:send(Lane),
    _ = IsFirst andalso weft_link_dial:tell_port(Peer, Lane),
    need(Link#link{above = Handler:lane_up(Lane, Link#link.above)}).

agreed(IsAgreed, #link{cores = Cores, demand = Demand} = Link) ->
    cores_changed(weft_link_cores:agree(IsAgreed, up(Link), Cores),
                  Link#link{demand = weft_link_demand:stay(Demand)}).

%% Published first, because sessions that took a detour look whether this is their way now.
cores_changed(Cores, #link{key = Key, peer = Peer, cores = Before} = Link0) ->
    Link = publish(Link0#link{cores = Cores}),
    _ = is_up(Link) andalso weft_link_distribution:at_once(Key, Peer, Cores),
    case is_up(Link) andalso weft_link_cores:is_neighbour(Cores)
        andalso not weft_link_cores:is_neighbour(Before) of
        true -> above_gets(available, Link);
        false -> Link
    end.

%% --- dialling ---------------------------------------------------------------------------------

above_gets(Message, #link{handler = Handler, above = Above} = Link) ->
    Link#link{above = Handler:message(Message, Above)}.

attempt_ended(none, _Result, Link) -> Link;
attempt_ended({Purpose, Dial}, Result, Link) ->
    publish(need(dialled(Result, Purpose, Link#link{dial = Dial}))).

dialled({ok, Socket, Peer, Address}, Purpose, Link) ->
    attached(Socket, Peer, Purpose, Address, Link);
dialled(known, link, Link) ->
    Link;
dialled({error, simultaneous}, link, Link) ->
    weft_link_need:crossed(Link);
dialled({error, Reason}, link,
        #link{dial = Dial0, last_error = Before, peer = Peer, handler = Handler} = Link0) ->
    Dial = weft_link_dial:failed(Reason, now_ms(), Dial0),
    Link = concluded(weft_link_peer:not_dialled(Reason, Before, weft_link_dial:is_gone(Dial), Peer),
                     Link0#link{dial = Dial, last_error = Reason}),
    case is_up(Link) of
        true -> retry_later(Link);
        false ->
            weft_link_cores:failed(Reason, Link#link.cores),
            retry_later(Link#link{above = Handler:dial_failed(Reason, Link#link.above)})
    end;
%% With no_link nothing is wrong: the link is being replaced.
dialled({error, no_link}, {lane, _, _}, Link) -> retry_later(Link);
dialled({error, Reason}, {lane, _, _}, Link) -> retry_later(Link#link{last_error = Reason}).

%% --- keepalive --------------------------------------------------------------------------------

keepalive(#link{lanes = Lanes0} = Link0) ->
    NowMs = now_ms(),
    {Dead, ToPing, MayRest, Lanes} = weft_link_lanes:check(NowMs, Lanes0),
    Link1 = lists:foldl(fun(Socket, Link) -> lose(Socket, timeout, Link) end,
                        Link0#link{lanes = Lanes}, Dead),
    lists:foreach(fun weft_lane_ping:send_unless_busy/1, ToPing),
    Link2 = publish(need(release(NowMs, weft_link_rest:used(Link1)))),
    Rests = MayRest andalso Link2#link.was_used =:= Link0#link.was_used
        andalso weft_link_rest:rests(Link2),
    idle(NowMs, Link2#link{check = weft_link_check:next(Rests, Link2#link.check)}).

release(NowMs, #link{peer = Peer, demand = Demand} = Link0) ->
    case is_up(Link0) andalso map_get(role, Peer) =:= dialer
        andalso weft_link_demand:may_be_released(NowMs, Demand, above(Link0)) of
        true ->
            Link = cancel_pause(Link0#link{is_released = true, last_error = released}),
            pause(?RELEASED_MS, drop_published(broken, Link));
        false -> Link0
    end.

%% A link that nothing needs is closed after a while. One at rest is looked at rarely: the time
%% begins when it is first seen that nothing needs it, and not with the look before.
idle(NowMs, #link{idle_since_ms = SinceMs, demand = Demand, dial = Dial} = Link) ->
    IdleMs = weft_config:get(link_idle_ms),
    case weft_link_demand:is_kept(Demand, above(Link)) orelse weft_link_dial:is_under_way(Dial) of
        true -> {noreply, Link#link{idle_since_ms = never}};
        false when SinceMs =:= never -> {noreply, Link#link{idle_since_ms = NowMs}};
        false when NowMs - SinceMs > IdleMs -> {stop, normal, drop_all(broken, Link)};
        false -> {noreply, Link}
    end.

now_ms() -> erlang:monotonic_time(millisecond).
now_us() -> erlang:monotonic_time(microsecond).
