%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `mesh_calls': calls between nodes that are all connected with each other. On each
%% node there are some callers. Each sends a small message to a node by chance, waits for the
%% answer, and goes on with another node. So there are many connections, and each has few messages.
%% All connections are made before the warm-up begins, and how long that took is a metric of its
%% own: the warm-up is calls only.
-module(weft_bench_mesh).
-behaviour(weft_bench_workload).

-export([cells/1, run/2, prepare/1, calls/3]).
-export([connect/1, start_echo/0, run_callers/3]).

-define(SIZE_BYTES, 100).
-define(CALL_MS, 60000).
-define(CONNECT_MS, 20000).
-define(AGAIN_MS, 50).

%% @private
cells(quick) -> [];
cells(full) -> [cell(Nodes, Callers, 3000) || Nodes <- [24, 40], Callers <- [1, 4]].

cell(Nodes, Callers, DurationMs) ->
    #{suite => j, workload => mesh_calls, size_bytes => ?SIZE_BYTES, pairs => Nodes,
      streams => Callers, link => weft_bench_link:loopback(),
      layout => {cluster, weft_bench_cluster:shape(Nodes, [])}, variants => [stock, weft_1],
      fresh => true, cost_ms => DurationMs * 2 + 300 * Nodes, with => #{duration_ms => DurationMs}}.

%% @private
run(#{streams := Callers, with := #{duration_ms := DurationMs}}, Nodes) ->
    {ConnectUs, ok} = timer:tc(fun() -> prepare(Nodes) end),
    WarmUp = fun() -> calls(Nodes, Callers, DurationMs div 4) end,
    Measure = fun() ->
                      CpuUs = weft_bench_nodes:cpu_us(Nodes),
                      {CallsPerS, LatenciesUs} = calls(Nodes, Callers, DurationMs),
                      Calls = length(LatenciesUs),
                      [{calls_per_s, CallsPerS}
                       | maps:to_list(weft_report_statistics:latencies(LatenciesUs))]
                          ++ weft_bench_workload:cpu_us_per_message(Nodes, CpuUs, Calls)
              end,
    {ok, weft_bench_workload:warmed_up(WarmUp, Measure) ++ [{connect_s, ConnectUs / 1.0e6}]}.

%% @doc Makes nodes ready for calls: all are connected with each other, and answer.
-spec prepare(weft_bench_nodes:nodes()) -> ok.
prepare(Nodes) ->
    Names = weft_bench_cluster:nodes(Nodes),
    ok = lists:foreach(fun(ok) -> ok end, all(Nodes, start_echo, [], ?CALL_MS)),
    lists:foreach(fun(ok) -> ok end, all(Nodes, connect, [Names], ?CALL_MS)).

%% @doc Calls of so many callers on each node, for so long. How many all of them make in a second,
%% and all latencies, in microseconds.
-spec calls(weft_bench_nodes:nodes(), Callers :: pos_integer(), ForMs :: pos_integer()) ->
          {CallsPerS :: float(), LatenciesUs :: [non_neg_integer()]}.
calls(Nodes, Callers, ForMs) ->
    Names = weft_bench_cluster:nodes(Nodes),
    together(all(Nodes, run_callers, [Names, Callers, ForMs], ForMs + ?CALL_MS)).

together(Called) ->
    {CallsPerS, LatenciesUs} = lists:unzip(Called),
    {lists:sum(CallsPerS), lists:append(LatenciesUs)}.

%% On all nodes at the same time. A node that is lost is an error of this measurement alone.
all(Nodes, Function, Arguments, TimeoutMs) ->
    Self = self(),
    Of = fun(Role) ->
                 spawn_monitor(fun() ->
                                   Answer = weft_bench_nodes:call(Nodes, Role, ?MODULE, Function,
                                                                  {Arguments, TimeoutMs}),
                                   Self ! {self(), Answer}
                               end)
         end,
    Asked = [{Role, Of(Role)} || Role <- weft_bench_nodes:roles(Nodes)],
    [answer(Role, Call) || {Role, Call} <- Asked].

answer(Role, {Pid, Monitor}) ->
    receive
        {Pid, Answer} -> demonitor(Monitor, [flush]), Answer;
        {'DOWN', Monitor, process, Pid, Why} -> error({no_answer_of, Role, Why})
    end.

%% @doc On a node: connects it with those that have a name after its own, and returns when it is
%% connected with the others, too.
-spec connect([node()]) -> ok.
connect(Names) ->
    DeadlineMs = now_ms() + ?CONNECT_MS,
    lists:foreach(fun(Name) -> connect(Name, DeadlineMs) end,
                  [Name || Name <- Names, Name > node()]),
    await(Names -- [node()], DeadlineMs).

await(Others, DeadlineMs) ->
    case Others -- nodes(connected) of
        [] -> ok;
        Missing ->
            now_ms() < DeadlineMs orelse error({not_connected, Missing}),
            receive after ?AGAIN_MS -> await(Missing, DeadlineMs) end
    end.

%% Of two that call each other at the same time one may be refused.
connect(Name, DeadlineMs) ->
    case net_kernel:connect_node(Name) of
        true -> ok;
        _ ->
            now_ms() < DeadlineMs orelse error({no_connection, Name}),
            receive after ?AGAIN_MS -> connect(Name, DeadlineMs) end
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% @doc On a node: the process that answers, under the name of this module; once.
-spec start_echo() -> ok.
start_echo() ->
    _ = whereis(?MODULE) =/= undefined
        orelse register(?MODULE, weft_bench_ping:start_echo()),
    ok.

%% @doc On a node: calls of so many callers, for so long, and what `calls/3' tells of them. A caller
%% is done when its last call is back: its calls are those of all that time, or a carrier would look
%% the faster the longer the last ones take.
-spec run_callers([node()], Callers :: pos_integer(), DurationMs :: pos_integer()) ->
          {CallsPerS :: float(), LatenciesUs :: [non_neg_integer()]}.
run_callers(Names, Callers, DurationMs) ->
    Others = list_to_tuple(Names -- [node()]),
    EndUs = os:perf_counter(microsecond) + DurationMs * 1000,
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), caller(Others, EndUs)} end)
            || _ <- lists:seq(1, Callers)],
    together([receive {Pid, Called} -> Called end || Pid <- Pids]).

caller(Others, EndUs) ->
    StartUs = os:perf_counter(microsecond),
    LatenciesUs = repeat(Others, EndUs, []),
    {length(LatenciesUs) * 1.0e6 / (os:perf_counter(microsecond) - StartUs), LatenciesUs}.

repeat(Others, EndUs, LatenciesUs) ->
    Ref = make_ref(),
    StartUs = os:perf_counter(microsecond),
    {?MODULE, element(rand:uniform(tuple_size(Others)), Others)} ! {ping, plain, self(), Ref},
    receive {Ref, pong} -> ok end,
    NowUs = os:perf_counter(microsecond),
    case NowUs < EndUs of
        true -> repeat(Others, EndUs, [NowUs - StartUs | LatenciesUs]);
        false -> [NowUs - StartUs | LatenciesUs]
    end.
