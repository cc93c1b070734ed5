%% SPDX-License-Identifier: Apache-2.0
%% @doc Each number that the documentation says was measured is what the data beside it say, and
%% the commit of each run is in the history, or the page says that it is not.
-module(weft_numbers_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CONFIGS, "test/docs/numbers/*.config").
-define(PAGE, "docs/benchmarks/README.md").
-define(DATA, "docs/benchmarks").

measured_numbers_are_those_of_the_data_test_() ->
    [{lists:concat([File, " ", Heading]),
      {timeout, 60, fun() -> ?assertEqual([], weft_numbers:problems(Part)) end}}
     || Part <- parts(), {File, Heading} <- [of_part(Part)]].

%% What is not written as a part would not be checked.
parts() ->
    Configs = [_ | _] = filelib:wildcard(?CONFIGS),
    lists:append([begin {ok, Parts} = file:consult(Config), Parts end || Config <- Configs]).

of_part({part, File, Heading, _Fragments, _NoResults}) -> {File, Heading}.

%% ---- the check itself finds what is wrong ----

what_is_not_so_is_told_test_() ->
    Cell = {orbit, stock, 0, 21, 20000, loopback},
    Fragment = {"at most ~ connections in ~ s", "paper/orbit", Cell, [connections_max, duration_s]},
    Ratio = {"~ %", [{'/', {"paper/orbit", Cell, connections_mean},
                      {"paper/orbit", Cell, connections_max}}]},
    Calls = {"~ calls", [{'/', {'-', 300, 48}, 4}]},
    [{Text, ?_assertMatch({_, true}, {problems(Text, Fragments, NoResults),
                                      is_told(Part, problems(Text, Fragments, NoResults))})}
     || {Text, Fragments, NoResults, Part} <-
            [{"at most 20\nconnections in **0.23 s**", [Fragment], [], none},
             {"at most 21 connections in 0.23 s", [Fragment], [], ": 21 is 20"},
             {"at most 20 connections in 0.24 s", [Fragment], [], ": 0.24 is 0.2327"},
             {"at most 20 links in 0.23 s", [Fragment], [], "does not say"},
             {"100 %", [Ratio], [], none}, {"99 %", [Ratio], [], ": 99 is 100"},
             {"4.2 times, 17 nodes", [], [], "no data for"},
             {"63 calls", [Calls], [], none}, {"64 calls", [Calls], [], ": 64 is 63"},
             {"in 15 s", [], ["in 15 s"], none}, {"often", [], ["in 15 s"], "does not say"}]].

%% A goal is met or missed if the whole interval in the data is on one side of it: 0.57 to 0.95.
%% These data are for this test alone: it stays as it is when others are measured again.
verdicts_follow_from_goals_and_intervals_test_() ->
    Value = {"../../test/docs/ratios", {bulk, weft_1, 65536, 1, 0, loopback}, messages_per_s},
    Fragment = {"| 64 KB x 1 | ~ to ~ |", [{low, Value}, {high, Value}]},
    Once = {"| SWIM | ~ %", [{"hour", {hour, weft_swim, 0, 40, 0, loopback}, idle_percent}]},
    [{Text, ?_assertMatch({_, true}, {problems(Text, [Of], []),
                                      is_told(Part, problems(Text, [Of], []))})}
     || {Of, Before, After, Part}
            <- [{Fragment, "| 64 KB x 1 | 0.57 to 0.95 |", Goal, Part}
                || {Goal, Part} <- [{" at least 1.00 | missed |", none},
                                    {" at least 1.00 | met |", ": met is missed"},
                                    {" at least 0.50 | met |", none},
                                    {" at least 0.90 | missed |", ": missed is within noise"},
                                    {" at most 1.00 | met |", none},
                                    {" at most 0.50 | within noise |", "within noise is missed"},
                                    {" | |", none}]]
                ++ [{Once, "| SWIM | 0.091 %", Goal, Part}
                    || {Goal, Part} <- [{" | at most 0.03 | missed |", none},
                                        {" | at most 0.10 | missed |", ": missed is met"}]]
                ++ [{Fragment, "| 64 KB x 1 | 0.57 to 0.95 | |", " | other | at least 2 | met |",
                     "has no data"}],
        Text <- [Before ++ After]].

problems(Text, Fragments, NoResults) ->
    File = temporary(),
    ok = file:write_file(File, Text),
    try weft_numbers:problems({part, File, all, Fragments, NoResults}) after file:delete(File) end.

temporary() ->
    lists:concat(["/tmp/weft_numbers_", os:getpid(), "_", erlang:unique_integer([positive])]).

is_told(none, Problems) -> Problems =:= [];
is_told(Part, Problems) -> string:find(Problems, Part) =/= nomatch.

%% ---- commits ----

%% Outside of a clone with the whole history there is nothing to hold them against.
commits_of_runs_are_in_the_history_or_said_to_be_missing_test() ->
    {ok, Page} = file:read_file(?PAGE),
    Commits = maps:to_list(weft_numbers:commits(?DATA)),
    ?assertMatch([_ | _], Commits),
    case string:trim(os:cmd("git rev-parse --is-shallow-repository 2>&1")) of
        "false" ->
            [?assertEqual({Commit, Runs, is_missing(Commit)},
                          {Commit, Runs, string:find(Page, ["`", Commit, "`"]) =/= nomatch})
             || {Commit, Runs} <- Commits];
        _ ->
            ok
    end.

is_missing(Commit) ->
    os:cmd("git cat-file -e " ++ Commit ++ "^{commit} 2>&1") =/= "".

%% Those of figures are named by them, others by their directory.
runs_with_changes_are_said_to_have_them_test_() ->
    said(weft_numbers:changed(?DATA), "changes").

runs_that_are_joined_are_said_to_be_so_test_() ->
    said(weft_numbers:joined(?DATA), "joined").

%% What worked now and then would look as good as what always worked.
runs_in_which_repetitions_failed_are_said_to_have_them_test_() ->
    said(weft_numbers:failed(?DATA), "failed").

%% In a paragraph that names the run.
said(Runs, Word) ->
    {ok, Page} = file:read_file(?PAGE),
    [{Run, ?_assertNotEqual([], [Part || Part <- binary:split(Page, <<"\n\n">>, [global]),
                                         names(Part, Run), names(Part, Word)])}
     || Run <- Runs].

%% Whatever stands behind the commit says that not only its code was measured.
what_stands_behind_a_commit_is_a_change_test() ->
    Runs = [{"clean", ""}, {"changed", " and changes"},
            {"older", "; compiled before m.erl was changed"},
            {"both", " and changes; compiled before 2 files were changed"}],
    in_dir([{Run ++ "/environment.csv", weft_report_csv:line(["commit", "abc" ++ Behind])}
            || {Run, Behind} <- Runs],
           fun(Dir) ->
               ?assertEqual(["both", "changed", "older"], lists:sort(weft_numbers:changed(Dir))),
               ?assertEqual(["abc"], maps:keys(weft_numbers:commits(Dir)))
           end).

%% By the rows of their results.
runs_that_are_joined_and_those_with_failures_are_found_test() ->
    Runs = [{"plain", [{one, calls}, {one, duration_s}]}, {"two", [{one, calls}, {other, calls}]},
            {"torn", [{one, calls}, {one, failed}]}],
    in_dir([{Run ++ "/results.csv", [weft_report_record:header() | [row(Of, Metric)
                                                                    || {Of, Metric} <- Rows]]}
            || {Run, Rows} <- Runs],
           fun(Dir) ->
               ?assertEqual(["two"], weft_numbers:joined(Dir)),
               ?assertEqual(["torn"], weft_numbers:failed(Dir))
           end).

row(Run, Metric) ->
    weft_report_record:line(#{run => Run, suite => a, workload => small, variant => stock,
                              size_bytes => 10, pairs => 1, streams => 0, link => loopback,
                              rtt_ms => 0, rate_mbit => 0, loss_percent => 0, repetition => 1,
                              metric => Metric, unit => "", value => 1, at_ms => 0, note => ""}).

in_dir(Files, Test) ->
    Dir = temporary(),
    try
        [begin
             File = filename:join(Dir, Name),
             ok = filelib:ensure_dir(File),
             ok = file:write_file(File, Content)
         end || {Name, Content} <- Files],
        Test(Dir)
    after
        file:del_dir_r(Dir)
    end.

names(Part, "paper/" ++ Figure) -> names(Part, Figure);
names(Part, Name) -> re:run(Part, ["\\b", Name, "\\b"]) =/= nomatch.

%% No run is of an unknown commit and machine without a word, and no word is too much.
runs_without_an_environment_are_said_to_have_none_test() ->
    {ok, Page} = file:read_file(?PAGE),
    [_, Rest] = binary:split(Page, <<"Of some data neither commit nor machine was written">>),
    {match, Named} = re:run(hd(binary:split(Rest, <<"\n\n">>)), "\\]\\(([a-z]+)/",
                            [global, {capture, all_but_first, list}]),
    ?assertEqual(weft_numbers:without_environment(?DATA), lists:sort(lists:append(Named))).
