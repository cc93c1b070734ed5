%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests that are tried again, with a store of one node, which is this one. Its partition is
%% full, and so refuses writes, until something is deleted. What may be tried again is tested with
%% `weft_kv_coordinator_core'.
-module(weft_kv_request_tests).

-include_lib("eunit/include/eunit.hrl").

-define(VALUE, <<0:8000>>).

on_one_node_test_() ->
    {setup, fun started/0, fun stopped/1,
     fun(_) -> [{timeout, 30, Test} || Test <- [fun an_error_is_told_after_the_last_try/0,
                                                fun a_write_is_tried_until_there_is_room/0,
                                                fun what_a_later_try_did_not_do_hides_nothing/0]]
     end}.

started() ->
    Dir = filename:join(filename:basedir(user_cache, "weft_kv_request_tests"), os:getpid()),
    _ = [begin
             _ = application:load(Application),
             ok = application:set_env(Application, Key, Value)
         end || {Application, Key, Value} <-
                    [{weft_ring, dir, Dir}, {weft_ring, partitions, 8},
                     {weft_ring, vnodes, [{weft_kv_vnode, #{bytes_max => 500}}]},
                     {weft_kv, buckets, #{one => #{n => 1}}}]],
    {ok, _} = application:ensure_all_started(weft_kv),
    ok = weft_ring:create(),
    Dir.

stopped(Dir) ->
    _ = [application:stop(Application) || Application <- [weft_kv, weft_ring, weft]],
    _ = [application:unload(Application) || Application <- [weft_kv, weft_ring]],
    file:del_dir_r(filename:dirname(Dir)).

an_error_is_told_after_the_last_try() ->
    {First, Second} = same_partition(),
    {ok, _} = weft_kv:put(one, First, ?VALUE),
    Put = fun(Options) ->
              timer:tc(fun() -> weft_kv:put(one, Second, ?VALUE, Options) end)
          end,
    {_, AtOnce} = Put(#{}),
    ?assertMatch({error, {too_few, #{failed := [{_, full}]}}}, AtOnce),
    {ThreeUs, Three} = Put(#{retries => 3}),
    ?assertEqual(AtOnce, Three),
    %% Pauses of at least 10, 20 and 40 ms.
    ?assert(ThreeUs >= 70000),
    {LateUs, Late} = Put(#{retries => 10, timeout_ms => 100}),
    ?assertEqual(AtOnce, Late),
    ?assert(LateUs < 2000000),
    ?assertMatch({error, {bad_option, {retries, 11, {from, 0, to, 10}}}},
                 element(2, Put(#{retries => 11}))),
    {ok, _} = weft_kv:delete(one, First).

a_write_is_tried_until_there_is_room() ->
    {First, Second} = same_partition(),
    {ok, _} = weft_kv:put(one, First, ?VALUE),
    Self = self(),
    Writer = spawn_link(fun() ->
                            Self ! {self(), weft_kv:put(one, Second, ?VALUE, #{retries => 10})}
                        end),
    %% pacing: it is to be refused at least once before there is room
    receive {Writer, TooEarly} -> erlang:error(TooEarly) after 60 -> ok end,
    {ok, _} = weft_kv:delete(one, First),
    receive {Writer, Answer} -> ?assertMatch({ok, _}, Answer) end,
    ?assertMatch({ok, ?VALUE, _}, weft_kv:get(one, Second)),
    {ok, _} = weft_kv:delete(one, Second).

%% `overload' says that nothing was done. After another error that is not known any more.
what_a_later_try_did_not_do_hides_nothing() ->
    {First, Second} = same_partition(),
    {ok, _} = weft_kv:put(one, First, ?VALUE),
    {Running, Max} = weft_kv_app:running(),
    Self = self(),
    Writer = spawn_link(fun() ->
                            Self ! {self(), weft_kv:put(one, Second, ?VALUE, #{retries => 10})}
                        end),
    %% pacing: its first try is over before this node refuses all
    receive {Writer, TooEarly} -> erlang:error(TooEarly) after 60 -> ok end,
    ok = counters:add(Running, 1, Max),
    receive {Writer, Answer} -> ?assertMatch({error, {too_few, _}}, Answer) end,
    ?assertEqual({error, overload}, weft_kv:put(one, Second, ?VALUE, #{retries => 10})),
    ok = counters:sub(Running, 1, Max),
    {ok, _} = weft_kv:delete(one, First).

%% Two keys of which there was nothing yet.
same_partition() ->
    [First | Others] = [<<(erlang:unique_integer([positive])):64>> || _ <- lists:seq(1, 100)],
    [Second | _] = [Key || Key <- Others, partition(Key) =:= partition(First)],
    {First, Second}.

partition(Key) ->
    {ok, Partition} = weft_ring:partition({<<"one">>, Key}),
    Partition.
