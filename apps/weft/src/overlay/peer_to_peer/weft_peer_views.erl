%% SPDX-License-Identifier: Apache-2.0
%% @doc The two views of a peer-to-peer node, and the random choices made from them: neighbours that
%% both ends agreed on (active), and nodes to replace them (passive, see `weft_passive_view').
%%
%% Pure part of `weft_peer_to_peer_core'. No node is in both.
-module(weft_peer_views).

-export([new/2, active/1, passive/1, former/1, lost/1, count/1,
         is_active/2, is_full/1, is_over/1, has_left/2,
         add/2, part/2, remove/2, failed/2, left/4, expire/2, learn/2,
         one_active/2, one_of/2, some/2, begin_shuffle/2, end_shuffle/2, swap/2,
         random/2, around/2]).
-export_type([views/0]).

-record(views, {
    self :: weft_core:node_id(),
    active = #{} :: #{weft_core:node_id() => Incarnation :: non_neg_integer()},
    passive :: weft_passive_view:view(),
    %% The names that the last shuffle of this node gave away.
    given = [] :: [weft_core:node_id()],
    rand :: rand:state(),
    active_max :: pos_integer(),
    shuffle_active :: non_neg_integer(),
    shuffle_passive :: non_neg_integer()}).

-opaque views() :: #views{}.
-type peer() :: weft_passive_view:peer().

%% @doc No node known. Options: `active', `shuffle_active', `shuffle_passive', and those of
%% `weft_passive_view:new/2'.
-spec new(weft_core:node_id(), weft_core:options()) -> views().
new(Self, #{active := Max, shuffle_active := Near, shuffle_passive := Far} = Options) ->
    #views{self = Self, passive = weft_passive_view:new(Self, Options), active_max = Max,
           shuffle_active = Near, shuffle_passive = Far,
           rand = weft_core:seed(Self, ?MODULE, Options)}.

%% @doc The neighbours, in term order.
-spec active(views()) -> [weft_core:node_id()].
active(#views{active = Active}) ->
    lists:sort(maps:keys(Active)).

%% @doc The nodes that could replace them, in term order.
-spec passive(views()) -> [weft_core:node_id()].
passive(#views{passive = Passive}) ->
    weft_passive_view:passive(Passive).

%% @doc The nodes evicted from the passive view, the latest first.
-spec former(views()) -> [weft_core:node_id()].
former(#views{passive = Passive}) ->
    weft_passive_view:former(Passive).

%% @doc The nodes that could not be reached, the latest first.
-spec lost(views()) -> [weft_core:node_id()].
lost(#views{passive = Passive}) ->
    weft_passive_view:lost(Passive).

%% @doc How many neighbours there are.
-spec count(views()) -> non_neg_integer().
count(#views{active = Active}) ->
    map_size(Active).

%% @doc Whether Node is a neighbour.
-spec is_active(weft_core:node_id(), views()) -> boolean().
is_active(Node, #views{active = Active}) ->
    is_map_key(Node, Active).

%% @doc Whether there is no place for another neighbour.
-spec is_full(views()) -> boolean().
is_full(#views{active = Active, active_max = Max}) ->
    map_size(Active) >= Max.

%% @doc Whether there is one neighbour too many.
-spec is_over(views()) -> boolean().
is_over(#views{active = Active, active_max = Max}) ->
    map_size(Active) > Max.

%% @doc Whether the node left in this or a later incarnation.
-spec has_left(peer(), views()) -> boolean().
has_left({Node, Incarnation}, #views{passive = Passive}) ->
    weft_passive_view:has_left(Node, Incarnation, Passive).

%% @doc The peer is a neighbour from now on.
-spec add(peer(), views()) -> views().
add({Node, Incarnation}, #views{active = Active, passive = Passive} = Views) ->
    Views#views{active = Active#{Node => Incarnation},
                passive = weft_passive_view:remove(Node, Passive)}.

%% @doc The neighbour is no longer one, but may replace another.
-spec part(weft_core:node_id(), views()) -> views().
part(Node, #views{active = Active} = Views) ->
    #{Node := Incarnation} = Active,
    learn([{Node, Incarnation}], remove(Node, Views)).

%% @doc The neighbour is no longer one.
-spec remove(weft_core:node_id(), views()) -> views().
remove(Node, #views{active = Active} = Views) ->
    Views#views{active = maps:remove(Node, Active)}.

%% @doc The node, which is no neighbour, could not be reached.
-spec failed(weft_core:node_id(), views()) -> views().
failed(Node, #views{passive = Passive} = Views) ->
    Views#views{passive = weft_passive_view:failed(Node, Passive)}.

%% @doc The node left the cluster in this incarnation. `known' if that is no news.
-spec left(weft_core:node_id(), Incarnation :: non_neg_integer(), NowMs :: integer(), views()) ->
          {new | known, views()}.
left(Node, Incarnation, NowMs, #views{passive = Passive0} = Views) ->
    {News, Passive} = weft_passive_view:left(Node, Incarnation, NowMs, Passive0),
    {News, Views#views{passive = Passive}}.

%% @doc Forgets nodes that left long ago.
-spec expire(NowMs :: integer(), views()) -> views().
expire(NowMs, #views{passive = Passive} = Views) ->
    Views#views{passive = weft_passive_view:expire(NowMs, Passive)}.

%% @doc Adds nodes that were heard of, at most as many as a shuffle has.
-spec learn([peer()], views()) -> views().
learn(Peers, Views) ->
    learn(Peers, [], Views).

%% First are the names that the other side of a shuffle has now.
learn(Peers, First, #views{active = Active, passive = Passive0, rand = Rand0} = Views) ->
    Some = lists:sublist(Peers, shuffle_size(Views)),
    {Passive, Rand} = weft_passive_view:add(Some, First, Active, Passive0, Rand0),
    Views#views{passive = Passive, rand = Rand}.

shuffle_size(#views{shuffle_active = Near, shuffle_passive = Far}) ->
    1 + Near + Far.

%% @doc A random neighbour that is not in Except.
-spec one_active(Except :: [weft_core:node_id()], views()) ->
          {{ok, weft_core:node_id()} | none, views()}.
one_active(Except, #views{active = Active} = Views) ->
    one_of(lists:sort(maps:keys(maps:without(Except, Active))), Views).

%% @doc A random element of the list.
-spec one_of([Element], views()) -> {{ok, Element} | none, views()}.
one_of(List, #views{rand = Rand0} = Views) ->
    {Result, Rand} = weft_choice:one(List, Rand0),
    {Result, Views#views{rand = Rand}}.

%% @doc Names to give to a node.
-spec some(For :: weft_core:node_id(), views()) -> {[peer()], views()}.
some(For, #views{active = Active, passive = Passive, rand = Rand0} = Views) ->
    {Near, Rand1} = weft_choice:some(Views#views.shuffle_active,
                                     lists:sort(maps:to_list(maps:remove(For, Active))), Rand0),
    {Far, Rand} = weft_passive_view:sample(Views#views.shuffle_passive, Passive, Rand1),
    {Near ++ lists:keydelete(For, 1, Far), Views#views{rand = Rand}}.

%% @doc Names to give away with a shuffle that this node begins.
-spec begin_shuffle(First :: weft_core:node_id(), views()) -> {[peer()], views()}.
begin_shuffle(First, Views0) ->
    {Peers, Views} = some(First, Views0),
    {Peers, Views#views{given = [Node || {Node, _} <- Peers]}}.

%% @doc The names that this node's shuffle brought. Those given away make room for them.
-spec end_shuffle([peer()], views()) -> views().
end_shuffle(Peers, #views{given = Given} = Views) ->
    learn(Peers, Given, Views).

%% @doc Takes the names of another node's shuffle, and gives as many own ones. A node of a small
%% cluster knows hardly any but its neighbours, so it names those as well: two nodes of a ring of
%% four would not hear of each other otherwise.
-spec swap([peer()], views()) -> {[peer()], views()}.
swap(Peers, #views{active = Active, passive = Passive, rand = Rand0} = Views) ->
    Count = min(length(Peers), shuffle_size(Views)),
    {Own, Rand1} = weft_passive_view:sample(Count, Passive, Rand0),
    {Near, Rand} = weft_choice:some(Count - length(Own), lists:sort(maps:to_list(Active)), Rand1),
    {Own ++ Near, learn(Peers, [Node || {Node, _} <- Own], Views#views{rand = Rand})}.

%% @doc A random whole number from 1 to Max.
-spec random(Max :: pos_integer(), views()) -> {pos_integer(), views()}.
random(Max, #views{rand = Rand0} = Views) ->
    {N, Rand} = rand:uniform_s(Max, Rand0),
    {N, Views#views{rand = Rand}}.

%% @doc See `weft_choice:around/2'.
-spec around(non_neg_integer(), views()) -> {non_neg_integer(), views()}.
around(Number, #views{rand = Rand0} = Views) ->
    {N, Rand} = weft_choice:around(Number, Rand0),
    {N, Views#views{rand = Rand}}.
