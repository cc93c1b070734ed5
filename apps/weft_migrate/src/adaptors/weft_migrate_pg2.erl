%% SPDX-License-Identifier: Apache-2.0
%% @doc `pg2' in terms of `weft_pg', where groups need not be created: one without members is not
%% there. Two functions have no counterpart. A group that `pg2' deletes loses its members, those of
%% other nodes too; and who asks for the closest process hears if there is no group. See
%% `weft_migrate_adaptor'.
-module(weft_migrate_pg2).
-migrates(pg2).

-export([create/1, join/2, leave/2, get_members/1, get_local_members/1, which_groups/0]).

-spec create(term()) -> ok.
create(Group) -> begin _ = Group, ok end.

%% A process of another node is an error here.
-spec join(term(), pid()) -> ok.
join(Group, Pid) -> weft_pg:join(Group, Pid).

-spec leave(term(), pid()) -> ok.
leave(Group, Pid) ->
    case weft_pg:leave(Group, Pid) of
        ok -> ok;
        not_joined -> ok
    end.

-spec get_members(term()) -> [pid()].
get_members(Group) -> weft_pg:get_members(Group).

-spec get_local_members(term()) -> [pid()].
get_local_members(Group) -> weft_pg:get_local_members(Group).

-spec which_groups() -> [term()].
which_groups() -> weft_pg:which_groups().
