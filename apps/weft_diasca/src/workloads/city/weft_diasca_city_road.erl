%% SPDX-License-Identifier: Apache-2.0
%% @doc A road in one direction, on which nobody overtakes: it tells a vehicle that enters when and
%% where it leaves, one vehicle a tick, or that it is full.
-module(weft_diasca_city_road).
-behaviour(weft_diasca_actor).

-export([init/2, on_tick/2, on_message/4, terminate/2]).

%% `to': the junction at its end and where that is; `ticks': how long it takes at least; `room': for
%% so many vehicles.
init(#{to := _, ticks := _, room := _} = Road, _Context) ->
    {Road#{on => 0, last => 0, passed => 0, refused => 0}, []}.

on_tick(Road, _Context) -> {Road, []}.

on_message(From, enter, #{room := Room, on := Room, refused := Refused} = Road, _Context) ->
    {Road#{refused := Refused + 1}, [{send, From, full}]};
on_message(From, enter, #{to := To, ticks := Ticks, on := On, last := Last} = Road,
           #{tick := Now}) ->
    Exit = max(Now + Ticks, Last + 1),
    {Road#{on := On + 1, last := Exit}, [{send, From, {entered, Exit, To}}]};
on_message(_From, leave, #{on := On, passed := Passed} = Road, _Context) ->
    {Road#{on := On - 1, passed := Passed + 1}, []}.

terminate(#{on := On, passed := Passed, refused := Refused}, _Context) ->
    [{probe, on_road, {On, Passed, Refused}}].
