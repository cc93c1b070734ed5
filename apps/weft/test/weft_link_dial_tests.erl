%% SPDX-License-Identifier: Apache-2.0
%% @doc Attempts one at a time, pauses that grow, and names that epmd has forgotten.
-module(weft_link_dial_tests).

-include_lib("eunit/include/eunit.hrl").

-define(DIAL, weft_link_dial).
-define(PEER, 'nobody@host.invalid').
-define(ADDRESS, {{127, 0, 0, 1}, 4000}).

a_pause_delays_the_next_attempt_until_it_is_over_or_cancelled_test() ->
    Pausing = ?DIAL:pause(1, ?DIAL:new()),
    ?assertNot(?DIAL:may_start(Pausing)),
    ok = told(),
    ?assert(?DIAL:may_start(?DIAL:pause_is_over(Pausing))),
    ?assert(?DIAL:may_start(?DIAL:cancel_pause(?DIAL:pause(60000, ?DIAL:new())))).

a_second_pause_changes_nothing_test() ->
    _ = ?DIAL:pause(60000, ?DIAL:pause(1, ?DIAL:new())),
    ok = told().

%% 20, 40, 80, 160 and 320 ms.
each_pause_after_a_failure_is_longer_than_the_one_before_test() ->
    ok = flushed(),
    StartMs = erlang:monotonic_time(millisecond),
    _ = lists:foldl(fun(_, Dial) ->
                            Later = ?DIAL:retry_later(Dial),
                            ok = told(),
                            ?DIAL:pause_is_over(Later)
                    end, ?DIAL:new(), lists:seq(1, 5)),
    ?assert(erlang:monotonic_time(millisecond) - StartMs >= 620).

%% A node that is to come dials by itself. 1 s is the longest pause otherwise.
a_name_that_is_unknown_for_long_is_asked_for_less_often_test() ->
    Missed = lists:foldl(fun(_, Dial) ->
                             ?DIAL:cancel_pause(?DIAL:retry_later(failed(no_such_node, Dial)))
                         end, ?DIAL:new(), lists:seq(1, 40)),
    ok = flushed(),
    Pausing = ?DIAL:retry_later(Missed),
    receive dial -> error(too_soon) after 1500 -> ok end, % pacing: that it does not come
    Known = ?DIAL:retry_later(?DIAL:reached(undefined, Pausing)),
    ok = told(),
    _ = ?DIAL:cancel_pause(?DIAL:pause_is_over(Known)).

a_lane_ends_pauses_and_makes_the_next_one_short_test() ->
    Tired = lists:foldl(fun(_, Dial) -> ?DIAL:cancel_pause(?DIAL:retry_later(Dial)) end,
                        ?DIAL:new(), lists:seq(1, 20)),
    Reached = ?DIAL:reached(undefined, ?DIAL:retry_later(Tired)),
    ?assert(?DIAL:may_start(Reached)),
    ?assertEqual(?DIAL:new(), Reached).

%% Wherever its port is known: there it was dialled, or it has said so.
who_is_unknown_twice_in_a_row_and_refuses_is_gone_test_() ->
    [fun() ->
             Once = failed(no_such_node, Known),
             ?assertEqual([false, true, false, false],
                          [?DIAL:is_gone(Dial)
                           || Dial <- [Once, failed(no_such_node, Once),
                                       failed(no_such_node, failed(econnrefused, Once)),
                                       failed(no_such_node, ?DIAL:reached(undefined, Once))]])
     end || Known <- [?DIAL:reached(?ADDRESS, ?DIAL:new()), ?DIAL:listening(4000, ?DIAL:new())]].

%% The epmd of the peer is started again at 0, and the peer registers again at most 2 s later. This
%% node may look at any times meanwhile: nothing says that the peer has ended. Of one that is not
%% back a good second later it is believed, if anybody goes on looking.
an_epmd_that_is_started_again_is_no_death_test() ->
    _ = rand:seed(exsss, 7),
    [begin
         Until = rand:uniform(2000),
         Looks = lists:sort([rand:uniform(Until) || _ <- lists:seq(1, rand:uniform(40))]),
         Looked = looked(Looks, ?DIAL:new()),
         ?assertNot(?DIAL:is_gone(Looked)),
         ?assertNot(?DIAL:is_gone(?DIAL:reached(undefined, Looked))),
         ?assert(?DIAL:is_in_doubt(no_such_node, Looked)),
         ?assert(?DIAL:is_gone(looked([hd(Looks) + 3000], Looked)))
     end || _ <- lists:seq(1, 1000)].

looked(TimesMs, Dial) ->
    lists:foldl(fun(Ms, Looking) -> ?DIAL:failed(no_such_node, Ms, Looking) end, Dial, TimesMs).

%% Of the earlier incarnation only the host is still right.
a_port_that_is_named_takes_the_place_of_the_one_before_test() ->
    Named = ?DIAL:listening(4001, ?DIAL:reached(?ADDRESS, ?DIAL:new())),
    ?assertEqual(?DIAL:reached({{127, 0, 0, 1}, 4001}, ?DIAL:new()), Named),
    ?assertEqual(?DIAL:listening(2, ?DIAL:new()),
                 ?DIAL:listening(2, ?DIAL:listening(1, ?DIAL:new()))).

%% Until it is gone, or for some attempts if the port refuses while epmd knows the name.
it_is_in_doubt_for_some_attempts_whether_a_peer_has_stopped_test() ->
    New = ?DIAL:listening(4000, ?DIAL:new()),
    Once = failed(no_such_node, New),
    Refused = fun(Times) ->
                      lists:foldl(fun(_, Dial) ->
                                          ?DIAL:cancel_pause(
                                             ?DIAL:retry_later(failed(econnrefused, Dial)))
                                  end, New, lists:seq(1, Times))
              end,
    ?assertEqual([true, false, true, false, false, false],
                 [?DIAL:is_in_doubt(no_such_node, Once),
                  ?DIAL:is_in_doubt(no_such_node, failed(no_such_node, Once)),
                  ?DIAL:is_in_doubt(econnrefused, Refused(3)),
                  ?DIAL:is_in_doubt(econnrefused, Refused(10)),
                  ?DIAL:is_in_doubt(timeout, Once), ?DIAL:is_in_doubt(undefined, ?DIAL:new())]).

an_attempt_is_ended_once_by_its_own_process_test() ->
    Started = ?DIAL:start(?PEER, {{lane, <<"files">>, 1}, <<"token">>}, fun erlang:node/0,
                          ?DIAL:new()),
    ?assert(?DIAL:is_under_way(Started)),
    ?assertNot(?DIAL:may_start(Started)),
    ?assertNot(?DIAL:is_calling(Started)),
    ?assertEqual(none, ?DIAL:ended(self(), Started)),
    {Pid, Reason} = receive {dialled, P, {error, R}} -> {P, R} after 30000 -> error(not_told) end,
    ?assertNotEqual(undefined, Reason),
    {{lane, <<"files">>, 1}, Ended} = ?DIAL:ended(Pid, Started),
    ?assertEqual(none, ?DIAL:ended(Pid, Ended)),
    ?assert(?DIAL:may_start(Ended)).

who_is_looked_up_is_not_called_test() ->
    LookedUp = ?DIAL:look_up('nobody@127.0.0.1', ?DIAL:new()),
    ?assertEqual({true, false}, {?DIAL:is_under_way(LookedUp), ?DIAL:is_calling(LookedUp)}),
    {Pid, Result} = receive {dialled, P, R} -> {P, R} after 30000 -> error(not_told) end,
    ?assertEqual({error, no_such_node}, Result),
    {link, Ended} = ?DIAL:ended(Pid, LookedUp),
    ?assert(?DIAL:may_start(Ended)).

an_attempt_that_waits_for_the_address_is_no_call_test() ->
    Started = ?DIAL:start('nobody@127.0.0.1', link, fun() -> false end, ?DIAL:new()),
    ?assert(?DIAL:is_calling(Started)),
    ?assertNot(?DIAL:is_calling(?DIAL:new())),
    Pid = receive {dialled, P, {error, _}} -> P after 30000 -> error(not_told) end,
    Waiting = ?DIAL:told(waiting, Pid, ?DIAL:told(waiting, self(), Started)),
    ?assert(?DIAL:is_calling(?DIAL:told(waiting, self(), Started))),
    ?assertNot(?DIAL:is_calling(Waiting)),
    ?assert(?DIAL:is_under_way(Waiting)),
    ?assertNot(?DIAL:may_start(Waiting)),
    ?assertNot(?DIAL:is_calling(?DIAL:told(calling, self(), Waiting))),
    ?assert(?DIAL:is_calling(?DIAL:told(calling, Pid, Waiting))),
    {link, Ended} = ?DIAL:ended(Pid, Waiting),
    %% They came late.
    ?assertNot(?DIAL:is_calling(?DIAL:told(calling, Pid, ?DIAL:told(waiting, Pid, Ended)))).

%% As behind a firewall that drops what comes from here. The peer may call meanwhile.
an_attempt_that_nobody_answers_is_no_call_test_() ->
    waiting(false, fun(Pid, Waiting, _Listen) ->
        ?assertNot(?DIAL:is_calling(Waiting)),
        true = exit(Pid, kill),
        %% One that the kernel took late ends for another reason.
        receive {'EXIT', Pid, _Reason} -> ok end
    end).

%% Its link is up by the time that something answers: another call would take that link down.
who_has_called_meanwhile_is_not_called_test_() ->
    waiting(true, fun(Pid, _Waiting, Listen) ->
        Server = spawn_link(fun() -> accept_all(Listen) end),
        Result = receive {dialled, Pid, R} -> R; {'EXIT', Pid, R} -> R
                 after 20000 -> still_waits
                 end,
        ?assertEqual({error, simultaneous}, Result),
        true = unlink(Server),
        true = exit(Server, kill)
    end).

%% A test with an attempt that waits for an answer at that port.
waiting(IsUp, Test) ->
    {timeout, 60, fun() ->
        Trapping = process_flag(trap_exit, true),
        Ip = {127, 0, 0, 1},
        {ok, Listen} = gen_tcp:listen(0, [{ip, Ip}, {backlog, 1}]),
        {ok, Port} = inet:port(Listen),
        {Pid, Waiting} = begun({Ip, Port}, fun() -> IsUp end),
        Test(Pid, Waiting, Listen),
        ok = gen_tcp:close(Listen),
        true = process_flag(trap_exit, Trapping)
    end}.

accept_all(Listen) ->
    {ok, _Socket} = gen_tcp:accept(Listen),
    accept_all(Listen).

%% Nobody accepts there. How many connections the kernel takes all the same is its own affair. An
%% attempt that is among them fails at once, as this node has no identity to show.
begun(Address, IsUp) ->
    Started = ?DIAL:start('nobody@127.0.0.1', link, IsUp, ?DIAL:reached(Address, ?DIAL:new())),
    case first_word(Started) of
        {waiting, Pid} -> {Pid, ?DIAL:told(waiting, Pid, Started)};
        taken -> begun(Address, IsUp)
    end.

%% The timers of attempts that have ended, in other tests, may still run.
first_word(Started) ->
    receive
        {waiting, Pid} ->
            case ?DIAL:ended(Pid, Started) of
                none -> first_word(Started);
                _ -> {waiting, Pid}
            end;
        {'EXIT', Pid, _Reason} when is_pid(Pid) ->
            case ?DIAL:ended(Pid, Started) of
                none -> first_word(Started);
                _ -> taken
            end
    after 20000 -> error(is_a_call)
    end.

failed(Reason, Dial) -> ?DIAL:failed(Reason, erlang:monotonic_time(millisecond), Dial).

told() ->
    receive dial -> ok after 10000 -> error(not_told) end.

%% Of pauses that were over before they were cancelled, on a busy machine; in other tests, too.
flushed() ->
    receive dial -> flushed() after 0 -> ok end.
