%% SPDX-License-Identifier: Apache-2.0
%% @doc Cuts a payload that is too large for one packet into parts, and puts parts together; pure.
%%
%% The VM sends a message in fragments of 64 KiB, but not a message that it has encoded before there
%% was a connection: a first message of 200 MB is one frame. A receiver has nothing of a packet
%% until it has all of it, and what is behind it waits. All parts but the last are of the kind
%% `part', and the last is of the kind that the payload has. Parts of one payload have consecutive
%% numbers, so nothing else of the session comes between them.
-module(weft_parts).

-export([is_too_large/2, cut/2, next/1, join/2, finish/2]).
-export_type([rest/0, joined/0]).

%% A message of a mebibyte with what belongs to it goes in one packet: parts are copied at the end.
%% Channels have cut what does not fit a packet themselves, and know no parts.
-define(WHOLE_BYTES_MAX, (1024 * 1024 + 65536)).
-define(CHANNEL_BYTES_MAX, (16 * 1024 * 1024 - 1024)).
-define(PART_BYTES, 131072).
%% The size of a frame has 32 bits, and a few smaller frames may be with it.
-define(JOINED_BYTES_MAX, (1 bsl 32) + (1 bsl 20)).

-opaque rest() :: {Kind :: handshake | weft_fair_queue_core:order(), erlang:iovec(),
                   Bytes :: pos_integer()}.
-opaque joined() :: {[binary()], Bytes :: non_neg_integer()}.

-spec is_too_large(Bytes :: non_neg_integer(), weft_wire:stream_kind()) -> boolean().
is_too_large(Bytes, _Kind) when Bytes =< ?WHOLE_BYTES_MAX -> false;
is_too_large(_Bytes, distribution) -> true;
is_too_large(Bytes, _Channel) -> Bytes > ?CHANNEL_BYTES_MAX.

%% @doc What `next/1' has to send; nothing is copied.
-spec cut(handshake | weft_fair_queue_core:order(), iodata()) -> rest().
cut(Kind, Payload) -> {Kind, erlang:iolist_to_iovec(Payload), iolist_size(Payload)}.

%% @doc The next part, and the rest.
-spec next(rest()) -> {part | handshake | weft_fair_queue_core:order(), iodata(),
                       Bytes :: pos_integer(), rest() | none}.
next({Kind, Binaries, Bytes}) when Bytes =< ?PART_BYTES ->
    {Kind, Binaries, Bytes, none};
next({Kind, Binaries, Bytes}) ->
    {Part, Rest} = split(?PART_BYTES, Binaries, []),
    {part, Part, ?PART_BYTES, {Kind, Rest, Bytes - ?PART_BYTES}}.

split(Bytes, [Binary | Binaries], Part) when byte_size(Binary) < Bytes ->
    split(Bytes - byte_size(Binary), Binaries, [Binary | Part]);
split(Bytes, [Binary | Binaries], Part) ->
    <<Last:Bytes/binary, Rest/binary>> = Binary,
    {lists:reverse(Part, [Last]), [Rest | Binaries]}.

%% @doc One more part came.
-spec join(binary(), none | joined()) -> joined() | too_large.
join(_Part, {_Parts, Bytes}) when Bytes > ?JOINED_BYTES_MAX -> too_large;
join(Part, {Parts, Bytes}) -> {[Part | Parts], Bytes + byte_size(Part)};
join(Part, none) -> {[Part], byte_size(Part)}.

%% @doc The last one came: the payload.
-spec finish(binary(), none | joined()) -> binary().
finish(Payload, none) -> Payload;
finish(Last, {Parts, _Bytes}) -> iolist_to_binary(lists:reverse(Parts, [Last])).
