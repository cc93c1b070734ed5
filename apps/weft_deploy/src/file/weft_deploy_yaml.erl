%% SPDX-License-Identifier: Apache-2.0
%% @doc Writes YAML, as far as exported files need it. Pure.
%%
%% Objects are lists of pairs and keep their order. Strings are always quoted, in the way of JSON,
%% so none is taken for a number, a truth value or a document of its own.
-module(weft_deploy_yaml).

-export([encode/1]).
-export_type([yaml/0]).

-type yaml() :: {object, [{Key :: atom() | string(), yaml()}]} | {list, [yaml()]}
              | integer() | boolean() | unicode:chardata().

%% @doc The text of a document.
-spec encode(yaml()) -> unicode:chardata().
encode(Value) -> [string:trim(block(Value, 0), leading), $\n].

block({object, []}, _Indent) -> " {}";
block({list, []}, _Indent) -> " []";
block({object, Pairs}, Indent) ->
    [[$\n, spaces(Indent), key(Key), $:, block(Value, Indent + 2)] || {Key, Value} <- Pairs];
block({list, Values}, Indent) ->
    [[$\n, spaces(Indent), $-, item(Value, Indent + 2)] || Value <- Values];
block(Number, _Indent) when is_integer(Number) -> [$\s, integer_to_list(Number)];
block(Truth, _Indent) when is_boolean(Truth) -> [$\s, atom_to_list(Truth)];
block(Text, _Indent) -> [$\s, quoted(Text)].

%% The first pair stands beside the dash.
item({object, [_ | _]} = Object, Indent) ->
    [$\s, string:trim(unicode:characters_to_list(block(Object, Indent)), leading)];
item(Value, Indent) -> block(Value, Indent).

spaces(Count) -> lists:duplicate(Count, $\s).

key(Key) when is_atom(Key) -> atom_to_list(Key);
key(Key) -> quoted(Key).

quoted(Text) -> [$", [escaped(C) || C <- unicode:characters_to_list(Text)], $"].

escaped($") -> "\\\"";
escaped($\\) -> "\\\\";
escaped($\n) -> "\\n";
escaped($\t) -> "\\t";
escaped(C) when C < $\s; C =:= 127 -> io_lib:format("\\u~4.16.0b", [C]);
escaped(C) -> C.
