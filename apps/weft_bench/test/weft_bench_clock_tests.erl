%% SPDX-License-Identifier: Apache-2.0
-module(weft_bench_clock_tests).

-include_lib("eunit/include/eunit.hrl").

%% One of a host that is up for longer, and one of a host that was just started.
-define(LATER_US, 5000000000).
-define(EARLIER_US, -7000000000).

clock(ShiftUs) -> fun() -> os:perf_counter(microsecond) + ShiftUs end.

a_clock_that_is_shifted_is_known_test_() ->
    [fun() ->
             {ErrorUs, AheadUs} = weft_bench_clock:ahead(clock(ShiftUs)),
             ?assert(abs(AheadUs - ShiftUs) =< ErrorUs)
     end || ShiftUs <- [0, ?LATER_US, ?EARLIER_US]].

%% From one host to another, as a flood.
times_of_two_clocks_are_compared_test() ->
    [Here, There] = [clock(?EARLIER_US), clock(?LATER_US)],
    {{HereErrorUs, HereUs}, {ThereErrorUs, ThereUs}} = {weft_bench_clock:ahead(Here),
                                                        weft_bench_clock:ahead(There)},
    ErrorUs = HereErrorUs + ThereErrorUs,
    BeforeUs = os:perf_counter(microsecond),
    StartUs = Here(),
    receive after 20 -> ok end, % pacing: a known time goes by
    EndUs = There(),
    AfterUs = os:perf_counter(microsecond),
    BetweenUs = weft_bench_clock:between_us({StartUs, HereUs}, {EndUs, ThereUs}),
    ?assert(BetweenUs >= 20000 - ErrorUs),
    ?assert(BetweenUs =< AfterUs - BeforeUs + ErrorUs).
