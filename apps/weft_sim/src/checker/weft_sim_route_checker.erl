%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, every node has a route to exactly the nodes of its component, each
%% route works, and its metric is that of a shortest path.
%%
%% The component and the shortest paths come from the live links and the link costs the routers
%% show, by a plain Dijkstra that shares nothing with the router. Option: `is_shortest' (true).
-module(weft_sim_route_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares all routes of all running nodes with the shortest paths.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    Graph = weft_sim_peers:linked(World),
    Costs = maps:map(fun(Name, Peers) ->
                         [{Peer, weft_sim_world:view(Name, {neighbour, Peer}, World)}
                          || Peer <- Peers]
                     end, Graph),
    first(fun(Name) -> check_node(Name, shortest(Name, Costs), World, Options) end,
          lists:sort(maps:keys(Graph))).

check_node(Name, Shortest, World, Options) ->
    Routed = lists:sort([Dest || {route, Dest} <- maps:keys(weft_sim_world:views(Name, World))]),
    case lists:sort(maps:keys(Shortest)) -- [Name] of
        Routed -> first(fun(Dest) -> check_route(Name, Dest, Shortest, World, Options) end, Routed);
        Reachable ->
            {violation, io_lib:format("~0tp lacks routes to ~0tp and has routes to unreachable "
                                      "~0tp", [Name, Reachable -- Routed, Routed -- Reachable])}
    end.

check_route(Name, Dest, Shortest, World, Options) ->
    {_, Metric, _} = weft_sim_world:view(Name, {route, Dest}, World),
    IsShortest = Metric =:= map_get(Dest, Shortest) orelse not maps:get(is_shortest, Options, true),
    case walk(Name, Dest, World, []) of
        arrived when IsShortest -> ok;
        arrived ->
            {violation, io_lib:format("~0tp has metric ~b to ~0tp, the shortest path has ~b",
                                      [Name, Metric, Dest, map_get(Dest, Shortest)])};
        {lost_at, Path} ->
            {violation, io_lib:format("the route from ~0tp to ~0tp ends after ~0tp",
                                      [Name, Dest, lists:reverse(Path)])}
    end.

walk(Dest, Dest, _World, _Path) -> arrived;
walk(Name, Dest, World, Path) ->
    case weft_sim_world:view(Name, {route, Dest}, World) of
        {Next, _, _} ->
            case weft_sim_world:is_live(Name, Next, World) andalso not lists:member(Name, Path) of
                true -> walk(Next, Dest, World, [Name | Path]);
                false -> {lost_at, [Name | Path]}
            end;
        undefined -> {lost_at, [Name | Path]}
    end.

%% Dijkstra: the metric of the shortest path to each node that can be reached.
shortest(From, Costs) ->
    shortest(gb_sets:singleton({0, From}), #{}, Costs).

shortest(Queue0, Done, Costs) ->
    case gb_sets:is_empty(Queue0) of
        true -> Done;
        false ->
            {{Metric, Name}, Queue} = gb_sets:take_smallest(Queue0),
            case is_map_key(Name, Done) of
                true -> shortest(Queue, Done, Costs);
                false ->
                    Next = [{Metric + Cost, Peer} || {Peer, Cost} <- map_get(Name, Costs)],
                    shortest(gb_sets:union(Queue, gb_sets:from_list(Next)),
                             Done#{Name => Metric}, Costs)
            end
    end.

first(_Check, []) -> ok;
first(Check, [Element | Rest]) ->
    case Check(Element) of
        ok -> first(Check, Rest);
        {violation, _} = Violation -> Violation
    end.
