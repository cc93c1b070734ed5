%% SPDX-License-Identifier: Apache-2.0
%% @doc A small world for stores: cores, links that lose, double and reorder messages, timers that
%% fire when the world says so. For the tests of `weft_crdt_core'.
-module(weft_crdt_world).

-export([new/2, link/3, cut/3, restart/2, crash/4, tear/3, depart/2, arrive/2, answers/2, disk/2,
         command/3, reply/3, deliver/2, in_order/2, one_way/3, double/2, lose/2, settle/1, settle/2,
         tick/2, event/3, value/3, bytes/1, sent/1, warnings/1, told/1, forget/1, nodes/1, bad/0]).

-include_lib("proper/include/proper.hrl").

-record(world, {cores = #{}, options, links = #{}, queue = [], timers = #{}, replies = [],
                warnings = [], told = [], now = 0, starts = 0, sent = [], bytes = 0,
                disks = #{}}).

%% Of the option `durable_nodes' all is kept that they have to keep.
new(Nodes, Options) ->
    lists:foldl(fun start/2, #world{options = Options}, Nodes).

start(Node, #world{options = Options, starts = Starts, cores = Cores} = World) ->
    Kept = case lists:member(Node, maps:get(durable_nodes, Options, [])) of
               true -> #{durable => true, kept => disk(Node, World)};
               false -> #{}
           end,
    Run = Options#{incarnation => Starts + 1, seed => Starts},
    {Core, Effects} = weft_crdt_core:init(Node, maps:merge(Run, Kept)),
    perform(Node, Effects, World#world{starts = Starts + 1, cores = Cores#{Node => Core},
                                       timers = (World#world.timers)#{Node => []}}).

nodes(#world{cores = Cores}) -> lists:sort(maps:keys(Cores)).

link(A, A, World) -> World;
link(A, B, #world{links = Links} = World) ->
    case is_map_key(key(A, B), Links) of
        true -> World;
        false -> event(B, {neighbour_up, A},
                       event(A, {neighbour_up, B}, World#world{links = Links#{key(A, B) => up}}))
    end.

cut(A, B, #world{links = Links, queue = Queue} = World) ->
    case is_map_key(key(A, B), Links) of
        true ->
            Left = [M || {F, T, _} = M <- Queue, key(F, T) =/= key(A, B)],
            event(B, {neighbour_down, A, cut},
                  event(A, {neighbour_down, B, cut},
                        World#world{links = maps:remove(key(A, B), Links), queue = Left}));
        false -> World
    end.

key(A, B) -> {min(A, B), max(A, B)}.

%% What a node has kept, in order.
disk(Node, #world{disks = Disks}) -> lists:reverse(maps:get(Node, Disks, [])).

%% What the last items were is lost when a machine fails, which then starts again.
tear(Node, Items, #world{disks = Disks} = World) ->
    Left = lists:nthtail(min(Items, length(maps:get(Node, Disks, []))), maps:get(Node, Disks, [])),
    restart(Node, World#world{disks = Disks#{Node => Left}}).

%% A message arrives at one of these nodes, and after so many of its effects the node ends and
%% starts again.
crash(Nth, Count, At, #world{queue = Queue, cores = Cores, now = Now} = World) ->
    case [M || {_, To, _} = M <- Queue, lists:member(To, At)] of
        [] -> World;
        Some ->
            {From, To, Msg} = Chosen = nth(Nth, Some),
            {_, Effects} = weft_crdt_core:handle({message, From, Msg}, Now, map_get(To, Cores)),
            restart(To, perform(To, lists:sublist(Effects, Count),
                                World#world{queue = lists:delete(Chosen, Queue)}))
    end.

%% A node ends, and does not come back before it arrives.
depart(Node, #world{cores = Cores, links = Links} = World0) ->
    #world{timers = Timers} = World =
        lists:foldl(fun({A, B}, W) when A =:= Node; B =:= Node -> cut(A, B, W);
                       (_, W) -> W
                    end, World0, maps:keys(Links)),
    World#world{cores = maps:remove(Node, maps:with(maps:keys(Cores), World#world.cores)),
                timers = maps:remove(Node, Timers)}.

arrive(Node, World) -> start(Node, World).

%% What was replied to such commands, the last one first.
answers(Command, #world{replies = Replies}) -> [Reply || {C, Reply} <- Replies, C =:= Command].

%% The node has forgotten what it has not kept. Its links come back.
restart(Node, #world{links = Links} = World0) ->
    Others = [case Key of {Node, B} -> B; {A, Node} -> A end
              || {A0, B0} = Key <- maps:keys(Links), A0 =:= Node orelse B0 =:= Node],
    World = start(Node, lists:foldl(fun(Other, W) -> cut(Node, Other, W) end, World0, Others)),
    lists:foldl(fun(Other, W) -> link(Node, Other, W) end, World, Others).

command(Node, Command, World) -> event(Node, {command, Command, Command}, World).

reply(Node, Command, World) ->
    #world{replies = [{Command, Reply} | _]} = command(Node, Command, World),
    Reply.

value(Node, Key, #world{cores = Cores}) -> weft_crdt_core:value(Key, map_get(Node, Cores)).

event(Node, Event, #world{cores = Cores, now = Now} = World) ->
    {Core, Effects} = weft_crdt_core:handle(Event, Now, map_get(Node, Cores)),
    perform(Node, Effects, World#world{cores = Cores#{Node := Core}}).

perform(Node, Effects, World) -> lists:foldl(fun(E, W) -> effect(Node, E, W) end, World, Effects).

effect(Node, {send, To, Msg}, #world{queue = Queue, links = Links} = World) ->
    Counted = World#world{bytes = World#world.bytes + erlang:external_size(Msg),
                          sent = [{Node, To, Msg} | World#world.sent]},
    case is_map_key(key(Node, To), Links) of
        true -> Counted#world{queue = [{Node, To, Msg} | Queue]};
        false -> Counted
    end;
effect(Node, {after_ms, Ms, Timer}, #world{timers = Timers, now = Now} = World) ->
    World#world{timers = Timers#{Node := [{Now + Ms, Timer} | map_get(Node, Timers)]}};
effect(_, {reply, Ref, Reply}, #world{replies = Replies} = World) ->
    World#world{replies = [{Ref, Reply} | Replies]};
effect(_, {tell, Pid, Msg}, #world{told = Told} = World) ->
    World#world{told = [{Pid, Msg} | Told]};
effect(_, {watch, _}, World) -> World;
effect(_, {unwatch, _}, World) -> World;
effect(Node, {view, kept, Item}, #world{disks = Disks} = World) ->
    World#world{disks = Disks#{Node => [Item | maps:get(Node, Disks, [])]}};
effect(_, {notice, {warning, Warning}}, #world{warnings = Warnings} = World) ->
    World#world{warnings = [Warning | Warnings]}.

%% The message of that number, whichever it is.
deliver(_, #world{queue = []} = World) -> World;
deliver(Nth, #world{queue = Queue} = World) ->
    {From, To, Msg} = Chosen = nth(Nth, Queue),
    event(To, {message, From, Msg}, World#world{queue = lists:delete(Chosen, Queue)}).

%% So many messages, in the order in which they were sent.
in_order(0, World) -> World;
in_order(_, #world{queue = []} = World) -> World;
in_order(Count, #world{queue = Queue} = World) ->
    in_order(Count - 1, deliver(length(Queue) - 1, World)).

%% All that is on its way from one node to the other.
one_way(From, To, #world{queue = Queue} = World) ->
    {Now, Later} = lists:partition(fun({F, T, _}) -> {F, T} =:= {From, To} end, Queue),
    lists:foldr(fun({_, _, Msg}, W) -> event(To, {message, From, Msg}, W) end,
                World#world{queue = Later}, Now).

double(_, #world{queue = []} = World) -> World;
double(Nth, #world{queue = Queue} = World) -> World#world{queue = [nth(Nth, Queue) | Queue]}.

lose(_, #world{queue = []} = World) -> World;
lose(Nth, #world{queue = Queue} = World) ->
    World#world{queue = lists:delete(nth(Nth, Queue), Queue)}.

nth(N, List) -> lists:nth(N rem length(List) + 1, List).

%% All that is on its way arrives, and what that causes.
deliver_all(#world{queue = []} = World) -> World;
deliver_all(#world{queue = Queue} = World) ->
    deliver_all(lists:foldl(fun({From, To, Msg}, W) -> event(To, {message, From, Msg}, W) end,
                            World#world{queue = []}, lists:reverse(Queue))).

%% The time goes on, and the timers fire.
tick(Ms, #world{now = Now, cores = Cores} = World) ->
    lists:foldl(fun(Node, #world{timers = Timers} = W) ->
                    {Due, Later} = lists:partition(fun({At, _}) -> At =< Now + Ms end,
                                                   map_get(Node, Timers)),
                    lists:foldl(fun({_, Timer}, V) -> event(Node, {timer, Timer}, V) end,
                                W#world{timers = Timers#{Node := Later}}, lists:sort(Due))
                end, World#world{now = Now + Ms}, maps:keys(Cores)).

settle(World) -> settle(30, World).

settle(0, World) -> deliver_all(World);
settle(Rounds, World) -> settle(Rounds - 1, tick(3000, deliver_all(tick(10, deliver_all(World))))).

bytes(#world{bytes = Bytes}) -> Bytes.
sent(#world{sent = Sent}) -> lists:reverse(Sent).
warnings(#world{warnings = Warnings}) -> Warnings.
told(#world{told = Told}) -> lists:reverse(Told).

%% What was sent until now is not counted.
forget(World) -> World#world{bytes = 0, sent = []}.

%% Whatever might be sent instead of what is expected. PropEr's own terms have ever new atoms, which
%% a long run has no room for.
bad() -> ?SIZED(Size, bad(min(Size, 20))).

bad(Size) when Size < 2 ->
    oneof([integer(), float(), binary(), [], #{}, a, true, undefined]);
bad(Size) ->
    Small = ?LAZY(bad(Size div 3)),
    oneof([bad(0), [Small], [Small | Small], {Small, Small}, {Small, Small, Small},
           #{Small => Small}, list(integer())]).
