%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration that discovery reads: keys, defaults and what values may be
%% (`weft_config').
-module(weft_discovery_keys).
-behaviour(weft_config).

-export([keys/0, tuning/0]).

%% @doc Keys that are written directly in the configuration.
-spec keys() -> [weft_config:row()].
keys() ->
    [{discovery, [], fun is_list/1, "a list of sources, for example [{dns, #{name => \"app\"}}]"}].

%% @doc Keys that are written in the map `tuning'.
-spec tuning() -> [weft_config:row()].
tuning() ->
    [{discovery_interval_ms, 5000, weft_value:between(100, 3600000),
      "milliseconds, from 100 to 3600000"}].
