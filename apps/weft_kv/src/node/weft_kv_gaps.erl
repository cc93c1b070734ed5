%% SPDX-License-Identifier: Apache-2.0
%% @doc What a partition of this node may lack, and what it says of that (`weft_kv_recall' has the
%% rules). It is kept in the table of the partition.
-module(weft_kv_gaps).

-export([said/4, settle/2, compared/4]).

-type group() :: {N :: pos_integer(), KeyPartition :: non_neg_integer()}.

%% @doc Does an answer of this partition for such keys count?
-spec said(group(), IsInMemory :: boolean(), Partition :: non_neg_integer(),
           weft_kv_table:table()) -> ok | incomplete.
said(Group, IsInMemory, Partition, Table) ->
    ok = settle(Partition, Table),
    case weft_kv_recall:counts(Group, IsInMemory, weft_kv_table:recall(Table)) of
        true -> ok;
        false -> incomplete
    end.

%% @doc A partition that came from its former owner is whole when it was given to this node.
-spec settle(Partition :: non_neg_integer(), weft_kv_table:table()) -> ok.
settle(Partition, Table) ->
    Recall = weft_kv_table:recall(Table),
    case weft_kv_recall:is_promised(Recall)
        andalso weft_ring_lookup:owner(weft_ring, Partition) of
        {ok, Owner} when Owner =:= node() ->
            How = case weft_ring_lookup:is_seized(weft_ring, Partition) of
                      true -> seized;
                      false -> given
                  end,
            weft_kv_table:recall(weft_kv_recall:handed(How, Recall), Table);
        _ -> ok
    end.

%% @doc It was compared with the replica of another partition.
-spec compared(group(), Other :: non_neg_integer(), weft_kv_recall:since(),
               weft_kv_table:table()) -> ok | {error, outdated}.
compared(Group, Other, Since, Table) ->
    case weft_kv_recall:compared({Group, Other}, Since, weft_kv_table:recall(Table)) of
        {ok, New} -> weft_kv_table:recall(New, Table);
        outdated -> {error, outdated}
    end.
