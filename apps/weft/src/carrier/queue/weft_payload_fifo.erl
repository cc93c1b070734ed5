%% SPDX-License-Identifier: Apache-2.0
%% @doc A queue that frames go into and payloads come out of.
%%
%% Frames are joined until a payload is full, which saves system calls and packets. A payload is
%% frames, each after its size in 32 bits. The last payload is open: it grows until it is full or
%% taken. The caller decides at which size a payload is full: two fragments of the VM, 64 KiB each,
%% make good payloads of large messages; small frames are more urgent.
%% Pieces are not copied unless they are many and small. Then one binary is cheaper to write, and
%% much cheaper to keep, because the garbage collector visits each piece that waits.
-module(weft_payload_fifo).

-export([new/1, add/5, add_batch/5, take/1, bytes/1, begun/1, taken/1, flatten/3]).
-export_type([fifo/0, payload/0]).

-define(PIECES_MAX, 16).
-define(SMALL_BYTES, 1024).

-record(fifo, {full_bytes :: pos_integer(),
               full = queue:new() :: queue:queue(payload()),
               open = [] :: iodata(),
               open_bytes = 0 :: non_neg_integer(),
               open_pieces = 0 :: non_neg_integer(),
               open_whole = true :: boolean(),
               open_stamps = [] :: weft_atom_cache:stamps(),
               bytes = 0 :: non_neg_integer(),
               begun = 0 :: non_neg_integer(),
               taken = 0 :: non_neg_integer()}).
-opaque fifo() :: #fifo{}.
%% Whole: no signal goes on in the next payload. The stamps of its frames are returned with it.
-type payload() :: {iodata(), Bytes :: pos_integer(), Whole :: boolean(),
                    weft_atom_cache:stamps()}.

%% @doc A payload of FullBytes or more is closed.
-spec new(FullBytes :: pos_integer()) -> fifo().
new(FullBytes) -> #fifo{full_bytes = FullBytes}.

%% @doc Appends a frame; Part says which part of its signal it is.
-spec add(Size :: non_neg_integer(), iodata(), whole | middle | final, weft_atom_cache:stamp(),
          fifo()) -> fifo().
add(Size, Frame, Part, Stamp, #fifo{open = Open, open_bytes = OpenBytes, open_pieces = Pieces,
                                    open_stamps = Stamps, bytes = Bytes, begun = Begun} = Fifo) ->
    close_if_full(Fifo#fifo{open = [Open, <<Size:32>> | Frame], open_bytes = OpenBytes + Size + 4,
                            open_pieces = Pieces + 1, open_whole = Part =/= middle,
                            open_stamps = weft_atom_cache:joined([{1, Stamp}], Stamps),
                            bytes = Bytes + Size + 4, begun = begun(OpenBytes, Begun)}).

%% @doc Appends whole frames that already have their sizes before them.
-spec add_batch(iodata(), Bytes :: pos_integer(), Pieces :: pos_integer(),
                weft_atom_cache:stamps(), fifo()) -> fifo().
add_batch(Batch, BatchBytes, BatchPieces, BatchStamps,
          #fifo{open = Open, open_bytes = OpenBytes, open_pieces = Pieces, open_stamps = Stamps,
                bytes = Bytes, begun = Begun} = Fifo) ->
    close_if_full(Fifo#fifo{open = [Open | Batch], open_bytes = OpenBytes + BatchBytes,
                            open_pieces = Pieces + BatchPieces, open_whole = true,
                            open_stamps = weft_atom_cache:joined(BatchStamps, Stamps),
                            bytes = Bytes + BatchBytes, begun = begun(OpenBytes, Begun)}).

begun(0, Begun) -> Begun + 1;
begun(_OpenBytes, Begun) -> Begun.

close_if_full(#fifo{open_bytes = Bytes, full_bytes = FullBytes, full = Full} = Fifo)
  when Bytes >= FullBytes ->
    emptied(Fifo#fifo{full = queue:in(open(Fifo), Full)});
close_if_full(Fifo) ->
    Fifo.

open(#fifo{open = Open, open_bytes = Bytes, open_pieces = Pieces, open_whole = Whole,
           open_stamps = Stamps}) ->
    {flatten(Bytes, Pieces, Open), Bytes, Whole, Stamps}.

emptied(Fifo) ->
    Fifo#fifo{open = [], open_bytes = 0, open_pieces = 0, open_stamps = []}.

%% @doc The next payload; the open one if there is no other.
-spec take(fifo()) -> {payload(), fifo()} | empty.
take(#fifo{bytes = 0}) ->
    empty;
take(#fifo{full = Full, bytes = Bytes, taken = Taken} = Fifo) ->
    case queue:out(Full) of
        {{value, {_, Size, _, _} = Payload}, Rest} ->
            {Payload, Fifo#fifo{full = Rest, bytes = Bytes - Size, taken = Taken + 1}};
        {empty, _} ->
            {open(Fifo), emptied(Fifo#fifo{bytes = 0, taken = Taken + 1})}
    end.

%% @doc Bytes inside, with the sizes before the frames.
-spec bytes(fifo()) -> non_neg_integer().
bytes(#fifo{bytes = Bytes}) -> Bytes.

%% @doc How many payloads there have been, with the open one.
-spec begun(fifo()) -> non_neg_integer().
begun(#fifo{begun = Begun}) -> Begun.

%% @doc How many payloads have been taken. What was there when N were begun is out when N are taken.
-spec taken(fifo()) -> non_neg_integer().
taken(#fifo{taken = Taken}) -> Taken.

%% @doc One binary, if that is cheaper.
-spec flatten(Bytes :: non_neg_integer(), Pieces :: non_neg_integer(), iodata()) -> iodata().
flatten(Bytes, Pieces, Payload) when Pieces > ?PIECES_MAX; Bytes < ?SMALL_BYTES ->
    iolist_to_binary(Payload);
flatten(_Bytes, _Pieces, Payload) ->
    Payload.
