%% SPDX-License-Identifier: Apache-2.0
%% @doc Latencies of many operations in little memory, in the manner of HDR histograms
%% (Tene, hdrhistogram.org).
%%
%% Up to 256 a value has a bucket of its own; above, each power of two is cut into 128 buckets, so a
%% percentile is at most 0.8 percent above what was recorded. The smallest and the largest value are
%% exact. Many processes may record at the same time; a snapshot is a value. One process takes the
%% snapshots: the extremes of a window are those since the snapshot before.
-module(weft_load_histogram).

-export([new/0, record/2, snapshot/1, since/2, merge/1, count/1, mean/1, percentile/2, min/1,
         max/1, distribution/1]).
-export_type([histogram/0, snapshot/0]).

%% Buckets of a power of two, as a power of two.
-define(BITS, 7).
-define(PART, (1 bsl ?BITS)).
%% Values up to 2^42 us, 50 days; what is longer counts as that.
-define(VALUE_BITS, 42).
-define(BUCKETS, ((?VALUE_BITS - ?BITS + 1) * ?PART)).

%% The smallest and the largest value of all up to the last snapshot, and of those since then.
-define(MIN, 1).
-define(MAX, 2).
-define(RECENT_MIN, 3).
-define(RECENT_MAX, 4).
-define(HIGHEST, ((1 bsl ?VALUE_BITS) - 1)).

-opaque histogram() :: {counters:counters_ref(), Extremes :: atomics:atomics_ref()}.
%% Buckets with something in them, in order, and the sum of the values.
-opaque snapshot() :: #{buckets := [{Bucket :: non_neg_integer(), Count :: pos_integer()}],
                        sum := non_neg_integer(),
                        extremes := extremes(), recent := extremes()}.
-type extremes() :: {Min :: non_neg_integer(), Max :: non_neg_integer()}.

-spec new() -> histogram().
new() ->
    Extremes = atomics:new(4, [{signed, false}]),
    ok = atomics:put(Extremes, ?MIN, ?HIGHEST),
    ok = atomics:put(Extremes, ?RECENT_MIN, ?HIGHEST),
    {counters:new(?BUCKETS + 1, []), Extremes}.

%% @doc Adds a value, in any unit.
-spec record(Value :: non_neg_integer(), histogram()) -> ok.
record(Value0, {Counts, Extremes}) ->
    Value = erlang:min(Value0, ?HIGHEST),
    counters:add(Counts, 1 + bucket(Value), 1),
    counters:add(Counts, ?BUCKETS + 1, Value),
    ok = lower(?RECENT_MIN, Value, atomics:get(Extremes, ?RECENT_MIN), Extremes),
    raise(?RECENT_MAX, Value, atomics:get(Extremes, ?RECENT_MAX), Extremes).

lower(_Which, Value, Now, _Extremes) when Value >= Now -> ok;
lower(Which, Value, Now, Extremes) ->
    case atomics:compare_exchange(Extremes, Which, Now, Value) of
        ok -> ok;
        Other -> lower(Which, Value, Other, Extremes)
    end.

raise(_Which, Value, Now, _Extremes) when Value =< Now -> ok;
raise(Which, Value, Now, Extremes) ->
    case atomics:compare_exchange(Extremes, Which, Now, Value) of
        ok -> ok;
        Other -> raise(Which, Value, Other, Extremes)
    end.

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

%% @doc What has been recorded up to now.
-spec snapshot(histogram()) -> snapshot().
snapshot({Counts, Extremes}) ->
    {Min, Max} = Recent = {atomics:exchange(Extremes, ?RECENT_MIN, ?HIGHEST),
                           atomics:exchange(Extremes, ?RECENT_MAX, 0)},
    ok = lower(?MIN, Min, atomics:get(Extremes, ?MIN), Extremes),
    ok = raise(?MAX, Max, atomics:get(Extremes, ?MAX), Extremes),
    Buckets = [{Bucket, counters:get(Counts, Bucket + 1)} || Bucket <- lists:seq(0, ?BUCKETS - 1)],
    #{buckets => [Entry || {_, Count} = Entry <- Buckets, Count > 0],
      sum => counters:get(Counts, ?BUCKETS + 1),
      extremes => {atomics:get(Extremes, ?MIN), atomics:get(Extremes, ?MAX)}, recent => Recent}.

%% @doc What has been added between two snapshots of a histogram, of which the later is the next.
-spec since(Earlier :: snapshot(), Later :: snapshot()) -> snapshot().
since(#{buckets := Earlier, sum := Sum0}, #{buckets := Later, sum := Sum, recent := Recent}) ->
    Before = maps:from_list(Earlier),
    New = [{Bucket, Count - maps:get(Bucket, Before, 0)} || {Bucket, Count} <- Later],
    #{buckets => [Entry || {_, Count} = Entry <- New, Count > 0], sum => Sum - Sum0,
      extremes => Recent, recent => Recent}.

%% @doc All values of several snapshots.
-spec merge([snapshot()]) -> snapshot().
merge(Snapshots) ->
    Add = fun({Bucket, Count}, Acc) -> orddict:update_counter(Bucket, Count, Acc) end,
    Extremes = {lists:min([?HIGHEST | [Min || #{extremes := {Min, _}} <- Snapshots]]),
                lists:max([0 | [Max || #{extremes := {_, Max}} <- Snapshots]])},
    #{buckets => lists:foldl(fun(#{buckets := Buckets}, Acc) -> lists:foldl(Add, Acc, Buckets) end,
                             [], Snapshots),
      sum => lists:sum([Sum || #{sum := Sum} <- Snapshots]),
      extremes => Extremes, recent => Extremes}.

-spec count(snapshot()) -> non_neg_integer().
count(#{buckets := Buckets}) -> lists:sum([Count || {_, Count} <- Buckets]).

%% @doc Zero if there is nothing.
-spec mean(snapshot()) -> float().
mean(#{buckets := []}) -> 0.0;
mean(#{sum := Sum} = Snapshot) -> Sum / count(Snapshot).

%% @doc The smallest value that at least Percent of all do not exceed, or up to 0.8 percent more;
%% zero if there is nothing.
-spec percentile(Percent :: number(), snapshot()) -> non_neg_integer().
percentile(_Percent, #{buckets := []}) ->
    0;
percentile(Percent, #{buckets := Buckets} = Snapshot) ->
    Rank = erlang:max(1, ceil(count(Snapshot) * Percent / 100)),
    erlang:max(min(Snapshot), erlang:min(max(Snapshot), at_rank(Rank, Buckets))).

at_rank(_Rank, [{Bucket, _}]) -> highest(Bucket);
at_rank(Rank, [{Bucket, Count} | _]) when Rank =< Count -> highest(Bucket);
at_rank(Rank, [{_, Count} | Buckets]) -> at_rank(Rank - Count, Buckets).

%% @doc Percentiles that come closer and closer to 100, as far as so many values tell them apart;
%% the last one is 100. Nothing if there is nothing.
-spec distribution(snapshot()) -> [{Percent :: float(), Value :: non_neg_integer()}].
distribution(Snapshot) ->
    Count = count(Snapshot),
    OneOf = [Factor * math:pow(10, Power)
             || Power <- lists:seq(0, 9), Factor <- [1, 1.25, 1.5, 2, 3, 5, 7]],
    [{Percent, percentile(Percent, Snapshot)}
     || Count > 0, Percent <- [100 * (1 - 1 / N) || N <- OneOf, N < Count] ++ [100.0]].

%% @doc Exact; zero if there is nothing.
-spec min(snapshot()) -> non_neg_integer().
min(#{buckets := []}) -> 0;
min(#{buckets := [{First, _} | _], extremes := {Min, _}}) -> exact(Min, First).

%% @doc Exact; zero if there is nothing.
-spec max(snapshot()) -> non_neg_integer().
max(#{buckets := []}) -> 0;
max(#{buckets := Buckets, extremes := {_, Max}}) -> exact(Max, element(1, lists:last(Buckets))).

%% A value that was recorded while the snapshot was taken may be in a bucket, and as an extreme in
%% the next snapshot only.
exact(Extreme, Bucket) ->
    case bucket(Extreme) of
        Bucket -> Extreme;
        _ -> highest(Bucket)
    end.
