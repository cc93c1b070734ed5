%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, who takes a node for its neighbour is taken for one by that node.
%%
%% Agreeing takes a message, and somewhere somebody may be doing it; so only what is still so after
%% `pause_ms' (1000) counts.
-module(weft_sim_symmetry_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares both ends of all links, now and a moment later.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    LaterMs = weft_sim_world:now_ms(World) + maps:get(pause_ms, Options, 1000),
    Later = asymmetric(weft_sim_world:run_until(LaterMs, World)),
    case [Pair || Pair <- asymmetric(World), lists:member(Pair, Later)] of
        [] -> ok;
        Pairs -> {violation, io_lib:format("~b links are known to one end only, among them ~0tp",
                                           [length(Pairs), lists:sublist(Pairs, 5)])}
    end.

asymmetric(World) ->
    weft_sim_graph:asymmetric(weft_sim_peers:graph(World)).
