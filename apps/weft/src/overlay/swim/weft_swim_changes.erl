%% SPDX-License-Identifier: Apache-2.0
%% @doc What a changed belief about a member means to others on this node: the views
%% `{member, Node}' and `{failed, Node}', and notices. Pure.
-module(weft_swim_changes).

-export([effects/2, is_joined/2, forgotten/1]).
-export_type([before/0]).

%% What was believed before.
-type before() :: {Incarnation :: non_neg_integer(), weft_swim_table:status()} | unknown.
-type update() :: {alive | dead | left, weft_core:node_id(), Incarnation :: non_neg_integer()}.

%% @doc The effects of a change, in their order.
-spec effects(update(), before()) -> weft_core:effects().
effects({alive, Node, Incarnation} = Update, Before) ->
    [{view, {member, Node}, Incarnation}
     | [{view, {failed, Node}, delete} || was(dead, Before)]
       ++ [{notice, {member, Node, cleared}} || was(suspect, Before)]
       ++ [{notice, {member, Node, joined}} || is_joined(Update, Before)]];
effects({dead, Node, Incarnation}, _Before) ->
    [{view, {failed, Node}, Incarnation}, {view, {member, Node}, delete},
     {notice, {member, Node, failed}}];
effects({left, Node, _Incarnation}, Before) ->
    [{view, {member, Node}, delete} | [{view, {failed, Node}, delete} || was(dead, Before)]]
        ++ [{notice, {member, Node, left}}].

%% @doc Has a node become a member that was none?
-spec is_joined(update(), before()) -> boolean().
is_joined({alive, _, _}, Before) -> not (was(alive, Before) orelse was(suspect, Before));
is_joined(_Update, _Before) -> false.

%% @doc The effects of forgetting a dead member.
-spec forgotten(weft_core:node_id()) -> weft_core:effects().
forgotten(Node) ->
    [{view, {failed, Node}, delete}, {notice, {member, Node, forgotten}}].

was(Status, {_, Status}) -> true;
was(_Status, _Before) -> false.
