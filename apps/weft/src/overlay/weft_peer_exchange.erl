%% SPDX-License-Identifier: Apache-2.0
%% @doc How a peer-to-peer node gets nearer neighbours: exchanges of two links among four nodes, so
%% that nobody has more or fewer neighbours than before.
%%
%% X-BOT (Leitao, Marques, Pereira, Rodrigues, SRDS 2009). Pure part of `weft_peer_to_peer_core'.
%% The cost of a link is its round-trip time (`ping', `pong'). Every `optimise_ms', in steps:
%% <ol>
%% <li>The initiator I makes a link to a random node C of its passive view and measures it. If
%%     that is nearer than its worst neighbour O, it asks C to take it: the question `neighbour'
%%     with `{exchange, O, Gain}' for its priority.</li>
%% <li>If C is full it asks its own worst neighbour D to go to O (`replace'), and I waits.</li>
%% <li>D measures O. If the sum of both costs falls it asks O: `neighbour' with `{switch, I}'. If
%%     not, it tells C (`keep').</li>
%% <li>O takes D and parts with I, D parts with C (`disconnect'), C takes I.</li>
%% </ol>
%% Each of these changes is between two nodes and by the rules of `weft_peer_neighbours'; the
%% exchange only says in which order. So whoever fails on the way, both ends of each link agree in
%% the end, and who has lost a neighbour looks for another one. A node takes part in one exchange at
%% a time. It gives none of its `unbiased' worst neighbours away, as I or as C: of those links the
%% whole cluster hangs together. Nodes without the option take part as D and O.
-module(weft_peer_exchange).

-export([new/0, count_kept/1, round/1, ping/2, pong/4, full/4, replace/3, keep/2, declined/3,
         given_up/2, timeout/3, settle/1]).
-export_type([exchange/0, message/0, question/0]).

-record(exchange, {
    costs = weft_peer_costs:new() :: weft_peer_costs:costs(),
    %% As the candidate: who waits for an answer to its question, and who was asked to go.
    pending = none :: {peer(), Number :: pos_integer(), Worst :: weft_core:node_id()} | none}).

-opaque exchange() :: #exchange{}.
-type peers() :: weft_peer_neighbours:peers().
-type peer() :: weft_passive_view:peer().

-type question() :: {exchange, Old :: weft_core:node_id(), GainMs :: integer()}
                  | {switch, Initiator :: weft_core:node_id()}.
-type message() :: {ping | pong, SentMs :: integer(), Left :: non_neg_integer()}
                 | {replace, Initiator :: weft_core:node_id(), Old :: weft_core:node_id(),
                    BudgetMs :: integer()}
                 | keep.
%% `SentMs' is by the clock of who asks. `BudgetMs': what the link of the receiver to Old must not
%% cost, for the sum to fall.

%% The first round trip of a new link takes longer.
-define(MORE_PINGS, 2).
%% How long the candidate waits, in times that an attempt may take: two are made meanwhile.
-define(PATIENCE, 2).

%% @doc Nothing measured, and no exchange under way.
-spec new() -> exchange().
new() ->
    #exchange{}.

%% @doc How many places are kept for who waits.
-spec count_kept(exchange()) -> 0 | 1.
count_kept(#exchange{pending = none}) -> 0;
count_kept(_Exchange) -> 1.

costs(Peers) ->
    (weft_peer_neighbours:exchange(Peers))#exchange.costs.

set_costs(Costs, Peers) ->
    Exchange = weft_peer_neighbours:exchange(Peers),
    weft_peer_neighbours:set_exchange(Exchange#exchange{costs = Costs}, Peers).

pending(Peers) ->
    (weft_peer_neighbours:exchange(Peers))#exchange.pending.

set_pending(Pending, Peers) ->
    Exchange = weft_peer_neighbours:exchange(Peers),
    weft_peer_neighbours:set_exchange(Exchange#exchange{pending = Pending}, Peers).

is_full(Peers) ->
    weft_peer_views:is_full(weft_peer_neighbours:views(Peers)).

%% @doc To be called every `optimise_ms': measures all neighbours, and begins an exchange.
-spec round(peers()) -> peers().
round(Peers0) ->
    Active = weft_peer_neighbours:active(Peers0),
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
    weft_peer_neighbours:try_chosen(weft_peer_neighbours:candidate(Peers), {measure, candidate}).

is_busy(Peers) ->
    pending(Peers) =/= none
        orelse weft_peer_attempts:is_exchanging(weft_peer_neighbours:attempts(Peers)).

%% The worst neighbour that may go, and is none of Except.
worst(Except, Peers) ->
    case weft_peer_costs:worst(weft_peer_neighbours:active(Peers),
                               weft_peer_neighbours:option(unbiased, Peers),
                               costs(Peers)) of
        {Node, Ms} ->
            case lists:member(Node, Except) of
                true -> none;
                false -> {Node, Ms}
            end;
        none -> none
    end.

%% --- measuring --------------------------------------------------------------------------------

%% @doc The link to Node is up, and it is to be measured.
-spec ping(weft_core:node_id(), peers()) -> peers().
ping(Node, Peers) ->
    send_ping(Node, ?MORE_PINGS, Peers).

send_ping(Node, Left, Peers) ->
    weft_peer_neighbours:send(Node, {ping, weft_peer_neighbours:now_ms(Peers), Left}, Peers).

%% @doc The answer to a ping. The last one of several decides what comes next.
-spec pong(weft_core:node_id(), SentMs :: integer(), Left :: non_neg_integer(), peers()) ->
          peers().
pong(From, SentMs, Left, Peers0) ->
    Ms = max(0, weft_peer_neighbours:now_ms(Peers0) - SentMs),
    Costs = weft_peer_costs:sample(From, Ms, costs(Peers0)),
    Measured = weft_peer_attempts:get(From, weft_peer_neighbours:attempts(Peers0)),
    case {Measured, weft_peer_neighbours:is_active(From, Peers0)} of
        {{{measure, _}, _, _}, _} when Left > 0 ->
            send_ping(From, Left - 1, set_costs(Costs, Peers0));
        {{{measure, Why}, _, _}, _} ->
            Peers = weft_peer_neighbours:forget_attempt(From, Peers0),
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
            weft_peer_neighbours:release(Candidate, Peers)
    end;
measured({replace, Candidate, Initiator, BudgetMs}, Old, Ms, Peers) ->
    case weft_peer_costs:is_less(Ms, BudgetMs)
        andalso weft_peer_neighbours:is_active(Candidate, Peers) of
        true -> ask_if(true, Old, {swap, Candidate, {switch, Initiator}}, Peers);
        false -> ask_if(false, Old, none, weft_peer_neighbours:send(Candidate, keep, Peers))
    end.

ask_if(true, Node, Purpose, Peers) ->
    weft_peer_neighbours:try_node(Node, Purpose, Peers);
ask_if(false, Node, _Purpose, Peers) ->
    weft_peer_neighbours:release(Node, weft_peer_neighbours:not_now(Node, Peers)).

%% --- the four nodes ---------------------------------------------------------------------------

%% @doc Peer asks to be our neighbour in an exchange, and there is no place free. As the candidate:
%% somebody else may make room, the answer comes later. As the old neighbour: who asks takes the
%% place of the initiator.
-spec full(question(), Number :: pos_integer(), peer(), peers()) -> peers().
full({exchange, Old, GainMs}, Number, {From, _} = Peer, Peers) ->
    case is_busy(Peers) orelse worst([From, Old], Peers) of
        {Worst, Ms} ->
            WaitMs = ?PATIENCE * weft_peer_neighbours:option(attempt_ms, Peers),
            Asked = weft_peer_neighbours:send(Worst, {replace, From, Old,
                                                      erlang:round(Ms) + GainMs}, Peers),
            weft_peer_neighbours:emit({after_ms, WaitMs, {exchange, From, Number}},
                                      set_pending({Peer, Number, Worst},
                                                                       Asked));
        _ ->
            weft_peer_neighbours:send(From, {decline, Number}, Peers)
    end;
full({switch, Initiator}, Number, {From, _} = Peer, Peers) ->
    case not is_busy(Peers) andalso weft_peer_neighbours:is_active(Initiator, Peers) of
        true ->
            Taken = weft_peer_neighbours:take(Number, Peer, Peers),
            weft_peer_neighbours:swap_out(Initiator, Taken);
        false ->
            weft_peer_neighbours:send(From, {decline, Number}, Peers)
    end.

%% @doc The neighbour Candidate asks us to go to Old.
-spec replace({Initiator :: weft_core:node_id(), Old :: weft_core:node_id(),
               BudgetMs :: integer()}, Candidate :: weft_core:node_id(), peers()) -> peers().
replace({Initiator, Old, BudgetMs}, Candidate, Peers) ->
    case weft_peer_neighbours:is_active(Candidate, Peers) andalso not is_busy(Peers)
        andalso not weft_peer_neighbours:is_engaged(Old, Peers) of
        true ->
            Purpose = {measure, {replace, Candidate, Initiator, BudgetMs}},
            weft_peer_neighbours:try_node(Old, Purpose, Peers);
        false ->
            weft_peer_neighbours:send(Candidate, keep, Peers)
    end.

%% @doc The neighbour that we asked to go stays.
-spec keep(weft_core:node_id(), peers()) -> peers().
keep(From, Peers) ->
    case pending(Peers) of
        {_Peer, _Number, From} -> decline(Peers);
        _ -> Peers
    end.

%% @doc The node we asked does not agree. If we were to go to it: the candidate need not wait.
-spec declined(Number :: pos_integer(), weft_core:node_id(), peers()) -> peers().
declined(Number, From, Peers) ->
    case weft_peer_attempts:get(From, weft_peer_neighbours:attempts(Peers)) of
        {{swap, Candidate, {switch, _}}, {asked, _}, Number} ->
            weft_peer_neighbours:send(Candidate, keep,
                                      weft_peer_neighbours:declined(Number, From, Peers));
        _ ->
            weft_peer_neighbours:declined(Number, From, Peers)
    end.

%% @doc The initiator, if it is one, waits no more.
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
    weft_peer_neighbours:send(From, {decline, Number},
                              set_pending(none, Peers)).

%% @doc To be called after each event: once the neighbour that was asked to go is gone, for whatever
%% reason, the initiator gets its place.
-spec settle(peers()) -> peers().
settle(Peers) ->
    case pending(Peers) of
        none ->
            Peers;
        {Peer, Number, Worst} ->
            case weft_peer_neighbours:is_active(Worst, Peers) of
                true -> Peers;
                false -> weft_peer_neighbours:refill(settle(Peer, Number, Peers))
            end
    end.

settle({From, _} = Peer, Number, Peers) ->
    Free = set_pending(none, Peers),
    case weft_peer_attempts:is_up(From, weft_peer_neighbours:attempts(Free)) of
        false ->
            Free;
        true ->
            case is_full(Free) of
                true -> decline(Peers);
                false -> weft_peer_neighbours:take(Number, Peer, Free)
            end
    end.
