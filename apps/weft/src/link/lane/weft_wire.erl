%% SPDX-License-Identifier: Apache-2.0
%% @doc Packets on an authenticated lane, byte by byte (docs/internals/wire-format.md).
%%
%% A lane is a stream of packets, each preceded by its length in 32 bits, big-endian ({packet, 4}).
%% The first byte says what follows. Encoders return iodata whose payload parts are not copied.
%% `decode/1' never creates atoms and never fails: what it does not know is `unknown'.
-module(weft_wire).

-export([ping/1, pong/1, goodbye/0, control/2, data/4, ack/2, tick/1, open/2, accept/2, close/2,
         timed_out/1, incarnation/2, listening/1, times/1, arrived/3, decode/1, relabel/2,
         packet_bytes_max/0]).
-export_type([packet/0, label/0, sequence/0, open/0, close_reason/0, payload_kind/0,
              stream_kind/0]).

%% On the way of each message: not calls.
-compile({inline, [kind_code/1]}).

%% Names one circuit on one link. The node that opens it chooses: an odd number if its name is the
%% smaller one of the two, else an even one.
-type label() :: 0..16#ffffffff.
%% Number of a payload within one direction of a session; the first is 1.
-type sequence() :: non_neg_integer().
%% `part': the frames go on in the next payload, until a payload that is no part. `bypass': a bypass
%% payload (see `weft_inbound_core'). It may be delivered before earlier numbers, but after the
%% payload After, and after every payload up to the number Floor.
-type payload_kind() :: handshake | frames | frames_ack | part | part_ack
                      | {bypass | bypass_ack, After :: sequence(), Floor :: sequence()}.
%% What a circuit is for: a distribution connection, or one partition of a channel.
-type stream_kind() :: distribution | {channel, Name :: binary(), Partition :: byte()}.
-type close_reason() :: ended | broken | no_route | hop_limit | refused | overload | unknown | gone.
-type open() :: #{mode := new | resume, kind := stream_kind(), hops := byte(),
                  session := <<_:128>>, received := sequence(), source := binary(),
                  target := binary()}.
-type packet() :: {ping, integer()} | {pong, integer()} | goodbye
                | {control, binary(), binary()}
                | {data, label(), sequence(), payload_kind(), binary()}
                | {ack, label(), sequence()} | {tick, label()}
                | {open, label(), open()} | {accept, label(), sequence()}
                | {close, label(), close_reason()} | {timed_out, Session :: <<_:128>>}
                | {incarnation, label(), non_neg_integer()} | {listening, inet:port_number()}
                | {times, label()} | {arrived, label(), sequence(), AtUs :: integer()}
                | empty | {unknown, binary()}.

-define(PING, 0).
-define(PONG, 1).
-define(GOODBYE, 2).
-define(CONTROL, 3).
-define(DATA, 4).
-define(ACK, 5).
-define(TICK, 6).
-define(OPEN, 7).
-define(ACCEPT, 8).
-define(CLOSE, 9).
-define(TIMED_OUT, 10).
-define(INCARNATION, 11).
-define(LISTENING, 12).
-define(TIMES, 13).
-define(ARRIVED, 14).

%% @doc Largest packet accepted from a peer, in bytes. The VM cuts messages into fragments of
%% 64 KiB; a batch holds at most about two of them plus a control message. What it has encoded
%% before there was a connection is not cut; `weft_parts' does it then.
-spec packet_bytes_max() -> pos_integer().
packet_bytes_max() -> 16 * 1024 * 1024.

%% @doc Asks for a pong with the same time (microseconds of the sender's own clock).
-spec ping(integer()) -> iodata().
ping(TimeUs) -> <<?PING, TimeUs:64>>.

-spec pong(integer()) -> iodata().
pong(TimeUs) -> <<?PONG, TimeUs:64>>.

%% @doc The sender's node stops; its sessions end now, there will be no resume.
-spec goodbye() -> iodata().
goodbye() -> <<?GOODBYE>>.

%% @doc A message between the cores called Core of two neighbours.
-spec control(binary(), iodata()) -> iodata().
control(Core, Payload) -> [<<?CONTROL, (byte_size(Core)), Core/binary>>, Payload].

-spec data(label(), sequence(), payload_kind(), iodata()) -> iodata().
data(Label, Sequence, {Kind, After, Floor}, Payload) ->
    [<<?DATA, Label:32, Sequence:64, (kind_code(Kind)), After:64, Floor:64>> | Payload];
data(Label, Sequence, Kind, Payload) ->
    [<<?DATA, Label:32, Sequence:64, (kind_code(Kind))>> | Payload].

-spec ack(label(), sequence()) -> iodata().
ack(Label, Sequence) -> <<?ACK, Label:32, Sequence:64>>.

-spec tick(label()) -> iodata().
tick(Label) -> <<?TICK, Label:32>>.

-spec open(label(), open()) -> iodata().
open(Label, #{mode := Mode, kind := Kind, hops := Hops, session := Session,
              received := Received, source := Source, target := Target}) ->
    [<<?OPEN, Label:32, (mode_code(Mode)), Hops, Session:16/binary, Received:64,
       (byte_size(Source)):16, Source/binary, (byte_size(Target)):16, Target/binary>>,
     encode_kind(Kind)].

-spec accept(label(), sequence()) -> iodata().
accept(Label, Received) -> <<?ACCEPT, Label:32, Received:64>>.

-spec close(label(), close_reason()) -> iodata().
close(Label, Reason) -> <<?CLOSE, Label:32, (reason_code(Reason))>>.

%% @doc The sender has ended that session, because nothing was heard of the peer for net_ticktime,
%% or by a disconnect.
-spec timed_out(Session :: <<_:128>>) -> iodata().
timed_out(Session) -> <<?TIMED_OUT, Session:16/binary>>.

%% @doc Tells the other end of a circuit the incarnation of this end.
-spec incarnation(label(), non_neg_integer()) -> iodata().
incarnation(Label, Incarnation) -> <<?INCARNATION, Label:32, Incarnation:64>>.

%% @doc Tells the neighbour that was dialled where the sender can be dialled: at that port.
-spec listening(inet:port_number()) -> iodata().
listening(Port) -> <<?LISTENING, Port:16>>.

%% @doc Asks the other end of a circuit to say `arrived' in the place of acknowledgements, on the
%% lane that it comes by.
-spec times(label()) -> iodata().
times(Label) -> <<?TIMES, Label:32>>.

%% @doc An acknowledgement with the time at which it was sent, by the clock of its sender.
-spec arrived(label(), sequence(), AtUs :: integer()) -> iodata().
arrived(Label, Sequence, AtUs) -> <<?ARRIVED, Label:32, Sequence:64, AtUs:64/signed>>.

-spec decode(binary()) -> packet().
decode(<<?DATA, Label:32, Sequence:64, Kind, Payload/binary>> = Packet) ->
    case Kind of
        1 -> {data, Label, Sequence, frames, Payload};
        2 -> {data, Label, Sequence, frames_ack, Payload};
        0 -> {data, Label, Sequence, handshake, Payload};
        3 -> bypass(bypass, Label, Sequence, Payload, Packet);
        4 -> bypass(bypass_ack, Label, Sequence, Payload, Packet);
        5 -> {data, Label, Sequence, part, Payload};
        6 -> {data, Label, Sequence, part_ack, Payload};
        _ -> {unknown, Packet}
    end;
decode(<<?ACK, Label:32, Sequence:64>>) -> {ack, Label, Sequence};
decode(<<?TICK, Label:32>>) -> {tick, Label};
decode(<<?ARRIVED, Label:32, Sequence:64, AtUs:64/signed>>) -> {arrived, Label, Sequence, AtUs};
decode(<<?PING, TimeUs:64/signed>>) -> {ping, TimeUs};
decode(<<?PONG, TimeUs:64/signed>>) -> {pong, TimeUs};
decode(<<?CONTROL, Size, Core:Size/binary, Payload/binary>>) -> {control, Core, Payload};
decode(<<?OPEN, Label:32, Mode, Hops, Session:16/binary, Received:64, SourceSize:16,
         Source:SourceSize/binary, TargetSize:16, Target:TargetSize/binary, Kind/binary>> = Packet)
  when Mode =< 1, SourceSize =< 1024, TargetSize =< 1024 ->
    case decode_kind(Kind) of
        {ok, StreamKind} ->
            {open, Label, #{mode => mode(Mode), kind => StreamKind, hops => Hops,
                            session => Session, received => Received, source => Source,
                            target => Target}};
        error ->
            {unknown, Packet}
    end;
decode(<<?ACCEPT, Label:32, Received:64>>) -> {accept, Label, Received};
decode(<<?CLOSE, Label:32, Reason>>) -> {close, Label, reason(Reason)};
decode(<<?TIMED_OUT, Session:16/binary>>) -> {timed_out, Session};
decode(<<?INCARNATION, Label:32, Incarnation:64>>) -> {incarnation, Label, Incarnation};
decode(<<?LISTENING, Port:16>>) when Port > 0 -> {listening, Port};
decode(<<?TIMES, Label:32>>) -> {times, Label};
decode(<<?GOODBYE>>) -> goodbye;
decode(<<>>) -> empty;
decode(Packet) -> {unknown, Packet}.

%% The numbers that it waits for must be lower than its own, or it would wait for ever.
bypass(Kind, Label, Sequence, <<After:64, Floor:64, Payload/binary>>, _Packet)
  when After < Sequence, Floor < Sequence ->
    {data, Label, Sequence, {Kind, After, Floor}, Payload};
bypass(_Kind, _Label, _Sequence, _Payload, Packet) ->
    {unknown, Packet}.

%% @doc The same packet for the next hop: only the label changes, the payload is not touched.
-spec relabel(binary(), label()) -> iodata().
relabel(<<Type, _Label:32, Rest/binary>>, Label) -> [<<Type, Label:32>>, Rest].

encode_kind(distribution) -> <<0>>;
encode_kind({channel, Name, Partition}) -> <<(byte_size(Name)), Name/binary, Partition>>.

decode_kind(<<0>>) -> {ok, distribution};
decode_kind(<<Size, Name:Size/binary, Partition>>) when Size > 0 ->
    {ok, {channel, Name, Partition}};
decode_kind(_) -> error.

kind_code(handshake) -> 0;
kind_code(frames) -> 1;
kind_code(frames_ack) -> 2;
kind_code(bypass) -> 3;
kind_code(bypass_ack) -> 4;
kind_code(part) -> 5;
kind_code(part_ack) -> 6.

mode_code(new) -> 0;
mode_code(resume) -> 1.

mode(0) -> new;
mode(1) -> resume.

reason_code(ended) -> 0;
reason_code(broken) -> 1;
reason_code(no_route) -> 2;
reason_code(hop_limit) -> 3;
reason_code(refused) -> 4;
reason_code(overload) -> 5;
reason_code(unknown) -> 6;
reason_code(gone) -> 7.

reason(0) -> ended;
reason(1) -> broken;
reason(2) -> no_route;
reason(3) -> hop_limit;
reason(4) -> refused;
reason(5) -> overload;
reason(7) -> gone;
reason(_) -> unknown.
