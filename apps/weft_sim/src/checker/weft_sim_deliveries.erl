%% SPDX-License-Identifier: Apache-2.0
%% @doc Observer of broadcasts: per message, when it was sent, which nodes got it, over how many
%% hops at most and when the last one, and how often it was sent in full; and what a node got twice
%% while it ran.
-module(weft_sim_deliveries).
-behaviour(weft_sim_observer).

-export([new/0, sent/5, notice/5, happened/5, figures/2, messages/2, repeated/1]).
-export_type([state/0]).

-record(deliveries, {
    messages = #{} :: #{Id :: term() => message()},
    started = #{} :: #{node() => AtUs :: non_neg_integer()},
    repeated = [] :: [{Id :: term(), node()}]}).

-opaque state() :: #deliveries{}.
-type message() :: {SentUs :: non_neg_integer(), Nodes :: #{node() => GotUs :: non_neg_integer()},
                    LastHops :: non_neg_integer(), LastUs :: non_neg_integer(),
                    Payloads :: non_neg_integer()}.
%% The sender is one of the nodes.

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
notice(Node, broadcast, {deliver, Id, 0, _}, NowUs, #deliveries{messages = Messages} = State)
  when not is_map_key(Id, Messages) ->
    State#deliveries{messages = Messages#{Id => {NowUs, #{Node => NowUs}, 0, NowUs, 0}}};
notice(Node, broadcast, {deliver, Id, Hops, _}, NowUs, State) ->
    #deliveries{messages = Messages, started = Started, repeated = Repeated} = State,
    #{Id := {SentUs, Nodes, LastHops, _, Payloads}} = Messages,
    Message = {SentUs, Nodes#{Node => NowUs}, max(Hops, LastHops), NowUs, Payloads},
    IsAgain = maps:get(Node, Nodes, -1) >= maps:get(Node, Started, 0),
    State#deliveries{messages = Messages#{Id := Message},
                     repeated = [{Id, Node} || IsAgain] ++ Repeated};
notice(_Node, _Machine, _Notice, _NowUs, State) ->
    State.

%% @private
-spec happened(node(), atom(), weft_sim_observer:happening(), non_neg_integer(), state()) ->
          state().
happened(Node, broadcast, started, NowUs, #deliveries{started = Started} = State) ->
    State#deliveries{started = Started#{Node => NowUs}};
happened(_Node, _Machine, _What, _NowUs, State) ->
    State.

%% @doc What a node got more than once while it ran.
-spec repeated(weft_sim_world:world()) -> [{Id :: term(), node()}].
repeated(World) ->
    #deliveries{repeated = Repeated} = weft_sim_world:observed(World),
    lists:reverse(Repeated).

%% @doc Figures of the messages sent since the option `since_ms' (0), against the nodes that run
%% now. Redundancy is the number of full messages over that needed, less one (RMR in the
%% literature); `last_hop' is LDH. Times in milliseconds.
-spec figures(weft_sim_world:world(), map()) -> #{atom() => number()}.
figures(World, Options) ->
    SinceUs = 1000 * maps:get(since_ms, Options, 0),
    #deliveries{messages = All} = weft_sim_world:observed(World),
    Running = weft_sim_world:running(World),
    Messages = [Message || {SentUs, _, _, _, _} = Message <- lists:sort(maps:values(All)),
                           SentUs >= SinceUs],
    Reached = [share(Nodes, Running) || {_, Nodes, _, _, _} <- Messages],
    Hops = [LastHops || {_, _, LastHops, _, _} <- Messages],
    Redundancy = [redundancy(Payloads, Nodes) || {_, Nodes, _, _, Payloads} <- Messages],
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
    Running = weft_sim_world:running(World),
    [#{reached => share(Nodes, Running), last_hop => Hops, last_ms => (LastUs - SentUs) / 1000,
       redundancy => redundancy(Payloads, Nodes)}
     || {SentUs, Nodes, Hops, LastUs, Payloads} <- lists:sort(maps:values(All)),
        SentUs >= 1000 * SinceMs].

share(Nodes, Running) ->
    length([Node || Node <- Running, is_map_key(Node, Nodes)]) / length(Running).

redundancy(Payloads, Nodes) ->
    Payloads / max(1, map_size(Nodes) - 1) - 1.

mean(Numbers) ->
    lists:sum(Numbers) / length(Numbers).
