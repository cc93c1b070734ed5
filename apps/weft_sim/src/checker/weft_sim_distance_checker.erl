%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: along each next hop over a live link the feasibility distance gets strictly
%% better (higher seqno, or the same and a lower metric).
%%
%% This is the reason why there are no loops, so it fails earlier and more often than a loop would.
%% It reads the tables of the machine `router', which runs `weft_router_core'.
-module(weft_sim_distance_checker).
-behaviour(weft_sim_checker).

-export([view_changed/5]).

%% @doc Compares the node whose route just changed with its new next hop.
-spec view_changed(node(), term(), term(), weft_sim_world:world(), map()) ->
          weft_sim_checker:verdict().
view_changed(Name, {route, Dest}, {Next, _, _}, World, _Options) when Next =/= Dest ->
    case weft_sim_world:is_live(Name, Next, World) of
        true -> compare(Dest, {Name, distance(Name, Dest, World)},
                        {Next, distance(Next, Dest, World)});
        false -> ok
    end;
view_changed(_Name, _Key, _Value, _World, _Options) ->
    ok.

compare(_Dest, {_Name, none}, _Next) -> ok;
compare(_Dest, {_Name, {Ours, _}}, {_Next, {Theirs, _}}) when Theirs > Ours -> ok;
compare(_Dest, {_Name, {Seqno, Ours}}, {_Next, {Seqno, Theirs}}) when Theirs < Ours -> ok;
compare(Dest, {Name, Ours}, {Next, Theirs}) ->
    {violation, io_lib:format("~0tp has distance ~0tp to ~0tp, but its next hop ~0tp has ~0tp",
                              [Name, Ours, Dest, Next, Theirs])}.

distance(Name, Dest, World) ->
    {ok, Router} = weft_sim_world:machine(Name, router, World),
    weft_router_table:distance(Dest, weft_router_core:table(Router)).
