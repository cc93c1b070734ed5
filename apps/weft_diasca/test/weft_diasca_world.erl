%% SPDX-License-Identifier: Apache-2.0
%% @doc The cores of a simulation in a world without processes: what each of them sends arrives in
%% the order sent, and what different ones send arrives in an order of chance.
-module(weft_diasca_world).

-export([run/4, stopped/5, phases/4, continue/4]).

%% `stop': after so many deliveries the run is stopped.
-record(world, {root, managers = #{}, actors = #{}, directory = #{}, channels = #{}, random,
                stop = never, kept = [], began = [], outcome = none}).

%% @doc {over, Result} or {failed, Reason}, with the checkpoints that were kept, the last first.
run(Actors, Nodes, Settings, Chance) ->
    ended(begun(Actors, Nodes, Settings, Chance)).

%% @doc The same, and it is stopped when so many events were delivered.
stopped(Deliveries, Actors, Nodes, Settings, Chance) ->
    {Effects, Root} = weft_diasca_root_core:new(Actors, Nodes, Settings),
    ended(until_over(effects(Effects, root, (world(Root, Nodes, Chance))
                                                #world{stop = Deliveries}))).

%% @doc What the root was at, one after the other, as it tells its watchdog.
phases(Actors, Nodes, Settings, Chance) ->
    #world{began = Began} = begun(Actors, Nodes, Settings, Chance),
    lists:reverse(Began).

begun(Actors, Nodes, Settings, Chance) ->
    start(weft_diasca_root_core:new(Actors, Nodes, Settings), Nodes, Chance).

%% @doc The same from a checkpoint.
continue(Checkpoint, Nodes, Settings, Chance) ->
    ended(start(weft_diasca_root_core:restored(Checkpoint, Nodes, Settings), Nodes, Chance)).

start({Effects, Root}, Nodes, Chance) ->
    until_over(effects(Effects, root, world(Root, Nodes, Chance))).

world(Root, Nodes, Chance) ->
    #world{root = Root, random = weft_diasca_random:new(Chance, 0),
           managers = maps:from_list([{Node, weft_diasca_manager_core:new(Node)}
                                      || Node <- Nodes]),
           directory = maps:from_list([{Node, {0, #{}}} || Node <- Nodes])}.

ended(#world{outcome = {Kind, What}, kept = Kept}) -> {Kind, What, Kept}.

until_over(#world{outcome = none, stop = 0} = World) ->
    until_over(deliver(root, stop, World#world{stop = never}));
until_over(#world{outcome = none, stop = Stop} = World) when is_integer(Stop) ->
    until_over(delivered(World#world{stop = Stop - 1}));
until_over(#world{outcome = none} = World) ->
    until_over(delivered(World));
until_over(World) ->
    World.

delivered(#world{channels = Channels, random = Random0} = World) ->
    {Chosen, Random} = weft_diasca_random:uniform(map_size(Channels), Random0),
    {From, To} = lists:nth(Chosen, maps:keys(Channels)),
    #{{From, To} := {[Event | Rest], Late}} = Channels,
    Left = case {Rest, Late} of
               {[], []} -> maps:remove({From, To}, Channels);
               {[], _} -> Channels#{{From, To} := {lists:reverse(Late), []}};
               _ -> Channels#{{From, To} := {Rest, Late}}
           end,
    deliver(To, Event, World#world{channels = Left, random = Random}).

deliver(root, Event, #world{root = Root0} = World) ->
    {Effects, Root} = weft_diasca_root_core:handle(Event, Root0),
    effects(Effects, root, World#world{root = Root});
deliver({manager, Node} = Self, Event, #world{managers = Managers} = World) ->
    {Effects, Manager} = weft_diasca_manager_core:handle(Event, maps:get(Node, Managers)),
    effects(Effects, Self, World#world{managers = Managers#{Node := Manager}});
deliver({actor, Id, _}, the_end, #world{actors = Actors} = World) ->
    World#world{actors = maps:remove(Id, Actors)};
deliver({actor, Id, Node} = Self, Event, #world{actors = Actors} = World) ->
    {Last, Known} = maps:get(Node, World#world.directory),
    Lookup = fun(To) when To > Last -> unknown;
                (To) -> maps:get(To, Known, gone)
             end,
    {Effects, Actor} = weft_diasca_actor_core:handle(Event, Lookup, maps:get(Id, Actors)),
    effects(Effects, Self, World#world{actors = Actors#{Id := Actor}}).

effects(Effects, Self, World) ->
    lists:foldl(fun(Effect, W) -> effect(Effect, Self, W) end, World, Effects).

effect({send, Node, Event}, root, World) -> push(root, {manager, Node}, Event, World);
effect({began, Phase}, root, #world{began = Began} = World) ->
    World#world{began = [Phase | Began]};
effect({keep, Checkpoint}, root, #world{kept = Kept} = World) ->
    push(root, root, kept, World#world{kept = [Checkpoint | Kept]});
effect({over, Result}, root, World) -> World#world{outcome = {over, Result}};
effect({failed, Reason}, root, World) -> World#world{outcome = {failed, Reason}};
effect({root, Message}, Self, World) -> push(Self, root, Message, World);
effect({spawn, {Id, Birth}}, {manager, Node} = Self, #world{actors = Actors} = World) ->
    push(Self, Self, {spawned, Id, {actor, Id, Node}},
         World#world{actors = Actors#{Id => weft_diasca_actor_core:new(Id, Birth)}});
effect({directory, {Last, Born}, Gone}, {manager, Node}, #world{directory = All} = World) ->
    {_, Known} = maps:get(Node, All),
    New = [{Id, {ok, Address, case Home of Node -> here; _ -> away end}}
           || {Id, {actor, _, Home} = Address} <- Born],
    World#world{directory = All#{Node := {Last, maps:without(Gone, maps:merge(
                                                   Known, maps:from_list(New)))}}};
effect({end_actor, Address}, Self, World) -> push(Self, Address, the_end, World);
effect({manager, Message}, {actor, _, Node} = Self, World) ->
    push(Self, {manager, Node}, Message, World);
effect({post, Address, Message}, Self, World) ->
    push(Self, Address, erlang:append_element(Message, Self), World);
effect({send, Address, Event}, Self, World) ->
    push(Self, Address, Event, World).

push(From, To, Event, #world{channels = Channels} = World) ->
    Channel = case Channels of
                  #{{From, To} := {Early, Late}} -> {Early, [Event | Late]};
                  #{} -> {[Event], []}
              end,
    World#world{channels = Channels#{{From, To} => Channel}}.
