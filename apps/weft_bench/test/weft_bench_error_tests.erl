%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_error_tests).

-include_lib("eunit/include/eunit.hrl").

large_reasons_are_cut_test() ->
    Large = [#{list => lists:seq(1, 1000), text => lists:duplicate(1000, $a)}
             || _ <- lists:seq(1, 100)],
    ?assert(length(weft_bench_error:text("it failed: ~0tp", [Large])) < 1000),
    ?assertEqual("it failed: {no,luck}", weft_bench_error:text("it failed: ~0tp", [{no, luck}])).

%% Whatever value a key has.
configurations_are_refused_in_few_words_test() ->
    Large = lists:seq(1, 100000),
    [begin
         {error, Text} = weft_load_config:check([{driver, d}, {Key, Large}]),
         ?assert(length(Text) < 1000),
         ?assertMatch({match, _}, re:run(Text, ["^", atom_to_list(Key)]))
     end || Key <- [mode, duration, operations, rng_seed]].
