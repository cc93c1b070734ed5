%% SPDX-License-Identifier: Apache-2.0
%% @doc Partitions of a store of one node that have a file and no process, as that was killed.
-module(weft_kv_stored_tests).

-include_lib("eunit/include/eunit.hrl").

on_one_node_test_() ->
    {setup,
     fun() -> weft_kv_one_node:started(?MODULE, #{dir => files()}, #{things => #{n => 1}}) end,
     fun weft_kv_one_node:stopped/1,
     fun(_) ->
         [{timeout, 60, {Title, Test}}
          || {Title, Test} <- [{"it is started before long", fun before_long/0},
                               {"a node that leaves looks at it", fun before_it_leaves/0}]]
     end}.

%% Beside the directory of the ring.
files() -> filename:join(filename:basedir(user_cache, atom_to_list(?MODULE)), "files").

before_long() ->
    {_, Name} = killed(),
    weft_kv_left_over ! round,
    weft_test_nodes:until(fun() -> is_pid(whereis(Name)) end),
    ?assertMatch({ok, <<"v">>, _}, weft_kv:get(things, <<"k">>)).

before_it_leaves() ->
    ok = sys:suspend(weft_kv_left_over),
    {Which, _} = killed(),
    ?assertEqual([{Which, unknown}], weft_vnodes:waiting()),
    ok = sys:resume(weft_kv_left_over),
    weft_test_nodes:until(fun() -> weft_vnodes:waiting() =:= [] end),
    ?assertMatch({ok, <<"v">>, _}, weft_kv:get(things, <<"k">>)).

%% There is one key, and no other partition has a file.
killed() ->
    {ok, _} = weft_kv:put(things, <<"k">>, <<"v">>),
    {ok, Partition} = weft_ring:partition({<<"things">>, <<"k">>}),
    {ok, Name} = weft_vnode_names:name(weft_kv_vnode, Partition),
    exit(whereis(Name), kill),
    weft_test_nodes:until(fun() -> supervisor:which_children(weft_vnode_sup) =:= [] end),
    {{weft_kv_vnode, Partition}, Name}.
