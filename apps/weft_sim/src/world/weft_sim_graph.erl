%% SPDX-License-Identifier: Apache-2.0
%% @doc Figures of an undirected graph, given as a map from each node to its neighbours: parts,
%% degrees, clustering, lengths of paths.
-module(weft_sim_graph).

-export([symmetric/1, components/1, asymmetric/1, degrees/1, clustering/1, path_lengths/2,
         path_counts/2, parents/2]).
-export_type([graph/0]).

-type graph() :: #{node() => [node()]}.

%% @doc The connected parts, each as a list of nodes, the largest first. The graph must be
%% symmetric.
-spec components(graph()) -> [[node()]].
components(Graph) ->
    Parts = parts(lists:sort(maps:keys(Graph)), Graph, #{}),
    [Part || {_, Part} <- lists:reverse(lists:keysort(1, [{length(Part), Part} || Part <- Parts]))].

parts([], _Graph, _Seen) ->
    [];
parts([Node | Rest], Graph, Seen) when is_map_key(Node, Seen) ->
    parts(Rest, Graph, Seen);
parts([Node | Rest], Graph, Seen) ->
    Distances = distances(Node, Graph),
    [maps:keys(Distances) | parts(Rest, Graph, maps:merge(Seen, Distances))].

%% @doc The graph without the pairs of `asymmetric/1'.
-spec symmetric(graph()) -> graph().
symmetric(Graph) ->
    maps:map(fun(Node, Peers) ->
                 [Peer || Peer <- Peers, lists:member(Node, maps:get(Peer, Graph, []))]
             end, Graph).

%% @doc The pairs where only the first has the second as its neighbour.
-spec asymmetric(graph()) -> [{node(), node()}].
asymmetric(Graph) ->
    [{Node, Peer} || {Node, Peers} <- maps:to_list(Graph), Peer <- Peers,
                     not lists:member(Node, maps:get(Peer, Graph, []))].

%% @doc How many nodes have each number of neighbours, in order of the number.
-spec degrees(graph()) -> [{Degree :: non_neg_integer(), Nodes :: pos_integer()}].
degrees(Graph) ->
    Count = fun(Peers, Counts) ->
                    maps:update_with(length(Peers), fun(N) -> N + 1 end, 1, Counts)
            end,
    lists:sort(maps:to_list(lists:foldl(Count, #{}, maps:values(Graph)))).

%% @doc Mean over all nodes of the share of pairs of neighbours that are neighbours of each other.
-spec clustering(graph()) -> float().
clustering(Graph) ->
    mean([clustering(Peers, Graph) || Peers <- maps:values(Graph)]).

clustering(Peers, Graph) ->
    Linked = [1 || A <- Peers, B <- maps:get(A, Graph, []), lists:member(B, Peers)],
    case length(Peers) of
        Count when Count < 2 -> 0.0;
        Count -> length(Linked) / (Count * (Count - 1))
    end.

%% @doc Mean and longest of the shortest paths from each of the given nodes to all it can reach.
-spec path_lengths(From :: [node()], graph()) -> {Mean :: float(), Longest :: non_neg_integer()}.
path_lengths(From, Graph) ->
    Lengths = lists:append([maps:values(maps:remove(Node, distances(Node, Graph)))
                            || Node <- From]),
    {mean(Lengths), lists:max([0 | Lengths])}.

%% @doc How many of these paths have each length, in order of the length.
-spec path_counts(From :: [node()], graph()) -> [{Length :: pos_integer(), Paths :: pos_integer()}].
path_counts(From, Graph) ->
    Lengths = lists:append([maps:values(maps:remove(Node, distances(Node, Graph)))
                            || Node <- From]),
    lists:sort(maps:to_list(maps:map(fun(_, Same) -> length(Same) end,
                                     maps:groups_from_list(fun(Length) -> Length end, Lengths)))).

%% @doc Shortest paths from a node: for each other one that it can reach, which one is before it.
-spec parents(From :: node(), graph()) -> #{node() => Parent :: node()}.
parents(From, Graph) ->
    maps:remove(From, parents([From], Graph, #{From => From})).

parents([], _Graph, Known) ->
    Known;
parents(Ring, Graph, Known0) ->
    {Next, Known} = lists:foldl(fun(Node, Acc) -> reach(maps:get(Node, Graph, []), Node, Acc) end,
                                {[], Known0}, Ring),
    parents(Next, Graph, Known).

distances(Node, Graph) ->
    distances([Node], 0, Graph, #{Node => 0}).

distances([], _Distance, _Graph, Known) ->
    Known;
distances(Ring, Distance, Graph, Known0) ->
    Step = fun(Node, Acc) -> reach(maps:get(Node, Graph, []), Distance + 1, Acc) end,
    {Next, Known} = lists:foldl(Step, {[], Known0}, Ring),
    distances(Next, Distance + 1, Graph, Known).

reach(Peers, How, Acc) ->
    lists:foldl(fun(Peer, {Next, Known}) when is_map_key(Peer, Known) -> {Next, Known};
                   (Peer, {Next, Known}) -> {[Peer | Next], Known#{Peer => How}}
                end, Acc, Peers).

mean([]) -> 0.0;
mean(Numbers) -> lists:sum(Numbers) / length(Numbers).
