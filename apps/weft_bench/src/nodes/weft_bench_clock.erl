%% SPDX-License-Identifier: Apache-2.0
%% @doc By how much the clock of another host is ahead of ours, so that times that were read there
%% can be compared with others. Clocks are those of `os:perf_counter', which begin anywhere.
-module(weft_bench_clock).

-export([ahead/1, between_us/2]).
-export_type([read_at/0]).

%% A time in microseconds, and how far the clock that it was read from is ahead of ours.
-type read_at() :: {AtUs :: integer(), AheadUs :: integer()}.

-define(SAMPLES, 5).

%% @doc How far this may be wrong, and how far the clock that Read asks for is ahead of ours: the
%% quickest answer tells best.
-spec ahead(Read :: fun(() -> ThereUs :: integer())) ->
          {ErrorUs :: non_neg_integer(), AheadUs :: integer()}.
ahead(Read) ->
    lists:min([sample(Read) || _ <- lists:seq(1, ?SAMPLES)]).

sample(Read) ->
    SentUs = os:perf_counter(microsecond),
    ThereUs = Read(),
    BackUs = os:perf_counter(microsecond),
    {(BackUs - SentUs + 1) div 2, ThereUs - (SentUs + BackUs) div 2}.

%% @doc How long it was from the one to the other.
-spec between_us(read_at(), read_at()) -> integer().
between_us({StartUs, StartAheadUs}, {EndUs, EndAheadUs}) ->
    (EndUs - EndAheadUs) - (StartUs - StartAheadUs).
