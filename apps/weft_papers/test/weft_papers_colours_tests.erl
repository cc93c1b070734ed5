%% SPDX-License-Identifier: Apache-2.0
%% @doc Lines of one chart have colours that differ, in light and in dark. Those over TLS have the
%% colour of what they are without it, and are hollow.
-module(weft_papers_colours_tests).

-include_lib("eunit/include/eunit.hrl").

each_line_has_a_light_and_a_dark_colour_test_() ->
    [{Class, ?_assertMatch([_, _], colours(Class))} || Class <- ["said" | variants() ++ lines()]].

no_two_variants_of_a_workload_look_the_same_test_() ->
    #{workloads := Workloads} = weft_papers:more(),
    Cells = weft_bench_workload:cells(weft_bench_workload:modules() ++ Workloads, full),
    [{atom_to_list(Workload),
      ?_assertEqual([], alike(["said" | lists:append([[atom_to_list(Variant) || Variant <- Variants]
                                                      || #{workload := Of, variants := Variants}
                                                             <- Cells, Of =:= Workload])]))}
     || Workload <- lists:usort([Workload || #{workload := Workload} <- Cells])].

no_two_of_many_lines_look_the_same_test() ->
    ?assertEqual([], alike(["said" | lines()])).

%% As if all its cells had been measured, with every metric.
each_line_of_a_figure_has_a_colour_test_() ->
    [{Id, {timeout, 60, ?_assertEqual([], classes(Figure) -- ["said" | variants() ++ lines()])}}
     || #{id := Id} = Figure <- weft_papers_figures:figures()].

classes(#{cells := Cells} = Figure) ->
    Run = weft_papers_run:new("run", {ok, weft_report_sample:rows(
                                            weft_papers_found:measured(Cells))}),
    lists:usort([unicode:characters_to_list(Class)
                 || #{series := Series} <- weft_papers_figures:charts(Figure, Run),
                    #{class := Class} <- Series]).

variants() -> [atom_to_list(Variant) || Variant <- weft_report_record:variants()].

%% As many as DE-Bench has commands.
lines() -> ["s" ++ integer_to_list(Number) || Number <- lists:seq(1, 11)].

%% Of which the colours are the same, in light or in dark.
alike(Classes) ->
    Looks = [{Class, string:find(Class, "_tls") =/= nomatch, colours(Class)}
             || Class <- lists:usort(Classes)],
    [{One, Other} || {One, IsHollow, Colours} <- Looks, {Other, Same, Others} <- Looks,
                     One < Other, IsHollow =:= Same,
                     lists:any(fun({A, B}) -> A =:= B end, lists:zip(Colours, Others))].

colours(Class) ->
    Style = weft_report_html:chart_style(),
    {match, [Name]} = re:run(Style, ["\\.", Class, "(?:, \\.\\w+)* \\{ color: var\\(--(\\w+)\\);"],
                             [{capture, all_but_first, list}]),
    {match, Colours} = re:run(Style, ["--", Name, ": (#[0-9a-f]+);"],
                              [global, {capture, all_but_first, list}]),
    lists:append(Colours).
