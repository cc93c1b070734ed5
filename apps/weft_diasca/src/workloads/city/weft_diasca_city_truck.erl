%% SPDX-License-Identifier: Apache-2.0
%% @doc A waste truck: it goes from source to source until it is nearly full or has been at all of
%% them, and then from facility to facility until it is empty.
%%
%% At a junction it asks for the way, takes the road if that has room (else it asks again later),
%% and is at the next junction at the tick that the road has said. Loading and unloading take a
%% minute.
-module(weft_diasca_city_truck).
-behaviour(weft_diasca_actor).

-export([init/2, on_tick/2, on_message/4, terminate/2]).

%% In ticks of 5 seconds.
-define(HANDLING, 12).
-define(ROAD_AGAIN, 6).
-define(REST, 120).

%% Places are {Actor, Junction, {X, Y}}; sources and facilities are visited in turn.
-record(truck, {at, sources, facilities, room, kg = 0, visited = 0, trips = 0,
                %% What it is going to do where, and the road that it is on with its end.
                goal = none, road = none}).

init(#{at := At, sources := Sources, facilities := Facilities, room := Room, first := First},
     _Context) ->
    {#truck{at = At, sources = Sources, facilities = Facilities, room = Room},
     [{schedule, First}]}.

on_tick(#truck{road = {Road, To}} = Truck, Context) ->
    {Next, Effects} = onward(Truck#truck{at = To, road = none}, Context),
    {Next, [{send, Road, leave} | Effects]};
on_tick(#truck{goal = none} = Truck, Context) ->
    onward(next_goal(Truck), Context);
on_tick(Truck, Context) ->
    onward(Truck, Context).

%% Nearly full is four fifths.
next_goal(#truck{kg = Kg, room = Room} = Truck) when Kg * 5 >= Room * 4 ->
    unloading(Truck);
next_goal(#truck{visited = Visited, sources = [Source | Others]} = Truck)
  when Visited =< length(Others) ->
    Truck#truck{goal = {load, Source}, sources = Others ++ [Source], visited = Visited + 1};
next_goal(#truck{kg = 0} = Truck) ->
    Truck#truck{goal = rest, visited = 0};
next_goal(Truck) ->
    unloading(Truck).

unloading(#truck{facilities = [Facility | Others]} = Truck) ->
    Truck#truck{goal = {unload, Facility}, facilities = Others ++ [Facility], visited = 0}.

onward(#truck{goal = rest} = Truck, #{tick := Now}) ->
    {Truck#truck{goal = none}, [{schedule, Now + ?REST}]};
onward(#truck{at = {Junction, _}, goal = {Do, {Actor, Junction, _}}} = Truck, _Context) ->
    {Truck, [{send, Actor, case Do of
                               load -> {load, Truck#truck.room - Truck#truck.kg};
                               unload -> {unload, Truck#truck.kg}
                           end}]};
onward(#truck{at = {Junction, _}, goal = {_, {_, _, Place}}} = Truck, _Context) ->
    {Truck, [{send, Junction, {way_to, Place}}]}.

on_message(_Junction, {take, Road}, Truck, _Context) ->
    {Truck, [{send, Road, enter}]};
on_message(Road, {entered, Exit, To}, Truck, _Context) ->
    {Truck#truck{road = {Road, To}}, [{schedule, Exit}]};
on_message(_Road, full, Truck, #{tick := Now}) ->
    {Truck, [{schedule, Now + ?ROAD_AGAIN}]};
on_message(_Source, {loaded, Kg}, #truck{kg = Before} = Truck, #{tick := Now}) ->
    {Truck#truck{kg = Before + Kg, goal = none}, [{schedule, Now + ?HANDLING}]};
on_message(_Facility, {took, Kg}, #truck{kg = Before, trips = Trips} = Truck, #{tick := Now}) ->
    {Truck#truck{kg = Before - Kg, goal = none, trips = Trips + 1},
     [{probe, unloads, Kg}, {schedule, Now + ?HANDLING}]}.

terminate(#truck{kg = Kg, trips = Trips}, _Context) ->
    [{probe, in_trucks, Kg}, {probe, trips, Trips}].
