%% SPDX-License-Identifier: Apache-2.0
%% @doc Topology `peer_to_peer': each node keeps a few random neighbours, and no node knows all.
%%
%% HyParView (Leitao, Pereira, Rodrigues, DSN 2007). A node has up to `active' neighbours, which
%% have it as theirs as well, and knows up to `passive' others to replace them. Protocol:
%% <ol>
%% <li>To join, a node asks a seed to be its neighbour. The seed always agrees, if need be by
%%     parting with another, and sends the news on random walks (`forward_join'). The node at the
%%     end of a walk becomes a neighbour of the new node too.</li>
%% <li>A lost neighbour is dialled once again, then replaced by nodes of the passive view. These
%%     agree if they have room, or if the node that asks has no neighbour (`high').</li>
%% <li>Every `shuffle_ms' a random walk ends at some node with which a handful of names is
%%     exchanged, so that passive views stay fresh. The answer takes the same way back. If the node
%%     that began the walk lacks a neighbour, nodes far along the walk that lack one too make a link
%%     to it.</li>
%% <li>Every `probe_ms' a seed or a passive node is asked which part of the cluster it is in
%%     (`weft_peer_component'). If it is another one, a link is made. So parts that could live side
%%     by side for ever find each other.</li>
%% </ol>
%% How both ends agree on being neighbours is in `weft_peer_neighbours'; with the option `optimise'
%% neighbours are exchanged for nearer ones (`weft_peer_exchange').
%%
%% Command: `leave', answered `ok' after `linger_ms'; the others forget this node. Notice:
%% `{warning, {no_seed_answers, Seeds}}', once each time when no node at all can be reached. It
%% takes the notice `{seeds, Nodes}' of `weft_topology'. Not here: routes to nodes that are no
%% neighbours, and the list of all members (`weft_router_core').
-module(weft_peer_to_peer_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1, seeds/1,
         decides_neighbours/0, passive/1]).

-record(state, {
    self :: weft_core:node_id(),
    mode = joined :: joined | {leaving, Ref :: term()} | left,
    peers :: weft_peer_state:peers(),
    shuffles = 0 :: non_neg_integer()}).

-type message() ::
    {1, {neighbour, Number :: pos_integer(), Incarnation :: non_neg_integer(),
       weft_peer_attempts:priority()}
      | {accept, Number :: pos_integer(), Incarnation :: non_neg_integer()}
      | {decline, Number :: pos_integer()}
      | {disconnect, [weft_passive_view:peer()]}
      | {forward_join, weft_passive_view:peer(), HopsLeft :: non_neg_integer()}
      | {shuffle, Way :: [weft_core:node_id()], [weft_passive_view:peer()],
         HopsLeft :: non_neg_integer(), IsLacking :: boolean()}
      | {shuffle_reply, Way :: [weft_core:node_id()], [weft_passive_view:peer()]}
      | {beat, weft_peer_component:beat()}
      | {probe | probed, none | weft_peer_component:beat(), Incarnation :: non_neg_integer()}
      | {left, weft_core:node_id(), Incarnation :: non_neg_integer()}
      | weft_peer_exchange:message()}.
%% `disconnect': no longer neighbours; here are some nodes to replace this one. `Way': the nodes
%% that the walk came through, the last one first.
-export_type([message/0]).

-define(VERSION, 1).
%% Links between nodes that are so near anyway would make the paths of the cluster longer.
-define(NEAR_HOPS, 3).

%% @doc See `weft_core'. Options: see `weft_peer_to_peer_options', and `forget_left_ms' and
%% `left_max' of `weft_passive_view:new/2'.
-spec init(weft_core:node_id(), weft_core:options()) -> {#state{}, weft_core:effects()}.
init(Self, Options0) ->
    Options = weft_peer_to_peer_options:with_defaults(Options0),
    Peers0 = weft_peer_state:new(Self, Options),
    Incarnation = weft_peer_state:incarnation(Peers0),
    Peers1 = weft_peer_state:emit({view, {member, Self}, Incarnation}, Peers0),
    Peers = weft_peer_state:later(probe_ms, probe,
                                       weft_peer_state:later(shuffle_ms, shuffle, Peers1)),
    finish(#state{self = Self, peers = weft_peer_search:refill(optimise_later(Peers))}).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #state{}) -> {#state{}, weft_core:effects()}.
handle(Event, NowMs, #state{peers = Peers0} = State0) ->
    #state{peers = Peers} = State =
        on(Event, NowMs, State0#state{peers = weft_peer_state:at(NowMs, Peers0)}),
    finish(State#state{peers = weft_peer_exchange:settle(Peers)}).

finish(#state{peers = Peers0} = State) ->
    {Effects, Peers} = weft_peer_state:take_effects(Peers0),
    {State#state{peers = Peers}, Effects}.

%% @doc See `weft_topology': the neighbours by agreement, in term order.
-spec neighbours(#state{}) -> [weft_core:node_id()].
neighbours(#state{peers = Peers}) ->
    weft_peer_state:active(Peers).

%% @doc The replacements known, in term order.
-spec passive(#state{}) -> [weft_core:node_id()].
passive(#state{peers = Peers}) ->
    weft_peer_views:passive(weft_peer_state:views(Peers)).

on({neighbour_up, Node}, _NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_neighbours:up(Node, Peers)};
on({neighbour_down, Node, _Reason}, _NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_neighbours:down(Node, Peers)};
on({message, From, {?VERSION, Message}}, NowMs, #state{mode = joined, peers = Peers} = State) ->
    State#state{peers = message(Message, From, NowMs, State#state.self, Peers)};
on({message, From, {?VERSION, {neighbour, Number, _, _}}}, _NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_state:send(From, {decline, Number}, Peers)};
on({message, _From, _NewerVersionOrLeaving}, _NowMs, State) ->
    State;
on({timer, Timer}, NowMs, #state{mode = joined} = State) ->
    timer(Timer, NowMs, State);
on({timer, gone}, _NowMs, #state{mode = {leaving, Ref}, peers = Peers} = State) ->
    State#state{mode = left, peers = weft_peer_state:emit({reply, Ref, ok}, Peers)};
on({timer, _Timer}, _NowMs, State) ->
    State;
on({notice, {seeds, Nodes}}, _NowMs, #state{mode = joined, peers = Peers} = State) ->
    State#state{peers = weft_peer_search:more_seeds(Nodes, Peers)};
on({notice, {seeds, _Nodes}}, _NowMs, State) ->
    State;
on({command, Ref, {forget, _Node}}, _NowMs, #state{peers = Peers} = State) ->
    %% There is no list of members to take it from; a node that does not answer is forgotten anyway.
    State#state{peers = weft_peer_state:emit({reply, Ref, {error, unknown_member}}, Peers)};
on({command, Ref, leave}, _NowMs, #state{mode = joined, self = Self, peers = Peers0} = State) ->
    Left = {left, Self, weft_peer_state:incarnation(Peers0)},
    Peers = weft_peer_neighbours:leave(weft_peer_state:flood(Left, none, Peers0)),
    State#state{mode = {leaving, Ref}, peers = weft_peer_state:later(linger_ms, gone, Peers)};
on({command, Ref, leave}, _NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_state:emit({reply, Ref, ok}, Peers)}.

timer({attempt, Node, Number}, _NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_neighbours:attempt_timeout(Node, Number, Peers)};
timer(shuffle, NowMs, #state{peers = Peers, shuffles = Count} = State) ->
    Shuffled = shuffle(State#state.self, weft_peer_search:new_round(NowMs, Peers)),
    Mixed = mix(Count + 1, weft_peer_parts:beat(NowMs, Shuffled)),
    State#state{shuffles = Count + 1,
                peers = weft_peer_state:later(shuffle_ms, shuffle, Mixed)};
timer(claim, NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_parts:claim(NowMs, Peers)};
timer(probe, _NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_state:later(probe_ms, probe,
                                                   weft_peer_parts:probe(Peers))};
timer(optimise, _NowMs, #state{peers = Peers, shuffles = Count} = State) ->
    %% Nodes that are still mixing would undo the exchange.
    IsMixed = Count >= weft_peer_state:option(mix_from, Peers)
        + weft_peer_state:option(mix_rounds, Peers),
    Exchanged = case IsMixed of
                    true -> weft_peer_exchange:round(Peers);
                    false -> Peers
                end,
    State#state{peers = optimise_later(Exchanged)};
timer({exchange, Node, Number}, _NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_exchange:timeout(Node, Number, Peers)};
timer(again, _NowMs, #state{peers = Peers} = State) ->
    State#state{peers = weft_peer_search:again(Peers)}.

message({neighbour, Number, Incarnation, Priority}, From, _NowMs, _Self, Peers) ->
    Peer = {From, Incarnation},
    case weft_peer_neighbours:asked(Number, Priority, Peer, Peers) of
        {full, Asked} -> weft_peer_exchange:full(Priority, Number, Peer, Asked);
        Answered -> tell_join(Priority, Peer, Answered)
    end;
message({accept, Number, Incarnation}, From, _NowMs, _Self, Peers) ->
    weft_peer_neighbours:accepted(Number, {From, Incarnation}, Peers);
message({decline, Number}, From, _NowMs, _Self, Peers) ->
    weft_peer_exchange:declined(Number, From, Peers);
message({disconnect, Names}, From, _NowMs, _Self, Peers) ->
    weft_peer_neighbours:parted(From, Names, weft_peer_exchange:given_up(From, Peers));
message({ping, SentMs, Left}, From, _NowMs, _Self, Peers) ->
    weft_peer_state:send(From, {pong, SentMs, Left}, Peers);
message({pong, SentMs, Left}, From, _NowMs, _Self, Peers) ->
    weft_peer_exchange:pong(From, SentMs, Left, Peers);
message({replace, Initiator, Old, BudgetMs}, From, _NowMs, _Self, Peers) ->
    weft_peer_exchange:replace({Initiator, Old, BudgetMs}, From, Peers);
message(keep, From, _NowMs, _Self, Peers) ->
    weft_peer_exchange:keep(From, Peers);
message({forward_join, {Self, _}, _HopsLeft}, _From, _NowMs, Self, Peers) ->
    Peers;
message({forward_join, Peer, HopsLeft}, From, _NowMs, _Self, Peers) ->
    walk_join(Peer, bounded(HopsLeft, join_walk, Peers), From, Peers);
message({shuffle, [From | _] = Way, Names, HopsLeft, IsLacking}, From, _NowMs, Self, Peers0) ->
    Peers = case IsLacking andalso length(Way) > ?NEAR_HOPS of
                true -> weft_peer_search:offer(lists:last(Way), Peers0);
                false -> Peers0
            end,
    Hops = bounded(HopsLeft, shuffle_walk, Peers) - 1,
    walk_shuffle({shuffle, [Self | Way], Names, Hops, IsLacking}, Peers);
message({shuffle_reply, [Self | Way], Names}, _From, _NowMs, Self, Peers) ->
    shuffle_reply(Way, Names, Peers);
message({beat, Beat}, From, NowMs, _Self, Peers) ->
    weft_peer_parts:heard(Beat, From, NowMs, Peers);
message({probe, _Beat, Incarnation}, From, _NowMs, _Self, Peers) ->
    weft_peer_parts:answer_probe({From, Incarnation}, Peers);
message({probed, Beat, Incarnation}, From, _NowMs, _Self, Peers) ->
    weft_peer_parts:probed(Beat, {From, Incarnation}, Peers);
message({left, Self, Incarnation}, _From, _NowMs, Self, Peers) ->
    weft_peer_state:outlive(Incarnation, Peers);
message({left, Node, Incarnation} = Left, From, NowMs, _Self, Peers0) ->
    case weft_peer_neighbours:left(Node, Incarnation, NowMs, Peers0) of
        {new, Peers} -> weft_peer_state:flood(Left, From, Peers);
        {known, Peers} -> Peers
    end.

bounded(HopsLeft, Option, Peers) ->
    min(HopsLeft, weft_peer_state:option(Option, Peers)).

%% --- walks ------------------------------------------------------------------------------------

%% A node joined through this one: its other neighbours are to be far away.
tell_join(join, {Node, _} = Peer, {agreed, Peers}) ->
    Walk = weft_peer_state:option(join_walk, Peers),
    weft_peer_state:flood({forward_join, Peer, Walk}, Node, Peers);
tell_join(_Priority, _Peer, {_Answer, Peers}) ->
    Peers.

walk_join({Node, _} = Peer, HopsLeft, From, Peers0) ->
    Peers1 = case HopsLeft =:= weft_peer_state:option(passive_walk, Peers0) of
                 true -> weft_peer_state:learn([Peer], Peers0);
                 false -> Peers0
             end,
    case next_hop([Node, From], HopsLeft, Peers1) of
        {{ok, Next}, Peers} ->
            weft_peer_state:send(Next, {forward_join, Peer, HopsLeft - 1}, Peers);
        {none, Peers} ->
            weft_peer_search:try_walk(Peer, Peers)
    end.

next_hop(Except, HopsLeft, Peers) ->
    Views0 = weft_peer_state:views(Peers),
    case HopsLeft > 0 andalso weft_peer_views:count(Views0) > 1 of
        true ->
            {Result, Views} = weft_peer_views:one_active(Except, Views0),
            {Result, weft_peer_state:set_views(Views, Peers)};
        false ->
            {none, Peers}
    end.

shuffle(Self, Peers) ->
    case weft_peer_views:one_active([], weft_peer_state:views(Peers)) of
        {{ok, First}, Views1} ->
            {Names, Views} = weft_peer_views:begin_shuffle(First, Views1),
            Own = {Self, weft_peer_state:incarnation(Peers)},
            Walk = weft_peer_state:option(shuffle_walk, Peers),
            IsLacking = not weft_peer_views:is_full(Views),
            weft_peer_state:send(First, {shuffle, [Self], [Own | Names], Walk, IsLacking},
                                      weft_peer_state:set_views(Views, Peers));
        {none, _Views} ->
            Peers
    end.

walk_shuffle({shuffle, [_Self, Back | _] = Way, Names, HopsLeft, _} = Shuffle, Peers0) ->
    case next_hop([Back, lists:last(Way)], HopsLeft, Peers0) of
        {{ok, Next}, Peers} ->
            weft_peer_state:send(Next, Shuffle, Peers);
        {none, Peers} ->
            {Own, Views} = weft_peer_views:swap(Names, weft_peer_state:views(Peers)),
            weft_peer_state:send(Back, {shuffle_reply, tl(Way), Own},
                                      weft_peer_state:set_views(Views, Peers))
    end.

shuffle_reply([], Names, Peers) ->
    Views = weft_peer_state:views(Peers),
    weft_peer_state:set_views(weft_peer_views:end_shuffle(Names, Views), Peers);
shuffle_reply([Back | _] = Way, Names, Peers) ->
    weft_peer_state:send(Back, {shuffle_reply, Way, Names}, Peers).

%% Nodes that join at about the same time by the same seed become neighbours of each other, and
%% paths through the cluster get long. So in its first rounds a node swaps some neighbours for
%% random nodes.
mix(Count, Peers) ->
    From = weft_peer_state:option(mix_from, Peers),
    case Count - From of
        Round when Round >= 0 ->
            case Round < weft_peer_state:option(mix_rounds, Peers) of
                true -> swap_one(Peers);
                false -> Peers
            end;
        _ ->
            Peers
    end.

swap_one(Peers) ->
    weft_peer_search:try_chosen(weft_peer_search:candidate(Peers), bridge).

optimise_later(Peers) ->
    case weft_peer_state:option(optimise, Peers) of
        rtt -> weft_peer_state:later(optimise_ms, optimise, Peers);
        none -> Peers
    end.

%% @doc See `weft_topology'. Errors: see `weft_peer_to_peer_options:validate/1'.
-spec validate(weft_core:node_id(), map()) -> ok | {error, iolist()}.
validate(_Self, Options) ->
    weft_peer_to_peer_options:validate(Options).

%% @doc See `weft_topology'. Always partial: only by chance a node has all others as neighbours.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, _Options) ->
    true.

%% @doc See `weft_topology'.
-spec seeds(map()) -> [weft_core:node_id()].
seeds(Options) ->
    map_get(seeds, weft_peer_to_peer_options:with_defaults(Options)).

%% @doc See `weft_topology': most links are made only for a question.
-spec decides_neighbours() -> boolean().
decides_neighbours() ->
    true.
