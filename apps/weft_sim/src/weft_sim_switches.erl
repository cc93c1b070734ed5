%% SPDX-License-Identifier: Apache-2.0
%% @doc The links of a simulated node: the carrier's own `weft_switch_core' for each, carried out on
%% simulated lanes. The counterpart of `weft_switch', with what a link knows of its lanes.
%%
%% A link is called by the node at its other end. Packets are those of `weft_wire', byte by byte. A
%% socket takes some bytes; what is more waits before it. The router of this world knows neighbours
%% only. An end takes any neighbour but its peer for gone once it has lost the link to it.
-module(weft_sim_switches).

-export([new/3, lanes/1, lane_up/3, lane_down/2, packet/4, overflow/3, message/3, write/3, sent/3,
         is_full/2, labels/1]).
-export_type([switches/0, result/0, found/0]).

-define(SOCKET_BYTES, 65536).
%% As they are by default.
-define(RELAY_BYTES_MAX, 67108864).
-define(RELAY_CIRCUITS_MAX, 4096).

-record(switches, {own :: binary(),
                   mortal :: [node()],
                   lanes :: weft_sim_lanes:lanes(),
                   links :: #{node() => weft_switch_core:state()},
                   %% Bytes that were written to each lane and have not left it.
                   unsent = #{} :: #{Lane :: node() => non_neg_integer()}}).
-opaque switches() :: #switches{}.

%% What `weft_sessions' knows of a session.
-type found() :: {ok, Session :: term(), Input :: term(), Peer :: binary()} | error.
%% told: what the session of this node hears. input: what its input gets, and by which lane. accept:
%% something has to serve a circuit.
-type result() :: {send, Lane :: node(), {packet, pos_integer(), binary()}}
                | {told, tuple()}
                | {input, Lane :: node(), weft_wire:packet()}
                | {accept, weft_wire:stream_kind(), Source :: binary(),
                   {node(), [node()], weft_wire:label()}, Host :: node() | own_process}.

%% @doc Of a node with these lanes, none of which is up yet.
%% What is said of neighbours in Mortal when their link is lost ends circuits with them, and only
%% those.
-spec new(node(), #{Lane :: node() => Peer :: node()}, Mortal :: [node()]) -> switches().
new(Self, Lanes, Mortal) ->
    Own = atom_to_binary(Self),
    Links = [{Peer, weft_switch_core:new(Peer, Own, atom_to_binary(Peer), ?RELAY_BYTES_MAX)}
             || Peer <- lists:usort(maps:values(Lanes))],
    #switches{own = Own, lanes = weft_sim_lanes:new(Lanes), links = maps:from_list(Links),
              mortal = Mortal}.

%% @doc Which lanes are up.
-spec lanes(switches()) -> weft_sim_lanes:lanes().
lanes(#switches{lanes = Lanes}) -> Lanes.

%% @doc A lane came up; Sessions are those of this node with the peer of it.
-spec lane_up(Lane :: node(), Sessions :: [term()], switches()) -> {[result()], switches()}.
lane_up(Lane, Sessions, #switches{lanes = Lanes, unsent = Unsent} = Switches) ->
    Peer = weft_sim_lanes:peer(Lane, Lanes),
    Up = fun(Core) ->
             weft_switch_core:lane_up(Lane, {<<>>, 0},
                                      case weft_switch_core:is_up(Core) of
                                          true -> {[], []};
                                          false -> {Sessions, []}
                                      end, Core)
         end,
    decided(Peer, Up, Switches#switches{lanes = weft_sim_lanes:up(Lane, Lanes),
                                        unsent = maps:remove(Lane, Unsent)}).

%% @doc A lane is lost, if it was up.
-spec lane_down(Lane :: node(), switches()) -> {[result()], switches()}.
lane_down(Lane, #switches{lanes = Lanes0, unsent = Unsent, mortal = Mortal} = Switches) ->
    Peer = weft_sim_lanes:peer(Lane, Lanes0),
    Lanes = weft_sim_lanes:down(Lane, Lanes0),
    Left = Switches#switches{lanes = Lanes, unsent = maps:remove(Lane, Unsent)},
    case {weft_sim_lanes:to(Peer, Lanes0), weft_sim_lanes:to(Peer, Lanes)} of
        {Same, Same} -> {[], Switches};
        {_, []} ->
            Reason = case lists:member(Peer, Mortal) of true -> gone; false -> broken end,
            decided(Peer, fun(Core) -> weft_switch_core:link_down(Reason, Core) end, Left);
        {_, _} -> decided(Peer, fun(Core) -> weft_switch_core:lane_down(Lane, Core) end, Left)
    end.

%% @doc A packet came by Lane. Found is the session of this node, if there is one.
-spec packet(Lane :: node(), Raw :: binary(), found(), switches()) -> {[result()], switches()}.
packet(Lane, Raw, Found, #switches{own = Own, lanes = Lanes} = Switches) ->
    Peer = weft_sim_lanes:peer(Lane, Lanes),
    case weft_wire:decode(Raw) of
        {open, Label, #{target := Own} = Open} ->
            decided(Peer, fun(Core) -> weft_switch_core:opened(Label, Open, Lane, Found, Core) end,
                    Switches);
        {open, Label, #{target := Target} = Open} ->
            decided(Peer, fun(Core) ->
                              weft_switch_core:forward(Label, Open, Lane, next(Target, Lanes),
                                                       ?RELAY_CIRCUITS_MAX, Core)
                          end, Switches);
        Packet ->
            labelled(Packet, Raw, Peer, Lane, Switches)
    end.

next(Target, Lanes) ->
    case [Peer || Peer <- weft_sim_lanes:peers(Lanes), atom_to_binary(Peer) =:= Target] of
        [Link] -> {ok, Target, Link};
        [] -> error
    end.

labelled(Packet, Raw, Peer, Lane, #switches{links = Links} = Switches) ->
    case weft_switch_core:packet(Packet, Lane, map_get(Peer, Links)) of
        {here, _Session} ->
            {[{input, Lane, Packet}], Switches};
        {pass, _Session, _Input} ->
            {[{input, Lane, Packet}], Switches};
        {relay, Relay} ->
            relay(Relay, element(2, Packet), Raw, Peer, Switches);
        {done, Core, Effects} ->
            carry_out(Effects, [], Switches#switches{links = Links#{Peer := Core}})
    end.

relay(Relay, Label, Raw, Peer, #switches{links = Links} = Switches) ->
    {Waiting, Lane} = lane(Relay, weft_relay:preferred(Relay, Raw), Switches),
    case weft_switch_core:relay(Relay, Label, Waiting, map_get(Peer, Links)) of
        {send, OtherLabel} ->
            {Sent, Written} = write(Lane, weft_wire:relabel(Raw, OtherLabel), Switches),
            {[Sent], Written};
        {done, Core, Effects} ->
            carry_out(Effects, [], Switches#switches{links = Links#{Peer := Core}})
    end.

lane(Relay, Preferred, Switches) ->
    case waiting(Preferred, Switches) of
        0 -> {0, Preferred};
        _ -> lists:min([{waiting(Lane, Switches), Lane}
                        || Lane <- weft_relay:next_lanes(Relay)])
    end.

waiting(Lane, #switches{unsent = Unsent}) ->
    max(0, maps:get(Lane, Unsent, 0) - ?SOCKET_BYTES).

%% @doc The input of the session could not take what came under that label.
-spec overflow(Lane :: node(), weft_wire:label(), switches()) -> {[result()], switches()}.
overflow(Lane, Label, #switches{lanes = Lanes} = Switches) ->
    decided(weft_sim_lanes:peer(Lane, Lanes),
            fun(Core) -> weft_switch_core:overflow(Label, Lane, Core) end, Switches).

%% @doc What the session of this node says to a link.
-spec message(Link :: node(), weft_switch_core:message(), switches()) -> {[result()], switches()}.
message(Link, Message, Switches) ->
    decided(Link, fun(Core) -> weft_switch_core:message(Message, Core) end, Switches).

decided(Link, Decide, #switches{links = Links} = Switches) ->
    {Core, Effects} = Decide(map_get(Link, Links)),
    carry_out(Effects, [], Switches#switches{links = Links#{Link := Core}}).

%% --- what the cores want done -----------------------------------------------------------------

%% Done: newest first.
carry_out([], Done, Switches) ->
    {lists:reverse(Done), Switches};
carry_out([Effect | Effects], Done, Switches0) ->
    {Results, Switches} = effect(Effect, Switches0),
    carry_out(Effects, lists:reverse(Results, Done), Switches).

effect({tell, _Input, {weft_packet, _Session, Link, _Lane, Label, {close, Label, Reason}}},
       Switches) ->
    {[{told, {weft_path, closed, Link, Label, Reason}}], Switches};
effect({tell, _Session, Message}, Switches) ->
    {[{told, Message}], Switches};
effect({link, Link, Message}, Switches) ->
    message(Link, Message, Switches);
effect({write, Lane, Packet}, Switches0) ->
    {Sent, Switches} = write(Lane, Packet, Switches0),
    {[Sent], Switches};
effect({accept, Kind, _Id, Source, Path, Host}, Switches) ->
    {[{accept, Kind, Source, Path, Host}], Switches};
%% Neither sessions nor links crash here without their node.
effect({watch, _}, Switches) ->
    {[], Switches}.

%% --- lanes ------------------------------------------------------------------------------------

%% @doc Writes a packet to a lane.
-spec write(Lane :: node(), iodata(), switches()) -> {result(), switches()}.
write(Lane, Packet, #switches{unsent = Unsent} = Switches) ->
    Raw = iolist_to_binary(Packet),
    {{send, Lane, {packet, byte_size(Raw), Raw}},
     Switches#switches{unsent = Unsent#{Lane => maps:get(Lane, Unsent, 0) + byte_size(Raw)}}}.

%% @doc So much has left a lane.
-spec sent(Lane :: node(), Bytes :: pos_integer(), switches()) -> switches().
sent(Lane, Bytes, #switches{unsent = Unsent} = Switches) ->
    Switches#switches{unsent = Unsent#{Lane => max(0, maps:get(Lane, Unsent, 0) - Bytes)}}.

%% @doc Does a lane keep what is written to it waiting?
-spec is_full(Lane :: node(), switches()) -> boolean().
is_full(Lane, Switches) -> waiting(Lane, Switches) > 0.

%% @doc How many labels the links know.
-spec labels(switches()) -> non_neg_integer().
labels(#switches{links = Links}) ->
    lists:sum([map_get(labels, weft_switch_core:info(Core)) || Core <- maps:values(Links)]).
