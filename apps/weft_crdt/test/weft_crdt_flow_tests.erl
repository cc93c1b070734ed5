%% SPDX-License-Identifier: Apache-2.0
%% @doc What flows make of their inputs, one whose inputs change faster than it computes, and code
%% that is loaded anew. The store is played by a process of the test.
-module(weft_crdt_flow_tests).

-include_lib("eunit/include/eunit.hrl").

%% The first value is that of the subscription.
a_slow_flow_gets_the_last_value_and_no_pile_test() ->
    ?assertEqual([{[0], [0]}, {[3], [9]}], acts()).

%% Not before: values would pile up while a function runs.
the_next_value_is_asked_for_when_the_last_one_is_done_with_test_() ->
    {timeout, 20,
     fun() -> with_flows(fun sets/0, fun() ->
                             weft_crdt ! {derived, self()},
                             ok = weft_crdt_flow:product(a, b, out),
                             _ = next(),
                             weft_crdt ! {changed, a, [7]},
                             ?assertEqual([{out, [{7, N} || N <- [2, 3, 4]]}, {next, a}],
                                          [received(), received()])
                         end)
     end}.

an_invariant_is_checked_again_test_() ->
    {timeout, 20,
     fun() -> with_flows(fun sets/0, fun() ->
                             weft_crdt ! {derived, self()},
                             Self = self(),
                             ok = weft_crdt_flow:invariant(number, {at_least, 9},
                                                           fun(N) -> Self ! {passed, N} end),
                             weft_crdt ! {changed, number, 8},
                             ?assertEqual({next, number}, received()),
                             weft_crdt ! {changed, number, 9},
                             ?assertEqual({passed, 9}, received()),
                             until([], fun() -> supervisor:which_children(weft_crdt_flow_sup) end)
                         end)
     end}.

received() -> receive Message -> Message after 5000 -> error(nothing) end.

%% Loaded twice: who is in the code of before then, or holds a function of it, is ended.
flows_go_on_with_code_that_is_loaded_anew_test_() ->
    {timeout, 20, fun() -> with_flows(fun sets/0, fun loaded_anew/0) end}.

loaded_anew() ->
    weft_crdt ! {derived, self()},
    Self = self(),
    ok = weft_crdt_flow:union(a, b, out),
    ok = weft_crdt_flow:map(a, fun erlang:'-'/1, negative),
    ok = weft_crdt_flow:invariant(number, {at_least, 9}, fun(N) -> Self ! {passed, N} end),
    {weft_crdt_flow, Beam, File} = code:get_object_code(weft_crdt_flow),
    try
        [ok = loaded(File, changed(Name, Beam)) || Name <- [once, twice]],
        twice = apply(weft_crdt_flow, twice, []),
        weft_crdt ! {changed, b, [9]},
        weft_crdt ! {changed, a, [1]},
        weft_crdt ! {changed, number, 9},
        [receive Made -> ok after 5000 -> error({nothing, Made}) end
         || Made <- [{out, [1, 9]}, {negative, [-1]}, {passed, 9}]]
    after
        ok = loaded(File, Beam)
    end.

loaded(File, Beam) ->
    _ = code:purge(weft_crdt_flow),
    {module, weft_crdt_flow} = code:load_binary(weft_crdt_flow, File, Beam),
    ok.

%% With one function more.
changed(Name, Beam) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    {Before, [Module | Rest]} = lists:splitwith(fun(Form) -> element(3, Form) =/= module end,
                                                Forms),
    Function = {function, 1, Name, 0, [{clause, 1, [], [], [{atom, 1, Name}]}]},
    {ok, weft_crdt_flow, Changed} =
        compile:forms(Before ++ [Module, {attribute, 1, export, [{Name, 0}]}]
                      ++ lists:droplast(Rest) ++ [Function, lists:last(Rest)]),
    Changed.

%% Each element once, in their order, and anew with each change of an input.
what_is_made_of_sets_test_() ->
    Odd = fun(N) -> N rem 2 end,
    [{timeout, 20, ?_assertEqual(Made, made(Function, Arguments, Changes))}
     || {Function, Arguments, Changes, Made} <-
            [{map, [a, Odd], [{a, [1, 3]}, {a, []}], [[0, 1], [1], []]},
             {intersection, [a, b], [{b, [3, 5]}, {a, [5, 6, 7]}], [[2, 3], [3], [5]]},
             %% 1 and 1.0 are two elements.
             {intersection, [a, floats], [{floats, [1, 2]}], [[], [1, 2]]},
             {union, [a, b], [{b, []}], [[1, 2, 3, 4], [1, 2, 3]]},
             {filter, [a, fun(N) -> Odd(N) =:= 1 end], [{a, [5, 6]}], [[1, 3], [5]]},
             {product, [b, b], [{b, [1]}], [[{X, Y} || X <- [2, 3, 4], Y <- [2, 3, 4]], [{1, 1}]]},
             {fold, [a, fun(N, Sum) -> 10 * Sum + N end, 0], [{a, [7]}], [123, 7]}]].

what_is_no_set_is_an_error_test_() ->
    {timeout, 20,
     fun() ->
         with_flows(fun sets/0, fun() ->
             [?assertEqual({error, {no_set, 7}}, apply(weft_crdt_flow, Function, Arguments))
              || {Function, Arguments} <- [{map, [number, fun(N) -> N end, out]},
                                           {intersection, [a, number, out]}]]
         end)
     end}.

made(Function, Arguments, Changes) ->
    with_flows(fun sets/0, fun() ->
        weft_crdt ! {derived, self()},
        ok = apply(weft_crdt_flow, Function, Arguments ++ [out]),
        [next() | [begin weft_crdt ! {changed, Key, Set}, next() end || {Key, Set} <- Changes]]
    end).

next() -> receive {out, Value} -> Value after 5000 -> error(nothing_derived) end.

%% A store of some sets and a number, which tells what is derived and asked for.
sets() -> sets(#{a => [1, 2, 3], b => [2, 3, 4], floats => [1.0, 2.0], number => 7}, [], none).

sets(Values, Subscribers, To) ->
    receive
        {derived, Whom} -> sets(Values, Subscribers, Whom);
        {changed, Key, Value} ->
            [Pid ! {weft_crdt, Key, Value} || {Of, Pid} <- Subscribers, Of =:= Key],
            sets(Values, Subscribers, To);
        {'$gen_cast', {notice, {next, Key, Pid}}} when is_pid(Pid) ->
            To ! {next, Key},
            sets(Values, Subscribers, To);
        {'$gen_call', From, {command, {follow, Key, Pid}}} ->
            gen_server:reply(From, {ok, map_get(Key, Values)}),
            sets(Values, lists:usort([{Key, Pid} | Subscribers]), To);
        {'$gen_call', From, {command, {derive, Out, Value}}} ->
            To ! {Out, Value},
            gen_server:reply(From, ok),
            sets(Values, Subscribers, To)
    end.

%% Functions run beside each other: what one does is not felt by the others.
a_function_that_does_not_end_holds_nobody_up_test_() ->
    {timeout, 20, fun() -> with_flows(fun blocked/0) end}.

blocked() ->
    Self = self(),
    Slow = fun([0]) -> Self ! {slow, self()}, receive never -> again end end,
    {_, Starter} = spawn_monitor(fun() -> flow(slow, Slow) end),
    receive {slow, _} -> ok after 5000 -> error(not_called) end,
    ok = flow(quick, fun([0]) -> again end),
    ok = weft_crdt_flow_sup:stop_flow(quick),
    ok = weft_crdt_flow_sup:stop_flow(slow),
    receive {'DOWN', Starter, process, _, _} -> ok end.

%% More often than a supervisor takes.
a_function_that_fails_ends_no_other_flow_test_() ->
    {timeout, 20, fun() -> with_flows(fun failing/0) end}.

failing() ->
    ok = flow(good, fun([0]) -> again end),
    [{_, Good, _, _}] = supervisor:which_children(weft_crdt_flow_sup),
    [?assertMatch({error, {failed, _}}, flow(bad, fun([_]) -> error(bad) end))
     || _ <- lists:seq(1, 30)],
    ?assertEqual({error, why}, flow(bad, fun([_]) -> throw(why) end)),
    %% A process that it has linked fails.
    Linked = fun([_]) -> spawn_link(fun() -> exit(linked) end), again end,
    [begin
         ok = flow(bad, Linked),
         ok = weft_crdt_flow_sup:stop_flow(bad)
     end || _ <- lists:seq(1, 30)],
    ?assertEqual({error, already_started}, flow(good, Linked)),
    ?assertMatch([{_, Good, _, _}], supervisor:which_children(weft_crdt_flow_sup)).

%% Only what was done is over: it was asked for once.
a_flow_that_is_done_is_forgotten_test_() ->
    {timeout, 20,
     fun() -> with_flows(fun() ->
                             ok = weft_crdt_flow_sup:start_flow(once, once, worker(fun([0]) ->
                                                                                      done
                                                                                  end)),
                             until([], fun() -> supervisor:which_children(weft_crdt_flow_sup) end)
                         end)
     end}.

%% Whoever has asked for it may have had to wait for a processor.
who_asks_late_hears_that_it_was_done_test_() ->
    {timeout, 20,
     fun() -> with_flows(fun() ->
                             Self = self(),
                             Act = fun([0]) -> Self ! done, done end,
                             {ok, Worker} = weft_crdt_flow_worker:start_link(worker(Act)),
                             receive done -> ok after 5000 -> error(not_called) end,
                             %% pacing: so much later
                             receive after 200 -> ok end,
                             ?assertEqual(ok, weft_crdt_flow_worker:first(Worker))
                         end)
     end}.

%% It is tried once more meanwhile.
who_asks_late_hears_that_it_has_failed_test_() ->
    {timeout, 20,
     fun() -> with_flows(fun() ->
                             Self = self(),
                             Act = fun([0]) -> Self ! called, error(bad) end,
                             {ok, Worker} = weft_crdt_flow_worker:start_link(worker(Act)),
                             [receive called -> ok after 5000 -> error(not_called) end
                              || _ <- [first, again]],
                             ?assertEqual({error, {failed, bad}},
                                          weft_crdt_flow_worker:first(Worker))
                         end)
     end}.

%% The store is being started again, for example.
a_flow_is_ended_without_a_store_test_() ->
    {timeout, 20,
     fun() -> with_flows(fun sets/0, fun() ->
                             weft_crdt ! {derived, self()},
                             ok = weft_crdt_flow:union(a, b, out),
                             Store = whereis(weft_crdt),
                             true = unlink(Store),
                             Ref = monitor(process, Store),
                             true = exit(Store, kill),
                             receive {'DOWN', Ref, process, _, _} -> ok end,
                             ?assertEqual(ok, weft_crdt_flow:stop(out)),
                             ?assertEqual([], supervisor:which_children(weft_crdt_flow_sup))
                         end)
     end}.

%% One that was killed is there again, though its function fails just then.
a_flow_that_was_killed_goes_on_test_() ->
    {timeout, 20, fun() -> with_flows(fun killed/0) end}.

killed() ->
    Self = self(),
    Calls = counters:new(1, []),
    ok = flow(out, fun([0]) ->
                       ok = counters:add(Calls, 1, 1),
                       case counters:get(Calls, 1) of
                           2 -> error(not_now);
                           N -> Self ! {called, N}, again
                       end
                   end),
    [{_, Pid, _, _}] = supervisor:which_children(weft_crdt_flow_sup),
    exit(Pid, kill),
    receive {called, 3} -> ok after 10000 -> error(not_again) end.

flow(Id, Act) -> weft_crdt_flow_sup:start_flow(Id, always, worker(Act)).

%% As code of before has started them.
worker(Act) -> #{inputs => [a], act => fun([[V]]) -> Act([V]) end, name => out}.

until(Expected, Fun) -> weft_test_nodes:until(fun() -> Fun() =:= Expected end).

with_flows(Test) -> with_flows(fun store/0, Test).

%% In a process of its own: the messages of one test are none of the next one's.
with_flows(Playing, Test) ->
    {_, Tester} = spawn_monitor(fun() -> exit({ok, tested(Playing, Test)}) end),
    receive
        {'DOWN', Tester, process, _, {ok, Result}} -> Result;
        {'DOWN', Tester, process, _, Reason} -> error(Reason)
    end.

tested(Playing, Test) ->
    Store = spawn_link(Playing),
    true = register(weft_crdt, Store),
    {ok, Flows} = weft_crdt_flow_sup:start_link(),
    try Test()
    after
        unlink(Flows),
        [begin
             Ref = monitor(process, Pid),
             unlink(Pid),
             exit(Pid, Reason),
             receive {'DOWN', Ref, process, _, _} -> ok end
         end || {Pid, Reason} <- [{Flows, shutdown}, {Store, kill}]]
    end.

%% What a flow is called with while its inputs have changed several times.
acts() ->
    Store = spawn_link(fun store/0),
    true = register(weft_crdt, Store),
    Self = self(),
    Act = fun(Values) -> Self ! {acted, list_to_tuple(Values)}, again end,
    {ok, New, {continue, Next}} =
        weft_crdt_flow_worker:init(#{inputs => [a, b], act => Act, name => out}),
    process_flag(trap_exit, false),
    {noreply, Worker} = weft_crdt_flow_worker:handle_continue(Next, New),
    [self() ! {weft_crdt, Key, [Value]} || {Key, Value} <- [{a, 1}, {a, 2}, {a, 3}, {b, 9}]],
    ok = handled(Worker),
    unlink(Store),
    Monitor = monitor(process, Store),
    exit(Store, kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    told().

handled(Worker0) ->
    receive {weft_crdt, _, _} = Message ->
        {noreply, Worker} = weft_crdt_flow_worker:handle_info(Message, Worker0),
        handled(Worker)
    after 0 -> ok
    end.

told() ->
    receive {acted, Values} -> [Values | told()] after 0 -> [] end.

store() ->
    receive {'$gen_call', From, {command, {follow, _, _}}} ->
        gen_server:reply(From, {ok, [0]}),
        store()
    end.
