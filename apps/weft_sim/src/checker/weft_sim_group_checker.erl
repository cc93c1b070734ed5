%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariants of groups, once settled: all nodes of a component know the same groups with the
%% same members, and show what they know; every change was answered; and members of one group are
%% linked to each other.
%%
%% Option: `apart' ([]), the pairs that can not be linked.
-module(weft_sim_group_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares each node with its neighbours, so all of a component.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    Graph = weft_sim_peers:linked(World),
    Known = maps:map(fun(Node, _) -> groups(Node, World) end, Graph),
    first([fun() -> answered(Graph, World) end,
           fun() -> shown(Known, World) end,
           fun() -> agreed(Graph, Known) end,
           fun() -> linked(Graph, Known, maps:get(apart, Options, [])) end]).

first([]) -> ok;
first([Check | Rest]) ->
    case Check() of
        [] -> first(Rest);
        [Problem | _] -> {violation, Problem}
    end.

groups(Node, World) ->
    {ok, State} = weft_sim_world:machine(Node, groups, World),
    weft_group_table:groups(weft_group_gossip_core:table(State)).

answered(Graph, World) ->
    [io_lib:format("~0tp has ~b changes without an answer", [Node, Pending])
     || Node <- maps:keys(Graph),
        {ok, State} <- [weft_sim_world:machine(Node, groups, World)],
        Pending <- [weft_group_gossip_core:pending(State)], Pending > 0].

shown(Known, World) ->
    [io_lib:format("~0tp shows ~0tp and knows ~0tp", [Node, Shown, Groups])
     || {Node, Groups} <- maps:to_list(Known),
        Shown <- [maps:from_list([{Name, Nodes} || {{group, Name}, Nodes} <-
                                                      maps:to_list(weft_sim_world:views(Node,
                                                                                        World))])],
        Shown =/= Groups].

agreed(Graph, Known) ->
    [io_lib:format("~0tp knows the groups ~0tp, and ~0tp ~0tp",
                   [Node, map_get(Node, Known), Other, map_get(Other, Known)])
     || {Node, Others} <- maps:to_list(Graph), Other <- Others,
        map_get(Node, Known) =/= map_get(Other, Known)].

linked(Graph, Known, Apart) ->
    [io_lib:format("~0tp and ~0tp are both in ~0tp and not linked", [Node, Other, Name])
     || {Node, Groups} <- maps:to_list(Known), {Name, Nodes} <- maps:to_list(Groups),
        lists:member(Node, Nodes), Other <- Nodes, Node < Other, is_map_key(Other, Graph),
        not lists:member(Other, map_get(Node, Graph)), not lists:member({Node, Other}, Apart)].
