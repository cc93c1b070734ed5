%% SPDX-License-Identifier: Apache-2.0
%% What a node of SWIM knows, and the effects of the event that it handles: the state of
%% weft_swim_state, for the modules that have the rules.

-define(VERSION, 1).

-record(state, {
    self :: weft_core:node_id(),
    incarnation :: non_neg_integer(),
    table :: weft_swim_table:table(),
    probe :: weft_swim_probe:probe(),
    news = weft_swim_news:new() :: weft_swim_news:news(),
    is_gossiping = false :: boolean(),
    suspicions = #{} :: weft_swim_suspicions:suspicions(),
    next_token = 1 :: pos_integer(),
    %% Neighbours; unused if messages need no links.
    linked = weft_random_set:new() :: weft_random_set:set(weft_core:node_id()),
    needs_links :: boolean(),
    seeds :: [weft_core:node_id()],
    %% When this node may send its whole table again without being asked.
    pull_at_ms = undefined :: integer() | undefined,
    %% Tables are compared soon after the start, when most news is lost, then less and less often.
    sync_ms :: pos_integer(),
    mode = member :: member | {leaving, Ref :: term()} | left,
    is_full_told = false :: boolean(),
    rand :: rand:state(),
    options :: weft_swim_options:options(),
    %% Effects of the present event, newest first.
    out = [] :: weft_core:effects()}).
