%% SPDX-License-Identifier: Apache-2.0
%% @doc Topology `groups': a full mesh inside each group; a node in several groups joins them.
%%
%% Options: `groups', a map from group name to its nodes, the same on every node. The neighbours of
%% a node are the members of its groups. Routes between groups go through the nodes that they share.
-module(weft_groups_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1]).

%% @doc See `weft_core'. Further options: those of `weft_wanted_links:new/2'.
-spec init(weft_core:node_id(), weft_core:options()) ->
          {weft_fixed_neighbours:state(), weft_core:effects()}.
init(Self, #{groups := Groups} = Options) ->
    weft_fixed_neighbours:init(Self, neighbours(Self, Groups), nodes_of(Groups), Options).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), weft_fixed_neighbours:state()) ->
          {weft_fixed_neighbours:state(), weft_core:effects()}.
handle(Event, NowMs, State) ->
    weft_fixed_neighbours:handle(Event, NowMs, State).

%% @doc See `weft_topology'.
-spec neighbours(weft_fixed_neighbours:state()) -> [weft_core:node_id()].
neighbours(State) ->
    weft_fixed_neighbours:neighbours(State).

%% @doc See `weft_topology'. Errors: no group, an empty one, malformed or repeated nodes, own node
%% in no group, groups that share no node with the others.
-spec validate(weft_core:node_id(), map()) -> ok | {error, iolist()}.
validate(Self, #{groups := Groups} = Options) ->
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("groups", Options, [groups]) end,
       fun() -> groups(Groups) end,
       fun() -> weft_topology_rules:contains_self(Self, nodes_of(Groups),
                                                  "a group of the groups topology") end,
       fun() -> weft_topology_rules:connected(nodes_of(Groups), chains(Groups)) end]);
validate(_Self, _Options) ->
    {error, "topology groups needs its groups: write {groups, #{GroupName => [Node, ...]}}"}.

%% @doc See `weft_topology'. Partial unless every two members share a group.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, #{groups := Groups}) ->
    Nodes = nodes_of(Groups),
    lists:any(fun(Node) -> length(neighbours(Node, Groups)) + 1 < length(Nodes) end, Nodes).

neighbours(Self, Groups) ->
    Mine = [Nodes || Nodes <- maps:values(Groups), lists:member(Self, Nodes)],
    lists:delete(Self, lists:usort(lists:append(Mine))).

nodes_of(Groups) ->
    lists:usort(lists:append(maps:values(Groups))).

%% Enough links to tell whether the groups are connected: each group as a chain.
chains(Groups) ->
    lists:append([lists:zip(lists:droplast(Nodes), tl(Nodes)) || Nodes <- maps:values(Groups)]).

groups(Groups) when is_map(Groups), map_size(Groups) > 0 ->
    weft_topology_rules:first_error(
      [fun() -> group(Name, Nodes) end || {Name, Nodes} <- lists:sort(maps:to_list(Groups))]);
groups(Other) ->
    {error, io_lib:format("groups is ~0tp: write a non-empty map #{GroupName => [Node, ...]}",
                          [Other])}.

group(Name, Nodes) when length(Nodes) >= 1 ->
    Where = io_lib:format("group ~0tp", [Name]),
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:node_names(Where, Nodes) end,
       fun() -> no_doubles(Where, Nodes) end]);
group(Name, []) ->
    {error, io_lib:format("group ~0tp is empty: name its nodes, or remove the group", [Name])};
group(Name, Other) ->
    {error, io_lib:format("group ~0tp is ~0tp: write a list of nodes", [Name, Other])}.

no_doubles(Where, Nodes) ->
    case weft_topology_rules:doubles(Nodes) of
        [] -> ok;
        [Node | _] -> {error, io_lib:format("~ts names ~0tp twice: remove one", [Where, Node])}
    end.
