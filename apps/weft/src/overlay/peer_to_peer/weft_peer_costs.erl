%% SPDX-License-Identifier: Apache-2.0
%% @doc The costs of links, which are measured round-trip times, and the neighbour with the highest.
%%
%% Pure part of `weft_peer_exchange'. A cost follows a shorter time at once and a longer one slowly,
%% because an answer is mostly not delayed by the network. The `protected' most expensive neighbours
%% are not exchanged (the unbiased neighbours of X-BOT), nor is one that was never measured.
-module(weft_peer_costs).

-export([new/0, sample/3, get/2, keep/2, is_less/2, worst/3]).
-export_type([costs/0]).

%% Milliseconds.
-opaque costs() :: #{weft_core:node_id() => number()}.

%% Less than this and a tenth is no gain: times are whole milliseconds, and vary.
-define(GAIN_MIN_MS, 2).

%% @doc Nothing measured.
-spec new() -> costs().
new() ->
    #{}.

%% @doc A round trip to Node took Ms.
-spec sample(weft_core:node_id(), Ms :: non_neg_integer(), costs()) -> costs().
sample(Node, Ms, Costs) ->
    Costs#{Node => case Costs of
                       #{Node := Before} -> min(Ms, (7 * Before + Ms) / 8);
                       #{} -> Ms
                   end}.

%% @doc The cost of a node that was measured.
-spec get(weft_core:node_id(), costs()) -> Ms :: number().
get(Node, Costs) ->
    map_get(Node, Costs).

%% @doc Forgets all but these.
-spec keep([weft_core:node_id()], costs()) -> costs().
keep(Nodes, Costs) ->
    maps:with(Nodes, Costs).

%% @doc Whether the first is so much less that an exchange is worth while.
-spec is_less(Ms :: number(), ThanMs :: number()) -> boolean().
is_less(Ms, ThanMs) ->
    ThanMs - Ms >= max(?GAIN_MIN_MS, ThanMs / 10).

%% @doc The most expensive one of the neighbours that may be exchanged.
-spec worst(Neighbours :: [weft_core:node_id()], Protected :: non_neg_integer(), costs()) ->
          {weft_core:node_id(), Ms :: number()} | none.
worst(Neighbours, Protected, Costs) ->
    Measured = [{map_get(Node, Costs), Node} || Node <- Neighbours, is_map_key(Node, Costs)],
    case lists:reverse(lists:sort(Measured)) of
        Ranked when length(Ranked) > Protected ->
            {Ms, Node} = lists:nth(Protected + 1, Ranked),
            {Node, Ms};
        _ ->
            none
    end.
