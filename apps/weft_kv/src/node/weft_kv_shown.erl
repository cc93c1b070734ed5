%% SPDX-License-Identifier: Apache-2.0
%% @doc What a partition shows of its objects to others, without a change: pages of the keys of a
%% bucket, hashes by which copies are compared, and batches of objects. Each answer has a limit, as
%% whatever else the partition is asked waits meanwhile.
%%
%% Whether an answer counts is not said here (`weft_kv_gaps'), and neither what a handoff takes with
%% it (`weft_kv_handed').
-module(weft_kv_shown).

-export([page/3, hashes/3, objects/2, some/2, batch_bytes/0]).

-define(PAGE, 200).
-define(PAGE_BYTES, 1000000).
-define(BATCH_BYTES, 65536).
-define(ENTRIES_MAX, 1000).

%% @doc The next keys of a bucket in a partition of keys, with their objects; and whether these were
%% the last ones.
-spec page({KeyPartition :: non_neg_integer(), Bucket :: atom()}, After :: binary(),
           weft_kv_table:table()) ->
          {[{Key :: binary(), weft_kv_object:object()}], IsLast :: boolean()}.
page({KeyPartition, Bucket}, After, Table) ->
    Cursor = {'after', {KeyPartition, Bucket, After}},
    {Items, Next} = weft_kv_table:page(Cursor, {?PAGE, ?PAGE_BYTES}, Table),
    Mine = [{Key, Object} || {{P, B, Key}, {Object, _}} <- Items, P =:= KeyPartition,
                             B =:= Bucket],
    {Mine, Next =:= done orelse length(Mine) < length(Items)}.

%% @doc Of the keys of this group: one hash of all, that of each segment, or keys of segments with
%% the hash of each object. What a later version asks for is unknown.
-spec hashes(weft_kv_recall:group(), What :: term(), weft_kv_table:table()) ->
          term() | {error, unknown_command}.
hashes({N, KeyPartition}, root, Table) ->
    erlang:phash2(weft_kv_table:segments(N, KeyPartition, Table), 1 bsl 32);
hashes({N, KeyPartition}, segments, Table) ->
    weft_kv_copy:announced(weft_kv_table:segments(N, KeyPartition, Table));
hashes({N, KeyPartition}, {segment, Segment}, Table) ->
    weft_kv_table:segment(N, KeyPartition, Segment, Table);
hashes({N, KeyPartition}, {entries, Segments, Cursor}, Table) ->
    Page = {Cursor, {?ENTRIES_MAX, ?BATCH_BYTES}},
    weft_kv_table:entries(N, KeyPartition, Segments, Page, Table);
hashes(_Group, _OfALaterVersion, _Table) ->
    {error, unknown_command}.

%% @doc The objects of these keys, as many as a batch holds.
-spec objects([weft_kv_table:key()], weft_kv_table:table()) ->
          [{weft_kv_table:key(), {weft_kv_object:object(), weft_kv_table:kind()} | none}].
objects(Keys, Table) -> weft_kv_table:batch(Keys, ?BATCH_BYTES, Table).

%% @doc A batch of what there is of these buckets in these partitions of keys.
-spec some([{KeyPartition :: non_neg_integer(), Bucket :: atom()}], weft_kv_table:table()) ->
          [{weft_kv_table:key(), {weft_kv_object:object(), weft_kv_table:kind()} | none}].
some(Which, Table) -> objects(weft_kv_table:some(Which, ?PAGE, Table), Table).

%% @doc How large a batch of objects may be, or it is one object.
-spec batch_bytes() -> pos_integer().
batch_bytes() -> ?BATCH_BYTES.
