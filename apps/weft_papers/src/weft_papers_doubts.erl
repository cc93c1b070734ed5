%% SPDX-License-Identifier: Apache-2.0
%% @doc What is known of a run and not in its numbers, as that it was measured in another way than
%% the text of a figure says today. It is in `doubts.csv' of the directory of the run, which
%% somebody writes by hand: a line of column names, then one line for each doubt.
%%
%% ```
%% about   which findings it is about: `all', `none' (it is told, and decides nothing), or words
%%         that these findings have in their texts
%% doubt   a sentence
%% '''
%% What it is about is open, whatever the numbers say.
-module(weft_papers_doubts).

-export([read/1, findings/2, texts/1]).
-export_type([doubt/0]).

-type doubt() :: {About :: binary(), Text :: binary()}.

-define(FILE_NAME, "doubts.csv").
-define(COLUMNS, [<<"about">>, <<"doubt">>]).

%% @doc The doubts about the run in a directory; most runs have none. The error is a text that names
%% the file.
-spec read(Dir :: file:filename()) -> {ok, [doubt()]} | {error, string()}.
read(Dir) ->
    File = filename:join(Dir, ?FILE_NAME),
    case file:read_file(File) of
        {ok, Text} -> doubts(File, weft_report_csv:parse(Text));
        {error, enoent} -> {ok, []};
        {error, Reason} -> wrong(File, file:format_error(Reason))
    end.

doubts(File, [?COLUMNS | Lines]) ->
    case [Number || {Number, Line} <- lists:zip(lists:seq(2, length(Lines) + 1), Lines),
                    not is_doubt(Line)] of
        [] -> {ok, [{About, Text} || [About, Text] <- Lines]};
        [Number | _] -> wrong(File, io_lib:format("record ~b: expected two fields, neither of them "
                                                  "empty", [Number]))
    end;
doubts(File, _Lines) ->
    wrong(File, "the first line is not about,doubt").

is_doubt([<<_, _/binary>>, <<_, _/binary>>]) -> true;
is_doubt(_Fields) -> false.

wrong(File, Text) -> {error, lists:flatten(io_lib:format("~ts: ~ts", [File, Text]))}.

%% @doc The findings, of which those that are doubted are open.
-spec findings([weft_papers_verdict:finding()], [doubt()]) -> [weft_papers_verdict:finding()].
findings(Findings, Doubts) ->
    [case lists:any(fun({About, _}) -> is_about(About, Text) end, Doubts) of
         true -> {open, Text};
         false -> {Verdict, Text}
     end || {Verdict, Text} <- Findings].

is_about(<<"all">>, _Text) -> true;
is_about(<<"none">>, _Text) -> false;
is_about(Words, Text) -> string:find(unicode:characters_to_binary(Text), Words) =/= nomatch.

%% @doc What is told of them.
-spec texts([doubt()]) -> [unicode:chardata()].
texts(Doubts) -> [Text || {_About, Text} <- Doubts].
