%% SPDX-License-Identifier: Apache-2.0
%% @doc Elements of HTML and SVG as text, for the page and the pictures of a profile. All it makes
%% is well-formed XML too.
-module(weft_profile_markup).

-export([tag/2, tag/3, text/1, table/2]).
-export_type([markup/0]).

-type markup() :: iodata().
-type attributes() :: [{atom(), number() | unicode:chardata()}].

%% @doc An element without content.
-spec tag(atom(), attributes()) -> markup().
tag(Name, Attributes) -> ["<", atom_to_list(Name), attributes(Attributes), "/>"].

%% @doc An element. The content is markup already: use text/1 for what is not.
-spec tag(atom(), attributes(), markup()) -> markup().
tag(Name, Attributes, Content) ->
    Tag = atom_to_list(Name),
    ["<", Tag, attributes(Attributes), ">", Content, "</", Tag, ">"].

attributes(Attributes) ->
    [[" ", atom_to_list(Name), "=\"", text(value(Value)), "\""] || {Name, Value} <- Attributes].

value(Value) when is_integer(Value) -> integer_to_list(Value);
value(Value) when is_float(Value) -> float_to_list(Value, [{decimals, 2}, compact]);
value(Value) -> Value.

%% @doc Text as markup.
-spec text(unicode:chardata()) -> markup().
text(Text) -> [escaped(Char) || Char <- unicode:characters_to_list(Text)].

escaped($<) -> "&lt;";
escaped($>) -> "&gt;";
escaped($&) -> "&amp;";
escaped($") -> "&quot;";
escaped(Char) when Char < 128 -> Char;
escaped(Char) -> <<Char/utf8>>.

%% @doc A table of texts; a number is a cell of its own kind. The first cell of a row is its header.
-spec table([unicode:chardata()], [[number() | unicode:chardata()]]) -> markup().
table(Heads, Rows) ->
    tag('div', [{class, "table"}],
        tag(table, [], [tag(thead, [], tag(tr, [], [tag(th, [{scope, "col"}], text(Head))
                                                    || Head <- Heads])),
                        tag(tbody, [], [tag(tr, [], row(Row)) || Row <- Rows])])).

row([First | Rest]) ->
    [tag(th, [{scope, "row"}], text(cell(First))) | [data(Cell) || Cell <- Rest]].

data(Number) when is_number(Number) -> tag(td, [{class, "number"}], cell(Number));
data(Text) -> tag(td, [], text(Text)).

cell(Number) when is_integer(Number) -> integer_to_list(Number);
cell(Number) when is_float(Number) -> float_to_list(Number, [{decimals, 2}]);
cell(Text) -> Text.
