%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariants of groups, once settled: all nodes of a component know the same groups with the
%% same members, and show what they know; every change was answered, unless its node was started
%% again; of a group that one node alone has changed, and in its present life only, the last answer
%% holds; and members of one group are linked to each other.
%%
%% Option: `apart' ([]), the pairs that can not be linked. Needs the observer `weft_sim_answers'.
-module(weft_sim_group_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares each node with its neighbours, so all of a component.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    Graph = weft_sim_peers:linked(World),
    Known = maps:map(fun(Node, _) -> groups(Node, World) end, Graph),
    Lives = weft_sim_answers:lives(groups, weft_sim_world:observed(World)),
    first([fun() -> answered(maps:with(maps:keys(Graph), Lives)) end,
           fun() -> shown(Known, World) end,
           fun() -> agreed(Graph, Known) end,
           fun() -> holding(Lives, Known) end,
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

answered(Lives) ->
    [io_lib:format("~0tp has ~b changes without an answer, among them ~0tp",
                   [Node, length(Changes), hd(Changes)])
     || {Node, [Present | _]} <- maps:to_list(Lives),
        [_ | _] = Changes <- [[Change || {asked, _, Change, no_reply} <- Present]]].

%% A node that is started again has lost its groups, and may change one before it is told of it.
holding(Lives, Known) ->
    Asked = [{Name, {Node, Life}} || {Node, All} <- maps:to_list(Lives),
                                     {Life, Entries} <- lists:zip(lists:seq(1, length(All)), All),
                                     Name <- names(Entries)],
    [io_lib:format("the last change of ~0tp made it ~0tp, and ~0tp knows ~0tp",
                   [Name, Members, Node, Now])
     || {Name, {Node, 1}} <- Asked, [{Node, 1}] =:= [By || {Same, By} <- Asked, Same =:= Name],
        is_map_key(Node, Known),
        Members <- last_members(Name, hd(map_get(Node, Lives))),
        Now <- [maps:get(Name, map_get(Node, Known), [])], Now =/= Members].

names(Entries) ->
    lists:usort([element(2, Change) || {asked, _, Change, _} <- Entries]).

last_members(Name, Entries) ->
    Made = [Members || {asked, _, Change, {reply, {ok, #{members := Members}}}} <- Entries,
                       element(2, Change) =:= Name],
    [lists:last(Made) || Made =/= []].

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
