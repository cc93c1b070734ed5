%% SPDX-License-Identifier: Apache-2.0
%% @doc `s_group' of SD Erlang in terms of `weft_group'. Errors are those of `weft_group'. Names
%% of groups are not here: `s_group' finds them from nodes outside of the group, too. They, and the
%% rest, are in the application `sd_erlang', with which what is here shares its groups. See
%% `weft_migrate_adaptor'.
-module(weft_migrate_s_group).
-migrates(s_group).

-export([new_s_group/2, delete_s_group/1, own_s_groups/0, own_nodes/1]).

-spec new_s_group(term(), [node()]) -> {ok, term(), [node()]} | {error, term()}.
new_s_group(Group, Nodes) ->
    case weft_group:create(Group, Nodes) of
        {ok, #{members := Members}} -> {ok, Group, Members};
        {error, Reason} -> {error, Reason}
    end.

-spec delete_s_group(term()) -> ok | {error, term()}.
delete_s_group(Group) ->
    case weft_group:delete(Group) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

-spec own_s_groups() -> [{term(), [node()]}].
own_s_groups() -> lists:sort(maps:to_list(weft_group:own())).

-spec own_nodes(term()) -> [node()].
own_nodes(Group) -> maps:get(Group, weft_group:own(), []).
