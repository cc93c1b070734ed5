%% SPDX-License-Identifier: Apache-2.0
%% @doc How far two nodes are from each other in a tree of places. Pure.
%%
%% A node's zone is the path to it, from the largest place to the smallest: `[europe, dc1, rack7]'.
%% Nodes that have the first L places in common are at distance 2^-L, so 1.0 if they share none; a
%% node is at 0.0 from itself (the distance of SD Erlang's placement library, with an unnamed root).
%% These are levels, not lengths: what a number means depends on how deep the tree is. `near' and
%% `far' do not depend on it.
-module(weft_distance).

-export([between/2, nearest/1, farthest/1]).
-export_type([zone/0, place/0]).

-type zone() :: [term()].
-type place() :: {node(), zone()}.

%% @doc From 0.0 to 1.0.
-spec between(place(), place()) -> float().
between({Node, _}, {Node, _}) -> 0.0;
between({_, Zone1}, {_, Zone2}) -> math:pow(2, -shared(Zone1, Zone2)).

shared([Place | Zone1], [Place | Zone2]) -> 1 + shared(Zone1, Zone2);
shared(_, _) -> 0.

%% @doc The nodes at the least distance of all that are given, the own node (0.0) left out.
-spec nearest([{node(), float()}]) -> [node()].
nearest(Distances) -> at(fun lists:min/1, Distances).

%% @doc The nodes at the greatest distance of all that are given, the own node left out.
-spec farthest([{node(), float()}]) -> [node()].
farthest(Distances) -> at(fun lists:max/1, Distances).

at(Choose, Distances) ->
    case [Distance || {_, Distance} <- Distances, Distance > 0] of
        [] -> [];
        Others ->
            Chosen = Choose(Others),
            [Node || {Node, Distance} <- Distances, Distance =:= Chosen]
    end.
