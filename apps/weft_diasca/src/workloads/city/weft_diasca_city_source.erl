%% SPDX-License-Identifier: Apache-2.0
%% @doc What makes waste: homes and industry. Each `period' ticks there is more of it, about `mean'
%% kilograms; what finds no room is lost.
-module(weft_diasca_city_source).
-behaviour(weft_diasca_actor).

-export([init/2, on_tick/2, on_message/4, terminate/2]).

%% A bell curve, as near as four even chances come to it.
-define(CHANCES, 4).

init(#{mean := _, deviation := _, period := _, first := First, room := _} = Source,
     #{random := Random}) ->
    {Source#{random => Random, kg => 0, produced => 0, lost => 0}, [{schedule, First}]}.

on_tick(#{mean := Mean, deviation := Deviation, random := Random0, room := Room, kg := Kg,
          produced := Produced, lost := Lost, period := Period} = Source, #{tick := Now}) ->
    {More, Random} = lists:foldl(fun(_, {Sum, R0}) ->
                                         {Chance, R} =
                                             weft_diasca_random:uniform(2 * Deviation + 1, R0),
                                         {Sum + Chance - Deviation - 1, R}
                                 end, {Mean, Random0}, lists:seq(1, ?CHANCES)),
    Kept = min(max(More, 0), Room - Kg),
    {Source#{random := Random, kg := Kg + Kept, produced := Produced + Kept,
             lost := Lost + max(More, 0) - Kept}, [{schedule, Now + Period}]}.

on_message(From, {load, Free}, #{kg := Kg} = Source, _Context) ->
    Loaded = min(Free, Kg),
    {Source#{kg := Kg - Loaded}, [{send, From, {loaded, Loaded}}]}.

terminate(#{kg := Kg, produced := Produced, lost := Lost}, _Context) ->
    [{probe, in_sources, Kg}, {probe, produced, Produced}, {probe, lost, Lost}].
