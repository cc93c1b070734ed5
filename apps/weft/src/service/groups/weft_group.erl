%% SPDX-License-Identifier: Apache-2.0
%% @doc Groups of nodes: created, changed and deleted while the cluster runs, by any of their
%% members. A node may be in many groups, or in none (it is <em>free</em>). See
%% docs/guide/groups.md.
%%
%% Members of a group are kept connected to each other. With the topology `groups' they have links,
%% and nodes that are in two groups are gateways between these. So messages between groups find
%% their way by themselves, and a direct link is a group of two (`direct/1').
%%
%% All nodes know all groups. A change is answered when all members have confirmed it. A member that
%% was not reached in time is named in the result; it is a member all the same, and learns of it
%% when it comes back. Concurrent changes have the same outcome on all nodes (`weft_group_table').
-module(weft_group).

-export([create/2, add/2, remove/2, leave/1, delete/1, direct/1, configure/1,
         groups/0, own/0, members/1, own_nodes/0, is_free/0, gateways/0, gateways/2,
         scope/1, send/3, spawn/2, spawn/4, monitor_nodes/2, suggest/0, suggest/1]).
-export_type([name/0, result/0, error/0]).

-type name() :: weft_group_table:name().
-type error() :: weft_group_operation:error() | not_running.
-type result() :: {ok, #{members := [node()], unreachable := [node()]}} | {error, error()}.

%% Longer than the core waits for confirmations.
-define(COMMAND_MS, 15000).
-define(SEND_MS, 5000).

%% @doc Creates a group of these nodes; this node has to be one of them. Name is any term without
%% pids, references and the like. Errors: `reserved_name', `bad_name', `name_too_long',
%% `{name_in_use, Members}', `no_nodes', `{not_a_node, Term}', `self_not_in_list',
%% `too_many_groups', `too_many_members', `busy', `not_running'.
-spec create(name(), [node()]) -> result().
create(Name, Nodes) when length(Nodes) >= 0 -> command({create, Name, Nodes}).

%% @doc Adds nodes to a group of this node; those that are in it already stay. Errors:
%% `unknown_group', `not_a_member', `no_nodes', `{not_a_node, Term}', `too_many_members'.
-spec add(name(), [node()]) -> result().
add(Name, Nodes) when length(Nodes) >= 0 -> command({add, Name, Nodes}).

%% @doc Takes nodes out of a group of this node. Errors: those of add/2, `cannot_remove_self' (see
%% leave/1), `{not_members, Nodes}'.
-spec remove(name(), [node()]) -> result().
remove(Name, Nodes) when length(Nodes) >= 0 -> command({remove, Name, Nodes}).

%% @doc Takes this node out of a group. A group without members does not exist any more. Errors:
%% `unknown_group', `not_a_member'.
-spec leave(name()) -> result().
leave(Name) -> command({leave, Name}).

%% @doc Deletes a group of this node. Errors: `unknown_group', `not_a_member'.
-spec delete(name()) -> result().
delete(Name) -> command({delete, Name}).

%% @doc Asks for a direct link to a node that is reached by gateways: a group of the two, which
%% delete/1 deletes.
-spec direct(node()) -> result().
direct(Node) -> create(direct_name(Node), [node(), Node]).

direct_name(Node) -> {direct, min(node(), Node), max(node(), Node)}.

%% @doc Groups of a configuration, the same on every node. They are used unless a group was changed
%% since.
-spec configure(#{name() => [node()]}) -> ok | {error, not_running | {not_nodes, term()}}.
configure(Groups) when is_map(Groups) ->
    case [Nodes || {_, Nodes} <- maps:to_list(Groups), not weft_value:is_atoms(Nodes)] of
        [] -> command({configure, Groups});
        [Wrong | _] -> {error, {not_nodes, Wrong}}
    end.

command(Command) ->
    case whereis(weft_groups) of
        undefined -> {error, not_running};
        _ -> weft_driver:command(weft_groups, Command, ?COMMAND_MS)
    end.

%% --- reading: no process is asked -------------------------------------------------------------

%% @doc All groups that are known here, and their nodes in term order.
-spec groups() -> #{name() => [node()]}.
groups() -> weft_group_view:groups().

%% @doc The groups of this node.
-spec own() -> #{name() => [node()]}.
own() -> weft_group_view:own().

%% @doc The nodes of a group, reachable or not.
-spec members(name()) -> {ok, [node()]} | {error, unknown_group}.
members(Name) -> weft_group_view:members(Name).

%% @doc All nodes that are in a group with this one, and this one itself.
-spec own_nodes() -> [node()].
own_nodes() -> lists:usort([node() | lists:append(maps:values(own()))]).

%% @doc Is this node in no group?
-spec is_free() -> boolean().
is_free() -> own() =:= #{}.

%% @doc The nodes that are in more than one group, with their groups.
-spec gateways() -> #{node() => [name()]}.
gateways() ->
    ByNode = lists:foldl(fun({Node, Name}, Map) ->
                             maps:update_with(Node, fun(Names) -> Names ++ [Name] end, [Name], Map)
                         end, #{}, [{Node, Name} || {Name, Nodes} <- weft_view:all(group),
                                                    Node <- Nodes]),
    maps:filter(fun(_, Names) -> length(Names) > 1 end, ByNode).

%% @doc The nodes that two groups share. With fewer than two of them the groups depend on one node.
-spec gateways(name(), name()) -> [node()].
gateways(One, Other) ->
    case {members(One), members(Other)} of
        {{ok, Nodes1}, {ok, Nodes2}} -> [Node || Node <- Nodes1, lists:member(Node, Nodes2)];
        _ -> []
    end.

%% --- working with groups ----------------------------------------------------------------------

%% @doc Sends Message to the process that is registered under Name on each node of the group, this
%% one included. The caller need not be in the group. Nodes that can not be reached within 5 seconds
%% are named in the result. Messages to a member that is connected arrive in the order sent.
-spec send(name(), Name :: atom(), Message :: term()) ->
          {ok, #{reached := [node()], unreachable := [node()]}} | {error, unknown_group}.
send(Group, Name, Message) when is_atom(Name) ->
    case members(Group) of
        {ok, Nodes} ->
            Unreachable = connect(Nodes -- [node() | nodes(connected)]),
            Reached = Nodes -- Unreachable,
            lists:foreach(fun(Node) -> {Name, Node} ! Message end, Reached),
            {ok, #{reached => Reached, unreachable => Unreachable}};
        Error ->
            Error
    end.

connect(Nodes) ->
    {Answers, Silent} = weft_ask:all(Nodes, fun net_kernel:connect_node/1, ?SEND_MS),
    lists:sort([Node || {Node, IsConnected} <- Answers, IsConnected =/= true] ++ Silent).

%% @doc Runs a function on the node of the group that has the least load; see `weft_place:spawn/2'.
-spec spawn(name(), fun(() -> term())) ->
          {ok, pid()} | {error, unknown_group | weft_place:spawn_error()}.
spawn(Group, Fun) when is_function(Fun, 0) ->
    placed(Group, {erlang, apply, [Fun, []]}).

-spec spawn(name(), module(), atom(), [term()]) ->
          {ok, pid()} | {error, unknown_group | weft_place:spawn_error()}.
spawn(Group, Module, Function, Args) ->
    placed(Group, {Module, Function, Args}).

placed(Group, Function) ->
    case members(Group) of
        {ok, _} -> weft_place:spawn(#{from => {group, Group}, order => [{run_queue, ascending},
                                                                       {processes, ascending}]},
                                    Function);
        Error -> Error
    end.

%% @doc The scope for the names of a group that this node is in: `{via, weft_names, {Scope, Name}}'.
-spec scope(name()) -> {ok, weft_names:scope()} | {error, not_a_member | not_running}.
scope(Name) -> weft_group_names:scope(Name).

%% @doc Subscribes the caller, or ends its subscription. It gets `{weft_group, Name, {up | down,
%% Node}}' for the other members. Also answers which of them are connected now. `all' means all
%% groups of this node.
-spec monitor_nodes(name() | all, boolean()) -> {ok, [node()]} | ok | {error, error()}.
monitor_nodes(Name, true) ->
    case {whereis(weft_group_monitor), members(Name)} of
        {undefined, _} -> {error, not_running};
        {_, _} when Name =:= all -> weft_group_monitor:subscribe(all, self());
        {_, {error, _} = Error} -> Error;
        {_, {ok, Nodes}} ->
            case lists:member(node(), Nodes) of
                true -> weft_group_monitor:subscribe(Name, self());
                false -> {error, not_a_member}
            end
    end;
monitor_nodes(Name, false) ->
    case whereis(weft_group_monitor) of
        undefined -> {error, not_running};
        _ -> weft_group_monitor:unsubscribe(Name, self())
    end.

%% @doc What groups the measured traffic suggests; see `weft_group_suggestion'.
-spec suggest() -> weft_group_suggestion:suggestion().
suggest() -> suggest(#{}).

%% @doc The same. Options: see `weft_group_suggestion:suggest/1'.
-spec suggest(map()) -> weft_group_suggestion:suggestion().
suggest(Options) -> weft_group_suggestion:suggest(Options).
