%% SPDX-License-Identifier: Apache-2.0
%% @doc What was rewritten and what was left, as text: the differences, then the places that are
%% for people. Pure.
-module(weft_migrate_changes).

-export([report/2, json/1]).

-spec report(weft_migrate:rewritten(), IsWritten :: boolean()) -> unicode:chardata().
report(#{files := Files, results := Results, failed := Failed}, IsWritten) ->
    [[weft_migrate_diff:unified(readable(File), readable(Before), readable(After))
      || not IsWritten, #{file := File, before := Before, bytes := After} <- Results],
     ["\n" || not IsWritten, rewritten(Results) =/= []],
     [["written ", readable(File), $\n] || IsWritten, #{file := File, before := Before,
                                                       bytes := After} <- Results,
                                           Before =/= After],
     [left(File, Left) || #{file := File, left := Left} <- Results],
     [["not changed: ", readable(File), ": ", Reason, $\n] || {File, Reason} <- Failed],
     warnings(Results),
     weft_migrate_terminal:plural(Files, "file"), ": ",
     weft_migrate_terminal:plural(length(rewritten(Results)), "place"),
     case IsWritten of
         true -> " rewritten, ";
         false -> " would be rewritten (--write does it), "
     end, integer_to_list(length(left(Results))), " left\n"].

rewritten(Results) -> lists:append([Changes || #{rewritten := Changes} <- Results]).

left(Results) -> lists:append([Changes || #{left := Changes} <- Results]).

left(File, Changes) ->
    [io_lib:format("left ~ts:~w:~w  ~ts~n     ~ts: ~ts~n",
                   [readable(File), Line, Column, string:slice(Text, 0, 70), Rule, Reason])
     || #{rule := Rule, line := Line, column := Column, text := Text, reason := Reason} <- Changes].

%% What is known here is not known there.
warnings(Results) ->
    Held = [Change || #{held := true} = Change <- left(Results)],
    Apart = [Rule || Rule <- [global, pg, pg2], has(Rule, rewritten(Results)),
                     has(Rule, left(Results))],
    [[atom_to_list(Rule), " knows nothing of what is registered with weft: change by hand what is "
      "left of it, if it is about the same names, locks or groups\n"] || Rule <- Apart]
        ++ ["a name, a lock, a scope or a group moves with all its places, or not at all: change "
            "by hand what keeps it, or rewrite what can be with --partial\n" || Held =/= []].

has(Rule, Changes) -> lists:any(fun(#{rule := Of}) -> Of =:= Rule end, Changes).

readable(Bytes) when is_binary(Bytes) ->
    case unicode:characters_to_binary(Bytes) of
        Text when is_binary(Text) -> Text;
        _NoUtf8 -> unicode:characters_to_binary(Bytes, latin1)
    end;
readable(File) -> File.

%% @doc Edits: the bytes of the old text that are others now, and how many there are now. All bytes
%% beside them are the same.
-spec json(weft_migrate:rewritten()) -> weft_json:json().
json(#{files := Files, results := Results, failed := Failed}) ->
    #{files => Files,
      results => [#{file => binary(File), rewritten => [change(Change) || Change <- Rewritten],
                    left => [change(Change) || Change <- Left],
                    edits => [#{byte => Byte, size => Size, new_size => byte_size(New)}
                              || {Byte, Size, New} <- Edits]}
                  || #{file := File, rewritten := Rewritten, left := Left, edits := Edits}
                         <- Results],
      failed => [#{file => binary(File), reason => binary(Reason)} || {File, Reason} <- Failed]}.

change(Change) ->
    maps:map(fun(reason, Reason) -> binary(Reason);
                (_, Value) -> Value
             end, Change).

binary(Text) -> unicode:characters_to_binary(Text).
