%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `slow_receiver': senders flood a node that is stopped nine tenths of the time
%% (SIGSTOP, SIGCONT), and the memory of both nodes is recorded. It is what the operating system
%% counts as resident. Whatever a carrier holds back for a receiver that does not keep up must have
%% a bound. The processes that receive are fast: a mailbox that nobody empties is the program's own
%% matter, with any carrier. What was held back goes with the connection, so a run in which that was
%% lost has failed.
-module(weft_bench_slow_receiver).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(SIZE_BYTES, 65536).
-define(SENDERS, 16).
-define(STOPPED_MS, 450).
-define(RUNNING_MS, 50).
-define(CALL_MS, 30000).

%% @private
cells(quick) -> [cell(4000, [stock, weft_1, channel])];
cells(full) -> [(cell(60000, [stock, weft_1, weft_8, channel]))#{repetitions_max => 2}].

cell(DurationMs, Variants) ->
    #{suite => g, workload => slow_receiver, size_bytes => ?SIZE_BYTES, pairs => ?SENDERS,
      streams => 0, fresh => true, only_here => true, link => weft_bench_link:loopback(),
      layout => pair, variants => Variants, cost_ms => DurationMs + 1000,
      with => #{duration_ms => DurationMs}}.

%% @private
run(#{with := #{duration_ms := DurationMs}}, Nodes) ->
    {Counter, Sinks} = weft_bench_nodes:call(Nodes, b, weft_bench_streams, start_sinks,
                                             {[?SENDERS], ?CALL_MS}),
    Mode = weft_bench_workload:mode(Nodes, message),
    Before = memory(Nodes),
    Senders = weft_bench_nodes:call(Nodes, a, weft_bench_streams, start_senders,
                                    {[Mode, Sinks, ?SIZE_BYTES, new_messages], ?CALL_MS}),
    StartMs = erlang:monotonic_time(millisecond),
    Signals = signals(weft_bench_nodes:os_pid(Nodes, b)),
    Samples = slow(Nodes, Signals, {StartMs, StartMs + DurationMs}, []),
    true = port_close(Signals),
    {_, Messages, Bytes} = weft_bench_nodes:call(Nodes, b, weft_bench_streams, count,
                                                 {[Counter], ?CALL_MS}),
    ElapsedMs = erlang:monotonic_time(millisecond) - StartMs,
    ok = weft_bench_nodes:call(Nodes, a, weft_bench_streams, stop_senders, {[Senders], ?CALL_MS}),
    ok = weft_bench_nodes:call(Nodes, b, weft_bench_streams, stop_sinks, {[Counter], ?CALL_MS}),
    {ok, [{messages_per_s, Messages * 1000 / ElapsedMs},
          {megabytes_per_s, Bytes / ElapsedMs / 1000} | metrics(Before, Samples)]}.

%% Takes signals as lines. Whatever ends this emulator, the node is not left stopped.
signals(OsPid) ->
    Script = "while read -r signal; do kill -s \"$signal\" \"$0\"; done; kill -s CONT \"$0\"",
    open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Script, OsPid]}]).

slow(Nodes, Signals, {StartMs, EndMs} = Times, Samples) ->
    true = port_command(Signals, "STOP\n"),
    receive after ?STOPPED_MS -> ok end,
    Sample = {erlang:monotonic_time(millisecond) - StartMs, memory(Nodes)},
    true = port_command(Signals, "CONT\n"),
    receive after ?RUNNING_MS -> ok end,
    case erlang:monotonic_time(millisecond) < EndMs of
        true -> slow(Nodes, Signals, Times, [Sample | Samples]);
        false -> lists:reverse(Samples, [Sample])
    end.

memory(Nodes) ->
    {weft_bench_nodes:resident_bytes(Nodes, a), weft_bench_nodes:resident_bytes(Nodes, b)}.

metrics({SenderBefore, ReceiverBefore}, Samples) ->
    [{sender_growth_bytes, max_of(1, Samples) - SenderBefore},
     {receiver_growth_bytes, max_of(2, Samples) - ReceiverBefore}]
        ++ lists:append([[{sender_memory_bytes, Sender, AtMs},
                          {receiver_memory_bytes, Receiver, AtMs}]
                         || {AtMs, {Sender, Receiver}} <- Samples]).

max_of(Position, Samples) ->
    lists:max([element(Position, Memory) || {_, Memory} <- Samples]).
