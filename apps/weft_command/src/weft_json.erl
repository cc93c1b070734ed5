%% SPDX-License-Identifier: Apache-2.0
%% @doc Terms as JSON text (RFC 8259), and the terms that such a text means.
%%
%% Binaries are strings (UTF-8, or Latin-1 if that they are not), atoms too but for true, false and
%% null; `undefined' is null. A list is an array, never a string. Keys of maps are atoms or binaries
%% and come out sorted.
-module(weft_json).

-export([encode/1, decode/1]).
-export_type([json/0]).

%% Far more than anybody writes.
-define(DEPTH_MAX, 32).

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

%% Most texts are as they are: a list of their characters has a hundred times their size.
string(Text) ->
    case is_plain(Text) of
        true -> [$", Text, $"];
        false -> [$", [escape(Char) || Char <- characters(Text)], $"]
    end.

is_plain(<<Char, Rest/binary>>) when Char >= 32, Char < 128, Char =/= $", Char =/= $\\ ->
    is_plain(Rest);
is_plain(Rest) ->
    Rest =:= <<>>.

characters(Text) ->
    case unicode:characters_to_list(Text) of
        List when is_list(List) -> List;
        _NoUtf8 -> binary_to_list(Text)
    end.

escape($") -> <<"\\\"">>;
escape($\\) -> <<"\\\\">>;
escape($\n) -> <<"\\n">>;
escape(Control) when Control < 32 -> iolist_to_binary(io_lib:format("\\u~4.16.0b", [Control]));
escape(Char) -> <<Char/utf8>>.

%% --- reading ----------------------------------------------------------------------------------

%% @doc Reads a text; objects become maps with binaries as keys, of the same key twice the last one
%% counts. What is no JSON, or is nested deeper than 32, is an error. How long the text may be is
%% for the caller to say.
-spec decode(binary()) -> {ok, json()} | {error, not_json}.
decode(Text) ->
    try
        {Value, Rest} = value(space(Text), ?DEPTH_MAX),
        <<>> = space(Rest),
        {ok, Value}
    catch
        %% No clause for what stands there.
        error:_ -> {error, not_json}
    end.

value(<<${, Rest/binary>>, Depth) when Depth > 0 -> object(space(Rest), Depth - 1);
value(<<$[, Rest/binary>>, Depth) when Depth > 0 -> array(space(Rest), Depth - 1);
value(<<$", Rest/binary>>, _Depth) -> string(Rest, []);
value(<<"true", Rest/binary>>, _Depth) -> {true, Rest};
value(<<"false", Rest/binary>>, _Depth) -> {false, Rest};
value(<<"null", Rest/binary>>, _Depth) -> {null, Rest};
value(Text, _Depth) -> number(Text).

object(<<$}, Rest/binary>>, _Depth) -> {#{}, Rest};
object(Text, Depth) -> members(Text, Depth, #{}).

members(<<$", Text/binary>>, Depth, Members) ->
    {Key, AfterKey} = string(Text, []),
    <<$:, AfterColon/binary>> = space(AfterKey),
    {Value, Rest} = value(space(AfterColon), Depth),
    case space(Rest) of
        <<$,, More/binary>> -> members(space(More), Depth, Members#{Key => Value});
        <<$}, End/binary>> -> {Members#{Key => Value}, End}
    end.

array(<<$], Rest/binary>>, _Depth) -> {[], Rest};
array(Text, Depth) -> items(Text, Depth, []).

items(Text, Depth, Items) ->
    {Value, Rest} = value(Text, Depth),
    case space(Rest) of
        <<$,, More/binary>> -> items(space(More), Depth, [Value | Items]);
        <<$], End/binary>> -> {lists:reverse(Items, [Value]), End}
    end.

string(<<$", Rest/binary>>, Chars) -> {unicode:characters_to_binary(lists:reverse(Chars)), Rest};
string(<<$\\, $u, Hex:4/binary, Rest/binary>>, Chars) -> unit(unit(Hex), Rest, Chars);
string(<<$\\, Escaped, Rest/binary>>, Chars) -> string(Rest, [unescaped(Escaped) | Chars]);
string(<<Char/utf8, Rest/binary>>, Chars) when Char >= 32 -> string(Rest, [Char | Chars]).

%% Above 16#ffff two units of UTF-16 are one character.
unit(High, <<$\\, $u, Hex:4/binary, Rest/binary>>, Chars) when High band 16#fc00 =:= 16#d800 ->
    Low = unit(Hex),
    16#dc00 = Low band 16#fc00,
    string(Rest, [16#10000 + ((High band 16#3ff) bsl 10) + (Low band 16#3ff) | Chars]);
unit(Unit, Rest, Chars) when Unit band 16#f800 =/= 16#d800 ->
    string(Rest, [Unit | Chars]).

unit(<<_:4/binary>> = Hex) ->
    <<Unit:16>> = binary:decode_hex(Hex),
    Unit.

unescaped($n) -> $\n;
unescaped($r) -> $\r;
unescaped($t) -> $\t;
unescaped($b) -> $\b;
unescaped($f) -> $\f;
unescaped(Char) when Char =:= $"; Char =:= $\\; Char =:= $/ -> Char.

number(Text) ->
    {match, [{0, Length}]} = re:run(Text, "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?",
                                    [{capture, first}]),
    <<Number:Length/binary, Rest/binary>> = Text,
    {number_of(binary:split(Number, [<<"e">>, <<"E">>]), Number), Rest}.

%% A float of Erlang has a point.
number_of([Integer], Integer) ->
    case binary:match(Integer, <<".">>) of
        nomatch -> binary_to_integer(Integer);
        _ -> binary_to_float(Integer)
    end;
number_of([Mantissa, Exponent], _Number) ->
    Point = case binary:match(Mantissa, <<".">>) of
                nomatch -> <<".0">>;
                _ -> <<>>
            end,
    binary_to_float(<<Mantissa/binary, Point/binary, $e, Exponent/binary>>).

space(<<Char, Rest/binary>>) when Char =:= 32; Char =:= $\t; Char =:= $\n; Char =:= $\r ->
    space(Rest);
space(Text) ->
    Text.
