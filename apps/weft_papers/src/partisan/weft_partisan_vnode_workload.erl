%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `vnode_echo' and `vnode_quorum': those of `weft_partisan_vnode', on a ring of
%% weft over three nodes, with `pairs' workers on the first of them, for a time instead of 1,000
%% requests each; and `vnode_gossip', an echo beside gossip (`weft_partisan_gossip'). Requests to
%% partitions are calls, which the carrier takes: they use lanes, and no channels. In a channel is
%% the gossip only.
-module(weft_partisan_vnode_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(MB, 1048576).
-define(CALL_MS, 90000).
-define(DURATION_MS, 2000).
%% On a long link a connection takes as long until it has found the rate, and requests of many
%% workers take a second each.
-define(LONG_DURATION_MS, 8000).
-define(LONG_RTT_MS, 20).
-define(VARIANTS, [stock, weft_1, weft_8]).
-define(BESIDE_GOSSIP, [stock, weft_1, weft_8, channel]).

%% @private
cells(quick) ->
    [cell(Kind, weft_bench_link:loopback(), 16) || Kind <- kinds()];
cells(full) ->
    [cell(Kind, Link, Workers)
     || Link <- [weft_bench_link:loopback(), weft_bench_link:emulated(1, 800, 0),
                 weft_bench_link:emulated(20, 400, 0)],
        Kind <- kinds(), Workers <- [1, 16, 64]].

kinds() -> [vnode_echo, vnode_quorum, vnode_gossip].

%% Partitions keep what was put there: a store has new nodes, which have to form a ring.
cell(vnode_quorum, Link, Workers) ->
    #{cost_ms := CostMs} = Cell = cell(Link, Workers),
    Cell#{workload => vnode_quorum, fresh => true, cost_ms := CostMs + 4000};
%% What was gossiped and has not arrived is not to be in the way of another cell.
cell(vnode_gossip, Link, Workers) ->
    #{cost_ms := CostMs} = Cell = cell(Link, Workers),
    Cell#{workload => vnode_gossip, fresh => true, cost_ms := CostMs + 4000,
          variants := ?BESIDE_GOSSIP};
cell(vnode_echo, Link, Workers) ->
    (cell(Link, Workers))#{workload => vnode_echo}.

cell(Link, Workers) ->
    DurationMs = duration_ms(Link),
    #{suite => store, size_bytes => ?MB, pairs => Workers, streams => 0, link => Link,
      on_demand => true, layout => trio, variants => ?VARIANTS,
      cost_ms => 2100 + DurationMs * 6 div 5, with => #{duration_ms => DurationMs}}.

duration_ms(#{rtt_ms := RttMs}) when RttMs >= ?LONG_RTT_MS -> ?LONG_DURATION_MS;
duration_ms(_Link) -> ?DURATION_MS.

%% @private
run(#{dir := Dir, workload := Kind, size_bytes := SizeBytes, pairs := Workers,
      with := #{duration_ms := DurationMs}}, Nodes) ->
    ok = weft_store_ring:form(Nodes, [a, b, c], Dir, #{more => [{weft_partisan_vnode, SizeBytes}]}),
    Measure = fun(Seed, Ms) -> requests(Nodes, request(Kind), SizeBytes, Workers, Ms, Seed) end,
    {ok, measured(Kind, Measure, DurationMs, Nodes)}.

request(vnode_gossip) -> vnode_echo;
request(Kind) -> Kind.

measured(vnode_gossip, Measure, DurationMs, Nodes) ->
    Gossip = weft_partisan_gossip:begun(flood, Nodes),
    _ = Measure(1, DurationMs div 5),
    Before = weft_partisan_gossip:received_bytes(Gossip, Nodes),
    {ElapsedUs, _} = Done = Measure(2, DurationMs),
    Bytes = weft_partisan_gossip:received_bytes(Gossip, Nodes) - Before,
    ok = weft_partisan_gossip:ended(Gossip, Nodes),
    [{background_megabytes_per_s, Bytes / ElapsedUs} | values(Done)];
measured(_Alone, Measure, DurationMs, Nodes) ->
    _ = Measure(1, DurationMs div 5),
    CpuUs = weft_bench_nodes:cpu_us(Nodes),
    {_, #{calls := Calls}} = Done = Measure(2, DurationMs),
    values(Done) ++ weft_bench_workload:cpu_us_per_message(Nodes, CpuUs, Calls).

values({ElapsedUs, #{calls := Calls} = Latencies}) ->
    [{calls_per_s, Calls * 1.0e6 / ElapsedUs} | maps:to_list(Latencies)].

requests(Nodes, Kind, SizeBytes, Workers, DurationMs, Seed) ->
    weft_bench_nodes:call(Nodes, a, weft_partisan_vnode, run,
                          {[Kind, SizeBytes, Workers, DurationMs, Seed], ?CALL_MS}).
