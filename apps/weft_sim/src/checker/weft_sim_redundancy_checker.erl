%% SPDX-License-Identifier: Apache-2.0
%% @doc Limit: a broadcast to N nodes costs less than (1 + `below') * (N - 1) full messages, on
%% average of the messages.
%%
%% Option: `since_ms' (0), messages sent earlier do not count. Needs the observer
%% `weft_sim_deliveries'.
-module(weft_sim_redundancy_checker).
-behaviour(weft_sim_checker).

-export([settled/2]).

%% @doc Compares the mean with the limit.
-spec settled(weft_sim_world:world(), #{below := number(), atom() => term()}) ->
          weft_sim_checker:verdict().
settled(World, #{below := Limit} = Options) ->
    case weft_sim_deliveries:figures(World, Options) of
        #{redundancy := Mean} when Mean < Limit -> ok;
        Figures -> {violation, io_lib:format("redundancy is not below ~0tp: ~0tp",
                                             [Limit, Figures])}
    end.
