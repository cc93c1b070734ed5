%% SPDX-License-Identifier: Apache-2.0
%% @doc The topology `groups' that belongs to a table of groups: full mesh inside each group. Pure.
%%
%% A cluster must not fall apart because a group is deleted. So the nodes that are in no group are
%% linked to each other, as nodes without groups are. A group, or several with common nodes, that
%% shares no node with the rest is joined to them, and to others like it, by its first two nodes
%% (two because one may fail). If needed, all these nodes are one more group, `weft_bridge'.
-module(weft_group_topology).

-export([topology/2, without_bridge/1]).

-type groups() :: #{weft_group_table:name() => [node()]}.

-define(BRIDGE, weft_bridge).
-define(GATEWAYS, 2).

%% @doc The groups of the topology, for nodes that all know the same groups and nodes.
-spec topology(groups(), Known :: [node()]) -> groups().
topology(Groups0, Known) ->
    Groups = maps:filter(fun(_, Nodes) -> Nodes =/= [] end, Groups0),
    Free = lists:usort(Known) -- lists:append(maps:values(Groups)),
    case {Free, parts(maps:values(Groups))} of
        {[], [_One]} -> Groups;
        {_, Parts} -> Groups#{?BRIDGE => lists:sort(
                                           Free ++ lists:append([lists:sublist(Part, ?GATEWAYS)
                                                                 || Part <- Parts]))}
    end.

%% @doc The nodes of groups that are joined by common nodes, each in term order.
-spec parts([[node()]]) -> [[node()]].
parts(Groups) ->
    lists:sort(lists:foldl(fun join/2, [], [lists:usort(Group) || Group <- Groups])).

join(Group, Parts) ->
    {Joined, Apart} = lists:partition(fun(Part) -> Part -- Group =/= Part end, Parts),
    [lists:usort(lists:append([Group | Joined])) | Apart].

%% @doc The groups without `weft_bridge'.
-spec without_bridge(groups()) -> groups().
without_bridge(Groups) -> maps:remove(?BRIDGE, Groups).
