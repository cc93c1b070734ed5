%% SPDX-License-Identifier: Apache-2.0
%% @doc What a link of a gateway knows of a circuit that passes: where packets that come under its
%% label go on.
%%
%% A circuit through a gateway has two of these, one on each of its two links. Each has the lanes of
%% its own link that serve the circuit, and the link, lanes and label on the other side. It waits
%% until the other link has answered. A value of `weft_switch_core'.
-module(weft_relay).

-export([waiting/3, joined/4, join/3, is_waiting/1, kind/1, far/1, lanes/1, use_lanes/2,
         next/1, goes_by/2, next_lanes/1, use_next_lanes/2, preferred/2, info/2]).
-export_type([relay/0, side/0]).

%% Packets from this size on are spread over the lanes of the next link.
-define(STRIPE_BYTES, 16384).

-type link() :: term().
-type lane() :: term().
%% The circuit on a link: the lanes that serve it there, and its label.
-type side() :: {link(), [lane()], weft_wire:label()}.

-record(relay, {kind :: weft_wire:stream_kind(), lanes :: [lane()], far :: binary(),
                next :: side() | waiting}).
-opaque relay() :: #relay{}.

%% @doc The other link is asked. Far is the name of the end that lies beyond this link, Lanes are
%% those of this link.
-spec waiting(weft_wire:stream_kind(), [lane()], Far :: binary()) -> relay().
waiting(Kind, Lanes, Far) -> #relay{kind = Kind, lanes = Lanes, far = Far, next = waiting}.

%% @doc The other side is known from the beginning.
-spec joined(weft_wire:stream_kind(), [lane()], Far :: binary(), side()) -> relay().
joined(Kind, Lanes, Far, Next) -> #relay{kind = Kind, lanes = Lanes, far = Far, next = Next}.

%% @doc The other link has answered; Lanes are those of this link now.
-spec join(side(), [lane()], relay()) -> relay().
join(Next, Lanes, Relay) -> Relay#relay{next = Next, lanes = Lanes}.

-spec is_waiting(relay()) -> boolean().
is_waiting(#relay{next = Next}) -> Next =:= waiting.

-spec kind(relay()) -> weft_wire:stream_kind().
kind(#relay{kind = Kind}) -> Kind.

%% @doc The name of the end that lies beyond this link.
-spec far(relay()) -> binary().
far(#relay{far = Far}) -> Far.

-spec next(relay()) -> side() | waiting.
next(#relay{next = Next}) -> Next.

%% @doc Does the circuit go on by that link?
-spec goes_by(link(), relay()) -> boolean().
goes_by(Link, #relay{next = {Link, _, _}}) -> true;
goes_by(_Link, _Relay) -> false.

%% @doc The lanes of this link that serve the circuit.
-spec lanes(relay()) -> [lane()].
lanes(#relay{lanes = Lanes}) -> Lanes.

-spec use_lanes([lane()], relay()) -> relay().
use_lanes(Lanes, Relay) -> Relay#relay{lanes = Lanes}.

%% @doc The lanes on the other side: what comes by this link goes on by one of them.
-spec next_lanes(relay()) -> [lane()].
next_lanes(#relay{next = {_Link, Lanes, _}}) -> Lanes.

-spec use_next_lanes([lane()], relay()) -> relay().
use_next_lanes(Lanes, #relay{next = {Link, _, Label}} = Relay) ->
    Relay#relay{next = {Link, Lanes, Label}}.

%% @doc The lane that should take a packet: large ones take the lanes of the other side in turn, by
%% their number; small ones need not wait behind them.
-spec preferred(relay(), Raw :: binary()) -> lane().
preferred(#relay{next = {_Link, [Lane], _}}, _Raw) ->
    Lane;
preferred(#relay{next = {_Link, Lanes, _}}, <<_Type, _Label:32, Sequence:64, _/binary>> = Raw)
  when byte_size(Raw) >= ?STRIPE_BYTES ->
    lists:nth(Sequence rem length(Lanes) + 1, Lanes);
preferred(#relay{next = {_Link, [Lane | _], _}}, _Raw) ->
    Lane.

%% @doc Where the circuit comes in and goes out, for people.
-spec info(weft_wire:label(), relay()) -> #{atom() => term()}.
info(Label, #relay{far = Far, next = waiting}) ->
    #{label => Label, far => Far, next_link => waiting, next_label => waiting};
info(Label, #relay{far = Far, next = {Link, _Lanes, NextLabel}}) ->
    #{label => Label, far => Far, next_link => Link, next_label => NextLabel}.
