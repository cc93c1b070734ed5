%% SPDX-License-Identifier: Apache-2.0
%% @doc The receiving end of a session: from packets to the VM.
%%
%% A value, not a process: the VM allows one process per connection to deliver input, as long as the
%% connection exists. For a direct session that is the process of the link, which reads the socket,
%% so there is no other process between socket and VM. For a session over a circuit it is
%% `weft_input_proc'.
%% Frames that come before the handle of the connection is known wait here (the peer may finish
%% the handshake first). They are not acknowledged before, so the peer's window bounds them.
-module(weft_input).

-export([new/3, data/6, tick/4, connected/2, session/1]).
-export_type([input/0]).

%% On the way of each message: not calls.
-compile({inline, [frames/2, put_frames/3]}).

%% A message may keep a payload of so many times its own size in memory.
-define(PINNED_MAX, 8).

-record(input, {session :: pid(),
                counters :: weft_session_counters:counters(),
                inbound :: weft_inbound_core:state(),
                handle :: erlang:dist_handle() | undefined,
                waiting = [] :: [binary()],
                waiting_bytes = 0 :: non_neg_integer(),
                %% Where to send an acknowledgement once the handle is known.
                unanswered = none :: none | {weft_lane:lane(), weft_wire:label()},
                parts = none :: none | weft_parts:joined(),
                bytes_max :: pos_integer()}).
-opaque input() :: #input{}.

%% @doc For the session of that pid; WindowBytes bounds what may come out of order.
-spec new(pid(), weft_session_counters:counters(), pos_integer()) -> input().
new(Session, Counters, WindowBytes) ->
    BytesMax = 4 * WindowBytes + weft_wire:packet_bytes_max(),
    #input{session = Session, counters = Counters, bytes_max = BytesMax,
           inbound = weft_inbound_core:new(BytesMax)}.

%% @doc A numbered payload came over Lane under Label.
-spec data(weft_wire:sequence(), weft_wire:payload_kind(), binary(), weft_lane:lane(),
           weft_wire:label(), input()) -> {ok, input()} | overflow.
data(_Sequence, _Kind, _Payload, _Lane, _Label, #input{waiting_bytes = Bytes, bytes_max = Max})
  when Bytes > Max ->
    overflow;
data(Sequence, Kind, Payload, Lane, Label, #input{counters = Counters, inbound = In0} = Input0) ->
    weft_session_counters:packet_in(Counters, byte_size(Payload)),
    case weft_inbound_core:accept(Sequence, Kind, Payload, In0) of
        {Deliveries, Ack, In} ->
            Input = deliver(Deliveries, Input0#input{inbound = In}),
            Received = weft_inbound_core:received(In),
            weft_session_counters:set_received(Counters, Received),
            {ok, case Ack of
                     true -> answer(Lane, Label, Received, Input);
                     false -> Input
                 end};
        overflow ->
            overflow
    end.

answer(Lane, Label, _Received, #input{handle = undefined} = Input) ->
    Input#input{unanswered = {Lane, Label}};
answer(Lane, Label, Received, Input) ->
    acknowledge(Lane, Label, Received),
    Input.

%% @doc A tick proves that the peer is alive, and asks for an acknowledgement of what has come since
%% the last one.
-spec tick(weft_lane:lane(), weft_wire:label(), non_neg_integer(), input()) -> input().
tick(Lane, Label, Bytes, #input{counters = Counters, inbound = Inbound0} = Input) ->
    weft_session_counters:packet_in(Counters, Bytes),
    {IsNew, Inbound} = weft_inbound_core:ticked(Inbound0),
    _ = IsNew andalso acknowledge(Lane, Label, weft_inbound_core:received(Inbound)),
    Input#input{inbound = Inbound}.

%% A lost acknowledgement is repeated by the next; a broken lane makes the session resume.
acknowledge(Lane, Label, Received) ->
    _ = weft_lane:answer(Lane, weft_wire:ack(Label, Received), 13),
    ok.

%% @doc The handle is known: the VM takes what waited and all that follows.
-spec connected(erlang:dist_handle(), input()) -> input().
connected(Handle, #input{session = Session, waiting = Waiting, inbound = Inbound,
                         unanswered = Unanswered} = Input) ->
    lists:foreach(fun(Frames) -> put_frames(Handle, Frames, Session) end, lists:reverse(Waiting)),
    _ = case Unanswered of
            {Lane, Label} -> acknowledge(Lane, Label, weft_inbound_core:received(Inbound));
            none -> ok
        end,
    Input#input{handle = Handle, waiting = [], waiting_bytes = 0, unanswered = none}.

-spec session(input()) -> pid().
session(#input{session = Session}) -> Session.

deliver([], Input) ->
    Input;
deliver([{part, Part} | Rest], #input{parts = Parts, session = Session} = Input) ->
    case weft_parts:join(Part, Parts) of
        too_large -> refuse(Session), Input;
        Joined -> deliver(Rest, Input#input{parts = Joined})
    end;
deliver([{frames, Last} | Rest], #input{parts = Parts} = Input) ->
    deliver(Rest, frames(weft_parts:finish(Last, Parts), Input#input{parts = none}));
deliver([{handshake, Packet} | Rest], #input{session = Session} = Input) ->
    Session ! {weft_handshake, Packet},
    deliver(Rest, Input).

frames(Frames, #input{handle = undefined, waiting = Waiting, waiting_bytes = Bytes} = Input) ->
    Input#input{waiting = [Frames | Waiting], waiting_bytes = Bytes + byte_size(Frames)};
frames(Frames, #input{handle = Handle, session = Session} = Input) ->
    put_frames(Handle, Frames, Session),
    Input.

refuse(Session) ->
    weft_refusals:report(undefined, malformed_frames),
    exit(Session, malformed).

%% If the connection has ended meanwhile put_data fails; its session is ending too.
put_frames(Handle, Frames, Session) ->
    try put_each(Handle, Frames, byte_size(Frames) div ?PINNED_MAX) of
        ok -> ok;
        malformed -> refuse(Session)
    catch
        error:Gone when Gone =:= badarg; Gone =:= notsup -> ok
    end.

%% A message that its receiver has not handled yet keeps the whole payload in memory that it came
%% with, unless it is a copy.
put_each(Handle, <<Size:32, Frame:Size/binary, Rest/binary>>, Small) ->
    erlang:dist_ctrl_put_data(Handle, case Size < Small of
                                          true -> binary:copy(Frame);
                                          false -> Frame
                                      end),
    put_each(Handle, Rest, Small);
put_each(_Handle, <<>>, _Small) ->
    ok;
put_each(_Handle, _Malformed, _Small) ->
    malformed.
