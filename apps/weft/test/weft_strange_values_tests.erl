%% SPDX-License-Identifier: Apache-2.0
%% @doc Whatever is written as a value of the configuration, there is a verdict on it: it is
%% correct, or a text says what is wrong. A check that crashes would stop the node without that
%% text.
-module(weft_strange_values_tests).

-include_lib("eunit/include/eunit.hrl").

strange() ->
    [[a | b], ['a@h', 'b@h' | 'c@h'], [{'a@h', 'b@h'} | c], ["x" | <<"y">>], [$x | y], [[] | []],
     [], "", '', {}, #{}, #{a => [b | c]}, #{[a | b] => c}, -1, 1.5, 1 bsl 70, <<1:3>>, <<255>>,
     [16#110000], [[a | b]], self(), make_ref(), fun() -> ok end, {a, [b | c]}, undefined].

each_key_has_a_verdict_on_any_value_test_() ->
    [{lists:concat([Key]),
      fun() ->
          [verdict(weft_config:check(Form), Form)
           || Value <- strange(), Form <- [[{Key, Value}], [{tuning, #{Key => Value}}]]]
      end} || {Key, _, _, _} <- weft_config:keys() ++ weft_config:tuning()].

the_whole_has_one_test() ->
    [verdict(weft_config:check(Form), Form)
     || Value <- strange(), Form <- [[{tuning, Value}], [{lanes, Value}, {topology, Value}]]].

each_topology_has_one_on_any_option_test_() ->
    Nodes = ['a@h', 'b@h', 'c@h'],
    [{lists:concat([Name]),
      fun() ->
          ?assertEqual(ok, weft_topology:validate('a@h', {Name, Good})),
          [verdict(weft_topology:validate('a@h', {Name, Good#{Key => Value}}), {Name, Key, Value})
           || Key <- maps:keys(Good), Value <- strange()]
      end}
     || {Name, Good} <- [{full_mesh, #{seeds => Nodes, detector => ticks}},
                         {full_mesh, #{seeds => Nodes, detector => swim}},
                         {static, #{links => [{'a@h', 'b@h'}]}},
                         {groups, #{one => Nodes, two => ['c@h', 'd@h']}},
                         {client_server, #{role => client, servers => ['b@h'], links => 2}},
                         {peer_to_peer, #{seeds => Nodes, active => 5, passive => 30,
                                          optimise => rtt}},
                         {pubsub, #{broker => "amqp://u:p@host:5672/v"}}]].

discovery_has_one_test() ->
    [verdict(weft_discovery_options:parse(Form), Form)
     || Value <- strange(), Form <- [Value, [Value], [{Value, #{}}], [{dns, Value}]]].

each_source_has_one_on_any_option_test_() ->
    [{lists:concat([Name]),
      fun() ->
          ?assertMatch({ok, [_]}, weft_discovery_options:parse([{Name, Good}])),
          [verdict(weft_discovery_options:parse([{Name, Good#{Key => Value}}]), {Name, Key, Value})
           || Key <- maps:keys(Good), Value <- strange()]
      end}
     || {Name, Good} <- [{static, #{nodes => ['a@h']}}, {file, #{path => "nodes"}},
                         {env, #{variable => "SEEDS"}},
                         {dns, maps:merge(#{name => "app.h", type => a}, dns())},
                         {kubernetes, maps:merge(#{service => "app", namespace => "b", by => ip,
                                                   domain => "cluster.local"}, dns())},
                         {epmd, #{hosts => ["h"], prefix => "app", timeout_ms => 5000}},
                         {gossip, #{address => {233, 252, 1, 32}, interface => {0, 0, 0, 0},
                                    port => 45892, ttl => 1, interval_ms => 1500}}]].

dns() -> #{node => "app", nameservers => [{{10, 0, 0, 1}, 53}], timeout_ms => 5000}.

names_with_a_quorum_have_one_test() ->
    [verdict(weft_names_strong_options:check(Options), Options)
     || Key <- [voters, view, replicas, partitions, names_max, lease_ms, cache_ms],
        Value <- strange(), Options <- [#{voters => ['a@h'], Key => Value}]].

verdict(ok, _) -> ok;
verdict({ok, _}, _) -> ok;
verdict({error, Text}, Given) ->
    ?assertMatch({_, Chars} when length(Chars) > 0, {Given, unicode:characters_to_list(Text)}).
