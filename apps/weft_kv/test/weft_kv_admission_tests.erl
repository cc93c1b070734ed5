%% SPDX-License-Identifier: Apache-2.0
%% @doc Which requests count, and for how long: those whose callers wait, those that go on after
%% their answer, and processes that wait for one. No limit is passed, and nobody who was killed
%% keeps a place.
-module(weft_kv_admission_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TIMEOUT_MS, 60000).
%% Who was killed is looked for once a second.
-define(SOON_MS, 20000).

who_has_its_answer_makes_room_at_once_test() ->
    Running = weft_kv_admission:new(1),
    [begin
         ?assertNot(weft_kv_admission:is_full(Running)),
         lingers(N, false, Running)
     end || N <- lists:seq(1, 100)],
    ?assertEqual(0, weft_kv_admission:count(Running)).

who_waits_for_its_answer_counts_test() ->
    Running = weft_kv_admission:new(1),
    Waiting = waiting(Running),
    ?assert(weft_kv_admission:is_full(Running)),
    ?assertEqual(overload, run(fun(_) -> ok end, Running)),
    Waiting ! answer,
    until(fun() -> not weft_kv_admission:is_full(Running) end).

%% On one scheduler the process of each request is interrupted after so many steps. One of two that
%% have seen each other, and leave, goes on when the other one has left.
of_callers_of_the_same_moment_one_finds_room_test() ->
    Steps = lists:seq(1, 40),
    weft_test_steps:on_one_scheduler(
      fun() ->
          [?assertMatch({First, Second, [_ | _]},
                        {First, Second, [Answer || Answer <- at_once([First, Second]),
                                                   Answer =/= overload]})
           || First <- Steps, Second <- Steps]
      end).

at_once(Steps) ->
    Running = weft_kv_admission:new(1),
    Self = self(),
    Request = fun(Caller) -> weft_kv_admission:answer(Caller, done) end,
    Callers = [spawn_link(fun() ->
                              Begin = fun(Fun) -> spawn_monitor(interrupted(Count, Fun)) end,
                              Self ! {self(), weft_kv_admission:run(Request, Begin, ?TIMEOUT_MS,
                                                                    Running)}
                          end) || Count <- Steps],
    [receive {Caller, Answer} -> Answer end || Caller <- Callers].

interrupted(Steps, Fun) ->
    fun() -> weft_test_steps:interrupted(Steps, Fun) end.

the_oldest_gives_up_test() ->
    Running = weft_kv_admission:new(3),
    Pids = [lingers(N, false, Running) || N <- lists:seq(1, 5)],
    ?assertEqual([1, 2], given_up(lists:sublist(Pids, 2))),
    ?assertEqual(3, weft_kv_admission:lingering(Running)),
    ?assertEqual([3, 4, 5], went_on(lists:nthtail(2, Pids))).

who_has_to_take_something_back_gives_up_last_test() ->
    Running = weft_kv_admission:new(2),
    [P1, P2, P3, P4, P5] = [lingers(N, MayBeTwice, Running)
                            || {N, MayBeTwice} <- [{1, true}, {2, false}, {3, false}, {4, true},
                                                   {5, true}]],
    ?assertEqual([2, 3, 1], given_up([P2, P3, P1])),
    ?assertEqual([4, 5], went_on([P4, P5])).

who_does_not_wait_any_more_leaves_room_test() ->
    Running = weft_kv_admission:new(1),
    [1] = went_on([lingers(1, false, Running)]),
    Second = lingers(2, false, Running),
    ?assertEqual(1, weft_kv_admission:lingering(Running)),
    ?assertEqual([2], went_on([Second])),
    ?assertEqual(0, weft_kv_admission:lingering(Running)).

%% The first look at who was killed is at once, the next one after a second. The one that was killed
%% would have been the last to give up.
nobody_gives_up_in_place_of_one_that_was_killed_test() ->
    Running = weft_kv_admission:new(2),
    First = lingers(1, false, Running),
    ok = killed(lingers(2, true, Running)),
    Third = lingers(3, false, Running),
    ?assertEqual(2, weft_kv_admission:lingering(Running)),
    ?assertEqual([1, 3], went_on([First, Third])).

who_was_killed_while_its_caller_waits_keeps_no_place_test() ->
    Running = weft_kv_admission:new(1),
    ok = killed(waiting(Running)),
    until(fun() -> not weft_kv_admission:is_full(Running) end),
    ?assertEqual(0, weft_kv_admission:count(Running)).

%% Nobody asked for room meanwhile, so nobody has looked who was killed.
who_ends_without_an_answer_does_not_count_when_its_caller_knows_it_test() ->
    Running = weft_kv_admission:new(3),
    Self = self(),
    Killed = fun(_) -> true = exit(self(), kill) end,
    ?assertEqual([{ended, killed}, {ended, normal}],
                 [run(Request, Running) || Request <- [Killed, fun(_) -> no_answer end]]),
    %% And one that waits meanwhile counts.
    _ = spawn(fun() ->
                  Self ! {ended, run(fun(_) ->
                                         Self ! {waits, self()},
                                         receive never -> ok end
                                     end, Running)}
              end),
    Waits = receive {waits, Pid} -> Pid end,
    ?assertEqual(1, weft_kv_admission:count(Running)),
    true = exit(Waits, kill),
    ?assertEqual(killed, receive {ended, {ended, Reason}} -> Reason end),
    ?assertEqual(0, weft_kv_admission:count(Running)).

%% It is the way of each request.
who_has_its_answer_leaves_once_test() ->
    Running = weft_kv_admission:new(1),
    Self = self(),
    Request = fun(Caller) ->
                  Self ! {request, self()},
                  weft_kv_admission:answer(Caller, yes)
              end,
    1 = erlang:trace_pattern({weft_kv_counted, leave, 2}, true, []),
    try
        ?assertEqual({answer, yes},
                     weft_kv_admission:run(Request, fun traced/1, ?TIMEOUT_MS, Running)),
        Pid = receive {request, Requests} -> Requests end,
        ok = ended(Pid),
        Delivered = erlang:trace_delivered(Pid),
        receive {trace_delivered, Pid, Delivered} -> ok end,
        ?assertEqual([Pid], calls(Pid))
    after 1 = erlang:trace_pattern({weft_kv_counted, leave, 2}, false, [])
    end.

traced(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> receive go -> Fun() end end),
    1 = erlang:trace(Pid, true, [call]),
    Pid ! go,
    {Pid, Monitor}.

%% The keys with which it has left.
calls(Pid) ->
    receive {trace, Pid, call, {_, _, [Key, _]}} -> [Key | calls(Pid)] after 0 -> [] end.

%% The oldest waits for a node that hangs, the others for nodes that do not.
of_the_processes_aside_the_oldest_ends_test() ->
    Running = weft_kv_admission:new(2),
    [First, Second] = [aside(Running) || _ <- [1, 2]],
    Third = aside(Running),
    ok = ended(First),
    ok = stopped(Third),
    Fourth = aside(Running),
    ok = killed(Second),
    Fifth = aside(Running),
    [ok = stopped(Pid) || Pid <- [Fourth, Fifth]].

without_a_limit_there_is_none_test() ->
    Running = weft_kv_admission:new(infinity),
    Pids = [lingers(N, false, Running) || N <- [1, 2]],
    ?assertEqual(ok, answered(fun(Caller) -> weft_kv_admission:aside(fun() -> ok end, Caller) end,
                              Running)),
    ?assertEqual({0, 0, false},
                 {weft_kv_admission:count(Running), weft_kv_admission:lingering(Running),
                  weft_kv_admission:is_full(Running)}),
    ?assertEqual([1, 2], went_on(Pids)).

%% --- requests ---------------------------------------------------------------------------------

%% One that is answered with its number, and then waits.
lingers(Number, MayBeTwice, Running) ->
    Self = self(),
    Request = fun(Caller) ->
                  ok = weft_kv_admission:answer(Caller, Number),
                  Stay = weft_kv_admission:linger(MayBeTwice, Caller),
                  Self ! {lingers, Number, self()},
                  Waited = receive give_up -> gave_up; go_on -> went_on end,
                  ok = weft_kv_admission:lingered(Stay, Caller),
                  Self ! {self(), Waited, Number}
              end,
    {answer, Number} = run(Request, Running),
    receive {lingers, Number, Pid} -> Pid end.

given_up(Pids) -> [receive {Pid, gave_up, Number} -> Number end
                   || Pid <- Pids].

went_on(Pids) ->
    [begin
         Pid ! go_on,
         receive {Pid, went_on, Number} -> Number end
     end || Pid <- Pids].

%% A process that waits for a request, which is over.
aside(Running) ->
    Self = self(),
    Wait = fun() ->
               Self ! {aside, self()},
               receive stop -> Self ! {self(), stopped} end
           end,
    ok = answered(fun(Caller) -> weft_kv_admission:aside(Wait, Caller) end, Running),
    receive {aside, Pid} -> Pid end.

%% It was there until then.
stopped(Pid) ->
    Pid ! stop,
    receive {Pid, stopped} -> ended(Pid) end.

%% One whose caller waits.
waiting(Running) ->
    Self = self(),
    Request = fun(Caller) ->
                  Self ! {waiting, self()},
                  receive answer -> weft_kv_admission:answer(Caller, late) end
              end,
    _ = spawn(fun() -> run(Request, Running) end),
    receive {waiting, Pid} -> Pid end.

answered(Do, Running) ->
    {answer, Answer} = run(fun(Caller) -> weft_kv_admission:answer(Caller, Do(Caller)) end,
                           Running),
    Answer.

run(Request, Running) ->
    weft_kv_admission:run(Request, fun erlang:spawn_monitor/1, ?TIMEOUT_MS, Running).

killed(Pid) ->
    true = exit(Pid, kill),
    ended(Pid).

ended(Pid) ->
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, _, _} -> ok end.

until(Condition) -> weft_test_nodes:until(Condition, ?SOON_MS).
