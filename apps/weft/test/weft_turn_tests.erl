%% SPDX-License-Identifier: Apache-2.0
-module(weft_turn_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PIECE_US, 100).
-define(WALL_MS, 500).

%% A process of the highest priority that works without end beside some that compute: without the
%% account they would have what one scheduler leaves.
who_works_without_end_gives_way_test_() ->
    {timeout, 30, fun() -> ?assert(worked_percent(4 * erlang:system_info(schedulers)) < 35) end}.

%% The same where nobody waits. (Other programs of this machine may have the processor now and then.
%% A process that gives way does so after each fifth of these pieces.)
nobody_waits_test_() ->
    {timeout, 30,
     fun() ->
         ok = weft_turn:open(),
         Slow = [Us || Us <- pieces(1000), Us > 900],
         ?assert(length(Slow) < 100)
     end}.

%% Two of them share one account.
the_account_is_that_of_the_node_test_() ->
    {timeout, 30,
     fun() -> Both = with_computing(4 * erlang:system_info(schedulers),
                                    fun() -> [await(W) || W <- [work(), work()]] end),
              ?assert(lists:sum(Both) < 50)
     end}.

%% A little work now and then is nothing to wait for.
small_work_does_not_pause_test_() ->
    {timeout, 30,
     fun() ->
         ok = weft_turn:open(),
         Pauses = with_computing(4 * erlang:system_info(schedulers),
                                 fun() -> [pause_us(1) || _ <- lists:seq(1, 40)] end),
         ?assert(lists:min(Pauses) < 500)
     end}.

pieces(Count) ->
    [begin spin(weft_turn:begins() + ?PIECE_US), pause_us(?PIECE_US) end
     || _ <- lists:seq(1, Count)].

pause_us(WorkedUs) ->
    BeganUs = weft_turn:begins(),
    ok = weft_turn:worked(BeganUs - WorkedUs),
    weft_turn:begins() - BeganUs.

worked_percent(Computing) ->
    with_computing(Computing, fun() -> await(work()) end).

with_computing(Count, Function) ->
    ok = weft_turn:open(),
    Computing = [spawn_link(fun compute/0) || _ <- lists:seq(1, Count)],
    try Function()
    after
        [begin unlink(Pid), exit(Pid, kill) end || Pid <- Computing]
    end.

compute() ->
    _ = lists:sum(lists:seq(1, 500)),
    compute().

%% The part of its time in which a process was at work, and not made to wait.
work() ->
    spawn_opt(fun() ->
                      EndUs = weft_turn:begins() + ?WALL_MS * 1000,
                      exit({worked, 100 * work(EndUs, 0) div (?WALL_MS * 1000)})
              end, [monitor, {priority, max}]).

await({Pid, Monitor}) ->
    receive {'DOWN', Monitor, process, Pid, {worked, Percent}} -> Percent end.

work(EndUs, WorkedUs) ->
    BeganUs = weft_turn:begins(),
    spin(BeganUs + ?PIECE_US),
    DoneUs = weft_turn:begins(),
    ok = weft_turn:worked(BeganUs),
    case DoneUs < EndUs of
        true -> work(EndUs, WorkedUs + min(DoneUs - BeganUs, 2 * ?PIECE_US));
        false -> WorkedUs
    end.

spin(EndUs) ->
    weft_turn:begins() < EndUs andalso spin(EndUs).
