%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is silent, by what was heard; at 10,000 ms of the monotonic clock and of the system.
-module(weft_ops_heard_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PERIOD_MS, 100).
-define(HOUR_MS, 3600000).

who_does_not_report_for_three_periods_is_silent_test() ->
    Reports = heard(sample(), #{}),
    ?assertMatch(#{other := {#{node := other}, 0}}, states(10299, Reports)),
    ?assertEqual(#{other => silent}, states(10300, Reports)),
    ?assertEqual([other], weft_ops_heard:silent(Reports, 10300, ?PERIOD_MS)),
    ?assertEqual(3, weft_ops_heard:silent_periods()).

a_longer_period_of_the_node_counts_test() ->
    Reports = heard((sample())#{period_ms := 1000}, #{}),
    ?assertEqual([], weft_ops_heard:silent(Reports, 12999, ?PERIOD_MS)),
    ?assertEqual([other], weft_ops_heard:silent(Reports, 13000, ?PERIOD_MS)).

one_long_period_of_a_node_that_stood_still_does_not_test() ->
    Late = heard((sample())#{period_ms := 60000, uptime_ms := 200000}, heard(sample(), #{})),
    ?assertEqual([other], weft_ops_heard:silent(Late, 10300, ?PERIOD_MS)).

but_that_of_a_node_that_was_started_again_does_test() ->
    Again = heard((sample())#{period_ms := 1000, uptime_ms := 5}, heard(sample(), #{})),
    ?assertEqual([], weft_ops_heard:silent(Again, 12999, ?PERIOD_MS)).

whatever_the_period_one_is_silent_before_it_is_forgotten_test() ->
    Reports = heard((sample())#{period_ms := 24 * ?HOUR_MS}, #{}),
    LastMs = 10000 + ?HOUR_MS - 1,
    ?assertEqual([other], weft_ops_heard:silent(Reports, LastMs, ?PERIOD_MS)),
    ?assert(is_kept(false, LastMs, Reports)),
    ?assertNot(is_kept(false, LastMs + 1, Reports)).

who_has_another_agent_is_forgotten_when_it_would_be_silent_test() ->
    Reports = heard(sample(), #{}),
    ?assert(is_kept(true, 10299, Reports)),
    ?assertNot(is_kept(true, 10300, Reports)),
    ?assert(is_kept(false, 10300, Reports)).

an_agent_that_stood_still_misses_nobody_for_that_test() ->
    Reports = weft_ops_heard:later(5000, 14000, heard(sample(), #{})),
    ?assertEqual([], weft_ops_heard:silent(Reports, 14299, ?PERIOD_MS)),
    ?assertEqual([other], weft_ops_heard:silent(Reports, 14300, ?PERIOD_MS)).

the_least_delayed_sample_says_what_the_clock_is_ahead_test() ->
    Skew = fun(AtMs, Reports) -> heard((sample())#{at_ms := AtMs}, Reports) end,
    ?assertMatch(#{other := {_, 40}}, states(10000, Skew(9000, Skew(10040, Skew(9500, #{}))))).

the_round_trip_is_no_skew_test() ->
    Sample = (sample())#{at_ms := 9950, peers := [#{node => self, via => gate}],
                         links := [#{node => gate, rtt_us => 30000}]},
    ?assertMatch(#{other := {_, -20}}, states(10000, heard(Sample, #{}))).

%% Once in each of many periods is often in a minute.
how_often_a_link_came_up_is_counted_for_a_minute_test() ->
    Hear = fun(NowMs, Ups, Reports) ->
                   Sample = (sample())#{links := [#{node => gate, ups => Ups}]},
                   weft_ops_heard:hear(Sample, self, {NowMs, NowMs}, Reports)
           end,
    Ups = fun(NowMs, Reports) ->
                  #{other := {#{links := [#{ups := Count}]}, _}} = states(NowMs, Reports),
                  Count
          end,
    Once = Hear(10000, 1, #{}),
    Often = lists:foldl(fun(N, Reports) -> Hear(10000 + N * 1000, N rem 2, Reports) end, Once,
                        lists:seq(1, 10)),
    ?assertEqual({1, 6}, {Ups(10000, Once), Ups(20000, Often)}),
    ?assertEqual({5, 0}, {Ups(70000, Hear(70000, 0, Often)), Ups(79000, Hear(79000, 0, Often))}).

what_another_agent_has_heard_is_as_old_here_test() ->
    Ages = weft_ops_heard:ages(heard(sample(), #{}), 10250),
    ?assertEqual([{sample(), 250}], Ages),
    ?assertEqual([other], weft_ops_heard:silent(weft_ops_heard:of_ages(Ages, 500), 550,
                                                ?PERIOD_MS)).

the_last_sample_is_known_test() ->
    ?assertEqual(none, weft_ops_heard:last(other, #{})),
    ?assertEqual({ok, sample()}, weft_ops_heard:last(other, heard(sample(), #{}))).

what_earlier_code_kept_is_read_test() ->
    Reports = #{other => weft_ops_heard:upgrade({heard, sample(), 10000, 7})},
    ?assertEqual(#{other => {sample(), 7}}, states(10299, Reports)),
    ?assertEqual(#{other => silent}, states(10300, Reports)),
    Later = #{other => weft_ops_heard:upgrade({heard, sample(), 10000, [7, 5], ?PERIOD_MS})},
    ?assertEqual(#{other => {sample(), 7}}, states(10299, Later)),
    ?assertEqual(Later, maps:map(fun(_, One) -> weft_ops_heard:upgrade(One) end, Later)).

heard(Sample, Reports) -> weft_ops_heard:hear(Sample, self, {10000, 10000}, Reports).

states(NowMs, Reports) -> weft_ops_heard:states(Reports, NowMs, ?PERIOD_MS).

is_kept(IsElsewhere, NowMs, #{other := One}) ->
    weft_ops_heard:is_kept(One, IsElsewhere, NowMs, ?PERIOD_MS).

sample() ->
    #{node => other, at_ms => 10000, period_ms => ?PERIOD_MS, uptime_ms => 100000,
      peers => [], links => []}.
