%% SPDX-License-Identifier: Apache-2.0
%% @doc What a text says, in whatever words: which variants, cells and numbers it names. So a test
%% of a sentence fails because of a wrong fact, and not because of another wording.
-module(weft_report_said).

-export([missing/2]).
-export_type([part/0]).

%% A variant by its name in results, a whole number, or a text: a number with its digits and unit,
%% or the name of something. Of a pair the second is said right after the first: between them is no
%% other number, and no comma.
-type part() :: one() | {one(), one()}.
-type one() :: atom() | integer() | string().

%% @doc The parts that a text lacks, as whole words and numbers. A part that is expected twice has
%% to be there twice.
-spec missing([part()], unicode:chardata()) -> [part()].
missing(Parts, Text) ->
    {Missing, _Left} = lists:foldl(fun look_for/2, {[], unicode:characters_to_list(Text)}, Parts),
    lists:reverse(Missing).

%% What was found is not found again.
look_for(Part, {Missing, Text}) ->
    case re:split(Text, pattern(Part), [unicode, {return, list}, {parts, 2}]) of
        [Before, After] -> {Missing, Before ++ "|" ++ After};
        [_] -> {[Part | Missing], Text}
    end.

pattern({One, Other}) ->
    unicode:characters_to_binary([alone(One), "[^0-9,;]*", alone(Other)]);
pattern(Part) ->
    unicode:characters_to_binary(alone(Part)).

alone(Part) ->
    ["(?<![\\w.])\\Q", name(Part), "\\E(?!\\w|[.][0-9])"].

name(Variant) when is_atom(Variant) -> weft_report_words:variant(atom_to_binary(Variant));
name(Number) when is_integer(Number) -> integer_to_list(Number);
name(Text) -> Text.
