%% SPDX-License-Identifier: Apache-2.0
%% @doc The module `dist' of the RELEASE project: distances between the nodes of a hierarchical
%% network that a file describes.
%%
%% A network is `{network, [Network]}', `{network, Name, [Network]}' or `{node, Node}'. The distance
%% of two nodes is 0 if they are the same, else 2^(1-L), where L is the number of networks around
%% both of them. Better than in the original: after init/1 all processes of the node know it.
-module(dist).

-export([init/1, nodenames/0, distance/2, max_dist/0, min_dist/0, render/0, render/1,
         choose_nodes/2, choose_nodes/3, choose_node/2, choose_node/3]).
-export_type([network/0, predicate/0]).

-type network() :: {network, [network()]} | {network, Name :: atom(), [network()]}
                 | {node, node()}.
-type predicate() :: {dist, lt | le | eq | ne | ge | gt, number()}.

%% @doc Reads the description of the network. Exceptions: `{network_file_error, Reason}',
%% `{bad_network, Term}', `{node_occurs_twice, Node}'.
-spec init(file:filename()) -> ok.
init(File) ->
    case file:consult(File) of
        {ok, [Network]} ->
            Places = places(Network, []),
            Nodes = [Node || {Node, _} <- Places],
            Nodes -- lists:usort(Nodes) =:= []
                orelse error({node_occurs_twice, hd(Nodes -- lists:usort(Nodes))}),
            persistent_term:put(?MODULE, {Network, maps:from_list(Places)});
        {ok, _} -> error({network_file_error, not_one_term});
        {error, Reason} -> error({network_file_error, Reason})
    end.

%% The way from the root to each node. Numbers tell networks of one name apart.
places({node, Node}, Path) when is_atom(Node) -> [{Node, lists:reverse(Path)}];
places({network, Networks}, Path) when is_list(Networks) ->
    lists:append([places(Network, [N | Path]) || {N, Network} <- numbered(Networks)]);
places({network, Name, Networks}, Path) when is_atom(Name) -> places({network, Networks}, Path);
places(Other, _Path) -> error({bad_network, Other}).

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

network() ->
    try persistent_term:get(?MODULE)
    catch
        error:badarg -> error(not_initialised)
    end.

%% The last step leads to the node itself and is no network around it.
zone(Node) ->
    {_, Places} = network(),
    case Places of
        #{Node := []} -> {Node, []};
        #{Node := Path} -> {Node, lists:droplast(Path)};
        #{} -> error({unknown_node, Node})
    end.

-spec nodenames() -> [node()].
nodenames() ->
    {_, Places} = network(),
    lists:sort(maps:keys(Places)).

%% @doc Exception `{unknown_node, Node}' for nodes that are not in the network.
-spec distance(node(), node()) -> number().
distance(Node, Node) ->
    {Node, _} = zone(Node),
    0;
distance(Node1, Node2) ->
    weft_distance:between(zone(Node1), zone(Node2)).

%% @doc The greatest distance of two nodes that there can be.
-spec max_dist() -> float().
max_dist() -> 1.0.

%% @doc The least distance of two different nodes of the network.
-spec min_dist() -> float().
min_dist() ->
    Nodes = nodenames(),
    lists:min([max_dist() | [distance(A, B) || A <- Nodes, B <- Nodes, A < B]]).

%% @doc Of all nodes, those at such a distance from Node. A list of predicates: all have to hold.
-spec choose_nodes(node(), predicate() | [predicate()]) -> [node()].
choose_nodes(Node, Predicates) -> choose_nodes(Node, nodenames(), Predicates).

%% @doc The same of certain nodes.
-spec choose_nodes(node(), [node()], predicate() | [predicate()]) -> [node()].
choose_nodes(Node, Nodes, Predicate) when is_tuple(Predicate) ->
    choose_nodes(Node, Nodes, [Predicate]);
choose_nodes(Node, Nodes, Predicates) ->
    [Other || Other <- Nodes,
              lists:all(fun(Predicate) -> holds(Predicate, distance(Node, Other)) end,
                        Predicates)].

holds({dist, lt, R}, Distance) -> Distance < R;
holds({dist, le, R}, Distance) -> Distance =< R;
holds({dist, eq, R}, Distance) -> Distance == R;
holds({dist, ne, R}, Distance) -> Distance /= R;
holds({dist, ge, R}, Distance) -> Distance >= R;
holds({dist, gt, R}, Distance) -> Distance > R;
holds(Other, _Distance) -> error({bad_predicate, Other}).

%% @doc One of them by chance, or `none'.
-spec choose_node(node(), predicate() | [predicate()]) -> node() | none.
choose_node(Node, Predicates) -> choose_node(Node, nodenames(), Predicates).

-spec choose_node(node(), [node()], predicate() | [predicate()]) -> node() | none.
choose_node(Node, Nodes, Predicates) ->
    case choose_nodes(Node, Nodes, Predicates) of
        [] -> none;
        Chosen -> lists:nth(rand:uniform(length(Chosen)), Chosen)
    end.

%% @doc Writes the network as a graph for Graphviz.
-spec render() -> ok | {error, term()}.
render() -> render("network.dot").

-spec render(file:filename()) -> ok | {error, term()}.
render(File) ->
    {Network, _} = network(),
    {Lines, _} = vertex(Network, 1),
    file:write_file(File, unicode:characters_to_binary(["graph network {\n", Lines, "}\n"])).

%% Vertex Id is the root; also the next free number.
vertex({node, Node}, Id) -> {label(Id, Node, "shape=box"), Id + 1};
vertex({network, Networks}, Id) -> vertex({network, '', Networks}, Id);
vertex({network, Name, Networks}, Id) ->
    lists:foldl(fun(Network, {Lines, Next}) ->
                    {Below, After} = vertex(Network, Next),
                    {[Lines, io_lib:format("  v~b -- v~b;~n", [Id, Next]) | Below], After}
                end, {label(Id, Name, "shape=ellipse"), Id + 1}, Networks).

label(Id, Name, Shape) ->
    [io_lib:format("  v~b [label=\"~ts\", ~s];~n", [Id, Name, Shape])].
