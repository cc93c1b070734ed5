%% SPDX-License-Identifier: Apache-2.0
%% @doc Silent lanes in use are watched closely, idle ones left in peace, dead ones found in all
%% cases; and what two ends cost and know that watch the same lane.
-module(weft_lane_watch_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(TIMEOUT_MS, 5000).

a_silent_lane_is_pinged_and_one_that_is_heard_is_not_test() ->
    ?assertEqual([rest, rest, ping, rest, ping],
                 checks(0, [{1, 1}, {2, 1}, {2, 1}, {3, 2}, {3, 2}])).

a_lane_that_is_always_heard_is_pinged_for_its_round_trip_test() ->
    [?assertEqual([rest, nothing, nothing, nothing, ping, rest, nothing, nothing, nothing, ping],
                  checks(IdleMs, [{N, N} || N <- lists:seq(1, 10)])) || IdleMs <- [0, 15000]].

an_idle_lane_rests_until_its_time_test() ->
    ?assertEqual([rest, rest, ping, rest, rest, ping],
                 checks(3000, [{1, 1}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, {2, 2}])).

%% As after an answer to a ping: what was heard just now is asked for when the time has passed.
a_lane_that_was_heard_between_checks_is_left_in_peace_test() ->
    {rest, Watch0} = weft_lane_watch:check(1000, {1, 1}, {weft_lane_watch:new(0, 0), limits(3000)}),
    Watch = weft_lane_watch:heard(5000, 2, Watch0),
    [?assertMatch({What, {What, _}},
                  {What, weft_lane_watch:check(NowMs, {2, 1}, {Watch, limits(3000)})})
     || {What, NowMs} <- [{rest, 5001}, {rest, 7999}, {ping, 8000}]].

answers_to_pings_do_not_make_a_lane_used_test() ->
    Watch = weft_lane_watch:answered(1, weft_lane_watch:new(0, 0)),
    {rest, Seen} = weft_lane_watch:check(1000, {2, 2}, {Watch, limits(9000)}),
    Answered = weft_lane_watch:answered(1, Seen),
    ?assertMatch({rest, _}, weft_lane_watch:check(2000, {2, 3}, {Answered, limits(9000)})),
    ?assertMatch({ping, _}, weft_lane_watch:check(2000, {2, 4}, {Answered, limits(9000)})).

a_lane_in_use_is_pinged_and_dead_soon_when_nothing_comes_back_test() ->
    ?assertEqual([rest, ping, ping, ping, ping, ping, ping, dead],
                 checks(60000, [{1, 1} | lists:duplicate(7, {1, 9})])).

%% It may have been sent after all that was heard.
the_last_packet_before_a_rest_is_watched_test() ->
    ?assertEqual([nothing, ping, rest], checks(60000, [{1, 5}, {1, 5}, {2, 6}])),
    ?assertEqual([nothing, ping, ping, ping, ping, ping, ping, dead],
                 checks(60000, [{1, 5}, {1, 5} | lists:duplicate(6, {1, 6})])).

a_lane_that_never_answers_is_dead_after_the_timeout_test() ->
    ?assertEqual([ping, ping, ping, ping, ping, dead],
                 checks(60000, lists:duplicate(6, {0, 1}))).

%% A packet that is not whole yet comes in, or goes out while so much waits that nothing is asked.
a_lane_on_which_bytes_move_is_not_dead_test() ->
    [?assertNot(lists:member(dead, moving([Progress(N) || N <- lists:seq(1, 60)])))
     || Progress <- [fun(N) -> {N, idle} end, fun(N) -> {N, 7} end, fun(N) -> {7, N} end]].

%% The kernel acknowledges pings of which no process hears.
a_lane_on_which_only_pings_are_acknowledged_is_dead_test() ->
    [?assertEqual(dead, lists:nth(6, moving(Progress)))
     || Progress <- [lists:duplicate(6, {7, idle}), lists:duplicate(6, {7, 9}),
                     lists:duplicate(6, unknown),
                     [{7, idle}, {7, 1}, {7, idle}, {7, 2}, {7, idle}, {7, 3}]]].

a_lane_is_dead_so_long_after_bytes_have_moved_test() ->
    Checks = moving([{1, idle}, {2, idle}, {3, idle} | lists:duplicate(6, {3, idle})]),
    ?assertEqual([dead], lists:usort(lists:nthtail(8, Checks))),
    ?assertNot(lists:member(dead, lists:sublist(Checks, 8))).

%% A check every second of a lane of which nothing is heard.
moving(Progress) ->
    {Checks, _} = lists:mapfoldl(
                    fun({N, Moved}, Watch0) ->
                        true = weft_lane_watch:is_asked(Watch0),
                        Watch = weft_lane_watch:moved(N * 1000, Moved, Watch0),
                        weft_lane_watch:check(N * 1000, {0, 1}, {Watch, limits(0)})
                    end, weft_lane_watch:new(0, 0),
                    lists:zip(lists:seq(1, length(Progress)), Progress)),
    Checks.

an_idle_dead_lane_is_found_by_its_next_ping_test() ->
    Checks = checks(10000, [{1, 1} | lists:duplicate(29, {1, 2})]),
    ?assertEqual(dead, lists:last(lists:sublist(Checks, 17))).

%% Whatever is sent: without an answer the lane is dead within the idle time, the timeout and three
%% checks, and with answers never.
no_lane_is_given_up_too_early_or_too_late_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_bound(), [{numtests, 500}, {to_file, user}]))}.

prop_bound() ->
    ?FORALL({IdleMs, Sends}, {integer(0, 20000), vector(40, integer(0, 2))},
            begin
                Totals = tl(lists:reverse(lists:foldl(fun(N, [T | _] = Ts) -> [T + N | Ts] end,
                                                      [1], Sends))),
                Silent = checks(IdleMs, [{0, Total} || Total <- Totals]),
                Answering = checks(IdleMs, lists:zip(lists:seq(1, 40), Totals)),
                lists:member(dead, lists:sublist(Silent, (IdleMs + ?TIMEOUT_MS) div 1000 + 3))
                    andalso not lists:member(dead, lists:sublist(Silent, ?TIMEOUT_MS div 1000))
                    andalso not lists:member(dead, Answering)
            end).

%% Two ends check each second, at moments of their own: neither is left without a word for more than
%% two seconds, and together they ask twice in three.
two_ends_ask_in_turn_test_() ->
    [?_assertMatch({Pings, SilentMs} when Pings =< 67 andalso SilentMs =< 2000,
                   both_ends(OffsetMs, 100)) || OffsetMs <- [1, 250, 500, 999]].

%% Pings are answered at once. How many there were, and the longest silence that an end heard.
both_ends(OffsetMs, Seconds) ->
    New = {weft_lane_watch:new(0, 0), _Heard = 0, _Sent = 0},
    Checks = lists:sort([{N * 1000 + Ms, End} || N <- lists:seq(1, Seconds),
                                                {End, Ms} <- [{a, 0}, {b, OffsetMs}]]),
    {_, PingsMs} = lists:foldl(fun check_of/2, {#{a => New, b => New}, [0]}, Checks),
    {length(PingsMs) - 1,
     lists:max(lists:zipwith(fun erlang:'-'/2, lists:droplast(PingsMs), tl(PingsMs)))}.

check_of({NowMs, End}, {Ends, PingsMs}) ->
    #{End := {Watch0, Heard, Sent}} = Ends,
    case weft_lane_watch:check(NowMs, {Heard, Sent}, {Watch0, limits(0)}) of
        {rest, Watch} ->
            {Ends#{End := {Watch, Heard, Sent}}, PingsMs};
        {ping, Watch} ->
            Other = case End of a -> b; b -> a end,
            #{Other := {Its, ItHeard, ItSent}} = Ends,
            {Ends#{End := {Watch, Heard + 1, Sent + 1},
                   Other := {weft_lane_watch:answered(1, Its), ItHeard + 1, ItSent + 1}},
             [NowMs | PingsMs]}
    end.

%% A check every second.
checks(IdleMs, Counts) ->
    {Checks, _} = lists:mapfoldl(
                    fun({N, Counted}, Watch) ->
                        weft_lane_watch:check(N * 1000, Counted, {Watch, limits(IdleMs)})
                    end, weft_lane_watch:new(0, 0),
                    lists:zip(lists:seq(1, length(Counts)), Counts)),
    Checks.

limits(IdleMs) -> #{timeout_ms => ?TIMEOUT_MS, idle_ms => IdleMs, refresh_ms => 5000}.
