%% SPDX-License-Identifier: Apache-2.0
%% @doc Errors of the configuration say which key is wrong, what it must be, and what was meant.
-module(weft_config_tests).

-include_lib("eunit/include/eunit.hrl").

defaults_are_valid_test() ->
    ?assertEqual(ok, weft_config:check([{Key, Default}
                                        || {Key, Default, _, _} <- weft_config:schema()])),
    ?assertEqual(ok, weft_config:check([])).

an_unknown_key_gets_the_nearest_known_one_test_() ->
    [?_assertNotEqual(nomatch, string:find(error_of([{Key, 1}]), "did you mean " ++ Meant ++ "?"))
     || {Key, Meant} <- [{lane, "lanes"}, {resume_timeout, "resume_timeout_ms"},
                         {window_byte, "window_bytes"}, {cluster_nam, "cluster_name"},
                         {plain_node, "plain_nodes"}]].

an_unknown_key_like_no_other_gets_them_all_test() ->
    Text = error_of([{something_else_entirely, 1}]),
    ?assertNotEqual(nomatch, string:find(Text, "unknown option something_else_entirely")),
    [?assertNotEqual(nomatch, string:find(Text, atom_to_list(Key)))
     || {Key, _, _, _} <- weft_config:schema()].

a_wrong_value_is_named_with_what_it_must_be_test_() ->
    [begin
         Text = error_of([{Key, Value}]),
         {Key, _, _, Expected} = lists:keyfind(Key, 1, weft_config:schema()),
         ?_assertEqual(lists:flatten(io_lib:format("weft: ~s is ~0p, it must be ~s",
                                                   [Key, Value, Expected])), Text)
     end || {Key, Value} <- [{lanes, 0}, {lanes, 65}, {lanes, "4"}, {cluster_name, ""},
                             {cluster_name, 17}, {cluster_name, lists:duplicate(256, $x)},
                             {transport, udp}, {tls_options, none}, {family, inet4},
                             {window_bytes, 1}, {resume_timeout_ms, -1}, {keepalive_ms, 0},
                             {idle_keepalive_ms, never},
                             {handshake_timeout_ms, infinity}, {pending_handshakes_max, 0},
                             {plain_nodes, true}, {ports, [{"a", 1}]}, {ports, #{"a" => 70000}},
                             {circuits, both}, {hop_limit, 0}, {faults, 1}, {groups, #{all => []}},
                             {groups, #{g => ["a@h"]}}, {groups, [g]}, {groups_file, 7},
                             {group_names, []}, {attributes, [roles]}]].

all_errors_are_told_test() ->
    Text = error_of([{lanes, 0}, {family, x}, {lames, 1}]),
    [?assertNotEqual(nomatch, string:find(Text, Part))
     || Part <- ["lanes is", "family is", "lames"]].

a_link_must_be_able_to_hear_a_keepalive_in_time_test() ->
    ?assertNotEqual(nomatch, string:find(error_of([{keepalive_ms, 6000}]),
                                         "link_timeout_ms (5000) must be more than keepalive_ms")),
    ?assertEqual(ok, weft_config:check([{keepalive_ms, 6000}, {link_timeout_ms, 20000}])).

idle_lanes_rest_where_swim_watches_the_members_unless_told_otherwise_test_() ->
    Of = fun(Env) ->
             [application:set_env(weft, Key, Value) || {Key, Value} <- Env],
             Ms = weft_config:idle_keepalive_ms(),
             [application:unset_env(weft, Key) || {Key, _} <- Env],
             Ms
         end,
    Swim = {topology, {full_mesh, #{detector => swim}}},
    [?_assertEqual(0, Of([])), ?_assertEqual(0, Of([{topology, full_mesh}])),
     ?_assertEqual(15000, Of([Swim])), ?_assertEqual(700, Of([Swim, {idle_keepalive_ms, 700}]))].

error_of(Env) ->
    {error, Text} = weft_config:check(Env),
    true = io_lib:char_list(Text),
    Text.
