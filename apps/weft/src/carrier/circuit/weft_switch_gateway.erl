%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of a gateway: circuits that pass through this node, from one link to another.
%%
%% Pure; a part of `weft_switch_core' with its state. The link to which the packets of the opener
%% come asks the link that leads on (`forward'). That one opens the circuit under a label of its own
%% and says so (`forwarded'). From then on each of the two has a relay (`weft_relay'), and packets
%% go from one to the other. A gateway lowers the hop limit, and closes a circuit whose next lane
%% has too much waiting.
%%
%% Races: the circuit may be closed while the other link has not answered yet. Then `forwarded'
%% finds no label, and the other half is closed. And the peer may have started again meanwhile, and
%% use the label for another circuit. So each message to another link says by which of its lanes the
%% circuit came, and means nothing if there is none of them any more.
%%
%% Not here: which link leads on (`weft_transit').
-module(weft_switch_gateway).

-export([forward/6, message/2, relay/4, lose/3]).

-import(weft_switch_state, [lanes_for/2, watch/2, tell/2, allocate/1, close_all/3]).

-include("weft_switch_state.hrl").

-type state() :: weft_switch_state:state().
-type effect() :: weft_switch_state:effect().
-type link() :: weft_switch_state:link().
-type lane() :: weft_switch_state:lane().
-type label() :: weft_wire:label().

%% @doc The peer opens a circuit to another node; Next is the link that leads there. As many
%% circuits as that may pass.
-spec forward(label(), weft_wire:open(), lane(), {ok, Next :: binary(), link()} | error,
              CircuitsMax :: non_neg_integer(), state()) -> {state(), [effect()]}.
forward(Label, #{hops := 0}, Lane, _Next, _CircuitsMax, Switch) ->
    {Switch, [{write, Lane, weft_wire:close(Label, hop_limit)}]};
forward(Label, #{hops := Hops, kind := Kind, source := Source} = Open, Lane, Next, CircuitsMax,
        #switch{link = Self, name = Name, labels = Labels} = Switch) ->
    case {Next, weft_relay:count(Labels) < CircuitsMax} of
        {{ok, Via, Link}, true} when Via =/= Name ->
            Lanes = lanes_for(Kind, Switch),
            {Switch#switch{labels = weft_relay:add(Label, Kind, Source, Lanes, waiting, Labels)},
             [{link, Link, {forward, Self, Lanes, Label, Open#{hops := Hops - 1}}}]};
        {{ok, _, _}, false} ->
            {Switch, [{write, Lane, weft_wire:close(Label, overload)}]};
        _ ->
            {Switch, [{write, Lane, weft_wire:close(Label, no_route)}]}
    end.

%% @doc Messages of other links of this node.
-spec message(weft_switch_state:message(), state()) -> {state(), [effect()]}.
message({forward, Link, OtherLanes, Label, _Open}, #switch{lanes = []} = Switch) ->
    {Switch, [{link, Link, {relay_closed, Label, no_route, OtherLanes}}]};
message({forward, Link, OtherLanes, OtherLabel, #{target := Target, kind := Kind} = Open},
        Switch0) ->
    {Label, #switch{link = Self, labels = Labels} = Switch1} = allocate(Switch0),
    Lanes = lanes_for(Kind, Switch1),
    Relaying = weft_relay:add(Label, Kind, Target, Lanes, {Link, OtherLanes, OtherLabel}, Labels),
    {Switch, Watch} = watch(Link, Switch1#switch{labels = Relaying}),
    {Switch, [{link, Link, {forwarded, OtherLabel, {Self, Lanes, Label}, OtherLanes}} | Watch]
             ++ tell(weft_wire:open(Label, Open), Switch)};
message({forwarded, Label, Next, Then}, Switch) ->
    forwarded(Label, Next, is_same(Then, Switch), Switch);
message({relay_lanes, Label, Lanes, Then}, #switch{labels = Labels} = Switch) ->
    case is_same(Then, Switch) of
        true -> {Switch#switch{labels = weft_relay:next_lanes_changed(Label, Lanes, Labels)}, []};
        false -> {Switch, []}
    end;
message({relay_closed, Label, Reason, Then}, Switch) ->
    case is_same(Then, Switch) of
        true -> relay_closed(Label, Reason, Switch);
        false -> {Switch, []}
    end;
message({relay_closed, Label, Reason}, Switch) ->
    relay_closed(Label, Reason, Switch);
%% Earlier code may have sent these a moment ago.
message({forwarded, Label, Next}, Switch) ->
    forwarded(Label, Next, true, Switch);
message({relay_lanes, Label, Lanes}, #switch{labels = Labels} = Switch) ->
    {Switch#switch{labels = weft_relay:next_lanes_changed(Label, Lanes, Labels)}, []}.

%% Is the peer still the one whose circuit came by these lanes?
is_same(Then, #switch{lanes = Lanes}) ->
    lists:any(fun({Lane, _Key}) -> lists:member(Lane, Then) end, Lanes).

forwarded(Label, {Link, OtherLanes, OtherLabel} = Next, IsSame,
          #switch{labels = Labels, lanes = Lanes} = Switch) ->
    case IsSame andalso weft_relay:joined(Label, Next, Lanes, Labels) of
        {Joined, Told} ->
            {Watching, Watch} = watch(Link, Switch#switch{labels = Joined}),
            {Watching, Told ++ Watch};
        _ ->
            {Switch, [{link, Link, {relay_closed, OtherLabel, broken, OtherLanes}}]}
    end.

relay_closed(Label, Reason, #switch{labels = Labels} = Switch) ->
    case Labels of
        #{Label := #local{}} -> {Switch, []};
        #{Label := _Relay} -> close_all([Label], Reason, Switch);
        _ -> {Switch, []}
    end.

%% @doc May a packet that came under Label go on, by a lane in which so much waits? Returns the
%% label to send it under.
-spec relay(weft_relay:relay(), label(), Waiting :: non_neg_integer(), state()) ->
          {send, label()} | {done, state(), [effect()]}.
relay(Relay, Label, Waiting, #switch{relay_bytes_max = Max} = Switch0) when Waiting > Max ->
    [Lane | _] = weft_relay:lanes(Relay),
    {Switch, Lost} = lose(Label, overload, Switch0),
    {done, Switch, Lost ++ [{write, Lane, weft_wire:close(Label, overload)}]};
relay(Relay, _Label, _Waiting, _Switch) ->
    {_Link, _Lanes, NextLabel} = weft_relay:next(Relay),
    {send, NextLabel}.

%% @doc The circuit under that label is no more, and its other half is to end.
-spec lose(label(), Reason :: term(), state()) -> {state(), [effect()]}.
lose(Label, Reason, #switch{labels = Labels} = Switch) ->
    {Left, Told} = weft_relay:lose(Label, Reason, Labels),
    {Switch#switch{labels = Left}, Told}.
