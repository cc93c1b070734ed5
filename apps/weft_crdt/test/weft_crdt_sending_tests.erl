%% SPDX-License-Identifier: Apache-2.0
%% @doc One message at a time is on its way to a neighbour, and is repeated until it has arrived.
-module(weft_crdt_sending_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, #{message_bytes => 65536, resend_ms => 2000}).

nothing_is_sent_where_nothing_waits_test() ->
    ?assertEqual(nothing, next(peers())).

one_message_is_on_its_way_until_it_is_acknowledged_test() ->
    {send, [{send, b, {deltas, Seq, <<>>, [], [{key, gcounter, _}]}},
            {after_ms, 2000, {resend, b, Seq}}], Sent} = next(offered(peers())),
    Waiting = offered(Sent),
    ?assertEqual(nothing, next(Waiting)),
    ?assertEqual(nothing, next(weft_crdt_sending:acked(b, Seq - 1, Waiting))),
    ?assertMatch({send, _, _}, next(weft_crdt_sending:acked(b, Seq, Waiting))).

a_message_is_repeated_later_each_time_test() ->
    {Times, _} = lists:mapfoldl(fun(_, Peers0) ->
                                    {send, [{send, b, Msg}, {after_ms, Ms, _}], Peers1} =
                                        next(Peers0),
                                    {true, Peers} = weft_crdt_sending:is_due(b, element(2, Msg),
                                                                             Peers1),
                                    {Ms, Peers}
                                end, offered(peers()), lists:seq(1, 6)),
    ?assertEqual([2000, 4000, 8000, 16000, 30000, 30000], Times).

%% Copies of it would fill the queue before a slow link.
a_large_message_is_not_repeated_while_it_may_be_on_its_way_test() ->
    {ok, Large} = weft_crdt_lww_register:mutate({set, binary:copy(<<0>>, 23000000)}, {{a, 1}, 0},
                                                weft_crdt_lww_register:new()),
    {send, [{send, b, {deltas, Seq, _, _, [_]}}, {after_ms, Ms, {resend, b, Seq}}], _} =
        next(weft_crdt_sending:offer(b, {key, lww_register, Large}, 50, peers())),
    ?assert(Ms >= 20000, Ms).

what_was_acknowledged_or_has_no_neighbour_is_not_due_test() ->
    {send, [{send, b, {deltas, Seq, _, _, _}} | _], Sent} = next(offered(peers())),
    ?assertEqual(false, weft_crdt_sending:is_due(b, Seq, weft_crdt_sending:acked(b, Seq, Sent))),
    ?assertEqual(false, weft_crdt_sending:is_due(c, Seq, Sent)).

a_neighbour_for_whom_something_was_dropped_is_compared_test() ->
    Full = weft_crdt_sending:offer(b, {other, gcounter, counted()}, 1, offered(peers())),
    {send, [{send, b, {deltas, Seq, _, _, _}} | _], Sent} = next(Full),
    Behind = weft_crdt_sending:acked(b, Seq, Sent),
    ?assertEqual(behind, next(Behind)),
    ?assertEqual(nothing, next(weft_crdt_sending:compared(b, Behind))).

what_a_neighbour_has_sent_it_does_not_get_test() ->
    Packed = weft_crdt_gcounter:pack(counted()),
    Table = weft_crdt_retired:new(),
    ?assertEqual(nothing, next(weft_crdt_sending:heard(b, key, {gcounter, Packed}, Table,
                                                       offered(peers())))).

next(Peers) -> weft_crdt_sending:next(b, ?OPTIONS, Peers).

peers() ->
    {Peers, _} = weft_crdt_peers:up(b, 10, weft_crdt_peers:new(a)),
    Peers.

offered(Peers) -> weft_crdt_sending:offer(b, {key, gcounter, counted()}, 50, Peers).

counted() ->
    {ok, Delta} = weft_crdt_gcounter:mutate(increment, {{a, 1}, 0}, weft_crdt_gcounter:new()),
    Delta.
