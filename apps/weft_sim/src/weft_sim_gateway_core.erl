%% SPDX-License-Identifier: Apache-2.0
%% @doc A gateway in the simulator: relays the packets of circuits by their labels, as `weft_switch'
%% does, over links of several lanes (`weft_sim_lane_core'). It forgets the labels of a link when
%% one lane of it is lost, since what was queued there is gone.
%%
%% Packets are `{open, Label, Received}' and others that carry their label as second element.
-module(weft_sim_gateway_core).
-behaviour(weft_core).

-export([init/2, handle/3]).

-define(CONTROL_BYTES, 20).

-record(gateway, {lanes :: weft_sim_lanes:lanes(),
                  %% {Neighbour, Label} to the other side.
                  labels = #{} :: #{side() => side()},
                  next_label = 1000000 :: pos_integer(),
                  next_lane = 1 :: pos_integer()}).
-type side() :: {node(), Label :: pos_integer()}.

%% @doc Option: `lanes', whom each lane leads to.
-spec init(node(), map()) -> {#gateway{}, weft_core:effects()}.
init(_Self, #{lanes := Lanes}) ->
    {#gateway{lanes = weft_sim_lanes:new(Lanes)}, []}.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #gateway{}) -> {#gateway{}, weft_core:effects()}.
handle({message, Lane, lane_up}, _NowMs, #gateway{lanes = Lanes} = Gateway) ->
    {Gateway#gateway{lanes = weft_sim_lanes:up(Lane, Lanes)}, []};
handle({neighbour_down, Lane, _}, _NowMs, #gateway{lanes = Lanes} = Gateway) ->
    Peer = weft_sim_lanes:peer(Lane, Lanes),
    case lists:member(Lane, weft_sim_lanes:to(Peer, Lanes)) of
        true -> lose(Peer, Gateway#gateway{lanes = weft_sim_lanes:down(Lane, Lanes)});
        false -> {Gateway, []}
    end;
handle({message, Lane, {carried, Packet}}, _NowMs, #gateway{lanes = Lanes} = Gateway) ->
    relay({weft_sim_lanes:peer(Lane, Lanes), element(2, Packet)}, Packet, Gateway);
handle(_Other, _NowMs, Gateway) ->
    {Gateway, []}.

lose(Peer, #gateway{labels = Labels} = Gateway) ->
    Lost = [Pair || {{Neighbour, _}, _} = Pair <- lists:sort(maps:to_list(Labels)),
                    Neighbour =:= Peer],
    lists:foldl(fun({Side, Other}, {G0, Effects}) ->
                    {G1, One} = to(Side, {close, label}, G0),
                    {G2, Two} = to(Other, {close, label}, G1),
                    {G2, Effects ++ One ++ Two}
                end,
                {Gateway#gateway{labels = maps:without(lists:append([[Side, Other]
                                                                     || {Side, Other} <- Lost]),
                                                       Labels)}, []},
                Lost).

%% Two neighbours matter to a gateway here: the end that asks and the other one.
relay({From, _} = Side, {open, _, _} = Open, #gateway{lanes = Lanes, labels = Labels,
                                                      next_label = Next} = Gateway) ->
    case weft_sim_lanes:peers(Lanes) -- [From] of
        [Peer | _] ->
            Other = {Peer, Next},
            to(Other, Open, Gateway#gateway{labels = Labels#{Side => Other, Other => Side},
                                            next_label = Next + 1});
        [] ->
            to(Side, {close, label}, Gateway)
    end;
relay(Side, Packet, #gateway{labels = Labels} = Gateway) ->
    case {Labels, element(1, Packet)} of
        {#{Side := Other}, close} ->
            to(Other, Packet, Gateway#gateway{labels = maps:without([Side, Other], Labels)});
        {#{Side := Other}, _} ->
            to(Other, Packet, Gateway);
        {#{}, close} ->
            {Gateway, []};
        {#{}, _} ->
            to(Side, {close, label}, Gateway)
    end.

%% Lanes in turn.
to({Peer, Label}, Packet, #gateway{lanes = Lanes, next_lane = N} = Gateway) ->
    case weft_sim_lanes:to(Peer, Lanes) of
        [] ->
            {Gateway, []};
        Up ->
            Lane = lists:nth(1 + N rem length(Up), Up),
            {Gateway#gateway{next_lane = N + 1},
             [{send, Lane, {packet, bytes(Packet), setelement(2, Packet, Label)}}]}
    end.

bytes({data, _Label, _Sequence, _Kind, Payload}) -> byte_size(Payload) + ?CONTROL_BYTES;
bytes(_Control) -> ?CONTROL_BYTES.
