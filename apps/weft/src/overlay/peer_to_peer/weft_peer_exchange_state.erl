%% SPDX-License-Identifier: Apache-2.0
%% @doc What a peer-to-peer node remembers for exchanges of links (`weft_peer_exchange'): what links
%% cost, and which initiator waits for a place. Pure data, kept by `weft_peer_state', which
%% reserves that place, and starts the measurement of a new link.
-module(weft_peer_exchange_state).

-export([new/0, count_kept/1, costs/1, set_costs/2, pending/1, set_pending/2, first_ping/1]).
-export_type([exchange/0]).

-record(exchange, {
    costs = weft_peer_costs:new() :: weft_peer_costs:costs(),
    pending = none :: pending()}).
-opaque exchange() :: #exchange{}.

%% As the candidate: the peer that waits for an answer to its question, and the neighbour that was
%% asked to go.
-type pending() :: {weft_passive_view:peer(), Number :: pos_integer(),
                    Worst :: weft_core:node_id()} | none.

%% The first round trip of a new link takes longer.
-define(MORE_PINGS, 2).

%% @doc Nothing measured, and no exchange in progress.
-spec new() -> exchange().
new() ->
    #exchange{}.

%% @doc How many places are reserved for an initiator that waits.
-spec count_kept(exchange()) -> 0 | 1.
count_kept(#exchange{pending = none}) -> 0;
count_kept(_Trade) -> 1.

-spec costs(exchange()) -> weft_peer_costs:costs().
costs(#exchange{costs = Costs}) -> Costs.

-spec set_costs(weft_peer_costs:costs(), exchange()) -> exchange().
set_costs(Costs, Exchange) -> Exchange#exchange{costs = Costs}.

-spec pending(exchange()) -> pending().
pending(#exchange{pending = Pending}) -> Pending.

-spec set_pending(pending(), exchange()) -> exchange().
set_pending(Pending, Exchange) -> Exchange#exchange{pending = Pending}.

%% @doc The first message of those that measure a new link.
-spec first_ping(NowMs :: integer()) -> weft_peer_exchange:message().
first_ping(NowMs) -> {ping, NowMs, ?MORE_PINGS}.
