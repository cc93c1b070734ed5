%% SPDX-License-Identifier: Apache-2.0
%% @doc How a process takes over the end of a circuit that a peer has opened. The link of the
%% circuit hears it as a message to its handler (`weft_switch'), which calls the accepting process
%% in turn; so the message is made here, below both.
-module(weft_circuit).

-export([join/5]).

%% @doc The calling process serves the circuit that the peer Source has opened. To be said before
%% the peer is told: then the link knows it before anything comes. A Host of distribution has to
%% have the counters of the session.
-spec join(weft_stream:path(), weft_wire:stream_kind(), Source :: binary(), Input :: pid(),
           weft_session_counters:counters()) -> ok.
join({Link, Lanes, Label}, Kind, Source, Input, Counters) ->
    weft_link_handler:tell(Link, {join, Label, Lanes, {Kind, self(), Source, Input}, Counters}).
