%% SPDX-License-Identifier: Apache-2.0
%% What a peer-to-peer node knows of others, and the effects of the event that it handles: the state
%% of weft_peer_state, for the modules that are built on it.

-record(peers, {
    self :: weft_core:node_id(),
    incarnation :: non_neg_integer(),
    seeds :: [weft_core:node_id()],
    views :: weft_peer_views:views(),
    attempts = weft_peer_attempts:new() :: weft_peer_attempts:attempts(),
    component :: weft_peer_component:component(),
    exchange = weft_peer_exchange_state:new() :: weft_peer_exchange_state:exchange(),
    now_ms = 0 :: integer(),
    %% Pause before the next round over all known nodes, once no node answers; whether it is on.
    retry_ms :: pos_integer(),
    is_waiting = false :: boolean(),
    options :: #{atom() => term()},
    %% Effects of the present event, newest first.
    out = [] :: weft_core:effects()}).

-type peer() :: weft_passive_view:peer().
