%% SPDX-License-Identifier: Apache-2.0
%% @doc What waits to be told to a webhook, what is told next and when, and what is given up. Pure;
%% times are milliseconds of a clock that only grows.
%%
%% One event is under way at a time, so they arrive in order. An event that could not be told goes
%% back to the front and is tried again after a pause, each time twice as long. What is accepted, or
%% refused for good (4xx), is done. A receiver that answers with an error, or late, is tried
%% `tries_max' times for an event; one that is not there is tried until it is. When too many wait,
%% the oldest is dropped.
-module(weft_ops_webhook_core).

-export([new/1, add/2, next/2, done/3, size/1]).
-export_type([state/0, options/0, outcome/0, verdict/0]).

-type options() :: #{queue_max := pos_integer(), tries_max := pos_integer(),
                     retry_ms := pos_integer(), retry_max_ms := pos_integer()}.
%% late: no answer, or not in time; the receiver may have got it all the same. absent: nobody is
%% there to connect to.
-type outcome() :: {status, 100..999} | late | absent.
-type verdict() :: sent | retry | refused | given_up | overflow.

-record(state, {options :: options(),
                waiting = queue:new() :: queue:queue({Tries :: non_neg_integer(), term()}),
                sending = none :: none | {Tries :: non_neg_integer(), term()},
                due_ms = none :: none | integer(),
                pause_ms :: pos_integer()}).
-opaque state() :: #state{}.

-spec new(options()) -> state().
new(#{retry_ms := RetryMs} = Options) -> #state{options = Options, pause_ms = RetryMs}.

%% @doc Another event; what was dropped for it.
-spec add(Event :: term(), state()) -> {Dropped :: 0 | 1, state()}.
add(Event, #state{waiting = Waiting, options = #{queue_max := Max}} = State) ->
    case {queue:in({0, Event}, Waiting), queue:len(Waiting) < Max} of
        {Longer, true} -> {0, State#state{waiting = Longer}};
        {Longer, false} -> {1, State#state{waiting = queue:drop(Longer)}}
    end.

%% @doc What is to be told now. If nothing is, it says how long to wait, unless an event is under
%% way or there is none.
-spec next(NowMs :: integer(), state()) -> {send, Event :: term(), state()}
                                         | {wait, Ms :: pos_integer()} | nothing.
next(_NowMs, #state{sending = {_, _}}) ->
    nothing;
next(NowMs, #state{due_ms = DueMs}) when is_integer(DueMs), NowMs < DueMs ->
    {wait, DueMs - NowMs};
next(_NowMs, #state{waiting = Waiting} = State) ->
    case queue:out(Waiting) of
        {{value, {_, Event} = First}, Rest} -> {send, Event, State#state{waiting = Rest,
                                                                         sending = First}};
        {empty, _} -> nothing
    end.

%% @doc What became of the event that is under way.
-spec done(outcome(), NowMs :: integer(), state()) -> {verdict(), state()}.
done(Outcome, NowMs, #state{sending = {Tries, Event}, options = Options} = State0) ->
    State = State0#state{sending = none},
    case verdict(Outcome, Tries + 1, Options) of
        retry -> again({Tries + counts(Outcome), Event}, paused(NowMs, State));
        given_up -> {given_up, paused(NowMs, State)};
        Over -> {Over, State#state{due_ms = none, pause_ms = maps:get(retry_ms, Options)}}
    end.

verdict({status, Status}, _Tries, _Options) when Status >= 200, Status < 300 -> sent;
%% These two say: later.
verdict({status, Status}, _Tries, _Options) when Status >= 400, Status < 500, Status =/= 408,
                                                 Status =/= 429 -> refused;
verdict(absent, _Tries, _Options) -> retry;
verdict(_Fails, Tries, #{tries_max := Max}) when Tries >= Max -> given_up;
verdict(_Fails, _Tries, _Options) -> retry.

counts(absent) -> 0;
counts(_Tried) -> 1.

paused(NowMs, #state{pause_ms = PauseMs, options = #{retry_max_ms := MaxMs}} = State) ->
    State#state{due_ms = NowMs + PauseMs, pause_ms = min(2 * PauseMs, MaxMs)}.

%% It is the oldest one.
again(First, #state{waiting = Waiting, options = #{queue_max := Max}} = State) ->
    case queue:len(Waiting) < Max of
        true -> {retry, State#state{waiting = queue:in_r(First, Waiting)}};
        false -> {overflow, State}
    end.

%% @doc How many events are not done.
-spec size(state()) -> non_neg_integer().
size(#state{waiting = Waiting, sending = none}) -> queue:len(Waiting);
size(#state{waiting = Waiting}) -> queue:len(Waiting) + 1.
