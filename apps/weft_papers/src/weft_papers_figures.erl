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

-export([command/0, main/1, figures/0, recorded/2, page/1, charts/2, told/2]).
-export([arguments/2, status/1]).
-export_type([figure/0, head/0]).

%% `cells' are options of the benchmark that choose what is measured, and `minutes' is how long that
%% may take where it is longer than for others. `bound' says what is judged, and by which bound.
%% Without `charts' of its own a figure has all those of the run.
-type figure() :: #{id := string(), where := string(), claim := string(),
                    bound := unicode:chardata(), cells := [string()],
                    minutes => pos_integer(),
                    charts => fun((weft_report_results:results()) -> [weft_report_svg:chart()]),
                    findings := fun((weft_report_results:results()) ->
                                           [weft_papers_verdict:finding()]),
                    not_shown := string()}.
-type head() :: claimed | judged | weft_papers_verdict:verdict() | failed | measured | machine
              | warning | doubt | not_shown.

-callback figures() -> [figure()].

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).
-define(COLUMN, 96).
-define(HEAD, 9).
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
                                                weft_store_figures, weft_store_losses_figures,
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
    ok = told_all(Measured, Dir),
    status(Measured).

%% @private 1 if there is nothing of a figure, or if a repetition has failed.
-spec status([{figure(), weft_papers_run:run()}]) -> 0 | 1.
status(Measured) ->
    case [Run || {Figure, Run} <- Measured,
                 weft_papers_run:has_failed(Run)
                     orelse lists:keymember(failed, 1, findings(Figure, Run))] of
        [] -> 0;
        [_ | _] -> 1
    end.

%% Who was interrupted may be unable to print.
told_all(Measured, Dir) ->
    File = filename:join(Dir, "paper.html"),
    ok = weft_report_file:write(File, page(Measured)),
    io:put_chars([text(Figure, Run) || {Figure, Run} <- Measured]),
    io:format("~nall of it: ~ts~n", [File]).

%% Those of which there is something.
so_far(Figures, Dir) ->
    told_all([{Figure, Run} || Figure <- Figures, Run <- recorded(Figure, Dir)], Dir).

%% @doc What is recorded below a directory of runs for a figure, if something is: its run, or that
%% of another figure with the same cells.
-spec recorded(figure(), Dir :: file:filename()) -> [weft_papers_run:run()].
recorded(#{id := Id, cells := Cells}, Dir) ->
    Others = [Other || #{id := Other, cells := Of} <- figures(), Of =:= Cells, Other =/= Id],
    Runs = [filename:join(Dir, Run) || Run <- [Id | Others]],
    [weft_papers_run:read(Run)
     || Run <- lists:sublist([Run || Run <- Runs, filelib:is_regular(
                                                    weft_report_record:results_file(Run))], 1)].

%% @doc The page of figures, each with the run that it is read from.
-spec page([{figure(), weft_papers_run:run()}]) -> weft_report_html:html().
page(Measured) ->
    Title = "Figures of papers",
    Head = ?E(header, [], [?E(h1, [], ?T(Title)),
                           ?E(p, [{class, "dim"}],
                              ?T("What papers claim, measured again on one machine: \"agrees\" "
                                 "and \"differs\" are about the claim. \"open\" is beside it, "
                                 "or so near that more repetitions may decide it. With one "
                                 "repetition the ratio decides. "
                                 "Medians of repetitions; whiskers are the smallest and the "
                                 "largest, those of a ratio its interval. Marks without a "
                                 "line are what the text of a paper says."))]),
    weft_report_html:page(Title, weft_report_html:style(),
                          [Head | [html(Figure, Run) || {Figure, Run} <- Measured]]).

%% Figures with the same cells are read from the same run.
measure(#{id := Id, cells := Cells} = Figure, Options, Dir, Runs) ->
    Run = case Runs of
              #{Cells := Known} -> Known;
              #{} -> run(arguments(Figure, Options), filename:join(Dir, Id))
          end,
    {{Figure, Run}, Runs#{Cells => Run}}.

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
        Status when Status =:= 0; Status =:= 1 ->
            weft_papers_run:read(Dir);
        Status ->
            Why = io_lib:format("the run ended with status ~b", [Status]),
            weft_papers_run:new(filename:basename(Dir), {error, Why})
    end.

%% @doc The charts of a figure that have data.
-spec charts(figure(), weft_papers_run:run()) -> [weft_report_svg:chart()].
charts(Figure, Run) ->
    case {weft_papers_run:results(Run), Figure} of
        {{error, _Why}, _} ->
            [];
        {{ok, Results}, #{charts := Charts}} ->
            [Chart || #{series := [_ | _]} = Chart <- Charts(Results)];
        {{ok, Results}, _} ->
            lists:append([Charts || {_, _, Charts} <- weft_report_plots:all(Results)])
    end.

%% @doc All that is told of a figure, in this order: what is claimed, what is judged and by which
%% bound, what was found, and of which run that is. If nothing was found it has `failed' and why.
-spec told(figure(), weft_papers_run:run()) -> [{head(), unicode:chardata()}, ...].
told(#{claim := Claim, bound := Bound, not_shown := NotShown} = Figure, Run) ->
    [{claimed, Claim}, {judged, Bound}] ++ findings(Figure, Run)
        ++ [{Head, Text} || {Head, Texts} <- [{measured, weft_papers_run:measured(Run)},
                                              {machine, weft_papers_run:sharing(Run)},
                                              {warning, weft_papers_run:warnings(Run)},
                                              {doubt, weft_papers_run:doubts(Run)}],
                            Text <- Texts]
        ++ [{not_shown, NotShown}].

findings(#{findings := Read}, Run) ->
    case weft_papers_run:results(Run) of
        {error, Why} ->
            [{failed, Why}];
        {ok, Results} ->
            case {Read(Results), missing(Results)} of
                {[], [Note | _]} -> [{failed, Note}];
                {[], []} -> [{failed, "there are no numbers for it"}];
                {Found, Notes} -> weft_papers_run:doubted(Found, Run)
                                      ++ [{open, ["not measured: ", Note]} || Note <- Notes]
            end
    end.

%% Why something failed or was skipped.
missing(Results) ->
    lists:usort([Note || Cell <- weft_report_results:cells(Results),
                         Variant <- weft_report_results:variants(Cell, Results),
                         {_, Note} <- weft_report_results:trouble(Cell, Variant, Results)]).

text(#{id := Id, where := Where} = Figure, Run) ->
    ["\n", Id, ": ", Where, "\n" | [paragraph(Head, Text) || {Head, Text} <- told(Figure, Run)]].

%% Broken into lines, all but the first indented.
paragraph(Head, Text) ->
    Words = string:lexemes(weft_report_terminal:ascii(Text), " "),
    {Lines, Last} = lists:foldl(fun(Word, {Done, Line}) ->
                                    case length(Line) + length(Word) < ?COLUMN - ?HEAD - 2 of
                                        true -> {Done, Line ++ [$\s | Word]};
                                        false -> {[Line | Done], [$\s | Word]}
                                    end
                                end, {[], ""}, Words),
    ["  ", string:pad(short(Head), ?HEAD),
     lists:join(["\n  ", lists:duplicate(?HEAD, $\s)], lists:reverse([Last | Lines])), "\n"].

short(not_shown) -> "not here";
short(Head) -> atom_to_list(Head).

html(#{id := Id, where := Where} = Figure, Run) ->
    Charts = charts(Figure, Run),
    Rows = [[cell(Head), ?T(Text)] || {Head, Text} <- told(Figure, Run)],
    Heads = [{"What", "nowrap"}, {"Of it", ""}],
    Dir = weft_papers_run:name(Run),
    ?E(section, [{id, Id}],
       [?E(h2, [], ?T([Id, ": ", Where])),
        weft_report_html:table("What the paper claims, and what is found here", Heads, Rows),
        [[weft_report_chart:legend(Charts),
          ?E('div', [{class, "charts"}], [[weft_report_svg:chart(Chart), "\n"] || Chart <- Charts])]
         || Charts =/= []],
        ?E(p, [], [?E(a, [{href, [Dir, "/report.html"]}], ?T("all numbers")), ", ",
                   ?E(a, [{href, [Dir, "/results.csv"]}], ?T("results.csv"))])]).

cell(agrees) -> {?T("agrees"), "met"};
cell(differs) -> {?T("differs"), "missed"};
cell(open) -> {?T("open"), "not_measured"};
cell(failed) -> {?T("failed"), "missed"};
cell(not_shown) -> ?T("not shown here");
cell(Head) -> ?T(atom_to_list(Head)).
