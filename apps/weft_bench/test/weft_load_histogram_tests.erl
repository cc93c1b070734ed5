%% SPDX-License-Identifier: Apache-2.0
-module(weft_load_histogram_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [{atom_to_list(Name), {timeout, 60, ?_assert(proper:quickcheck(Property,
                                                                   [{numtests, 300}, quiet]))}}
     || {Name, Property} <- [{percentiles, prop_percentiles()}, {windows, prop_windows()}]].

value() -> oneof([range(0, 300), range(0, 100000), range(0, 1 bsl 41)]).

%% Against the exact value by nearest rank: never below, and at most 1/128 above. The extremes are
%% exact.
prop_percentiles() ->
    ?FORALL({Values, Percent}, {non_empty(list(value())), oneof([0, 50, 90, 99, 99.9, 100])},
            begin
                Snapshot = weft_load_histogram:snapshot(recorded(Values)),
                Exact = weft_report_statistics:percentile(Percent, Values),
                Read = weft_load_histogram:percentile(Percent, Snapshot),
                ?WHENFAIL(io:format("~p ~p~n", [Exact, Read]),
                          Read >= Exact andalso Read - Exact =< Exact / 128
                          andalso weft_load_histogram:min(Snapshot) =:= lists:min(Values)
                          andalso weft_load_histogram:max(Snapshot) =:= lists:max(Values)
                          andalso weft_load_histogram:count(Snapshot) =:= length(Values)
                          andalso abs(weft_load_histogram:mean(Snapshot) * length(Values)
                                      - lists:sum(Values)) =< 1 + lists:sum(Values) / 1.0e9)
            end).

%% Windows together are the whole.
prop_windows() ->
    ?FORALL({One, Two}, {list(value()), list(value())},
            begin
                Histogram = recorded(One),
                First = weft_load_histogram:snapshot(Histogram),
                record(Two, Histogram),
                All = weft_load_histogram:snapshot(Histogram),
                Second = weft_load_histogram:since(First, All),
                Second =:= weft_load_histogram:snapshot(recorded(Two))
                    andalso maps:remove(recent, weft_load_histogram:merge([First, Second]))
                        =:= maps:remove(recent, All)
            end).

recorded(Values) -> record(Values, weft_load_histogram:new()).

record(Values, Histogram) ->
    lists:foreach(fun(Value) -> weft_load_histogram:record(Value, Histogram) end, Values),
    Histogram.

empty_test() ->
    Empty = weft_load_histogram:snapshot(weft_load_histogram:new()),
    ?assertEqual([0, 0.0, 0, 0, 0],
                 [weft_load_histogram:count(Empty), weft_load_histogram:mean(Empty),
                  weft_load_histogram:percentile(99, Empty), weft_load_histogram:min(Empty),
                  weft_load_histogram:max(Empty)]).

%% Its extremes come with the next snapshot.
recorded_while_a_snapshot_is_taken_test() ->
    #{extremes := Nothing} = weft_load_histogram:snapshot(weft_load_histogram:new()),
    Snapshot = (weft_load_histogram:snapshot(recorded([5])))#{extremes := Nothing},
    ?assertEqual([5, 5, 5], [weft_load_histogram:min(Snapshot), weft_load_histogram:max(Snapshot),
                             weft_load_histogram:percentile(50, Snapshot)]).

%% Longer than the histogram reaches: counted as the longest, not lost.
beyond_the_range_test() ->
    Snapshot = weft_load_histogram:snapshot(recorded([1 bsl 60])),
    ?assertEqual((1 bsl 42) - 1, weft_load_histogram:max(Snapshot)).

%% As far as so many values can tell, and the largest of them.
a_distribution_ends_with_the_largest_test() ->
    Distribution = weft_load_histogram:distribution(
                     weft_load_histogram:snapshot(recorded(lists:seq(1, 200)))),
    ?assertEqual({0.0, 1}, hd(Distribution)),
    ?assertEqual({100.0, 200}, lists:last(Distribution)),
    ?assertEqual(180, proplists:get_value(90.0, Distribution)),
    ?assertEqual(198, proplists:get_value(99.0, Distribution)),
    ?assertEqual([], [Percent || {Percent, _} <- Distribution, Percent > 99.5, Percent < 100]),
    ?assertEqual([], weft_load_histogram:distribution(
                       weft_load_histogram:snapshot(weft_load_histogram:new()))).
