%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariant: once settled, all nodes of a component that have not left show the same members
%% with the same incarnations; these include all of the component and nobody who left.
%%
%% Option: `left' ([]), the nodes that the scenario has leave and not return.
-module(weft_sim_membership_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares each node with the first of its component.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    Left = maps:get(left, Options, []),
    Graph = weft_sim_peers:linked(World),
    check_components(maps:keys(Graph) -- Left, Graph, Left, World).

check_components([], _Graph, _Left, _World) -> ok;
check_components([Name | _] = Names, Graph, Left, World) ->
    Component = component([Name], Graph, []) -- Left,
    case check_component(Component, Left, World) of
        ok -> check_components(Names -- Component, Graph, Left, World);
        {violation, _} = Violation -> Violation
    end.

check_component([Name | Others] = Component, Left, World) ->
    Members = members(Name, World),
    Names = [Member || {Member, _} <- Members],
    Different = [Other || Other <- Others, members(Other, World) =/= Members],
    case {Component -- Names, [Gone || Gone <- Left, lists:member(Gone, Names)], Different} of
        {[], [], []} -> ok;
        {[], [], [Other | _]} ->
            {violation, io_lib:format("~0tp sees members ~0tp, but ~0tp sees ~0tp",
                                      [Name, Members, Other, members(Other, World)])};
        {Missing, Gone, _} ->
            {violation, io_lib:format("~0tp does not know ~0tp and still knows ~0tp, who left",
                                      [Name, Missing, Gone])}
    end.

members(Name, World) ->
    lists:sort([{Member, Value}
                || {{member, Member}, Value} <- maps:to_list(weft_sim_world:views(Name, World))]).

component([], _Graph, Seen) -> lists:sort(Seen);
component([Name | Rest], Graph, Seen) ->
    case lists:member(Name, Seen) of
        true -> component(Rest, Graph, Seen);
        false -> component(map_get(Name, Graph) ++ Rest, Graph, [Name | Seen])
    end.
