%% SPDX-License-Identifier: Apache-2.0
%% @doc Limit: the last node gets a broadcast over fewer than `below' hops, on average of the
%% messages.
%%
%% Option: `since_ms' (0), messages sent earlier do not count. Needs the observer
%% `weft_sim_deliveries'.
-module(weft_sim_last_hop_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares the mean with the limit.
-spec settled(weft_sim_world:world(), #{below := number(), atom() => term()}) ->
          weft_sim_checker:verdict().
settled(World, #{below := Limit} = Options) ->
    case weft_sim_deliveries:figures(World, Options) of
        #{last_hop := Mean} when Mean < Limit -> ok;
        Figures -> {violation, io_lib:format("the last hop is not below ~0tp: ~0tp",
                                             [Limit, Figures])}
    end.
