%% SPDX-License-Identifier: Apache-2.0
%% @doc The faults that `weft_fault' has set on this node. Links ask whether a node is cut off, and
%% lanes how late their packets are.
%%
%% Each fault of each node is an entry of its own, so none can end or overwrite another. To read one
%% is to read a persistent term.
-module(weft_fault_table).

-export([put/3, erase/2, nodes/1, is_cut/1, lateness/1]).
-export_type([kind/0]).

-type kind() :: cut | cut_one_way | delay | loss.

%% Named for the module that makes faults.
-define(KEY(Kind, Node), {weft_fault, Kind, Node}).

-spec put(kind(), node(), term()) -> ok.
put(Kind, Node, Value) -> persistent_term:put(?KEY(Kind, Node), Value).

-spec erase(kind(), node()) -> boolean().
erase(Kind, Node) -> persistent_term:erase(?KEY(Kind, Node)).

%% @doc The nodes with a fault of one of these kinds.
-spec nodes([kind()]) -> [node()].
nodes(Kinds) ->
    lists:usort([Node || {?KEY(Kind, Node), _} <- persistent_term:get(),
                         lists:member(Kind, Kinds)]).

-spec is_cut(node() | weft_links:key()) -> boolean().
is_cut(Node) ->
    get(cut, Node, false) orelse get(cut_one_way, Node, false).

%% @doc What packets to Node have to wait for now.
-spec lateness(node() | undefined) -> weft_lane_writer:lateness().
lateness(Node) ->
    case {get(cut_one_way, Node, false), get(delay, Node, {0, 0}), get(loss, Node, 0)} of
        {true, _, _} -> stopped;
        {false, {0, 0}, Percent} when Percent == 0 -> none;
        {false, {MinMs, MaxMs}, Percent} -> {MinMs, MaxMs, Percent}
    end.

get(Kind, Node, Default) ->
    persistent_term:get(?KEY(Kind, Node), Default).
