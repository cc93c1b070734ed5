%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: a node whose kernel stands still is taken for dead, though its links go on, and
%% acknowledge what comes. The other node ends its session with it because it hears no ticks, not
%% before three quarters of `net_ticktime', and in the end has none. Until the kernel stops all is
%% as `weft_sim_session_checker' says; and what is delivered, always.
%%
%% Options: `living', the other node; `stops_ms', when the kernel stops; those of
%% `weft_sim_session_checker'.
-module(weft_sim_stopped_checker).
-behaviour(weft_sim_checker).

-export([view_changed/5, settled/2]).

-define(SILENT_MS, 45000).

%% @doc Looks at sessions that end, and at what is delivered.
-spec view_changed(node(), term(), term(), weft_sim_world:world(), map()) ->
          weft_sim_checker:verdict().
view_changed(Node, ended, {_Id, Why, _} = Ended, World, #{stops_ms := StopsMs} = Options) ->
    NowMs = weft_sim_world:now_ms(World),
    case Node =:= map_get(living, Options) of
        _ when NowMs < StopsMs ->
            weft_sim_session_checker:view_changed(Node, ended, Ended, World, Options);
        true when Why =/= not_responding; NowMs < StopsMs + ?SILENT_MS ->
            {violation, io_lib:format("~s ends its session ~b ms after the kernel of its peer has "
                                      "stopped: ~0p", [Node, NowMs - StopsMs, Why])};
        _ ->
            ok
    end;
view_changed(Node, Key, Value, World, Options) ->
    weft_sim_session_checker:view_changed(Node, Key, Value, World, Options).

%% @doc Looks whether the living node had a session, and has one whose handshake is done.
-spec settled(weft_sim_world:world(), #{living := node(), atom() => term()}) ->
          weft_sim_checker:verdict().
settled(World, #{living := Living}) ->
    Info = weft_sim_session_core:info_of(Living, World),
    case {Info, weft_sim_world:view(Living, ended, World)} of
        {#{incarnations := {_Own, Peer}}, _} when is_integer(Peer) ->
            {violation, io_lib:format("~s takes a node for alive whose kernel has stopped",
                                      [Living])};
        {_, {_Id, not_responding, _}} ->
            ok;
        {_, Ended} ->
            {violation, io_lib:format("~s had no session when the kernel of its peer stopped: ~0p",
                                      [Living, Ended])}
    end.
