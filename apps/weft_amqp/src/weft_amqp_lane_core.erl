%% SPDX-License-Identifier: Apache-2.0
%% @doc One end of a lane that goes through the broker: numbers, parts, credit; pure.
%%
%% Packets become messages of at most `part_bytes', numbered from 1 in each direction and sealed
%% once both ends are authenticated; what goes before that is the handshake, in plain bytes. A
%% message that comes twice is ignored, and so is a forged one; one that is missing ends the lane,
%% since only what is above it (sessions) can send again.
%%
%% Flow control is between the ends: the sender stops when messages of `window/0' are under way that
%% the other end has not given credit for, so neither the queue at the broker nor this process
%% grows without bound. Credit is for what the owner of the lane has taken. Each message costs its
%% bytes and `?MESSAGE_COST' more.
-module(weft_amqp_lane_core).

-export([new/2, secure/3, is_secure/1, send/2, received/2, taken/2, hang_up/1, cost/2, window/0,
         limit_packets/2]).
-export_type([core/0, event/0]).

-define(WINDOW, 2097152).
-define(MESSAGE_COST, 256).
-define(HANDSHAKE_BYTES_MAX, 4096).

-record(core, {
    id :: weft_amqp_message:id(),
    part_bytes :: pos_integer(),
    packet_bytes_max = 0 :: non_neg_integer(),
    keys :: weft_amqp_seal:keys() | undefined,
    next_out = 1 :: pos_integer(),
    next_in = 1 :: pos_integer(),
    %% Sealed messages that came before this end was told the secret, newest first.
    early = [] :: [weft_amqp_message:frame()],
    early_cost = 0 :: non_neg_integer(),
    %% Of a packet that is not complete yet, newest first.
    parts = [] :: [binary()],
    parts_bytes = 0 :: non_neg_integer(),
    %% Taken by the owner, and no credit given yet.
    taken = 0 :: non_neg_integer()}).

-opaque core() :: #core{}.
%% broken: a message is missing, or the peer breaks the protocol. forged: not from the peer.
-type event() :: {bytes, binary()} | {packet, binary(), Cost :: pos_integer()}
               | {credit, pos_integer()} | closed | {broken, Reason :: atom()} | forged.

-spec new(weft_amqp_message:id(), PartBytes :: pos_integer()) -> core().
new(Id, PartBytes) ->
    #core{id = Id, part_bytes = PartBytes}.

%% @doc Cost of messages under way from where on the sender must wait.
-spec window() -> pos_integer().
window() -> ?WINDOW.

%% @doc What a packet of so many bytes costs of the window.
-spec cost(non_neg_integer(), PartBytes :: pos_integer()) -> pos_integer().
cost(Bytes, PartBytes) ->
    Bytes + ?MESSAGE_COST * max(1, (Bytes + PartBytes - 1) div PartBytes).

%% @doc Larger packets than this break the lane.
-spec limit_packets(pos_integer(), core()) -> core().
limit_packets(BytesMax, Core) ->
    Core#core{packet_bytes_max = BytesMax}.

%% @doc Both ends share a secret now; all that is sent from here on is sealed.
-spec secure(dialer | listener, Secret :: binary(), core()) -> {[event()], core()}.
secure(Role, Secret, #core{id = Id, early = Early} = Core) ->
    received_all(lists:reverse(Early),
                 Core#core{keys = weft_amqp_seal:keys(Secret, Role, Id), early = []}).

-spec is_secure(core()) -> boolean().
is_secure(#core{keys = Keys}) -> Keys =/= undefined.

received_all(Frames, Core) ->
    lists:foldl(fun(Frame, {Events, C0}) ->
                        {More, C} = received(Frame, C0),
                        {Events ++ More, C}
                end, {[], Core}, Frames).

%% @doc The messages that carry a packet, or bytes of the handshake.
-spec send(iodata(), core()) -> {[iodata()], core()}.
send(Bytes, #core{keys = undefined, id = Id, next_out = Number} = Core) ->
    {[weft_amqp_message:plain(Id, Number, Bytes)], Core#core{next_out = Number + 1}};
send(Packet, #core{part_bytes = PartBytes} = Core) ->
    case iolist_size(Packet) =< PartBytes of
        true -> sealed([{last, Packet}], Core);
        false -> sealed(parts(iolist_to_binary(Packet), PartBytes), Core)
    end.

parts(Packet, PartBytes) ->
    case Packet of
        <<Part:PartBytes/binary, Rest/binary>> when Rest =/= <<>> ->
            [{part, Part} | parts(Rest, PartBytes)];
        _ ->
            [{last, Packet}]
    end.

sealed(Contents, Core) ->
    lists:mapfoldl(fun({Content, Plain}, #core{id = Id, keys = {Key, _}, next_out = Number} = C) ->
                           Head = weft_amqp_message:sealed_head(Id, Number, Content),
                           {Cipher, Tag} = weft_amqp_seal:seal(Key, Number, Head, Plain),
                           {weft_amqp_message:sealed(Head, Tag, Cipher),
                            C#core{next_out = Number + 1}}
                   end, Core, Contents).

%% @doc The last message of this end. It takes a number as any other: a key that seals two messages
%% under one number protects none.
-spec hang_up(core()) -> {[iodata()], core()}.
hang_up(#core{keys = undefined} = Core) -> send(<<>>, Core);
hang_up(Core) -> sealed([{close, <<>>}], Core).

%% @doc The owner has taken a packet of that cost: perhaps a message that gives credit for it.
-spec taken(pos_integer(), core()) -> {[iodata()], core()}.
taken(Cost, #core{taken = Taken} = Core) when Taken + Cost < ?WINDOW div 8 ->
    {[], Core#core{taken = Taken + Cost}};
taken(Cost, #core{taken = Taken} = Core) ->
    sealed([{credit, <<(Taken + Cost):32>>}], Core#core{taken = 0}).

%% @doc A message of this lane has come.
-spec received(weft_amqp_message:frame(), core()) -> {[event()], core()}.
received({plain, Number, Bytes}, #core{keys = undefined, next_in = Number} = Core)
  when byte_size(Bytes) =< ?HANDSHAKE_BYTES_MAX ->
    Event = case Bytes of <<>> -> closed; _ -> {bytes, Bytes} end,
    {[Event], Core#core{next_in = Number + 1}};
received({sealed, _, _, {_, _, Cipher}} = Frame, #core{keys = undefined} = Core) ->
    #core{early = Early, early_cost = EarlyCost} = Core,
    Cost = byte_size(Cipher) + ?MESSAGE_COST,
    case EarlyCost + Cost > 2 * ?WINDOW of
        true -> {[], Core};
        false -> {[], Core#core{early = [Frame | Early], early_cost = EarlyCost + Cost}}
    end;
received({sealed, Number, Content, {Head, Tag, Cipher}}, #core{keys = {_, Key}} = Core) ->
    case weft_amqp_seal:unseal(Key, Number, Head, {Tag, Cipher}) of
        {ok, Plain} -> unsealed(Number, Content, Plain, Core);
        error -> {[forged], Core}
    end;
received(_OutOfPlace, Core) ->
    {[], Core}.

unsealed(Number, Content, Plain, #core{next_in = Number} = Core) ->
    content(Content, Plain, Core#core{next_in = Number + 1});
unsealed(Number, _Content, _Plain, #core{next_in = Next} = Core) when Number > Next ->
    {[{broken, message_missing}], Core};
unsealed(_Number, _Content, _Plain, Core) ->
    {[], Core}.

content(part, Plain, Core) ->
    added(Plain, Core, fun(More) -> {[], More} end);
content(last, Plain, Core) ->
    added(Plain, Core, fun whole/1);
content(credit, <<Cost:32>>, Core) ->
    {[{credit, Cost}], Core};
content(credit, _, Core) ->
    {[{broken, bad_credit}], Core};
content(close, _, Core) ->
    {[closed], Core}.

added(Plain, #core{parts = Parts, parts_bytes = Bytes0, packet_bytes_max = Max} = Core, Then) ->
    Bytes = Bytes0 + byte_size(Plain),
    case Max > 0 andalso Bytes > Max of
        true -> {[{broken, emsgsize}], Core};
        false -> Then(Core#core{parts = [Plain | Parts], parts_bytes = Bytes})
    end.

whole(#core{parts = Parts, parts_bytes = Bytes} = Core) ->
    Packet = case Parts of
                 [Only] -> Only;
                 _ -> iolist_to_binary(lists:reverse(Parts))
             end,
    {[{packet, Packet, Bytes + ?MESSAGE_COST * length(Parts)}],
     Core#core{parts = [], parts_bytes = 0}}.
