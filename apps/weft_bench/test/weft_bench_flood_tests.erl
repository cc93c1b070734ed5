%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_flood_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TIMEOUT_MS, 5000).

all_messages_are_counted_test() ->
    {Collector, Sinks} = weft_bench_flood:start_sinks(3),
    StartUs = weft_bench_flood:flood(plain, Sinks, {binary, 10}, {messages, 100}),
    {ok, LastUs, Messages} = weft_bench_flood:await_sinks(Collector, ?TIMEOUT_MS),
    ?assertEqual(300, Messages),
    ?assert(LastUs >= StartUs).

a_flood_lasts_as_long_as_it_is_told_test() ->
    {Collector, Sinks} = weft_bench_flood:start_sinks(2),
    StartUs = weft_bench_flood:flood(plain, Sinks, {binary, 5000}, {duration_ms, 300}),
    {ok, LastUs, Messages} = weft_bench_flood:await_sinks(Collector, ?TIMEOUT_MS),
    ?assert(LastUs - StartUs >= 300000),
    ?assert(Messages > 2).

lost_and_doubled_messages_are_noticed_test() ->
    [begin
         {Collector, [Sink]} = weft_bench_flood:start_sinks(1),
         [Sink ! message || _ <- lists:seq(1, Got)],
         Sink ! {last, 2},
         ?assertEqual({error, {a_sink_got, Got, messages_of, 2}},
                      weft_bench_flood:await_sinks(Collector, ?TIMEOUT_MS))
     end || Got <- [1, 3]].

what_never_arrives_is_an_error_test() ->
    {Collector, _Sinks} = weft_bench_flood:start_sinks(1),
    ?assertEqual({error, {not_all_arrived_within_ms, 10}},
                 weft_bench_flood:await_sinks(Collector, 10)).

payloads_have_their_size_test() ->
    ?assertEqual(1000, byte_size(weft_bench_flood:payload({binary, 1000}))),
    ?assertEqual(10, length(weft_bench_flood:payload({terms, 10}))),
    Bytes = byte_size(term_to_binary(weft_bench_flood:payload({terms, 10}))),
    ?assert(abs(Bytes - weft_bench_flood:payload_bytes({terms, 10})) < Bytes * 0.3),
    MapBytes = byte_size(term_to_binary(weft_bench_flood:payload({map, 10}))),
    ?assert(abs(MapBytes - weft_bench_flood:payload_bytes({map, 10})) < MapBytes * 0.3).

background_streams_are_counted_and_end_test() ->
    {Counter, Sinks} = weft_bench_streams:start_sinks(2),
    Senders = weft_bench_streams:start_senders(plain, Sinks, 100, same_message),
    {FirstUs, Messages, Bytes} = counted(Counter),
    {SecondUs, More, _} = weft_bench_streams:count(Counter),
    ?assertEqual(Messages * 100, Bytes),
    ?assert(SecondUs >= FirstUs),
    ?assert(More >= Messages),
    ok = weft_bench_streams:stop_senders(Senders),
    Monitors = [{Sink, monitor(process, Sink)} || Sink <- Sinks],
    ok = weft_bench_streams:stop_sinks(Counter),
    [receive {'DOWN', Monitor, process, Sink, _} -> ok end || {Sink, Monitor} <- Monitors].

%% A count in the middle of a message may have it without its bytes.
counted(Counter) ->
    case weft_bench_streams:count(Counter) of
        {_, Messages, Bytes} = Count when Messages > 0, Bytes =:= Messages * 100 -> Count;
        _ -> counted(Counter)
    end.

%% What they sent does not tell it.
a_connection_that_is_lost_is_told_by_streams_test() ->
    Senders = weft_bench_streams:start_senders(plain, [], 100, same_message),
    [Senders ! Message || Message <- [{nodedown, b@host}, {nodeup, b@host}]],
    ?assertEqual({error, {lost, [b@host]}}, weft_bench_streams:stop_senders(Senders)).

%% It took longer than was waited.
a_call_that_never_comes_back_is_told_test() ->
    Nobody = spawn(fun() -> receive never -> ok end end),
    ?assertMatch(#{timeouts := 1, calls := 1, latency_max_us := Us} when Us >= 20000,
                 weft_bench_ping:run(plain, Nobody, 1, 20)),
    exit(Nobody, kill).

pings_have_latencies_test() ->
    Echo = weft_bench_ping:start_echo(),
    #{calls := Calls, latency_p50_us := Half, latency_max_us := Max, timeouts := 0} =
        weft_bench_ping:run(plain, Echo, 500),
    ?assert(Calls > 10),
    ?assert(Half =< Max),
    ?assertEqual(ok, weft_bench_ping:settle(Echo, 1000000, 20000)).

a_connection_that_is_never_at_rest_is_told_test() ->
    Nobody = spawn(fun() -> receive never -> ok end end),
    ?assertEqual({error, not_calm}, weft_bench_ping:settle(Nobody, 1, 20)),
    exit(Nobody, kill).

%% What is measured beside them may be over long before.
processes_compute_until_they_are_told_to_stop_test() ->
    Conductor = weft_bench_computing:begin_to_compute(
                  #{count => 2, priority => normal, schedulers => all, for_ms => 60000,
                    warm_up_ms => 10}),
    ok = weft_bench_computing:stop(Conductor),
    #{elapsed_us := ElapsedUs} = weft_bench_computing:result(Conductor, ?TIMEOUT_MS),
    ?assert(ElapsedUs < 1000 * ?TIMEOUT_MS).
