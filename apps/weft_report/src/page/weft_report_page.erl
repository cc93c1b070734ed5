%% SPDX-License-Identifier: Apache-2.0
%% @doc The report of a run: one HTML file beside its CSV files, which needs no network, and a
%% summary for the terminal.
%%
%% It shows wins and losses alike: first the verdict on each target with its worst cell, then all in
%% which weft was slower than the stock carrier, then charts, all numbers, and the environment.
-module(weft_report_page).

-export([command/0, main/1, write/1, file/1]).

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).

%% @doc From the command line: writes the report and prints the summary, or writes each group of its
%% charts as a picture, for documents. The exit status: 0, or 2 if there is no run to be read.
-spec main([string()]) -> 0 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench report").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "the report of a run again, or its charts as SVG",
      arguments => [#{name => dir, help => "directory of a run"},
                    #{name => pictures, long => "-pictures", type => boolean,
                      help => "instead of a page, a picture of each group of charts"},
                    #{name => terminal, long => "-terminal", type => boolean, help => hidden}],
      handler => fun made/1}.

made(#{dir := Dir, pictures := true}) ->
    case weft_report_record:read(Dir) of
        {ok, Rows} ->
            Groups = weft_report_plots:all(weft_report_results:new(Rows)),
            lists:foreach(fun(Group) -> picture(Dir, Group) end, Groups),
            0;
        {error, Text} ->
            failed(Text)
    end;
made(#{dir := Dir}) ->
    case write(Dir) of
        {ok, Results, Environment} ->
            io:put_chars(weft_report_terminal:summary(Results, Environment)),
            io:format("~nreport: ~ts~n", [file(Dir)]),
            0;
        {error, Text} ->
            failed(Text)
    end.

failed(Text) ->
    io:format(standard_error, "~ts~n", [Text]),
    2.

%% Throughput against stock: throughput_against_stock.svg.
picture(Dir, {Title, _Explanation, Charts}) ->
    Words = string:lexemes(string:lowercase(Title), " :"),
    File = filename:join(Dir, lists:append(lists:join("_", Words)) ++ ".svg"),
    ok = weft_report_file:write(File, weft_report_picture:svg(Title, Charts)),
    io:format("~ts~n", [File]).

%% @doc Where the report is.
-spec file(Dir :: file:filename()) -> file:filename().
file(Dir) -> filename:join(Dir, "report.html").

%% @doc Reads a run, and writes its report and the ratios in it. The error is a text.
-spec write(Dir :: file:filename()) ->
          {ok, weft_report_results:results(), weft_report_warnings:environment()}
              | {error, string()}.
write(Dir) ->
    case {weft_report_record:read(Dir), weft_report_record:read_environment(Dir)} of
        {{ok, Rows}, {ok, Environment}} ->
            Results = weft_report_results:new(Rows),
            case written([{file(Dir), page(Results, Environment)},
                          {weft_report_ratios:file(Dir), weft_report_ratios:lines(Results)}]) of
                ok -> {ok, Results, Environment};
                Error -> Error
            end;
        {{error, Text}, _} -> {error, Text};
        {_, {error, Text}} -> {error, Text}
    end.

written([]) ->
    ok;
written([{File, Content} | More]) ->
    case file:write_file(File, Content) of
        ok -> written(More);
        {error, Reason} -> {error, lists:flatten(io_lib:format("~ts: ~ts",
                                                               [File, file:format_error(Reason)]))}
    end.

page(Results, Environment) ->
    Verdicts = weft_report_verdict:all(Results),
    Title = ["weft benchmark ", known(<<"run">>, Environment)],
    weft_report_html:page(Title, weft_report_html:style(),
                          [header(Title, Environment),
                           warnings(weft_report_warnings:all(Results, Environment)),
                           judged(Verdicts, Results), weft_report_lanes:section(Results),
                           plots(Results), weft_report_cells:section(Results),
                           environment(Environment)]).

%% A run for something else tells nothing of the targets.
judged(Verdicts, Results) ->
    case weft_report_verdict:counts(Verdicts) of
        #{met := 0, missed := 0, within_noise := 0} -> [losses(Results)];
        Counts -> [counts(Counts), how_to_read(), verdicts(Verdicts), losses(Results)]
    end.

known(Key, Environment) ->
    maps:get(Key, Environment, <<"?">>).

section(Title, Content) ->
    ?E(section, [], [?E(h2, [], ?T(Title)), Content]).

header(Title, Environment) ->
    Words = [["commit ", known(<<"commit">>, Environment)], known(<<"date">>, Environment),
             ["OTP ", known(<<"otp_release">>, Environment)],
             [known(<<"cores">>, Environment), " cores, ", known(<<"processor">>, Environment)],
             ["congestion control ", known(<<"congestion_control">>, Environment)],
             [known(<<"scope">>, Environment), " run, ", known(<<"repetitions">>, Environment),
              " repetitions"]],
    ?E(header, [], [?E(h1, [], ?T(Title)),
                    ?E(p, [{class, "dim"}], ?T(lists:join([$\s, 16#b7, $\s], Words))),
                    ?E(p, [], ["Raw data beside this file: ", file_link("results.csv"), ", ",
                               file_link("environment.csv"), "; the ratios of this page: ",
                               file_link("ratios.csv")])]).

warnings([]) ->
    [];
warnings(Texts) ->
    section("Warnings", ?E(ul, [], [?E(li, [], ?T(Text)) || Text <- Texts])).

file_link(File) -> ?E(a, [{href, File}], ?T(File)).

counts(Counts) ->
    ?E('div', [{class, "counts"}],
       [?E(span, [{class, atom_to_list(Kind)}],
           [?E(b, [], integer_to_list(map_get(Kind, Counts))), weft_report_words:verdict(Kind)])
        || Kind <- [met, missed, within_noise, not_measured]]).

how_to_read() ->
    section("How to read this",
            ?E(ul, [], [?E(li, [], ?T(Text)) || Text <- notes()])).

notes() ->
    ["A value is the median of the repetitions, its spread the smallest and the largest of them. A "
     "ratio is that of two medians. Its interval contains, in 95 of 100 runs, the ratio that very "
     "many repetitions would have. If 1 is in it the difference is within noise, and no result. "
     "What was measured once has no interval. Of two repetitions intervals are too short: only 2 "
     "of 3 contain that ratio.",
     "A target is met if all of the interval is on the right side of the threshold, in every cell "
     "that was measured. It is missed if in one of them all of it is on the other side. Otherwise "
     "it is within noise of the target, and another run may judge differently.",
     "Small messages on the stock carrier are bistable: a system call for each message, or many in "
     "one once its socket was busy. Which state a connection is in is chance and differs by a "
     "factor of up to four. Where stock was in its fast state the target is another, marked "
     "\"fast\".",
     "Both nodes, and the load they make, share the cores of one machine. CPU per message says "
     "more about another machine than messages per second do.",
     "Large messages over loopback are bound by memory copies. A ratio above 1 there is not a "
     "promise for a network.",
     "A percentile of few calls is the longest of them."].

%% ---- verdicts ----

verdicts(Verdicts) ->
    Heads = [{"Target", "long"}, {"Promised", "number"}, {"Measured, worst cell", "number"},
             {"95 % interval", "number"}, {"Cells met", "number"}, {"Verdict", "nowrap"},
             {"Worst cell", ""}],
    section("Targets", [weft_report_html:table("Each target, judged by its worst cell", Heads,
                                               [verdict_row(Judged) || Judged <- Verdicts]),
                        [cells_of(Judged) || Judged <- Verdicts]]).

verdict_row(#{target := #{text := Text} = Target, verdict := Verdict, checks := Checks,
              worst := Worst, unmeasured := Unmeasured}) ->
    {Measured, Interval, Cell, Promised} = worst_words(Worst, Target),
    [?T(Text), ?T(Promised), ?T(Measured), ?T(Interval), ?T(cells_met(Checks, Unmeasured)),
     {?T(weft_report_words:verdict(Verdict, Worst)), atom_to_list(Verdict)}, ?T(Cell)].

worst_words(none, #{threshold := Threshold} = Target) ->
    {"", "", "", weft_report_words:promised(Threshold, Target)};
worst_words(#{cell := Cell} = Check, Target) ->
    {Measured, Interval, Promised} = check_words(Check, Target),
    {Measured, Interval, weft_report_words:cell(Cell), Promised}.

check_words(#{result := Result, threshold := Threshold, is_fast := IsFast}, Target) ->
    {Measured, Interval} = weft_report_words:result(Result, Target),
    {Measured, Interval, [weft_report_words:promised(Threshold, Target),
                        [" (fast)" || IsFast]]}.

cells_met([], Unmeasured) ->
    [io_lib:format("~b not measured", [length(Unmeasured)]) || Unmeasured =/= []];
cells_met(Checks, Unmeasured) ->
    Met = length([x || #{verdict := met} <- Checks]),
    [io_lib:format("~b of ~b", [Met, length(Checks)]),
     [io_lib:format(", ~b not measured", [length(Unmeasured)]) || Unmeasured =/= []]].

cells_of(#{checks := Checks}) when length(Checks) < 2 ->
    [];
cells_of(#{target := #{text := Text} = Target, checks := Checks}) ->
    Heads = [{"Cell", ""}, {"Promised", "number"}, {"Measured", "number"},
             {"95 % interval", "number"}, {"Verdict", "nowrap"}],
    ?E(details, [], [?E(summary, [], ?T(["Cells: ", Text])),
                     weft_report_html:table(Text, Heads, [check_row(C, Target) || C <- Checks])]).

check_row(#{cell := Cell, verdict := Verdict} = Check, Target) ->
    {Measured, Interval, Promised} = check_words(Check, Target),
    [?T(weft_report_words:cell(Cell)), ?T(Promised), ?T(Measured), ?T(Interval),
     {?T(weft_report_words:verdict(Verdict, Check)), atom_to_list(Verdict)}].

%% ---- losses ----

losses(Results) ->
    Losses = weft_report_verdict:losses(Results),
    Text = "Every number that says most about its workload in which a variant of weft is behind "
        "the stock carrier (over TLS: stock TLS; on a cluster: stock with the same connections, if "
        "that was measured), worst first, as a share of how good stock is: 0.50 is half the "
        "throughput or twice the time. Behind in: the share of all pairs of repetitions, one of "
        "the variant and one of stock, in which it was behind; 50 % is no effect.",
    Heads = [{"Cell", ""}, {"Variant", "nowrap"}, {"Metric", "nowrap"},
             {"Share of stock", "number"}, {"95 % interval", "number"}, {"", "nowrap"},
             {"Behind in", "number"}],
    Table = weft_report_html:table("Behind the stock carrier, worst first", Heads,
                                   [loss_row(Loss) || Loss <- Losses]),
    section("Where weft is behind",
            [?E(p, [], ?T(Text)),
             case Losses of
                 [] -> ?E(p, [], "Nowhere in what was measured.");
                 _ -> ?E(details, [{open, "open"} || length(Losses) =< 25],
                         [?E(summary, [], ?T(io_lib:format("~b numbers", [length(Losses)]))),
                          Table])
             end]).

loss_row(#{cell := Cell, variant := Variant, metric := Metric, ratio := Ratio}) ->
    #{median := Median, interval := Interval, superiority := Superiority} = Ratio,
    [?T(weft_report_words:cell(Cell)), ?T(weft_report_words:variant(Variant)),
     ?T(weft_report_words:metric(Metric)), ?T(weft_report_words:ratio(Median)),
     ?T(weft_report_words:interval(Interval)), ?T(weft_report_words:noise(Interval)),
     io_lib:format("~b %", [round(100 * (1 - Superiority))])].

%% ---- charts, environment ----

plots(Results) ->
    [section(Title, [?E(p, [], ?T(Text)), weft_report_chart:legend(Charts),
                     ?E('div', [{class, "charts"}],
                        [[weft_report_svg:chart(Chart), "\n"] || Chart <- Charts])])
     || {Title, Text, Charts} <- weft_report_plots:all(Results)].

environment(Environment) ->
    Rows = [[?T(string:replace(Key, "_", " ", all)), ?T(Value)]
            || {Key, Value} <- lists:sort(maps:to_list(Environment))],
    section("Environment", weft_report_html:table("What the numbers depend on besides the code",
                                                  [{"What", "nowrap"}, {"Value", "long"}], Rows)).
