%% SPDX-License-Identifier: Apache-2.0
%% @doc The names of s_groups: which scope of `weft_names' a group means, and who is asked where
%% this node is not in the group.
%%
%% A group of this node is a scope that is read here. Of another group that is known, some members
%% are asked, and the first who knows it answers. The group `undefined' of a free node is the scope
%% `cluster'.
-module(sd_erlang_names).

-export([scope/1, whereis_name/2, whereis_name_at/3, names/1, names_at/1]).
-export([local_whereis/2, local_names/1]).

-define(ASK_MS, 5000).
%% For the last ones that do not answer, when the others know nothing.
-define(PATIENCE_MS, 1000).
%% So many members of another group are asked.
-define(ASKED_MAX, 3).

%% @doc The scope to register in; only of groups of this node.
-spec scope(Group :: term()) -> {ok, weft_names:scope()} | {error, remote_group}.
scope(undefined) ->
    case weft_group:is_free() of
        true -> {ok, cluster};
        false -> {error, remote_group}
    end;
scope(Group) ->
    case weft_group:scope(Group) of
        {ok, Scope} -> {ok, Scope};
        {error, _} -> {error, remote_group}
    end.

%% @doc Who has a name in a group, this node's or another one's.
-spec whereis_name(Group :: term(), Name :: term()) -> pid() | undefined.
whereis_name(Group, Name) ->
    case scope(Group) of
        {ok, Scope} -> weft_names:whereis_name({Scope, Name});
        {error, remote_group} ->
            found(ask_members(Group, local_whereis, [Group, Name], fun is_pid/1))
    end.

found({ok, Pid}) -> Pid;
found(none) -> undefined.

%% @doc The same as a certain node knows it.
-spec whereis_name_at(node(), Group :: term(), Name :: term()) -> pid() | undefined.
whereis_name_at(Node, Group, Name) ->
    found(ask([Node], local_whereis, [Group, Name], fun is_pid/1)).

%% @doc The names of a group.
-spec names(Group :: term()) -> {ok, [Name :: term()]} | {error, unknown_group}.
names(Group) ->
    case scope(Group) of
        {ok, Scope} -> {ok, lists:sort(weft_names:names(Scope))};
        {error, remote_group} ->
            case ask_members(Group, local_names, [Group], fun is_list/1) of
                {ok, Names} -> {ok, Names};
                none -> {error, unknown_group}
            end
    end.

%% @doc All names that a node knows, with their groups; none if it does not answer.
-spec names_at(node()) -> [{Group :: term(), Name :: term()}].
names_at(Node) ->
    {Answers, _Silent} = weft_ask:all([Node], fun all_names/1, ?ASK_MS),
    lists:append([Names || {_, Names} <- Answers]).

all_names(Node) ->
    Own = erpc:call(Node, s_group, own_s_groups, [], ?ASK_MS),
    [{Group, Name} || {Group, _} <- case Own of
                                        [] -> [{undefined, []}];
                                        _ -> Own
                                    end,
                      Name <- erpc:call(Node, ?MODULE, local_names, [Group], ?ASK_MS)].

%% @private Called from other nodes.
-spec local_whereis(Group :: term(), Name :: term()) -> pid() | undefined.
local_whereis(Group, Name) ->
    case scope(Group) of
        {ok, Scope} -> weft_names:whereis_name({Scope, Name});
        {error, remote_group} -> undefined
    end.

%% @private
-spec local_names(Group :: term()) -> [Name :: term()] | undefined.
local_names(Group) ->
    case scope(Group) of
        {ok, Scope} -> lists:sort(weft_names:names(Scope));
        {error, remote_group} -> undefined
    end.

%% Connected members first. One of them may not have heard of the group yet.
ask_members(Group, Function, Args, IsKnown) ->
    case weft_group:members(Group) of
        {ok, Members} ->
            {Near, Others} = lists:partition(fun(N) -> lists:member(N, nodes(connected)) end,
                                             Members),
            ask(lists:sublist(Near ++ Others, ?ASKED_MAX), Function, Args, IsKnown);
        {error, unknown_group} ->
            none
    end.

ask(Nodes, Function, Args, IsKnown) ->
    weft_ask:first(Nodes, fun(Node) -> erpc:call(Node, ?MODULE, Function, Args, ?ASK_MS) end,
                   IsKnown, ?ASK_MS, ?PATIENCE_MS).
