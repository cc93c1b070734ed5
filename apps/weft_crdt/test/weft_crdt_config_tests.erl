%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of the application, and what is said when it does not run.
-module(weft_crdt_config_tests).

-include_lib("eunit/include/eunit.hrl").

defaults_test() ->
    ?assertMatch({ok, #{keys_max := 100000, sync_ms := 3000}}, weft_crdt_app:config([])),
    ?assertMatch({ok, #{sync_ms := 7}}, weft_crdt_app:config([{sync_ms, 7}])).

wrong_configuration_is_named_test_() ->
    [?_assertEqual({error, Error}, weft_crdt_app:config([Pair]))
     || {Pair, Error} <- [{{keys, 8}, {unknown_key, keys}},
                          {{keys_max, 0}, {bad_value, {keys_max, 0}}},
                          {{sync_ms, 1 bsl 32}, {bad_value, {sync_ms, 1 bsl 32}}},
                          {{dir, 7}, {bad_value, {dir, 7}}},
                          {{sync_ms, often}, {bad_value, {sync_ms, often}}}]].

%% The guide's table has the defaults.
the_guide_has_the_defaults_test() ->
    {ok, Defaults} = weft_crdt_app:config([]),
    {ok, Text} = file:read_file(guide(filename:absname(""))),
    [?assertMatch({Key, {match, _}},
                  {Key, re:run(Text, ["\\| `", atom_to_list(Key), "` \\| ",
                                      "`?", lists:concat([Value]), "`?", " \\|"])})
     || {Key, Value} <- maps:to_list(Defaults)].

guide(Dir) ->
    File = filename:join(Dir, "docs/guide/crdt.md"),
    case filelib:is_regular(File) of
        true -> File;
        false -> guide(filename:dirname(Dir))
    end.

without_the_application_it_is_said_test() ->
    ?assertEqual({error, not_running}, weft_crdt:value(k)),
    ?assertEqual({error, not_running}, weft_crdt:declare(k, orset)),
    ?assertEqual({error, not_running}, weft_crdt_flow:union(a, b, c)),
    ?assertEqual({error, {bad_threshold, x}}, weft_crdt_flow:invariant(a, x, fun(_) -> ok end)).
