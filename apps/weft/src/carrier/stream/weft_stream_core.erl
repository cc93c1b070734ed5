%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of a stream: which path it uses, what is written to which lane, when it resumes,
%% and when it has ended.
%%
%% Pure; called in place by the process that owns the stream. `weft_stream' carries out what this
%% module decides on real links, the simulator on simulated ones. Links and lanes are terms that are
%% not looked into. Times are in microseconds; timers are never cancelled, they carry a token.
%%
%% Payloads are numbered and kept (`weft_outbound_core'), and striped over the lanes of the current
%% path (`weft_lane_turns'). When a lane is lost what is not acknowledged is repeated on the others.
%% When the path breaks, the end that began the stream opens another one, and the other end waits
%% until it does. On the new path each side learns what the other has received and repeats the rest.
%% The stream has ended when the peer's node is known to be gone, when the peer says so, or when
%% there was no path for resume_timeout_ms.
%%
%% Two inputs. `handle/3' takes events of the control plane and returns effects. The data plane
%% (`room', `push', `flush', `acked') builds no effects: a payload that can be written is returned
%% with its lane and label, and the caller says by `sent/4' whether the lane can take more.
%%
%% Races: an answer for an earlier attempt has another label than the one in `opening', and is
%% ignored. Both ends may break the path at once: the acceptor drops what it has when it is reached
%% by another path.
-module(weft_stream_core).

-export([initiator/2, acceptor/4, connect/2, close/1, handle/3, acked/3, lane_ready/2,
         say_accepted/1, room/1, room/2, can_send/1, to_flush/1, window_bytes/1, push/5, flush/2,
         sent/4, lanes/1, tick/1, spare/1, incarnation/1, last_break/1, info/1,
         route_timeout_ms/0]).
-export_type([state/0, path/0, event/0, effect/0, outcome/0, write/0, about/0]).

%% An opened path that is not answered in this time is given up for another try.
-define(OPEN_TIMEOUT_MS, 3000).
%% The window never shrinks below this, except while the round trip is measured.
-define(WINDOW_MIN_BYTES, 262144).
%% A first attempt looks for a route for so long.
-define(ROUTE_TIMEOUT_MS, 1500).
%% A peer that has left one neighbour is back over another one by then.
-define(RETURN_MS, 500).
-define(RETRY_MIN_MS, 10).
-define(RETRY_MAX_MS, 250).

-type link() :: term().
-type lane() :: term().
-type label() :: weft_wire:label().
-type token() :: pos_integer().
-type path() :: {link(), [lane()], label()}.

%% What the caller knows when a path is lost or refused.
-type about() :: #{%% The incarnation of the peer that this stream is with has ended.
                   has_died := boolean(),
                   %% There is a route to the peer, or there may be one soon.
                   may_be_found := boolean(),
                   resume_timeout_ms := auto | pos_integer(),
                   net_ticktime_ms := pos_integer()}.

-type event() ::
        %% What the link of a path says.
        {opening, link(), label()}
      | {accepted, link(), [lane()], label(), weft_wire:sequence()}
      | {reattached, link(), [lane()], label(), weft_wire:sequence()}
      | {lanes, link(), label(), [lane()]}
      | {available, link()}
      | {incarnation, non_neg_integer()}
      | {closed, link(), label() | any, Reason :: term(), about()}
        %% The answer to the effect find_link.
      | {link, open | {move, link()}, {ok, link(), IsUp :: boolean()} | {error, Reason :: term()}}
        %% What is said of the peer's node.
      | {died, node(), non_neg_integer()}
      | {departed, node(), non_neg_integer(), Witness :: term()}
      | {return_is_due, SinceUs :: integer(), HasRoute :: boolean()}
        %% What the stream needs on this node is gone.
      | {without, Reason :: term()}
      | {retry, token()}
      | {give_up, token()}.

-type effect() ::
        %% Look for the link that leads to the peer now; the answer is an event, at once.
        {find_link, open | {move, link()}}
      | {watch, link()}
        %% Ask that link for a circuit, and to forget one. What was received is said with it.
      | {open, link(), new | resume}
      | {drop, link(), label()}
        %% To be written, outside of the numbering. What was received is said with the first.
      | {accept, lane(), label()}
      | {tick, [lane()], label()}
      | {incarnation, lane(), label()}
        %% For the counters that the kernel's ticker reads.
      | heard
      | {keep_alive, boolean()}
        %% The first attempt has failed, before anybody waits: come back with {closed, _, any, ..}.
      | {again, Reason :: term()}
      | {after_ms, pos_integer(), {retry | give_up, token()} | {return_is_due, node(), integer()}}.

%% connected: there is the first path. failed: there will be none. ended: nothing to resume.
-type outcome() :: ok | connected | {failed, Reason :: term()} | ended | lost.

%% The payload to write now, or none: it was kept and will be written by `flush/2'.
-type write() :: {write, lane(), label(), weft_outbound_core:item(), state()} | {kept, state()}.

-record(path, {link :: link(),
               label :: label(),
               lanes :: weft_lane_turns:turns(lane())}).
-record(stream, {role :: initiator | acceptor,
                 kind :: weft_wire:stream_kind(),
                 %% The incarnation of the peer's node that this stream is with, once it is told.
                 incarnation :: non_neg_integer() | undefined,
                 out :: weft_outbound_core:state(),
                 path :: #path{} | undefined,
                 opening :: {link(), label()} | undefined,
                 established = false :: boolean(),
                 connecting = false :: boolean(),
                 %% When it began to look for its first path.
                 since_us = 0 :: integer(),
                 closed = false :: boolean(),
                 resend = [] :: [weft_outbound_core:item()],
                 %% What is left of a payload that is sent in parts. Nothing else is pushed before.
                 rest = none :: none | weft_parts:rest(),
                 retry_ms = ?RETRY_MIN_MS :: pos_integer(),
                 last_token = 0 :: non_neg_integer(),
                 retry :: token() | undefined,
                 give_up :: token() | undefined,
                 down_since_us :: integer() | undefined,
                 resumes = 0 :: non_neg_integer(),
                 repairs = 0 :: non_neg_integer(),
                 last_break :: term(),
                 last_resume_ms :: non_neg_integer() | undefined}).
-opaque state() :: #stream{}.

%% --- begin and end ----------------------------------------------------------------------------

%% @doc The end that begins; no path is looked for yet.
-spec initiator(weft_wire:stream_kind(), WindowBytes :: pos_integer()) -> state().
initiator(Kind, WindowBytes) ->
    #stream{role = initiator, kind = Kind, out = outbound(WindowBytes)}.

%% @doc The end that was reached over Path.
-spec acceptor(weft_wire:stream_kind(), WindowBytes :: pos_integer(), path(), NowUs :: integer()) ->
          {state(), [effect()]}.
acceptor(Kind, WindowBytes, Path, NowUs) ->
    on_path(Path, NowUs, #stream{role = acceptor, kind = Kind, out = outbound(WindowBytes),
                                 established = true}).

outbound(Max) -> weft_outbound_core:new(min(?WINDOW_MIN_BYTES, Max), Max).

%% @doc Begins to look for the first path; the outcome is `connected' or `failed'.
-spec connect(NowUs :: integer(), state()) -> {state(), [effect()]}.
connect(NowUs, Stream) -> attach(Stream#stream{connecting = true, since_us = NowUs}).

%% @doc No further path is looked for.
-spec close(state()) -> state().
close(Stream) -> Stream#stream{closed = true, path = undefined}.

%% @doc How long a first attempt looks for a route.
-spec route_timeout_ms() -> pos_integer().
route_timeout_ms() -> ?ROUTE_TIMEOUT_MS.

%% --- events -----------------------------------------------------------------------------------

%% @doc What an event means for the stream, and what is to be done, in that order. An event that
%% means nothing (now) changes nothing.
-spec handle(event(), NowUs :: integer(), state()) -> {outcome(), state(), [effect()]}.
handle({lanes, Link, Label, Lanes}, _NowUs,
       #stream{path = #path{link = Link, label = Label}} = Stream) ->
    ok(lanes_changed(Lanes, Stream));
handle({opening, Link, Label}, _NowUs, Stream) ->
    ok(retry_after(?OPEN_TIMEOUT_MS, Stream#stream{opening = {Link, Label}}));
handle({accepted, Link, Lanes, Label, Received}, NowUs,
       #stream{opening = {Link, Label}} = Stream) ->
    accepted({Link, Lanes, Label}, Received, NowUs, Stream);
handle({reattached, Link, Lanes, Label, Received}, NowUs, Stream) ->
    reattached({Link, Lanes, Label}, Received, NowUs, Stream);
handle({available, Link}, _NowUs, #stream{role = initiator, path = #path{link = Other}} = Stream)
  when Other =/= Link ->
    {ok, Stream, [{find_link, {move, Link}}]};
handle({link, {move, Link}, {ok, Link, true}}, _NowUs, Stream) ->
    ok(attach(Stream));
handle({link, open, Found}, _NowUs, Stream) ->
    ok(found(Found, Stream));
handle({closed, Link, Label, Reason, About}, NowUs, Stream) ->
    closed(Link, Label, Reason, About, NowUs, Stream);
handle({incarnation, Incarnation}, _NowUs, Stream) ->
    {ok, Stream#stream{incarnation = Incarnation}, []};
handle({died, _Node, Incarnation}, _NowUs,
       #stream{path = undefined, established = true, incarnation = Incarnation} = Stream) ->
    ended(gone, Stream);
%% A node that may be alive elsewhere gets a moment to be found there.
handle({departed, Node, Incarnation, _Witness}, _NowUs,
       #stream{path = undefined, incarnation = Incarnation, down_since_us = SinceUs} = Stream) ->
    {ok, Stream, [{after_ms, ?RETURN_MS, {return_is_due, Node, SinceUs}}]};
handle({return_is_due, SinceUs, false}, _NowUs,
       #stream{path = undefined, established = true, down_since_us = SinceUs} = Stream) ->
    ended(departed, Stream);
handle({without, Reason}, _NowUs, #stream{established = true} = Stream) ->
    ended(Reason, Stream);
handle({without, Reason}, NowUs, Stream) ->
    failed(Reason, true, NowUs, Stream);
handle({retry, Token}, _NowUs, #stream{path = undefined, retry = Token} = Stream) ->
    ok(attach(Stream#stream{retry = undefined}));
handle({give_up, Token}, _NowUs, #stream{give_up = Token} = Stream) ->
    {ended, Stream, []};
handle(_Event, _NowUs, Stream) ->
    {ok, Stream, []}.

ok({Stream, Effects}) -> {ok, Stream, Effects}.

ended(Reason, Stream) -> {ended, Stream#stream{last_break = Reason}, []}.

%% --- paths ------------------------------------------------------------------------------------

%% The initiator asks for a path; the acceptor waits until it does.
attach(#stream{role = acceptor} = Stream) ->
    {Stream, []};
attach(#stream{closed = true} = Stream) ->
    {Stream, []};
attach(#stream{opening = {Link, Label}} = Stream) ->
    {Stream#stream{opening = undefined}, [{drop, Link, Label}, {find_link, open}]};
attach(Stream) ->
    {Stream, [{find_link, open}]}.

found({ok, Link, IsUp}, #stream{path = Path, established = Established} = Stream0) ->
    {Stream, Later} = wait_for_link(IsUp, Stream0#stream{opening = undefined}),
    Mode = case Established of true -> resume; false -> new end,
    {Stream, [{watch, Link} || Path =:= undefined] ++ [{open, Link, Mode} | Later]};
%% As for a refused path, if nobody can be told yet.
found({error, Reason}, #stream{established = false, connecting = true} = Stream) ->
    {Stream#stream{opening = undefined}, [{again, Reason}]};
found({error, Reason}, Stream) ->
    pause(Reason, Stream).

%% A link that is down opens when it comes up; by then the router may know a way around.
wait_for_link(false, #stream{established = true} = Stream) -> retry_later(Stream);
wait_for_link(_IsUp, Stream) -> retry_after(?OPEN_TIMEOUT_MS, Stream).

%% A first attempt that fails is reported to the owner; later ones go on until the stream gives up.
%% If there is no route to a node that may exist, the attempt is repeated for a moment: while
%% neighbours change routes change as well, and a gateway may have none while this node has one.
failed(Reason, MayBeFound, NowUs, #stream{established = false, connecting = true} = Stream) ->
    case is_passing(Reason, MayBeFound, NowUs, Stream) of
        true -> ok(pause(Reason, Stream));
        false -> {{failed, Reason}, Stream#stream{connecting = false, last_break = Reason}, []}
    end;
failed(Reason, _MayBeFound, _NowUs, Stream) ->
    ok(pause(Reason, Stream)).

%% The reason says something about the path that was tried, not about the node. A link to a next hop
%% ends when that node is gone.
is_passing(no_route, MayBeFound, NowUs, #stream{since_us = SinceUs}) ->
    MayBeFound andalso NowUs - SinceUs < ?ROUTE_TIMEOUT_MS * 1000;
is_passing(broken, _, _, _) -> true;
is_passing({dial, simultaneous}, _, _, _) -> true;
is_passing({dial, overload}, _, _, _) -> true;
is_passing({link_process, _}, _, _, _) -> true;
is_passing(_, _, _, _) -> false.

pause(Reason, Stream) ->
    retry_later(Stream#stream{last_break = Reason, opening = undefined}).

retry_later(#stream{retry_ms = RetryMs} = Stream) ->
    retry_after(RetryMs, Stream#stream{retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)}).

retry_after(DelayMs, Stream0) ->
    {Token, Stream} = token(Stream0),
    {Stream#stream{retry = Token}, [{after_ms, DelayMs, {retry, Token}}]}.

token(#stream{last_token = Last} = Stream) -> {Last + 1, Stream#stream{last_token = Last + 1}}.

%% The open was accepted: the first path, or one that resumes.
accepted(Path, _Received, NowUs, #stream{established = false} = Stream0) ->
    {Stream, Effects} = on_path(Path, NowUs, Stream0#stream{established = true,
                                                            connecting = false}),
    {connected, Stream, Effects};
accepted(Path, Received, NowUs, Stream0) ->
    {Dropped, Drop} = drop_path(NowUs, Stream0),
    {Stream, On} = on_path(Path, NowUs, Dropped),
    resume(Received, Stream, [heard | Drop] ++ On).

%% The peer reached this end by another path. It is told first what was received, so that it can
%% repeat from there.
reattached(Path, Received, NowUs, Stream0) ->
    {Dropped, Drop} = drop_path(NowUs, Stream0),
    {Stream, On} = on_path(Path, NowUs, Dropped),
    resume(Received, Stream, [heard | Drop] ++ On ++ say_accepted(Stream)).

%% @doc To tell the initiator that its open has been accepted, and what was received so far.
-spec say_accepted(state()) -> [effect()].
say_accepted(#stream{path = #path{label = Label} = Path}) -> [{accept, first(Path), Label}].

resume(Received, #stream{out = Out0, resumes = Resumes} = Stream, Effects) ->
    case weft_outbound_core:resume(Received, Out0) of
        {ok, Items, Out} ->
            {ok, Stream#stream{out = Out, resend = Items, resumes = Resumes + 1}, Effects};
        {error, lost} ->
            {lost, Stream#stream{last_break = resume_lost}, Effects}
    end.

%% The incarnation is told each time, because it is not repeated if it is lost.
on_path({Link, Lanes, Label}, NowUs, #stream{out = Out, down_since_us = SinceUs,
                                             last_resume_ms = LastMs} = Stream) ->
    Told = [{incarnation, Lane, Label} || Lane <- lists:sublist(Lanes, 1)],
    {Stream#stream{path = #path{link = Link, label = Label, lanes = weft_lane_turns:new(Lanes, [])},
                   opening = undefined, out = weft_outbound_core:lanes(length(Lanes), Out),
                   give_up = undefined, retry = undefined, retry_ms = ?RETRY_MIN_MS,
                   resend = [], down_since_us = undefined,
                   last_resume_ms = case SinceUs of
                                        undefined -> LastMs;
                                        _ -> (NowUs - SinceUs) div 1000
                                    end},
     [{keep_alive, false}] ++ Told ++ [{watch, Link}]}.

%% There is another path at once, so no time to give up.
drop_path(NowUs, #stream{path = #path{link = Link, label = Label}} = Stream) ->
    {path_down(replaced, NowUs, Stream), [{drop, Link, Label}]};
drop_path(_NowUs, Stream) ->
    {Stream, []}.

path_down(Reason, NowUs, Stream) ->
    Stream#stream{path = undefined, down_since_us = NowUs, last_break = Reason, resend = []}.

%% How long to look for another path. With `auto' the kernel's ticks decide about a connection of
%% the distribution, as on stock Erlang; no ticks watch a channel.
give_up_later(#{resume_timeout_ms := auto}, #stream{kind = distribution} = Stream) ->
    {Stream#stream{give_up = undefined}, []};
give_up_later(#{resume_timeout_ms := auto, net_ticktime_ms := TimeoutMs}, Stream) ->
    give_up_after(TimeoutMs, [], Stream);
give_up_later(#{resume_timeout_ms := TimeoutMs}, Stream) ->
    give_up_after(TimeoutMs, [{keep_alive, true}], Stream).

give_up_after(TimeoutMs, Effects, Stream0) ->
    {Token, Stream} = token(Stream0),
    {Stream#stream{give_up = Token}, Effects ++ [{after_ms, TimeoutMs, {give_up, Token}}]}.

%% With the first reasons the peer or the network says that there is nothing to resume.
closed(_Link, _Label, Reason, _About, _NowUs, #stream{established = true} = Stream)
  when Reason =:= ended; Reason =:= gone; Reason =:= refused; Reason =:= timed_out ->
    ended(Reason, Stream);
closed(Link, Label, Reason, About, NowUs,
       #stream{path = #path{link = Link, label = Current}} = Stream)
  when Reason =/= departed, Label =:= Current orelse Label =:= any ->
    lost_path(About, path_down(Reason, NowUs, Stream));
closed(_Link, any, departed, _, _, #stream{path = undefined, established = true} = Stream) ->
    ended(departed, Stream);
closed(_Link, _Label, _Reason, _About, _NowUs, #stream{path = #path{}} = Stream) ->
    {ok, Stream, []};
closed(Link, Label, Reason, #{may_be_found := MayBeFound}, NowUs,
       #stream{opening = {Link, Opening}} = Stream) when Label =:= Opening; Label =:= any ->
    failed(Reason, MayBeFound, NowUs, Stream);
closed(_Link, any, Reason, #{may_be_found := MayBeFound}, NowUs,
       #stream{opening = undefined} = Stream) ->
    failed(Reason, MayBeFound, NowUs, Stream);
closed(_Link, _Label, _Reason, _About, _NowUs, Stream) ->
    {ok, Stream, []}.

%% The news of an end may have come before the path was lost.
lost_path(#{has_died := true}, Stream) ->
    ended(gone, Stream);
lost_path(About, Stream0) ->
    {Stream1, Later} = give_up_later(About, Stream0),
    {Stream, Attached} = attach(Stream1),
    {ok, Stream, Later ++ Attached}.

%% --- lanes ------------------------------------------------------------------------------------

%% @doc That lane can take more.
-spec lane_ready(lane(), state()) -> state().
lane_ready(Lane, #stream{path = #path{lanes = Lanes} = Path} = Stream) ->
    Stream#stream{path = Path#path{lanes = weft_lane_turns:free(Lane, Lanes)}};
lane_ready(_Lane, Stream) ->
    Stream.

%% What was under way on a lost lane is repeated on the others, together with all that is not
%% acknowledged: the receiver drops what it has. For a moment before a new lane came up the peer may
%% have had none, although this end always had one. Then the peer has forgotten the path, and waits
%% until this end opens another. A tick on the new lane finds this out: the circuit would be closed.
lanes_changed(Lanes, #stream{path = #path{label = Label, lanes = Lanes0} = Path, out = Out0,
                             repairs = Repairs} = Stream) ->
    {New, Lost, Turns} = weft_lane_turns:change(Lanes, Lanes0),
    Out1 = weft_outbound_core:lanes(max(1, length(Lanes)), Out0),
    Changed = Stream#stream{path = Path#path{lanes = Turns}, out = Out1},
    Tick = [{tick, New, Label} || New =/= []],
    case Lost of
        [] ->
            {Changed, Tick};
        _ ->
            {ok, Items, Out} = weft_outbound_core:resume(0, Out1),
            {Changed#stream{out = Out, resend = Items, repairs = Repairs + 1}, Tick}
    end.

first(#path{lanes = Lanes}) -> hd(weft_lane_turns:all(Lanes)).

%% @doc The lanes of the current path.
-spec lanes(state()) -> [lane()].
lanes(#stream{path = #path{lanes = Lanes}}) -> weft_lane_turns:all(Lanes);
lanes(_Stream) -> [].

%% @doc To be called at intervals: a lane that is reserved for bypass payloads becomes an ordinary
%% one if there were none since the last call.
-spec spare(state()) -> state().
spare(#stream{path = #path{lanes = Lanes} = Path} = Stream) ->
    Stream#stream{path = Path#path{lanes = weft_lane_turns:spare(Lanes)}};
spare(Stream) ->
    Stream.

%% --- sending ----------------------------------------------------------------------------------

%% @doc Can a payload be written now: is there a path with a lane that is not busy?
-spec can_send(state()) -> boolean().
can_send(Stream) -> can_send(in_order, Stream).

can_send(Order, #stream{path = #path{lanes = Lanes}}) -> weft_lane_turns:can(Order, Lanes);
can_send(_Order, _Stream) -> false.

%% @doc Can something be repeated now, or the next part of a payload be sent, by `flush/2'?
-spec to_flush(state()) -> boolean().
to_flush(#stream{resend = [{_, Kind, _, _} | _]} = Stream) ->
    can_send(weft_lane_turns:order(Kind), Stream);
to_flush(#stream{rest = none}) ->
    false;
to_flush(#stream{out = Out} = Stream) ->
    weft_outbound_core:room(Out) andalso can_send(Stream).

%% @doc Does the window allow another payload, with nothing waiting to be repeated?
-spec room(state()) -> boolean().
room(#stream{resend = [], rest = none, out = Out}) -> weft_outbound_core:room(Out);
room(_Stream) -> false.

%% @doc What the window and the lanes allow: all, only what is urgent, only bypass payloads, or
%% nothing.
-spec room(express, state()) -> weft_fair_queue_core:room() | none.
room(express, #stream{path = #path{lanes = Lanes}, rest = none, resend = Resend, out = Out}) ->
    weft_lane_turns:room(weft_outbound_core:room(Out, express), Resend =/= [], Lanes);
room(express, _Stream) ->
    none.

%% @doc The window now.
-spec window_bytes(state()) -> pos_integer().
window_bytes(#stream{out = Out}) -> weft_outbound_core:window_bytes(Out).

%% @doc Numbers and keeps a payload, to be written now or as soon as it can be.
-spec push(handshake | weft_fair_queue_core:order(), iodata(), Bytes :: non_neg_integer(),
           NowUs :: integer(), state()) -> write().
push(Kind, Payload, Bytes, NowUs, Stream) ->
    case weft_parts:is_too_large(Bytes) of
        false -> push_whole(Kind, Payload, Bytes, NowUs, Stream);
        true -> push_part(weft_parts:cut(Kind, Payload), NowUs, Stream)
    end.

push_part(Rest0, NowUs, Stream) ->
    {Kind, Payload, Bytes, Rest} = weft_parts:next(Rest0),
    push_whole(Kind, Payload, Bytes, NowUs, Stream#stream{rest = Rest}).

push_whole(Kind, Payload, Bytes, NowUs, #stream{out = Out0} = Stream0) ->
    {Item, Out} = weft_outbound_core:push(Kind, Payload, Bytes, NowUs, Out0),
    Stream = Stream0#stream{out = Out},
    case Stream of
        #stream{path = undefined} -> {kept, Stream};
        #stream{resend = Resend} -> write(weft_lane_turns:order(Kind), Item, Resend, Stream)
    end.

%% Bypass payloads need not wait for payloads that are repeated.
write(Order, Item, Resend, Stream) ->
    case (Resend =:= [] orelse Order =:= apart) andalso can_send(Order, Stream) of
        true -> to_lane(Order, Item, Stream);
        false -> {kept, Stream#stream{resend = Resend ++ [Item]}}
    end.

to_lane(Order, Item, #stream{path = #path{label = Label, lanes = Lanes0} = Path} = Stream) ->
    case weft_lane_turns:lane(Order, Lanes0) of
        {Lane, Lanes0} -> {write, Lane, Label, Item, Stream};
        {Lane, Lanes} -> {write, Lane, Label, Item, Stream#stream{path = Path#path{lanes = Lanes}}}
    end.

%% @doc The next payload that has to be repeated, or the next part; only if there is one
%% (`to_flush/1').
-spec flush(NowUs :: integer(), state()) -> write().
flush(_NowUs, #stream{resend = [{_, Kind, _, _} = Item | Items]} = Stream) ->
    to_lane(weft_lane_turns:order(Kind), Item, Stream#stream{resend = Items});
flush(NowUs, #stream{rest = Rest} = Stream) ->
    push_part(Rest, NowUs, Stream).

%% @doc A payload was given to that lane, which can take more or not.
-spec sent(lane(), Bytes :: non_neg_integer(), free | busy, state()) -> state().
sent(Lane, Bytes, Outcome, #stream{path = #path{lanes = Lanes0} = Path} = Stream) ->
    case weft_lane_turns:sent(Lane, Bytes, Outcome, Lanes0) of
        Lanes0 -> Stream;
        Lanes -> Stream#stream{path = Path#path{lanes = Lanes}}
    end.

%% @doc The peer has received everything up to that number. To ask for an acknowledgement a tick is
%% sent on each lane: the last of them to arrive comes after all that was sent.
-spec acked(weft_wire:sequence(), NowUs :: integer(), state()) -> {state(), [effect()]}.
acked(Sequence, NowUs, #stream{out = Out0, path = Path} = Stream) ->
    case {weft_outbound_core:acked(Sequence, NowUs, Out0), Path} of
        {{ask, Out}, #path{label = Label, lanes = Lanes}} ->
            {Stream#stream{out = Out}, [{tick, weft_lane_turns:all(Lanes), Label}]};
        {{_, Out}, _} ->
            {Stream#stream{out = Out}, []}
    end.

%% @doc A tick of the kernel's ticker: a packet outside the numbering, which may be lost. It is
%% answered by an acknowledgement, and proves to the peer that this node is alive.
-spec tick(state()) -> [effect()].
tick(#stream{path = #path{label = Label} = Path}) -> [{tick, [first(Path)], Label}];
tick(_Stream) -> [].

%% --- what others see --------------------------------------------------------------------------

%% @doc The incarnation of the peer's node, once it is told.
-spec incarnation(state()) -> non_neg_integer() | undefined.
incarnation(#stream{incarnation = Incarnation}) -> Incarnation.

%% @doc Why the last path was lost, or the stream ended.
-spec last_break(state()) -> term().
last_break(#stream{last_break = Reason}) -> Reason.

%% @doc Path, window, bytes not acknowledged, resumes (on a new path), repairs (of a lost lane, on
%% the same path) and the last error.
-spec info(state()) -> map().
info(#stream{path = Path, out = Out} = Stream) ->
    {Link, Label} = case Path of
                        undefined -> {undefined, undefined};
                        #path{link = Of, label = Under} -> {Of, Under}
                    end,
    maps:merge(weft_outbound_core:window(Out),
               #{link => Link, label => Label, lanes => lanes(Stream),
                 role => Stream#stream.role,
                 unacked_bytes => weft_outbound_core:unacked_bytes(Out),
                 resumes => Stream#stream.resumes, repairs => Stream#stream.repairs,
                 last_error => Stream#stream.last_break,
                 last_resume_ms => Stream#stream.last_resume_ms}).
