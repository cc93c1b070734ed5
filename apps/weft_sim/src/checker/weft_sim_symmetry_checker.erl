%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariants, once settled: who takes a node for its neighbour is taken for one by that node,
%% and each node has said of the links that it has which of them lead to neighbours. By that alone
%% the other cores of a real node get these links.
%%
%% Agreeing takes a message, and somewhere somebody may be doing it; so only what is still so after
%% `pause_ms' (1000) counts.
-module(weft_sim_symmetry_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares both ends of all links, and what was said of them, now and a moment later.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    LaterMs = weft_sim_world:now_ms(World) + maps:get(pause_ms, Options, 1000),
    Later = weft_sim_world:run_until(LaterMs, World),
    case {stays(fun asymmetric/1, World, Later), stays(fun unsaid/1, World, Later)} of
        {[], []} -> ok;
        {[], Pairs} -> {violation, io_lib:format("of ~b links was said the contrary of what they "
                                                 "are, among them ~0tp", shown(Pairs))};
        {Pairs, _} -> {violation, io_lib:format("~b links are known to one end only, among them "
                                                "~0tp", shown(Pairs))}
    end.

stays(Wrong, World, Later) ->
    Then = Wrong(Later),
    [Pair || Pair <- Wrong(World), lists:member(Pair, Then)].

shown(Pairs) -> [length(Pairs), lists:sublist(Pairs, 5)].

asymmetric(World) ->
    weft_sim_graph:asymmetric(weft_sim_peers:graph(World)).

unsaid(World) ->
    [{Node, Peer} || {Node, Neighbours} <- maps:to_list(weft_sim_peers:graph(World)),
                     Agreed <- [weft_sim_world:agreed(Node, World)],
                     Peer <- weft_sim_world:peers(Node, World),
                     lists:member(Peer, Neighbours) =/= lists:member(Peer, Agreed)].
