%% SPDX-License-Identifier: Apache-2.0
%% @doc Which partitions are ended because they stand still.
-module(weft_vnode_stalled_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MAX, 100).

who_moves_is_left_alone_test() ->
    ?assertEqual([], after_looks([{1000, Reductions} || Reductions <- lists:seq(1, 100)])).

who_has_little_to_do_is_left_alone_test() ->
    ?assertEqual([], after_looks(lists:duplicate(100, {?MAX, 7}))).

who_stands_still_is_ended_test() ->
    ?assertEqual([], after_looks(lists:duplicate(14, {?MAX + 1, 7}))),
    ?assertEqual([self()], after_looks(lists:duplicate(15, {?MAX + 1, 7}))).

%% One step is enough, and so is a moment without a queue.
it_is_counted_anew_after_a_step_test() ->
    Standing = lists:duplicate(14, {?MAX + 1, 7}),
    [?assertEqual([], after_looks(Standing ++ [Other] ++ Standing))
     || Other <- [{?MAX + 1, 8}, {?MAX, 7}]].

%% Who has ended is not remembered.
nothing_is_kept_of_those_that_are_gone_test() ->
    {[], Before} = weft_vnode_stalled:stalled(#{self() => {?MAX + 1, 7}}, ?MAX, #{}),
    ?assertEqual({[], #{}}, weft_vnode_stalled:stalled(#{}, ?MAX, Before)).

%% The disk of one of two partitions hangs. The other one answers beside it, and after it.
a_partition_with_a_disk_that_hangs_is_ended_test() ->
    {ok, Sup} = weft_vnode_sup:start_link(),
    true = unlink(Sup),
    {ok, Watcher} = weft_vnode_stalled:start_link(#{queue_max => ?MAX}),
    try
        [Hung, Well] = [started(Options) || Options <- [[hangs], []]],
        Ref = monitor(process, Hung),
        Caller = spawn_monitor(fun() -> exit(gen_server:call(Hung, add())) end),
        weft_test_nodes:until(fun() -> {status, waiting} =:= process_info(Hung, status)
                                           andalso is_standing(Hung) end),
        [Hung ! {'$gen_call', {self(), N}, add()} || N <- lists:seq(1, ?MAX + 1)],
        [Watcher ! look || _ <- lists:seq(1, 15)],
        receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(killed, Reason) end,
        {_, CallerRef} = Caller,
        receive {'DOWN', CallerRef, process, _, Told} -> ?assertMatch({killed, _}, Told) end,
        ?assertEqual({ok, 1}, gen_server:call(Well, add()))
    after
        true = unlink(Watcher),
        ok = gen_server:stop(Watcher),
        ok = gen_server:stop(Sup)
    end.

%% It waits in its commit, and not for a message.
is_standing(Pid) ->
    {current_function, {Module, _, _}} = process_info(Pid, current_function),
    Module =:= weft_vnode_process_tests.

started(Options) ->
    Name = list_to_atom(lists:concat([weft_vnode_stalled_tests_, length(Options)])),
    {ok, Pid} = supervisor:start_child(weft_vnode_sup, [Name, weft_vnode_process_tests, 0, Options,
                                                        #{queue_max => ?MAX}]),
    {ok, started} = gen_server:call(Pid, opened),
    Pid.

add() -> {command, fallback, key, add}.

after_looks(Looks) ->
    {Stalled, _} = lists:foldl(fun(Look, {_, Before}) ->
                                   weft_vnode_stalled:stalled(#{self() => Look}, ?MAX, Before)
                               end, {[], #{}}, Looks),
    Stalled.
