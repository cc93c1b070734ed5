%% SPDX-License-Identifier: Apache-2.0
%% @doc The callers that wait for room in a queue of a channel, and when each of them may send.
%%
%% A counter has the bytes of all that was given to the queue and is not in the stream yet. Callers
%% that find it at the limit ask the owner of the queue to be told when to go on, and are told in
%% their order, many at once as soon as half of the limit is free. They add their bytes themselves
%% then. One that has ended meanwhile adds none, and so none of it will ever be freed, at which
%% others would be told: the owner gets `wake_more' after a while, and hands it in. One that ended
%% when it had added some, and did not give the message, has left them there (`unclaimed/2').
-module(weft_channel_waiters).

-export([new/2, in/3, out/2, freed/2, unclaimed/2, wake_more/1, of_former_shape/4]).
-export_type([waiters/0]).

%% So much a caller sends that was woken, in general.
-define(TURN_BYTES, 16384).
-define(WAKE_MS, 100).

-record(waiters, {bytes :: atomics:atomics_ref(),
                  low :: non_neg_integer(),
                  high :: pos_integer(),
                  queue = queue:new() :: queue:queue({reference(), Cost :: pos_integer()}),
                  is_timer_set = false :: boolean()}).
-opaque waiters() :: #waiters{}.

%% @doc Nobody waits yet. `Bytes' is the counter.
-spec new(atomics:atomics_ref(), weft_channels:channel()) -> waiters().
new(Bytes, Channel) ->
    {Low, High} = marks(Channel),
    #waiters{bytes = Bytes, low = Low, high = High}.

%% If the oldest are dropped the queue is never empty for long.
marks(#{queue_bytes := Limit, policy := drop_oldest}) -> {Limit * 3 div 2, Limit * 2};
marks(#{queue_bytes := Limit}) -> {Limit div 2, Limit}.

%% @doc A caller asks for as much room. It gets `{Ref, go}', now or later.
-spec in(reference(), Cost :: pos_integer(), waiters()) -> waiters().
in(Ref, Cost, #waiters{queue = Queue} = Waiters) ->
    wake(Waiters#waiters{queue = queue:in({Ref, Cost}, Queue)}).

%% @doc A caller has given up.
-spec out(reference(), waiters()) -> waiters().
out(Ref, #waiters{queue = Queue} = Waiters) ->
    wake(Waiters#waiters{queue = queue:filter(fun({R, _}) -> R =/= Ref end, Queue)}).

%% @doc Takes as many bytes from the counter: there is room for others.
-spec freed(Cost :: non_neg_integer(), waiters()) -> waiters().
freed(0, Waiters) ->
    Waiters;
freed(Cost, #waiters{bytes = Bytes, queue = Queue} = Waiters) ->
    atomics:sub(Bytes, 1, Cost),
    case queue:is_empty(Queue) of
        true -> Waiters;
        false -> wake(Waiters)
    end.

%% @doc Nothing waits in the queue, and nothing has come since the last look. What has been in the
%% counter all that time is of callers that have ended; it is freed. Then is what the counter had at
%% the last look; returns what it has now.
-spec unclaimed(Then :: non_neg_integer(), waiters()) -> {Now :: non_neg_integer(), waiters()}.
unclaimed(Then, #waiters{bytes = Bytes} = Waiters) ->
    Now = max(0, atomics:get(Bytes, 1)),
    Lost = min(Then, Now),
    {Now - Lost, freed(Lost, Waiters)}.

%% @doc The time of `wake_more' has come.
-spec wake_more(waiters()) -> waiters().
wake_more(Waiters) ->
    wake(Waiters#waiters{is_timer_set = false}).

%% @doc From the state of a sender that had the queue of its callers, and whether a timer is set, in
%% fields of its own.
-spec of_former_shape(atomics:atomics_ref(), weft_channels:channel(),
                      queue:queue({reference(), pos_integer()}), boolean()) ->
          waiters().
of_former_shape(Bytes, Channel, Queue, IsTimerSet) ->
    (new(Bytes, Channel))#waiters{queue = Queue, is_timer_set = IsTimerSet}.

wake(#waiters{bytes = Bytes, low = Low} = Waiters) ->
    case atomics:get(Bytes, 1) of
        Now when Now =< Low -> wake(Now, turn_bytes(Now, Low), Waiters);
        _ -> Waiters
    end.

%% A caller that is woken mostly has more to send than what it waits with, and to wait costs more
%% than to send. So only as many are woken as have room for this much each; the less there is left
%% to send, the more of them.
turn_bytes(Now, Low) -> ?TURN_BYTES * Now div Low.

wake(Now, TurnBytes, #waiters{high = High, queue = Queue} = Waiters) ->
    case queue:out(Queue) of
        {{value, {Ref, Cost}}, Rest} when Now < High ->
            Ref ! {Ref, go},
            wake(Now + max(Cost, TurnBytes), TurnBytes, Waiters#waiters{queue = Rest});
        {{value, _}, _} ->
            look_again(Waiters);
        {empty, _} ->
            Waiters
    end.

%% A caller that was woken may have ended instead of sending; then no event would ever wake others.
look_again(#waiters{is_timer_set = true} = Waiters) ->
    Waiters;
look_again(Waiters) ->
    _ = erlang:send_after(?WAKE_MS, self(), wake_more),
    Waiters#waiters{is_timer_set = true}.
