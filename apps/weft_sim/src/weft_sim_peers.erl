%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is whose neighbour by agreement in a simulated peer-to-peer cluster. There may be links
%% besides, which somebody made to ask something.
-module(weft_sim_peers).

-export([graph/1]).

%% @doc The running nodes with those they take for their neighbours, of which some may be down.
-spec graph(weft_sim_world:world()) -> weft_sim_graph:graph().
graph(World) ->
    maps:from_list([{Node, neighbours(Node, World)} || Node <- weft_sim_world:running(World)]).

neighbours(Node, World) ->
    {ok, State} = weft_sim_world:machine(Node, topology, World),
    weft_peer_to_peer_core:neighbours(State).
