%% SPDX-License-Identifier: Apache-2.0
%% @doc Figures of papers for documents: `bin/bench figures DIR' reads the results that were
%% measured (DIR/ID/results.csv for the figure ID, or that of another one with the same cells) and
%% what is known of them besides (DIR/ID/doubts.csv, `weft_papers_doubts'), and writes DIR/ID.svg
%% with the charts of each figure, and DIR/README.md with what is claimed and what was found.
%% docs/benchmarks/paper is made so.
-module(weft_papers_document).

-export([command/0, main/1]).

%% @doc Exit status: 0 written, 2 there are no results, or they can not be read.
-spec main([string()]) -> 0 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench figures").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "a page and pictures of figures that were measured before",
      arguments => [#{name => dir, help => "where that of each figure is"},
                    #{name => terminal, long => "-terminal", type => boolean, help => hidden}],
      handler => fun(#{dir := Dir}) -> made(Dir) end}.

made(Dir) ->
    case [{Figure, Run} || Figure <- weft_papers_figures:figures(),
                           Run <- weft_papers_figures:recorded(Figure, Dir)] of
        [] -> failed(["no results of figures in ", Dir]);
        Figures ->
            case [Why || {_, Run} <- Figures, {error, Why} <- [weft_papers_run:results(Run)]] of
                [] -> written(Figures, Dir);
                [Why | _] -> failed(Why)
            end
    end.

failed(Why) ->
    io:format(standard_error, "~ts~n", [Why]),
    2.

written(Figures, Dir) ->
    [ok = weft_report_file:write(filename:join(Dir, Id ++ ".svg"),
                                 weft_report_picture:svg(Where, Charts))
     || {#{id := Id, where := Where} = Figure, Run} <- Figures,
        [_ | _] = Charts <- [weft_papers_figures:charts(Figure, Run)]],
    File = filename:join(Dir, "README.md"),
    ok = weft_report_file:write(File, unicode:characters_to_binary(document(Figures))),
    io:format("~ts, and a picture of each figure beside it~n", [File]),
    0.

document(Figures) ->
    ["# Figures of papers\n\n"
     "What papers claim, measured again on one machine: *agrees* and *differs* are about the\n"
     "claim. *open* is beside it, or so near that more repetitions may decide it: the interval of\n"
     "the ratio, in brackets, contains what is claimed. With one repetition there is none, and\n"
     "the ratio decides. A *doubt* is what is known of a run and not in its numbers; what it is\n"
     "about is open, unless it does not depend on that. Values are medians of repetitions;\n"
     "whiskers are the smallest and the largest, those of a ratio its interval. Marks without a\n"
     "line are what the text of a paper says; its pictures are not read. This page and its\n"
     "pictures are made of the numbers in the directory of each figure, by\n"
     "`bin/bench figures DIR`; `bin/bench report DIR/FIGURE` makes a page with all of them.\n",
     [section(Figure, Run) || {Figure, Run} <- Figures]].

section(#{id := Id, where := Where} = Figure, Run) ->
    Dir = weft_papers_run:name(Run),
    ["\n## ", Id, "\n", escaped(Where), ": `bin/bench paper ", Id, "`.\n\n| | |\n|---|---|\n",
     [row(Head, Text) || {Head, Text} <- weft_papers_figures:told(Figure, Run)], "\n",
     [["![", escaped(Where), "](", Id, ".svg)\n\n"]
      || weft_papers_figures:charts(Figure, Run) =/= []],
     "[results.csv](", Dir, "/results.csv), [environment.csv](", Dir, "/environment.csv)\n"].

row(not_shown, Text) -> row("not shown here", Text);
row(Head, Text) when is_atom(Head) -> row(atom_to_list(Head), Text);
row(Head, Text) -> ["| ", Head, " | ", escaped(Text), " |\n"].

%% What would be a column or a tag.
escaped(Text) ->
    [case Char of
         $| -> "\\|";
         $< -> "&lt;";
         $* -> "\\*";
         _ -> Char
     end || Char <- unicode:characters_to_list(Text)].
