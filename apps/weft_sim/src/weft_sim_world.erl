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
%% Verbs, the vocabulary of scenarios, are documented at `verb()'.
-module(weft_sim_world).

-export([new/1, run_until/2, schedule/3, settled/1,
         now_ms/1, view_changed_ms/1, running/1, is_live/3, live_graph/1,
         view/3, views/2, machine/3,
         violation/1, counters/1, observed/1, trace/1]).
-export_type([world/0, verb/0, config/0]).

-record(node, {
    life = 0 :: non_neg_integer(),
    incarnation = 0 :: non_neg_integer(),
    state = down :: down | running | paused,
    machines = [] :: [{atom(), module(), State :: term(), Generation :: non_neg_integer()}],
    views = #{} :: #{Key :: term() => {Machine :: atom(), Value :: term()}},
    %% The streams this node believes in.
    peers = #{} :: #{node() => weft_sim_network:stream_id()},
    %% What arrived while the node was paused, newest first.
    held = [] :: [term()]}).

-record(world, {
    now_us = 0 :: non_neg_integer(),
    queue = weft_sim_queue:new() :: weft_sim_queue:queue(),
    nodes = #{} :: #{node() => #node{}},
    network :: weft_sim_network:network(),
    machines :: fun((node()) -> [{atom(), module(), map()}]),
    seed :: integer(),
    checkers :: weft_sim_checker:checkers(),
    watching :: weft_sim_checker:checkers(),
    view_changed_us = 0 :: non_neg_integer(),
    violation = none :: none | {NowMs :: non_neg_integer(), module(), string()},
    is_traced :: boolean(),
    trace = [] :: [{NowUs :: non_neg_integer(), term()}],
    observer :: none | {module(), State :: term()},
    is_weighed :: boolean(),
    events = 0 :: non_neg_integer(),
    messages = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer()}).

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
    {start, node()}                          % a first or further life, higher incarnation each time
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
    Checkers = maps:get(checkers, Config, []),
    #world{network = weft_sim_network:new(rand:seed_s(exsss, Seed), Config),
           machines = Machines, seed = Seed,
           checkers = Checkers, watching = weft_sim_checker:watching(Checkers),
           observer = maps:get(observer, Config, none), is_weighed = maps:get(weigh, Config, true),
           is_traced = maps:get(trace, Config, false)}.

%% @doc Has a verb happen at the given time.
-spec schedule(AtMs :: non_neg_integer(), verb(), world()) -> world().
schedule(AtMs, Verb, World) ->
    at(AtMs * 1000, {verb, Verb}, World).

%% @doc Lets everything up to the given time happen, or all up to the first violation.
-spec run_until(UntilMs :: non_neg_integer(), world()) -> world().
run_until(UntilMs, World) ->
    step(UntilMs * 1000, World).

step(_UntilUs, #world{violation = {_, _, _}} = World) ->
    World;
step(UntilUs, #world{queue = Queue0} = World) ->
    case weft_sim_queue:out(UntilUs, Queue0) of
        {AtUs, Event, Queue} ->
            step(UntilUs, happen(Event, World#world{now_us = AtUs, queue = Queue,
                                                    events = World#world.events + 1}));
        none ->
            World#world{now_us = UntilUs}
    end.

%% @doc Asks the checkers for what must hold in the end.
-spec settled(world()) -> world().
settled(#world{checkers = Checkers} = World) ->
    lists:foldl(fun({Checker, Options}, W) -> judge(Checker, Checker:settled(W, Options), W) end,
                World, weft_sim_checker:asked_in_the_end(Checkers)).

%% --- reading the world ---

%% @doc Virtual time.
-spec now_ms(world()) -> non_neg_integer().
now_ms(#world{now_us = NowUs}) -> NowUs div 1000.

%% @doc When a view of any node last changed.
-spec view_changed_ms(world()) -> non_neg_integer().
view_changed_ms(#world{view_changed_us = ChangedUs}) -> ChangedUs div 1000.

%% @doc The nodes that are neither down nor paused, in term order.
-spec running(world()) -> [node()].
running(#world{nodes = Nodes}) ->
    lists:sort([Name || {Name, #node{state = running}} <- maps:to_list(Nodes)]).

%% @doc Whether both ends believe in the same stream, so that messages pass.
-spec is_live(node(), node(), world()) -> boolean().
is_live(A, B, #world{nodes = Nodes}) ->
    case Nodes of
        #{A := #node{peers = #{B := Id}}, B := #node{peers = #{A := Id}}} -> true;
        #{} -> false
    end.

%% @doc The running nodes with those they have a live link to.
-spec live_graph(world()) -> #{node() => [node()]}.
live_graph(#world{nodes = Nodes} = World) ->
    maps:from_list(
      [{Name, [Peer || Peer <- lists:sort(maps:keys((map_get(Name, Nodes))#node.peers)),
                       (node_of(Peer, World))#node.state =:= running,
                       is_live(Name, Peer, World)]}
       || Name <- running(World)]).

%% @doc A view of a node.
-spec view(node(), Key :: term(), world()) -> term() | undefined.
view(Name, Key, #world{nodes = Nodes}) ->
    case Nodes of
        #{Name := #node{views = #{Key := {_, Value}}}} -> Value;
        #{} -> undefined
    end.

%% @doc All views of a node.
-spec views(node(), world()) -> #{Key :: term() => Value :: term()}.
views(Name, World) ->
    maps:map(fun(_, {_, Value}) -> Value end, (node_of(Name, World))#node.views).

%% @doc The state of a machine, for checkers that look inside.
-spec machine(node(), Machine :: atom(), world()) -> {ok, State :: term()} | error.
machine(Name, Machine, World) ->
    case lists:keyfind(Machine, 1, (node_of(Name, World))#node.machines) of
        {_, _, State, _} -> {ok, State};
        false -> error
    end.

%% @doc The first violation found.
-spec violation(world()) -> none | {AtMs :: non_neg_integer(), Checker :: module(), string()}.
violation(#world{violation = Violation}) -> Violation.

%% @doc Events processed, messages and bytes (external term format) sent.
-spec counters(world()) -> #{events | messages | bytes => non_neg_integer()}.
counters(#world{events = Events, messages = Messages, bytes = Bytes}) ->
    #{events => Events, messages => Messages, bytes => Bytes}.

%% @doc The state of the observer.
-spec observed(world()) -> term().
observed(#world{observer = {_Observer, State}}) -> State.

%% @doc What happened, oldest first, if the world was asked to trace.
-spec trace(world()) -> [{NowUs :: non_neg_integer(), term()}].
trace(#world{trace = Trace}) -> lists:reverse(Trace).

%% --- what happens ---

happen({verb, Verb}, World) ->
    verb(Verb, traced(Verb, World));
happen({timer, Name, Life, Machine, Generation, Timer} = Event, World) ->
    case node_of(Name, World) of
        #node{state = paused, life = Life} -> hold(Name, Event, World);
        #node{state = running, life = Life} = Node ->
            case generation(Machine, Node) of
                Generation -> to_machine(Name, Machine, {timer, Timer}, World);
                _Restarted -> World
            end;
        _ -> World
    end;
happen({arrive, Id, From, To, Machine, Msg}, #world{network = Network} = World) ->
    case weft_sim_network:is_flowing(Id, From, To, Network) of
        true -> happen({deliver, Id, From, To, Machine, Msg}, World);
        false -> World
    end;
happen({deliver, Id, From, To, Machine, Msg} = Event, World) ->
    case node_of(To, World) of
        #node{state = running, peers = #{From := Id}} ->
            to_machine(To, Machine, {message, From, Msg},
                       traced({message, From, To, Machine, Msg}, World));
        %% That the stream is up may be held, too; then it comes first.
        #node{state = paused} -> hold(To, Event, World);
        _ -> World
    end;
happen({opened, Id, Name, Peer}, #world{network = Network} = World) ->
    happen({link_up, Id, Name, Peer},
           World#world{network = weft_sim_network:opened(Id, Network)});
happen({link_up, Id, Name, Peer} = Event, #world{network = Network} = World) ->
    case node_of(Name, World) of
        #node{state = paused} -> hold(Name, Event, World);
        #node{state = running} ->
            case weft_sim_network:is_flowing(Id, Peer, Name, Network) of
                true -> link_up(Id, Name, Peer, World);
                false -> to_machines(Name, {neighbour_down, Peer, connect_failed}, World)
            end;
        _ -> World
    end;
happen({link_down, Id, Name, Peer, Reason} = Event, World) ->
    case node_of(Name, World) of
        #node{state = running, peers = #{Peer := Id}} -> link_down(Id, Name, Peer, Reason, World);
        #node{state = paused, peers = #{Peer := Id}} -> hold(Name, Event, World);
        _ -> World
    end;
happen({connect_failed, Name, Life, Peer}, World) ->
    case node_of(Name, World) of
        #node{state = running, life = Life, peers = Peers} when not is_map_key(Peer, Peers) ->
            to_machines(Name, {neighbour_down, Peer, connect_failed}, World);
        _ -> World
    end;
happen({pause_noticed, Name, Life}, World) ->
    case node_of(Name, World) of
        #node{state = paused, life = Life} -> lose_peers(Name, World);
        _ -> World
    end.

%% --- verbs ---

verb({start, Name}, World) ->
    #node{life = Life} = node_of(Name, World),
    verb({start, Name, now_ms(World) div 1000 + Life + 1}, World);
verb({start, Name, Incarnation}, World) ->
    case node_of(Name, World) of
        #node{state = down, life = Life} -> start(Name, Life + 1, Incarnation, World);
        _AlreadyUp -> World
    end;
verb({crash, Name}, World0) ->
    #node{life = Life} = node_of(Name, World0),
    lose_peers(Name, put_node(Name, #node{life = Life}, World0));
verb({restart_machine, Name, Machine}, World) ->
    case node_of(Name, World) of
        #node{state = running} -> restart_machine(Name, Machine, World);
        _ -> World
    end;
verb({pause, Name}, #world{network = Network0, now_us = NowUs} = World) ->
    case node_of(Name, World) of
        #node{state = running, life = Life} = Node ->
            {DelayUs, Network} = weft_sim_network:detection_us(Network0),
            at(NowUs + DelayUs, {pause_noticed, Name, Life},
               put_node(Name, Node#node{state = paused}, World#world{network = Network}));
        _ -> World
    end;
verb({resume, Name}, #world{now_us = NowUs} = World) ->
    case node_of(Name, World) of
        #node{state = paused, held = Held} = Node ->
            lists:foldl(fun(Event, W) -> at(NowUs, Event, W) end,
                        put_node(Name, Node#node{state = running, held = []}, World),
                        lists:reverse(Held));
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
    if_running(Name, Machine, {command, {sim, Name}, Command}, World);
verb({notice, Name, Machine, Notice}, World) ->
    if_running(Name, Machine, {notice, Notice}, World).

if_running(Name, Machine, Event, World) ->
    case node_of(Name, World) of
        #node{state = running} -> to_machine(Name, Machine, Event, World);
        _ -> World
    end.

start(Name, Life, Incarnation, #world{machines = Machines} = World0) ->
    World1 = put_node(Name, #node{life = Life, incarnation = Incarnation, state = running}, World0),
    lists:foldl(fun({Machine, _, _}, World) -> start_machine(Name, Machine, 0, World) end,
                World1, Machines(Name)).

start_machine(Name, Machine, Generation, #world{machines = Machines, seed = Seed} = World0) ->
    #node{life = Life, incarnation = Incarnation} = node_of(Name, World0),
    {Machine, Module, Options} = lists:keyfind(Machine, 1, Machines(Name)),
    {State, Effects} = Module:init(Name, Options#{seed => {Seed, Life, Generation},
                                                  incarnation => Incarnation}),
    #node{machines = Running} = Node = node_of(Name, World0),
    Started = lists:keystore(Machine, 1, Running, {Machine, Module, State, Generation}),
    perform(Name, Machine, Effects, put_node(Name, Node#node{machines = Started}, World0)).

%% Like a driver that crashed: its views are cleared and it hears anew of the links that are up.
restart_machine(Name, Machine, World0) ->
    #node{peers = Peers, views = Views} = Node = node_of(Name, World0),
    Others = maps:filter(fun(_, {Owner, _}) -> Owner =/= Machine end, Views),
    World = start_machine(Name, Machine, generation(Machine, Node) + 1,
                          put_node(Name, Node#node{views = Others}, World0)),
    lists:foldl(fun(Peer, W) -> to_machine(Name, Machine, {neighbour_up, Peer}, W) end,
                World, lists:sort(maps:keys(Peers))).

generation(Machine, #node{machines = Machines}) ->
    {_, _, _, Generation} = lists:keyfind(Machine, 1, Machines),
    Generation.

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
    World = case node_of(Name, World0) of
                #node{peers = #{Peer := Older}} ->
                    link_down(Older, Name, Peer, replaced, World0);
                _ -> World0
            end,
    #node{peers = Peers} = Node = node_of(Name, World),
    to_machines(Name, {neighbour_up, Peer},
                traced({up, Name, Peer},
                       put_node(Name, Node#node{peers = Peers#{Peer => Id}}, World))).

link_down(Id, Name, Peer, Reason, World0) ->
    #node{peers = Peers} = Node = node_of(Name, World0),
    World = put_node(Name, Node#node{peers = maps:remove(Peer, Peers)}, World0),
    to_machines(Name, {neighbour_down, Peer, Reason},
                traced({down, Name, Peer, Reason}, close_if_unused(Id, Name, Peer, World))).

close_if_unused(Id, Name, Peer, #world{network = Network} = World) ->
    case node_of(Peer, World) of
        #node{peers = #{Name := Id}} -> World;
        _ -> World#world{network = weft_sim_network:close(Id, Network)}
    end.

connect(Name, Peer, #world{network = Network0, now_us = NowUs} = World) ->
    #node{life = Life, peers = Peers} = node_of(Name, World),
    Reachable = weft_sim_network:is_open(Name, Peer, Network0)
        andalso (node_of(Peer, World))#node.state =:= running,
    case is_map_key(Peer, Peers) orelse weft_sim_network:is_opening(Name, Peer, Network0) of
        true -> World;
        false when Reachable -> open(Name, Peer, World);
        false ->
            {DelayUs, Network} = weft_sim_network:refusal_us(Network0),
            at(NowUs + DelayUs, {connect_failed, Name, Life, Peer}, World#world{network = Network})
    end.

%% The called end knows first, the caller when the answer is back.
open(Name, Peer, #world{network = Network0, now_us = NowUs} = World) ->
    {Id, Network1} = weft_sim_network:open(Name, Peer, Network0),
    {PeerUs, Network2} = weft_sim_network:arrival_us(NowUs, Name, Peer, Network1),
    {NameUs, Network3} = weft_sim_network:arrival_us(PeerUs, Peer, Name, Network2),
    at(NameUs, {opened, Id, Name, Peer},
       at(PeerUs, {link_up, Id, Peer, Name}, World#world{network = Network3})).

disconnect(Name, Peer, #world{network = Network0, now_us = NowUs} = World) ->
    case node_of(Name, World) of
        #node{peers = #{Peer := Id}} ->
            {PeerUs, Network} = weft_sim_network:arrival_us(NowUs, Name, Peer, Network0),
            at(NowUs, {link_down, Id, Name, Peer, closed},
               at(PeerUs, {link_down, Id, Peer, Name, closed}, World#world{network = Network}));
        _ -> World
    end.

send(Name, To, Machine, Msg, #world{network = Network0, now_us = NowUs} = World0) ->
    case node_of(Name, World0) of
        #node{peers = #{To := Id}} ->
            {AtUs, Network} = weft_sim_network:arrival_us(NowUs, Name, To, Network0),
            World = observe(sent, Name, Machine, Msg, weigh(Msg, World0)),
            at(AtUs, {arrive, Id, Name, To, Machine, Msg}, World#world{network = Network});
        _ -> World0
    end.

%% --- machines ---

to_machines(Name, Event, World) ->
    #node{machines = Machines} = node_of(Name, World),
    lists:foldl(fun({Machine, _, _, _}, W) -> to_machine(Name, Machine, Event, W) end,
                World, Machines).

to_machine(Name, Machine, Event, World) ->
    #node{machines = Machines} = Node = node_of(Name, World),
    {_, Module, State0, Generation} = lists:keyfind(Machine, 1, Machines),
    {State, Effects} = Module:handle(Event, now_ms(World), State0),
    Changed = lists:keyreplace(Machine, 1, Machines, {Machine, Module, State, Generation}),
    perform(Name, Machine, Effects, put_node(Name, Node#node{machines = Changed}, World)).

perform(Name, Machine, Effects, World) ->
    lists:foldl(fun(Effect, W) -> perform_one(Effect, Name, Machine, W) end, World, Effects).

perform_one({send, To, Msg}, Name, Machine, World) ->
    send(Name, To, Machine, Msg, World);
perform_one({after_ms, Ms, Timer}, Name, Machine, #world{now_us = NowUs} = World) ->
    #node{life = Life} = Node = node_of(Name, World),
    at(NowUs + Ms * 1000, {timer, Name, Life, Machine, generation(Machine, Node), Timer}, World);
perform_one({connect, Peer}, Name, _Machine, World) ->
    connect(Name, Peer, World);
perform_one({Close, Peer}, Name, _Machine, World) when Close =:= break; Close =:= disconnect ->
    disconnect(Name, Peer, World);
%% Here all machines use all links.
perform_one({neighbour, _Peer, _IsNeighbour}, _Name, _Machine, World) ->
    World;
perform_one({view, Key, Value}, Name, Machine, #world{now_us = NowUs} = World0) ->
    World = World0#world{view_changed_us = NowUs},
    #node{views = Views} = Node = node_of(Name, World),
    Changed = case Value of
                  delete -> maps:remove(Key, Views);
                  _ -> Views#{Key => {Machine, Value}}
              end,
    check_view(Name, Key, Value, traced({view, Name, Key, Value},
                                        put_node(Name, Node#node{views = Changed}, World)));
perform_one({notice, Notice}, Name, Machine, World) ->
    observe(notice, Name, Machine, Notice, traced({notice, Name, Machine, Notice}, World));
perform_one({reply, _Ref, Reply}, Name, Machine, World) ->
    traced({reply, Name, Machine, Reply}, World);
perform_one({exit, Pid, Reason}, Name, Machine, #world{now_us = NowUs} = World) ->
    at(NowUs, {verb, {notice, node(Pid), Machine, {gone, Pid, Reason}}},
       traced({exit, Name, Pid, Reason}, World));
perform_one({tell, Pid, Msg}, Name, _Machine, World) ->
    traced({tell, Name, Pid, Msg}, World);
%% Processes are of the scenario: it gives the notice `gone', watched or not.
perform_one({Watching, _Pid}, _Name, _Machine, World)
  when Watching =:= watch; Watching =:= unwatch ->
    World.

check_view(Name, Key, Value, #world{watching = Watching} = World) ->
    lists:foldl(fun({Checker, Options}, W) ->
                    judge(Checker, Checker:view_changed(Name, Key, Value, W, Options), W)
                end, World, Watching).

judge(_Checker, ok, World) -> World;
judge(Checker, {violation, Text}, #world{violation = none} = World) ->
    World#world{violation = {now_ms(World), Checker, lists:flatten(Text)}};
judge(_Checker, {violation, _Later}, World) -> World.

%% --- small parts ---

at(AtUs, Event, #world{queue = Queue} = World) ->
    World#world{queue = weft_sim_queue:in(AtUs, Event, Queue)}.

node_of(Name, #world{nodes = Nodes}) ->
    maps:get(Name, Nodes, #node{}).

put_node(Name, Node, #world{nodes = Nodes} = World) ->
    World#world{nodes = Nodes#{Name => Node}}.

hold(Name, Event, World) ->
    #node{held = Held} = Node = node_of(Name, World),
    put_node(Name, Node#node{held = [Event | Held]}, World).

weigh(_Msg, #world{is_weighed = false, messages = Messages} = World) ->
    World#world{messages = Messages + 1};
weigh(Msg, #world{messages = Messages, bytes = Bytes} = World) ->
    World#world{messages = Messages + 1, bytes = Bytes + erlang:external_size(Msg)}.

observe(_What, _Name, _Machine, _Term, #world{observer = none} = World) ->
    World;
observe(What, Name, Machine, Term, #world{observer = {Observer, State}, now_us = NowUs} = World) ->
    World#world{observer = {Observer, Observer:What(Name, Machine, Term, NowUs, State)}}.

traced(_What, #world{is_traced = false} = World) -> World;
traced(What, #world{trace = Trace, now_us = NowUs} = World) ->
    World#world{trace = [{NowUs, What} | Trace]}.
