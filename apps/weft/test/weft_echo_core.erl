%% SPDX-License-Identifier: Apache-2.0
%% @doc A core for tests of its interpreters: carries out the effects that a command or a message
%% asks for, and tells every other event as a notice.
-module(weft_echo_core).
-behaviour(weft_core).

-export([init/2, handle/3, neighbours/1]).

init(Self, Options) ->
    {{Self, maps:get(neighbours, Options, [])}, maps:get(effects, Options, [])}.

neighbours({_Self, Neighbours}) ->
    Neighbours.

handle({command, Ref, {perform, Effects}}, _NowMs, State) ->
    {State, Effects ++ [{reply, Ref, done}]};
handle({command, Ref, {perform, Effects, Neighbours}}, _NowMs, {Self, _}) ->
    {{Self, Neighbours}, Effects ++ [{reply, Ref, done}]};
handle(Event, _NowMs, State) ->
    {State, [{notice, {seen, Event}}]}.
