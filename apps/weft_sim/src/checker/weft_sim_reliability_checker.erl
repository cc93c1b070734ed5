%% SPDX-License-Identifier: Apache-2.0
%% @doc Limit: broadcasts reach at least the share `least' (1.0) of the running nodes on average.
%%
%% Option: `since_ms' (0), messages sent earlier do not count. Needs the observer
%% `weft_sim_deliveries'.
-module(weft_sim_reliability_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares with the nodes that run now.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    #{reliability := Mean} = Figures = weft_sim_deliveries:figures(World, Options),
    case Mean >= maps:get(least, Options, 1.0) of
        true -> ok;
        false -> {violation, io_lib:format("messages reach ~.2f % of the nodes: ~0tp",
                                           [100 * Mean, Figures])}
    end.
