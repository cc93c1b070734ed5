%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `fan_out': one process sends each message to a process on each of many nodes, as
%% publish and subscribe do. Stock distribution and weft encode a message once per node; a channel
%% takes the list of receivers and encodes once. Counted are messages received, on all nodes.
-module(weft_bench_fan_out).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).
-export([broadcast/4]).

-define(SIZE_BYTES, 1024).
-define(CALL_MS, 60000).

%% @private
cells(quick) -> [cell(8, 500)];
cells(full) -> [cell(Count, 1500) || Count <- [10, 100]].

cell(Count, DurationMs) ->
    #{suite => h, workload => fan_out, size_bytes => ?SIZE_BYTES, pairs => Count, streams => 0,
      link => weft_bench_link:loopback(), layout => {fan, Count},
      variants => [stock, weft_1, channel], fresh => true, cost_ms => DurationMs * 2 + 100 * Count,
      with => #{duration_ms => DurationMs}}.

%% @private
run(#{pairs := Count, with := #{duration_ms := DurationMs}}, Nodes) ->
    Measure = fun() ->
                  CpuUs = weft_bench_nodes:cpu_us(Nodes),
                  {ElapsedUs, Messages} = flood(Nodes, Count, DurationMs),
                  [{messages_per_s, Messages * 1.0e6 / ElapsedUs},
                   {megabytes_per_s, Messages * ?SIZE_BYTES / ElapsedUs}
                   | weft_bench_workload:cpu_us_per_message(Nodes, CpuUs, Messages)]
              end,
    {ok, weft_bench_workload:warmed_up(fun() -> flood(Nodes, Count, DurationMs div 5) end,
                                       Measure)}.

flood(Nodes, Count, DurationMs) ->
    Roles = [{r, Number} || Number <- lists:seq(1, Count)],
    Sinks = [{Role, weft_bench_nodes:call(Nodes, Role, weft_bench_flood, start_sinks,
                                          {[1], ?CALL_MS})} || Role <- Roles],
    Mode = weft_bench_workload:mode(Nodes, message),
    Receivers = [Sink || {_, {_, [Sink]}} <- Sinks],
    StartUs = weft_bench_nodes:call(Nodes, a, ?MODULE, broadcast,
                                    {[Mode, Receivers, ?SIZE_BYTES, DurationMs], ?CALL_MS}),
    {Ends, Messages} = lists:unzip([arrived(Nodes, Role, Collector)
                                    || {Role, {Collector, _}} <- Sinks]),
    {lists:max(Ends) - StartUs, lists:sum(Messages)}.

%% A node that did not get all of them makes the measurement fail, as one of a pair does.
arrived(Nodes, Role, Collector) ->
    {ok, AtUs, Messages} = weft_bench_nodes:call(Nodes, Role, weft_bench_flood, await_sinks,
                                                 {[Collector, ?CALL_MS], ?CALL_MS + 1000}),
    {AtUs, Messages}.

%% @doc On the sending node: sends to all receivers for a time, then how many messages it were.
-spec broadcast(weft_bench_variant:mode(), [pid()], SizeBytes :: pos_integer(),
                DurationMs :: pos_integer()) -> StartUs :: integer().
broadcast(Mode, Receivers, SizeBytes, DurationMs) ->
    Message = weft_bench_flood:payload({binary, SizeBytes}),
    StartUs = os:perf_counter(microsecond),
    Sent = send_until(Mode, Receivers, Message, StartUs + DurationMs * 1000, 0),
    send_all(Mode, Receivers, {last, Sent}),
    StartUs.

send_until(Mode, Receivers, Message, EndUs, Sent) ->
    send_all(Mode, Receivers, Message),
    case os:perf_counter(microsecond) < EndUs of
        true -> send_until(Mode, Receivers, Message, EndUs, Sent + 1);
        false -> Sent + 1
    end.

send_all(plain, Receivers, Message) ->
    lists:foreach(fun(Receiver) -> Receiver ! Message end, Receivers);
send_all({channel, Options}, Receivers, Message) ->
    ok = weft:send(Receivers, Message, Options).
