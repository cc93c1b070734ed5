%% SPDX-License-Identifier: Apache-2.0
%% @doc Frames as the VM hands them out, made by hand: any sender, any size, and a mark at the end
%% that tells one from another.
-module(weft_test_frames).

-export([pid/1, pid/2, atom/2, whole/3, fragment/5, from_name/2, ordered/2, marks/1, control/1]).

-define(MARK_BYTES, 8).

%% @doc The external form of the pid with that key.
-spec pid(weft_frame:key()) -> binary().
pid(Key) -> pid(Key, atom(119, <<"a@host">>)).

-spec pid(weft_frame:key(), Node :: binary()) -> binary().
pid(Key, Node) -> <<88, Node/binary, Key:32, (Key bsr 32):32, 77:32>>.

%% @doc An atom in one of its encodings.
-spec atom(byte(), binary()) -> binary().
atom(Tag, Name) when Tag =:= 119; Tag =:= 115 -> <<Tag, (byte_size(Name)), Name/binary>>;
atom(Tag, Name) -> <<Tag, (byte_size(Name)):16, Name/binary>>.

%% @doc A control message of these elements in external form.
-spec control([binary()]) -> binary().
control(Elements) -> iolist_to_binary([104, length(Elements) | Elements]).

%% @doc A message of a sender, in a frame of at least Bytes.
-spec whole(weft_frame:key(), Mark :: non_neg_integer(), Bytes :: non_neg_integer()) -> iodata().
whole(Key, Mark, Bytes) ->
    body([<<131, 68, 0>>, send(Key)], Mark, Bytes).

%% @doc Fragment number Left (it counts down to 1) of a message.
-spec fragment(weft_frame:key(), weft_frame:fragments(), {first | later, Left :: pos_integer()},
               Mark :: non_neg_integer(), Bytes :: non_neg_integer()) -> iodata().
fragment(Key, Sequence, {first, Left}, Mark, Bytes) ->
    body([<<131, 69, Sequence:64, Left:64, 0>>, send(Key)], Mark, Bytes);
fragment(_Key, Sequence, {later, Left}, Mark, Bytes) ->
    body([<<131, 70, Sequence:64, Left:64>>], Mark, Bytes).

%% @doc The end of a process monitored by its name.
-spec from_name(Mark :: non_neg_integer(), Bytes :: non_neg_integer()) -> iodata().
from_name(Mark, Bytes) ->
    body([<<131, 68, 0>>, control([<<97, 21>>, atom(119, <<"name">>), pid(1), <<90, 0>>])],
         Mark, Bytes).

%% @doc A message whose sender is not known.
-spec ordered(Mark :: non_neg_integer(), Bytes :: non_neg_integer()) -> iodata().
ordered(Mark, Bytes) ->
    body([<<131, 68, 0>>, control([<<97, 2>>, atom(119, <<>>), pid(1)])], Mark, Bytes).

send(Key) ->
    control([<<97, 22>>, pid(Key), pid(1, atom(119, <<"b@host">>))]).

body(Head0, Mark, Bytes) ->
    Head = iolist_to_binary(Head0),
    Fill = max(0, Bytes - byte_size(Head) - ?MARK_BYTES),
    [<<Head/binary, 0:Fill/unit:8, Mark:?MARK_BYTES/unit:8>>].

%% @doc The marks of the frames in a payload.
-spec marks(iodata()) -> [non_neg_integer()].
marks(Payload) ->
    [mark(Frame) || <<Size:32, Frame:Size/binary>> <= iolist_to_binary(Payload)].

mark(Frame) ->
    binary:decode_unsigned(binary:part(Frame, byte_size(Frame), -?MARK_BYTES)).
