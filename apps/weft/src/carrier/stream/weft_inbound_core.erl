%% SPDX-License-Identifier: Apache-2.0
%% @doc The receiving half of a stream: delivers every payload once, in order.
%%
%% Pure; called in place by the process that receives. A payload with the expected number is
%% delivered, together with those that waited for it. A repeated one is dropped and acknowledged
%% again. One with a higher number (it came over a faster lane) waits. What waits is bounded: over
%% the bound the path is broken on purpose, and the sender will repeat what is missing.
%%
%% A bypass payload may be delivered before earlier numbers. It names one payload that it follows
%% (After), and a number up to which every payload must have been delivered first (Floor). It is
%% delivered as soon as both are fulfilled. The receiver remembers that it was delivered until its
%% number is reached, because an acknowledgement is always for all payloads up to a number.
%%
%% Acknowledgements are sent when the sender asks for one (`weft_outbound_core'). A tick of the peer
%% asks, too, for what no other asked for. If nothing came since the last tick that was answered,
%% there is nothing to say: an acknowledgement is lost with its lane only, and then what it was for
%% comes again. Whoever asks for times, on a lane, gets with each acknowledgement on that lane the
%% time at which it was sent (`weft_window_core' says what for).
-module(weft_inbound_core).

-export([new/1, accept/4, ticked/1, received/1, times/3, answer/4]).
-export_type([state/0, delivery/0]).

%% On the way of each message: not calls.
-compile({inline, [asks/1, delivery/2]}).

-define(ENTRY_BYTES, 100).
%% A link has fewer lanes.
-define(TIMED_MAX, 64).

-record(inbound, {received = 0 :: weft_wire:sequence(),
                  %% The last number that was acknowledged because of a tick.
                  told = 0 :: weft_wire:sequence(),
                  early = #{} :: #{weft_wire:sequence() => delivery() | given},
                  early_bytes = 0 :: non_neg_integer(),
                  %% Bypass payloads that wait: for the one that they follow, or for all up to their
                  %% Floor.
                  following = #{} :: #{weft_wire:sequence() => waiting()},
                  rising = gb_sets:new() :: gb_sets:set(waiting()),
                  early_bytes_max :: pos_integer(),
                  %% Where times are asked for: on these lanes of one circuit.
                  timed = [] :: [{lane(), weft_wire:label()}]}).
-opaque state() :: #inbound{}.
%% whole: frames that may come between the parts of others, and are none of these.
-type delivery() :: {handshake | frames | whole | part, binary()}.
-type lane() :: term().
-type waiting() :: {Floor :: weft_wire:sequence(), weft_wire:sequence()}.

-spec new(EarlyBytesMax :: pos_integer()) -> state().
new(EarlyBytesMax) ->
    #inbound{early_bytes_max = EarlyBytesMax}.

%% @doc Takes a payload. Returns what may be delivered now, and whether to acknowledge now.
-spec accept(weft_wire:sequence(), weft_wire:payload_kind(), binary(), state()) ->
          {[delivery()], boolean(), state()} | overflow.
accept(Sequence, Kind, Payload, #inbound{received = Received, early = Early} = State)
  when Sequence =:= Received + 1, map_size(Early) =:= 0 ->
    {[delivery(Kind, Payload)], asks(Kind), State#inbound{received = Sequence}};
accept(Sequence, _Kind, _Payload, #inbound{received = Received} = State)
  when Sequence =< Received ->
    {[], true, State};
accept(Sequence, Kind, Payload, #inbound{received = Received, early = Early,
                                         early_bytes = EarlyBytes} = State0) ->
    case maps:is_key(Sequence, Early) of
        true ->
            {[], false, State0};
        false ->
            State = State0#inbound{early = Early#{Sequence => delivery(Kind, Payload)},
                                   early_bytes = EarlyBytes + cost(Payload)},
            {Deliveries, State1} = take(waits(Sequence, Kind, State), []),
            case State1#inbound.early_bytes > State1#inbound.early_bytes_max of
                true -> overflow;
                false -> {Deliveries, asks(Kind) orelse State1#inbound.received > Received, State1}
            end
    end;
accept(Sequence, Kind, Payload, Before) ->
    accept(Sequence, Kind, Payload, changed(Before)).

%% The state as this version keeps it. Before, nobody asked for times.
changed(Before) when tuple_size(Before) =:= #inbound.timed - 1 ->
    erlang:append_element(Before, []).

take(#inbound{received = Received, early = Early, early_bytes = Bytes} = State, Acc) ->
    case maps:take(Received + 1, Early) of
        {{_, Payload} = Delivery, Rest} ->
            take(followed(Received + 1, State#inbound{received = Received + 1, early = Rest,
                                                      early_bytes = Bytes - cost(Payload)}),
                 [Delivery | Acc]);
        {given, Rest} ->
            take(State#inbound{received = Received + 1, early = Rest,
                               early_bytes = Bytes - cost(<<>>)}, Acc);
        error ->
            rise(State, Acc)
    end.

%% --- bypass payloads --------------------------------------------------------------------------

waits(Sequence, {Bypass, After, Floor}, State) when Bypass =:= bypass; Bypass =:= bypass_ack ->
    #inbound{received = Received, early = Early, following = Following, rising = Rising} = State,
    case After =< Received orelse maps:get(After, Early, missing) =:= given of
        true -> State#inbound{rising = gb_sets:add({Floor, Sequence}, Rising)};
        false -> State#inbound{following = Following#{After => {Floor, Sequence}}}
    end;
waits(_Sequence, _Kind, State) ->
    State.

%% The payload of that number has been delivered; the one that follows it waits only for its Floor.
followed(_Sequence, #inbound{following = Following} = State) when map_size(Following) =:= 0 ->
    State;
followed(Sequence, #inbound{following = Following, rising = Rising} = State) ->
    case maps:take(Sequence, Following) of
        {Waiting, Rest} -> State#inbound{following = Rest, rising = gb_sets:add(Waiting, Rising)};
        error -> State
    end.

rise(#inbound{received = Received, rising = Rising} = State, Acc) ->
    case gb_sets:is_empty(Rising) of
        true ->
            {lists:reverse(Acc), State};
        false ->
            case gb_sets:take_smallest(Rising) of
                {{Floor, Sequence}, Rest} when Floor =< Received ->
                    risen(Sequence, State#inbound{rising = Rest}, Acc);
                _ ->
                    {lists:reverse(Acc), State}
            end
    end.

%% Its number may have been reached meanwhile; then it was delivered in order.
risen(Sequence, #inbound{early = Early, early_bytes = Bytes} = State, Acc) ->
    case Early of
        #{Sequence := {_, Payload} = Delivery} ->
            rise(followed(Sequence, State#inbound{early = Early#{Sequence := given},
                                                  early_bytes = Bytes - byte_size(Payload)}),
                 [Delivery | Acc]);
        _ ->
            rise(State, Acc)
    end.

%% @doc A tick came. Says whether it is to be answered by an acknowledgement.
-spec ticked(state()) -> {boolean(), state()}.
ticked(#inbound{received = Received, told = Received} = State) -> {false, State};
ticked(#inbound{received = Received} = State) -> {true, State#inbound{told = Received}};
ticked(Before) -> ticked(changed(Before)).

%% Empty payloads take memory too.
cost(Payload) -> byte_size(Payload) + ?ENTRY_BYTES.

%% @doc Everything up to this number has been delivered.
-spec received(state()) -> weft_wire:sequence().
received(#inbound{received = Received}) -> Received;
received(Before) -> received(changed(Before)).

%% @doc The peer asks for times on that lane. What was asked for another circuit is over.
-spec times(lane(), weft_wire:label(), state()) -> state().
times(Lane, Label, #inbound{timed = Timed} = State) ->
    Others = [Other || {Of, Under} = Other <- Timed, Under =:= Label, Of =/= Lane],
    State#inbound{timed = lists:sublist([{Lane, Label} | Others], ?TIMED_MAX)};
times(Lane, Label, Before) -> times(Lane, Label, changed(Before)).

%% @doc The packet that acknowledges, on that lane, all that was received.
-spec answer(lane(), weft_wire:label(), NowUs :: integer(), state()) -> iodata().
answer(Lane, Label, NowUs, #inbound{timed = Timed} = State) ->
    case lists:member({Lane, Label}, Timed) of
        true -> weft_wire:arrived(Label, received(State), NowUs);
        false -> weft_wire:ack(Label, received(State))
    end;
answer(Lane, Label, NowUs, Before) ->
    answer(Lane, Label, NowUs, changed(Before)).

asks(frames_ack) -> true;
asks(part_ack) -> true;
asks({bypass_ack, _After, _Floor}) -> true;
asks(_) -> false.

delivery(handshake, Payload) -> {handshake, Payload};
delivery(Part, Payload) when Part =:= part; Part =:= part_ack -> {part, Payload};
delivery({_Bypass, _After, _Floor}, Payload) -> {whole, Payload};
delivery(_Frames, Payload) -> {frames, Payload}.
