%% SPDX-License-Identifier: Apache-2.0
%% @doc Which nodes are lost while something is measured: runs on the nodes under test, in the
%% process that measures. A connection that was lost and made again carries as much as before, so
%% nothing else would tell.
-module(weft_bench_nodedowns).

-export([watch/0, seen/0]).

%% @doc From now on each `nodedown' is a message to this process.
-spec watch() -> ok.
watch() ->
    ok = net_kernel:monitor_nodes(true).

%% @doc The nodes that were lost since then, or since they were asked for, the first one first.
-spec seen() -> [node()].
seen() ->
    receive
        {nodedown, Node} -> [Node | seen()];
        {nodeup, _} -> seen()
    after 0 -> []
    end.
