%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_arguments_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, [{nodes, {numbers, 2}, [4]}, {seconds, {number, 1}, 5},
                  {kinds, {words, [global, eventual]}, [global]}]).

%% The exit status, and what was run, or why not.
main(Arguments) ->
    Self = self(),
    Status = weft_bench_arguments:main(Arguments, "try", ?OPTIONS,
                                       fun(#{seconds := 13}) -> {error, "no luck"};
                                          (Options) -> Self ! {run, Options}, ok
                                       end),
    receive {run, Options} -> {Status, Options} after 0 -> Status end.

what_is_not_given_is_as_it_was_test() ->
    {0, Options} = main(["--terminal"]),
    ?assertMatch(#{nodes := [4], seconds := 5, kinds := [global]}, Options),
    ?assertEqual("try", filename:basename(maps:get(out, Options))).

what_is_given_counts_test() ->
    ?assertEqual({0, #{nodes => [2, 30], seconds => 1, kinds => [global, eventual], out => "here"}},
                 main(["--out", "here", "--kinds", "eventual,global", "--nodes", "2,30",
                       "--seconds", "7", "--seconds", "1"])).

bad_arguments_are_refused_test_() ->
    [?_assertEqual(2, main(Arguments))
     || Arguments <- [["--nodes"], ["--nodes", "1"], ["--nodes", "2,x"], ["--nodes", ","],
                      ["--nodes", "3.5"], ["--seconds", "0"], ["--seconds", "2,3"],
                      ["--kinds", "global,strong"], ["--kinds", ""], ["--colour", "red"],
                      ["here"]]].

a_command_may_refuse_too_test() ->
    ?assertEqual(2, main(["--seconds", "13"])).
