%% SPDX-License-Identifier: Apache-2.0
%% @doc Reads the words after a command: options and the rest. Pure.
%%
%% An option is `--name value', `--name=value' or `-n value'; a flag takes no value; `--' ends the
%% options. What it can not read is an error in words that names the nearest known option.
%% It knows no commands and no defaults.
-module(weft_cli_options).

-export([parse/2, nearest/2]).
-export_type([option/0, parsed/0]).

%% key: name of the option with _ for -. many: may be given again, values in order.
-type option() :: #{key := atom(), short => char(), type := flag | string | integer, many => true,
                    value => string(), help := string()}.
-type parsed() :: #{atom() => true | string() | integer() | [string() | integer()]}.

%% @doc Splits the words into options and other words. Options may stand anywhere before `--'.
-spec parse([string()], [option()]) -> {ok, parsed(), [string()]} | {error, iolist()}.
parse(Words, Known) ->
    parse(Words, Known, #{}, []).

parse([], _Known, Parsed, Rest) ->
    {ok, Parsed, lists:reverse(Rest)};
parse(["--" | Words], _Known, Parsed, Rest) ->
    {ok, Parsed, lists:reverse(Rest, Words)};
parse(["--" ++ Long | Words], Known, Parsed, Rest) ->
    [Name | Value] = string:split(Long, "="),
    case [Option || #{key := Key} = Option <- Known, long(Key) =:= Name] of
        [Option] -> option("--" ++ Name, Option, Value, Words, {Known, Parsed, Rest});
        [] -> {error, unknown(Name, [long(Key) || #{key := Key} <- Known])}
    end;
parse([[$-, Short] = Word | Words], Known, Parsed, Rest) ->
    case [Option || #{short := S} = Option <- Known, S =:= Short] of
        [Option] -> option(Word, Option, [], Words, {Known, Parsed, Rest});
        [] -> {error, ["unknown option ", Word]}
    end;
parse([Word | Words], Known, Parsed, Rest) ->
    parse(Words, Known, Parsed, [Word | Rest]).

option(_Word, #{type := flag, key := Key}, [], Words, {Known, Parsed, Rest}) ->
    parse(Words, Known, Parsed#{Key => true}, Rest);
option(Word, #{type := flag}, [_], _Words, _Context) ->
    {error, [Word, " takes no value"]};
option(Word, Option, [], [], _Context) ->
    {error, [Word, " needs a value: ", Word, " ", maps:get(value, Option)]};
option(Word, Option, [], [Value | Words], Context) ->
    option(Word, Option, [Value], Words, Context);
option(Word, #{type := Type} = Option, [Text], Words, {Known, Parsed, Rest}) ->
    case value(Type, Text) of
        {ok, Value} -> parse(Words, Known, add(Option, Value, Parsed), Rest);
        error -> {error, [Word, " is ", Text, ", it must be a whole number"]}
    end.

value(string, Text) ->
    {ok, Text};
value(integer, Text) ->
    case string:to_integer(Text) of
        {Number, []} -> {ok, Number};
        _ -> error
    end.

add(#{key := Key, many := true}, Value, Parsed) ->
    maps:update_with(Key, fun(Values) -> Values ++ [Value] end, [Value], Parsed);
add(#{key := Key}, Value, Parsed) ->
    Parsed#{Key => Value}.

long(Key) ->
    lists:flatten(string:replace(atom_to_list(Key), "_", "-", all)).

unknown(Name, Known) ->
    ["unknown option --", Name,
     case nearest(Name, Known) of
         {ok, Near} -> [", did you mean --", Near, "?"];
         none -> [", there are ", lists:join(", ", [["--", K] || K <- Known])]
     end].

%% @doc The known word that is most like the given one, if one is like it at all.
-spec nearest(string(), [string()]) -> {ok, string()} | none.
nearest(Word, Known) ->
    case lists:min([{different(Word, K), K} || K <- Known] ++ [{infinity, ""}]) of
        {Different, Near} when is_integer(Different), 2 * Different =< length(Word) -> {ok, Near};
        _ -> none
    end.

%% Letters to insert, delete or replace (Levenshtein), row by row; a prefix counts as near.
different(Word, Known) ->
    case Word =/= "" andalso lists:prefix(Word, Known) of
        true -> 0;
        false -> lists:last(lists:foldl(fun(Letter, Row) -> row(Letter, Known, Row) end,
                                        lists:seq(0, length(Known)), Word))
    end.

row(Letter, Known, [Corner | Above]) ->
    row(Letter, Known, Corner, Above, [Corner + 1]).

row(_Letter, [], _Corner, [], Row) ->
    lists:reverse(Row);
row(Letter, [K | Known], Corner, [Up | Above], [Left | _] = Row) ->
    Cost = case Letter of K -> 0; _ -> 1 end,
    row(Letter, Known, Up, Above, [lists:min([Corner + Cost, Up + 1, Left + 1]) | Row]).
