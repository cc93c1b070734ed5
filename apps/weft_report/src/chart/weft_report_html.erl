%% SPDX-License-Identifier: Apache-2.0
%% @doc HTML and SVG as text: elements with attributes, text that is escaped, tables with headers
%% for those to whom they are read aloud. Knows nothing of benchmarks.
%%
%% All it makes is well-formed XML too, so that a test can tell whether a tag was left open.
-module(weft_report_html).

-export([tag/2, tag/3, text/1, table/3, page/3, style/0, chart_style/0]).
-export_type([html/0]).

-type html() :: iodata().
-type attributes() :: [{Name :: atom() | string(), Value :: number() | unicode:chardata()}].
%% A cell of a table: what it shows, or {what, class}.
-type cell() :: html() | {html(), Class :: string()}.

%% @doc An element without content.
-spec tag(atom(), attributes()) -> html().
tag(Name, Attributes) ->
    ["<", atom_to_list(Name), attributes(Attributes), "/>"].

%% @doc An element. The content is HTML already: use text/1 for what is not.
-spec tag(atom(), attributes(), html()) -> html().
tag(Name, Attributes, Content) ->
    Tag = atom_to_list(Name),
    ["<", Tag, attributes(Attributes), ">", Content, "</", Tag, ">"].

attributes(Attributes) ->
    [[" ", name(Name), "=\"", text(value(Value)), "\""] || {Name, Value} <- Attributes].

name(Name) when is_atom(Name) -> atom_to_list(Name);
name(Name) -> Name.

value(Value) when is_integer(Value) -> integer_to_list(Value);
value(Value) when is_float(Value) -> float_to_list(Value, [{decimals, 2}, compact]);
value(Value) -> Value.

%% @doc Text as HTML.
-spec text(unicode:chardata()) -> html().
text(Text) ->
    [escaped(Char) || Char <- unicode:characters_to_list(Text)].

escaped($<) -> "&lt;";
escaped($>) -> "&gt;";
escaped($&) -> "&amp;";
escaped($") -> "&quot;";
escaped(Char) when Char < 128 -> Char;
escaped(Char) -> unicode:characters_to_binary([Char]).

%% @doc A table. The first cell of each row is its header. Heads are {Text, Class}; the class of a
%% column is that of its cells, for alignment.
-spec table(Caption :: unicode:chardata(), [{unicode:chardata(), Class :: string()}],
            [[cell()]]) -> html().
table(Caption, Heads, Rows) ->
    Head = [tag(th, [{scope, "col"}, {class, Class}], text(Text)) || {Text, Class} <- Heads],
    Classes = [Class || {_, Class} <- Heads],
    tag(figure, [{class, "table"}],
            tag(table, [],
                    [tag(caption, [], text(Caption)),
                     tag(thead, [], tag(tr, [], Head)),
                     tag(tbody, [], [row(Row, Classes) || Row <- Rows])])).

row([First | Rest], [Class | Classes]) ->
    [tag(tr, [],
             [row_head(First, Class),
              [data(Cell, Of) || {Cell, Of} <- lists:zip(Rest, Classes)]]), "\n"].

row_head({Content, More}, Class) ->
    tag(th, [{scope, "row"}, {class, [Class, " ", More]}], Content);
row_head(Content, Class) ->
    tag(th, [{scope, "row"}, {class, Class}], Content).

data({Content, More}, Class) -> tag(td, [{class, [Class, " ", More]}], Content);
data(Content, Class) -> tag(td, [{class, Class}], Content).

%% @doc The style sheet of all reports.
-spec style() -> iodata().
style() ->
    [chart_style(), css("report.css")].

%% @doc What of it charts need, in a picture of their own.
-spec chart_style() -> binary().
chart_style() ->
    css("chart.css").

css(Name) ->
    {ok, Css} = file:read_file(filename:join(code:priv_dir(weft_report), Name)),
    Css.

%% @doc A whole document. Style is CSS.
-spec page(Title :: unicode:chardata(), Style :: iodata(), html()) -> html().
page(Title, Style, Body) ->
    ["<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
     "<meta name=\"color-scheme\" content=\"light dark\"/>\n",
     tag(title, [], text(Title)), "\n<style>\n", Style, "</style></head>\n<body>\n", Body,
     "\n</body></html>\n"].
