%% SPDX-License-Identifier: Apache-2.0
-module(weft_pubsub_core_tests).

-include_lib("eunit/include/eunit.hrl").

-define(URL, "amqp://u:secret@h:1/v").

good_options_pass_test() ->
    [?assertEqual(ok, weft_topology:validate('a@h', {pubsub, Options}))
     || Options <- [#{broker => ?URL}, #{broker => [?URL, "amqps://h"]},
                    #{broker => ?URL, announce_ms => 100, message_bytes => 1024}]].

bad_options_are_said_without_the_password_test() ->
    [begin
         {error, Text0} = weft_topology:validate('a@h', {pubsub, Options}),
         Text = unicode:characters_to_list(Text0),
         ?assertNotEqual({nomatch, Text}, {string:find(Text, Word), Text}),
         ?assertEqual(nomatch, string:find(Text, "secret"))
     end || {Options, Word} <- [{#{}, "needs the URL"}, {#{broker => ""}, "no URL"},
                                {#{broker => 5}, "no URL"},
                                {#{broker => "http://u:secret@h"}, "no URL"},
                                {#{broker => lists:duplicate(17, ?URL)}, "no URL"},
                                {#{broker => ?URL, brokers => 1}, "no option brokers"},
                                {#{broker => ?URL, message_bytes => 1}, "message_bytes"},
                                {#{broker => ?URL, announce_ms => often}, "announce_ms"},
                                {?URL, "options of topology pubsub"}]].

what_is_shown_has_no_password_test() ->
    ?assertEqual({pubsub, #{broker => "...", announce_ms => 5}},
                 weft_topology:without_secrets({pubsub, #{broker => ?URL, announce_ms => 5}})),
    ?assertEqual(full_mesh, weft_topology:without_secrets(full_mesh)).

nodes_at_the_broker_are_dialled_test() ->
    {State0, _} = weft_pubsub_core:init('a@h', #{broker => ?URL, incarnation => 1}),
    {State, Effects} = weft_pubsub_core:handle({notice, {seeds, ['b@h', 'c@h']}}, 0, State0),
    ?assertEqual(['b@h', 'c@h'], weft_pubsub_core:neighbours(State)),
    ?assertEqual(2, length([Ms || {after_ms, Ms, {dial, _, _}} <- Effects])).

it_is_not_partial_and_has_a_tunnel_test() ->
    ?assertNot(weft_pubsub_core:partial('a@h', #{broker => ?URL})),
    ?assertEqual({ok, weft_amqp}, weft_topology:tunnel(weft_pubsub_core)),
    ?assertEqual(none, weft_topology:tunnel(weft_static_core)).
