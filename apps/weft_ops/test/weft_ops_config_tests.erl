%% SPDX-License-Identifier: Apache-2.0
%% @doc What is right is taken, and what is wrong is named with what it must be.
-module(weft_ops_config_tests).

-include_lib("eunit/include/eunit.hrl").

nothing_is_no_listener_test() ->
    ?assertMatch({ok, #{http := none, dist_peers_max := 28, timeout_ms := 4000,
                        sample_ms := 2000, clear_ms := 30000, alarms_max := 1000}},
                 weft_ops_config:parse([])).

what_is_set_of_several_leaves_the_others_test() ->
    {ok, #{thresholds := Thresholds, grace_ms := Graces}} =
        weft_ops_config:parse([{thresholds, #{wake_up_ms => 7}}, {grace_ms, #{busy => 0}}]),
    ?assertEqual((weft_ops_anomalies:thresholds())#{wake_up_ms := 7}, Thresholds),
    ?assertMatch(#{busy := 0, default := 10000, silent := 0}, Graces).

a_listener_has_a_port_and_an_address_by_itself_test() ->
    {ok, #{http := Http}} = weft_ops_config:parse([{http, #{}}]),
    ?assertEqual(#{port => 9469, ip => {127, 0, 0, 1}, hosts => []}, Http).

what_is_said_is_taken_test() ->
    Http = #{port => 0, ip => {0, 0, 0, 0, 0, 0, 0, 1}, hosts => ["h1.example.org"]},
    ?assertMatch({ok, #{http := Http, dist_peers_max := 0, timeout_ms := 1}},
                 weft_ops_config:parse([{http, Http}, {dist_peers_max, 0}, {timeout_ms, 1}])).

what_is_wrong_is_explained_test_() ->
    [{Expected, ?_assertMatch({match, _}, re:run(text(Env), Expected))}
     || {Env, Expected} <-
            [{[{port, 1}], "the key port is unknown: remove it; there are alarms_max, clear_ms"},
             {[{http, 9469}], "http is 9469: make it a map such as #{port"},
             {[{http, #{prot => 1}}], "http has the unknown key prot: remove it; there are host"},
             {[{http, #{port => 65536}}], "the port of http is 65536: make it an integer from 0"},
             {[{http, #{ip => "localhost"}}], "the ip of http is \"localhost\": make it an addr"},
             {[{http, #{hosts => ["h1" | h2]}}], "hosts of http is .*: make it a list of names"},
             {[{http, #{hosts => "h1"}}], "hosts of http is \"h1\": make it a list of names"},
             {[{http, #{hosts => ["h1:80"]}}], "hosts of http is ..h1:80..: make it a list"},
             {[{http, #{ip => {1, 2}}}], "the ip of http is .1,2.: make it an address"},
             {[{dist_peers_max, many}], "dist_peers_max is many: make it an integer of at least 0"},
             {[{timeout_ms, 0}], "timeout_ms is 0: make it an integer of at least 1"},
             {[{sample_ms, 99}], "sample_ms is 99: make it an integer of at least 100"},
             {[{thresholds, 3}], "thresholds is 3: make it a map with some of clock_skew_ms"},
             {[{thresholds, #{wake_up => 3}}], "thresholds has the unknown key wake_up: remove it"},
             {[{grace_ms, #{bussy => 3}}], "grace_ms has the unknown key bussy: remove it"},
             {[{grace_ms, #{busy => -1}}], "busy of grace_ms is -1: make it an integer of at l"},
             {[{recording, "/tmp"}], "recording is \"/tmp\": make it a map such as #{dir"},
             {[{recording, #{dir => 3}}], "the dir of recording is 3: make it a path"},
             {[{recording, #{dir => "/tmp", hours => 3}}], "recording has the unknown key hours"},
             {[{recording, #{dir => "/tmp", bytes_max => 1}}],
              "in recording, bytes_max is 1: make it an integer of at least 1048576"},
             {[{webhook, "https://h/secret"}], "webhook has no url: make it a map such as #{url"},
             {[{webhook, #{url => "h/secret"}}], "the url of webhook is none: make it a string"},
             {[{webhook, #{url => "ftp://h/secret"}}], "the url of webhook is none"},
             {[{webhook, #{url => 7}}], "the url of webhook is none"},
             {[{webhook, #{url => {file, ""}}}], "the url of webhook is none"},
             {[{webhook, #{url => "http://h", secret => "x"}}], "webhook has the unknown key secr"},
             {[{webhook, #{url => "http://h", secret_file => 7}}], "the secret_file of webhook is"},
             {[{webhook, #{url => "http://h", queue_max => 0}}],
              "in webhook, queue_max is 0: make"},
             {[{timeout_ms, 0}], "in the environment of weft_ops"}]].

%% It may be a secret.
no_text_names_the_url_of_a_webhook_test_() ->
    [?_assertEqual(nomatch, re:run(text([{webhook, Value}]), "secret(?!_file)"))
     || Value <- ["https://h/secret", #{url => "h/secret"}, #{url => <<"ftp://h/secret">>},
                  #{url => "https://h/secret", tries_max => none}]].

a_webhook_has_its_limits_by_itself_test() ->
    {ok, #{webhook := Webhook}} = weft_ops_config:parse([{webhook, #{url => <<"https://h/x">>}}]),
    ?assertEqual(#{url => "https://h/x", secret_file => none, cacert_file => none,
                   timeout_ms => 5000, queue_max => 1000, tries_max => 10, retry_ms => 1000,
                   retry_max_ms => 60000}, Webhook).

text(Env) ->
    {error, Text} = weft_ops_config:parse(Env),
    Text.
