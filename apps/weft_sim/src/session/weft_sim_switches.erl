%% SPDX-License-Identifier: Apache-2.0
%% @doc The links of a simulated node: the carrier's own `weft_switch_core' for each, carried out on
%% simulated lanes. The counterpart of `weft_switch', with what a link knows of its lanes.
%%
%% On a new connection the two ends authenticate first (`weft_sim_calls'). Whether it becomes a
%% lane, and what it replaces, is said by the carrier's own `weft_link_welcome', and by
%% `weft_link_peer' if another incarnation of the peer answers.
%% Packets are those of `weft_wire', byte by byte. A socket takes some bytes; what is more waits
%% before it. The router of this world knows neighbours only. An end takes any neighbour but its
%% peer for gone once it has lost the link to it.
-module(weft_sim_switches).

-export([new/4, lanes/1, lane_up/2, lane_down/2, packet/4, overflow/3, message/3, down/2, write/3,
         sent/3, is_full/2, labels/1, keys/1]).
-export_type([switches/0, result/0, known/0, lane/0]).

-define(SOCKET_BYTES, 65536).
%% As they are by default.
-define(RELAY_BYTES_MAX, 67108864).
-define(RELAY_CIRCUITS_MAX, 4096).

-record(switches, {own :: binary(),
                   mortal :: [node()],
                   lanes :: weft_sim_lanes:lanes(),
                   links :: #{node() => weft_switch_core:state()},
                   %% How often each lane was connected: each time it is another one to the cores.
                   times = #{} :: #{Lane :: node() => pos_integer()},
                   calls :: weft_sim_calls:calls(),
                   %% What each lane is that is up, and who has brought it up.
                   keys = #{} :: #{Lane :: node() => {weft_lane:key(), dialer | listener}},
                   %% What the first lane to each peer has proved.
                   peers = #{} :: #{node() => weft_link_welcome:peer()},
                   %% Bytes that were written to each lane and have not left it.
                   unsent = #{} :: #{Lane :: node() => non_neg_integer()}}).
-opaque switches() :: #switches{}.

-type lane() :: weft_sim_calls:lane().
%% The counterpart of the table of `weft_sessions'.
-type known() :: #{sessions := #{weft_sessions:id() => {Input :: term(), Peer :: binary()}},
                   ended := #{weft_sessions:id() => weft_ended_sessions:row()}}.
%% told: what a session of this node hears. input: what its input gets, and by which lane. accept:
%% something has to serve a circuit. break: this end closes the lane. reached: a lane is up to
%% `now', and the link was with `before', if it knew one.
-type result() :: {send, Lane :: node(), {packet, pos_integer(), binary()}}
                | {break, Lane :: node()}
                | {reached, node(), #{before := non_neg_integer() | unknown,
                                      now := non_neg_integer()}}
                | {told, weft_sessions:id(), tuple()}
                | {input, weft_sessions:id(), lane(), weft_wire:packet()}
                | {accept, weft_wire:stream_kind(), weft_sessions:id(), Source :: binary(),
                   {node(), [lane()], weft_wire:label()}, Host :: node() | own_process}.

%% @doc Of a node in this incarnation with these lanes, none of which is up yet.
%% What is said of neighbours in Mortal when their link is lost ends circuits with them, and only
%% those.
-spec new(node(), #{Lane :: node() => Peer :: node()}, Mortal :: [node()],
          Incarnation :: non_neg_integer()) -> switches().
new(Self, Lanes, Mortal, Incarnation) ->
    Own = atom_to_binary(Self),
    Links = [{Peer, weft_switch_core:new(Peer, Own, atom_to_binary(Peer), ?RELAY_BYTES_MAX)}
             || Peer <- lists:usort(maps:values(Lanes))],
    #switches{own = Own, calls = weft_sim_calls:new(Own, Incarnation),
              lanes = weft_sim_lanes:new(Lanes), links = maps:from_list(Links), mortal = Mortal}.

%% @doc Which lanes are up.
-spec lanes(switches()) -> weft_sim_lanes:lanes().
lanes(#switches{lanes = Lanes}) -> Lanes.

%% @doc A lane is connected. It comes up when the peer has proved who it is.
-spec lane_up(Lane :: node(), switches()) -> {[result()], switches()}.
lane_up(Lane, Switches0) ->
    #switches{lanes = Lanes, times = Times, calls = Calls, unsent = Unsent} = Switches0,
    Peer = weft_sim_lanes:peer(Lane, Lanes),
    Switches = Switches0#switches{times = Times#{Lane => maps:get(Lane, Times, 0) + 1},
                                  unsent = maps:remove(Lane, Unsent)},
    called(weft_sim_calls:connected(time(Lane, Switches), Peer, link(Peer, Switches), Calls),
           Switches).

called({Sent, Calls}, Switches) ->
    {messages(Sent), Switches#switches{calls = Calls}}.

messages(Sent) -> [{send, Lane, {packet, byte_size(Raw), Raw}} || {Lane, Raw} <- Sent].

time(Lane, #switches{times = Times}) -> {Lane, map_get(Lane, Times)}.

%% As `weft_link' knows it. It is not cut on purpose, and calls do not cross, so that it does not
%% matter when it came up.
link(Peer, #switches{own = Own, lanes = Lanes, keys = Keys, peers = Peers} = Switches) ->
    #{own_name => Own, is_cut => false, up_us => 0, peer => maps:get(Peer, Peers, undefined),
      lanes => [{time(Lane, Switches), Key, Role} || Lane <- weft_sim_lanes:to(Peer, Lanes),
                                                     {Key, Role} <- [map_get(Lane, Keys)]]}.

greeted(Lane, Raw, Known, #switches{calls = Calls0, lanes = Lanes} = Switches0) ->
    Peer = weft_sim_lanes:peer(Lane, Lanes),
    {Sent, Next, Calls} = weft_sim_calls:heard(Lane, Raw, link(Peer, Switches0), Calls0),
    Switches1 = Switches0#switches{calls = Calls},
    {Results, #switches{calls = Left} = Switches} =
        case Next of
            more -> {[], Switches1};
            failed -> {[{break, Lane}], Switches1};
            {done, Facts, Purpose} -> attached(Lane, Peer, Purpose, Facts, Known, Switches1)
        end,
    {Further, Then} = called(weft_sim_calls:next(Peer, link(Peer, Switches), Left), Switches),
    {messages(Sent) ++ Results ++ Further, Then}.

%% As a link does that gets an authenticated connection.
attached(Lane, Peer, Purpose, #{incarnation := Now} = New, Known, Switches0) ->
    Link = link(Peer, Switches0),
    {Concluded, Welcome} = weft_link_welcome:met(Purpose, New, Link),
    {Over, Switches1} = concluded(Concluded, Peer, Switches0),
    case Welcome of
        refused ->
            {Over ++ [{break, Lane}], Switches1};
        {welcome, Replaces} ->
            {Down, Switches2} = make_room(Replaces, Peer, Switches1),
            {Up, Switches} = up(Lane, Peer, {Purpose, New}, Known, Switches2),
            Reached = #{before => incarnation(Link), now => Now},
            {Over ++ Down ++ Up ++ [{reached, Peer, Reached}], Switches}
    end.

incarnation(#{peer := #{incarnation := Incarnation}}) -> Incarnation;
incarnation(#{peer := undefined}) -> unknown.

concluded({restarted, _Now} = Restarted, Peer, #switches{peers = Peers} = Switches) ->
    link_down(Restarted, Peer, Switches#switches{peers = maps:remove(Peer, Peers)});
concluded(NothingOrSuperseded, _Peer, Switches)
  when NothingOrSuperseded =:= nothing; NothingOrSuperseded =:= superseded ->
    {[], Switches}.

make_room(nothing, _Peer, Switches) ->
    {[], Switches};
make_room({link_down, Reason}, Peer, Switches) ->
    link_down(Reason, Peer, Switches);
make_room({lane_down, {Lane, _} = Time}, Peer, #switches{lanes = Lanes} = Switches0) ->
    {Results, Switches} = decided(Peer, fun(Core) -> weft_switch_core:lane_down(Time, Core) end,
                                  Switches0#switches{lanes = weft_sim_lanes:down(Lane, Lanes)}),
    {[{break, Lane} | Results], Switches}.

%% This end closes all lanes.
link_down(Reason, Peer, #switches{lanes = Lanes0} = Switches) ->
    Old = weft_sim_lanes:to(Peer, Lanes0),
    Lanes = lists:foldl(fun weft_sim_lanes:down/2, Lanes0, Old),
    {Results, Down} = decided(Peer, fun(Core) -> weft_switch_core:link_down(Reason, Core) end,
                              Switches#switches{lanes = Lanes}),
    {[{break, Lane} || Lane <- Old] ++ Results, Down}.

up(Lane, Peer, {Purpose, #{role := Role} = New}, #{sessions := Sessions, ended := Ended},
   #switches{lanes = Lanes, keys = Keys, peers = Peers} = Switches) ->
    Name = atom_to_binary(Peer),
    Key = weft_link_welcome:key(Purpose),
    Here = fun() -> {[Id || {Id, {_, Far}} <- maps:to_list(Sessions), Far =:= Name],
                     weft_ended_sessions:told(Name, maps:values(Ended))} end,
    Up = fun(Core) -> weft_switch_core:lane_up(time(Lane, Switches), Key, Here, Core) end,
    Known = weft_link_welcome:peer(Purpose, New, maps:get(Peer, Peers, undefined)),
    decided(Peer, Up, Switches#switches{lanes = weft_sim_lanes:up(Lane, Lanes),
                                        keys = Keys#{Lane => {Key, Role}},
                                        peers = Peers#{Peer => Known}}).

%% @doc A lane is lost, if it was up.
-spec lane_down(Lane :: node(), switches()) -> {[result()], switches()}.
lane_down(Lane, #switches{calls = Calls, lanes = Lanes} = Switches) ->
    case weft_sim_calls:is_open(Lane, Calls) of
        true ->
            Link = link(weft_sim_lanes:peer(Lane, Lanes), Switches),
            called(weft_sim_calls:lost(Lane, Link, Calls), Switches);
        false ->
            lost(Lane, Switches)
    end.

lost(Lane, #switches{lanes = Lanes0, unsent = Unsent, mortal = Mortal} = Switches) ->
    Peer = weft_sim_lanes:peer(Lane, Lanes0),
    Lanes = weft_sim_lanes:down(Lane, Lanes0),
    Left = Switches#switches{lanes = Lanes, unsent = maps:remove(Lane, Unsent)},
    case {weft_sim_lanes:to(Peer, Lanes0), weft_sim_lanes:to(Peer, Lanes)} of
        {Same, Same} -> {[], Switches};
        {_, []} ->
            Reason = case lists:member(Peer, Mortal) of true -> gone; false -> broken end,
            decided(Peer, fun(Core) -> weft_switch_core:link_down(Reason, Core) end, Left);
        {_, _} ->
            decided(Peer, fun(Core) -> weft_switch_core:lane_down(time(Lane, Left), Core) end, Left)
    end.

%% @doc What came by Lane; the sessions of this node are known.
-spec packet(Lane :: node(), Raw :: binary(), known(), switches()) -> {[result()], switches()}.
packet(Lane, Raw, Known, #switches{lanes = Lanes, calls = Calls} = Switches) ->
    Peer = weft_sim_lanes:peer(Lane, Lanes),
    case weft_sim_calls:is_open(Lane, Calls) of
        true ->
            greeted(Lane, Raw, Known, Switches);
        false ->
            case lists:member(Lane, weft_sim_lanes:to(Peer, Lanes)) of
                true ->
                    packet(weft_wire:decode(Raw), Raw, Peer, time(Lane, Switches), Known, Switches);
                false -> {[], Switches}
            end
    end.

packet(Decoded, Raw, Peer, Lane, Known,
       #switches{own = Own, lanes = Lanes, links = Links} = Switches) ->
    case Decoded of
        {open, Label, #{target := Own, session := Id} = Open} ->
            Found = find(Id, Known),
            decided(Peer, fun(Core) -> weft_switch_core:opened(Label, Open, Lane, Found, Core) end,
                    Switches);
        {open, Label, #{target := Target} = Open} ->
            decided(Peer, fun(Core) ->
                              weft_switch_gateway:forward(Label, Open, Lane, next(Target, Lanes),
                                                          ?RELAY_CIRCUITS_MAX, Core)
                          end, Switches);
        {timed_out, Id} ->
            carry_out(weft_switch_core:timed_out(find(Id, Known), map_get(Peer, Links)), [],
                      Switches);
        Packet ->
            labelled(Packet, Raw, Peer, Lane, Switches)
    end.

find(Id, #{sessions := Sessions, ended := Ended}) ->
    case {Sessions, Ended} of
        {#{Id := {Input, Peer}}, _} -> {ok, Id, Input, Peer};
        {_, #{Id := {_, How, _}}} -> How;
        {_, _} -> error
    end.

next(Target, Lanes) ->
    case [Peer || Peer <- weft_sim_lanes:peers(Lanes), atom_to_binary(Peer) =:= Target] of
        [Link] -> {ok, Target, Link};
        [] -> error
    end.

labelled(Packet, Raw, Peer, Lane, #switches{links = Links} = Switches) ->
    case weft_switch_core:packet(Packet, Lane, map_get(Peer, Links)) of
        {here, Session} ->
            {[{input, Session, Lane, Packet}], Switches};
        {pass, Session, _Input} ->
            {[{input, Session, Lane, Packet}], Switches};
        {relay, Relay} ->
            relay(Relay, element(2, Packet), Raw, Peer, Switches);
        {done, Core, Effects} ->
            carry_out(Effects, [], Switches#switches{links = Links#{Peer := Core}})
    end.

relay(Relay, Label, Raw, Peer, #switches{links = Links} = Switches) ->
    {Waiting, Lane} = weft_relay:lane(fun(To) -> waiting(To, Switches) end, Raw, Relay),
    case weft_switch_gateway:relay(Relay, Label, Waiting, map_get(Peer, Links)) of
        {send, OtherLabel} ->
            write(Lane, weft_wire:relabel(Raw, OtherLabel), Switches);
        {done, Core, Effects} ->
            carry_out(Effects, [], Switches#switches{links = Links#{Peer := Core}})
    end.

waiting({Lane, _} = Time, #switches{unsent = Unsent} = Switches) ->
    case is_open(Time, Switches) of
        true -> max(0, maps:get(Lane, Unsent, 0) - ?SOCKET_BYTES);
        false -> 0
    end.

%% @doc The input of the session could not take what came under that label.
-spec overflow(lane(), weft_wire:label(), switches()) -> {[result()], switches()}.
overflow({Lane, _} = Time, Label, #switches{lanes = Lanes} = Switches) ->
    decided(weft_sim_lanes:peer(Lane, Lanes),
            fun(Core) -> weft_switch_core:overflow(Label, Time, Core) end, Switches).

%% @doc What a session of this node says to a link.
-spec message(Link :: node(), weft_switch_core:message(), switches()) -> {[result()], switches()}.
message(Link, Message, Switches) ->
    decided(Link, fun(Core) -> weft_switch_core:message(Message, Core) end, Switches).

%% @doc A session has ended: each link is told so, whether it watches that session or not.
-spec down(weft_sessions:id(), switches()) -> {[result()], switches()}.
down(Session, #switches{links = Links} = Switches0) ->
    lists:foldl(fun(Link, {Results, Switches1}) ->
                    {More, Switches} = message(Link, {down, Session}, Switches1),
                    {Results ++ More, Switches}
                end, {[], Switches0}, lists:sort(maps:keys(Links))).

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

effect({tell, _Input, {weft_packet, Session, Link, _Lane, Label, {close, Label, Reason}}},
       Switches) ->
    {[{told, Session, {weft_path, closed, Link, Label, Reason}}], Switches};
effect({tell, Session, Message}, Switches) ->
    {[{told, Session, Message}], Switches};
effect({link, Link, Message}, Switches) ->
    message(Link, Message, Switches);
effect({write, Lane, Packet}, Switches) ->
    write(Lane, Packet, Switches);
effect({accept, Kind, Id, Source, Path, Host}, Switches) ->
    {[{accept, Kind, Id, Source, Path, Host}], Switches};
%% Links do not crash here without their node, and all of them hear of the end of a session.
effect({watch, _}, Switches) ->
    {[], Switches}.

%% --- lanes ------------------------------------------------------------------------------------

%% @doc Writes a packet to a lane, if it is still the same one.
-spec write(lane(), iodata(), switches()) -> {[result()], switches()}.
write({Lane, _} = Time, Packet, #switches{unsent = Unsent} = Switches) ->
    case is_open(Time, Switches) of
        true ->
            Raw = iolist_to_binary(Packet),
            Bytes = maps:get(Lane, Unsent, 0) + byte_size(Raw),
            {[{send, Lane, {packet, byte_size(Raw), Raw}}],
             Switches#switches{unsent = Unsent#{Lane => Bytes}}};
        false ->
            {[], Switches}
    end.

is_open({Lane, Time}, #switches{lanes = Lanes, times = Times}) ->
    map_get(Lane, Times) =:= Time
        andalso lists:member(Lane, weft_sim_lanes:to(weft_sim_lanes:peer(Lane, Lanes), Lanes)).

%% @doc So much has left a lane. Which one it is to the cores.
-spec sent(Lane :: node(), Bytes :: pos_integer(), switches()) -> {lane(), switches()}.
sent(Lane, Bytes, #switches{unsent = Unsent} = Switches) ->
    {time(Lane, Switches),
     Switches#switches{unsent = Unsent#{Lane => max(0, maps:get(Lane, Unsent, 0) - Bytes)}}}.

%% @doc Does a lane keep what is written to it waiting?
-spec is_full(lane(), switches()) -> boolean().
is_full(Lane, Switches) -> waiting(Lane, Switches) > 0.

%% @doc How many labels the links know.
-spec labels(switches()) -> non_neg_integer().
labels(#switches{links = Links}) ->
    lists:sum([map_get(labels, weft_switch_core:info(Core)) || Core <- maps:values(Links)]).

%% @doc What each lane is that is up, and who has brought it up.
-spec keys(switches()) -> #{Lane :: node() => {weft_lane:key(), dialer | listener}}.
keys(#switches{lanes = Lanes, keys = Keys}) ->
    maps:with(lists:append([weft_sim_lanes:to(Peer, Lanes) || Peer <- weft_sim_lanes:peers(Lanes)]),
              Keys).
