%% SPDX-License-Identifier: Apache-2.0
%% @doc Circuits on one link: which label leads where. The handler of every link.
%%
%% A session reaches its peer over a circuit: a chain of links, on each named by a label. Between
%% neighbours the chain has one link, and that is all there is to a direct session. On a gateway a
%% label is joined to a label of another link; packets pass from socket to socket with only the
%% label changed, never decoded. End-to-end windows bound what can be under way; a circuit whose
%% next lane has more than relay_bytes_max waiting is closed with `overload', and its session
%% resumes. Circuits use all lanes of the link, those of a channel the lanes of that channel.
%%
%% An end opens with the target's name; each gateway asks the router for the next hop and lowers the
%% hop limit. Labels of the node whose name is smaller are odd, of the other even.
-module(weft_switch).
-behaviour(weft_link_handler).

-export([join/5, accept/5]).
-export([init/2, lane_up/2, lane_down/2, link_down/2, peer_ended/3, dial_failed/2, packet/4,
         message/2, wants_link/1, is_in_use/1, can_spare_link/1, wants_lanes/1, info/1]).

%% Circuits that may end at or pass through this node on one link; see also relay_circuits_max.
-define(LABELS_MAX, 65536).
%% Packets from this size on are spread over the lanes of the next link.
-define(STRIPE_BYTES, 16384).

%% A circuit that ends here.
-record(local, {kind :: weft_wire:stream_kind(), session :: pid(), input :: pid(),
                far :: binary()}).
%% A circuit that goes on by another link. `far' is the end that lies beyond this link.
-record(relay, {kind :: weft_wire:stream_kind(), lanes :: [weft_lane:lane()], far :: binary(),
                other :: {pid(), [weft_lane:lane()], weft_wire:label()} | waiting}).

-record(switch, {name :: binary(),
                 next_label :: weft_wire:label(),
                 labels = #{} :: #{weft_wire:label() => #local{} | #relay{}},
                 lanes = [] :: [weft_lane:lane()],
                 pending = [] :: [{Session :: pid(), Input :: pid(), weft_wire:open()}],
                 hosted = #{} :: #{Session :: pid() => weft_input:input()},
                 monitors = #{} :: #{SessionOrLink :: pid() => reference()},
                 channels = #{} :: #{Sender :: pid() => weft_lane:key()},
                 relay_bytes_max :: pos_integer(),
                 relayed_bytes = 0 :: non_neg_integer()}).

%% @private
init(_Node, Name) ->
    Odd = case weft_identity:name() < Name of true -> 1; false -> 2 end,
    #switch{name = Name, next_label = Odd,
            relay_bytes_max = weft_config:get(relay_bytes_max)}.

%% @private
lane_up(Lane, #switch{lanes = Lanes, pending = Pending} = Switch) ->
    _ = Lanes =:= [] andalso tell_timed_out(Lane, Switch),
    _ = Lanes =:= [] andalso tell_available(Switch),
    More = tell_lanes(Switch#switch{lanes = Lanes ++ [Lane], pending = []}),
    lists:foldl(fun({Session, Input, Open}, S) -> open(Session, Input, Open, S) end,
                More#switch{labels = maps:map(fun(_, Entry) -> relay_lanes(Entry, More) end,
                                              More#switch.labels)},
                lists:reverse(Pending)).

%% A peer that stood still, or was cut off for long, does not know yet.
tell_timed_out(Lane, #switch{name = Name}) ->
    lists:foreach(fun(Id) -> weft_lane:send(Lane, weft_wire:timed_out(Id), 17) end,
                  weft_sessions:timed_out(Name)).

%% Sessions that took a detour, or began on one, while this link was down may come back.
tell_available(#switch{name = Name, pending = Pending}) ->
    [Session ! {weft_path, available, self()}
     || Session <- weft_sessions:with(Name), not lists:keymember(Session, 1, Pending)].

%% @private
lane_down(Lane, #switch{labels = Labels, lanes = Lanes} = Switch0) ->
    Switch = tell_lanes(Switch0#switch{lanes = lists:delete(Lane, Lanes)}),
    Relayed = [Label || {Label, #relay{lanes = Used}} <- maps:to_list(Labels),
                        lists:member(Lane, Used)],
    lists:foldl(fun(Label, S) -> lose_label(Label, broken, S) end, Switch, Relayed).

%% Streams that end here go on with the lanes that there are now.
tell_lanes(#switch{labels = Labels} = Switch) ->
    _ = [Session ! {weft_path, lanes, self(), Label, lanes_for(Kind, Switch)}
         || {Label, #local{session = Session, kind = Kind}} <- maps:to_list(Labels)],
    Switch.

%% And so do circuits that pass: the other link writes to them.
relay_lanes(#relay{kind = Kind, other = Other} = Relay, Switch) ->
    Lanes = lanes_for(Kind, Switch),
    case Other of
        {Link, _, Label} -> weft_link:handler(Link, {relay_lanes, Label, Lanes});
        waiting -> ok
    end,
    Relay#relay{lanes = Lanes};
relay_lanes(Local, _Switch) ->
    Local.

%% Lanes of the right class; any will do when there is none.
lanes_for(distribution, #switch{lanes = Lanes}) ->
    general(Lanes);
lanes_for({channel, _, _} = Kind, #switch{lanes = Lanes}) ->
    case [Lane || Lane <- Lanes, weft_lane:key(Lane) =:= lane_key(Kind)] of
        [] -> general(Lanes);
        Own -> Own
    end.

general(Lanes) ->
    case [Lane || Lane <- Lanes, weft_lane:class(Lane) =:= <<>>] of
        [] -> Lanes;
        General -> General
    end.

lane_key({channel, Name, Partition}) -> {Name, Partition + 1}.

%% @private
link_down(Reason, #switch{labels = Labels, hosted = Hosted} = Switch0) ->
    Switch = lists:foldl(fun(Label, S) -> lose_label(Label, Reason, S) end, Switch0,
                         maps:keys(Labels)),
    case Reason of
        broken ->
            Switch#switch{lanes = []};
        departed ->
            _ = [closed(Session, any, departed) || Session <- maps:keys(Hosted)],
            Switch#switch{lanes = []};
        _GoneOrRestarted ->
            %% A session that had moved to a circuit has no label here.
            lists:foreach(fun gone/1, maps:keys(Hosted)),
            end_pending(Reason, Switch#switch{lanes = []})
    end.

gone(Session) ->
    closed(Session, any, gone).

closed(Session, Label, Reason) ->
    Session ! {weft_path, closed, self(), Label, Reason},
    ok.

%% What waits to be opened has nobody to open to; a restarted node may still take new sessions.
end_pending(Reason, #switch{pending = Pending, name = Name} = Switch) ->
    {Over, Kept} = lists:partition(
                     fun({_, _, #{target := Target, mode := Mode}}) ->
                             Target =:= Name andalso (Reason =:= gone orelse Mode =:= resume)
                     end, Pending),
    lists:foreach(fun({Session, _, _}) -> gone(Session) end, Over),
    Switch#switch{pending = Kept}.

%% @private Nodes without a name have sessions with their neighbours only.
peer_ended(_How, {anonymous, _}, _Incarnation) ->
    ok;
peer_ended(died, Node, Incarnation) ->
    weft_driver:notice(weft_obituary, {died, Node, Incarnation});
peer_ended(departed, Node, Incarnation) ->
    Witness = {node(), erlang:unique_integer()},
    weft_driver:notice(weft_obituary, {departed, Node, Incarnation, Witness}).

%% @private That the neighbour cannot be dialled says nothing of who is to be reached over it.
dial_failed(Reason, #switch{pending = Pending, name = Name} = Switch) ->
    lists:foreach(fun({Session, _, #{target := Target}}) ->
                          closed(Session, any, case Target of
                                                   Name -> {dial, Reason};
                                                   _ -> broken
                                               end)
                  end, Pending),
    Switch#switch{pending = []}.

%% @private
wants_link(#switch{pending = Pending, name = Name} = Switch) ->
    Pending =/= [] orelse (is_in_use(Switch) andalso not weft_path:is_around(Name)).

%% @private
is_in_use(#switch{pending = Pending, hosted = Hosted, labels = Labels}) ->
    Pending =/= [] orelse map_size(Hosted) > 0 orelse map_size(Labels) > 0.

%% @private
can_spare_link(#switch{pending = Pending, name = Name}) ->
    Pending =:= [] andalso weft_path:has_neighbour_besides(Name).

%% @private The lanes that streams of channels would have for themselves.
wants_lanes(#switch{channels = Channels}) ->
    lists:usort(maps:values(Channels)).

%% @private
info(#switch{labels = Labels, hosted = Hosted, relayed_bytes = Bytes}) ->
    #{sessions => maps:keys(Hosted), labels => map_size(Labels), relayed_bytes => Bytes,
      circuits => [circuit(Label, Relay) || {Label, #relay{} = Relay} <- maps:to_list(Labels)]}.

%% A circuit that passes through this node: where it comes in and goes out.
circuit(Label, #relay{far = Far, other = waiting}) ->
    #{label => Label, far => Far, next_link => waiting, next_label => waiting};
circuit(Label, #relay{far = Far, other = {Link, _Lanes, NextLabel}}) ->
    #{label => Label, far => Far, next_link => Link, next_label => NextLabel}.

%% --- packets from the peer --------------------------------------------------------------------

%% @private
packet({data, Label, Sequence, Kind, Payload} = Packet, Raw, Lane,
       #switch{labels = Labels, hosted = Hosted} = Switch) ->
    case Labels of
        #{Label := #local{session = Session, input = Input}}
          when Input =:= self(), is_map_key(Session, Hosted) ->
            hosted_data(Session, Label, Sequence, Kind, Payload, Lane, Switch);
        #{Label := Entry} ->
            pass(Entry, Label, Packet, Raw, Lane, Switch);
        _ ->
            answer(Lane, weft_wire:close(Label, unknown), Switch)
    end;
packet({ack, Label, Sequence}, Raw, Lane, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #local{session = Session}} -> Session ! {weft_ack, Sequence}, Switch;
        #{Label := #relay{} = Relay} -> relay(Relay, Label, Raw, Switch);
        _ -> answer(Lane, weft_wire:close(Label, unknown), Switch)
    end;
packet({tick, Label} = Packet, Raw, Lane, #switch{labels = Labels, hosted = Hosted} = Switch) ->
    case Labels of
        #{Label := #local{session = Session, input = Input}}
          when Input =:= self(), is_map_key(Session, Hosted) ->
            weft_input:tick(Lane, Label, byte_size(Raw), maps:get(Session, Hosted)),
            Switch;
        #{Label := Entry} ->
            pass(Entry, Label, Packet, Raw, Lane, Switch);
        _ ->
            answer(Lane, weft_wire:close(Label, unknown), Switch)
    end;
packet({open, Label, #{target := Target} = Open}, _Raw, Lane, Switch) ->
    case weft_identity:name() of
        Target -> opened(Label, Open, Lane, Switch);
        _ -> forward(Label, Open, Lane, Switch)
    end;
packet({accept, Label, Received}, Raw, Lane, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #local{session = Session, kind = Kind}} ->
            Session ! {weft_path, accepted, self(), lanes_for(Kind, Switch), Label, Received},
            Switch;
        #{Label := #relay{} = Relay} ->
            relay(Relay, Label, Raw, Switch);
        _ ->
            answer(Lane, weft_wire:close(Label, unknown), Switch)
    end;
packet({close, Label, Reason} = Packet, _Raw, Lane, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #local{session = Session, input = Input}} ->
            _ = case Input =:= self() of
                    true -> closed(Session, Label, Reason);
                    false -> Input ! {weft_packet, Session, self(), Lane, Label, Packet}
                end,
            Switch#switch{labels = maps:remove(Label, Labels)};
        #{Label := #relay{}} ->
            lose_relay(Label, Reason, Switch);
        _ ->
            Switch
    end;
packet({timed_out, Id}, _Raw, _Lane, #switch{name = Name} = Switch) ->
    _ = case weft_sessions:find(Id) of
            {ok, Session, _Input, Name} -> closed(Session, any, timed_out);
            _ -> ok
        end,
    Switch;
packet({incarnation, Label, Incarnation}, Raw, _Lane, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #local{session = Session}} ->
            Session ! {weft_path, incarnation, Incarnation},
            Switch;
        #{Label := #relay{} = Relay} ->
            relay(Relay, Label, Raw, Switch);
        _ ->
            Switch
    end;
packet({unknown, _Bytes}, _Raw, _Lane, Switch) ->
    %% A later version may say more than we know; what matters is negotiated in the hello.
    Switch.

pass(#local{session = Session, input = Input}, Label, Packet, _Raw, Lane, Switch) ->
    Input ! {weft_packet, Session, self(), Lane, Label, Packet},
    Switch;
pass(#relay{} = Relay, Label, _Packet, Raw, _Lane, Switch) ->
    relay(Relay, Label, Raw, Switch).

hosted_data(Session, Label, Sequence, Kind, Payload, Lane, #switch{hosted = Hosted} = Switch) ->
    #{Session := Input0} = Hosted,
    case weft_input:data(Sequence, Kind, Payload, Lane, Label, Input0) of
        {ok, Input} ->
            Switch#switch{hosted = Hosted#{Session := Input}};
        overflow ->
            answer(Lane, weft_wire:close(Label, overload), lose_label(Label, broken, Switch))
    end.

relay(#relay{other = waiting}, Label, _Raw, Switch) ->
    lose_relay(Label, broken, Switch);
relay(#relay{other = {_Link, Lanes, OtherLabel}}, Label, Raw,
      #switch{relayed_bytes = Bytes, relay_bytes_max = Max} = Switch) ->
    Lane = lane_to(Lanes, Raw),
    case weft_lane:queued_bytes(Lane) > Max of
        true ->
            relay_overload(Label, Switch);
        false ->
            _ = weft_lane:send(Lane, weft_wire:relabel(Raw, OtherLabel), byte_size(Raw)),
            Switch#switch{relayed_bytes = Bytes + byte_size(Raw)}
    end.

%% Large packets take the lanes in turn, by their number; small ones need not wait behind them.
lane_to([Lane], _Raw) ->
    Lane;
lane_to(Lanes, <<_Type, _Label:32, Sequence:64, _/binary>> = Raw)
  when byte_size(Raw) >= ?STRIPE_BYTES ->
    least_queued(lists:nth(Sequence rem length(Lanes) + 1, Lanes), Lanes);
lane_to([Lane | _] = Lanes, _Raw) ->
    least_queued(Lane, Lanes).

least_queued(Preferred, Lanes) ->
    case weft_lane:queued_bytes(Preferred) of
        0 -> Preferred;
        _ -> element(2, lists:min([{weft_lane:queued_bytes(Lane), Lane} || Lane <- Lanes]))
    end.

relay_overload(Label, #switch{labels = Labels} = Switch) ->
    #{Label := #relay{lanes = [Lane | _]}} = Labels,
    answer(Lane, weft_wire:close(Label, overload), lose_relay(Label, overload, Switch)).

answer(Lane, Packet, Switch) ->
    _ = weft_lane:send(Lane, Packet, iolist_size(Packet)),
    Switch.

%% --- circuits that end here -------------------------------------------------------------------

opened(Label, #{mode := Mode, kind := Kind, session := Id, source := Source,
                received := Received} = Open, Lane, Switch) ->
    case {weft_sessions:find(Id), Mode} of
        {{ok, Session, Input, Source}, _} ->
            %% `new' again: the opener did not hear that we accepted.
            Session ! {weft_path, reattached, self(), lanes_for(Kind, Switch), Label, Received},
            local(Label, Kind, Session, Input, Source, watch(Session, Switch));
        {error, new} when map_size(Switch#switch.labels) >= ?LABELS_MAX ->
            answer(Lane, weft_wire:close(Label, overload), Switch);
        {error, new} ->
            accepted(Label, Open, Switch);
        _ ->
            answer(Lane, weft_wire:close(Label, gone), Switch)
    end.

%% Whatever has to be started for it, the link does not wait.
accepted(Label, #{kind := Kind, session := Id, source := Source}, #switch{name = Name} = Switch) ->
    Host = case Source of Name -> self(); _ -> own_process end,
    Path = {self(), lanes_for(Kind, Switch), Label},
    _ = spawn_opt(?MODULE, accept, [Kind, Id, Source, Path, Host],
                  [{priority, weft_turn:priority(control)}]),
    Switch.

%% @private Runs in a process of its own.
-spec accept(weft_wire:stream_kind(), weft_sessions:id(), Source :: binary(), weft_stream:path(),
             Host :: pid() | own_process) -> ok.
accept(Kind, Id, Source, {Link, _Lanes, Label} = Path, Host) ->
    case start(Kind, Id, Source, Path, Host) of
        {ok, _Pid} -> ok;
        {error, _} -> weft_link:handler(Link, {refused, Label})
    end.

start(distribution, Id, Source, Path, Host) ->
    weft_session:accept(Id, Source, Path, Host);
start({channel, Channel, Partition}, Id, Source, Path, _Host) ->
    weft_sessions:accept_channel(Id, Source, Path, Channel, Partition).

%% @doc The calling process serves the circuit that the peer Source has opened. To be said before
%% the peer is told: then the link knows it before anything comes. A Host of distribution has to
%% have the counters of the session.
-spec join(weft_stream:path(), weft_wire:stream_kind(), Source :: binary(), Input :: pid(),
           weft_session_counters:counters()) -> ok.
join({Link, Lanes, Label}, Kind, Source, Input, Counters) ->
    Local = #local{kind = Kind, session = self(), input = Input, far = Source},
    weft_link:handler(Link, {join, Label, Lanes, Local, Counters}).

%% The link may have lost lanes meanwhile, and with the last one the circuit.
joined(Label, _Then, #local{session = Session}, #switch{lanes = Lanes, labels = Labels} = Switch)
  when Lanes =:= []; is_map_key(Label, Labels) ->
    closed(Session, Label, broken),
    Switch;
joined(Label, Then, #local{kind = Kind, session = Session} = Local,
       #switch{labels = Labels} = Switch) ->
    _ = case lanes_for(Kind, Switch) of
            Then -> ok;
            Now -> Session ! {weft_path, lanes, self(), Label, Now}
        end,
    Switch#switch{labels = Labels#{Label => Local}}.

local(Label, Kind, Session, Input, Far, #switch{labels = Labels} = Switch) ->
    Local = #local{kind = Kind, session = Session, input = Input, far = Far},
    Switch#switch{labels = Labels#{Label => Local}}.

host(Session, Counters, #switch{hosted = Hosted} = Switch) ->
    Input = weft_input:new(Session, Counters, weft_config:get(window_bytes)),
    watch(Session, Switch#switch{hosted = Hosted#{Session => Input}}).

watch(Session, #switch{monitors = Monitors} = Switch) when is_map_key(Session, Monitors) ->
    Switch;
watch(Session, #switch{monitors = Monitors} = Switch) ->
    Switch#switch{monitors = Monitors#{Session => erlang:monitor(process, Session)}}.

%% --- circuits that go on ----------------------------------------------------------------------

forward(Label, #{hops := 0}, Lane, Switch) ->
    answer(Lane, weft_wire:close(Label, hop_limit), Switch);
forward(Label, #{hops := Hops, kind := Kind, target := Target, source := Source} = Open, Lane,
        #switch{name = Name, labels = Labels} = Switch) ->
    case {weft_path:next_link(Target), relays(Labels) < weft_config:get(relay_circuits_max)} of
        {{ok, Next, Link}, true} when Next =/= Name ->
            Lanes = lanes_for(Kind, Switch),
            weft_link:handler(Link, {forward, self(), Lanes, Label, Open#{hops := Hops - 1}}),
            Relay = #relay{kind = Kind, lanes = Lanes, far = Source, other = waiting},
            Switch#switch{labels = Labels#{Label => Relay}};
        {{ok, _, _}, false} ->
            answer(Lane, weft_wire:close(Label, overload), Switch);
        _ ->
            answer(Lane, weft_wire:close(Label, no_route), Switch)
    end.

relays(Labels) ->
    length([relay || #relay{} <- maps:values(Labels)]).

%% --- messages from sessions and from other links ----------------------------------------------

%% @private
-spec message(term(), #switch{}) -> #switch{}.
message(available, Switch) ->
    _ = tell_available(Switch),
    Switch;
message({host, Session, Counters}, Switch) ->
    host(Session, Counters, Switch);
message({join, Label, Then, #local{session = Session, input = Input} = Local, Counters}, Switch) ->
    joined(Label, Then, Local, case Input =:= self() of
                                   true -> host(Session, Counters, Switch);
                                   false -> watch(Session, Switch)
                               end);
message({refused, Label}, Switch) ->
    tell(weft_wire:close(Label, refused), Switch);
message({connected, Session, Handle}, #switch{hosted = Hosted} = Switch) ->
    case Hosted of
        #{Session := Input} ->
            Switch#switch{hosted = Hosted#{Session := weft_input:connected(Handle, Input)}};
        _ ->
            Switch
    end;
message({open, Session, Input, Open}, #switch{lanes = [], pending = Pending} = Switch) ->
    watch(Session, Switch#switch{pending = lists:keystore(Session, 1, Pending,
                                                          {Session, Input, Open})});
message({open, Session, Input, Open}, Switch) ->
    open(Session, Input, Open, Switch);
message({drop, Label}, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #local{}} ->
            tell(weft_wire:close(Label, broken),
                 Switch#switch{labels = maps:remove(Label, Labels)});
        _ ->
            Switch
    end;
message({forward, Link, _OtherLanes, Label, _Open}, #switch{lanes = []} = Switch) ->
    weft_link:handler(Link, {relay_closed, Label, no_route}),
    Switch;
message({forward, Link, OtherLanes, OtherLabel, #{target := Target, kind := Kind} = Open},
        Switch0) ->
    {Label, #switch{labels = Labels} = Switch} = allocate(Switch0),
    Lanes = lanes_for(Kind, Switch),
    weft_link:handler(Link, {forwarded, OtherLabel, {self(), Lanes, Label}}),
    Relay = #relay{kind = Kind, lanes = Lanes, far = Target,
                   other = {Link, OtherLanes, OtherLabel}},
    tell(weft_wire:open(Label, Open), watch(Link, Switch#switch{labels = Labels#{Label => Relay}}));
message({forwarded, Label, {Link, _, OtherLabel} = Other}, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #relay{} = Relay} ->
            %% A lane may have come up meanwhile.
            Joined = relay_lanes(Relay#relay{other = Other}, Switch),
            watch(Link, Switch#switch{labels = Labels#{Label := Joined}});
        _ ->
            weft_link:handler(Link, {relay_closed, OtherLabel, broken}),
            Switch
    end;
message({relay_lanes, Label, Lanes}, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #relay{other = {Link, _, OtherLabel}} = Relay} ->
            Changed = Relay#relay{other = {Link, Lanes, OtherLabel}},
            Switch#switch{labels = Labels#{Label := Changed}};
        _ ->
            Switch
    end;
message({relay_closed, Label, Reason}, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #relay{}} ->
            tell(weft_wire:close(Label, Reason),
                 Switch#switch{labels = maps:remove(Label, Labels)});
        _ ->
            Switch
    end;
message({weft_packet, Session, From, Lane, Label, Packet}, #switch{hosted = Hosted} = Switch) ->
    case {Packet, Hosted} of
        {{data, _, Sequence, Kind, Payload}, #{Session := Input0}} ->
            elsewhere(weft_input:data(Sequence, Kind, Payload, Lane, Label, Input0),
                      Session, From, Label, Switch);
        {{tick, _}, #{Session := Input}} ->
            weft_input:tick(Lane, Label, 5, Input),
            Switch;
        {{close, _, Reason}, _} ->
            Session ! {weft_path, closed, From, Label, Reason},
            Switch;
        _ ->
            Switch
    end;
message({'DOWN', _Ref, process, SessionOrLink, _Reason}, Switch) ->
    session_down(SessionOrLink, other_link_down(SessionOrLink, Switch)).

%% Data for a session that this link hosts came over a circuit of another link.
elsewhere({ok, Input}, Session, _From, _Label, #switch{hosted = Hosted} = Switch) ->
    Switch#switch{hosted = Hosted#{Session := Input}};
elsewhere(overflow, Session, From, Label, Switch) ->
    weft_link:handler(From, {drop, Label}),
    Session ! {weft_path, closed, From, Label, broken},
    Switch.

open(Session, Input, #{target := Target, kind := Kind} = Open, Switch0) ->
    {Label, Switch1} = allocate(watch(Session, Switch0)),
    Session ! {weft_path, opening, self(), Label},
    Switch = use_lanes(Kind, Session, local(Label, Kind, Session, Input, Target, Switch1)),
    tell(weft_wire:open(Label, Open), Switch).

use_lanes(distribution, _Session, Switch) ->
    Switch;
use_lanes(Kind, Session, #switch{channels = Channels} = Switch) ->
    Switch#switch{channels = Channels#{Session => lane_key(Kind)}}.

%% To the peer, by the first lane: what is said of labels keeps its order.
tell(_Packet, #switch{lanes = []} = Switch) ->
    Switch;
tell(Packet, #switch{lanes = [Lane | _]} = Switch) ->
    answer(Lane, Packet, Switch).

allocate(#switch{next_label = Label} = Switch) ->
    Next = case Label + 2 of
               Wrapped when Wrapped > 16#ffffffff -> 2 - (Label band 1);
               Following -> Following
           end,
    {Label, Switch#switch{next_label = Next}}.

session_down(Session, #switch{labels = Labels, hosted = Hosted, monitors = Monitors,
                              pending = Pending} = Switch) ->
    Own = [Label || {Label, #local{session = S}} <- maps:to_list(Labels), S =:= Session],
    _ = [tell(weft_wire:close(Label, ended), Switch) || Label <- Own],
    Switch#switch{labels = maps:without(Own, Labels),
                  hosted = maps:remove(Session, Hosted),
                  monitors = maps:remove(Session, Monitors),
                  channels = maps:remove(Session, Switch#switch.channels),
                  pending = lists:keydelete(Session, 1, Pending)}.

%% The process of another link died: nobody else tells the ends of the circuits that it had part in.
other_link_down(Link, #switch{labels = Labels} = Switch) ->
    Lost = [Label || {Label, #relay{other = {Other, _, _}}} <- maps:to_list(Labels),
                     Other =:= Link],
    _ = [tell(weft_wire:close(Label, broken), Switch) || Label <- Lost],
    Switch#switch{labels = maps:without(Lost, Labels)}.

%% --- losing labels ----------------------------------------------------------------------------

lose_label(Label, Reason, #switch{labels = Labels, name = Name} = Switch) ->
    case Labels of
        #{Label := #local{session = Session, far = Far}} ->
            closed(Session, Label, known(Reason, Far, Name)),
            Switch#switch{labels = maps:remove(Label, Labels)};
        #{Label := #relay{far = Far}} ->
            lose_relay(Label, known(Reason, Far, Name), Switch)
    end.

lose_relay(Label, Reason, #switch{labels = Labels} = Switch) ->
    case maps:take(Label, Labels) of
        {#relay{other = {Link, _Lanes, OtherLabel}}, Rest} ->
            weft_link:handler(Link, {relay_closed, OtherLabel, Reason}),
            Switch#switch{labels = Rest};
        {#relay{other = waiting}, Rest} ->
            Switch#switch{labels = Rest}
    end.

%% That the neighbour is gone says something definite only of circuits that end at it.
known(broken, _Far, _Name) -> broken;
known(_GoneOrRestarted, Name, Name) -> gone;
known(_GoneOrRestarted, _Far, _Name) -> broken.
