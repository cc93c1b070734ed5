%% SPDX-License-Identifier: Apache-2.0
%% @doc An end of a session in the simulator: the carrier's own fair queue, window and numbering
%% together, between senders of the simulated VM and simulated lanes.
%%
%% What `weft_session' and `weft_outlet' do, rule by rule as there: fetch from the VM (small frames
%% unseen while nobody has a queue), queue fairly, suspend and resume senders, push while the
%% window has room and a lane is not busy, repeat first. Here senders do not really run and what
%% arrives is only checked. A view `disorder' appears if what arrives is not what was promised.
-module(weft_sim_session_core).
-behaviour(weft_core).

-export([init/2, handle/3, info_of/2]).

-define(RUN_EVERY_MS, 10).
-define(FETCH_FRAMES, 500).
-define(FETCH_BYTES, 2097152).
-define(LINE_WINDOWS, 16).

-record(session, {stream :: weft_sim_stream:stream(),
                  fair :: weft_fair_queue_core:state(),
                  classes :: weft_fair_queue_core:classes(),
                  senders :: weft_sim_senders:senders(),
                  receipts :: weft_sim_receipts:receipts(),
                  until_ms :: non_neg_integer(),
                  queued_max = 0 :: non_neg_integer()}).

%% @doc Options: `role' (source | target), `peer', `lanes', `window_bytes', `queue_bytes',
%% `senders' (keys and kinds), `classes' (of some senders), `until_ms' (how long they send),
%% `ordered_until_ms' (how long there are signals that hold up all others), `timed' (senders of the
%% peer whose messages are timed) and `timed_since_ms' (from when on).
-spec init(node(), map()) -> {#session{}, weft_core:effects()}.
init(Self, #{role := Role, peer := Peer, queue_bytes := QueueBytes, senders := Kinds,
             classes := Classes, until_ms := UntilMs, ordered_until_ms := OrderedUntilMs,
             timed := Timed, timed_since_ms := SinceMs} = Options) ->
    Rand = weft_core:seed(Self, ?MODULE, Options),
    {Stream, Effects} = weft_sim_stream:new(Self, Role, Peer, Options, Rand),
    {#session{stream = Stream, fair = weft_fair_queue_core:new(QueueBytes), classes = Classes,
              senders = weft_sim_senders:new(Kinds, UntilMs, OrderedUntilMs, Rand),
              receipts = weft_sim_receipts:new(Timed, SinceMs), until_ms = UntilMs},
     [{after_ms, ?RUN_EVERY_MS, run} | Effects]}.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #session{}) -> {#session{}, weft_core:effects()}.
handle({timer, run}, NowMs, #session{senders = Senders, until_ms = UntilMs} = Session) ->
    pump(NowMs, Session#session{senders = weft_sim_senders:run(NowMs, Senders)},
         [{after_ms, ?RUN_EVERY_MS, run} || NowMs =< UntilMs]);
handle(Event, NowMs, #session{stream = Stream0} = Session) ->
    {Payloads, Stream, Effects} = weft_sim_stream:handle(Event, NowMs, Stream0),
    {Arrived, Wrong} = arrived(Payloads, NowMs, Session#session{stream = Stream}),
    pump(NowMs, Arrived, lists:reverse([{view, disorder, What} || What <- Wrong] ++ Effects)).

arrived(Payloads, NowMs, #session{receipts = Receipts0} = Session) ->
    {Receipts, Wrong} = lists:foldl(fun(Payload, {R0, W}) ->
                                        {More, R} = weft_sim_receipts:arrived(Payload, NowMs, R0),
                                        {R, W ++ More}
                                    end, {Receipts0, []}, Payloads),
    {Session#session{receipts = Receipts}, Wrong}.

%% --- sending ----------------------------------------------------------------------------------

%% As long as there is something to fetch or to send. Effects: newest first.
pump(NowMs, #session{stream = Stream0} = Session, Effects) ->
    case weft_sim_stream:flush(NowMs, Stream0) of
        {Sent, Stream} ->
            pump(NowMs, Session#session{stream = Stream}, lists:reverse(Sent, Effects));
        none ->
            Fetched = fetch(Session),
            case send_next(NowMs, Fetched) of
                {Sent, Next} -> pump(NowMs, Next, lists:reverse(Sent, Effects));
                none when Fetched =:= Session -> {Session, lists:reverse(Effects)};
                none -> pump(NowMs, Fetched, Effects)
            end
    end.

send_next(NowMs, #session{stream = Stream0, fair = Fair0} = Session) ->
    Room = weft_sim_stream:room(Stream0),
    LineBytes = ?LINE_WINDOWS * weft_sim_stream:window_bytes(Stream0),
    case Room =/= none andalso weft_fair_queue_core:take(Room, LineBytes, Fair0) of
        {Payload, Bytes, Order, Fair} ->
            {Effects, Stream} = weft_sim_stream:push(Order, Payload, Bytes, NowMs, Stream0),
            {Effects, apply_effects(Session#session{stream = Stream, fair = Fair})};
        _NotNow ->
            none
    end.

fetch(Session) ->
    apply_effects(fetch(?FETCH_FRAMES, ?FETCH_BYTES, Session)).

fetch(Frames, Bytes, Session) when Frames =< 0; Bytes =< 0 ->
    Session;
fetch(Frames, Bytes, #session{fair = Fair, classes = Classes, senders = Senders} = Session) ->
    IsFast = map_size(Classes) =:= 0 andalso weft_fair_queue_core:fast(Fair),
    case {weft_fair_queue_core:full(Fair), weft_sim_senders:peek(Senders)} of
        {true, _} -> Session;
        {false, none} -> Session;
        {false, {ok, Size}} ->
            case IsFast andalso Size < weft_fair_queue_core:small_bytes() of
                true -> fetch_small(Frames, Bytes, Session);
                false -> fetch_one(Frames, Bytes, Session)
            end
    end.

fetch_one(Frames, Bytes, #session{fair = Fair, classes = Classes, senders = Senders0} = Session) ->
    {Size, Data, Senders} = weft_sim_senders:out(Senders0),
    Added = weft_fair_queue_core:add(Size, Data, Classes, Fair),
    fetch(Frames - 1, Bytes - Size, queued(Session#session{fair = Added, senders = Senders})).

fetch_small(Frames, Bytes, #session{fair = Fair, senders = Senders0} = Session) ->
    {Batch, BatchBytes, Pieces, Senders} = join(Senders0, [], 0, 0),
    Added = weft_fair_queue_core:add_batch(Batch, BatchBytes, Pieces, Fair),
    fetch(Frames - Pieces, Bytes - BatchBytes,
          queued(Session#session{fair = Added, senders = Senders})).

join(Senders0, Batch, Bytes, Pieces) ->
    Small = weft_fair_queue_core:small_bytes(),
    case Bytes < weft_fair_queue_core:batch_bytes() andalso weft_sim_senders:peek(Senders0) of
        {ok, Next} when Next < Small ->
            {Size, Data, Senders} = weft_sim_senders:out(Senders0),
            join(Senders, [Batch, <<Size:32>> | Data], Bytes + Size + 4, Pieces + 1);
        _ ->
            {Batch, Bytes, Pieces, Senders0}
    end.

queued(#session{fair = Fair, queued_max = Max} = Session) ->
    Session#session{queued_max = max(Max, weft_fair_queue_core:bytes(Fair))}.

apply_effects(#session{fair = Fair0, senders = Senders} = Session) ->
    case weft_fair_queue_core:effects(Fair0) of
        {[], _} -> Session;
        {Effects, Fair} ->
            Session#session{fair = Fair,
                            senders = weft_sim_senders:apply_effects(Effects, Senders)}
    end.

%% @doc For the checkers: frames sent and arrived, by sender; the most that was kept and queued, in
%% bytes; how long the slowest timed message took; how often what happened.
-spec info_of(node(), weft_sim_world:world()) -> #{atom() => term()}.
info_of(Node, World) ->
    {ok, #session{stream = Stream, fair = Fair, senders = Senders, receipts = Receipts,
                  queued_max = QueuedMax}} = weft_sim_world:machine(Node, session, World),
    maps:merge(maps:merge(weft_sim_stream:info(Stream), weft_fair_queue_core:info(Fair)),
               #{sent => weft_sim_senders:counts(Senders),
                 arrived => weft_sim_receipts:counts(Receipts),
                 slowest_ms => weft_sim_receipts:slowest_ms(Receipts),
                 queued_max => QueuedMax, vm_max => weft_sim_senders:vm_max(Senders)}).
