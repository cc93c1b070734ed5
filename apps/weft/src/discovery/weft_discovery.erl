%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery: where this node learns the names of nodes to dial first.
%%
%% A source is a module with the callback `discover/1'. `weft_discovery_poller' asks the sources of
%% the configuration (key `discovery') again and again and gives the nodes that they name to the
%% topology as seeds. Only the topology decides which nodes are members: a source can not remove a
%% node, neither by an empty answer nor by an error nor by naming others.
%%
%% Configuration: `{discovery, [{Source, Options}, ...]}' with the sources of
%% `weft_discovery_options', or modules of your own.
%%
%% `connect/1', `disconnect/1' and `list/0' are the three functions that the strategies of the
%% Elixir library libcluster call: `connect: {:weft_discovery, :connect, []}, disconnect:
%% {:weft_discovery, :disconnect, []}, list_nodes: {:weft_discovery, :list, []}'. They connect only
%% nodes that `list/0' lacks, and disconnect only nodes that it has.
-module(weft_discovery).

-export([connect/1, disconnect/1, list/0]).
-export_type([source/0]).

-type source() :: {Name :: atom(), Module :: module(), Options :: map()}.

%% The nodes to dial, in any order; this node may be among them. It is called in a process of its
%% own, so it may wait; this process is ended after half a minute. The third form is for an answer
%% that can be used although something is wrong with it.
-callback discover(Options :: map()) ->
    {ok, [node()]} | {ok, [node()], Wrong :: term()} | {error, Reason :: term()}.
%% A process that the source needs, for example to announce this node and to hear others.
-callback start_link(Options :: map()) -> {ok, pid()} | {error, term()}.
-optional_callbacks([start_link/1]).

%% @doc Makes Node a seed of the topology, if one runs, and connects to it. Waits like
%% `net_kernel:connect_node/1' and answers the same.
-spec connect(node()) -> boolean() | ignored.
connect(Node) ->
    ok = weft_discovery_poller:add(Node),
    net_kernel:connect_node(Node).

%% @doc A strategy's list does not name Node any more. A node that is connected stays so; one that
%% is not is forgotten by the topology (and comes back by itself if it is alive after all).
-spec disconnect(node()) -> true.
disconnect(Node) ->
    ok = weft_discovery_poller:remove(Node),
    _ = lists:member(Node, nodes(connected)) orelse weft_overlay:forget(Node),
    true.

%% @doc The nodes that `disconnect/1' may be called for: those that are connected, those that
%% `connect/1' was called for (they are dialled until they are there), and members that are gone.
-spec list() -> [node()].
list() ->
    Gone = [Node || Node <- weft_overlay:members(), Node =/= node(),
                    not weft_overlay:has_route(Node)],
    lists:usort(nodes(connected) ++ weft_discovery_poller:added() ++ Gone).
