%% SPDX-License-Identifier: Apache-2.0
%% @doc The way into the queue of a channel: from the calling process to the sending one.
%%
%% The sending process for a node and partition is found in a table, or started. A counter holds the
%% bytes that wait for it. A message is accepted at once if the policy of the channel allows, or
%% when the process says, within block_ms, that there is room.
-module(weft_channel_entry).

-export([put/6, force/5, cost/1]).
-export_type([result/0]).

-type result() :: ok | {error, overloaded | not_started}.

%% Counted for a message besides its own bytes.
-define(MESSAGE_BYTES, 64).
-define(CLOSED_TRIES, 1000).

%% @doc Bytes that a message counts with: about what it takes when encoded.
-spec cost(term()) -> pos_integer().
cost(Binary) when is_binary(Binary) -> ?MESSAGE_BYTES + byte_size(Binary);
cost(Term) -> ?MESSAGE_BYTES + erlang:external_size(Term).

%% @doc Puts an item in. Slot is `none', or its place on a monotonic channel.
-spec put(node(), weft_channels:partition(), weft_channels:channel(), Slot :: none | term(),
          Cost :: pos_integer(), weft_channel_wire:item()) -> result().
put(Node, Partition, Channel, Slot, Cost, Item) ->
    put(Node, Partition, Channel, Slot, Cost, Item, ?CLOSED_TRIES).

put(Node, Partition, #{name := Name, queue_bytes := Max} = Channel, Slot, Cost, Item, Tries) ->
    case weft_channels:sender(Node, Name, Partition) of
        {Pid, Bytes} ->
            case atomics:add_get(Bytes, 1, Cost) - Cost of
                Before when Before >= 0, Before < Max ->
                    give(Pid, Slot, Cost, Item);
                Before ->
                    full(Before, Pid, Bytes, {Node, Partition, Channel, Slot, Cost, Item, Tries})
            end;
        none ->
            case weft_channel_workers:start(weft_channel_sender, [Node, Channel, Partition]) of
                {error, not_started} = Error -> Error;
                _ -> put(Node, Partition, Channel, Slot, Cost, Item, Tries)
            end
    end.

give(Pid, none, Cost, Item) -> Pid ! {weft_item, Cost, Item}, ok;
give(Pid, Slot, Cost, Item) -> Pid ! {weft_slot, Slot, Cost, Item}, ok.

full(Before, Pid, Bytes, {_, _, #{policy := Policy, queue_bytes := Max, counters := Counters},
                          Slot, Cost, Item, _} = Put) ->
    case is_closed(Before) of
        true ->
            again(Put);
        false ->
            case weft_channel_queue_core:admit(Policy, Before, Max) of
                accept ->
                    give(Pid, Slot, Cost, Item);
                wait ->
                    atomics:sub(Bytes, 1, Cost),
                    weft_channel_counters:add(blocked, Counters),
                    wait(Pid, Bytes, Put);
                drop ->
                    atomics:sub(Bytes, 1, Cost),
                    weft_channel_counters:add(dropped_newest, Counters);
                refuse ->
                    atomics:sub(Bytes, 1, Cost),
                    weft_channel_counters:add(refused, Counters),
                    {error, overloaded}
            end
    end.

%% A process that takes nothing more has made its counter negative.
is_closed(Before) -> Before < 0.

%% @doc Puts an item in without asking whether there is room, and says whose it is now. Ends the
%% caller if the application does not run.
-spec force(node(), weft_channels:partition(), weft_channels:channel(), Cost :: pos_integer(),
            weft_channel_wire:item() | term()) -> pid().
force(Node, Partition, #{name := Name} = Channel, Cost, Item) ->
    case weft_channels:sender(Node, Name, Partition) of
        {Pid, Bytes} ->
            case is_closed(atomics:add_get(Bytes, 1, Cost) - Cost) of
                false ->
                    ok = give(Pid, none, Cost, Item),
                    Pid;
                true ->
                    erlang:yield(),
                    force(Node, Partition, Channel, Cost, Item)
            end;
        none ->
            case weft_channel_workers:start(weft_channel_sender, [Node, Channel, Partition]) of
                {error, not_started} -> exit({shutdown, not_started});
                _ -> force(Node, Partition, Channel, Cost, Item)
            end
    end.

%% The process is about to end; the next one is started when its row has gone.
again({_, _, _, _, _, _, 0}) ->
    {error, overloaded};
again({Node, Partition, Channel, Slot, Cost, Item, Tries}) ->
    erlang:yield(),
    put(Node, Partition, Channel, Slot, Cost, Item, Tries - 1).

wait(Pid, Bytes, {_, _, #{block_ms := BlockMs, counters := Counters}, Slot, Cost, Item, _} = Put) ->
    Ref = erlang:monitor(process, Pid, [{alias, reply_demonitor}]),
    Pid ! {weft_wait, Ref, Cost},
    receive
        {Ref, go} ->
            Before = atomics:add_get(Bytes, 1, Cost) - Cost,
            case is_closed(Before) of
                true -> again(Put);
                false -> give(Pid, Slot, Cost, Item)
            end;
        {'DOWN', Ref, process, Pid, _} ->
            again(Put)
    after BlockMs ->
            true = erlang:demonitor(Ref, [flush]),
            receive {Ref, go} -> ok after 0 -> ok end,
            Pid ! {weft_wait_no_more, Ref},
            weft_channel_counters:add(block_timeouts, Counters),
            {error, overloaded}
    end.
