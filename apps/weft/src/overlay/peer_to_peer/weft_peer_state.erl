%% SPDX-License-Identifier: Apache-2.0
%% @doc What a peer-to-peer node knows of others, and the effects of the event that it handles: the
%% state that `weft_peer_neighbours', `weft_peer_search' and the modules built on them pass on.
%%
%% It holds the views, the attempts, the part of the cluster, the exchange, and the effects of the
%% present event. This module reads it, changes a part of it, and sends. It decides nothing.
-module(weft_peer_state).

-export([new/2, at/2, now_ms/1, active/1, is_active/2, views/1, set_views/2, seeds/1, attempts/1,
         component/1, set_component/2, exchange/1, set_exchange/2, incarnation/1, outlive/2,
         forget_attempt/2, not_now/2, release/2, option/2, learn/2, flood/3, send/3, later/3,
         emit/2, take_effects/1]).
-export_type([peers/0]).

-include("weft_peer_state.hrl").

-type peers() :: #peers{}.

-define(VERSION, 1).
%% So many beats may be missing before a node takes the root to be gone.
-define(BEATS_MISSED, 4).

%% @doc No node known. Options: see `weft_peer_to_peer_options'.
-spec new(weft_core:node_id(), weft_core:options()) -> peers().
new(Self, #{shuffle_ms := ShuffleMs, retry_min_ms := RetryMs, seeds := Seeds} = Options) ->
    Incarnation = maps:get(incarnation, Options, 0),
    #peers{self = Self, incarnation = Incarnation, seeds = lists:usort(Seeds) -- [Self],
           views = weft_peer_views:new(Self, Options),
           component = weft_peer_component:new(Self, #{incarnation => Incarnation,
                                                  timeout_ms => ?BEATS_MISSED * ShuffleMs}),
           retry_ms = RetryMs, options = Options}.

%% @doc The time of the present event.
-spec at(NowMs :: integer(), peers()) -> peers().
at(NowMs, Peers) -> Peers#peers{now_ms = NowMs}.

-spec now_ms(peers()) -> integer().
now_ms(#peers{now_ms = NowMs}) -> NowMs.

%% @doc The neighbours, in term order.
-spec active(peers()) -> [weft_core:node_id()].
active(#peers{views = Views}) ->
    weft_peer_views:active(Views).

-spec is_active(weft_core:node_id(), peers()) -> boolean().
is_active(Node, #peers{views = Views}) -> weft_peer_views:is_active(Node, Views).

%% @doc Both views.
-spec views(peers()) -> weft_peer_views:views().
views(#peers{views = Views}) ->
    Views.

%% @doc The views after something was chosen from them.
-spec set_views(weft_peer_views:views(), peers()) -> peers().
set_views(Views, Peers) ->
    Peers#peers{views = Views}.

-spec seeds(peers()) -> [weft_core:node_id()].
seeds(#peers{seeds = Seeds}) -> Seeds.

-spec attempts(peers()) -> weft_peer_attempts:attempts().
attempts(#peers{attempts = Attempts}) -> Attempts.

-spec component(peers()) -> weft_peer_component:component().
component(#peers{component = Component}) -> Component.

-spec set_component(weft_peer_component:component(), peers()) -> peers().
set_component(Component, Peers) -> Peers#peers{component = Component}.

-spec exchange(peers()) -> weft_peer_exchange_state:exchange().
exchange(#peers{exchange = Exchange}) -> Exchange.

-spec set_exchange(weft_peer_exchange_state:exchange(), peers()) -> peers().
set_exchange(Exchange, Peers) -> Peers#peers{exchange = Exchange}.

%% @doc The incarnation of this node.
-spec incarnation(peers()) -> non_neg_integer().
incarnation(#peers{incarnation = Incarnation}) ->
    Incarnation.

%% @doc Another node remembers that this one left in this incarnation, so the clock went back: takes
%% a later one.
-spec outlive(Incarnation :: non_neg_integer(), peers()) -> peers().
outlive(Incarnation, #peers{incarnation = Own} = Peers) ->
    Peers#peers{incarnation = max(Own, Incarnation + 1)}.

%% @doc There is nothing more to ask the node.
-spec forget_attempt(weft_core:node_id(), peers()) -> peers().
forget_attempt(Node, #peers{attempts = Attempts} = Peers) ->
    Peers#peers{attempts = weft_peer_attempts:forget(Node, Attempts)}.

%% @doc The node is not to be asked again for now.
-spec not_now(weft_core:node_id(), peers()) -> peers().
not_now(Node, #peers{attempts = Attempts} = Peers) ->
    Peers#peers{attempts = weft_peer_attempts:declined(Node, Attempts)}.

%% @doc The link is not needed any more.
-spec release(weft_core:node_id(), peers()) -> peers().
release(Node, Peers) ->
    emit({disconnect, Node}, Peers).

%% @doc An option.
-spec option(atom(), peers()) -> term().
option(Key, #peers{options = Options}) ->
    map_get(Key, Options).

%% @doc Adds nodes that were heard of.
-spec learn([peer()], peers()) -> peers().
learn(Names, #peers{views = Views} = Peers) ->
    Peers#peers{views = weft_peer_views:learn(Names, Views)}.

%% @doc Sends to all neighbours but one.
-spec flood(Message :: tuple(), Except :: weft_core:node_id(), peers()) -> peers().
flood(Message, Except, Peers) ->
    lists:foldl(fun(Node, P) -> send(Node, Message, P) end, Peers,
                lists:delete(Except, active(Peers))).

%% @doc Sends to a node, if there is a link.
-spec send(weft_core:node_id(), Message :: tuple() | atom(), peers()) -> peers().
send(Node, Message, Peers) ->
    emit({send, Node, {?VERSION, Message}}, Peers).

%% @doc The timer fires after about the interval that the option has.
-spec later(Interval :: atom(), Timer :: term(), peers()) -> peers().
later(Interval, Timer, #peers{views = Views0} = Peers) ->
    {DelayMs, Views} = weft_peer_views:around(option(Interval, Peers), Views0),
    emit({after_ms, DelayMs, Timer}, Peers#peers{views = Views}).

%% @doc One more effect of the present event.
-spec emit(weft_core:effect(), peers()) -> peers().
emit(Effect, #peers{out = Out} = Peers) ->
    Peers#peers{out = [Effect | Out]}.

%% @doc All effects of the present event.
-spec take_effects(peers()) -> {weft_core:effects(), peers()}.
take_effects(#peers{out = Out} = Peers) ->
    {lists:reverse(Out), Peers#peers{out = []}}.
