%% SPDX-License-Identifier: Apache-2.0
%% @doc The applications of the Partisan paper on this node alone, and what figures make of results
%% that are made up.
-module(weft_partisan_application_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_papers_found, [findings/2, says/3]).

%% --- partitions -------------------------------------------------------------------------------

a_partition_has_what_was_put_test() ->
    {ok, Empty} = weft_partisan_vnode:init(0, 100),
    {reply, Own} = weft_partisan_vnode:command(<<"1">>, get, Empty),
    ?assertEqual(100, byte_size(Own)),
    {change, Change, ok} = weft_partisan_vnode:command(<<"1">>, {put, <<"new">>}, Empty),
    {ok, Full} = lists:foldl(fun(Number, {ok, State}) ->
                                 weft_partisan_vnode:change(integer_to_binary(Number), Change, none,
                                                            State)
                             end, {ok, Empty}, lists:seq(1, 40)),
    ?assertEqual({reply, <<"new">>}, weft_partisan_vnode:command(<<"1">>, get, Full)),
    ?assertEqual({reply, Own}, weft_partisan_vnode:command(<<"40">>, get, Full)),
    ?assertEqual(32, weft_partisan_vnode:cover(kept, Full)).

%% --- on this node -----------------------------------------------------------------------------

on_one_node_test_() ->
    {setup, fun started/0, fun stopped/1,
     fun(_) -> [{timeout, 30, fun an_echo_comes_back/0},
                {timeout, 30, fun an_advertisement_is_shown_until_it_is_enough/0}] end}.

started() ->
    Dir = filename:join(filename:basedir(user_cache, "weft_partisan_tests"), os:getpid()),
    Vnodes = [weft_kv_vnode, {weft_partisan_vnode, 1000}],
    ok = weft_store_ring:begun(Dir, [node()], [{vnodes, Vnodes}]),
    ok = weft_ring:create(),
    Dir.

stopped(Dir) ->
    Applications = [weft_crdt, weft_kv, weft_ring],
    _ = [application:stop(Application) || Application <- Applications ++ [weft]],
    _ = [application:unload(Application) || Application <- Applications],
    file:del_dir_r(Dir).

an_echo_comes_back() ->
    {ElapsedUs, #{calls := Calls}} = weft_partisan_vnode:run(vnode_echo, 1000, 3, 100, 1),
    ?assert(ElapsedUs >= 100000),
    ?assert(Calls >= 3).

an_advertisement_is_shown_until_it_is_enough() ->
    ok = weft_partisan_ads:begin_node(1, 50),
    ?assertEqual({0, []}, weft_partisan_ads:state()),
    ok = weft_partisan_ads:serve(2),
    {ok, _} = weft_crdt:read(impressions, {at_least, 2}),
    {ok, []} = weft_crdt:read(ads, {is, []}),
    %% pacing: nobody shows it any more
    receive after 450 -> ok end,
    ?assertEqual({2, []}, weft_partisan_ads:state()).

%% --- bytes ------------------------------------------------------------------------------------

a_change_is_small_beside_its_state_test() ->
    {Few, Delta} = weft_partisan_ads:sizes(crdt_counter, 8),
    {Many, SameDelta} = weft_partisan_ads:sizes(crdt_counter, 128),
    ?assert(Many > 12 * Few),
    ?assert(SameDelta < 1.2 * Delta),
    {Set, SetDelta} = weft_partisan_ads:sizes(crdt_set, 1000),
    ?assert(SetDelta < Set / 10).

%% --- in virtual time --------------------------------------------------------------------------

%% Each node receives what it would receive with real links, and relays.
an_advertisement_is_over_in_virtual_time_test_() ->
    {timeout, 60, fun() ->
        Measured = #{client_server_bytes := All, client_server_most_bytes := Most,
                     peer_to_peer_bytes := AllPeers, peer_to_peer_most_bytes := MostPeers} =
            maps:from_list(weft_partisan_ads_simulated:run(32, 2, 1)),
        #{duration_s := Seconds, shown_too_often := TooOften} = Measured,
        %% Two impressions of each node, one in ten seconds, and some flushes of five.
        ?assert(Seconds >= 15),
        ?assert(Seconds < 90),
        ?assert(TooOften >= 0),
        ?assert(TooOften =< 3 * 32),
        %% The server receives what others send, and the others receive most of that once more.
        ?assert(Most > 0.4 * All),
        ?assert(Most < All),
        ?assert(MostPeers < Most),
        ?assert(AllPeers > MostPeers),
        ?assertEqual(Measured, maps:from_list(weft_partisan_ads_simulated:run(32, 2, 1)))
    end}.

%% The server removes it in the moment in which it knows of enough impressions.
a_server_removes_what_was_shown_often_enough_test() ->
    {Begun, _} = weft_partisan_ads_core:init('a@sim', #{others => [], begin_ms => 10, max => 2,
                                                        first_ms => 100}),
    {Served, _} = weft_partisan_ads_core:handle({timer, serve}, 10, Begun),
    ?assertEqual({0, [1]}, weft_partisan_ads_core:state(Served)),
    {Once, Again} = weft_partisan_ads_core:handle({timer, show}, 100, Served),
    ?assertEqual({1, [1]}, weft_partisan_ads_core:state(Once)),
    ?assert(lists:member({after_ms, 10000, show}, Again)),
    {Twice, _} = weft_partisan_ads_core:handle({timer, show}, 10100, Once),
    ?assertEqual({2, []}, weft_partisan_ads_core:state(Twice)),
    ?assertEqual({Twice, []}, weft_partisan_ads_core:handle({timer, show}, 20100, Twice)).

%% What came before the beginning belongs to the forming of the cluster.
bytes_are_counted_from_the_beginning_on_test() ->
    {Begun, _} = weft_partisan_ads_core:init('a@sim', #{others => ['b@sim'], begin_ms => 10,
                                                        max => 5, first_ms => 100}),
    ?assertEqual(#{}, weft_partisan_ads_core:sent_bytes(Begun)),
    {Served, [_ | _]} = weft_partisan_ads_core:handle({timer, serve}, 10, Begun),
    {Sent, Effects} = weft_partisan_ads_core:handle({timer, flush}, 5010, Served),
    [Msg] = [Msg || {send, 'b@sim', Msg} <- Effects],
    ?assertEqual(#{'b@sim' => erlang:external_size(Msg)}, weft_partisan_ads_core:sent_bytes(Sent)).

%% --- figures ----------------------------------------------------------------------------------

an_order_of_magnitude_is_ten_times_test() ->
    Cell = #{suite => <<"store">>, workload => <<"vnode_echo">>, size_bytes => 1048576,
             pairs => 16},
    Rows = fun(Rate) -> [{Cell, stock, calls_per_s, [10]}, {Cell, weft_8, calls_per_s, [Rate]}] end,
    says([{agrees, ["loopback", 16, {weft_8, "10.0"}, stock]}], "partisan_5", Rows(100)),
    ?assertMatch([{differs, _}], findings("partisan_5", Rows(99))),
    ?assertEqual([], findings("partisan_6", Rows(99))).

what_the_server_takes_is_told_where_it_was_counted_test() ->
    Cell = #{suite => <<"store">>, workload => <<"ads">>, size_bytes => 0, pairs => 64},
    Rows = [{Cell, weft_groups, Metric, [Value]}
            || {Metric, Value} <- [{received_bytes, 2000}, {duration_s, 7}, {shown_too_often, 3}]],
    says([{open, [64, {"shown", 3}]}], "partisan_7", Rows),
    [{open, Without}] = findings("partisan_7", Rows),
    ?assertEqual(nomatch, string:find(Without, "first node")),
    says([{open, [64, {"50.0 %", "first node"}]}], "partisan_7",
         [{Cell, weft_groups, server_received_bytes, [1000]} | Rows]).

%% And not where only some of it was counted.
what_the_server_has_to_do_is_told_where_it_was_counted_test() ->
    Cell = #{suite => <<"store">>, workload => <<"slow_ads">>, size_bytes => 0, pairs => 256},
    Rows = fun(Metrics) -> [{Cell, weft_groups, Metric, [Value]} || {Metric, Value} <- Metrics] end,
    Bytes = [{received_bytes, 2000}, {duration_s, 7}, {shown_too_often, 3}],
    Busy = [{server_cpu_percent, 83}, {nodes_cpu_percent, 190}, {server_mailbox_max, 1200}],
    says([{open, [256, {"shown", 3}, {"first node", "83.0 %"}, {"together", "190 %"},
                  {1200, "waited"}]}], "partisan_7_minutes", Rows(Bytes ++ Busy)),
    [?assertEqual(findings("partisan_7_minutes", Rows(Bytes)),
                  findings("partisan_7_minutes", Rows(Bytes ++ Some)))
     || Some <- [tl(Busy), lists:droplast(Busy)]].

what_relays_it_all_is_beside_peer_to_peer_test() ->
    Cell = #{suite => <<"store">>, workload => <<"simulated_ads">>, size_bytes => 0, pairs => 1024},
    says([{open, ["1024 nodes", {"client and server", "20.0 MB"}, {"10.0 MB", "by one node"},
                  {"peer to peer", "40.0 MB"}, {"1.00 MB", "by one node"}, "150 s",
                  {"shown", 7}]}], "partisan_7_simulated",
         [{Cell, weft_1, Metric, [Value]}
          || {Metric, Value} <- [{client_server_bytes, 20.0e6}, {client_server_most_bytes, 10.0e6},
                                 {peer_to_peer_bytes, 40.0e6}, {peer_to_peer_most_bytes, 1.0e6},
                                 {duration_s, 150}, {shown_too_often, 7}]]).

%% Some cells last for ten minutes, and some for one.
bytes_of_a_second_are_drawn_test() ->
    Rows = [{#{suite => <<"store">>, workload => <<"simulated_ads">>, size_bytes => 0,
               pairs => Nodes}, weft_1, Metric, [Value]}
            || {Nodes, Bytes, Seconds} <- [{256, 60.0e6, 600}, {512, 12.0e6, 60}],
               {Metric, Value} <- [{client_server_bytes, Bytes}, {peer_to_peer_bytes, 2 * Bytes},
                                   {duration_s, Seconds}]],
    [Charts] = [Of || #{id := "partisan_7_simulated", charts := Of}
                          <- weft_papers_figures:figures()],
    [#{series := [#{points := Server}, #{points := Peers}]}, #{series := []}] =
        Charts(weft_report_sample:results(Rows)),
    ?assertEqual([100000, 200000], [round(Y) || {_, Y, _, _, _} <- Server]),
    ?assertEqual([200000, 400000], [round(Y) || {_, Y, _, _, _} <- Peers]).

changes_are_judged_from_many_clients_on_test() ->
    Rows = fun(Workload, Count, Delta) ->
               Cell = #{suite => <<"store">>, workload => Workload, size_bytes => 0,
                        pairs => Count},
               [{Cell, weft_1, state_bytes, [1000]}, {Cell, weft_1, delta_bytes, [Delta]}]
           end,
    says([{agrees, ["crdt counter", 128, {"change", 100}, {"state", 1000}]}],
         "partisan_7", Rows(<<"crdt_counter">>, 128, 100)),
    ?assertMatch([{differs, _}], findings("partisan_7", Rows(<<"crdt_counter">>, 128, 101))),
    ?assertMatch([{open, _}], findings("partisan_7", Rows(<<"crdt_counter">>, 8, 500))),
    ?assertMatch([{open, _}], findings("partisan_7", Rows(<<"crdt_set">>, 1000, 500))).
