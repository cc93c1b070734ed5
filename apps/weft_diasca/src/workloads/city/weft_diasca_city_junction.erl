%% SPDX-License-Identifier: Apache-2.0
%% @doc A junction of the city's grid: it says which road leads to a place, first east or west, then
%% north or south.
-module(weft_diasca_city_junction).
-behaviour(weft_diasca_actor).

-export([init/2, on_tick/2, on_message/4]).

%% Its place, and the road that leaves it in each direction there is.
init({At, Roads}, _Context) -> {{At, Roads}, []}.

on_tick(Junction, _Context) -> {Junction, []}.

on_message(From, {way_to, Place}, {At, Roads} = Junction, _Context) ->
    {Junction, [{send, From, {take, maps:get(direction(At, Place), Roads)}}]}.

direction({X, _}, {There, _}) when There > X -> east;
direction({X, _}, {There, _}) when There < X -> west;
direction({_, Y}, {_, There}) when There > Y -> south;
direction({_, Y}, {_, There}) when There < Y -> north.
