%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes that do the same thing over and over, each waiting for its own answer: callers,
%% and the clients of a ring. Runs on the node under test.
-module(weft_bench_workers).

-export([run/3]).

%% @doc Count workers call Next with a state of their own until the time is over. New makes the
%% first state of a worker from its number. How long all of it took, and the latencies as metrics.
-spec run(Count :: pos_integer(), DurationMs :: pos_integer(),
          {New :: fun((pos_integer()) -> State), Next :: fun((State) -> State)}) ->
          {ElapsedUs :: pos_integer(), #{atom() => number()}}.
run(Count, DurationMs, {New, Next}) ->
    Self = self(),
    StartUs = os:perf_counter(microsecond),
    EndUs = StartUs + DurationMs * 1000,
    Workers = [spawn_monitor(fun() -> Self ! {self(), repeat(Next, New(Number), EndUs, [])} end)
               || Number <- lists:seq(1, Count)],
    Latencies = [latencies_of(Worker) || Worker <- Workers],
    {os:perf_counter(microsecond) - StartUs,
     weft_report_statistics:latencies(lists:append(Latencies))}.

latencies_of({Pid, Monitor}) ->
    receive
        {Pid, Latencies} -> erlang:demonitor(Monitor, [flush]), Latencies;
        {'DOWN', Monitor, process, Pid, Why} -> erlang:error({worker_failed, Why})
    end.

repeat(Next, State, EndUs, Latencies) ->
    StartUs = os:perf_counter(microsecond),
    NewState = Next(State),
    NowUs = os:perf_counter(microsecond),
    case NowUs < EndUs of
        true -> repeat(Next, NewState, EndUs, [NowUs - StartUs | Latencies]);
        false -> [NowUs - StartUs | Latencies]
    end.
