%% SPDX-License-Identifier: Apache-2.0
%% @doc What subscribers on one node get, with a real broadcaster and links that are played.
-module(weft_broadcast_inbox_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LIMITS, {100, 100000}).
-define(PEER, 'b@host').
-define(PATIENCE_MS, 10000).

setup_test_() ->
    {foreach, fun start/0, fun stop/1,
     [{timeout, 30, Case}
      || Case <- [fun a_message_reaches_the_subscribers_of_its_scope_case/0,
                  fun who_subscribes_twice_gets_a_message_once_case/0,
                  fun a_scope_is_any_term_case/0,
                  fun who_has_unsubscribed_or_ended_gets_nothing_case/0,
                  fun messages_of_neighbours_arrive_under_the_name_of_the_sender_case/0,
                  fun what_this_version_does_not_send_is_counted_case/0,
                  fun who_is_behind_loses_messages_and_is_told_how_many_case/0,
                  fun while_the_inbox_is_behind_messages_are_left_out_case/0,
                  fun senders_wait_for_an_inbox_that_is_behind_case/0,
                  fun what_was_missed_for_good_is_told_to_all_case/0,
                  fun subscriptions_outlive_the_inbox_case/0,
                  fun a_message_over_the_limit_is_an_error_case/0,
                  fun without_a_broadcaster_there_is_an_error_case/0]]}.

start() ->
    Test = self(),
    Pid = spawn_link(fun() -> owner(Test) end),
    receive {Pid, started} -> unlink(Pid), Pid end.

%% Table, broadcaster and inbox belong to a process that ends with the case.
owner(Test) ->
    true = register(weft_fake_links_owner, self()),
    ok = weft_broadcast_inbox:new_table(),
    {ok, _} = weft_driver:start_link(weft_broadcast, weft_plumtree_core,
                                     #{link_module => weft_fake_links, seed => 1,
                                       incarnation => 1}),
    {ok, Inbox} = weft_broadcast_inbox:start_link(weft_broadcast, ?LIMITS),
    process_flag(trap_exit, true),
    Test ! {self(), started},
    keep(Inbox).

keep(Inbox) ->
    receive
        {'EXIT', Inbox, _} ->
            {ok, Again} = weft_broadcast_inbox:start_link(weft_broadcast, ?LIMITS),
            keep(Again);
        stop -> ok;
        _ -> keep(Inbox)
    end.

stop(Owner) ->
    Ref = monitor(process, Owner),
    Refs = [monitor(process, Name) || Name <- [weft_broadcast, weft_broadcast_inbox]],
    Owner ! stop,
    receive {'DOWN', Ref, process, Owner, _} -> ok end,
    _ = [exit(whereis(Name), kill) || Name <- [weft_broadcast, weft_broadcast_inbox],
                                      whereis(Name) =/= undefined],
    [receive {'DOWN', R, process, _, _} -> ok end || R <- Refs],
    flush().

a_message_reaches_the_subscribers_of_its_scope_case() ->
    ok = weft_broadcast:subscribe(chat),
    Other = subscriber([chat, news]),
    ok = weft_broadcast:broadcast(chat, {hello, self()}),
    ?assertEqual({weft_broadcast, chat, node(), {hello, self()}}, next()),
    ok = weft_broadcast:broadcast(news, 1),
    ?assertEqual([{weft_broadcast, chat, node(), {hello, self()}},
                  {weft_broadcast, news, node(), 1}], [got(Other), got(Other)]),
    ?assertMatch(#{sent := 2, received := 2, delivered := 3,
                   subscribers := #{chat := 2, news := 1}}, weft_broadcast:info()),
    nothing().

who_subscribes_twice_gets_a_message_once_case() ->
    [ok, ok] = [weft_broadcast:subscribe(chat) || _ <- [1, 2]],
    ok = weft_broadcast:broadcast(chat, 1),
    ok = weft_broadcast:broadcast(chat, 2),
    ?assertMatch([{_, _, _, 1}, {_, _, _, 2}], [next(), next()]),
    nothing().

a_scope_is_any_term_case() ->
    Scopes = [chat, {room, 7}, <<"bytes">>, [1.5], #{b => 2, a => 1}, self(), make_ref()],
    [begin
         ok = weft_broadcast:subscribe(Scope),
         ok = weft_broadcast:broadcast(Scope, Scope),
         ?assertEqual({weft_broadcast, Scope, node(), Scope}, next())
     end || Scope <- Scopes].

who_has_unsubscribed_or_ended_gets_nothing_case() ->
    ok = weft_broadcast:subscribe(chat),
    ok = weft_broadcast:unsubscribe(chat),
    ok = weft_broadcast:unsubscribe(never),
    Ended = subscriber([chat]),
    Ref = monitor(process, Ended),
    exit(Ended, kill),
    receive {'DOWN', Ref, process, Ended, _} -> ok end,
    until(fun() -> maps:get(subscribers, weft_broadcast:info()) =:= #{} end),
    ok = weft_broadcast:broadcast(chat, 1),
    ?assertMatch(#{received := 1, delivered := 0}, weft_broadcast:info()),
    ?assertEqual([], ets:tab2list(weft_broadcast_inbox)),
    nothing().

messages_of_neighbours_arrive_under_the_name_of_the_sender_case() ->
    ok = weft_broadcast:subscribe(chat),
    gossip(1, payload(chat, "hello")),
    gossip(1, payload(chat, "hello")),
    ?assertEqual({weft_broadcast, chat, 'root@host', "hello"}, next()),
    nothing().

what_this_version_does_not_send_is_counted_case() ->
    ok = weft_broadcast:subscribe(chat),
    [gossip(N, Payload) || {N, Payload} <- [{1, <<>>}, {2, <<9:32, 1>>}, {3, <<1:32, 1, 2>>},
                                            {4, <<(payload(chat, 1))/binary, "rest">>},
                                            {5, binary:part(payload(chat, x), 0, 12)}]],
    gossip(6, payload(chat, well)),
    settle(),
    %% What follows a term is no harm.
    ?assertEqual([1, well], [element(4, next()), element(4, next())]),
    ?assertMatch(#{malformed := 4}, weft_broadcast:info()),
    nothing().

%% The subscriber is told before it gets more, and what it missed is what is lacking.
who_is_behind_loses_messages_and_is_told_how_many_case() ->
    Slow = slow_subscriber(chat),
    [ok = weft_broadcast:broadcast(chat, N) || N <- lists:seq(1, 300)],
    #{delivered := Delivered, dropped := Dropped} = weft_broadcast:info(),
    ?assertEqual(300, Delivered + Dropped),
    ?assert(Delivered =< 100),
    Slow ! {go, self()},
    Got = [got(Slow) || _ <- lists:seq(1, Delivered)],
    ?assertEqual(lists:seq(1, Delivered), [N || {weft_broadcast, _, _, N} <- Got]),
    ?assertEqual({weft_broadcast_missed, chat, mailbox_full, Dropped}, got(Slow)),
    ok = weft_broadcast:broadcast(chat, again),
    ?assertMatch({weft_broadcast, chat, _, again}, got(Slow)).

%% Those are not decoded, so nothing is found wrong with them. Who is behind for another reason
%% hears of all at once.
while_the_inbox_is_behind_messages_are_left_out_case() ->
    Slow = slow_subscriber(chat),
    [ok = weft_broadcast:broadcast(chat, N) || N <- lists:seq(1, 150)],
    #{delivered := Before, dropped := Dropped} = weft_broadcast:info(),
    ok = weft_broadcast:subscribe(chat),
    ok = sys:suspend(weft_broadcast_inbox),
    Encoded = term_to_binary(chat),
    Wrong = <<(byte_size(Encoded)):32, Encoded/binary, 131, 255>>,
    _ = [notice(N, Wrong) || N <- lists:seq(1, 20100)],
    notice(20101, payload(chat, well)),
    ok = sys:resume(weft_broadcast_inbox),
    {weft_broadcast_missed, chat, mailbox_full, LeftOut} = next(),
    ?assert(LeftOut >= 10000 andalso LeftOut =< 11000),
    ?assertEqual(well, element(4, next())),
    #{malformed := Malformed} = weft_broadcast:info(),
    ?assertEqual(20100, LeftOut + Malformed),
    Slow ! {go, self()},
    _ = [{weft_broadcast, _, _, _} = got(Slow) || _ <- lists:seq(1, Before)],
    %% Besides what was left out, it has not got the last one.
    ?assertEqual({weft_broadcast_missed, chat, mailbox_full, Dropped + LeftOut + 1}, got(Slow)),
    nothing().

senders_wait_for_an_inbox_that_is_behind_case() ->
    IsBusy = fun(Bytes) -> weft_broadcast_links:is_busy(whereis(weft_broadcast), Bytes) end,
    ok = sys:suspend(weft_broadcast_inbox),
    [ok = weft_broadcast:broadcast(chat, N) || N <- lists:seq(1, 1000)],
    ?assertEqual([false, true], [IsBusy(Bytes) || Bytes <- [100, 1048576]]),
    ok = weft_broadcast:broadcast(chat, 1001),
    ?assert(IsBusy(100)),
    ok = sys:resume(weft_broadcast_inbox),
    settle(),
    ?assertNot(IsBusy(1048576)).

what_was_missed_for_good_is_told_to_all_case() ->
    [ok = weft_broadcast:subscribe(Scope) || Scope <- [a, b]],
    weft_broadcast_inbox ! {weft_notice, weft_broadcast, {missed, ?PEER, 3}},
    ?assertEqual([{weft_broadcast_missed, Scope, ?PEER, 3} || Scope <- [a, b]],
                 lists:sort([next(), next()])),
    ?assertMatch(#{missed := 3}, weft_broadcast:info()).

subscriptions_outlive_the_inbox_case() ->
    ok = weft_broadcast:subscribe(chat),
    Inbox = whereis(weft_broadcast_inbox),
    exit(Inbox, kill),
    until(fun() -> not lists:member(whereis(weft_broadcast_inbox), [Inbox, undefined]) end),
    ?assertMatch(#{subscribers := #{chat := 1}}, weft_broadcast:info()),
    ok = weft_broadcast:broadcast(chat, 1),
    ?assertMatch({weft_broadcast, chat, _, 1}, next()).

a_message_over_the_limit_is_an_error_case() ->
    {error, {too_large, Bytes, 1048576}} =
        weft_broadcast:broadcast(chat, binary:copy(<<0>>, 1048576)),
    ?assert(Bytes > 1048576),
    ?assertEqual(ok, weft_broadcast:broadcast(chat, binary:copy(<<0>>, 1048000))).

without_a_broadcaster_there_is_an_error_case() ->
    true = unregister(weft_broadcast),
    true = unregister(weft_broadcast_inbox),
    ?assertEqual({error, not_running}, weft_broadcast:broadcast(chat, 1)),
    ?assertEqual({error, not_running}, weft_broadcast:subscribe(chat)),
    ?assertEqual(ok, weft_broadcast:unsubscribe(chat)),
    ?assertEqual(#{}, weft_broadcast:info()).

%% --- helpers ----------------------------------------------------------------------------------

gossip(Number, Payload) ->
    weft_broadcast ! {weft_link, message, ?PEER,
                      {1, {gossip, {{'root@host', 1}, Number}, 1, Payload}}}.

notice(Number, Payload) ->
    weft_broadcast_inbox ! {weft_notice, weft_broadcast,
                            {deliver, {{'root@host', 1}, Number}, 1, Payload}}.

payload(Scope, Message) ->
    Encoded = term_to_binary(Scope),
    <<(byte_size(Encoded)):32, Encoded/binary, (term_to_binary(Message))/binary>>.

subscriber(Scopes) ->
    Test = self(),
    Pid = spawn_link(fun() -> unlink(Test), pass_on(Test) end),
    [ok = weft_broadcast:subscribe(Scope, Pid) || Scope <- Scopes],
    Pid.

%% Takes nothing from its mailbox before it is told to go.
slow_subscriber(Scope) ->
    Test = self(),
    Pid = spawn_link(fun() -> receive {go, Test} -> pass_on(Test) end end),
    ok = weft_broadcast:subscribe(Scope, Pid),
    Pid.

pass_on(Test) ->
    receive Message -> Test ! {self(), Message}, pass_on(Test) end.

got(Pid) ->
    receive {Pid, Message} -> Message after ?PATIENCE_MS -> error(nothing_came) end.

next() ->
    receive Message when element(1, Message) =:= weft_broadcast;
                         element(1, Message) =:= weft_broadcast_missed -> Message
    after ?PATIENCE_MS -> error(nothing_came)
    end.

%% All that was sent has been delivered: the answers come after it.
nothing() ->
    settle(),
    receive Message -> error({unexpected, Message}) after 0 -> ok end.

settle() ->
    _ = weft_driver:drops(weft_broadcast),
    _ = weft_broadcast:info(),
    ok.

until(Condition) -> until(Condition, erlang:monotonic_time(millisecond) + ?PATIENCE_MS).

until(Condition, Deadline) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse error({never_true, Condition}),
            receive after 5 -> until(Condition, Deadline) end % pacing: of this very loop
    end.

flush() ->
    receive _ -> flush() after 0 -> ok end.
