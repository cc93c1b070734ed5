%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node believes of every member: pure data, merged the same way on every node.
%%
%% Of two beliefs about a member the one with the higher incarnation counts; of the same
%% incarnation, in this order: `left', `dead', `suspect', `alive'. Only the member itself makes
%% new incarnations, so merging is commutative, associative and idempotent.
%%
%% `dead' and `left' are kept for a bounded time, so that news that comes late does not bring the
%% member back. A node that never knew the member ignores them, so they do not circulate for ever.
-module(weft_swim_table).

-export([new/3, merge/5, get/2, living/1, dead/1, count/1, entries/1, parts/2, split/2,
         newer_than/3, digest/1, expire/2]).
-export_type([table/0, status/0, entry/0, range/0]).

-type status() :: alive | suspect | dead | left.
-type incarnation() :: non_neg_integer().
-type entry() :: {weft_core:node_id(), incarnation(), status()}.
%% From the first node on, up to but not including the second.
-type range() :: {weft_core:node_id() | first, weft_core:node_id() | last}.

-record(table, {
    self :: weft_core:node_id(),
    beliefs :: #{weft_core:node_id() => {incarnation(), status()}},
    %% Sum of the hashes of the members that live.
    hash :: non_neg_integer(),
    %% Other members that are alive or suspect.
    living = weft_random_set:new() :: weft_random_set:set(weft_core:node_id()),
    %% Other members that failed and did not leave.
    dead = weft_random_set:new() :: weft_random_set:set(weft_core:node_id()),
    %% Since when a member is dead or left.
    gone_ms = #{} :: #{weft_core:node_id() => integer()},
    options :: weft_swim_options:options()}).
-opaque table() :: #table{}.

%% @doc A table that knows its own node only.
-spec new(weft_core:node_id(), incarnation(), weft_swim_options:options()) -> table().
new(Self, Incarnation, Options) ->
    #table{self = Self, beliefs = #{Self => {Incarnation, alive}},
           hash = hash(Self, Incarnation, alive), options = Options}.

%% @doc Takes over a belief if it is stronger than the present one. `full': there is no room for a
%% further member.
-spec merge(status(), weft_core:node_id(), incarnation(), NowMs :: integer(), table()) ->
          {changed, Before :: {incarnation(), status()} | unknown, table()} | stale | full.
merge(Status, Node, Incarnation, NowMs, #table{beliefs = Beliefs, options = Options} = Table) ->
    case Beliefs of
        #{Node := Before} ->
            case {Incarnation, rank(Status)} > {element(1, Before), rank(element(2, Before))} of
                true -> {changed, Before, put(Node, Incarnation, Status, NowMs, Table)};
                false -> stale
            end;
        #{} when Status =:= dead; Status =:= left ->
            stale;
        #{} when map_size(Beliefs) >= map_get(members_max, Options) ->
            full;
        #{} ->
            {changed, unknown, put(Node, Incarnation, Status, NowMs, Table)}
    end.

rank(alive) -> 0;
rank(suspect) -> 1;
rank(dead) -> 2;
rank(left) -> 3.

put(Node, Incarnation, Status, NowMs, Table0) ->
    #table{beliefs = Beliefs, hash = Hash} = Table = remove(Node, Table0),
    listed(Node, Status, NowMs,
           Table#table{beliefs = Beliefs#{Node => {Incarnation, Status}},
                       hash = Hash + hash(Node, Incarnation, Status)}).

listed(Self, _Status, _NowMs, #table{self = Self} = Table) ->
    Table;
listed(Node, Status, _NowMs, #table{living = Living} = Table)
  when Status =:= alive; Status =:= suspect ->
    Table#table{living = weft_random_set:add(Node, Living)};
listed(Node, dead, NowMs, #table{dead = Dead, gone_ms = Gone} = Table) ->
    Table#table{dead = weft_random_set:add(Node, Dead), gone_ms = Gone#{Node => NowMs}};
listed(Node, left, NowMs, #table{gone_ms = Gone} = Table) ->
    Table#table{gone_ms = Gone#{Node => NowMs}}.

remove(Node, #table{beliefs = Beliefs, hash = Hash, living = Living, dead = Dead,
                    gone_ms = Gone} = Table) ->
    case Beliefs of
        #{Node := {Incarnation, Status}} ->
            Table#table{beliefs = maps:remove(Node, Beliefs),
                        hash = Hash - hash(Node, Incarnation, Status),
                        living = weft_random_set:delete(Node, Living),
                        dead = weft_random_set:delete(Node, Dead),
                        gone_ms = maps:remove(Node, Gone)};
        #{} ->
            Table
    end.

%% A suspicion passes by itself, so it must not make all nodes exchange their tables.
hash(Node, Incarnation, Status) when Status =:= alive; Status =:= suspect ->
    erlang:phash2({Node, Incarnation}, 1 bsl 32);
hash(_Node, _Incarnation, _Gone) ->
    0.

%% @doc What is believed of Node.
-spec get(weft_core:node_id(), table()) -> {incarnation(), status()} | unknown.
get(Node, #table{beliefs = Beliefs}) ->
    maps:get(Node, Beliefs, unknown).

%% @doc The other members that are alive or suspect.
-spec living(table()) -> weft_random_set:set(weft_core:node_id()).
living(#table{living = Living}) -> Living.

%% @doc The members that failed.
-spec dead(table()) -> weft_random_set:set(weft_core:node_id()).
dead(#table{dead = Dead}) -> Dead.

%% @doc How many members live, own node included.
-spec count(table()) -> pos_integer().
count(#table{living = Living}) -> weft_random_set:size(Living) + 1.

%% @doc All entries in term order.
-spec entries(table()) -> [entry()].
entries(#table{beliefs = Beliefs}) ->
    lists:sort([{Node, Incarnation, Status}
                || {Node, {Incarnation, Status}} <- maps:to_list(Beliefs)]).

%% @doc All entries in parts of up to Count, with ranges that leave no gap between them.
-spec parts(Count :: pos_integer(), table()) -> [{range(), [entry()]}].
parts(Count, Table) ->
    Parts = split(Count, entries(Table)),
    [_ | Borders] = [Name || [{Name, _, _} | _] <- Parts],
    lists:zip(lists:zip([first | Borders], Borders ++ [last]), Parts).

%% @doc Entries in parts of up to Count; no entries are one empty part.
-spec split(Count :: pos_integer(), [entry()]) -> [[entry()], ...].
split(Count, Entries) when length(Entries) =< Count -> [Entries];
split(Count, Entries) ->
    {Part, Rest} = lists:split(Count, Entries),
    [Part | split(Count, Rest)].

%% @doc What a node lacks that knows only these entries about the nodes in the range: those of our
%% entries that would change its table.
-spec newer_than([entry()], range(), table()) -> [entry()].
newer_than(Theirs, {From, To}, Table) ->
    Known = maps:from_list([{Node, {Incarnation, rank(Status)}}
                            || {Node, Incarnation, Status} <- Theirs]),
    [Entry || {Node, Incarnation, Status} = Entry <- entries(Table),
              From =:= first orelse Node >= From, To =:= last orelse Node < To,
              case Known of
                  #{Node := Belief} -> {Incarnation, rank(Status)} > Belief;
                  #{} -> rank(Status) < rank(dead)
              end].

%% @doc A summary that is equal only if the same members live, except for a collision of hashes.
-spec digest(table()) -> {Count :: pos_integer(), Hash :: non_neg_integer()}.
digest(#table{hash = Hash} = Table) ->
    {count(Table), Hash}.

%% @doc Forgets dead and departed members that are so for too long, and the oldest of too many.
-spec expire(NowMs :: integer(), table()) -> {Forgotten :: [weft_core:node_id()], table()}.
expire(NowMs, #table{gone_ms = Gone, options = #{dead_ms := Ms, dead_max := Max}} = Table) ->
    NewestFirst = lists:reverse(lists:sort([{At, Node} || {Node, At} <- maps:to_list(Gone)])),
    {Few, Beyond} = lists:split(min(Max, length(NewestFirst)), NewestFirst),
    Forgotten = [Node || {_, Node} <- Beyond] ++ [Node || {At, Node} <- Few, NowMs - At > Ms],
    {Forgotten, lists:foldl(fun remove/2, Table, Forgotten)}.
