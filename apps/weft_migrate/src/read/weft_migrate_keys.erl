%% SPDX-License-Identifier: Apache-2.0
%% @doc `{global, Word}' as a key of a table: that names no process. A source that has such a key in
%% a call of ets means the same by it elsewhere, where it is passed on.
-module(weft_migrate_keys).

-export([of_tables/1]).

%% @doc The words.
-spec of_tables([weft_migrate_tree:site()]) -> [atom()].
of_tables(Sites) ->
    lists:usort([Word || #{node := Node, path := Path} <- Sites, {ok, Word} <- [word(Node)],
                         is_key(Node, Path)]).

word(Node) ->
    case erl_syntax:type(Node) =:= tuple andalso erl_syntax:tuple_elements(Node) of
        [First, Second] ->
            case weft_migrate_tree:atom(First) of
                {ok, global} -> weft_migrate_tree:atom(Second);
                _ -> error
            end;
        _ ->
            error
    end.

%% ets:lookup(Table, Key), ets:insert(Table, {Key, Value}) or a list of such tuples.
is_key(Node, [Parent | Above]) ->
    case weft_migrate_tree:call(Parent) of
        {ok, #{module := ets, arguments := [_, Node | _]}} -> true;
        _ ->
            erl_syntax:type(Parent) =:= tuple
                andalso hd(erl_syntax:tuple_elements(Parent)) =:= Node andalso is_row(Above)
    end;
is_key(_, []) ->
    false.

is_row([Parent | Above]) ->
    case {weft_migrate_tree:call(Parent), erl_syntax:type(Parent)} of
        {{ok, #{module := ets}}, _} -> true;
        {_, list} -> is_row(Above);
        _ -> false
    end;
is_row([]) ->
    false.
