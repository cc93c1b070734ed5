%% SPDX-License-Identifier: Apache-2.0
%% @doc What is published at once and what waits, with this process in place of the channel.
-module(weft_amqp_outbox_tests).

-include_lib("eunit/include/eunit.hrl").
-include_lib("amqp_client/include/amqp_client.hrl").

-define(LANE, <<1:128>>).
%% So many are published and not confirmed.
-define(ROOM, 1000).

%% A node that stops says so, whatever its lanes have sent.
an_announcement_does_not_wait_for_room_test() ->
    Counters = counters:new(2, []),
    Full = publish(lists:duplicate(?ROOM + 5, {?LANE, <<"packet">>}), outbox(Counters)),
    ?assertEqual(lists:duplicate(?ROOM, <<"packet">>), published()),
    ?assertEqual(#{unconfirmed => ?ROOM, waiting => 5}, weft_amqp_outbox:counts(Counters)),
    Told = publish([{none, <<"bye">>}], Full),
    ?assertEqual([<<"bye">>], published()),
    ?assertEqual(#{unconfirmed => ?ROOM + 1, waiting => 5}, weft_amqp_outbox:counts(Counters)),
    %% It is confirmed as the others are, and takes no room from then on.
    _ = handle(#'basic.ack'{delivery_tag = ?ROOM + 1, multiple = true}, Told),
    ?assertEqual(lists:duplicate(5, <<"packet">>), published()),
    ?assertEqual(#{unconfirmed => 5, waiting => 0}, weft_amqp_outbox:counts(Counters)).

announcements_are_the_first_when_the_broker_takes_messages_again_test() ->
    Counters = counters:new(2, []),
    Blocked = handle(#'connection.blocked'{reason = <<"memory">>}, outbox(Counters)),
    Waiting = publish([{?LANE, <<"packet">>}, {none, <<"here">>}], Blocked),
    ?assertEqual([], published()),
    ?assertEqual(#{unconfirmed => 0, waiting => 2}, weft_amqp_outbox:counts(Counters)),
    _ = handle(#'connection.unblocked'{}, Waiting),
    ?assertEqual([<<"here">>, <<"packet">>], published()).

%% As it is when its connection and its channel are open.
outbox(Counters) ->
    {ok, Outbox, {continue, _}} = weft_amqp_outbox:init({none, Counters, self()}),
    true = process_flag(trap_exit, false),
    list_to_tuple([case Field of undefined -> self(); _ -> Field end
                   || Field <- tuple_to_list(Outbox)]).

publish(Messages, Outbox) ->
    lists:foldl(fun({Owner, Message}, Before) ->
                    {noreply, After} = weft_amqp_outbox:handle_cast(
                                         {publish, {queue, <<"q">>}, Owner, Message}, Before),
                    After
                end, Outbox, Messages).

handle(Message, Outbox) ->
    {noreply, After} = weft_amqp_outbox:handle_info(Message, Outbox),
    After.

%% What came to the channel, in order.
published() ->
    receive
        {'$gen_cast', Cast} when element(1, Cast) =:= cast ->
            #amqp_msg{payload = Message} = element(3, Cast),
            [Message | published()]
    after 0 -> []
    end.
