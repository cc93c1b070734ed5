%% SPDX-License-Identifier: Apache-2.0
%% @doc A core for tests of its interpreters: carries out the effects that a command or a message
%% asks for, and tells every other event as a notice.
-module(weft_echo_core).
-behaviour(weft_core).

-export([init/2, handle/3]).

init(Self, Options) ->
    {Self, maps:get(effects, Options, [])}.

handle({command, Ref, {perform, Effects}}, _NowMs, Self) ->
    {Self, Effects ++ [{reply, Ref, done}]};
handle(Event, _NowMs, Self) ->
    {Self, [{notice, {seen, Event}}]}.
