%% SPDX-License-Identifier: Apache-2.0
%% @doc Observer of broadcasts: per message, when it was sent, how many nodes got it, over how many
%% hops at most and when the last one, and how often it was sent in full.
-module(weft_sim_deliveries).
-behaviour(weft_sim_observer).

-export([new/0, sent/5, notice/5, figures/2, messages/2]).
-export_type([state/0]).

-record(deliveries, {
    messages = #{} :: #{Id :: term() => message()}}).

-opaque state() :: #deliveries{}.
-type message() :: {SentUs :: non_neg_integer(), Nodes :: pos_integer(),
                    LastHops :: non_neg_integer(), LastUs :: non_neg_integer(),
                    Payloads :: non_neg_integer()}.
%% `Nodes' counts the sender.

%% @doc Nothing seen yet.
-spec new() -> state().
new() ->
    #deliveries{}.

%% @private
-spec sent(node(), atom(), term(), non_neg_integer(), state()) -> state().
sent(_Node, broadcast, {1, {gossip, Id, _, _}}, _NowUs, State) ->
    payload(Id, State);
sent(_Node, broadcast, {1, {spread, Id, _, _, _}}, _NowUs, State) ->
    payload(Id, State);
sent(_Node, _Machine, _Message, _NowUs, State) ->
    State.

payload(Id, #deliveries{messages = Messages} = State) ->
    #{Id := {SentUs, Nodes, LastHops, LastUs, Payloads}} = Messages,
    Message = {SentUs, Nodes, LastHops, LastUs, Payloads + 1},
    State#deliveries{messages = Messages#{Id := Message}}.

%% @private
-spec notice(node(), atom(), term(), non_neg_integer(), state()) -> state().
notice(_Node, broadcast, {deliver, Id, 0, _}, NowUs, #deliveries{messages = Messages} = State) ->
    State#deliveries{messages = Messages#{Id => {NowUs, 1, 0, NowUs, 0}}};
notice(_Node, broadcast, {deliver, Id, Hops, _}, NowUs, #deliveries{messages = Messages} = State) ->
    #{Id := {SentUs, Nodes, LastHops, _, Payloads}} = Messages,
    Message = {SentUs, Nodes + 1, max(Hops, LastHops), NowUs, Payloads},
    State#deliveries{messages = Messages#{Id := Message}};
notice(_Node, _Machine, _Notice, _NowUs, State) ->
    State.

%% @doc Figures of the messages sent since the option `since_ms' (0), against the nodes that run
%% now. Redundancy is the number of full messages over that needed, less one (RMR in the
%% literature); `last_hop' is LDH. Times in milliseconds.
-spec figures(weft_sim_world:world(), map()) -> #{atom() => number()}.
figures(World, Options) ->
    SinceUs = 1000 * maps:get(since_ms, Options, 0),
    #deliveries{messages = All} = weft_sim_world:observed(World),
    Live = length(weft_sim_world:running(World)),
    Messages = [Message || {SentUs, _, _, _, _} = Message <- lists:sort(maps:values(All)),
                           SentUs >= SinceUs],
    Reached = [Nodes / Live || {_, Nodes, _, _, _} <- Messages],
    Hops = [LastHops || {_, _, LastHops, _, _} <- Messages],
    Redundancy = [Payloads / max(1, Nodes - 1) - 1 || {_, Nodes, _, _, Payloads} <- Messages],
    Times = [(LastUs - SentUs) / 1000 || {SentUs, _, _, LastUs, _} <- Messages],
    #{messages => length(Messages),
      reliability => mean(Reached), least_reached => lists:min(Reached),
      last_hop => mean(Hops), last_hop_max => lists:max(Hops),
      redundancy => mean(Redundancy), first_redundancy => hd(Redundancy),
      last_ms => mean(Times), last_ms_max => lists:max(Times)}.

%% @doc One by one, in the order they were sent: the share of the nodes reached, hops and time to
%% the last, redundancy.
-spec messages(weft_sim_world:world(), SinceMs :: non_neg_integer()) ->
          [#{reached | last_hop | last_ms | redundancy => number()}].
messages(World, SinceMs) ->
    #deliveries{messages = All} = weft_sim_world:observed(World),
    Live = length(weft_sim_world:running(World)),
    [#{reached => Nodes / Live, last_hop => Hops, last_ms => (LastUs - SentUs) / 1000,
       redundancy => Payloads / max(1, Nodes - 1) - 1}
     || {SentUs, Nodes, Hops, LastUs, Payloads} <- lists:sort(maps:values(All)),
        SentUs >= 1000 * SinceMs].

mean(Numbers) ->
    lists:sum(Numbers) / length(Numbers).
