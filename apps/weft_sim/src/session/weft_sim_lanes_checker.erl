%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, each connection between two nodes is a lane of their link, the same
%% one at both ends, and no two of them are the same.
%%
%% Options: `lanes', all connections with their ends; `gateways', those of the ends at which no
%% session ends.
-module(weft_sim_lanes_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

-type connection() :: {Lane :: node(), node(), node()}.

%% @doc Compares what both ends of each connection take it for.
-spec settled(weft_sim_world:world(), #{lanes := [connection()], gateways := [node()]}) ->
          weft_sim_checker:verdict().
settled(World, #{lanes := Lanes, gateways := Gateways}) ->
    Known = [{{A, B}, Lane, known(Lane, A, Gateways, World), known(Lane, B, Gateways, World)}
             || {Lane, A, B} <- Lanes],
    Differ = [Connection || {_, _, OfA, OfB} = Connection <- Known, not is_same(OfA, OfB)],
    Keys = [{Link, Key} || {Link, _, {Key, _}, _} <- Known],
    case {Differ, Keys -- lists:usort(Keys)} of
        {[], []} -> ok;
        Wrong -> {violation, io_lib:format("lanes that differ, lanes that are the same: ~0p",
                                           [Wrong])}
    end.

known(Lane, Node, Gateways, World) ->
    Keys = case lists:member(Node, Gateways) of
               true -> weft_sim_gateway_core:keys(Node, World);
               false -> map_get(keys, weft_sim_session_core:info_of(Node, World))
           end,
    maps:get(Lane, Keys, none).

is_same({Key, OneRole}, {Key, OtherRole}) -> OneRole =/= OtherRole;
is_same(_OfA, _OfB) -> false.
