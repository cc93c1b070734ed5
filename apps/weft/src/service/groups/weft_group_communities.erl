%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds communities in a weighted graph: sets of nodes that exchange more with each other than
%% would be expected by chance. Pure.
%%
%% Greedy modularity (Clauset, Newman, Moore 2004): each node begins as a community; then the two
%% whose union raises the modularity Q most are joined, as long as some union raises it. Q is the
%% share of the weight inside communities less what it would be at random; it is 0 for one community
%% of all nodes. Ties are broken by name, so the result depends on the weights alone. The cost is
%% communities times pairs, which is fine for hundreds of nodes.
-module(weft_group_communities).

-export([find/1, modularity/2]).
-export_type([weights/0]).

-type pair() :: {node(), node()}.
-type weights() :: #{pair() => number()}.
%% Keys in term order of the two nodes; values above 0.

%% @doc The communities, each in term order. Nodes that exchange nothing do not occur.
-spec find(weights()) -> [[node()]].
find(Weights) when map_size(Weights) =:= 0 -> [];
find(Weights) ->
    Total = total(Weights),
    Shares = maps:map(fun(_, W) -> W / Total end, Weights),
    Nodes = lists:usort(lists:append([[A, B] || {A, B} <- maps:keys(Weights)])),
    Parts = maps:from_list([{Node, {[Node], degree(Node, Shares)}} || Node <- Nodes]),
    lists:sort([lists:sort(Members) || {Members, _} <- maps:values(join(Parts, Shares))]).

total(Weights) -> lists:sum(maps:values(Weights)).

%% Half of the ends of all edges, as a share: these sum up to 1.
degree(Node, Shares) ->
    lists:sum([Share / 2 || {{A, B}, Share} <- maps:to_list(Shares), A =:= Node orelse B =:= Node]).

%% Between: the share of the weight between two parts that are named by one of their nodes.
join(Parts, Between) ->
    case best(Parts, Between) of
        {Gain, {A, B}} when Gain > 1.0e-12 ->
            #{A := {Members1, Degree1}, B := {Members2, Degree2}} = Parts,
            join(maps:remove(B, Parts#{A := {Members1 ++ Members2, Degree1 + Degree2}}),
                 renamed(B, A, maps:remove({A, B}, Between)));
        _ -> Parts
    end.

best(Parts, Between) ->
    lists:foldl(fun(Candidate, none) -> Candidate;
                   ({Gain, _} = Candidate, {Best, _}) when Gain > Best -> Candidate;
                   (_, Best) -> Best
                end, none,
                [{gain(Pair, Share, Parts), Pair} || {Pair, Share} <- lists:sort(
                                                                   maps:to_list(Between))]).

gain({A, B}, Share, Parts) ->
    #{A := {_, Degree1}, B := {_, Degree2}} = Parts,
    Share - 2 * Degree1 * Degree2.

renamed(From, To, Between) ->
    maps:fold(fun({A, B}, Share, Map) ->
                  [A1, B1] = lists:sort([if X =:= From -> To; true -> X end || X <- [A, B]]),
                  maps:update_with({A1, B1}, fun(S) -> S + Share end, Share, Map)
              end, #{}, Between).

%% @doc The modularity of a partition, from -0.5 to 1.
-spec modularity([[node()]], weights()) -> float().
modularity(_Communities, Weights) when map_size(Weights) =:= 0 -> 0.0;
modularity(Communities, Weights) ->
    Total = total(Weights),
    Shares = maps:map(fun(_, W) -> W / Total end, Weights),
    lists:sum([inside(Nodes, Shares) - math:pow(lists:sum([degree(N, Shares) || N <- Nodes]), 2)
               || Nodes <- Communities]).

inside(Nodes, Shares) ->
    lists:sum([Share || {{A, B}, Share} <- maps:to_list(Shares),
                        lists:member(A, Nodes), lists:member(B, Nodes)]).
