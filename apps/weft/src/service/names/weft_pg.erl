%% SPDX-License-Identifier: Apache-2.0
%% @doc Process groups with the interface and the results of OTP's `pg', on every topology: nodes
%% that are connected by a circuit, or hidden, take part as well.
%%
%% The default scope, `weft_pg', exists when the application weft runs. Other scopes are started by
%% start/1 or start_link/1, on each node that is to take part. As with `pg', a scope is a registered
%% process and a table of that name, groups are any terms, and reads ask no process. All nodes show
%% the same in the end; there is no order between the changes of different nodes.
-module(weft_pg).

-compile({no_auto_import, [monitor/2, demonitor/1, demonitor/2]}).

-export([start/1, start_link/0, start_link/1]).
-export([join/2, join/3, leave/2, leave/3]).
-export([get_members/1, get_members/2, get_local_members/1, get_local_members/2]).
-export([which_groups/0, which_groups/1, which_local_groups/0, which_local_groups/1]).
-export([monitor_scope/0, monitor_scope/1, monitor/1, monitor/2, demonitor/1, demonitor/2]).
-export([child_spec/1]).
-export_type([group/0]).

-define(SCOPE, ?MODULE).

-type group() :: term().

%% @doc Starts the default scope, linked to the caller; the application does.
-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() -> start_link(?SCOPE).

%% @doc Starts a scope on this node, linked to the caller.
-spec start_link(Scope :: atom()) -> {ok, pid()} | {error, term()}.
start_link(Scope) when is_atom(Scope) ->
    weft_driver:start_link(Scope, weft_pg_core,
                           weft_services:options(#{view_module => weft_service_table})).

%% @doc Starts a scope on this node until the application stops.
-spec start(Scope :: atom()) -> {ok, pid()} | {error, term()}.
start(Scope) when is_atom(Scope) ->
    case whereis(Scope) of
        undefined -> weft_services:start(child_spec(Scope));
        Pid -> {error, {already_started, Pid}}
    end.

%% @private
-spec child_spec(Scope :: atom()) -> supervisor:child_spec().
child_spec(Scope) ->
    #{id => {?MODULE, Scope}, start => {?MODULE, start_link, [Scope]},
      modules => [weft_driver, weft_pg_core]}.

%% @doc Processes of this node join a group; a process is in it as often as it joined.
-spec join(group(), pid() | [pid()]) -> ok.
join(Group, Pids) -> join(?SCOPE, Group, Pids).

-spec join(Scope :: atom(), group(), pid() | [pid()]) -> ok.
join(Scope, Group, Pids) ->
    Here = here(Pids),
    ok = weft_overlay_sup:reach_members(),
    weft_driver:command(Scope, {join, Group, Here}, infinity).

%% @doc Processes of this node leave a group, each once.
-spec leave(group(), pid() | [pid()]) -> ok | not_joined.
leave(Group, Pids) -> leave(?SCOPE, Group, Pids).

-spec leave(Scope :: atom(), group(), pid() | [pid()]) -> ok | not_joined.
leave(Scope, Group, Pids) ->
    weft_driver:command(Scope, {leave, Group, here(Pids)}, infinity).

here(Pid) when is_pid(Pid) ->
    here([Pid]);
here(Pids) when is_list(Pids) ->
    case [Pid || Pid <- Pids, not is_pid(Pid) orelse node(Pid) =/= node()] of
        [] -> Pids;
        [Bad | _] -> error({nolocal, Bad})
    end.

%% @doc All processes of a group.
-spec get_members(group()) -> [pid()].
get_members(Group) -> get_members(?SCOPE, Group).

-spec get_members(Scope :: atom(), group()) -> [pid()].
get_members(Scope, Group) -> found(Scope, Group, 2).

%% @doc The processes of a group that run on this node.
-spec get_local_members(group()) -> [pid()].
get_local_members(Group) -> get_local_members(?SCOPE, Group).

-spec get_local_members(Scope :: atom(), group()) -> [pid()].
get_local_members(Scope, Group) -> found(Scope, Group, 3).

found(Table, Group, Position) ->
    try ets:lookup_element(Table, Group, Position)
    catch error:badarg -> []
    end.

%% @doc All groups with members.
-spec which_groups() -> [group()].
which_groups() -> which_groups(?SCOPE).

-spec which_groups(Scope :: atom()) -> [group()].
which_groups(Scope) -> weft_service_table:keys(Scope).

%% @doc The groups with members on this node.
-spec which_local_groups() -> [group()].
which_local_groups() -> which_local_groups(?SCOPE).

-spec which_local_groups(Scope :: atom()) -> [group()].
which_local_groups(Scope) ->
    ets:select(Scope, [{{'$1', '_', '$2'}, [{'=/=', '$2', []}], ['$1']}]).

%% @doc All groups with their members; from now on the caller gets `{Ref, join | leave, Group,
%% Pids}'.
-spec monitor_scope() -> {reference(), #{group() => [pid()]}}.
monitor_scope() -> monitor_scope(?SCOPE).

-spec monitor_scope(Scope :: atom()) -> {reference(), #{group() => [pid()]}}.
monitor_scope(Scope) -> watch(Scope, scope).

%% @doc The members of a group; from now on the caller gets `{Ref, join | leave, Group, Pids}'.
-spec monitor(group()) -> {reference(), [pid()]}.
monitor(Group) -> monitor(?SCOPE, Group).

-spec monitor(Scope :: atom(), group()) -> {reference(), [pid()]}.
monitor(Scope, Group) -> watch(Scope, {group, Group}).

watch(Scope, What) ->
    Ref = make_ref(),
    {Ref, weft_driver:command(Scope, {monitor, Ref, self(), What}, infinity)}.

%% @doc Ends a monitor; its messages that wait in the mailbox are removed.
-spec demonitor(reference()) -> ok | false.
demonitor(Ref) -> demonitor(?SCOPE, Ref).

-spec demonitor(Scope :: atom(), reference()) -> ok | false.
demonitor(Scope, Ref) ->
    weft_driver:command(Scope, {demonitor, Ref}, infinity) andalso flush(Ref).

flush(Ref) ->
    receive
        {Ref, What, _Group, _Pids} when What =:= join; What =:= leave -> flush(Ref)
    after 0 -> ok
    end.
