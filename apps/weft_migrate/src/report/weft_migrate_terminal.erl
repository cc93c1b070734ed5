%% SPDX-License-Identifier: Apache-2.0
%% @doc The report of a scan as text: what was found, by kind, with the places, why it matters and
%% what to do. Pure.
-module(weft_migrate_terminal).

-export([report/1, by_kind/1, plural/2]).

-spec report(weft_migrate:report()) -> unicode:chardata().
report(#{files := Files, findings := Findings, failed := Failed}) ->
    [[kind(Kind) || Kind <- by_kind(Findings)],
     [["cannot read ", File, ": ", Reason, $\n] || {File, Reason} <- Failed],
     lists:join(", ", [plural(Files, "file"), plural(count(warning, Findings), "warning"),
                       plural(count(note, Findings), "note")]), $\n].

%% @doc 1 file, 2 files.
-spec plural(non_neg_integer(), string()) -> string().
plural(1, Word) -> "1 " ++ Word;
plural(Count, Word) -> lists:concat([Count, " ", Word, "s"]).

count(Level, Findings) ->
    length([Id || #{id := Id} <- Findings,
                  maps:get(level, weft_migrate_catalogue:entry(Id)) =:= Level]).

%% @doc What was found of each kind, warnings first; kinds of which nothing was found are left out.
-spec by_kind([weft_migrate_scan:finding()]) ->
          [{weft_migrate_catalogue:entry(), [weft_migrate_scan:finding(), ...]}].
by_kind(Findings) ->
    Kinds = [{Entry, [Finding || #{id := Of} = Finding <- Findings, Of =:= Id]}
             || #{id := Id} = Entry <- weft_migrate_catalogue:all()],
    {Warnings, Notes} = lists:partition(fun({#{level := Level}, _}) -> Level =:= warning end,
                                        Kinds),
    [Kind || {_, [_ | _]} = Kind <- Warnings ++ Notes].

kind({#{level := Level, title := Title, why := Why, cost := Cost, todo := Todo}, Findings}) ->
    [io_lib:format("~ts: ~ts (~w)~n", [Level, Title, length(Findings)]),
     ["  why   ", Why, "\n  cost  ", Cost, "\n  do    ", Todo, $\n],
     [place(Finding) || Finding <- Findings], $\n].

place(#{file := File, line := Line, column := Column, text := Text} = Finding) ->
    Note = case Finding of #{note := Said} -> ["  (", Said, ")"]; #{} -> "" end,
    io_lib:format("  ~ts:~w:~w  ~ts~ts~n",
                  [File, Line, Column, string:slice(Text, 0, 70), Note]).
