%% SPDX-License-Identifier: Apache-2.0
%% @doc One message at a time is on its way to a neighbour, and is repeated if it has not arrived.
-module(weft_crdt_sending_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OPTIONS, #{message_bytes => 65536, resend_ms => 2000}).

nothing_is_sent_where_nothing_waits_test() ->
    ?assertEqual(nothing, next(peers())).

one_message_is_on_its_way_until_it_is_acknowledged_test() ->
    {send, [{send, b, {deltas, Seq, <<>>, [], [{key, gcounter, _}]}},
            {after_ms, 2000, {resend, b, Seq}}], Sent} = next(offered(peers())),
    Waiting = weft_crdt_sending:offer(b, {other, gcounter, counted()}, 50, Sent),
    ?assertEqual(nothing, next(Waiting)),
    ?assertEqual(nothing, next(weft_crdt_sending:acked(b, Seq - 1, Waiting))),
    ?assertMatch({send, _, _}, next(weft_crdt_sending:acked(b, Seq, Waiting))).

%% Copies of what may still be on its way would fill the queue before a slow link.
a_neighbour_that_is_late_is_asked_and_later_each_time_test() ->
    {Seq, Sent} = sent(),
    Ask = fun(_, Peers0) ->
              {{deltas, Question, <<>>, [], []}, Ms, Peers} = late(Seq, Peers0),
              ?assert(Question > Seq),
              ?assertEqual(nothing, next(Peers)),
              {Ms, Peers}
          end,
    {Times, _} = lists:mapfoldl(Ask, Sent, lists:seq(1, 6)),
    ?assertEqual([4000, 8000, 16000, 30000, 30000, 30000], Times).

%% As the answer to the question came on the same way.
what_a_neighbour_lacks_that_has_answered_is_sent_again_test() ->
    {Seq, Sent} = sent(),
    {{deltas, Question, _, _, _}, 4000, Asked} = late(Seq, Sent),
    {send, [{send, b, {deltas, Again, <<>>, [], [{key, gcounter, _}]}},
            {after_ms, 4000, {resend, b, Again}}], Repeated} =
        next(weft_crdt_sending:acked(b, Question, Asked)),
    ?assertEqual(nothing, next(weft_crdt_sending:acked(b, Again, Repeated))).

%% 23 MB take three minutes on a link of 1 Mbit/s.
who_never_answers_is_given_up_after_half_an_hour_test() ->
    {Seq, Sent} = sent(),
    {Ms, GivenUp} = given_up(Seq, 2000, Sent),
    ?assert(Ms >= 1800000 andalso Ms < 2400000, Ms),
    ?assertEqual(behind, next(GivenUp)).

given_up(Seq, Ms, Peers0) ->
    case weft_crdt_sending:late(b, Seq, ?OPTIONS, Peers0) of
        {ask, [_, {after_ms, More, _}], Peers} -> given_up(Seq, Ms + More, Peers);
        {given_up, Peers} -> {Ms, Peers}
    end.

late(Seq, Peers0) ->
    {ask, [{send, b, Msg}, {after_ms, Ms, {resend, b, Seq}}], Peers} =
        weft_crdt_sending:late(b, Seq, ?OPTIONS, Peers0),
    {Msg, Ms, Peers}.

sent() ->
    {send, [{send, b, {deltas, Seq, _, _, _}} | _], Sent} = next(offered(peers())),
    {Seq, Sent}.

what_was_acknowledged_or_has_no_neighbour_is_not_late_test() ->
    {Seq, Sent} = sent(),
    Acked = weft_crdt_sending:acked(b, Seq, Sent),
    ?assertEqual(nothing, weft_crdt_sending:late(b, Seq, ?OPTIONS, Acked)),
    ?assertEqual(nothing, weft_crdt_sending:late(c, Seq, ?OPTIONS, Sent)).

what_a_neighbour_has_on_its_way_it_is_not_offered_again_test() ->
    {Seq, Sent} = sent(),
    ?assertEqual(nothing, next(weft_crdt_sending:acked(b, Seq, offered(Sent)))).

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
