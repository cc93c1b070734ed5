%% SPDX-License-Identifier: Apache-2.0
%% @doc Two texts as a unified diff, with three lines around what differs.
%%
%% Rewriting changes few lines in place, so lines are compared from both ends of what differs, and
%% where the texts have the same number of lines, line by line. Pure.
-module(weft_migrate_diff).

-export([unified/3]).

-define(AROUND, 3).

-spec unified(file:filename_all(), Before :: binary(), After :: binary()) -> unicode:chardata().
unified(_File, Same, Same) ->
    [];
unified(File, Before, After) ->
    Hunks = hunks(marked(lines(Before), lines(After))),
    ["--- ", File, "\n+++ ", File, "\n" | [hunk(Hunk) || Hunk <- Hunks]].

lines(Bytes) ->
    Lines = binary:split(Bytes, <<"\n">>, [global]),
    case lists:last(Lines) of
        <<>> -> lists:droplast(Lines);
        Last -> lists:droplast(Lines) ++ [<<Last/binary, "\n\\ No newline at end of file">>]
    end.

%% Each line with its mark: same, removed, added.
marked(Before, After) when length(Before) =:= length(After) ->
    lists:append([case {Old, New} of
                      {Same, Same} -> [{same, Same}];
                      _ -> [{removed, Old}, {added, New}]
                  end || {Old, New} <- lists:zip(Before, After)]);
marked(Before, After) ->
    {Head, Before1, After1} = common(Before, After, []),
    {Tail, Before2, After2} = common(lists:reverse(Before1), lists:reverse(After1), []),
    [{same, Line} || Line <- lists:reverse(Head)]
        ++ [{removed, Line} || Line <- lists:reverse(Before2)]
        ++ [{added, Line} || Line <- lists:reverse(After2)]
        ++ [{same, Line} || Line <- Tail].

common([Line | Before], [Line | After], Found) -> common(Before, After, [Line | Found]);
common(Before, After, Found) -> {Found, Before, After}.

%% Runs of changes, with the lines around them, each with the line numbers that it begins with.
hunks(Marked) ->
    Numbered = numbered(Marked, 1, 1),
    Changed = [Index || {Index, {Mark, _, _, _}} <- Numbered, Mark =/= same],
    [[Line || {Index, Line} <- Numbered, Index >= From - ?AROUND, Index =< To + ?AROUND]
     || {From, To} <- runs(Changed)].

numbered(Marked, Old, New) ->
    {Numbered, _} = lists:mapfoldl(
                      fun({same, Text}, {O, N}) -> {{same, Text, O, N}, {O + 1, N + 1}};
                         ({removed, Text}, {O, N}) -> {{removed, Text, O, N}, {O + 1, N}};
                         ({added, Text}, {O, N}) -> {{added, Text, O, N}, {O, N + 1}}
                      end, {Old, New}, Marked),
    lists:zip(lists:seq(1, length(Numbered)), Numbered).

runs([First | Rest]) -> runs(Rest, First, First).

runs([Index | Rest], From, To) when Index =< To + 2 * ?AROUND -> runs(Rest, From, Index);
runs([Index | Rest], From, To) -> [{From, To} | runs(Rest, Index, Index)];
runs([], From, To) -> [{From, To}].

hunk([{_, _, Old, New} | _] = Lines) ->
    [io_lib:format("@@ -~w,~w +~w,~w @@~n", [Old, count(removed, Lines), New, count(added, Lines)]),
     [[mark(Mark), Text, $\n] || {Mark, Text, _, _} <- Lines]].

count(Kind, Lines) ->
    length([Mark || {Mark, _, _, _} <- Lines, Mark =:= Kind orelse Mark =:= same]).

mark(same) -> " ";
mark(removed) -> "-";
mark(added) -> "+".
