%% SPDX-License-Identifier: Apache-2.0
%% @doc The few statistics a benchmark needs. Medians and ranges, because times on a shared machine
%% have long tails and stock distribution has two states: a mean would tell of neither.
-module(weft_report_statistics).

-export([median/1, percentile/2, range/1, latencies/1]).

%% @doc The middle value; of an even number of values the mean of both in the middle.
-spec median([number(), ...]) -> number().
median([_ | _] = Values) ->
    Sorted = lists:sort(Values),
    Count = length(Sorted),
    case Count rem 2 of
        1 -> lists:nth(Count div 2 + 1, Sorted);
        0 -> (lists:nth(Count div 2, Sorted) + lists:nth(Count div 2 + 1, Sorted)) / 2
    end.

%% @doc The smallest value that at least Percent of all values do not exceed (nearest rank).
-spec percentile(Percent :: number(), [number(), ...]) -> number().
percentile(Percent, [_ | _] = Values) ->
    Count = length(Values),
    Rank = min(Count, max(1, ceil(Count * Percent / 100))),
    lists:nth(Rank, lists:sort(Values)).

%% @doc The smallest and the largest value.
-spec range([number(), ...]) -> {number(), number()}.
range(Values) ->
    {lists:min(Values), lists:max(Values)}.

%% @doc The metrics of a list of latencies in microseconds.
-spec latencies([number(), ...]) -> #{atom() => number()}.
latencies(LatenciesUs) ->
    Sorted = lists:sort(LatenciesUs),
    #{latency_p50_us => percentile(50, Sorted), latency_p99_us => percentile(99, Sorted),
      latency_p999_us => percentile(99.9, Sorted), latency_max_us => lists:last(Sorted),
      calls => length(Sorted)}.
