%% SPDX-License-Identifier: Apache-2.0
%% @doc Imports of what one bucket has into another one, in a store of one node: one process writes
%% to both, and numbers all its writes together.
-module(weft_kv_import_tests).

-include_lib("eunit/include/eunit.hrl").

on_one_node_test_() ->
    {setup,
     fun() ->
         Siblings = #{n => 1},
         weft_kv_one_node:started(?MODULE, #{}, #{carts => Siblings, baskets => Siblings,
                                                  plain => Siblings#{siblings => false}})
     end,
     fun weft_kv_one_node:stopped/1,
     fun(Dir) ->
         File = filename:join(Dir, "carts.archive"),
         [{timeout, 30, {Title, fun() -> Test(File) end}}
          || {Title, Test} <- [{"what is there was written before it", fun there_before/1},
                               {"what is there was written after it", fun there_after/1},
                               {"what was replaced in its own bucket stays so", fun back_again/1},
                               {"without siblings the later value stays", fun later/1},
                               {"what was deleted elsewhere stays", fun deleted/1},
                               {"what is over elsewhere stays", fun over/1},
                               {"what is there beside a deletion comes", fun beside/1}]]
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

later(File) ->
    {ok, _} = weft_kv:put(plain, <<"first">>, <<"there">>),
    {ok, _} = weft_kv:put(carts, <<"second">>, <<"comes">>),
    ok = later_ms(),
    {ok, _} = weft_kv:put(carts, <<"first">>, <<"comes">>),
    {ok, _} = weft_kv:put(plain, <<"second">>, <<"there">>),
    ok = into_plain(File),
    ?assertMatch([{ok, <<"comes">>, _}, {ok, <<"there">>, _}],
                 [weft_kv:get(plain, Key) || Key <- [<<"first">>, <<"second">>]]).

%% Later, and in the other bucket.
deleted(File) ->
    {ok, _} = weft_kv:put(plain, <<"deleted">>, <<"there">>),
    ok = later_ms(),
    {ok, Context} = weft_kv:put(carts, <<"deleted">>, <<"comes">>),
    {ok, _} = weft_kv:delete(carts, <<"deleted">>, #{context => Context}),
    ok = into_plain(File),
    ?assertMatch({ok, <<"there">>, _}, weft_kv:get(plain, <<"deleted">>)).

over(File) ->
    {ok, _} = weft_kv:put(plain, <<"over">>, <<"there">>),
    ok = later_ms(),
    {ok, _} = weft_kv:put(carts, <<"over">>, <<"comes">>, #{ttl_ms => 1}),
    ok = later_ms(),
    ok = into_plain(File),
    ?assertMatch({ok, <<"there">>, _}, weft_kv:get(plain, <<"over">>)).

beside(File) ->
    {ok, Context} = weft_kv:put(carts, <<"beside">>, <<"deleted">>),
    {ok, _} = weft_kv:put(carts, <<"beside">>, <<"comes">>),
    ok = later_ms(),
    {ok, _} = weft_kv:delete(carts, <<"beside">>, #{context => Context}),
    {ok, <<"comes">>, _} = weft_kv:get(carts, <<"beside">>),
    ok = into_plain(File),
    ?assertMatch({ok, <<"comes">>, _}, weft_kv:get(plain, <<"beside">>)).

into_plain(File) ->
    {ok, _} = weft_kv:export(File, #{buckets => [<<"carts">>]}),
    {ok, _} = weft_kv:import(File, #{into => <<"plain">>}),
    ok.

%% The clock of what is written is one of milliseconds.
later_ms() ->
    Ms = os:system_time(millisecond),
    weft_test_nodes:until(fun() -> os:system_time(millisecond) > Ms + 1 end).

%% Keys that are in the same partition in both buckets.
in_one_partition() ->
    [Key || Number <- lists:seq(1, 1000), Key <- [integer_to_binary(Number)],
            lists:usort([weft_ring:partition({Bucket, Key})
                         || Bucket <- [<<"carts">>, <<"baskets">>]]) =:= [{ok, 0}]].
