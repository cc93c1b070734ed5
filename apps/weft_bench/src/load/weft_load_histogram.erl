%% SPDX-License-Identifier: Apache-2.0
%% @doc Latencies of many operations in little memory, in the manner of HDR histograms
%% (Tene, hdrhistogram.org).
%%
%% Up to 256 a value has a bucket of its own; above, each power of two is cut into 128 buckets, so a
%% value read back is at most 0.8 percent above what was recorded. Many processes may record at the
%% same time; a snapshot is a value, and snapshots can be subtracted to see what one window brought.
-module(weft_load_histogram).

-export([new/0, record/2, snapshot/1, since/2, merge/1, count/1, mean/1, percentile/2, min/1,
         max/1]).
-export_type([histogram/0, snapshot/0]).

%% Buckets of a power of two, as a power of two.
-define(BITS, 7).
-define(PART, (1 bsl ?BITS)).
%% Values up to 2^42 us, 50 days; what is longer counts as that.
-define(VALUE_BITS, 42).
-define(BUCKETS, ((?VALUE_BITS - ?BITS + 1) * ?PART)).

-opaque histogram() :: counters:counters_ref().
%% Buckets with something in them, in order, and the sum of the values.
-opaque snapshot() :: {[{Bucket :: non_neg_integer(), Count :: pos_integer()}],
                       Sum :: non_neg_integer()}.

-spec new() -> histogram().
new() ->
    counters:new(?BUCKETS + 1, []).

%% @doc Adds a value, in any unit.
-spec record(Value :: non_neg_integer(), histogram()) -> ok.
record(Value, Histogram) ->
    counters:add(Histogram, 1 + bucket(erlang:min(Value, (1 bsl ?VALUE_BITS) - 1)), 1),
    counters:add(Histogram, ?BUCKETS + 1, Value).

bucket(Value) when Value < 2 * ?PART -> Value;
bucket(Value) ->
    Shift = bits(Value, 0) - ?BITS - 1,
    Shift * ?PART + (Value bsr Shift).

bits(Value, Bits) when Value >= 16#10000 -> bits(Value bsr 16, Bits + 16);
bits(Value, Bits) when Value >= 16#100 -> bits(Value bsr 8, Bits + 8);
bits(0, Bits) -> Bits;
bits(Value, Bits) -> bits(Value bsr 1, Bits + 1).

%% The largest value of a bucket.
highest(Bucket) when Bucket < 2 * ?PART -> Bucket;
highest(Bucket) ->
    Shift = Bucket div ?PART - 1,
    ((Bucket - Shift * ?PART + 1) bsl Shift) - 1.

-spec snapshot(histogram()) -> snapshot().
snapshot(Histogram) ->
    Counts = [{Bucket, counters:get(Histogram, Bucket + 1)}
              || Bucket <- lists:seq(0, ?BUCKETS - 1)],
    {[Entry || {_, Count} = Entry <- Counts, Count > 0], counters:get(Histogram, ?BUCKETS + 1)}.

%% @doc What has been added between two snapshots of a histogram.
-spec since(Earlier :: snapshot(), Later :: snapshot()) -> snapshot().
since({Earlier, Sum0}, {Later, Sum}) ->
    Before = maps:from_list(Earlier),
    New = [{Bucket, Count - maps:get(Bucket, Before, 0)} || {Bucket, Count} <- Later],
    {[Entry || {_, Count} = Entry <- New, Count > 0], Sum - Sum0}.

%% @doc All values of several snapshots.
-spec merge([snapshot()]) -> snapshot().
merge(Snapshots) ->
    Add = fun({Bucket, Count}, Acc) -> orddict:update_counter(Bucket, Count, Acc) end,
    {lists:foldl(fun({Buckets, _}, Acc) -> lists:foldl(Add, Acc, Buckets) end, [], Snapshots),
     lists:sum([Sum || {_, Sum} <- Snapshots])}.

-spec count(snapshot()) -> non_neg_integer().
count({Buckets, _}) -> lists:sum([Count || {_, Count} <- Buckets]).

%% @doc Zero if there is nothing.
-spec mean(snapshot()) -> float().
mean({[], _}) -> 0.0;
mean({_, Sum} = Snapshot) -> Sum / count(Snapshot).

%% @doc The smallest value that at least Percent of all do not exceed; zero if there is nothing.
-spec percentile(Percent :: number(), snapshot()) -> non_neg_integer().
percentile(_Percent, {[], _}) ->
    0;
percentile(Percent, {Buckets, _} = Snapshot) ->
    Rank = erlang:max(1, ceil(count(Snapshot) * Percent / 100)),
    at_rank(Rank, Buckets).

at_rank(_Rank, [{Bucket, _}]) -> highest(Bucket);
at_rank(Rank, [{Bucket, Count} | _]) when Rank =< Count -> highest(Bucket);
at_rank(Rank, [{_, Count} | Buckets]) -> at_rank(Rank - Count, Buckets).

-spec min(snapshot()) -> non_neg_integer().
min({[], _}) -> 0;
min({[{Bucket, _} | _], _}) -> highest(Bucket).

-spec max(snapshot()) -> non_neg_integer().
max(Snapshot) -> percentile(100, Snapshot).
