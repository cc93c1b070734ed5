%% SPDX-License-Identifier: Apache-2.0
%% @doc Two lanes joined by a process that stands for the broker.
-module(weft_amqp_lane_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 30000).
-define(ID, <<7:128>>).
-define(WINDOW, weft_amqp_lane_core:window()).

lane_test_() ->
    {foreach, fun weft_amqp_lanes:new/0, fun(_) -> ets:delete(weft_amqp_lanes) end,
     [{timeout, 60, Test}
      || Test <- [fun handshake_bytes_are_read/0, fun packets_arrive_as_asked_for/0,
                  fun a_full_window_stops_the_sender/0, fun the_end_comes_after_the_last_packet/0,
                  fun both_ends_hear_of_the_death_of_an_owner/0,
                  fun without_a_broker_there_is_no_lane/0, fun a_lost_message_ends_the_lane/0,
                  fun a_reader_waits_no_longer_than_it_wants/0,
                  fun a_lane_is_known_until_it_ends/0,
                  fun the_end_of_a_lane_removes_no_other_one/0, fun no_number_is_sealed_twice/0,
                  fun bytes_that_nobody_reads_end_the_lane/0]]}.

handshake_bytes_are_read() ->
    {A, B, _} = joined(),
    ok = weft_amqp_lane:send(A, <<1, 2, 3>>),
    ok = weft_amqp_lane:send(A, <<4>>),
    ?assertEqual({ok, <<1, 2>>}, weft_amqp_lane:recv(B, 2, ?MS)),
    ?assertEqual({ok, <<3, 4>>}, weft_amqp_lane:recv(B, 2, ?MS)),
    ok = weft_amqp_lane:send(B, <<5>>),
    ?assertEqual({ok, <<5>>}, weft_amqp_lane:recv(A, 1, ?MS)),
    ok = weft_amqp_lane:close(A),
    ?assertEqual({error, closed}, weft_amqp_lane:recv(B, 1, ?MS)).

a_reader_waits_no_longer_than_it_wants() ->
    {A, _, _} = joined(),
    ?assertEqual({error, timeout}, weft_amqp_lane:recv(A, 1, 10)).

packets_arrive_as_asked_for() ->
    {A, B, _} = secured(),
    [ok = weft_amqp_lane:try_send(A, Packet) || Packet <- [<<"a">>, <<"b">>, <<"c">>]],
    ok = weft_amqp_lane:activate(B, 2, 1000000),
    ?assertEqual([<<"a">>, <<"b">>], [next(B), next(B)]),
    ok = weft_amqp_lane:send(A, large()),
    ok = weft_amqp_lane:more(B, 2),
    ?assertEqual([<<"c">>, large()], [next(B), next(B)]),
    ?assertEqual(4 + 1, weft_amqp_lane:sent_packets(A)).

large() -> binary:copy(<<"0123456789">>, 10000).

a_full_window_stops_the_sender() ->
    {A, B, _} = secured(),
    Packet = binary:copy(<<0>>, 1000),
    Sent = fill(A, Packet, 0),
    ?assert(Sent * 1000 =< ?WINDOW),
    Self = self(),
    Late = spawn_link(fun() -> Self ! {sent, self(), weft_amqp_lane:send(A, <<"late">>)} end),
    %% The lane has looked at it when it answers the next call.
    ok = weft_amqp_lane:controlling_process(A, self()),
    receive {sent, Late, _} -> error(did_not_wait) after 0 -> ok end,
    ok = weft_amqp_lane:activate(B, Sent + 1, 1000000),
    [Packet = next(B) || _ <- lists:seq(1, Sent)],
    receive {sent, Late, Result} -> ?assertEqual(ok, Result) after ?MS -> error(still_waits) end,
    ?assertEqual(<<"late">>, next(B)),
    has_room(A, ?WINDOW div 2).

%% What the other end took is told on the way that "late" took too, partly after it.
has_room(Lane, Bytes) ->
    case weft_amqp_lane:room(Lane) of
        {ok, Room} when Room > Bytes -> ok;
        {ok, _} -> receive after 5 -> has_room(Lane, Bytes) end % pacing: next look
    end.

%% The last packet may be too much.
fill(Lane, Packet, Sent) ->
    case weft_amqp_lane:room(Lane) of
        {ok, Room} when Room > 0 ->
            ok = weft_amqp_lane:try_send(Lane, Packet),
            fill(Lane, Packet, Sent + 1);
        {ok, 0} ->
            Sent
    end.

the_end_comes_after_the_last_packet() ->
    {A, B, _} = secured(),
    ok = weft_amqp_lane:try_send(A, <<"a">>),
    ok = weft_amqp_lane:try_send(A, <<"b">>),
    ok = weft_amqp_lane:close(A),
    ok = weft_amqp_lane:activate(B, 1, 1000000),
    ?assertEqual(<<"a">>, next(B)),
    ok = weft_amqp_lane:more(B, 1),
    ?assertEqual([<<"b">>, closed], [next(B), next(B)]),
    ?assertEqual({error, closed}, weft_amqp_lane:send(B, <<"c">>)).

a_lane_is_known_until_it_ends() ->
    {ok, A} = weft_amqp_lane:start(dialer, peer(self(), <<"b">>)),
    ?assertMatch({error, _}, weft_amqp_lane:start(dialer, peer(self(), <<"b">>))),
    ?assertEqual({ok, pid(A)}, weft_amqp_lanes:lookup(?ID)),
    Monitor = monitor(process, pid(A)),
    ok = weft_amqp_lane:close(A),
    receive {'DOWN', Monitor, process, _, normal} -> ok end,
    ?assertEqual(error, weft_amqp_lanes:lookup(?ID)).

%% Another one may have its place by then, as in the next of these tests.
the_end_of_a_lane_removes_no_other_one() ->
    {A, B, _} = joined(),
    Monitor = monitor(process, pid(A)),
    ok = weft_amqp_lane:close(A),
    receive {'DOWN', Monitor, process, _, normal} -> ok end,
    ?assertEqual({ok, pid(B)}, weft_amqp_lanes:lookup(?ID)).

both_ends_hear_of_the_death_of_an_owner() ->
    {A, B, _} = secured(),
    {Owner, Monitor} = spawn_monitor(fun() -> receive stop -> ok end end),
    ok = weft_amqp_lane:controlling_process(A, Owner),
    ok = weft_amqp_lane:activate(B, 1, 1000000),
    Owner ! stop,
    receive {'DOWN', Monitor, process, Owner, _} -> ok end,
    ?assertEqual(closed, next(B)).

without_a_broker_there_is_no_lane() ->
    {A, _, Broker} = secured(),
    ok = weft_amqp_lane:activate(A, 1, 1000000),
    exit(Broker, kill),
    ?assertEqual(closed, next(A)).

a_lost_message_ends_the_lane() ->
    {A, B, _} = secured(),
    [ok = weft_amqp_lane:activate(Lane, 1, 1000000) || Lane <- [A, B]],
    ok = weft_amqp_lane:lost(pid(A), no_queue),
    ?assertEqual([closed, closed], [next(A), next(B)]).

%% A key must never seal two messages under one number. A lane that has lost a message says that it
%% ends. Its owner does not know yet, and sends; and gives credit for what it takes.
no_number_is_sealed_twice() ->
    Self = self(),
    {A, B, Broker} = secured(),
    Packet = binary:copy(<<0>>, ?WINDOW div 4),
    ok = weft_amqp_lane:send(B, Packet),
    ok = weft_amqp_lane:send(B, <<"b">>),
    ok = weft_amqp_lane:activate(A, 1, ?WINDOW),
    ?assertEqual(Packet, next(A)),
    ok = weft_amqp_lane:send(B, Packet),
    %% All is at A when these have answered.
    ok = weft_amqp_lane:controlling_process(B, Self),
    Broker ! {watch, <<"b">>, Self},
    receive watches -> ok end,
    ok = weft_amqp_lane:lost(pid(A), no_queue),
    ok = weft_amqp_lane:try_send(A, <<"after">>),
    ok = weft_amqp_lane:more(A, 3),
    ?assertEqual([<<"b">>, Packet, closed], [next(A), next(A), next(A)]),
    Broker ! {watched, Self},
    Numbers = receive {watched, Sealed} -> [Number || {sealed, Number, _, _} <- Sealed] end,
    ?assertMatch([_ | _], Numbers),
    ?assertEqual(lists:usort(Numbers), lists:sort(Numbers)).

%% Anybody who may use the broker may send bytes before a node has proved itself.
bytes_that_nobody_reads_end_the_lane() ->
    {A, B, _} = joined(),
    [_ = weft_amqp_lane:send(A, binary:copy(<<0>>, 4096)) || _ <- lists:seq(1, 64)],
    ok = weft_amqp_lane:activate(B, 1, 1000000),
    ?assertEqual(closed, next(B)).

next(Lane) ->
    Connection = weft_amqp_lane:connection(Lane),
    receive
        {tcp, Connection, Packet} -> Packet;
        {tcp_closed, Connection} -> closed
    after ?MS -> error(nothing_came)
    end.

%% --- two lanes --------------------------------------------------------------------------------

secured() ->
    {A, B, Broker} = joined(),
    ok = weft_amqp_lane:send(A, <<"x">>),
    {ok, <<"x">>} = weft_amqp_lane:recv(B, 1, ?MS),
    ok = weft_amqp_lane:secure(A, dialer, <<"secret">>),
    ok = weft_amqp_lane:secure(B, listener, <<"secret">>),
    {A, B, Broker}.

%% One table knows only one end of a lane, so the broker here knows them itself.
joined() ->
    Broker = spawn(fun broker/0),
    {ok, A} = weft_amqp_lane:start(dialer, peer(Broker, <<"b">>)),
    ok = weft_amqp_lanes:remove(?ID, pid(A)),
    {ok, B} = weft_amqp_lane:start(listener, peer(Broker, <<"a">>)),
    Broker ! #{<<"a">> => pid(A), <<"b">> => pid(B)},
    {A, B, Broker}.

peer(Broker, Queue) ->
    #{id => ?ID, queue => Queue, own_queue => <<"own">>, outbox => Broker, part_bytes => 4096}.

%% How a lane looks inside is known to its module, and here.
pid(Lane) -> element(1, Lane).

broker() ->
    receive Ends when is_map(Ends) -> broker(Ends) end.

broker(Ends) -> broker(Ends, none, []).

%% Keeps what goes to the queue that is watched.
broker(Ends, Watched, Frames) ->
    receive
        {'$gen_cast', {publish, {queue, Queue}, ?ID, Message}} ->
            {lane, ?ID, Frame} = weft_amqp_message:decode(iolist_to_binary(Message)),
            weft_amqp_lane:came(map_get(Queue, Ends), Frame),
            broker(Ends, Watched, [Frame || Queue =:= Watched] ++ Frames);
        {watch, Queue, From} ->
            From ! watches,
            broker(Ends, Queue, Frames);
        {watched, From} ->
            From ! {watched, Frames},
            broker(Ends, Watched, Frames)
    end.
