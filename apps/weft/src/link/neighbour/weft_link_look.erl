%% SPDX-License-Identifier: Apache-2.0
%% @doc When a link looks at its lanes next: within keepalive_ms, or within idle_keepalive_ms if
%% they are at rest. The calling process, which is that of the link, gets the message `keepalive'.
%%
%% Ticks of the kernel tell as much as a look at lanes at rest would. They come about as often, so
%% each puts the look off, for a bit longer than that. A few times in a row: a look may also find
%% that the configuration has changed.
-module(weft_link_look).

-export([first/0, next/2, soon/1, later/1]).
-export_type([look/0]).

%% So many times of rest are all that a look is put off.
-define(PERIODS, 4).

%% A late one that comes without fail is that of a link which runs since an earlier version.
-opaque look() :: {soon | late, timer()}
                | {late, timer(), DueMs :: integer(), AtLatestMs :: integer()}.
-type timer() :: reference().

-spec first() -> look().
first() -> soon().

%% @doc The one after the present one. When lanes come to rest, the process gives back the memory
%% that it used while they were not.
-spec next(AreAtRest :: boolean(), look()) -> look().
next(false, _Look) ->
    soon();
next(true, Before) ->
    _ = element(1, Before) =:= soon andalso erlang:garbage_collect(),
    NowMs = now_ms(),
    %% All links of a node look at the same moment.
    [DueMs, AtLatestMs] = [weft_period:next_ms(NowMs, Periods * period_ms())
                           || Periods <- [1, ?PERIODS]],
    late(DueMs, AtLatestMs).

%% @doc The lanes are not at rest any more. The message of a timer that has just ended is on its
%% way.
-spec soon(look()) -> look().
soon({soon, _} = Look) ->
    Look;
soon(Look) ->
    case erlang:cancel_timer(element(2, Look)) of
        false -> Look;
        _LeftMs -> soon()
    end.

soon() -> {soon, weft_period:send(weft_config:get(keepalive_ms), keepalive)}.

%% @doc The only lane was heard; if it is at rest there is nothing to look for meanwhile.
-spec later(look()) -> look().
later({late, Timer, DueMs, AtLatestMs} = Look) when DueMs < AtLatestMs ->
    case erlang:cancel_timer(Timer) of
        false -> Look;
        _LeftMs -> late(min(AtLatestMs, now_ms() + period_ms() * 5 div 4), AtLatestMs)
    end;
later(Look) ->
    Look.

late(DueMs, AtLatestMs) ->
    {late, erlang:send_after(DueMs, self(), keepalive, [{abs, true}]), DueMs, AtLatestMs}.

period_ms() -> max(weft_config:get(keepalive_ms), weft_link_keys:idle_keepalive_ms()).

now_ms() -> erlang:monotonic_time(millisecond).
