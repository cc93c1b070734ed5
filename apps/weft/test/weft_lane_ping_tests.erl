%% SPDX-License-Identifier: Apache-2.0
%% @doc Pings and what they measure. This module is the tunnel of the lane, and the process of a
%% test gets what is sent.
-module(weft_lane_ping_tests).

-include_lib("eunit/include/eunit.hrl").

-export([room/1, try_send/2]).

room(_) -> {ok, 1000000}.

try_send(Process, Packet) -> Process ! {packet, iolist_to_binary(Packet)}, ok.

the_answer_has_the_time_of_the_ping_test() ->
    BeforeUs = erlang:monotonic_time(microsecond),
    ok = weft_lane_ping:send(lane()),
    {ping, TimeUs} = sent(),
    ?assert(TimeUs >= BeforeUs),
    ok = weft_lane_ping:answer(TimeUs, lane()),
    ?assertEqual({pong, TimeUs}, sent()).

a_lane_on_which_nothing_waits_is_pinged_test() ->
    ok = weft_lane_ping:send_unless_busy(lane()),
    ?assertMatch({ping, _}, sent()).

%% Of 1000 seconds a sample of a few milliseconds at most is next to nothing.
a_shorter_round_trip_counts_at_once_and_a_longer_one_slowly_test() ->
    NowUs = erlang:monotonic_time(microsecond),
    First = weft_lane_ping:round_trip_us(NowUs - 1000, undefined),
    ?assert(First >= 1000 andalso First < 100000000),
    Shorter = weft_lane_ping:round_trip_us(NowUs - 1000, 1000000000),
    ?assert(Shorter < 100000000),
    Longer = weft_lane_ping:round_trip_us(NowUs - 800000000, 80),
    ?assert(Longer >= 100000070 andalso Longer < 200000000).

a_clock_that_has_not_moved_is_a_round_trip_of_something_test() ->
    ToComeUs = erlang:monotonic_time(microsecond) + 1000000000,
    ?assertEqual(1, weft_lane_ping:round_trip_us(ToComeUs, 5)).

sent() -> receive {packet, Packet} -> weft_wire:decode(Packet) after 5000 -> error(not_sent) end.

lane() ->
    weft_lane:new({tunnel, ?MODULE, self()}, {<<>>, 0},
                  {weft_fault_table, lateness, ['peer@host']}).
