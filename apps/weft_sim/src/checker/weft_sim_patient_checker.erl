%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, another invariant holds again and again: at some instant of the
%% next `within_ms' (5000).
%%
%% For worlds that never rest: news of a change may be on their way at any instant. Option
%% `checker': the invariant and its options.
-module(weft_sim_patient_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

-define(STEP_MS, 100).

%% @doc Looks at the world now, and if need be as it goes on.
-spec settled(weft_sim_world:world(), #{checker := {module(), map()}, atom() => term()}) ->
          weft_sim_checker:verdict().
settled(World, #{checker := Checker} = Options) ->
    settled(weft_sim_world:now_ms(World) + maps:get(within_ms, Options, 5000), Checker, World).

settled(UntilMs, {Module, Options} = Checker, World) ->
    NowMs = weft_sim_world:now_ms(World),
    case Module:settled(World, Options) of
        {violation, _} when NowMs < UntilMs ->
            settled(UntilMs, Checker, weft_sim_world:run_until(NowMs + ?STEP_MS, World));
        Verdict ->
            Verdict
    end.
