%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes that a peer-to-peer node knows without a link to them: HyParView's passive view,
%% and three sets that an implementation needs besides.
%%
%% Pure part of `weft_peer_to_peer_core'. Four bounded sets of nodes:
%% <ul>
%% <li><em>passive</em>: believed alive, with their incarnation; replacements for lost
%%     neighbours.</li>
%% <li><em>former</em>: evicted from the passive view. After the loss of many nodes a few of these
%%     may be the only ones left.</li>
%% <li><em>lost</em>: could not be reached. Kept separately, the latest first, and tried again only
%%     to find the other part of a cluster that was split (or if no other node is known).</li>
%% <li><em>left</em>: left the cluster in some incarnation. While this is remembered, stale news of
%%     this or an older incarnation does not bring the node back into any of the sets.</li>
%% </ul>
%% Neighbours are in none of the sets: the owner passes them to `add/4' as nodes to leave out.
-module(weft_passive_view).

-export([new/2, add/4, add/5, remove/2, failed/2, left/4, has_left/3, expire/2,
         passive/1, former/1, lost/1, sample/3]).
-export_type([view/0, peer/0]).

-record(view, {
    self :: weft_core:node_id(),
    passive = #{} :: #{weft_core:node_id() => Incarnation :: non_neg_integer()},
    %% The latest first.
    former = [] :: [weft_core:node_id()],
    lost = [] :: [weft_core:node_id()],
    left = #{} :: #{weft_core:node_id() => {Incarnation :: non_neg_integer(),
                                            SinceMs :: integer()}},
    passive_max :: pos_integer(),
    former_max :: pos_integer(),
    left_max :: pos_integer(),
    forget_left_ms :: pos_integer()}).

-opaque view() :: #view{}.
-type peer() :: {weft_core:node_id(), Incarnation :: non_neg_integer()}.

%% @doc No node known. Options: `passive' (30), `former_max' (120), `left_max' (1000),
%% `forget_left_ms' (600000).
-spec new(weft_core:node_id(), weft_core:options()) -> view().
new(Self, Options) ->
    #view{self = Self, passive_max = maps:get(passive, Options, 30),
          former_max = maps:get(former_max, Options, 120),
          left_max = maps:get(left_max, Options, 1000),
          forget_left_ms = maps:get(forget_left_ms, Options, 600000)}.

%% @doc Adds one peer, unless it is this node, in Except, or has left.
-spec add(peer(), Except :: #{weft_core:node_id() => _}, view(), rand:state()) ->
          {view(), rand:state()}.
add(Peer, Except, View, Rand) ->
    add([Peer], [], Except, View, Rand).

%% @doc Adds peers. If there are too many, those of First are removed first (the other side of a
%% shuffle has them now), then random ones.
-spec add([peer()], First :: [weft_core:node_id()], Except :: #{weft_core:node_id() => _}, view(),
          rand:state()) -> {view(), rand:state()}.
add(Peers, First, Except, #view{passive = Passive0} = View, Rand0) ->
    New = [Peer || {Node, _} = Peer <- Peers, Node =/= View#view.self,
                   not is_map_key(Node, Except), not has_left(Node, element(2, Peer), View)],
    Passive1 = lists:foldl(fun newest/2, Passive0, New),
    Old = maps:without([Node || {Node, _} <- New], Passive0),
    {Passive, Rand} = shrink(map_size(Passive1) - View#view.passive_max,
                             [Node || Node <- lists:usort(First), is_map_key(Node, Old)], Old,
                             Passive1, Rand0),
    Dropped = names(maps:without(maps:keys(Passive), Passive1)),
    Kept = [Node || Node <- View#view.former, not is_map_key(Node, Passive),
                    not lists:member(Node, Dropped)],
    Lost = [Node || Node <- View#view.lost, not is_map_key(Node, Passive1)],
    {View#view{passive = Passive, lost = Lost,
               former = lists:sublist(Dropped ++ Kept, View#view.former_max)}, Rand}.

newest({Node, Incarnation}, Passive) ->
    Passive#{Node => max(Incarnation, maps:get(Node, Passive, 0))}.

%% Removes Excess nodes: of First, then of those that were there before, then any.
shrink(Excess, _First, _Old, Passive, Rand) when Excess =< 0 ->
    {Passive, Rand};
shrink(Excess, First, Old, Passive, Rand0) ->
    Gone1 = lists:sublist(First, Excess),
    Others = names(maps:without(Gone1, Old)),
    {Gone2, Rand1} = weft_choice:some(Excess - length(Gone1), Others, Rand0),
    Gone = Gone1 ++ Gone2,
    Rest = names(maps:without(Gone, Passive)),
    {Gone3, Rand} = weft_choice:some(Excess - length(Gone), Rest, Rand1),
    {maps:without(Gone ++ Gone3, Passive), Rand}.

%% @doc The node became a neighbour, or is to be forgotten.
-spec remove(weft_core:node_id(), view()) -> view().
remove(Node, #view{passive = Passive, former = Former, lost = Lost} = View) ->
    View#view{passive = maps:remove(Node, Passive), former = lists:delete(Node, Former),
              lost = lists:delete(Node, Lost)}.

%% @doc The node could not be reached.
-spec failed(weft_core:node_id(), view()) -> view().
failed(Node, #view{self = Node} = View) ->
    View;
failed(Node, #view{lost = Lost, left = Left, passive_max = Max} = View0) ->
    View = remove(Node, View0),
    case Left of
        #{Node := _} -> View;
        #{} -> View#view{lost = lists:sublist([Node | lists:delete(Node, Lost)], Max)}
    end.

%% @doc The node left the cluster in this incarnation. `known' if that is no news.
-spec left(weft_core:node_id(), Incarnation :: non_neg_integer(), NowMs :: integer(), view()) ->
          {new | known, view()}.
left(Node, Incarnation, NowMs, #view{left = Left} = View) ->
    case has_left(Node, Incarnation, View) of
        true -> {known, View};
        false ->
            Gone = bound(View#view.left_max, Left#{Node => {Incarnation, NowMs}}),
            {new, (remove(Node, View))#view{left = Gone}}
    end.

bound(Max, Left) when map_size(Left) =< Max ->
    Left;
bound(_Max, Left) ->
    {_, Oldest} = lists:min([{SinceMs, Node} || {Node, {_, SinceMs}} <- maps:to_list(Left)]),
    maps:remove(Oldest, Left).

%% @doc Whether the node left in this or a later incarnation.
-spec has_left(weft_core:node_id(), Incarnation :: non_neg_integer(), view()) -> boolean().
has_left(Node, Incarnation, #view{left = Left}) ->
    case Left of
        #{Node := {Last, _}} -> Incarnation =< Last;
        #{} -> false
    end.

%% @doc Forgets nodes that left long ago.
-spec expire(NowMs :: integer(), view()) -> view().
expire(NowMs, #view{left = Left, forget_left_ms = ForgetMs} = View) ->
    View#view{left = maps:filter(fun(_, {_, SinceMs}) -> NowMs - SinceMs < ForgetMs end, Left)}.

%% @doc The nodes believed alive, in term order.
-spec passive(view()) -> [weft_core:node_id()].
passive(#view{passive = Passive}) ->
    names(Passive).

names(Peers) ->
    lists:sort(maps:keys(Peers)).

%% @doc The nodes evicted from the passive view, the latest first.
-spec former(view()) -> [weft_core:node_id()].
former(#view{former = Former}) ->
    Former.

%% @doc The nodes that could not be reached, the latest first.
-spec lost(view()) -> [weft_core:node_id()].
lost(#view{lost = Lost}) ->
    Lost.

%% @doc Up to Count random peers of the passive view.
-spec sample(Count :: non_neg_integer(), view(), rand:state()) -> {[peer()], rand:state()}.
sample(Count, #view{passive = Passive}, Rand) ->
    weft_choice:some(Count, lists:sort(maps:to_list(Passive)), Rand).
