%% SPDX-License-Identifier: Apache-2.0
%% @doc The workloads of C. Meiklejohn et al., "Partisan: Enabling Cloud-Scale Erlang Applications"
%% (2018), section 4, scaled to bounded time:
%%
%% unicast    actors that send 1,000 messages each to as many actors on the other node. Here each
%%            sends so many that all together stay below a number of bytes, at least one.
%% echo       workers that send an object to a random partition of a ring on three nodes and wait
%%            for it to come back. For a time, instead of 1,000 requests.
%% key_value  put and get with two answers of three replicas, each with a disk of 1 ms, keys from a
%%            normal distribution over 10,000, objects of 1 MB; while all nodes gossip, more than
%%            links can carry (`weft_partisan_gossip').
%% key_value_paced  the same beside as much gossip as all can deliver.
-module(weft_partisan_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(MB, 1048576).
-define(MESSAGES_MAX, 1000).
-define(CALL_MS, 90000).
-define(PARTITIONS_PER_NODE, 8).
-define(DIRECT, [stock, weft_1, weft_8, channel, channel_8]).

%% @private
cells(quick) ->
    [unicast(loopback, ?MB, 16, 512, [stock, weft_1, channel])
     | [Cell#{on_demand => true}
        || Cell <- [unicast(Link, ?MB, 16, 64, ?DIRECT) || Link <- slow_links()]
               ++ [(ring(key_value, Link, 16))#{variants := [stock, channel]}
                   || Link <- [loopback | slow_links()]] ++ [paced(loopback, 16)]]];
cells(full) ->
    [unicast(loopback, Size * ?MB, Actors, 2048, ?DIRECT)
     || Size <- [1, 2, 4, 8], Actors <- [1, 16, 128]]
        ++ [unicast(Link, ?MB, Actors, 96, ?DIRECT)
            || Link <- slow_links(), Actors <- [1, 16, 64]]
        ++ [(unicast(Link, ?MB, Actors, 24, ?DIRECT))#{on_demand => true}
            || Link <- one_is_slow(), Actors <- [1, 16]]
        ++ [ring(Kind, Link, Workers)
            || Kind <- [echo, key_value], Link <- [loopback | slow_links()],
               Workers <- [1, 16, 64]]
        ++ [paced(Link, Workers) || Link <- [loopback | slow_links()], Workers <- [1, 16, 64]].

slow_links() ->
    [weft_bench_link:emulated(1, 800, 0), weft_bench_link:emulated(20, 400, 0)].

%% Where one connection does not fill the link: after a loss its window grows again by one packet in
%% each round trip; and with a small buffer no more than that is under way.
one_is_slow() ->
    [weft_bench_link:emulated(20, 400, 0.1),
     weft_bench_link:with_buffers(131072, weft_bench_link:emulated(20, 400, 0))].

unicast(Link, SizeBytes, Actors, TotalMb, Variants) ->
    Messages = min(?MESSAGES_MAX, max(1, TotalMb * ?MB div (SizeBytes * Actors))),
    (cell(unicast, Link, SizeBytes, Actors))#{
      layout => pair, variants => Variants, cost_ms => cost_ms(Link, Messages * Actors * SizeBytes),
      with => #{messages => Messages}}.

cost_ms(loopback, Bytes) -> 500 + Bytes div 1500000;
cost_ms(#{loss_percent := Percent}, Bytes) when Percent > 0 -> 500 + Bytes div 2500;
cost_ms(#{buffer_bytes := BufferBytes, rtt_ms := RttMs}, Bytes) ->
    500 + Bytes * RttMs div BufferBytes;
cost_ms(#{rate_mbit := RateMbit}, Bytes) -> 500 + Bytes div (RateMbit * 100).

ring(Kind, Link, Workers) ->
    (cell(Kind, Link, ?MB, Workers))#{
      layout => trio, variants => [stock, weft_1, weft_8, weft_gateway, channel, channel_8],
      cost_ms => ring_cost_ms(Kind, Link), with => #{duration_ms => 2000, warm_up_ms => 400}}.

%% Beside many workers an object that is gossiped may wait for seconds. As many have to wait when it
%% begins to count as when it ends.
paced(Link, Workers) ->
    (ring(key_value_paced, Link, Workers))#{
      variants := [stock, channel], on_demand => true, cost_ms := 13000,
      with := #{duration_ms => 6000, warm_up_ms => 3000}}.

%% What was gossiped before the end has to cross the link, too.
ring_cost_ms(key_value, #{}) -> 6500;
ring_cost_ms(_Kind, _Link) -> 3500.

cell(Workload, loopback, SizeBytes, Pairs) ->
    cell(Workload, weft_bench_link:loopback(), SizeBytes, Pairs);
cell(Workload, Link, SizeBytes, Pairs) ->
    #{suite => e, workload => Workload, size_bytes => SizeBytes, pairs => Pairs, streams => 0,
      link => Link}.

%% @private
run(#{workload := unicast, size_bytes := SizeBytes, pairs := Actors,
      with := #{messages := Messages}}, Nodes) ->
    Payload = {binary, SizeBytes},
    Flood = fun(Pairs, Of) ->
                weft_bench_throughput:flood(Nodes, Pairs, Payload, {messages, Of}, ?CALL_MS)
            end,
    Measure = fun() ->
                  CpuUs = weft_bench_nodes:cpu_us(Nodes),
                  {ElapsedUs, Count} = Flood(Actors, Messages),
                  [{duration_s, ElapsedUs / 1.0e6}, {messages_per_s, Count * 1.0e6 / ElapsedUs},
                   {megabytes_per_s, Count * SizeBytes / ElapsedUs}
                   | weft_bench_workload:cpu_us_per_message(Nodes, CpuUs, Count)]
              end,
    {ok, weft_bench_workload:warmed_up(fun() -> Flood(1, 2) end, Measure)};
run(#{workload := Kind, size_bytes := SizeBytes, pairs := Workers,
      with := #{duration_ms := DurationMs, warm_up_ms := WarmUpMs}}, Nodes) ->
    Partitions = partitions(requests_of(Kind), SizeBytes, Nodes),
    Request = #{kind => requests_of(Kind), mode => weft_bench_workload:mode(Nodes, message),
                partitions => in_turn(Partitions), size_bytes => SizeBytes},
    Gossips = [weft_partisan_gossip:begun(Pace, Nodes) || Pace <- beside(Kind)],
    Requests = fun(ForMs, Seed) -> requests(Nodes, Request, Workers, ForMs, Seed) end,
    Values = weft_bench_workload:warmed_up(
               fun() -> Requests(WarmUpMs, 1) end,
               fun() -> measured(fun() -> Requests(DurationMs, 2) end, Gossips, Nodes) end),
    _ = [ok = weft_partisan_gossip:ended(Gossip, Nodes) || Gossip <- Gossips],
    %% The next cell has the same nodes, and not what is kept here.
    lists:foreach(fun({Role, Pids}) -> ok = call(Nodes, Role, weft_partisan_ring, stop, [Pids]) end,
                  Partitions),
    {ok, Values}.

requests_of(key_value_paced) -> key_value;
requests_of(Kind) -> Kind.

beside(echo) -> [];
beside(key_value) -> [flood];
beside(key_value_paced) -> [paced].

%% With what was gossiped meanwhile.
measured(Requests, Gossips, Nodes) ->
    CpuUs = weft_bench_nodes:cpu_us(Nodes),
    Before = received_bytes(Gossips, Nodes),
    {ElapsedUs, #{calls := Calls} = Latencies} = Requests(),
    Bytes = [After - Of || {Of, After} <- lists:zip(Before, received_bytes(Gossips, Nodes))],
    [{calls_per_s, Calls * 1.0e6 / ElapsedUs} | maps:to_list(Latencies)]
        ++ [{background_megabytes_per_s, Arrived / ElapsedUs} || Arrived <- Bytes]
        ++ weft_bench_workload:cpu_us_per_message(Nodes, CpuUs, Calls).

received_bytes(Gossips, Nodes) ->
    [weft_partisan_gossip:received_bytes(Gossip, Nodes) || Gossip <- Gossips].

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS}).

partitions(Kind, SizeBytes, Nodes) ->
    [{Role, call(Nodes, Role, weft_partisan_ring, start_partitions,
                 [Kind, ?PARTITIONS_PER_NODE, SizeBytes])} || Role <- [a, b, c]].

%% Neighbours in the ring are on different nodes.
in_turn([{a, OnA}, {b, OnB}, {c, OnC}]) ->
    lists:append([[A, B, C] || {A, B, C} <- lists:zip3(OnA, OnB, OnC)]).

requests(Nodes, Request, Workers, DurationMs, Seed) ->
    weft_bench_nodes:call(Nodes, a, weft_partisan_ring, run,
                          {[Request, Workers, DurationMs, Seed], ?CALL_MS}).
