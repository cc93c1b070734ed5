%% SPDX-License-Identifier: Apache-2.0
%% @doc The small call whose latency is measured beside other traffic: a request, an answer, the
%% next request. Runs on the nodes under test.
%%
%% A call that does not come back within the run is waited for (?PATIENCE_MS) and counts with its
%% time: leaving it out would flatter whoever lets calls wait longest. For the same reason a run in
%% which few calls got through has few latencies, and its p99 is its longest call. One that has not
%% come back then is given up. It counts with the time that was waited, which is less than it would
%% have taken, so how many there are is told.
-module(weft_bench_ping).

-export([start_echo/0, run/3, run/4, settle/3]).

-define(PATIENCE_MS, 10000).
-define(CALM, 3).

%% @doc On the receiving node: a process that answers, in the way in which it was asked.
-spec start_echo() -> pid().
start_echo() ->
    spawn(fun echo/0).

echo() ->
    receive
        {ping, Mode, From, Ref} -> weft_bench_flood:send(Mode, From, {Ref, pong}), echo()
    end.

%% @doc On the sending node: calls for DurationMs. Their latencies, as metrics, with the number of
%% those given up.
-spec run(weft_bench_variant:mode(), Echo :: pid(), DurationMs :: pos_integer()) ->
          #{atom() => number()}.
run(Mode, Echo, DurationMs) ->
    run(Mode, Echo, DurationMs, ?PATIENCE_MS).

%% @doc The same with another patience.
-spec run(weft_bench_variant:mode(), Echo :: pid(), DurationMs :: pos_integer(),
          PatienceMs :: pos_integer()) -> #{atom() => number()}.
run(Mode, Echo, DurationMs, PatienceMs) ->
    EndUs = os:perf_counter(microsecond) + DurationMs * 1000,
    LatenciesUs = pings(Mode, Echo, EndUs, PatienceMs, []),
    Latencies = weft_report_statistics:latencies(LatenciesUs),
    Latencies#{timeouts => length([Us || Us <- LatenciesUs, Us >= PatienceMs * 1000])}.

pings(Mode, Echo, EndUs, PatienceMs, Latencies) ->
    All = [ping(Mode, Echo, PatienceMs) | Latencies],
    case os:perf_counter(microsecond) < EndUs of
        true -> pings(Mode, Echo, EndUs, PatienceMs, All);
        false -> All
    end.

ping(Mode, Echo, TimeoutMs) ->
    Ref = make_ref(),
    StartUs = os:perf_counter(microsecond),
    weft_bench_flood:send(Mode, Echo, {ping, Mode, self(), Ref}),
    receive {Ref, pong} -> ok after TimeoutMs -> ok end,
    os:perf_counter(microsecond) - StartUs.

%% @doc On the sending node: waits until nothing is in the way any more, that is some calls in
%% succession took at most CalmUs.
-spec settle(Echo :: pid(), CalmUs :: pos_integer(), TimeoutMs :: pos_integer()) ->
          ok | {error, not_calm}.
settle(Echo, CalmUs, TimeoutMs) ->
    settle(Echo, CalmUs, os:perf_counter(microsecond) + TimeoutMs * 1000, ?CALM).

settle(_Echo, _CalmUs, _EndUs, 0) ->
    ok;
settle(Echo, CalmUs, EndUs, Left) ->
    LeftMs = (EndUs - os:perf_counter(microsecond)) div 1000,
    case LeftMs > 0 andalso ping(plain, Echo, LeftMs) of
        false -> {error, not_calm};
        LatencyUs when LatencyUs =< CalmUs -> settle(Echo, CalmUs, EndUs, Left - 1);
        _Slow -> settle(Echo, CalmUs, EndUs, ?CALM)
    end.
