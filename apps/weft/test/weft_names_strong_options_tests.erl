%% SPDX-License-Identifier: Apache-2.0
%% @doc Options of a strong scope: errors say what is wrong and what is expected.
-module(weft_names_strong_options_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, weft_names_strong_options).

good_options_test_() ->
    [?_assertEqual(ok, ?OPTIONS:check(Options#{voters => ['a@x']}))
     || Options <- [#{}, #{kind => strong}, #{replicas => 5, partitions => 16, lease_ms => 3000},
                    #{names_max => 10, cache_ms => 0, view => 3}]].

bad_options_test_() ->
    [?_assertMatch({match, _}, re:run(element(2, {error, _} = ?OPTIONS:check(Options)), Text))
     || {Options, Text} <- [{#{}, "voters are missing"},
                            {#{voters => []}, "voters is \\[\\], it must be a list of 1 to"},
                            {#{voters => ['a@x', 'a@x']}, "different nodes"},
                            {#{voters => ['a@x'], replicas => 2}, "replicas is 2, it must be 1, 3"},
                            {#{voters => ['a@x'], lease_ms => 1}, "lease_ms is 1, it must be m"},
                            {#{voters => ['a@x'], voter => 1}, "unknown option voter"}]].

%% A leader that fails is replaced, and leases are renewed there, before one ends: the last renewal
%% was renew_ms ago, the voters wait for two elections at most, and an owner asks again.
times_follow_from_the_lease_test_() ->
    [?_test(begin
                #{lease_ms := LeaseMs, renew_ms := RenewMs, election_ms := ElectionMs,
                  retry_ms := RetryMs, tick_ms := TickMs, heartbeat_ms := HeartbeatMs,
                  margin_ms := MarginMs} =
                    ?OPTIONS:complete(#{voters => ['a@x'], lease_ms => Lease}),
                ?assert(RenewMs + 2 * ElectionMs + 2 * RetryMs + 2 * TickMs < LeaseMs),
                ?assert(2 * HeartbeatMs < ElectionMs),
                ?assert(MarginMs >= LeaseMs div 10)
            end) || Lease <- [1000, 3000, 8000, 60000]].
