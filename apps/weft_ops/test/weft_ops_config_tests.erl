%% SPDX-License-Identifier: Apache-2.0
%% @doc What is right is taken, and what is wrong is named with what it must be.
-module(weft_ops_config_tests).

-include_lib("eunit/include/eunit.hrl").

nothing_is_no_listener_test() ->
    ?assertEqual({ok, #{http => none, dist_peers_max => 64, timeout_ms => 4000}},
                 weft_ops_config:parse([])).

a_listener_has_a_port_and_an_address_by_itself_test() ->
    {ok, #{http := Http}} = weft_ops_config:parse([{http, #{}}]),
    ?assertEqual(#{port => 9469, ip => {127, 0, 0, 1}}, Http).

what_is_said_is_taken_test() ->
    Http = #{port => 0, ip => {0, 0, 0, 0, 0, 0, 0, 1}},
    ?assertEqual({ok, #{http => Http, dist_peers_max => 0, timeout_ms => 1}},
                 weft_ops_config:parse([{http, Http}, {dist_peers_max, 0}, {timeout_ms, 1}])).

what_is_wrong_is_explained_test_() ->
    [{Expected, ?_assertMatch({match, _}, re:run(text(Env), Expected))}
     || {Env, Expected} <-
            [{[{port, 1}], "the key port is unknown: remove it; there are dist_peers_max, http"},
             {[{http, 9469}], "http is 9469: make it a map such as #{port"},
             {[{http, #{prot => 1}}], "http has the unknown key prot: remove it; there are ip, p"},
             {[{http, #{port => 65536}}], "the port of http is 65536: make it an integer from 0"},
             {[{http, #{ip => "localhost"}}], "the ip of http is \"localhost\": make it an addr"},
             {[{http, #{ip => {1, 2}}}], "the ip of http is .1,2.: make it an address"},
             {[{dist_peers_max, many}], "dist_peers_max is many: make it an integer of at least 0"},
             {[{timeout_ms, 0}], "timeout_ms is 0: make it an integer of at least 1"},
             {[{timeout_ms, 0}], "in the environment of weft_ops"}]].

text(Env) ->
    {error, Text} = weft_ops_config:parse(Env),
    Text.
