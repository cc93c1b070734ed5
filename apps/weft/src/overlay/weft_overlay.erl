%% SPDX-License-Identifier: Apache-2.0
%% @doc The overlay of this node: which nodes are members, which are neighbours, and which neighbour
%% leads to which node.
%%
%% Reads go to the view table and ask no process. Without a running overlay they answer as if there
%% were no other node.
-module(weft_overlay).

-export([members/0, failed/0, is_foreign/1, neighbours/0, routes/0, route/1, has_route/1,
         is_settling/2, has_died/2, is_partial/0, has_asked/0, topology/0, leave/0, leave_ms/1,
         seed/1, release/1, forget/1, boot_checks/3, partial_checks/3]).

%% The time that a topology may take to tell the others that this node leaves, besides what its
%% options give it.
-define(LEAVE_MS, 10000).

%% @doc All nodes known to belong to the cluster, own node included, reachable or not. If no node
%% has a list of all members (topology peer_to_peer), the nodes with a route count as members.
-spec members() -> [node()].
members() ->
    Listed = [Node || {Node, _} <- weft_view:all(member)],
    case weft_view:lookup(lists_members) of
        false -> lists:umerge(Listed, [Dest || {Dest, _} <- weft_view:all(route)]);
        _ -> Listed
    end.

%% @doc The nodes that a failure detector has found dead and that are not yet forgotten. They are no
%% members any more. Without a detector always none.
-spec failed() -> [node()].
failed() ->
    [Node || {Node, _} <- weft_view:all(failed)].

%% @doc Is it known that a node is no member, and none that has failed? Nobody knows that without an
%% overlay, and where no node has a list of all members.
-spec is_foreign(node()) -> boolean().
is_foreign(Node) ->
    Members = members(),
    weft_view:lookup(lists_members) =:= true andalso Members =/= []
        andalso not lists:member(Node, Members ++ failed()).

%% @doc The nodes with a link to this one, and the cost of the link (microseconds; 1000 if never
%% measured).
-spec neighbours() -> [{node(), Cost :: pos_integer()}].
neighbours() ->
    weft_view:all(neighbour).

%% @doc All routes: destination, next hop, sum of the link costs, number of links.
-spec routes() -> [{Dest :: node(), {NextHop :: node(), Metric :: pos_integer(),
                                     Hops :: pos_integer()}}].
routes() ->
    weft_view:all(route).

%% @doc The neighbour that leads to Node. It is Node itself if the direct link is the best way.
-spec route(node()) -> {ok, NextHop :: node()} | {error, no_route}.
route(Node) ->
    case weft_view:lookup({route, Node}) of
        {NextHop, _Metric, _Hops} -> {ok, NextHop};
        undefined -> {error, no_route}
    end.

%% @doc Is there a route to a node?
-spec has_route(node()) -> boolean().
has_route(Node) -> route(Node) =/= {error, no_route}.

%% @doc May a route to that node turn up soon? True if its route was lost in the last WithinMs; or
%% if in that time a link of this node came up or the topology changed, and it is a member. Where
%% circuits are visible it need not be one yet: `global' hears of a node that has come from its
%% neighbours, maybe sooner than this node does, and gives up a node that it cannot reach. There a
%% route may also turn up when the overlay of a neighbour starts, which its carrier does not wait
%% for.
-spec is_settling(node(), WithinMs :: pos_integer()) -> boolean().
is_settling(Node, WithinMs) ->
    Since = erlang:monotonic_time(millisecond) - WithinMs,
    IsVisible = weft_config:get(circuits) =:= visible,
    is_after(Since, weft_view:lookup({lost, Node}))
        orelse (is_after(Since, weft_view:lookup(link_up_ms))
                orelse is_after(Since, weft_view:lookup(topology_since_ms)))
        andalso (IsVisible orelse lists:member(Node, members()))
        orelse IsVisible andalso is_a_neighbour_without_overlay().

is_a_neighbour_without_overlay() ->
    Neighbours = [Node || {Node, _Cost} <- neighbours()],
    lists:any(fun({Key, _Link}) ->
                      weft_links:wanted(Key) andalso weft_links:up(Key)
                          andalso not lists:member(Key, Neighbours)
              end, weft_links:list()).

%% @doc Is it known that this incarnation of a node ended, some seconds ago at most?
-spec has_died(node(), Incarnation :: non_neg_integer()) -> boolean().
has_died(Node, Incarnation) ->
    weft_view:lookup({died, Node, Incarnation}) =/= undefined.

is_after(_Since, undefined) -> false;
is_after(Since, AtMs) -> AtMs > Since.

%% @doc Does an overlay run in which not every node is every other's neighbour?
-spec is_partial() -> boolean().
is_partial() ->
    weft_view:lookup(partial) =:= true.

%% @doc Has the topology that runs asked for its first links? Before that nobody knows which nodes
%% are to be neighbours.
-spec has_asked() -> boolean().
has_asked() ->
    weft_view:lookup(has_asked) =:= true.

%% @doc The topology that runs, as `weft_topology:parse/1' gives it. That of a node that has left is
%% `weft_alone_core', whatever is configured.
-spec topology() -> {module(), Options :: map()} | none.
topology() ->
    case whereis(weft_topology) =/= undefined andalso weft_view:lookup(topology) of
        {Module, Options} -> {Module, Options};
        _ -> none
    end.

%% @doc Leaves the cluster for good (until the overlay is started again): the others forget this
%% node instead of trying to reach it. Returns when they have been told.
-spec leave() -> ok.
leave() ->
    weft_driver:command(weft_topology, leave, leave_ms(topology())).

%% @doc How long leave/0 waits for such a topology.
-spec leave_ms({module(), Options :: map()} | none) -> pos_integer().
leave_ms({weft_swim_mesh_core, #{leave_timeout_ms := Ms}}) -> ?LEAVE_MS + Ms;
leave_ms(_Topology) -> ?LEAVE_MS.

%% @doc These nodes may be dialled to find the cluster. The list replaces the one before, so it has
%% to name all that are known, not only new ones. Without effect when the topology is a written list
%% or when none runs.
-spec seed([node()]) -> ok.
seed(Nodes) ->
    weft_driver:notice(weft_topology, {seeds, Nodes}).

%% @doc A node to which a caller of `weft_links:connect/1' wanted a link keeps it only if the
%% topology wants it, too: there is one demand for each link.
-spec release(node()) -> ok.
release(Node) ->
    weft_driver:release(weft_topology, Node).

%% @doc A member that will never come back is dialled no longer. If it is alive after all it comes
%% back by itself.
-spec forget(node()) -> ok | {error, unknown_member | self | configured | no_topology}.
forget(Node) ->
    case whereis(weft_topology) of
        undefined -> {error, no_topology};
        _ -> weft_driver:command(weft_topology, {forget, Node})
    end.

%% @doc Refuses flags of the VM with which a partial topology cannot work. To be called before the
%% overlay starts. `global' reads both flags once, when the kernel starts, so they can not be set
%% here.
-spec boot_checks(TopologyModule :: module(), Options :: map(), Circuits :: hidden | visible) ->
          ok | {error, iolist()}.
boot_checks(Topology, Options, Circuits) ->
    case Topology:partial(node(), Options) of
        true -> partial_checks(connects_all(), prevents_overlap(), Circuits);
        false -> ok
    end.

%% @doc The same of a node with a partial topology and these flags of the kernel.
-spec partial_checks(ConnectsAll :: boolean(), PreventsOverlap :: boolean(),
                     Circuits :: hidden | visible) -> ok | {error, iolist()}.
%% Without connect_all `global' disconnects nobody, whatever prevent_overlapping_partitions says.
partial_checks(false, _Prevents, _Circuits) ->
    ok;
partial_checks(true, true, _Circuits) ->
    {error, "the topology is partial (not all nodes are neighbours), but the kernel has "
            "prevent_overlapping_partitions on: `global' would disconnect nodes that lack a "
            "neighbour. Add to vm.args: -kernel prevent_overlapping_partitions false "
            "-connect_all false (or to sys.config: {kernel, [{prevent_overlapping_partitions, "
            "false}, {connect_all, false}]}) on every node"};
partial_checks(true, false, hidden) ->
    {error, "the topology is partial (not all nodes are neighbours), but the kernel has "
            "connect_all on: `global' would connect every node to every other. Add to vm.args: "
            "-connect_all false (or to sys.config: {kernel, [{connect_all, false}]}) on every "
            "node, or set circuits of weft to visible if every node shall see every other"};
partial_checks(true, false, visible) ->
    ok.

connects_all() ->
    case application:get_env(kernel, connect_all) of
        {ok, Value} -> Value;
        undefined -> not is_false_argument(init:get_argument(connect_all))
    end.

is_false_argument({ok, [["false" | _] | _]}) -> true;
is_false_argument(_) -> false.

prevents_overlap() ->
    application:get_env(kernel, prevent_overlapping_partitions, true).
