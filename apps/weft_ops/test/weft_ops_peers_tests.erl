%% SPDX-License-Identifier: Apache-2.0
%% @doc The sockets of several lanes are one connection in what is reported.
-module(weft_ops_peers_tests).

-include_lib("eunit/include/eunit.hrl").

lanes_are_summed_and_averages_count_packets_test() ->
    One = #{recv_oct => 100, recv_cnt => 10, recv_max => 30, recv_avg => 10, recv_dvi => 2,
            send_oct => 0, send_cnt => 0, send_max => 0, send_avg => 0, send_pend => 4},
    Two = #{recv_oct => 300, recv_cnt => 30, recv_max => 20, recv_avg => 30, recv_dvi => 6,
            send_oct => 7, send_cnt => 1, send_max => 7, send_avg => 7, send_pend => 5},
    ?assertEqual(#{recv_oct => 400, recv_cnt => 40, recv_max => 30, recv_avg => 25, recv_dvi => 5,
                   send_oct => 7, send_cnt => 1, send_max => 7, send_avg => 7, send_pend => 9},
                 weft_ops_peers:sum([One, Two])).

one_lane_is_itself_test() ->
    One = #{recv_oct => 100, recv_cnt => 10, recv_max => 30, recv_avg => 10, recv_dvi => 2,
            send_oct => 5, send_cnt => 1, send_max => 5, send_avg => 5, send_pend => 4},
    ?assertEqual(One, weft_ops_peers:sum([One])).

a_node_without_distribution_has_no_peers_test() ->
    ?assertNot(erlang:is_alive()),
    ?assertEqual([], weft_ops_peers:all(#{sessions => [], links => []})).
