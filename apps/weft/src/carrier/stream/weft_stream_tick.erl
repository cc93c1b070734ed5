%% SPDX-License-Identifier: Apache-2.0
%% @doc What a tick of the kernel's ticker is for a stream; pure.
%%
%% A packet outside the numbering, which may be lost. It is answered by an acknowledgement, and
%% proves to the peer that this node is alive. It counts also if there is no path: the ticker takes
%% it for sent, and asks for the next one only if nothing else seems to be sent.
%%
%% Of a stream at rest (`weft_stream_core:rest/2') others know where its ticks are to be written.
-module(weft_stream_tick).

-export([on_path/2, without_path/0, at_rest/2]).
-export_type([effect/0, rest/0]).

-type effect() :: {for_ticker, tick_out} | {tick, [Lane :: term()], weft_wire:label()}.
%% Of a stream that has written so many packets, with the ticks since then.
-type rest() :: {Lane :: term(), weft_wire:label(), Written :: non_neg_integer()}.

%% @doc On this lane of the path of the stream.
-spec on_path(Lane :: term(), weft_wire:label()) -> [effect()].
on_path(Lane, Label) -> [{for_ticker, tick_out}, {tick, [Lane], Label}].

-spec without_path() -> [effect()].
without_path() -> [{for_ticker, tick_out}].

%% @doc Of a stream that was at rest, unless it has written more since.
-spec at_rest(Written :: non_neg_integer(), rest() | none) -> [effect()] | in_use.
at_rest(Written, {Lane, Label, Written}) -> on_path(Lane, Label);
at_rest(_Written, _RestOrNone) -> in_use.
