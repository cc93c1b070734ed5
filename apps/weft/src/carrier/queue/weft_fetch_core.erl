%% SPDX-License-Identifier: Apache-2.0
%% @doc How frames of the VM come into the fair queue: how many at once, and which are joined
%% without a look at who has sent them.
%%
%% Pure, but for what it is given to get a frame with: `weft_outlet' gets frames from the VM, the
%% simulator from simulated senders. Called by `weft_outlet_core'. While no sender has a queue small
%% frames are joined (`weft_fair_queue_core:fast/1'), unless they define atoms (`weft_atom_cache').
-module(weft_fetch_core).

-export([join/2, fetch/4]).
-export_type([get/1, next/0]).

-include("weft_frame_sizes.hrl").

%% On the way of each message: not calls.
-compile({inline, [behind/2, batch/3, add_batch/4]}).

%% Frames, and bytes, that are fetched before one payload is sent.
-define(FRAMES_MAX, 500).
-define(FETCH_BYTES, 2097152).

%% The next frame with its size, and what is to be asked for the one behind it, if that is another
%% source.
-type get(Source) :: fun((Source) -> {Size :: non_neg_integer(), iodata()}
                                   | {Size :: non_neg_integer(), iodata(), Source}
                                   | none).
%% What ended a batch: there was no more, it is full, or this frame, which is not in it.
-type next() :: none | full | tuple().

%% @doc The small frames that there are, up to the size of a payload, each behind its size.
-spec join(get(Source), Source) ->
          {next(), iodata(), Bytes :: non_neg_integer(), Pieces :: non_neg_integer(), Source}.
join(Get, Source) ->
    join(Get, Source, [], 0, 0).

join(_Get, Source, Batch, Bytes, Pieces) when Bytes >= ?EXPRESS_BYTES ->
    {full, Batch, Bytes, Pieces, Source};
join(Get, Source0, Batch, Bytes, Pieces) ->
    case Get(Source0) of
        none ->
            {none, Batch, Bytes, Pieces, Source0};
        Frame ->
            {Size, Data, Source} = {element(1, Frame), element(2, Frame), behind(Frame, Source0)},
            case Size < ?SMALL_BYTES andalso not weft_atom_cache:defines(Data) of
                true -> join(Get, Source, batch(Batch, Size, Data), Bytes + Size + 4, Pieces + 1);
                false -> {Frame, Batch, Bytes, Pieces, Source}
            end
    end.

behind({_Size, _Data}, Source) -> Source;
behind({_Size, _Data, Source}, _Before) -> Source.

batch([], Size, Data) -> [<<Size:32>> | Data];
batch(Batch, Size, Data) -> [Batch, <<Size:32>> | Data].

%% @doc Fetches what there is into the queue, but not all at once. `all' if there is no more now.
-spec fetch(get(Source), Source, weft_fair_queue_core:classes(), weft_fair_queue_core:state()) ->
          {all | more, Source, weft_fair_queue_core:state()}.
fetch(Get, Source, Classes, Fair) ->
    fetch(?FRAMES_MAX, ?FETCH_BYTES, Get, Source, Classes, Fair).

fetch(Frames, Bytes, _Get, Source, _Classes, Fair) when Frames =< 0; Bytes =< 0 ->
    {more, Source, Fair};
fetch(Frames, Bytes, Get, Source, Classes, Fair) ->
    case weft_fair_queue_core:full(Fair) of
        true ->
            {more, Source, Fair};
        false ->
            case map_size(Classes) =:= 0 andalso weft_fair_queue_core:fast(Fair) of
                true -> fetch_small(Frames, Bytes, Get, Source, Classes, Fair);
                false -> fetch_one(Frames, Bytes, Get, Source, Classes, Fair)
            end
    end.

%% No sender has a queue: small frames are joined and not read, unless they define atoms. A full
%% payload is sent first.
fetch_small(Frames, Bytes, Get, Source0, Classes, Fair0) ->
    {Next, Batch, BatchBytes, Pieces, Source} = join(Get, Source0),
    Fair = add_batch(Batch, BatchBytes, Pieces, Fair0),
    case Next of
        full -> {more, Source, Fair};
        none -> {all, Source, Fair};
        Frame -> add(Frame, Frames - Pieces, Bytes - BatchBytes, Get, Source, Classes, Fair)
    end.

fetch_one(Frames, Bytes, Get, Source, Classes, Fair) ->
    case Get(Source) of
        none -> {all, Source, Fair};
        Frame -> add(Frame, Frames, Bytes, Get, behind(Frame, Source), Classes, Fair)
    end.

add(Frame, Frames, Bytes, Get, Source, Classes, Fair) ->
    Size = element(1, Frame),
    fetch(Frames - 1, Bytes - Size, Get, Source, Classes,
          weft_fair_queue_core:add(Size, element(2, Frame), Classes, Fair)).

add_batch(_Batch, 0, _Pieces, Fair) -> Fair;
add_batch(Batch, Bytes, Pieces, Fair) ->
    weft_fair_queue_core:add_batch(Batch, Bytes, Pieces, Fair).
