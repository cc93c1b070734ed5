%% SPDX-License-Identifier: Apache-2.0
%% @doc Large messages of one partition of a channel, as its sending process sees them.
%%
%% A message beyond the size of a payload is announced on its stream, where it keeps its place, and
%% cut in chunks that are given in turn to the processes of partitions for chunks. The receiver says
%% when it has put a message together. How much may be incomplete is bounded, so neither end
%% accumulates chunks of many messages.
-module(weft_channel_large).

-export([new/3, payload/4, arrived/2, has_room/1, is_under_way/1, down/3]).
-export_type([large/0]).

%% One message may exceed this by its own size.
-define(UNDER_WAY_BYTES, 16777216).

-record(large, {node :: node(),
                channel :: weft_channels:channel(),
                partition :: weft_channels:partition(),
                payload_bytes :: pos_integer(),
                chunk_bytes :: pos_integer(),
                next :: pos_integer(),
                stripe = 0 :: non_neg_integer(),
                under_way = #{} :: #{weft_channel_chunks_core:id() => Bytes :: pos_integer()},
                bytes = 0 :: non_neg_integer(),
                watched = #{} :: #{pid() => true}}).
-opaque large() :: #large{}.

%% Messages are numbered from a random number on: chunks of a sender that has ended may still come,
%% and are not taken for those of this one.
-spec new(node(), weft_channels:channel(), weft_channels:partition()) -> large().
new(Node, Channel, Partition) ->
    {PayloadBytes, ChunkBytes} = sizes(Channel),
    <<Before:56>> = weft_random:bytes(7),
    #large{node = Node, channel = Channel, partition = Partition, payload_bytes = PayloadBytes,
           chunk_bytes = ChunkBytes, next = Before + 1}.

%% The largest payload, and the size of chunks: small if others share the stream, large if only
%% throughput matters (a payload is delivered at the receiver as it came, but chunks are put
%% together, which is a copy).
sizes(#{class := bulk, parallelism := 1}) -> {16711680, 1048576};
sizes(#{class := bulk}) -> {262144, 262144};
sizes(#{}) -> {262144, 131072}.

%% @doc May another message be begun?
-spec has_room(large()) -> boolean().
has_room(#large{bytes = Bytes}) -> Bytes < ?UNDER_WAY_BYTES.

%% @doc Is there a message that the receiver has not put together yet?
-spec is_under_way(large()) -> boolean().
is_under_way(#large{under_way = UnderWay}) -> map_size(UnderWay) > 0.

%% @doc The payload for an encoded item: the item itself, or its announcement, with its chunks on
%% their way.
-spec payload(weft_channel_wire:item(), iodata(), pos_integer(), large()) ->
          {iodata(), pos_integer(), large()}.
payload(_Item, Body, Bytes, #large{payload_bytes = Max} = Large) when Bytes =< Max ->
    {Body, Bytes, Large};
payload(Item, Body, Bytes, #large{next = Id, partition = Partition, under_way = UnderWay,
                                  bytes = All, chunk_bytes = ChunkBytes} = Large0) ->
    Pieces = weft_channel_chunks_core:cut(erlang:iolist_to_iovec(Body), ChunkBytes),
    {Count, Large} = lists:foldl(
                       fun(Piece, {Index, L}) ->
                               Chunk = weft_channel_wire:chunk(Partition, Id, Index, Piece),
                               {Index + 1, give(Chunk, iolist_size(Chunk), L)}
                       end, {0, Large0}, Pieces),
    Announcement = weft_channel_wire:announcement(Id, Bytes, Count, self(), receivers(Item)),
    {Announcement, byte_size(Announcement),
     Large#large{next = Id + 1, under_way = UnderWay#{Id => Bytes}, bytes = All + Bytes}}.

receivers([To | _]) -> [To];
receivers({many, Tos, _}) -> Tos;
receivers({_Extra, To, _, _, _}) -> [To].

%% Without asking whether there is room: the bound on incomplete messages is enough.
give(Chunk, Bytes, #large{node = Node, channel = #{parallelism := Count} = Channel,
                          stripe = Stripe} = Large) ->
    Cost = max(Bytes, weft_channel_wire:large_bytes()),
    Pid = weft_channel_entry:force(Node, weft_channels:stripe(Stripe rem Count), Channel, Cost,
                                   {chunk, Chunk, Bytes}),
    watch(Pid, Large#large{stripe = Stripe + 1}).

watch(Pid, #large{watched = Watched} = Large) when is_map_key(Pid, Watched) ->
    Large;
watch(Pid, #large{watched = Watched} = Large) ->
    _ = erlang:monitor(process, Pid),
    Large#large{watched = Watched#{Pid => true}}.

%% @doc A process has ended. If it had chunks of this one they are lost, and the messages with them.
-spec down(pid(), Reason :: term(), large()) -> {ok, large()} | lost | unknown.
down(Pid, Reason, #large{watched = Watched, under_way = UnderWay} = Large) ->
    case maps:take(Pid, Watched) of
        {_, _} when Reason =/= normal, map_size(UnderWay) > 0 -> lost;
        {_, Rest} -> {ok, Large#large{watched = Rest}};
        error -> unknown
    end.

%% @doc The receiver has put a message together.
-spec arrived(weft_channel_chunks_core:id(), large()) -> large().
arrived(Id, #large{under_way = UnderWay, bytes = All} = Large) ->
    case maps:take(Id, UnderWay) of
        {Bytes, Rest} -> Large#large{under_way = Rest, bytes = All - Bytes};
        error -> Large
    end.
