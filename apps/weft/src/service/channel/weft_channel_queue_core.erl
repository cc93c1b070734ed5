%% SPDX-License-Identifier: Apache-2.0
%% @doc What waits to be sent on one partition of a channel: a bounded queue, or slots.
%%
%% Pure; called in place by the process that sends. An item has a cost in bytes. The process that
%% calls `weft:send/3' decides itself whether it may put an item in (`admit/3'), from a counter that
%% it shares with the sending process. The bound kept in here is for `drop_oldest', where the caller
%% has nothing to decide.
%%
%% A *monotonic* channel has slots instead of a queue, one for each key and receiver: the newest
%% item replaces one that still waits. An item leaves at once if none left for its slot in the last
%% window_ms, else when that time is over. An item that is replaced was never encoded. Slots end
%% their window in the order in which their items left, so one timer is enough for all of them
%% (`due_ms/1'), and an idle slot takes no memory.
-module(weft_channel_queue_core).

-export([new/1, admit/3, in/4, batch/4, wake/2, due_ms/1, is_ready/1, is_empty/1, bytes/1, all/1]).
-export_type([queue/0, policy/0, entry/0, options/0]).

-type policy() :: block | drop_newest | drop_oldest | error.
-type entry() :: {CostBytes :: non_neg_integer(), Item :: term()}.
-type options() :: #{policy := policy(), queue_bytes := pos_integer(),
                     monotonic := undefined | WindowMs :: pos_integer(), _ => _}.
-type slot() :: {ready | cooling, entry() | none}.

-record(fifo, {bytes_max :: pos_integer() | infinity,
               bytes = 0 :: non_neg_integer(),
               front = [] :: [entry()],
               rear = [] :: [entry()]}).
-record(slots, {window_ms :: pos_integer(),
                bytes = 0 :: non_neg_integer(),
                slots = #{} :: #{Key :: term() => slot()},
                ready = queue:new() :: queue:queue(Key :: term()),
                cooling = queue:new() :: queue:queue({DueMs :: integer(), Key :: term()})}).
-opaque queue() :: #fifo{} | #slots{}.

-spec new(options()) -> queue().
new(#{monotonic := WindowMs}) when is_integer(WindowMs) ->
    #slots{window_ms = WindowMs};
new(#{policy := drop_oldest, queue_bytes := BytesMax}) ->
    #fifo{bytes_max = BytesMax};
new(#{}) ->
    #fifo{bytes_max = infinity}.

%% @doc What a caller does that finds BytesBefore in the queue. The last item may exceed the bound
%% by its own size. With `drop_oldest' the queue makes room itself; a caller that is faster than
%% that waits at twice the bound.
-spec admit(policy(), BytesBefore :: integer(), BytesMax :: pos_integer()) ->
          accept | wait | drop | refuse.
admit(_Policy, Before, Max) when Before < Max -> accept;
admit(drop_oldest, Before, Max) when Before < 2 * Max -> accept;
admit(drop_newest, _Before, _Max) -> drop;
admit(error, _Before, _Max) -> refuse;
admit(_BlockOrDropOldest, _Before, _Max) -> wait.

%% @doc Puts an item in. Slot is its key and receiver, used by a monotonic channel only. Returns
%% what was removed for it: older items over the bound, or the one that it replaces.
-spec in(Slot :: term(), CostBytes :: non_neg_integer(), Item :: term(), queue()) ->
          {Dropped :: [entry()], queue()}.
in(_Slot, Cost, Item, #fifo{bytes_max = infinity, bytes = Bytes, rear = Rear} = Queue) ->
    {[], Queue#fifo{bytes = Bytes + Cost, rear = [{Cost, Item} | Rear]}};
in(_Slot, Cost, Item, #fifo{bytes = Bytes, rear = Rear} = Queue) ->
    drop_oldest([], Queue#fifo{bytes = Bytes + Cost, rear = [{Cost, Item} | Rear]});
in(Key, Cost, Item, #slots{bytes = Bytes, slots = Slots, ready = Ready} = Queue) ->
    Entry = {Cost, Item},
    case Slots of
        #{Key := {State, none}} ->
            {[], Queue#slots{bytes = Bytes + Cost, slots = Slots#{Key := {State, Entry}}}};
        #{Key := {State, {OldCost, _} = Old}} ->
            {[Old], Queue#slots{bytes = Bytes + Cost - OldCost,
                                slots = Slots#{Key := {State, Entry}}}};
        #{} ->
            {[], Queue#slots{bytes = Bytes + Cost, slots = Slots#{Key => {ready, Entry}},
                             ready = queue:in(Key, Ready)}}
    end.

%% The newest stays, whatever its size.
drop_oldest(Dropped, #fifo{bytes = Bytes, bytes_max = Max} = Queue) when Bytes =< Max ->
    {lists:reverse(Dropped), Queue};
drop_oldest(Dropped, #fifo{front = [], rear = [_]} = Queue) ->
    {lists:reverse(Dropped), Queue};
drop_oldest(Dropped, #fifo{front = [], rear = Rear} = Queue) ->
    drop_oldest(Dropped, Queue#fifo{front = lists:reverse(Rear), rear = []});
drop_oldest(Dropped, #fifo{front = [_], rear = []} = Queue) ->
    {lists:reverse(Dropped), Queue};
drop_oldest(Dropped, #fifo{front = [{Cost, _} = Entry | Front], bytes = Bytes} = Queue) ->
    drop_oldest([Entry | Dropped], Queue#fifo{front = Front, bytes = Bytes - Cost}).

%% @doc Takes items that may be sent now, oldest first, of about BytesMax together; one of
%% AloneBytes or more comes alone. [] if nothing may be sent now.
-spec batch(BytesMax :: pos_integer(), AloneBytes :: pos_integer(), NowMs :: integer(), queue()) ->
          {Items :: [term()], Bytes :: non_neg_integer(), queue()}.
batch(BytesMax, Alone, NowMs, Queue) ->
    take(BytesMax, Alone, NowMs, 0, [], Queue).

take(Max, _Alone, _NowMs, Bytes, Items, Queue) when Bytes >= Max ->
    {lists:reverse(Items), Bytes, Queue};
take(Max, Alone, NowMs, Bytes, Items, #fifo{front = [{Cost, Item} | Front], bytes = All} = Queue) ->
    case Cost >= Alone of
        true when Items =/= [] -> {lists:reverse(Items), Bytes, Queue};
        true -> {[Item], Cost, Queue#fifo{front = Front, bytes = All - Cost}};
        false -> take(Max, Alone, NowMs, Bytes + Cost, [Item | Items],
                      Queue#fifo{front = Front, bytes = All - Cost})
    end;
take(_Max, _Alone, _NowMs, Bytes, Items, #fifo{rear = []} = Queue) ->
    {lists:reverse(Items), Bytes, Queue};
take(Max, Alone, NowMs, Bytes, Items, #fifo{rear = Rear} = Queue) ->
    take(Max, Alone, NowMs, Bytes, Items, Queue#fifo{front = lists:reverse(Rear), rear = []});
take(Max, Alone, NowMs, Bytes, Items, #slots{slots = Slots, ready = Ready} = Queue) ->
    case queue:peek(Ready) of
        empty ->
            {lists:reverse(Items), Bytes, Queue};
        {value, Key} ->
            #{Key := {ready, {Cost, Item}}} = Slots,
            case Cost >= Alone of
                true when Items =/= [] -> {lists:reverse(Items), Bytes, Queue};
                true -> {[Item], Cost, leave(Key, Cost, NowMs, Queue)};
                false -> take(Max, Alone, NowMs, Bytes + Cost, [Item | Items],
                              leave(Key, Cost, NowMs, Queue))
            end
    end.

leave(Key, Cost, NowMs, #slots{slots = Slots, ready = Ready, cooling = Cooling, bytes = Bytes,
                               window_ms = WindowMs} = Queue) ->
    Queue#slots{slots = Slots#{Key := {cooling, none}}, ready = queue:drop(Ready),
                cooling = queue:in({NowMs + WindowMs, Key}, Cooling), bytes = Bytes - Cost}.

%% @doc Slots whose window is over by now may send again; those without an item are forgotten.
-spec wake(NowMs :: integer(), queue()) -> queue().
wake(NowMs, #slots{cooling = Cooling, slots = Slots, ready = Ready} = Queue) ->
    case queue:peek(Cooling) of
        {value, {DueMs, Key}} when DueMs =< NowMs ->
            Rest = Queue#slots{cooling = queue:drop(Cooling)},
            wake(NowMs, case Slots of
                            #{Key := {cooling, none}} ->
                                Rest#slots{slots = maps:remove(Key, Slots)};
                            #{Key := {cooling, Entry}} ->
                                Rest#slots{slots = Slots#{Key := {ready, Entry}},
                                           ready = queue:in(Key, Ready)}
                        end);
        _ ->
            Queue
    end;
wake(_NowMs, Queue) ->
    Queue.

%% @doc When `wake/2' has something to do next.
-spec due_ms(queue()) -> integer() | never.
due_ms(#slots{cooling = Cooling}) ->
    case queue:peek(Cooling) of
        {value, {DueMs, _}} -> DueMs;
        empty -> never
    end;
due_ms(#fifo{}) ->
    never.

%% @doc May something be sent now?
-spec is_ready(queue()) -> boolean().
is_ready(#fifo{front = [], rear = []}) -> false;
is_ready(#fifo{}) -> true;
is_ready(#slots{ready = Ready}) -> not queue:is_empty(Ready).

%% @doc Is there nothing to send and nothing to remember?
-spec is_empty(queue()) -> boolean().
is_empty(#fifo{} = Queue) -> not is_ready(Queue);
is_empty(#slots{slots = Slots}) -> map_size(Slots) =:= 0.

%% @doc Sum of the costs of what waits.
-spec bytes(queue()) -> non_neg_integer().
bytes(#fifo{bytes = Bytes}) -> Bytes;
bytes(#slots{bytes = Bytes}) -> Bytes.

%% @doc All that waits, for the end of a channel.
-spec all(queue()) -> [entry()].
all(#fifo{front = Front, rear = Rear}) -> Front ++ lists:reverse(Rear);
all(#slots{slots = Slots}) -> [Entry || {_, Entry} <- maps:values(Slots), Entry =/= none].
