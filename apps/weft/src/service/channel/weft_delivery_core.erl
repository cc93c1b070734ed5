%% SPDX-License-Identifier: Apache-2.0
%% @doc Acknowledged delivery, as the sending process sees it: attempts, answers, and the end.
%%
%% Pure; runs in the process that called `weft:send/3'. Each attempt carries the same reference, by
%% which the receiving node recognises a repeated one (`weft_channel_delivered') and only answers it
%% again. A stream loses nothing while both nodes live. So a repetition replaces what was lost when
%% a node, a registered process or a channel ended. While the stream lives that has an attempt, and
%% nobody has answered it, it is not repeated: how long the receiver would have to remember it would
%% depend on how long it waits there.
%%
%% A dead pid is final. A name without a process is not: its supervisor may be about to restart it.
-module(weft_delivery_core).

-export([new/2, answer/2, timeout/1, lifetime_ms/1]).
-export_type([delivery/0, options/0, verdict/0, reason/0]).

%% At most this many milliseconds pass from the first attempt to the last answer: as long as the
%% receiver remembers what it has delivered.
-define(LIFETIME_MS_MAX, 60000).
-define(RETRIES, 3).
-define(TIMEOUT_MS, 5000).

-type options() :: true | #{retries => non_neg_integer(), timeout_ms => pos_integer()}.
-type reason() :: noproc | timeout | nodedown | dropped | overloaded | no_channels.
-type verdict() :: ok | {wait, TimeoutMs :: pos_integer(), delivery()}
                 | {again | unless_it_waits, TimeoutMs :: pos_integer(), delivery()}
                 | {error, {not_delivered, reason(), Attempts :: pos_integer()}}.
-record(delivery, {target :: pid | name,
                   retries :: non_neg_integer(),
                   timeout_ms :: pos_integer(),
                   attempts = 1 :: pos_integer(),
                   last :: reason() | undefined}).
-opaque delivery() :: #delivery{}.

%% @doc A first attempt; timeout_ms is that of each attempt.
-spec new(pid | name, options()) ->
          {ok, TimeoutMs :: pos_integer(), delivery()} | {error, string()}.
new(Target, true) ->
    new(Target, #{});
new(Target, #{} = Options) ->
    TimeoutMs = maps:get(timeout_ms, Options, ?TIMEOUT_MS),
    Retries = maps:get(retries, Options, ?RETRIES),
    case {maps:keys(maps:without([retries, timeout_ms], Options)), is_count(Retries, 0),
          is_count(TimeoutMs, 1)} of
        {[], true, true} when (Retries + 1) * TimeoutMs =< ?LIFETIME_MS_MAX ->
            {ok, TimeoutMs, #delivery{target = Target, retries = Retries, timeout_ms = TimeoutMs}};
        {[], true, true} ->
            {error, io_lib:format("ack: ~b attempts of ~b ms take more than ~b ms",
                                  [Retries + 1, TimeoutMs, ?LIFETIME_MS_MAX])};
        {[Unknown | _], _, _} ->
            {error, io_lib:format("ack: unknown option ~0p. Known: retries timeout_ms",
                                  [Unknown])};
        {[], _, _} ->
            {error, io_lib:format("ack: retries is a count, timeout_ms milliseconds, not ~0p",
                                  [Options])}
    end;
new(_Target, Other) ->
    {error, io_lib:format("ack is true or a map of retries and timeout_ms, not ~0p", [Other])}.

is_count(Value, Min) -> is_integer(Value) andalso Value >= Min.

%% @doc The receiving node, or the channel that ended, has said what became of the attempt. After a
%% refusal that may be temporary, the next attempt comes after the timeout of this one, not at once.
-spec answer(ok | reason(), delivery()) -> verdict().
answer(ok, _Delivery) -> ok;
answer(noproc, #delivery{target = pid} = Delivery) -> failed(noproc, Delivery);
answer(no_channels, Delivery) -> failed(no_channels, Delivery);
answer(Reason, #delivery{retries = 0} = Delivery) -> failed(Reason, Delivery);
answer(Reason, #delivery{timeout_ms = TimeoutMs} = Delivery) ->
    {wait, TimeoutMs, Delivery#delivery{last = Reason}}.

%% @doc The time of the attempt is over. `unless_it_waits': nobody has answered it.
-spec timeout(delivery()) -> verdict().
timeout(#delivery{retries = 0, last = Last} = Delivery) ->
    failed(case Last of undefined -> timeout; _ -> Last end, Delivery);
timeout(#delivery{retries = Retries, attempts = Attempts, timeout_ms = TimeoutMs,
                  last = Last} = Delivery) ->
    {case Last of undefined -> unless_it_waits; _ -> again end, TimeoutMs,
     Delivery#delivery{retries = Retries - 1, attempts = Attempts + 1, last = undefined}}.

failed(Reason, #delivery{attempts = Attempts}) ->
    {error, {not_delivered, Reason, Attempts}}.

%% @doc How long the receiver has to remember the reference, in milliseconds.
-spec lifetime_ms(delivery()) -> pos_integer().
lifetime_ms(#delivery{retries = Retries, timeout_ms = TimeoutMs}) ->
    (Retries + 1) * TimeoutMs.
