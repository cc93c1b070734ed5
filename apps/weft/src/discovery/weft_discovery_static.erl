%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery by a list in the configuration: `{static, #{nodes => [node()]}}'. It has the same
%% effect as seeds in the options of the topology, but is written in the same place for all
%% topologies.
-module(weft_discovery_static).
-behaviour(weft_discovery).

-export([discover/1]).

%% @doc See `weft_discovery'.
-spec discover(#{nodes := [node()], _ => _}) -> {ok, [node()]}.
discover(#{nodes := Nodes}) ->
    {ok, Nodes}.
