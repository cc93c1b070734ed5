%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, the running nodes of a peer-to-peer cluster are one connected part.
%%
%% Option: `share' (1.0), the share of the nodes that the largest part must have at least.
-module(weft_sim_connectivity_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Looks at the links that both ends agree on.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    Graph = weft_sim_graph:symmetric(weft_sim_peers:graph(World)),
    [Largest | Others] = weft_sim_graph:components(Graph),
    case length(Largest) >= maps:get(share, Options, 1.0) * map_size(Graph) of
        true -> ok;
        false -> {violation, cut_off(length(Largest), lists:append(Others))}
    end.

cut_off(Rest, Nodes) ->
    io_lib:format("~b nodes are cut off from the other ~b, among them ~0tp",
                  [length(Nodes), Rest, lists:sublist(Nodes, 5)]).
