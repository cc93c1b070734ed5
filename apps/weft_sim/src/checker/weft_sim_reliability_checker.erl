%% SPDX-License-Identifier: Apache-2.0
%% @doc Limit: broadcasts reach at least the share `least' (1.0) of the running nodes on average;
%% and no node gets one twice while it runs.
%%
%% Option: `since_ms' (0), messages sent earlier need not reach anybody. Needs the observer
%% `weft_sim_deliveries'.
-module(weft_sim_reliability_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares with the nodes that run now.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, Options) ->
    #{reliability := Mean} = Figures = weft_sim_deliveries:figures(World, Options),
    case {weft_sim_deliveries:repeated(World), Mean >= maps:get(least, Options, 1.0)} of
        {[], true} -> ok;
        {[], false} ->
            {violation, io_lib:format("messages reach ~.2f % of the nodes: ~0tp",
                                      [100 * Mean, Figures])};
        {[{Id, Node} | _] = Repeated, _} ->
            {violation, io_lib:format("~b messages came twice, among them ~0tp to ~0tp",
                                      [length(Repeated), Id, Node])}
    end.
