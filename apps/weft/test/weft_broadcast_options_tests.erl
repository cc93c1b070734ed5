%% SPDX-License-Identifier: Apache-2.0
-module(weft_broadcast_options_tests).

-include_lib("eunit/include/eunit.hrl").

what_is_not_configured_has_its_default_test() ->
    ?assertMatch(#{message_bytes := 100, keep_ms := 60000, trees := shared},
                 weft_broadcast_options:all(#{message_bytes => 100})).

defaults_and_bounds_are_well_formed_test() ->
    ?assertEqual([], weft_broadcast_options:check(weft_broadcast_options:all(#{}))),
    ?assertEqual(ok, weft_config:check([{broadcast, #{trees => per_root}}])).

errors_name_the_option_and_what_it_must_be_test() ->
    [?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text})
     || {Value, Words} <- [{[], "must be a map"},
                           {#{message_byte => 1}, "unknown option message_byte of broadcast"},
                           {#{message_bytes => 0}, "message_bytes of broadcast is 0, it must be "
                                                   "a number of bytes of an encoded message from "
                                                   "1 to 8388608"},
                           {#{trees => oak}, "one of [shared,per_root]"}],
        Text <- [text(weft_config:check([{broadcast, Value}]))]].

%% Others count it, too, when they forget what they have had.
the_time_for_which_the_host_was_suspended_counts_test() ->
    {Pid, Ref} = spawn_monitor(fun() -> exit(weft_broadcast_sup:init([])) end),
    receive
        {'DOWN', Ref, process, Pid, Init} ->
            {ok, {_, Children}} = Init,
            ?assertMatch([#{clock := weft_suspension}],
                         [Options || #{id := weft_broadcast, start := {_, _, [_, _, Options]}}
                                         <- Children])
    end.

text({error, Text}) -> Text.
