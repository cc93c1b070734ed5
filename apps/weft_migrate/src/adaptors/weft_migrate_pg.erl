%% SPDX-License-Identifier: Apache-2.0
%% @doc `pg' in terms of `weft_pg'. The default scope is not started by hand: it runs with the
%% application. See `weft_migrate_adaptor'.
-module(weft_migrate_pg).
-migrates(pg).

-compile({no_auto_import, [monitor/2, demonitor/1, demonitor/2]}).

-export([start/1, start_link/1, join/2, join/3, leave/2, leave/3, get_members/1, get_members/2,
         get_local_members/1, get_local_members/2, which_groups/0, which_groups/1,
         which_local_groups/0, which_local_groups/1]).
-export([monitor_scope/0, monitor_scope/1, monitor/1, monitor/2, demonitor/1, demonitor/2]).

-spec start(atom()) -> {ok, pid()} | {error, term()}.
start(Scope) -> weft_pg:start(Scope).

-spec start_link(atom()) -> {ok, pid()} | {error, term()}.
start_link(Scope) -> weft_pg:start_link(Scope).

-spec join(term(), pid() | [pid()]) -> ok.
join(Group, Pids) -> weft_pg:join(Group, Pids).

-spec join(atom(), term(), pid() | [pid()]) -> ok.
join(Scope, Group, Pids) -> weft_pg:join(Scope, Group, Pids).

-spec leave(term(), pid() | [pid()]) -> ok | not_joined.
leave(Group, Pids) -> weft_pg:leave(Group, Pids).

-spec leave(atom(), term(), pid() | [pid()]) -> ok | not_joined.
leave(Scope, Group, Pids) -> weft_pg:leave(Scope, Group, Pids).

-spec get_members(term()) -> [pid()].
get_members(Group) -> weft_pg:get_members(Group).

-spec get_members(atom(), term()) -> [pid()].
get_members(Scope, Group) -> weft_pg:get_members(Scope, Group).

-spec get_local_members(term()) -> [pid()].
get_local_members(Group) -> weft_pg:get_local_members(Group).

-spec get_local_members(atom(), term()) -> [pid()].
get_local_members(Scope, Group) -> weft_pg:get_local_members(Scope, Group).

-spec which_groups() -> [term()].
which_groups() -> weft_pg:which_groups().

-spec which_groups(atom()) -> [term()].
which_groups(Scope) -> weft_pg:which_groups(Scope).

-spec which_local_groups() -> [term()].
which_local_groups() -> weft_pg:which_local_groups().

-spec which_local_groups(atom()) -> [term()].
which_local_groups(Scope) -> weft_pg:which_local_groups(Scope).

-spec monitor_scope() -> {reference(), #{term() => [pid()]}}.
monitor_scope() -> weft_pg:monitor_scope().

-spec monitor_scope(atom()) -> {reference(), #{term() => [pid()]}}.
monitor_scope(Scope) -> weft_pg:monitor_scope(Scope).

-spec monitor(term()) -> {reference(), [pid()]}.
monitor(Group) -> weft_pg:monitor(Group).

-spec monitor(atom(), term()) -> {reference(), [pid()]}.
monitor(Scope, Group) -> weft_pg:monitor(Scope, Group).

-spec demonitor(reference()) -> ok | false.
demonitor(Ref) -> weft_pg:demonitor(Ref).

-spec demonitor(atom(), reference()) -> ok | false.
demonitor(Scope, Ref) -> weft_pg:demonitor(Scope, Ref).
