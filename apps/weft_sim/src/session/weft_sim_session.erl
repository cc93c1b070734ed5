%% SPDX-License-Identifier: Apache-2.0
%% @doc One session in the simulator: the carrier's own fair queue, window and numbering together,
%% between senders of the simulated VM and a stream (`weft_sim_stream').
%%
%% Carries out what `weft_session_core' and `weft_outlet_core' decide, as `weft_session' and
%% `weft_outlet' do: one step at a time, and messages come between two of them. A step is done a
%% millisecond after what has made it possible, at times later, as on a busy node. Senders do not
%% really run, and what arrives is only checked.
%%
%% The handshake of the distribution is one packet each way: the end that begins says which
%% incarnation of its node it is, the other one answers the same. From then on senders send, and the
%% VM takes what comes, at the end that was reached a bit later: so the first frames may come before
%% that. An attempt that takes too long is given up, as by the kernel's timer.
-module(weft_sim_session).

-export([begin_to/4, accept/5, event/4, died/4, lane_ready/3, peer_incarnation/1, info/1]).
-export_type([session/0, news/0]).

-define(RUN_EVERY_MS, 10).
-define(GET, fun weft_sim_senders:out/1).
%% The version of the classes, which do not change.
-define(PINS, 1).
-define(SETUP_MS, 7000).
-define(STEP_MS, 1).
-define(LATE_STEP_MS, 15).
%% One step of so many is late.
-define(LATE_STEPS, 20).
%% How long the kernel takes to tell the VM of a connection that is up.
-define(SOURCE_CONNECTS_MS, 1).
-define(TARGET_CONNECTS_MS, 30).

-record(session, {id :: weft_sessions:id(),
                  role :: source | target,
                  own_incarnation :: non_neg_integer(),
                  %% Which incarnation of the peer it is with, since the handshake.
                  peer_incarnation :: non_neg_integer() | undefined,
                  stream :: weft_sim_stream:stream(),
                  %% Gets frames from the senders (`weft_sim_senders').
                  outlet :: weft_outlet_core:outlet(),
                  receipts :: weft_sim_receipts:receipts(),
                  until_ms :: non_neg_integer(),
                  %% Will there be a step?
                  is_stepping = false :: boolean(),
                  rand :: rand:state(),
                  queued_max = 0 :: non_neg_integer()}).
-opaque session() :: #session{}.
%% up: the handshake is done. over: why it has ended. disorder: what arrived is not what was
%% promised.
-type news() :: up | {over, Why :: term()} | {disorder, term()}.
-type answer() :: {[news()], session(), weft_sim_switches:switches(), weft_core:effects()}.

%% @doc The end that begins. Options: see `weft_sim_session_core', with those of
%% `weft_sim_stream:initiator/4'.
-spec begin_to(weft_sessions:id(), NowMs :: integer(), map(), weft_sim_switches:switches()) ->
          answer().
begin_to(Id, NowMs, Options, Switches) ->
    Stream0 = weft_sim_stream:initiator(Id, Options, maps:get(rand, Options), Switches),
    {News, Stream, Effects} = weft_sim_stream:connect(NowMs, Stream0),
    done(News, NowMs, new(Id, source, Stream, Options), [{after_ms, ?SETUP_MS, setup} | Effects]).

%% @doc The end that was reached by a circuit.
-spec accept(weft_sessions:id(), weft_stream_core:path(), NowMs :: integer(), map(),
             weft_sim_switches:switches()) -> answer().
accept(Id, Path, NowMs, Options, Switches) ->
    {News, Stream, Effects} = weft_sim_stream:acceptor(Id, Path, NowMs, Options,
                                                       maps:get(rand, Options), Switches),
    done(News, NowMs, new(Id, target, Stream, Options), [{after_ms, ?SETUP_MS, setup} | Effects]).

new(Id, Role, Stream, #{queue_bytes := QueueBytes, senders := Kinds, classes := Classes,
                        until_ms := UntilMs, ordered_until_ms := OrderedUntilMs, timed := Timed,
                        timed_since_ms := SinceMs, rand := Rand} = Options) ->
    #session{id = Id, role = Role, stream = Stream,
             own_incarnation = maps:get(incarnation, Options, 0),
             outlet = outlet(QueueBytes, Classes,
                             weft_sim_senders:new(Id, Kinds, UntilMs, OrderedUntilMs, Rand)),
             receipts = weft_sim_receipts:new(Id, Timed, SinceMs), until_ms = UntilMs,
             rand = Rand}.

outlet(QueueBytes, Classes, Senders) ->
    weft_outlet_core:connected(Senders,
                               weft_outlet_core:repinned(?PINS, Classes,
                                                         weft_outlet_core:new(QueueBytes, false))).

%% @doc A timer, what a link says, or what came for the session.
-spec event({timer, term()} | {told, tuple()} | {input, weft_sim_switches:lane(),
                                                 weft_wire:packet()},
            NowMs :: integer(), session(), weft_sim_switches:switches()) -> answer().
event({timer, run}, NowMs, #session{outlet = Outlet, until_ms = UntilMs} = Session, Switches) ->
    Senders = weft_sim_senders:run(NowMs, weft_outlet_core:handle(Outlet)),
    {Sent, Next} = told_of_frames(NowMs, lent(Switches, with_senders(Senders, Outlet, Session))),
    done([], NowMs, Next, [{after_ms, ?RUN_EVERY_MS, run} || NowMs =< UntilMs] ++ Sent);
event({timer, step}, NowMs, Session, Switches) ->
    {Sent, Next} = step(NowMs, lent(Switches, Session#session{is_stepping = false})),
    done([], NowMs, Next, Sent);
event({timer, connected}, NowMs, Session, Switches) ->
    #session{stream = Lent} = lent(Switches, Session),
    {News, Stream, Effects} = weft_sim_stream:connected(NowMs, Lent),
    done(News, NowMs, Session#session{stream = Stream}, [{after_ms, 0, run} | Effects]);
event({timer, setup}, _NowMs, #session{peer_incarnation = undefined} = Session, Switches) ->
    {[{over, setup_timeout}], Session, Switches, []};
event({timer, setup}, _NowMs, Session, Switches) ->
    {[], Session, Switches, []};
event(Event, NowMs, Session, Switches) ->
    #session{stream = Lent} = lent(Switches, Session),
    {News, Stream, Effects} = weft_sim_stream:handle(Event, NowMs, Lent),
    done(News, NowMs, Session#session{stream = Stream}, Effects).

%% @doc That incarnation of the peer is over.
-spec died(non_neg_integer(), NowMs :: integer(), session(), weft_sim_switches:switches()) ->
          answer().
died(Incarnation, NowMs, Session, Switches) ->
    #session{stream = Lent} = lent(Switches, Session),
    {News, Stream, Effects} = weft_sim_stream:died(Incarnation, NowMs, Lent),
    done(News, NowMs, Session#session{stream = Stream}, Effects).

%% @doc Something has left that lane.
-spec lane_ready(weft_sim_switches:lane(), NowMs :: integer(),
                 {session(), weft_sim_switches:switches()}) -> answer().
lane_ready(Lane, NowMs, {Session, Switches}) ->
    #session{stream = Lent} = lent(Switches, Session),
    done([], NowMs, Session#session{stream = weft_sim_stream:sent(Lane, Lent)}, []).

lent(Switches, #session{stream = Stream} = Session) ->
    Session#session{stream = weft_sim_stream:lend(Switches, Stream)}.

%% @doc Which incarnation of the peer's node it is with, if the handshake is done.
-spec peer_incarnation(session()) -> non_neg_integer() | undefined.
peer_incarnation(#session{peer_incarnation = Incarnation}) -> Incarnation.

%% --- what became of the stream ----------------------------------------------------------------

done(News, NowMs, Session0, Effects) ->
    {Told, Session1, More} = heard(News, NowMs, Session0, [], []),
    {Session, Step} = next_step(Session1),
    {Told ++ mixed(Session), Session, weft_sim_stream:links(Session#session.stream),
     Effects ++ More ++ Step}.

%% Another incarnation of the peer's node answers for it than has begun it.
mixed(#session{peer_incarnation = Begun, stream = Stream}) ->
    case weft_stream_core:incarnation(weft_sim_stream:core(Stream)) of
        Now when is_integer(Begun), is_integer(Now), Now =/= Begun ->
            [{disorder, #{begun_with => Begun, goes_on_with => Now}}];
        _ ->
            []
    end.

heard([], _NowMs, Session, Told, Effects) ->
    {lists:reverse(Told), Session, Effects};
heard([What | News], NowMs, Session0, Told, Effects) ->
    {More, Session, Done} = heard(What, NowMs, Session0),
    heard(News, NowMs, Session, lists:reverse(More, Told), Effects ++ Done).

heard(connected, NowMs, Session) ->
    {Pushed, Effects} = shake(NowMs, Session),
    {[], Pushed, Effects};
heard({failed, Reason}, _NowMs, Session) ->
    {[{over, {failed, Reason}}], Session, []};
heard({over, Why}, _NowMs, Session) ->
    {[{over, Why}], Session, []};
heard(ticked, _NowMs, #session{stream = Stream, outlet = Outlet} = Session) ->
    {[], case weft_session_core:may_rest(weft_sim_stream:core(Stream), Outlet) of
             true -> Session#session{stream = weft_sim_stream:rest(Stream)};
             false -> Session
         end, []};
heard(not_responding, _NowMs, Session) ->
    {[{over, not_responding}], Session, []};
heard({handshake, <<Incarnation:64>>}, NowMs, #session{role = target} = Session) ->
    {Answered, Effects} = shake(NowMs, Session),
    {[up], Answered#session{peer_incarnation = Incarnation},
     [{after_ms, ?TARGET_CONNECTS_MS, connected} | Effects]};
heard({handshake, <<Incarnation:64>>}, _NowMs, #session{role = source} = Session) ->
    {[up], Session#session{peer_incarnation = Incarnation},
     [{after_ms, ?SOURCE_CONNECTS_MS, connected}]};
heard({frames, Payload}, NowMs, #session{receipts = Receipts0} = Session) ->
    {Wrong, Receipts} = weft_sim_receipts:arrived(Payload, NowMs, Receipts0),
    {[{disorder, What} || What <- Wrong], Session#session{receipts = Receipts}, []}.

shake(NowMs, #session{stream = Stream0, own_incarnation = Incarnation} = Session) ->
    {Effects, Stream} = weft_sim_stream:push(handshake, <<Incarnation:64>>, 8, NowMs, Stream0),
    {Session#session{stream = Stream}, Effects}.

%% --- sending ----------------------------------------------------------------------------------

%% As the message `dist_data': once, and then not before all were fetched.
told_of_frames(NowMs, #session{stream = Stream0, outlet = Outlet0} = Session) ->
    case weft_outlet_core:awaits(Outlet0) =/= none
        andalso weft_outlet_core:at_once(weft_sim_stream:room(Stream0), ?GET, ?PINS, Outlet0) of
        {_AllOrMore, Payload, Bytes, Outlet} ->
            {Effects, Stream} = weft_sim_stream:push(frames, Payload, Bytes, NowMs, Stream0),
            {Effects, queued(Session#session{stream = Stream, outlet = Outlet})};
        {none, Outlet} ->
            {[], queued(Session#session{outlet = Outlet})};
        false ->
            {[], Session}
    end.

next_step(#session{is_stepping = false, stream = Stream, outlet = Outlet,
                   rand = Rand0} = Session) ->
    case weft_session_core:is_ready(weft_sim_stream:core(Stream), Outlet) of
        true ->
            {N, Rand} = rand:uniform_s(?LATE_STEPS, Rand0),
            {Session#session{is_stepping = true, rand = Rand},
             [{after_ms, case N of 1 -> ?LATE_STEP_MS; _ -> ?STEP_MS end, step}]};
        false ->
            {Session, []}
    end;
next_step(Session) ->
    {Session, []}.

step(NowMs, #session{stream = Stream0, outlet = Outlet} = Session) ->
    case weft_session_core:first(weft_sim_stream:core(Stream0), Outlet) of
        flush ->
            {Effects, Stream} = weft_sim_stream:flush(NowMs, Stream0),
            {Effects, Session#session{stream = Stream}};
        fetch ->
            Fetched = Session#session{outlet = weft_outlet_core:fetch(?GET, Outlet)},
            send_next(NowMs, carried_out(queued(Fetched)));
        send ->
            send_next(NowMs, Session)
    end.

send_next(NowMs, #session{stream = Stream0, outlet = Outlet0} = Session) ->
    case weft_outlet_core:take(weft_sim_stream:room(Stream0), weft_sim_stream:window_bytes(Stream0),
                               Outlet0) of
        {Payload, Bytes, Order, Outlet} ->
            {Effects, Stream} = weft_sim_stream:push(Order, Payload, Bytes, NowMs, Stream0),
            {Effects, carried_out(Session#session{stream = Stream, outlet = Outlet})};
        empty ->
            {[], Session}
    end.

queued(#session{outlet = Outlet, queued_max = Max} = Session) ->
    Session#session{queued_max = max(Max, weft_outlet_core:queued_bytes(Outlet))}.

carried_out(#session{outlet = Outlet0} = Session) ->
    case weft_outlet_core:effects(Outlet0) of
        none ->
            Session;
        {Effects, Outlet} ->
            Senders = weft_outlet_core:handle(Outlet),
            with_senders(weft_sim_senders:apply_effects(Effects, Senders), Outlet, Session)
    end.

with_senders(Senders, Outlet, Session) ->
    Session#session{outlet = weft_outlet_core:connected(Senders, Outlet)}.

%% @doc For the checkers: see `weft_sim_session_core:info_of/2'.
-spec info(session()) -> #{atom() => term()}.
info(#session{id = Id, stream = Stream, outlet = Outlet, receipts = Receipts,
              queued_max = QueuedMax, own_incarnation = Own, peer_incarnation = Other}) ->
    Senders = weft_outlet_core:handle(Outlet),
    maps:merge(maps:merge(weft_sim_stream:info(Stream), weft_outlet_core:info(Outlet)),
               #{id => Id, incarnations => {Own, Other}, sent => weft_sim_senders:counts(Senders),
                 arrived => weft_sim_receipts:counts(Receipts),
                 slowest_ms => weft_sim_receipts:slowest_ms(Receipts),
                 queued_max => QueuedMax, vm_max => weft_sim_senders:vm_max(Senders)}).
