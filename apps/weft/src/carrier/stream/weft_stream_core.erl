%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of a stream: what is written to which lane of its path, what is repeated on
%% another lane or another path, and when it has ended.
%%
%% Pure; called in place by the owner of the stream. `weft_stream' carries out what is decided here
%% on real links, the simulator on simulated ones. Links and lanes are opaque, times microseconds.
%%
%% Payloads are numbered and kept (`weft_outbound_core'), and striped over the lanes of the current
%% path (`weft_lane_turns'). When a lane is lost what is not acknowledged is repeated on the others.
%% When the path breaks, another one is looked for (`weft_path_search'). On the new path each side
%% learns what the other has received and repeats the rest. The stream has ended when somebody says
%% so whose word counts (`weft_stream_end'), or when the search is given up.
%%
%% Two inputs. `handle/3' takes events of the control plane and returns effects. The data plane
%% (`room', `push', `flush', `acked') builds no effects: a payload that can be written is returned
%% with its lane and label, and the caller says by `sent/4' whether the lane can take more.
%%
%% Races: both ends may break the path at once, or the acceptor may not have noticed yet: it drops
%% what it has when it is reached by another path.
-module(weft_stream_core).

-export([initiator/2, acceptor/4, connect/2, close/1, handle/3, acked/4, relayed/2, lane_ready/2,
         say_accepted/1, room/1, room/2, can_send/1, to_flush/1, window_bytes/1, push/5, flush/2,
         sent/4, lanes/1, tick/1, spare/1, rest/2, incarnation/1, last_break/1, info/1,
         code_change/1]).
-export_type([state/0, path/0, event/0, effect/0, outcome/0, write/0]).
-compile({inline, [push_whole/5, write/3, order/1]}). % on the way of each message

%% The window never shrinks below this, except while the round trip is measured.
-define(WINDOW_MIN_BYTES, 262144).

-type link() :: term().
-type lane() :: term().
-type label() :: weft_wire:label().
-type path() :: {link(), [lane()], label()}.

-type event() ::
        weft_path_search:event()
      | weft_stream_end:event()
        %% What the link of a path says.
      | {accepted, link(), [lane()], label(), weft_wire:sequence()}
      | {reattached, link(), [lane()], label(), weft_wire:sequence()}
      | {lanes, link(), label(), [lane()]}
      | {incarnation, non_neg_integer()}
        %% The answer to the effect of that name.
      | {losses, integer() | unknown}.

-type effect() ::
        %% To the effect again the answer is {closed, _, any, ..}.
        weft_path_search:effect()
        %% To be written, outside of the numbering. What was received is said with the first.
      | {accept, lane(), label()} | {incarnation, lane(), label()} | weft_stream_tick:effect()
        %% With each acknowledgement on these lanes the peer is to say when it sent it.
      | {times, [lane()], label()}
        %% For what the kernel's ticker asks (`weft_session_counts'), and for counters of the node.
      | {for_ticker, path_in} | {count, resumes | repairs}
        %% To be asked of the kernel.
      | {losses, [lane()]}
        %% It is not at rest any more (`rest/2').
      | woken
      | {keep_alive, false}.

%% connected: there is the first path. failed: there will be none. ended: nothing to resume.
-type outcome() :: ok | connected | {failed, Reason :: term()} | ended | lost.

%% The payload to write now, which counts as `payload_out', or none: it was kept and will be written
%% by `flush/2'.
-type write() :: {write, lane(), label(), weft_outbound_core:item(), state()} | {kept, state()}.

-record(path, {link :: link(), label :: label(),
               lanes :: weft_lane_turns:turns(lane())}).
-record(stream, {role :: initiator | acceptor,
                 kind :: weft_wire:stream_kind(),
                 %% The incarnation of the peer's node that this stream is with, once it is told.
                 incarnation :: non_neg_integer() | undefined,
                 out :: weft_outbound_core:state(),
                 path :: #path{} | undefined,
                 search :: weft_path_search:search(),
                 %% There was a path: the peer has this stream, too.
                 established = false :: boolean(),
                 resend = [] :: [weft_outbound_core:item()],
                 %% What is left of a payload that is sent in parts. Nothing else is pushed before.
                 rest = none :: none | weft_parts:rest(),
                 resumes = 0 :: non_neg_integer(),
                 repairs = 0 :: non_neg_integer(),
                 last_break :: term()}).
-opaque state() :: #stream{}.

%% --- begin and end ----------------------------------------------------------------------------

%% @doc The end that begins; no path is looked for yet.
-spec initiator(weft_wire:stream_kind(), WindowBytes :: pos_integer()) -> state().
initiator(Kind, WindowBytes) ->
    #stream{role = initiator, kind = Kind, out = outbound(WindowBytes),
            search = weft_path_search:new(initiator)}.

%% @doc The end that was reached over Path.
-spec acceptor(weft_wire:stream_kind(), WindowBytes :: pos_integer(), path(), NowUs :: integer()) ->
          {state(), [effect()]}.
acceptor(Kind, WindowBytes, Path, NowUs) ->
    on_path(Path, NowUs, #stream{role = acceptor, kind = Kind, out = outbound(WindowBytes),
                                 search = weft_path_search:new(acceptor), established = true}).

outbound(Max) -> weft_outbound_core:new(min(?WINDOW_MIN_BYTES, Max), Max).

%% @doc Begins to look for the first path; the outcome is `connected' or `failed'.
-spec connect(NowUs :: integer(), state()) -> {state(), [effect()]}.
connect(NowUs, #stream{search = Search} = Stream) ->
    searched(weft_path_search:first(NowUs, Search), Stream).

%% @doc No further path is looked for.
-spec close(state()) -> state().
close(#stream{search = Search} = Stream) ->
    Stream#stream{search = weft_path_search:stop(Search), path = undefined}.

%% --- events -----------------------------------------------------------------------------------

%% @doc What an event means for the stream, and what is to be done, in that order. An event that
%% means nothing (now) changes nothing, but ends a rest: whatever happens may change the path, and
%% with it where ticks are to be written.
-spec handle(event(), NowUs :: integer(), state()) -> {outcome(), state(), [effect()]}.
handle(Event, NowUs, Stream0) ->
    {Outcome, Stream, Effects} = happened(Event, NowUs, Stream0),
    {Outcome, Stream, [woken | Effects]}.

happened({lanes, Link, Label, Lanes}, _NowUs,
         #stream{path = #path{link = Link, label = Label}} = Stream) ->
    ok(lanes_changed(Lanes, Stream));
happened({accepted, Link, Lanes, Label, Received}, NowUs, #stream{search = Search} = Stream) ->
    case weft_path_search:concerns(Link, Label, Search) of
        true -> accepted({Link, Lanes, Label}, Received, NowUs, Stream);
        false -> {ok, Stream, []}
    end;
happened({reattached, Link, Lanes, Label, Received}, NowUs, Stream) ->
    reattached({Link, Lanes, Label}, Received, NowUs, Stream);
%% Who answers for a stream that has begun is who began it.
happened({incarnation, Now}, NowUs, #stream{established = true, incarnation = Known} = Stream)
  when is_integer(Known), Known =/= Now ->
    happened({restarted, Now}, NowUs, Stream);
happened({incarnation, Incarnation}, _NowUs, Stream) ->
    {ok, Stream#stream{incarnation = Incarnation}, []};
happened({losses, Count}, _NowUs, #stream{out = Out} = Stream) ->
    {ok, Stream#stream{out = weft_outbound_core:losses(Count, Out)}, []};
happened({link, open, {error, Reason}} = NoLink, _NowUs, Stream) ->
    search(NoLink, Stream#stream{last_break = Reason});
happened(Event, NowUs, Stream) ->
    judged(weft_stream_end:heard(Event, known(Stream)), Event, NowUs, Stream).

known(#stream{path = Path, established = IsEstablished, incarnation = Incarnation,
              search = Search}) ->
    #{path => case Path of #path{link = Link, label = Label} -> {Link, Label}; _ -> none end,
      established => IsEstablished, incarnation => Incarnation, search => Search}.

judged({ended, Reason}, _Event, _NowUs, Stream) ->
    ended(Reason, Stream);
judged({path_lost, Reason, died}, _Event, NowUs, Stream) ->
    ended(died, path_down(Reason, NowUs, Stream));
judged({path_lost, Reason, lives}, {closed, _, _, _, Limits}, NowUs, Stream0) ->
    #stream{kind = Kind, search = Search} = Stream = path_down(Reason, NowUs, Stream0),
    ok(searched(weft_path_search:again(Limits, Kind, Search), Stream));
judged({failed, Reason, MayBeFound}, _Event, NowUs, #stream{search = Search} = Stream) ->
    searched(weft_path_search:failed(Reason, MayBeFound, NowUs, Search),
             Stream#stream{last_break = Reason});
judged({may_return, Node}, _Event, _NowUs, #stream{search = Search} = Stream) ->
    {ok, Stream, weft_path_search:await_return(Node, Search)};
judged(nothing, Event, _NowUs, Stream) ->
    search(Event, Stream).

search(Event, #stream{search = Search} = Stream) ->
    searched(weft_path_search:handle(Event, Search), Stream).

searched({Search, Effects}, Stream) -> {Stream#stream{search = Search}, Effects};
searched({Outcome, Search, Effects}, Stream) -> {Outcome, Stream#stream{search = Search}, Effects}.

ok({Stream, Effects}) -> {ok, Stream, Effects}.

ended(Reason, Stream) -> {ended, Stream#stream{last_break = Reason}, []}.

%% --- paths ------------------------------------------------------------------------------------

%% The open was accepted: the first path, or one that resumes.
accepted(Path, _Received, NowUs, #stream{established = false} = Stream0) ->
    {Stream, Effects} = on_path(Path, NowUs, Stream0#stream{established = true}),
    {connected, Stream, Effects};
accepted(Path, Received, NowUs, Stream0) ->
    {Dropped, Drop} = drop_path(NowUs, Stream0),
    {Stream, On} = on_path(Path, NowUs, Dropped),
    resume(Received, Stream, [{for_ticker, path_in} | Drop] ++ On).

%% The peer reached this end by another path. It is told first what was received, so that it can
%% repeat from there.
reattached(Path, Received, NowUs, Stream0) ->
    {Dropped, Drop} = drop_path(NowUs, Stream0),
    {Stream, On} = on_path(Path, NowUs, Dropped),
    resume(Received, Stream, [{for_ticker, path_in} | Drop] ++ On ++ say_accepted(Stream)).

%% @doc To tell the initiator that its open has been accepted, and what was received so far.
-spec say_accepted(state()) -> [effect()].
say_accepted(#stream{path = #path{label = Label} = Path}) -> [{accept, first(Path), Label}].

resume(Received, #stream{out = Out0, resumes = Resumes} = Stream, Effects) ->
    case weft_outbound_core:resume(Received, Out0) of
        {ok, Items, Out} ->
            {ok, Stream#stream{out = Out, resend = Items, resumes = Resumes + 1},
             [{count, resumes} | Effects]};
        {error, lost} ->
            {lost, Stream#stream{last_break = resume_lost}, Effects}
    end.

%% The incarnation is told each time, because it is not repeated if it is lost.
on_path({Link, Lanes, Label}, NowUs, #stream{out = Out, search = Search0} = Stream) ->
    Told = [{incarnation, Lane, Label} || Lane <- lists:sublist(Lanes, 1)],
    {Search, Better} = weft_path_search:found(Link, NowUs, Search0),
    {Stream#stream{path = #path{link = Link, label = Label, lanes = weft_lane_turns:new(Lanes, [])},
                   search = Search,
                   out = weft_outbound_core:lanes(length(Lanes), Out), resend = []},
     [{keep_alive, false}] ++ Told ++ [{watch, Link} | Better]}.

%% There is another path at once, so no time to give up.
drop_path(NowUs, #stream{path = #path{link = Link, label = Label}} = Stream) ->
    {path_down(replaced, NowUs, Stream), [{drop, Link, Label}]};
drop_path(_NowUs, Stream) ->
    {Stream, []}.

path_down(Reason, NowUs, #stream{search = Search} = Stream) ->
    Stream#stream{path = undefined, search = weft_path_search:lost(NowUs, Search),
                  last_break = Reason, resend = []}.

%% @doc Does the path that was found now lead over gateways?
-spec relayed(boolean(), state()) -> state().
relayed(IsRelayed, #stream{out = Out} = Stream) ->
    Stream#stream{out = weft_outbound_core:relayed(IsRelayed, Out)}.

%% --- lanes ------------------------------------------------------------------------------------

%% @doc That lane can take more.
-spec lane_ready(lane(), state()) -> state().
lane_ready(Lane, #stream{path = #path{lanes = Lanes} = Path} = Stream) ->
    Stream#stream{path = Path#path{lanes = weft_lane_turns:free(Lane, Lanes)}};
lane_ready(_Lane, Stream) ->
    Stream.

%% What was under way on a lost lane is repeated on the others, with all that is not acknowledged:
%% the receiver drops what it has. Before a new lane came up the peer may have had none, and has
%% forgotten the path then. A tick on the new lane finds this out: the circuit would be closed.
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
            {Changed#stream{out = Out, resend = Items, repairs = Repairs + 1},
             [{count, repairs} | Tick]}
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

%% @doc Where ticks are to be written without asking the stream, if nothing waits: until the next
%% event, or until more is written than the packets until now and those ticks.
-spec rest(Written :: non_neg_integer(), state()) -> weft_stream_tick:rest() | none.
rest(Written, #stream{path = #path{label = Label, lanes = Lanes} = Path, resend = [],
                      rest = none, out = Out}) ->
    case weft_outbound_core:is_acked(Out) andalso weft_lane_turns:is_spared(Lanes) of
        true -> {first(Path), Label, Written};
        false -> none
    end;
rest(_Written, _Stream) -> none.

%% --- sending ----------------------------------------------------------------------------------

%% @doc Can a payload be written now: is there a path with a lane that is not busy?
-spec can_send(state()) -> boolean().
can_send(Stream) -> can_send(in_order, Stream).

can_send(Order, #stream{path = #path{lanes = Lanes}}) -> weft_lane_turns:can(Order, Lanes);
can_send(_Order, _Stream) -> false.

%% @doc Can something be repeated now, or the next part of a payload be sent, by `flush/2'?
-spec to_flush(state()) -> boolean().
to_flush(#stream{resend = [{_, Kind, _, _} | _]} = Stream) ->
    can_send(order(Kind), Stream);
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
room(express, _Stream) -> none.

%% @doc The window now.
-spec window_bytes(state()) -> pos_integer().
window_bytes(#stream{out = Out}) -> weft_outbound_core:window_bytes(Out).

%% @doc Numbers and keeps a payload, to be written now or as soon as it can be.
-spec push(handshake | weft_fair_queue_core:order(), iodata(), Bytes :: non_neg_integer(),
           NowUs :: integer(), state()) -> write().
push(Kind, Payload, Bytes, NowUs, #stream{kind = Of} = Stream) ->
    case weft_parts:is_too_large(Bytes, Of) of
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
        #stream{resend = []} -> write(order(Kind), Item, Stream);
        #stream{} -> write_past_repeats(order(Kind), Item, Stream)
    end.

-spec order(weft_wire:payload_kind() | weft_fair_queue_core:order()) -> weft_lane_turns:order().
order({_, _, _}) -> bypass;
order(_Kind) -> in_order.

%% Bypass payloads need not wait for payloads that are repeated.
write_past_repeats(bypass, Item, Stream) -> write(bypass, Item, Stream);
write_past_repeats(in_order, Item, Stream) -> kept(Item, Stream).

write(Order, Item, #stream{path = #path{label = Label, lanes = Lanes0} = Path} = Stream) ->
    case weft_lane_turns:lane(Order, Lanes0) of
        {Lane, Lanes0} -> {write, Lane, Label, Item, Stream};
        {Lane, Lanes} -> {write, Lane, Label, Item, Stream#stream{path = Path#path{lanes = Lanes}}};
        none -> kept(Item, Stream)
    end.

kept(Item, #stream{resend = Resend} = Stream) ->
    {kept, Stream#stream{resend = Resend ++ [Item]}}.

%% @doc The next payload that has to be repeated, or the next part; only if there is one
%% (`to_flush/1').
-spec flush(NowUs :: integer(), state()) -> write().
flush(_NowUs, #stream{resend = [{_, Kind, _, _} = Item | Items]} = Stream) ->
    write(order(Kind), Item, Stream#stream{resend = Items});
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
%% sent on each lane: the last of them to arrive comes after all that was sent. Neither counts for
%% the ticker: the link of the peer acknowledges, and these ticks are not what the ticker sends.
%% PeerUs is when the peer sent the acknowledgement, by its clock, if it says so.
-spec acked(weft_wire:sequence(), PeerUs :: integer() | undefined, NowUs :: integer(), state()) ->
          {state(), [effect()]}.
acked(Sequence, PeerUs, NowUs, #stream{out = Out0, path = Path} = Stream) ->
    case {weft_outbound_core:acked(Sequence, PeerUs, NowUs, Out0), Path} of
        {{ask, Out}, #path{label = Label, lanes = Lanes}} ->
            {Stream#stream{out = Out}, [{tick, weft_lane_turns:all(Lanes), Label}]};
        {{doubt, Out}, #path{lanes = Lanes}} ->
            {Stream#stream{out = Out}, [{losses, weft_lane_turns:all(Lanes)}]};
        {{times, Out}, #path{label = Label, lanes = Lanes}} ->
            {Stream#stream{out = Out}, [{times, weft_lane_turns:all(Lanes), Label}]};
        {{_, Out}, _} ->
            {Stream#stream{out = Out}, []}
    end.

%% @doc A tick of the kernel's ticker (`weft_stream_tick').
-spec tick(state()) -> [effect()].
tick(#stream{path = #path{label = Label} = Path}) -> weft_stream_tick:on_path(first(Path), Label);
tick(_Stream) -> weft_stream_tick:without_path().

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
               #{link => Link, label => Label, lanes => lanes(Stream), role => Stream#stream.role,
                 unacked_bytes => weft_outbound_core:unacked_bytes(Out),
                 resumes => Stream#stream.resumes, repairs => Stream#stream.repairs,
                 last_error => Stream#stream.last_break,
                 last_resume_ms => weft_path_search:last_ms(Stream#stream.search)}).

%% @doc The state as this version keeps it. Before, that of the search was a part of it.
-spec code_change(state() | Before :: tuple()) -> state().
code_change(#stream{out = Out, resend = Resend, search = Search} = Stream) ->
    Stream#stream{out = weft_outbound_core:code_change(Out),
                  search = weft_path_search:code_change(Search),
                  resend = weft_outbound_core:items(Resend)};
code_change({stream, Role, Kind, Incarnation, Out, Path, Opening, Established, Connecting, FirstUs,
             Closed, Resend, Rest, RetryMs, LastToken, Retry, GiveUp, LostUs, Resumes, Repairs,
             LastBreak, LastMs}) ->
    Stage = case Path of
                #path{link = Link} -> {found, Link};
                undefined when LostUs =/= undefined -> {lost, LostUs};
                undefined when Connecting -> {first, FirstUs};
                undefined -> new
            end,
    Search = weft_path_search:restored(
               #{asks => Role =:= initiator andalso not Closed, stage => Stage,
                 attempt => Opening, backoff_ms => RetryMs, last_token => LastToken,
                 retry => Retry, give_up => GiveUp, last_ms => LastMs}),
    code_change(#stream{role = Role, kind = Kind, incarnation = Incarnation, path = Path,
                        search = Search, out = Out, established = Established, resend = Resend,
                        rest = Rest, resumes = Resumes, repairs = Repairs, last_break = LastBreak}).
