%% SPDX-License-Identifier: Apache-2.0
%% @doc What a user gives to `bin/bench orbit' and `bin/bench aco', up to the start of nodes; the
%% rest is in weft_orbit_SUITE and weft_aco_SUITE.
-module(weft_papers_program_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ONE, "2\r\n10 5\r\n3 2\t8 5\n").
-define(TWO, " 10 5  3 2  8 5\n 1 1  4 6  7 9\n").

%% ---- problems ----

a_file_with_one_problem_begins_with_its_number_of_jobs_test() ->
    ?assertEqual(weft_aco_problem:parse(<<"2 10 5 3 2 8 5">>), read(?ONE, #{})).

a_file_of_the_library_has_problems_one_after_the_other_test() ->
    [First, Second] = [weft_aco_problem:parse(Text)
                       || Text <- [<<"2 10 5 3 2 8 5">>, <<"2 1 1 4 6 7 9">>]],
    ?assertEqual(First, read(?TWO, #{jobs => 2})),
    ?assertEqual(First, read(?TWO, #{jobs => 2, number => 1})),
    ?assertEqual(Second, read(?TWO, #{jobs => 2, number => 2})).

bad_problems_are_told_test_() ->
    [{Part, ?_assertMatch({_, {match, _}}, told(Part, read(Text, Options)))}
     || {Part, Text, Options} <-
            [{"--number 3: .*2 problems .*2 jobs", ?TWO, #{jobs => 2, number => 3}},
             {"12 numbers.* 3 x 5", ?TWO, #{jobs => 5}},
             {"12 numbers.*--jobs", ?TWO, #{}},
             {"--jobs", ?ONE, #{number => 1}},
             {"8 numbers", "3 1 1 1 1 1 1 1", #{}},
             {"0 numbers", "", #{}}, {"0 problems", "", #{jobs => 4}},
             {"word 3 .*\"1.5\"", "1 2 1.5 4", #{}},
             {"duration is 0", "1 0 1 4", #{}},
             {"weight is -1", "1 1 -1 4", #{}}]].

a_file_that_is_not_there_is_told_test() ->
    {error, Text} = weft_aco_file:read("/no/such/file", #{}),
    ?assertMatch({match, _}, re:run(Text, "^/no/such/file: no such file")).

told(Part, {error, Told}) -> {Told, re:run(Told, "^/tmp/[^ ]*: .*" ++ Part)}.

read(Text, Options) ->
    in_file(Text, ".txt", fun(File) -> weft_aco_file:read(File, Options) end).

%% ---- generators ----

each_function_with_one_argument_is_a_generator_test() ->
    Text = "-module(own_two).\n-export([b/1, a/1, c/2]).\na(X) -> X + 1.\nb(X) -> -2 * X.\n"
           "c(X, _) -> X.\n",
    {ok, #{generators := Generators, modules := [{own_two, _}]}} = own(Text),
    ?assertEqual([{own_two, a}, {own_two, b}], Generators),
    %% 0 leads to 1, 1 to 2 and 2, and so on: all numbers.
    ?assertMatch({ok, #{size := 30, sum := 435}},
                 weft_bench_program:run(weft_orbit, #{generators => Generators, space => 30,
                                                      workers => 2}, [node()], 60000)).

%% One that never returns is given up after five seconds.
bad_generators_are_told_test_() ->
    [{timeout, 60, {Part, ?_assertMatch({_, {match, _}},
                                        {Part, re:run(element(2, own(Text)), Part)})}}
     || {Part, Text} <-
            [{"no function", "-module(own_none).\n"},
             {"module lists", "-module(lists).\n-export([a/1]).\na(X) -> X.\n"},
             {":3:[0-9]+: variable 'Y' is unbound",
              "-module(own_y).\n-export([a/1]).\na(X) -> Y.\n"},
             {"a\\(0\\) is none",
              "-module(own_atom).\n-export([a/1]).\na(_) -> none.\n"},
             {"a\\(0\\) .*badarith",
              "-module(own_zero).\n-export([a/1]).\na(X) -> 1 div X.\n"},
             {"a\\(0\\) does not return within 5 s",
              "-module(own_loop).\n-export([a/1]).\na(X) -> a(X).\n"}]].

a_file_of_another_name_is_told_test() ->
    {error, Text} = in_file("-module(own_text).\n", ".txt", fun weft_orbit_own:read/1),
    ?assertMatch({match, _}, re:run(Text, "[.]txt: .*ends in [.]erl")).

own(Text) ->
    in_file(Text, ".erl", fun weft_orbit_own:read/1).

in_file(Text, Extension, Read) ->
    Number = erlang:unique_integer([positive]),
    File = lists:concat(["/tmp/weft_papers_program_", os:getpid(), "_", Number, Extension]),
    ok = file:write_file(File, Text),
    try Read(File) after file:delete(File) end.

%% ---- command lines ----

%% Each is an emulator of this machine.
more_nodes_than_there_may_be_are_refused_with_their_number_test() ->
    [begin
         {error, Told} = weft_argparse:parse(Words, Module:command(), "program"),
         ?assertEqual({Words, []}, {Words, weft_report_said:missing(
                                             Parts, unicode:characters_to_list(Told))})
     end || {Module, Words, Parts} <-
                [{weft_aco_command, ["--levels", "8"], [7, {256, "nodes"}, 383]},
                 {weft_aco_command, ["--levels", "1000000"], [7, {256, "nodes"}]},
                 {weft_orbit_command, ["--nodes", "257"], ["--nodes is 257", "up to 256"]},
                 {weft_city_command, ["--nodes", "257"], ["--nodes is 257", "up to 256"]},
                 {weft_de_bench, ["x", "--nodes", "257"], ["--nodes is 257", "up to 256"]}]],
    {ok, #{levels := 7}, _, _} = weft_argparse:parse(["--levels", "7"], weft_aco_command:command(),
                                                     "program").

bad_arguments_start_no_nodes_test_() ->
    [?_assertEqual({2, Module, Arguments}, {Module:main(Arguments), Module, Arguments})
     || {Module, Arguments} <-
            [{weft_orbit_command, ["--generators", Generators]}
             || Generators <- ["1,6", "1,1", ",", "/no/such/file"]]
            ++ [{weft_orbit_command, Words}
                || Words <- [["--space", "0"], ["--space", "x"], ["--nodes", "6"],
                             ["--nodes", "2", "--groups", "3"], ["--variant", "nothing"],
                             ["--gateways", "3"]]]
            ++ [{weft_aco_command, Words}
                || Words <- [["--seed", "x"], ["--jobs", "3"], ["--number", "1"],
                             ["--levels", "1"], ["--problem", "/no/such/file"],
                             ["--version", "gr", "--variant", "stock"]]]].
