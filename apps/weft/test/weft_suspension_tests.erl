%% SPDX-License-Identifier: Apache-2.0
%% @doc The clock of leases: what the host missed counts, once.
-module(weft_suspension_tests).

-include_lib("eunit/include/eunit.hrl").

-define(HOUR_MS, 3600000).

a_host_that_stood_still_missed_the_time_test() ->
    ok = weft_suspension:new(),
    Before = weft_suspension:now_ms(),
    ok = weft_suspension:stood_still(?HOUR_MS),
    After = weft_suspension:now_ms(),
    ?assert(After - Before >= ?HOUR_MS - 100),
    %% It counts once, and less than a moment is none.
    ?assert(weft_suspension:now_ms() - After < ?HOUR_MS div 2),
    ok = weft_suspension:stood_still(20),
    ?assert(weft_suspension:now_ms() - After < ?HOUR_MS div 2).

%% A clock on the wall that is set back takes nothing away, now or when it is set right.
the_clock_only_grows_test() ->
    ok = weft_suspension:new(),
    Before = weft_suspension:now_ms(),
    Ref = persistent_term:get(weft_suspension),
    ok = atomics:add(Ref, 1, ?HOUR_MS),
    Then = weft_suspension:now_ms(),
    ?assert(Then >= Before andalso Then - Before < ?HOUR_MS div 2).
