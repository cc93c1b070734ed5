%% SPDX-License-Identifier: Apache-2.0
%% @doc From decoded payloads to mailboxes: the part of a receiving process that handles messages.
%%
%% Messages go to their receivers at once. But while a large message is not complete, later messages
%% to the same receiver wait, so that messages between a pair of processes keep their order. What
%% waits is bounded: while `is_full/1' the process takes no further payload, but chunks of large
%% messages still come in. A mailbox over the limit of the channel has the same effect.
-module(weft_channel_inbox).

-export([new/1, is_full/1, take/2, chunk/4, held_bytes/1]).
-export_type([inbox/0]).

-define(HELD_BYTES_MAX, 4194304).
%% A message may be as large as this; many at a time are less than the peer's bound.
-define(INCOMPLETE_BYTES_MAX, 2147483648).
-define(INCOMPLETE_MAX, 1024).

-type entry() :: {wait, weft_channel_chunks_core:id()} | {item, weft_channel_wire:item()}.
-record(inbox, {counters :: weft_channel_counters:counters(),
                mailbox_max :: pos_integer() | infinity,
                full = [] :: [pid()],
                assembly = weft_channel_chunks_core:new(?INCOMPLETE_BYTES_MAX, ?INCOMPLETE_MAX)
                    :: weft_channel_chunks_core:assembly(),
                announced = #{} :: #{weft_channel_chunks_core:id() => {From :: pid(), [term()]}},
                complete = #{} :: #{weft_channel_chunks_core:id() => {weft_channel_wire:item(),
                                                                      Left :: pos_integer()}},
                held = #{} :: #{Receiver :: term() => queue:queue(entry())},
                held_bytes = 0 :: non_neg_integer()}).
-opaque inbox() :: #inbox{}.

-spec new(weft_channels:channel()) -> inbox().
new(#{counters := Counters, mailbox_max := MailboxMax}) ->
    #inbox{counters = Counters, mailbox_max = MailboxMax}.

%% @doc Must the next payload wait?
-spec is_full(inbox()) -> boolean().
is_full(#inbox{held_bytes = Bytes}) when Bytes > ?HELD_BYTES_MAX -> true;
is_full(#inbox{full = Full, mailbox_max = Max}) ->
    lists:any(fun(Pid) -> is_over(Pid, Max) end, Full).

is_over(Pid, Max) ->
    case process_info(Pid, message_queue_len) of
        {_, Length} -> Length >= Max;
        undefined -> false
    end.

-spec held_bytes(inbox()) -> non_neg_integer().
held_bytes(#inbox{held_bytes = Bytes}) -> Bytes.

%% --- small messages ---------------------------------------------------------------------------

%% @doc Handles a payload, in its turn.
-spec take(weft_channel_wire:payload(), inbox()) -> {ok, inbox()} | malformed.
take({announced, Announced}, Inbox) ->
    announced(Announced, Inbox);
take(Decoded, Inbox) ->
    try {ok, messages(Decoded, Inbox)}
    catch
        throw:malformed -> malformed;
        error:function_clause -> malformed;
        error:{bad_generator, _} -> malformed
    end.

messages({groups, Groups}, #inbox{held = Held, counters = Counters} = Inbox)
  when map_size(Held) =:= 0 ->
    weft_channel_counters:add(messages_in, deliver_groups(Groups, 0, Counters), Counters),
    look(Groups, Inbox);
messages({groups, Groups}, Inbox) ->
    messages({items, [[To | Message] || [To | Messages] <- Groups, Message <- Messages]}, Inbox);
messages({items, Items}, #inbox{held = Held, counters = Counters} = Inbox)
  when map_size(Held) =:= 0 ->
    weft_channel_counters:add(messages_in, deliver_all(Items, 0, Counters), Counters),
    look(Items, Inbox);
messages({items, Items}, Inbox) ->
    look(Items, lists:foldl(fun behind/2, Inbox, Items)).

deliver_groups([[To | Messages] | Groups], Count, Counters) when is_pid(To) ->
    deliver_groups(Groups, deliver_to(To, Messages, Count), Counters);
deliver_groups([[Name | Messages] | Groups], Count, Counters) when is_atom(Name) ->
    deliver_groups(Groups, deliver_all([[Name | M] || M <- Messages], Count, Counters), Counters);
deliver_groups([], Count, _Counters) ->
    Count.

deliver_to(Pid, [Message | Messages], Count) ->
    Pid ! Message,
    deliver_to(Pid, Messages, Count + 1);
deliver_to(_Pid, [], Count) ->
    Count.

deliver_all([Item | Items], Count, Counters) ->
    deliver(Item, Counters),
    deliver_all(Items, Count + 1, Counters);
deliver_all([], Count, _Counters) ->
    Count;
deliver_all(_Improper, _Count, _Counters) ->
    throw(malformed).

deliver([To | Message], _Counters) when is_pid(To) ->
    To ! Message;
deliver([Name | Message], Counters) when is_atom(Name) ->
    case whereis(Name) of
        undefined -> weft_channel_counters:add(undeliverable, Counters);
        Pid -> Pid ! Message
    end;
deliver({many, Tos, Encoded}, Counters) when is_list(Tos), is_binary(Encoded) ->
    Message = decoded(Encoded),
    deliver_all([[To | Message] || To <- Tos], 0, Counters);
deliver({extra, To, Message, Ack, Causal}, Counters) when is_pid(To); is_atom(To) ->
    case weft_channel_delivered:is_new(Ack, Counters) of
        true -> give_in_order(Causal, {To, Message, Ack}, Counters);
        again -> weft_channel_delivered:deliver(To, Message, Ack, Counters);
        false -> ok
    end;
deliver({extra_encoded, To, Encoded, Ack, Causal}, Counters) when is_binary(Encoded) ->
    deliver({extra, To, decoded(Encoded), Ack, Causal}, Counters);
deliver(_Item, _Counters) ->
    throw(malformed).

%% At once, or when its causes have been delivered.
give_in_order(none, {To, Message, Ack}, Counters) ->
    weft_channel_delivered:deliver(To, Message, Ack, Counters);
give_in_order({Label, Stamp}, Message, Counters) ->
    weft_causal:arrived(Label, Stamp, Message, Counters);
give_in_order(_, _Message, _Counters) ->
    throw(malformed).

decoded(Encoded) ->
    try binary_to_term(Encoded) catch error:badarg -> throw(malformed) end.

%% Which mailboxes are too long now? Only asked if there is a limit.
look(_Items, #inbox{mailbox_max = infinity} = Inbox) ->
    Inbox;
look(Items, #inbox{mailbox_max = Max} = Inbox) ->
    Pids = lists:usort([Pid || Item <- Items, Pid <- receivers(Item), is_pid(Pid),
                               node(Pid) =:= node()]),
    Inbox#inbox{full = [Pid || Pid <- Pids, is_over(Pid, Max)]}.

%% --- large messages, and those behind them ----------------------------------------------------

receivers([To | _]) -> [receiver(To)];
receivers({many, Tos, _}) when is_list(Tos) -> [receiver(To) || To <- Tos];
receivers({Extra, To, _, _, _}) when Extra =:= extra; Extra =:= extra_encoded -> [receiver(To)];
receivers(_) -> throw(malformed).

%% A name and a pid of the same process are the same receiver.
receiver(Name) when is_atom(Name) ->
    case whereis(Name) of
        undefined -> Name;
        Pid -> Pid
    end;
receiver(To) ->
    To.

behind({many, Tos, Encoded}, Inbox) when is_list(Tos), is_binary(Encoded) ->
    Message = decoded(Encoded),
    lists:foldl(fun(To, Acc) -> behind([To | Message], Acc) end, Inbox, Tos);
behind(Item, #inbox{held = Held, held_bytes = Bytes, counters = Counters} = Inbox) ->
    [Receiver] = receivers(Item),
    case Held of
        #{Receiver := Entries} ->
            Inbox#inbox{held = Held#{Receiver := queue:in({item, Item}, Entries)},
                        held_bytes = Bytes + erlang:external_size(Item)};
        #{} ->
            deliver(Item, Counters),
            weft_channel_counters:add(messages_in, Counters),
            Inbox
    end.

%% The place of a large message; later messages to its receivers wait until it is complete.
announced(#{id := Id, bytes := Bytes, count := Count, from := From, to := Tos},
          #inbox{assembly = Assembly, announced = Announced, held = Held} = Inbox) ->
    Receivers = lists:usort([receiver(To) || To <- Tos]),
    Waiting = Inbox#inbox{announced = Announced#{Id => {From, Receivers}},
                          held = lists:foldl(fun(R, Acc) -> hold(R, {wait, Id}, Acc) end, Held,
                                             Receivers)},
    put_together(Id, weft_channel_chunks_core:announce(Id, Bytes, Count, Assembly), Waiting).

hold(Receiver, Entry, Held) ->
    Held#{Receiver => queue:in(Entry, maps:get(Receiver, Held, queue:new()))}.

%% @doc A chunk has come on another partition.
-spec chunk(weft_channel_chunks_core:id(), non_neg_integer(), binary(), inbox()) ->
          {ok, inbox()} | malformed.
chunk(Id, Index, Chunk, #inbox{assembly = Assembly} = Inbox) ->
    put_together(Id, weft_channel_chunks_core:add(Id, Index, Chunk, Assembly), Inbox).

put_together(_Id, {incomplete, Assembly}, Inbox) ->
    {ok, Inbox#inbox{assembly = Assembly}};
put_together(_Id, {error, _Why}, _Inbox) ->
    malformed;
put_together(Id, {complete, Pieces, Assembly},
             #inbox{announced = Announced0, complete = Complete} = Inbox) ->
    {{From, Receivers}, Announced} = maps:take(Id, Announced0),
    case one(weft_channel_wire:decode(iolist_to_binary(Pieces))) of
        {item, Item} ->
            From ! {weft_large, arrived, Id},
            Done = Inbox#inbox{assembly = Assembly, announced = Announced,
                               complete = Complete#{Id => {Item, length(Receivers)}}},
            try {ok, look([Item], lists:foldl(fun go_on/2, Done, Receivers))}
            catch throw:malformed -> malformed
            end;
        _ ->
            malformed
    end.

one({items, [Item]}) -> {item, Item};
%% So do earlier versions send one that was to be compressed.
one({groups, [[To, Message]]}) -> {item, [To | Message]};
one(_) -> malformed.

%% Delivers to a receiver all messages that need not wait any longer.
go_on(Receiver, #inbox{held = Held} = Inbox) ->
    #{Receiver := Entries} = Held,
    case queue:out(Entries) of
        {empty, _} ->
            Inbox#inbox{held = maps:remove(Receiver, Held)};
        {{value, Entry}, Rest} ->
            case give(Receiver, Entry, Inbox) of
                wait -> Inbox;
                Given -> go_on(Receiver, Given#inbox{held = Held#{Receiver := Rest}})
            end
    end.

give(_Receiver, {item, Item}, #inbox{held_bytes = Bytes, counters = Counters} = Inbox) ->
    deliver(Item, Counters),
    weft_channel_counters:add(messages_in, Counters),
    Inbox#inbox{held_bytes = Bytes - erlang:external_size(Item)};
give(Receiver, {wait, Id}, #inbox{complete = Complete, counters = Counters} = Inbox) ->
    case Complete of
        #{Id := {Item, Left}} ->
            weft_channel_counters:add(messages_in, deliver_all(for(Receiver, Item), 0, Counters),
                                      Counters),
            Inbox#inbox{complete = case Left of
                                       1 -> maps:remove(Id, Complete);
                                       _ -> Complete#{Id := {Item, Left - 1}}
                                   end};
        #{} ->
            wait
    end.

%% A list may name a receiver twice.
for(Receiver, {many, Tos, Encoded}) ->
    Times = length([To || To <- Tos, receiver(To) =:= Receiver]),
    lists:duplicate(max(1, Times), [Receiver | decoded(Encoded)]);
for(_Receiver, Item) ->
    [Item].
