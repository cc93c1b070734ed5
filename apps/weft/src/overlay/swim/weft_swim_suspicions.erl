%% SPDX-License-Identifier: Apache-2.0
%% @doc All members that a node suspects, each with its suspicion (`weft_swim_suspicion_time'), and
%% the timers that end them: pure data. A timer carries the token of its suspicion, so a timer of an
%% earlier suspicion, or of one whose time was shortened, is recognised.
-module(weft_swim_suspicions).

-export([await/4, confirm/3, due/5]).
-export_type([suspicions/0, awaited/0]).

-type suspicions() :: #{weft_core:node_id() => weft_swim_suspicion_time:suspicion()}.
%% The timer that is to be started.
-type awaited() :: {weft_core:effect(), suspicions()}.

%% @doc Node is suspected until the time of the suspicion is over.
-spec await(weft_core:node_id(), weft_swim_suspicion_time:suspicion(), NowMs :: integer(),
            suspicions()) -> awaited().
await(Node, Suspicion, NowMs, Suspicions) ->
    {{after_ms, max(0, weft_swim_suspicion_time:due_ms(Suspicion) - NowMs),
      {suspicion, Node, weft_swim_suspicion_time:token(Suspicion)}},
     Suspicions#{Node => Suspicion}}.

%% @doc A further accuser is news, and shortens the time. `known': it is none, or the suspicion is
%% about another incarnation.
-spec confirm(weft_swim_news:update(), NowMs :: integer(), suspicions()) ->
          {confirmed, awaited()} | known.
confirm({suspect, Node, Incarnation, Accuser}, NowMs, Suspicions) ->
    case Suspicions of
        #{Node := Suspicion} ->
            case weft_swim_suspicion_time:incarnation(Suspicion) =:= Incarnation
                andalso weft_swim_suspicion_time:confirm(Accuser, NowMs, Suspicion) of
                {confirmed, Stronger} -> {confirmed, await(Node, Stronger, NowMs, Suspicions)};
                _OldOrOther -> known
            end;
        #{} ->
            known
    end.

%% @doc A timer fired. `over': the member had its time. `later': this node was stopped itself, and
%% gives the member time again.
-spec due(weft_core:node_id(), Token :: term(), NowMs :: integer(), weft_swim_options:options(),
          suspicions()) -> {over, Incarnation :: non_neg_integer()} | {later, awaited()} | stale.
due(Node, Token, NowMs, Options, Suspicions) ->
    case Suspicions of
        #{Node := Suspicion} ->
            case weft_swim_suspicion_time:token(Suspicion) =:= Token
                andalso NowMs - weft_swim_suspicion_time:due_ms(Suspicion) of
                LateMs when is_integer(LateMs), LateMs >= 0 ->
                    time_is_over(Node, Suspicion, LateMs, NowMs, Options, Suspicions);
                _StaleOrEarly -> stale
            end;
        #{} ->
            stale
    end.

time_is_over(Node, Suspicion, LateMs, NowMs, Options, Suspicions) ->
    #{lifeguard := Lifeguard, probe_timeout_ms := TimeoutMs} = Options,
    case LateMs > TimeoutMs andalso lists:member(health, Lifeguard) of
        true ->
            Postponed = weft_swim_suspicion_time:postpone(NowMs, Suspicion),
            {later, await(Node, Postponed, NowMs, Suspicions)};
        false ->
            {over, weft_swim_suspicion_time:incarnation(Suspicion)}
    end.
