%% SPDX-License-Identifier: Apache-2.0
%% @doc How a peer-to-peer node finds neighbours: which nodes it asks, when, and how urgently.
%%
%% A free place is filled from the nodes that it knows. If none is left, seeds and nodes that could
%% not be reached before are asked, after a pause that grows. A node is asked, by a question with a
%% number, once there is a link; `weft_peer_neighbours' handles the answer.
-module(weft_peer_search).

-export([try_node/3, try_chosen/2, ask/2, refill/1, candidate/1, more_seeds/2, offer/2,
         is_engaged/2, try_walk/2, again/1, new_round/2]).

-import(weft_peer_state, [now_ms/1, active/1, not_now/2, option/2, learn/2, send/3, emit/2]).

-include("weft_peer_state.hrl").

-type peers() :: weft_peer_state:peers().

%% @doc Asks the node, once there is a link. Purposes: `join' (a seed), `refill' (a free place),
%% `walk' (end of another node's join), `bridge' (another part of the cluster), `{swap, Gone, _}'
%% (in the place of Gone); `probe' and `{measure, _}' are for other questions.
-spec try_node(weft_core:node_id(), weft_peer_attempts:purpose(), peers()) -> peers().
try_node(Node, Purpose, #peers{attempts = Attempts0} = Peers0) ->
    {Number, Attempts} = weft_peer_attempts:start(Node, Purpose, Attempts0),
    Peers = emit({after_ms, patience_ms(Purpose, Peers0), {attempt, Node, Number}},
                 emit({connect, Node}, Peers0#peers{attempts = Attempts})),
    case weft_peer_attempts:is_up(Node, Attempts) of
        true -> ask(Node, Peers);
        false -> Peers
    end.

%% The candidate of an exchange first asks another node, which asks a further one.
patience_ms({swap, _, {exchange, _, _}}, Peers) -> 3 * option(attempt_ms, Peers);
patience_ms(_Purpose, Peers) -> option(attempt_ms, Peers).

%% @doc The same for a node that was chosen, if there was one.
-spec try_chosen({{ok, weft_core:node_id()} | none, peers()}, weft_peer_attempts:purpose()) ->
          peers().
try_chosen({{ok, Node}, Peers}, Purpose) -> try_node(Node, Purpose, Peers);
try_chosen({none, Peers}, _Purpose) -> Peers.

%% @doc The link is up: asks the question.
-spec ask(weft_core:node_id(), peers()) -> peers().
ask(Node, #peers{attempts = Attempts, component = Component, incarnation = Own} = Peers) ->
    case weft_peer_attempts:get(Node, Attempts) of
        {probe, _, _} ->
            send(Node, {probe, weft_peer_component:current(Component), Own}, Peers);
        {{measure, _}, _, _} ->
            send(Node, weft_peer_exchange_state:first_ping(now_ms(Peers)), Peers);
        {Purpose, _, Number} ->
            Priority = priority(Purpose, Peers),
            send(Node, {neighbour, Number, Own, Priority},
                 Peers#peers{attempts = weft_peer_attempts:asked(Node, Priority, Attempts)});
        none ->
            Peers
    end.

%% If a node without neighbours asks several at once, one of them has to agree.
priority(bridge, _Peers) -> high;
priority({swap, _Gone, Question}, _Peers) -> Question;
priority(Purpose, #peers{views = Views, attempts = Attempts}) ->
    case weft_peer_views:count(Views) > 0 orelse weft_peer_attempts:is_urgent(Attempts) of
        true -> low;
        false when Purpose =:= join -> join;
        false -> high
    end.

%% @doc Asks as many nodes as there are free places.
-spec refill(peers()) -> peers().
refill(#peers{views = Views, attempts = Attempts, exchange = Exchange} = Peers) ->
    refill(option(active, Peers) - weft_peer_views:count(Views)
               - weft_peer_exchange_state:count_kept(Exchange)
               - weft_peer_attempts:count_wanted(Attempts), Peers).

refill(Free, Peers0) when Free > 0 ->
    case not is_content(Peers0) andalso candidate(Peers0) of
        false -> Peers0;
        {{ok, Node}, Peers} -> refill(Free - 1, try_node(Node, refill, Peers));
        {none, Peers} -> rejoin(Peers)
    end;
refill(_Free, Peers) ->
    Peers.

%% If all others are full it makes no sense to ask them all in each round: a link would be made for
%% nothing each time. A node that lacks only one neighbour asks one node, and is offered more by
%% `offer/2'.
is_content(#peers{views = Views, attempts = Attempts} = Peers) ->
    Lacking = option(active, Peers) - weft_peer_views:count(Views),
    weft_peer_views:count(Views) > 0
        andalso weft_peer_attempts:declined_count(Attempts) >= 2 * Lacking - 1.

%% @doc A random node that could be a neighbour.
-spec candidate(peers()) -> {{ok, weft_core:node_id()} | none, peers()}.
candidate(#peers{views = Views0, attempts = Attempts} = Peers) ->
    Open = case weft_peer_attempts:open(weft_peer_views:passive(Views0), Attempts) of
               [] -> weft_peer_attempts:open(weft_peer_views:former(Views0), Attempts);
               Passive -> Passive
           end,
    {Result, Views} = weft_peer_views:one_of(Open, Views0),
    {Result, Peers#peers{views = Views}}.

%% @doc Seeds besides the configured ones; they replace those told before.
-spec more_seeds([weft_core:node_id()], peers()) -> peers().
more_seeds(More, #peers{self = Self} = Peers) ->
    refill(Peers#peers{seeds = lists:usort(option(seeds, Peers) ++ More) -- [Self]}).

%% @doc A walk of a node that lacks a neighbour came by. Does this node lack one, too?
-spec offer(weft_core:node_id(), peers()) -> peers().
offer(Node, #peers{views = Views} = Peers) ->
    case weft_peer_views:is_full(Views) orelse is_engaged(Node, Peers) of
        true -> Peers;
        false -> try_node(Node, refill, Peers)
    end.

%% @doc Whether the node is a neighbour, or about to be asked something.
-spec is_engaged(weft_core:node_id(), peers()) -> boolean().
is_engaged(Node, #peers{views = Views, attempts = Attempts}) ->
    weft_peer_views:is_active(Node, Views) orelse weft_peer_attempts:get(Node, Attempts) =/= none.

%% @doc A join ends here: the new node is to be a neighbour, if it is none and there are not too
%% many of them already.
-spec try_walk(peer(), peers()) -> peers().
try_walk({Node, _} = Peer, #peers{views = Views, attempts = Attempts} = Peers) ->
    case is_engaged(Node, Peers) orelse weft_peer_views:has_left(Peer, Views)
        orelse weft_peer_attempts:count_wanted(Attempts) >= 2 * option(active, Peers) of
        true -> learn([Peer], Peers);
        false -> try_node(Node, walk, Peers)
    end.

%% @doc The pause is over: every node may be asked again.
-spec again(peers()) -> peers().
again(#peers{attempts = Attempts} = Peers) ->
    refill(Peers#peers{is_waiting = false, attempts = weft_peer_attempts:again(Attempts)}).

%% @doc To be called once in each shuffle interval: forgets what is old, and tries again.
-spec new_round(NowMs :: integer(), peers()) -> peers().
new_round(NowMs, #peers{views = Views, attempts = Attempts} = Peers) ->
    refill(drop_idle(Peers#peers{views = weft_peer_views:expire(NowMs, Views),
                                 attempts = weft_peer_attempts:again(Attempts)})).

%% No neighbour left: asks the seeds, and nodes that could not be reached before.
rejoin(#peers{views = Views, attempts = Attempts, seeds = Seeds} = Peers) ->
    case {weft_peer_views:count(Views) + weft_peer_attempts:count_wanted(Attempts),
          weft_peer_attempts:open(Seeds, Attempts),
          weft_peer_attempts:open(weft_peer_views:lost(Views) -- Seeds, Attempts)} of
        {0, [], []} -> again_later(Peers);
        {0, [], Lost} -> join_one_of(Lost, Peers);
        {0, Open, _} -> join_one_of(Open, Peers);
        _ -> Peers
    end.

join_one_of(Nodes, #peers{views = Views0} = Peers) ->
    {{ok, Node}, Views} = weft_peer_views:one_of(Nodes, Views0),
    try_node(Node, join, not_now(Node, Peers#peers{views = Views})).

again_later(#peers{is_waiting = true} = Peers) ->
    Peers;
again_later(#peers{retry_ms = RetryMs, views = Views0, attempts = Attempts} = Peers) ->
    MaxMs = option(retry_max_ms, Peers),
    {DelayMs, Views} = weft_peer_views:around(RetryMs, Views0),
    case weft_peer_attempts:declined_count(Attempts) of
        0 ->
            Peers;
        _ ->
            %% Told once, when the pause is the longest, so not for a seed that starts a little
            %% later.
            Warning = [{notice, {warning, {no_seed_answers, Peers#peers.seeds}}}
                       || RetryMs < MaxMs, 2 * RetryMs >= MaxMs],
            Waiting = Peers#peers{retry_ms = min(2 * RetryMs, MaxMs), views = Views,
                                  is_waiting = true},
            lists:foldl(fun weft_peer_state:emit/2, Waiting,
                        [{after_ms, DelayMs, again} | Warning])
    end.

%% Drops links that other nodes dialled to ask a question that led to nothing.
drop_idle(#peers{attempts = Attempts0} = Peers) ->
    {Idle, Attempts} = weft_peer_attempts:idle(active(Peers), Attempts0),
    lists:foldl(fun weft_peer_state:release/2, Peers#peers{attempts = Attempts}, Idle).
