%% SPDX-License-Identifier: Apache-2.0
%% @doc The groups of a cluster as one node knows them: a table that any two nodes can merge, in any
%% order and as often as they like, with the same outcome (a state-based CRDT).
%%
%% An entry is `{Version, State, Members}'. The first element is the version of the creation or
%% deletion; of two entries the one with the higher version wins as a whole, with its members. So of
%% two creations of one name one remains, and a deletion is not undone by an addition that did not
%% know of it. In entries with the same creation each node has a version of its own, with `in' or
%% `out': changes of different nodes never undo each other, and of two changes of the same node the
%% later one wins.
%%
%% A version is `{Counter, Initiator, Incarnation}'. The counter is higher than all that the
%% initiator has seen (Lamport 1978), so a change wins against those that its initiator knew. Groups
%% of the configuration have the lowest version, the same on all nodes; two of one name are united.
%%
%% A deletion keeps the version of the creation that it ended, as that of its initiator, `out'. So
%% one can see that it was of another group of that name. Deletions made by an earlier state of the
%% code do not say it.
%%
%% Bounded: of groups, of deleted groups and of members that left only a number is remembered, the
%% newest. If more than that were deleted while a node was away, it may bring an old one back.
%% Not here: which node tells which (`weft_group_gossip_core').
-module(weft_group_table).

-export([new/0, from_list/2, to_list/1, configured/2, create/3, delete/3, change/4, merge/3,
         names/1, members/2, created/2, deleted/2, groups/1, entry/2, hash/1, summary/1, clock/1,
         is_full/1]).
-export_type([table/0, entry/0, version/0, name/0, author/0]).

-type name() :: term().
-type author() :: {weft_core:node_id(), Incarnation :: non_neg_integer()}.
-type version() :: {Counter :: non_neg_integer(), Initiator :: weft_core:node_id(),
                    Incarnation :: non_neg_integer()}.
-type members() :: #{weft_core:node_id() => {version(), in | out}}.
-type entry() :: {version(), alive | deleted, members()}.
-record(table, {clock = 0 :: non_neg_integer(), entries = #{} :: #{name() => entry()}}).
-opaque table() :: #table{}.

-define(GROUPS_MAX, 4096).
-define(DELETED_MAX, 1024).
-define(OUT_MAX, 1024).
%% Lower than any version that a node makes.
-define(OF_CONFIGURATION, {0, '', 0}).

%% @doc No groups.
-spec new() -> table().
new() -> #table{}.

%% @doc The table that to_list/1 and clock/1 were called with.
-spec from_list(Clock :: non_neg_integer(), [{name(), entry()}]) -> table().
from_list(Clock, Entries) ->
    lists:foldl(fun({Name, Entry}, T) -> put_entry(Name, Entry, T) end, #table{clock = Clock},
                Entries).

-spec to_list(table()) -> [{name(), entry()}].
to_list(#table{entries = Entries}) ->
    lists:sort(maps:to_list(Entries)).

%% @doc Adds the groups of a configuration, unless something later is known of them.
-spec configured(#{name() => [weft_core:node_id()]}, table()) -> table().
configured(Groups, Table) ->
    maps:fold(fun(Name, Nodes, T0) ->
                  {_, T} = merge(Name, alive(?OF_CONFIGURATION, Nodes), T0),
                  T
              end, Table, Groups).

%% @doc Creates a group, in place of any of that name.
-spec create({name(), [weft_core:node_id()]}, author(), table()) -> table().
create({Name, Nodes}, Author, Table) ->
    put_entry(Name, alive(next(Author, Table), Nodes), Table).

%% @doc Deletes a group.
-spec delete(name(), author(), table()) -> table().
delete(Name, Author, Table) ->
    Ended = case created(Name, Table) of
                {_, Initiator, _} = Created -> #{Initiator => {Created, out}};
                none -> #{}
            end,
    put_entry(Name, {next(Author, Table), deleted, Ended}, Table).

%% @doc Puts nodes into the group, or takes them out of it. The group has to exist.
-spec change({name(), in | out}, [weft_core:node_id()], author(), table()) -> table().
change({Name, InOrOut}, Nodes, Author, #table{entries = Entries} = Table) ->
    {Created, alive, Members} = map_get(Name, Entries),
    Version = next(Author, Table),
    Changed = lists:foldl(fun(Node, M) -> M#{Node => {Version, InOrOut}} end, Members, Nodes),
    put_entry(Name, {Created, alive, bounded(Changed)}, Table).

alive(Version, Nodes) ->
    {Version, alive, maps:from_list([{Node, {Version, in}} || Node <- Nodes])}.

next({Self, Incarnation}, #table{clock = Clock}) ->
    {Clock + 1, Self, Incarnation}.

%% @doc Merges what another node knows of a group. `full': the group was not added, because there
%% are too many.
-spec merge(name(), entry(), table()) -> {same | changed | full, table()}.
merge(Name, Entry, #table{entries = Entries} = Table0) ->
    case Entries of
        #{Name := Entry} -> {same, Table0};
        #{Name := Known} -> merged(Name, join(Known, Entry), Table0);
        #{} ->
            case is_full(Table0) andalso element(2, Entry) =:= alive of
                true -> {full, Table0};
                false -> merged(Name, Entry, Table0)
            end
    end.

merged(Name, Entry, #table{entries = Before} = Table0) ->
    case put_entry(Name, Entry, Table0) of
        #table{entries = Before} = Table -> {same, Table};
        Table -> {changed, Table}
    end.

join({Version, State, Known}, {Version, State, Told}) ->
    {Version, State, bounded(maps:fold(fun later/3, Known, Told))};
join(Known, Told) ->
    max(Known, Told).

%% `in' and `out' have the same version only if one node made two changes at once; then `out' wins.
later(Node, Told, Members) ->
    maps:update_with(Node, fun(Known) -> max(Known, Told) end, Told, Members).

put_entry(Name, Entry, #table{clock = Clock, entries = Entries} = Table) ->
    Table#table{clock = max(Clock, counter(Entry)), entries = forget(Entries#{Name => Entry})}.

counter({{Own, _, _}, _State, Members}) ->
    maps:fold(fun(_, {{Counter, _, _}, _}, Max) -> max(Counter, Max) end, Own, Members).

%% Keeps the newest of those that left. It depends on the entry alone, so it is the same on all
%% nodes.
bounded(Members) when map_size(Members) =< ?OUT_MAX -> Members;
bounded(Members) ->
    keep_newest([{Version, Node} || {Node, {Version, out}} <- maps:to_list(Members)], ?OUT_MAX,
                Members).

forget(Entries) when map_size(Entries) =< ?DELETED_MAX -> Entries;
forget(Entries) ->
    keep_newest([{Version, Name} || {Name, {Version, deleted, _}} <- maps:to_list(Entries)],
                ?DELETED_MAX, Entries).

keep_newest(Gone, Max, Map) when length(Gone) =< Max -> Map;
keep_newest(Gone, Max, Map) ->
    Old = lists:nthtail(Max, lists:reverse(lists:sort(Gone))),
    maps:without([Key || {_, Key} <- Old], Map).

%% @doc No room for another group?
-spec is_full(table()) -> boolean().
is_full(#table{entries = Entries} = Table) ->
    map_size(Entries) >= ?GROUPS_MAX andalso length(names(Table)) >= ?GROUPS_MAX.

%% @doc The groups that exist, in term order.
-spec names(table()) -> [name()].
names(#table{entries = Entries}) ->
    lists:sort([Name || {Name, {_, alive, _}} <- maps:to_list(Entries)]).

%% @doc The nodes of a group, in term order.
-spec members(name(), table()) -> {ok, [weft_core:node_id()]} | error.
members(Name, #table{entries = Entries}) ->
    case Entries of
        #{Name := {_, alive, Members}} -> {ok, inside(Members)};
        #{} -> error
    end.

inside(Members) ->
    lists:sort([Node || {Node, {_, in}} <- maps:to_list(Members)]).

%% @doc The version of the last creation of a group.
-spec created(name(), table()) -> version() | none.
created(Name, #table{entries = Entries}) ->
    case Entries of
        #{Name := {Version, alive, _}} -> Version;
        #{} -> none
    end.

%% @doc Who has deleted a group that does not exist any more, and of which creation it was.
-spec deleted(name(), table()) ->
          {By :: weft_core:node_id(), Created :: version() | unknown} | none.
deleted(Name, #table{entries = Entries}) ->
    case Entries of
        #{Name := {{_, By, _}, deleted, Ended}} ->
            {By, case maps:values(Ended) of
                     [{Created, out}] -> Created;
                     _ -> unknown
                 end};
        #{} -> none
    end.

%% @doc All groups and their nodes.
-spec groups(table()) -> #{name() => [weft_core:node_id()]}.
groups(#table{entries = Entries}) ->
    maps:from_list([{Name, inside(Members)}
                    || {Name, {_, alive, Members}} <- maps:to_list(Entries)]).

%% @doc What is known of a group, for other nodes to merge.
-spec entry(name(), table()) -> {ok, entry()} | error.
entry(Name, #table{entries = Entries}) ->
    maps:find(Name, Entries).

%% @doc Equal for tables with the same entries.
-spec hash(table()) -> non_neg_integer().
hash(#table{entries = Entries}) ->
    erlang:phash2(Entries, 1 bsl 32).

%% @doc The hash of each entry, deleted ones too.
-spec summary(table()) -> #{name() => non_neg_integer()}.
summary(#table{entries = Entries}) ->
    maps:map(fun(_Name, Entry) -> erlang:phash2(Entry, 1 bsl 32) end, Entries).

%% @doc The highest counter seen.
-spec clock(table()) -> non_neg_integer().
clock(#table{clock = Clock}) -> Clock.
