%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `hour': does a cluster that has nothing to do stay as it is?
%%
%% Nodes are connected as in `weft_bench_form' and left alone for an hour. Once a minute their
%% processor time and their resident memory are read, from outside: no node is woken by that. What
%% the hour has changed is the last ten minutes against the first ten.
-module(weft_bench_hour).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

%% Samples of the beginning and of the end that are compared.
-define(COMPARED, 10).

%% @private
cells(quick) -> [cell(3, 1000, 4, 500)];
cells(full) -> [cell(40, 120000, 60, 60000)].

cell(Count, SettleMs, Samples, EachMs) ->
    #{suite => hour, workload => hour, size_bytes => 0, pairs => Count, streams => 0,
      link => weft_bench_link:loopback(), on_demand => true, fresh => true, repetitions_max => 1,
      layout => {apart, weft_bench_cluster:shape(Count, [])},
      variants => [stock_mesh, weft_mesh, weft_swim],
      cost_ms => 5000 + 300 * Count + SettleMs + Samples * EachMs,
      with => #{settle_ms => SettleMs, samples => Samples, each_ms => EachMs}}.

%% @private
run(#{with := #{settle_ms := SettleMs, samples := Count, each_ms := EachMs}}, Nodes) ->
    Roles = weft_bench_nodes:roles(Nodes),
    ok = weft_bench_form:load(Roles, Nodes),
    _ = weft_bench_form:form(Roles, Nodes),
    receive after SettleMs -> ok end,
    BeganMs = erlang:monotonic_time(millisecond),
    {Samples, _} = lists:mapfoldl(
                     fun(N, Before) ->
                             sample(BeganMs, BeganMs + N * EachMs, Before, Roles, Nodes)
                     end, {BeganMs, weft_bench_idle:cpu_us(Nodes, Roles)}, lists:seq(1, Count)),
    {ok, metrics(Samples)}.

%% What a node used since the sample before, and what memory it has now.
sample(BeganMs, DueMs, {BeforeMs, BeforeUs}, Roles, Nodes) ->
    receive after max(0, DueMs - erlang:monotonic_time(millisecond)) -> ok end,
    {NowMs, NowUs} = {erlang:monotonic_time(millisecond), weft_bench_idle:cpu_us(Nodes, Roles)},
    Bytes = lists:sum([weft_bench_nodes:resident_bytes(Nodes, Role) || Role <- Roles]),
    Percent = (NowUs - BeforeUs) / length(Roles) / (NowMs - BeforeMs) / 10,
    {{NowMs - BeganMs, Percent, Bytes / length(Roles)}, {NowMs, NowUs}}.

metrics(Samples) ->
    Compared = min(?COMPARED, length(Samples) div 2),
    First = lists:sublist(Samples, Compared),
    Last = lists:nthtail(length(Samples) - Compared, Samples),
    [{idle_percent, mean(2, Samples)},
     {idle_changed_percent, changed(2, First, Last)},
     {memory_changed_percent, changed(3, First, Last)},
     {measured_s, element(1, lists:last(Samples)) / 1000}]
        ++ lists:append([[{idle_minute_percent, Percent, AtMs}, {node_memory_bytes, Bytes, AtMs}]
                         || {AtMs, Percent, Bytes} <- Samples]).

changed(Position, First, Last) ->
    100 * (mean(Position, Last) / mean(Position, First) - 1).

mean(Position, Samples) ->
    lists:sum([element(Position, Sample) || Sample <- Samples]) / length(Samples).
