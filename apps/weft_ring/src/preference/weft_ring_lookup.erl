%% SPDX-License-Identifier: Apache-2.0
%% @doc The ring for everybody on this node who looks up a key: no process is asked.
%%
%% The names of the nodes are in a persistent term, the owners of the partitions in an array of
%% numbers behind it. To replace a persistent term costs a scan of all processes, so it is replaced
%% only when the nodes change; that a partition has another owner changes a number. So a look-up
%% beside a change may see some owners of before it and some of after it. Not here: who calls
%% `publish/2', one process for each name. Who is outside of the ring, and was told the owners, uses
%% `publish_owners/2'.
-module(weft_ring_lookup).

-export([publish/2, publish_owners/2, forgotten/2, withdraw/1, partition/2, primaries/3, active/3,
         active/4, size/1, owner/2, is_seized/2, is_mine/2, may_take/2, owners/1, replicas/3]).
-export_type([name/0]).

-type name() :: atom() | {module(), atom()}.

-define(KEY(Name), {?MODULE, Name}).
-define(FORGOTTEN(Name), {?MODULE, forgotten, Name}).
-define(LEAVES(Name), {?MODULE, leaves, Name}).

%% Part of the number of an owner, so that both change at once.
-define(SEIZED, (1 bsl 32)).

-record(lookup, {size :: pos_integer(),
                 nodes :: tuple(),
                 owners :: atomics:atomics_ref()}).

%% @doc From now on look-ups by this name are answered from this ring.
-spec publish(name(), weft_ring_table:ring()) -> ok.
publish(Name, Ring) ->
    ok = flag(?LEAVES(Name), not weft_ring_table:takes(node(), Ring)),
    published(Name, [{weft_ring_table:owner(P, Ring), weft_ring_table:is_seized(P, Ring)}
                     || P <- lists:seq(0, weft_ring_table:size(Ring) - 1)]).

%% @doc The same, from the owners of all partitions in their order.
-spec publish_owners(name(), [node(), ...]) -> ok.
publish_owners(Name, Owners) ->
    published(Name, [{Owner, false} || Owner <- Owners]).

published(Name, Owners) ->
    Nodes = list_to_tuple(lists:usort([Owner || {Owner, _} <- Owners])),
    Size = length(Owners),
    case persistent_term:get(?KEY(Name), none) of
        #lookup{size = Size, nodes = Nodes, owners = Array} ->
            write(Owners, Nodes, Array);
        _ ->
            Array = atomics:new(Size, [{signed, false}]),
            ok = write(Owners, Nodes, Array),
            persistent_term:put(?KEY(Name), #lookup{size = Size, nodes = Nodes, owners = Array})
    end.

write(Owners, Nodes, Array) ->
    Numbers = maps:from_list(lists:zip(tuple_to_list(Nodes), lists:seq(1, tuple_size(Nodes)))),
    lists:foreach(fun({Place, {Owner, IsSeized}}) ->
                      Flag = case IsSeized of true -> ?SEIZED; false -> 0 end,
                      atomics:put(Array, Place, map_get(Owner, Numbers) bor Flag)
                  end, lists:zip(lists:seq(1, length(Owners)), Owners)).

%% @doc There is no ring of this name any more.
-spec withdraw(name()) -> ok.
withdraw(Name) ->
    _ = persistent_term:erase(?KEY(Name)),
    ok = flag(?LEAVES(Name), false),
    forgotten(Name, false).

%% @doc This node had forgotten the ring, or no longer counts as one that has: what others take it
%% for the owner of it may have handed over.
-spec forgotten(name(), boolean()) -> ok.
forgotten(Name, Forgotten) ->
    flag(?FORGOTTEN(Name), Forgotten).

flag(Key, true) ->
    persistent_term:put(Key, true);
flag(Key, false) ->
    _ = persistent_term:erase(Key),
    ok.

%% @doc Is this node the owner of a partition, and may it act as one?
-spec is_mine(name(), non_neg_integer()) -> {ok, boolean()} | {error, no_ring | no_partition}.
is_mine(Name, Partition) ->
    case owner(Name, Partition) of
        {ok, Owner} -> {ok, Owner =:= node() andalso not is_forgotten(Name)};
        {error, Reason} -> {error, Reason}
    end.

%% @doc May this node get a partition from its owner? One that leaves could be gone when it is given
%% to it, and one that has forgotten the ring will be removed, with all that it has. One that has
%% been let into the ring, and has not heard of that, would not know that it has become the owner.
-spec may_take(name(), non_neg_integer()) -> ok | {error, owner | forgotten | leaves | no_ring}.
may_take(Name, Partition) ->
    case {owner(Name, Partition), is_forgotten(Name),
          persistent_term:get(?LEAVES(Name), false)} of
        {{error, no_ring}, _, _} -> {error, no_ring};
        {{ok, Owner}, _, _} when Owner =:= node() -> {error, owner};
        {_, true, _} -> {error, forgotten};
        {_, _, true} -> {error, leaves};
        {_, _, _} -> ok
    end.

is_forgotten(Name) -> persistent_term:get(?FORGOTTEN(Name), false).

%% @doc The partition of a key.
-spec partition(name(), weft_ring_preference:key()) ->
          {ok, non_neg_integer()} | {error, no_ring}.
partition(Name, Key) ->
    with(Name, fun(#lookup{size = Size}) -> weft_ring_preference:partition(Key, Size) end).

%% @doc The owners of the `N' replicas of a key, whether they are up or not.
-spec primaries(name(), weft_ring_preference:key(), non_neg_integer()) ->
          {ok, [weft_ring_preference:preference()]} | {error, no_ring}.
primaries(Name, Key, N) ->
    with(Name, fun(#lookup{size = Size} = Lookup) ->
                   weft_ring_preference:primaries(weft_ring_preference:partition(Key, Size), N,
                                                  Size, owner(Lookup))
               end).

%% @doc As `active/4', with the nodes that this node is connected to, also those behind a gateway,
%% which nodes/0 may not show, and itself.
-spec active(name(), weft_ring_preference:key(), non_neg_integer()) ->
          {ok, [weft_ring_preference:preference()]} | {error, no_ring}.
active(Name, Key, N) ->
    Up = [node() | nodes(connected)],
    active(Name, Key, N, fun(Node) -> lists:member(Node, Up) end).

%% @doc The nodes to ask for a key: the owners of its `N' replicas, and others for those that are
%% not up.
-spec active(name(), weft_ring_preference:key(), non_neg_integer(),
             fun((node()) -> boolean())) ->
          {ok, [weft_ring_preference:preference()]} | {error, no_ring}.
active(Name, Key, N, IsUp) ->
    with(Name, fun(#lookup{size = Size} = Lookup) ->
                   weft_ring_preference:active(weft_ring_preference:partition(Key, Size), N, IsUp,
                                               Size, owner(Lookup))
               end).

%% @doc The number of partitions.
-spec size(name()) -> {ok, pos_integer()} | {error, no_ring}.
size(Name) ->
    with(Name, fun(#lookup{size = Size}) -> Size end).

%% @doc The owner of a partition.
-spec owner(name(), non_neg_integer()) -> {ok, node()} | {error, no_ring | no_partition}.
owner(Name, Partition) ->
    case persistent_term:get(?KEY(Name), none) of
        #lookup{size = Size} when Partition >= Size -> {error, no_partition};
        _ -> with(Name, fun(Lookup) -> (owner(Lookup))(Partition) end)
    end.

%% @doc Has its owner got the partition by force, so that nobody has handed it over? Who has only
%% the owners (`publish_owners/2') does not know.
-spec is_seized(name(), non_neg_integer()) -> boolean().
is_seized(Name, Partition) ->
    case persistent_term:get(?KEY(Name), none) of
        #lookup{size = Size, owners = Array} when Partition < Size ->
            atomics:get(Array, Partition + 1) band ?SEIZED =/= 0;
        _ -> false
    end.

%% @doc The owners of all partitions.
-spec owners(name()) -> {ok, [weft_ring_preference:preference()]} | {error, no_ring}.
owners(Name) ->
    with(Name, fun(#lookup{size = Size} = Lookup) ->
                   weft_ring_preference:primaries(0, Size, Size, owner(Lookup))
               end).

%% @doc As `active/3', for all keys of a partition.
-spec replicas(name(), non_neg_integer(), non_neg_integer()) ->
          {ok, [weft_ring_preference:preference()]} | {error, no_ring}.
replicas(Name, Partition, N) ->
    Up = [node() | nodes(connected)],
    with(Name, fun(#lookup{size = Size} = Lookup) ->
                   weft_ring_preference:active(Partition, N,
                                               fun(Node) -> lists:member(Node, Up) end, Size,
                                               owner(Lookup))
               end).

with(Name, Fun) ->
    case persistent_term:get(?KEY(Name), none) of
        none -> {error, no_ring};
        Lookup -> {ok, Fun(Lookup)}
    end.

owner(#lookup{nodes = Nodes, owners = Array}) ->
    fun(Partition) ->
        element(atomics:get(Array, Partition + 1) band bnot ?SEIZED, Nodes)
    end.
