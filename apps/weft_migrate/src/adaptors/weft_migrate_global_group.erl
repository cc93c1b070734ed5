%% SPDX-License-Identifier: Apache-2.0
%% @doc `global_group' in terms of `weft_group', whose groups have to be those that `global_groups'
%% is configured with. The order of nodes may be another one. What else `global_group' has takes for
%% granted that a node is in one group, or looks for names in one group after the other. See
%% `weft_migrate_adaptor'.
-module(weft_migrate_global_group).
-migrates(global_group).

-export([own_nodes/0]).

%% A node that is in no group has all nodes. On a partial topology `nodes/0' lacks some.
%% `erlang:' is written out, as a module that is rewritten may have a nodes/0 of its own.
-spec own_nodes() -> [node()].
own_nodes() ->
    case weft_group:is_free() of
        true -> lists:usort([erlang:node() | erlang:nodes() ++ weft:members()]);
        false -> weft_group:own_nodes()
    end.
