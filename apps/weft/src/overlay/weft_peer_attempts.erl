%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes that a peer-to-peer node is about to ask something and waits for to answer, and
%% those that declined lately.
%%
%% Pure part of `weft_peer_to_peer_core'. Each attempt has a number of its own, which the question
%% carries and the answer repeats: an answer to an earlier question is told apart.
-module(weft_peer_attempts).

-export([new/0, start/3, asked/3, get/2, is_asked/2, is_urgent/1, forget/2, count_wanted/1,
         declined/2, declined_count/1, again/1, open/2]).
-export_type([attempts/0, attempt/0, purpose/0, stage/0, priority/0]).

-record(attempts, {
    next = 1 :: pos_integer(),
    nodes = #{} :: #{weft_core:node_id() => attempt()},
    declined = #{} :: #{weft_core:node_id() => []}}).

-opaque attempts() :: #attempts{}.
-type attempt() :: {purpose(), stage(), Number :: pos_integer()}.
-type purpose() :: join | refill | walk | bridge | probe.
-type stage() :: dialling | {asked, priority()}.
-type priority() :: join | high | low.

%% @doc None.
-spec new() -> attempts().
new() ->
    #attempts{}.

%% @doc Begins an attempt, in place of an earlier one. The result is its number.
-spec start(weft_core:node_id(), purpose(), attempts()) -> {pos_integer(), attempts()}.
start(Node, Purpose, #attempts{next = Number, nodes = Nodes} = Attempts) ->
    {Number, Attempts#attempts{next = Number + 1,
                               nodes = Nodes#{Node => {Purpose, dialling, Number}}}}.

%% @doc The question is on its way.
-spec asked(weft_core:node_id(), priority(), attempts()) -> attempts().
asked(Node, Priority, #attempts{nodes = Nodes} = Attempts) ->
    #{Node := {Purpose, _, Number}} = Nodes,
    Attempts#attempts{nodes = Nodes#{Node := {Purpose, {asked, Priority}, Number}}}.

%% @doc The attempt with this node.
-spec get(weft_core:node_id(), attempts()) -> attempt() | none.
get(Node, #attempts{nodes = Nodes}) ->
    maps:get(Node, Nodes, none).

%% @doc Whether this node was asked to be our neighbour.
-spec is_asked(weft_core:node_id(), attempts()) -> boolean().
is_asked(Node, #attempts{nodes = Nodes}) ->
    case Nodes of
        #{Node := {_, {asked, _}, _}} -> true;
        #{} -> false
    end.

%% @doc Whether somebody was asked who has to agree.
-spec is_urgent(attempts()) -> boolean().
is_urgent(#attempts{nodes = Nodes}) ->
    lists:any(fun({_, {asked, Priority}, _}) -> Priority =/= low;
                 ({_, dialling, _}) -> false
              end, maps:values(Nodes)).

%% @doc The attempt is over.
-spec forget(weft_core:node_id(), attempts()) -> attempts().
forget(Node, #attempts{nodes = Nodes} = Attempts) ->
    Attempts#attempts{nodes = maps:remove(Node, Nodes)}.

%% @doc How many attempts are meant to end in a neighbour.
-spec count_wanted(attempts()) -> non_neg_integer().
count_wanted(#attempts{nodes = Nodes}) ->
    length([Node || {Node, {Purpose, _, _}} <- maps:to_list(Nodes), Purpose =/= probe]).

%% @doc The node is not to be asked again for now.
-spec declined(weft_core:node_id(), attempts()) -> attempts().
declined(Node, #attempts{declined = Declined} = Attempts) ->
    Attempts#attempts{declined = Declined#{Node => []}}.

%% @doc How many nodes are not to be asked for now.
-spec declined_count(attempts()) -> non_neg_integer().
declined_count(#attempts{declined = Declined}) ->
    map_size(Declined).

%% @doc Everybody may be asked again.
-spec again(attempts()) -> attempts().
again(Attempts) ->
    Attempts#attempts{declined = #{}}.

%% @doc Those of the nodes that may be asked.
-spec open([weft_core:node_id()], attempts()) -> [weft_core:node_id()].
open(Nodes, #attempts{nodes = Busy, declined = Declined}) ->
    [Node || Node <- Nodes, not is_map_key(Node, Declined), not is_map_key(Node, Busy)].
