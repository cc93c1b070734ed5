%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of the circuits on one link: which label leads where, and which process is told
%% what.
%%
%% Pure; called in place by the process of the link. `weft_switch' carries out what this module
%% decides; the simulator does so on simulated lanes. Links, lanes and sessions are opaque terms
%% here.
%%
%% An end opens a circuit with the target's name. Each end has labels of its own
%% (`weft_circuit_labels'). On a gateway a label is joined to one of another link
%% (`weft_switch_gateway'). While the link is down, who asks for a circuit waits
%% (`weft_pending_circuits'). A circuit ends with a close in both directions. It is not repeated: a
%% packet for an unknown label is answered by one.
%%
%% Races: the last lane may be lost before a session has joined.
-module(weft_switch_core).

-export([new/4, lane_up/4, lane_down/2, link_down/2, dial_failed/2, is_pending/1,
         is_in_use/1, wants_lanes/1, info/1,
         packet/3, opened/5, overflow/3, timed_out/2, message/2]).
-export_type([state/0, message/0, effect/0, verdict/0]).

-import(weft_switch_state, [lanes_for/2, closed/4, local/3, watch/2, tell/2, forget/2, allocate/1,
                            close_all/3]).

-include("weft_switch_state.hrl").

%% On the way of each message: not calls.
-compile({inline, [local_packet/4, input/3]}).

%% Nothing new begins to serve a circuit here when its link has so many labels. Those of circuits
%% that pass count, too, and have a bound of their own (relay_circuits_max).
-define(LABELS_MAX, 65536).

%% here: for the input of a session that this link delivers. pass: for the input of a session
%% elsewhere. relay: to be sent on.
-type verdict() :: {here, session()} | {pass, session(), input()} | {relay, weft_relay:relay()}
                 | {done, state(), [effect()]}.

-type state() :: weft_switch_state:state().
-type effect() :: weft_switch_state:effect().
-type message() :: weft_switch_state:message().
-type lane() :: weft_switch_state:lane().
-type session() :: weft_switch_state:session().
-type input() :: weft_switch_state:input().
-type label() :: weft_wire:label().

-type found() :: {ok, session(), input(), Peer :: binary()} | timed_out | disconnected | error.

%% --- the link ---------------------------------------------------------------------------------

%% @doc For the link called Link on this node, between the nodes of these names.
-spec new(weft_switch_state:link(), Own :: binary(), Peer :: binary(),
          RelayBytesMax :: pos_integer()) -> state().
new(Link, Own, Name, RelayBytesMax) ->
    #switch{link = Link, name = Name, relay_bytes_max = RelayBytesMax,
            next_label = weft_circuit_labels:first(Own, Name)}.

%% @doc A lane came up. If it is the first one, Known() says which sessions with the peer there are,
%% and of which ended ones the peer may not know yet (`weft_ended_sessions').
-spec lane_up(lane(), weft_lane:key(), Known :: fun(() -> {[session()], Ended :: [<<_:128>>]}),
              state()) -> {state(), [effect()]}.
lane_up(Lane, Key, Known, #switch{lanes = Lanes, pending = Pending} = Switch0) ->
    Told = told(Lane, Known, Switch0),
    Switch = Switch0#switch{lanes = Lanes ++ [{Lane, Key}], pending = []},
    %% The other links of circuits that pass write to the new lane, too.
    {Labels, Relayed} = weft_relay:lanes_changed(Switch#switch.lanes, Switch#switch.labels),
    {Switch#switch{labels = Labels},
     Told ++ tell_lanes(Switch) ++ Relayed
         ++ [{tell, Session, {weft_path, up, Switch#switch.link}}
             || Session <- weft_pending_circuits:sessions(Pending)]}.

told(Lane, Known, #switch{lanes = []} = Switch) ->
    {Sessions, Ended} = Known(),
    [{write, Lane, weft_wire:timed_out(Id)} || Id <- Ended] ++ tell_available(Sessions, Switch);
told(_Lane, _Known, _Switch) ->
    [].

%% Sessions that took a detour, or began on one, while this link was down may come back.
tell_available(Sessions, #switch{link = Link, pending = Pending}) ->
    [{tell, Session, {weft_path, available, Link}}
     || Session <- Sessions, not weft_pending_circuits:is_pending(Session, Pending)].

%% @doc A lane is lost while others are up.
-spec lane_down(lane(), state()) -> {state(), [effect()]}.
lane_down(Lane, #switch{labels = Labels, lanes = Lanes} = Switch0) ->
    Switch1 = Switch0#switch{lanes = lists:keydelete(Lane, 1, Lanes)},
    {Switch, Lost} = each(fun lose_relay/2, weft_relay:by_lane(Lane, Labels), Switch1),
    {Switch, tell_lanes(Switch1) ++ Lost}.

%% The end beyond this link may have nothing to send, by which it would find out. If it is the one
%% that asks for a path the other end waits for it.
lose_relay(Label, Switch0) ->
    {Switch, Lost} = lose_label(Label, broken, Switch0),
    {Switch, Lost ++ tell(weft_wire:close(Label, broken), Switch)}.

each(Do, Items, Switch) ->
    lists:foldl(fun(Item, {S0, Effects}) ->
                    {S, More} = Do(Item, S0),
                    {S, Effects ++ More}
                end, {Switch, []}, Items).

%% Streams that end here go on with the lanes that there are now.
tell_lanes(#switch{link = Link, labels = Labels} = Switch) ->
    [{tell, Session, {weft_path, lanes, Link, Label, lanes_for(Kind, Switch)}}
     || {Label, #local{session = Session, kind = Kind}} <- maps:to_list(Labels)].

%% @doc All lanes are lost.
-spec link_down(weft_link_handler:down_reason(), state()) -> {state(), [effect()]}.
link_down(Reason, #switch{labels = Labels, name = Name, pending = Pending} = Switch0) ->
    {Switch1, Lost} = each(fun(Label, S) -> lose_label(Label, Reason, S) end, maps:keys(Labels),
                           Switch0),
    Switch = Switch1#switch{lanes = []},
    Sessions = maps:keys(Switch#switch.hosted),
    case Reason of
        broken ->
            {Switch, Lost};
        departed ->
            {Switch, Lost ++ [closed(Session, any, departed, Switch) || Session <- Sessions]};
        gone ->
            %% A session that had moved to a circuit has no label here.
            {Over, Kept} = weft_pending_circuits:split(Name, Pending),
            {Switch#switch{pending = Kept},
             Lost ++ [closed(Session, any, gone, Switch) || Session <- Sessions ++ Over]};
        {restarted, Incarnation} ->
            %% A session that waits here may not have begun, or be with the present one, by another
            %% way: it knows (`weft_stream_core').
            {Waiting, _} = weft_pending_circuits:split(Name, Pending),
            {Switch, Lost ++ [{tell, Session, {weft_path, restarted, Incarnation}}
                              || Session <- lists:usort(Sessions ++ Waiting)]}
    end.

%% @doc The neighbour cannot be dialled.
-spec dial_failed(Reason :: term(), state()) -> {state(), [effect()]}.
dial_failed(Reason, #switch{pending = Pending, name = Name} = Switch) ->
    {Switch#switch{pending = []},
     [closed(Session, any, Why, Switch)
      || {Session, Why} <- weft_pending_circuits:dial_failed(Reason, Name, Pending)]}.

%% @doc Does a session wait for the link to come up?
-spec is_pending(state()) -> boolean().
is_pending(#switch{pending = Pending}) -> Pending =/= [].

%% @doc Does any circuit depend on the link?
-spec is_in_use(state()) -> boolean().
is_in_use(#switch{pending = Pending, hosted = Hosted, labels = Labels}) ->
    Pending =/= [] orelse map_size(Hosted) > 0 orelse map_size(Labels) > 0.

%% @doc The lanes that streams of channels would have for themselves.
-spec wants_lanes(state()) -> [weft_lane:key()].
wants_lanes(#switch{channels = Channels}) -> lists:usort(maps:values(Channels)).

%% @doc Sessions, labels, and each circuit that passes through this node.
-spec info(state()) -> #{atom() => term()}.
info(#switch{labels = Labels, hosted = Hosted}) ->
    #{sessions => maps:keys(Hosted), labels => map_size(Labels),
      circuits => weft_relay:info(Labels)}.

%% --- packets from the peer --------------------------------------------------------------------

%% @doc What to do with a packet that has a label and opens nothing.
-spec packet(weft_wire:packet(), lane(), state()) -> verdict().
packet(Packet, Lane, #switch{labels = Labels} = Switch) ->
    Label = element(2, Packet),
    case Labels of
        #{Label := #local{} = Local} -> local_packet(Packet, Lane, Local, Switch);
        #{Label := Relay} -> relay_packet(Packet, Relay, Switch);
        _ -> {done, Switch, unknown(Packet, Lane)}
    end.

local_packet({data, _, _, _, _}, _Lane, #local{session = Session, input = Input}, Switch) ->
    input(Session, Input, Switch);
local_packet({tick, _}, _Lane, #local{session = Session, input = Input}, Switch) ->
    input(Session, Input, Switch);
local_packet({times, _}, _Lane, #local{session = Session, input = Input}, Switch) ->
    input(Session, Input, Switch);
local_packet({ack, _, Sequence}, _Lane, #local{session = Session}, Switch) ->
    {done, Switch, [{tell, Session, {weft_ack, Sequence}}]};
local_packet({arrived, _, Sequence, AtUs}, _Lane, #local{session = Session}, Switch) ->
    {done, Switch, [{tell, Session, {weft_ack, Sequence, AtUs}}]};
local_packet({accept, Label, Received}, _Lane, #local{session = Session, kind = Kind},
             #switch{link = Link} = Switch) ->
    {done, Switch, [{tell, Session, {weft_path, accepted, Link, lanes_for(Kind, Switch), Label,
                                     Received}}]};
local_packet({incarnation, _, Incarnation}, _Lane, #local{session = Session}, Switch) ->
    {done, Switch, [{tell, Session, {weft_path, incarnation, Incarnation}}]};
local_packet({close, Label, Reason} = Packet, Lane, #local{session = Session, input = Input},
             #switch{link = Link} = Switch) ->
    {done, forget(Label, Switch),
     case Input of
         Link -> [closed(Session, Label, Reason, Switch)];
         _ -> [{tell, Input, {weft_packet, Session, Link, Lane, Label, Packet}}]
     end}.

input(Session, Link, #switch{link = Link, hosted = Hosted}) when is_map_key(Session, Hosted) ->
    {here, Session};
input(Session, Input, _Switch) ->
    {pass, Session, Input}.

relay_packet({close, Label, Reason}, _Relay, Switch) ->
    done(weft_switch_gateway:lose(Label, Reason, Switch));
relay_packet(Packet, Relay, Switch) ->
    case weft_relay:next(Relay) of
        waiting -> done(weft_switch_gateway:lose(element(2, Packet), broken, Switch));
        _ -> {relay, Relay}
    end.

done({Switch, Effects}) -> {done, Switch, Effects}.

%% A label that is unknown at this end is to be forgotten at the other.
unknown({Told, _, _}, _Lane) when Told =:= close; Told =:= incarnation -> [];
unknown(Packet, Lane) -> [{write, Lane, weft_wire:close(element(2, Packet), unknown)}].

%% @doc More came on a circuit that ends here than was allowed: the sender will repeat it.
-spec overflow(label(), lane(), state()) -> {state(), [effect()]}.
overflow(Label, Lane, Switch0) ->
    {Switch, Lost} = lose_label(Label, broken, Switch0),
    {Switch, Lost ++ [{write, Lane, weft_wire:close(Label, overload)}]}.

%% @doc The peer has ended that session, which the caller has looked up.
-spec timed_out(found(), state()) -> [effect()].
timed_out({ok, Session, _Input, Name}, #switch{name = Name} = Switch) ->
    [closed(Session, any, timed_out, Switch)];
timed_out(_, _Switch) -> [].

%% --- circuits that the peer opens -------------------------------------------------------------

%% @doc The peer opens a circuit to this node, for a session that the caller has looked up.
-spec opened(label(), weft_wire:open(), lane(), found(), state()) -> {state(), [effect()]}.
opened(Label, #{kind := Kind, source := Source, received := Received}, _Lane,
       {ok, Session, Input, Source}, #switch{link = Link} = Switch0) ->
    %% `new' again: the opener did not get the accept.
    {Switch, Watch} = watch(Session, local(Label, {Kind, Session, Input, Source}, Switch0)),
    {Switch, [{tell, Session, {weft_path, reattached, Link, lanes_for(Kind, Switch), Label,
                               Received}} | Watch]};
opened(Label, #{mode := new}, Lane, error, #switch{labels = Labels} = Switch)
  when map_size(Labels) >= ?LABELS_MAX ->
    {Switch, [{write, Lane, weft_wire:close(Label, overload)}]};
opened(Label, #{mode := new, kind := Kind, session := Id, source := Source}, _Lane, error,
       #switch{link = Link, name = Name} = Switch) ->
    Host = case Source of Name -> Link; _ -> own_process end,
    {Switch, [{accept, Kind, Id, Source, {Link, lanes_for(Kind, Switch), Label}, Host}]};
%% Who asks for one that was disconnected is told that it is gone, and not that nothing was heard.
opened(Label, #{session := Id}, Lane, Found, Switch) ->
    {Switch, [{write, Lane, weft_wire:timed_out(Id)} || Found =:= timed_out]
             ++ [{write, Lane, weft_wire:close(Label, gone)}]}.

%% --- messages from sessions -------------------------------------------------------------------

%% @doc Messages of sessions and other links of this node.
-spec message(message(), state()) -> {state(), [effect()]}.
message({available, Sessions}, Switch) ->
    {Switch, tell_available(Sessions, Switch)};
message({host, Session}, #switch{hosted = Hosted} = Switch) ->
    watch(Session, Switch#switch{hosted = Hosted#{Session => []}});
message({join, Label, Then, {_, Session, Link, _} = Local}, #switch{link = Link} = Switch0) ->
    {Switch, Watch} = message({host, Session}, Switch0),
    joined(Label, Then, Local, Switch, Watch);
message({join, Label, Then, {_, Session, _, _} = Local}, Switch0) ->
    {Switch, Watch} = watch(Session, Switch0),
    joined(Label, Then, Local, Switch, Watch);
message({refused, Label}, Switch) ->
    {Switch, tell(weft_wire:close(Label, refused), Switch)};
%% Another process has begun to serve the stream: the opener finds that one when it opens again.
message({taken, Label}, Switch) ->
    {Switch, tell(weft_wire:close(Label, broken), Switch)};
message({open, Session, _Input, #{target := Target}},
        #switch{lanes = [], pending = Pending} = Switch) ->
    watch(Session, Switch#switch{pending = weft_pending_circuits:add(Session, Target, Pending)});
message({open, Session, Input, Open}, Switch) ->
    open(Session, Input, Open, Switch);
message({drop, Label}, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #local{}} -> close_all([Label], broken, Switch);
        _ -> {Switch, []}
    end;
%% If it is the process of another link, nothing else tells the ends of circuits that passed both.
message({down, SessionOrLink}, #switch{labels = Labels} = Switch0) ->
    {Switch1, Lost} = close_all(weft_relay:to_link(SessionOrLink, Labels), broken, Switch0),
    {Switch, Ended} = session_down(SessionOrLink, Switch1),
    {Switch, Lost ++ Ended};
message(FromLink, Switch) ->
    weft_switch_gateway:message(FromLink, Switch).

%% The link may have lost its lanes meanwhile, and with the last one the circuit. If all lanes are
%% others now, the node may have restarted, and use the label for another circuit.
joined(Label, Then, {Kind, Session, _, _} = Local, Switch, Watch) ->
    #switch{link = Link, lanes = Lanes, labels = Labels} = Switch,
    case {is_map_key(Label, Labels), [Lane || {Lane, _} <- Lanes, lists:member(Lane, Then)]} of
        {false, [_ | _]} ->
            {local(Label, Local, Switch),
             Watch ++ [{tell, Session, {weft_path, lanes, Link, Label, Now}}
                       || Now <- [lanes_for(Kind, Switch)], Now =/= Then]};
        {IsUsed, _} ->
            Close = [E || not IsUsed, E <- tell(weft_wire:close(Label, broken), Switch)],
            {Switch, Watch ++ [closed(Session, Label, broken, Switch) | Close]}
    end.

open(Session, Input, #{target := Target, kind := Kind} = Open, #switch{link = Link} = Switch0) ->
    {Switch1, Watch} = watch(Session, Switch0),
    {Label, Switch2} = allocate(Switch1),
    Switch = use_lanes(Kind, Session, local(Label, {Kind, Session, Input, Target}, Switch2)),
    {Switch, Watch ++ [{tell, Session, {weft_path, opening, Link, Label}}
                       | tell(weft_wire:open(Label, Open), Switch)]}.

use_lanes(distribution, _Session, Switch) ->
    Switch;
use_lanes(Kind, Session, #switch{channels = Channels} = Switch) ->
    Switch#switch{channels = Channels#{Session => weft_circuit_lanes:key(Kind)}}.

session_down(Session, #switch{labels = Labels, hosted = Hosted, watched = Watched,
                              pending = Pending, channels = Channels} = Switch) ->
    Own = [Label || {Label, #local{session = S}} <- maps:to_list(Labels), S =:= Session],
    close_all(Own, ended, Switch#switch{hosted = maps:remove(Session, Hosted),
                                        watched = maps:remove(Session, Watched),
                                        channels = maps:remove(Session, Channels),
                                        pending = weft_pending_circuits:drop(Session, Pending)}).

%% --- losing labels ----------------------------------------------------------------------------

lose_label(Label, Reason, #switch{labels = Labels, name = Name} = Switch) ->
    case Labels of
        #{Label := #local{session = Session, far = Far}} ->
            {forget(Label, Switch), [closed(Session, Label, known(Reason, Far, Name), Switch)]};
        #{Label := Relay} ->
            weft_switch_gateway:lose(Label, known(Reason, weft_relay:far(Relay), Name), Switch)
    end.

%% The end of the neighbour says something definite only about circuits that end at it.
known(broken, _Far, _Name) -> broken;
known(_GoneOrRestarted, Name, Name) -> gone;
known(_GoneOrRestarted, _Far, _Name) -> broken.
