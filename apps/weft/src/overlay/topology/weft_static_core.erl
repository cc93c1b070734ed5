%% SPDX-License-Identifier: Apache-2.0
%% @doc Topology `static': the links are written down, the same list on every node.
%%
%% Options: `links', a list of pairs of nodes. The order inside a pair does not matter. Members are
%% the nodes that occur in a link, neighbours those that share one with this node.
-module(weft_static_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1]).

%% @doc See `weft_core'. Further options: those of `weft_wanted_links:new/2'.
-spec init(weft_core:node_id(), weft_core:options()) ->
          {weft_fixed_neighbours:state(), weft_core:effects()}.
init(Self, #{links := Pairs} = Options) ->
    weft_fixed_neighbours:init(Self, neighbours(Self, Pairs), nodes_of(Pairs), Options).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), weft_fixed_neighbours:state()) ->
          {weft_fixed_neighbours:state(), weft_core:effects()}.
handle(Event, NowMs, State) ->
    weft_fixed_neighbours:handle(Event, NowMs, State).

%% @doc See `weft_topology'.
-spec neighbours(weft_fixed_neighbours:state()) -> [weft_core:node_id()].
neighbours(State) ->
    weft_fixed_neighbours:neighbours(State).

%% @doc See `weft_topology'. Errors: links that are malformed, repeated or of a node to itself; own
%% node or other nodes not reachable.
-spec validate(weft_core:node_id(), map()) -> ok | {error, iolist()}.
validate(Self, #{links := Pairs} = Options) ->
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("static", Options, [links]) end,
       fun() -> pairs(Pairs) end,
       fun() -> weft_topology_rules:node_names("links of the static topology", nodes_of(Pairs)) end,
       fun() -> no_doubles(Pairs) end,
       fun() -> weft_topology_rules:contains_self(Self, nodes_of(Pairs),
                                                  "a pair in links of the static topology") end,
       fun() -> weft_topology_rules:connected(nodes_of(Pairs), Pairs) end]);
validate(_Self, _Options) ->
    {error, "topology static needs its links: write {static, #{links => [{NodeA, NodeB}, ...]}}"}.

%% @doc See `weft_topology'. Partial as soon as one pair of members has no link.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, #{links := Pairs}) ->
    Count = length(nodes_of(Pairs)),
    length(lists:usort([sorted(Pair) || Pair <- Pairs])) < Count * (Count - 1) div 2.

neighbours(Self, Pairs) ->
    [B || {A, B} <- Pairs, A =:= Self] ++ [A || {A, B} <- Pairs, B =:= Self].

nodes_of(Pairs) ->
    lists:usort(lists:append([[A, B] || {A, B} <- Pairs])).

sorted({A, B}) ->
    {min(A, B), max(A, B)}.

pairs(Pairs) when length(Pairs) >= 1 ->
    weft_topology_rules:first_error([fun() -> pair(Pair) end || Pair <- Pairs]);
pairs(Other) ->
    {error, io_lib:format("links of the static topology is ~0tp: write a non-empty list of pairs "
                          "[{NodeA, NodeB}, ...]", [Other])}.

pair({Node, Node}) ->
    {error, io_lib:format("links of the static topology has the pair ~0tp, a link of a node to "
                          "itself: remove it, or name the other node", [{Node, Node}])};
pair({_, _}) ->
    ok;
pair(Other) ->
    {error, io_lib:format("links of the static topology has ~0tp: write a pair {NodeA, NodeB}",
                          [Other])}.

no_doubles(Pairs) ->
    case weft_topology_rules:doubles([sorted(Pair) || Pair <- Pairs]) of
        [] -> ok;
        [Pair | _] ->
            {error, io_lib:format("links of the static topology names the pair ~0tp twice (the "
                                  "order inside a pair does not matter): remove one", [Pair])}
    end.
