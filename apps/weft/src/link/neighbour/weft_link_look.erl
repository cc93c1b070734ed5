%% SPDX-License-Identifier: Apache-2.0
%% @doc When a link looks at its lanes next: within keepalive_ms, or within idle_keepalive_ms if
%% they are at rest. The calling process, which is that of the link, gets the message `keepalive'.
-module(weft_link_look).

-export([first/0, next/2, soon/1]).
-export_type([look/0]).

-opaque look() :: {soon | late, Timer :: reference()}.

-spec first() -> look().
first() -> soon().

%% @doc The one after the present one. When lanes come to rest, the process gives back the memory
%% that it used while they were not.
-spec next(AreAtRest :: boolean(), look()) -> look().
next(false, _Look) ->
    soon();
next(true, {Before, _}) ->
    _ = Before =:= soon andalso erlang:garbage_collect(),
    {late, start(max(weft_config:get(keepalive_ms), weft_link_keys:idle_keepalive_ms()))}.

soon() -> {soon, start(weft_config:get(keepalive_ms))}.

%% @doc The lanes are not at rest any more. The message of a timer that has just ended is on its
%% way.
-spec soon(look()) -> look().
soon({soon, _} = Look) ->
    Look;
soon({late, Timer} = Look) ->
    case erlang:cancel_timer(Timer) of
        false -> Look;
        _LeftMs -> soon()
    end.

%% All links of a node look at the same moment.
start(PeriodMs) -> weft_period:send(PeriodMs, keepalive).
