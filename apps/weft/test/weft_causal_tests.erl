%% SPDX-License-Identifier: Apache-2.0
%% @doc A participant of a label: which numbers it gives, and which of them it gives up when
%% processes end. The test is the participant of another node, and sees what that one is told.
-module(weft_causal_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PEER, 'peer@host').
-define(LABEL, talk).

%% Each in a process of its own, which has the tables.
participant_test_() ->
    [{Name, {spawn, ?_test(with_participant(Test))}}
     || {Name, Test} <- [{"what finds no room has no number", fun no_room_no_number/1},
                         {"a queue that is lost", fun a_queue_is_lost/1},
                         {"a queue that is not used any more", fun a_queue_ends/1},
                         {"what may come again", fun what_may_come_again/1},
                         {"what has come again", fun what_has_come_again/1},
                         {"what was acknowledged", fun what_was_acknowledged/1},
                         {"what was refused there", fun what_was_refused/1},
                         {"a connection that is lost", fun a_connection_is_lost/1},
                         {"what is given up elsewhere", fun what_is_given_up_elsewhere/1}]].

with_participant(Test) ->
    ok = weft_channels:new_tables(),
    {ok, Participant} = weft_causal:start_link(?LABEL),
    true = unlink(Participant),
    try Test(Participant) after exit(Participant, kill) end.

no_room_no_number(Participant) ->
    {Process, Bytes} = Queue = queue(),
    ?assertEqual([{ok, none}, full, full],
                 [put(Participant, none, Queue, 10, M) || M <- [one, two, three]]),
    ok = atomics:put(Bytes, 1, -(1 bsl 60)),
    ?assertEqual(closed, put(Participant, none, Queue, 10, four)),
    ok = atomics:put(Bytes, 1, 0),
    ?assertEqual({ok, none}, put(Participant, none, Queue, 10, five)),
    ?assertEqual([{one, 1}, {five, 2}], numbers(Process)),
    ?assertEqual([], told(Participant)).

a_queue_is_lost(Participant) ->
    {One, _} = Queue = queue(),
    Other = queue(),
    _ = [{ok, none} = put(Participant, none, Q, infinity, m)
         || Q <- [Queue, Queue, Other, Queue, Other]],
    ok = killed(Participant, One),
    ?assertEqual([{4, 4}, {1, 2}], told(Participant)).

a_queue_ends(Participant) ->
    {Process, _} = Queue = queue(),
    {ok, none} = put(Participant, none, Queue, infinity, m),
    Process ! never,
    ok = is_told_of(Participant, Process),
    ?assertEqual([], told(Participant)).

%% Its sender lives, when its queue is lost, and sends it again unless he is killed.
what_may_come_again(Participant) ->
    {Process, _} = Queue = queue(),
    {ok, none} = put(Participant, none, Queue, infinity, one),
    {Sender, _Place} = sender(Participant, Queue, two),
    {ok, none} = put(Participant, none, Queue, infinity, three),
    ok = killed(Participant, Process),
    ?assertEqual([{3, 3}, {1, 1}], told(Participant)),
    ok = killed(Participant, Sender),
    ?assertEqual([{2, 2}], told(Participant)).

%% He is killed when another queue has it: it is given up only if that one is lost, too.
what_has_come_again(Participant) ->
    {First, _} = Queue = queue(),
    {Sender, {_, Stamp} = Place} = sender(Participant, Queue, one),
    ok = killed(Participant, First),
    {Second, _} = Next = queue(),
    Sender ! {again, Place, {Next, infinity, 100, item(#{}, one, Stamp)}},
    receive {Sender, Result} -> ?assertEqual(ok, Result) end,
    ?assertEqual([{one, 1}], numbers(Second)),
    ok = killed(Participant, Sender),
    ?assertEqual([], told(Participant)),
    ok = killed(Participant, Second),
    ?assertEqual([{1, 1}], told(Participant)).

what_was_acknowledged(Participant) ->
    {Process, _} = Queue = queue(),
    {Sender, Place} = sender(Participant, Queue, one),
    ok = settled(Sender, Place, sent),
    ?assertEqual([], told(Participant)),
    ?assertEqual(0, monitors(Participant, Sender)),
    ok = killed(Participant, Process),
    ?assertEqual([{1, 1}], told(Participant)).

%% Its queue is still there, but does not have it any more.
what_was_refused(Participant) ->
    {Sender, Place} = sender(Participant, queue(), one),
    ok = settled(Sender, Place, refused),
    ?assertEqual([{1, 1}], told(Participant)).

%% What was on its way is lost, and may be all that the other node would have heard of this one.
a_connection_is_lost(Participant) ->
    Queue = queue(),
    _ = [{ok, none} = put(Participant, none, Queue, infinity, m) || _ <- [1, 2]],
    Participant ! {'DOWN', make_ref(), process, self(), noconnection},
    ?assertEqual([], told(Participant)),
    ?assertEqual(unknown_peer, gen_server:call(Participant, {put, ?PEER, gift(none, Queue, 1, m)})),
    _ = [{ok, none} = put(Participant, none, Queue, infinity, m) || _ <- [3, 4]],
    ?assertEqual([{1, 2}], told(Participant)).

what_is_given_up_elsewhere(Participant) ->
    Counters = weft_channel_counters:new(),
    Before = #{{self(), Participant} => 2},
    Message = {self(), third, none},
    gen_server:cast(Participant, {arrived, {self(), 3, Before}, Message, 1, Counters}),
    _ = told(Participant),
    ?assertEqual(nothing, receive third -> third after 0 -> nothing end),
    gen_server:cast(Participant, {skipped, {self(), 1, 2}}),
    ?assertEqual(third, receive third -> third after 30000 -> nothing end).

%% --- parts ------------------------------------------------------------------------------------

%% A process that takes nothing out of its mailbox, and its counter.
queue() -> {spawn(fun() -> receive never -> ok end end), atomics:new(1, [{signed, true}])}.

put(Participant, Ack, Queue, Limit, Message) ->
    gen_server:call(Participant, {put, ?PEER, self(), gift(Ack, Queue, Limit, Message)}).

gift(Ack, Queue, Limit, Message) -> {Queue, Limit, 100, item(Ack, Message, none)}.

item(Ack, Message, Stamp) -> {extra, keeper, Message, Ack, {?LABEL, Stamp}}.

%% Who has sent an acknowledged message.
sender(Participant, Queue, Message) ->
    Test = self(),
    Request = {put, ?PEER, Test, gift(#{}, Queue, infinity, Message)},
    Sender = spawn(fun() ->
                       Test ! {self(), gen_server:call(Participant, Request)},
                       sends(Test)
                   end),
    receive {Sender, {ok, Place}} -> {Sender, Place} end.

sends(Test) ->
    receive
        {again, Place, Gift} -> Test ! {self(), weft_causal:put_again(Place, Gift)};
        {settled, Place, Became} -> Test ! {self(), weft_causal:settled(Place, Became)}
    end,
    sends(Test).

settled(Sender, Place, Became) ->
    Sender ! {settled, Place, Became},
    receive {Sender, Result} -> Result end.

%% The messages in a queue, and their numbers.
numbers(Process) ->
    {messages, Messages} = process_info(Process, messages),
    [{Message, Number} || {weft_item, _, {extra, keeper, Message, _, {?LABEL, {_, Number, _}}}}
                              <- Messages].

killed(Participant, Pid) ->
    exit(Pid, kill),
    is_told_of(Participant, Pid).

%% The participant has got the message that says so.
is_told_of(Participant, Pid) ->
    weft_test_nodes:until(fun() ->
                              not is_process_alive(Pid) andalso monitors(Participant, Pid) =:= 0
                          end).

monitors(Participant, Pid) ->
    {monitors, All} = process_info(Participant, monitors),
    length([P || {process, P} <- All, P =:= Pid]).

%% What the participant has given up when it has nothing more to do.
told(Participant) ->
    _ = sys:get_state(Participant),
    given_up(Participant).

given_up(Participant) ->
    receive
        {'$gen_cast', {skipped, {Participant, First, Last}}} ->
            [{First, Last} | given_up(Participant)]
    after 0 ->
        []
    end.
