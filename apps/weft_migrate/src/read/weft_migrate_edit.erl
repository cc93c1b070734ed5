%% SPDX-License-Identifier: Apache-2.0
%% @doc Edits of bytes, from the places that tokens have in a source. Whatever is not in an edit
%% stays as it is.
-module(weft_migrate_edit).

-export([splice/2]).
-export_type([edit/0]).

%% So many bytes from this one on are replaced.
-type edit() :: {Byte :: non_neg_integer(), Size :: non_neg_integer(), New :: binary()}.

%% @doc All edits at once; their places are those of the bytes given. Edits that overlap are an
%% error, the same edit twice is one.
-spec splice(binary(), [edit()]) -> {ok, binary()} | {error, {overlap, Byte :: non_neg_integer()}}.
splice(Bytes, Edits) ->
    try {ok, iolist_to_binary(pieces(Bytes, 0, lists:usort(Edits)))}
    catch throw:{overlap, Byte} -> {error, {overlap, Byte}}
    end.

pieces(Bytes, From, []) ->
    [binary:part(Bytes, From, byte_size(Bytes) - From)];
pieces(_Bytes, From, [{Byte, _, _} | _]) when Byte < From ->
    throw({overlap, Byte});
pieces(Bytes, From, [{Byte, Size, New} | Edits]) ->
    [binary:part(Bytes, From, Byte - From), New | pieces(Bytes, Byte + Size, Edits)].
