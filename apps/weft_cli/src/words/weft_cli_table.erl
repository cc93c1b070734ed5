%% SPDX-License-Identifier: Apache-2.0
%% @doc Text in columns, and numbers as people write them, for the command and for what else prints
%% tables. Pure.
-module(weft_cli_table).

-export([format/1, bytes/1, milliseconds/1, plural/2]).

%% @doc Rows of cells, each column as wide as its widest cell, two spaces between columns.
-spec format([[unicode:chardata()]]) -> unicode:chardata().
format(Rows) ->
    Widths = lists:foldl(fun widest/2, [], Rows),
    [[string:trim(lists:join("  ", pad(Row, Widths)), trailing), $\n] || Row <- Rows].

widest(Row, Widths) ->
    Padded = Widths ++ lists:duplicate(max(0, length(Row) - length(Widths)), 0),
    Lengths = [string:length(Cell) || Cell <- Row]
        ++ lists:duplicate(max(0, length(Padded) - length(Row)), 0),
    [max(Width, Length) || {Width, Length} <- lists:zip(Padded, Lengths)].

pad(Row, Widths) ->
    [string:pad(Cell, Width)
     || {Cell, Width} <- lists:zip(Row, lists:sublist(Widths, length(Row)))].

%% @doc 12 B, 3.4 kB, 5.6 MB, up to TB. What would be rounded to 1000.0 kB is 1.0 MB.
-spec bytes(non_neg_integer()) -> string().
bytes(Bytes) when Bytes < 1000 -> lists:concat([Bytes, " B"]);
bytes(Bytes) -> thousands(Bytes / 1000, ["kB", "MB", "GB", "TB"]).

thousands(Value, [_ | [_ | _] = Larger]) when Value >= 999.95 -> thousands(Value / 1000, Larger);
thousands(Value, [Unit | _]) -> lists:flatten(io_lib:format("~.1f ~s", [Value, Unit])).

%% @doc A time in microseconds, as milliseconds; a dash if there is none.
-spec milliseconds(non_neg_integer() | undefined) -> string().
milliseconds(undefined) -> "-";
milliseconds(Us) -> lists:flatten(io_lib:format("~.1f ms", [Us / 1000])).

%% @doc 1 node, 2 nodes.
-spec plural(non_neg_integer(), string()) -> string().
plural(1, Word) -> "1 " ++ Word;
plural(Count, Word) -> lists:concat([Count, " ", Word, "s"]).
