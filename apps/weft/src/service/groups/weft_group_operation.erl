%% SPDX-License-Identifier: Apache-2.0
%% @doc One change of a group by this node: whether it is allowed, what it does to the table, which
%% nodes have to confirm it, and the answer to its caller. Pure part of `weft_group_gossip_core'.
%%
%% Only a member may change a group. The answer depends on the table as it is at the end: if a
%% creation was replaced by another one of the same name the answer is an error, although the group
%% existed for a moment.
-module(weft_group_operation).

-export([make/3, from/2, name/1, waiting/1, confirmed/2, unreachable/2, created_again/3, answer/2]).
-export_type([operation/0, change/0, error/0]).

-define(MEMBERS_MAX, 10000).
-define(NAME_BYTES_MAX, 256).
%% Words that have another meaning in places where a group is named.
-define(RESERVED, [undefined, no_group, all, cluster, weft_bridge]).

-type name() :: weft_group_table:name().
-type change() :: {create | add | remove, name(), [weft_core:node_id()]}
                | {leave | delete, name()}.
-type error() :: reserved_name | bad_name | name_too_long | {name_in_use, [weft_core:node_id()]}
               | no_nodes | {not_a_node, term()} | self_not_in_list | too_many_groups
               | too_many_members | unknown_group | not_a_member | cannot_remove_self
               | {not_members, [term()]} | busy.

-record(operation, {
    kind :: create | add | remove | leave | delete,
    name :: name(),
    created :: weft_group_table:version() | none,
    ref :: term(),
    waiting :: #{weft_core:node_id() => []},
    unreachable = [] :: [weft_core:node_id()]}).
-opaque operation() :: #operation{}.

%% @doc Makes a change, if it may be made.
-spec make(change(), weft_group_table:author(), weft_group_table:table()) ->
          {ok, weft_group_table:table(), operation()} | {error, error()}.
make(Change, {Self, _} = Author, Table) ->
    case first_error(checks(Change, Self, Table)) of
        ok ->
            Changed = changed(Change, Author, Table),
            {ok, Changed, operation(Change, Self, Table, Changed)};
        {error, Reason} ->
            {error, Reason}
    end.

checks({create, Name, Nodes}, Self, Table) ->
    [fun() -> free_name(Name, Table) end,
     fun() -> node_names(Nodes) end,
     fun() -> verdict(lists:member(Self, Nodes), self_not_in_list) end,
     fun() -> verdict(not weft_group_table:is_full(Table), too_many_groups) end];
checks({add, Name, Nodes}, Self, Table) ->
    [fun() -> membership(Name, Self, Table) end,
     fun() -> node_names(Nodes) end,
     fun() -> verdict(length(lists:usort(Nodes ++ members(Name, Table))) =< ?MEMBERS_MAX,
                      too_many_members) end];
checks({remove, Name, Nodes}, Self, Table) ->
    [fun() -> membership(Name, Self, Table) end,
     fun() -> node_names(Nodes) end,
     fun() -> verdict(not lists:member(Self, Nodes), cannot_remove_self) end,
     fun() -> case lists:usort(Nodes) -- members(Name, Table) of
                  [] -> ok;
                  Strangers -> {error, {not_members, Strangers}}
              end end];
checks({LeaveOrDelete, Name}, Self, Table) when LeaveOrDelete =:= leave; LeaveOrDelete =:= delete ->
    [fun() -> membership(Name, Self, Table) end].

first_error([]) -> ok;
first_error([Check | Rest]) ->
    case Check() of
        ok -> first_error(Rest);
        {error, _} = Error -> Error
    end.

verdict(true, _Reason) -> ok;
verdict(false, Reason) -> {error, Reason}.

free_name(Name, Table) ->
    IsReserved = lists:member(Name, ?RESERVED),
    case weft_group_table:members(Name, Table) of
        _ when IsReserved -> {error, reserved_name};
        {ok, Members} -> {error, {name_in_use, Members}};
        error -> first_error([fun() -> verdict(is_plain(Name), bad_name) end,
                              fun() -> verdict(erlang:external_size(Name) =< ?NAME_BYTES_MAX,
                                               name_too_long) end])
    end.

%% Terms that mean the same on every node and in a file: no pids, ports, references, functions.
is_plain(Name) when is_tuple(Name) -> is_plain(tuple_to_list(Name));
is_plain(Name) when is_map(Name) -> is_plain(maps:to_list(Name));
is_plain([Head | Tail]) -> is_plain(Head) andalso is_plain(Tail);
is_plain(Name) -> is_atom(Name) orelse is_number(Name) orelse is_bitstring(Name) orelse Name =:= [].

membership(Name, Self, Table) ->
    case weft_group_table:members(Name, Table) of
        {ok, Members} -> verdict(lists:member(Self, Members), not_a_member);
        error -> {error, unknown_group}
    end.

node_names([]) -> {error, no_nodes};
node_names(Nodes) when length(Nodes) > ?MEMBERS_MAX -> {error, too_many_members};
node_names(Nodes) ->
    case [Node || Node <- Nodes, not is_node(Node)] of
        [] -> ok;
        [Wrong | _] -> {error, {not_a_node, Wrong}}
    end.

is_node(Node) ->
    is_atom(Node) andalso case string:split(atom_to_list(Node), "@", all) of
                              [[_ | _], [_ | _]] -> true;
                              _ -> false
                          end.

changed({create, Name, Nodes}, Author, Table) ->
    weft_group_table:create({Name, lists:usort(Nodes)}, Author, Table);
changed({add, Name, Nodes}, Author, Table) ->
    weft_group_table:change({Name, in}, lists:usort(Nodes) -- members(Name, Table), Author, Table);
changed({remove, Name, Nodes}, Author, Table) ->
    weft_group_table:change({Name, out}, lists:usort(Nodes), Author, Table);
changed({leave, Name}, {Self, _} = Author, Table) ->
    case members(Name, Table) of
        [Self] -> weft_group_table:delete(Name, Author, Table);
        _ -> weft_group_table:change({Name, out}, [Self], Author, Table)
    end;
changed({delete, Name}, Author, Table) ->
    weft_group_table:delete(Name, Author, Table).

operation(Change, Self, Before, After) ->
    Name = element(2, Change),
    Concerned = lists:usort(members(Name, Before) ++ members(Name, After)),
    #operation{kind = element(1, Change), name = Name,
               created = weft_group_table:created(Name, After),
               waiting = maps:from_list([{Node, []} || Node <- lists:delete(Self, Concerned)])}.

members(Name, Table) ->
    case weft_group_table:members(Name, Table) of
        {ok, Members} -> Members;
        error -> []
    end.

%% @doc Sets the reference to answer.
-spec from(Ref :: term(), operation()) -> operation().
from(Ref, Operation) -> Operation#operation{ref = Ref}.

-spec name(operation()) -> name().
name(#operation{name = Name}) -> Name.

%% @doc The nodes that are still to confirm, in term order.
-spec waiting(operation()) -> [weft_core:node_id()].
waiting(#operation{waiting = Waiting}) -> lists:sort(maps:keys(Waiting)).

%% @doc Node has confirmed the change.
-spec confirmed(weft_core:node_id(), operation()) -> operation().
confirmed(Node, #operation{waiting = Waiting, unreachable = Unreachable} = Operation) ->
    Operation#operation{waiting = maps:remove(Node, Waiting),
                        unreachable = lists:delete(Node, Unreachable)}.

%% @doc Node is not reachable.
-spec unreachable(weft_core:node_id(), operation()) -> operation().
unreachable(Node, #operation{waiting = Waiting, unreachable = Unreachable} = Operation) ->
    case maps:take(Node, Waiting) of
        {[], Rest} -> Operation#operation{waiting = Rest, unreachable = [Node | Unreachable]};
        error -> Operation
    end.

%% @doc The group of that creation was created again by this node; a change of it is one of the new
%% one.
-spec created_again(Former :: weft_group_table:version(), Now :: weft_group_table:version(),
                    operation()) -> operation().
created_again(Former, Now, #operation{created = Former} = Operation) ->
    Operation#operation{created = Now};
created_again(_Former, _Now, Operation) ->
    Operation.

%% @doc The answer to the caller. A node that has not confirmed by now counts as not reached.
-spec answer(operation(), weft_group_table:table()) ->
          {Ref :: term(), {ok, #{members := [weft_core:node_id()],
                                 unreachable := [weft_core:node_id()]}}
                        | {error, {name_in_use, [weft_core:node_id()]} | unknown_group}}.
answer(#operation{ref = Ref, name = Name, unreachable = Unreachable} = Operation, Table) ->
    Silent = lists:usort(waiting(Operation) ++ Unreachable),
    {Ref, case outcome(Operation, weft_group_table:created(Name, Table)) of
              stands -> {ok, #{members => members(Name, Table), unreachable => Silent}};
              _ when Operation#operation.kind =:= create ->
                  {error, {name_in_use, members(Name, Table)}};
              _ -> {error, unknown_group}
          end}.

%% A group that was deleted by this change may have been created anew since.
outcome(#operation{created = none}, _Created) -> stands;
outcome(#operation{created = Created}, Created) -> stands;
outcome(_, _) -> gives_way.
