%% SPDX-License-Identifier: Apache-2.0
%% @doc The topology of a node that has left its cluster: it wants no link and is the only member.
%% It cannot be configured; `weft_membership_change' puts it in the place of the topology that the
%% node has left, and that one back when the node joins again.
%%
%% What other nodes say is ignored, so that no late news makes the node a member again. Commands:
%% `leave' is answered `ok', `{forget, Node}' `{error, unknown_member}'.
-module(weft_alone_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1, decides_neighbours/0]).

%% @doc See `weft_core'. No options.
-spec init(weft_core:node_id(), weft_core:options()) -> {alone, weft_core:effects()}.
init(Self, _Options) ->
    {alone, [{view, {member, Self}, left}]}.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), alone) -> {alone, weft_core:effects()}.
handle({command, Ref, leave}, _NowMs, alone) -> {alone, [{reply, Ref, ok}]};
handle({command, Ref, _}, _NowMs, alone) -> {alone, [{reply, Ref, {error, unknown_member}}]};
handle({neighbour_up, Node}, _NowMs, alone) -> {alone, [{neighbour, Node, false}]};
handle(_Event, _NowMs, alone) -> {alone, []}.

%% @doc See `weft_topology'.
-spec validate(weft_core:node_id(), map()) -> ok.
validate(_Self, _Options) -> ok.

%% @doc See `weft_topology'.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, _Options) -> false.

%% @doc See `weft_topology'.
-spec neighbours(alone) -> [].
neighbours(alone) -> [].

%% @doc See `weft_topology': whoever has a link with this node is no neighbour, so that no service
%% and no distribution connection comes with the link.
-spec decides_neighbours() -> true.
decides_neighbours() -> true.
