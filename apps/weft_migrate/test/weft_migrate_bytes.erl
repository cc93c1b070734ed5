%% SPDX-License-Identifier: Apache-2.0
%% @doc Does a source that was rewritten differ only where the result says so? Byte by byte: what is
%% outside of its edits is the same, and each edit is inside of a form with a rewritten place.
-module(weft_migrate_bytes).

-export([problems/1]).

-spec problems(weft_migrate_rewrite:result()) -> [string()].
problems(#{file := File, before := Before, bytes := After, edits := Edits} = Result) ->
    [text("~ts: bytes differ outside of its edits", [File])
     || not is_same(Before, After, lists:sort(Edits), 0)]
        ++ [text("~ts: bytes ~w to ~w are edited, and no place there is said to be rewritten",
                 [File, Byte, Byte + Size])
            || {Byte, Size, _} <- outside(Edits, forms(Result))].

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).

is_same(Before, After, [], _At) ->
    Before =:= After;
is_same(Before, After, [{Byte, Size, New} | Edits], At) ->
    Kept = Byte - At,
    NewSize = byte_size(New),
    case {Before, After} of
        {<<Same:Kept/binary, _:Size/binary, Old/binary>>,
         <<Same:Kept/binary, New:NewSize/binary, Now/binary>>} ->
            is_same(Old, Now, Edits, Byte + Size);
        _ ->
            false
    end.

outside(Edits, Forms) ->
    [Edit || {Byte, Size, _} = Edit <- Edits,
             not lists:any(fun({From, To}) -> Byte >= From andalso Byte + Size =< To end, Forms)].

forms(#{file := File, before := Before, rewritten := Rewritten}) ->
    #{forms := Forms} = weft_migrate_source:of_bytes(File, Before),
    Places = [{Line, Column} || #{line := Line, column := Column} <- Rewritten],
    [{Byte, Byte + Size} || #{byte := Byte, size := Size, tokens := Tokens} <- Forms,
                            lists:any(fun({_, _, At, _, _}) -> lists:member(At, Places) end,
                                      Tokens)].
