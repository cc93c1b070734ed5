%% SPDX-License-Identifier: Apache-2.0
%% @doc From a key to the nodes that hold it. Pure, and the same on all nodes with equal rings, of
%% whatever release: the hash (SHA-1, so the ring has 2^160 places) is one of bytes, not of terms,
%% whose encoding differs between releases of OTP.
%%
%% A partition is an equal part of the places; it is numbered from 0. A key belongs to the partition
%% of its hash, and its replicas to the owners of the partitions that follow.
-module(weft_ring_preference).

-export([partition/2, primaries/4, active/5]).
-export_type([key/0, owner/0, preference/0]).

-type key() :: binary() | {Bucket :: binary(), binary()}.
-type owner() :: fun((Partition :: non_neg_integer()) -> node()).
-type preference() :: {Partition :: non_neg_integer(), node(), primary | fallback}.

%% @doc The partition of a key in a ring of this size (a power of two).
-spec partition(key(), pos_integer()) -> non_neg_integer().
partition({Bucket, Key}, Size) ->
    partition_of([<<(byte_size(Bucket)):32>>, Bucket, Key], Size);
partition(Key, Size) ->
    partition_of([<<16#ffffffff:32>>, Key], Size).

partition_of(Bytes, Size) ->
    <<Place:160>> = crypto:hash(sha, Bytes),
    (Place * Size) bsr 160.

%% @doc The owners of `N' partitions, from this one on.
-spec primaries(non_neg_integer(), non_neg_integer(), pos_integer(), owner()) -> [preference()].
primaries(Partition, N, Size, Owner) ->
    [{P, Owner(P), primary} || Step <- lists:seq(0, min(N, Size) - 1),
                               P <- [(Partition + Step) rem Size]].

%% @doc The same, with another node in place of each that is not up: the next owner on the ring that
%% is up and not in the list yet. It stands in for the partition of the one that is missing. If
%% there are not enough nodes, the list is shorter: no node is in it twice for another one's sake.
-spec active(non_neg_integer(), non_neg_integer(), fun((node()) -> boolean()), pos_integer(),
             owner()) -> [preference()].
active(Partition, N, IsUp, Size, Owner) ->
    Primaries = primaries(Partition, N, Size, Owner),
    case [Missing || {_, Node, _} = Missing <- Primaries, not IsUp(Node)] of
        [] -> Primaries;
        Missing ->
            Used = [Node || {_, Node, _} <- Primaries -- Missing],
            Further = [(Partition + Step) rem Size || Step <- lists:seq(N, Size - 1)],
            StandIns = stand_ins(length(Missing), Further, Used, IsUp, Owner),
            lists:sort(in_ring_order(Partition, Size),
                       (Primaries -- Missing) ++ replaced(Missing, StandIns))
    end.

stand_ins(0, _, _, _, _) -> [];
stand_ins(_, [], _, _, _) -> [];
stand_ins(Count, [P | Further], Used, IsUp, Owner) ->
    Node = Owner(P),
    case lists:member(Node, Used) orelse not IsUp(Node) of
        true -> stand_ins(Count, Further, Used, IsUp, Owner);
        false -> [Node | stand_ins(Count - 1, Further, [Node | Used], IsUp, Owner)]
    end.

replaced([{P, _, _} | Missing], [Node | StandIns]) ->
    [{P, Node, fallback} | replaced(Missing, StandIns)];
replaced(_, _) ->
    [].

in_ring_order(Partition, Size) ->
    From = fun(P) -> (P - Partition + Size) rem Size end,
    fun({A, _, _}, {B, _, _}) -> From(A) =< From(B) end.
