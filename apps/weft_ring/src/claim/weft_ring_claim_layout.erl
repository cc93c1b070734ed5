%% SPDX-License-Identifier: Apache-2.0
%% @doc Rings laid out anew, without regard to who owned what, except that nodes with equal shares
%% exchange their roles so that as much as possible stays.
%%
%% There are two ways. `spread' gives each location, and in it each node, places at equal distances.
%% `rows' repeats the nodes in one order and leaves out those with the smaller share once each, in
%% different rows; it keeps windows distinct that have almost as many partitions as there are nodes.
%% What is still wrong is left to `weft_ring_claim_repair'.
-module(weft_ring_claim_layout).

-export([layouts/1]).

-define(SCALE, 1000000).

%% @doc Balanced assignments, one of each way.
-spec layouts(weft_ring_claim_rules:problem()) -> [weft_ring_claim_rules:owners()].
layouts(Problem) ->
    [list_to_tuple(kept_roles(Layout, Problem)) || Layout <- [rows(Problem), spread(Problem)]].

%% --- rows -------------------------------------------------------------------------------------

%% Nodes in an order in which locations alternate. The nodes left out of a row come, in the order,
%% after those left out of the row before, so that at most one row's gap is in any window.
rows(Problem) ->
    Order = alternating(weft_ring_claim_rules:locations(Problem)),
    Targets = weft_ring_claim_rules:targets(Problem),
    Rows = lists:max(maps:values(Targets)),
    Smaller = [Node || Node <- Order, maps:get(Node, Targets) < Rows],
    RowOf = maps:from_list([{Node, (Index * Rows) div max(1, length(Smaller))}
                            || {Index, Node} <- numbered(Smaller)]),
    [Node || Row <- lists:seq(0, Rows - 1), Node <- Order,
             maps:get(Node, RowOf, none) =/= Rows - 1 - Row].

numbered(List) ->
    lists:zip(lists:seq(0, length(List) - 1), List).

alternating(Locations) ->
    Places = [{(2 * Turn + 1) * ?SCALE div (2 * length(Nodes)), Location, Node}
              || {Location, Nodes} <- Locations, {Turn, Node} <- numbered(Nodes)],
    [Node || {_, _, Node} <- lists:sort(Places)].

%% --- spread -----------------------------------------------------------------------------------

spread(Problem) ->
    Targets = weft_ring_claim_rules:targets(Problem),
    Dealt = [{Location, in_turns(spread_items(Nodes, Targets))}
             || {Location, Nodes} <- weft_ring_claim_rules:locations(Problem)],
    in_turns([{(2 * Turn + 1) * ?SCALE div (2 * length(Nodes)), Location, Node}
              || {Location, Nodes} <- Dealt, {Turn, Node} <- numbered(Nodes)]).

spread_items(Nodes, Targets) ->
    [{(2 * Turn + 1) * ?SCALE div (2 * maps:get(Node, Targets)), 0, Node}
     || Node <- Nodes, Turn <- lists:seq(0, maps:get(Node, Targets) - 1)].

in_turns(Items) ->
    [Node || {_, _, Node} <- lists:sort(Items)].

%% --- roles ------------------------------------------------------------------------------------

%% Nodes of one location with equal shares may stand for each other. Those pairs are taken first of
%% which the role has most of what the node owned.
kept_roles(Layout, Problem) ->
    Before = tuple_to_list(weft_ring_claim_rules:before(Problem)),
    Overlap = lists:foldl(fun(Pair, Acc) -> maps:update_with(Pair, fun(N) -> N + 1 end, 1, Acc) end,
                          #{}, lists:zip(Layout, Before)),
    Pairs = lists:sort([{-Count, Role, Node} || {{Role, Node}, Count} <- maps:to_list(Overlap),
                                                Node =/= 0, alike(Role, Node, Problem)]),
    Nodes = lists:seq(1, weft_ring_claim_rules:nodes(Problem)),
    Roles = filled(Nodes, lists:foldl(fun cast/2, {#{}, #{}}, Pairs), Problem),
    [maps:get(Role, Roles) || Role <- Layout].

alike(A, B, Problem) -> kind(A, Problem) =:= kind(B, Problem).

kind(Node, Problem) ->
    {weft_ring_claim_rules:location(Node, Problem),
     maps:get(Node, weft_ring_claim_rules:targets(Problem))}.

cast({_, Role, Node}, {Roles, Taken}) when is_map_key(Role, Roles); is_map_key(Node, Taken) ->
    {Roles, Taken};
cast({_, Role, Node}, {Roles, Taken}) ->
    {Roles#{Role => Node}, Taken#{Node => Role}}.

%% Who has no role yet, gets one of those left of its kind.
filled(Nodes, {Roles0, Taken}, Problem) ->
    Open = [Role || Role <- Nodes, not is_map_key(Role, Roles0)],
    Free = [Node || Node <- Nodes, not is_map_key(Node, Taken)],
    ByKind = fun(List) -> lists:sort([{kind(Node, Problem), Node} || Node <- List]) end,
    lists:foldl(fun({{_, Role}, {_, Node}}, Roles) -> Roles#{Role => Node} end, Roles0,
                lists:zip(ByKind(Open), ByKind(Free))).
