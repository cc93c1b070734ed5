%% SPDX-License-Identifier: Apache-2.0
%% @doc Which processes there are, on which nodes, and who reports to whom (N. Chechina et al.,
%% "Evaluating Scalable Distributed Erlang for Scalability and Reliability", IEEE TPDS 28(8), 2017,
%% section 4.2). Pure.
%%
%% Two levels: a master on the first node, colonies on others, one on each. More levels, of degree
%% P: level L has P^(L-1) nodes with P submasters each; each submaster has P submasters on one node
%% of the next level, or on the last level P nodes with a colony. The master is on the node of level
%% 1. A node of submasters and the nodes of what reports to them are a group.
-module(weft_aco_tree).

-export([two_level/2, multi_level/2, levels/2, needed/2, colonies/2, groups/2, reporters/1]).
-export_type([process/0]).

%% Path: the position among the children, from the master down. Number: that among all of its level.
%% Group: that of the parent's node.
-type process() :: #{path := [pos_integer()], number := pos_integer(), node := node(),
                     group := pos_integer(), kind := master | submaster | colony,
                     children := [process()]}.

%% @doc A master and colonies, in one group.
-spec two_level(node(), [node(), ...]) -> process().
two_level(Master, Colonies) ->
    Numbered = lists:zip(lists:seq(1, length(Colonies)), Colonies),
    master(Master, [process([Number], Number, Node, 1, colony, []) || {Number, Node} <- Numbered]).

%% @doc As many levels as these nodes are enough for. The nodes left over have nothing to do.
-spec multi_level(Degree :: pos_integer(), [node(), ...]) -> {ok, process()} | {error, iodata()}.
multi_level(Degree, Nodes) ->
    case levels(length(Nodes), Degree) of
        Levels when Levels >= 2 ->
            Tree = {Degree, Levels, list_to_tuple(Nodes)},
            {ok, master(hd(Nodes), submasters(1, 0, [], 1, Tree))};
        _ ->
            {error, io_lib:format("~b nodes: levels of degree ~b need ~b",
                                  [length(Nodes), Degree, needed(2, Degree)])}
    end.

%% The children of one process, which are the submasters of node Index of a level.
submasters(Level, Index, Path, Group, {Degree, _, _} = Tree) ->
    [process(Path ++ [Number], Index * Degree + Number, node_at(Level, Index, Tree), Group,
             submaster, children(Level, Index * Degree + Number - 1, Path ++ [Number],
                                 group(Level, Index, Degree), Tree))
     || Number <- lists:seq(1, Degree)].

%% Index: of this submaster among all of its level.
children(Level, Index, Path, Group, {Degree, Levels, _} = Tree) when Level =:= Levels - 1 ->
    [process(Path ++ [Number], Index * Degree + Number,
             node_at(Levels, Index * Degree + Number - 1, Tree), Group, colony, [])
     || Number <- lists:seq(1, Degree)];
children(Level, Index, Path, Group, Tree) ->
    submasters(Level + 1, Index, Path, Group, Tree).

master(Node, Children) ->
    process([], 1, Node, 1, master, Children).

process(Path, Number, Node, Group, Kind, Children) ->
    #{path => Path, number => Number, node => Node, group => Group, kind => Kind,
      children => Children}.

%% Nodes of submasters come first, level by level, then those of colonies.
node_at(Level, Index, {Degree, _, Nodes}) ->
    element(group(Level, Index, Degree), Nodes).

%% The number of a node of submasters is that of its group, too.
group(Level, Index, Degree) ->
    nodes_above(Level, Degree) + Index + 1.

nodes_above(Level, Degree) ->
    lists:sum([power(Degree, L - 1) || L <- lists:seq(1, Level - 1)]).

power(_Base, 0) -> 1;
power(Base, Exponent) -> Base * power(Base, Exponent - 1).

%% @doc The number of levels that so many nodes are enough for: the largest X with
%% 1 + P + ... + P^(X-2) + P^X nodes, 0 if there is none.
-spec levels(Nodes :: non_neg_integer(), Degree :: pos_integer()) -> non_neg_integer().
levels(Nodes, Degree) when Degree > 1 ->
    levels(Nodes, Degree, 1).

levels(Nodes, Degree, Levels) ->
    case needed(Levels, Degree) =< Nodes of
        true -> levels(Nodes, Degree, Levels + 1);
        false -> Levels - 1
    end.

%% @doc How many nodes so many levels have.
-spec needed(Levels :: pos_integer(), Degree :: pos_integer()) -> pos_integer().
needed(Levels, Degree) ->
    nodes_above(Levels, Degree) + colonies(Levels, Degree).

%% @doc How many colonies so many levels have.
-spec colonies(Levels :: pos_integer(), Degree :: pos_integer()) -> pos_integer().
colonies(Levels, Degree) -> power(Degree, Levels).

%% @doc The groups of a tree, as numbers of nodes: each node of submasters with the nodes below it.
-spec groups(Levels :: pos_integer(), Degree :: pos_integer()) -> [[pos_integer(), ...]].
groups(Levels, Degree) ->
    [[group(Level, Index, Degree) | below(Level, Index, Levels, Degree)]
     || Level <- lists:seq(1, Levels - 1), Index <- lists:seq(0, power(Degree, Level - 1) - 1)].

below(Level, Index, Levels, Degree) ->
    Count = case Level =:= Levels - 1 of
                true -> Degree * Degree;
                false -> Degree
            end,
    [group(Level + 1, Below, Degree)
     || Below <- lists:seq(Index * Count, Index * Count + Count - 1)].

%% @doc How many processes report to another one; each of them has a name, and so has the master.
-spec reporters(process()) -> non_neg_integer().
reporters(#{children := Children}) ->
    lists:sum([1 + reporters(Child) || Child <- Children]).
