%% SPDX-License-Identifier: Apache-2.0
%% @doc The labels that one end of a link gives to circuits: numbers of 32 bits, odd at one end and
%% even at the other, so that both may open circuits without asking.
%%
%% They are used in turn and begin anew after the last one. Which of them are in use is up to
%% `weft_switch_core'.
-module(weft_circuit_labels).

-export([first/2, next/1]).

%% @doc The first label of the node called Own on a link to the node called Peer.
-spec first(Own :: binary(), Peer :: binary()) -> weft_wire:label().
first(Own, Peer) when Own < Peer -> 1;
first(_Own, _Peer) -> 2.

%% @doc The label after that one, at the same end.
-spec next(weft_wire:label()) -> weft_wire:label().
next(Label) when Label + 2 > 16#ffffffff -> 2 - (Label band 1);
next(Label) -> Label + 2.
