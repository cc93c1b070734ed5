%% SPDX-License-Identifier: Apache-2.0
%% What a link knows: the state of weft_link_state, for the process of the link (weft_link).

-record(link, {key :: weft_links:key(),
               handler :: module(),
               above :: weft_link_handler:state(),
               cores :: weft_link_cores:cores(),
               lanes = #{} :: weft_link_lanes:lanes(),
               peer :: weft_handshake:peer() | undefined,
               demand = weft_link_demand:new() :: weft_link_demand:demand(),
               %% The link was closed because the overlay does not want it any more.
               is_released = false :: boolean(),
               %% Was it wanted and used at the last check?
               was_used = false :: boolean(),
               dial = weft_link_dial:new() :: weft_link_dial:dial(),
               rtt_us :: pos_integer() | undefined,
               last_error :: term(),
               %% How often it came up, and when it did so last.
               ups = 0 :: non_neg_integer(),
               up_us = 0 :: integer(),
               %% Since when nothing needs it; `never' while something does.
               idle_since_ms :: integer() | never,
               check :: weft_link_check:check()}).
