%% SPDX-License-Identifier: Apache-2.0
%% @doc The groups that are known on this node, read from the view of their driver: no process is
%% asked. For `weft_group', which is what users call, and for services that choose among nodes.
-module(weft_group_view).

-export([groups/0, own/0, members/1]).

%% @doc All groups, and their nodes in term order.
-spec groups() -> #{weft_group_table:name() => [node()]}.
groups() -> maps:from_list(weft_view:all(group)).

%% @doc The groups of this node.
-spec own() -> #{weft_group_table:name() => [node()]}.
own() -> maps:filter(fun(_, Nodes) -> lists:member(node(), Nodes) end, groups()).

%% @doc The nodes of a group, reachable or not.
-spec members(weft_group_table:name()) -> {ok, [node()]} | {error, unknown_group}.
members(Name) ->
    case weft_view:lookup({group, Name}) of
        undefined -> {error, unknown_group};
        Nodes -> {ok, Nodes}
    end.
