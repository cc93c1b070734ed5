%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, every link that the topology wants is up.
%%
%% Option: `pairs', the wanted links; those of nodes that do not run are left out.
-module(weft_sim_link_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Looks at every wanted link.
-spec settled(weft_sim_world:world(), #{pairs := [{node(), node()}]}) ->
          weft_sim_checker:verdict().
settled(World, #{pairs := Pairs}) ->
    Graph = weft_sim_peers:linked(World),
    Missing = [{A, B} || {A, B} <- Pairs, is_map_key(A, Graph), is_map_key(B, Graph),
                         not lists:member(B, map_get(A, Graph))],
    case Missing of
        [] -> ok;
        _ -> {violation, io_lib:format("links not up: ~0tp", [Missing])}
    end.
