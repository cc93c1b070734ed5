%% SPDX-License-Identifier: Apache-2.0
%% @doc Each family has the value that the status says, a large cluster costs as few series as a
%% small one, and the guide lists exactly what there is.
-module(weft_ops_families_tests).

-include_lib("eunit/include/eunit.hrl").

%% As the guide says: of weft itself, and of each connected node.
-define(SERIES_MAX, 1300).
-define(SERIES_OF_PEER, 25).
-define(PEERS_MAX, 28).
-define(MS_MAX, 100).
-define(SCRAPES, 11).

%% --- values -------------------------------------------------------------------------------------

each_family_of_a_node_has_its_value_test_() ->
    Values = reported(weft_ops_families:all(), weft_ops_test_status:small()),
    All = expected() ++ broadcast() ++ channels() ++ stores(),
    [{atom_to_list(Name), ?_assertEqual(Expected, maps:get(Name, Values, none))}
     || {Name, Expected} <- All]
        ++ [?_assertEqual([], maps:keys(Values) -- [Name || {Name, _} <- All])].

expected() ->
    [{weft_build_info, [{[{cluster, <<"shop">>}, {version, <<"1.2">>}, {topology, <<"groups">>},
                          {otp_release, <<"25">>}], 1}]},
     {weft_members, by(cluster, [{shop, 6}])}, {weft_unreachable_members, plain(1)},
     {weft_links, by(state, [{dialling, 0}, {down, 1}, {unknown, 0}, {up, 1}])},
     {weft_link_round_trip_seconds_max, plain(0.0015)},
     {weft_link_round_trip_seconds_mean, plain(0.0015)},
     {weft_links_up_total, plain(107)}, {weft_links_down_total, plain(106)},
     {weft_dials_failed_total, plain(103)}, {weft_link_queued_bytes, plain(40)},
     {weft_lanes, plain(2)}, {weft_lanes_opened_total, plain(105)},
     {weft_lanes_closed_total, plain(104)}, {weft_refusals_total, plain(110)},
     {weft_sessions, by(state, [{handshake, 0}, {resuming, 1}, {unknown, 0},
                                {up, 2}])},
     {weft_sessions_started_total, plain(117)}, {weft_sessions_ended_total, plain(116)},
     {weft_session_resumes_total, plain(114)}, {weft_session_reroutes_total, plain(118)},
     {weft_session_repairs_total, plain(113)},
     {weft_session_unacknowledged_bytes, plain(90)}, {weft_session_window_bytes, plain(196608)},
     {weft_session_queued_bytes, plain(120)},
     {weft_suspended_senders, plain(6)}, {weft_senders_suspended_total, plain(115)},
     {weft_stream_packets_sent_total, plain(109)}, {weft_stream_packets_received_total, plain(108)},
     {weft_stream_sent_bytes_total, plain(102)}, {weft_stream_received_bytes_total, plain(101)},
     {weft_circuits, plain(1)}, {weft_relayed_circuits, plain(1)},
     {weft_relayed_packets_total, plain(112)}, {weft_relayed_bytes_total, plain(111)},
     {weft_channel_streams, by(channel, [{bulk, 2}])},
     {weft_channel_queued_bytes, by(channel, [{bulk, 16}])},
     {weft_groups, plain(1)}, {weft_group_members, by(group, [{left, 3}])},
     {weft_group_gateways, by(group, [{left, 1}])},
     {weft_names, [{[{scope, <<"cluster">>}, {kind, <<"eventual">>}], 11},
                   {[{scope, <<"{own,\"x\"}">>}, {kind, <<"strong">>}], 12}]},
     %% Of a strong scope there are none.
     {weft_name_conflicts_total, by(scope, [{cluster, 13}])},
     {weft_webhook_sent_total, plain(20)}, {weft_webhook_failed_total, plain(21)},
     {weft_webhook_dropped_total, plain(22)}, {weft_webhook_queued, plain(23)},
     {weft_series_left_out, plain(0)}, {weft_dist_peers_left_out, plain(0)},
     {weft_scrape_seconds, plain(0.25)},
     {weft_scrape_errors_total, by(source, [{families, 3}, {peers, 2}, {status, 1}])}].

broadcast() ->
    [{weft_broadcast_sent_total, plain(1)}, {weft_broadcast_received_total, plain(2)},
     {weft_broadcast_received_bytes_total, plain(3)}, {weft_broadcast_delivered_total, plain(4)},
     {weft_broadcast_dropped_total, plain(5)}, {weft_broadcast_missed_total, plain(6)},
     {weft_broadcast_malformed_total, plain(7)}, {weft_broadcast_mailbox_drops_total, plain(8)},
     {weft_broadcast_duplicates_total, plain(9)}, {weft_broadcast_grafts_sent_total, plain(10)},
     {weft_broadcast_grafts_received_total, plain(11)},
     {weft_broadcast_prunes_sent_total, plain(12)},
     {weft_broadcast_prunes_received_total, plain(13)},
     {weft_broadcast_links, by(kind, [{eager, 14}, {lazy, 15}])},
     {weft_broadcast_trees, plain(16)}, {weft_broadcast_missing_messages, plain(17)},
     {weft_broadcast_cached_messages, plain(18)}, {weft_broadcast_subscriptions, plain(5)}].

channels() ->
    [{list_to_atom(lists:concat(["weft_channel_", Name, "_total"])), by(channel, [{bulk, 5}])}
     || Name <- weft_channel_counters:names()].

stores() ->
    [{weft_ring_members, by(status, [{gone, 4}, {joining, 1}, {leaving, 3}, {member, 2}])},
     {weft_ring_partitions, plain(64)}, {weft_ring_partitions_owned, plain(16)},
     {weft_ring_partitions_moving, plain(5)}, {weft_ring_handoffs_running, plain(2)},
     {weft_ring_handoffs_done_total, plain(19)}, {weft_ring_handoffs_failed_total, plain(20)},
     {weft_ring_partition_processes, plain(17)}, {weft_ring_partition_queue_max, plain(18)},
     {weft_kv_requests_total, by(operation, [{delete, 33}, {get, 31}, {put, 32}])},
     {weft_kv_request_seconds_total, by(operation, [{delete, 0.25}, {get, 0.5}, {put, 1.5}])},
     {weft_kv_errors_total, by(reason, [{caller, 34}, {overload, 35}])},
     {weft_kv_requests_running, plain(36)}, {weft_kv_requests_lingering, plain(59)},
     {weft_kv_hints, plain(37)},
     {weft_kv_objects, plain(38)}, {weft_kv_memory_bytes, plain(39)},
     {weft_kv_file_bytes, plain(40)}, {weft_kv_partitions_unwritable, plain(41)},
     {weft_kv_comparisons_total, plain(42)}, {weft_kv_comparisons_failed_total, plain(43)},
     {weft_kv_repaired_keys_total, plain(44)}, {weft_kv_pairs, plain(45)},
     {weft_kv_pairs_alike, plain(46)}, {weft_kv_partitions_not_compared, plain(50)},
     {weft_kv_partitions_incomplete, plain(58)},
     {weft_kv_strong_replicas, by(status, [{forgotten, 49}, {founding, 48}, {voting, 47}])},
     {weft_crdt_keys, plain(51)}, {weft_crdt_served, plain(2)},
     {weft_crdt_unacknowledged_keys, plain(53)}, {weft_crdt_refused_total, plain(54)},
     {weft_crdt_readers, plain(55)}, {weft_crdt_subscriptions, plain(56)},
     {weft_crdt_retired_nodes, plain(57)}, {weft_crdt_barred, plain(1)}].

plain(Value) -> [{[], Value}].

by(Label, Values) -> [{[{Label, atom_to_binary(Name)}], Value} || {Name, Value} <- Values].

each_counter_of_the_node_is_reported_test() ->
    #{counters := Counters} = Status = weft_ops_test_status:small(),
    Reported = reported(weft_ops_families:all(), Status),
    ?assertEqual([], maps:values(Counters) -- [Value || [{[], Value}] <- maps:values(Reported)]).

%% Nothing else is lost, and nobody is taken to be unreachable because of it.
who_did_not_answer_is_unknown_test() ->
    #{sessions := [Session | _], links := Links} = Status = weft_ops_test_status:small(),
    Unanswered = [#{what => session, node => c@h, pid => self()},
                  #{what => link, node => f@h, pid => self()}, #{what => names}],
    Silent = Status#{sessions := [Session], links := lists:droplast(Links),
                     unanswered => Unanswered},
    Values = reported(weft_ops_families:all(), Silent),
    ?assertEqual(by(state, [{handshake, 0}, {resuming, 0}, {unknown, 1}, {up, 1}]),
                 maps:get(weft_sessions, Values)),
    ?assertEqual(by(state, [{dialling, 0}, {down, 0}, {unknown, 1}, {up, 1}]),
                 maps:get(weft_links, Values)),
    ?assertEqual(plain(0), maps:get(weft_unreachable_members, Values)),
    ?assertEqual(plain(114), maps:get(weft_session_resumes_total, Values)),
    #{weft_detailed_session_state := States} = reported(weft_ops_detailed:families(session),
                                                        Silent),
    ?assert(lists:member({[{peer, <<"c@h">>}, {state, <<"unknown">>}, {path, <<"none">>}], 1},
                         States)).

without_a_topology_no_member_is_unreachable_test() ->
    Status = (weft_ops_test_status:small())#{topology := undefined},
    Values = reported(weft_ops_families:all(), Status),
    ?assertNot(is_map_key(weft_unreachable_members, Values)),
    ?assertMatch(#{weft_build_info := [{[_, _, {topology, <<"none">>}, _], 1}]}, Values).

%% As SWIM finds them. One of them is back, and has a route.
members_that_have_failed_are_unreachable_test() ->
    Status = (weft_ops_test_status:small())#{members := [a@h, b@h], failed => [e@h, f@h, g@h]},
    Values = reported(weft_ops_families:all(), Status),
    ?assertEqual({by(cluster, [{shop, 2}]), plain(2)},
                 {maps:get(weft_members, Values), maps:get(weft_unreachable_members, Values)}).

an_earlier_version_has_no_counters_and_no_queues_test() ->
    #{sessions := Sessions} = Status = weft_ops_test_status:small(),
    Values = reported(weft_ops_families:all(),
                      (maps:remove(counters, Status))#{sessions := [maps:remove(queued_bytes, S)
                                                                    || S <- Sessions]}),
    ?assertNot(is_map_key(weft_session_queued_bytes, Values)),
    ?assertNot(is_map_key(weft_session_resumes_total, Values)),
    ?assertMatch(#{weft_session_unacknowledged_bytes := [{[], 90}]}, Values).

without_the_status_the_scrape_and_the_webhook_are_reported_test() ->
    Snapshot = maps:without([status, peers, stores], weft_ops_test_status:snapshot(#{})),
    Names = [Name || #{name := Name} = Family <- weft_ops_families:all(),
                     {ok, [_ | _]} <- [weft_ops_family:samples(Family, Snapshot)]],
    ?assertEqual([weft_dist_peers_left_out, weft_scrape_errors_total, weft_scrape_seconds,
                  weft_webhook_dropped_total, weft_webhook_failed_total, weft_webhook_queued,
                  weft_webhook_sent_total],
                 lists:sort(Names)).

peers_above_the_limit_are_told_test() ->
    Snapshot = (weft_ops_test_status:snapshot(weft_ops_test_status:small()))
        #{peers := [weft_ops_test_status:peer(b@h), weft_ops_test_status:peer(c@h)],
          dist_peers_max := 1},
    [Family] = [F || #{name := weft_dist_peers_left_out} = F <- weft_ops_families:all()],
    ?assertEqual({ok, plain(2)}, weft_ops_family:samples(Family, Snapshot)).

all_families_of_distribution_have_a_value_test() ->
    Snapshot = weft_ops_test_status:snapshot(weft_ops_test_status:small()),
    Samples = [weft_ops_family:samples(Family, Snapshot) || Family <- weft_ops_dist_families:all()],
    ?assertEqual(25, length(Samples)),
    ?assertEqual(lists:seq(1, 22) ++ [6, 3, 5],
                 [Value || {ok, [{[{peer, <<"b@h">>} | _], Value}]} <- Samples]).

all_detailed_families_have_a_value_test_() ->
    Snapshot = weft_ops_test_status:snapshot(weft_ops_test_status:small()),
    [{atom_to_list(Name), ?_assertMatch({ok, [_ | _]}, weft_ops_family:samples(Family, Snapshot))}
     || Request <- weft_ops_detailed:requests(),
        #{name := Name} = Family <- weft_ops_detailed:families(Request)].

detailed_families_name_their_objects_test_() ->
    Of = fun(Request) ->
                 reported(weft_ops_detailed:families(Request), weft_ops_test_status:small())
         end,
    [?_assertMatch(#{weft_detailed_circuit_info := [{[{peer, <<"c@h">>},
                                                      {next_hop, <<"b@h">>}], 1}],
                     weft_detailed_circuit_best_hops := [{[{peer, <<"c@h">>}], 2}]}, Of(circuit)),
     ?_assertMatch(#{weft_detailed_lane_pending_bytes :=
                         [{[_, {lane, <<"1">>}, {class, <<"distribution">>}], 1},
                          {[_, {lane, <<"2">>}, {class, <<"bulk">>}], 2}]}, Of(lane)),
     ?_assertMatch(#{weft_detailed_session_state :=
                         [{[_, {state, <<"up">>}, {path, <<"direct">>}], 1},
                          {[_, {state, <<"up">>}, {path, <<"circuit">>}], 1},
                          {[_, {state, <<"resuming">>}, {path, <<"none">>}], 1}]}, Of(session)),
     ?_assertMatch(#{weft_detailed_group_member :=
                         [{_, 1}, {[{group, <<"left">>}, {peer, <<"b@h">>}], 2}, {_, 1}]},
                   Of(group))].

reported(Families, Status) ->
    Snapshot = weft_ops_test_status:snapshot(Status),
    maps:from_list([{Name, Samples} || #{name := Name} = Family <- Families,
                                       {ok, Samples} <- [weft_ops_family:samples(Family, Snapshot)],
                                       Samples =/= []]).

%% --- names, size --------------------------------------------------------------------------------

names_say_type_and_unit_test_() ->
    [{atom_to_list(Name),
      fun() ->
              ?assertEqual(Type =:= counter, lists:suffix("_total", atom_to_list(Name))),
              ?assertEqual(nomatch, re:run(atom_to_list(Name), "_(ms|us|kb|mb|bits)(_|$)"))
      end} || #{name := Name, type := Type} <- own()].

no_two_families_have_the_same_name_test() ->
    Names = [Name || #{name := Name} <- own() ++ weft_ops_dist_families:all()],
    ?assertEqual([], Names -- lists:usort(Names)).

own() ->
    weft_ops_families:all()
        ++ lists:append([weft_ops_detailed:families(Request)
                         || Request <- weft_ops_detailed:requests() -- [dist]]).

%% As text, with all that is between the status and the text. The first scrape, which loads code,
%% counts as well.
a_thousand_members_are_few_series_and_quick_test_() ->
    {timeout, 60, fun() ->
        {ok, Started} = application:ensure_all_started(prometheus),
        Status = weft_ops_test_status:large(1000),
        ok = prometheus_registry:register_collectors(?MODULE, [weft_ops_collector,
                                                               weft_ops_dist_collector]),
        {Times, [Text | _]} = lists:unzip([timed_scrape(Status)
                                           || _ <- lists:seq(1, ?SCRAPES)]),
        ok = prometheus_registry:clear(?MODULE),
        [ok = application:stop(App) || App <- Started],
        {match, Series} = re:run(Text, "^[^#\n]", [global, multiline]),
        ?assert(length(Series) =< ?SERIES_MAX),
        ?assert(length(Series) >= 1000),
        ?assertMatch({Ms, _} when Ms =< ?MS_MAX, {median([min(Wall, Processor)
                                                          || {Wall, Processor} <- Times]), Times})
    end}.

%% In milliseconds. On a busy machine a scrape waits for a processor, which is no work of it; and
%% the time of all processors counts schedulers that spin. So it is the smaller of the two that it
%% has surely needed.
timed_scrape(Status) ->
    {BeforeMs, _} = statistics(runtime),
    {Us, Text} = scrape(Status),
    {AfterMs, _} = statistics(runtime),
    {{Us / 1000, AfterMs - BeforeMs}, Text}.

median(Numbers) -> lists:nth((length(Numbers) + 1) div 2, lists:sort(Numbers)).

%% Each with a server of its own, which has not been asked yet.
scrape(Status) ->
    {ok, Config} = weft_ops_config:parse([]),
    {ok, Server} = weft_ops_snapshot:start_link(Config, fun(_TimeoutMs) -> Status end),
    Result = timer:tc(prometheus_text_format, format, [?MODULE]),
    ok = gen_server:stop(Server),
    Result.

%% This emulator has no peers, so these are made up.
connected_nodes_are_as_many_series_as_the_guide_says_test() ->
    {ok, #{dist_peers_max := Max}} = weft_ops_config:parse([]),
    ?assertEqual(?PEERS_MAX, Max),
    Peers = [weft_ops_test_status:peer(list_to_atom(lists:concat(["peer", N, "@h"])))
             || N <- lists:seq(1, Max)],
    Snapshot = (weft_ops_test_status:snapshot(weft_ops_test_status:small()))#{peers := Peers},
    Counts = [length(Samples) || Family <- weft_ops_dist_families:all(),
                                 {ok, Samples} <- [weft_ops_family:samples(Family, Snapshot)]],
    ?assertEqual(Max * ?SERIES_OF_PEER, lists:sum(Counts)),
    {ok, Text} = file:read_file("docs/guide/metrics.md"),
    [?assertNotEqual(nomatch, binary:match(Text, Words))
     || Words <- [<<"at most 1,300 series">>, <<"25 for each connected node">>,
                  <<"700 for 28 nodes with weft">>]].

what_is_left_out_of_many_is_told_test() ->
    Values = reported(weft_ops_families:all(), weft_ops_test_status:large(60)),
    ?assertEqual(plain(30), maps:get(weft_series_left_out, Values)),
    ?assertEqual(50, length(maps:get(weft_group_members, Values))).

%% --- the guide ----------------------------------------------------------------------------------

the_guide_lists_exactly_these_families_test_() ->
    {ok, Text} = file:read_file("docs/guide/metrics.md"),
    {match, Rows} = re:run(Text, "^\\| `(\\w+)` \\| (gauge|counter) \\| ([^|]*) \\|",
                           [global, multiline, {capture, all_but_first, list}]),
    Told = [{list_to_atom(Name), list_to_atom(Type),
             [list_to_atom(Label) || Label <- string:lexemes(Labels, ", ")]}
            || [Name, Type, Labels] <- Rows],
    There = [{Name, Type, Labels} || #{name := Name, type := Type, labels := Labels}
                                         <- own() ++ weft_ops_dist_families:all()],
    [?_assertEqual([], There -- Told), ?_assertEqual([], Told -- There)].
