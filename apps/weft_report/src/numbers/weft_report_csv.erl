%% SPDX-License-Identifier: Apache-2.0
%% @doc Comma separated values (RFC 4180), for the files of a benchmark run. Lines end with a line
%% feed; fields with a comma, a quote or a line feed are quoted. A last line without its line feed
%% is what a run left that was cut while it wrote, and is not read.
-module(weft_report_csv).

-export([line/1, parse/1]).

%% @doc One line of text, from fields that are numbers or text.
-spec line([number() | atom() | unicode:chardata()]) -> binary().
line(Fields) ->
    unicode:characters_to_binary([lists:join($,, [quoted(field(Field)) || Field <- Fields]), $\n]).

field(Field) when is_integer(Field) -> integer_to_binary(Field);
field(Field) when is_float(Field) -> float_to_binary(Field, [{decimals, 4}, compact]);
field(Field) when is_atom(Field) -> atom_to_binary(Field);
field(Field) -> unicode:characters_to_binary(Field).

quoted(Text) ->
    case binary:match(Text, [<<",">>, <<"\"">>, <<"\n">>, <<"\r">>]) of
        nomatch -> Text;
        _ -> [$", binary:replace(Text, <<"\"">>, <<"\"\"">>, [global]), $"]
    end.

%% @doc All whole lines of a text, each with its fields.
-spec parse(binary()) -> [[binary()]].
parse(Text) ->
    lines(Text, [], [], []).

%% Fields and lines are collected in reverse.
lines(<<>>, _Field, _Fields, Lines) ->
    lists:reverse(Lines);
lines(<<"\"", Rest/binary>>, [], Fields, Lines) ->
    in_quotes(Rest, [], Fields, Lines);
lines(<<"\r\n", Rest/binary>>, Field, Fields, Lines) ->
    lines(<<"\n", Rest/binary>>, Field, Fields, Lines);
lines(<<"\n", Rest/binary>>, [], [], Lines) ->
    lines(Rest, [], [], Lines);
lines(<<"\n", Rest/binary>>, Field, Fields, Lines) ->
    lines(Rest, [], [], [lists:reverse(Fields, [text(Field)]) | Lines]);
lines(<<",", Rest/binary>>, Field, Fields, Lines) ->
    lines(Rest, [], [text(Field) | Fields], Lines);
lines(<<Byte, Rest/binary>>, Field, Fields, Lines) ->
    lines(Rest, [Byte | Field], Fields, Lines).

in_quotes(<<>>, _Field, _Fields, Lines) ->
    lists:reverse(Lines);
in_quotes(<<"\"\"", Rest/binary>>, Field, Fields, Lines) ->
    in_quotes(Rest, [$" | Field], Fields, Lines);
in_quotes(<<"\"", Rest/binary>>, Field, Fields, Lines) ->
    lines(Rest, Field, Fields, Lines);
in_quotes(<<Byte, Rest/binary>>, Field, Fields, Lines) ->
    in_quotes(Rest, [Byte | Field], Fields, Lines).

text(Reversed) ->
    list_to_binary(lists:reverse(Reversed)).
