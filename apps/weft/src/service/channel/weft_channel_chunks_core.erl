%% SPDX-License-Identifier: Apache-2.0
%% @doc Large messages in pieces: cut without copying, put together again.
%%
%% Pure. The pieces of a message travel on several streams and arrive in any order, each with the
%% message's number and its own index. The stream that keeps the order of messages carries an
%% announcement in their place, which may come before or after them. What is incomplete is bounded
%% in bytes and in messages. A peer that exceeds the bound, contradicts itself or repeats a piece
%% breaks the protocol, and the caller ends its streams.
-module(weft_channel_chunks_core).

-export([cut/2, new/2, announce/4, add/4, bytes/1]).
-export_type([assembly/0, id/0]).

%% Counts the large messages of one sender.
-type id() :: non_neg_integer().
-record(message, {size = unknown :: non_neg_integer() | unknown,
                  count = unknown :: pos_integer() | unknown,
                  bytes = 0 :: non_neg_integer(),
                  chunks = #{} :: #{Index :: non_neg_integer() => binary()}}).
-record(assembly, {bytes_max :: pos_integer(),
                   messages_max :: pos_integer(),
                   bytes = 0 :: non_neg_integer(),
                   messages = #{} :: #{id() => #message{}}}).
-opaque assembly() :: #assembly{}.

%% @doc Cuts a body into pieces of ChunkBytes, the last one shorter. A piece refers to the body.
-spec cut(erlang:iovec(), ChunkBytes :: pos_integer()) -> [erlang:iovec()].
cut(Body, ChunkBytes) ->
    cut(Body, ChunkBytes, ChunkBytes, [], []).

cut([], _Chunk, _Left, [], Pieces) ->
    lists:reverse(Pieces);
cut([], _Chunk, _Left, Piece, Pieces) ->
    lists:reverse(Pieces, [lists:reverse(Piece)]);
cut([<<>> | Rest], Chunk, Left, Piece, Pieces) ->
    cut(Rest, Chunk, Left, Piece, Pieces);
cut([Binary | Rest], Chunk, Left, Piece, Pieces) when byte_size(Binary) < Left ->
    cut(Rest, Chunk, Left - byte_size(Binary), [Binary | Piece], Pieces);
cut([Binary | Rest], Chunk, Left, Piece, Pieces) ->
    <<Head:Left/binary, Tail/binary>> = Binary,
    cut(case Tail of <<>> -> Rest; _ -> [Tail | Rest] end, Chunk, Chunk, [],
        [lists:reverse(Piece, [Head]) | Pieces]).

%% @doc Bounds for what is incomplete: bytes that arrived, and messages.
-spec new(BytesMax :: pos_integer(), MessagesMax :: pos_integer()) -> assembly().
new(BytesMax, MessagesMax) ->
    #assembly{bytes_max = BytesMax, messages_max = MessagesMax}.

%% @doc The message of that number has Size bytes in Count pieces.
-spec announce(id(), Size :: non_neg_integer(), Count :: pos_integer(), assembly()) ->
          {complete, [binary()], assembly()} | {incomplete, assembly()} | {error, term()}.
announce(Id, Size, Count, #assembly{messages = Messages, bytes_max = Max} = Assembly) ->
    case maps:get(Id, Messages, #message{}) of
        #message{size = Known} when Known =/= unknown -> {error, {announced_twice, Id}};
        _ when Size > Max -> {error, {too_large, Size}};
        Message -> keep(Id, Message#message{size = Size, count = Count}, Assembly)
    end.

%% @doc A piece has arrived.
-spec add(id(), Index :: non_neg_integer(), binary(), assembly()) ->
          {complete, [binary()], assembly()} | {incomplete, assembly()} | {error, term()}.
add(Id, Index, <<>>, _Assembly) ->
    {error, {empty, Id, Index}};
add(Id, Index, Chunk, #assembly{messages = Messages, bytes = All} = Assembly) ->
    #message{bytes = Bytes, chunks = Chunks} = Message = maps:get(Id, Messages, #message{}),
    case is_map_key(Index, Chunks) of
        true -> {error, {repeated, Id, Index}};
        false -> keep(Id, Message#message{bytes = Bytes + byte_size(Chunk),
                                          chunks = Chunks#{Index => Chunk}},
                      Assembly#assembly{bytes = All + byte_size(Chunk)})
    end.

keep(Id, #message{size = Size, count = Count, bytes = Size, chunks = Chunks},
     #assembly{messages = Messages, bytes = All} = Assembly) when map_size(Chunks) =:= Count ->
    case is_map_key(Count - 1, Chunks) andalso lists:max(maps:keys(Chunks)) =:= Count - 1 of
        true -> {complete, in_order(Chunks), Assembly#assembly{messages = maps:remove(Id, Messages),
                                                               bytes = All - Size}};
        false -> {error, {wrong_index, Id}}
    end;
keep(Id, #message{size = Size, count = Count, bytes = Bytes, chunks = Chunks}, _Assembly)
  when Bytes > Size; map_size(Chunks) >= Count ->
    {error, {wrong_size, Id}};
keep(_Id, _Message, #assembly{bytes = Bytes, bytes_max = Max}) when Bytes > Max ->
    {error, {too_many_bytes, Bytes}};
keep(Id, Message, #assembly{messages = Messages0, messages_max = Max} = Assembly) ->
    case Messages0#{Id => Message} of
        Messages when map_size(Messages) > Max -> {error, {too_many_messages, Max}};
        Messages -> {incomplete, Assembly#assembly{messages = Messages}}
    end.

in_order(Chunks) ->
    [Chunk || {_, Chunk} <- lists:sort(maps:to_list(Chunks))].

%% @doc Bytes of incomplete messages held now.
-spec bytes(assembly()) -> non_neg_integer().
bytes(#assembly{bytes = Bytes}) -> Bytes.
