%% SPDX-License-Identifier: Apache-2.0
%% @doc What the VM has to send on a connection, joined to one payload.
%%
%% A lone message goes out at once; a flood is joined until a batch is full, which saves system
%% calls and packets. A payload is frames, each behind its size in 32 bits; pieces are not copied
%% unless they are many and small.
-module(weft_batch).

-export([fetch/1]).

%% A batch is closed at this size: a 64 KiB fragment and its short tail travel together.
-define(BATCH_BYTES, 66560).
%% Batches of more pieces than this, or so small, are made one binary: cheaper to write and to keep.
-define(PIECES_MAX, 64).
-define(SMALL_BYTES, 1024).

%% @doc A payload, its size in bytes, and whether the VM may have more now; if not, or if it has
%% nothing, the calling controller will get the message `dist_data' when it has.
-spec fetch(erlang:dist_handle()) -> {iodata(), pos_integer(), More :: boolean()} | none.
fetch(Handle) ->
    case fetch(Handle, 0, 0, []) of
        {0, _, _, _} -> none;
        {Bytes, Pieces, Batch, More} -> {flatten(Bytes, Pieces, Batch), Bytes, More}
    end.

fetch(_Handle, Bytes, Pieces, Batch) when Bytes >= ?BATCH_BYTES ->
    {Bytes, Pieces, Batch, true};
fetch(Handle, Bytes, Pieces, Batch) ->
    case erlang:dist_ctrl_get_data(Handle) of
        {Size, Data} ->
            fetch(Handle, Bytes + Size + 4, Pieces + 1, [Batch, <<Size:32>> | Data]);
        none ->
            erlang:dist_ctrl_get_data_notification(Handle),
            {Bytes, Pieces, Batch, false}
    end.

flatten(Bytes, Pieces, Batch) when Pieces > ?PIECES_MAX; Bytes < ?SMALL_BYTES ->
    iolist_to_binary(Batch);
flatten(_Bytes, _Pieces, Batch) ->
    Batch.
