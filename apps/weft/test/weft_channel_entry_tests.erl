%% SPDX-License-Identifier: Apache-2.0
%% @doc The counter of a queue has the bytes of the messages that were given to it.
-module(weft_channel_entry_tests).

-include_lib("eunit/include/eunit.hrl").

-define(E, weft_channel_entry).

%% Each in a process of its own, which is the queue and has the tables.
entry_test_() ->
    [{Name, {spawn, {timeout, 60, ?_test(Test(queue()))}}}
     || {Name, Test} <- [{"it is given while there is room", fun given_while_there_is_room/1},
                         {"it is closed", fun closed/1},
                         {"one that finds no room", fun one_that_finds_no_room/1}]].

rest() -> receive {weft_item, Cost, item} -> Cost + rest() after 0 -> 0 end.

given_while_there_is_room(Bytes) ->
    Queue = {self(), Bytes},
    ?assertEqual([ok, ok, full], [?E:give(Queue, 100, 60, item) || _ <- [1, 2, 3]]),
    ?assertEqual(ok, ?E:give(Queue, infinity, 60, item)),
    ?assertEqual({180, 180}, {rest(), atomics:get(Bytes, 1)}).

closed(Bytes) ->
    Closed = -(1 bsl 60),
    ok = atomics:put(Bytes, 1, Closed),
    ?assertEqual([closed, closed], [?E:give({self(), Bytes}, L, 60, item) || L <- [100, infinity]]),
    ?assertEqual({0, Closed}, {rest(), atomics:get(Bytes, 1)}).

%% It is refused, or waits until the process of the queue says go or ends.
one_that_finds_no_room(_Bytes) ->
    ?assertEqual({error, overloaded}, ?E:no_room(self(), 60, channel(error, 100))),
    Goes = spawn(fun() -> receive {weft_wait, R, 60} -> R ! {R, go} end end),
    ?assertEqual(go, ?E:no_room(Goes, 60, channel(block, 100))),
    Ends = spawn(fun() -> receive {weft_wait, _, 60} -> ok end end),
    ?assertEqual(gone, ?E:no_room(Ends, 60, channel(block, 100))),
    Short = (channel(block, 100))#{block_ms => 1},
    {Silent, Ref} = spawn_monitor(fun gives_no_room/0),
    ?assertEqual({error, overloaded}, ?E:no_room(Silent, 60, Short)),
    receive {'DOWN', Ref, process, Silent, Reason} -> ?assertEqual(normal, Reason) end.

gives_no_room() ->
    receive {weft_wait, Ref, 60} -> receive {weft_wait_no_more, Ref} -> ok end end.

%% This process is the queue.
queue() ->
    ok = weft_channels:new_tables(),
    Bytes = atomics:new(1, [{signed, true}]),
    true = weft_channels:add_sender(node(), ?MODULE, 0, Bytes),
    Bytes.

channel(Policy, Max) ->
    #{name => ?MODULE, queue_bytes => Max, policy => Policy, block_ms => 30000,
      counters => weft_channel_counters:new()}.
