%% SPDX-License-Identifier: Apache-2.0
%% @doc The page with the plots of a small cluster: well-formed, complete, and with its numbers.
-module(weft_sim_report_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PLOTS, ["convergence", "neighbours", "degrees", "paths", "last_hop", "redundancy",
                "reliability", "crash_ms", "recovery", "recovery_ms"]).

the_page_has_all_plots_and_their_numbers_beside_it_test_() ->
    {timeout, 600, fun() ->
        Directory = filename:join(os:getenv("TMPDIR", "/tmp"), "weft_sim_report_" ++ os:getpid()),
        File = filename:join(Directory, "report.html"),
        ok = weft_sim_report:write(File, 40, 1),
        {ok, Page} = file:read_file(File),
        {ok, Csv} = file:read_file(filename:join(Directory, "report.csv")),
        ok = file:del_dir_r(Directory),
        <<"<!DOCTYPE html>\n", Html/binary>> = Page,
        ?assertMatch({ok, _, _}, xmerl_sax_parser:stream(Html, [skip_external_dtd])),
        ?assertEqual(length(?PLOTS), length(re:split(Page, "<svg viewBox=\"0 0 380")) - 1),
        ?assertEqual(nomatch, re:run(Page, "(src|href)=")),
        [[<<"plot">>, <<"curve">>, <<"x">>, <<"y">>] | Rows] = weft_report_csv:parse(Csv),
        ?assertEqual(lists:sort(?PLOTS),
                     lists:usort([binary_to_list(Plot) || [Plot, _, _, _] <- Rows])),
        ?assertEqual(["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "95"],
                     [binary_to_list(X) || [<<"reliability">>, <<"mean">>, X, _] <- Rows]),
        ?assertMatch([_ | _], [Y || [<<"convergence">>, <<"connected">>, _, Y] <- Rows,
                                    binary_to_float(Y) =:= 100.0])
    end}.

path_counts_are_those_of_the_shortest_paths_test() ->
    Line = #{a => [b], b => [a, c], c => [b, d], d => [c]},
    ?assertEqual([{1, 6}, {2, 4}, {3, 2}], weft_sim_graph:path_counts([a, b, c, d], Line)).
