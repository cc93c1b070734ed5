%% SPDX-License-Identifier: Apache-2.0
%% @doc What a ring has to satisfy, and how far an assignment of owners is from it.
%%
%% Nodes are numbers from 1, in the order of their names; 0 is nobody. An assignment is a tuple with
%% the owner of each partition; partitions are numbers from 1 here. A fault is a pair of equal nodes
%% (or locations) closer together than the window.
-module(weft_ring_claim_rules).

-export([new/3, size/1, nodes/1, window/1, before/1, targets/1, location/2, locations/1, is_empty/1,
         is_crowded/1, faults/2, cost/4, cost/5, moves/2, least_moves/1, counts/2]).
-export_type([problem/0, owners/0]).

-type owners() :: tuple().

-record(problem, {size :: pos_integer(),
                  nodes :: pos_integer(),
                  node_window :: pos_integer(),
                  location_window :: pos_integer(),
                  %% Of each node the number of its location.
                  locations :: tuple(),
                  before :: owners(),
                  %% How many partitions each node shall own.
                  targets :: #{pos_integer() => non_neg_integer()}}).

-opaque problem() :: #problem{}.

%% A node twice in a window outweighs all locations, and these outweigh all moves.
-define(NODE_FAULT, 1000000).
-define(LOCATION_FAULT, 100).
-define(MOVE, 1).

%% @doc Locations of the nodes in order, and the numbers of the owners before.
-spec new(pos_integer(), [term()], [non_neg_integer()]) -> problem().
new(NVal, Locations, Before) ->
    Distinct = lists:usort(Locations),
    Number = maps:from_list(lists:zip(Distinct, lists:seq(1, length(Distinct)))),
    Problem = #problem{size = length(Before), nodes = length(Locations),
                       node_window = min(NVal, length(Locations)),
                       location_window = min(NVal, length(Distinct)),
                       locations = list_to_tuple([maps:get(L, Number) || L <- Locations]),
                       before = list_to_tuple(Before), targets = #{}},
    Problem#problem{targets = shares(Problem)}.

%% @doc The number of partitions.
-spec size(problem()) -> pos_integer().
size(#problem{size = Size}) -> Size.

%% @doc The number of nodes.
-spec nodes(problem()) -> pos_integer().
nodes(#problem{nodes = Nodes}) -> Nodes.

%% @doc How many partitions in a row shall have distinct nodes.
-spec window(problem()) -> pos_integer().
window(#problem{node_window = Window}) -> Window.

%% @doc Who owned what.
-spec before(problem()) -> owners().
before(#problem{before = Before}) -> Before.

%% @doc How many partitions each node shall own.
-spec targets(problem()) -> #{pos_integer() => non_neg_integer()}.
targets(#problem{targets = Targets}) -> Targets.

%% @doc The number of a node's location.
-spec location(pos_integer(), problem()) -> pos_integer().
location(Node, #problem{locations = Locations}) -> element(Node, Locations).

%% @doc The nodes of each location.
-spec locations(problem()) -> [{Location :: pos_integer(), [pos_integer()]}].
locations(#problem{nodes = Nodes} = Problem) ->
    ByLocation = lists:foldr(fun(Node, Acc) ->
                                 maps:update_with(location(Node, Problem),
                                                  fun(Others) -> [Node | Others] end, [Node], Acc)
                             end, #{}, lists:seq(1, Nodes)),
    lists:sort(maps:to_list(ByLocation)).

%% @doc Does nobody of the nodes own anything yet?
-spec is_empty(problem()) -> boolean().
is_empty(#problem{before = Before}) ->
    lists:all(fun(Owner) -> Owner =:= 0 end, tuple_to_list(Before)).

%% @doc Does one location own too much for windows of distinct locations?
-spec is_crowded(problem()) -> boolean().
is_crowded(#problem{size = Size, location_window = Window, targets = Targets} = Problem) ->
    lists:any(fun({_, Nodes}) ->
                  lists:sum([maps:get(Node, Targets) || Node <- Nodes]) > Size div Window
              end, locations(Problem)).

%% @doc How many partitions each node owns.
-spec counts(owners(), problem()) -> #{pos_integer() => non_neg_integer()}.
counts(Owners, #problem{nodes = Nodes}) ->
    lists:foldl(fun(0, Acc) -> Acc;
                   (Owner, Acc) -> maps:update_with(Owner, fun(Count) -> Count + 1 end, Acc)
                end, maps:from_list([{Node, 0} || Node <- lists:seq(1, Nodes)]),
                tuple_to_list(Owners)).

%% --- shares -----------------------------------------------------------------------------------

%% The larger shares go to those that own that much already, and then to locations in turn, so that
%% no location gets more than it has to.
shares(#problem{size = Size, nodes = Nodes, before = Before} = Problem) ->
    {Small, Larger} = {Size div Nodes, Size rem Nodes},
    Counts = counts(Before, Problem),
    Turns = lists:sort([{Counts0 =< Small, Turn, Node}
                        || {_, OfLocation} <- locations(Problem),
                           {Turn, Node} <- in_turn(OfLocation, Counts),
                           Counts0 <- [maps:get(Node, Counts)]]),
    maps:from_list([{Node, Small + 1} || {_, _, Node} <- lists:sublist(Turns, Larger)]
                   ++ [{Node, Small} || {_, _, Node} <- lists:nthtail(Larger, Turns)]).

in_turn(OfLocation, Counts) ->
    Sorted = lists:sort([{-maps:get(Node, Counts), Node} || Node <- OfLocation]),
    lists:zip(lists:seq(1, length(Sorted)), [Node || {_, Node} <- Sorted]).

%% --- faults and costs -------------------------------------------------------------------------

%% @doc How many partitions have the same node, and how many the same location, again in the window
%% that begins with them.
-spec faults(owners(), problem()) -> {non_neg_integer(), non_neg_integer()}.
faults(Owners, #problem{size = Size, node_window = NodeWindow, locations = Locations,
                        location_window = LocationWindow}) ->
    Places = list_to_tuple([element(Owner, Locations) || Owner <- tuple_to_list(Owners)]),
    {repeated(Owners, NodeWindow, Size), repeated(Places, LocationWindow, Size)}.

repeated(Values, Window, Size) ->
    length([P || P <- lists:seq(1, Size),
                 lists:any(fun(Step) ->
                               element(at(P + Step, Size), Values) =:= element(P, Values)
                           end, lists:seq(1, Window - 1))]).

at(P, Size) when P > Size -> P - Size;
at(P, Size) when P < 1 -> P + Size;
at(P, _Size) -> P.

%% @doc What it costs that a partition belongs to this node, among the other owners.
-spec cost(pos_integer(), pos_integer(), owners(), problem()) -> non_neg_integer().
cost(P, Node, Owners, Problem) ->
    cost(P, Node, Owners, Problem, 0).

%% @doc As `cost/4', as if the partition `Except' had no owner.
-spec cost(pos_integer(), pos_integer(), owners(), problem(), non_neg_integer()) ->
          non_neg_integer().
cost(P, Node, Owners, #problem{node_window = NodeWindow, location_window = LocationWindow,
                               locations = Locations, before = Before} = Problem, Except) ->
    Moved = case element(P, Before) of Node -> 0; _ -> ?MOVE end,
    around(max(NodeWindow, LocationWindow) - 1, P, Node, element(Node, Locations), Owners, Except,
           Problem, Moved).

around(0, _, _, _, _, _, _, Cost) ->
    Cost;
around(Step, P, Node, Location, Owners, Except, #problem{size = Size} = Problem, Cost) ->
    Above = pair(at(P + Step, Size), Step, Node, Location, Owners, Except, Problem),
    Below = pair(at(P - Step, Size), Step, Node, Location, Owners, Except, Problem),
    around(Step - 1, P, Node, Location, Owners, Except, Problem, Cost + Above + Below).

pair(Except, _, _, _, _, Except, _) ->
    0;
pair(P, Step, Node, Location, Owners, _, #problem{node_window = NodeWindow, locations = Locations,
                                                  location_window = LocationWindow}) ->
    case element(P, Owners) of
        0 -> 0;
        Node when Step < NodeWindow -> ?NODE_FAULT;
        Other when Step < LocationWindow, element(Other, Locations) =:= Location ->
            ?LOCATION_FAULT;
        _ -> 0
    end.

%% --- moves ------------------------------------------------------------------------------------

%% @doc How many partitions have another owner than before.
-spec moves(owners(), problem()) -> non_neg_integer().
moves(Owners, #problem{before = Before}) ->
    length([P || P <- lists:seq(1, tuple_size(Owners)), element(P, Owners) =/= element(P, Before)]).

%% @doc How many have to move for the sake of balance.
-spec least_moves(problem()) -> non_neg_integer().
least_moves(#problem{before = Before, targets = Targets} = Problem) ->
    Counts = counts(Before, Problem),
    lists:sum([max(0, Target - maps:get(Node, Counts)) || {Node, Target} <- maps:to_list(Targets)]).
