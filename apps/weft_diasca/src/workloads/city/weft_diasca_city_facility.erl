%% SPDX-License-Identifier: Apache-2.0
%% @doc Where waste goes: an incinerator burns what is in its tank, a landfill keeps it. Both take
%% as much as there is room for.
-module(weft_diasca_city_facility).
-behaviour(weft_diasca_actor).

-export([init/2, on_tick/2, on_message/4, terminate/2]).

%% An incinerator burns at most `rate' kilograms each `period' ticks; a landfill has no such keys.
init(#{room := _} = Facility, _Context) ->
    {Facility#{kg => 0, burnt => 0}, []}.

on_tick(#{kg := Kg, rate := Rate, period := Period, burnt := Burnt} = Facility, #{tick := Now}) ->
    Burns = min(Kg, Rate),
    {Facility#{kg := Kg - Burns, burnt := Burnt + Burns},
     [{probe, burns, Burns} | [{schedule, Now + Period} || Kg > Burns]]}.

%% A fire that is out is lit when there is something to burn.
on_message(From, {unload, Offered}, #{room := Room, kg := Kg} = Facility, #{tick := Now}) ->
    Taken = min(Offered, Room - Kg),
    {Facility#{kg := Kg + Taken},
     [{send, From, {took, Taken}}
      | [{schedule, Now + Period} || #{period := Period} <- [Facility], Kg =:= 0, Taken > 0]]}.

terminate(#{period := _, kg := Kg, burnt := Burnt}, _Context) ->
    [{probe, in_tanks, Kg}, {probe, burnt, Burnt}];
terminate(#{kg := Kg}, _Context) ->
    [{probe, in_landfills, Kg}].
