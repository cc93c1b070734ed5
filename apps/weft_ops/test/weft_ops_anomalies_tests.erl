%% SPDX-License-Identifier: Apache-2.0
%% @doc Each anomaly is found, and is not found just below its threshold.
-module(weft_ops_anomalies_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODE, 'a@h').
-define(GROUPS, #{g1 => [?NODE, 'b@h'], g2 => ['b@h', 'c@h']}).

nothing_is_unusual_test() -> ?assertEqual([], found(sample(#{}))).

a_silent_node_test() ->
    ?assertMatch([#{kind := silent, severity := critical, node := ?NODE}],
                 weft_ops_anomalies:find(#{?NODE => silent}, ?GROUPS,
                                         weft_ops_anomalies:thresholds(), [])).

%% It is one condition, and says enough of a node that does not report either.
an_unreachable_member_test() ->
    Nodes = #{?NODE => {sample(#{unreachable => ['c@h']}), 0},
              'b@h' => {sample(#{node => 'b@h', unreachable => ['c@h']}), 0},
              'c@h' => silent},
    ?assertMatch([#{kind := unreachable, node := 'c@h', about := 'c@h',
                    text := <<"no path to it from a@h, b@h:", _/binary>>}],
                 weft_ops_anomalies:find(Nodes, ?GROUPS, weft_ops_anomalies:thresholds(), [])),
    %% But what was told before is not over: the node is as silent as it was.
    ?assertMatch([#{kind := unreachable}, #{kind := silent, node := 'c@h'}],
                 weft_ops_anomalies:find(Nodes, ?GROUPS, weft_ops_anomalies:thresholds(),
                                         ['c@h'])).

a_session_without_a_path_test() ->
    ?assertEqual([{no_path, 'c@h'}],
                 found(sample(#{peers => [peer('c@h', #{state => resuming})]}))).

a_process_that_does_not_answer_test() ->
    ?assertEqual([{no_answer, {session, 'b@h'}}],
                 found(sample(#{peers => [peer('b@h', #{state => unknown})]}))).

%% The period is two seconds, the threshold 100,000 bytes a second.
traffic_between_groups_test_() ->
    Over = fun(Peer, Via, Bytes) ->
               found(sample(#{peers => [peer(Peer, #{via => Via, bytes_out => Bytes - 1000,
                                                     bytes_in => 1000})]}))
           end,
    [?_assertEqual([{crosses_groups, 'c@h'}], Over('c@h', 'b@h', 200000)),
     ?_assertEqual([{bypasses_gateways, 'c@h'}], Over('c@h', 'c@h', 200000)),
     ?_assertEqual([], Over('c@h', 'b@h', 199000)),
     ?_assertEqual([], Over('b@h', 'b@h', 200000)),
     %% A node without a group.
     ?_assertEqual([], Over('f@h', 'f@h', 200000))].

a_hot_gateway_test_() ->
    [?_assertEqual([{hot_gateway, ?NODE}], found(sample(#{relayed_bytes => 100000000}))),
     ?_assertEqual([], found(sample(#{relayed_bytes => 99000000})))].

lanes_that_are_used_unequally_test_() ->
    Lanes = fun(Bytes) -> found(sample(#{links => [connection(#{lanes => Bytes})]})) end,
    [?_assertEqual([{lanes_unequal, 'b@h'}], Lanes([41000000, 10000000])),
     ?_assertEqual([], Lanes([40000000, 10000000])),
     ?_assertEqual([], Lanes([19000000, 0])),
     ?_assertEqual([], Lanes([41000000]))].

a_queue_that_grows_test_() ->
    Queued = fun(Bytes) -> found(sample(#{peers => [peer('b@h', #{queued_bytes => Bytes})]})) end,
    [?_assertEqual([{queue_grows, 'b@h'}], Queued(67108864)),
     ?_assertEqual([], Queued(67108863))].

suspended_senders_test() ->
    ?assertEqual([{senders_suspended, 'b@h'}],
                 found(sample(#{peers => [peer('b@h', #{suspended => 1})]}))).

a_link_that_flaps_test_() ->
    Ups = fun(Count) -> found(sample(#{links => [connection(#{ups => Count})]})) end,
    [?_assertEqual([{link_flaps, 'b@h'}], Ups(4)), ?_assertEqual([], Ups(3))].

clocks_apart_test_() ->
    [?_assertEqual(Expected, found(sample(#{}), SkewMs))
     || {SkewMs, Expected} <- [{1000, [{clock_skew, ?NODE}]}, {-1000, [{clock_skew, ?NODE}]},
                               {999, []}]].

a_busy_node_test_() ->
    Late = fun(Us) ->
               found(sample(#{machine => #{wake_up_us => Us, run_queue => 7, memory_bytes => 1,
                                           processes => 1}}))
           end,
    [?_assertEqual([{busy, ?NODE}], Late(200000)), ?_assertEqual([], Late(199999))].

found(Sample) -> found(Sample, 0).

found(Sample, SkewMs) ->
    [{Kind, About} || #{kind := Kind, about := About, node := ?NODE, text := <<_, _/binary>>}
                          <- weft_ops_anomalies:find(#{?NODE => {Sample, SkewMs}}, ?GROUPS,
                                                     weft_ops_anomalies:thresholds(), [])].

sample(Changes) ->
    maps:merge(#{node => ?NODE, at_ms => 0, period_ms => 2000, uptime_ms => 1, groups => [g1],
                 peers => [], links => [], relayed_bytes => 0, relayed_circuits => 1,
                 unreachable => [],
                 machine => #{wake_up_us => 0, run_queue => 0, memory_bytes => 1, processes => 1}},
               Changes).

peer(Node, Changes) ->
    maps:merge(#{node => Node, via => Node, state => up, bytes_out => 0, bytes_in => 0,
                 queued_bytes => 0, suspended => 0, resumes => 0}, Changes).

connection(Changes) ->
    maps:merge(#{node => 'b@h', state => up, ups => 0, rtt_us => 1, queued_bytes => 0, lanes => [],
                 last_error => ""}, Changes).
