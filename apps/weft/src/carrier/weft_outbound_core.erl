%% SPDX-License-Identifier: Apache-2.0
%% @doc The sending half of a session: numbers payloads and keeps them until acknowledged.
%%
%% Pure; called in place by the process that sends. A payload gets the next number, is kept, and is
%% dropped when the peer has acknowledged it or a later one. The sum of kept bytes is bounded by a
%% window: while `room/1' is false nothing may be pushed. The sender asks for acknowledgements (the
%% receiver has no timer): each quarter of the window, and when the window is full. After a break
%% `resume/2' gives back, in order, what the peer has not received; numbers make repeats harmless.
-module(weft_outbound_core).

-export([new/1, room/1, push/4, acked/2, resume/2, unacked_bytes/1]).
-export_type([state/0, item/0]).

-define(ITEM_BYTES, 100).

-record(outbound, {window_bytes :: pos_integer(),
                   last = 0 :: weft_wire:sequence(),
                   acked = 0 :: weft_wire:sequence(),
                   unacked_bytes = 0 :: non_neg_integer(),
                   unasked_bytes = 0 :: non_neg_integer(),
                   kept = queue:new() :: queue:queue(item())}).
-opaque state() :: #outbound{}.
-type item() :: {weft_wire:sequence(), weft_wire:payload_kind(), iodata(),
                 Bytes :: non_neg_integer()}.

-spec new(WindowBytes :: pos_integer()) -> state().
new(WindowBytes) ->
    #outbound{window_bytes = WindowBytes}.

%% @doc May another payload be pushed? The last one may exceed the window by its own size.
-spec room(state()) -> boolean().
room(#outbound{unacked_bytes = Unacked, window_bytes = Window}) ->
    Unacked < Window.

%% @doc Numbers and keeps a payload. The item to send says whether it asks for an acknowledgement.
-spec push(handshake | frames, iodata(), non_neg_integer(), state()) -> {item(), state()}.
push(Kind, Payload, Bytes, #outbound{last = Last, unacked_bytes = Unacked0,
                                     unasked_bytes = Unasked0, window_bytes = Window,
                                     kept = Kept} = State) ->
    Unacked = Unacked0 + cost(Bytes),
    Unasked = Unasked0 + cost(Bytes),
    Ask = Kind =:= frames andalso (Unasked * 4 >= Window orelse Unacked >= Window),
    Item = {Last + 1, case Ask of true -> frames_ack; false -> Kind end, Payload, Bytes},
    {Item, State#outbound{last = Last + 1, unacked_bytes = Unacked,
                          unasked_bytes = case Ask of true -> 0; false -> Unasked end,
                          kept = queue:in(Item, Kept)}}.

%% @doc The peer has received everything up to Sequence. Old and repeated news change nothing.
-spec acked(weft_wire:sequence(), state()) -> state().
acked(Sequence, #outbound{acked = Acked, last = Last} = State)
  when Sequence > Acked, Sequence =< Last ->
    drop(State#outbound{acked = Sequence});
acked(_Sequence, State) ->
    State.

drop(#outbound{kept = Kept, acked = Acked, unacked_bytes = Unacked} = State) ->
    case queue:peek(Kept) of
        {value, {Sequence, _, _, Bytes}} when Sequence =< Acked ->
            drop(State#outbound{kept = queue:drop(Kept), unacked_bytes = Unacked - cost(Bytes)});
        _ ->
            State
    end.

%% Keeping a payload takes memory here, and early there, however small it is.
cost(Bytes) -> Bytes + ?ITEM_BYTES.

%% @doc On a new path: what to send again, given the last number the peer has received. An
%% acknowledgement on the old path may have overtaken that number; it stands.
%% `lost' means that the peer has more than was ever sent: it speaks of another history, and the
%% session cannot go on.
-spec resume(weft_wire:sequence(), state()) -> {ok, [item()], state()} | {error, lost}.
resume(Received, #outbound{last = Last} = State0) when Received =< Last ->
    #outbound{kept = Kept} = State = acked(Received, State0),
    {ok, ask_at_end(queue:to_list(Kept)), State#outbound{unasked_bytes = 0}};
resume(_Received, _State) ->
    {error, lost}.

%% What was asked on the old path may have been asked in vain.
ask_at_end([]) -> [];
ask_at_end([{Sequence, frames, Payload, Bytes}]) -> [{Sequence, frames_ack, Payload, Bytes}];
ask_at_end([Item | Items]) -> [Item | ask_at_end(Items)].

-spec unacked_bytes(state()) -> non_neg_integer().
unacked_bytes(#outbound{unacked_bytes = Unacked}) -> Unacked.
