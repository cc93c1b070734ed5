%% SPDX-License-Identifier: Apache-2.0
%% @doc The page of figures that is in the documentation.
-module(weft_papers_document_tests).

-include_lib("eunit/include/eunit.hrl").

%% Those that are still to be measured on a machine that does nothing else.
-define(NOT_YET, ["orbit_quota", "aco_8_quota", "aco_9_quota", "de_5_quota", "de_7_quota",
                  "de_9_quota", "de_11_quota", "riak_throughput_quota", "partisan_7_minutes",
                  "partisan_7_simulated"]).
-define(DOCUMENTED, "docs/benchmarks/paper").

%% It is what the numbers beside it say, as this code reads them.
documented_figures_are_those_of_their_numbers_test_() ->
    {timeout, 120, fun() ->
        Dir = copy(),
        try
            ?assertEqual(0, weft_papers_document:main([Dir])),
            Files = filelib:wildcard("*.{md,svg}", ?DOCUMENTED),
            ?assertEqual(Files, filelib:wildcard("*.{md,svg}", Dir)),
            ?assertEqual([], [File || File <- Files,
                                      content(?DOCUMENTED, File) =/= content(Dir, File)])
        after ok = file:del_dir_r(Dir)
        end
    end}.

each_figure_is_documented_test() ->
    Page = content(?DOCUMENTED, "README.md"),
    [?assertEqual({Id, lists:member(Id, ?NOT_YET)},
                  {Id, string:find(Page, ["\n## ", Id, "\n"]) =:= nomatch})
     || #{id := Id} <- weft_papers_figures:figures()].

%% What is known of a run and not in its numbers is on the page; and the words that say what it is
%% about are those of a finding.
doubts_are_documented_test_() ->
    {timeout, 120, fun() ->
        Page = content(?DOCUMENTED, "README.md"),
        Doubted = [{weft_papers_run:name(Run), Doubts, found(Figure, Run)}
                   || Figure <- weft_papers_figures:figures(),
                      Run <- weft_papers_figures:recorded(Figure, ?DOCUMENTED),
                      {ok, [_ | _] = Doubts} <- [weft_papers_doubts:read(
                                                   filename:join(?DOCUMENTED,
                                                                 weft_papers_run:name(Run)))]],
        ?assertMatch([_ | _], Doubted),
        [begin
             ?assertNotEqual({Name, Text, nomatch},
                             {Name, Text, string:find(Page, ["| doubt | ", Text, " |"])}),
             ?assertNotEqual({Name, About, []}, {Name, About, about(About, Found)})
         end || {Name, Doubts, Found} <- Doubted, {About, Text} <- Doubts]
    end}.

found(Figure, Run) ->
    [unicode:characters_to_binary(Text) || {Head, Text} <- weft_papers_figures:told(Figure, Run),
                                           lists:member(Head, [agrees, differs, open])].

about(Words, Found) when Words =:= <<"all">>; Words =:= <<"none">> -> Found;
about(Words, Found) -> [Text || Text <- Found, string:find(Text, Words) =/= nomatch].

%% They are measured once, in the directory of the first one.
figures_with_the_same_cells_share_a_run_test_() ->
    {timeout, 60, fun() ->
        Dir = filename:join("/tmp", "weft_papers_document_" ++ os:getpid() ++ "_shared"),
        try
            [ok, ok] = [begin
                            To = filename:join([Dir, "aco_7", Csv]),
                            ok = filelib:ensure_dir(To),
                            element(1, file:copy(filename:join([?DOCUMENTED, "aco_7", Csv]), To))
                        end || Csv <- ["results.csv", "environment.csv"]],
            ?assertEqual(0, weft_papers_document:main([Dir])),
            ?assertEqual(["README.md", "aco_7.svg", "aco_8.svg"],
                         filelib:wildcard("*.{md,svg}", Dir)),
            Page = content(Dir, "README.md"),
            ?assertEqual(2, length(binary:matches(Page, <<"[results.csv](aco_7/results.csv)">>)))
        after file:del_dir_r(Dir)
        end
    end}.

without_results_it_says_so_test() ->
    ?assertEqual(2, weft_papers_document:main(["/no/such/figures"])),
    ?assertEqual(2, weft_papers_document:main([])).

content(Dir, File) ->
    {ok, Content} = file:read_file(filename:join(Dir, File)),
    Content.

%% The numbers alone.
copy() ->
    Dir = filename:join("/tmp", "weft_papers_document_" ++ os:getpid()),
    [begin
         To = filename:join(Dir, Csv),
         ok = filelib:ensure_dir(To),
         {ok, _} = file:copy(filename:join(?DOCUMENTED, Csv), To)
     end || Csv <- filelib:wildcard("*/{results,environment,doubts}.csv", ?DOCUMENTED)],
    Dir.
