%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark with the workloads and commands of papers.
-module(weft_papers_cli_tests).

-include_lib("eunit/include/eunit.hrl").

all_workloads_have_cells_test() ->
    #{workloads := Workloads} = weft_papers:more(),
    [begin
         Cells = weft_bench_workload:cells(Workloads, Scope),
         ?assertEqual([], [e, orbit, aco, de_bench, im, city, watched]
                          -- [Suite || #{suite := Suite} <- Cells])
     end || Scope <- [quick, full]].

cells_are_told_apart_test() ->
    #{workloads := Workloads} = weft_papers:more(),
    [begin
         Cells = weft_bench_workload:cells(weft_bench_workload:modules() ++ Workloads, Scope),
         Keys = [{Suite, Workload, Bytes, Pairs, Streams, Label}
                 || #{suite := Suite, workload := Workload, size_bytes := Bytes, pairs := Pairs,
                      streams := Streams, link := #{label := Label}} <- Cells],
         ?assertEqual(length(Cells), length(lists:usort(Keys)))
     end || Scope <- [quick, full]].

what_is_on_demand_is_only_listed_if_asked_for_test() ->
    ?assertEqual(0, weft_papers_cli:main(["--list", "--quick"])),
    ?assertEqual(nomatch, string:find(?capturedOutput, "orbit: ")),
    ?assertEqual(0, weft_papers_cli:main(["--list", "--quick", "--suites", "orbit"])),
    ?assertNotEqual(nomatch, string:find(?capturedOutput, "orbit: orbit, 7 nodes")).

its_commands_are_told_and_know_bad_arguments_test() ->
    ?assertEqual(0, weft_papers_cli:main(["--help"])),
    [begin
         ?assertNotEqual(nomatch, string:find(?capturedOutput, "\n  " ++ Command ++ " ")),
         ?assertEqual(2, weft_papers_cli:main([Command, "--what"]))
     end || Command <- ["paper", "de_bench", "bencherl", "diasca"]].
