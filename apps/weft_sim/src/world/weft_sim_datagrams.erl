%% SPDX-License-Identifier: Apache-2.0
%% @doc Many nodes that run one core each and send datagrams, in virtual time.
%%
%% The small sister of `weft_sim_world', for protocols that need no links: every node reaches every
%% other, a message may be lost or overtake another. So a thousand members need no half million
%% streams. Time goes in steps of a millisecond; what falls into the same one happens in the
%% order in which it was caused. All chance comes from one seed.
%%
%% A node can be `running', `down', `paused' (as if the machine slept: messages and timers wait) or
%% `blocked': its timers run, but what it sends and what is sent to it waits. The last is the
%% anomaly of the Lifeguard paper, slow processing of messages.
%%
%% A node may have a disk: what the core wrote last with the effect `{disk, Term}' is the option
%% `disk' of its next start (`[]' at first, and after `wipe').
%%
%% Kept for evaluation: every notice of a core, and the bytes that each node sends and receives in
%% each second (external term format and 28 bytes of IP and UDP headers).
-module(weft_sim_datagrams).

-export([new/1, run_until/2, schedule/3, now_ms/1, core/2, nodes_in/2, notices/1, traffic/1]).
-export_type([world/0, verb/0, config/0, traffic/0]).

-type mode() :: running | blocked | paused | down.

-record(node, {incarnation = 0 :: non_neg_integer(),
               mode = down :: mode(),
               core :: term(),
               disk = [] :: term(),
               %% What waits, newest first.
               held = [] :: [term()]}).

-record(world, {now_ms = 0 :: non_neg_integer(),
                %% What happens in which millisecond, newest first.
                agenda = #{} :: #{non_neg_integer() => [term()]},
                nodes = #{} :: #{node() => #node{}},
                rand :: rand:state(),
                config :: config(),
                %% While the network is split: the part that each node is in.
                parts = #{} :: #{node() => pos_integer()},
                notices = [] :: [{AtMs :: non_neg_integer(), node(), term()}],
                %% Bytes sent and received in the present second, and of all seconds before.
                second = #{} :: #{node() => {non_neg_integer(), non_neg_integer()}},
                seconds = [] :: [{Second :: pos_integer(), [{non_neg_integer(),
                                                             non_neg_integer()}]}]}).
-opaque world() :: #world{}.

-type config() :: #{seed := integer(), core := module(), options := fun((node()) -> map()),
                    latency_ms => {non_neg_integer(), non_neg_integer()}, loss => float(),
                    repeats => float(), late => {float(), MaxMs :: non_neg_integer()}}.
%% `latency_ms' ({1, 5}): drawn evenly. `loss' (0.0): the part of the messages that get lost.
%% `repeats' (0.0): the part that arrives a second time. `late' ({0.0, 0}): the part that takes
%% up to that much longer.

-type verb() :: {start | crash | pause | block | resume, node()} | {command, node(), term()}
              | {wipe, node()}            % the disk is empty now
              | {partition, [[node()]]}   % messages between the groups get lost
              | heal.                     % no longer

-type traffic() :: [{Second :: pos_integer(), [{SentBytes :: non_neg_integer(),
                                                ReceivedBytes :: non_neg_integer()}]}].

-define(HEADER_BYTES, 28).

%% @doc No nodes, at time 0.
-spec new(config()) -> world().
new(#{seed := Seed} = Config) ->
    #world{rand = rand:seed_s(exsss, Seed),
           config = maps:merge(#{latency_ms => {1, 5}, loss => 0.0, repeats => 0.0,
                                  late => {0.0, 0}}, Config)}.

%% @doc Has a verb happen at the given time.
-spec schedule(AtMs :: non_neg_integer(), verb(), world()) -> world().
schedule(AtMs, Verb, World) ->
    at(AtMs, {verb, Verb}, World).

%% @doc Lets everything up to the given time happen.
-spec run_until(non_neg_integer(), world()) -> world().
run_until(UntilMs, #world{now_ms = NowMs} = World) when NowMs > UntilMs ->
    World;
run_until(UntilMs, #world{now_ms = NowMs, agenda = Agenda} = World) ->
    case maps:take(NowMs, Agenda) of
        {Events, Rest} ->
            run_until(UntilMs, lists:foldl(fun happen/2, World#world{agenda = Rest},
                                           lists:reverse(Events)));
        error ->
            run_until(UntilMs, tick(World))
    end.

tick(#world{now_ms = NowMs, second = Second, seconds = Seconds, nodes = Nodes} = World)
  when NowMs rem 1000 =:= 999 ->
    Row = [maps:get(Name, Second, {0, 0})
           || {Name, #node{mode = Mode}} <- maps:to_list(Nodes), Mode =/= down],
    World#world{now_ms = NowMs + 1, second = #{},
                seconds = [{NowMs div 1000 + 1, Row} | Seconds]};
tick(#world{now_ms = NowMs} = World) ->
    World#world{now_ms = NowMs + 1}.

%% --- reading ----------------------------------------------------------------------------------

-spec now_ms(world()) -> non_neg_integer().
now_ms(#world{now_ms = NowMs}) -> NowMs.

%% @doc The state of the core of a node that is not down.
-spec core(node(), world()) -> term().
core(Name, #world{nodes = Nodes}) ->
    (map_get(Name, Nodes))#node.core.

%% @doc The nodes in one of the given modes, in term order.
-spec nodes_in([mode()], world()) -> [node()].
nodes_in(Modes, #world{nodes = Nodes}) ->
    lists:sort([Name || {Name, #node{mode = Mode}} <- maps:to_list(Nodes),
                        lists:member(Mode, Modes)]).

%% @doc The notices of all cores, oldest first.
-spec notices(world()) -> [{AtMs :: non_neg_integer(), At :: node(), Notice :: term()}].
notices(#world{notices = Notices}) -> lists:reverse(Notices).

%% @doc For each second, oldest first, what each node that was not down sent and received.
-spec traffic(world()) -> traffic().
traffic(#world{seconds = Seconds}) -> lists:reverse(Seconds).

%% --- what happens -----------------------------------------------------------------------------

happen({verb, Verb}, World) ->
    verb(Verb, World);
happen({timer, Name, Incarnation, Timer} = Event, World) ->
    case node_of(Name, World) of
        #node{incarnation = Incarnation, mode = paused} -> hold(Name, Event, World);
        #node{incarnation = Incarnation, mode = Mode} when Mode =/= down ->
            to_core(Name, {timer, Timer}, World);
        _ -> World
    end;
happen({arrive, From, To, Msg, Bytes} = Event, World) ->
    case node_of(To, World) of
        #node{mode = running} ->
            to_core(To, {message, From, Msg}, count_received(To, Bytes, World));
        #node{mode = down} -> World;
        _ -> hold(To, Event, World)
    end;
happen({send, From, To, Msg}, World) ->
    send(From, To, Msg, World).

verb({start, Name}, #world{config = #{options := Options, core := Core, seed := Seed}} = World) ->
    case node_of(Name, World) of
        #node{mode = down, incarnation = Former, disk = Disk} = Node ->
            Incarnation = Former + 1,
            {State, Effects} = Core:init(Name, (Options(Name))#{seed => {Seed, Incarnation},
                                                                incarnation => Incarnation,
                                                                disk => Disk}),
            Started = Node#node{incarnation = Incarnation, mode = running, core = State},
            perform(Name, Effects, put_node(Name, Started, World));
        _AlreadyUp ->
            World
    end;
verb({crash, Name}, World) ->
    #node{incarnation = Incarnation, disk = Disk} = node_of(Name, World),
    put_node(Name, #node{incarnation = Incarnation, disk = Disk}, World);
verb({wipe, Name}, World) ->
    put_node(Name, (node_of(Name, World))#node{disk = []}, World);
verb({pause, Name}, World) -> change(Name, running, paused, World);
verb({block, Name}, World) -> change(Name, running, blocked, World);
verb({resume, Name}, #world{now_ms = NowMs} = World) ->
    case node_of(Name, World) of
        #node{mode = Mode, held = Held} = Node when Mode =:= paused; Mode =:= blocked ->
            lists:foldl(fun(Event, W) -> at(NowMs, Event, W) end,
                        put_node(Name, Node#node{mode = running, held = []}, World),
                        lists:reverse(Held));
        _ -> World
    end;
verb({partition, Groups}, World) ->
    Numbered = lists:zip(lists:seq(1, length(Groups)), Groups),
    World#world{parts = maps:from_list([{Name, N} || {N, Group} <- Numbered, Name <- Group])};
verb(heal, World) ->
    World#world{parts = #{}};
verb({command, Name, Command}, World) ->
    case node_of(Name, World) of
        #node{mode = running} -> to_core(Name, {command, sim, Command}, World);
        _ -> World
    end.

change(Name, From, To, World) ->
    case node_of(Name, World) of
        #node{mode = From} = Node -> put_node(Name, Node#node{mode = To}, World);
        _ -> World
    end.

to_core(Name, Event, #world{nodes = Nodes, config = #{core := Core}, now_ms = NowMs} = World) ->
    #{Name := #node{core = State0} = Node} = Nodes,
    {State, Effects} = Core:handle(Event, NowMs, State0),
    perform(Name, Effects, World#world{nodes = Nodes#{Name := Node#node{core = State}}}).

perform(Name, Effects, World) ->
    lists:foldl(fun(Effect, W) -> perform_one(Effect, Name, W) end, World, Effects).

perform_one({send, To, Msg}, Name, World) ->
    send(Name, To, Msg, World);
perform_one({after_ms, Ms, Timer}, Name, #world{now_ms = NowMs} = World) ->
    at(NowMs + Ms, {timer, Name, (node_of(Name, World))#node.incarnation, Timer}, World);
perform_one({notice, Notice}, Name, #world{notices = Notices, now_ms = NowMs} = World) ->
    World#world{notices = [{NowMs, Name, Notice} | Notices]};
perform_one({disk, Disk}, Name, World) ->
    put_node(Name, (node_of(Name, World))#node{disk = Disk}, World);
perform_one({Kind, _, _}, _Name, World) when Kind =:= view; Kind =:= reply ->
    World.

send(From, To, Msg, #world{config = #{latency_ms := {MinMs, MaxMs}, loss := Loss},
                           now_ms = NowMs, rand = Rand0} = World0) ->
    case node_of(From, World0) of
        #node{mode = Mode} when Mode =:= blocked; Mode =:= paused ->
            hold(From, {send, From, To, Msg}, World0);
        #node{mode = running} ->
            Bytes = erlang:external_size(Msg) + ?HEADER_BYTES,
            {Chance, Rand1} = rand:uniform_s(Rand0),
            {Draw, Rand} = rand:uniform_s(MaxMs - MinMs + 1, Rand1),
            {LateMs, World} = late_ms(count_sent(From, Bytes, World0#world{rand = Rand})),
            Arrival = {arrive, From, To, Msg, Bytes},
            case Chance < Loss orelse are_apart(From, To, World) of
                true -> World;
                false -> repeated(Arrival, at(NowMs + MinMs + Draw - 1 + LateMs, Arrival, World))
            end;
        #node{mode = down} ->
            World0
    end.

late_ms(#world{config = #{late := {Part, _}}} = World) when Part == 0 ->
    {0, World};
late_ms(#world{config = #{late := {Part, MaxMs}}, rand = Rand0} = World) ->
    {Chance, Rand1} = rand:uniform_s(Rand0),
    {Draw, Rand} = rand:uniform_s(MaxMs, Rand1),
    {case Chance < Part of true -> Draw; false -> 0 end, World#world{rand = Rand}}.

repeated(_Arrival, #world{config = #{repeats := Part}} = World) when Part == 0 ->
    World;
repeated(Arrival, #world{config = #{repeats := Part, latency_ms := {_, MaxMs}},
                         now_ms = NowMs, rand = Rand0} = World) ->
    case rand:uniform_s(Rand0) of
        {Chance, Rand1} when Chance < Part ->
            {Draw, Rand} = rand:uniform_s(4 * MaxMs, Rand1),
            at(NowMs + Draw, Arrival, World#world{rand = Rand});
        {_, Rand} -> World#world{rand = Rand}
    end.

are_apart(_From, _To, #world{parts = Parts}) when map_size(Parts) =:= 0 -> false;
are_apart(From, To, #world{parts = Parts}) -> maps:get(From, Parts, 0) =/= maps:get(To, Parts, 0).

%% --- small parts ------------------------------------------------------------------------------

at(AtMs, Event, #world{agenda = Agenda} = World) ->
    World#world{agenda = case Agenda of
                             #{AtMs := Events} -> Agenda#{AtMs := [Event | Events]};
                             #{} -> Agenda#{AtMs => [Event]}
                         end}.

node_of(Name, #world{nodes = Nodes}) ->
    maps:get(Name, Nodes, #node{}).

put_node(Name, Node, #world{nodes = Nodes} = World) ->
    World#world{nodes = Nodes#{Name => Node}}.

hold(Name, Event, World) ->
    #node{held = Held} = Node = node_of(Name, World),
    put_node(Name, Node#node{held = [Event | Held]}, World).

count_sent(Name, Bytes, #world{second = Second} = World) ->
    {Sent, Received} = maps:get(Name, Second, {0, 0}),
    World#world{second = Second#{Name => {Sent + Bytes, Received}}}.

count_received(Name, Bytes, #world{second = Second} = World) ->
    {Sent, Received} = maps:get(Name, Second, {0, 0}),
    World#world{second = Second#{Name => {Sent, Received + Bytes}}}.
