%% SPDX-License-Identifier: Apache-2.0
%% @doc Where in the bytes of a form a word, a call, its arguments or a pattern is.
%%
%% The tokens are asked, as a tree has no closing brackets. What is found must agree with the tree:
%% a call with another number of arguments is not the one that was meant.
-module(weft_migrate_range).

-export([word/2, call/2, until/3, names/1]).
-export_type([range/0, call/0]).

-type range() :: {Byte :: non_neg_integer(), Size :: non_neg_integer()}.
%% End: the byte behind the closing parenthesis.
-type call() :: #{module := range(), function := range(), arguments := [range()],
                  from := non_neg_integer(), to := non_neg_integer(), tokens := [pos_integer()]}.

%% @doc The token at a place.
-spec word(weft_migrate_source:form(), erl_anno:location()) -> {ok, range()} | error.
word(#{tokens := Tokens}, At) ->
    case lists:keyfind(At, 3, Tokens) of
        {_, _, _, Byte, Size} -> {ok, {Byte, Size}};
        false -> error
    end.

%% @doc The call Module:Function(...) whose module is at this place. `tokens': how many tokens each
%% argument has.
-spec call(weft_migrate_source:form(), weft_migrate_tree:call()) -> {ok, call()} | error.
call(#{tokens := Tokens}, #{at := At, arguments := Trees}) ->
    case lists:dropwhile(fun({_, _, Place, _, _}) -> Place =/= At end, Tokens) of
        [{atom, _, _, From, Size}, {':', _, _, _, _}, {atom, _, _, Byte, FunctionSize},
         {'(', _, _, _, _} | Rest] ->
            case arguments(Rest) of
                {Arguments, To} when length(Arguments) =:= length(Trees) ->
                    {ok, #{module => {From, Size}, function => {Byte, FunctionSize},
                           arguments => [range(Argument) || Argument <- Arguments],
                           tokens => [length(Argument) || Argument <- Arguments],
                           from => From, to => To}};
                _ -> error
            end;
        _ -> error
    end.

%% @doc From the token at a place to the one before the first of these words outside of brackets.
-spec until(weft_migrate_source:form(), erl_anno:location(), [atom()]) -> {ok, range()} | error.
until(#{tokens := Tokens}, At, Words) ->
    case split(lists:dropwhile(fun({_, _, Place, _, _}) -> Place =/= At end, Tokens), Words, 0,
               []) of
        {[_ | _] = Found, [_ | _]} -> {ok, range(Found)};
        _ -> error
    end.

%% @doc The variables of a form.
-spec names(weft_migrate_source:form()) -> [atom()].
names(#{tokens := Tokens}) ->
    lists:usort([Name || {var, Name, _, _, _} <- Tokens]).

range([{_, _, _, Byte, _} | _] = Tokens) ->
    {_, _, _, Last, Size} = lists:last(Tokens),
    {Byte, Last + Size - Byte}.

arguments([{')', _, _, Byte, Size} | _]) ->
    {[], Byte + Size};
arguments(Tokens) ->
    case split(Tokens, [',', ')'], 0, []) of
        {[_ | _] = Argument, [{')', _, _, Byte, Size} | _]} ->
            {[Argument], Byte + Size};
        {[_ | _] = Argument, [{',', _, _, _, _} | Rest]} ->
            case arguments(Rest) of
                {[_ | _] = Others, To} -> {[Argument | Others], To};
                _ -> error
            end;
        _ ->
            error
    end.

%% Depth counts brackets and words that go with `end'.
split([], _Words, _Depth, _Before) ->
    error;
%% It was in parentheses that begin before it.
split(_Tokens, _Words, Depth, _Before) when Depth < 0 ->
    error;
split([{Category, _, _, _, _} = Token | Rest] = Tokens, Words, Depth, Before) ->
    case Depth =:= 0 andalso lists:member(Category, Words) of
        true -> {lists:reverse(Before), Tokens};
        false -> split(Rest, Words, Depth + change(Category, Rest), [Token | Before])
    end.

change(Category, Rest) ->
    case lists:member(Category, ['(', '[', '{', '<<', 'begin', 'case', 'if', 'receive', 'try',
                                 'maybe']) orelse Category =:= 'fun' andalso is_block(Rest) of
        true -> 1;
        false ->
            case lists:member(Category, [')', ']', '}', '>>', 'end']) of
                true -> -1;
                false -> 0
            end
    end.

%% fun(X) -> ... end and fun Name(X) -> ... end, but not fun name/1.
is_block([{'(', _, _, _, _} | _]) -> true;
is_block([{var, _, _, _, _}, {'(', _, _, _, _} | _]) -> true;
is_block(_) -> false.
