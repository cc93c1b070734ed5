%% SPDX-License-Identifier: Apache-2.0
%% @doc The replicated table of members: pure data, merged the same way on every node.
%%
%% An entry is `{Node, Incarnation, Status}'; the status is `left' or what kind of member the node
%% is. Of two entries of a node the one with the higher incarnation is newer; of the same
%% incarnation, `left' is newer than any kind. Only the node itself makes new incarnations, and it
%% is of one kind in each of them, so merging is commutative, associative and idempotent, and all
%% nodes that saw the same entries hold the same table.
%%
%% Entries `left' (tombstones) keep a departed node from being added again by a node that has not
%% heard of its departure. They are dropped after some time, and the oldest when there are too many.
%% A partition that lasts longer may bring a departed node back as an unreachable member (`forget'
%% removes it).
%%
%% Nodes drop a tombstone at different times. So one of a node that is not in the table is kept, but
%% told only to who takes that node for a member, and digests leave out all tombstones. Otherwise
%% each node would get back from another one what it has dropped, for ever.
-module(weft_member_table).

-export([new/2, merge/3, get/2, members/2, entries/1, told/1, newer_than/2, digest/1, expire/2]).
-export_type([table/0, entry/0, kind/0]).

-record(table, {
    entries = #{} :: #{weft_core:node_id() => {incarnation(), status()}},
    %% Sum of the hashes of all entries: equal tables have equal sums.
    hash = 0 :: non_neg_integer(),
    %% When each tombstone was learned, also of nodes that were not in the table then.
    left_at_ms = #{} :: #{weft_core:node_id() => integer() | {unknown, integer()}},
    members_max :: pos_integer(),
    tombstones_max :: pos_integer(),
    tombstone_ms :: pos_integer()}).

-opaque table() :: #table{}.
-type incarnation() :: non_neg_integer().
-type status() :: left | kind().
-type kind() :: atom().
%% By the kind a topology distinguishes its members; it is never `left'.
-type entry() :: {weft_core:node_id(), incarnation(), status()}.

%% @doc A table with one entry. Options: `members_max' (10000), `tombstones_max' (1000),
%% `tombstone_ms' (one day).
-spec new(entry(), map()) -> table().
new(Entry, Options) ->
    Table = #table{members_max = maps:get(members_max, Options, 10000),
                   tombstones_max = maps:get(tombstones_max, Options, 1000),
                   tombstone_ms = maps:get(tombstone_ms, Options, 86400000)},
    {_, _, Merged} = merge([Entry], 0, Table),
    Merged.

%% @doc Takes over what is newer. Answers what changed, and what was refused because the table is
%% full.
-spec merge([entry()], NowMs :: integer(), table()) ->
          {Changed :: [entry()], Refused :: [entry()], table()}.
merge(Entries, NowMs, Table0) ->
    {Changed, Refused, Table} =
        lists:foldl(fun(Entry, Acc) -> merge_one(Entry, NowMs, Acc) end, {[], [], Table0}, Entries),
    {lists:reverse(Changed), lists:reverse(Refused), Table}.

merge_one({Node, Incarnation, Status} = Entry, NowMs, {Changed, Refused, Table}) ->
    #table{entries = Entries, members_max = Max} = Table,
    case Entries of
        #{Node := Old} ->
            case is_newer({Incarnation, Status}, Old) of
                true -> {[Entry | Changed], Refused, put_entry(Entry, NowMs, Table)};
                false -> {Changed, Refused, Table}
            end;
        #{} when map_size(Entries) >= Max ->
            {Changed, [Entry | Refused], Table};
        #{} ->
            {[Entry | Changed], Refused, put_entry(Entry, NowMs, Table)}
    end.

is_newer({Incarnation, left}, {Incarnation, Kind}) -> Kind =/= left;
is_newer({New, _}, {Old, _}) -> New > Old.

put_entry({Node, Incarnation, Status} = Entry, NowMs, #table{entries = Before} = Table) ->
    #table{entries = Entries, hash = Hash, left_at_ms = LeftAt} = remove(Node, Table),
    Table#table{entries = Entries#{Node => {Incarnation, Status}},
                hash = Hash + erlang:phash2(Entry),
                left_at_ms = case Status of
                                 left when is_map_key(Node, Before) -> LeftAt#{Node => NowMs};
                                 left -> LeftAt#{Node => {unknown, NowMs}};
                                 _Kind -> LeftAt
                             end}.

remove(Node, #table{entries = Entries, hash = Hash, left_at_ms = LeftAt} = Table) ->
    case Entries of
        #{Node := {Incarnation, Status}} ->
            Table#table{entries = maps:remove(Node, Entries),
                        hash = Hash - erlang:phash2({Node, Incarnation, Status}),
                        left_at_ms = maps:remove(Node, LeftAt)};
        #{} ->
            Table
    end.

%% @doc The entry of Node.
-spec get(weft_core:node_id(), table()) -> {ok, {incarnation(), status()}} | error.
get(Node, #table{entries = Entries}) ->
    maps:find(Node, Entries).

%% @doc Members of one kind, in term order.
-spec members(kind(), table()) -> [weft_core:node_id()].
members(Kind, #table{entries = Entries}) ->
    lists:sort([Node || {Node, {_, Status}} <- maps:to_list(Entries), Status =:= Kind]).

%% @doc All entries, tombstones included, in term order.
-spec entries(table()) -> [entry()].
entries(#table{entries = Entries}) ->
    lists:sort([{Node, Incarnation, Status}
                || {Node, {Incarnation, Status}} <- maps:to_list(Entries)]).

%% @doc What any other node is told, in term order.
-spec told(table()) -> [entry()].
told(Table) ->
    [Entry || Entry <- entries(Table), is_told(Entry, Table)].

is_told({Node, _, _}, #table{left_at_ms = LeftAt}) ->
    case LeftAt of
        #{Node := {unknown, _}} -> false;
        #{} -> true
    end.

%% @doc Our entries that differ from the given ones: what their sender should be told.
-spec newer_than([entry()], table()) -> [entry()].
newer_than(Theirs, Table) ->
    Known = maps:from_list([{Node, []} || {Node, _, _} <- Theirs]),
    [Entry || {Node, _, _} = Entry <- entries(Table) -- Theirs,
              is_map_key(Node, Known) orelse is_told(Entry, Table)].

%% @doc A summary that is equal only if the members are the same, except for a collision of hashes.
-spec digest(table()) -> {Count :: non_neg_integer(), Hash :: non_neg_integer()}.
digest(#table{entries = Entries, hash = Hash, left_at_ms = LeftAt}) ->
    {map_size(Entries) - map_size(LeftAt),
     maps:fold(fun(Node, _, Sum) ->
                       #{Node := {Incarnation, left}} = Entries,
                       Sum - erlang:phash2({Node, Incarnation, left})
               end, Hash, LeftAt)}.

%% @doc Drops tombstones that are too old or too many.
-spec expire(NowMs :: integer(), table()) -> table().
expire(NowMs, #table{left_at_ms = LeftAt, tombstones_max = Max, tombstone_ms = AgeMs} = Table) ->
    OldestFirst = lists:sort([{at_ms(At), Node} || {Node, At} <- maps:to_list(LeftAt)]),
    NewestFirst = lists:reverse(OldestFirst),
    {Few, Beyond} = lists:split(min(Max, length(NewestFirst)), NewestFirst),
    Old = [Dropped || {At, _} = Dropped <- Few, NowMs - At > AgeMs],
    lists:foldl(fun({_, Node}, Acc) -> remove(Node, Acc) end, Table, Beyond ++ Old).

at_ms({unknown, AtMs}) -> AtMs;
at_ms(AtMs) -> AtMs.
