%% SPDX-License-Identifier: Apache-2.0
%% @doc How a peer-to-peer node gets nearer neighbours: four nodes exchange two links, so that none
%% has more or fewer neighbours than before.
%%
%% X-BOT (Leitao, Marques, Pereira, Rodrigues, SRDS 2009). Pure part of `weft_peer_to_peer_core'.
%% The cost of a link is its round-trip time (`ping', `pong'). Every `optimise_ms', in steps:
%% <ol>
%% <li>The initiator I makes a link to a random node C of its passive view and measures it. If C is
%%     nearer than its worst neighbour O, it asks C to become its neighbour: the question
%%     `neighbour' with `{exchange, O, Gain}' as its priority.</li>
%% <li>If C is full it asks its own worst neighbour D to become a neighbour of O (`replace'), and I
%%     waits.</li>
%% <li>D measures O. If the sum of both costs falls it asks O: `neighbour' with `{switch, I}'. If
%%     not, it tells C (`keep').</li>
%% <li>O accepts D and parts with I, D parts with C (`disconnect'), C accepts I.</li>
%% </ol>
%% Each of these changes is between two nodes and follows the rules of `weft_peer_neighbours'; the
%% exchange only gives their order. So if a node fails on the way, both ends of each link still
%% agree in the end, and a node that has lost a neighbour looks for another one. A node takes part
%% in one exchange at a time. As I or as C it gives none of its `unbiased' worst neighbours away,
%% because those links keep the whole cluster connected. Nodes without the option take part as D and
%% O.
-module(weft_peer_exchange).

-export([round/1, pong/4, full/4, replace/3, keep/2, declined/3, given_up/2, timeout/3, settle/1]).
-export_type([message/0, question/0]).

-type peers() :: weft_peer_state:peers().
-type peer() :: weft_passive_view:peer().

-type question() :: {exchange, Old :: weft_core:node_id(), GainMs :: integer()}
                  | {switch, Initiator :: weft_core:node_id()}.
-type message() :: {ping | pong, SentMs :: integer(), Left :: non_neg_integer()}
                 | {replace, Initiator :: weft_core:node_id(), Old :: weft_core:node_id(),
                    BudgetMs :: integer()}
                 | keep.
%% `SentMs' is by the clock of the node that asks. `BudgetMs': the sum falls if the link of the
%% receiver to Old costs less than this.

%% How long the candidate waits, in multiples of the time for one attempt: two are made meanwhile.
-define(PATIENCE, 2).

costs(Peers) ->
    weft_peer_exchange_state:costs(weft_peer_state:exchange(Peers)).

set_costs(Costs, Peers) ->
    Exchange = weft_peer_exchange_state:set_costs(Costs, weft_peer_state:exchange(Peers)),
    weft_peer_state:set_exchange(Exchange, Peers).

pending(Peers) ->
    weft_peer_exchange_state:pending(weft_peer_state:exchange(Peers)).

set_pending(Pending, Peers) ->
    Exchange = weft_peer_exchange_state:set_pending(Pending, weft_peer_state:exchange(Peers)),
    weft_peer_state:set_exchange(Exchange, Peers).

is_full(Peers) ->
    weft_peer_views:is_full(weft_peer_state:views(Peers)).

%% @doc To be called every `optimise_ms': measures all neighbours, and begins an exchange.
-spec round(peers()) -> peers().
round(Peers0) ->
    Active = weft_peer_state:active(Peers0),
    Kept = weft_peer_costs:keep(Active, costs(Peers0)),
    Peers = lists:foldl(fun(Node, P) -> send_ping(Node, 0, P) end,
                        set_costs(Kept, Peers0), Active),
    case is_full(Peers) andalso not is_busy(Peers) andalso worst([], Peers) of
        {_Old, Ms} ->
            case weft_peer_costs:is_less(0, Ms) of
                true -> measure_one(Peers);
                false -> Peers
            end;
        _ -> Peers
    end.

measure_one(Peers) ->
    weft_peer_search:try_chosen(weft_peer_search:candidate(Peers), {measure, candidate}).

is_busy(Peers) ->
    pending(Peers) =/= none
        orelse weft_peer_attempts:is_exchanging(weft_peer_state:attempts(Peers)).

%% The worst neighbour that may be given away and is not in Except.
worst(Except, Peers) ->
    case weft_peer_costs:worst(weft_peer_state:active(Peers),
                               weft_peer_state:option(unbiased, Peers),
                               costs(Peers)) of
        {Node, Ms} ->
            case lists:member(Node, Except) of
                true -> none;
                false -> {Node, Ms}
            end;
        none -> none
    end.

%% --- measuring --------------------------------------------------------------------------------

send_ping(Node, Left, Peers) ->
    weft_peer_state:send(Node, {ping, weft_peer_state:now_ms(Peers), Left}, Peers).

%% @doc The answer to a ping. The last one of several decides what comes next.
-spec pong(weft_core:node_id(), SentMs :: integer(), Left :: non_neg_integer(), peers()) ->
          peers().
pong(From, SentMs, Left, Peers0) ->
    Ms = max(0, weft_peer_state:now_ms(Peers0) - SentMs),
    Costs = weft_peer_costs:sample(From, Ms, costs(Peers0)),
    Measured = weft_peer_attempts:get(From, weft_peer_state:attempts(Peers0)),
    case {Measured, weft_peer_state:is_active(From, Peers0)} of
        {{{measure, _}, _, _}, _} when Left > 0 ->
            send_ping(From, Left - 1, set_costs(Costs, Peers0));
        {{{measure, Why}, _, _}, _} ->
            Peers = weft_peer_state:forget_attempt(From, Peers0),
            measured(Why, From, weft_peer_costs:get(From, Costs), Peers);
        {_, true} ->
            set_costs(Costs, Peers0);
        {_, false} ->
            Peers0
    end.

measured(candidate, Candidate, Ms, Peers) ->
    case worst([], Peers) of
        {Old, OldMs} ->
            Question = {exchange, Old, erlang:round(OldMs - Ms)},
            ask_if(weft_peer_costs:is_less(Ms, OldMs), Candidate, {swap, Old, Question}, Peers);
        none ->
            weft_peer_state:release(Candidate, Peers)
    end;
measured({replace, Candidate, Initiator, BudgetMs}, Old, Ms, Peers) ->
    case weft_peer_costs:is_less(Ms, BudgetMs)
        andalso weft_peer_state:is_active(Candidate, Peers) of
        true -> ask_if(true, Old, {swap, Candidate, {switch, Initiator}}, Peers);
        false -> ask_if(false, Old, none, weft_peer_state:send(Candidate, keep, Peers))
    end.

ask_if(true, Node, Purpose, Peers) ->
    weft_peer_search:try_node(Node, Purpose, Peers);
ask_if(false, Node, _Purpose, Peers) ->
    weft_peer_state:release(Node, weft_peer_state:not_now(Node, Peers)).

%% --- the four nodes ---------------------------------------------------------------------------

%% @doc Peer asks to be a neighbour in an exchange, and no place is free. As the candidate: another
%% neighbour may make room, and the answer comes later. As the old neighbour: Peer takes the place
%% of the initiator.
-spec full(question(), Number :: pos_integer(), peer(), peers()) -> peers().
full({exchange, Old, GainMs}, Number, {From, _} = Peer, Peers) ->
    case is_busy(Peers) orelse worst([From, Old], Peers) of
        {Worst, Ms} ->
            WaitMs = ?PATIENCE * weft_peer_state:option(attempt_ms, Peers),
            Asked = weft_peer_state:send(Worst, {replace, From, Old,
                                                      erlang:round(Ms) + GainMs}, Peers),
            weft_peer_state:emit({after_ms, WaitMs, {exchange, From, Number}},
                                      set_pending({Peer, Number, Worst},
                                                                       Asked));
        _ ->
            weft_peer_state:send(From, {decline, Number}, Peers)
    end;
full({switch, Initiator}, Number, {From, _} = Peer, Peers) ->
    case not is_busy(Peers) andalso weft_peer_state:is_active(Initiator, Peers) of
        true ->
            Taken = weft_peer_neighbours:take(Number, Peer, Peers),
            weft_peer_neighbours:swap_out(Initiator, Taken);
        false ->
            weft_peer_state:send(From, {decline, Number}, Peers)
    end.

%% @doc The neighbour Candidate asks this node to become a neighbour of Old instead.
-spec replace({Initiator :: weft_core:node_id(), Old :: weft_core:node_id(),
               BudgetMs :: integer()}, Candidate :: weft_core:node_id(), peers()) -> peers().
replace({Initiator, Old, BudgetMs}, Candidate, Peers) ->
    case weft_peer_state:is_active(Candidate, Peers) andalso not is_busy(Peers)
        andalso not weft_peer_search:is_engaged(Old, Peers) of
        true ->
            Purpose = {measure, {replace, Candidate, Initiator, BudgetMs}},
            weft_peer_search:try_node(Old, Purpose, Peers);
        false ->
            weft_peer_state:send(Candidate, keep, Peers)
    end.

%% @doc The neighbour that was asked to go stays.
-spec keep(weft_core:node_id(), peers()) -> peers().
keep(From, Peers) ->
    case pending(Peers) of
        {_Peer, _Number, From} -> decline(Peers);
        _ -> Peers
    end.

%% @doc The node that was asked does not agree. If this node was to become its neighbour: the
%% candidate need not wait.
-spec declined(Number :: pos_integer(), weft_core:node_id(), peers()) -> peers().
declined(Number, From, Peers) ->
    case weft_peer_attempts:get(From, weft_peer_state:attempts(Peers)) of
        {{swap, Candidate, {switch, _}}, {asked, _}, Number} ->
            weft_peer_state:send(Candidate, keep,
                                      weft_peer_neighbours:declined(Number, From, Peers));
        _ ->
            weft_peer_neighbours:declined(Number, From, Peers)
    end.

%% @doc The initiator, if From is one, waits no longer.
-spec given_up(weft_core:node_id(), peers()) -> peers().
given_up(From, Peers) ->
    case pending(Peers) of
        {{From, _}, _Number, _Worst} -> set_pending(none, Peers);
        _ -> Peers
    end.

%% @doc The initiator has waited for long enough.
-spec timeout(weft_core:node_id(), Number :: pos_integer(), peers()) -> peers().
timeout(Node, Number, Peers) ->
    case pending(Peers) of
        {{Node, _}, Number, _Worst} -> decline(Peers);
        _ -> Peers
    end.

decline(Peers) ->
    {{From, _}, Number, _Worst} = pending(Peers),
    weft_peer_state:send(From, {decline, Number},
                              set_pending(none, Peers)).

%% @doc To be called after each event. Once the neighbour that was asked to go is gone, for whatever
%% reason, the initiator gets its place.
-spec settle(peers()) -> peers().
settle(Peers) ->
    case pending(Peers) of
        none ->
            Peers;
        {Peer, Number, Worst} ->
            case weft_peer_state:is_active(Worst, Peers) of
                true -> Peers;
                false -> weft_peer_search:refill(settle(Peer, Number, Peers))
            end
    end.

settle({From, _} = Peer, Number, Peers) ->
    Free = set_pending(none, Peers),
    case weft_peer_attempts:is_up(From, weft_peer_state:attempts(Free)) of
        false ->
            Free;
        true ->
            case is_full(Free) of
                true -> decline(Peers);
                false -> weft_peer_neighbours:take(Number, Peer, Free)
            end
    end.
