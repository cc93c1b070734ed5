%% SPDX-License-Identifier: Apache-2.0
%% @doc A distance vector without feasibility condition, as it should not be: forms loops and counts
%% to infinity. It is here to show that the checkers find what they are for.
-module(weft_sim_naive_router).
-behaviour(weft_core).

-export([init/2, handle/3]).

init(Self, _Options) ->
    {{Self, #{}, #{}}, []}.

handle({neighbour_up, Node}, _NowMs, {Self, Heard, Routes}) ->
    select({Self, Heard#{Node => #{}}, Routes});
handle({neighbour_down, Node, _Reason}, _NowMs, {Self, Heard, Routes}) ->
    select({Self, maps:remove(Node, Heard), Routes});
handle({message, From, {1, Table}}, _NowMs, {Self, Heard, Routes}) when is_map_key(From, Heard) ->
    select({Self, Heard#{From := Table}, Routes});
handle(_Event, _NowMs, State) ->
    {State, []}.

select({Self, Heard, Old}) ->
    New = maps:fold(fun(Node, Table, Routes) ->
                        maps:fold(fun(Dest, Hops, R) -> better(Self, Node, Dest, Hops, R) end,
                                  better(Self, Node, Node, 0, Routes), Table)
                    end, #{}, Heard),
    Views = [{view, {route, Dest}, Route}
             || {Dest, Route} <- maps:to_list(New), maps:get(Dest, Old, none) =/= Route]
        ++ [{view, {route, Dest}, delete} || Dest <- maps:keys(maps:without(maps:keys(New), Old))],
    Table = maps:map(fun(_, {_, _, Hops}) -> Hops end, New),
    {{Self, Heard, New},
     [{send, Node, {1, Table}} || Views =/= [], Node <- maps:keys(Heard)] ++ Views}.

better(Self, _Node, Self, _Hops, Routes) -> Routes;
better(_Self, _Node, _Dest, Hops, Routes) when Hops >= 16 -> Routes;
better(_Self, Node, Dest, Hops, Routes) ->
    case Routes of
        #{Dest := {_, _, Shorter}} when Shorter =< Hops + 1 -> Routes;
        #{} -> Routes#{Dest => {Node, (Hops + 1) * 1000, Hops + 1}}
    end.
