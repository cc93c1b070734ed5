%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: a session delivers each frame once, those of one sender in the order sent and
%% signals without sender in their place, at any time; and once settled, all that was sent. No end
%% takes the other one for dead, or gives the session up.
%%
%% Option: `ends', the pairs of nodes with a session.
-module(weft_sim_session_checker).
-behaviour(weft_sim_checker).

-export([view_changed/5, settled/2]).

%% @doc The receiving end itself notices a frame that is not the next one of its sender.
-spec view_changed(node(), term(), term(), weft_sim_world:world(), map()) ->
          weft_sim_checker:verdict().
view_changed(Node, disorder, What, _World, _Options) ->
    {violation, io_lib:format("~s got frame ~0p", [Node, What])};
view_changed(Node, not_responding, AtMs, _World, _Options) ->
    {violation, io_lib:format("~s takes its living peer for dead after ~b ms", [Node, AtMs])};
view_changed(Node, ended, Why, _World, _Options) ->
    {violation, io_lib:format("~s ends its session with a living peer: ~0p", [Node, Why])};
view_changed(_Node, _Key, _Value, _World, _Options) ->
    ok.

%% @doc Compares what the senders of one end sent with what the other delivered, both ways.
-spec settled(weft_sim_world:world(), #{ends := [{node(), node()}]}) ->
          weft_sim_checker:verdict().
settled(World, #{ends := Ends}) ->
    Lost = [{From, To, Sent, Arrived}
            || {A, B} <- Ends, {From, To} <- [{A, B}, {B, A}],
               #{sent := Sent} <- [weft_sim_session_core:info_of(From, World)],
               #{arrived := Arrived} <- [weft_sim_session_core:info_of(To, World)],
               Sent =/= Arrived],
    case Lost of
        [] -> ok;
        _ -> {violation, io_lib:format("sent and delivered differ: ~0tp", [Lost])}
    end.
