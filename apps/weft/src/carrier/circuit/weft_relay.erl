%% SPDX-License-Identifier: Apache-2.0
%% @doc The circuits of one link that pass through this node: they go on by another link.
%%
%% Each of the two links has a relay under its own label. The link to which the opener's packets
%% come asks the other one (`forward' in `weft_switch_gateway'), and its relay waits until that one
%% has answered (`forwarded'). Each relay has the lanes of its own link and those of the other one,
%% which it writes to. The links tell each other about their lanes, and about the end; what is to be
%% told is returned.
%%
%% Relays are kept among all circuits of a link, by label. What else there is, is not looked at.
%%
%% Not here: circuits that end at this node, and what is said to the peer.
-module(weft_relay).

-export([add/6, joined/4, lose/3, to_link/2, by_lane/2, lanes_changed/2, next_lanes_changed/3,
         next/1, lane/3, far/1, lanes/1, count/1, info/1]).
-export_type([relay/0, side/0, message/0]).

%% Packets from this size on are spread over the lanes of the next link.
-define(STRIPE_BYTES, 16384).

-type link() :: term().
-type lane() :: term().
-type label() :: weft_wire:label().

%% `far' is the end that lies beyond this link.
-record(relay, {kind :: weft_wire:stream_kind(), lanes :: [lane()], far :: binary(),
                next :: side() | waiting}).
-opaque relay() :: #relay{}.

-type circuits() :: #{label() => relay() | term()}.

%% A circuit on a link: the lanes that serve it there, and its label.
-type side() :: {link(), [lane()], label()}.

%% What the other link is told of the relay under that label, and by which of its lanes the relay
%% came, as far as is known here. If it has none of these any more, its peer may have started again
%% and use the label for another circuit.
-type message() :: {relay_lanes, label(), [lane()], Then :: [lane()]}
                 | {relay_closed, label(), Reason :: term(), Then :: [lane()]}.
-type told() :: {link, link(), message()}.

%% --- relays begin and end ---------------------------------------------------------------------

%% @doc A circuit whose end beyond this link is Far goes on there, or waits until the other link
%% has answered.
-spec add(label(), weft_wire:stream_kind(), Far :: binary(), [lane()], side() | waiting,
          circuits()) -> circuits().
add(Label, Kind, Far, Lanes, Next, Circuits) ->
    Circuits#{Label => #relay{kind = Kind, lanes = Lanes, far = Far, next = Next}}.

%% @doc The other link has answered a relay that waits. It is told the lanes of this link, because
%% one may have come up meanwhile.
-spec joined(label(), side(), weft_circuit_lanes:lanes(), circuits()) ->
          {circuits(), [told()]} | none.
joined(Label, Next, Lanes, Circuits) ->
    case Circuits of
        #{Label := #relay{kind = Kind} = Relay} ->
            Joined = Relay#relay{next = Next, lanes = weft_circuit_lanes:serving(Kind, Lanes)},
            {Circuits#{Label := Joined}, [tell_lanes(Joined)]};
        _ ->
            none
    end.

%% @doc The relay under that label is no more.
-spec lose(label(), Reason :: term(), circuits()) -> {circuits(), [told()]}.
lose(Label, Reason, Circuits) ->
    case maps:take(Label, Circuits) of
        {#relay{next = {Link, Then, NextLabel}}, Rest} ->
            {Rest, [{link, Link, {relay_closed, NextLabel, Reason, Then}}]};
        {#relay{next = waiting}, Rest} ->
            {Rest, []}
    end.

%% @doc The labels of the relays that go on by that link.
-spec to_link(link(), circuits()) -> [label()].
to_link(Link, Circuits) ->
    [Label || {Label, #relay{next = {Other, _, _}}} <- maps:to_list(Circuits), Other =:= Link].

%% @doc The labels of the relays that use that lane of this link.
-spec by_lane(lane(), circuits()) -> [label()].
by_lane(Lane, Circuits) ->
    [Label || {Label, #relay{lanes = Used}} <- maps:to_list(Circuits), lists:member(Lane, Used)].

%% --- lanes ------------------------------------------------------------------------------------

%% @doc This link has these lanes now: the other links write to them.
-spec lanes_changed(weft_circuit_lanes:lanes(), circuits()) -> {circuits(), [told()]}.
lanes_changed(Lanes, Circuits) ->
    Relays = [{Label, Relay#relay{lanes = weft_circuit_lanes:serving(Kind, Lanes)}}
              || {Label, #relay{kind = Kind} = Relay} <- maps:to_list(Circuits)],
    {maps:merge(Circuits, maps:from_list(Relays)),
     [tell_lanes(Relay) || {_, #relay{next = {_, _, _}} = Relay} <- Relays]}.

tell_lanes(#relay{next = {Link, Then, NextLabel}, lanes = Lanes}) ->
    {link, Link, {relay_lanes, NextLabel, Lanes, Then}}.

%% @doc The other link of the relay under that label has these lanes now.
-spec next_lanes_changed(label(), [lane()], circuits()) -> circuits().
next_lanes_changed(Label, Lanes, Circuits) ->
    case Circuits of
        #{Label := #relay{next = {Link, _, NextLabel}} = Relay} ->
            Circuits#{Label := Relay#relay{next = {Link, Lanes, NextLabel}}};
        _ ->
            Circuits
    end.

%% --- packets that go on -----------------------------------------------------------------------

%% @doc Where packets of a relay go on.
-spec next(relay()) -> side() | waiting.
next(#relay{next = Next}) -> Next.

%% @doc The lane that takes a packet of a relay, and how many bytes wait there. Large packets take
%% the lanes in turn, by their number; small ones need not wait behind them. If something waits in
%% that lane, the one with the least waiting takes the packet.
-spec lane(Waiting :: fun((lane()) -> integer()), Raw :: binary(), relay()) -> {integer(), lane()}.
lane(Waiting, Raw, #relay{next = {_Link, Lanes, _NextLabel}} = Relay) ->
    Preferred = preferred(Relay, Raw),
    case Waiting(Preferred) of
        0 -> {0, Preferred};
        _ -> lists:min([{Waiting(Lane), Lane} || Lane <- Lanes])
    end.

preferred(#relay{next = {_Link, [Lane], _}}, _Raw) ->
    Lane;
preferred(#relay{next = {_Link, Lanes, _}}, <<_Type, _Label:32, Sequence:64, _/binary>> = Raw)
  when byte_size(Raw) >= ?STRIPE_BYTES ->
    lists:nth(Sequence rem length(Lanes) + 1, Lanes);
preferred(#relay{next = {_Link, [Lane | _], _}}, _Raw) ->
    Lane.

%% --- what others see --------------------------------------------------------------------------

%% @doc The name of the end that lies beyond this link.
-spec far(relay()) -> binary().
far(#relay{far = Far}) -> Far.

%% @doc The lanes of this link by which a relay comes.
-spec lanes(relay()) -> [lane()].
lanes(#relay{lanes = Lanes}) -> Lanes.

%% @doc How many relays there are.
-spec count(circuits()) -> non_neg_integer().
count(Circuits) -> length([relay || #relay{} <- maps:values(Circuits)]).

%% @doc Where each relay comes in and goes out.
-spec info(circuits()) -> [#{label | far | next_link | next_label => term()}].
info(Circuits) -> [circuit(Label, Relay) || {Label, #relay{} = Relay} <- maps:to_list(Circuits)].

circuit(Label, #relay{far = Far, next = waiting}) ->
    #{label => Label, far => Far, next_link => waiting, next_label => waiting};
circuit(Label, #relay{far = Far, next = {Link, _Lanes, NextLabel}}) ->
    #{label => Label, far => Far, next_link => Link, next_label => NextLabel}.
