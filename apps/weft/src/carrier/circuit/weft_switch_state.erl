%% SPDX-License-Identifier: Apache-2.0
%% @doc The circuits on one link, by label, and what sessions, other links and the peer are told
%% about them. Pure.
%%
%% This is the state that `weft_switch_core' (the link, and circuits that end here) and
%% `weft_switch_gateway' (circuits that pass) work on. This module changes a part of it, and says
%% what others are to be told of that. It decides nothing. Links, lanes and sessions are terms that
%% are not looked into.
-module(weft_switch_state).

-export([lanes_for/2, allocate/1, local/3, forget/2, close_all/3, watch/2, tell/2, closed/4]).
-export_type([state/0, link/0, lane/0, session/0, input/0, local/0, message/0, effect/0]).

-include("weft_switch_state.hrl").

-type state() :: #switch{}.
-type link() :: term().
-type lane() :: term().
-type session() :: term().
-type input() :: term().
-type label() :: weft_wire:label().

%% What serves a circuit, and the name of its other end.
-type local() :: {weft_wire:stream_kind(), session(), input(), Far :: binary()}.

-type message() ::
        %% From the sessions of this node.
        {available, [session()]}
      | {host, session()}
      | {join, label(), [lane()], local()}
      | {refused, label()}
      | {taken, label()}
      | {open, session(), input(), weft_wire:open()}
      | {drop, label()}
        %% From other links of this node.
      | {forward, link(), [lane()], label(), weft_wire:open()}
      | {forwarded, label(), weft_relay:side(), Then :: [lane()]}
      | weft_relay:message()
        %% Circuits that pass are to go another way.
      | {relay_closed, label(), Reason :: term()}
        %% From earlier code.
      | {forwarded, label(), weft_relay:side()}
      | {relay_lanes, label(), [lane()]}
        %% A session, or another link, has ended.
      | {down, session() | link()}.

-type effect() ::
        {tell, session() | input(), Message :: tuple()}
      | {link, link(), message()}
      | {write, lane(), iodata()}
      | {watch, session() | link()}
        %% Start what serves a circuit that the peer has opened; the process of this link may
        %% deliver input that comes by this link.
      | {accept, weft_wire:stream_kind(), <<_:128>>, Source :: binary(), weft_relay:side(),
         Host :: link() | own_process}.

%% --- labels -----------------------------------------------------------------------------------

%% @doc A label that this end gives to a new circuit.
-spec allocate(state()) -> {label(), state()}.
allocate(#switch{next_label = Label} = Switch) ->
    {Label, Switch#switch{next_label = weft_circuit_labels:next(Label)}}.

%% @doc A circuit ends here.
-spec local(label(), local(), state()) -> state().
local(Label, {Kind, Session, Input, Far}, #switch{labels = Labels} = Switch) ->
    Local = #local{kind = Kind, session = Session, input = Input, far = Far},
    Switch#switch{labels = Labels#{Label => Local}}.

%% @doc What comes under that label from now on is unknown.
-spec forget(label(), state()) -> state().
forget(Label, #switch{labels = Labels} = Switch) ->
    Switch#switch{labels = maps:remove(Label, Labels)}.

%% @doc What served these circuits here is no more, so the peer is to forget them as well.
-spec close_all([label()], Reason :: term(), state()) -> {state(), [effect()]}.
close_all(Ended, Reason, #switch{labels = Labels} = Switch) ->
    {Switch#switch{labels = maps:without(Ended, Labels)},
     lists:append([tell(weft_wire:close(Label, Reason), Switch) || Label <- Ended])}.

%% @doc The lanes that serve a circuit of that kind.
-spec lanes_for(weft_wire:stream_kind(), state()) -> [lane()].
lanes_for(Kind, #switch{lanes = Lanes}) -> weft_circuit_lanes:serving(Kind, Lanes).

%% --- what others are told ---------------------------------------------------------------------

%% @doc The end of a session, or of another link, is to be heard of.
-spec watch(session() | link(), state()) -> {state(), [effect()]}.
watch(Pid, #switch{watched = Watched} = Switch) when is_map_key(Pid, Watched) ->
    {Switch, []};
watch(Pid, #switch{watched = Watched} = Switch) ->
    {Switch#switch{watched = Watched#{Pid => []}}, [{watch, Pid}]}.

%% @doc To the peer, by the first lane, so that packets about labels keep their order.
-spec tell(iodata(), state()) -> [effect()].
tell(_Packet, #switch{lanes = []}) -> [];
tell(Packet, #switch{lanes = [{Lane, _Key} | _]}) -> [{write, Lane, Packet}].

%% @doc To a session: its circuit with that label is no more, or any that it has here.
-spec closed(session(), label() | any, Reason :: term(), state()) -> effect().
closed(Session, Label, Reason, #switch{link = Link}) ->
    {tell, Session, {weft_path, closed, Link, Label, Reason}}.
