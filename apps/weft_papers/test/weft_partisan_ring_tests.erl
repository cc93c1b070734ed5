%% SPDX-License-Identifier: Apache-2.0
-module(weft_partisan_ring_tests).

-include_lib("eunit/include/eunit.hrl").

an_echo_ring_answers_test() ->
    #{calls := Calls} = requests(echo, 10),
    ?assert(Calls >= 4).

%% Each answer waits for a disk of at least a millisecond.
a_quorum_answers_test() ->
    #{calls := Calls, latency_p50_us := LatencyUs} = requests(key_value, 50),
    ?assert(Calls >= 4),
    ?assert(LatencyUs >= 1000).

a_partition_keeps_what_was_put_test() ->
    [Partition] = weft_partisan_ring:start_partitions(key_value, 1, 5),
    Partition ! {put, plain, self(), put, key, <<"new">>},
    ?assertEqual(ok, answer(put)),
    Partition ! {get, plain, self(), known, key},
    ?assertEqual(<<"new">>, answer(known)),
    Partition ! {get, plain, self(), unknown, other},
    ?assertEqual(5, byte_size(answer(unknown))).

gossip_goes_on_until_it_is_stopped_test() ->
    Sink = weft_partisan_gossip:start_sink(),
    ?assertEqual(0, weft_partisan_gossip:received(Sink)),
    [begin
         Before = weft_partisan_gossip:received(Sink),
         Gossip = weft_partisan_gossip:start_gossip(Pace, plain, [Sink], 10),
         ok = until(fun() -> weft_partisan_gossip:received(Sink) > Before + 3 end),
         Monitor = monitor(process, Gossip),
         Gossip ! stop,
         ?assertEqual(normal, receive {'DOWN', Monitor, process, Gossip, Why} -> Why end)
     end || Pace <- [flood, paced]].

what_is_stopped_is_gone_test() ->
    Processes = [weft_partisan_gossip:start_sink()
                 | weft_partisan_ring:start_partitions(key_value, 2, 5)],
    ok = weft_partisan_ring:stop(Processes),
    ?assertEqual([], [Pid || Pid <- Processes, is_process_alive(Pid)]).

until(Condition) -> until(Condition, erlang:monotonic_time(millisecond) + 5000).

until(Condition, EndMs) ->
    case Condition() of
        true -> ok;
        false ->
            ?assert(erlang:monotonic_time(millisecond) < EndMs),
            erlang:yield(),
            until(Condition, EndMs)
    end.

requests(Kind, DurationMs) ->
    Partitions = weft_partisan_ring:start_partitions(Kind, 6, 100),
    Request = #{kind => Kind, mode => plain, partitions => Partitions, size_bytes => 100},
    {ElapsedUs, Latencies} = weft_partisan_ring:run(Request, 4, DurationMs, 1),
    ?assert(ElapsedUs >= DurationMs * 1000),
    Latencies.

answer(Ref) ->
    receive {Ref, Answer} -> Answer end.
