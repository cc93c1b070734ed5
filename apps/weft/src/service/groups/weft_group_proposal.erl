%% SPDX-License-Identifier: Apache-2.0
%% @doc Makes a proposal of groups from measured traffic, with the reasons. Pure.
%%
%% Each community of the traffic (`weft_group_communities') becomes a group. So that all nodes can
%% reach each other, groups are joined along the tree that carries most of the traffic between them.
%% Where two groups are joined, the node of each side that exchanges most with the other side is put
%% in both groups. These two nodes are the gateways that the groups share.
-module(weft_group_proposal).

-export([make/1]).
-export_type([proposal/0]).

-type groups() :: #{Name :: atom() => [node()]}.
-type proposal() :: #{groups := groups(), why := [string()], modularity := float(),
                      links := #{full_mesh | proposed => non_neg_integer()}}.

%% @doc Weights are bytes between pairs of nodes. Groups are named `group1', `group2' ... by their
%% first nodes.
-spec make(weft_group_communities:weights()) -> proposal().
make(Weights) ->
    Communities = weft_group_communities:find(Weights),
    Named = lists:zip(names(length(Communities)), Communities),
    Joints = joints(Named, Weights),
    Groups = lists:foldl(fun join/2, maps:from_list(Named), Joints),
    Nodes = length(lists:append(Communities)),
    #{groups => Groups,
      modularity => weft_group_communities:modularity(Communities, Weights),
      links => #{full_mesh => Nodes * (Nodes - 1) div 2, proposed => links(Groups)},
      why => why(Named, Joints, Weights)}.

names(Count) ->
    [list_to_atom("group" ++ integer_to_list(N)) || N <- lists:seq(1, Count)].

join({{Name1, Gateway1}, {Name2, Gateway2}, _Bytes}, Groups) ->
    #{Name1 := Nodes1, Name2 := Nodes2} = Groups,
    Groups#{Name1 := lists:usort([Gateway2 | Nodes1]), Name2 := lists:usort([Gateway1 | Nodes2])}.

links(Groups) ->
    length(lists:usort([{A, B} || Nodes <- maps:values(Groups), A <- Nodes, B <- Nodes, A < B])).

%% The maximum spanning tree of the communities (Kruskal 1956).
joints(Named, Weights) ->
    Pairs = lists:reverse(lists:sort([{bytes(Nodes1, Nodes2, Weights), One, Other}
                                      || {Name1, Nodes1} = One <- Named,
                                         {Name2, Nodes2} = Other <- Named, Name1 < Name2])),
    {Joints, _} = lists:foldl(fun(Pair, {Chosen, Parts}) ->
                                  joint(Pair, Weights, Chosen, Parts)
                              end, {[], [[Name] || {Name, _} <- Named]}, Pairs),
    lists:reverse(Joints).

joint({Bytes, {Name1, Nodes1}, {Name2, Nodes2}}, Weights, Chosen, Parts) ->
    case [Part || Part <- Parts, lists:member(Name1, Part) orelse lists:member(Name2, Part)] of
        [_AlreadyJoined] -> {Chosen, Parts};
        [Part1, Part2] ->
            {[{{Name1, busiest(Nodes1, Nodes2, Weights)}, {Name2, busiest(Nodes2, Nodes1, Weights)},
               Bytes} | Chosen],
             [Part1 ++ Part2 | Parts -- [Part1, Part2]]}
    end.

busiest(Nodes, Others, Weights) ->
    {_, Node} = lists:min([{-bytes([Node], Others, Weights), Node} || Node <- Nodes]),
    Node.

bytes(Nodes1, Nodes2, Weights) ->
    lists:sum([maps:get({min(A, B), max(A, B)}, Weights, 0) || A <- Nodes1, B <- Nodes2]).

%% --- reasons ----------------------------------------------------------------------------------

why(Named, Joints, Weights) ->
    [text("~s: ~s. ~s", [Name, words(Nodes), inside(Nodes, Weights)]) || {Name, Nodes} <- Named]
        ++ [text("~s and ~s share the gateways ~s and ~s: on each side the node that exchanges "
                 "most with the other side (~s between the groups)",
                 [Name1, Name2, Gateway1, Gateway2, amount(Bytes)])
            || {{Name1, Gateway1}, {Name2, Gateway2}, Bytes} <- Joints]
        ++ [text("all nodes exchange alike with all others: groups would save nothing here", [])
            || length(Named) =:= 1].

inside(Nodes, Weights) ->
    Inside = lists:sum([W || {{A, B}, W} <- maps:to_list(Weights),
                             lists:member(A, Nodes), lists:member(B, Nodes)]),
    All = lists:sum([W || {{A, B}, W} <- maps:to_list(Weights),
                          lists:member(A, Nodes) orelse lists:member(B, Nodes)]),
    text("~b % of what they send and get stays among them (~s of ~s)",
         [round(100 * Inside / max(1, All)), amount(Inside), amount(All)]).

words(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).

%% What would be rounded to a thousand of a unit is one of the next.
amount(Bytes) when Bytes >= 999950 -> text("~.1f MB", [Bytes / 1.0e6]);
amount(Bytes) when Bytes >= 999.5 -> text("~.1f kB", [Bytes / 1.0e3]);
amount(Bytes) -> text("~b bytes", [round(Bytes)]).

text(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).
