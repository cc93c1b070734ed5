%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `both_ways': some processes on each of two nodes send messages of 1 MB to as many
%% on the other one, over an emulated link. What tells a sender to go on waits then behind what its
%% receiver sends. The rates of both directions are added, and that of the slower one has a number
%% of its own. The first part of a run is a warm-up, of which nothing is counted.
-module(weft_bench_both_ways).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(SIZE_BYTES, 1048576).
-define(DRAIN_MS, 60000).

%% @private
cells(quick) ->
    [];
cells(full) ->
    [cell(weft_bench_link:emulated(RttMs, RateMbit, 0), 16)
     || {RttMs, RateMbit} <- [{1, 400}, {20, 100}, {20, 400}]].

cell(Link, Pairs) ->
    #{suite => d, workload => both_ways, size_bytes => ?SIZE_BYTES, pairs => Pairs, streams => 0,
      link => Link, layout => pair, variants => [stock, weft_1, weft_8, channel], cost_ms => 9000,
      with => #{duration_ms => 5000}}.

%% @private
run(#{pairs := Pairs, with := #{duration_ms := DurationMs}}, Nodes) ->
    Both = fun(ForMs) -> both(Nodes, Pairs, ForMs) end,
    Measure = fun() ->
                  CpuUs = weft_bench_nodes:cpu_us(Nodes),
                  Floods = Both(DurationMs),
                  Rates = [Messages * ?SIZE_BYTES / Us || {Us, Messages} <- Floods],
                  Count = lists:sum([Messages || {_, Messages} <- Floods]),
                  [{megabytes_per_s, lists:sum(Rates)},
                   {slower_megabytes_per_s, lists:min(Rates)}
                   | weft_bench_workload:cpu_us_per_message(Nodes, CpuUs, Count)]
              end,
    {ok, weft_bench_workload:warmed_up(fun() -> Both(DurationMs div 4) end, Measure)}.

%% A flood that fails makes the measurement fail.
both(Nodes, Pairs, ForMs) ->
    Flood = fun(Ends) ->
                weft_bench_throughput:flood_between(Ends, Nodes, {Pairs, {binary, ?SIZE_BYTES}},
                                                    {duration_ms, ForMs}, ?DRAIN_MS)
            end,
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Self ! {self(), Flood({b, a})} end),
    There = Flood({a, b}),
    receive
        {Pid, Back} ->
            true = demonitor(Monitor, [flush]),
            [There, Back];
        {'DOWN', Monitor, process, _, Reason} ->
            error({flood_back_failed, Reason})
    end.
