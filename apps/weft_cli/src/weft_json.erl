%% SPDX-License-Identifier: Apache-2.0
%% @doc Writes terms as JSON text (RFC 8259), for `--json'. It reads none.
%%
%% Binaries are strings (UTF-8, or Latin-1 if that they are not), atoms too but for true, false and
%% null; `undefined' is null. A list is an array, never a string. Keys of maps are atoms or binaries
%% and come out sorted.
-module(weft_json).

-export([encode/1]).
-export_type([json/0]).

-type json() :: null | undefined | boolean() | atom() | binary() | number() | [json()]
              | #{atom() | binary() => json()}.

%% @doc The text, without a newline at the end.
-spec encode(json()) -> iodata().
encode(undefined) -> <<"null">>;
encode(Atom) when Atom =:= true; Atom =:= false; Atom =:= null -> atom_to_binary(Atom);
encode(Atom) when is_atom(Atom) -> string(atom_to_binary(Atom));
encode(Text) when is_binary(Text) -> string(Text);
encode(Number) when is_integer(Number) -> integer_to_binary(Number);
encode(Number) when is_float(Number) -> float_to_binary(Number, [short]);
encode(List) when is_list(List) -> [$[, lists:join($,, [encode(Item) || Item <- List]), $]];
encode(Map) when is_map(Map) ->
    Members = lists:sort([{key(Key), Value} || {Key, Value} <- maps:to_list(Map)]),
    [${, lists:join($,, [[string(Key), $:, encode(Value)] || {Key, Value} <- Members]), $}].

key(Key) when is_atom(Key) -> atom_to_binary(Key);
key(Key) when is_binary(Key) -> Key.

string(Text) ->
    Chars = case unicode:characters_to_list(Text) of
                List when is_list(List) -> List;
                _NoUtf8 -> binary_to_list(Text)
            end,
    [$", [escape(Char) || Char <- Chars], $"].

escape($") -> <<"\\\"">>;
escape($\\) -> <<"\\\\">>;
escape($\n) -> <<"\\n">>;
escape(Control) when Control < 32 -> iolist_to_binary(io_lib:format("\\u~4.16.0b", [Control]));
escape(Char) -> <<Char/utf8>>.
