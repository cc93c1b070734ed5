%% SPDX-License-Identifier: Apache-2.0
-module(weft_session_counters_tests).

-include_lib("eunit/include/eunit.hrl").

what_the_ticker_is_told_test_() ->
    [{Of, fun() -> is_told(Counters) end}
     || {Of, Counters} <- [{"this version", weft_session_counters:new()},
                           {"the version before", counters:new(8, [write_concurrency])}]].

is_told(Counters) ->
    ?assertEqual({ok, 0, 0, 0}, weft_session_counters:getstat(Counters)),
    weft_session_counters:payload_in(Counters, 10),
    weft_session_counters:payload_out(Counters, 20),
    weft_session_counters:payload_out(Counters, 30),
    weft_session_counters:path_in(Counters),
    ?assertEqual({ok, 2, 2, 0}, weft_session_counters:getstat(Counters)),
    weft_session_counters:tick_in(Counters, 5),
    weft_session_counters:tick_out(Counters, 5),
    ?assertEqual({ok, 3, 3, 0}, weft_session_counters:getstat(Counters)),
    ?assertEqual(#{packets_in => 3, packets_out => 3, bytes_in => 15, bytes_out => 55,
                   reroutes => 0},
                 weft_session_counters:read(Counters)),
    ?assertEqual(3, weft_session_counters:written(Counters)),
    ok = weft_session_counters:set_received(Counters, 7),
    ?assertEqual(7, weft_session_counters:received(Counters)).

%% Also by what the version before has begun.
the_node_counts_them_too_test_() ->
    {setup, fun weft_counters:init/0, fun(_) -> persistent_term:erase(weft_counters) end,
     fun(ok) ->
         [fun() ->
              Before = weft_counters:read(),
              ok = weft_session_counters:payload_in(Counters, 10),
              ok = weft_session_counters:tick_in(Counters, 5),
              ok = weft_session_counters:payload_out(Counters, 20),
              ok = weft_session_counters:payload_out(Counters, 30),
              ok = weft_session_counters:tick_out(Counters, 5),
              ok = weft_session_counters:path_in(Counters),
              After = weft_counters:read(),
              ?assertEqual([2, 15, 3, 55],
                           [maps:get(Name, After) - maps:get(Name, Before)
                            || Name <- [packets_in, bytes_in, packets_out, bytes_out]])
          end || Counters <- [weft_session_counters:new(), counters:new(8, [write_concurrency])]]
     end}.

a_peer_that_is_kept_alive_is_always_heard_test() ->
    Counters = weft_session_counters:new(),
    weft_session_counters:keep_alive(Counters, true),
    ?assertEqual({ok, 1, 0, 0}, weft_session_counters:getstat(Counters)),
    ?assertEqual({ok, 2, 0, 0}, weft_session_counters:getstat(Counters)),
    weft_session_counters:keep_alive(Counters, false),
    ?assertEqual({ok, 2, 0, 0}, weft_session_counters:getstat(Counters)).

%% The same neighbour again is the way that there was.
another_neighbour_is_a_reroute_test() ->
    Counters = weft_session_counters:new(),
    ?assertEqual([0, 0, 1, 1, 2],
                 [begin
                      ok = weft_session_counters:by_way_of(Counters, Neighbour),
                      maps:get(reroutes, weft_session_counters:read(Counters))
                  end || Neighbour <- [a@h, a@h, b@h, b@h, a@h]]).

%% Its code may be loaded while it runs.
a_session_of_the_version_before_has_none_test() ->
    Before = counters:new(6, [write_concurrency]),
    ok = weft_session_counters:by_way_of(Before, a@h),
    ok = weft_session_counters:by_way_of(Before, b@h),
    ?assertMatch(#{reroutes := 0}, weft_session_counters:read(Before)).
