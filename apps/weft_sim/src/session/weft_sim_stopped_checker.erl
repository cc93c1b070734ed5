%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: a node whose kernel stands still is taken for dead, though its links go on, and
%% acknowledge what comes. In the end the other node has no session with it.
%%
%% Option: `living', the other node.
-module(weft_sim_stopped_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Looks whether the living node has a session whose handshake is done.
-spec settled(weft_sim_world:world(), #{living := node()}) -> weft_sim_checker:verdict().
settled(World, #{living := Living}) ->
    case weft_sim_session_core:info_of(Living, World) of
        #{incarnations := {_Own, Peer}} when is_integer(Peer) ->
            {violation, io_lib:format("~s takes a node for alive whose kernel has stopped",
                                      [Living])};
        #{} ->
            ok
    end.
