%% SPDX-License-Identifier: Apache-2.0
%% @doc What a partition of this node may lack, and what it says of that (`weft_kv_recall' has the
%% rules). It is kept in the table of the partition, and that there is something is in its file, too
%% (`weft_kv_disk'): one that is ended before it has got all of it lacks it still when it starts
%% again.
-module(weft_kv_gaps).

-export([said/4, since/2, forgot/2, promised/2, rest/4, compared/5]).

-type group() :: weft_kv_recall:group().

%% @doc Does an answer of this partition for such keys count?
-spec said(group(), IsInMemory :: boolean(), Partition :: non_neg_integer(),
           weft_kv_table:table()) -> ok | incomplete.
said(Group, IsInMemory, Partition, Table) ->
    ok = settle(Partition, Table),
    case weft_kv_recall:counts(Group, IsInMemory, weft_kv_table:recall(Table)) of
        true -> ok;
        false -> incomplete
    end.

%% @doc Since when it knows what it knows.
-spec since(Partition :: non_neg_integer(), weft_kv_table:table()) -> weft_kv_recall:id().
since(Partition, Table) ->
    ok = settle(Partition, Table),
    weft_kv_recall:id(weft_kv_table:recall(Table)).

%% @doc Anything may be lacking.
-spec forgot(weft_kv_table:table(), none | weft_kv_log:log()) -> none | weft_kv_log:log().
forgot(Table, Log) ->
    ok = weft_kv_table:recall(weft_kv_recall:none(), Table),
    lacks(Table, Log).

%% @doc It begins to get all that its owner has.
-spec promised(weft_kv_table:table(), none | weft_kv_log:log()) -> none | weft_kv_log:log().
promised(Table, Log) ->
    ok = weft_kv_table:recall(weft_kv_recall:promised(), Table),
    lacks(Table, Log).

lacks(_, none) ->
    none;
lacks(Table, Log) ->
    case weft_kv_table:filed(Table) of
        lacking -> Log;
        whole -> weft_kv_disk:say(lacking, synced, Table, Log)
    end.

%% @doc Now and then: what was settled since is in the file, too.
-spec rest(Partition :: non_neg_integer(), IsOwner :: boolean(), weft_kv_table:table(),
           none | weft_kv_log:log()) -> none | weft_kv_log:log().
rest(Partition, IsOwner, Table, Log) ->
    ok = settle(Partition, Table),
    case Log =/= none andalso is_whole(Partition, Table) of
        true when IsOwner ->
            case weft_kv_table:filed(Table) of
                whole -> Log;
                lacking -> weft_kv_disk:say(whole, written, Table, Log)
            end;
        false -> lacks(Table, Log);
        _ -> Log
    end.

%% While the application is not running, nobody knows which buckets there are.
is_whole(Partition, Table) ->
    Recall = weft_kv_table:recall(Table),
    case {weft_kv_recall:is_all(Recall), weft_kv_app:buckets(), weft_ring_lookup:size(weft_ring)} of
        {true, _, _} -> true;
        {false, {ok, Buckets}, {ok, Size}} ->
            weft_kv_recall:is_whole(Partition, Size, weft_kv_bucket:compared(Buckets), Recall);
        _ -> unknown
    end.

%% A partition that came from its former owner is whole when it was given to this node.
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

%% @doc It was compared with the replica of another partition, when all others were like that.
-spec compared(group(), Other :: non_neg_integer(), weft_kv_recall:since(),
               weft_kv_sinces:sinces(), weft_kv_table:table()) -> ok | {error, outdated}.
compared(Group, Other, Since, Sinces, Table) ->
    case weft_kv_recall:compared({Group, Other}, Since, Sinces, weft_kv_table:recall(Table)) of
        {ok, New} -> weft_kv_table:recall(New, Table);
        outdated -> {error, outdated}
    end.
