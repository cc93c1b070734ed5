%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariants: once settled, each node of a peer-to-peer cluster has 1 to `max' (5) neighbours,
%% and at least the share `full' (0.0) of the nodes has `max'. With the option `apart', the pairs
%% that can not be linked: no two others both lack a neighbour without having each other.
-module(weft_sim_degree_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Counts the neighbours.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    Graph = weft_sim_peers:graph(World),
    case map_size(Graph) of
        1 -> ok;
        _ -> within(weft_sim_graph:degrees(Graph), Graph, Options)
    end.

within(Degrees, Graph, Options) ->
    Max = maps:get(max, Options, 5),
    case [Degree || {Degree, _} <- Degrees, Degree < 1 orelse Degree > Max] of
        [] -> full(Degrees, Max, Graph, Options);
        _ -> {violation, io_lib:format("numbers of neighbours and of such nodes: ~0tp", [Degrees])}
    end.

full(Degrees, Max, Graph, Options) ->
    Least = maps:get(full, Options, 0.0),
    case proplists:get_value(Max, Degrees, 0) / map_size(Graph) of
        Share when Share >= Least -> lacking(Max, Graph, Options);
        _ -> {violation, io_lib:format("less than ~b % of the nodes have all neighbours: ~0tp",
                                       [round(100 * Least), Degrees])}
    end.

lacking(Max, Graph, #{apart := Apart}) ->
    Lacking = [Node || {Node, Peers} <- lists:sort(maps:to_list(Graph)), length(Peers) < Max],
    case [{A, B} || A <- Lacking, B <- Lacking, A < B, not lists:member(B, map_get(A, Graph))]
        -- Apart of
        [] -> ok;
        Pairs -> {violation, io_lib:format("both lack a neighbour, and could have each other: ~0tp",
                                           [Pairs])}
    end;
lacking(_Max, _Graph, _Options) ->
    ok.
