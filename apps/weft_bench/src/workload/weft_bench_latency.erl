%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads `call_beside_bulk' and `call_beside_flood': how long a small call takes while
%% other processes of the same node send as much as they can to the same peer, streams of 1 MB or
%% floods of 100 B messages; and what these get through meanwhile. The way back is idle.
%% `call_beside_large': beside one message of 200 MB, and then another one, until the time is over.
%% A run in which the connection was lost has failed; calls that were given up are a metric.
-module(weft_bench_latency).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(BULK_BYTES, 1048576).
-define(SMALL_BYTES, 100).
-define(LARGE_BYTES, 200 * 1048576).
-define(CALL_MS, 30000).

%% @private
cells(quick) ->
    Variants = [stock, weft_1, weft_4, weft_gateway, channel],
    [cell(c, call_beside_bulk, 0, 500, Variants),
     cell(c, call_beside_bulk, 8, 1000, Variants ++ [stock_tls, weft_tls_1]),
     cell(c, call_beside_flood, 8, 700, [stock, weft_1, channel])]
        ++ [on_link(Link, cell(d, call_beside_bulk, 8, 2000, [stock, weft_1, channel]))
            || Link <- weft_bench_throughput:links(quick)];
cells(full) ->
    Variants = [stock, weft_1, weft_4, weft_8, weft_gateway, channel, channel_8,
                stock_tls, weft_tls_1, weft_tls_4],
    [cell(c, call_beside_bulk, Streams, 2000, Variants) || Streams <- [0, 1, 8, 32]]
        ++ [cell(c, call_beside_flood, Streams, 1500, Variants) || Streams <- [1, 8, 32]]
        ++ [cell(c, call_beside_flood, 200, 3000, [stock, weft_1, channel])]
        ++ [cell(c, call_beside_large, 1, 2000, [stock, weft_1, weft_4, weft_8, channel])]
        ++ [on_link(Link, cell(d, call_beside_bulk, Streams, 3000,
                               [stock, weft_1, weft_8, channel]))
            || Link <- weft_bench_throughput:links(full), Streams <- [0, 1, 8, 32]].

on_link(Link, #{cost_ms := CostMs, with := With} = Cell) ->
    Cell#{link := Link, cost_ms := CostMs + 1500, with := With#{warm_up_ms := 1000}}.

cell(Suite, Workload, Streams, DurationMs, Variants) ->
    SizeBytes = case Workload of
                    call_beside_bulk -> ?BULK_BYTES;
                    call_beside_large -> ?LARGE_BYTES;
                    call_beside_flood -> ?SMALL_BYTES
                end,
    #{suite => Suite, workload => Workload, size_bytes => SizeBytes, pairs => 1,
      streams => Streams, link => weft_bench_link:loopback(), layout => pair,
      variants => Variants, cost_ms => DurationMs + 600,
      with => #{duration_ms => DurationMs, warm_up_ms => 300}}.

%% @private
run(#{streams := Streams, size_bytes := SizeBytes, with := With}, Nodes) ->
    #{duration_ms := DurationMs, warm_up_ms := WarmUpMs} = With,
    Call = fun(Role, Module, Function, Arguments) ->
                   weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS})
           end,
    Echo = Call(b, weft_bench_ping, start_echo, []),
    {Counter, Sinks} = Call(b, weft_bench_streams, start_sinks, [Streams]),
    Mode = weft_bench_workload:mode(Nodes, call),
    Senders = Call(a, weft_bench_streams, start_senders,
                   [weft_bench_workload:mode(Nodes, stream), Sinks, SizeBytes, same_message]),
    Pings = fun(ForMs) -> Call(a, weft_bench_ping, run, [Mode, Echo, ForMs]) end,
    Measure = fun() ->
                  Before = Call(b, weft_bench_streams, count, [Counter]),
                  Latencies = Pings(DurationMs),
                  After = Call(b, weft_bench_streams, count, [Counter]),
                  maps:to_list(Latencies) ++ background(Streams, Before, After)
              end,
    Values = weft_bench_workload:warmed_up(fun() -> Pings(WarmUpMs) end, Measure),
    ok = Call(a, weft_bench_streams, stop_senders, [Senders]),
    ok = Call(b, weft_bench_streams, stop_sinks, [Counter]),
    {ok, Values}.

background(0, _, _) ->
    [];
background(_, {StartUs, Messages1, Bytes1}, {EndUs, Messages2, Bytes2}) ->
    ElapsedUs = EndUs - StartUs,
    [{background_megabytes_per_s, (Bytes2 - Bytes1) / ElapsedUs},
     {background_messages_per_s, (Messages2 - Messages1) * 1.0e6 / ElapsedUs}].
