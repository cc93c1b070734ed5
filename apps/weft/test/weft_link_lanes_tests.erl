%% SPDX-License-Identifier: Apache-2.0
%% @doc The lanes of a link, on sockets that are none: this module is their tunnel, and the process
%% of a test hears what is done with them.
-module(weft_link_lanes_tests).

-include_lib("eunit/include/eunit.hrl").

-export([more/2, sent_packets/1, room/1, try_send/2, send/2, close/1]).

-define(LANES, weft_link_lanes).
-define(PEERNAME, {{127, 0, 0, 1}, 1234}).

more({Process, Ref}, Count) ->
    Process ! {more, Ref, Count},
    ok.

sent_packets(_) -> get_or(sent, 0).

get_or(Key, Default) -> case get(Key) of undefined -> Default; Value -> Value end.

room(_) -> {ok, get_or(room, 100)}.

try_send(_, _Packet) -> ok.

%% By the process of a writer, where there is no room.
send({Process, Ref}, Packet) ->
    receive after 20 -> ok end, % pacing: as over a slow network
    Process ! {sent, Ref, iolist_to_binary(Packet)},
    ok.

close(_) -> ok.

the_first_lane_is_that_of_the_smallest_key_test() ->
    ?assertEqual(none, ?LANES:first(#{})),
    [A, B, C] = [lane(Key) || Key <- [{<<"x">>, 1}, {<<>>, 2}, {<<>>, 1}]],
    Lanes = add([A, B, C], dialer, #{}),
    ?assertEqual(C, ?LANES:first(Lanes)),
    ?assertEqual(B, ?LANES:first(?LANES:remove(C, Lanes))),
    ?assertEqual([A, C, C], [?LANES:kept(A, Lanes), ?LANES:kept(none, Lanes),
                             ?LANES:kept(A, ?LANES:remove(A, Lanes))]),
    ?assertEqual(lists:sort([A, B, C]), lists:sort(?LANES:all(Lanes))),
    ?assertEqual([{<<>>, 1}, {<<>>, 2}, {<<"x">>, 1}], lists:sort(?LANES:keys(Lanes))).

both_sides_may_have_brought_up_a_lane_of_one_key_test() ->
    [Dialled, Accepted] = [lane({<<"x">>, 1}) || _ <- [1, 2]],
    Lanes = add([Accepted], listener, add([Dialled], dialer, #{})),
    ?assertEqual(lists:sort([{Dialled, {<<"x">>, 1}, dialer}, {Accepted, {<<"x">>, 1}, listener}]),
                 lists:sort(?LANES:roles(Lanes))).

each_packet_is_counted_and_more_are_asked_for_in_time_test() ->
    Lane = lane({<<>>, 0}),
    {tunnel, _, {_, Ref}} = Socket = weft_lane:socket(Lane),
    Received = fun(Lanes) -> {Lane, Counted} = ?LANES:received(Socket, Lanes), Counted end,
    One = Received(?LANES:add(Lane, peer(dialer), 2, #{})),
    receive {more, Ref, _} -> error(too_early) after 0 -> ok end,
    Two = Received(One),
    Half = weft_transport:half(),
    receive {more, Ref, Half} -> ok after 0 -> error(too_late) end,
    ?assertMatch([#{packets_in := 2, index := 0, class := <<>>, peername := ?PEERNAME}],
                 ?LANES:info(Two)),
    ?assertEqual({Lane, ?PEERNAME}, {?LANES:lane(Socket, Two), ?LANES:peername(Socket, Two)}).

%% One is heard, one is not; each check is half the time after which a lane is dead.
a_silent_lane_is_found_dead_beside_one_that_answers_test() ->
    [Lively, Silent] = [lane({<<>>, Index}) || Index <- [0, 1]],
    Checks = [erlang:monotonic_time(millisecond) + N * weft_config:get(link_timeout_ms) div 2
              || N <- [1, 2, 3]],
    {Seen, _} = lists:mapfoldl(
                  fun(NowMs, Before) ->
                      {_, Heard} = ?LANES:received(weft_lane:socket(Lively), Before),
                      {Dead, ToPing, _, After} = ?LANES:check(NowMs, Heard),
                      {{Dead, lists:sort(ToPing)}, After}
                  end, add([Lively, Silent], dialer, #{}), Checks),
    ?assertEqual([{[], [Silent]}, {[], [Silent]}, {[weft_lane:socket(Silent)], []}], Seen).

%% The first check after a pong: nothing is asked, and nothing was sent but the first ping.
lanes_rest_until_one_is_used_test() ->
    Lane = lane({<<>>, 0}),
    {_, Heard} = ?LANES:received(weft_lane:socket(Lane), add([Lane], dialer, #{})),
    put(sent, 1),
    {[], [], true, Lanes} = ?LANES:check(erlang:monotonic_time(millisecond) + 1000, Heard),
    ?assert(?LANES:rest(Lanes)),
    _ = weft_lane:send(Lane, <<>>, 1),
    receive {weft_lane, used, _} -> ok end,
    put(sent, 2),
    ?assertNot(?LANES:rest(Lanes)),
    ?assertMatch({[], [Lane], false, _},
                 ?LANES:check(erlang:monotonic_time(millisecond) + 2000, Lanes)).

%% What a gateway relays waits on the same lane, and is bounded by itself.
a_link_is_broken_for_its_own_messages_only_test() ->
    ok = weft_link_table:new(),
    try
        ok = weft_link_table:enter('peer@host', self()),
        Lane = lane({<<>>, 0}),
        ok = weft_link_table:publish('peer@host', #{lane => Lane}),
        ok = counted(weft_config:get(relay_bytes_max) + 1, Lane),
        ?assertEqual(ok, weft_links:send('peer@host', core, hello)),
        ok = counted(67108864, Lane),
        ?assertEqual({error, not_connected}, weft_links:send('peer@host', core, hello))
    after
        ets:delete(weft_links)
    end.

%% As a sender leaves it that was killed before the writer had its packet.
a_lane_on_which_nothing_waits_is_not_busy_for_ever_test() ->
    Lane = lane({<<>>, 0}),
    Lanes = add([Lane], dialer, #{}),
    ok = counted(7, Lane),
    ?assertEqual(7, weft_lane:queued_bytes(Lane)),
    ok = checked_until_free(Lane, erlang:monotonic_time(millisecond), Lanes, 500).

%% So many more bytes seem to wait in the lane.
counted(Bytes, Lane) -> atomics:add(element(tuple_size(Lane), Lane), 1, Bytes).

checked_until_free(Lane, NowMs, Lanes, Times) when Times > 0 ->
    case weft_lane:queued_bytes(Lane) of
        0 -> ok;
        7 -> _ = ?LANES:check(NowMs, Lanes),
             receive after 1 -> ok end, % pacing: asks again
             checked_until_free(Lane, NowMs + 10000, Lanes, Times - 1)
    end.

%% With TLS all that is sent is sent by the writer, and on other lanes what finds them busy.
a_goodbye_is_out_before_the_lane_is_closed_test() ->
    put(room, 0),
    Said = said_goodbye(20),
    erase(room),
    ?assertEqual([goodbye, goodbye], Said).

%% A goodbye has 300 ms to get out. Where the machine has taken them, it need not be out: then there
%% is another try.
said_goodbye(Tries) when Tries > 0 ->
    Lanes = [lane({<<>>, Index}) || Index <- [0, 1]],
    BeganMs = erlang:monotonic_time(millisecond),
    ok = ?LANES:say_goodbye(add(Lanes, dialer, #{})),
    TookMs = erlang:monotonic_time(millisecond) - BeganMs,
    Said = [receive {sent, Ref, Packet} -> weft_wire:decode(Packet) after 0 -> not_sent end
            || {tunnel, _, {_, Ref}} <- [weft_lane:socket(Lane) || Lane <- Lanes]],
    case TookMs < 300 of
        true -> Said;
        false -> said_goodbye(Tries - 1)
    end.

add(Lanes, Role, Before) ->
    lists:foldl(fun(Lane, Acc) -> ?LANES:add(Lane, peer(Role), 10, Acc) end, Before, Lanes).

peer(Role) -> #{role => Role, peername => ?PEERNAME}.

lane(Key) ->
    weft_lane:new({tunnel, ?MODULE, {self(), make_ref()}}, Key,
                  {weft_fault_table, lateness, ['peer@host']}).
