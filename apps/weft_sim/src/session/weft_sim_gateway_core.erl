%% SPDX-License-Identifier: Apache-2.0
%% @doc A gateway in the simulator: links (`weft_sim_switches') over simulated lanes
%% (`weft_sim_lane_core'), between which circuits pass.
%%
%% What is done with labels and packets is the carrier's own: `weft_switch_core', and
%% `weft_switch_gateway' for circuits that pass. No session ends here, so nobody is told anything.
-module(weft_sim_gateway_core).
-behaviour(weft_core).

-export([init/2, handle/3, labels/2, keys/2]).

-define(NOBODY, #{sessions => #{}, ended => #{}}).

%% @doc Option: `lanes', whom each lane leads to.
-spec init(node(), map()) -> {weft_sim_switches:switches(), weft_core:effects()}.
init(Self, #{lanes := Lanes} = Options) ->
    {weft_sim_switches:new(Self, Lanes, [], maps:get(incarnation, Options, 0)), []}.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), weft_sim_switches:switches()) ->
          {weft_sim_switches:switches(), weft_core:effects()}.
handle({message, Lane, lane_up}, _NowMs, Gateway) ->
    done(weft_sim_switches:lane_up(Lane, Gateway));
handle({neighbour_down, Lane, _}, _NowMs, Gateway) ->
    done(weft_sim_switches:lane_down(Lane, Gateway));
handle({message, Lane, {carried, Raw}}, _NowMs, Gateway) ->
    done(weft_sim_switches:packet(Lane, Raw, ?NOBODY, Gateway));
handle({message, Lane, {sent, Bytes}}, _NowMs, Gateway) ->
    {_, Sent} = weft_sim_switches:sent(Lane, Bytes, Gateway),
    {Sent, []};
handle(_Other, _NowMs, Gateway) ->
    {Gateway, []}.

done({Results, Gateway}) ->
    {Gateway, [Result || Result <- Results, element(1, Result) =/= reached]}.

%% @doc For the checkers: how many labels are known.
-spec labels(node(), weft_sim_world:world()) -> non_neg_integer().
labels(Node, World) -> weft_sim_switches:labels(gateway(Node, World)).

%% @doc For the checkers: what each lane is.
-spec keys(node(), weft_sim_world:world()) -> #{node() => {weft_lane:key(), dialer | listener}}.
keys(Node, World) -> weft_sim_switches:keys(gateway(Node, World)).

gateway(Node, World) ->
    {ok, Gateway} = weft_sim_world:machine(Node, session, World),
    Gateway.
