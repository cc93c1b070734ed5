%% SPDX-License-Identifier: Apache-2.0
%% @doc For tests: the ring in a small world of nodes that join, leave, crash, come back and are cut
%% off from each other, with handoffs that take their time. Each function gives the next world.
-module(weft_ring_world).

-export([world/1, started/2, nodes_of/1, cut/2, heal/1, crash/2, restart/2, forget/2]).
-export([event/3, command/3, reply/3, deliver/2, deliver_all/1, handoff/2, done/2, look/2]).
-export([ring/2, mine/2, waves/2, rounds/2, quiet/1, quiet/2, handed/2]).
-export([joined/2, joined_at_once/2, full/1, full/2, commit/3, checked/1, wrong_in_the_end/2]).
-export_type([world/0]).

-define(PARTITIONS, 16).
-define(SYNC, {timer, sync}).

%% `kept', `asked' and `forgotten': what each node has on disk. `running': handoffs that have begun.
%% `copied': those of which the next owner has all, and the owner will hear of it. `whole': those of
%% which it has all, on disk. `data': who has the data of what.
-type world() :: map().

empty() ->
    #{cores => #{}, kept => #{}, asked => #{}, forgotten => #{}, links => #{}, queue => [],
      running => [], copied => [], whole => [], data => #{}, settle => false, gone_max => 32,
      replies => [], warnings => [], starts => 0, sent => 0}.

-spec world([node()]) -> world().
world(Nodes) -> lists:foldl(fun started/2, empty(), Nodes).

%% @doc Those that run, or have something on their disk.
-spec nodes_of(world()) -> [node()].
nodes_of(#{kept := Kept, asked := Asked, cores := Cores}) ->
    lists:usort(maps:keys(Kept) ++ maps:keys(Asked) ++ maps:keys(Cores)).

-spec started(node(), world()) -> world().
started(Node, #{cores := Cores} = World) when is_map_key(Node, Cores) -> World;
started(Node, #{starts := Starts, kept := Kept} = World) ->
    Options = #{partitions => ?PARTITIONS, n_val => 2, incarnation => Starts, seed => Starts,
                settle => map_get(settle, World), gone_max => map_get(gone_max, World),
                ring => maps:get(Node, Kept, none),
                asked => maps:get(Node, map_get(asked, World), none),
                forgotten => maps:get(Node, map_get(forgotten, World), false)},
    {Core, Effects} = weft_ring_core:init(Node, Options),
    Started = World#{starts := Starts + 1, cores := (map_get(cores, World))#{Node => Core}},
    linked(Node, effects(Node, Effects, Started)).

%% All that run are neighbours, unless their link is cut.
linked(Node, #{cores := Cores} = World) ->
    lists:foldl(fun(Other, W) -> up(Node, Other, W) end, World, maps:keys(Cores) -- [Node]).

up(A, B, #{links := Links} = World) ->
    case maps:get(link(A, B), Links, down) of
        down -> event(A, {neighbour_up, B},
                      event(B, {neighbour_up, A}, World#{links := Links#{link(A, B) => up}}));
        _ -> World
    end.

link(A, B) when A < B -> {A, B};
link(A, B) -> {B, A}.

-spec cut([{node(), node()}], world()) -> world().
cut(Pairs, World) ->
    lists:foldl(fun({A, A}, W) -> W;
                   ({A, B}, W) -> down(A, B, cut, W)
                end, World, Pairs).

down(A, B, How, #{links := Links, queue := Queue} = World0) ->
    World = World0#{links := Links#{link(A, B) => How},
                    queue := [M || {From, To, _} = M <- Queue, link(From, To) =/= link(A, B)]},
    case maps:get(link(A, B), Links, down) of
        up -> event(A, {neighbour_down, B, cut}, event(B, {neighbour_down, A, cut}, World));
        _ -> World
    end.

-spec heal(world()) -> world().
heal(#{links := Links, cores := Cores} = World) ->
    Healed = World#{links := maps:filter(fun(_, How) -> How =/= cut end, Links)},
    lists:foldl(fun linked/2, Healed, maps:keys(Cores)).

-spec crash(node(), world()) -> world().
crash(Node, #{cores := Cores} = World) when is_map_key(Node, Cores) ->
    Apart = lists:foldl(fun(Other, W) ->
                            case maps:get(link(Node, Other), map_get(links, W), down) of
                                cut -> W;
                                _ -> down(Node, Other, down, W)
                            end
                        end, World, maps:keys(Cores) -- [Node]),
    #{running := Running, copied := Copied} = Apart,
    Apart#{cores := maps:remove(Node, map_get(cores, Apart)),
           running := [H || {From, _} = H <- Running, From =/= Node],
           copied := [H || {From, _} = H <- Copied, From =/= Node]};
crash(_, World) ->
    World.

-spec restart(node(), world()) -> world().
restart(Node, World) ->
    started(Node, World).

%% @doc The disk of a node is lost, which does not run. What was copied to it is copied again.
-spec forget(node(), world()) -> world().
forget(Node, #{kept := Kept, asked := Asked, forgotten := Forgotten, whole := Whole,
               running := Running, copied := Copied} = World) ->
    Lost = [H || {_, {_, _, To}} = H <- Copied, To =:= Node],
    without_data(Node, World#{kept := maps:remove(Node, Kept), asked := maps:remove(Node, Asked),
                              forgotten := maps:remove(Node, Forgotten),
                              whole := [H || {N, _} = H <- Whole, N =/= Node],
                              running := Running ++ Lost, copied := Copied -- Lost}).

-spec event(node(), weft_core:event(), world()) -> world().
event(Node, Event, #{cores := Cores} = World) ->
    case Cores of
        #{Node := Core0} ->
            {Core, Effects} = weft_ring_core:handle(Event, 0, Core0),
            effects(Node, Effects, World#{cores := Cores#{Node := Core}});
        #{} -> World
    end.

effects(Node, Effects, World) ->
    lists:foldl(fun(Effect, W) -> effect(Effect, Node, W) end, World, Effects).

effect({send, To, Msg}, From, #{links := Links, queue := Queue, sent := Sent} = World) ->
    case maps:get(link(From, To), Links, down) of
        up -> World#{queue := Queue ++ [{From, To, Msg}], sent := Sent + 1};
        _ -> World
    end;
effect({view, ring, Ring}, Node, #{kept := Kept} = World) ->
    World#{kept := Kept#{Node => Ring}};
effect({view, asked, Via}, Node, #{asked := Asked} = World) ->
    World#{asked := Asked#{Node => Via}};
effect({view, forgotten, Is}, Node, #{forgotten := Forgotten} = World) ->
    World#{forgotten := Forgotten#{Node => Is}};
%% Who owns something that nobody has the data of, was the first. Who seized it has them as well.
effect({view, mine, Mine}, Node, #{data := Data, kept := Kept} = World) ->
    Seized = [P || P <- Mine, weft_ring_table:is_seized(P, map_get(Node, Kept))],
    World#{data := maps:merge_with(fun(P, Own, Nodes) ->
                                       case lists:member(P, Seized) of
                                           true -> lists:usort(Own ++ Nodes);
                                           false -> Nodes
                                       end
                                   end, maps:from_list([{P, [Node]} || P <- Mine]), Data)};
effect({notice, {handoff, start, Transfer}}, Node, #{running := Running} = World) ->
    World#{running := Running ++ [{Node, Transfer}]};
effect({notice, {handoff, cancel, Transfer}}, Node, World) ->
    World#{running := lists:delete({Node, Transfer}, map_get(running, World)),
           copied := lists:delete({Node, Transfer}, map_get(copied, World))};
effect({notice, {warning, Warning}}, _, #{warnings := Warnings} = World) ->
    World#{warnings := [Warning | Warnings]};
effect({notice, {unanswered, _} = Unanswered}, _, #{warnings := Warnings} = World) ->
    World#{warnings := [Unanswered | Warnings]};
effect({notice, leave}, _, #{warnings := Warnings} = World) ->
    World#{warnings := [leave | Warnings]};
effect({reply, Ref, Reply}, _, #{replies := Replies} = World) ->
    World#{replies := [{Ref, Reply} | Replies]};
effect({after_ms, _, sync}, _, World) ->
    World.

-spec command(node(), term(), world()) -> world().
command(Node, Command, World) -> event(Node, {command, Command, Command}, World).

-spec reply(Command :: term(), node(), world()) -> term().
reply(Command, Node, World) ->
    #{replies := [{Command, Reply} | _]} = command(Node, Command, World),
    Reply.

%% @doc One of the messages on their way, but no later one of the same link before it.
-spec deliver(non_neg_integer(), world()) -> world().
deliver(_, #{queue := []} = World) -> World;
deliver(Nth, #{queue := Queue} = World) ->
    {From, To, _} = lists:nth(Nth rem length(Queue) + 1, Queue),
    [{From, To, Msg} = First | _] = [M || {F, T, _} = M <- Queue, F =:= From, T =:= To],
    event(To, {message, From, Msg}, World#{queue := lists:delete(First, Queue)}).

-spec deliver_all(world()) -> world().
deliver_all(#{queue := []} = World) -> World;
deliver_all(World) -> deliver_all(deliver(0, World)).

%% @doc All data are copied if both ends run and have a link, and the next owner takes them.
-spec handoff(non_neg_integer(), world()) -> world().
handoff(_, #{running := []} = World) -> World;
handoff(Nth, #{running := Running, links := Links, data := Data} = World0) ->
    {From, {P, _, To} = Transfer} = This = lists:nth(Nth rem length(Running) + 1, Running),
    World = World0#{running := lists:delete(This, Running)},
    case maps:get(link(From, To), Links, down) =:= up andalso takes(To, World) of
        true ->
            World#{data := Data#{P => lists:usort([To | maps:get(P, Data)])},
                   whole := [{To, Transfer} | [T || {N, {Q, _, _}} = T <- map_get(whole, World),
                                                    {N, Q} =/= {To, P}]],
                   copied := [This | map_get(copied, World)]};
        false ->
            command(From, {handoff, failed, Transfer}, World)
    end.

takes(Node, #{forgotten := Forgotten} = World) ->
    case {maps:get(Node, Forgotten, false), ring(Node, World)} of
        {true, _} -> false;
        {false, none} -> false;
        {false, Ring} -> weft_ring_table:takes(Node, Ring)
    end.

%% @doc Some time later the owner hears that they are, and may have other plans by then.
-spec done(non_neg_integer(), world()) -> world().
done(_, #{copied := []} = World) -> World;
done(Nth, #{copied := Copied} = World) ->
    {From, {P, _, _} = Transfer} = This = lists:nth(Nth rem length(Copied) + 1, Copied),
    Given = command(From, {handoff, done, Transfer}, World#{copied := Copied -- [This]}),
    case lists:member(P, mine(From, Given)) of
        true -> Given;
        false -> dropped(From, P, Given)
    end.

dropped(Node, P, #{data := Data} = World) ->
    World#{data := maps:update_with(P, fun(Nodes) -> Nodes -- [Node] end, Data)}.

%% @doc As the processes of partitions do at rest: what the node has whole, and shall not have, it
%% drops once it can not be given to it any more. It leaves when there is no such thing.
-spec look(node(), world()) -> world().
look(Node, World) ->
    case maps:is_key(Node, map_get(cores, World)) andalso ring(Node, World) =/= none of
        true -> looked(Node, World);
        false -> World
    end.

looked(Node, World0) ->
    Whole = [T || {N, T} <- map_get(whole, World0), N =:= Node],
    case lists:foldl(fun(T, W) -> looked(Node, T, W) end, World0, Whole) of
        #{whole := Left} = World ->
            case lists:keymember(Node, 1, Left) of
                true -> World;
                false -> command(Node, {leave, ready}, World)
            end
    end.

looked(Node, {P, _, _} = Transfer, World) ->
    case {weft_ring_table:is_promised(Transfer, ring(Node, World)),
          lists:member(P, mine(Node, World))} of
        {true, _} -> command(Node, {promised, Transfer}, World);
        {false, true} -> World#{whole := lists:delete({Node, Transfer}, map_get(whole, World))};
        {false, false} ->
            dropped(Node, P, World#{whole := lists:delete({Node, Transfer},
                                                          map_get(whole, World))})
    end.

-spec ring(node(), world()) -> none | weft_ring_table:ring().
ring(Node, #{cores := Cores}) -> weft_ring_core:ring(maps:get(Node, Cores)).
-spec mine(node(), world()) -> [non_neg_integer()].
mine(Node, #{cores := Cores}) -> lists:sort(weft_ring_core:mine(maps:get(Node, Cores))).

%% @doc Everything is delivered, in waves: what a wave causes is in the next one.
-spec waves(non_neg_integer(), world()) -> world().
waves(0, World) -> World;
waves(Count, #{queue := Queue} = World) ->
    waves(Count - 1, lists:foldl(fun(_, W) -> deliver(0, W) end, World, Queue)).

-spec rounds(non_neg_integer(), world()) -> world().
rounds(0, World) -> deliver_all(World);
rounds(Count, #{cores := Cores} = World) ->
    rounds(Count - 1, lists:foldl(fun(Node, W) -> event(Node, ?SYNC, W) end, deliver_all(World),
                                  lists:sort(maps:keys(Cores)))).

%% @doc Long enough for all that has to happen.
-spec quiet(world()) -> world().
quiet(World) -> quiet(60, World).

-spec quiet(Rounds :: non_neg_integer(), world()) -> world().
quiet(0, World) -> deliver_all(World);
quiet(Rounds, World) ->
    #{cores := Cores, settle := Settle} = Handed = handed(40, rounds(1, World)),
    quiet(Rounds - 1, case Settle of
                          true -> lists:foldl(fun look/2, Handed, maps:keys(Cores));
                          false -> Handed
                      end).

-spec handed(Count :: non_neg_integer(), world()) -> world().
handed(0, World) -> World;
handed(_, #{running := [], copied := []} = World) -> World;
handed(Count, World) ->
    handed(Count - 1, checked(deliver_all(done(0, handoff(0, World))))).

%% --- common beginnings ------------------------------------------------------------------------

-spec joined([node(), ...], world()) -> world().
joined([First | Others], World) ->
    lists:foldl(fun(Node, W) -> rounds(1, command(Node, {join, First}, W)) end,
                command(First, create, World), Others).

-spec joined_at_once([node(), ...], world()) -> world().
joined_at_once([First | Others], World) ->
    deliver_all(lists:foldl(fun(Node, W) -> command(Node, {join, First}, W) end,
                            command(First, create, World), Others)).

-spec full([node(), ...]) -> world().
full(Nodes) -> full(Nodes, #{}).

-spec full([node(), ...], Options :: map()) -> world().
full([First | Others] = Nodes, Options) ->
    World = lists:foldl(fun started/2, maps:merge(empty(), Options), Nodes),
    quiet(commit(First, [{Node, join} || Node <- Others], joined(Nodes, World))).

-spec commit(On :: node(), [{node(), weft_ring_plan:change()}], world()) -> world().
commit(On, Changes, #{cores := Cores, replies := Before} = World0)
  when is_map_key(On, Cores) ->
    World = lists:foldl(fun({Node, Change}, W) ->
                            without(Change, Node, command(On, {stage, Node, Change}, W))
                        end, World0, Changes),
    case command(On, plan, World) of
        #{replies := [{plan, {ok, #{token := Token}}} | _]} = Planned ->
            Committed = command(On, {commit, Token}, Planned),
            Committed#{replies := Before};
        Other -> Other#{replies := Before}
    end;
commit(_, _, World) ->
    World.

%% With a node that is removed goes what it had.
without(remove, Node, World) -> without_data(Node, World);
without(_, _, World) -> World.

without_data(Node, #{data := Data} = World) ->
    World#{data := maps:filter(fun(_, Nodes) -> Nodes =/= [] end,
                               maps:map(fun(_, Nodes) -> Nodes -- [Node] end, Data))}.

%% --- what has to hold -------------------------------------------------------------------------

%% @doc No two owners, and who is one has the data.
-spec checked(world()) -> world().
checked(#{cores := Cores, data := Data} = World) ->
    All = [{P, Node} || {Node, Core} <- maps:to_list(Cores), P <- weft_ring_core:mine(Core)],
    case {length(All) - length(lists:ukeysort(1, All)),
          [Pair || {P, Node} = Pair <- All, not lists:member(Node, maps:get(P, Data, []))]} of
        {0, []} -> World;
        Wrong -> error({Wrong, lists:sort(All)})
    end.

-spec wrong_in_the_end(Members :: [node(), ...], world()) -> [term()].
wrong_in_the_end(Members, World) ->
    Rings = [{Node, ring(Node, World)} || Node <- Members],
    {_, Ring} = hd(Rings),
    Mine = lists:sort(lists:append([mine(Node, World) || Node <- Members])),
    Active = [Node || {Node, _} <- weft_ring_table:members([member], Ring)],
    [{differs, Node} || {Node, R} <- Rings, R =/= Ring]
        ++ [{owned, Mine} || Mine =/= lists:seq(0, ?PARTITIONS - 1)]
        ++ [not_as_planned || weft_ring_table:owners(Ring) =/= weft_ring_table:planned(Ring)]
        ++ [{members, Active} || Active =/= lists:sort(Members)]
        ++ [{leaving, N} || {N, _} <- weft_ring_table:members([leaving], Ring)]
        ++ [not_planned_for_all || weft_ring_table:needs_plan(Ring)].
