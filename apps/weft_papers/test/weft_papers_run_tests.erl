%% SPDX-License-Identifier: Apache-2.0
%% @doc What is told of the run that figures are read from.
-module(weft_papers_run_tests).

-include_lib("eunit/include/eunit.hrl").

%% ---- when, where and how ----

a_run_says_when_and_where_it_was_made_test() ->
    in_dir(fun(Dir) ->
               ok = weft_report_sample:write(
                      Dir, [], [{"quota", "4 %"} | environment(#{"scope" => "full"})]),
               ?assertEqual(["2026-01-31, commit abc1234, A & B <C>, 2 cores, OTP 25, quota: 4 %"],
                            texts(fun weft_papers_run:measured/1, Dir))
           end).

%% The text of a figure is that of the long one.
a_quick_run_is_told_as_one_test() ->
    in_dir(fun(Dir) ->
               ok = weft_report_sample:write(Dir, [], environment(#{"scope" => "quick"})),
               [Said] = texts(fun weft_papers_run:measured/1, Dir),
               ?assertEqual([], weft_report_said:missing(["OTP 25", "quick run"], Said))
           end).

without_an_environment_nothing_is_told_test() ->
    in_dir(fun(Dir) ->
               ok = weft_report_sample:write(Dir, cells(4), []),
               ?assertEqual([], texts(fun weft_papers_run:measured/1, Dir)),
               ?assertEqual([], texts(fun weft_papers_run:warnings/1, Dir)),
               ?assertMatch({ok, _}, weft_papers_run:results(weft_papers_run:read(Dir))),
               ?assertEqual(filename:basename(Dir),
                            weft_papers_run:name(weft_papers_run:read(Dir)))
           end).

a_mesh_is_told_with_its_vms_per_core_test() ->
    Sharing = fun(Rows) -> [unicode:characters_to_list(Text)
                            || Text <- weft_papers_run:sharing(run(Rows))] end,
    ?assertEqual([], Sharing([])),
    [Said] = Sharing([{cell(Nodes), stock_mesh, vms_per_core, [Nodes / 2]} || Nodes <- [11, 22]]),
    ?assertEqual([], weft_report_said:missing(["5.50", "11.0"], Said)).

%% ---- what makes it doubtful ----

what_the_numbers_tell_of_themselves_is_a_warning_test() ->
    Rows = [{cell(11), stock_mesh, Metric, [Value]}
            || {Metric, Value} <- [{quota_percent, 4}, {machine_busy_percent, 96}]],
    [Said] = weft_papers_run:warnings(run(Rows)),
    ?assertEqual([], weft_report_said:missing([stock_mesh, "96.0 %"],
                                              unicode:characters_to_list(Said))),
    ?assertEqual([], weft_papers_run:warnings(run(tl(Rows)))).

what_the_environment_tells_is_a_warning_test() ->
    in_dir(fun(Dir) ->
               ok = weft_report_sample:write(Dir, cells(4), environment(#{})),
               [Said] = texts(fun weft_papers_run:warnings/1, Dir),
               ?assertEqual([], weft_report_said:missing(["congestion control", "reno", "cubic"],
                                                         Said))
           end).

a_repetition_that_failed_is_seen_test() ->
    ?assertNot(weft_papers_run:has_failed(run(cells(4)))),
    ?assertNot(weft_papers_run:has_failed(run([{cell(4), stock, skipped, [<<"no time">>]}]))),
    ?assert(weft_papers_run:has_failed(run(cells(4) ++ [{cell(4), stock, failed, [<<"oh">>]}]))),
    ?assert(weft_papers_run:has_failed(weft_papers_run:new("run", {error, "oh"}))).

%% ---- doubts of others ----

a_doubt_is_told_and_makes_findings_open_test() ->
    Found = [{agrees, "SR is first"}, {differs, ["GR", " is last"]}],
    [?assertEqual({About, Expected, ["it rained"]},
                  in_dir(fun(Dir) ->
                             ok = doubted(Dir, ["about,doubt\n", About, ",it rained\n"]),
                             Run = weft_papers_run:read(Dir),
                             {About, [Verdict || {Verdict, _} <- weft_papers_run:doubted(Found,
                                                                                         Run)],
                              texts(fun weft_papers_run:doubts/1, Dir)}
                         end))
     || {About, Expected} <- [{"all", [open, open]}, {"none", [agrees, differs]},
                              {"GR is", [agrees, open]}, {"TL", [agrees, differs]}]].

bad_doubts_are_told_with_their_file_test() ->
    [?assertMatch({error, {match, _}},
                  in_dir(fun(Dir) ->
                             ok = doubted(Dir, Text),
                             {error, Said} = weft_papers_run:results(weft_papers_run:read(Dir)),
                             {error, re:run(Said, ["doubts.csv: .*", Wanted])}
                         end))
     || {Text, Wanted} <- [{"doubt\nall\n", "about,doubt"}, {"", "about,doubt"},
                           {"about,doubt\nall,a,b\n", "record 2"},
                           {"about,doubt\nall,a\n,b\n", "record 3"}]].

doubted(Dir, Text) ->
    ok = weft_report_sample:write(Dir, cells(4), []),
    file:write_file(filename:join(Dir, "doubts.csv"), Text).

cell(Nodes) ->
    #{suite => <<"aco">>, workload => <<"aco_tl">>, size_bytes => 0, pairs => Nodes, streams => 8}.

cells(Nodes) -> [{cell(Nodes), stock, duration_s, [1]}].

run(Rows) -> weft_papers_run:new("run", {ok, weft_report_sample:rows(Rows)}).

environment(Other) ->
    maps:to_list(maps:merge(maps:from_list(weft_report_sample:environment()), Other)).

texts(Of, Dir) -> [unicode:characters_to_list(Text) || Text <- Of(weft_papers_run:read(Dir))].

in_dir(Test) ->
    Dir = filename:join([filename:basedir(user_cache, ?MODULE_STRING), os:getpid()]),
    try Test(Dir) after file:del_dir_r(Dir) end.
