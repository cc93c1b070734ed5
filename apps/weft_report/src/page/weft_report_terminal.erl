%% SPDX-License-Identifier: Apache-2.0
%% @doc A run as text of at most 100 columns, and tables in general: columns as wide as what is in
%% them, but for the first one, which gets what is left and is broken into lines. Signs beyond ASCII
%% are written with letters, as not every terminal and log has them.
-module(weft_report_terminal).

-export([summary/2, table/3, ascii/1]).

-define(COLUMNS, 100).
-define(GAP, "  ").
-define(FIRST_MIN, 20).
-define(LOSSES_SHOWN, 10).
-define(MEANING, "\ninterval: in 95 of 100 runs it has the ratio of very many repetitions; noise: "
                 "it has 1, which\nis no difference; what was measured once has no interval\n\n").
%% Runs with more numbers are for the report.
-define(LINES_MAX, 250).

%% @doc What makes the numbers doubtful, those that say most, the verdict on each target, and where
%% weft is furthest behind.
-spec summary(weft_report_results:results(), weft_report_warnings:environment()) ->
          unicode:chardata().
summary(Results, Environment) ->
    Verdicts = weft_report_verdict:all(Results),
    [warnings(weft_report_warnings:all(Results, Environment)), cells(Results), ?MEANING,
     verdicts(Verdicts, weft_report_verdict:counts(Verdicts)),
     losses(weft_report_verdict:losses(Results))].

warnings(Texts) ->
    [["\n" || Texts =/= []], [["warning: ", ascii(Text), "\n"] || Text <- Texts]].

%% A run for something else tells nothing of the targets, and others have what they measured.
verdicts(_Verdicts, #{met := 0, missed := 0, within_noise := 0}) ->
    [];
verdicts(Verdicts, #{met := Met, missed := Missed, within_noise := Noise,
                     not_measured := Unmeasured}) ->
    [table(["target", "promised", "measured", "interval", "cells", "verdict"],
           [left, right, right, right, right, left],
           [verdict_row(Judged) || #{verdict := Verdict} = Judged <- Verdicts,
                                 Verdict =/= not_measured]),
     io_lib:format("~n~b targets met, ~b missed, ~b within noise of the target, ~b not measured~n",
                   [Met, Missed, Noise, Unmeasured])].

%% The numbers that say most, under a heading for each cell.
cells(Results) ->
    Found = [{heading(Cell, Results), cell_row(Cell, Variant, Metric, Measured, Results)}
             || {_, Workload, _, _, _, _} = Cell <- weft_report_results:cells(Results),
                Metric <- weft_report_results:headline_metrics(Workload),
                Variant <- weft_report_results:variants(Cell, Results),
                {ok, Measured} <- [weft_report_results:measured(Cell, Variant, Metric, Results)]],
    case length(Found) =< ?LINES_MAX of
        true -> under_headings(Found);
        false -> io_lib:format("~n~b numbers: see the report~n", [length(Found)])
    end.

under_headings(Found) ->
    {Headings, Rows} = lists:unzip(Found),
    [Head | Lines] = table(["  variant", "metric", "median", "spread", "x stock", "interval", ""],
                           [left, left, right, right, right, right, left], Rows),
    ["\n", Head | [[unless_same(Heading, Before), Line]
                   || {Heading, Before, Line} <- lists:zip3(Headings, before(Headings), Lines)]].

before([]) -> [];
before(Headings) -> [none | lists:droplast(Headings)].

heading(Cell, Results) ->
    Shared = weft_report_words:sharing(weft_report_results:sharing([Cell], Results)),
    lists:flatten([ascii(weft_report_words:cell(Cell)), [[", ", Shared] || Shared =/= []], "\n"]).

unless_same(Heading, Heading) -> "";
unless_same(Heading, _Before) -> Heading.

cell_row(Cell, Variant, Metric, #{median := Median, low := Low, high := High}, Results) ->
    Unit = weft_report_words:unit(Metric),
    [["  ", weft_report_words:variant(Variant)], weft_report_words:metric(Metric),
     weft_report_words:value(Median, Unit), weft_report_words:range(Low, High, Unit)
     | case weft_report_results:against_stock({Cell, Variant, Metric}, Results) of
           {ok, Ratio} -> ratio(Ratio);
           none -> ["", "", ""]
       end].

ratio(#{median := Median, interval := Interval}) ->
    [weft_report_words:ratio(Median), weft_report_words:interval(Interval), noise(Interval)].

%% A table has no room for more.
noise(Interval) ->
    ["noise" || weft_report_interval:contains(1, Interval)].

verdict_row(#{target := #{text := Text} = Target, verdict := Verdict, checks := Checks,
              worst := Worst}) ->
    {Promised, Measured, Interval} = worst(Worst, Target),
    [Text, Promised, Measured, Interval,
     io_lib:format("~b/~b", [length([x || #{verdict := met} <- Checks]), length(Checks)]),
     shout(Verdict, Worst)].

shout(missed, Worst) ->
    string:replace(weft_report_words:verdict(missed, Worst), "missed", "MISSED");
shout(within_noise, _Worst) -> "within noise";
shout(Verdict, Worst) -> weft_report_words:verdict(Verdict, Worst).

worst(#{result := {failed, _}, threshold := Threshold}, Target) ->
    {weft_report_words:promised(Threshold, Target), "failed", ""};
worst(#{result := Result, threshold := Threshold}, Target) ->
    {Measured, Interval} = weft_report_words:result(Result, Target),
    {weft_report_words:promised(Threshold, Target), Measured, Interval}.

losses([]) ->
    "weft is behind the stock carrier nowhere in what was measured\n";
losses(Losses) ->
    Shown = lists:sublist(Losses, ?LOSSES_SHOWN),
    Noisy = [x || #{ratio := #{interval := Interval}} <- Losses,
                  weft_report_interval:contains(1, Interval)],
    [io_lib:format("~nweft is behind the stock carrier in ~b numbers, ~b of them within noise; "
                   "most in~n", [length(Losses), length(Noisy)]),
     table(["cell", "variant", "metric", "share", "interval", ""],
           [left, left, left, right, right, left],
           [[weft_report_words:cell(Cell), weft_report_words:variant(Variant),
             weft_report_words:metric(Metric) | ratio(Ratio)]
            || #{cell := Cell, variant := Variant, metric := Metric, ratio := Ratio} <- Shown])].

%% @doc Lines of at most 100 columns, unless the other columns leave too little for the first one;
%% an element for the heads and one for each row.
-spec table([unicode:chardata()], [left | right], [[unicode:chardata()]]) ->
          [unicode:chardata()].
table(Heads, [left | Sides], Rows) ->
    [HeadRow | Plain] = [[ascii(Cell) || Cell <- Row] || Row <- [Heads | Rows]],
    Widths = lists:foldl(fun widest/2, [0 || _ <- Sides], [tl(Row) || Row <- [HeadRow | Plain]]),
    Others = lists:sum([length(?GAP) + Width || Width <- Widths]),
    Longest = lists:max([length(First) || [First | _] <- [HeadRow | Plain]]),
    FirstWidth = min(Longest, max(?FIRST_MIN, ?COLUMNS - Others)),
    [lines(Row, FirstWidth, Sides, Widths) || Row <- [HeadRow | Plain]].

widest(Row, Widths) ->
    [max(length(Text), Width) || {Text, Width} <- lists:zip(Row, Widths)].

lines([First | Rest], FirstWidth, Sides, Widths) ->
    [Line | More] = broken(First, FirstWidth),
    Padded = [string:pad(Line, FirstWidth)
              | [string:pad(Text, Width, pad(Side))
                 || {Text, Side, Width} <- lists:zip3(Rest, Sides, Widths)]],
    [string:trim(lists:flatten(lists:join(?GAP, Padded)), trailing), "\n",
     [["  ", Next, "\n"] || Next <- More]].

pad(left) -> trailing;
pad(right) -> leading.

%% Lines of at most Width, further ones two less; a word that is longer stands alone.
broken(Text, Width) when length(Text) =< Width ->
    [Text];
broken(Text, Width) ->
    [First | Words] = string:lexemes(Text, " "),
    {Lines, Last} = lists:foldl(fun(Word, {Done, Line}) ->
                                    case length(Line) + 1 + length(Word) =< room(Done, Width) of
                                        true -> {Done, Line ++ " " ++ Word};
                                        false -> {[Line | Done], Word}
                                    end
                                end, {[], First}, Words),
    lists:reverse([Last | Lines]).

room([], Width) -> Width;
room(_Done, Width) -> Width - 2.

%% @doc Text without signs beyond ASCII.
-spec ascii(unicode:chardata()) -> string().
ascii(Text) ->
    lists:flatten([sign(Char) || Char <- unicode:characters_to_list(Text)]).

sign(16#2265) -> ">=";
sign(16#2264) -> "<=";
sign(16#d7) -> "x";
sign(16#2013) -> "-";
sign(16#b5) -> "u";
sign(Char) when Char < 128 -> Char;
sign(_Other) -> "?".
