%% SPDX-License-Identifier: Apache-2.0
%% @doc What values of the configuration may be: the checks that several keys share. Each answers
%% whether a value is correct, or makes a function that does.
-module(weft_value).

-export([one_of/1, between/2, between_or/3, is_any/1, is_text/1, is_atoms/1]).

-spec one_of([atom()]) -> fun((term()) -> boolean()).
one_of(Allowed) ->
    fun(Value) -> lists:member(Value, Allowed) end.

-spec between(integer(), integer()) -> fun((term()) -> boolean()).
between(Min, Max) ->
    fun(Value) -> is_integer(Value) andalso Value >= Min andalso Value =< Max end.

%% @doc The same, or that one atom.
-spec between_or(atom(), integer(), integer()) -> fun((term()) -> boolean()).
between_or(Word, Min, Max) ->
    IsBetween = between(Min, Max),
    fun(Value) -> Value =:= Word orelse IsBetween(Value) end.

%% @doc For keys that are checked elsewhere.
-spec is_any(term()) -> true.
is_any(_Value) -> true.

%% @doc A text of 1 to 255 bytes?
-spec is_text(term()) -> boolean().
is_text(Value) ->
    try unicode:characters_to_binary(Value) of
        Bin when is_binary(Bin) -> byte_size(Bin) >= 1 andalso byte_size(Bin) =< 255;
        _ -> false
    catch
        error:_ -> false
    end.

-spec is_atoms(term()) -> boolean().
is_atoms(List) when length(List) >= 0 -> lists:all(fun is_atom/1, List); % no improper list
is_atoms(_) -> false.
