%% SPDX-License-Identifier: Apache-2.0
%% @doc How long a suspected member has to refute the suspicion: pure data.
%%
%% Plain SWIM waits a fixed time. With LHA-Suspicion of Lifeguard (Dadgar, Phillips, Currey 2018)
%% the time starts long and shrinks with each further member that accuses independently:
%% `max - (max - min) * log(n + 1) / log(k + 1)' for n of k wanted confirmations. If only one member
%% accuses, it is more likely that this one is at fault. Constants as in memberlist (suspicion.go).
-module(weft_swim_suspicion_time).

-export([new/5, confirm/3, postpone/2, due_ms/1, incarnation/1, token/1, min_ms/2]).
-export_type([suspicion/0]).

-record(suspicion, {incarnation :: non_neg_integer(),
                    token :: term(),
                    since_ms :: integer(),
                    min_ms :: pos_integer(),
                    max_ms :: pos_integer(),
                    due_ms :: integer(),
                    wanted :: non_neg_integer(),
                    accusers :: [weft_core:node_id(), ...]}).
-opaque suspicion() :: #suspicion{}.

%% @doc A suspicion against an incarnation, raised by Accuser, in a cluster of Members members.
-spec new({Incarnation :: non_neg_integer(), Token :: term()}, Accuser :: weft_core:node_id(),
          Members :: pos_integer(), NowMs :: integer(), weft_swim_options:options()) ->
          suspicion().
new({Incarnation, Token}, Accuser, Members, NowMs, Options) ->
    #{suspicion_multiplier := Multiplier, suspicion_max_multiplier := MaxMultiplier,
      lifeguard := Lifeguard} = Options,
    MinMs = min_ms(Members, Options),
    Wanted = case lists:member(suspicion, Lifeguard) of
                 %% In a small cluster there may be nobody left to confirm.
                 true when Members - 2 >= Multiplier - 2 -> max(0, Multiplier - 2);
                 _ -> 0
             end,
    due(NowMs, #suspicion{incarnation = Incarnation, token = Token, since_ms = NowMs,
                          min_ms = MinMs, max_ms = MaxMultiplier * MinMs, due_ms = NowMs,
                          wanted = Wanted, accusers = [Accuser]}).

%% @doc The shortest time that a suspected member gets.
-spec min_ms(Members :: pos_integer(), weft_swim_options:options()) -> pos_integer().
min_ms(Members, #{suspicion_multiplier := Multiplier, probe_interval_ms := IntervalMs}) ->
    round(Multiplier * max(1.0, math:log10(max(1, Members))) * IntervalMs).

%% @doc A further member accuses. `old': it has done so before, or enough have.
-spec confirm(Accuser :: weft_core:node_id(), NowMs :: integer(), suspicion()) ->
          {confirmed, suspicion()} | old.
confirm(Accuser, NowMs, #suspicion{accusers = Accusers, wanted = Wanted} = Suspicion) ->
    case length(Accusers) > Wanted orelse lists:member(Accuser, Accusers) of
        true -> old;
        false -> {confirmed, due(NowMs, Suspicion#suspicion{accusers = [Accuser | Accusers]})}
    end.

due(NowMs, #suspicion{since_ms = SinceMs} = Suspicion) ->
    Suspicion#suspicion{due_ms = max(NowMs, SinceMs + timeout_ms(Suspicion))}.

timeout_ms(#suspicion{wanted = 0, min_ms = MinMs}) ->
    MinMs;
timeout_ms(#suspicion{min_ms = MinMs, max_ms = MaxMs, wanted = Wanted,
                      accusers = [_First | Confirming]}) ->
    Part = math:log(length(Confirming) + 1) / math:log(Wanted + 1),
    max(MinMs, round(MaxMs - (MaxMs - MinMs) * Part)).

%% @doc Gives the member the shortest time again from now on: this node was stopped meanwhile, so
%% the member could not answer.
-spec postpone(NowMs :: integer(), suspicion()) -> suspicion().
postpone(NowMs, #suspicion{min_ms = MinMs} = Suspicion) ->
    Suspicion#suspicion{due_ms = NowMs + MinMs}.

%% @doc When the time is over.
-spec due_ms(suspicion()) -> integer().
due_ms(#suspicion{due_ms = DueMs}) -> DueMs.

%% @doc The incarnation that is suspected.
-spec incarnation(suspicion()) -> non_neg_integer().
incarnation(#suspicion{incarnation = Incarnation}) -> Incarnation.

%% @doc What timers of this suspicion carry.
-spec token(suspicion()) -> term().
token(#suspicion{token = Token}) -> Token.
