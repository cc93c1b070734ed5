%% SPDX-License-Identifier: Apache-2.0
%% @doc The example of docs/guide/topologies.md: a topology that is not part of weft. Nodes stand in
%% a ring, in the order of the list; each is linked with those at the given distances from it.
%% The guide shows this file from here on.
-module(weft_chord_ring).
-behaviour(weft_core).
-behaviour(weft_topology).
-export([init/2, handle/3, validate/2, partial/2, neighbours/1]).

%% The options are the same on all nodes. An error is told at boot, and nothing starts.
validate(Self, #{nodes := Nodes, distances := Distances} = Options) ->
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("weft_chord_ring", Options, [distances, nodes]) end,
       fun() -> weft_topology_rules:node_names("nodes of weft_chord_ring", Nodes) end,
       fun() -> weft_topology_rules:contains_self(Self, Nodes, "nodes of weft_chord_ring") end,
       fun() -> distances(Distances) end]);
validate(_Self, _Options) ->
    {error, "write {weft_chord_ring, #{nodes => ['name@host', ...], distances => [1, 2, 4]}}"}.

distances(Distances) ->
    case is_list(Distances) andalso lists:member(1, Distances)
        andalso lists:all(fun(D) -> is_integer(D) andalso D >= 1 end, Distances) of
        true -> ok;
        false -> {error, "distances of weft_chord_ring: write numbers, 1 among them"}
    end.

%% Whether not all nodes are neighbours, so that some messages pass through others.
partial(Self, #{nodes := Nodes} = Options) ->
    length(chords(Self, Options)) < length(Nodes) - 1.

%% Dialling, with pauses and again and again, is that of weft's own topologies.
init(Self, #{nodes := Nodes} = Options) ->
    weft_fixed_neighbours:init(Self, chords(Self, Options), Nodes, Options).

handle(Event, NowMs, State) ->
    weft_fixed_neighbours:handle(Event, NowMs, State).

neighbours(State) ->
    weft_fixed_neighbours:neighbours(State).

chords(Self, #{nodes := Nodes, distances := Distances}) ->
    Count = length(Nodes),
    Place = length(lists:takewhile(fun(Node) -> Node =/= Self end, Nodes)),
    Places = [(Place + Count + Sign * (D rem Count)) rem Count || D <- Distances, Sign <- [1, -1]],
    lists:usort([lists:nth(Other + 1, Nodes) || Other <- Places]) -- [Self].
