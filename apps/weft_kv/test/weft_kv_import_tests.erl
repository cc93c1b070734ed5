%% SPDX-License-Identifier: Apache-2.0
%% @doc Imports of what one bucket has into another one, in a store of one node: one process writes
%% to both, and numbers all its writes together.
-module(weft_kv_import_tests).

-include_lib("eunit/include/eunit.hrl").

on_one_node_test_() ->
    {setup,
     fun() ->
         weft_kv_one_node:started(?MODULE, #{}, #{carts => #{n => 1}, baskets => #{n => 1}})
     end,
     fun weft_kv_one_node:stopped/1,
     fun(Dir) ->
         File = filename:join(Dir, "carts.archive"),
         [{timeout, 30, {Title, fun() -> Test(File) end}}
          || {Title, Test} <- [{"what is there was written before it", fun there_before/1},
                               {"what is there was written after it", fun there_after/1},
                               {"what was replaced in its own bucket stays so", fun back_again/1}]]
     end}.

there_before(File) ->
    [Key | _] = in_one_partition(),
    {ok, _} = weft_kv:put(baskets, Key, <<"there">>),
    {ok, _} = weft_kv:put(carts, Key, <<"comes">>),
    both_stay(Key, File).

there_after(File) ->
    [_, Key | _] = in_one_partition(),
    {ok, _} = weft_kv:put(carts, Key, <<"comes">>),
    {ok, _} = weft_kv:put(baskets, Key, <<"there">>),
    both_stay(Key, File).

%% And a second import changes nothing, nor does one after a write that has seen both.
both_stay(Key, File) ->
    ok = imported(File),
    {siblings, [<<"comes">>, <<"there">>], Context} = weft_kv:get(baskets, Key),
    ok = imported(File),
    ?assertEqual({siblings, [<<"comes">>, <<"there">>], Context}, weft_kv:get(baskets, Key)),
    {ok, _} = weft_kv:put(baskets, Key, <<"both">>, #{context => Context}),
    ok = imported(File),
    ?assertMatch({ok, <<"both">>, _}, weft_kv:get(baskets, Key)),
    ?assertMatch({ok, <<"comes">>, _}, weft_kv:get(carts, Key)).

imported(File) ->
    {ok, _} = weft_kv:export(File, #{buckets => [<<"carts">>]}),
    {ok, #{buckets := #{<<"carts">> := #{kept := 0}}}} =
        weft_kv:import(File, #{into => <<"baskets">>}),
    ok.

%% There it is known.
back_again(File) ->
    [_, _, Key | _] = in_one_partition(),
    {ok, Context} = weft_kv:put(carts, Key, <<"old">>),
    {ok, _} = weft_kv:export(File, #{buckets => [<<"carts">>]}),
    {ok, _} = weft_kv:put(carts, Key, <<"new">>, #{context => Context}),
    {ok, _} = weft_kv:import(File, #{}),
    ?assertMatch({ok, <<"new">>, _}, weft_kv:get(carts, Key)).

%% Keys that are in the same partition in both buckets.
in_one_partition() ->
    [Key || Number <- lists:seq(1, 1000), Key <- [integer_to_binary(Number)],
            lists:usort([weft_ring:partition({Bucket, Key})
                         || Bucket <- [<<"carts">>, <<"baskets">>]]) =:= [{ok, 0}]].
