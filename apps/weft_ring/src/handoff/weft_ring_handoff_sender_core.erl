%% SPDX-License-Identifier: Apache-2.0
%% @doc The end of a handoff that has the data. Pure; the other end is
%% `weft_ring_handoff_receiver_core'. Each item and each update is applied once at the receiver,
%% whenever either end or the path between them dies.
%%
%% The items go in the order of their keys. With the data of the receiver its mark is kept: up to
%% which key it has the items (`Cursor'), and up to which number the updates. So the receiver knows
%% where to go on, and the sender needs to remember nothing of what it has sent.
%%
%% An update of a key that was sent already is written to a log, atomically with the data, and sent
%% after what was sent before. The update of a later key is not: the item will have it. A batch of
%% items says up to which number of the log its items have all updates. After a restart the sender
%% does not know which keys the receiver has, so it logs all updates until the receiver has told it;
%% then those of later keys are not sent, as the items have them.
%%
%% While a batch is read, nothing else is done with the data. If that takes longer than 2 ms, the
%% next one has half as many items.
%%
%% Each `start' begins a session, in which messages are numbered from 1 and applied in that order;
%% what belongs to another session is refused. If the log gets longer than `log_max', or larger than
%% `log_bytes_max', all begins anew with the next `Attempt', and the receiver drops what it had: the
%% log is bounded, and no update is refused for it. So it is if the receiver knows a later attempt,
%% which a former process of this end has begun. When everything is acknowledged, the handoff is
%% done, and updates are refused from then on. With `finish' it is only `ready' then: it goes on to
%% send updates, and is done when it was asked for that and all is acknowledged again. So something
%% else can be brought to the same state before, and nothing is refused meanwhile.
%%
%% Events: `{message, Msg}', `{update, Ref, Key, Op}', `{batch, Items, Cursor}' (the answer to the
%% effect `read', before any other event), `link_up', `link_down', `{timer, Timer}', `finish' (after
%% `ready'), `cancel' (ends the log; a later handoff has to be begun with the new attempt).
%% Effects: `{send, Msg}', `{read, Cursor, MaxItems}', `{apply, Ref, Key, Op, none | Number}' (to
%% the data, and with a number to the log, both or nothing), `{truncate, Number}' (the log up to
%% there; its last number stays known), `{reset, Attempt}' (the log is empty and of this attempt;
%% numbers go on), `{refuse, Ref, moved}',
%% `{after_ms, Ms, Timer}', `{failed, Reason}', `ready' (once), `done'.
%% Options: `incarnation' (another one at each start), `batch_items' (500, the most items in a
%% batch), `window' (4, the most batches that are not acknowledged), `update_window' (100, the most
%% messages in all: an update is small, and to a node that is far away there may be more updates in
%% a second than there are ways to it and back), `log_max' (10000 updates), `log_bytes_max'
%% (64000000, and an update more), `retry_ms' (1000: what is not acknowledged is sent again after
%% that, and then twice as seldom each time, up to eight times), `pace_ms' (0: the least time
%% between two batches; `weft_ring_handoff_pace' says how far the sender gets slower when
%% acknowledgements are late), `finish' (`at_once', or `when_asked').
-module(weft_ring_handoff_sender_core).

-export([init/3, handle/3, log_length/1, acknowledged/1]).
-export_type([state/0, log/0, cursor/0, id/0]).

-type cursor() :: start | {'after', Key :: term()} | done.
-type id() :: {weft_ring_table:transfer(), Attempt :: pos_integer()}.
-type log() :: none | {Attempt :: pos_integer(), Last :: non_neg_integer(),
                       [weft_ring_handoff_log:entry()]}.
%% `Last' is the number of the last update that was logged. `none': there was no handoff before.

-define(READ_MS, 2).
%% So often the time before it is sent again doubles. Whoever does not answer may be busy, or the
%% way to him is; more of the same would make that worse.
-define(DOUBLINGS, 3).

-record(sender, {
    transfer :: weft_ring_table:transfer(),
    attempt :: pos_integer(),
    %% Nothing of this attempt can have been applied yet.
    fresh :: boolean(),
    last :: non_neg_integer(),
    log :: weft_ring_handoff_log:log(),
    options :: map(),
    request = 0 :: non_neg_integer(),
    session = none :: term(),
    linked = true :: boolean(),
    cursor = start :: cursor(),
    next = 1 :: pos_integer(),
    unacked = [] :: [{pos_integer(), tuple()}],
    %% Updates to be sent, in order; and those behind them, the latest first.
    queue = [] :: [weft_ring_handoff_log:entry()],
    behind = [] :: [weft_ring_handoff_log:entry()],
    reading_since_ms = no :: no | integer(),
    batch_items :: pos_integer(),
    pace :: weft_ring_handoff_pace:pace(),
    %% The clock may well be below zero.
    due_ms = now :: now | integer(),
    %% There is a timer for `due_ms'.
    due_soon = false :: boolean(),
    token = 0 :: non_neg_integer(),
    %% So often the same was sent again.
    retries = 0 :: non_neg_integer(),
    given = false :: boolean()}).

-opaque state() :: #sender{}.

%% @doc Begins, or goes on after a restart with the log that was kept.
-spec init(weft_ring_table:transfer(), log(), map()) -> {state(), [tuple()]}.
init(Transfer, Log, Options) ->
    {Attempt, Last, Entries} = case Log of none -> {1, 0, []}; _ -> Log end,
    Defaults = #{incarnation => 0, batch_items => 500, window => 4, update_window => 100,
                 log_max => 10000, log_bytes_max => 64000000, retry_ms => 1000, pace_ms => 0},
    All = #{pace_ms := PaceMs, batch_items := Items} = maps:merge(Defaults, Options),
    {State, Effects} = ask(#sender{transfer = Transfer, attempt = Attempt, fresh = Log =:= none,
                                   last = Last, log = weft_ring_handoff_log:new(Entries),
                                   options = All, batch_items = Items,
                                   pace = weft_ring_handoff_pace:new(PaceMs)}),
    {State, [{reset, 1} || Log =:= none] ++ Effects}.

%% @doc How many updates wait for an acknowledgement.
-spec log_length(state()) -> non_neg_integer().
log_length(#sender{log = Log}) -> weft_ring_handoff_log:count(Log).

%% @doc Another term when more has been acknowledged, or another session has begun.
-spec acknowledged(state()) -> term().
acknowledged(#sender{session = Session, next = Next, unacked = Unacked}) ->
    {Session, Next - length(Unacked)}.

%% @doc See above.
-spec handle(term(), integer(), state()) -> {state(), [term()]}.
handle(cancel, _NowMs, #sender{attempt = Attempt} = State) ->
    {State#sender{given = true, linked = false, session = none}, [{reset, Attempt + 1}]};
handle({update, Ref, _Key, _Op}, _NowMs, #sender{given = true} = State) ->
    {State, [{refuse, Ref, moved}]};
handle(_Event, _NowMs, #sender{given = true} = State) ->
    {State, []};
handle({update, Ref, Key, Op}, NowMs, #sender{reading_since_ms = no} = State) ->
    update(Ref, Key, Op, NowMs, State);
handle({batch, Items, Cursor}, NowMs, #sender{reading_since_ms = SinceMs} = State)
  when SinceMs =/= no ->
    batch(Items, Cursor, NowMs, read_in(NowMs - SinceMs, State#sender{reading_since_ms = no}));
handle({message, {handoff, 1, Msg}}, NowMs, State) ->
    message(Msg, NowMs, State);
handle({message, _OfAnotherVersion}, _NowMs, State) ->
    {State, []};
handle(link_down, _NowMs, State) ->
    {forgotten(State#sender{linked = false, session = none}), []};
handle(link_up, _NowMs, State) ->
    ask(State#sender{linked = true});
handle(finish, NowMs, #sender{options = Options} = State) ->
    pump(NowMs, State#sender{options = Options#{finish => at_once}});
handle({timer, {retry, Token}}, _NowMs, #sender{token = Token, linked = true} = State) ->
    retry(State);
handle({timer, pace}, NowMs, State) ->
    pump(NowMs, State#sender{due_soon = false});
handle({timer, _Outdated}, _NowMs, State) ->
    {State, []}.

%% --- updates ----------------------------------------------------------------------------------

update(Ref, Key, Op, _NowMs, #sender{fresh = true} = State) ->
    {State, [{apply, Ref, Key, Op, none}]};
update(Ref, Key, Op, NowMs, #sender{session = Session, cursor = Cursor} = State) ->
    case Session =:= none orelse weft_ring_handoff_receiver_core:has(Key, Cursor) of
        true -> logged(Ref, Key, Op, NowMs, State);
        false -> {State, [{apply, Ref, Key, Op, none}]}
    end.

%% Without the log the receiver's copy is worth nothing, so the new attempt comes first.
logged(Ref, Key, Op, NowMs, State0) ->
    case is_full(State0) of
        true ->
            {State, [Reset | Effects]} = again(State0),
            {State, [Reset, {apply, Ref, Key, Op, none} | Effects]};
        false -> numbered(Ref, Key, Op, NowMs, State0)
    end.

%% A handoff that was begun by earlier code has only the first limit.
is_full(#sender{log = Log, options = #{log_max := Max} = Options}) ->
    weft_ring_handoff_log:count(Log) >= Max
        orelse weft_ring_handoff_log:bytes(Log) >= maps:get(log_bytes_max, Options, infinity).

numbered(Ref, Key, Op, NowMs, #sender{last = Last, log = Log, session = Session,
                                      behind = Behind} = State0) ->
    Entry = {Last + 1, Key, Op},
    State1 = State0#sender{last = Last + 1, log = weft_ring_handoff_log:add(Entry, Log),
                           behind = [Entry || Session =/= none] ++ Behind},
    {State, Effects} = pump(NowMs, State1),
    {State, [{apply, Ref, Key, Op, Last + 1} | Effects]}.

again(#sender{attempt = Attempt} = State0) ->
    {State, Effects} = ask(State0#sender{attempt = Attempt + 1, fresh = true,
                                           log = weft_ring_handoff_log:new([])}),
    {State, [{reset, Attempt + 1} | Effects]}.

%% --- what the receiver says -------------------------------------------------------------------

message({resume, Request, Session, Cursor, Number}, NowMs,
        #sender{session = none, linked = true, log = Log, pace = Pace} = State) ->
    case request(State) of
        Request ->
            Queue = [Entry || {N, Key, _} = Entry <- weft_ring_handoff_log:entries(Log), N > Number,
                              weft_ring_handoff_receiver_core:has(Key, Cursor)],
            Begun = forgotten(State),
            pump(NowMs, Begun#sender{session = Session, fresh = false, cursor = Cursor, next = 1,
                                     queue = Queue, retries = 0,
                                     pace = weft_ring_handoff_pace:again(Pace)});
        _ -> {State, []}
    end;
message({ack, Session, N, Number}, NowMs, #sender{session = Session, unacked = Unacked,
                                                  log = Log0, pace = Pace} = State0) ->
    Log = weft_ring_handoff_log:acknowledged(Number, Log0),
    Left = [U || {M, _} = U <- Unacked, M > N],
    {State, Effects} = pump(NowMs, State0#sender{
                                     unacked = Left, log = Log,
                                     retries = retries(Left =:= Unacked, State0),
                                     pace = weft_ring_handoff_pace:acknowledged(N, NowMs, Pace)}),
    IsShorter = weft_ring_handoff_log:count(Log) < weft_ring_handoff_log:count(Log0),
    {State, [{truncate, Number} || IsShorter] ++ Effects};
message({stale, Session}, _NowMs, #sender{session = Session} = State) ->
    ask(State);
%% A former process of this end has begun it by a clock that was later.
message({refuse, Request, {outdated, {Transfer, Later}}}, _NowMs,
        #sender{transfer = Transfer, attempt = Attempt} = State)
  when is_integer(Later), Later > Attempt ->
    case request(State) of
        Request -> again(State#sender{attempt = Later});
        _ -> {State, []}
    end;
message({refuse, Request, Reason}, _NowMs, State) ->
    {State, [{failed, Reason} || Request =:= request(State)]};
message(_OfAnotherSession, _NowMs, State) ->
    {State, []}.

%% --- sending ----------------------------------------------------------------------------------

ask(#sender{request = Request} = State0) ->
    sent_again(forgotten(State0#sender{request = Request + 1, session = none, retries = 0})).

%% What was to be sent in a session. The log has what matters of it.
forgotten(State) ->
    State#sender{unacked = [], queue = [], behind = []}.

retry(#sender{retries = Retries} = State) ->
    sent_again(State#sender{retries = min(Retries + 1, ?DOUBLINGS)}).

%% What is acknowledged moves on.
retries(true, #sender{retries = Retries}) -> Retries;
retries(false, _State) -> 0.

sent_again(#sender{session = none} = State) ->
    armed(State, [{send, {handoff, 1, {start, id(State), request(State)}}}]);
sent_again(#sender{unacked = []} = State) ->
    {State, []};
sent_again(#sender{unacked = Unacked} = State) ->
    armed(State, [{send, {handoff, 1, Msg}} || {_, Msg} <- Unacked]).

armed(#sender{token = Token, retries = Retries, options = #{retry_ms := Ms}} = State, Effects) ->
    {State#sender{token = Token + 1},
     Effects ++ [{after_ms, Ms bsl Retries, {retry, Token + 1}}]}.

id(#sender{transfer = Transfer, attempt = Attempt}) ->
    {Transfer, Attempt}.

request(#sender{request = Request, options = #{incarnation := Incarnation}}) ->
    {Incarnation, Request}.

%% Updates first, so that a batch comes after all updates of the keys before it.
pump(_NowMs, #sender{session = none} = State) ->
    {State, []};
pump(NowMs, #sender{queue = [], behind = [_ | _] = Behind} = State) ->
    pump(NowMs, State#sender{queue = lists:reverse(Behind), behind = []});
pump(_NowMs, #sender{unacked = [], queue = [], cursor = done} = State) ->
    caught_up(State);
pump(_NowMs, #sender{unacked = Unacked, options = #{update_window := Window}} = State)
  when length(Unacked) >= Window ->
    {State, []};
pump(NowMs, #sender{queue = [{Number, Key, Op} | Queue], next = N, session = Session} = State0) ->
    {State1, Effects} = emit({update, Session, N, Number, Key, Op}, State0#sender{queue = Queue}),
    {State, More} = pump(NowMs, State1),
    {State, Effects ++ More};
pump(_NowMs, #sender{cursor = done} = State) ->
    {State, []};
pump(NowMs, #sender{due_ms = DueMs, due_soon = Soon} = State)
  when is_integer(DueMs), NowMs < DueMs ->
    {State#sender{due_soon = true}, [{after_ms, DueMs - NowMs, pace} || not Soon]};
pump(NowMs, #sender{cursor = Cursor, batch_items = Max, unacked = Unacked,
                    options = #{window := Window}} = State) ->
    case length([items || {_, Msg} <- Unacked, element(1, Msg) =:= items]) >= Window of
        true -> {State, []};
        false -> {State#sender{reading_since_ms = NowMs}, [{read, Cursor, Max}]}
    end.

%% Options of earlier code say nothing of it.
caught_up(#sender{options = Options} = State) ->
    case maps:get(finish, Options, at_once) of
        at_once -> {State#sender{given = true}, [done]};
        when_asked -> {State#sender{options = Options#{finish => is_ready}}, [ready]};
        is_ready -> {State, []}
    end.

read_in(Ms, #sender{batch_items = Items} = State) when Ms > ?READ_MS ->
    State#sender{batch_items = max(1, Items div 2)};
read_in(_Ms, #sender{batch_items = Items, options = #{batch_items := Max}} = State) ->
    State#sender{batch_items = min(Max, Items + 1 + Items div 8)}.

batch(Items, Cursor, NowMs, #sender{next = N, session = Session, last = Last,
                                    pace = Pace} = State0) ->
    DueMs = NowMs + weft_ring_handoff_pace:wait_ms(Pace),
    {State1, Effects} = emit({items, Session, N, Items, Cursor, Last},
                             State0#sender{cursor = Cursor, due_ms = DueMs,
                                           pace = weft_ring_handoff_pace:sent(N, NowMs, Pace)}),
    {State, More} = pump(NowMs, State1),
    {State, Effects ++ More}.

emit(Msg, #sender{next = N, unacked = Unacked} = State) ->
    armed(State#sender{next = N + 1, unacked = Unacked ++ [{N, Msg}]},
          [{send, {handoff, 1, Msg}}]).
