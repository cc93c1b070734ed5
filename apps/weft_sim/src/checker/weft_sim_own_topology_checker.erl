%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariants of a topology that is not part of weft, once settled: its core runs, and each
%% node has links with all running nodes that it wants as neighbours.
%%
%% Option: `cut', the pairs that cannot have a link. What is not looked at: which neighbours those
%% are; that is what its own tests are for.
-module(weft_sim_own_topology_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Looks at every node.
-spec settled(weft_sim_world:world(), #{cut := [{node(), node()}]}) -> weft_sim_checker:verdict().
settled(World, #{cut := Cut}) ->
    Running = weft_sim_world:running(World),
    Missing = [{Node, Wanted} || Node <- Running, Wanted <- wanted(Node, World),
                                 lists:member(Wanted, Running),
                                 not weft_sim_world:is_live(Node, Wanted, World),
                                 not lists:member({min(Node, Wanted), max(Node, Wanted)}, Cut)],
    case {[Node || Node <- Running, has_failed(Node, World)], Missing} of
        {[], []} -> ok;
        {[Node | _] = Failed, _} ->
            {violation, io_lib:format("the core failed on ~b nodes, among them ~0tp",
                                      [length(Failed), Node])};
        {[], _} ->
            {violation, io_lib:format("links that are wanted and not up: ~0tp", [Missing])}
    end.

wanted(Node, World) ->
    {ok, State} = weft_sim_world:machine(Node, topology, World),
    weft_own_topology_core:neighbours(State).

has_failed(Node, World) ->
    {ok, State} = weft_sim_world:machine(Node, topology, World),
    weft_own_topology_core:has_failed(State).
