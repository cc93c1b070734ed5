%% SPDX-License-Identifier: Apache-2.0
%% @doc Lanes in use are watched closely, idle ones left in peace, dead ones found in both cases.
-module(weft_lane_watch_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(TIMEOUT_MS, 5000).

without_an_idle_time_every_look_pings_test() ->
    ?assertEqual([ping, ping, ping], looks(0, [{1, 1}, {2, 2}, {3, 3}])).

an_idle_lane_rests_until_its_time_test() ->
    ?assertEqual([rest, rest, ping, rest, rest, ping],
                 looks(3000, [{1, 1}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, {2, 2}])).

answers_to_pings_do_not_make_a_lane_used_test() ->
    Watch = weft_lane_watch:answered(weft_lane_watch:new(0, 0)),
    ?assertMatch({rest, _}, weft_lane_watch:look(1000, {2, 2}, {Watch, limits(9000)})),
    ?assertMatch({ping, _}, weft_lane_watch:look(1000, {2, 3}, {Watch, limits(9000)})).

a_lane_in_use_is_pinged_and_dead_soon_when_nothing_comes_back_test() ->
    ?assertEqual([rest, ping, ping, ping, ping, ping, ping, dead],
                 looks(60000, [{1, 1} | lists:duplicate(7, {1, 9})])).

a_lane_that_never_answers_is_dead_after_the_timeout_test() ->
    ?assertEqual([ping, ping, ping, ping, ping, dead],
                 looks(60000, lists:duplicate(6, {0, 1}))).

an_idle_dead_lane_is_found_by_its_next_ping_test() ->
    Looks = looks(10000, [{1, 1} | lists:duplicate(29, {1, 2})]),
    ?assertEqual(dead, lists:last(lists:sublist(Looks, 17))).

%% Whatever is sent: without an answer the lane is dead within the idle time, the timeout and three
%% looks, and with answers never.
no_lane_is_given_up_too_early_or_too_late_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_bound(), [{numtests, 500}, {to_file, user}]))}.

prop_bound() ->
    ?FORALL({IdleMs, Sends}, {integer(0, 20000), vector(40, integer(0, 2))},
            begin
                Totals = tl(lists:reverse(lists:foldl(fun(N, [T | _] = Ts) -> [T + N | Ts] end,
                                                      [1], Sends))),
                Silent = looks(IdleMs, [{0, Total} || Total <- Totals]),
                Answering = looks(IdleMs, lists:zip(lists:seq(1, 40), Totals)),
                lists:member(dead, lists:sublist(Silent, (IdleMs + ?TIMEOUT_MS) div 1000 + 3))
                    andalso not lists:member(dead, lists:sublist(Silent, ?TIMEOUT_MS div 1000))
                    andalso not lists:member(dead, Answering)
            end).

%% A look every second.
looks(IdleMs, Counts) ->
    {Looks, _} = lists:mapfoldl(
                   fun({N, Counted}, Watch) ->
                       weft_lane_watch:look(N * 1000, Counted, {Watch, limits(IdleMs)})
                   end, weft_lane_watch:new(0, 0),
                   lists:zip(lists:seq(1, length(Counts)), Counts)),
    Looks.

limits(IdleMs) -> #{timeout_ms => ?TIMEOUT_MS, idle_ms => IdleMs}.
