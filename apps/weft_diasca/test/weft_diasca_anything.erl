%% SPDX-License-Identifier: Apache-2.0
%% @doc An actor that does whatever its sequence of chance says, with fuel that gets less: it sends
%% to itself and to others that it knows (also to those that are gone), schedules and withdraws
%% ticks, makes others, and ends. It tells all that happens to it.
-module(weft_diasca_anything).
-behaviour(weft_diasca_actor).

-export([init/2, on_tick/2, on_message/4, terminate/2]).

init({Known, Fuel}, #{tick := Tick, random := Random}) ->
    some({Known, [], Random}, Fuel, Tick, [{probe, born, {Fuel, Tick}}]).

on_tick({Known, [Fuel | Later], Random}, #{tick := Tick}) ->
    some({Known, Later, Random}, Fuel, Tick, [{probe, ticked, Fuel}]);
on_tick(State, _) ->
    {State, [{probe, ticked, nothing}]}.

on_message(0, {created, Tag, Id}, {Known, Later, Random}, #{tick := Tick}) ->
    some({[Id | Known], Later, Random}, Tag, Tick, [{probe, made, Id}]);
on_message(From, Fuel, State, #{tick := Tick}) ->
    some(State, Fuel, Tick, [{probe, heard, {From, Fuel}}]).

terminate({Known, Later, Random}, #{id := Id}) ->
    [{probe, last, {Id, length(Known), Later, Random}}].

some(State, Fuel, _Tick, Effects) when Fuel < 1 -> {State, Effects};
some({Known, Later, Random0}, Fuel, Tick, Effects) ->
    {Times, Random} = weft_diasca_random:uniform(3, Random0),
    several(Times, {Known, Later, Random}, Fuel - 1, Tick, Effects).

several(0, State, _Fuel, _Tick, Effects) -> {State, lists:reverse(Effects)};
several(Times, {Known, Later, Random0}, Fuel, Tick, Effects) ->
    {What, Random1} = weft_diasca_random:uniform(12, Random0),
    {Which, Random2} = weft_diasca_random:uniform(length(Known), Random1),
    To = lists:nth(Which, Known),
    {Next, New} = one(What, To, {Known, Later, Random2}, Fuel, Tick),
    several(Times - 1, Next, Fuel, Tick, New ++ Effects).

one(What, To, State, Fuel, _Tick) when What =< 4 -> {State, [{send, To, Fuel}]};
%% Equal, but not the same.
one(5, To, State, Fuel, _Tick) -> {State, [{send, To, Fuel * 1.0}, {send, To, Fuel}]};
one(What, To, {Known, Later, Random}, Fuel, Tick) when What =< 8 ->
    {{Known, [Fuel | Later], Random}, [{schedule, Tick + What - 5 + To rem 3}]};
one(9, _To, State, _Fuel, Tick) -> {State, [{withdraw, Tick + 2}]};
one(10, To, {Known, _, _} = State, Fuel, _Tick) ->
    Options = maps:from_list([{place, To} || To rem 2 =:= 0]),
    {State, [{create, Fuel, ?MODULE, {Known, Fuel}, Options}]};
one(11, _To, State, _Fuel, _Tick) -> {State, [terminate]};
one(12, _To, State, Fuel, _Tick) -> {State, [{probe, idle, Fuel}]}.
