%% SPDX-License-Identifier: Apache-2.0
%% @doc The way into the queue of a channel: from the calling process to the sending one.
%%
%% The sending process for a node and partition is found in a table, or started. A counter holds the
%% bytes that wait for it. A message is accepted at once if the policy of the channel allows, or
%% when the process says, within block_ms, that there is room.
%%
%% The bytes are added before the message is sent. A process that is killed between the two leaves
%% them in the counter, and so does one that finds the queue full and is killed before it has taken
%% them out again; the sending process finds them (`weft_channel_waiters:unclaimed/2').
-module(weft_channel_entry).

-export([put/6, force/5, queue/3, give/4, no_room/3, cost/1]).
-export_type([result/0, queue/0]).
%% On the way of each message: not calls.
-compile({inline, [message/3, handed/4]}).

-type result() :: ok | {error, overloaded | not_started}.
-type queue() :: {pid(), atomics:atomics_ref()}.

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

put(Node, Partition, #{queue_bytes := Max} = Channel, Slot, Cost, Item, Tries) ->
    case queue(Node, Partition, Channel) of
        {error, not_started} = Error ->
            Error;
        Queue ->
            case handed(Queue, Max, Cost, message(Slot, Cost, Item)) of
                ok -> ok;
                Before -> full(Before, Queue, {Node, Partition, Channel, Slot, Cost, Item, Tries})
            end
    end.

message(none, Cost, Item) -> {weft_item, Cost, Item};
message(Slot, Cost, Item) -> {weft_slot, Slot, Cost, Item}.

%% Where there is no room, how many bytes waited before; those of the message are counted then.
handed({Pid, Bytes}, Limit, Cost, Message) ->
    case atomics:add_get(Bytes, 1, Cost) - Cost of
        Before when Before >= 0, Before < Limit ->
            Pid ! Message,
            ok;
        Before ->
            Before
    end.

%% A process that takes nothing more has made its counter negative.
full(Before, _Queue, Put) when Before < 0 ->
    again(Put);
full(Before, {Pid, Bytes} = Queue,
     {_, _, #{policy := Policy, queue_bytes := Max} = Channel, Slot, Cost, Item, _} = Put) ->
    case weft_channel_queue_core:admit(Policy, Before, Max) of
        accept ->
            Pid ! message(Slot, Cost, Item),
            ok;
        Refused ->
            atomics:sub(Bytes, 1, Cost),
            case refused(Refused, Pid, Cost, Channel) of
                go -> woken(Queue, Put);
                gone -> again(Put);
                Result -> Result
            end
    end.

%% @doc Puts an item in without asking whether there is room, and says whose it is now. Ends the
%% caller if the application does not run.
-spec force(node(), weft_channels:partition(), weft_channels:channel(), Cost :: pos_integer(),
            weft_channel_wire:item() | term()) -> pid().
force(Node, Partition, Channel, Cost, Item) ->
    case queue(Node, Partition, Channel) of
        {error, not_started} ->
            exit({shutdown, not_started});
        {Pid, _} = Queue ->
            case give(Queue, infinity, Cost, Item) of
                ok ->
                    Pid;
                closed ->
                    erlang:yield(),
                    force(Node, Partition, Channel, Cost, Item)
            end
    end.

%% @doc The queue for a node and partition; started if there is none.
-spec queue(node(), weft_channels:partition(), weft_channels:channel()) ->
          queue() | {error, not_started}.
queue(Node, Partition, #{name := Name} = Channel) ->
    case weft_channels:sender(Node, Name, Partition) of
        {_, _} = Queue ->
            Queue;
        none ->
            case weft_channel_workers:start(weft_channel_sender, [Node, Channel, Partition]) of
                {error, not_started} = Error -> Error;
                _ -> queue(Node, Partition, Channel)
            end
    end.

%% @doc Puts an item into a queue in which fewer bytes wait than Limit, and which is not closed.
-spec give(queue(), Limit :: pos_integer() | infinity, Cost :: pos_integer(),
           weft_channel_wire:item() | term()) -> ok | full | closed.
give({_Pid, Bytes} = Queue, Limit, Cost, Item) ->
    case handed(Queue, Limit, Cost, message(none, Cost, Item)) of
        ok ->
            ok;
        Before ->
            atomics:sub(Bytes, 1, Cost),
            case Before < 0 of
                true -> closed;
                false -> full
            end
    end.

%% The process is about to end; the next one is started when its row has gone.
again({_, _, _, _, _, _, 0}) ->
    {error, overloaded};
again({Node, Partition, Channel, Slot, Cost, Item, Tries}) ->
    erlang:yield(),
    put(Node, Partition, Channel, Slot, Cost, Item, Tries - 1).

%% @doc What the policy of the channel means for a caller that found the queue of a process full:
%% `go' if it has waited, and there is room now; `gone' if the process has ended.
-spec no_room(pid(), Cost :: pos_integer(), weft_channels:channel()) ->
          go | gone | ok | {error, overloaded}.
no_room(Pid, Cost, #{policy := Policy, queue_bytes := Max} = Channel) ->
    refused(weft_channel_queue_core:admit(Policy, Max, Max), Pid, Cost, Channel).

refused(wait, Pid, Cost, #{counters := Counters, block_ms := BlockMs}) ->
    weft_channel_counters:add(blocked, Counters),
    wait(Pid, Cost, BlockMs, Counters);
refused(drop, _Pid, _Cost, #{counters := Counters}) ->
    weft_channel_counters:add(dropped_newest, Counters);
refused(refuse, _Pid, _Cost, #{counters := Counters}) ->
    weft_channel_counters:add(refused, Counters),
    {error, overloaded}.

wait(Pid, Cost, BlockMs, Counters) ->
    Ref = erlang:monitor(process, Pid, [{alias, reply_demonitor}]),
    Pid ! {weft_wait, Ref, Cost},
    receive
        {Ref, go} -> go;
        {'DOWN', Ref, process, Pid, _} -> gone
    after BlockMs ->
            true = erlang:demonitor(Ref, [flush]),
            receive {Ref, go} -> ok after 0 -> ok end,
            Pid ! {weft_wait_no_more, Ref},
            weft_channel_counters:add(block_timeouts, Counters),
            {error, overloaded}
    end.

woken(Queue, {_, _, _, Slot, Cost, Item, _} = Put) ->
    case handed(Queue, infinity, Cost, message(Slot, Cost, Item)) of
        ok -> ok;
        _Closed -> again(Put)
    end.
