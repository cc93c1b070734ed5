%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of the receiving end of a session: what the VM gets when, and what is acknowledged
%% on which lane.
%%
%% Pure; called in place by the process that delivers input. `weft_input' carries out what is
%% decided here, and the simulator does for simulated sessions. The session, its counters, lanes and
%% the handle of the connection are opaque.
%%
%% `weft_inbound_core' puts payloads in order, and parts of one are put together here. Frames that
%% come before the handle of the connection is known wait here (the peer may finish the handshake
%% first). They are not acknowledged before, so the peer's window bounds them.
-module(weft_input_core).

-export([new/3, data/6, tick/1, times/3, connected/2, received/1, answer/4, session/1, counters/1,
         handle/1]).
-export_type([input/0, delivery/0]).

-record(input, {session :: term(),
                counters :: term(),
                inbound :: weft_inbound_core:state(),
                handle :: term() | undefined,
                waiting = [] :: [binary()],
                waiting_bytes = 0 :: non_neg_integer(),
                %% Where to send an acknowledgement once the handle is known.
                unanswered = none :: none | {lane(), weft_wire:label()},
                parts = none :: none | weft_parts:joined(),
                bytes_max :: pos_integer()}).
-opaque input() :: #input{}.
-type lane() :: term().
%% frames: for the VM. handshake: for the session. malformed: the session has to end, and nothing
%% comes after it.
-type delivery() :: {frames | handshake, binary()} | malformed.

%% @doc For that session; WindowBytes bounds what may come out of order.
-spec new(Session :: term(), Counters :: term(), WindowBytes :: pos_integer()) -> input().
new(Session, Counters, WindowBytes) ->
    BytesMax = 4 * WindowBytes + weft_wire:packet_bytes_max(),
    #input{session = Session, counters = Counters, bytes_max = BytesMax,
           inbound = weft_inbound_core:new(BytesMax)}.

%% @doc A numbered payload came over Lane under Label. Says what to deliver, in that order, and
%% whether to acknowledge then, on that lane, all that was received.
-spec data(weft_wire:sequence(), weft_wire:payload_kind(), binary(), lane(), weft_wire:label(),
           input()) -> {[delivery()], IsToAnswer :: boolean(), input()} | overflow.
data(_Sequence, _Kind, _Payload, _Lane, _Label, #input{waiting_bytes = Bytes, bytes_max = Max})
  when Bytes > Max ->
    overflow;
data(Sequence, Kind, Payload, Lane, Label,
     #input{inbound = Inbound0, handle = Handle, parts = Parts} = Input0) ->
    case weft_inbound_core:accept(Sequence, Kind, Payload, Inbound0) of
        %% Most are delivered as they came.
        {[{frames, _}] = Frames, Asks, Inbound} when Parts =:= none, Handle =/= undefined ->
            {Frames, Asks, Input0#input{inbound = Inbound}};
        {[{whole, Frames}], Asks, Inbound} when Handle =/= undefined ->
            {[{frames, Frames}], Asks, Input0#input{inbound = Inbound}};
        {Deliveries0, Asks, Inbound} ->
            {Deliveries, Input} = deliver(Deliveries0, [], Input0#input{inbound = Inbound}),
            answer(Asks, Lane, Label, Deliveries, Input);
        overflow ->
            overflow
    end.

answer(true, Lane, Label, Deliveries, #input{handle = undefined} = Input) ->
    {Deliveries, false, Input#input{unanswered = {Lane, Label}}};
answer(Asks, _Lane, _Label, Deliveries, Input) ->
    {Deliveries, Asks, Input}.

%% Done: newest first.
deliver([], Done, Input) ->
    {lists:reverse(Done), Input};
deliver([{part, Part} | Rest], Done, #input{parts = Parts} = Input) ->
    case weft_parts:join(Part, Parts) of
        too_large -> {lists:reverse(Done, [malformed]), Input};
        Joined -> deliver(Rest, Done, Input#input{parts = Joined})
    end;
deliver([{frames, Last} | Rest], Done, #input{parts = Parts} = Input) ->
    deliver([{whole, weft_parts:finish(Last, Parts)} | Rest], Done, Input#input{parts = none});
deliver([{whole, Frames} | Rest], Done,
        #input{handle = undefined, waiting = Waiting, waiting_bytes = Bytes} = Input) ->
    deliver(Rest, Done, Input#input{waiting = [Frames | Waiting],
                                    waiting_bytes = Bytes + byte_size(Frames)});
deliver([{whole, Frames} | Rest], Done, Input) ->
    deliver(Rest, [{frames, Frames} | Done], Input);
deliver([{handshake, _Packet} = Handshake | Rest], Done, Input) ->
    deliver(Rest, [Handshake | Done], Input).

%% @doc A tick proves that the peer is alive, and asks for an acknowledgement of what has come since
%% the last one, on the lane that it came by. Says whether there is something to acknowledge.
-spec tick(input()) -> {IsToAnswer :: boolean(), input()}.
tick(#input{inbound = Inbound0} = Input) ->
    {IsNew, Inbound} = weft_inbound_core:ticked(Inbound0),
    {IsNew, Input#input{inbound = Inbound}}.

%% @doc The peer asks for times on that lane.
-spec times(lane(), weft_wire:label(), input()) -> input().
times(Lane, Label, #input{inbound = Inbound} = Input) ->
    Input#input{inbound = weft_inbound_core:times(Lane, Label, Inbound)}.

%% @doc The handle is known: the VM takes what waited, in that order, and all that follows. Says
%% where to acknowledge then, if that was asked for meanwhile.
-spec connected(Handle :: term(), input()) ->
          {[{frames, binary()}], none | {lane(), weft_wire:label()}, input()}.
connected(Handle, #input{waiting = Waiting, unanswered = Unanswered} = Input) ->
    {[{frames, Frames} || Frames <- lists:reverse(Waiting)], Unanswered,
     Input#input{handle = Handle, waiting = [], waiting_bytes = 0, unanswered = none}}.

%% @doc Everything up to this number has been received.
-spec received(input()) -> weft_wire:sequence().
received(#input{inbound = Inbound}) -> weft_inbound_core:received(Inbound).

%% @doc The packet that acknowledges, on that lane, all that was received.
-spec answer(lane(), weft_wire:label(), NowUs :: integer(), input()) -> iodata().
answer(Lane, Label, NowUs, #input{inbound = Inbound}) ->
    weft_inbound_core:answer(Lane, Label, NowUs, Inbound).

-spec session(input()) -> Session :: term().
session(#input{session = Session}) -> Session.

-spec counters(input()) -> Counters :: term().
counters(#input{counters = Counters}) -> Counters.

%% @doc Of the connection, once it is known.
-spec handle(input()) -> Handle :: term() | undefined.
handle(#input{handle = Handle}) -> Handle.
