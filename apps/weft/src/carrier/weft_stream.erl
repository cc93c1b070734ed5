%% SPDX-License-Identifier: Apache-2.0
%% @doc A reliable, ordered stream of payloads to another node, over whatever path there is.
%%
%% A value, not a process: it lives in the process that fetches what is to be sent (`weft_session'
%% for distribution, the sender of a channel), so that nothing stands between that process and the
%% socket. The owner gives it every message that it does not know itself (`handle/2') and hears
%% what became of it.
%%
%% Payloads are numbered and kept (`weft_outbound_core') and written to the lanes of the current
%% path: a circuit that `weft_switch' opened, {Link, Lanes, Label}. With several lanes payloads are
%% striped (`weft_lane_turns'); the receiver puts them in order again, but for those that travel
%% apart (`weft_inbound_core'). When a lane is lost what is not acknowledged is repeated on the
%% others. When the path breaks, the end that began the stream looks for another (the link again, or
%% a route around it) and the other end waits to be found. On the new path both sides say what they
%% have received and repeat the rest. The stream has ended when the peer's node is known to be gone,
%% or when there was no path for resume_timeout_ms. Without that setting the kernel's ticks decide
%% about the connection that the stream is under, as on stock Erlang (`weft_session_counters').
-module(weft_stream).

-export([initiator/4, acceptor/6, connect/1, close/1, handle/2, say_accepted/1,
         push/4, flush/1, can_send/1, to_flush/1, room/1, room/2, window_bytes/1,
         tick/1, spare/1, socket/1, last_break/1, info/1]).
-export_type([stream/0, path/0, outcome/0]).

%% An opened path that is not answered in this time is given up for another try.
-define(OPEN_TIMEOUT_MS, 3000).
%% The window never shrinks below this, but to look at the round trip.
-define(WINDOW_MIN_BYTES, 262144).
%% A first attempt looks for a route for so long.
-define(ROUTE_TIMEOUT_MS, 1500).
%% A peer that has left one neighbour is back over another one by then.
-define(RETURN_MS, 500).
-define(RETRY_MIN_MS, 10).
-define(RETRY_MAX_MS, 250).
-define(TICK_BYTES, 5).

-type path() :: {Link :: pid(), [weft_lane:lane()], weft_wire:label()}.
%% connected: the first path stands. failed: there will be none. ended: nothing to resume.
-type outcome() :: ok | connected | {failed, Reason :: term()} | ended | lost.

-record(path, {link :: pid(),
               label :: weft_wire:label(),
               lanes :: weft_lane_turns:turns(weft_lane:lane())}).
-record(stream, {id :: weft_sessions:id(),
                 role :: initiator | acceptor,
                 kind :: weft_wire:stream_kind(),
                 node :: node() | undefined,
                 peer :: binary(),
                 %% The life of the peer's node that this stream is with, once it is told.
                 incarnation :: non_neg_integer() | undefined,
                 counters :: weft_session_counters:counters(),
                 input :: pid(),
                 input_monitor :: reference() | undefined,
                 carrier_monitor :: reference() | undefined,
                 out :: weft_outbound_core:state(),
                 path :: #path{} | undefined,
                 opening :: {pid(), weft_wire:label()} | undefined,
                 link_monitor :: reference() | undefined,
                 established = false :: boolean(),
                 connecting = false :: boolean(),
                 %% When it began to look for its first path.
                 since_ms = 0 :: integer(),
                 closed = false :: boolean(),
                 resend = [] :: [weft_outbound_core:item()],
                 %% What is left of a payload that is sent in parts. Nothing else is pushed before.
                 rest = none :: none | weft_parts:rest(),
                 retry_ms = ?RETRY_MIN_MS :: pos_integer(),
                 retry_timer :: reference() | undefined,
                 give_up :: {Timer :: reference(), Token :: reference()} | undefined,
                 down_since_ms :: integer() | undefined,
                 resumes = 0 :: non_neg_integer(),
                 repairs = 0 :: non_neg_integer(),
                 last_break :: term(),
                 last_resume_ms :: non_neg_integer() | undefined}).
-opaque stream() :: #stream{}.

%% --- life -------------------------------------------------------------------------------------

%% @doc The end that begins. Input is the process that takes what the peer sends.
-spec initiator(weft_wire:stream_kind(), node(), weft_session_counters:counters(), pid()) ->
          stream().
initiator(Kind, Node, Counters, Input) ->
    Id = weft_random:bytes(16),
    weft_sessions:add(Id, Kind, self(), Input, atom_to_binary(Node)),
    #stream{id = Id, role = initiator, kind = Kind, node = Node, peer = atom_to_binary(Node),
            counters = Counters, input = Input, input_monitor = watch_input(Input),
            carrier_monitor = watch_carrier(), out = outbound()}.

%% The link that delivers the input may be another one than that of the path.
watch_input(Input) when Input =:= self() -> undefined;
watch_input(Input) -> erlang:monitor(process, Input).

%% Without its row in the table of sessions nobody could resume a stream.
watch_carrier() ->
    case weft_links:owner() of
        undefined -> undefined;
        Owner -> erlang:monitor(process, Owner)
    end.

%% @doc The end that was found over Path; Peer is the name of the node at the other end.
-spec acceptor(weft_wire:stream_kind(), weft_sessions:id(), Peer :: binary(), path(),
               weft_session_counters:counters(), pid()) -> stream().
acceptor(Kind, Id, Peer, Path, Counters, Input) ->
    weft_sessions:add(Id, Kind, self(), Input, Peer),
    on_path(Path, #stream{id = Id, role = acceptor, kind = Kind, peer = Peer, counters = Counters,
                          input = Input, input_monitor = watch_input(Input),
                          carrier_monitor = watch_carrier(), out = outbound(),
                          established = true}).

outbound() ->
    Max = weft_config:get(window_bytes),
    weft_outbound_core:new(min(?WINDOW_MIN_BYTES, Max), Max).

%% @doc Begins to look for the first path; `connected' or `failed' will come of it.
-spec connect(stream()) -> stream().
connect(Stream) -> attach(Stream#stream{connecting = true, since_ms = now_ms()}).

%% @doc No path is looked for any more.
-spec close(stream()) -> stream().
close(Stream) -> Stream#stream{closed = true, path = undefined}.

%% @doc What a message to the owner means for the stream; `unknown' if nothing.
-spec handle(term(), stream()) -> {outcome(), stream()} | unknown.
%% An acknowledgement is the answer of the peer's link to what we say, not a word of its ticker's.
handle({weft_ack, Sequence}, #stream{out = Out0} = Stream) ->
    {Ask, Out} = weft_outbound_core:acked(Sequence, now_us(), Out0),
    {ok, ask(Ask, Stream#stream{out = Out})};
handle({weft_lane, ready, Socket}, Stream) ->
    {ok, lane_ready(Socket, Stream)};
handle({weft_path, lanes, Link, Label, Lanes},
       #stream{path = #path{link = Link, label = Label}} = Stream) ->
    {ok, lanes_changed(Lanes, Stream)};
handle({weft_path, opening, Link, Label}, Stream) ->
    {ok, retry_after(?OPEN_TIMEOUT_MS, Stream#stream{opening = {Link, Label}})};
handle({weft_path, accepted, Link, Lanes, Label, Received},
       #stream{opening = {Link, Label}} = Stream) ->
    accepted({Link, Lanes, Label}, Received, Stream);
handle({weft_path, reattached, Link, Lanes, Label, Received}, Stream) ->
    reattached({Link, Lanes, Label}, Received, Stream);
handle({weft_path, available, Link}, #stream{path = #path{link = Other}} = Stream)
  when Other =/= Link ->
    {ok, move_to(Link, Stream)};
handle({weft_path, closed, Link, Label, Reason}, Stream) ->
    closed(Link, Label, Reason, Stream);
handle({weft_path, incarnation, Incarnation}, Stream) ->
    {ok, Stream#stream{incarnation = Incarnation}};
handle({weft_stream, {died, _Node, Incarnation}},
       #stream{path = undefined, established = true, incarnation = Incarnation} = Stream) ->
    {ended, Stream#stream{last_break = gone}};
handle({weft_stream, {departed, Node, Incarnation, _Witness}},
       #stream{path = undefined, incarnation = Incarnation} = Stream) ->
    {ok, departed(Node, Stream)};
handle({weft_stream, {return_is_due, Node, SinceMs}},
       #stream{path = undefined, established = true, down_since_ms = SinceMs} = Stream) ->
    case weft_overlay:route(Node) of
        {error, no_route} -> {ended, Stream#stream{last_break = departed}};
        {ok, _} -> {ok, Stream}
    end;
handle({weft_stream, retry}, #stream{path = undefined} = Stream) ->
    {ok, attach(Stream#stream{retry_timer = undefined})};
handle({weft_stream, {give_up, Token}}, #stream{give_up = {_Timer, Token}} = Stream) ->
    {ended, Stream};
handle({'DOWN', Ref, process, _, _}, #stream{input_monitor = Ref} = Stream) ->
    without(input_died, Stream);
handle({'DOWN', Ref, process, _, _}, #stream{carrier_monitor = Ref} = Stream) ->
    without(carrier_died, Stream);
handle({'DOWN', Ref, process, Link, _}, #stream{link_monitor = Ref, input = Link} = Stream) ->
    {ok, Stream#stream{link_monitor = undefined}};
handle({'DOWN', Ref, process, Link, Reason}, #stream{link_monitor = Ref} = Stream) ->
    closed(Link, any, {link_process, Reason}, Stream#stream{link_monitor = undefined});
handle(Message, Stream) when element(1, Message) =:= weft_path;
                             element(1, Message) =:= weft_stream ->
    {ok, Stream};
handle(_Message, _Stream) ->
    unknown.

without(Reason, #stream{established = true} = Stream) ->
    {ended, Stream#stream{last_break = Reason}};
without(Reason, Stream) ->
    failed(Reason, Stream).

%% A node that may be alive elsewhere gets a moment to be found there.
departed(Node, #stream{down_since_ms = SinceMs} = Stream) ->
    _ = erlang:send_after(?RETURN_MS, self(), {weft_stream, {return_is_due, Node, SinceMs}}),
    Stream.

%% A tick is answered by an acknowledgement. One on each lane: the last of them to arrive comes
%% after all that was sent.
ask(ask, #stream{path = #path{label = Label, lanes = Lanes}} = Stream) ->
    tick(weft_lane_turns:all(Lanes), Label),
    Stream;
ask(_, Stream) ->
    Stream.

tick(Lanes, Label) ->
    lists:foreach(fun(Lane) -> weft_lane:send(Lane, weft_wire:tick(Label), ?TICK_BYTES) end, Lanes).

%% --- paths ------------------------------------------------------------------------------------

%% The initiator asks for a path; the acceptor waits to be found.
attach(#stream{role = acceptor} = Stream) -> Stream;
attach(#stream{closed = true} = Stream) -> Stream;
attach(Stream) -> open(Stream).

open(#stream{opening = {Link, Label}} = Stream) ->
    weft_link:handler(Link, {drop, Label}),
    open(Stream#stream{opening = undefined});
open(#stream{node = Node, established = Established, id = Id, kind = Kind, input = Input,
             counters = Counters} = Stream0) ->
    case path_link(Node) of
        {ok, Link, IsUp} ->
            Stream = case Stream0 of
                         #stream{path = undefined} -> watch_link(Link, Stream0);
                         _ -> Stream0
                     end,
            Open = #{mode => case Established of true -> resume; false -> new end, kind => Kind,
                     hops => weft_config:get(hop_limit), session => Id,
                     received => weft_session_counters:received(Counters),
                     source => weft_identity:name(), target => atom_to_binary(Node)},
            weft_link:handler(Link, {open, self(), Input, Open}),
            wait_for_link(IsUp, Stream#stream{opening = undefined});
        {error, Reason} ->
            try_again(Reason, Stream0)
    end.

%% A link came up: not for every stream it is the way to take.
move_to(Link, #stream{role = initiator, node = Node} = Stream) ->
    case path_link(Node) of
        {ok, Link, true} -> attach(Stream);
        _ -> Stream
    end;
move_to(_Link, Stream) ->
    Stream.

%% A link that is down opens when it comes up; by then the router may know a way around.
wait_for_link(false, #stream{established = true, retry_ms = RetryMs} = Stream) ->
    retry_after(RetryMs, Stream#stream{retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)});
wait_for_link(_IsUp, Stream) ->
    retry_after(?OPEN_TIMEOUT_MS, Stream).

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
    case weft_links:ensure(Node) of
        {ok, Link} -> {ok, Link, IsUp};
        {error, not_running} -> {error, broken}
    end.

watch_link(Link, #stream{link_monitor = Monitor} = Stream) ->
    _ = is_reference(Monitor) andalso erlang:demonitor(Monitor, [flush]),
    Stream#stream{link_monitor = erlang:monitor(process, Link)}.

%% A first attempt that fails tells the owner; later ones go on until the stream gives up. Without a
%% route to a node that may exist it is made again for a moment: while neighbours change routes do
%% as well, and a gateway may have none while we do.
failed(no_route, #stream{established = false, connecting = true, node = Node,
                         since_ms = SinceMs} = Stream) ->
    IsKnown = weft_path:choose(Node) =/= no_route
        orelse weft_overlay:is_settling(Node, ?ROUTE_TIMEOUT_MS),
    case IsKnown andalso now_ms() - SinceMs < ?ROUTE_TIMEOUT_MS of
        true -> {ok, pause(no_route, Stream)};
        false -> {{failed, no_route}, Stream#stream{connecting = false, last_break = no_route}}
    end;
failed(Reason, #stream{established = false, connecting = true} = Stream) ->
    case is_passing(Reason) of
        true -> {ok, pause(Reason, Stream)};
        false -> {{failed, Reason}, Stream#stream{connecting = false, last_break = Reason}}
    end;
failed(Reason, Stream) ->
    {ok, pause(Reason, Stream)}.

%% Says something of the way that was tried, not of the node. A link to a next hop ends when that
%% node is gone.
is_passing(broken) -> true;
is_passing({dial, simultaneous}) -> true;
is_passing({dial, overload}) -> true;
is_passing({link_process, _}) -> true;
is_passing(_) -> false.

%% The same while an attempt begins, where there is nobody to tell yet: as a message to ourselves.
try_again(Reason, #stream{established = false, connecting = true} = Stream) ->
    self() ! {weft_path, closed, self(), any, Reason},
    Stream#stream{opening = undefined};
try_again(Reason, Stream) ->
    pause(Reason, Stream).

pause(Reason, #stream{retry_ms = RetryMs} = Stream) ->
    retry_after(RetryMs, Stream#stream{last_break = Reason, opening = undefined,
                                       retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)}).

retry_after(DelayMs, #stream{retry_timer = Timer} = Stream) ->
    _ = is_reference(Timer) andalso erlang:cancel_timer(Timer),
    Stream#stream{retry_timer = erlang:send_after(DelayMs, self(), {weft_stream, retry})}.

%% Our open was accepted: the first path, or one that resumes.
accepted(Path, _Received, #stream{established = false} = Stream) ->
    {connected, on_path(Path, Stream#stream{established = true, connecting = false})};
accepted(Path, Received, #stream{counters = Counters} = Stream) ->
    weft_session_counters:heard(Counters),
    resume(Path, Received, drop_path(Stream)).

%% The peer found us by another path. Our count goes first, so that it can repeat from there.
reattached(Path, Received, #stream{counters = Counters} = Stream) ->
    weft_session_counters:heard(Counters),
    resume(Path, Received, say_accepted(on_path(Path, drop_path(Stream)))).

%% @doc Tells the initiator that its open has been accepted, and what was received so far.
-spec say_accepted(stream()) -> stream().
say_accepted(#stream{path = #path{label = Label} = Path, counters = Counters} = Stream) ->
    Accept = weft_wire:accept(Label, weft_session_counters:received(Counters)),
    _ = weft_lane:send(first_lane(Path), Accept, 13),
    Stream.

resume(Path, Received, #stream{out = Out0, resumes = Resumes} = Stream0) ->
    case weft_outbound_core:resume(Received, Out0) of
        {ok, Items, Out} ->
            Stream = on_path(Path, Stream0#stream{out = Out}),
            {ok, Stream#stream{resend = Items, resumes = Resumes + 1}};
        {error, lost} ->
            {lost, Stream0#stream{last_break = resume_lost}}
    end.

on_path({Link, Lanes, Label}, #stream{give_up = GiveUp, retry_timer = Retry, counters = Counters,
                                      down_since_ms = SinceMs} = Stream0) ->
    _ = is_reference(Retry) andalso erlang:cancel_timer(Retry),
    cancel_give_up(GiveUp),
    weft_session_counters:keep_alive(Counters, false),
    tell_incarnation(Lanes, Label),
    Stream = watch_link(Link, Stream0),
    Stream#stream{path = #path{link = Link, label = Label, lanes = weft_lane_turns:new(Lanes, [])},
                  opening = undefined,
                  out = weft_outbound_core:lanes(length(Lanes), Stream0#stream.out),
                  give_up = undefined, retry_timer = undefined, retry_ms = ?RETRY_MIN_MS,
                  resend = [], down_since_ms = undefined,
                  last_resume_ms = case SinceMs of
                                       undefined -> Stream0#stream.last_resume_ms;
                                       _ -> now_ms() - SinceMs
                                   end}.

%% Each time, since nobody repeats it should it be lost. An older node ignores it.
tell_incarnation([Lane | _], Label) ->
    _ = weft_lane:send(Lane, weft_wire:incarnation(Label, weft_identity:incarnation()), 13),
    ok;
tell_incarnation([], _Label) ->
    ok.

drop_path(#stream{path = #path{link = Link, label = Label}} = Stream) ->
    weft_link:handler(Link, {drop, Label}),
    path_down(replaced, Stream);
drop_path(Stream) ->
    Stream.

path_down(Reason, #stream{give_up = Before} = Stream) ->
    cancel_give_up(Before),
    Stream#stream{path = undefined, give_up = give_up_later(Stream), down_since_ms = now_ms(),
                  last_break = Reason, resend = []}.

%% How long to look for another path. No ticks watch a channel.
give_up_later(#stream{kind = Kind, counters = Counters}) ->
    case {weft_config:get(resume_timeout_ms), Kind} of
        {auto, distribution} ->
            undefined;
        {auto, {channel, _, _}} ->
            give_up_after(weft_config:net_ticktime_ms());
        {TimeoutMs, _} ->
            weft_session_counters:keep_alive(Counters, true),
            give_up_after(TimeoutMs)
    end.

give_up_after(TimeoutMs) ->
    Token = make_ref(),
    {erlang:send_after(TimeoutMs, self(), {weft_stream, {give_up, Token}}), Token}.

cancel_give_up(undefined) -> ok;
cancel_give_up({Timer, _Token}) -> _ = erlang:cancel_timer(Timer), ok.

%% These are the peer's or the network's word that there is nothing to resume.
closed(_Link, _Label, Reason, #stream{established = true} = Stream)
  when Reason =:= ended; Reason =:= gone; Reason =:= refused; Reason =:= timed_out ->
    {ended, Stream#stream{last_break = Reason}};
closed(Link, Label, Reason, #stream{path = #path{link = Link, label = Current}} = Stream)
  when Reason =/= departed, Label =:= Current orelse Label =:= any ->
    Down = path_down(Reason, Stream),
    case has_died(Stream) of
        true -> {ended, Down#stream{last_break = gone}};
        false -> {ok, attach(Down)}
    end;
closed(_Link, any, departed, #stream{path = undefined, established = true} = Stream) ->
    {ended, Stream#stream{last_break = departed}};
closed(_Link, _Label, _Reason, #stream{path = #path{}} = Stream) ->
    {ok, Stream};
closed(Link, Label, Reason, #stream{opening = {Link, Opening}} = Stream)
  when Label =:= Opening; Label =:= any ->
    failed(Reason, Stream);
closed(_Link, any, Reason, #stream{opening = undefined} = Stream) ->
    failed(Reason, Stream);
closed(_Link, _Label, _Reason, Stream) ->
    {ok, Stream}.

%% The news came before the path was lost.
has_died(#stream{incarnation = undefined}) ->
    false;
has_died(#stream{peer = Peer, incarnation = Incarnation}) ->
    try weft_overlay:has_died(binary_to_existing_atom(Peer), Incarnation)
    catch error:badarg -> false
    end.

%% --- lanes ------------------------------------------------------------------------------------

lane_ready(Socket, #stream{path = #path{lanes = Lanes} = Path} = Stream) ->
    case [Lane || Lane <- weft_lane_turns:all(Lanes), weft_lane:socket(Lane) =:= Socket] of
        [Lane] -> Stream#stream{path = Path#path{lanes = weft_lane_turns:free(Lane, Lanes)}};
        [] -> Stream
    end;
lane_ready(_Socket, Stream) ->
    Stream.

%% What was under way on a lost lane is repeated on the others, together with all that is not
%% acknowledged: the receiver drops what it has. For a moment before a new lane came up, the peer
%% may have had none, though we always had one: then it has forgotten the path, and waits for us to
%% open another. A tick on the new lane finds out; it would be closed.
lanes_changed(Lanes, #stream{path = #path{label = Label, lanes = Lanes0} = Path, out = Out0,
                             repairs = Repairs} = Stream) ->
    {New, Lost, Turns} = weft_lane_turns:change(Lanes, Lanes0),
    tick(New, Label),
    Out1 = weft_outbound_core:lanes(max(1, length(Lanes)), Out0),
    Changed = Stream#stream{path = Path#path{lanes = Turns}, out = Out1},
    case Lost of
        [] ->
            Changed;
        _ ->
            {ok, Items, Out} = weft_outbound_core:resume(0, Out1),
            Changed#stream{out = Out, resend = Items, repairs = Repairs + 1}
    end.

%% --- sending ----------------------------------------------------------------------------------

%% @doc Can a payload be written now: is there a path with a lane that is not busy?
-spec can_send(stream()) -> boolean().
can_send(Stream) -> can_send(in_order, Stream).

can_send(Order, #stream{path = #path{lanes = Lanes}}) -> weft_lane_turns:can(Order, Lanes);
can_send(_Order, _Stream) -> false.

%% @doc Can something be repeated now, or the next part of a payload be sent, by `flush/1'?
-spec to_flush(stream()) -> boolean().
to_flush(#stream{resend = [{_, Kind, _, _} | _]} = Stream) ->
    can_send(weft_lane_turns:order(Kind), Stream);
to_flush(#stream{rest = none}) ->
    false;
to_flush(#stream{out = Out} = Stream) ->
    weft_outbound_core:room(Out) andalso can_send(Stream).

%% @doc Does the window allow another payload, with nothing waiting to be repeated?
-spec room(stream()) -> boolean().
room(#stream{resend = [], rest = none, out = Out}) -> weft_outbound_core:room(Out);
room(_Stream) -> false.

%% @doc What the window and the lanes allow: all, only what is in a hurry, only what travels apart,
%% or nothing.
-spec room(express, stream()) -> weft_fair_queue_core:room() | none.
room(express, #stream{path = #path{lanes = Lanes}, rest = none, resend = Resend, out = Out}) ->
    weft_lane_turns:room(weft_outbound_core:room(Out, express), Resend =/= [], Lanes);
room(express, _Stream) ->
    none.

%% @doc The window now.
-spec window_bytes(stream()) -> pos_integer().
window_bytes(#stream{out = Out}) -> weft_outbound_core:window_bytes(Out).

%% @doc Writes the next of what has to be repeated, or the next part; `none' if nothing or not now.
-spec flush(stream()) -> {ok, stream()} | none.
flush(Stream) ->
    case to_flush(Stream) of
        true -> {ok, flush_one(Stream)};
        false -> none
    end.

flush_one(#stream{resend = [Item | Items]} = Stream) ->
    transmit(Item, Stream#stream{resend = Items});
flush_one(#stream{rest = Rest} = Stream) ->
    push_part(Rest, Stream).

%% @doc Numbers and keeps a payload, and writes it now or as soon as it can be.
-spec push(handshake | weft_fair_queue_core:order(), iodata(), non_neg_integer(), stream()) ->
          stream().
push(Kind, Payload, Bytes, Stream) ->
    case weft_parts:is_too_large(Bytes) of
        false -> push_whole(Kind, Payload, Bytes, Stream);
        true -> push_part(weft_parts:cut(Kind, Payload), Stream)
    end.

push_part(Rest0, Stream) ->
    {Kind, Payload, Bytes, Rest} = weft_parts:next(Rest0),
    push_whole(Kind, Payload, Bytes, Stream#stream{rest = Rest}).

push_whole(Kind, Payload, Bytes, #stream{out = Out0} = Stream0) ->
    {Item, Out} = weft_outbound_core:push(Kind, Payload, Bytes, now_us(), Out0),
    Stream = Stream0#stream{out = Out},
    case Stream of
        #stream{path = undefined} -> Stream;
        #stream{resend = Resend} -> write(weft_lane_turns:order(Kind), Item, Resend, Stream)
    end.

%% What travels apart need not wait for what is repeated.
write(Order, Item, Resend, Stream) ->
    case (Resend =:= [] orelse Order =:= apart) andalso can_send(Order, Stream) of
        true -> transmit(Item, Stream);
        false -> Stream#stream{resend = Resend ++ [Item]}
    end.

transmit({Sequence, Kind, Payload, Bytes},
         #stream{path = #path{label = Label, lanes = Lanes0} = Path,
                 counters = Counters} = Stream) ->
    weft_session_counters:packet_out(Counters, Bytes),
    {Lane, Lanes} = weft_lane_turns:lane(weft_lane_turns:order(Kind), Lanes0),
    Packet = weft_wire:data(Label, Sequence, Kind, Payload),
    Outcome = case weft_lane:send(Lane, Packet, Bytes + header_bytes(Kind), notify) of
                  ok -> free;
                  queued -> busy;
                  %% The link will say that the lane is lost; until then it is as good as busy.
                  {error, _} -> busy
              end,
    case weft_lane_turns:sent(Lane, Bytes, Outcome, Lanes) of
        Lanes0 -> Stream;
        Changed -> Stream#stream{path = Path#path{lanes = Changed}}
    end.

header_bytes({_Apart, _After, _Floor}) -> 30;
header_bytes(_Kind) -> 14.

%% @doc A packet outside the numbering, which may be lost. It is answered by an acknowledgement, and
%% proves to the peer that this node lives. Counted without a path too: who asked for it believes it
%% sent, and asks for the next one only if nothing else seems to be.
-spec tick(stream()) -> stream().
tick(#stream{path = Path, counters = Counters} = Stream) ->
    weft_session_counters:packet_out(Counters, ?TICK_BYTES),
    case Path of
        #path{label = Label} -> tick([first_lane(Path)], Label);
        undefined -> ok
    end,
    Stream.

first_lane(#path{lanes = Lanes}) -> hd(weft_lane_turns:all(Lanes)).

%% @doc To be called now and then: a lane that is kept for what travels apart is given back when
%% there was none since the last time.
-spec spare(stream()) -> stream().
spare(#stream{path = #path{lanes = Lanes} = Path} = Stream) ->
    Stream#stream{path = Path#path{lanes = weft_lane_turns:spare(Lanes)}};
spare(Stream) ->
    Stream.

%% @doc The socket of a lane that is used now.
-spec socket(stream()) -> {ok, weft_transport:socket()} | {error, enotconn}.
socket(#stream{path = #path{} = Path}) -> {ok, weft_lane:socket(first_lane(Path))};
socket(_Stream) -> {error, enotconn}.

%% @doc Why the last path was lost, or the stream ended.
-spec last_break(stream()) -> term().
last_break(#stream{last_break = Reason}) -> Reason.

%% --- what others see --------------------------------------------------------------------------

%% @doc Path, lanes, bytes not acknowledged, resumes (on a new path), repairs (of a lost lane, on
%% the same path) and the last error.
-spec info(stream()) -> map().
info(#stream{path = Path, out = Out, counters = Counters} = Stream) ->
    Stats = weft_session_counters:read(Counters),
    Window = weft_outbound_core:window(Out),
    maps:merge(maps:merge(Stats, Window), maps:merge(path_info(Path),
        #{role => Stream#stream.role, unacked_bytes => weft_outbound_core:unacked_bytes(Out),
          resumes => Stream#stream.resumes, repairs => Stream#stream.repairs,
          last_error => Stream#stream.last_break,
          last_resume_ms => Stream#stream.last_resume_ms})).

path_info(undefined) ->
    #{link => undefined, lanes => [], label => undefined};
path_info(#path{link = Link, label = Label, lanes = Lanes}) ->
    #{link => Link, label => Label,
      lanes => lists:sort([weft_lane:index(Lane) || Lane <- weft_lane_turns:all(Lanes)])}.

now_ms() -> erlang:monotonic_time(millisecond).

now_us() -> erlang:monotonic_time(microsecond).
