%% SPDX-License-Identifier: Apache-2.0
%% @doc What the measurements of names and locks make of times; see also weft_bench_names_SUITE.
-module(weft_bench_names_tests).

-include_lib("eunit/include/eunit.hrl").

%% Of an even number of locks the median was a lower one: a 0 was among them.
only_locks_that_were_granted_have_times_test() ->
    ?assertEqual(#{p50_ms => 5.0, p99_ms => 5.0}, weft_bench_locks:waits_ms([5000])),
    ?assertEqual(#{p50_ms => 2.0, p99_ms => 4.0}, weft_bench_locks:waits_ms([1000, 4000, 2000])),
    ?assertEqual(#{p50_ms => none, p99_ms => none}, weft_bench_locks:waits_ms([])).

%% A node was waited for as long for all of its work as for one call: three minutes.
names_may_be_registered_for_long_test_() ->
    [?_assert(weft_bench_names:work_ms(Seconds) >= Seconds * 1000 + 60000)
     || Seconds <- [1, 180, 3600]].
