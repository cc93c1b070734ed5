%% SPDX-License-Identifier: Apache-2.0
%% @doc The command line: what it runs, prints and returns.
-module(weft_sim_cli_tests).

-include_lib("eunit/include/eunit.hrl").

a_run_without_violation_prints_a_row_and_returns_0_test() ->
    {Status, Output} = capture(["--scenario", "static_churn", "--seeds", "2", "--nodes", "5"]),
    ?assertEqual(0, Status),
    ?assertMatch({match, _}, re:run(Output, "static_churn +5 +2 .* ok\n")),
    ?assertMatch({match, _}, re:run(Output, "All invariants held")).

the_quick_run_covers_every_scenario_test_() ->
    {timeout, 600, fun() ->
        {0, Output} = capture(["quick", "nodes", "4", "seeds", "1"]),
        [?assertMatch({match, _}, re:run(Output, atom_to_list(Name) ++ " .* ok\n"))
         || Name <- weft_sim_scenario:names()]
    end}.

%% It takes a minute of processor time; what it measures is tested by weft_sim_swim_tests.
the_figures_of_the_failure_detector_stand_beside_published_ones_test_() ->
    [{timeout, 600, fun figures_of_the_failure_detector/0} || os:getenv("FULL") =:= "1"].

figures_of_the_failure_detector() ->
    {0, Output} = capture(["--swim", "--quick"]),
    [?assertMatch({match, _}, re:run(Output, Line, [multiline]))
     || Line <- ["^plain SWIM +[0-9]+ +[0-9]+$", "^SWIM with Lifeguard +[0-9]+ +[0-9]+$",
                 "^published: fewer by", "^10 crashes, 60 s +[0-9.]+/[0-9.]+ "]].

a_trace_shows_what_happened_test() ->
    {0, Output} = capture(["--trace", "--scenario", "mesh_churn", "--seed", "3", "--nodes", "3"]),
    [?assertMatch({match, _}, re:run(Output, Line, [multiline]))
     || Line <- ["^ +[0-9.]+ ms  start    n001@sim$", "ms  up       n00.@sim -- n00.@sim$",
                 "ms  message  .* router {full,", "^ +60000.000 ms  heal_all$"]].

the_scenarios_are_listed_test() ->
    {0, Output} = capture(["--list"]),
    [?assertMatch({match, _}, re:run(Output, atom_to_list(Name) ++ " +[a-z]+"))
     || Name <- weft_sim_scenario:names()].

bad_arguments_are_told_and_return_2_test_() ->
    [?_assertEqual(2, weft_sim_cli:main(Arguments))
     || Arguments <- [["--scenario", "nothing"], ["--seed", "x"], ["--nodes", "0"], ["--seeds"],
                      ["--trace"], ["--fast"]]].

a_violation_names_the_command_that_repeats_it_test() ->
    Text = lists:flatten(weft_sim:replay_command(static_churn, 7, 5)),
    {match, [Call]} = re:run(Text, "weft_sim_cli:run\\((.*)\\)\\.", [{capture, [1], list}]),
    {ok, Tokens, _} = erl_scan:string(Call ++ "."),
    {ok, Arguments} = erl_parse:parse_term(Tokens),
    ?assertEqual(["--scenario", "static_churn", "--seed", "7", "--nodes", "5"], Arguments),
    ?assertMatch({0, _}, capture(Arguments)).

%% Runs main/1 in a process whose output we read.
capture(Arguments) ->
    {Runner, Ref} = spawn_monitor(fun() ->
                                      receive go -> exit({status, weft_sim_cli:main(Arguments)}) end
                                  end),
    true = group_leader(self(), Runner),
    Runner ! go,
    collect(Runner, Ref, []).

collect(Runner, Ref, Output) ->
    receive
        {io_request, From, ReplyAs, {put_chars, _, Text}} ->
            From ! {io_reply, ReplyAs, ok},
            collect(Runner, Ref, [Output, Text]);
        {io_request, From, ReplyAs, {put_chars, _, Module, Function, Args}} ->
            From ! {io_reply, ReplyAs, ok},
            collect(Runner, Ref, [Output, apply(Module, Function, Args)]);
        {'DOWN', Ref, process, Runner, {status, Status}} ->
            {Status, unicode:characters_to_list(Output)}
    after 280000 -> error(no_output)
    end.
