%% SPDX-License-Identifier: Apache-2.0
-module(weft_global_late_tests).
-include_lib("eunit/include/eunit.hrl").

-define(LATE, weft_global_late).
-define(REPLICAS, ['one@host', 'other@host']).
-define(LOCKS, 1000).
%% So often a replica is told in vain before what needs not be told is given up; see the module.
-define(ATTEMPTS, 20).

%% However much there is to tell: one tells each replica, of which one lives, and in order.
one_process_tells_a_replica_test() ->
    World = [One, Other] = world(),
    with_late(World, #{tell => silent}, fun() ->
        [ok = ?LATE:later(Replica, command(N)) || N <- lists:seq(1, ?LOCKS), Replica <- ?REPLICAS],
        ?assertEqual(2 * ?LOCKS, ?LATE:count()),
        answer(One, true),
        weft_test_nodes:until(fun() -> ?LATE:count() =< ?LOCKS end),
        answer(Other, true),
        weft_test_nodes:until(fun() -> ?LATE:count() =:= 0 end),
        [begin
             ?assertEqual([command(N) || N <- lists:seq(1, ?LOCKS)], answered(State)),
             ?assertEqual(1, most_tellers(State))
         end || State <- World]
    end).

%% The replica sees its end by itself.
a_release_of_a_process_that_has_ended_is_given_up_test() ->
    World = [One, _] = world(),
    with_late(World, #{}, fun() ->
        ok = ?LATE:later('one@host', command_of_nobody()),
        weft_test_nodes:until(fun() -> ?LATE:count() =:= 0 end),
        ?assertEqual({[], ?ATTEMPTS}, {answered(One), asked(One)}),
        ?assertEqual([], weft_view:keys(?LATE)),
        %% Later it is another incarnation of it.
        answer(One, true),
        ok = ?LATE:later('one@host', command(0)),
        weft_test_nodes:until(fun() -> answered(One) =:= [command(0)] end)
    end).

%% It may only have been suspended, and believe in the lock of a process that lives.
a_release_of_a_process_that_lives_waits_for_the_replica_test() ->
    World = [One, _] = world(),
    with_late(World, #{}, fun() ->
        ok = ?LATE:later('one@host', command_of_nobody()),
        ok = ?LATE:later('one@host', command(1)),
        weft_test_nodes:until(fun() -> asked(One) > 2 * ?ATTEMPTS end),
        ?assertEqual(1, ?LATE:count()),
        answer(One, true),
        weft_test_nodes:until(fun() -> ?LATE:count() =:= 0 end),
        ?assertEqual([command(1)], answered(One))
    end).

a_replica_that_is_not_there_is_not_asked_test() ->
    World = [One, _] = world(),
    with_late(World, #{lock_nodes => fun() -> ['other@host'] end}, fun() ->
        ok = ?LATE:later('one@host', command_of_nobody()),
        weft_test_nodes:until(fun() -> ?LATE:count() =:= 0 end),
        ?assertEqual(0, asked(One))
    end).

%% Also what is left to it while there is none.
what_waits_outlives_the_process_test() ->
    World = [One, _] = world(),
    %% The first process finds no replica: one that tells might outlive it, and tell twice.
    with_late(World, #{lock_nodes => fun() -> [] end}, fun() ->
        [ok = ?LATE:later('one@host', command(N)) || N <- [1, 2]],
        ok = killed(),
        ok = ?LATE:later('one@host', command(3)),
        ok = started(World, #{}),
        ?assertEqual(3, ?LATE:count()),
        answer(One, true),
        weft_test_nodes:until(fun() -> ?LATE:count() =:= 0 end),
        ?assertEqual([command(N) || N <- [1, 2, 3]], answered(One)),
        ?assertEqual([], weft_view:keys(?LATE))
    end).

%% Room comes back with the answers.
what_waits_is_bounded_test() ->
    World = [One, _] = world(),
    with_late(World, #{tell => silent, count_max => 10}, fun() ->
        ?assertEqual(lists:duplicate(10, ok) ++ [full, full],
                     [?LATE:later('one@host', command(N)) || N <- lists:seq(1, 12)]),
        ?assertEqual(full, ?LATE:later('other@host', command(13))),
        ?assertEqual(10, length(weft_view:keys(?LATE))),
        answer(One, true),
        weft_test_nodes:until(fun() -> ?LATE:later('other@host', command(14)) =:= ok end)
    end).

%% Then it is about to stop, and nothing is kept.
without_the_application_nothing_waits_test() ->
    ?assertEqual(ok, ?LATE:later('one@host', command(1))),
    ok = weft_view:clear(?LATE).

%% --- replicas that answer or not --------------------------------------------------------------

command(N) -> {delete, resource, requester, {self(), N}}.

command_of_nobody() ->
    {Pid, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    {delete, resource, requester, {Pid, 0}}.

%% A replica: does it answer, how many ask it now, how many did at most, how many did in all.
world() -> [{atomics:new(4, []), ets:new(answered, [ordered_set, public])} || _ <- ?REPLICAS].

with_late(World, Options, Test) ->
    ok = weft_view:new(),
    ok = started(World, Options),
    try Test()
    after
        [answer(State, true) || State <- World],
        ok = killed(),
        ok = weft_view:clear(?LATE)
    end.

started(World, Options) ->
    Rows = maps:from_list(lists:zip(?REPLICAS, World)),
    Ask = case Options of #{tell := silent} -> fun await/2; #{} -> fun ask/2 end,
    Tell = fun(Replica, Command) -> tell(maps:get(Replica, Rows), Command, Ask) end,
    Fake = #{lock_nodes => fun() -> ?REPLICAS end, pause_ms => 1},
    {ok, Pid} = ?LATE:start_link((maps:merge(Fake, Options))#{tell => Tell}),
    true = unlink(Pid),
    ok.

killed() ->
    Monitor = monitor(process, ?LATE),
    exit(whereis(?LATE), kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end.

tell({Counts, _} = State, Command, Ask) ->
    Now = atomics:add_get(Counts, 2, 1),
    Now > atomics:get(Counts, 3) andalso atomics:put(Counts, 3, Now),
    atomics:add(Counts, 4, 1),
    DoesAnswer = Ask(State, Command),
    atomics:sub(Counts, 2, 1),
    DoesAnswer.

%% A replica that does not live says so at once; a silent one keeps whoever asks waiting.
ask({Counts, Answered}, Command) ->
    DoesAnswer = atomics:get(Counts, 1) =:= 1,
    DoesAnswer andalso ets:insert(Answered, {atomics:get(Counts, 4), Command}),
    DoesAnswer.

await(State, Command) ->
    ask(State, Command) orelse receive after 1 -> await(State, Command) end. % pacing: of this loop

answer({Counts, _}, true) -> atomics:put(Counts, 1, 1).

answered({_, Answered}) -> [Command || {_, Command} <- ets:tab2list(Answered)].

most_tellers({Counts, _}) -> atomics:get(Counts, 3).

asked({Counts, _}) -> atomics:get(Counts, 4).
