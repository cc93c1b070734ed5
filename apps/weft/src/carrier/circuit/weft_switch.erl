%% SPDX-License-Identifier: Apache-2.0
%% @doc Circuits on one link: which label leads where. The handler of every link.
%%
%% A session reaches its peer over a circuit: a chain of links, on each of which a label names the
%% circuit. Between neighbours the chain has one link; this is a direct session. On a gateway a
%% label is joined to a label of another link. Packets pass from socket to socket with only the
%% label changed, and are never decoded. End-to-end windows bound what can be under way. A circuit
%% whose next lane has more than relay_bytes_max waiting is closed with `overload', and its session
%% resumes. Circuits use all lanes of the link, those of a channel the lanes of that channel.
%%
%% `weft_switch_core' decides what leads where, for circuits that pass with `weft_switch_gateway'.
%% This module carries it out, and delivers what arrives for sessions that this link hosts
%% (`weft_input').
-module(weft_switch).
-behaviour(weft_link_handler).

-export([accept/5]).
-export([init/2, lane_up/2, lane_down/2, link_down/2, peer_ended/3, dial_failed/2, packet/4,
         message/2, wants_link/1, is_in_use/1, can_spare_link/1, wants_lanes/1, info/1]).

%% On the way of each message: not calls.
-compile({inline, [here/5]}).

-record(switch, {core :: weft_switch_core:state(),
                 name :: binary(),
                 inputs = #{} :: #{Session :: pid() => weft_input:input()},
                 relayed_bytes = 0 :: non_neg_integer()}).

%% @private
init(_Node, Name) ->
    #switch{name = Name, core = weft_switch_core:new(self(), weft_identity:name(), Name,
                                                     weft_config:get(relay_bytes_max))}.

%% @private
lane_up(Lane, #switch{core = Core, name = Name} = Switch) ->
    Known = fun() -> {weft_sessions:with(Name), weft_sessions:timed_out(Name)} end,
    carry_out(weft_switch_core:lane_up(Lane, weft_lane:key(Lane), Known, Core), Switch).

%% @private
lane_down(Lane, #switch{core = Core} = Switch) ->
    carry_out(weft_switch_core:lane_down(Lane, Core), Switch).

%% @private
link_down(Reason, #switch{core = Core} = Switch) ->
    carry_out(weft_switch_core:link_down(Reason, Core), Switch).

%% @private Nodes without a name have sessions with their neighbours only.
peer_ended(_How, {anonymous, _}, _Incarnation) ->
    ok;
peer_ended(died, Node, Incarnation) ->
    weft_driver:notice(weft_obituary, {died, Node, Incarnation});
peer_ended(departed, Node, Incarnation) ->
    Witness = {node(), erlang:unique_integer()},
    weft_driver:notice(weft_obituary, {departed, Node, Incarnation, Witness}).

%% @private
dial_failed(Reason, #switch{core = Core} = Switch) ->
    carry_out(weft_switch_core:dial_failed(Reason, Core), Switch).

%% @private
wants_link(#switch{core = Core, name = Name}) ->
    weft_switch_core:is_pending(Core)
        orelse (weft_switch_core:is_in_use(Core) andalso not weft_next_hop:is_around(Name)).

%% @private
is_in_use(#switch{core = Core}) -> weft_switch_core:is_in_use(Core).

%% @private
can_spare_link(#switch{core = Core, name = Name}) ->
    not weft_switch_core:is_pending(Core) andalso weft_next_hop:has_neighbour_besides(Name).

%% @private
wants_lanes(#switch{core = Core}) -> weft_switch_core:wants_lanes(Core).

%% @private
info(#switch{core = Core, relayed_bytes = Bytes}) ->
    (weft_switch_core:info(Core))#{relayed_bytes => Bytes}.

%% --- packets from the peer --------------------------------------------------------------------

%% @private
packet({open, Label, #{target := Target, session := Id} = Open}, _Raw, Lane,
       #switch{core = Core} = Switch) ->
    carry_out(case weft_identity:name() of
                  Target ->
                      weft_switch_core:opened(Label, Open, Lane, weft_sessions:find(Id), Core);
                  _ ->
                      weft_switch_gateway:forward(Label, Open, Lane,
                                                  weft_transit:next_link(Target),
                                                  weft_config:get(relay_circuits_max), Core)
              end, Switch);
packet({timed_out, Id}, _Raw, _Lane, #switch{core = Core} = Switch) ->
    carry_out({Core, weft_switch_core:timed_out(weft_sessions:find(Id), Core)}, Switch);
packet({unknown, _Bytes}, _Raw, _Lane, Switch) ->
    %% A later version may send packets that are unknown here; what matters is negotiated in the
    %% hello.
    Switch;
packet(Packet, Raw, Lane, #switch{core = Core0} = Switch) ->
    case weft_switch_core:packet(Packet, Lane, Core0) of
        {here, Session} -> here(Packet, Session, Raw, Lane, Switch);
        {pass, Session, Input} -> Input ! {weft_packet, Session, self(), Lane, element(2, Packet),
                                           Packet},
                                  Switch;
        {relay, Relay} -> relay(Relay, element(2, Packet), Raw, Switch);
        {done, Core, Effects} -> carry_out({Core, Effects}, Switch)
    end.

here({data, Label, Sequence, Kind, Payload}, Session, _Raw, Lane,
     #switch{core = Core, inputs = Inputs} = Switch) ->
    #{Session := Input0} = Inputs,
    case weft_input:data(Sequence, Kind, Payload, Lane, Label, Input0) of
        {ok, Input} -> Switch#switch{inputs = Inputs#{Session := Input}};
        overflow -> carry_out(weft_switch_core:overflow(Label, Lane, Core), Switch)
    end;
here({tick, Label}, Session, Raw, Lane, #switch{inputs = Inputs} = Switch) ->
    Input = weft_input:tick(Lane, Label, byte_size(Raw), map_get(Session, Inputs)),
    Switch#switch{inputs = Inputs#{Session := Input}};
here({times, Label}, Session, _Raw, Lane, #switch{inputs = Inputs} = Switch) ->
    Input = weft_input:times(Lane, Label, map_get(Session, Inputs)),
    Switch#switch{inputs = Inputs#{Session := Input}}.

relay(Relay, Label, Raw, #switch{core = Core0, relayed_bytes = Relayed} = Switch) ->
    {Waiting, Lane} = weft_relay:lane(fun weft_lane:queued_bytes/1, Raw, Relay),
    case weft_switch_gateway:relay(Relay, Label, Waiting, Core0) of
        {send, OtherLabel} ->
            _ = weft_lane:send(Lane, weft_wire:relabel(Raw, OtherLabel), byte_size(Raw)),
            weft_counters:add(relayed_packets, 1, relayed_bytes, byte_size(Raw)),
            Switch#switch{relayed_bytes = Relayed + byte_size(Raw)};
        {done, Core, Effects} ->
            carry_out({Core, Effects}, Switch)
    end.

%% --- messages from sessions and from other links ----------------------------------------------

%% @private
-spec message(term(), #switch{}) -> #switch{}.
message(available, #switch{name = Name} = Switch) ->
    decided({available, weft_sessions:with(Name)}, Switch);
message({host, Session, Counters}, Switch) ->
    decided({host, Session}, host(Session, Counters, Switch));
message({join, Label, Then, {Kind, Session, Source, Input}, Counters}, Switch) ->
    decided({join, Label, Then, {Kind, Session, Input, Source}},
            case Input =:= self() of
                true -> host(Session, Counters, Switch);
                false -> Switch
            end);
message({connected, Session, Handle}, #switch{inputs = Inputs} = Switch) ->
    case Inputs of
        #{Session := Input} ->
            Switch#switch{inputs = Inputs#{Session := weft_input:connected(Handle, Input)}};
        _ ->
            Switch
    end;
%% The session is about to end, and waits until its input is delivered.
message({finish, Session, Monitor}, Switch) ->
    Session ! {weft_input, finished, Monitor},
    down(Session, Switch);
message({weft_packet, Session, From, Lane, Label, Packet}, Switch) ->
    elsewhere(Packet, Session, From, Lane, Label, Switch);
%% Circuits that pass are to go another way (`weft_transit').
message(move_relays, #switch{core = Core} = Switch) ->
    #{circuits := Circuits} = weft_switch_core:info(Core),
    lists:foldl(fun(#{label := Label}, Moving) ->
                    decided({relay_closed, Label, broken}, Moving)
                end,
                Switch, Circuits);
message({'DOWN', _Ref, process, SessionOrLink, _Reason}, Switch) ->
    down(SessionOrLink, Switch);
message(Message, Switch) ->
    decided(Message, Switch).

decided(Message, #switch{core = Core} = Switch) ->
    carry_out(weft_switch_core:message(Message, Core), Switch).

down(SessionOrLink, #switch{inputs = Inputs} = Switch) ->
    decided({down, SessionOrLink}, Switch#switch{inputs = maps:remove(SessionOrLink, Inputs)}).

host(Session, Counters, #switch{inputs = Inputs} = Switch) ->
    Input = weft_input:new(Session, Counters, weft_config:get(window_bytes)),
    Switch#switch{inputs = Inputs#{Session => Input}}.

%% For a session that this link hosts, over a circuit of another link.
elsewhere({data, _, Sequence, Kind, Payload}, Session, From, Lane, Label,
          #switch{inputs = Inputs} = Switch) when is_map_key(Session, Inputs) ->
    case weft_input:data(Sequence, Kind, Payload, Lane, Label, map_get(Session, Inputs)) of
        {ok, Input} ->
            Switch#switch{inputs = Inputs#{Session := Input}};
        overflow ->
            weft_link_handler:tell(From, {drop, Label}),
            Session ! {weft_path, closed, From, Label, broken},
            Switch
    end;
elsewhere({tick, _}, Session, _From, Lane, Label, #switch{inputs = Inputs} = Switch)
  when is_map_key(Session, Inputs) ->
    Input = weft_input:tick(Lane, Label, 5, map_get(Session, Inputs)),
    Switch#switch{inputs = Inputs#{Session := Input}};
elsewhere({times, _}, Session, _From, Lane, Label, #switch{inputs = Inputs} = Switch)
  when is_map_key(Session, Inputs) ->
    Input = weft_input:times(Lane, Label, map_get(Session, Inputs)),
    Switch#switch{inputs = Inputs#{Session := Input}};
elsewhere({close, _, Reason}, Session, From, _Lane, Label, Switch) ->
    Session ! {weft_path, closed, From, Label, Reason},
    Switch;
elsewhere(_Packet, _Session, _From, _Lane, _Label, Switch) ->
    Switch.

%% --- what the core wants done -----------------------------------------------------------------

carry_out({Core, Effects}, Switch) ->
    lists:foreach(fun effect/1, Effects),
    Switch#switch{core = Core}.

effect({tell, Session, Message}) ->
    Session ! Message;
effect({link, Link, Message}) ->
    weft_link_handler:tell(Link, Message);
effect({write, Lane, Packet}) ->
    weft_lane:send(Lane, Packet, iolist_size(Packet));
effect({watch, SessionOrLink}) ->
    erlang:monitor(process, SessionOrLink);
%% Whatever has to be started for it, the link does not wait.
effect({accept, Kind, Id, Source, Path, Host}) ->
    spawn_opt(?MODULE, accept, [Kind, Id, Source, Path, Host],
              [{priority, weft_turn:priority(control)}]).

%% @private Runs in a process of its own.
-spec accept(weft_wire:stream_kind(), weft_sessions:id(), Source :: binary(), weft_stream:path(),
             Host :: pid() | own_process) -> ok.
accept(Kind, Id, Source, {Link, _Lanes, Label} = Path, Host) ->
    case start(Kind, Id, Source, Path, Host) of
        {ok, _Pid} -> ok;
        {error, {shutdown, taken}} -> weft_link_handler:tell(Link, {taken, Label});
        {error, _} -> weft_link_handler:tell(Link, {refused, Label})
    end.

start(distribution, Id, Source, Path, Host) ->
    weft_session:accept(Id, Source, Path, Host);
start({channel, Channel, Partition}, Id, Source, Path, _Host) ->
    weft_sessions:accept_channel(Id, Source, Path, Channel, Partition).
