%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `small', `bulk', `terms' and `maps': as many messages as the carrier takes, from
%% each of some senders to its own receiver on the other node. On loopback, and (small and bulk) on
%% emulated links. The first part of a run is a warm-up, of which nothing is counted.
-module(weft_bench_throughput).
-behaviour(weft_bench_workload).

-export([cells/1, run/2, links/1, flood/5, flood_between/5]).

-define(KB, 1024).
-define(MB, 1048576).
-define(DRAIN_MS, 60000).
%% Messages of this size are sent the way that is meant for bulk.
-define(STREAM_BYTES, 65536).
-define(PLAIN, [stock, weft_1, weft_4, weft_8, weft_gateway, channel, channel_8]).
-define(TLS, [stock_tls, weft_tls_1, weft_tls_4]).

%% @private
cells(quick) ->
    [cell(a, small, {binary, Size}, Pairs, 350, quick_variants(Pairs))
     || {Size, Pairs} <- [{10, 1}, {100, 16}, {?KB, 128}]]
        ++ [cell(b, bulk, {binary, Size}, 16, 500, quick_variants(16)) || Size <- [64 * ?KB, ?MB]]
        ++ [cell(f, terms, {terms, 10}, 16, 350, [stock, weft_1, channel])]
        ++ [on_link(Link, cell(d, bulk, {binary, 64 * ?KB}, 16, 1200, [stock, weft_8]))
            || Link <- [weft_bench_link:emulated(20, 400, 1)]];
cells(full) ->
    [cell(a, small, {binary, Size}, Pairs, 700, full_variants(Pairs))
     || Size <- [10, 100, ?KB], Pairs <- [1, 16, 128]]
        ++ [cell(b, bulk, {binary, Size}, Pairs, 1200, full_variants(Pairs))
            || Size <- [64 * ?KB, ?MB, 10 * ?MB], Pairs <- [1, 16, 64]]
        ++ [cell(b, bulk, {binary, Size}, 8, 1200, [stock, weft_1])
            || Size <- [64 * ?KB, 10 * ?MB]]
        ++ [cell(f, terms, {terms, Count}, 16, 700, [stock, weft_1, weft_4, weft_gateway, channel])
            || Count <- [1, 10, 100]]
        ++ [cell(f, maps, {map, 10}, 512, 1500, [stock, weft_1, channel])]
        ++ lists:append([link_cells(Link) || Link <- links(full)]).

quick_variants(16) -> [stock, weft_1, weft_4, weft_gateway, channel, stock_tls, weft_tls_1];
quick_variants(_) -> [stock, weft_1, weft_4, weft_gateway, channel].

full_variants(16) -> ?PLAIN ++ ?TLS;
full_variants(_) -> ?PLAIN.

%% @doc The emulated links of a scope.
-spec links(weft_bench_workload:scope()) -> [weft_bench_link:link()].
links(quick) ->
    [weft_bench_link:emulated(1, 800, 0)];
links(full) ->
    [weft_bench_link:emulated(RttMs, RateMbit, Loss)
     || {RttMs, RateMbit} <- [{1, 800}, {20, 400}], Loss <- [0, 0.1, 1]].

link_cells(Link) ->
    Variants = [stock, weft_1, weft_8, channel, channel_8],
    [on_link(Link, Cell)
     || Cell <- [cell(d, small, {binary, 100}, 16, 1000, Variants)]
            ++ [cell(d, bulk, {binary, Size}, Pairs, 2500, Variants)
                || Size <- [64 * ?KB, ?MB], Pairs <- [1, 16]]].

on_link(Link, #{cost_ms := CostMs} = Cell) ->
    Cell#{link := Link, cost_ms := CostMs * 2}.

cell(Suite, Workload, Payload, Pairs, DurationMs, Variants) ->
    #{suite => Suite, workload => Workload, size_bytes => weft_bench_flood:payload_bytes(Payload),
      pairs => Pairs, streams => 0, link => weft_bench_link:loopback(), layout => pair,
      variants => Variants, cost_ms => DurationMs * 3 div 2 + 200,
      with => #{payload => Payload, duration_ms => DurationMs}}.

%% @private
run(#{with := #{payload := Payload, duration_ms := DurationMs}} = Cell, Nodes) ->
    #{pairs := Pairs, size_bytes := SizeBytes} = Cell,
    WarmUp = fun() ->
                 flood(Nodes, Pairs, Payload, {duration_ms, DurationMs div 4}, ?DRAIN_MS)
             end,
    Measure = fun() ->
                  CpuUs = weft_bench_nodes:cpu_us(Nodes),
                  {ElapsedUs, Messages} = flood(Nodes, Pairs, Payload, {duration_ms, DurationMs},
                                                ?DRAIN_MS),
                  [{messages_per_s, Messages * 1.0e6 / ElapsedUs},
                   {megabytes_per_s, Messages * SizeBytes / ElapsedUs}
                   | weft_bench_workload:cpu_us_per_message(Nodes, CpuUs, Messages)]
              end,
    {ok, weft_bench_workload:warmed_up(WarmUp, Measure)}.

%% @doc One flood from a to b, until the last message has arrived.
-spec flood(weft_bench_nodes:nodes(), Pairs :: pos_integer(), weft_bench_flood:payload(),
            weft_bench_flood:limit(), TimeoutMs :: pos_integer()) ->
          {ElapsedUs :: pos_integer(), Messages :: pos_integer()}.
flood(Nodes, Pairs, Payload, Limit, TimeoutMs) ->
    flood_between({a, b}, Nodes, {Pairs, Payload}, Limit, TimeoutMs).

%% @doc The same between two nodes.
-spec flood_between({From :: weft_bench_nodes:role(), To :: weft_bench_nodes:role()},
                    weft_bench_nodes:nodes(), {Pairs :: pos_integer(), weft_bench_flood:payload()},
                    weft_bench_flood:limit(), TimeoutMs :: pos_integer()) ->
          {ElapsedUs :: pos_integer(), Messages :: pos_integer()}.
flood_between({From, To}, Nodes, {Pairs, Payload}, Limit, TimeoutMs) ->
    {Collector, Sinks} = weft_bench_nodes:call(Nodes, To, weft_bench_flood, start_sinks,
                                               {[Pairs], TimeoutMs}),
    Mode = weft_bench_workload:mode(Nodes, purpose(Payload)),
    StartUs = weft_bench_nodes:call(Nodes, From, weft_bench_flood, flood,
                                    {[Mode, Sinks, Payload, Limit], TimeoutMs}),
    {ok, LastUs, Messages} = weft_bench_nodes:call(Nodes, To, weft_bench_flood, await_sinks,
                                                   {[Collector, TimeoutMs], TimeoutMs + 1000}),
    %% Each was read from the clock of its node.
    {weft_bench_clock:between_us({StartUs, weft_bench_nodes:ahead_us(Nodes, From)},
                                 {LastUs, weft_bench_nodes:ahead_us(Nodes, To)}), Messages}.

purpose({binary, Bytes}) when Bytes >= ?STREAM_BYTES -> stream;
purpose(_Small) -> message.
