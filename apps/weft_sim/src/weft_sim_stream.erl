%% SPDX-License-Identifier: Apache-2.0
%% @doc A stream in the simulator: the carrier's own `weft_stream_core', carried out on paths of
%% simulated lanes. The counterpart of `weft_stream'.
%%
%% Around it are the links of this node (`weft_sim_switches'), the other half of the session
%% (`weft_inbound_core', what `weft_input' does with it) and the kernel's ticker
%% (`weft_sim_ticker'), which looks at what `weft_session_counters' counts. The end that begins
%% takes the link to its peer if that is up, else any other one. Time is that of the world, in
%% milliseconds.
%%
%% What serves a circuit starts late, as a process does, and at times so late that the peer has
%% opened another one meanwhile. News of the peer's end comes again and again: of the life before
%% the present one, or of the present one while there is a path. None may be believed.
-module(weft_sim_stream).

-export([new/5, handle/3, room/1, window_bytes/1, flush/2, push/5, info/1]).
-export_type([stream/0]).

-define(PACKET_BYTES_MAX, 16777216).
%% For net_ticktime as it is by default.
-define(NET_TICKTIME_MS, 60000).
%% Who could not connect tries again.
-define(CONNECT_AGAIN_MS, 250).
-define(HOPS, 8).
-define(SESSION, <<1:128>>).
-define(ACCEPT_AFTER_MS, 5).
%% An opener waits for three seconds.
-define(ACCEPT_LATE_MS, 4000).
-define(NEWS_EVERY_MS, 1000).

-record(stream, {%% The target has one once it was reached.
                 core :: weft_stream_core:state() | undefined,
                 role :: source | target,
                 peer :: node(),
                 window_bytes :: pos_integer(),
                 resume_timeout_ms :: auto | pos_integer(),
                 incarnation :: non_neg_integer(),
                 switches :: weft_sim_switches:switches(),
                 own :: binary(),
                 %% The link that delivers input, if there is one to the peer.
                 input :: node() | own_process,
                 in :: weft_inbound_core:state(),
                 %% What came in order, newest first.
                 delivered = [] :: [Payload :: binary()],
                 rand :: rand:state(),
                 ticker = weft_sim_ticker:new() :: weft_sim_ticker:ticker(),
                 %% Packets that the peer must have sent, and those that it must come to read.
                 read = 0 :: non_neg_integer(),
                 written = 0 :: non_neg_integer(),
                 is_kept_alive = false :: boolean(),
                 kept_max = 0 :: non_neg_integer(),
                 overflows = 0 :: non_neg_integer()}).
-opaque stream() :: #stream{}.

%% @doc The `source' opens paths to Peer, the `target' is reached. Options: `lanes' (whom each lane
%% leads to), `window_bytes', `resume_timeout_ms'. Also what is to be done at the start.
-spec new(node(), source | target, Peer :: node(), map(), rand:state()) ->
          {stream(), weft_core:effects()}.
new(Self, Role, Peer, #{lanes := Lanes, window_bytes := Max} = Options, Rand) ->
    Gateways = lists:delete(Peer, lists:usort(maps:values(Lanes))),
    Stream = #stream{role = Role, peer = Peer,
                     switches = weft_sim_switches:new(Self, Lanes, Gateways),
                     own = atom_to_binary(Self), rand = Rand, window_bytes = Max,
                     resume_timeout_ms = maps:get(resume_timeout_ms, Options, auto),
                     incarnation = maps:get(incarnation, Options, 0),
                     input = case lists:member(Peer, maps:values(Lanes)) of
                                 true -> Peer;
                                 false -> own_process
                             end,
                     in = weft_inbound_core:new(4 * Max + ?PACKET_BYTES_MAX)},
    {case {Role, Stream} of
         {source, #stream{input = Peer}} -> hosted(Stream);
         _ -> Stream
     end,
     [{after_ms, weft_sim_ticker:interval_ms(), tick}, {after_ms, ?NEWS_EVERY_MS, news}]
     ++ [{after_ms, 1, connect} || Role =:= source]}.

hosted(#stream{switches = Switches0, input = Input} = Stream) ->
    {[], Switches} = weft_sim_switches:message(Input, {host, session}, Switches0),
    Stream#stream{switches = Switches}.

%% @doc What arrived in order, and what is to be done.
-spec handle(weft_core:event(), NowMs :: integer(), stream()) ->
          {[Payload :: binary()], stream(), weft_core:effects()}.
handle(Event, NowMs, Stream0) ->
    {#stream{delivered = Delivered} = Stream, Effects} = control(Event, NowMs, Stream0),
    {lists:reverse(Delivered), Stream#stream{delivered = []}, Effects}.

control({message, Lane, lane_up}, NowMs, #stream{core = Core, peer = Peer} = Stream) ->
    Sessions = [session || Core =/= undefined, leads_to(Lane, Stream) =:= Peer],
    switched(fun(S) -> weft_sim_switches:lane_up(Lane, Sessions, S) end, NowMs, Stream);
control({neighbour_down, Lane, _}, NowMs, Stream) ->
    switched(fun(S) -> weft_sim_switches:lane_down(Lane, S) end, NowMs, Stream);
control({message, Lane, {sent, Bytes}}, _NowMs, Stream) ->
    {sent(Lane, Bytes, Stream), []};
control({message, Lane, {carried, Raw}}, NowMs, Stream) ->
    Found = found(Stream),
    switched(fun(S) -> weft_sim_switches:packet(Lane, Raw, Found, S) end, NowMs, Stream);
control({timer, connect}, NowMs, #stream{window_bytes = Max} = Stream) ->
    {Core, Effects} = weft_stream_core:connect(
                        1000 * NowMs, weft_stream_core:initiator(distribution, Max)),
    carry_out(Effects, NowMs, Stream#stream{core = Core}, []);
control({timer, {stream, {again, Reason}}}, NowMs, Stream) ->
    closed(none, any, Reason, NowMs, Stream);
control({timer, {stream, Timer}}, NowMs, Stream) ->
    event(Timer, NowMs, Stream);
control({timer, tick}, NowMs, Stream) ->
    look(NowMs, Stream);
control({timer, {accept, Circuit}}, NowMs, Stream) ->
    accept(Circuit, NowMs, Stream);
control({timer, news}, NowMs, Stream) ->
    news(NowMs, Stream);
control(_Stale, _NowMs, Stream) ->
    {Stream, []}.

%% Two looks at one moment would see the same at both ends: they come a bit late, as timers do.
look(NowMs, #stream{ticker = Ticker0, written = Written, rand = Rand0} = Stream0) ->
    {LateMs, Rand} = rand:uniform_s(20, Rand0),
    #stream{read = Read} = Stream = case Stream0#stream.is_kept_alive of
                                        true -> heard(Stream0#stream{rand = Rand});
                                        false -> Stream0#stream{rand = Rand}
                                    end,
    Later = {after_ms, weft_sim_ticker:interval_ms() + LateMs, tick},
    case weft_sim_ticker:look(Read, Written, Ticker0) of
        {tick, Ticker} -> tick(NowMs, Stream#stream{ticker = Ticker, written = Written + 1}, Later);
        {rest, Ticker} -> {Stream#stream{ticker = Ticker}, [Later]};
        not_responding ->
            {Stream#stream{ticker = weft_sim_ticker:new()}, [Later, {view, not_responding, NowMs}]}
    end.

tick(_NowMs, #stream{core = undefined} = Stream, Later) ->
    {Stream, [Later]};
tick(NowMs, #stream{core = Core} = Stream, Later) ->
    carry_out(weft_stream_core:tick(Core), NowMs,
              Stream#stream{core = weft_stream_core:spare(Core)}, [Later]).

news(NowMs, #stream{rand = Rand0} = Stream0) ->
    {LaterMs, Rand} = rand:uniform_s(?NEWS_EVERY_MS, Rand0),
    {Stream, Effects} = died(NowMs, Stream0#stream{rand = Rand}),
    {Stream, [{after_ms, LaterMs, news} | Effects]}.

died(_NowMs, #stream{core = undefined} = Stream) ->
    {Stream, []};
died(NowMs, #stream{core = Core, peer = Peer} = Stream) ->
    case {weft_stream_core:incarnation(Core), weft_stream_core:lanes(Core)} of
        {undefined, _} -> {Stream, []};
        {Present, []} -> event({died, Peer, Present - 1}, NowMs, Stream);
        {Present, _} -> event({died, Peer, Present}, NowMs, Stream)
    end.

heard(#stream{read = Read} = Stream) -> Stream#stream{read = Read + 1}.

%% --- what the core wants done -----------------------------------------------------------------

event(Event, NowMs, #stream{core = Core0} = Stream) ->
    {Outcome, Core, Effects} = weft_stream_core:handle(Event, 1000 * NowMs, Core0),
    carry_out(Effects, NowMs, Stream#stream{core = Core}, outcome(Outcome, Core)).

%% Both ends live as long as the world does, so nothing may end their stream.
outcome({failed, Reason}, _Core) when Reason =:= refused; Reason =:= gone; Reason =:= ended ->
    [{view, ended, {failed, Reason}}];
outcome({failed, _Reason}, _Core) -> [{after_ms, ?CONNECT_AGAIN_MS, connect}];
outcome(Ended, Core) when Ended =:= ended; Ended =:= lost ->
    [{view, ended, {Ended, weft_stream_core:last_break(Core)}}];
outcome(_OkOrConnected, _Core) -> [].

closed(Link, Label, Reason, NowMs, #stream{resume_timeout_ms = TimeoutMs} = Stream) ->
    About = #{has_died => false, may_be_found => true, resume_timeout_ms => TimeoutMs,
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
effect({open, Link, Mode}, NowMs, #stream{input = Input, own = Own, peer = Peer} = Stream) ->
    Open = #{mode => Mode, kind => distribution, hops => ?HOPS, session => ?SESSION,
             received => received(Stream), source => Own, target => atom_to_binary(Peer)},
    said(Link, {open, session, Input, Open}, NowMs, Stream);
effect({drop, Link, Label}, NowMs, Stream) ->
    said(Link, {drop, Label}, NowMs, Stream);
effect({accept, Lane, Label}, _NowMs, Stream) ->
    write(Lane, weft_wire:accept(Label, received(Stream)), Stream);
effect({tick, Lanes, Label}, _NowMs, Stream0) ->
    lists:foldl(fun(Lane, {Stream1, Effects}) ->
                    {Stream, Written} = write(Lane, weft_wire:tick(Label), Stream1),
                    {Stream, Effects ++ Written}
                end, {Stream0, []}, Lanes);
effect({incarnation, Lane, Label}, _NowMs, #stream{incarnation = Incarnation} = Stream) ->
    write(Lane, weft_wire:incarnation(Label, Incarnation), Stream);
effect(heard, _NowMs, Stream) ->
    {heard(Stream), []};
effect({keep_alive, IsOn}, _NowMs, Stream) ->
    {Stream#stream{is_kept_alive = IsOn}, []};
effect({again, Reason}, _NowMs, Stream) ->
    {Stream, [{after_ms, 0, {stream, {again, Reason}}}]};
effect({after_ms, DelayMs, Timer}, _NowMs, Stream) ->
    {Stream, [{after_ms, DelayMs, {stream, Timer}}]};
%% Links do not crash here.
effect({watch, _Link}, _NowMs, Stream) ->
    {Stream, []}.

find_link(#stream{peer = Peer, switches = Switches, input = Input, rand = Rand0} = Stream) ->
    Lanes = weft_sim_switches:lanes(Switches),
    case {weft_sim_lanes:to(Peer, Lanes), weft_sim_lanes:peers(Lanes)} of
        {[_ | _], _} ->
            {{ok, Peer, true}, Stream};
        {[], [_ | _] = Gateways} ->
            {N, Rand} = rand:uniform_s(length(Gateways), Rand0),
            {{ok, lists:nth(N, Gateways), true}, Stream#stream{rand = Rand}};
        {[], []} ->
            {case Input of
                 Peer -> {ok, Peer, false};
                 own_process -> {error, no_route}
             end, Stream}
    end.

received(#stream{in = In}) -> weft_inbound_core:received(In).

write(Lane, Packet, #stream{switches = Switches0} = Stream) ->
    {Sent, Switches} = weft_sim_switches:write(Lane, Packet, Switches0),
    {Stream#stream{switches = Switches}, [Sent]}.

%% --- links ------------------------------------------------------------------------------------

leads_to(Lane, #stream{switches = Switches}) ->
    weft_sim_lanes:peer(Lane, weft_sim_switches:lanes(Switches)).

found(#stream{core = undefined}) -> error;
found(#stream{input = Input, peer = Peer}) -> {ok, session, Input, atom_to_binary(Peer)}.

said(Link, Message, NowMs, Stream) ->
    switched(fun(S) -> weft_sim_switches:message(Link, Message, S) end, NowMs, Stream).

switched(Do, NowMs, #stream{switches = Switches0} = Stream) ->
    {Results, Switches} = Do(Switches0),
    results(Results, NowMs, Stream#stream{switches = Switches}, []).

%% Done: newest first.
results([], _NowMs, Stream, Done) ->
    {Stream, lists:reverse(Done)};
results([Result | Results], NowMs, Stream0, Done) ->
    {Stream, Effects} = result(Result, NowMs, Stream0),
    results(Results, NowMs, Stream, lists:reverse(Effects, Done)).

result({send, _, _} = Send, _NowMs, Stream) ->
    {Stream, [Send]};
result({told, {weft_ack, Sequence}}, NowMs, #stream{core = Core0} = Stream) ->
    {Core, Effects} = weft_stream_core:acked(Sequence, 1000 * NowMs, Core0),
    carry_out(Effects, NowMs, Stream#stream{core = Core}, []);
result({told, {weft_path, closed, Link, Label, Reason}}, NowMs, Stream) ->
    closed(Link, Label, Reason, NowMs, Stream);
result({told, Message}, NowMs, Stream) ->
    event(erlang:delete_element(1, Message), NowMs, Stream);
result({input, Lane, {tick, Label}}, _NowMs, Stream) ->
    write(Lane, weft_wire:ack(Label, received(Stream)), heard(Stream));
result({input, Lane, {data, Label, Sequence, Kind, Payload}}, NowMs, Stream) ->
    data(Lane, Label, {Sequence, Kind, Payload}, NowMs, heard(Stream));
result({accept, Kind, Source, Path, Host}, _NowMs, #stream{rand = Rand0} = Stream) ->
    {Choice, Rand1} = rand:uniform_s(2, Rand0),
    {DelayMs, Rand} = rand:uniform_s(element(Choice, {?ACCEPT_AFTER_MS, ?ACCEPT_LATE_MS}), Rand1),
    {Stream#stream{rand = Rand}, [{after_ms, DelayMs, {accept, {Kind, Source, Path, Host}}}]}.

%% A stream has one end here, as `weft_sessions' sees to.
accept({Kind, Source, {Link, _, Label} = Path, Host}, NowMs,
       #stream{core = undefined, window_bytes = Max} = Stream) ->
    {Core, Effects} = weft_stream_core:acceptor(Kind, Max, Path, 1000 * NowMs),
    {Accepted, Begun} = carry_out(Effects, NowMs, Stream#stream{core = Core, input = Host}, []),
    {Joined, Joining} = said(Link, {join, Label, element(2, Path), {Kind, session, Host, Source}},
                             NowMs, Accepted),
    {Told, Telling} = carry_out(weft_stream_core:say_accepted(Core), NowMs, Joined, []),
    {Told, Begun ++ Joining ++ Telling};
accept({_Kind, _Source, {Link, _, Label}, _Host}, NowMs, Stream) ->
    said(Link, {taken, Label}, NowMs, Stream).

%% Acknowledged on the lane it came by.
data(Lane, Label, {Sequence, Kind, Payload}, NowMs,
     #stream{in = In0, overflows = Overflows, delivered = Delivered} = Stream0) ->
    case weft_inbound_core:accept(Sequence, Kind, Payload, In0) of
        {Deliveries, Ack, In} ->
            New = [Frames || {frames, Frames} <- Deliveries],
            Stream = Stream0#stream{in = In, delivered = lists:reverse(New, Delivered)},
            case Ack of
                true -> write(Lane, weft_wire:ack(Label, received(Stream)), Stream);
                false -> {Stream, []}
            end;
        overflow ->
            switched(fun(S) -> weft_sim_switches:overflow(Lane, Label, S) end, NowMs,
                     Stream0#stream{overflows = Overflows + 1})
    end.

sent(Lane, Bytes, #stream{switches = Switches0, core = Core} = Stream0) ->
    Switches = weft_sim_switches:sent(Lane, Bytes, Switches0),
    Stream = Stream0#stream{switches = Switches},
    case Core =:= undefined orelse weft_sim_switches:is_full(Lane, Switches) of
        false -> Stream#stream{core = weft_stream_core:lane_ready(Lane, Core)};
        true -> Stream
    end.

%% --- sending ----------------------------------------------------------------------------------

%% @doc See `weft_stream' for this and the following.
-spec room(stream()) -> weft_fair_queue_core:room() | none.
room(#stream{core = undefined}) -> none;
room(#stream{core = Core}) -> weft_stream_core:room(express, Core).

-spec window_bytes(stream()) -> pos_integer().
window_bytes(#stream{core = undefined, window_bytes = Max}) -> Max;
window_bytes(#stream{core = Core}) -> weft_stream_core:window_bytes(Core).

-spec flush(NowMs :: integer(), stream()) -> {weft_core:effects(), stream()} | none.
flush(NowMs, #stream{core = Core} = Stream) ->
    case Core =/= undefined andalso weft_stream_core:to_flush(Core) of
        true -> written(weft_stream_core:flush(1000 * NowMs, Core), Stream);
        false -> none
    end.

%% @doc Only while there is room.
-spec push(weft_fair_queue_core:order(), iodata(), Bytes :: pos_integer(), NowMs :: integer(),
           stream()) -> {weft_core:effects(), stream()}.
push(Order, Payload, Bytes, NowMs, #stream{core = Core, kept_max = Max} = Stream0) ->
    Flat = iolist_to_binary(Payload),
    {Effects, Stream} = written(weft_stream_core:push(Order, Flat, Bytes, 1000 * NowMs, Core),
                                Stream0),
    #{unacked_bytes := Kept} = weft_stream_core:info(Stream#stream.core),
    {Effects, Stream#stream{kept_max = max(Max, Kept)}}.

written({kept, Core}, Stream) ->
    {[], Stream#stream{core = Core}};
written({write, Lane, Label, {Sequence, Kind, Payload, Bytes}, Core},
        #stream{written = Written} = Stream0) ->
    {#stream{switches = Switches} = Stream, Sent} =
        write(Lane, weft_wire:data(Label, Sequence, Kind, Payload),
              Stream0#stream{written = Written + 1}),
    Outcome = case weft_sim_switches:is_full(Lane, Switches) of true -> busy; false -> free end,
    {Sent, Stream#stream{core = weft_stream_core:sent(Lane, Bytes, Outcome, Core)}}.

%% @doc What was kept at most, how often what happened, and how many labels are known.
-spec info(stream()) -> map().
info(#stream{core = Core, kept_max = KeptMax, overflows = Overflows, switches = Switches}) ->
    Info = case Core of
               undefined -> #{link => undefined, unacked_bytes => 0, resumes => 0, repairs => 0};
               _ -> maps:with([link, unacked_bytes, resumes, repairs], weft_stream_core:info(Core))
           end,
    Info#{kept_max => KeptMax, overflows => Overflows,
          labels => weft_sim_switches:labels(Switches)}.
