%% SPDX-License-Identifier: Apache-2.0
%% @doc What the next owner of a partition gets of the former one: its objects and, before them,
%% that something may be lacking, if it is so. Not here: when it is sent
%% (`weft_ring_handoff_sender_core').
-module(weft_kv_handed).

-export([items/3, taken/2]).

-type item() :: weft_kv_copy:item()
              | {weft_kv_recall:mark(), {weft_kv_object:object(), weft_kv_table:kind()}}.

%% @doc As `weft_kv_table:page/3'.
-spec items(weft_vnode:cursor(), {Max :: pos_integer(), BytesMax :: pos_integer()},
            weft_kv_table:table()) -> {[item()], weft_vnode:cursor()}.
items(start, {Max, BytesMax}, Table) ->
    case weft_kv_recall:is_all(weft_kv_table:recall(Table)) of
        true -> weft_kv_table:page(start, {Max, BytesMax}, Table);
        false when Max =:= 1 ->
            {Key, _} = Mark = weft_kv_recall:mark(),
            {[Mark], {'after', Key}};
        false ->
            {Items, Next} = weft_kv_table:page(start, {Max - 1, BytesMax}, Table),
            {[weft_kv_recall:mark() | Items], Next}
    end;
items(Cursor, Limits, Table) ->
    weft_kv_table:page(Cursor, Limits, Table).

%% @doc The objects of these items, for whoever has got them.
-spec taken([item()], weft_kv_table:table()) -> [item()].
taken([{Key, _} | Items] = All, Table) ->
    case weft_kv_recall:is_mark(Key) of
        true ->
            ok = weft_kv_table:recall(weft_kv_recall:none(), Table),
            Items;
        false -> All
    end;
taken([], _) ->
    [].
