%% SPDX-License-Identifier: Apache-2.0
%% @doc A ring of partitions over the nodes of a cluster: who owns which key, and the changes of
%% that when nodes join and leave. The guide is `docs/guide/ring.md'.
-module(weft_ring).

-export([create/0, join/1, stage/2, unstage/1, plan/0, commit/1, status/0, counts/0, mine/0,
         partition/1, primaries/2, active/2]).
-export_type([status/0]).

-type status() :: #{members := #{node() => weft_ring_table:status()},
                    owned := #{node() => non_neg_integer()},
                    moving := non_neg_integer(),
                    hash := non_neg_integer()}.
%% `owned': how many partitions each node owns now; `moving': how many have another owner than they
%% shall have. Nodes with the same `hash' have the same ring.

%% @doc Makes a ring of which this node is the only member.
-spec create() -> ok | {error, has_ring | not_running | {not_written, term()}}.
create() -> weft_ring_server:command(create).

%% @doc Asks a node of a ring to take this one in. It is `joining' then, until a plan that takes it
%% in is committed.
-spec join(node()) -> ok | {error, has_ring | not_running | {not_written, term()}}.
join(Via) when is_atom(Via) -> weft_ring_server:command({join, Via}).

%% @doc Puts a change on the list of this node: `join' of one that is joining, `leave' of a member,
%% or `remove' of one that does not come back. Nothing happens before `commit/1'.
-spec stage(node(), weft_ring_plan:change()) ->
          ok | {error, {node(), weft_ring_table:status() | none} | no_ring | not_running}.
stage(Node, Change) -> weft_ring_server:command({stage, Node, Change}).

%% @doc Takes the change of a node from the list again.
-spec unstage(node()) -> ok | {error, no_ring | not_running}.
unstage(Node) -> weft_ring_server:command({unstage, Node}).

%% @doc What the staged changes would do.
-spec plan() -> {ok, weft_ring_plan:plan()} | {error, no_members | no_ring | not_running}.
plan() -> weft_ring_server:command(plan).

%% @doc Carries out a plan. If the ring or the list has changed since it was made, it is refused.
-spec commit(weft_ring_plan:plan()) ->
          ok | {error, changed | nothing_staged | no_members | no_ring | not_running
                     | {not_written, term()}}.
commit(#{token := Token}) -> weft_ring_server:command({commit, Token}).

%% @doc The members, what they own, and how far the changes are.
-spec status() -> status() | {error, no_ring | not_running}.
status() ->
    case weft_ring_server:command(ring) of
        none -> {error, no_ring};
        {error, Reason} -> {error, Reason};
        Ring -> status(Ring)
    end.

status(Ring) ->
    Owners = weft_ring_table:owners(Ring),
    Pairs = lists:zip(Owners, weft_ring_table:planned(Ring)),
    #{members => maps:from_list([{Node, Status} || Status <- [joining, member, leaving, gone],
                                                   {Node, _} <- weft_ring_table:members([Status],
                                                                                        Ring)]),
      owned => maps:from_list([{Node, length([O || O <- Owners, O =:= Node])}
                               || Node <- lists:usort(Owners)]),
      moving => length([Owner || {Owner, Planned} <- Pairs, Owner =/= Planned]),
      hash => weft_ring_table:hash(Ring)}.

%% @doc The ring and the part of this node in numbers, for metrics: members by status, partitions
%% in all, of this node, and on their way; handoffs from this node; processes of partitions here,
%% and how many messages wait for one of them at most.
-spec counts() -> #{members := #{weft_ring_table:status() => non_neg_integer()},
                    partitions | owned | moving | processes | longest := non_neg_integer(),
                    handoffs := #{running | done | failed := non_neg_integer()}}
                | {error, no_ring | not_running}.
counts() ->
    case status() of
        {error, Reason} -> {error, Reason};
        #{members := Members, owned := Owned, moving := Moving} ->
            Count = fun(Status) -> length([Is || Is <- maps:values(Members), Is =:= Status]) end,
            (weft_vnodes:queues())#{
                members => maps:from_list([{Status, Count(Status)}
                                           || Status <- [joining, member, leaving, gone]]),
                partitions => lists:sum(maps:values(Owned)), owned => maps:get(node(), Owned, 0),
                moving => Moving, handoffs => weft_ring_server:handoffs()}
    end.

%% @doc The partitions that this node owns.
-spec mine() -> [non_neg_integer()] | {error, not_running}.
mine() -> weft_ring_server:mine().

%% @doc The partition of a key. No process is asked for this and the following two.
-spec partition(weft_ring_preference:key()) -> {ok, non_neg_integer()} | {error, no_ring}.
partition(Key) -> weft_ring_lookup:partition(?MODULE, Key).

%% @doc The owners of the `N' replicas of a key.
-spec primaries(weft_ring_preference:key(), non_neg_integer()) ->
          {ok, [weft_ring_preference:preference()]} | {error, no_ring}.
primaries(Key, N) -> weft_ring_lookup:primaries(?MODULE, Key, N).

%% @doc The nodes to ask for a key: with another node in place of each owner that this node is not
%% connected to.
-spec active(weft_ring_preference:key(), non_neg_integer()) ->
          {ok, [weft_ring_preference:preference()]} | {error, no_ring}.
active(Key, N) -> weft_ring_lookup:active(?MODULE, Key, N).
