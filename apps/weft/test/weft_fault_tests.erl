%% SPDX-License-Identifier: Apache-2.0
-module(weft_fault_tests).
-include_lib("eunit/include/eunit.hrl").

%% This module is the provider of tunnelled lanes: it tells what is sent, and when.
-export([room/1, try_send/2, send/2, close/1]).

-define(PEER, 'peer@host').
-define(DEADLINE_MS, 20000).

faults_test_() ->
    [{atom_to_list(Name), {timeout, 60, fun() -> with_faults(fun() -> test(Name) end) end}}
     || Name <- [a_delay_is_latency_and_no_throttle, a_lost_packet_is_late,
                 some_packets_are_lost, lanes_that_there_are_obey_too, one_way_cuts_hold_back,
                 what_is_under_way_is_bounded, kinds_are_independent,
                 peers_are_independent_at_once, what_is_there_ends_when_they_are_off]].

with_faults(Test) ->
    ok = application:set_env(weft, faults, true),
    try Test()
    after
        ok = weft_fault:heal(),
        ok = application:unset_env(weft, faults)
    end.

%% One after the other they would take twenty seconds at least, and the lost ones of the next case
%% thirty. A busy machine takes more than the one delay.
test(a_delay_is_latency_and_no_throttle) ->
    ok = weft_fault:delay(?PEER, 20, 30),
    all_are_late(1000, 20000, 15000000);
test(a_lost_packet_is_late) ->
    ok = weft_fault:loss(?PEER, 100),
    all_are_late(150, 200000, 15000000);
%% One at a time, so that none waits behind another.
test(some_packets_are_lost) ->
    ok = weft_fault:loss(?PEER, 50),
    Lane = lane(),
    LateUs = [begin
                  [SentUs] = send_all(Lane, [N]),
                  [{N, AtUs}] = sent(1),
                  AtUs - SentUs
              end || N <- lists:seq(1, 24)],
    Lost = length([Us || Us <- LateUs, Us >= 200000]),
    ?assert(Lost > 0 andalso Lost < 24),
    weft_lane:close(Lane);
test(lanes_that_there_are_obey_too) ->
    Lane = lane(),
    ?assertEqual(ok, weft_lane:send(Lane, 1, 1)),
    ok = weft_fault:delay(?PEER, 50, 50),
    ok = weft_lane_writer:look_again(self()),
    weft_test_nodes:until(fun() -> weft_lane:queued_bytes(Lane) > 0 end),
    [SecondUs, _] = send_all(Lane, [2, 3]),
    ok = weft_fault:heal(?PEER, delay),
    ok = weft_lane_writer:look_again(self()),
    %% What is under way still is; nothing overtakes it.
    weft_test_nodes:until(fun() -> weft_lane:queued_bytes(Lane) =:= 0 end),
    ?assertEqual(ok, weft_lane:send(Lane, 4, 1)),
    [{1, _}, {2, AtUs}, {3, _}, {4, _}] = sent(4),
    ?assert(AtUs - SecondUs >= 50000),
    weft_lane:close(Lane);
test(one_way_cuts_hold_back) ->
    ok = weft_fault:cut_one_way(?PEER),
    ?assert(weft_fault:is_cut(?PEER)),
    Lane = lane(),
    _ = send_all(Lane, [1, 2]),
    %% pacing: nothing is to come of it.
    receive {sent, _, _} -> error(sent) after 100 -> ok end,
    ok = weft_fault:heal(?PEER, cut_one_way),
    ok = weft_lane_writer:look_again(self()),
    ?assertMatch([{1, _}, {2, _}], sent(2)),
    weft_test_nodes:until(fun() -> weft_lane:queued_bytes(Lane) =:= 0 end),
    weft_lane:close(Lane);
%% A sender goes on at once until too much is under way; then when his packet is out.
test(what_is_under_way_is_bounded) ->
    ok = weft_fault:cut_one_way(?PEER),
    Socket = socket(),
    Lane = weft_lane:new(Socket, {<<>>, 0}, {weft_fault_table, lateness, [?PEER]}),
    Bytes = 5000000,
    queued = weft_lane:send(Lane, 1, Bytes, notify),
    receive {weft_lane, ready, Socket} -> ok after ?DEADLINE_MS -> error(not_ready) end,
    queued = weft_lane:send(Lane, 2, Bytes, notify),
    receive {weft_lane, ready, Socket} -> error(ready) after 50 -> ok end, % pacing: none comes
    ?assert(weft_lane:queued_bytes(Lane) > Bytes),
    ok = weft_fault:heal(?PEER),
    ok = weft_lane_writer:look_again(self()),
    receive {weft_lane, ready, Socket} -> ok after ?DEADLINE_MS -> error(not_ready) end,
    ?assertMatch([{1, _}, {2, _}], sent(2)),
    weft_lane:close(Lane);
test(kinds_are_independent) ->
    ok = weft_fault:cut(?PEER),
    ok = weft_fault:delay(?PEER, 1, 2),
    ok = weft_fault:loss(?PEER, 5),
    ?assertEqual({1, 2, 5}, weft_fault:lateness(?PEER)),
    ok = weft_fault:heal(?PEER, delay),
    ?assert(weft_fault:is_cut(?PEER)),
    ?assertEqual({0, 0, 5}, weft_fault:lateness(?PEER)),
    ok = weft_fault:heal(?PEER, cut),
    ?assertNot(weft_fault:is_cut(?PEER)),
    ok = weft_fault:cut(?PEER),
    ok = weft_fault:heal(?PEER),
    ?assertEqual({none, []}, {weft_fault:lateness(?PEER), weft_fault:cuts()});
%% As a partition does it. None is lost and none stays.
test(peers_are_independent_at_once) ->
    Peers = [list_to_atom("peer" ++ integer_to_list(N) ++ "@host") || N <- lists:seq(1, 40)],
    at_once(fun(Peer) -> ok = weft_fault:cut(Peer), ok = weft_fault:delay(Peer, 1, 1) end, Peers),
    ?assertEqual(lists:sort(Peers), weft_fault:cuts()),
    {Some, Others} = lists:split(20, Peers),
    at_once(fun(Peer) -> ok = weft_fault:heal(Peer, cut) end, Some),
    ?assertEqual(lists:sort(Others), weft_fault:cuts()),
    ?assertEqual([{1, 1, 0}], lists:usort([weft_fault:lateness(Peer) || Peer <- Peers])),
    at_once(fun(Peer) -> ok = weft_fault:heal(Peer) end, Peers),
    ?assertEqual([], weft_fault:cuts());
%% As a schedule does that goes on.
test(what_is_there_ends_when_they_are_off) ->
    [ok = weft_fault:cut(Peer) || Peer <- [?PEER, 'b@host', 'c@host']],
    ok = application:set_env(weft, faults, false),
    ?assertEqual({error, disabled}, weft_fault:heal(?PEER, delay)),
    ?assertEqual(ok, weft_fault:heal(?PEER, cut)),
    ?assertEqual(ok, weft_fault:heal('b@host')),
    ?assertEqual(['c@host'], weft_fault:cuts()),
    ?assertEqual(ok, weft_fault:heal()),
    ?assertEqual([], weft_fault:cuts()),
    ok = application:set_env(weft, faults, true).

refused_unless_enabled_test() ->
    [?assertEqual({error, disabled}, apply(weft_fault, Function, Arguments))
     || {Function, Arguments} <- [{cut, [?PEER]}, {cut_one_way, [?PEER]}, {delay, [?PEER, 1, 2]},
                                  {loss, [?PEER, 1]}, {break, [?PEER]}, {heal, [?PEER, cut]},
                                  {heal, [?PEER]}, {heal, []}]].

at_once(Do, List) ->
    Running = [spawn_monitor(fun() -> Do(Item) end) || Item <- List],
    [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
     || {Pid, Monitor} <- Running].

%% In their order, each by AtLeastUs, and the last one not much later than the first.
all_are_late(Count, AtLeastUs, WithinUs) ->
    Lane = lane(),
    Begun = now_us(),
    Times = send_all(Lane, lists:seq(1, Count)),
    Sent = sent(Count),
    ?assertEqual(lists:seq(1, Count), [N || {N, _} <- Sent]),
    LateUs = [AtUs - SentUs || {SentUs, {_, AtUs}} <- lists:zip(Times, Sent)],
    ?assert(lists:min(LateUs) >= AtLeastUs),
    ?assert(now_us() - Begun < WithinUs),
    weft_lane:close(Lane).

%% The version before did not know what is missing; another one kept the peer, and asked for its
%% faults.
a_writer_of_the_version_before_goes_on_test() ->
    Lane = lane(),
    Writer = sys:get_state(weft_lane:writer(Lane)),
    {ok, Writer} = weft_lane_writer:code_change(before, setelement(3, Writer, ?PEER), []),
    {ok, Writer} = weft_lane_writer:code_change(before, Writer, []),
    Before = erlang:delete_element(tuple_size(Writer), Writer),
    {ok, Writer} = weft_lane_writer:code_change(before, Before, []),
    {ok, Writer} = weft_lane_writer:code_change(before, setelement(3, Before, ?PEER), []),
    weft_lane:close(Lane).

send_all(Lane, Numbers) ->
    [begin
         SentUs = now_us(),
         queued = weft_lane:send(Lane, N, 1),
         SentUs
     end || N <- Numbers].

sent(Count) ->
    [receive {sent, N, AtUs} -> {N, AtUs} after ?DEADLINE_MS -> error(not_sent) end
     || _ <- lists:seq(1, Count)].

lane() -> weft_lane:new(socket(), {<<>>, 0}, {weft_fault_table, lateness, [?PEER]}).
socket() -> {tunnel, ?MODULE, self()}.

room(_Test) -> {ok, 1000000}.
try_send(Test, Packet) -> send(Test, Packet).
send(Test, Packet) -> Test ! {sent, Packet, now_us()}, ok.
close(_Test) -> ok.

now_us() -> erlang:monotonic_time(microsecond).
