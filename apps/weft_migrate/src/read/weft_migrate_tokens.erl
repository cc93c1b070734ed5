%% SPDX-License-Identifier: Apache-2.0
%% @doc The text of an Erlang source as forms of tokens, each with its place in lines and in bytes.
%%
%% White space and comments are tokens too, so the texts of all tokens, one after the other, are the
%% file. A form that cannot be scanned has an error instead of tokens; the form after it begins
%% behind its full stop.
-module(weft_migrate_tokens).

-export([forms/1]).
-export_type([token/0, form/0, encoding/0]).

-type encoding() :: utf8 | latin1.
%% Byte is the offset of the first byte in the file. Lines, columns and bytes of a token.
-type token() :: {Category :: atom(), Symbol :: term(), {Line :: pos_integer(), pos_integer()},
                  Byte :: non_neg_integer(), Size :: pos_integer()}.
-type form() :: #{at := {pos_integer(), pos_integer()}, byte := non_neg_integer(),
                  size := non_neg_integer(), text := string(),
                  tokens := {ok, [token()]} | {error, Reason :: string()}}.

%% @doc The encoding is that of the comment in the file, or UTF-8. Bytes that are no UTF-8 although
%% they should be are read as Latin-1, so the places are right all the same.
-spec forms(binary()) -> {encoding(), [form()]}.
forms(Bytes) ->
    {Encoding, Characters} = characters(Bytes),
    {Encoding, first(Characters, Encoding)}.

%% The first line of a script is for the system.
first("#!" ++ _ = Characters, Encoding) ->
    {Line, Rest} = line(Characters),
    Size = size_of(Line, Encoding),
    [#{at => {1, 1}, byte => 0, size => Size, text => Line, tokens => {ok, []}}
     | forms(Rest, {2, 1}, Size, Encoding)];
first(Characters, Encoding) ->
    forms(Characters, {1, 1}, 0, Encoding).

characters(Bytes) ->
    Named = case epp:read_encoding_from_binary(Bytes) of
                none -> utf8;
                Encoding -> Encoding
            end,
    case Named =:= utf8 andalso unicode:characters_to_list(Bytes) of
        Characters when is_list(Characters) -> {utf8, Characters};
        _ -> {latin1, binary_to_list(Bytes)}
    end.

forms([], _At, _Byte, _Encoding) ->
    [];
forms(Characters, At, Byte, Encoding) ->
    {Result, Text, Rest} = scan(Characters, At),
    Size = size_of(Text, Encoding),
    {Tokens, EndAt} =
        case Result of
            {ok, Scanned} ->
                {{ok, placed(Scanned, Byte, Encoding)}, moved(Text, At)};
            {error, Reason} ->
                {{error, Reason}, moved(Text, At)}
        end,
    [#{at => At, byte => Byte, size => Size, text => Text, tokens => Tokens}
     | forms(Rest, EndAt, Byte + Size, Encoding)].

%% One form, its text and what comes behind it.
scan(Characters, At) ->
    Options = [return, text],
    case erl_scan:tokens([], Characters, At, Options) of
        {done, {ok, Tokens, _}, Rest} ->
            {{ok, Tokens}, lists:append([erl_scan:text(Token) || Token <- Tokens]), Rest};
        {done, {error, Error, _}, _} ->
            skipped(Error, Characters);
        {more, Continuation} ->
            last(erl_scan:tokens(Continuation, eof, At, Options), Characters)
    end.

%% The end of the file: a form, only comments, or a form that is not complete.
last({done, {error, Error, _}, _Rest}, Characters) ->
    skipped(Error, Characters);
last({done, {eof, _}, _Rest}, Characters) ->
    {{ok, []}, Characters, []};
last({done, {ok, Tokens, _}, _Rest}, Characters) ->
    IsWhole = erl_scan:category(lists:last(Tokens)) =:= dot,
    case [Token || Token <- Tokens, is_code(Token)] of
        [] -> {{ok, []}, Characters, []};
        _ when IsWhole -> {{ok, Tokens}, Characters, []};
        _ -> {{error, "it does not end with a full stop"}, Characters, []}
    end.

is_code(Token) ->
    not lists:member(erl_scan:category(Token), [white_space, comment]).

reason({_, Module, Descriptor}) ->
    lists:flatten(Module:format_error(Descriptor)).

%% The next form is taken to begin behind the first line that ends with a full stop.
skipped(Error, Characters) ->
    {Text, Rest} = skip(Characters, []),
    {{error, reason(Error)}, Text, Rest}.

skip([], Lines) ->
    {lists:append(lists:reverse(Lines)), []};
skip(Characters, Lines) ->
    {Line, Rest} = line(Characters),
    case lists:reverse(string:trim(Line)) of
        [$. | _] when hd(Line) =/= $% -> {lists:append(lists:reverse([Line | Lines])), Rest};
        _ -> skip(Rest, [Line | Lines])
    end.

line(Characters) ->
    case lists:splitwith(fun(Character) -> Character =/= $\n end, Characters) of
        {Line, [$\n | Rest]} -> {Line ++ "\n", Rest};
        {Line, []} -> {Line, []}
    end.

placed(Tokens, Byte, Encoding) ->
    {Placed, _} = lists:mapfoldl(
                    fun(Token, At) ->
                            Size = size_of(text(Token), Encoding),
                            {{erl_scan:category(Token), erl_scan:symbol(Token),
                              erl_scan:location(Token), At, Size}, At + Size}
                    end, Byte, Tokens),
    Placed.

%% A sigil without a suffix has a token for it all the same, which has no text.
text(Token) ->
    case erl_scan:text(Token) of
        undefined -> "";
        Text -> Text
    end.

size_of(Text, latin1) -> length(Text);
size_of(Text, utf8) -> byte_size(unicode:characters_to_binary(Text)).

moved([], At) -> At;
moved([$\n | Text], {Line, _}) -> moved(Text, {Line + 1, 1});
moved([_ | Text], {Line, Column}) -> moved(Text, {Line, Column + 1}).
