%% SPDX-License-Identifier: Apache-2.0
%% @doc Packets of a lane: what is encoded is decoded again, and arbitrary bytes do no harm.
-module(weft_wire_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MUTATIONS, 40000).
-define(REASONS, [ended, broken, no_route, hop_limit, refused, overload, unknown, gone]).

every_packet_comes_back_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_roundtrip(), [{numtests, 2000}, quiet]))}.

prop_roundtrip() ->
    ?FORALL(Packet, packet(), weft_wire:decode(encoded(Packet)) =:= Packet).

the_packets_without_contents_come_back_test() ->
    ?assertEqual(goodbye, weft_wire:decode(iolist_to_binary(weft_wire:goodbye()))),
    ?assertEqual(empty, weft_wire:decode(<<>>)).

a_gateway_changes_the_label_only_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_relabel(), [{numtests, 1000}, quiet]))}.

prop_relabel() ->
    ?FORALL({Packet, Label}, {labelled(), label()},
            begin
                Relabelled = iolist_to_binary(weft_wire:relabel(encoded(Packet), Label)),
                weft_wire:decode(Relabelled) =:= setelement(2, Packet, Label)
            end).

any_bytes_are_a_packet_of_some_kind_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_any_bytes(), [{numtests, 5000}, quiet]))}.

prop_any_bytes() ->
    ?FORALL(Bytes, oneof([binary(), ?LET({Type, Rest}, {range(0, 15), binary()},
                                         <<Type, Rest/binary>>)]),
            is_packet(weft_wire:decode(Bytes), Bytes)).

a_truncated_packet_is_not_taken_for_another_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_truncated(), [{numtests, 1000}, quiet]))}.

%% Payloads have no length of their own; all else does.
prop_truncated() ->
    ?FORALL(Packet, ?SUCHTHAT(P, packet(), not has_payload(P)),
            begin
                Whole = encoded(Packet),
                lists:all(fun(Size) ->
                                  is_unknown(weft_wire:decode(binary:part(Whole, 0, Size)))
                          end, lists:seq(1, byte_size(Whole) - 1))
            end).

%% It would wait for itself.
what_bypasses_others_is_behind_what_comes_before_it_test_() ->
    [?_assertMatch({unknown, _},
                   weft_wire:decode(encoded({data, 1, 7, {bypass, After, Floor}, <<>>})))
     || {After, Floor} <- [{7, 0}, {0, 7}, {8, 8}]].

has_payload(Packet) -> lists:member(element(1, Packet), [data, control]).

is_unknown({unknown, _}) -> true;
is_unknown(_) -> false.

forty_thousand_spoiled_packets_make_no_atom_test_() ->
    {timeout, 60, fun() ->
                          _ = rand:seed(exsss, 42),
                          ok = spoil(1000),
                          Atoms = erlang:system_info(atom_count),
                          ok = spoil(?MUTATIONS),
                          ?assertEqual(Atoms, erlang:system_info(atom_count))
                  end}.

spoil(0) ->
    ok;
spoil(Left) ->
    Packet = iolist_to_binary(weft_hostile_mutation:packet(<<"target@host">>)),
    Spoiled = weft_hostile_mutation:mutate(Packet),
    true = is_packet(weft_wire:decode(Spoiled), Spoiled),
    spoil(Left - 1).

%% --- what a packet is -------------------------------------------------------------------------

is_packet(empty, <<>>) -> true;
is_packet({unknown, Bytes}, Bytes) -> true;
is_packet(goodbye, <<2>>) -> true;
is_packet({ping, T}, _) -> is_integer(T);
is_packet({pong, T}, _) -> is_integer(T);
is_packet({timed_out, Session}, _) -> byte_size(Session) =:= 16;
is_packet({control, Core, Payload}, _) -> is_binary(Core) andalso is_binary(Payload);
is_packet({data, Label, Sequence, Kind, Payload}, _) ->
    is_label(Label) andalso is_sequence(Sequence) andalso is_binary(Payload)
        andalso is_kind(Kind, Sequence);
is_packet({ack, Label, Sequence}, _) -> is_label(Label) andalso is_sequence(Sequence);
is_packet({tick, Label}, _) -> is_label(Label);
is_packet({times, Label}, _) -> is_label(Label);
is_packet({arrived, Label, Sequence, AtUs}, _) ->
    is_label(Label) andalso is_sequence(Sequence) andalso is_integer(AtUs);
is_packet({open, Label, #{mode := Mode, hops := Hops, session := <<_:128>>, received := Received,
                          source := Source, target := Target}}, _) ->
    is_label(Label) andalso lists:member(Mode, [new, resume]) andalso Hops < 256
        andalso is_sequence(Received) andalso byte_size(Source) =< 1024
        andalso byte_size(Target) =< 1024;
is_packet({accept, Label, Sequence}, _) -> is_label(Label) andalso is_sequence(Sequence);
is_packet({incarnation, Label, Incarnation}, _) ->
    is_label(Label) andalso is_sequence(Incarnation);
is_packet({listening, Port}, _) -> Port > 0 andalso Port < 65536;
is_packet({close, Label, Reason}, _) -> is_label(Label) andalso lists:member(Reason, ?REASONS);
is_packet(_, _) -> false.

is_kind({Kind, After, Floor}, Sequence) ->
    lists:member(Kind, [bypass, bypass_ack]) andalso After < Sequence andalso Floor < Sequence;
is_kind(Kind, _Sequence) ->
    lists:member(Kind, [handshake, frames, frames_ack, part, part_ack]).

is_label(Label) -> Label >= 0 andalso Label =< 16#ffffffff.

is_sequence(Sequence) -> Sequence >= 0 andalso Sequence < 1 bsl 64.

%% --- generators -------------------------------------------------------------------------------

packet() ->
    oneof([{ping, time_us()}, {pong, time_us()}, {timed_out, binary(16)},
           {listening, range(1, 65535)},
           {control, ?LET(B, binary(), cut(B, 255)), binary()}, labelled()]).

labelled() ->
    oneof([{data, label(), sequence(),
            oneof([handshake, frames, frames_ack, part, part_ack]), binary()},
           bypass(), {ack, label(), sequence()}, {tick, label()}, {accept, label(), sequence()},
           {times, label()}, {arrived, label(), sequence(), time_us()},
           {incarnation, label(), sequence()},
           {close, label(), oneof(?REASONS)}, {open, label(), open()}]).

bypass() ->
    ?LET({Sequence, Kind}, {?SUCHTHAT(S, sequence(), S > 0), oneof([bypass, bypass_ack])},
         {data, label(), Sequence, {Kind, range(0, Sequence - 1), range(0, Sequence - 1)},
          binary()}).

open() ->
    ?LET({Mode, Kind, Hops, Session, Received, Source, Target},
         {oneof([new, resume]), kind(), byte(), binary(16), sequence(), name(), name()},
         #{mode => Mode, kind => Kind, hops => Hops, session => Session, received => Received,
           source => Source, target => Target}).

kind() ->
    oneof([distribution,
           {channel, ?LET({First, Rest}, {byte(), binary()}, <<First, (cut(Rest, 254))/binary>>),
            byte()}]).

name() -> ?LET(B, oneof([binary(), binary(1024)]), cut(B, 1024)).

label() -> oneof([range(0, 10), range(0, 16#ffffffff)]).

sequence() -> oneof([range(0, 10), range(0, (1 bsl 64) - 1)]).

time_us() -> range(-(1 bsl 62), 1 bsl 62).

cut(Binary, Max) -> binary:part(Binary, 0, min(Max, byte_size(Binary))).

encoded(Packet) -> iolist_to_binary(encode(Packet)).

encode({ping, T}) -> weft_wire:ping(T);
encode({pong, T}) -> weft_wire:pong(T);
encode({timed_out, Session}) -> weft_wire:timed_out(Session);
encode({control, Core, Payload}) -> weft_wire:control(Core, Payload);
encode({data, Label, Sequence, Kind, Payload}) -> weft_wire:data(Label, Sequence, Kind, Payload);
encode({ack, Label, Sequence}) -> weft_wire:ack(Label, Sequence);
encode({tick, Label}) -> weft_wire:tick(Label);
encode({times, Label}) -> weft_wire:times(Label);
encode({arrived, Label, Sequence, AtUs}) -> weft_wire:arrived(Label, Sequence, AtUs);
encode({open, Label, Open}) -> weft_wire:open(Label, Open);
encode({accept, Label, Sequence}) -> weft_wire:accept(Label, Sequence);
encode({incarnation, Label, Incarnation}) -> weft_wire:incarnation(Label, Incarnation);
encode({listening, Port}) -> weft_wire:listening(Port);
encode({close, Label, Reason}) -> weft_wire:close(Label, Reason).
