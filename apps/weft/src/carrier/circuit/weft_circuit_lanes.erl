%% SPDX-License-Identifier: Apache-2.0
%% @doc Which lanes of a link serve a circuit: those of its channel if there are any, else the
%% general ones, else whatever there is.
-module(weft_circuit_lanes).

-export([serving/2, key/1]).
-export_type([lanes/0]).

%% The lanes of a link, the first one first.
-type lanes() :: [{Lane :: term(), weft_lane:key()}].

-spec serving(weft_wire:stream_kind(), lanes()) -> [Lane :: term()].
serving(distribution, Lanes) ->
    general(Lanes);
serving({channel, _, _} = Kind, Lanes) ->
    Own = key(Kind),
    case [Lane || {Lane, Key} <- Lanes, Key =:= Own] of
        [] -> general(Lanes);
        OfChannel -> OfChannel
    end.

general(Lanes) ->
    case [Lane || {Lane, {<<>>, _}} <- Lanes] of
        [] -> [Lane || {Lane, _} <- Lanes];
        General -> General
    end.

%% @doc The lane that a stream of a channel would have for itself.
-spec key({channel, Name :: binary(), Partition :: byte()}) -> weft_lane:key().
key({channel, Name, Partition}) -> {Name, Partition + 1}.
