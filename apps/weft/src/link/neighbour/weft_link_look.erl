%% SPDX-License-Identifier: Apache-2.0
%% @doc When a link looks at its lanes next: within keepalive_ms, or within idle_keepalive_ms if
%% they are at rest. The calling process, which is that of the link, gets the message `keepalive'.
-module(weft_link_look).

-export([next/1, soon/1]).
-export_type([look/0]).

-opaque look() :: {soon | late, Timer :: reference()}.

%% @doc The first look, or the next one when there was one.
-spec next(AreAtRest :: boolean()) -> look().
next(false) -> {soon, start(weft_config:get(keepalive_ms))};
next(true) -> {late, start(max(weft_config:get(keepalive_ms), weft_link_keys:idle_keepalive_ms()))}.

%% @doc The lanes are not at rest any more. The message of a timer that has just ended is on its
%% way.
-spec soon(look()) -> look().
soon({soon, _} = Look) ->
    Look;
soon({late, Timer} = Look) ->
    case erlang:cancel_timer(Timer) of
        false -> Look;
        _LeftMs -> next(false)
    end.

start(PeriodMs) ->
    NextMs = weft_lane_watch:next_look_ms(erlang:monotonic_time(millisecond), PeriodMs),
    erlang:send_after(NextMs, self(), keepalive, [{abs, true}]).
