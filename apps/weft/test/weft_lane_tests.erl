%% SPDX-License-Identifier: Apache-2.0
-module(weft_lane_tests).
-include_lib("eunit/include/eunit.hrl").

%% This module is the provider of tunnelled lanes.
-export([room/1, try_send/2, send/2, close/1]).

-define(SENDERS, 4).
-define(SENDS, 50000).
%% The lane that comes to rest when room is asked for, in the dictionary of the sender.
-define(RESTS, rests).

%% However many send at once: where there never is room nobody sends himself, all goes to the
%% writer. (On TLS, which has none, such a send crashed the link or the session.)
no_room_is_no_room_for_any_of_many_senders_test_() ->
    {timeout, 60,
     fun() ->
             Tried = counters:new(1, []),
             Lane = weft_lane:new({tunnel, ?MODULE, #{room => 0, tried => Tried}}, {<<>>, 0},
                                  {weft_fault_table, lateness, ['peer@host']}),
             Senders = [spawn_monitor(fun() -> send_when_idle(Lane, ?SENDS) end)
                        || _ <- lists:seq(1, ?SENDERS)],
             [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
              || {Pid, Monitor} <- Senders],
             ?assertEqual(0, counters:get(Tried, 1)),
             weft_lane:close(Lane)
     end}.

%% While anything waits nobody asks for room.
send_when_idle(_Lane, 0) ->
    ok;
send_when_idle(Lane, Left) ->
    case weft_lane:queued_bytes(Lane) of
        0 -> queued = weft_lane:send(Lane, <<"packet">>, 6), send_when_idle(Lane, Left - 1);
        _ -> erlang:yield(), send_when_idle(Lane, Left)
    end.

%% Room that is known is used up, then asked for again.
room_is_counted_down_test() ->
    Tried = counters:new(1, []),
    Lane = weft_lane:new({tunnel, ?MODULE, #{room => 100, tried => Tried}}, {<<>>, 0},
                         {weft_fault_table, lateness, ['peer@host']}),
    ?assertEqual([ok, ok, ok, queued],
                 [weft_lane:send(Lane, <<>>, Bytes) || Bytes <- [40, 60, 100, 101]]),
    ?assertEqual(3, counters:get(Tried, 1)),
    weft_lane:close(Lane).

%% Once, and whether the socket takes the packet or not.
the_first_use_of_a_lane_at_rest_is_told_test_() ->
    [fun() ->
             Lane = weft_lane:new({tunnel, ?MODULE, #{room => Room, tried => counters:new(1, [])}},
                                  {<<>>, 0}, {weft_fault_table, lateness, ['peer@host']}),
             ?assertEqual([0, 1, 0, 1], [begin
                                             _ = Rests andalso weft_lane:rest(Lane),
                                             _ = weft_lane:send(Lane, <<>>, 6),
                                             told(Lane)
                                         end || Rests <- [false, true, false, true]]),
             weft_lane:close(Lane)
     end || Room <- [0, 100]].

%% The process of the link finds nothing to do just as another one asks for room, or before that one
%% has given its packet to the writer.
a_lane_that_comes_to_rest_while_it_is_used_is_not_left_so_test_() ->
    [fun() ->
             Lane = weft_lane:new({tunnel, ?MODULE, #{room => Room, tried => counters:new(1, [])}},
                                  {<<>>, 0}, {weft_fault_table, lateness, ['peer@host']}),
             undefined = put(?RESTS, Lane),
             _ = weft_lane:send(Lane, <<>>, 6),
             Lane = erase(?RESTS),
             ?assertEqual(1, told(Lane)),
             weft_lane:close(Lane)
     end || Room <- [0, 100]].

%% Nor do answers wake it up, unless the socket does not take them.
answers_leave_a_lane_at_rest_test() ->
    Lane = weft_lane:new({tunnel, ?MODULE, #{room => 100, tried => counters:new(1, [])}},
                         {<<>>, 0}, {weft_fault_table, lateness, ['peer@host']}),
    ok = weft_lane:answer(Lane, <<>>, 6),
    ?assertEqual({0, 0}, {told(Lane), weft_lane:answers(Lane)}),
    weft_lane:rest(Lane),
    [ok = weft_lane:answer(Lane, <<>>, 6) || _ <- [1, 2]],
    ?assertEqual({0, 2}, {told(Lane), weft_lane:answers(Lane)}),
    queued = weft_lane:answer(Lane, <<>>, 101),
    ?assertEqual({1, 0}, {told(Lane), weft_lane:answers(Lane)}),
    weft_lane:close(Lane).

%% How often, once its writer has done all that it was asked for.
told(Lane) ->
    _ = sys:get_state(weft_lane:writer(Lane)),
    Socket = weft_lane:socket(Lane),
    receive {weft_lane, used, Socket} -> 1 + told(Lane) after 0 -> 0 end.

room(#{room := Room}) ->
    _ = [weft_lane:rest(Lane) || Lane <- [get(?RESTS)], Lane =/= undefined],
    {ok, Room}.

try_send(#{tried := Tried}, _Packet) -> counters:add(Tried, 1, 1).

send(_Lane, _Packet) -> ok.

close(_Lane) -> ok.
