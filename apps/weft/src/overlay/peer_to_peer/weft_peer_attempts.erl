%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes that a peer-to-peer node is in contact with: the links that are up, the nodes that
%% it is about to ask or whose answer it waits for, and those that declined lately.
%%
%% Pure part of `weft_peer_to_peer_core'. Each attempt has a number of its own, which the question
%% carries and the answer repeats. So the answer to an earlier question is recognised.
-module(weft_peer_attempts).

-export([new/0, up/2, down/2, is_up/2, links/1, idle/2,
         start/3, asked/3, get/2, is_asked/2, is_urgent/1, is_exchanging/1, forget/2,
         count_wanted/1, declined/2, declined_count/1, again/1, open/2]).
-export_type([attempts/0, attempt/0, purpose/0, stage/0, priority/0]).

-record(attempts, {
    next = 1 :: pos_integer(),
    nodes = #{} :: #{weft_core:node_id() => attempt()},
    declined = #{} :: #{weft_core:node_id() => []},
    %% Every link that is up, and in how many rounds it was of no use.
    links = #{} :: #{weft_core:node_id() => Idle :: non_neg_integer()}}).

-opaque attempts() :: #attempts{}.
-type attempt() :: {purpose(), stage(), Number :: pos_integer()}.
-type purpose() :: join | refill | walk | bridge | probe
                 | {measure, Why :: candidate | tuple()}
                 | {swap, Gone :: weft_core:node_id(), weft_peer_exchange:question()}.
-type stage() :: dialling | {asked, priority()}.
-type priority() :: join | high | low | weft_peer_exchange:question().

%% A link of no use is closed in the second such round.
-define(IDLE_ROUNDS, 2).

%% @doc None.
-spec new() -> attempts().
new() ->
    #attempts{}.

%% @doc A link came up.
-spec up(weft_core:node_id(), attempts()) -> attempts().
up(Node, #attempts{links = Links} = Attempts) ->
    Attempts#attempts{links = Links#{Node => 0}}.

%% @doc A link went down, if there was one.
-spec down(weft_core:node_id(), attempts()) -> attempts().
down(Node, #attempts{links = Links} = Attempts) ->
    Attempts#attempts{links = maps:remove(Node, Links)}.

%% @doc Whether there is a link.
-spec is_up(weft_core:node_id(), attempts()) -> boolean().
is_up(Node, #attempts{links = Links}) ->
    is_map_key(Node, Links).

%% @doc The nodes with a link, in term order.
-spec links(attempts()) -> [weft_core:node_id()].
links(#attempts{links = Links}) ->
    lists:sort(maps:keys(Links)).

%% @doc To be called once in a round. Answers the links that are of no use any more, neither to one
%% of the given nodes nor for an attempt: another node dialled them to ask a question that led to
%% nothing.
-spec idle(Needed :: [weft_core:node_id()], attempts()) -> {[weft_core:node_id()], attempts()}.
idle(Needed, #attempts{nodes = Nodes, links = Links0} = Attempts) ->
    Links = maps:map(fun(Node, Idle) ->
                         case is_map_key(Node, Nodes) orelse lists:member(Node, Needed) of
                             true -> 0;
                             false -> Idle + 1
                         end
                     end, Links0),
    {lists:sort([Node || {Node, Idle} <- maps:to_list(Links), Idle >= ?IDLE_ROUNDS]),
     Attempts#attempts{links = Links}}.

%% @doc Begins an attempt, which replaces an earlier one. The result is its number.
-spec start(weft_core:node_id(), purpose(), attempts()) -> {pos_integer(), attempts()}.
start(Node, Purpose, #attempts{next = Number, nodes = Nodes} = Attempts) ->
    {Number, Attempts#attempts{next = Number + 1,
                               nodes = Nodes#{Node => {Purpose, dialling, Number}}}}.

%% @doc The question was sent.
-spec asked(weft_core:node_id(), priority(), attempts()) -> attempts().
asked(Node, Priority, #attempts{nodes = Nodes} = Attempts) ->
    #{Node := {Purpose, _, Number}} = Nodes,
    Attempts#attempts{nodes = Nodes#{Node := {Purpose, {asked, Priority}, Number}}}.

%% @doc The attempt with this node.
-spec get(weft_core:node_id(), attempts()) -> attempt() | none.
get(Node, #attempts{nodes = Nodes}) ->
    maps:get(Node, Nodes, none).

%% @doc Whether this node was asked to be a neighbour.
-spec is_asked(weft_core:node_id(), attempts()) -> boolean().
is_asked(Node, #attempts{nodes = Nodes}) ->
    case Nodes of
        #{Node := {_, {asked, _}, _}} -> true;
        #{} -> false
    end.

%% @doc Whether a node was asked that has to agree.
-spec is_urgent(attempts()) -> boolean().
is_urgent(#attempts{nodes = Nodes}) ->
    lists:any(fun({_, {asked, Priority}, _}) -> Priority =:= join orelse Priority =:= high;
                 ({_, dialling, _}) -> false
              end, maps:values(Nodes)).

%% @doc Whether one of the attempts is part of an exchange.
-spec is_exchanging(attempts()) -> boolean().
is_exchanging(#attempts{nodes = Nodes}) ->
    lists:any(fun({Purpose, _, _}) -> is_tuple(Purpose) end, maps:values(Nodes)).

%% @doc The attempt is over.
-spec forget(weft_core:node_id(), attempts()) -> attempts().
forget(Node, #attempts{nodes = Nodes} = Attempts) ->
    Attempts#attempts{nodes = maps:remove(Node, Nodes)}.

%% @doc How many attempts are to end with a new neighbour.
-spec count_wanted(attempts()) -> non_neg_integer().
count_wanted(#attempts{nodes = Nodes}) ->
    length([Node || {Node, {Purpose, _, _}} <- maps:to_list(Nodes), is_wanted(Purpose)]).

is_wanted(probe) -> false;
is_wanted({measure, _}) -> false;
is_wanted(_Purpose) -> true.

%% @doc The node is not to be asked again for now.
-spec declined(weft_core:node_id(), attempts()) -> attempts().
declined(Node, #attempts{declined = Declined} = Attempts) ->
    Attempts#attempts{declined = Declined#{Node => []}}.

%% @doc How many nodes are not to be asked for now.
-spec declined_count(attempts()) -> non_neg_integer().
declined_count(#attempts{declined = Declined}) ->
    map_size(Declined).

%% @doc Every node may be asked again.
-spec again(attempts()) -> attempts().
again(Attempts) ->
    Attempts#attempts{declined = #{}}.

%% @doc Those of the nodes that may be asked.
-spec open([weft_core:node_id()], attempts()) -> [weft_core:node_id()].
open(Nodes, #attempts{nodes = Busy, declined = Declined}) ->
    [Node || Node <- Nodes, not is_map_key(Node, Declined), not is_map_key(Node, Busy)].
