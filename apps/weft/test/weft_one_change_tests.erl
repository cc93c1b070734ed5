%% SPDX-License-Identifier: Apache-2.0
-module(weft_one_change_tests).

-include_lib("eunit/include/eunit.hrl").

it_returns_and_raises_what_the_change_does_test() ->
    ?assertEqual({error, "no"}, weft_one_change:run(fun() -> {error, "no"} end)),
    ?assertError(oops, weft_one_change:run(fun() -> error(oops) end)),
    ?assertExit(oops, weft_one_change:run(fun() -> exit(oops) end)),
    ?assertThrow(oops, weft_one_change:run(fun() -> throw(oops) end)),
    Killed = fun() ->
                     true = exit(self(), kill),
                     receive after infinity -> ok end
             end,
    ?assertExit({killed, _}, weft_one_change:run(Killed)),
    ?assertEqual(ok, weft_one_change:run(fun() -> ok end)).

%% Each adds one by reading and writing, with a pause between.
no_two_are_under_way_test() ->
    Table = ets:new(changes, [public]),
    true = ets:insert(Table, {count, 0}),
    Change = fun() ->
                     [{count, Count}] = ets:lookup(Table, count),
                     receive after 2 -> ok end, % pacing: another one has time to mix in
                     true = ets:insert(Table, {count, Count + 1}),
                     ok
             end,
    Callers = [spawn_monitor(fun() -> ok = weft_one_change:run(Change) end)
               || _ <- lists:seq(1, 50)],
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
     || {Pid, Ref} <- Callers],
    ?assertEqual([{count, 50}], ets:lookup(Table, count)).

%% The half of a change is worse than all of it.
it_goes_on_when_the_caller_is_ended_test() ->
    Test = self(),
    Caller = spawn(fun() ->
                           weft_one_change:run(fun() ->
                                                       Test ! {begun, self()},
                                                       receive go_on -> Test ! done end
                                               end)
                   end),
    Change = receive {begun, Pid} -> Pid end,
    Ref = monitor(process, Caller),
    true = exit(Caller, kill),
    receive {'DOWN', Ref, process, Caller, killed} -> ok end,
    Change ! go_on,
    receive done -> ok end.
