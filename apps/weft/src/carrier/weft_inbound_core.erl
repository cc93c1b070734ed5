%% SPDX-License-Identifier: Apache-2.0
%% @doc The receiving half of a session: every payload once, in order.
%%
%% Pure; called in place by the process that receives. A payload with the expected number is given
%% out together with those that waited for it; a repeated one is dropped and acknowledged again; one
%% from the future (another lane was faster) waits, within a bound. Over the bound the path is
%% broken on purpose: the sender will repeat what is missing.
-module(weft_inbound_core).

-export([new/1, accept/4, received/1]).
-export_type([state/0, delivery/0]).

-define(ENTRY_BYTES, 100).

-record(inbound, {received = 0 :: weft_wire:sequence(),
                  early = #{} :: #{weft_wire:sequence() => delivery()},
                  early_bytes = 0 :: non_neg_integer(),
                  early_bytes_max :: pos_integer()}).
-opaque state() :: #inbound{}.
-type delivery() :: {handshake | frames, binary()}.

-spec new(EarlyBytesMax :: pos_integer()) -> state().
new(EarlyBytesMax) ->
    #inbound{early_bytes_max = EarlyBytesMax}.

%% @doc Takes a payload. Returns what may be delivered now, and whether to acknowledge now.
-spec accept(weft_wire:sequence(), weft_wire:payload_kind(), binary(), state()) ->
          {[delivery()], boolean(), state()} | overflow.
accept(Sequence, Kind, Payload, #inbound{received = Received, early = Early} = State)
  when Sequence =:= Received + 1, map_size(Early) =:= 0 ->
    {[delivery(Kind, Payload)], Kind =:= frames_ack, State#inbound{received = Sequence}};
accept(Sequence, _Kind, _Payload, #inbound{received = Received} = State)
  when Sequence =< Received ->
    {[], true, State};
accept(Sequence, Kind, Payload, #inbound{early = Early, early_bytes = EarlyBytes} = State0) ->
    case maps:is_key(Sequence, Early) of
        true ->
            {[], false, State0};
        false ->
            State = State0#inbound{early = Early#{Sequence => delivery(Kind, Payload)},
                                   early_bytes = EarlyBytes + cost(Payload)},
            {Deliveries, State1} = take(State, []),
            case State1#inbound.early_bytes > State1#inbound.early_bytes_max of
                true -> overflow;
                false -> {Deliveries, Kind =:= frames_ack orelse Deliveries =/= [], State1}
            end
    end.

take(#inbound{received = Received, early = Early, early_bytes = Bytes} = State, Acc) ->
    case maps:take(Received + 1, Early) of
        {{_, Payload} = Delivery, Rest} ->
            take(State#inbound{received = Received + 1, early = Rest,
                               early_bytes = Bytes - cost(Payload)}, [Delivery | Acc]);
        error ->
            {lists:reverse(Acc), State}
    end.

%% Empty payloads take memory too.
cost(Payload) -> byte_size(Payload) + ?ENTRY_BYTES.

%% @doc Everything up to this number has been given out.
-spec received(state()) -> weft_wire:sequence().
received(#inbound{received = Received}) -> Received.

delivery(handshake, Payload) -> {handshake, Payload};
delivery(_Frames, Payload) -> {frames, Payload}.
