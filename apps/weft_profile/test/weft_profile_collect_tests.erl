%% SPDX-License-Identifier: Apache-2.0
-module(weft_profile_collect_tests).

-include_lib("eunit/include/eunit.hrl").

%% Its sampler fails at once, and with it the recording ends, before the clock is asked. The others
%% would be recorded.
a_recording_that_ends_before_its_clock_is_read_is_a_failure_of_its_node_test() ->
    {Recorded, Failed} = weft_profile_collect:record([node()], #{ms => 50, sample_ms => -1}),
    ?assertEqual([], Recorded),
    ?assertMatch([{Node, _}] when Node =:= node(), Failed),
    [{_, Text}] = Failed,
    ?assertNotEqual({nomatch, Text}, {string:find(Text, "lost its recording"), Text}).
