%% SPDX-License-Identifier: Apache-2.0
%% @doc A topology that is not part of weft and finds its members: a full mesh by another name.
%% Nothing of its own is in it; it is for tests of what surrounds such a topology.
-module(weft_own_mesh).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1, seeds/1]).

init(Self, Options) -> weft_full_mesh_core:init(Self, Options).

handle(Event, NowMs, State) -> weft_full_mesh_core:handle(Event, NowMs, State).

validate(Self, Options) -> weft_full_mesh_core:validate(Self, Options).

partial(Self, Options) -> weft_full_mesh_core:partial(Self, Options).

neighbours(State) -> weft_full_mesh_core:neighbours(State).

seeds(Options) -> weft_full_mesh_core:seeds(Options).
