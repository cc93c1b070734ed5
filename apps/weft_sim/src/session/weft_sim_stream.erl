%% SPDX-License-Identifier: Apache-2.0
%% @doc A stream in the simulator: the carrier's own `weft_stream_core', carried out on paths of
%% simulated lanes. The counterpart of `weft_stream'.
%%
%% With it are the other half of the session (the carrier's own `weft_input_core')
%% and the kernel's ticker (`weft_sim_ticker'), which looks at what `weft_session_counts' says.
%% While the stream is at rest its ticks are written where it has said, without asking it again.
%% The links of its node (`weft_sim_switches') are lent to it for each event. The end that begins
%% takes the link to its peer if that is up, else any other one. Time is that of the world, in
%% milliseconds.
%%
%% News of the peer's end comes again and again: of the incarnation before the present one, or of
%% the present one while there is a path. So do acknowledgements of what was never sent, as of an
%% earlier session. None may be believed. News that is true comes from the scenario.
-module(weft_sim_stream).

-export([initiator/4, acceptor/6, lend/2, links/1, connect/2, connected/2, handle/3, died/3, sent/2,
         rest/1, core/1, room/1, window_bytes/1, flush/2, push/5, info/1]).
-export_type([stream/0, news/0]).

%% For net_ticktime as it is by default.
-define(NET_TICKTIME_MS, 60000).
-define(HOPS, 8).
-define(NEWS_EVERY_MS, 1000).
%% No session here has so many payloads.
-define(NEVER_SENT, (1 bsl 40)).

-record(stream, {core :: weft_stream_core:state(),
                 id :: weft_sessions:id(),
                 own :: binary(),
                 peer :: node(),
                 resume_timeout_ms :: auto | pos_integer(),
                 incarnation :: non_neg_integer(),
                 switches :: weft_sim_switches:switches(),
                 %% The link that delivers input, if there is one to the peer.
                 host :: node() | own_process,
                 input :: weft_input_core:input(),
                 %% What came in order, and what became of the stream; newest first.
                 news = [] :: [news()],
                 %% Incarnations of the peer that are known to be over.
                 dead :: [non_neg_integer()],
                 rand :: rand:state(),
                 ticker = weft_sim_ticker:new() :: weft_sim_ticker:ticker(),
                 rest = none :: none | weft_stream_tick:rest(),
                 %% Packets that the peer must have sent, and those that it must come to read.
                 read = 0 :: non_neg_integer(),
                 written = 0 :: non_neg_integer(),
                 is_kept_alive = false :: boolean(),
                 kept_max = 0 :: non_neg_integer(),
                 overflows = 0 :: non_neg_integer()}).
-opaque stream() :: #stream{}.
%% ticked: a tick came to the session. not_responding: the ticker says so.
-type news() :: {frames | handshake, binary()}
              | connected | {failed, Reason :: term()} | {over, Why :: term()}
              | ticked | not_responding.
-type event() :: {timer, tick | news | {again, Reason :: term()} | term()}
               | {told, tuple()}
               | {input, weft_sim_switches:lane(), weft_wire:packet()}.

%% @doc The end that begins; see `connect/2'. Options: `self', `peer', `dead', `window_bytes',
%% `resume_timeout_ms', `incarnation' (of this node), `host' (the link to the peer, if there may be
%% one, or own_process).
-spec initiator(weft_sessions:id(), map(), rand:state(), weft_sim_switches:switches()) -> stream().
initiator(Id, #{window_bytes := Max, host := Host} = Options, Rand, Switches0) ->
    Switches = case Host of
                   own_process -> Switches0;
                   Link -> {[], Hosting} = weft_sim_switches:message(Link, {host, Id}, Switches0),
                           Hosting
               end,
    new(Id, weft_stream_core:initiator(distribution, Max), Options, Rand, Switches).

%% @doc The end that was reached by a circuit.
-spec acceptor(weft_sessions:id(), weft_stream_core:path(), NowMs :: integer(), map(), rand:state(),
               weft_sim_switches:switches()) -> {[news()], stream(), weft_core:effects()}.
acceptor(Id, {Link, Lanes, Label} = Path, NowMs,
         #{window_bytes := Max, host := Host, peer := Peer} = Options, Rand, Switches) ->
    {Core, Effects} = weft_stream_core:acceptor(distribution, Max, Path, 1000 * NowMs),
    {Begun, First} = carry_out(Effects, NowMs, new(Id, Core, Options, Rand, Switches), []),
    Local = {distribution, Id, Host, atom_to_binary(Peer)},
    {Joined, Joining} = said(Link, {join, Label, Lanes, Local}, NowMs, Begun),
    {Told, Telling} = carry_out(weft_stream_core:say_accepted(Core), NowMs, Joined, []),
    answer(Told, timers() ++ First ++ Joining ++ Telling).

new(Id, Core, #{self := Self, peer := Peer, host := Host, dead := Dead,
                window_bytes := Max} = Options, Rand, Switches) ->
    #stream{core = Core, id = Id, own = atom_to_binary(Self), peer = Peer, host = Host, rand = Rand,
            resume_timeout_ms = maps:get(resume_timeout_ms, Options, auto), dead = Dead,
            incarnation = maps:get(incarnation, Options, 0), switches = Switches,
            input = weft_input_core:new(Id, none, Max)}.

timers() ->
    [{after_ms, weft_sim_ticker:interval_ms(), tick}, {after_ms, ?NEWS_EVERY_MS, news}].

%% @doc The links of the node as they are now, and as the stream has left them.
-spec lend(weft_sim_switches:switches(), stream()) -> stream().
lend(Switches, Stream) -> Stream#stream{switches = Switches}.

-spec links(stream()) -> weft_sim_switches:switches().
links(#stream{switches = Switches}) -> Switches.

%% @doc Begins to look for the first path.
-spec connect(NowMs :: integer(), stream()) -> {[news()], stream(), weft_core:effects()}.
connect(NowMs, #stream{core = Core0} = Stream0) ->
    {Core, Effects} = weft_stream_core:connect(1000 * NowMs, Core0),
    {Stream, Done} = carry_out(Effects, NowMs, Stream0#stream{core = Core}, []),
    answer(Stream, timers() ++ Done).

answer(#stream{news = News} = Stream, Effects) ->
    {lists:reverse(News), Stream#stream{news = []}, Effects}.

%% @doc A timer of the stream, what a link says, or what came for it.
-spec handle(event(), NowMs :: integer(), stream()) -> {[news()], stream(), weft_core:effects()}.
handle(Event, NowMs, Stream0) ->
    {Stream, Effects} = control(Event, NowMs, Stream0),
    answer(Stream, Effects).

control({timer, {again, Reason}}, NowMs, Stream) ->
    closed(none, any, Reason, NowMs, Stream);
control({timer, tick}, NowMs, Stream) ->
    look(NowMs, Stream);
control({timer, news}, NowMs, Stream) ->
    false_news(NowMs, Stream);
control({timer, Timer}, NowMs, Stream) ->
    event(Timer, NowMs, Stream);
control({told, {weft_ack, Sequence}}, NowMs, Stream) ->
    acked(Sequence, undefined, NowMs, Stream);
control({told, {weft_ack, Sequence, AtUs}}, NowMs, Stream) ->
    acked(Sequence, AtUs, NowMs, Stream);
control({told, {weft_path, closed, Link, Label, Reason}}, NowMs, Stream) ->
    closed(Link, Label, Reason, NowMs, Stream);
control({told, Message}, NowMs, Stream) ->
    event(erlang:delete_element(1, Message), NowMs, Stream);
control({input, Lane, {tick, Label}}, NowMs, #stream{input = Input0} = Stream) ->
    {IsToAnswer, Input} = weft_input_core:tick(Input0),
    acknowledge(IsToAnswer, Lane, Label, NowMs, count(tick_in, Stream#stream{input = Input}));
control({input, Lane, {times, Label}}, _NowMs, #stream{input = Input} = Stream) ->
    {Stream#stream{input = weft_input_core:times(Lane, Label, Input)}, []};
control({input, Lane, {data, Label, Sequence, Kind, Payload}}, NowMs, Stream) ->
    data(Lane, Label, {Sequence, Kind, Payload}, NowMs, count(payload_in, Stream)).

acked(Sequence, PeerUs, NowMs, #stream{core = Core0} = Stream) ->
    {Core, Effects} = weft_stream_core:acked(Sequence, PeerUs, 1000 * NowMs, Core0),
    carry_out(Effects, NowMs, Stream#stream{core = Core}, []).

%% Two looks at one moment would see the same at both ends: they come a bit late, as timers do.
look(NowMs, #stream{ticker = Ticker0, rand = Rand0} = Stream0) ->
    {LateMs, Rand} = rand:uniform_s(20, Rand0),
    #stream{read = Read, written = Written} =
        Stream = count(case Stream0#stream.is_kept_alive of
                           true -> asked_while_kept_alive;
                           false -> asked
                       end, Stream0#stream{rand = Rand}),
    Later = {after_ms, weft_sim_ticker:interval_ms() + LateMs, tick},
    case weft_sim_ticker:look(Read, Written, Ticker0) of
        {tick, Ticker} ->
            tick(NowMs, Stream#stream{ticker = Ticker}, Later);
        {rest, Ticker} ->
            {Stream#stream{ticker = Ticker}, [Later]};
        not_responding ->
            {heard_news(not_responding, Stream), []}
    end.

tick(NowMs, #stream{core = Core0, rest = Rest0, written = Before} = Stream0, Later) ->
    case weft_stream_tick:at_rest(Before, Rest0) of
        in_use ->
            {Stream, Effects} = carry_out(weft_stream_core:tick(Core0), NowMs, Stream0, [Later]),
            {heard_news(ticked, Stream#stream{core = weft_stream_core:spare(Core0)}), Effects};
        Tick ->
            {#stream{written = Written} = Stream, Effects} =
                carry_out(Tick, NowMs, Stream0, [Later]),
            {Stream#stream{rest = setelement(3, Rest0, Written)}, Effects}
    end.

%% @doc If nothing waits for anything, the next ticks do not come to the session.
-spec rest(stream()) -> stream().
rest(#stream{core = Core, written = Written} = Stream) ->
    Stream#stream{rest = weft_stream_core:rest(Written, Core)}.

false_news(NowMs, #stream{rand = Rand0, core = Core, peer = Peer} = Stream0) ->
    {LaterMs, Rand} = rand:uniform_s(?NEWS_EVERY_MS, Rand0),
    Stream1 = Stream0#stream{rand = Rand},
    {Stream, Effects} = case {weft_stream_core:incarnation(Core), weft_stream_core:lanes(Core)} of
                            {undefined, _} -> {Stream1, []};
                            {Present, []} -> event({died, Peer, Present - 1}, NowMs, Stream1);
                            {Present, _} -> event({died, Peer, Present}, NowMs, Stream1)
                        end,
    {Acked, More} = control({told, {weft_ack, ?NEVER_SENT}}, NowMs, Stream),
    {Acked, [{after_ms, LaterMs, news} | Effects ++ More]}.

%% @doc That incarnation of the peer is over, and that is true.
-spec died(non_neg_integer(), NowMs :: integer(), stream()) ->
          {[news()], stream(), weft_core:effects()}.
died(Incarnation, NowMs, #stream{peer = Peer, dead = Dead} = Stream0) ->
    {Stream, Effects} = event({died, Peer, Incarnation}, NowMs,
                              Stream0#stream{dead = [Incarnation | Dead]}),
    answer(Stream, Effects).

count(Event, #stream{read = Read, written = Written} = Stream) ->
    case weft_session_counts:as(Event) of
        read -> Stream#stream{read = Read + 1};
        written -> Stream#stream{written = Written + 1};
        nothing -> Stream
    end.

%% --- what the core wants done -----------------------------------------------------------------

event(Event, NowMs, #stream{core = Core0} = Stream) ->
    {Outcome, Core, Effects} = weft_stream_core:handle(Event, 1000 * NowMs, Core0),
    carry_out(Effects, NowMs, outcome(Outcome, Stream#stream{core = Core}), []).

outcome(ok, Stream) -> Stream;
outcome(Ended, #stream{core = Core} = Stream) when Ended =:= ended; Ended =:= lost ->
    heard_news({over, weft_stream_core:last_break(Core)}, Stream);
outcome(ConnectedOrFailed, Stream) -> heard_news(ConnectedOrFailed, Stream).

heard_news(What, #stream{news = News} = Stream) -> Stream#stream{news = [What | News]}.

closed(Link, Label, Reason, NowMs, #stream{resume_timeout_ms = TimeoutMs, core = Core,
                                           dead = Dead} = Stream) ->
    About = #{has_died => lists:member(weft_stream_core:incarnation(Core), Dead),
              may_be_found => true, resume_timeout_ms => TimeoutMs,
              net_ticktime_ms => ?NET_TICKTIME_MS},
    event({closed, Link, Label, Reason, About}, NowMs, Stream).

%% Done: newest first.
carry_out([], _NowMs, Stream, Done) ->
    {Stream, lists:reverse(Done)};
carry_out([Effect | Effects], NowMs, Stream0, Done) ->
    {Stream, More} = effect(Effect, NowMs, Stream0),
    carry_out(Effects, NowMs, Stream, lists:reverse(More, Done)).

effect({find_link, Purpose}, NowMs, Stream0) ->
    {Found, Stream} = find_link(Stream0),
    event({link, Purpose, Found}, NowMs, Stream);
effect(find_direct, NowMs, #stream{peer = Peer, switches = Switches} = Stream) ->
    case weft_sim_lanes:to(Peer, weft_sim_switches:lanes(Switches)) of
        [_ | _] -> event({available, Peer}, NowMs, Stream);
        [] -> {Stream, []}
    end;
effect({open, Link, Mode}, NowMs, #stream{id = Id, host = Host, own = Own, peer = Peer} = Stream) ->
    Open = #{mode => Mode, kind => distribution, hops => ?HOPS, session => Id,
             received => received(Stream), source => Own, target => atom_to_binary(Peer)},
    said(Link, {open, Id, Host, Open}, NowMs, Stream);
effect({drop, Link, Label}, NowMs, Stream) ->
    said(Link, {drop, Label}, NowMs, Stream);
effect({accept, Lane, Label}, _NowMs, Stream) ->
    write(Lane, weft_wire:accept(Label, received(Stream)), Stream);
effect({tick, Lanes, Label}, _NowMs, Stream) ->
    write_to_all(Lanes, weft_wire:tick(Label), Stream);
effect({times, Lanes, Label}, _NowMs, Stream) ->
    write_to_all(Lanes, weft_wire:times(Label), Stream);
effect({incarnation, Lane, Label}, _NowMs, #stream{incarnation = Incarnation} = Stream) ->
    write(Lane, weft_wire:incarnation(Label, Incarnation), Stream);
effect(woken, _NowMs, Stream) ->
    {Stream#stream{rest = none}, []};
effect({for_ticker, Event}, _NowMs, Stream) ->
    {count(Event, Stream), []};
%% No kernel is there to ask.
effect({losses, _Lanes}, NowMs, Stream) ->
    event({losses, unknown}, NowMs, Stream);
effect({count, _Name}, _NowMs, Stream) ->
    {Stream, []};
effect({keep_alive, IsOn}, _NowMs, Stream) ->
    {Stream#stream{is_kept_alive = IsOn}, []};
effect({again, Reason}, _NowMs, Stream) ->
    {Stream, [{after_ms, 0, {again, Reason}}]};
effect({after_ms, DelayMs, Timer}, _NowMs, Stream) ->
    {Stream, [{after_ms, DelayMs, Timer}]};
%% Links do not crash here.
effect({watch, Link}, _NowMs, #stream{peer = Peer, core = Core} = Stream) ->
    {Stream#stream{core = weft_stream_core:relayed(Link =/= Peer, Core)}, []}.

find_link(#stream{peer = Peer, switches = Switches, host = Host, rand = Rand0} = Stream) ->
    Lanes = weft_sim_switches:lanes(Switches),
    case {weft_sim_lanes:to(Peer, Lanes), weft_sim_lanes:peers(Lanes)} of
        {[_ | _], _} ->
            {{ok, Peer, true}, Stream};
        {[], [_ | _] = Gateways} ->
            {N, Rand} = rand:uniform_s(length(Gateways), Rand0),
            {{ok, lists:nth(N, Gateways), true}, Stream#stream{rand = Rand}};
        {[], []} ->
            {case Host of
                 Peer -> {ok, Peer, false};
                 own_process -> {error, no_route}
             end, Stream}
    end.

received(#stream{input = Input}) -> weft_input_core:received(Input).

write(Lane, Packet, #stream{switches = Switches0} = Stream) ->
    {Sent, Switches} = weft_sim_switches:write(Lane, Packet, Switches0),
    {Stream#stream{switches = Switches}, Sent}.

write_to_all(Lanes, Packet, Stream0) ->
    lists:foldl(fun(Lane, {Stream1, Effects}) ->
                    {Stream, Written} = write(Lane, Packet, Stream1),
                    {Stream, Effects ++ Written}
                end, {Stream0, []}, Lanes).

said(Link, Message, NowMs, Stream) ->
    switched(fun(S) -> weft_sim_switches:message(Link, Message, S) end, NowMs, Stream).

switched(Do, NowMs, #stream{switches = Switches0} = Stream) ->
    {Results, Switches} = Do(Switches0),
    results(Results, NowMs, Stream#stream{switches = Switches}, []).

%% What a stream says to a link is answered to this stream only. Done: newest first.
results([], _NowMs, Stream, Done) ->
    {Stream, lists:reverse(Done)};
results([{send, _, _} = Send | Results], NowMs, Stream, Done) ->
    results(Results, NowMs, Stream, [Send | Done]);
results([{told, Id, Message} | Results], NowMs, #stream{id = Id} = Stream0, Done) ->
    {Stream, Effects} = control({told, Message}, NowMs, Stream0),
    results(Results, NowMs, Stream, lists:reverse(Effects, Done)).

data(Lane, Label, {Sequence, Kind, Payload}, NowMs,
     #stream{input = Input0, overflows = Overflows, news = News} = Stream) ->
    case weft_input_core:data(Sequence, Kind, Payload, Lane, Label, Input0) of
        {Deliveries, IsToAnswer, Input} ->
            acknowledge(IsToAnswer, Lane, Label, NowMs,
                        Stream#stream{input = Input, news = lists:reverse(Deliveries, News)});
        overflow ->
            switched(fun(S) -> weft_sim_switches:overflow(Lane, Label, S) end, NowMs,
                     Stream#stream{overflows = Overflows + 1})
    end.

%% Each node has a clock of its own.
acknowledge(true, Lane, Label, NowMs, #stream{input = Input, own = Own} = Stream) ->
    NowUs = 1000 * NowMs + erlang:phash2(Own),
    write(Lane, weft_input_core:answer(Lane, Label, NowUs, Input), Stream);
acknowledge(false, _Lane, _Label, _NowMs, Stream) ->
    {Stream, []}.

%% @doc The VM takes what came for it, from now on.
-spec connected(NowMs :: integer(), stream()) -> {[news()], stream(), weft_core:effects()}.
connected(NowMs, #stream{input = Input0, news = News} = Stream0) ->
    {Frames, Unanswered, Input} = weft_input_core:connected(connected, Input0),
    Connected = Stream0#stream{input = Input, news = lists:reverse(Frames, News)},
    {Stream, Effects} = case Unanswered of
                            {Lane, Label} -> acknowledge(true, Lane, Label, NowMs, Connected);
                            none -> {Connected, []}
                        end,
    answer(Stream, Effects).

%% @doc Something has left that lane; the node has told the links.
-spec sent(weft_sim_switches:lane(), stream()) -> stream().
sent(Lane, #stream{switches = Switches, core = Core} = Stream) ->
    case weft_sim_switches:is_full(Lane, Switches) of
        false -> Stream#stream{core = weft_stream_core:lane_ready(Lane, Core)};
        true -> Stream
    end.

%% --- sending ----------------------------------------------------------------------------------

%% @doc See `weft_stream' for this and the following.
-spec core(stream()) -> weft_stream_core:state().
core(#stream{core = Core}) -> Core.

-spec room(stream()) -> weft_fair_queue_core:room() | none.
room(#stream{core = Core}) -> weft_stream_core:room(express, Core).

-spec window_bytes(stream()) -> pos_integer().
window_bytes(#stream{core = Core}) -> weft_stream_core:window_bytes(Core).

%% @doc Only if there is something to repeat (`weft_session_core:first/2').
-spec flush(NowMs :: integer(), stream()) -> {weft_core:effects(), stream()}.
flush(NowMs, #stream{core = Core} = Stream) ->
    written(weft_stream_core:flush(1000 * NowMs, Core), Stream).

%% @doc Only while there is room, but for the handshake.
-spec push(handshake | weft_fair_queue_core:order(), iodata(), Bytes :: pos_integer(),
           NowMs :: integer(), stream()) -> {weft_core:effects(), stream()}.
push(Order, Payload, Bytes, NowMs, #stream{core = Core, kept_max = Max} = Stream0) ->
    Flat = iolist_to_binary(Payload),
    {Effects, Stream} = written(weft_stream_core:push(Order, Flat, Bytes, 1000 * NowMs, Core),
                                Stream0),
    #{unacked_bytes := Kept} = weft_stream_core:info(Stream#stream.core),
    {Effects, Stream#stream{kept_max = max(Max, Kept)}}.

written({kept, Core}, Stream) ->
    {[], Stream#stream{core = Core}};
written({write, Lane, Label, {Sequence, Kind, Payload, Bytes}, Core}, Stream0) ->
    {#stream{switches = Switches} = Stream, Sent} =
        write(Lane, weft_wire:data(Label, Sequence, Kind, Payload), count(payload_out, Stream0)),
    Outcome = case weft_sim_switches:is_full(Lane, Switches) of true -> busy; false -> free end,
    {Sent, Stream#stream{core = weft_stream_core:sent(Lane, Bytes, Outcome, Core)}}.

%% @doc Which link hosts it, what was kept at most, and how often what happened.
-spec info(stream()) -> map().
info(#stream{core = Core, host = Host, kept_max = KeptMax, overflows = Overflows}) ->
    Info = maps:with([link, unacked_bytes, resumes, repairs], weft_stream_core:info(Core)),
    Info#{host => Host, kept_max => KeptMax, overflows => Overflows}.
