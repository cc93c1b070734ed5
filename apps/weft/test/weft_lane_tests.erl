%% SPDX-License-Identifier: Apache-2.0
-module(weft_lane_tests).
-include_lib("eunit/include/eunit.hrl").

%% This module is the provider of tunnelled lanes.
-export([room/1, try_send/2, send/2, close/1]).

-define(SENDERS, 4).
-define(SENDS, 50000).
-define(KILLED, 1000).
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

%% Whenever that happens. A lane that counts more than its writer has is busy, and not at rest.
senders_that_are_killed_leave_no_lane_busy_test_() ->
    {timeout, 60,
     fun() ->
             Lane = weft_lane:new({tunnel, ?MODULE, #{room => 0, tried => counters:new(1, [])}},
                                  {<<>>, 0}, {weft_fault_table, lateness, ['peer@host']}),
             lists:foreach(fun(_) -> killed(spawn_monitor(fun() -> send_for_ever(Lane) end), Lane)
                           end, lists:seq(1, ?KILLED)),
             %% Looks of several minutes, in which nothing else comes.
             ?assertEqual(0, settled_bytes(Lane, 500)),
             weft_lane:close(Lane)
     end}.

%% The order of messages of several processes is not the order in which they were sent.
settled_bytes(Lane, Times) ->
    case weft_lane:queued_bytes(Lane) of
        Bytes when Bytes =:= 0; Times =:= 0 -> Bytes;
        _ -> ok = weft_lane:settle(-Times * 30000, Lane),
             receive after 10 -> settled_bytes(Lane, Times - 1) end % pacing: asks again
    end.

send_for_ever(Lane) ->
    queued = weft_lane:send(Lane, <<"packet">>, 6),
    send_for_ever(Lane).

%% Once it has sent something. A process that runs ends where it is scheduled out.
killed({Sender, Monitor}, Lane) ->
    ok = await_queued(Lane),
    exit(Sender, kill),
    receive {'DOWN', Monitor, process, Sender, killed} -> ok end,
    _ = sys:get_state(weft_lane:writer(Lane)),
    ok.

await_queued(Lane) ->
    case weft_lane:queued_bytes(Lane) of
        0 -> erlang:yield(), await_queued(Lane);
        _ -> ok
    end.

%% It has counted its packet, and stands still before it can send it.
a_sender_that_is_slow_is_not_forgotten_test() ->
    Waiting = {Counters, Index} = {atomics:new(1, []), 1},
    Socket = {tunnel, ?MODULE, #{room => 0, tried => counters:new(1, [])}},
    {ok, Writer} = weft_lane_writer:start_link(Socket, {weft_fault_table, lateness, ['peer@host']},
                                               Waiting),
    Looks = fun(AtMs) ->
                    [begin
                         ok = weft_lane_writer:settle(NowMs, Writer),
                         ok = await_idle(Writer),
                         atomics:get(Counters, Index)
                     end || NowMs <- AtMs]
            end,
    ok = atomics:add(Counters, Index, 7),
    ?assertEqual([7, 7, 7, 0], Looks([0, 1, 59999, 60000])),
    ok = weft_lane_writer:write(Writer, self(), <<"packet">>, 6),
    receive {weft_lane, ready, Socket} -> ok end,
    ?assertEqual([-7, -7, 0], Looks([0, 60000, 60001])),
    unlink(Writer),
    exit(Writer, kill).

%% A message that asked for it would wait while the writer looks.
await_idle(Writer) ->
    case process_info(Writer, [message_queue_len, status]) of
        [{message_queue_len, 0}, {status, waiting}] -> ok;
        _ -> erlang:yield(), await_idle(Writer)
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
