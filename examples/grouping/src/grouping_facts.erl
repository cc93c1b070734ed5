%% SPDX-License-Identifier: Apache-2.0
%% @doc What a shape costs, counted on paper: connections, hops, what gateways carry, and what
%% breaks when one node dies. The test beside it holds small shapes against real nodes.
-module(grouping_facts).

-export([facts/1, of_neighbours/1, mesh/1, table/0]).
-export_type([facts/0]).

%% relayed: of all messages, if each node sends as many to each other one, the part that the busiest
%% node relays; routes of equal length share. cut_off: pairs of living nodes, of all such pairs,
%% that have no path when the worst node is dead.
-type facts() :: #{nodes := pos_integer(), connections_max := non_neg_integer(),
                   connections_mean := float(), hops_mean := float(), hops_max := pos_integer(),
                   relayed := float(), cut_off := float()}.
-type neighbours() :: #{node() => [node()]}.

-spec facts(grouping:groups()) -> facts().
facts(Groups) ->
    Members = maps:values(Groups),
    of_neighbours(maps:from_list([{Node, neighbours(Node, Members)}
                                  || Node <- lists:usort(lists:append(Members))])).

neighbours(Node, Groups) ->
    lists:usort(lists:append([Group || Group <- Groups, lists:member(Node, Group)])) -- [Node].

%% @doc Of a full mesh of so many nodes.
-spec mesh(pos_integer()) -> facts().
mesh(Count) -> facts(#{1 => names(Count)}).

%% @doc Of any graph.
-spec of_neighbours(neighbours()) -> facts().
of_neighbours(Of) ->
    Nodes = maps:keys(Of),
    Count = length(Nodes),
    Degrees = [length(Near) || Near <- maps:values(Of)],
    Levels = [levels(Node, Of) || Node <- Nodes],
    Hops = [Hop || Levels1 <- Levels, {Hop, _} <- maps:values(Levels1), Hop > 0],
    Pairs = Count * (Count - 1),
    Relayed = lists:foldl(fun(Levels1, Sum) -> add(relayed(Levels1, Of), Sum) end, #{}, Levels),
    #{nodes => Count, connections_max => lists:max(Degrees),
      connections_mean => lists:sum(Degrees) / Count,
      hops_mean => lists:sum(Hops) / Pairs, hops_max => lists:max(Hops),
      relayed => lists:max([0.0 | maps:values(Relayed)]) / Pairs,
      cut_off => lists:max([cut_off(maps:remove(Node, Of)) || Node <- Nodes])}.

%% The distance of each node, and the number of shortest paths to it (Brandes 2001).
levels(From, Of) -> levels([From], 0, #{From => {0, 1}}, Of).

levels([], _Hop, Levels, _Of) -> Levels;
levels(Nodes, Hop, Levels, Of) ->
    Next = lists:foldl(fun({Near, Paths}, Found) ->
                               maps:update_with(Near, fun(Sum) -> Sum + Paths end, Paths, Found)
                       end, #{}, [{Near, element(2, map_get(Node, Levels))}
                                  || Node <- Nodes, Near <- maps:get(Node, Of, []),
                                     is_map_key(Near, Of), not is_map_key(Near, Levels)]),
    levels(maps:keys(Next), Hop + 1,
           maps:merge(Levels, maps:map(fun(_, Paths) -> {Hop + 1, Paths} end, Next)), Of).

%% How much of what one node sends to all others passes each node: from the farthest to the nearest,
%% each node hands its own share and what it relays to those before it, by their paths.
relayed(Levels, Of) ->
    Farthest = lists:reverse(lists:sort([{Hop, Node} || {Node, {Hop, _}} <- maps:to_list(Levels),
                                                        Hop > 0])),
    lists:foldl(fun({Hop, Node}, Through) ->
                        {_, Paths} = map_get(Node, Levels),
                        Share = (1 + maps:get(Node, Through, 0)) / Paths,
                        Before = [Near || Hop > 1, Near <- map_get(Node, Of),
                                          element(1, map_get(Near, Levels)) =:= Hop - 1],
                        add(maps:from_list([{Near, Share * element(2, map_get(Near, Levels))}
                                            || Near <- Before]), Through)
                end, #{}, Farthest).

add(One, Other) ->
    maps:fold(fun(Key, Value, Sum) ->
                      maps:update_with(Key, fun(Old) -> Old + Value end, Value, Sum)
              end, Other, One).

cut_off(Of) ->
    Count = map_size(Of),
    Reached = lists:sum([map_size(levels(Node, Of)) - 1 || Node <- maps:keys(Of)]),
    case Count * (Count - 1) of
        0 -> 0.0;
        Pairs -> 1 - Reached / Pairs
    end.

%% @doc The table of the guide, docs/benchmarks/shape/facts.csv: 36 nodes.
-spec table() -> iolist().
table() ->
    Nodes = names(36),
    Rows = [{mesh, 36, 0, mesh(36)}
            | [{Shape, Size, Gateways,
                facts(grouping:groups(Shape, Nodes, #{size => Size, gateways => Gateways}))}
               || Shape <- [hub, tree, ring], Size <- [3, 6, 12], Gateways <- [1, 2]]],
    ["shape,size,gateways,connections_max,connections_mean,hops_mean,hops_max,relayed_percent,"
     "cut_off_percent\n"
     | [io_lib:format("~s,~b,~b,~b,~.1f,~.2f,~b,~.1f,~.1f\n",
                      [Shape, Size, Gateways, Max, Mean, Hops, Most, 100 * Relayed, 100 * Cut])
        || {Shape, Size, Gateways,
            #{connections_max := Max, connections_mean := Mean, hops_mean := Hops,
              hops_max := Most, relayed := Relayed, cut_off := Cut}} <- Rows]].

names(Count) -> [list_to_atom(lists:concat([n, I, "@h"])) || I <- lists:seq(101, 100 + Count)].
