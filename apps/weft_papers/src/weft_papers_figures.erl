%% SPDX-License-Identifier: Apache-2.0
%% @doc Figures of papers, measured again on this machine: for each what the paper claims, what is
%% measured here, whether that agrees, and what can not be shown here and why.
%%
%% ```
%% bin/bench paper                         the figures
%% bin/bench paper aco_10,orbit [--quick] [--repetitions N] [--minutes N] [--out DIR]
%% '''
%% A figure is measured as often as fits into `?MINUTES', its own minutes, or those given.
%% A figure is some cells of the benchmark and a function that reads their results. Each run has a
%% directory with its numbers and its report, named by the first figure that is read from it;
%% `paper.html' beside them is made of all findings. A run that fails is told, and the other figures
%% are measured all the same.
-module(weft_papers_figures).

-export([command/0, main/1, figures/0, recorded/2, page/1, charts/2, findings/2, sharing/1,
         warnings/1, measured/1]).
-export([arguments/2]).
-export_type([figure/0, finding/0, outcome/0]).

%% `cells' are options of the benchmark that choose what is measured, and `minutes' is how long that
%% may take where it is longer than for others. Without `charts' of its own a figure has all those
%% of the run.
-type figure() :: #{id := string(), where := string(), claim := string(), cells := [string()],
                    minutes => pos_integer(),
                    charts => fun((weft_report_results:results()) -> [weft_report_svg:chart()]),
                    findings := fun((weft_report_results:results()) -> [finding()]),
                    not_shown := string()}.
%% `open': what was measured neither confirms nor contradicts the claim.
-type finding() :: {agrees | differs | open, Text :: unicode:chardata()}.

-type outcome() :: {ok, [weft_report_record:row()]} | {error, Text :: unicode:chardata()}.

-callback figures() -> [figure()].

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).
-define(COLUMN, 96).
%% A figure takes less than 20, with what it takes to end and to write a report.
-define(MINUTES, 18).

%% @doc All figures.
-spec figures() -> [figure()].
figures() ->
    lists:append([Module:figures() || Module <- [weft_orbit_figures, weft_aco_figures,
                                                weft_im_figures, weft_city_figures,
                                                weft_watched_figures,
                                                weft_de_bench_figures,
                                                weft_de_bench_scaling_figures,
                                                weft_store_figures,
                                                weft_partisan_figures,
                                                weft_partisan_application_figures]]).

%% @doc Exit status: 0 all were measured, 1 a run failed, 2 bad arguments.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench paper").

%% @doc Its arguments; those that are not its own are for the run of each figure.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "figures of papers, claimed and measured",
      details => ["Without a list it tells which figures there are, and how long each takes."],
      arguments =>
          [#{name => figures, required => false, type => {list, string}, value => "FIGURE,FIGURE"},
           #{name => quick, long => "-quick", type => boolean, help => "smaller and shorter"},
           #{name => repetitions, long => "-repetitions", type => {integer, [{min, 1}]},
             value => "N", help => "of each measurement"},
           #{name => minutes, long => "-minutes", type => {integer, [{min, 1}]}, value => "N",
             help => lists:concat(["how long a figure may take (default ", ?MINUTES, ", or what it "
                                   "needs)"])}
           | weft_bench_arguments:common("where the results go")],
      handler => fun given/1}.

given(#{figures := Ids} = Given) ->
    Known = [Id || #{id := Id} <- figures()],
    case [Id || Id <- Ids, not lists:member(Id, Known)] of
        [] ->
            Dir = maps:get(out, Given, default_dir()),
            Figures = [Figure || #{id := Id} = Figure <- figures(), lists:member(Id, Ids)],
            case [Text || Id <- Ids,
                          {error, Text} <- [weft_load_files:is_free(filename:join(Dir, Id))]] of
                [] -> measure(Figures, options(Given), Dir);
                [Text | _] -> weft_bench_arguments:status({error, Text})
            end;
        Unknown ->
            io:format(standard_error, "no figure ~ts; there are ~ts~n",
                      [lists:join(" ", Unknown), lists:join(" ", Known)]),
            2
    end;
given(_) ->
    Columns = lists:max([length(Id) || #{id := Id} <- figures()]),
    [io:format("~*ts ~3b min  ~ts~n", [-Columns, Id, minutes(Figure, []), Where])
     || #{id := Id, where := Where} = Figure <- figures()],
    0.

%% For the command that measures.
options(Given) ->
    ["--quick" || is_map_key(quick, Given)] ++ ["--terminal" || is_map_key(terminal, Given)]
        ++ lists:append([["--" ++ atom_to_list(Key), integer_to_list(Number)]
                         || Key <- [repetitions, minutes],
                            {ok, Number} <- [maps:find(Key, Given)]]).

default_dir() ->
    weft_bench_arguments:out("paper-" ++ integer_to_list(os:system_time(second))).

measure(Figures, Options, Dir) ->
    Distinct = maps:values(maps:from_list([{Cells, Figure}
                                           || #{cells := Cells} = Figure <- Figures])),
    io:format("~ts: about ~b min~n", [lists:join(" ", [Id || #{id := Id} <- Figures]),
                                      lists:sum([minutes(Figure, Options) || Figure <- Distinct])]),
    ok = weft_bench_interrupt:afterwards(paper, fun() -> so_far(Figures, Dir) end),
    {Measured, _} = lists:mapfoldl(fun(Figure, Runs) -> measure(Figure, Options, Dir, Runs) end,
                                   #{}, Figures),
    ok = told(Measured, Dir),
    case [Why || {Figure, _, Outcome, _} <- Measured,
                 {failed, Why} <- [findings(Figure, Outcome)]] of
        [] -> 0;
        _ -> 1
    end.

%% Who was interrupted may be unable to print.
told(Measured, Dir) ->
    File = filename:join(Dir, "paper.html"),
    ok = weft_report_file:write(File, page(Measured)),
    io:put_chars([text(One) || One <- Measured]),
    io:format("~nall of it: ~ts~n", [File]).

%% Those of which there is something.
so_far(Figures, Dir) ->
    told([{Figure, Run, Outcome, Measured}
          || Figure <- Figures, {Run, Outcome, Measured} <- recorded(Figure, Dir)], Dir).

%% @doc What is recorded below a directory of runs for a figure, if something is: the name of its
%% run, which may be that of another figure with the same cells.
-spec recorded(figure(), Dir :: file:filename()) ->
          [{Run :: string(), outcome(), Measured :: [unicode:chardata()]}].
recorded(#{id := Id, cells := Cells}, Dir) ->
    Others = [Other || #{id := Other, cells := Of} <- figures(), Of =:= Cells, Other =/= Id],
    Runs = [{Run, filename:join(Dir, Run)} || Run <- [Id | Others]],
    [{Run, weft_report_record:read(Path), measured(Path)}
     || {Run, Path} <- lists:sublist([One || {_, Path} = One <- Runs,
                                             filelib:is_regular(
                                               weft_report_record:results_file(Path))], 1)].

%% @doc The page of figures: for each the directory of its run, what is recorded there, and when and
%% where that was measured.
-spec page([{figure(), Run :: string(), outcome(), Measured :: [unicode:chardata()]}]) ->
          weft_report_html:html().
page(Measured) ->
    Title = "Figures of papers",
    Head = ?E(header, [], [?E(h1, [], ?T(Title)),
                           ?E(p, [{class, "dim"}],
                              ?T("What papers claim, measured again on one machine: \"agrees\" "
                                 "and \"differs\" are about the claim. \"open\" is beside it, "
                                 "or so near that more repetitions may decide it. "
                                 "Medians of repetitions; whiskers are the smallest and the "
                                 "largest, those of a ratio its interval. Marks without a "
                                 "line are what the text of a paper says."))]),
    weft_report_html:page(Title, weft_report_html:style(),
                          [Head | [html(One) || One <- Measured]]).

%% Figures with the same cells are read from the same run.
measure(#{id := Id, cells := Cells} = Figure, Options, Dir, Runs) ->
    {Run, Outcome} = case Runs of
                         #{Cells := Known} -> Known;
                         #{} -> {Id, run(arguments(Figure, Options), filename:join(Dir, Id))}
                     end,
    {{Figure, Run, Outcome, measured(filename:join(Dir, Run))}, Runs#{Cells => {Run, Outcome}}}.

%% @private For the command that measures cells. What is given last counts. A quick run has a time
%% of its own.
-spec arguments(figure(), Options :: [string()]) -> [string()].
arguments(#{cells := Cells} = Figure, Options) ->
    case lists:member("--quick", Options) of
        true -> Cells ++ Options;
        false -> ["--minutes", integer_to_list(maps:get(minutes, Figure, ?MINUTES))
                  | Cells ++ Options]
    end.

minutes(Figure, Options) ->
    #{minutes := Minutes} = weft_bench_cli:expected(arguments(Figure, Options),
                                                    weft_papers:more()),
    Minutes.

run(Arguments, Dir) ->
    case weft_bench_cli:main(["--out", Dir | Arguments], weft_papers:more()) of
        Status when Status =:= 0; Status =:= 1 -> weft_report_record:read(Dir);
        Status -> {error, io_lib:format("the run ended with status ~b", [Status])}
    end.

%% @doc The charts of a figure that have data.
-spec charts(figure(), outcome()) -> [weft_report_svg:chart()].
charts(_Figure, {error, _Why}) ->
    [];
charts(#{charts := Charts}, {ok, Rows}) ->
    [Chart || #{series := [_ | _]} = Chart <- Charts(weft_report_results:new(Rows))];
charts(_Figure, {ok, Rows}) ->
    Groups = weft_report_plots:all(weft_report_results:new(Rows)),
    lists:append([Charts || {_, _, Charts} <- Groups]).

%% @doc What is found in the results, or why nothing is.
-spec findings(figure(), outcome()) -> {ok, [finding()]} | {failed, unicode:chardata()}.
findings(_Figure, {error, Why}) ->
    {failed, Why};
findings(#{findings := Read}, {ok, Rows}) ->
    Found = Read(weft_report_results:new(Rows)),
    Failed = lists:usort([Note || #{metric := Metric, note := Note} <- Rows,
                                  Metric =:= <<"failed">> orelse Metric =:= <<"skipped">>]),
    case {Found, Failed} of
        {[], [Note | _]} -> {failed, Note};
        {[], []} -> {failed, "there are no numbers for it"};
        {_, Notes} -> {ok, Found ++ [{open, ["not measured: ", Note]} || Note <- Notes]}
    end.

%% @doc How many nodes shared a core, in words, where there are clusters and that was recorded.
-spec sharing(outcome()) -> [unicode:chardata()].
sharing({ok, Rows}) ->
    Results = weft_report_results:new(Rows),
    case weft_report_words:sharing(weft_report_results:sharing(weft_report_results:cells(Results),
                                                               Results)) of
        [] -> [];
        Words -> [Words]
    end;
sharing({error, _Why}) ->
    [].

%% @doc What makes numbers of the run doubtful.
-spec warnings(outcome()) -> [unicode:chardata()].
warnings({ok, Rows}) -> weft_report_warnings:all(weft_report_results:new(Rows), #{});
warnings({error, _Why}) -> [].

%% @doc When the run in a directory was made, from which commit and on what machine, if its
%% environment is there.
-spec measured(Run :: file:filename()) -> [unicode:chardata()].
measured(Run) ->
    case weft_report_record:read_environment(Run) of
        {ok, Environment} ->
            Of = fun(Key) -> maps:get(Key, Environment, <<>>) end,
            Said = [string:slice(Of(<<"date">>), 0, 10), ["commit ", Of(<<"commit">>)],
                    Of(<<"processor">>), [Of(<<"cores">>), " cores"],
                    ["OTP ", Of(<<"otp_release">>)]]
                ++ [["quota: ", Quota] || Quota <- [Of(<<"quota">>)], Quota =/= <<>>,
                                          Quota =/= <<"none">>],
            [lists:join(", ", [One || One <- Said, One =/= <<>>])];
        {error, _NoneWritten} ->
            []
    end.

text({#{id := Id, where := Where, claim := Claim, not_shown := NotShown} = Figure, _, Outcome,
      Measured}) ->
    ["\n", Id, ": ", Where, "\n", paragraph("claimed  ", Claim),
     case findings(Figure, Outcome) of
         {ok, Findings} -> [paragraph(string:pad(atom_to_list(Kind), 9), Text)
                            || {Kind, Text} <- Findings];
         {failed, Why} -> paragraph("failed   ", Why)
     end,
     [paragraph("measured ", Said) || Said <- Measured],
     [paragraph("machine  ", Shared) || Shared <- sharing(Outcome)],
     [paragraph("warning  ", Warning) || Warning <- warnings(Outcome)],
     paragraph("not here ", NotShown)].

%% Broken into lines, all but the first indented.
paragraph(Head, Text) ->
    Words = string:lexemes(weft_report_terminal:ascii(Text), " "),
    {Lines, Last} = lists:foldl(fun(Word, {Done, Line}) ->
                                    case length(Line) + length(Word) < ?COLUMN - 11 of
                                        true -> {Done, Line ++ [$\s | Word]};
                                        false -> {[Line | Done], [$\s | Word]}
                                    end
                                end, {[], ""}, Words),
    ["  ", Head, lists:join(["\n  ", lists:duplicate(9, $\s)], lists:reverse([Last | Lines])),
     "\n"].

html({#{id := Id, where := Where, claim := Claim, not_shown := NotShown} = Figure, Run, Outcome,
      Measured}) ->
    Charts = charts(Figure, Outcome),
    Rows = [[?T("claimed"), ?T(Claim)]]
        ++ case findings(Figure, Outcome) of
               {ok, Findings} -> [[{?T(atom_to_list(Kind)), class(Kind)}, ?T(Text)]
                                  || {Kind, Text} <- Findings];
               {failed, Why} -> [[{?T("failed"), "missed"}, ?T(Why)]]
           end
        ++ [[?T("measured"), ?T(Said)] || Said <- Measured]
        ++ [[?T("machine"), ?T(Shared)] || Shared <- sharing(Outcome)]
        ++ [[?T("warning"), ?T(Warning)] || Warning <- warnings(Outcome)]
        ++ [[?T("not shown here"), ?T(NotShown)]],
    Heads = [{"What", "nowrap"}, {"Of it", ""}],
    ?E(section, [{id, Id}],
       [?E(h2, [], ?T([Id, ": ", Where])),
        weft_report_html:table("What the paper claims, and what is found here", Heads, Rows),
        [[weft_report_chart:legend(Charts),
          ?E('div', [{class, "charts"}], [[weft_report_svg:chart(Chart), "\n"] || Chart <- Charts])]
         || Charts =/= []],
        ?E(p, [], [?E(a, [{href, [Run, "/report.html"]}], ?T("all numbers")), ", ",
                   ?E(a, [{href, [Run, "/results.csv"]}], ?T("results.csv"))])]).

class(agrees) -> "met";
class(differs) -> "missed";
class(open) -> "not_measured".
