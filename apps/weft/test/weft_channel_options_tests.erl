%% SPDX-License-Identifier: Apache-2.0
%% @doc Errors in `channels' and `pins' say which channel, which option and what is expected.
-module(weft_channel_options_tests).

-include_lib("eunit/include/eunit.hrl").

errors_name_the_place_test_() ->
    [?_assertNotEqual(nomatch, string:find(error_of(Env), Part))
     || {Env, Part} <-
            [{[{channels, []}], "channels is [], it must be a map"},
             {[{pins, x}], "pins is x, it must be a map"},
             {[{channels, #{"a" => #{}}}], "the channel \"a\" is #{}, it must be an atom"},
             {[{channels, #{a => [bulk]}}], "the channel a is [bulk]"},
             {[{channels, #{a => #{klass => bulk}}}], "unknown option klass of the channel a"},
             {[{pins, #{logger => slow}}], "logger is pinned to the channel slow, which is not"},
             {[{pins, #{"a" => bulk}}], "must be a registered name"}]
            ++ [{[{channels, #{c => #{Option => Value}}}],
                 atom_to_list(Option) ++ " of the channel c is"}
                || {Option, Value} <- [{class, fast}, {parallelism, 17}, {queue_bytes, 0},
                                       {policy, drop}, {block_ms, 0}, {monotonic, 0},
                                       {compression, 10}, {mailbox_max, 0}]]].

good_values_are_accepted_test() ->
    ?assertEqual(ok, weft_config:check(
                       [{channels, #{gossip => #{class => control, monotonic => 1000},
                                     files => #{class => bulk, parallelism => 16,
                                                queue_bytes => 4096, policy => error,
                                                block_ms => 1, compression => 9,
                                                mailbox_max => infinity}}},
                        {pins, #{a => files, b => bulk}}])).

all_channels_have_all_options_test() ->
    All = weft_channel_options:all(#{gossip => #{monotonic => 5}, bulk => #{parallelism => 4}}),
    ?assertEqual([bulk, control, default, gossip], lists:sort(maps:keys(All))),
    ?assertMatch(#{bulk := #{class := bulk, parallelism := 4},
                   gossip := #{class := default, monotonic := 5}}, All),
    [?assertEqual(lists:sort([O || {O, _} <- weft_channel_options:options()]),
                  lists:sort(maps:keys(Channel))) || Channel <- maps:values(All)].

error_of(Env) ->
    {error, Text} = weft_config:check(Env),
    Text.
