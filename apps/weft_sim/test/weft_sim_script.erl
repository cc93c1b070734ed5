%% SPDX-License-Identifier: Apache-2.0
%% @doc A machine that carries out the effects that a command names, so that a test can put anything
%% into a world, right or wrong.
-module(weft_sim_script).
-behaviour(weft_core).

-export([init/2, handle/3]).

init(Self, _Options) ->
    {Self, []}.

handle({command, _Ref, {perform, Effects}}, _NowMs, Self) ->
    {Self, Effects};
handle(_Event, _NowMs, Self) ->
    {Self, []}.
