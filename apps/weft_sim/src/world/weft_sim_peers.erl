%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is whose neighbour in a simulated cluster: by the links that there are, or by agreement
%% in a peer-to-peer cluster. There some links were made only to ask something.
-module(weft_sim_peers).

-export([linked/1, graph/1]).

%% @doc The running nodes with those they have a live link to.
-spec linked(weft_sim_world:world()) -> weft_sim_graph:graph().
linked(World) ->
    Running = weft_sim_world:running(World),
    IsRunning = maps:from_keys(Running, []),
    maps:from_list([{Node, [Peer || Peer <- weft_sim_world:peers(Node, World),
                                    is_map_key(Peer, IsRunning),
                                    weft_sim_world:is_live(Node, Peer, World)]}
                    || Node <- Running]).

%% @doc The running nodes with those they take for their neighbours, of which some may be down.
-spec graph(weft_sim_world:world()) -> weft_sim_graph:graph().
graph(World) ->
    maps:from_list([{Node, neighbours(Node, World)} || Node <- weft_sim_world:running(World)]).

neighbours(Node, World) ->
    {ok, State} = weft_sim_world:machine(Node, topology, World),
    weft_peer_to_peer_core:neighbours(State).
