%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: a session delivers each payload once and in order, at any time; and once settled,
%% all that was pushed.
%%
%% Option: `ends', the pairs of nodes with a session.
-module(weft_sim_session_checker).
-behaviour(weft_sim_checker).

-export([view_changed/5, settled/2]).

%% @doc The core itself notices a payload that is not the next one.
-spec view_changed(node(), term(), term(), weft_sim_world:world(), map()) ->
          weft_sim_checker:verdict().
view_changed(Node, disorder, What, _World, _Options) ->
    {violation, io_lib:format("~s got payload ~0p", [Node, What])};
view_changed(_Node, _Key, _Value, _World, _Options) ->
    ok.

%% @doc Compares what one end pushed with what the other delivered, both ways.
-spec settled(weft_sim_world:world(), #{ends := [{node(), node()}]}) ->
          weft_sim_checker:verdict().
settled(World, #{ends := Ends}) ->
    Lost = [{From, To, Pushed, Delivered}
            || {A, B} <- Ends, {From, To} <- [{A, B}, {B, A}],
               Pushed <- [weft_sim_world:view(From, {pushed, To}, World)],
               Delivered <- [weft_sim_world:view(To, {delivered, From}, World)],
               Pushed =:= undefined orelse Pushed =/= Delivered],
    case Lost of
        [] -> ok;
        _ -> {violation, io_lib:format("pushed and delivered differ: ~0tp", [Lost])}
    end.
