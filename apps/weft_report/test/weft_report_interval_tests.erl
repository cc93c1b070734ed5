%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_interval_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(TRIALS, 400).

%% With two or three of each, the smallest by the largest, and the largest by the smallest.
few_repetitions_have_the_whole_range_test_() ->
    [?_assertEqual({2.0, 4.0}, weft_report_interval:ratio([400, 800], [200, 200])),
     ?_assertEqual({300 / 110, 600 / 90}, weft_report_interval:ratio([400, 300, 600],
                                                                     [90, 110, 100]))].

%% Of seven, one that is far off is not the end of the interval.
one_that_is_far_off_does_not_make_the_interval_test() ->
    {Low, High} = weft_report_interval:ratio([200, 201, 202, 203, 204, 205, 900],
                                             [100, 101, 102, 103, 104]),
    ?assert(Low > 1.9),
    ?assert(High < 3).

what_does_not_vary_has_an_interval_without_length_test() ->
    ?assertEqual({3.0, 3.0}, weft_report_interval:ratio([3, 3, 3], [1, 1, 1])),
    ?assertEqual({7, 7}, weft_report_interval:median([7, 7, 7])).

one_repetition_has_no_interval_test() ->
    ?assertEqual(none, weft_report_interval:median([5])),
    ?assertEqual(none, weft_report_interval:ratio([5], [1, 2, 3])),
    ?assertEqual(none, weft_report_interval:ratio([1, 2, 3], [5])).

nothing_is_divided_by_zero_test() ->
    ?assertEqual(none, weft_report_interval:ratio([1, 2], [0, 1])),
    ?assertEqual(none, weft_report_interval:ratio([1, 2], [-1, 1])).

%% One in many is hardly ever the median of what is drawn.
a_zero_among_many_leaves_the_interval_test() ->
    {Low, High} = weft_report_interval:ratio([50, 51, 52, 50, 51, 52, 50, 51],
                                             [100, 0, 101, 102, 100, 101, 102, 100]),
    ?assert(0.45 < Low andalso Low =< High andalso High < 0.55).

a_number_is_in_it_or_not_test() ->
    [?assertEqual(Expected, weft_report_interval:contains(1, Interval))
     || {Expected, Interval} <- [{true, {0.9, 1.1}}, {true, {1, 1.1}}, {true, {0.9, 1.0}},
                                 {false, {1.01, 1.1}}, {false, {0.5, 0.99}}, {false, none}]].

the_size_of_an_effect_is_the_share_of_pairs_test_() ->
    [?_assertEqual(Expected, weft_report_interval:superiority(Ours, Theirs))
     || {Expected, Ours, Theirs} <- [{1.0, [5, 6], [1, 2, 3]}, {0.0, [1], [2, 3]},
                                     {0.5, [1, 2, 3], [1, 2, 3]}, {0.75, [2, 4], [1, 3]}]].

properties_test_() ->
    [{timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 40}, {to_file, user}]))}
     || Property <- [prop_within_the_range(), prop_order_does_not_matter(), prop_scale()]].

%% It contains the ratio itself, and goes no further than the repetitions do.
prop_within_the_range() ->
    ?FORALL({Ours, Theirs}, {values(), values()},
            begin
                {Low, High} = Interval = weft_report_interval:ratio(Ours, Theirs),
                Ratio = weft_report_statistics:median(Ours) / weft_report_statistics:median(Theirs),
                weft_report_interval:contains(Ratio, Interval)
                    andalso lists:min(Ours) / lists:max(Theirs) =< Low
                    andalso High =< lists:max(Ours) / lists:min(Theirs)
            end).

prop_order_does_not_matter() ->
    ?FORALL({Ours, Theirs}, {values(), values()},
            weft_report_interval:ratio(Ours, Theirs)
                =:= weft_report_interval:ratio(lists:reverse(Ours), lists:sort(Theirs))).

%% In another unit, by a power of two that changes no digit, the interval is the same.
prop_scale() ->
    ?FORALL({Ours, Theirs}, {values(), values()},
            begin
                {Low, High} = weft_report_interval:ratio(Ours, Theirs),
                {8 * Low, 8 * High} =:= weft_report_interval:ratio([8 * V || V <- Ours], Theirs)
            end).

values() ->
    ?LET({First, Second, More}, {positive(), positive(), resize(8, list(positive()))},
         [First, Second | More]).

positive() -> range(1, 1000).

%% Of runs whose true ratio is two, with the noise of a busy machine, how many intervals have it?
intervals_have_the_true_ratio_test_() ->
    [{lists:concat([Count, " repetitions"]), {timeout, 60, fun() -> covers(Count, Least) end}}
     || {Count, Least} <- [{2, 0.6}, {3, 0.85}, {5, 0.93}, {10, 0.93}]].

covers(Count, Least) ->
    {Covered, _} = lists:mapfoldl(fun(_, Random) -> trial(Count, Random) end,
                                  rand:seed_s(exsss, {4, 5, 6}), lists:seq(1, ?TRIALS)),
    Share = length([x || true <- Covered]) / ?TRIALS,
    ?assert(Share >= Least, Share),
    %% One that has everything would say nothing.
    ?assert(Share < 1 orelse Count < 5, Share).

trial(Count, Random) ->
    {Ours, Between} = noisy(Count, 200, Random),
    {Theirs, After} = noisy(Count, 100, Between),
    {weft_report_interval:contains(2, weft_report_interval:ratio(Ours, Theirs)), After}.

%% Its median is Median: times of a machine have a long tail.
noisy(Count, Median, Random) ->
    lists:mapfoldl(fun(_, Before) ->
                       {Normal, After} = rand:normal_s(Before),
                       {Median * math:exp(0.3 * Normal), After}
                   end, Random, lists:seq(1, Count)).
