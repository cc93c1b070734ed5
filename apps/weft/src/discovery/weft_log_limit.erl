%% SPDX-License-Identifier: Apache-2.0
%% @doc How often the same trouble is logged: first when it has lasted for a while, then more and
%% more rarely, and from the beginning once it was over in between. Pure data.
-module(weft_log_limit).

-export([new/0, bad/3, good/2]).
-export_type([limit/0]).

%% Trouble that lasts no longer than this is not logged.
-define(PATIENCE_MS, 10000).
%% The pause doubles from PATIENCE_MS up to this.
-define(PAUSE_MS_MAX, 600000).

-opaque limit() :: #{Subject :: term() => {SinceMs :: integer(), NextMs :: integer(),
                                           PauseMs :: pos_integer()}}.

%% @doc No trouble.
-spec new() -> limit().
new() -> #{}.

%% @doc There is (still) trouble. Answers whether to log it now, and how long it has lasted.
-spec bad(Subject :: term(), NowMs :: integer(), limit()) ->
          {{tell, LastedMs :: non_neg_integer()} | quiet, limit()}.
bad(Subject, NowMs, Limit) ->
    case Limit of
        #{Subject := {SinceMs, NextMs, PauseMs}} when NowMs >= NextMs ->
            {{tell, NowMs - SinceMs},
             Limit#{Subject := {SinceMs, NowMs + PauseMs, min(?PAUSE_MS_MAX, 2 * PauseMs)}}};
        #{Subject := _} ->
            {quiet, Limit};
        #{} ->
            {quiet, Limit#{Subject => {NowMs, NowMs + ?PATIENCE_MS, 2 * ?PATIENCE_MS}}}
    end.

%% @doc The trouble is over.
-spec good(Subject :: term(), limit()) -> limit().
good(Subject, Limit) ->
    maps:remove(Subject, Limit).
