%% SPDX-License-Identifier: Apache-2.0
%% @doc A process takes memory for what it has to send, and gives it back.
-module(weft_session_memory_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MEMORY, weft_session_memory).

what_was_taken_is_given_back_test() ->
    ?assertEqual({true, true}, in_a_process(fun() ->
                     Before = heaps(),
                     Usual = ?MEMORY:take(),
                     Busy = heaps(),
                     ok = ?MEMORY:give_back(Usual),
                     {lists:all(fun({Less, More}) -> Less < More end, lists:zip(Before, Busy)),
                      Before =:= heaps()}
                 end)).

a_process_with_something_on_its_heap_is_not_little_test() ->
    ?assertEqual([true, false], in_a_process(fun() ->
                     Little = ?MEMORY:is_little(),
                     Much = lists:seq(1, 5000),
                     IsLittle = ?MEMORY:is_little(),
                     5000 = length(Much),
                     [Little, IsLittle]
                 end)).

heaps() ->
    {garbage_collection, Settings} = process_info(self(), garbage_collection),
    [proplists:get_value(Name, Settings) || Name <- [min_heap_size, min_bin_vheap_size]].

in_a_process(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({done, Fun()}) end),
    receive {'DOWN', Monitor, process, Pid, {done, Result}} -> Result after 5000 -> none end.
