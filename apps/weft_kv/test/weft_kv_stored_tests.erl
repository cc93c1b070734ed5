%% SPDX-License-Identifier: Apache-2.0
%% @doc Partitions of a store of one node that have a file and no process, as that was killed; or
%% whose file another node has written.
-module(weft_kv_stored_tests).

-include_lib("eunit/include/eunit.hrl").

on_one_node_test_() ->
    {setup,
     fun() -> weft_kv_one_node:started(?MODULE, #{dir => files()}, #{things => #{n => 1}}) end,
     fun weft_kv_one_node:stopped/1,
     fun(_) ->
         [{timeout, 60, {Title, Test}}
          || {Title, Test} <- [{"it is started before long", fun before_long/0},
                               {"a node that leaves looks at it", fun before_it_leaves/0},
                               {"what another node has written is read", fun stood_still/0}]]
     end}.

%% Beside the directory of the ring.
files() -> filename:join(weft_kv_one_node:dir(?MODULE), "files").

before_long() ->
    {_, Name} = killed(),
    weft_kv_left_over ! stored,
    weft_test_nodes:until(fun() -> is_pid(whereis(Name)) end),
    ?assertMatch({ok, <<"v">>, _}, weft_kv:get(things, <<"k">>)).

before_it_leaves() ->
    ok = sys:suspend(weft_kv_left_over),
    {Which, _} = killed(),
    ?assertEqual([{Which, unknown}], weft_vnodes:waiting()),
    ok = sys:resume(weft_kv_left_over),
    weft_test_nodes:until(fun() -> weft_vnodes:waiting() =:= [] end),
    ?assertMatch({ok, <<"v">>, _}, weft_kv:get(things, <<"k">>)).

%% It stood still for so long that another node has had its directories, and has left them.
stood_still() ->
    {{_, Partition}, Name} = killed(),
    File = filename:join(files(), integer_to_list(Partition) ++ ".log"),
    {ok, Before} = file:read_file(File),
    {ok, <<"v">>, Context} = weft_kv:get(things, <<"k">>),
    {ok, _} = weft_kv:put(things, <<"k">>, <<"theirs">>, #{context => Context}),
    {ok, Theirs} = file:read_file(File),
    Process = whereis(Name),
    exit(Process, kill),
    until_ended(Process, Name),
    ok = file:write_file(File, Before),
    ?assertMatch({ok, <<"v">>, _}, weft_kv:get(things, <<"k">>)),
    ok = file:write_file(File, Theirs),
    {_, Lock, _, _} = lists:keyfind({lock, weft_kv_vnode}, 1,
                                    supervisor:which_children(weft_ring_sup)),
    ok = file:delete(filename:join(files(), "weft_kv_vnode.lock")),
    Lock ! beat,
    weft_test_nodes:until(fun() -> not is_process_alive(Lock) end),
    weft_test_nodes:until(fun() -> is_theirs(weft_kv:get(things, <<"k">>)) end).

is_theirs({ok, Value, _}) -> Value =:= <<"theirs">>;
is_theirs({error, _NotYet}) -> false.

%% There is one key, and no other partition has a file.
killed() ->
    {ok, _} = weft_kv:put(things, <<"k">>, <<"v">>),
    {ok, Partition} = weft_ring:partition({<<"things">>, <<"k">>}),
    {ok, Name} = weft_vnode_names:name(weft_kv_vnode, Partition),
    Process = whereis(Name),
    exit(Process, kill),
    until_ended(Process, Name),
    weft_test_nodes:until(fun() -> supervisor:which_children(weft_vnode_sup) =:= [] end),
    {{weft_kv_vnode, Partition}, Name}.

%% And it is known, or the next request would be sent to it.
until_ended(Process, Name) ->
    weft_test_nodes:until(fun() ->
                              not is_process_alive(Process)
                                  andalso weft_vnode_watch:find({Name, node()}) =:= unknown
                          end).
