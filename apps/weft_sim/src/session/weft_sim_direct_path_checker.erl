%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, a session between ends that have a link of their own goes over that
%% link, however it began.
%%
%% Option: `ends', the source and the target.
-module(weft_sim_direct_path_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares the link of each end's path with the other end.
-spec settled(weft_sim_world:world(), #{ends := {node(), node()}}) -> weft_sim_checker:verdict().
settled(World, #{ends := {Source, Target}}) ->
    case [{Node, Via} || {Node, Peer} <- [{Source, Target}, {Target, Source}],
                         #{link := Via} <- [weft_sim_session_core:info_of(Node, World)],
                         Via =/= Peer] of
        [] -> ok;
        Around -> {violation, io_lib:format("around the link of the ends (node, by way of): ~0p",
                                            [Around])}
    end.
