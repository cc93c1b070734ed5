%% SPDX-License-Identifier: Apache-2.0
%% @doc Pictures of a cluster as a row of entries, and back. Pure.
%%
%% Of each picture only what is new is an entry: samples that were taken since, who became silent,
%% who is gone, agents and alarms if they are others than before. After `forget/1' the next picture
%% is written whole, so that what follows can be read without what was before.
-module(weft_ops_reel).

-export([new/0, forget/1, entries/3, picture/2, blank/0]).
-export_type([state/0, entry/0]).

%% For longer than `weft_ops_recorder' asks for an event again.
-define(EVENT_MS, 900000).

%% gone: the node is in no picture any more. A reader leaves out what it does not know: later
%% versions may write more.
-type entry() :: {sample, weft_ops_sample:sample()} | {silent, node()} | {gone, node()}
               | {agents, #{weft_ops_agents:duty() => node() | none}}
               | {alarms, [weft_ops_alarms_core:alarm()]} | {event, weft_ops_events:event()}.

-record(state, {nodes = #{} :: #{node() => AtMs :: integer() | silent},
                agents = none :: none | map(),
                alarms = none :: none | list(),
                %% Those that were written, and when.
                events = #{} :: #{weft_ops_events:event() => integer()}}).
-opaque state() :: #state{}.

-spec new() -> state().
new() -> #state{}.

%% @doc The next picture is written whole. Events are not written again.
-spec forget(state()) -> state().
forget(#state{events = Events}) -> #state{events = Events}.

%% @doc What is new in a picture and in the events that are known now.
-spec entries({AtMs :: integer(), weft_ops_picture:picture()}, [weft_ops_events:event()],
              state()) -> {[entry()], state()}.
entries({AtMs, #{nodes := Nodes, agents := Agents, alarms := Alarms}}, Events, State) ->
    #state{nodes = Before, events = Seen} = State,
    New = [Event || Event <- Events, not is_map_key(Event, Seen)],
    Written = maps:filter(fun(_, WrittenMs) -> AtMs - WrittenMs < ?EVENT_MS end, Seen),
    Entries = [{gone, Node} || Node <- lists:sort(maps:keys(Before)),
                               not is_map_key(Node, Nodes)]
        ++ lists:append([of_node(Node, What, Before)
                         || {Node, What} <- lists:sort(maps:to_list(Nodes))])
        ++ [{agents, Agents} || Agents =/= State#state.agents]
        ++ [{alarms, Alarms} || Alarms =/= State#state.alarms]
        ++ [{event, Event} || Event <- New],
    {Entries, #state{nodes = maps:map(fun(_, What) -> mark(What) end, Nodes), agents = Agents,
                     alarms = Alarms,
                     events = maps:merge(Written, maps:from_list([{Event, AtMs}
                                                                  || Event <- New]))}}.

of_node(Node, What, Before) ->
    case {mark(What), Before} of
        {Mark, #{Node := Mark}} -> [];
        {silent, _} -> [{silent, Node}];
        {_AtMs, _} -> [{sample, What}]
    end.

mark(silent) -> silent;
mark(#{at_ms := AtMs}) -> AtMs.

%% @doc The picture before any entry.
-spec blank() -> weft_ops_picture:picture().
blank() -> #{nodes => #{}, agents => #{}, alarms => []}.

%% @doc The picture after an entry.
-spec picture(entry() | term(), weft_ops_picture:picture()) -> weft_ops_picture:picture().
picture({sample, #{node := Node} = Sample}, #{nodes := Nodes} = Picture) ->
    Picture#{nodes := Nodes#{Node => Sample}};
picture({silent, Node}, #{nodes := Nodes} = Picture) ->
    Picture#{nodes := Nodes#{Node => silent}};
picture({gone, Node}, #{nodes := Nodes} = Picture) ->
    Picture#{nodes := maps:remove(Node, Nodes)};
picture({agents, Agents}, Picture) ->
    Picture#{agents := Agents};
picture({alarms, Alarms}, Picture) ->
    Picture#{alarms := Alarms};
picture(_Other, Picture) ->
    Picture.
