%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, each node of a peer-to-peer cluster has 1 to `max' (5) neighbours,
%% and at least the share `full' (0.0) of the nodes has `max'.
-module(weft_sim_degree_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Counts the neighbours.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    Max = maps:get(max, Options, 5),
    Graph = weft_sim_peers:graph(World),
    Degrees = weft_sim_graph:degrees(Graph),
    Full = proplists:get_value(Max, Degrees, 0) / map_size(Graph),
    case [Degree || {Degree, _} <- Degrees, Degree < 1 orelse Degree > Max] of
        [] when map_size(Graph) =:= 1 -> ok;
        [] -> full(Full, maps:get(full, Options, 0.0), Degrees);
        _ when map_size(Graph) =:= 1 -> ok;
        _ -> {violation, io_lib:format("numbers of neighbours and of such nodes: ~0tp", [Degrees])}
    end.

full(Full, Least, _Degrees) when Full >= Least -> ok;
full(_Full, Least, Degrees) ->
    {violation, io_lib:format("less than ~b % of the nodes have all neighbours: ~0tp",
                              [round(100 * Least), Degrees])}.
