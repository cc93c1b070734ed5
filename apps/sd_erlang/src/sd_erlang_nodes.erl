%% SPDX-License-Identifier: Apache-2.0
%% @doc The connected nodes of the cluster: those of `nodes/0', and those that are hidden only since
%% the connection leads over other nodes. A hidden node that observes, as a tool does, is none.
-module(sd_erlang_nodes).

-export([connected/0, is_of_cluster/1]).

-spec connected() -> [node()].
connected() -> nodes() ++ [Node || Node <- nodes(hidden), is_of_cluster(Node)].

%% @doc Is a node that is hidden here a member of the cluster, or one to which a route leads?
-spec is_of_cluster(node()) -> boolean().
is_of_cluster(Node) ->
    lists:member(Node, weft_overlay:members()) orelse weft_overlay:has_route(Node).
