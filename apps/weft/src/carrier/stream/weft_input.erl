%% SPDX-License-Identifier: Apache-2.0
%% @doc The receiving end of a session: from packets to the VM. Carries out what `weft_input_core'
%% decides.
%%
%% A value, not a process: the VM allows one process per connection to deliver input, as long as the
%% connection exists. For a direct session that is the process of the link, which reads the socket,
%% so there is no other process between socket and VM. For a session over a circuit it is
%% `weft_input_proc'.
-module(weft_input).

-export([new/3, data/6, tick/4, times/3, connected/2, session/1]).
-export_type([input/0]).

%% On the way of each message: not calls.
-compile({inline, [put_frames/2]}).

%% A message may keep a payload of so many times its own size in memory.
-define(PINNED_MAX, 8).

-type input() :: weft_input_core:input().

%% @doc For the session of that pid; WindowBytes bounds what may come out of order.
-spec new(pid(), weft_session_counters:counters(), pos_integer()) -> input().
new(Session, Counters, WindowBytes) -> weft_input_core:new(Session, Counters, WindowBytes).

%% @doc A numbered payload came over Lane under Label.
-spec data(weft_wire:sequence(), weft_wire:payload_kind(), binary(), weft_lane:lane(),
           weft_wire:label(), input()) -> {ok, input()} | overflow.
data(Sequence, Kind, Payload, Lane, Label, Input0) ->
    Counters = weft_input_core:counters(Input0),
    weft_session_counters:payload_in(Counters, byte_size(Payload)),
    case weft_input_core:data(Sequence, Kind, Payload, Lane, Label, Input0) of
        {Deliveries, IsToAnswer, Input} ->
            deliver(Deliveries, Input),
            weft_session_counters:set_received(Counters, weft_input_core:received(Input)),
            IsToAnswer andalso acknowledge(Lane, Label, Input),
            {ok, Input};
        overflow ->
            overflow
    end.

%% @doc A tick came.
-spec tick(weft_lane:lane(), weft_wire:label(), non_neg_integer(), input()) -> input().
tick(Lane, Label, Bytes, Input0) ->
    weft_session_counters:tick_in(weft_input_core:counters(Input0), Bytes),
    {IsToAnswer, Input} = weft_input_core:tick(Input0),
    IsToAnswer andalso acknowledge(Lane, Label, Input),
    Input.

%% @doc The peer asks for times on that lane.
-spec times(weft_lane:lane(), weft_wire:label(), input()) -> input().
times(Lane, Label, Input) -> weft_input_core:times(Lane, Label, Input).

%% A lost acknowledgement is repeated by the next; a broken lane makes the session resume.
acknowledge(Lane, Label, Input) ->
    Packet = weft_input_core:answer(Lane, Label, erlang:monotonic_time(microsecond), Input),
    _ = weft_lane:answer(Lane, Packet, iolist_size(Packet)),
    ok.

%% @doc The handle is known: the VM takes what waited and all that follows.
-spec connected(erlang:dist_handle(), input()) -> input().
connected(Handle, Input0) ->
    {Frames, Unanswered, Input} = weft_input_core:connected(Handle, Input0),
    deliver(Frames, Input),
    case Unanswered of
        {Lane, Label} -> acknowledge(Lane, Label, Input);
        none -> ok
    end,
    Input.

-spec session(input()) -> pid().
session(Input) -> weft_input_core:session(Input).

deliver([], _Input) ->
    ok;
deliver([{frames, Frames}], Input) ->
    put_frames(Frames, Input);
deliver([{frames, Frames} | Rest], Input) ->
    put_frames(Frames, Input),
    deliver(Rest, Input);
deliver([{handshake, Packet} | Rest], Input) ->
    weft_input_core:session(Input) ! {weft_handshake, Packet},
    deliver(Rest, Input);
deliver([malformed], Input) ->
    refuse(weft_input_core:session(Input)).

refuse(Session) ->
    weft_refusals:report(undefined, malformed_frames),
    exit(Session, malformed).

%% If the connection has ended meanwhile put_data fails; its session is ending too.
put_frames(Frames, Input) ->
    try put_each(weft_input_core:handle(Input), Frames, byte_size(Frames) div ?PINNED_MAX) of
        ok -> ok;
        malformed -> refuse(weft_input_core:session(Input))
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
    case Rest of
        <<>> -> ok;
        _ -> put_each(Handle, Rest, Small)
    end;
put_each(_Handle, <<>>, _Small) ->
    ok;
put_each(_Handle, _Malformed, _Small) ->
    malformed.
