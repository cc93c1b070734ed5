%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: at no instant does following next hops lead back to a node already passed.
%%
%% A step counts only over a live link: what is sent into a stream that is broken, or that the other
%% end no longer believes in, goes nowhere and so can not go round in circles.
-module(weft_sim_loop_checker).
-behaviour(weft_sim_checker).

-export([view_changed/5]).

%% @doc Follows the next hops from the node whose route just changed.
-spec view_changed(node(), term(), term(), weft_sim_world:world(), map()) ->
          weft_sim_checker:verdict().
view_changed(Name, {route, Dest}, Route, World, _Options) when Route =/= delete ->
    follow(Name, Dest, World, [Name]);
view_changed(_Name, _Key, _Value, _World, _Options) ->
    ok.

follow(Dest, Dest, _World, _Path) -> ok;
follow(Name, Dest, World, Path) ->
    case weft_sim_world:view(Name, {route, Dest}, World) of
        {Next, _, _} ->
            case {weft_sim_world:is_live(Name, Next, World), lists:member(Next, Path)} of
                {true, true} ->
                    {violation, io_lib:format("routes to ~0tp form a loop: ~0tp",
                                              [Dest, lists:reverse([Next | Path])])};
                {true, false} -> follow(Next, Dest, World, [Next | Path]);
                {false, _} -> ok
            end;
        undefined -> ok
    end.
