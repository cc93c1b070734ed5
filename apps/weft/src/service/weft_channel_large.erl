%% SPDX-License-Identifier: Apache-2.0
%% @doc Large messages of one partition of a channel, as its sending process sees them.
%%
%% A message beyond the size of a payload is announced on its stream, where it keeps its place, and
%% cut in chunks that go in turn to the processes of partitions for chunks. The receiver says
%% when it has put a message together; what has not come together is bounded, so neither end piles
%% up chunks of many messages.
-module(weft_channel_large).

-export([new/3, payload/4, arrived/2, has_room/1, down/3]).
-export_type([large/0]).

%% One message may exceed this by its own size.
-define(UNDER_WAY_BYTES, 16777216).

-record(large, {node :: node(),
                channel :: weft_channels:channel(),
                home :: weft_channels:partition(),
                payload_bytes :: pos_integer(),
                chunk_bytes :: pos_integer(),
                next = 1 :: pos_integer(),
                stripe = 0 :: non_neg_integer(),
                under_way = #{} :: #{weft_chunks_core:id() => Bytes :: pos_integer()},
                bytes = 0 :: non_neg_integer(),
                watched = #{} :: #{pid() => true}}).
-opaque large() :: #large{}.

-spec new(node(), weft_channels:channel(), weft_channels:partition()) -> large().
new(Node, Channel, Home) ->
    {PayloadBytes, ChunkBytes} = sizes(Channel),
    #large{node = Node, channel = Channel, home = Home, payload_bytes = PayloadBytes,
           chunk_bytes = ChunkBytes}.

%% The largest payload, and the size of chunks: small where others share the stream, large where
%% bytes are all that matters (a payload is handed out at the receiver as it came, chunks are put
%% together, which is a copy).
sizes(#{class := bulk, parallelism := 1}) -> {16711680, 1048576};
sizes(#{class := bulk}) -> {262144, 262144};
sizes(#{}) -> {262144, 131072}.

%% @doc May another message be begun?
-spec has_room(large()) -> boolean().
has_room(#large{bytes = Bytes}) -> Bytes < ?UNDER_WAY_BYTES.

%% @doc The payload for an encoded item: itself, or its announcement, its chunks being under way.
-spec payload(weft_channel_wire:item(), iodata(), pos_integer(), large()) ->
          {iodata(), pos_integer(), large()}.
payload(_Item, Body, Bytes, #large{payload_bytes = Max} = Large) when Bytes =< Max ->
    {Body, Bytes, Large};
payload(Item, Body, Bytes, #large{next = Id, home = Home, under_way = UnderWay, bytes = All,
                                  chunk_bytes = ChunkBytes} = Large0) ->
    Pieces = weft_chunks_core:cut(erlang:iolist_to_iovec(Body), ChunkBytes),
    {Count, Large} = lists:foldl(
                       fun(Piece, {Index, L}) ->
                               Chunk = weft_channel_wire:chunk(Home, Id, Index, Piece),
                               {Index + 1, give(Chunk, iolist_size(Chunk), L)}
                       end, {0, Large0}, Pieces),
    Announcement = weft_channel_wire:announcement(Id, Bytes, Count, self(), receivers(Item)),
    {Announcement, byte_size(Announcement),
     Large#large{next = Id + 1, under_way = UnderWay#{Id => Bytes}, bytes = All + Bytes}}.

receivers([To | _]) -> [To];
receivers({many, Tos, _}) -> Tos;
receivers({_Extra, To, _, _, _}) -> [To].

give(Chunk, Bytes, #large{node = Node, channel = #{name := Name, parallelism := Count},
                          stripe = Stripe} = Large) ->
    Cost = max(Bytes, weft_channel_wire:large_bytes()),
    Message = weft_channel_sender:message(Cost, {chunk, Chunk, Bytes}),
    Pid = put_in(Node, Name, weft_channels:stripe(Stripe rem Count), Cost, Message, Large),
    watch(Pid, Large#large{stripe = Stripe + 1}).

%% Without asking whether there is room: the bound is the one on what is under way.
put_in(Node, Name, Partition, Cost, Message, #large{channel = Channel} = Large) ->
    case weft_channels:sender(Node, Name, Partition) of
        {Pid, Counter} ->
            Before = atomics:add_get(Counter, 1, Cost) - Cost,
            case weft_channel_sender:is_closed(Before) of
                false -> Pid ! Message, Pid;
                true -> erlang:yield(), put_in(Node, Name, Partition, Cost, Message, Large)
            end;
        none ->
            case weft_channel_sup:start_worker(weft_channel_sender, [Node, Channel, Partition]) of
                {error, not_started} -> exit({shutdown, not_started});
                _ -> ok
            end,
            put_in(Node, Name, Partition, Cost, Message, Large)
    end.

watch(Pid, #large{watched = Watched} = Large) when is_map_key(Pid, Watched) ->
    Large;
watch(Pid, #large{watched = Watched} = Large) ->
    _ = erlang:monitor(process, Pid),
    Large#large{watched = Watched#{Pid => true}}.

%% @doc A process has ended. If it had chunks of ours they are lost, and the messages with them.
-spec down(pid(), Reason :: term(), large()) -> {ok, large()} | lost | unknown.
down(Pid, Reason, #large{watched = Watched, under_way = UnderWay} = Large) ->
    case maps:take(Pid, Watched) of
        {_, _} when Reason =/= normal, map_size(UnderWay) > 0 -> lost;
        {_, Rest} -> {ok, Large#large{watched = Rest}};
        error -> unknown
    end.

%% @doc The receiver has put a message together.
-spec arrived(weft_chunks_core:id(), large()) -> large().
arrived(Id, #large{under_way = UnderWay, bytes = All} = Large) ->
    case maps:take(Id, UnderWay) of
        {Bytes, Rest} -> Large#large{under_way = Rest, bytes = All - Bytes};
        error -> Large
    end.
