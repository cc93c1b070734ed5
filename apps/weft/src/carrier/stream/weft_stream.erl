%% SPDX-License-Identifier: Apache-2.0
%% @doc A reliable, ordered stream of payloads to another node, over whatever path there is.
%%
%% A value, not a process: it belongs to the process that fetches what is to be sent (`weft_session'
%% for distribution, the sender of a channel), so that there is no other process between that one
%% and the socket. The owner passes it every message that it does not know itself (`handle/2') and
%% gets the outcome.
%%
%% `weft_stream_core' decides what is done when; this module carries it out, on links
%% (`weft_switch') and lanes. {Link, Lanes, Label} is a path. The receiver puts payloads in order
%% again, except bypass payloads (`weft_inbound_core'). Without a resume_timeout_ms the kernel's
%% ticks decide about the connection that the stream carries (`weft_session_counters').
-module(weft_stream).

-export([initiator/4, acceptor/6, connect/1, close/1, timed_out/1, ended/1, handle/2,
         say_accepted/1, push/4, flush/1, can_send/1, to_flush/1, room/1, room/2, window_bytes/1,
         core/1, tick/1, spare/1, rest/1, tick_at_rest/2, socket/1, info/1, code_change/1]).
-export_type([stream/0, path/0, outcome/0]).

%% On the way of each message: not calls.
-compile({inline, [written/2, header_bytes/1, now_us/0]}).

-define(TICK_BYTES, 5).
-define(TIMED_OUT_BYTES, 17).

-type path() :: {Link :: pid(), [weft_lane:lane()], weft_wire:label()}.
-type outcome() :: weft_stream_core:outcome().

-record(stream, {core :: weft_stream_core:state(),
                 counters :: weft_session_counters:counters(),
                 id :: weft_sessions:id(),
                 kind :: weft_wire:stream_kind(),
                 node :: node() | undefined,
                 peer :: binary(),
                 input :: pid(),
                 input_monitor :: reference() | undefined,
                 carrier_monitor :: reference() | undefined,
                 link_monitor :: reference() | undefined}).
-opaque stream() :: #stream{}.

%% --- begin and end ----------------------------------------------------------------------------

%% @doc The end that begins. Input is the process that takes what the peer sends.
-spec initiator(weft_wire:stream_kind(), node(), weft_session_counters:counters(), pid()) ->
          stream().
initiator(Kind, Node, Counters, Input) ->
    {Id, Peer} = {weft_random:bytes(16), atom_to_binary(Node)},
    ok = weft_sessions:add(Id, Kind, self(), Input, Peer),
    Core = weft_stream_core:initiator(Kind, weft_config:get(window_bytes)),
    (new(Id, Kind, Peer, Counters, Input, Core))#stream{node = Node}.

%% @doc The end that was reached over Path; Peer is the name of the node at the other end. It is
%% taken if the peer opened the stream again before the process that serves it had begun.
-spec acceptor(weft_wire:stream_kind(), weft_sessions:id(), Peer :: binary(), path(),
               weft_session_counters:counters(), pid()) -> {ok, stream()} | {error, taken}.
acceptor(Kind, Id, Peer, Path, Counters, Input) ->
    case weft_sessions:add(Id, Kind, self(), Input, Peer) of
        ok ->
            {Core, Effects} = weft_stream_core:acceptor(Kind, weft_config:get(window_bytes), Path,
                                                        now_us()),
            {ok, carry_out(Effects, new(Id, Kind, Peer, Counters, Input, Core))};
        {error, taken} ->
            {error, taken}
    end.

new(Id, Kind, Peer, Counters, Input, Core) ->
    #stream{core = Core, counters = Counters, id = Id, kind = Kind, peer = Peer, input = Input,
            input_monitor = watch_input(Input), carrier_monitor = watch_carrier()}.

%% The link that delivers the input may be another one than that of the path.
watch_input(Input) when Input =:= self() -> undefined;
watch_input(Input) -> erlang:monitor(process, Input).

%% A stream without its row in the table of sessions could not be resumed.
watch_carrier() ->
    case weft_links:owner() of
        undefined -> undefined;
        Owner -> erlang:monitor(process, Owner)
    end.

%% @doc Begins to look for the first path; the outcome is `connected' or `failed'.
-spec connect(stream()) -> stream().
connect(#stream{core = Core0} = Stream) ->
    {Core, Effects} = weft_stream_core:connect(now_us(), Core0),
    carry_out(Effects, Stream#stream{core = Core}).

%% @doc No further path is looked for.
-spec close(stream()) -> stream().
close(#stream{core = Core} = Stream) -> Stream#stream{core = weft_stream_core:close(Core)}.

%% @doc The kernel's ticks have ended the stream. A neighbour to which there is still a link hears
%% of it before the circuit is closed, other peers when there is a link to them (`weft_sessions').
-spec timed_out(stream()) -> ok.
timed_out(#stream{core = Core, id = Id}) ->
    case weft_stream_core:lanes(Core) of
        [Lane | _] -> _ = weft_lane:send(Lane, weft_wire:timed_out(Id), ?TIMED_OUT_BYTES), ok;
        [] -> ok
    end.

%% @doc The exit reason of the session whose stream has ended by itself. If the peer may not know of
%% that, it is told when there is a link to it (`weft_sessions').
-spec ended(stream()) -> net_tick_timeout | connection_closed.
ended(#stream{core = Core, id = Id}) ->
    case weft_ended_sessions:how(weft_stream_core:last_break(Core)) of
        net_tick_timeout -> net_tick_timeout;
        closed -> connection_closed;
        lost -> ok = weft_sessions:lost(Id), connection_closed
    end.

%% --- messages ---------------------------------------------------------------------------------

%% @doc What a message to the owner means for the stream; `unknown' if nothing.
-spec handle(term(), stream()) -> {outcome(), stream()} | unknown.
handle({weft_ack, Sequence}, Stream) ->
    acked(Sequence, undefined, Stream);
handle({weft_ack, Sequence, AtUs}, Stream) ->
    acked(Sequence, AtUs, Stream);
handle({weft_lane, ready, Socket}, Stream) ->
    {ok, lane_ready(Socket, Stream)};
handle({weft_path, closed, Link, Label, Reason}, Stream) ->
    closed(Link, Label, Reason, Stream);
handle({weft_stream, {return_is_due, Node, SinceUs}}, Stream) ->
    event({return_is_due, SinceUs, weft_overlay:has_route(Node)}, Stream);
handle({weft_stream, Event}, Stream) ->
    event(Event, Stream);
handle({'DOWN', Ref, process, _, _}, #stream{input_monitor = Ref} = Stream) ->
    event({without, input_died}, Stream);
handle({'DOWN', Ref, process, _, _}, #stream{carrier_monitor = Ref} = Stream) ->
    event({without, carrier_died}, Stream);
handle({'DOWN', Ref, process, Link, _}, #stream{link_monitor = Ref, input = Link} = Stream) ->
    {ok, Stream#stream{link_monitor = undefined}};
handle({'DOWN', Ref, process, Link, Reason}, #stream{link_monitor = Ref} = Stream) ->
    closed(Link, any, {link_process, Reason}, Stream#stream{link_monitor = undefined});
handle(Message, Stream) when element(1, Message) =:= weft_path ->
    event(erlang:delete_element(1, Message), Stream);
handle(_Message, _Stream) ->
    unknown.

acked(Sequence, AtUs, #stream{core = Core0} = Stream) ->
    {Core, Effects} = weft_stream_core:acked(Sequence, AtUs, now_us(), Core0),
    {ok, carry_out(Effects, Stream#stream{core = Core})}.

event(Event, #stream{core = Core0} = Stream) ->
    {Outcome, Core, Effects} = weft_stream_core:handle(Event, now_us(), Core0),
    {Outcome, carry_out(Effects, Stream#stream{core = Core})}.

lane_ready(Socket, #stream{core = Core} = Stream) ->
    case [Lane || Lane <- weft_stream_core:lanes(Core), weft_lane:socket(Lane) =:= Socket] of
        [Lane] -> Stream#stream{core = weft_stream_core:lane_ready(Lane, Core)};
        [] -> Stream
    end.

closed(Link, Label, Reason, #stream{core = Core, peer = Peer, node = Node} = Stream) ->
    About = #{has_died => has_died(Peer, weft_stream_core:incarnation(Core)),
              may_be_found => Reason =/= no_route orelse may_be_found(Node),
              resume_timeout_ms => weft_config:get(resume_timeout_ms),
              net_ticktime_ms => weft_config:net_ticktime_ms()},
    event({closed, Link, Label, Reason, About}, Stream).

has_died(_Peer, undefined) ->
    false;
has_died(Peer, Incarnation) ->
    try weft_overlay:has_died(binary_to_existing_atom(Peer), Incarnation)
    catch error:badarg -> false
    end.

%% Only the end that begins a stream looks for the other end.
may_be_found(undefined) ->
    false;
may_be_found(Node) ->
    weft_next_hop:choose(Node) =/= no_route
        orelse weft_overlay:is_settling(Node, weft_path_search:route_timeout_ms()).

%% --- what the core wants done -----------------------------------------------------------------

carry_out([], Stream) -> Stream;
carry_out([Effect | Effects], Stream) -> carry_out(Effects, effect(Effect, Stream)).

effect({find_link, Purpose}, #stream{node = Node} = Stream0) ->
    {ok, Stream} = event({link, Purpose, path_link(Node)}, Stream0),
    Stream;
effect(find_direct, #stream{node = Node} = Stream0) ->
    case weft_links:up(Node) andalso weft_links:lookup(Node) of
        {ok, Link} ->
            {ok, Stream} = event({available, Link}, Stream0),
            Stream;
        _Down ->
            Stream0
    end;
effect({watch, Link}, #stream{link_monitor = Monitor, peer = Peer, core = Core} = Stream) ->
    _ = is_reference(Monitor) andalso erlang:demonitor(Monitor, [flush]),
    IsRelayed = not lists:member(Peer, [atom_to_binary(Node) || Node <- weft_links:peers(Link),
                                                                is_atom(Node)]),
    Stream#stream{link_monitor = erlang:monitor(process, Link),
                  core = weft_stream_core:relayed(IsRelayed, Core)};
effect({keep_alive, IsOn}, #stream{counters = Counters} = Stream) ->
    weft_session_counters:keep_alive(Counters, IsOn),
    IsOn orelse noted_way(Stream),
    Stream;
effect(woken, Stream) ->
    ok = weft_sessions:woken(),
    Stream;
effect({for_ticker, Event}, #stream{counters = Counters} = Stream) ->
    count(Event, Counters),
    Stream;
effect({open, Link, Mode}, #stream{input = Input} = Stream) ->
    weft_link_handler:tell(Link, {open, self(), Input, open(Mode, Stream)}),
    Stream;
effect({drop, Link, Label}, Stream) ->
    weft_link_handler:tell(Link, {drop, Label}),
    Stream;
effect({accept, Lane, Label}, #stream{counters = Counters} = Stream) ->
    _ = weft_lane:send(Lane, weft_wire:accept(Label, weft_session_counters:received(Counters)), 13),
    Stream;
effect({tick, Lanes, Label}, Stream) ->
    write_tick(Lanes, Label),
    Stream;
%% An older node ignores these two.
effect({times, Lanes, Label}, Stream) ->
    Packet = weft_wire:times(Label),
    lists:foreach(fun(Lane) -> weft_lane:answer(Lane, Packet, iolist_size(Packet)) end, Lanes),
    Stream;
effect({incarnation, Lane, Label}, Stream) ->
    _ = weft_lane:send(Lane, weft_wire:incarnation(Label, weft_identity:incarnation()), 13),
    Stream;
effect({losses, Lanes}, Stream0) ->
    {ok, Stream} = event({losses, weft_lane:losses(Lanes)}, Stream0),
    Stream;
effect({count, Name}, Stream) ->
    weft_counters:add(Name),
    Stream;
effect({again, Reason}, Stream) ->
    self() ! {weft_path, closed, self(), any, Reason},
    Stream;
effect({after_ms, DelayMs, Timer}, Stream) ->
    _ = erlang:send_after(DelayMs, self(), {weft_stream, Timer}),
    Stream.

count(path_in, Counters) -> weft_session_counters:path_in(Counters);
count(tick_out, Counters) -> weft_session_counters:tick_out(Counters, ?TICK_BYTES).

write_tick(Lanes, Label) ->
    Tick = weft_wire:tick(Label),
    lists:foreach(fun(Lane) -> weft_lane:answer(Lane, Tick, ?TICK_BYTES) end, Lanes).

%% It is no longer kept alive as soon as there is a path, also the first one.
noted_way(#stream{core = Core, counters = Counters}) ->
    #{link := Link} = weft_stream_core:info(Core),
    _ = [weft_session_counters:by_way_of(Counters, Neighbour)
         || Neighbour <- weft_links:peers(Link)],
    ok.

open(Mode, #stream{node = Node, id = Id, kind = Kind, counters = Counters}) ->
    #{mode => Mode, kind => Kind, hops => weft_config:get(hop_limit), session => Id,
      received => weft_session_counters:received(Counters),
      source => weft_identity:name(), target => atom_to_binary(Node)}.

path_link(Node) ->
    case weft_next_hop:choose(Node) of
        direct -> link_of(Node, weft_links:up(Node));
        {via, NextHop} -> up_link(NextHop, weft_links:up(NextHop));
        no_route -> {error, no_route}
    end.

%% A next hop whose link is down is one that the router is about to replace.
up_link(NextHop, true) -> link_of(NextHop, true);
up_link(_NextHop, false) -> {error, broken}.

link_of(Node, IsUp) ->
    case weft_links:ensure(Node) of
        {ok, Link} -> {ok, Link, IsUp};
        {error, not_running} -> {error, broken}
    end.

%% @doc Tells the initiator that its open has been accepted, and what was received so far.
-spec say_accepted(stream()) -> stream().
say_accepted(#stream{core = Core} = Stream) ->
    carry_out(weft_stream_core:say_accepted(Core), Stream).

%% --- sending ----------------------------------------------------------------------------------

%% @doc Can a payload be written now: is there a path with a lane that is not busy?
-spec can_send(stream()) -> boolean().
can_send(#stream{core = Core}) -> weft_stream_core:can_send(Core).

%% @doc Can something be repeated now, or the next part of a payload be sent, by `flush/1'?
-spec to_flush(stream()) -> boolean().
to_flush(#stream{core = Core}) -> weft_stream_core:to_flush(Core).

%% @doc Does the window allow another payload, with nothing waiting to be repeated?
-spec room(stream()) -> boolean().
room(#stream{core = Core}) -> weft_stream_core:room(Core).

%% @doc What the window and the lanes allow: all, only what is urgent, only bypass payloads, or
%% nothing.
-spec room(express, stream()) -> weft_fair_queue_core:room() | none.
room(express, #stream{core = Core}) -> weft_stream_core:room(express, Core).

%% @doc The window now.
-spec window_bytes(stream()) -> pos_integer().
window_bytes(#stream{core = Core}) -> weft_stream_core:window_bytes(Core).

%% @doc What `weft_session_core' decides from.
-spec core(stream()) -> weft_stream_core:state().
core(#stream{core = Core}) -> Core.

%% @doc Writes the next payload that has to be repeated, or the next part; `none' if there is none
%% or it cannot be written now.
-spec flush(stream()) -> {ok, stream()} | none.
flush(#stream{core = Core} = Stream) ->
    case weft_stream_core:to_flush(Core) of
        true -> {ok, written(weft_stream_core:flush(now_us(), Core), Stream)};
        false -> none
    end.

%% @doc Numbers and keeps a payload, and writes it now or as soon as it can be.
-spec push(handshake | weft_fair_queue_core:order(), iodata(), non_neg_integer(), stream()) ->
          stream().
push(Kind, Payload, Bytes, #stream{core = Core} = Stream) ->
    written(weft_stream_core:push(Kind, Payload, Bytes, now_us(), Core), Stream).

written({write, Lane, Label, {Sequence, Kind, Payload, Bytes}, Core},
        #stream{counters = Counters} = Stream) ->
    weft_session_counters:payload_out(Counters, Bytes),
    Packet = weft_wire:data(Label, Sequence, Kind, Payload),
    Outcome = case weft_lane:send(Lane, Packet, Bytes + header_bytes(Kind), notify) of
                  ok -> free;
                  queued -> busy;
                  %% The link will report that the lane is lost; until then the lane is treated as
                  %% busy.
                  {error, _} -> busy
              end,
    Stream#stream{core = weft_stream_core:sent(Lane, Bytes, Outcome, Core)};
written({kept, Core}, Stream) ->
    Stream#stream{core = Core}.

header_bytes({_Bypass, _After, _Floor}) -> 30;
header_bytes(_Kind) -> 14.

%% @doc See `weft_stream_core:tick/1'.
-spec tick(stream()) -> stream().
tick(#stream{core = Core} = Stream) ->
    carry_out(weft_stream_core:tick(Core), Stream).

%% @doc To be called at intervals: a lane that is reserved for bypass payloads becomes an ordinary
%% one if there were none since the last call.
-spec spare(stream()) -> stream().
spare(#stream{core = Core} = Stream) -> Stream#stream{core = weft_stream_core:spare(Core)}.

%% @doc If nothing waits for anything, ticks are written without the owner of the stream from now on
%% (`tick_at_rest/2'), until something happens to it or it sends something.
-spec rest(stream()) -> IsAtRest :: boolean().
rest(#stream{core = Core, counters = Counters}) ->
    case weft_stream_core:rest(weft_session_counters:written(Counters), Core) of
        none ->
            false;
        {Lane, Label, Written} ->
            ok = weft_sessions:rest({Lane, Label}, Written),
            true
    end.

%% @doc To be called by whoever has a tick for a stream of another process: writes it if that stream
%% is at rest.
-spec tick_at_rest(Owner :: pid(), weft_session_counters:counters()) -> IsAtRest :: boolean().
tick_at_rest(Owner, Counters) ->
    Written = weft_session_counters:written(Counters),
    case weft_stream_tick:at_rest(Written, weft_sessions:at_rest(Owner)) of
        in_use ->
            false;
        Effects ->
            ok = weft_sessions:ticked(Owner),
            lists:foreach(fun({for_ticker, Event}) -> count(Event, Counters);
                             ({tick, Lanes, Label}) -> write_tick(Lanes, Label)
                          end, Effects),
            true
    end.

%% @doc The socket of a lane that is used now.
-spec socket(stream()) -> {ok, weft_transport:socket()} | {error, enotconn}.
socket(#stream{core = Core}) ->
    case weft_stream_core:lanes(Core) of
        [Lane | _] -> {ok, weft_lane:socket(Lane)};
        [] -> {error, enotconn}
    end.

%% --- what others see --------------------------------------------------------------------------

%% @doc Path, lanes, bytes not acknowledged, resumes (on a new path), reroutes (by way of another
%% neighbour), repairs (of a lost lane, on the same path) and the last error.
-spec info(stream()) -> map().
info(#stream{core = Core, counters = Counters}) ->
    #{lanes := Lanes} = Info = weft_stream_core:info(Core),
    maps:merge(weft_session_counters:read(Counters),
               Info#{lanes := lists:sort([weft_lane:index(Lane) || Lane <- Lanes])}).

%% --- another version --------------------------------------------------------------------------

%% @doc The stream as this version keeps it; to be called by its process when that changes code.
-spec code_change(stream()) -> stream().
code_change(#stream{core = Core} = Stream) ->
    Stream#stream{core = weft_stream_core:code_change(Core)}.

now_us() -> erlang:monotonic_time(microsecond).
