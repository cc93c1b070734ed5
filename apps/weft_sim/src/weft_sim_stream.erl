%% SPDX-License-Identifier: Apache-2.0
%% @doc What `weft_stream' does, in the simulator: the carrier's own numbering, window and order of
%% arrival (`weft_outbound_core', `weft_inbound_core') over paths of simulated lanes.
%%
%% Played here, rule by rule as there, is what needs processes and sockets: opening a path and
%% opening it again, lanes that are busy or not (`weft_lane_turns'), repeating what a lost lane or
%% path took along, coming back to the link when it is up again. A lane is busy while more than a
%% socket buffer is waiting in it. The kernel's ticker looks at each end (`weft_sim_ticker'), which
%% counts as `weft_session_counters' has it. Not played: giving up by a timer. Time is that of the
%% world, in milliseconds.
-module(weft_sim_stream).

-export([new/4, handle/3, room/1, window_bytes/1, flush/1, push/5, info/1]).
-export_type([stream/0]).

-define(OPEN_TIMEOUT_MS, 3000).
-define(WINDOW_MIN_BYTES, 262144).
-define(PACKET_BYTES_MAX, 16777216).
-define(RETRY_MIN_MS, 10).
-define(RETRY_MAX_MS, 250).
-define(SOCKET_BYTES, 65536).
-define(CONTROL_BYTES, 20).

-record(path, {peer :: node(),
               label :: pos_integer(),
               lanes :: weft_lane_turns:turns(node())}).
-record(stream, {role :: source | target,
                 peer :: node(),
                 lanes :: weft_sim_lanes:lanes(),
                 out :: weft_outbound_core:state(),
                 in :: weft_inbound_core:state(),
                 path :: undefined | #path{},
                 opening :: undefined | {node(), Label :: pos_integer()},
                 next_label = 1 :: pos_integer(),
                 resend = [] :: [weft_outbound_core:item()],
                 %% What waits in the buffer of each lane.
                 unsent = #{} :: #{node() => non_neg_integer()},
                 retry_ms = ?RETRY_MIN_MS :: pos_integer(),
                 retry = 0 :: non_neg_integer(),
                 rand :: rand:state(),
                 ticker = weft_sim_ticker:new() :: weft_sim_ticker:ticker(),
                 %% Packets that the peer must have sent, and those that it must come to read.
                 read = 0 :: non_neg_integer(),
                 written = 0 :: non_neg_integer(),
                 kept_max = 0 :: non_neg_integer(),
                 resumes = 0 :: non_neg_integer(),
                 repairs = 0 :: non_neg_integer(),
                 overflows = 0 :: non_neg_integer()}).
-opaque stream() :: #stream{}.

%% @doc The `source' opens paths to Peer, the `target' is found. Options: `lanes' (whom each lane
%% leads to), `window_bytes'. Also what is to be done at the start.
-spec new(source | target, Peer :: node(), map(), rand:state()) -> {stream(), weft_core:effects()}.
new(Role, Peer, #{lanes := Lanes, window_bytes := Max}, Rand) ->
    {#stream{role = Role, peer = Peer, lanes = weft_sim_lanes:new(Lanes), rand = Rand,
             out = weft_outbound_core:new(min(?WINDOW_MIN_BYTES, Max), Max),
             in = weft_inbound_core:new(4 * Max + ?PACKET_BYTES_MAX)},
     [{after_ms, weft_sim_ticker:interval_ms(), tick}]}.

%% @doc What arrived in order, and what is to be done.
-spec handle(weft_core:event(), NowMs :: integer(), stream()) ->
          {[Payload :: binary()], stream(), weft_core:effects()}.
handle({message, Lane, {carried, {data, Label, Sequence, Kind, Payload}}}, _NowMs,
       #stream{lanes = Lanes} = Stream) ->
    case is_known({weft_sim_lanes:peer(Lane, Lanes), Label}, Stream) of
        true -> data(Lane, Label, Sequence, Kind, Payload, Stream);
        false -> {[], Stream, [to_lane(Lane, {close, Label})]}
    end;
handle(Event, NowMs, Stream0) ->
    {Stream, Effects} = control(Event, NowMs, Stream0),
    {[], Stream, Effects}.

control({message, Lane, lane_up}, _NowMs, Stream) ->
    lane_up(Lane, Stream);
control({neighbour_down, Lane, _}, _NowMs, #stream{lanes = Lanes} = Stream) ->
    Peer = weft_sim_lanes:peer(Lane, Lanes),
    case lists:member(Lane, weft_sim_lanes:to(Peer, Lanes)) of
        true -> lane_down(Lane, Peer, Stream);
        false -> {Stream, []}
    end;
control({message, _Lane, {sent, ?CONTROL_BYTES}}, _NowMs, Stream) ->
    {Stream, []};
control({message, Lane, {sent, Bytes}}, _NowMs, Stream) ->
    {sent(Lane, Bytes, Stream), []};
control({message, Lane, {carried, Packet}}, NowMs, #stream{lanes = Lanes} = Stream) ->
    packet(Packet, weft_sim_lanes:peer(Lane, Lanes), Lane, NowMs, Stream);
control({timer, {open_timeout, Label}}, _NowMs, #stream{opening = {_, Label}} = Stream) ->
    open(Stream);
control({timer, {retry, N}}, _NowMs, #stream{retry = N, path = undefined} = Stream) ->
    open(Stream);
control({timer, tick}, NowMs, Stream) ->
    look(NowMs, spare(Stream));
control(_Stale, _NowMs, Stream) ->
    {Stream, []}.

%% Two looks at one moment would see the same at both ends: they come a bit late, as timers do.
look(NowMs, #stream{ticker = Ticker0, read = Read, written = Written, rand = Rand0} = Stream0) ->
    {LateMs, Rand} = rand:uniform_s(20, Rand0),
    Stream = Stream0#stream{rand = Rand},
    Later = {after_ms, weft_sim_ticker:interval_ms() + LateMs, tick},
    case weft_sim_ticker:look(Read, Written, Ticker0) of
        {tick, Ticker} ->
            {Stream#stream{ticker = Ticker, written = Written + 1}, [Later | tick(one, Stream)]};
        {rest, Ticker} ->
            {Stream#stream{ticker = Ticker}, [Later]};
        not_responding ->
            {Stream#stream{ticker = weft_sim_ticker:new()}, [Later, {view, not_responding, NowMs}]}
    end.

heard(#stream{read = Read} = Stream) -> Stream#stream{read = Read + 1}.

%% --- packets ----------------------------------------------------------------------------------

packet({open, Label, Received}, From, _Lane, _NowMs, #stream{role = target} = Stream0) ->
    {Stream1, Dropped} = drop_path(heard(Stream0)),
    #stream{in = In, path = Path} = Stream2 = on_path({From, Label}, Stream1),
    [Lane | _] = used(Path),
    Accept = to_lane(Lane, {accept, Label, weft_inbound_core:received(In)}),
    {resume(Received, Stream2), Dropped ++ [Accept]};
packet({accept, Label, Received}, From, _Lane, _NowMs, #stream{opening = {From, Label}} = Stream) ->
    {Left, Dropped} = drop_path(heard(Stream)),
    {resume(Received, on_path({From, Label}, Left)), Dropped};
packet({close, Label}, From, _Lane, _NowMs,
       #stream{path = #path{peer = From, label = Label}} = Stream) ->
    attach(Stream#stream{path = undefined, resend = []});
packet({close, Label}, From, _Lane, _NowMs, #stream{opening = {From, Label}} = Stream) ->
    pause(Stream#stream{opening = undefined});
packet({close, _OldLabel}, _From, _Lane, _NowMs, Stream) ->
    {Stream, []};
packet(Packet, From, Lane, NowMs, Stream) ->
    Label = element(2, Packet),
    case is_known({From, Label}, Stream) of
        true -> on_label(Packet, Lane, NowMs, Stream);
        false -> {Stream, [to_lane(Lane, {close, Label})]}
    end.

on_label({ack, _Label, Sequence}, _Lane, NowMs, #stream{out = Out0} = Stream0) ->
    {Ask, Out} = weft_outbound_core:acked(Sequence, NowMs * 1000, Out0),
    Stream = Stream0#stream{out = Out},
    {Stream, case Ask of ask -> tick(all, Stream); ok -> [] end};
on_label({tick, Label}, Lane, _NowMs, #stream{in = In} = Stream) ->
    {heard(Stream), [to_lane(Lane, {ack, Label, weft_inbound_core:received(In)})]};
on_label(_RepeatedAccept, _Lane, _NowMs, Stream) ->
    {Stream, []}.

is_known({From, Label}, #stream{path = #path{peer = From, label = Label}}) -> true;
is_known(Circuit, #stream{opening = Opening}) -> Circuit =:= Opening.

%% Acknowledged on the lane it came by.
data(Lane, Label, Sequence, Kind, Payload, #stream{in = In0, lanes = Lanes} = Stream0) ->
    Stream = heard(Stream0),
    case weft_inbound_core:accept(Sequence, Kind, Payload, In0) of
        {Deliveries, Ack, In} ->
            Answer = [to_lane(Lane, {ack, Label, weft_inbound_core:received(In)}) || Ack],
            {[Delivered || {frames, Delivered} <- Deliveries], Stream#stream{in = In}, Answer};
        overflow ->
            Overflown = Stream#stream{overflows = Stream#stream.overflows + 1},
            {Left, Effects} = packet({close, Label}, weft_sim_lanes:peer(Lane, Lanes), Lane, 0,
                                     Overflown),
            {[], Left, [to_lane(Lane, {close, Label}) | Effects]}
    end.

to_lane(Lane, Packet) ->
    {send, Lane, {packet, ?CONTROL_BYTES, Packet}}.

tick(_Lanes, #stream{path = undefined}) -> [];
tick(one, #stream{path = #path{label = Label} = Path}) ->
    [to_lane(Lane, {tick, Label}) || Lane <- lists:sublist(used(Path), 1)];
tick(all, #stream{path = #path{label = Label} = Path}) ->
    [to_lane(Lane, {tick, Label}) || Lane <- used(Path)].

used(#path{lanes = Lanes}) -> weft_lane_turns:all(Lanes).

spare(#stream{path = undefined} = Stream) ->
    Stream;
spare(#stream{path = #path{lanes = Lanes} = Path} = Stream) ->
    Stream#stream{path = Path#path{lanes = weft_lane_turns:spare(Lanes)}}.

%% --- paths ------------------------------------------------------------------------------------

attach(#stream{role = target} = Stream) -> {Stream, []};
attach(Stream) -> open(Stream).

%% The link to the peer itself if it is up, else that to any other neighbour.
open(#stream{opening = {Via, Label}, lanes = Lanes} = Stream0) ->
    {Stream, Effects} = open(Stream0#stream{opening = undefined}),
    {Stream, [to_lane(Lane, {close, Label})
              || Lane <- lists:sublist(weft_sim_lanes:to(Via, Lanes), 1)] ++ Effects};
open(#stream{peer = Peer, lanes = Lanes, rand = Rand0} = Stream) ->
    case {weft_sim_lanes:to(Peer, Lanes), weft_sim_lanes:peers(Lanes)} of
        {[_ | _], _} -> open_via(Peer, Stream);
        {[], []} -> pause(Stream);
        {[], Gateways} ->
            {N, Rand} = rand:uniform_s(length(Gateways), Rand0),
            open_via(lists:nth(N, Gateways), Stream#stream{rand = Rand})
    end.

open_via(Via, #stream{lanes = Lanes, next_label = Label, in = In} = Stream) ->
    [Lane | _] = weft_sim_lanes:to(Via, Lanes),
    {Stream#stream{opening = {Via, Label}, next_label = Label + 1},
     [to_lane(Lane, {open, Label, weft_inbound_core:received(In)}),
      {after_ms, ?OPEN_TIMEOUT_MS, {open_timeout, Label}}]}.

pause(#stream{retry = N, retry_ms = RetryMs} = Stream) ->
    {Stream#stream{retry = N + 1, retry_ms = min(?RETRY_MAX_MS, 2 * RetryMs)},
     [{after_ms, RetryMs, {retry, N + 1}}]}.

on_path({Peer, Label}, #stream{lanes = Lanes, out = Out, retry = N} = Stream) ->
    Up = weft_sim_lanes:to(Peer, Lanes),
    Busy = [Lane || Lane <- Up, is_full(Lane, Stream)],
    Stream#stream{path = #path{peer = Peer, label = Label,
                               lanes = weft_lane_turns:new(Up -- Busy, Busy)},
                  out = weft_outbound_core:lanes(length(Up), Out), opening = undefined,
                  retry = N + 1, retry_ms = ?RETRY_MIN_MS}.

drop_path(#stream{path = #path{label = Label} = Path} = Stream) ->
    {Stream#stream{path = undefined},
     [to_lane(Lane, {close, Label}) || Lane <- lists:sublist(used(Path), 1)]};
drop_path(Stream) ->
    {Stream, []}.

resume(Received, #stream{out = Out0, resumes = Resumes} = Stream) ->
    {ok, Items, Out} = weft_outbound_core:resume(Received, Out0),
    Stream#stream{out = Out, resend = Items, resumes = Resumes + 1}.

%% --- lanes ------------------------------------------------------------------------------------

lane_up(Lane, #stream{lanes = Lanes0, unsent = Unsent, peer = Peer} = Stream0) ->
    Lanes = weft_sim_lanes:up(Lane, Lanes0),
    Stream = Stream0#stream{lanes = Lanes, unsent = maps:remove(Lane, Unsent)},
    case {weft_sim_lanes:peer(Lane, Lanes), Stream} of
        {Via, #stream{path = #path{peer = Via, label = Label} = Path}} ->
            %% The peer may have had no lane for a moment, and forgotten the label.
            {change_lanes(used(Path) ++ [Lane], Stream), [to_lane(Lane, {tick, Label})]};
        {_, #stream{path = undefined, opening = undefined}} -> attach(Stream);
        {Peer, #stream{opening = undefined}} -> attach(Stream);
        _ -> {Stream, []}
    end.

%% What was under way on it is repeated on the others; without others the path is broken.
lane_down(Lane, Via, #stream{lanes = Lanes0, unsent = Unsent, repairs = Repairs} = Stream0) ->
    Lanes = weft_sim_lanes:down(Lane, Lanes0),
    Stream = Stream0#stream{lanes = Lanes, unsent = maps:remove(Lane, Unsent)},
    case {weft_sim_lanes:to(Via, Lanes), Stream} of
        {[], #stream{path = #path{peer = Via}}} ->
            attach(Stream#stream{path = undefined, resend = []});
        {[], #stream{opening = {Via, _}}} -> pause(Stream#stream{opening = undefined});
        {_, #stream{path = #path{peer = Via} = Path}} ->
            #stream{out = Out0} = Left = change_lanes(lists:delete(Lane, used(Path)), Stream),
            {ok, Items, Out} = weft_outbound_core:resume(0, Out0),
            {Left#stream{out = Out, resend = Items, repairs = Repairs + 1}, []};
        _ -> {Stream, []}
    end.

change_lanes(Lanes, #stream{path = #path{lanes = Turns0} = Path, out = Out} = Stream) ->
    {_New, _Lost, Turns} = weft_lane_turns:change(Lanes, Turns0),
    Stream#stream{path = Path#path{lanes = Turns},
                  out = weft_outbound_core:lanes(length(Lanes), Out)}.

is_full(Lane, #stream{unsent = Unsent}) ->
    maps:get(Lane, Unsent, 0) > ?SOCKET_BYTES.

sent(Lane, Bytes, #stream{unsent = Unsent, path = Path} = Stream0) ->
    Left = max(0, maps:get(Lane, Unsent, 0) - Bytes),
    Stream = Stream0#stream{unsent = Unsent#{Lane => Left}},
    case {Path, is_full(Lane, Stream)} of
        {#path{lanes = Lanes}, false} ->
            Stream#stream{path = Path#path{lanes = weft_lane_turns:free(Lane, Lanes)}};
        _ -> Stream
    end.

%% --- sending ----------------------------------------------------------------------------------

%% @doc See `weft_stream' for this and the following.
-spec room(stream()) -> weft_fair_queue_core:room() | none.
room(#stream{path = #path{lanes = Lanes}, resend = Resend, out = Out}) ->
    weft_lane_turns:room(weft_outbound_core:room(Out, express), Resend =/= [], Lanes);
room(_Stream) ->
    none.

can_send(Order, #stream{path = #path{lanes = Lanes}}) -> weft_lane_turns:can(Order, Lanes);
can_send(_Order, _Stream) -> false.

-spec window_bytes(stream()) -> pos_integer().
window_bytes(#stream{out = Out}) -> weft_outbound_core:window_bytes(Out).

-spec flush(stream()) -> {weft_core:effects(), stream()} | none.
flush(#stream{resend = []}) ->
    none;
flush(#stream{resend = [{_, Kind, _, _} = Item | Items]} = Stream) ->
    case can_send(weft_lane_turns:order(Kind), Stream) of
        true -> transmit(Item, Stream#stream{resend = Items});
        false -> none
    end.

%% @doc Only while there is room.
-spec push(weft_fair_queue_core:order(), iodata(), Bytes :: pos_integer(), NowMs :: integer(),
           stream()) -> {weft_core:effects(), stream()}.
push(Order, Payload, Bytes, NowMs, #stream{out = Out0, kept_max = Max} = Stream) ->
    Flat = iolist_to_binary(Payload),
    {Item, Out} = weft_outbound_core:push(Order, Flat, Bytes, NowMs * 1000, Out0),
    transmit(Item, Stream#stream{out = Out,
                                 kept_max = max(Max, weft_outbound_core:unacked_bytes(Out))}).

transmit({Sequence, Kind, Payload, Bytes},
         #stream{path = #path{label = Label, lanes = Lanes0} = Path, unsent = Unsent,
                 written = Written} = Stream0) ->
    {Lane, Lanes} = weft_lane_turns:lane(weft_lane_turns:order(Kind), Lanes0),
    Packet = {packet, Bytes + ?CONTROL_BYTES, {data, Label, Sequence, Kind, Payload}},
    Stream = Stream0#stream{written = Written + 1,
                            unsent = Unsent#{Lane => maps:get(Lane, Unsent, 0) + Bytes
                                                 + ?CONTROL_BYTES}},
    Outcome = case is_full(Lane, Stream) of true -> busy; false -> free end,
    Turns = weft_lane_turns:sent(Lane, Bytes, Outcome, Lanes),
    {[{send, Lane, Packet}], Stream#stream{path = Path#path{lanes = Turns}}}.

%% @doc What was kept at most, and how often what happened.
-spec info(stream()) -> map().
info(#stream{path = Path, out = Out, kept_max = KeptMax, resumes = Resumes, repairs = Repairs,
             overflows = Overflows}) ->
    #{path => case Path of undefined -> none; #path{peer = Via} -> Via end, kept_max => KeptMax,
      unacked_bytes => weft_outbound_core:unacked_bytes(Out), resumes => Resumes,
      repairs => Repairs, overflows => Overflows}.
