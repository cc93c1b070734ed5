%% SPDX-License-Identifier: Apache-2.0
-module(weft_profile_tests).

-include_lib("eunit/include/eunit.hrl").

%% No node is asked for anything.
a_wrong_option_is_named_test_() ->
    [?_assertEqual({error, Text}, weft_profile:record([nobody@nowhere], Given))
     || {Given, Text} <-
            [{#{seconds => 0}, "seconds are from 0 to 300"},
             {#{seconds => 301}, "seconds are from 0 to 300"},
             {#{sample_ms => 0}, "sample_ms is 0: make it an integer from 1"},
             {#{rate => fast}, "rate is fast: make it an integer from 1"},
             {#{bytes => 1.5}, "bytes is 1.5: make it an integer from 1"},
             {#{pids => 0}, "pids is all, a number of processes from 1, or a list of pids"},
             {#{pids => [a]}, "pids has something else than pids"},
             {#{gc => yes}, "gc is true or false"},
             {#{second => 5}, "there is no option second"}]].
