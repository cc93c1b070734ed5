%% SPDX-License-Identifier: Apache-2.0
%% @doc Workloads on a node that is busy with its own work: `streams' processes that compute without
%% end.
%%
%% ```
%% call_to_busy      a small call to a process of the highest priority beside them: what is left of
%%                   the time is what the connection needs to get its turns. With a gateway they
%%                   are on the gateway; stock, which has none, has a process of the highest
%%                   priority there that hands on (stock_relay)
%% call_to_busy_one  the same where the node has one scheduler
%% call_to_high      they have the priority high
%% call_from_busy    they are on the node that calls
%% flood_to_busy     `pairs' floods of 100 B messages to a node that computes; what its own
%%                   processes get done for the processor time that the node has, of what they get
%%                   done without a flood
%% flood_from_busy   floods from it
%% '''
%% A flood in which the connection was lost has failed.
-module(weft_bench_busy).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(SMALL_BYTES, 100).
-define(CALL_MS, 60000).
%% A call that takes longer has failed.
-define(TIMEOUT_MS, 3000).
%% With a pause between two calls each finds the node at another moment.
-define(PAUSE_MS, 2).
-define(WARM_UP_MS, 500).

%% @private
cells(quick) ->
    [calls(call_to_busy, Count, 1500) || Count <- [200, 3000]]
        ++ [calls(call_to_high, 4, 1500), flood(flood_to_busy, 8, 1500)];
cells(full) ->
    [calls(Workload, Count, 4000) || Workload <- [call_to_busy, call_to_busy_one, call_from_busy],
                                     Count <- [0, 200, 3000, 20000]]
        ++ [calls(call_to_high, 4, 25000)]
        ++ [flood(Workload, Count, 3000) || Workload <- [flood_to_busy, flood_from_busy],
                                            Count <- [2, 8, 64]].

calls(Workload, Count, DurationMs) ->
    cell(Workload, Count, 1, DurationMs, [stock, weft_1, stock_relay, weft_gateway]).

flood(Workload, Count, DurationMs) ->
    cell(Workload, Count, 4, DurationMs, [stock, weft_1]).

cell(Workload, Count, Pairs, DurationMs, Variants) ->
    #{suite => k, workload => Workload, size_bytes => ?SMALL_BYTES, pairs => Pairs,
      streams => Count, link => weft_bench_link:loopback(), layout => pair, variants => Variants,
      cost_ms => DurationMs + 2500, with => #{duration_ms => DurationMs}}.

%% @private
run(#{workload := Workload} = Cell, Nodes)
  when Workload =:= flood_to_busy; Workload =:= flood_from_busy ->
    flood(Cell, Nodes);
run(#{workload := Workload, with := #{duration_ms := DurationMs}} = Cell, Nodes) ->
    BeginMs = now_ms(),
    Busy = case {Workload, lists:member(g, weft_bench_nodes:roles(Nodes))} of
               {call_from_busy, _} -> a;
               {_, true} -> g;
               {_, false} -> b
           end,
    Echo = echo(weft_bench_nodes:variant(Nodes), Nodes),
    Conductor = compute(Nodes, Busy, Cell),
    Calls = fun(ForMs) ->
                    call(Nodes, a, weft_bench_computing, calls,
                         [Echo, ForMs, ?TIMEOUT_MS, ?PAUSE_MS])
            end,
    Values = weft_bench_workload:warmed_up(fun() -> Calls(?WARM_UP_MS) end,
                                           fun() -> maps:to_list(Calls(DurationMs)) end),
    %% Calls to a node at rest are not what is asked for, and in their time there are many more.
    %% Processes of a high priority end by themselves, so the last one may be such a call.
    Workload =:= call_to_high orelse now_ms() - BeginMs < compute_ms(Cell)
        orelse error(computing_ended_before_the_calls),
    ok = call(Nodes, Busy, weft_bench_computing, stop, [Conductor]),
    _ = call(Nodes, Busy, weft_bench_computing, result, [Conductor, ?CALL_MS]),
    {ok, Values}.

now_ms() -> erlang:monotonic_time(millisecond).

echo(stock_relay, Nodes) ->
    call(Nodes, g, weft_bench_computing, start_relay, [echo(stock, Nodes)]);
echo(_Variant, Nodes) ->
    call(Nodes, b, weft_bench_computing, start_echo, []).

compute_ms(#{workload := Workload, with := #{duration_ms := DurationMs}}) ->
    DurationMs + 2 * ?WARM_UP_MS + reserve_ms(Workload, DurationMs).

%% The last call of the warm-up, and that of the others, may take as long as a call may. Processes
%% of a high priority can not be told to stop before, so they have less.
reserve_ms(call_to_high, DurationMs) -> min(2 * ?TIMEOUT_MS, DurationMs);
reserve_ms(flood_to_busy, _DurationMs) -> 0;
reserve_ms(flood_from_busy, _DurationMs) -> 0;
reserve_ms(_Calls, _DurationMs) -> 2 * ?TIMEOUT_MS.

compute(Nodes, Role, #{workload := Workload, streams := Count} = Cell) ->
    Plan = #{count => Count, warm_up_ms => ?WARM_UP_MS, for_ms => compute_ms(Cell),
             priority => case Workload of call_to_high -> high; _ -> normal end,
             schedulers => case Workload of call_to_busy_one -> 1; _ -> all end},
    call(Nodes, Role, weft_bench_computing, begin_to_compute, [Plan]).

flood(#{workload := Workload, pairs := Pairs, size_bytes := SizeBytes} = Cell, Nodes) ->
    Busy = case Workload of flood_to_busy -> b; flood_from_busy -> a end,
    Alone = call(Nodes, Busy, weft_bench_computing, result,
                 [compute(Nodes, Busy, Cell), ?CALL_MS]),
    {Counter, Sinks} = call(Nodes, b, weft_bench_streams, start_sinks, [Pairs]),
    Conductor = compute(Nodes, Busy, Cell),
    Mode = weft_bench_workload:mode(Nodes, stream),
    Before = call(Nodes, b, weft_bench_streams, count, [Counter]),
    Senders = call(Nodes, a, weft_bench_streams, start_senders,
                   [Mode, Sinks, SizeBytes, same_message]),
    Beside = call(Nodes, Busy, weft_bench_computing, result, [Conductor, ?CALL_MS]),
    After = call(Nodes, b, weft_bench_streams, count, [Counter]),
    ok = call(Nodes, a, weft_bench_streams, stop_senders, [Senders]),
    {ok, [{computed_percent, 100 * rate(cpu_us, Beside) / rate(cpu_us, Alone)},
          {computed_in_time_percent, 100 * rate(elapsed_us, Beside) / rate(elapsed_us, Alone)}
          | messages(Before, After)]}.

rate(Of, #{work := Work} = Result) ->
    Work / maps:get(Of, Result).

messages({StartUs, Messages1, _}, {EndUs, Messages2, _}) ->
    [{messages_per_s, (Messages2 - Messages1) * 1.0e6 / (EndUs - StartUs)}].

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, 2 * ?CALL_MS}).
