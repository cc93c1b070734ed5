%% SPDX-License-Identifier: Apache-2.0
%% @doc Plain data as bytes, the same for the same data on every release of OTP, for hashes. The
%% external format is not: its atoms and the order of its maps have changed.
-module(weft_diasca_bytes).

-export([encode/1]).

%% @doc Different data have different bytes. Processes, references, ports and functions are no plain
%% data: they are an error.
-spec encode(term()) -> iodata().
encode(Value) when is_integer(Value) -> text($i, integer_to_binary(Value));
encode(Value) when is_float(Value) -> [$f, <<Value/float>>];
encode(Value) when is_atom(Value) -> text($a, atom_to_binary(Value, utf8));
encode(Value) when is_binary(Value) -> text($b, Value);
encode(Value) when is_tuple(Value) -> sequence($t, tuple_to_list(Value));
encode(Value) when is_map(Value) ->
    [$m, <<(map_size(Value)):32>>
     | lists:sort([iolist_to_binary(encode(Pair)) || Pair <- maps:to_list(Value)])];
encode([Head | Tail]) -> [$c, encode(Head) | encode(Tail)];
encode([]) -> [$n];
encode(Value) -> erlang:error({not_plain, Value}).

text(Kind, Bytes) -> [Kind, <<(byte_size(Bytes)):32>>, Bytes].

sequence(Kind, Values) -> [Kind, <<(length(Values)):32>> | [encode(Value) || Value <- Values]].
