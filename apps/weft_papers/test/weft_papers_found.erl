%% SPDX-License-Identifier: Apache-2.0
%% @doc What figures find in results that are made up: verdicts, and what their texts say.
-module(weft_papers_found).

-include_lib("eunit/include/eunit.hrl").

-export([findings/2, says/3, measured/1, cells/1]).

-type verdict() :: agrees | differs | open.
-type rows() :: [tuple()].

%% @doc The findings of a figure.
-spec findings(Figure :: string(), rows()) -> [{verdict(), string()}].
findings(Wanted, Rows) ->
    [Findings] = [Read(weft_report_sample:results(Rows))
                  || #{id := Id, findings := Read} <- weft_papers_figures:figures(), Id =:= Wanted],
    [{Verdict, unicode:characters_to_list(Text)} || {Verdict, Text} <- Findings].

%% @doc Has the figure these findings, in this order, and do they say all this?
-spec says([{verdict(), [weft_report_said:part()]}], Figure :: string(), rows()) -> ok.
says(Expected, Wanted, Rows) ->
    ?assertEqual(Expected, as_expected(Expected, findings(Wanted, Rows))).

%% A finding that is another one is shown as it is, with what it lacks.
as_expected([{Verdict, Parts} = Same | Expected], [{Verdict, Text} | Findings]) ->
    case weft_report_said:missing(Parts, Text) of
        [] -> [Same | as_expected(Expected, Findings)];
        Missing -> [{Verdict, Text, {missing, Missing}} | as_expected(Expected, Findings)]
    end;
as_expected([_ | Expected], [Other | Findings]) ->
    [Other | as_expected(Expected, Findings)];
as_expected(_, Others) ->
    Others.

%% @doc Every metric of each cell that a command measures with these arguments, made up.
-spec measured([string()]) -> rows().
measured(Arguments) ->
    [{row_cell(Cell), Variant, Metric, [100 + Nodes]}
     || #{pairs := Nodes, variants := Variants} = Cell <- cells(Arguments), Variant <- Variants,
        {Metric, _, _, _} <- weft_report_record:metrics(), Metric =/= skipped, Metric =/= failed].

%% @doc The cells that a command measures with these arguments, each with the variants asked for.
-spec cells([string()]) -> [weft_bench_workload:cell()].
cells(Arguments) ->
    #{workloads := Workloads} = More = weft_papers:more(),
    {ok, Given, _, _} = weft_argparse:parse(Arguments, weft_bench_cli:command(More), "bin/bench"),
    Scope = case Given of
                #{quick := true} -> quick;
                #{} -> full
            end,
    [Cell#{variants := [Variant || Variant <- Variants,
                                   lists:member(Variant, maps:get(variants, Given, [Variant]))]}
     || #{variants := Variants} = Cell
            <- weft_bench_workload:cells(weft_bench_workload:modules() ++ Workloads, Scope),
        is_given(Cell, Given)].

is_given(#{suite := Suite} = Cell, #{suites := Suites, only := Only}) ->
    lists:member(atom_to_list(Suite), Suites)
        andalso lists:any(fun(RE) -> re:run(weft_bench_workload:title(Cell), RE) =/= nomatch end,
                          Only).

row_cell(#{suite := Suite, workload := Workload, link := #{label := Link}} = Cell) ->
    (maps:with([size_bytes, pairs, streams], Cell))#{
      suite => atom_to_binary(Suite), workload => atom_to_binary(Workload),
      link => atom_to_binary(Link)}.
