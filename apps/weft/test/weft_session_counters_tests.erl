%% SPDX-License-Identifier: Apache-2.0
-module(weft_session_counters_tests).

-include_lib("eunit/include/eunit.hrl").

what_the_ticker_is_told_test() ->
    Counters = weft_session_counters:new(),
    ?assertEqual({ok, 0, 0, 0}, weft_session_counters:getstat(Counters)),
    weft_session_counters:packet_in(Counters, 10),
    weft_session_counters:packet_out(Counters, 20),
    weft_session_counters:packet_out(Counters, 30),
    weft_session_counters:heard(Counters),
    ?assertEqual({ok, 2, 2, 0}, weft_session_counters:getstat(Counters)),
    ?assertEqual(#{packets_in => 2, packets_out => 2, bytes_in => 10, bytes_out => 50},
                 weft_session_counters:read(Counters)).

a_peer_that_is_kept_alive_is_always_heard_test() ->
    Counters = weft_session_counters:new(),
    weft_session_counters:keep_alive(Counters, true),
    ?assertEqual({ok, 1, 0, 0}, weft_session_counters:getstat(Counters)),
    ?assertEqual({ok, 2, 0, 0}, weft_session_counters:getstat(Counters)),
    weft_session_counters:keep_alive(Counters, false),
    ?assertEqual({ok, 2, 0, 0}, weft_session_counters:getstat(Counters)).
