%% SPDX-License-Identifier: Apache-2.0
%% @doc What channels promise, where it is easily broken: large messages that do not compress or
%% take longer than a stream rests, messages with a label that are refused, lost, or sent again,
%% acknowledged ones that wait for longer than an attempt, labels that nobody uses any more.
-module(weft_channel_promises_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
%% Run on a node.
-export([overflow/2, send_large/3, waits_for_room/2]).
-export([what_does_not_compress_arrives/1, a_stream_rests_when_large_messages_have_arrived/1,
         pieces_for_a_former_sender_are_not_taken/1, too_much_is_told_to_the_peer/1,
         what_is_refused_holds_up_nobody/1, who_is_killed_while_he_waits_holds_up_nobody/1,
         what_is_lost_here_holds_up_nobody/1, what_is_lost_on_its_way_holds_up_nobody/1,
         what_is_sent_again_keeps_its_place/1, what_waits_is_not_sent_again/1,
         labels_that_are_not_used_make_room/1]).

-define(T, weft_channel_traffic).
-define(CHANNELS,
        #{zipped => #{compression => 6},
          strict => #{queue_bytes => 65536, policy => error},
          patient => #{queue_bytes => 65536, block_ms => 60000}}).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [what_does_not_compress_arrives, a_stream_rests_when_large_messages_have_arrived,
     pieces_for_a_former_sender_are_not_taken, too_much_is_told_to_the_peer,
     what_is_refused_holds_up_nobody, who_is_killed_while_he_waits_holds_up_nobody,
     what_is_lost_here_holds_up_nobody, what_is_lost_on_its_way_holds_up_nobody,
     what_is_sent_again_keeps_its_place, what_waits_is_not_sent_again,
     labels_that_are_not_used_make_room].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% It comes in chunks, although it was to be compressed.
what_does_not_compress_arrives(Config) ->
    [A, B] = cluster(Config),
    To = {keeper, name(B)},
    Noise = rand:bytes(300000),
    ok = call(A, weft, send, [To, Noise, zipped]),
    ok = call(A, weft, send, [[To, To], Noise, zipped]),
    ok = call(A, weft, send, [To, behind, #{channel => zipped, ack => true}]),
    until(fun() -> received(B) =:= [Noise, Noise, Noise, behind] end),
    ?assertMatch(#{lost := 0}, counters(A, zipped)).

%% The message itself travels beside its stream, which has nothing to do meanwhile.
a_stream_rests_when_large_messages_have_arrived(Config) ->
    [A, B] = cluster(Config),
    To = {keeper, name(B)},
    [First, Second] = [rand:bytes(300000) || _ <- [1, 2]],
    ok = call(A, weft, send, [To, First, #{channel => default, ack => true}]),
    [Sender] = [Pid || {{_, default, P}, Pid, _} <- call(A, weft_channels, senders, []), P < 32],
    Carriers = [Pid || {{_, _, P}, Pid} <- call(B, weft_channels, receivers, []), P >= 32],
    _ = [ok = call(B, sys, suspend, [Pid]) || Pid <- Carriers],
    ok = call(A, weft, send, [To, Second, default]),
    Info = fun() -> call(A, gen_server, call, [Sender, info]) end,
    until(fun() ->
              _ = call(A, erlang, send, [Sender, idle]),
              maps:get(unacked_bytes, Info()) =:= 0
          end),
    _ = [{call(A, erlang, send, [Sender, idle]), Info()} || _ <- lists:seq(1, 10)],
    _ = [ok = call(B, sys, resume, [Pid]) || Pid <- Carriers],
    until(fun() -> received(B) =:= [First, Second] end),
    until(fun() ->
              _ = call(A, erlang, send, [Sender, idle]),
              not call(A, erlang, is_process_alive, [Sender])
          end),
    ?assertMatch(#{lost := 0}, counters(A, default)).

%% Those who have the pieces outlive the process that numbers them.
pieces_for_a_former_sender_are_not_taken(Config) ->
    [A, B] = cluster(Config),
    To = {keeper, name(B)},
    [First, Former, Third, Fourth] = [rand:bytes(300000) || _ <- [1, 2, 3, 4]],
    ok = call(A, weft, send, [To, First, #{channel => default, ack => true}]),
    [Sender] = [Pid || {{_, default, P}, Pid, _} <- call(A, weft_channels, senders, []), P < 32],
    Carriers = [Pid || {{_, _, P}, Pid} <- call(B, weft_channels, receivers, []), P >= 32],
    _ = [ok = call(B, sys, suspend, [Pid]) || Pid <- Carriers],
    ok = call(A, weft, send, [To, Former, default]),
    until(fun() -> maps:get(unacked_bytes, call(A, gen_server, call, [Sender, info])) =:= 0 end),
    true = call(A, erlang, exit, [Sender, kill]),
    until(fun() -> not call(A, erlang, is_process_alive, [Sender]) end),
    _ = [ok = call(A, weft, send, [To, Message, default]) || Message <- [Third, Fourth]],
    _ = [ok = call(B, sys, resume, [Pid]) || Pid <- Carriers],
    until(fun() -> [Third, Fourth] -- received(B) =:= [] end).

%% It repeats what was not taken.
too_much_is_told_to_the_peer(Config) ->
    [A, B] = cluster([{window_bytes, 65536}], Config),
    ok = call(A, weft, send, [{keeper, name(B)}, first, #{channel => default, ack => true}]),
    [Receiver] = [Pid || {{_, <<"default">>, _}, Pid} <- call(B, weft_channels, receivers, [])],
    ?assertEqual({weft_handler, {drop, 7}}, call(B, ?MODULE, overflow, [Receiver, 7])).

%% What the link is told for which a receiver gets more than it can keep until earlier numbers come.
overflow(Receiver, Label) ->
    Payload = binary:copy(<<0>>, 10 bsl 20),
    _ = [Receiver ! {weft_packet, none, self(), none, Label, {data, none, N, frames, Payload}}
         || N <- [1000, 1001]],
    receive {weft_handler, _} = Told -> Told after 5000 -> nothing end.

%% It has had its place in the order of the label.
what_is_refused_holds_up_nobody(Config) ->
    [A, B] = cluster([{window_bytes, 65536}], Config),
    To = {keeper, name(B)},
    Labelled = #{channel => strict, label => talk},
    ok = call(A, weft, send, [To, first, Labelled#{ack => true}]),
    ok = weft_test_nodes:pause(B),
    #{ok := Sent} = call(A, ?T, fill, [To, 10000, 800, strict]),
    ?assertEqual({error, overloaded}, call(A, weft, send, [To, refused, Labelled])),
    ?assertEqual({error, {not_delivered, overloaded, 1}},
                 call(A, weft, send, [To, refused, Labelled#{ack => #{retries => 0}}])),
    ok = weft_test_nodes:continue(B),
    until(fun() -> call(B, ?T, count, [keeper]) =:= Sent + 1 end),
    ?assertEqual(ok, call(A, weft, send, [To, last, Labelled#{ack => true}])),
    ?assertEqual(last, lists:last(received(B))),
    ?assertMatch(#{causal_forced := 0}, counters(B, strict)).

%% He can not say any more that he has not sent his message.
who_is_killed_while_he_waits_holds_up_nobody(Config) ->
    [A, B] = cluster([{window_bytes, 65536}], Config),
    To = {keeper, name(B)},
    Labelled = #{channel => patient, label => talk},
    ok = call(A, weft, send, [To, first, Labelled#{ack => true}]),
    ok = weft_test_nodes:pause(B),
    Waiting = [call(A, ?MODULE, waits_for_room, [To, Options])
               || Options <- [#{channel => patient}, Labelled]],
    _ = [true = call(A, erlang, exit, [Pid, kill]) || Pid <- Waiting],
    ok = weft_test_nodes:continue(B),
    ?assertEqual(ok, call(A, weft, send, [To, last, Labelled#{ack => true}])),
    ?assertEqual(last, lists:last(received(B))),
    ?assertMatch(#{causal_forced := 0}, counters(B, patient)),
    until(fun() -> is_nobody_watched(A, patient) end).

%% The participant of the label watches the process of its queue, and no sender.
is_nobody_watched(Node, Channel) ->
    {ok, Participant} = call(Node, weft_channels, label, [talk]),
    {monitors, Monitors} = call(Node, erlang, process_info, [Participant, monitors]),
    Queues = [Pid || {{_, Name, _}, Pid, _} <- call(Node, weft_channels, senders, []),
                     Name =:= Channel],
    [Pid || {process, Pid} <- Monitors, node(Pid) =:= name(Node)] -- Queues =:= [].

%% @doc A process that has sent until it waits for room in the queue.
waits_for_room(To, Options) ->
    Pid = spawn(fun() -> send_without_end(To, Options) end),
    until(fun() ->
              {current_function, {Module, Function, _}} = process_info(Pid, current_function),
              {Module, Function} =:= {weft_channel_entry, wait}
          end),
    Pid.

send_without_end(To, Options) ->
    ok = weft:send(To, binary:copy(<<1>>, 10000), Options),
    send_without_end(To, Options).

%% It waits behind a large message, and is lost with the process that has parts of that one.
what_is_lost_here_holds_up_nobody(Config) ->
    [A, B] = cluster(Config),
    To = {keeper, name(B)},
    Labelled = #{channel => default, label => talk},
    First = rand:bytes(300000),
    ok = call(A, weft, send, [To, First, Labelled#{ack => true}]),
    Senders = [{P, Pid} || {{_, default, P}, Pid, _} <- call(A, weft_channels, senders, [])],
    [Sender] = [Pid || {P, Pid} <- Senders, P < 32],
    Carriers = [Pid || {{_, _, P}, Pid} <- call(B, weft_channels, receivers, []), P >= 32],
    _ = [ok = call(B, sys, suspend, [Pid]) || Pid <- Carriers],
    ok = call(A, ?MODULE, send_large, [To, 17 bsl 20, default]),
    ok = call(A, weft, send, [To, lost, Labelled]),
    until(fun() -> maps:get(queued_bytes, call(A, gen_server, call, [Sender, info])) > 0 end),
    _ = [call(A, erlang, exit, [Pid, kill]) || {P, Pid} <- Senders, P >= 32],
    until(fun() -> not call(A, erlang, is_process_alive, [Sender]) end),
    _ = [call(B, sys, resume, [Pid]) || Pid <- Carriers],
    ?assertEqual(ok, call(A, weft, send, [To, last, Labelled#{ack => true}])),
    ?assertEqual([First, last], received(B)),
    ?assertMatch(#{lost := 1}, counters(A, default)),
    ?assertMatch(#{causal_forced := 0}, counters(B, default)).

%% A stream ends while both nodes go on, and what was on its way is lost. One of the messages would
%% come again, but its sender is killed.
what_is_lost_on_its_way_holds_up_nobody(Config) ->
    [A, B] = cluster(Config),
    To = {keeper, name(B)},
    Labelled = #{channel => default, label => talk},
    ok = call(A, weft, send, [To, first, Labelled#{ack => true}]),
    Receiver = held_up(B),
    ok = call(A, weft, send, [To, lost, Labelled]),
    Patient = Labelled#{ack => #{retries => 0, timeout_ms => 60000}},
    Caller = call(A, erlang, spawn, [weft, send, [To, lost_too, Patient]]),
    until(fun() -> maps:get(messages_out, counters(A, default)) =:= 3 end),
    [Sender] = [Pid || {{_, default, _}, Pid, _} <- call(A, weft_channels, senders, [])],
    _ = [true = call(Node, erlang, exit, [Pid, kill])
         || {Node, Pid} <- [{B, Receiver}, {A, Sender}, {A, Caller}]],
    until(fun() -> not call(A, erlang, is_process_alive, [Sender]) end),
    ?assertEqual(ok, call(A, weft, send, [To, last, Labelled#{ack => true}])),
    ?assertEqual([first, last], received(B)),
    ?assertMatch(#{causal_forced := 0}, counters(B, default)),
    until(fun() -> is_nobody_watched(A, default) end).

%% Those behind it wait for it: it is not given up while its sender may send it again.
what_is_sent_again_keeps_its_place(Config) ->
    [A, B] = cluster(Config),
    To = {keeper, name(B)},
    Labelled = #{channel => default, label => talk},
    ok = call(A, weft, send, [To, first, Labelled#{ack => true}]),
    Receiver = held_up(B),
    Again = Labelled#{ack => #{retries => 1, timeout_ms => 2500}},
    _ = call(A, erlang, spawn, [weft, send, [To, again, Again]]),
    until(fun() -> maps:get(messages_out, counters(A, default)) =:= 2 end),
    [Sender] = [Pid || {{_, default, _}, Pid, _} <- call(A, weft_channels, senders, [])],
    _ = [true = call(Node, erlang, exit, [Pid, kill])
         || {Node, Pid} <- [{B, Receiver}, {A, Sender}]],
    until(fun() -> not call(A, erlang, is_process_alive, [Sender]) end),
    ok = call(A, weft, send, [To, behind, Labelled]),
    until(fun() -> call(B, ?T, count, [keeper]) =:= 3 end),
    ?assertEqual([first, again, behind], received(B)),
    until(fun() -> is_nobody_watched(A, default) end).

%% The process that takes what comes on the channel `default', and stands still.
held_up(Node) ->
    [Receiver] = [Pid || {{_, <<"default">>, _}, Pid} <- call(Node, weft_channels, receivers, [])],
    ok = call(Node, sys, suspend, [Receiver]),
    Receiver.

%% @doc It is made there: on its way through standard input it would take seconds of a processor.
send_large(To, Bytes, Channel) ->
    weft:send(To, binary:copy(<<1>>, Bytes), Channel).

%% Its stream loses nothing, so the receiver need not remember it for as long as it waits there.
what_waits_is_not_sent_again(Config) ->
    [A, B] = cluster(Config),
    To = {keeper, name(B)},
    ok = call(A, weft, send, [To, first, #{channel => default, ack => true}]),
    [Receiver] = [Pid || {{_, <<"default">>, _}, Pid} <- call(B, weft_channels, receivers, [])],
    ok = call(B, sys, suspend, [Receiver]),
    Ack = #{channel => default, ack => #{retries => 3, timeout_ms => 100}},
    ?assertEqual({error, {not_delivered, timeout, 4}}, call(A, weft, send, [To, late, Ack])),
    ok = call(B, sys, resume, [Receiver]),
    ok = call(A, weft, send, [To, last, #{channel => default, ack => true}]),
    ?assertEqual([first, late, last], received(B)),
    ?assertMatch(#{messages_out := 3}, counters(A, default)).

%% A program may take a label for each conversation.
labels_that_are_not_used_make_room(Config) ->
    [A, B] = cluster(Config),
    Labelled = #{channel => default, label => talk, ack => true},
    ok = call(A, weft, send, [{keeper, name(B)}, first, Labelled]),
    {ok, Participant} = call(A, weft_channels, label, [talk]),
    Looks = fun() ->
                _ = [call(A, erlang, send, [Participant, look]) || _ <- [1, 2]],
                _ = call(A, sys, get_state, [Participant]),
                {ok, Now} = call(A, weft_channels, label, [talk]),
                Now
            end,
    ?assertEqual(Participant, Looks()),
    _ = [{ok, _} = call(A, weft_channels, label, [{conversation, N}]) || N <- lists:seq(1, 500)],
    ?assertNotEqual(Participant, Looks()),
    ok = call(A, weft, send, [{keeper, name(B)}, second, Labelled]),
    until(fun() -> not call(A, erlang, is_process_alive, [Participant]) end),
    ok = call(A, weft, send, [{keeper, name(B)}, third, Labelled]),
    ?assertEqual([first, second, third], received(B)).

%% --- steps ------------------------------------------------------------------------------------

cluster(Config) -> cluster([], Config).

cluster(More, Config) ->
    [begin
         Node = weft_test_nodes:start(Name, #{config => [{channels, ?CHANNELS} | More]},
                                      ?config(place, Config)),
         ok = call(Node, ?T, start, [[keeper]]),
         Node
     end || Name <- [a, b]].

received(Node) -> call(Node, ?T, received, [keeper]).

counters(Node, Channel) ->
    maps:get(counters, maps:get(Channel, call(Node, weft_channel, info, []))).

call(Node, Module, Function, Args) -> weft_test_nodes:call(Node, Module, Function, Args, 60000).
