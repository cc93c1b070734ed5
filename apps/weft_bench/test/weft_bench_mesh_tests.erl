%% SPDX-License-Identifier: Apache-2.0
%% @doc What callers of weft_bench_mesh tell of their calls, on one node in the place of all. Many
%% nodes are in weft_bench_lost_nodes_tests.
-module(weft_bench_mesh_tests).

-include_lib("eunit/include/eunit.hrl").

-define(FOR_MS, 50).
-define(ANSWER_MS, 80).

%% Each caller makes one call, which is not back when the time is over: a call in 80 ms, not in 50.
a_call_that_ends_late_takes_its_time_test() ->
    Echo = spawn_link(fun slow/0),
    true = register(weft_bench_mesh, Echo),
    {CallsPerS, LatenciesUs} = weft_bench_mesh:run_callers([node(), node()], 2, ?FOR_MS),
    unlink(Echo),
    exit(Echo, kill),
    ?assertMatch([_, _], LatenciesUs),
    ?assert(lists:min(LatenciesUs) >= ?ANSWER_MS * 1000),
    ?assert(CallsPerS > 0),
    ?assert(CallsPerS =< 2.0e6 / lists:min(LatenciesUs)).

slow() ->
    receive
        {ping, plain, From, Ref} ->
            _ = erlang:send_after(?ANSWER_MS, From, {Ref, pong}),
            slow()
    end.
