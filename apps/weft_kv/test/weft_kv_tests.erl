%% SPDX-License-Identifier: Apache-2.0
%% @doc What callers of `weft_kv' see of contexts, siblings and another `n', with a store of one
%% node, which is this one.
-module(weft_kv_tests).

-include_lib("eunit/include/eunit.hrl").

on_one_node_test_() ->
    {setup,
     fun() -> weft_kv_one_node:started(?MODULE, #{grace_ms => 0}, buckets(3)) end,
     fun weft_kv_one_node:stopped/1,
     fun(_) -> [{timeout, 30, Test} || Test <- [fun what_was_deleted_stays_so_with_another_n/0,
                                                fun a_context_is_of_its_key/0,
                                                fun siblings_are_bounded/0,
                                                fun each_of_many_equal_writes_counts/0,
                                                fun odd_arguments_end_no_process/0,
                                                fun strays_end_no_process/0,
                                                fun a_start_that_fails_leaves_nothing/0]]
     end}.

%% But for what makes files.
odd_arguments_end_no_process() ->
    ?assertEqual([], weft_odd_input:calls([weft_kv, weft_ring], [export, import, backup])).

strays_end_no_process() ->
    ?assert(lists:member(weft_ring_server, weft_odd_input:registered_of_weft())),
    ?assertEqual([], weft_odd_input:strays()).

%% It would be a line of the head of an answer of HTTP, or several.
a_content_type_is_one_line_test() ->
    [?assertMatch({error, {bad_option, {content_type, Type, _}}},
                  weft_kv:put(things, <<"k">>, <<>>, #{content_type => Type}))
     || Type <- [<<"text/plain\r\nset-cookie: a=b">>, <<"text/plain\na: b">>, <<"a", 0>>,
                 <<"text/pl\x{e4}n">>, <<>>, binary:copy(<<"a">>, 256), "text/plain"]],
    ?assertEqual({error, not_running},
                 weft_kv:put(things, <<"k">>, <<>>, #{content_type => <<"text/html; a=\"b\"">>})).

buckets(N) -> #{things => #{n => 3}, changed => #{n => N}}.

%% The third copy does not hear of the deletion, and is asked later. Nothing else is in the store.
what_was_deleted_stays_so_with_another_n() ->
    Keys = [integer_to_binary(N) || N <- lists:seq(1, 50)],
    [{ok, _} = weft_kv:put(changed, Key, Key, #{w => all}) || Key <- Keys],
    Three = bytes(),
    ok = configured(2),
    ok = weft_test_nodes:until(fun() ->
                                   weft_kv_left_over ! round,
                                   3 * bytes() =:= 2 * Three
                               end),
    [?assertMatch({ok, Key, _}, weft_kv:get(changed, Key, #{r => all})) || Key <- Keys],
    [{ok, _} = weft_kv:delete(changed, Key, #{w => all}) || Key <- Keys],
    ok = weft_test_nodes:until(fun() -> bytes() =:= 0 end),
    ok = configured(3),
    ?assertEqual([], [Key || Key <- Keys, weft_kv:get(changed, Key) =/= {error, not_found}]),
    ?assertEqual({ok, []}, weft_kv:list(changed)).

bytes() ->
    {ok, Bytes} = weft_vnode:cover(weft_kv_vnode, bytes, 5000),
    lists:sum([B || {_, B} <- Bytes]).

%% Of so many some are written in the same millisecond. A read shows them as one.
each_of_many_equal_writes_counts() ->
    Key = <<"equal">>,
    Writers = [spawn_monitor(fun() -> {ok, _} = weft_kv:put(things, Key, <<"same">>) end)
               || _ <- lists:seq(1, 50)],
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
     || {Pid, Ref} <- Writers],
    {ok, Partition} = weft_ring:partition({<<"things">>, Key}),
    {ok, {ok, Object}} =
        weft_vnode:ask(weft_kv_vnode, {Partition, node(), primary}, {Partition, things, Key},
                       {read, #{n => 3, evict => false, siblings => true}, primary}, 5000),
    ?assertEqual(50, weft_kv_object:count(Object)),
    {ok, [Shown], _} = weft_kv:read(things, Key, #{}),
    ?assertEqual([expires_ms, value, written_ms], lists:sort(maps:keys(Shown))),
    {ok, _} = weft_kv:delete(things, Key).

%% The partitions go on.
configured(N) ->
    _ = application:stop(weft_kv),
    ok = application:set_env(weft_kv, buckets, buckets(N)),
    application:start(weft_kv).

%% Nobody is served by a store that does not run.
a_start_that_fails_leaves_nothing() ->
    ok = application:stop(weft_kv),
    {ok, Dir} = application:get_env(weft_ring, dir),
    Strong = #{consistency => strong, n => 1, voters => [node()],
               %% This is a file.
               dir => filename:join(Dir, "ring")},
    ok = application:set_env(weft_kv, buckets, (buckets(3))#{strong => Strong}),
    try
        ?assertMatch({error, _}, application:start(weft_kv)),
        ?assertEqual({error, not_running}, weft_kv:get(things, <<"k">>)),
        ?assertEqual([], [Term || Term <- [weft_kv_app, weft_kv_durability],
                                  persistent_term:get(Term, none) =/= none])
    after ok = configured(3)
    end.

%% One process writes all keys of a partition, so the context of one would cover others.
a_context_is_of_its_key() ->
    [First | Others] = in_one_partition(20),
    [{ok, _} = weft_kv:put(things, Key, <<"1">>) || Key <- [First | Others]],
    {ok, <<"1">>, Context} = weft_kv:get(things, lists:last(Others)),
    ?assertEqual({error, bad_context}, weft_kv:put(things, First, <<"2">>, #{context => Context})),
    ?assertEqual({error, bad_context}, weft_kv:delete(things, First, #{context => Context})),
    {ok, <<"1">>, Own} = weft_kv:get(things, First),
    {ok, Written} = weft_kv:put(things, First, <<"3">>, #{context => Own}),
    ?assertEqual({ok, <<"3">>, Written}, weft_kv:get(things, First)),
    {ok, [_], Written} = weft_kv:read(things, First, #{}),
    {ok, [<<"3">>], Written} = weft_kv:values(things, First, #{}),
    {ok, _} = weft_kv:delete(things, First, #{context => Written}),
    ?assertEqual({error, not_found}, weft_kv:get(things, First)),
    {ok, [], _} = weft_kv:values(things, First, #{}),
    {ok, [], Gone} = weft_kv:siblings(things, First, #{}),
    %% Of what is over, too.
    {ok, _} = weft_kv:put(things, First, <<"4">>, #{context => Gone, ttl_ms => 1}),
    ok = weft_test_nodes:until(fun() -> weft_kv:get(things, First) =:= {error, not_found} end),
    {ok, [], Over} = weft_kv:siblings(things, First, #{}),
    {ok, _} = weft_kv:put(things, First, <<"5">>, #{context => Over}),
    ?assertMatch({ok, [#{value := <<"5">>}], _}, weft_kv:siblings(things, First, #{})).

in_one_partition(Count) ->
    Keys = [integer_to_binary(N) || N <- lists:seq(1, 100 * Count)],
    lists:sublist([Key || Key <- Keys, weft_ring:partition({<<"things">>, Key}) =:= {ok, 0}],
                  Count).

siblings_are_bounded() ->
    Key = <<"siblings">>,
    Put = fun(N) -> weft_kv:put(things, Key, integer_to_binary(N)) end,
    [{ok, _} = Put(N) || N <- lists:seq(1, 100)],
    ?assertEqual({error, {too_many_siblings, 100}}, Put(101)),
    {siblings, Values, Context} = weft_kv:get(things, Key),
    ?assertEqual(lists:sort([integer_to_binary(N) || N <- lists:seq(1, 100)]), Values),
    {ok, _} = weft_kv:put(things, Key, <<"all">>, #{context => Context}),
    ?assertMatch({ok, <<"all">>, _}, weft_kv:get(things, Key)),
    {ok, _} = Put(101).
