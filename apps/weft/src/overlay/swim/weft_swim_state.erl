%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node of SWIM knows, and the effects of the event that it handles: the state that
%% `weft_swim_core' and `weft_swim_sync' pass on.
%%
%% This module sends, each message with the news that is due, draws at random, and collects effects.
%% It decides nothing else.
-module(weft_swim_state).

-export([send/3, tell/3, emit/2, choose/3, draw/2, reachable/1, is_alone/1]).
-export_type([state/0]).

-include("weft_swim_state.hrl").

-type state() :: #state{}.

%% @doc A message with the news that is due, and what the receiver is to hear of itself.
-spec send(weft_core:node_id(), What :: term(), state()) -> state().
send(To, What, #state{options = #{gossip_bytes := Bytes}} = State) ->
    Told = tell(To, What, State),
    {News, Rest} = weft_swim_news:take(transmissions(State), Bytes, State#state.news),
    emit({send, To, {?VERSION, What, Told ++ (News -- Told)}}, State#state{news = Rest}).

transmissions(#state{table = Table, options = #{retransmit_multiplier := Multiplier}}) ->
    Multiplier * ceil(math:log10(weft_swim_table:count(Table) + 1)).

%% @doc What the receiver of such a message is to hear of itself.
-spec tell(weft_core:node_id(), What :: term(), state()) -> [weft_swim_news:update()].
tell(To, What, #state{self = Self, table = Table, options = Options}) ->
    weft_swim_news:for_receiver(To, weft_swim_table:get(To, Table), What, Self, Options).

%% @doc One more effect of the present event.
-spec emit(weft_core:effect(), state()) -> state().
emit(Effect, #state{out = Out} = State) ->
    State#state{out = [Effect | Out]}.

%% @doc Up to Count of these nodes.
-spec choose(Count :: non_neg_integer(), weft_random_set:set(weft_core:node_id()), state()) ->
          {[weft_core:node_id()], state()}.
choose(Count, Set, #state{rand = Rand0} = State) ->
    {Chosen, Rand} = weft_random_set:choose(Count, fun(_) -> true end, Set, Rand0),
    {Chosen, State#state{rand = Rand}}.

%% @doc A time of 1 to MaxMs.
-spec draw(MaxMs :: pos_integer(), state()) -> {Ms :: pos_integer(), state()}.
draw(MaxMs, #state{rand = Rand0} = State) ->
    {Ms, Rand} = rand:uniform_s(MaxMs, Rand0),
    {Ms, State#state{rand = Rand}}.

%% @doc The nodes that messages reach.
-spec reachable(state()) -> weft_random_set:set(weft_core:node_id()).
reachable(#state{needs_links = true, linked = Linked}) -> Linked;
reachable(#state{table = Table}) -> weft_swim_table:living(Table).

%% @doc Does this node know no other member?
-spec is_alone(state()) -> boolean().
is_alone(#state{table = Table}) ->
    weft_swim_table:count(Table) =:= 1.
