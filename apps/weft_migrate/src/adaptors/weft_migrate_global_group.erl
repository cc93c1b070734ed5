%% SPDX-License-Identifier: Apache-2.0
%% @doc `global_group' in terms of `weft_group', for a node that is in a group. Names and monitors
%% have other shapes there. See `weft_migrate_adaptor'.
-module(weft_migrate_global_group).
-migrates(global_group).

-export([own_nodes/0]).

-spec own_nodes() -> [node()].
own_nodes() -> weft_group:own_nodes().
