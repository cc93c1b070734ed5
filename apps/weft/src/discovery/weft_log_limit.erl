%% SPDX-License-Identifier: Apache-2.0
%% @doc How often the same thing is worth a line in the log: at first when it has lasted for a
%% while, then ever more rarely, and anew once it was over in between. Pure data.
-module(weft_log_limit).

-export([new/0, bad/3, good/2]).
-export_type([limit/0]).

%% Something that lasts no longer than this is not told.
-define(PATIENCE_MS, 10000).
%% The pause doubles from the patience up to this.
-define(PAUSE_MS_MAX, 600000).

-opaque limit() :: #{Subject :: term() => {SinceMs :: integer(), NextMs :: integer(),
                                           PauseMs :: pos_integer()}}.

%% @doc Nothing is wrong.
-spec new() -> limit().
new() -> #{}.

%% @doc Something is wrong (still): is it to be told now, and for how long has it lasted?
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

%% @doc It is well (again).
-spec good(Subject :: term(), limit()) -> limit().
good(Subject, Limit) ->
    maps:remove(Subject, Limit).
