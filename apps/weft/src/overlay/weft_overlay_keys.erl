%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration that the overlay reads: keys, defaults and what values may be
%% (`weft_config').
-module(weft_overlay_keys).
-behaviour(weft_config).

-export([keys/0, tuning/0]).

%% @doc Keys that are written directly in the configuration.
-spec keys() -> [weft_config:row()].
keys() ->
    [{topology, undefined, fun weft_value:is_any/1, "a topology, for example full_mesh"}].

%% @doc Keys that are written in the map `tuning'.
-spec tuning() -> [weft_config:row()].
tuning() ->
    [{circuits, hidden, weft_value:one_of([hidden, visible]), "hidden or visible"},
     {hop_limit, 8, weft_value:between(1, 255), "an integer from 1 to 255"}].
