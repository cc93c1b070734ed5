%% SPDX-License-Identifier: Apache-2.0
%% @doc The queues of senders, and whose turn it is: start-time fair queueing (Goyal, Vin, Cheng
%% 1996), by bytes, weighted by the class of the sender. Pure data of `weft_fair_queue_core'.
%%
%% Each queue has a tag, and the queue with the smallest tag is next. When it has sent a payload its
%% tag grows by the price of these bytes. The virtual time is the tag of the queue whose turn it was
%% last; a new queue begins there. A sender whose queue was empty for a moment keeps the tag that it
%% has reached, so that it cannot go before the others by sending little at a time.
%%
%% A sender with a message in progress is served first for a while, because a message that is
%% received in part takes memory at the peer.
%%
%% All queues together have a limit. A sender whose queue is over its share of that is to be
%% suspended, until half of the share is left.
-module(weft_sender_queues).

-export([new/1, count/1, holds/2, add/2, append/2, start/5, classes/2, begun/1, next/1, serve/3,
         info/1]).
-export_type([queues/0, class/0, frame/0, effect/0]).

%% The share of a sender, before it is suspended.
-define(SHARE_MIN_BYTES, 131072).
-define(SHARE_MAX_BYTES, 1048576).
%% Tags of senders without a queue that are remembered.
-define(DEBTS_MAX, 1024).
%% Messages in progress that are remembered.
-define(IN_PROGRESS_MAX, 8).

-type key() :: weft_frame:key().
-type class() :: control | default | bulk.
-type frame() :: {Bytes :: non_neg_integer(), iodata(), weft_frame:sender(), class() | none,
                  whole | middle | final, weft_atom_cache:stamp()}.
-type effect() :: none | {suspend | resume, key()}.
-type tag() :: non_neg_integer().

-record(queue, {fifo :: weft_payload_fifo:fifo(),
                class :: class() | none,
                tag :: tag(),
                behind :: non_neg_integer(),
                suspended = false :: boolean()}).
-record(queues, {bytes_max :: pos_integer(),
                 senders = #{} :: #{key() => #queue{}},
                 turns = gb_sets:new() :: gb_sets:set({tag(), key()}),
                 time = 0 :: tag(),
                 debts = #{} :: #{key() => tag()},
                 in_progress = [] :: [{key(), BytesLeft :: pos_integer()}]}).
-opaque queues() :: #queues{}.

%% @doc No queues. BytesMax is what all of them should hold together.
-spec new(BytesMax :: pos_integer()) -> queues().
new(BytesMax) -> #queues{bytes_max = BytesMax}.

-spec count(queues()) -> non_neg_integer().
count(#queues{senders = Senders}) -> map_size(Senders).

-spec holds(key(), queues()) -> boolean().
holds(Key, #queues{senders = Senders}) -> is_map_key(Key, Senders).

%% @doc A frame more for the queue that its sender has.
-spec add(frame(), queues()) -> {effect(), queues()}.
add({_, _, Key, _, _, _} = Frame, #queues{senders = Senders} = Queues) ->
    #{Key := #queue{fifo = Fifo} = Queue} = Senders,
    grown(Key, Queue#queue{fifo = append(Frame, Fifo)}, Queues).

-spec append(frame(), weft_payload_fifo:fifo()) -> weft_payload_fifo:fifo().
append({Bytes, Data, _Sender, _Class, Part, Stamp}, Fifo) ->
    weft_payload_fifo:add(Bytes, Data, Part, Stamp, Fifo).

%% @doc A sender that had no queue gets this one. It is not served before the number Behind of
%% express payloads has been taken (`next/1').
-spec start(key(), class() | none, weft_payload_fifo:fifo(), Behind :: non_neg_integer(),
            queues()) -> {effect(), queues()}.
start(Key, Class, Fifo, Behind, #queues{time = Time, turns = Turns, debts = Debts} = Queues) ->
    Tag = max(Time, maps:get(Key, Debts, 0)),
    grown(Key, #queue{fifo = Fifo, class = Class, tag = Tag, behind = Behind},
          Queues#queues{turns = gb_sets:insert({Tag, Key}, Turns),
                        debts = maps:remove(Key, Debts)}).

%% @doc The classes of senders have changed. It counts from their next payload on, because a sender
%% that sends all the time may have the same queue for ever.
-spec classes(#{key() => class()}, queues()) -> queues().
classes(Classes, #queues{senders = Senders} = Queues) ->
    Queues#queues{senders = maps:map(fun(Key, Queue) ->
                                             Queue#queue{class = maps:get(Key, Classes, none)}
                                     end, Senders)}.

%% Puts back a queue that has grown.
grown(Key, #queue{suspended = false, fifo = Fifo} = Queue, #queues{senders = Senders} = Queues) ->
    Bytes = weft_payload_fifo:bytes(Fifo),
    case Bytes > ?SHARE_MIN_BYTES andalso Bytes > share_bytes(Queues) of
        true ->
            Suspended = Queue#queue{suspended = true},
            {{suspend, Key}, Queues#queues{senders = Senders#{Key => Suspended}}};
        false ->
            {none, Queues#queues{senders = Senders#{Key => Queue}}}
    end;
grown(Key, Queue, #queues{senders = Senders} = Queues) ->
    {none, Queues#queues{senders = Senders#{Key => Queue}}}.

share_bytes(#queues{bytes_max = Max, senders = Senders}) ->
    max(?SHARE_MIN_BYTES, min(?SHARE_MAX_BYTES, Max div 4 div max(1, map_size(Senders)))).

%% @doc Of each queue the number of payloads that were begun.
-spec begun(queues()) -> #{key() => non_neg_integer()}.
begun(#queues{senders = Senders}) ->
    maps:map(fun(_, #queue{fifo = Fifo}) -> weft_payload_fifo:begun(Fifo) end, Senders).

%% @doc The sender whose turn it is, and how many express payloads have to be taken before. A sender
%% with a message in progress goes on, unless a sender of a better class waits. There is a queue.
-spec next(queues()) -> {key(), Behind :: non_neg_integer()}.
next(#queues{senders = Senders, turns = Turns, in_progress = InProgress}) ->
    {_, First} = gb_sets:smallest(Turns),
    Next = case [Sender || {Sender, _} <- InProgress, is_map_key(Sender, Senders)] of
               [Sender | _] -> better(First, Sender, Senders);
               [] -> First
           end,
    #{Next := #queue{behind = Behind}} = Senders,
    {Next, Behind}.

better(First, Sender, Senders) ->
    #{First := #queue{class = Class}, Sender := #queue{class = Held}} = Senders,
    case cost(Class) < cost(Held) of
        true -> First;
        false -> Sender
    end.

%% The price of a byte: one over the weight of the sender's class, times 16.
cost(control) -> 1;
cost(default) -> 4;
cost(none) -> 4;
cost(bulk) -> 16.

%% @doc Takes a payload of a sender, and tells how many of this sender were taken so far. A message
%% in progress keeps its sender first for ProgressBytes.
-spec serve(key(), ProgressBytes :: pos_integer(), queues()) ->
          {weft_payload_fifo:payload(), Count :: non_neg_integer(), effect(), queues()}.
serve(Key, ProgressBytes, #queues{senders = Senders, turns = Turns} = Queues) ->
    #{Key := #queue{fifo = Fifo0, tag = Tag, class = Class} = Queue} = Senders,
    {{_, Bytes, IsWhole, _} = Taken, Fifo} = weft_payload_fifo:take(Fifo0),
    {Effect, Served} =
        served(Key, Queue#queue{fifo = Fifo, tag = Tag + Bytes * cost(Class)},
               Queues#queues{turns = gb_sets:delete({Tag, Key}, Turns),
                             time = time(Key, Tag, Queues),
                             in_progress = progress(Key, Bytes, IsWhole, ProgressBytes, Queues)}),
    {Taken, weft_payload_fifo:taken(Fifo), Effect, Served}.

%% A queue that is served out of turn, for a message in progress, does not move the virtual time.
time(Key, Tag, #queues{in_progress = InProgress, time = Time}) ->
    case lists:keymember(Key, 1, InProgress) of
        true -> Time;
        false -> Tag
    end.

%% A sender with a message in progress may send nothing for a moment. If there are too many, the
%% oldest that has nothing waiting here is forgotten; it may be dead.
progress(Key, _Bytes, true, _ProgressBytes, #queues{in_progress = InProgress}) ->
    lists:keydelete(Key, 1, InProgress);
progress(Key, Bytes, false, ProgressBytes, #queues{in_progress = InProgress, senders = Senders}) ->
    case lists:keyfind(Key, 1, InProgress) of
        {_, Left} when Left =< Bytes -> lists:keydelete(Key, 1, InProgress);
        {_, Left} -> lists:keyreplace(Key, 1, InProgress, {Key, Left - Bytes});
        false when length(InProgress) < ?IN_PROGRESS_MAX -> InProgress ++ [{Key, ProgressBytes}];
        false ->
            case [Sender || {Sender, _} <- InProgress, not is_map_key(Sender, Senders)] of
                [Oldest | _] -> lists:keydelete(Oldest, 1, InProgress) ++ [{Key, ProgressBytes}];
                [] -> InProgress
            end
    end.

served(Key, #queue{fifo = Fifo, tag = Tag, suspended = IsSuspended} = Queue,
       #queues{senders = Senders, turns = Turns} = Queues) ->
    case weft_payload_fifo:bytes(Fifo) of
        0 ->
            {resumed(IsSuspended, Key),
             owe(Key, Tag, Queues#queues{senders = maps:remove(Key, Senders)})};
        Bytes ->
            Resume = IsSuspended andalso Bytes =< share_bytes(Queues) div 2,
            Left = Queue#queue{suspended = IsSuspended andalso not Resume},
            {resumed(Resume, Key),
             Queues#queues{senders = Senders#{Key := Left},
                           turns = gb_sets:insert({Tag, Key}, Turns)}}
    end.

resumed(true, Key) -> {resume, Key};
resumed(false, _Key) -> none.

owe(_Key, _Tag, #queues{senders = Senders} = Queues) when map_size(Senders) =:= 0 ->
    Queues#queues{debts = #{}, time = 0};
owe(Key, Tag, #queues{debts = Debts} = Queues) when map_size(Debts) >= ?DEBTS_MAX ->
    Queues#queues{debts = #{Key => Tag}};
owe(Key, Tag, #queues{debts = Debts} = Queues) ->
    Queues#queues{debts = Debts#{Key => Tag}}.

%% @doc How many senders have a queue, and how many of these are suspended.
-spec info(queues()) -> #{queues | suspended => non_neg_integer()}.
info(#queues{senders = Senders}) ->
    #{queues => map_size(Senders),
      suspended => length([Key || {Key, #queue{suspended = true}} <- maps:to_list(Senders)])}.
