%% SPDX-License-Identifier: Apache-2.0
%% @doc Somebody who may use the broker and means no good: reads what the nodes announce, and writes
%% to their queues and to their exchange.
-module(weft_amqp_test_intruder).

-include_lib("amqp_client/include/amqp_client.hrl").

-export([write/3]).

-define(MS, 30000).

%% @doc Writes that many messages. Returns how many were written, after the broker has confirmed
%% all.
-spec write(Url :: string(), Exchange :: binary(), Count :: pos_integer()) -> pos_integer().
write(Url, Exchange, Count) ->
    %% From version 4.3 on the words of mechanisms have to be atoms already.
    {module, _} = code:ensure_loaded(amqp_auth_mechanisms),
    {ok, Params} = amqp_uri:parse(Url),
    {ok, Connection} = amqp_connection:start(Params),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    #'confirm.select_ok'{} = amqp_channel:call(Channel, #'confirm.select'{}),
    Announcements = overheard(Channel, Exchange),
    Queues = lists:usort([queue(Announcement) || Announcement <- Announcements]),
    _ = rand:seed(exsss, {1, 2, 3}),
    [publish(Channel, target(Queues, Exchange), message(N rem 10, Announcements))
     || N <- lists:seq(1, Count)],
    true = amqp_channel:wait_for_confirms(Channel, {?MS, millisecond}),
    ok = amqp_connection:close(Connection),
    Count.

%% An announcement of each of two nodes.
overheard(Channel, Exchange) ->
    #'queue.declare_ok'{queue = Queue} =
        amqp_channel:call(Channel, #'queue.declare'{exclusive = true}),
    #'queue.bind_ok'{} = amqp_channel:call(Channel, #'queue.bind'{queue = Queue,
                                                                 exchange = Exchange}),
    #'basic.consume_ok'{} = amqp_channel:subscribe(
        Channel, #'basic.consume'{queue = Queue, no_ack = true}, self()),
    overheard([]).

overheard(Announcements) ->
    case length(lists:usort([queue(A) || A <- Announcements])) of
        2 -> Announcements;
        _ -> receive
                 {#'basic.deliver'{}, #amqp_msg{payload = Message}} ->
                     overheard([Message | Announcements])
             after ?MS -> error({overheard_only, Announcements})
             end
    end.

%% Behind version, kind, MAC, what, incarnation, stamp, interval and name.
queue(<<_:2/binary, _:32/binary, _:21/binary, Size:16, _:Size/binary, Queue/binary>>) -> Queue.

target(Queues, Exchange) ->
    case rand:uniform(4) of
        1 -> #'basic.publish'{exchange = Exchange};
        _ -> #'basic.publish'{routing_key = lists:nth(rand:uniform(length(Queues)), Queues)}
    end.

publish(Channel, Publish, Message) ->
    ok = amqp_channel:call(Channel, Publish, #amqp_msg{payload = Message}).

message(0, _) -> <<>>;
message(1, _) -> rand:bytes(rand:uniform(300));
message(2, _) -> rand:bytes(100000);
message(3, Announcements) -> any(Announcements);
message(4, Announcements) -> flipped(any(Announcements));
message(5, Announcements) -> truncated(any(Announcements));
message(6, _) -> <<1, 2, (rand:bytes(16))/binary, 7:64, 1, (rand:bytes(60))/binary>>;
message(7, _) -> <<1, 0, (rand:bytes(16))/binary, "amq.gen-nobody">>;
message(8, _) -> iolist_to_binary([<<1, 0, (rand:bytes(16))/binary>>, rand:bytes(200)]);
message(9, _) -> term_to_binary({'an atom', list_to_atom("made_up_" ++ integer_to_list(
                                                             rand:uniform(1 bsl 40)))}).

any(List) -> lists:nth(rand:uniform(length(List)), List).

flipped(Binary) ->
    At = rand:uniform(byte_size(Binary)) - 1,
    <<Before:At/binary, Byte, After/binary>> = Binary,
    <<Before/binary, (Byte bxor 1), After/binary>>.

truncated(Binary) ->
    binary:part(Binary, 0, rand:uniform(byte_size(Binary)) - 1).
