%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes, their machines and the network in virtual time: the second interpreter of cores.
%%
%% A node runs machines, each a pure module with the contract `weft_core'; machines of the same name
%% on different nodes talk to each other, and those of one node hear the same links. What is not
%% a core but can be wrapped into one (a session with its window, say) runs here as well.
%%
%% Everything that happens is an entry in one queue ordered by time and then by order of creation,
%% and all chance comes from one seed, so a run can be repeated exactly. Time is in microseconds
%% here and given to the machines in milliseconds.
%%
%% What is known of one node is in `weft_sim_node', what runs on it in `weft_sim_machines', who can
%% reach whom in `weft_sim_network', and what is seen of it all (checkers, counters, the trace) in
%% `weft_sim_witness'. Verbs, the vocabulary of scenarios, are documented at `verb()'.
-module(weft_sim_world).

-export([new/1, run_until/2, schedule/3, settled/1,
         now_ms/1, view_changed_ms/1, running/1, peers/2, is_live/3, agreed/2,
         view/3, views/2, machine/3,
         violation/1, counters/1, observed/1, trace/1]).
-export_type([world/0, verb/0, config/0]).

-record(world, {
    now_us = 0 :: non_neg_integer(),
    queue = weft_sim_queue:new() :: weft_sim_queue:queue(),
    nodes = #{} :: #{node() => weft_sim_node:sim_node()},
    network :: weft_sim_network:network(),
    machines :: fun((node()) -> [{atom(), module(), map()}]),
    seed :: integer(),
    witness :: weft_sim_witness:witness()}).

-opaque world() :: #world{}.

-type config() :: #{seed := integer(),
                    machines := fun((node()) -> [{Name :: atom(), module(), Options :: map()}]),
                    checkers => weft_sim_checker:checkers(),
                    latency_us => weft_sim_network:latency_us(),
                    detection_ms => {non_neg_integer(), non_neg_integer()},
                    observer => {module(), State :: term()},
                    weigh => boolean(),
                    trace => boolean()}.
%% `observer': sees messages and notices, see `weft_sim_observer'. `weigh' (true): count the bytes
%% of messages as well.

-type verb() ::
    {start, node()}                          % the first time or again, with a higher incarnation
  | {start, node(), Incarnation :: non_neg_integer()}
  | {crash, node()}                          % all state is lost
  | {restart_machine, node(), Machine :: atom()}   % its state is lost; node and links stay
  | {pause, node()} | {resume, node()}       % as if the machine slept; links time out meanwhile
  | {cut, node(), node()} | {cut_one_way, From :: node(), To :: node()} | {heal, node(), node()}
  | {partition, [[node()]]}                  % cuts all pairs across the given groups
  | heal_all                                 % no cuts, all paused resumed, all crashed started
  | {command, node(), Machine :: atom(), Command :: term()}
  | {notice, node(), Machine :: atom(), Notice :: term()}.

%% @doc An empty world at time 0.
-spec new(config()) -> world().
new(#{seed := Seed, machines := Machines} = Config) ->
    #world{network = weft_sim_network:new(rand:seed_s(exsss, Seed), Config),
           machines = Machines, seed = Seed, witness = weft_sim_witness:new(Config)}.

%% @doc Has a verb happen at the given time.
-spec schedule(AtMs :: non_neg_integer(), verb(), world()) -> world().
schedule(AtMs, Verb, World) ->
    at(AtMs * 1000, {verb, Verb}, World).

%% @doc Lets everything up to the given time happen, or all up to the first violation.
-spec run_until(UntilMs :: non_neg_integer(), world()) -> world().
run_until(UntilMs, World) ->
    step(UntilMs * 1000, World).

step(UntilUs, #world{queue = Queue0, witness = Witness} = World) ->
    case violation(World) =:= none andalso weft_sim_queue:out(UntilUs, Queue0) of
        false ->
            World;
        {AtUs, Event, Queue} ->
            step(UntilUs, happen(Event, World#world{now_us = AtUs, queue = Queue,
                                                    witness = weft_sim_witness:event(Witness)}));
        none ->
            World#world{now_us = UntilUs}
    end.

%% @doc Asks the checkers for what must hold in the end.
-spec settled(world()) -> world().
settled(#world{witness = Witness, now_us = NowUs} = World) ->
    World#world{witness = weft_sim_witness:settled(World, NowUs, Witness)}.

%% --- reading the world ---

%% @doc Virtual time.
-spec now_ms(world()) -> non_neg_integer().
now_ms(#world{now_us = NowUs}) -> NowUs div 1000.

%% @doc When a view of any node last changed.
-spec view_changed_ms(world()) -> non_neg_integer().
view_changed_ms(#world{witness = Witness}) -> weft_sim_witness:view_changed_us(Witness) div 1000.

%% @doc The nodes that are neither down nor paused, in term order.
-spec running(world()) -> [node()].
running(#world{nodes = Nodes}) ->
    lists:sort([Name || {Name, Node} <- maps:to_list(Nodes),
                        weft_sim_node:state(Node) =:= running]).

%% @doc Whether both ends believe in the same stream, so that messages pass.
-spec is_live(node(), node(), world()) -> boolean().
is_live(A, B, World) ->
    case {streams(A, World), streams(B, World)} of
        {#{B := Id}, #{A := Id}} -> true;
        {#{}, #{}} -> false
    end.

%% @doc The nodes to which a node believes to have a link, in term order.
-spec peers(node(), world()) -> [node()].
peers(Name, World) ->
    lists:sort(maps:keys(streams(Name, World))).

%% @doc The nodes that a machine of the node has said are its neighbours, in term order. Only these
%% links are there for the other machines of a real node.
-spec agreed(node(), world()) -> [node()].
agreed(Name, World) -> weft_sim_node:agreed(node_of(Name, World)).

%% @doc A view of a node.
-spec view(node(), Key :: term(), world()) -> term() | undefined.
view(Name, Key, World) ->
    weft_sim_machines:view(Key, machines(Name, World)).

%% @doc All views of a node.
-spec views(node(), world()) -> #{Key :: term() => Value :: term()}.
views(Name, World) ->
    weft_sim_machines:views(machines(Name, World)).

%% @doc The state of a machine, for checkers that look inside.
-spec machine(node(), Machine :: atom(), world()) -> {ok, State :: term()} | error.
machine(Name, Machine, World) ->
    weft_sim_machines:state(Machine, machines(Name, World)).

%% @doc The first violation found.
-spec violation(world()) -> none | {AtMs :: non_neg_integer(), Checker :: module(), string()}.
violation(#world{witness = Witness}) -> weft_sim_witness:violation(Witness).

%% @doc Events processed, messages and bytes (external term format) sent.
-spec counters(world()) -> #{events | messages | bytes => non_neg_integer()}.
counters(#world{witness = Witness}) -> weft_sim_witness:counters(Witness).

%% @doc The state of the observer.
-spec observed(world()) -> term().
observed(#world{witness = Witness}) -> weft_sim_witness:observed(Witness).

%% @doc What happened, oldest first, if the world was asked to trace.
-spec trace(world()) -> [{NowUs :: non_neg_integer(), term()}].
trace(#world{witness = Witness}) -> weft_sim_witness:trace(Witness).

%% --- what happens ---

happen({verb, Verb}, World) ->
    verb(Verb, traced(Verb, World));
happen({arrive, Id, From, To, Machine, Msg}, #world{network = Network} = World) ->
    case weft_sim_network:is_flowing(Id, From, To, Network) of
        true -> happen({deliver, Id, From, To, Machine, Msg}, World);
        false -> World
    end;
happen({opened, Id, Name, Peer}, #world{network = Network} = World) ->
    happen({link_up, Id, Name, Peer},
           World#world{network = weft_sim_network:opened(Id, Network)});
happen({timer, Name, _, _, _, _} = Event, World) -> happen_at(Name, Event, World);
happen({deliver, _, _, To, _, _} = Event, World) -> happen_at(To, Event, World);
happen({link_up, _, Name, _} = Event, World) -> happen_at(Name, Event, World);
happen({link_down, _, Name, _, _} = Event, World) -> happen_at(Name, Event, World);
happen({connect_failed, Name, _, _} = Event, World) -> happen_at(Name, Event, World);
happen({pause_noticed, Name, _} = Event, World) -> happen_at(Name, Event, World).

happen_at(Name, Event, World) ->
    Node = node_of(Name, World),
    case weft_sim_node:fate(Event, Node) of
        take -> taken(Event, World);
        hold -> put_node(Name, weft_sim_node:hold(Event, Node), World);
        lost -> World
    end.

taken({timer, Name, _Starts, Machine, _Generation, Timer}, World) ->
    to_machine(Name, Machine, {timer, Timer}, World);
taken({deliver, _Id, From, To, Machine, Msg}, World) ->
    to_machine(To, Machine, {message, From, Msg},
               traced({message, From, To, Machine, Msg}, World));
taken({link_up, Id, Name, Peer}, #world{network = Network} = World) ->
    case weft_sim_network:is_flowing(Id, Peer, Name, Network) of
        true -> link_up(Id, Name, Peer, World);
        false -> to_machines(Name, {neighbour_down, Peer, connect_failed}, World)
    end;
taken({link_down, Id, Name, Peer, Reason}, World) ->
    link_down(Id, Name, Peer, Reason, World);
taken({connect_failed, Name, _Starts, Peer}, World) ->
    to_machines(Name, {neighbour_down, Peer, connect_failed}, World);
taken({pause_noticed, Name, _Starts}, World) ->
    lose_peers(Name, World).

%% --- verbs ---

verb({start, Name}, World) ->
    Starts = weft_sim_node:starts(node_of(Name, World)),
    verb({start, Name, now_ms(World) div 1000 + Starts + 1}, World);
verb({start, Name, Incarnation}, World) ->
    case state(Name, World) of
        down -> start(Name, Incarnation, World);
        _AlreadyUp -> World
    end;
verb({crash, Name}, World) ->
    lose_peers(Name, put_node(Name, weft_sim_node:crash(node_of(Name, World)), World));
verb({restart_machine, Name, Machine}, World) ->
    case state(Name, World) of
        running -> restart_machine(Name, Machine, World);
        _ -> World
    end;
verb({pause, Name}, #world{network = Network0, now_us = NowUs} = World) ->
    case state(Name, World) of
        running ->
            Node = node_of(Name, World),
            {DelayUs, Network} = weft_sim_network:detection_us(Network0),
            at(NowUs + DelayUs, {pause_noticed, Name, weft_sim_node:starts(Node)},
               put_node(Name, weft_sim_node:pause(Node), World#world{network = Network}));
        _ -> World
    end;
verb({resume, Name}, #world{now_us = NowUs} = World) ->
    case state(Name, World) of
        paused ->
            {Held, Node} = weft_sim_node:resume(node_of(Name, World)),
            lists:foldl(fun(Event, W) -> at(NowUs, Event, W) end, put_node(Name, Node, World),
                        Held);
        _ -> World
    end;
verb({cut, A, B}, #world{network = Network} = World) ->
    notice_break(A, B, World#world{network = weft_sim_network:cut(A, B, Network)});
verb({cut_one_way, From, To}, #world{network = Network} = World) ->
    notice_break(From, To, World#world{network = weft_sim_network:cut_one_way(From, To, Network)});
verb({heal, A, B}, #world{network = Network} = World) ->
    World#world{network = weft_sim_network:heal(A, B, Network)};
verb({partition, Groups}, World) ->
    Pairs = [{A, B} || Group <- Groups, Other <- Groups, Group < Other, A <- Group, B <- Other],
    lists:foldl(fun({A, B}, W) -> verb({cut, A, B}, W) end, World, Pairs);
verb(heal_all, #world{nodes = Nodes, network = Network} = World) ->
    Healed = World#world{network = weft_sim_network:heal_all(Network)},
    lists:foldl(fun(Name, W) -> verb({start, Name}, verb({resume, Name}, W)) end, Healed,
                lists:sort(maps:keys(Nodes)));
verb({command, Name, Machine, Command}, World) ->
    #{events := Number} = counters(World),
    Ref = {sim, Name, Number},
    if_running(Name, Machine, {asked, Ref, Command}, {command, Ref, Command}, World);
verb({notice, Name, Machine, Notice}, World) ->
    if_running(Name, Machine, {told, Notice}, {notice, Notice}, World).

if_running(Name, Machine, What, Event, World) ->
    case state(Name, World) of
        running -> to_machine(Name, Machine, Event, happened(Name, Machine, What, World));
        _ -> World
    end.

start(Name, Incarnation, #world{machines = Machines} = World0) ->
    Node = weft_sim_node:start(Incarnation, node_of(Name, World0)),
    lists:foldl(fun({Machine, _, _}, World) -> start_machine(Name, Machine, 0, World) end,
                put_node(Name, Node, World0), Machines(Name)).

start_machine(Name, Machine, Generation, #world{machines = Machines, seed = Seed} = World) ->
    Node = node_of(Name, World),
    {Machine, Module, Options} = lists:keyfind(Machine, 1, Machines(Name)),
    Run = #{seed => {Seed, weft_sim_node:starts(Node), Generation},
            incarnation => weft_sim_node:incarnation(Node)},
    {Started, Effects} = weft_sim_machines:start(Name, {Machine, Module, maps:merge(Options, Run)},
                                                 Generation, weft_sim_node:machines(Node)),
    perform(Name, Machine, Effects,
            happened(Name, Machine, started, put_machines(Name, Started, World))).

%% Like a driver that crashed: its views are cleared and it hears anew of the links that are up.
restart_machine(Name, Machine, World0) ->
    Machines = machines(Name, World0),
    Node = weft_sim_node:start_machine_anew(Machine, node_of(Name, World0)),
    World = start_machine(Name, Machine, weft_sim_machines:generation(Machine, Machines) + 1,
                          put_node(Name, Node, World0)),
    lists:foldl(fun(Peer, W) -> to_machine(Name, Machine, {neighbour_up, Peer}, W) end,
                World, peers(Name, World)).

%% --- links ---

%% Each end of a broken stream notices after a delay of its own.
notice_break(A, B, #world{network = Network} = World) ->
    case weft_sim_network:current(A, B, Network) of
        none -> World;
        Id -> notice_later(Id, B, A, notice_later(Id, A, B, World))
    end.

notice_later(Id, Name, Peer, #world{network = Network0, now_us = NowUs} = World) ->
    {DelayUs, Network} = weft_sim_network:detection_us(Network0),
    at(NowUs + DelayUs, {link_down, Id, Name, Peer, timeout}, World#world{network = Network}).

%% The node fell silent: its streams, also those just being opened, are broken, and both ends will
%% notice.
lose_peers(Name, #world{network = Network0} = World) ->
    lists:foldl(fun({Peer, Id}, #world{network = Network} = W) ->
                    Broken = W#world{network = weft_sim_network:break(Id, Network)},
                    notice_later(Id, Peer, Name, notice_later(Id, Name, Peer, Broken))
                end, World, weft_sim_network:streams_of(Name, Network0)).

link_up(Id, Name, Peer, World0) ->
    World = case streams(Name, World0) of
                #{Peer := Older} -> link_down(Older, Name, Peer, replaced, World0);
                #{} -> World0
            end,
    Node = weft_sim_node:with_stream(Peer, Id, node_of(Name, World)),
    to_machines(Name, {neighbour_up, Peer},
                traced({up, Name, Peer}, put_node(Name, Node, World))).

link_down(Id, Name, Peer, Reason, World0) ->
    Node = weft_sim_node:without_stream(Peer, node_of(Name, World0)),
    World = put_node(Name, Node, World0),
    to_machines(Name, {neighbour_down, Peer, Reason},
                traced({down, Name, Peer, Reason}, close_if_unused(Id, Name, Peer, World))).

close_if_unused(Id, Name, Peer, #world{network = Network} = World) ->
    case streams(Peer, World) of
        #{Name := Id} -> World;
        #{} -> World#world{network = weft_sim_network:close(Id, Network)}
    end.

connect(Name, Peer, #world{network = Network0, now_us = NowUs} = World) ->
    Node = node_of(Name, World),
    Reachable = weft_sim_network:is_open(Name, Peer, Network0)
        andalso state(Peer, World) =:= running,
    case is_map_key(Peer, weft_sim_node:streams(Node))
        orelse weft_sim_network:is_opening(Name, Peer, Network0) of
        true -> World;
        false when Reachable -> open(Name, Peer, World);
        false ->
            {DelayUs, Network} = weft_sim_network:refusal_us(Network0),
            at(NowUs + DelayUs, {connect_failed, Name, weft_sim_node:starts(Node), Peer},
               World#world{network = Network})
    end.

%% The called end knows first, the caller when the answer is back.
open(Name, Peer, #world{network = Network0, now_us = NowUs} = World) ->
    {Id, Network1} = weft_sim_network:open(Name, Peer, Network0),
    {PeerUs, Network2} = weft_sim_network:arrival_us(NowUs, Name, Peer, Network1),
    {NameUs, Network3} = weft_sim_network:arrival_us(PeerUs, Peer, Name, Network2),
    at(NameUs, {opened, Id, Name, Peer},
       at(PeerUs, {link_up, Id, Peer, Name}, World#world{network = Network3})).

disconnect(Name, Peer, #world{network = Network0, now_us = NowUs} = World) ->
    case streams(Name, World) of
        #{Peer := Id} ->
            {PeerUs, Network} = weft_sim_network:arrival_us(NowUs, Name, Peer, Network0),
            at(NowUs, {link_down, Id, Name, Peer, closed},
               at(PeerUs, {link_down, Id, Peer, Name, closed}, World#world{network = Network}));
        #{} -> World
    end.

send(Name, To, Machine, Msg,
     #world{network = Network0, now_us = NowUs, witness = Witness} = World0) ->
    case streams(Name, World0) of
        #{To := Id} ->
            {AtUs, Network} = weft_sim_network:arrival_us(NowUs, Name, To, Network0),
            World = World0#world{network = Network,
                                 witness = weft_sim_witness:sent(Name, Machine, Msg, NowUs,
                                                                 Witness)},
            at(AtUs, {arrive, Id, Name, To, Machine, Msg}, World);
        #{} -> World0
    end.

%% --- machines ---

to_machines(Name, Event, World) ->
    lists:foldl(fun(Machine, W) -> to_machine(Name, Machine, Event, W) end,
                World, weft_sim_machines:names(machines(Name, World))).

to_machine(Name, Machine, Event, World) ->
    Node = node_of(Name, World),
    {Machines, Effects} = weft_sim_machines:handle(Machine, Event, now_ms(World),
                                                   weft_sim_node:machines(Node)),
    perform(Name, Machine, Effects,
            put_node(Name, weft_sim_node:with_machines(Machines, Node), World)).

perform(Name, Machine, Effects, World) ->
    lists:foldl(fun(Effect, W) -> perform_one(Effect, Name, Machine, W) end, World, Effects).

perform_one({send, To, Msg}, Name, Machine, World) ->
    send(Name, To, Machine, Msg, World);
perform_one({after_ms, Ms, Timer}, Name, Machine, #world{now_us = NowUs} = World) ->
    Node = node_of(Name, World),
    Generation = weft_sim_machines:generation(Machine, weft_sim_node:machines(Node)),
    at(NowUs + Ms * 1000,
       {timer, Name, weft_sim_node:starts(Node), Machine, Generation, Timer}, World);
perform_one({connect, Peer}, Name, _Machine, World) ->
    connect(Name, Peer, World);
perform_one({Close, Peer}, Name, _Machine, World) when Close =:= break; Close =:= disconnect ->
    disconnect(Name, Peer, World);
%% Here all machines use all links; what was said is looked at in the end.
perform_one({neighbour, Peer, IsNeighbour}, Name, Machine, World) ->
    put_node(Name, weft_sim_node:agree(Machine, Peer, IsNeighbour, node_of(Name, World)), World);
perform_one({view, Key, Value}, Name, Machine, #world{now_us = NowUs, witness = Witness} = World) ->
    Changed = weft_sim_machines:put_view(Key, Value, Machine, machines(Name, World)),
    Now = put_machines(Name, Changed, World),
    Now#world{witness = weft_sim_witness:view_changed(Name, Key, Value, Now, NowUs, Witness)};
perform_one({notice, Notice}, Name, Machine, #world{now_us = NowUs, witness = Witness} = World) ->
    World#world{witness = weft_sim_witness:notice(Name, Machine, Notice, NowUs, Witness)};
perform_one({reply, Ref, Reply}, Name, Machine, World) ->
    traced({reply, Name, Machine, Reply}, happened(Name, Machine, {replied, Ref, Reply}, World));
perform_one({exit, Pid, Reason}, Name, Machine, #world{now_us = NowUs} = World) ->
    at(NowUs, {verb, {notice, node(Pid), Machine, {gone, Pid, Reason}}},
       traced({exit, Name, Pid, Reason}, World));
perform_one({tell, Pid, Msg}, Name, _Machine, World) ->
    traced({tell, Name, Pid, Msg}, World);
%% Processes are of the scenario: it gives the notice `gone', watched or not.
perform_one({Watching, _Pid}, _Name, _Machine, World)
  when Watching =:= watch; Watching =:= unwatch ->
    World.

%% --- small parts ---

at(AtUs, Event, #world{queue = Queue} = World) ->
    World#world{queue = weft_sim_queue:in(AtUs, Event, Queue)}.

node_of(Name, #world{nodes = Nodes}) ->
    case Nodes of
        #{Name := Node} -> Node;
        #{} -> weft_sim_node:new()
    end.

put_node(Name, Node, #world{nodes = Nodes} = World) ->
    World#world{nodes = Nodes#{Name => Node}}.

state(Name, World) -> weft_sim_node:state(node_of(Name, World)).

streams(Name, World) -> weft_sim_node:streams(node_of(Name, World)).

machines(Name, World) -> weft_sim_node:machines(node_of(Name, World)).

put_machines(Name, Machines, World) ->
    put_node(Name, weft_sim_node:with_machines(Machines, node_of(Name, World)), World).

happened(Name, Machine, What, #world{witness = Witness, now_us = NowUs} = World) ->
    World#world{witness = weft_sim_witness:happened(Name, Machine, What, NowUs, Witness)}.

traced(What, #world{witness = Witness, now_us = NowUs} = World) ->
    World#world{witness = weft_sim_witness:traced(What, NowUs, Witness)}.
