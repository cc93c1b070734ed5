%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_cli_tests).

-include_lib("eunit/include/eunit.hrl").

the_list_is_printed_test() ->
    ?assertEqual(0, weft_bench_cli:main(["--list", "--quick"])),
    Output = ?capturedOutput,
    ?assertNotEqual(nomatch, string:find(Output, "a small 10 B x 1 ")),
    ?assertNotEqual(nomatch, string:find(Output, "j call")).

filters_leave_cells_out_test() ->
    ?assertEqual(0, weft_bench_cli:main(["--list", "--suites", "a,c",
                                         "--only", "10 B x 16, beside 32",
                                         "--variants", "stock,weft_4"])),
    [Cell, _, _, Sum | _] = string:split(?capturedOutput, "\n", all),
    ?assertNotEqual(nomatch, string:find(Cell, "stock weft_4")),
    ?assertNotEqual(nomatch, string:find(Sum, "3 cells")).

%% Whatever of it matched nothing would not be measured, and nobody would know.
a_set_has_cells_for_all_that_it_names_test_() ->
    [{Name, fun() ->
                ?assertEqual(0, weft_bench_cli:main(["--list", "--set", atom_to_list(Set),
                                                     "--only", Name])),
                Cells = [Line || Line <- string:split(?capturedOutput, "\n", all),
                                 string:find(Line, "stock weft_1") =/= nomatch],
                ?assertMatch([_ | _], Cells)
            end}
     || Set <- weft_bench_sets:names(), Name <- maps:get(only, weft_bench_sets:options(Set))].

a_set_may_be_measured_with_other_variants_test() ->
    ?assertEqual(0, weft_bench_cli:main(["--list", "--set", "won",
                                         "--variants", "weft_1,channel"])),
    ?assertNotEqual(nomatch, string:find(?capturedOutput, "weft_1 channel")),
    ?assertEqual(nomatch, string:find(?capturedOutput, "stock")).

%% The cells of a quick run, as often as fits into the minutes.
a_quick_run_takes_the_minutes_that_are_given_test() ->
    Expected = fun(Arguments) ->
                   weft_bench_cli:expected(["--quick" | Arguments],
                                           #{workloads => [], commands => #{}})
               end,
    ?assertMatch(#{repetitions := 2, minutes := 3}, Expected([])),
    ?assertMatch(#{repetitions := 1, minutes := 1}, Expected(["--minutes", "1"])),
    #{repetitions := 5, minutes := Minutes} = Expected(["--minutes", "60"]),
    ?assert(Minutes > 3 andalso Minutes < 60).

%% Cells that take long are repeated less often, but not if repetitions are asked for.
repetitions_that_are_asked_for_are_made_test() ->
    Minutes = fun(Arguments) ->
                  #{minutes := Minutes} =
                      weft_bench_cli:expected(["--only", "slow_receiver" | Arguments],
                                              #{workloads => [], commands => #{}}),
                  Minutes
              end,
    ?assert(Minutes(["--repetitions", "5"]) > 2 * Minutes([])).

bad_arguments_are_refused_test_() ->
    [?_assertEqual(2, weft_bench_cli:main(Arguments))
     || Arguments <- [["--what"], ["--suites"], ["--variants", "mongoose"], ["--only", "nothing"],
                      ["--only", "un(balanced"], ["--list", "--suites", "a,y"],
                      ["--list", "--set", "lost"],
                      ["--repetitions", "none"], ["--repetitions", "0"]]].

%% By no command, and nothing of them changes.
results_are_not_written_over_test_() ->
    [{Command, fun() -> with_results(fun(Dir) -> refused(Words ++ ["--out", Dir], Dir) end) end}
     || [Command | _] = Words <- [["names"], ["locks"], ["costs"], ["groups"], ["topologies"],
                                  ["--quick", "--suites", "i"]]].

refused(Arguments, Dir) ->
    ?assertEqual(2, weft_bench_cli:main(Arguments)),
    ?assertEqual([{"environment.csv", {ok, <<"old">>}}],
                 [{File, file:read_file(filename:join(Dir, File))}
                  || File <- filelib:wildcard("*", Dir)]).

%% A script takes 0 for a run that has shown something.
a_run_that_has_measured_nothing_is_told_test_() ->
    Skipped = {#{}, weft_1, skipped, [<<"no time was left in this run">>]},
    Measured = {#{}, stock, messages_per_s, [100]},
    [?_assertEqual(Status,
                   with_results(fun(Dir) ->
                                        ok = weft_report_sample:write(Dir, Rows, []),
                                        weft_bench_cli:status(Failed, Dir)
                                end))
     || {Status, Failed, Rows} <- [{1, 0, [Skipped]}, {1, 0, []}, {0, 0, [Skipped, Measured]},
                                   {1, 2, [Skipped, Measured]}]].

with_results(Test) ->
    Dir = filename:join(filename:basedir(user_cache, ?MODULE_STRING),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    try
        ok = file:write_file(filename:join(Dir, "environment.csv"), "old"),
        Test(Dir)
    after
        file:del_dir_r(Dir)
    end.

each_run_has_a_directory_of_its_own_test() ->
    {ok, #{out := Dir}, _, _} = weft_argparse:parse([], weft_bench_locks:command(), "locks"),
    ?assertMatch({match, _}, re:run(filename:basename(Dir), "^locks-[0-9]{8}T[0-9]{6}$")).
