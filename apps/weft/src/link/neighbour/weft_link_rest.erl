%% SPDX-License-Identifier: Apache-2.0
%% @doc Is a link in use, and when does it rest? One that rests checks its lanes rarely
%% (`weft_link_check').
-module(weft_link_rest).

-export([used/1, rests/1]).

-include("weft_link_state.hrl").

%% @doc Notes whether cores use the link; the kernel is asked to connect as long as they do.
-spec used(weft_link_state:link()) -> weft_link_state:link().
used(#link{key = Key, cores = Cores, demand = Demand, was_used = WasUsed} = Link) ->
    IsUsed = weft_link_state:is_up(Link) andalso weft_link_cores:is_used(Cores)
        andalso weft_link_demand:is_wanted(Demand) andalso not weft_link_demand:is_parting(Demand),
    ok = weft_link_distribution:at_tick(Key, WasUsed, IsUsed),
    Link#link{was_used = IsUsed}.

%% @doc There is nothing to do, and what will change that is a message to the process of the link.
%% Its lanes are told.
-spec rests(weft_link_state:link()) -> boolean().
rests(#link{lanes = Lanes, peer = Peer, demand = Demand, cores = Cores} = Link) ->
    weft_link_state:is_up(Link)
        andalso weft_link_demand:is_steady(Demand, weft_link_state:above(Link), Peer, Cores)
        andalso weft_link_lanes:rest(Lanes).
