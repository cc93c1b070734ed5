%% SPDX-License-Identifier: Apache-2.0
%% @doc When a link checks its lanes next: within keepalive_ms, or within idle_keepalive_ms if
%% they are at rest. The calling process, which is that of the link, gets the message `keepalive'.
%%
%% Ticks of the kernel tell as much as a check of lanes at rest would. They come about as often, so
%% each puts the check off, for a bit longer than that. A few times in a row: a check may also find
%% that the configuration has changed.
-module(weft_link_check).

-export([first/0, next/2, soon/1, later/1]).
-export_type([check/0]).

%% So many times of rest are all that a check is put off.
-define(PERIODS, 4).

%% A late one that comes without fail is that of a link which runs since an earlier version.
-opaque check() :: {soon | late, timer()}
                 | {late, timer(), DueMs :: integer(), AtLatestMs :: integer()}.
-type timer() :: reference().

-spec first() -> check().
first() -> soon().

%% @doc The one after the present one. When lanes come to rest, the process gives back the memory
%% that it used while they were not.
-spec next(AreAtRest :: boolean(), check()) -> check().
next(false, _Check) ->
    soon();
next(true, Before) ->
    _ = element(1, Before) =:= soon andalso erlang:garbage_collect(),
    NowMs = now_ms(),
    %% All links of a node check at the same moment.
    [DueMs, AtLatestMs] = [weft_period:next_ms(NowMs, Periods * period_ms())
                           || Periods <- [1, ?PERIODS]],
    late(DueMs, AtLatestMs).

%% @doc The lanes are not at rest any more. The message of a timer that has just ended is on its
%% way.
-spec soon(check()) -> check().
soon({soon, _} = Check) ->
    Check;
soon(Check) ->
    case erlang:cancel_timer(element(2, Check)) of
        false -> Check;
        _LeftMs -> soon()
    end.

soon() -> {soon, weft_period:send(weft_config:get(keepalive_ms), keepalive)}.

%% @doc The only lane was heard; if it is at rest there is nothing to check meanwhile.
-spec later(check()) -> check().
later({late, Timer, DueMs, AtLatestMs} = Check) when DueMs < AtLatestMs ->
    case erlang:cancel_timer(Timer) of
        false -> Check;
        _LeftMs -> late(min(AtLatestMs, now_ms() + period_ms() * 5 div 4), AtLatestMs)
    end;
later(Check) ->
    Check.

late(DueMs, AtLatestMs) ->
    {late, erlang:send_after(DueMs, self(), keepalive, [{abs, true}]), DueMs, AtLatestMs}.

period_ms() -> max(weft_config:get(keepalive_ms), weft_link_keys:idle_keepalive_ms()).

now_ms() -> erlang:monotonic_time(millisecond).
