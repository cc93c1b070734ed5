%% SPDX-License-Identifier: Apache-2.0
-module(weft_global_late_tests).
-include_lib("eunit/include/eunit.hrl").

-define(LATE, weft_global_late).
-define(REPLICAS, ['one@host', 'other@host']).
-define(LOCKS, 1000).
%% So often a replica is told in vain before it is given up; see the module.
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

%% It has let go by itself meanwhile, or does not live any more.
a_replica_that_never_answers_is_given_up_test() ->
    World = [One, _] = world(),
    with_late(World, #{}, fun() ->
        ok = ?LATE:later('one@host', command(1)),
        weft_test_nodes:until(fun() -> ?LATE:count() =:= 0 end),
        ?assertEqual({[], ?ATTEMPTS}, {answered(One), asked(One)}),
        %% Later it is another incarnation of it.
        answer(One, true),
        ok = ?LATE:later('one@host', command(0)),
        weft_test_nodes:until(fun() -> answered(One) =:= [command(0)] end)
    end).

a_replica_that_is_not_there_is_not_asked_test() ->
    World = [One, _] = world(),
    with_late(World, #{lock_nodes => fun() -> ['other@host'] end}, fun() ->
        ok = ?LATE:later('one@host', command(1)),
        weft_test_nodes:until(fun() -> ?LATE:count() =:= 0 end),
        ?assertEqual(0, asked(One))
    end).

%% Room comes back with the answers.
what_waits_is_bounded_test() ->
    World = [One, _] = world(),
    with_late(World, #{tell => silent, count_max => 10}, fun() ->
        ?assertEqual(lists:duplicate(10, ok) ++ [full, full],
                     [?LATE:later('one@host', command(N)) || N <- lists:seq(1, 12)]),
        ?assertEqual(full, ?LATE:later('other@host', command(13))),
        answer(One, true),
        weft_test_nodes:until(fun() -> ?LATE:later('other@host', command(14)) =:= ok end)
    end).

%% Nothing is kept without the process: its node is about to stop.
without_the_process_nothing_waits_test() ->
    ?assertEqual(ok, ?LATE:later('one@host', command(1))).

%% --- replicas that answer or not --------------------------------------------------------------

command(N) -> {delete, resource, requester, {self(), N}}.

%% A replica: does it answer, how many ask it now, how many did at most, how many did in all.
world() -> [{atomics:new(4, []), ets:new(answered, [ordered_set, public])} || _ <- ?REPLICAS].

with_late(World, Options, Test) ->
    Rows = maps:from_list(lists:zip(?REPLICAS, World)),
    Ask = case Options of #{tell := silent} -> fun await/2; #{} -> fun ask/2 end,
    Tell = fun(Replica, Command) -> tell(maps:get(Replica, Rows), Command, Ask) end,
    Fake = #{lock_nodes => fun() -> ?REPLICAS end, pause_ms => 1},
    {ok, Pid} = ?LATE:start_link((maps:merge(Fake, Options))#{tell => Tell}),
    try Test()
    after
        [answer(State, true) || State <- World],
        gen_server:stop(Pid)
    end.

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
