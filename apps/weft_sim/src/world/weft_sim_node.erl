%% SPDX-License-Identifier: Apache-2.0
%% @doc One node of the simulated world: whether it runs, its machines, and the streams that it
%% believes in; pure.
%%
%% It says what becomes of something that happens at the node (`fate/2'). It is taken by a node that
%% runs and for which it was meant; it waits while the node is paused, for a paused node sees
%% everything later; otherwise it is lost. What is taken is carried out by `weft_sim_world'. Whether
%% what is on its way arrives at all says `weft_sim_network'.
-module(weft_sim_node).

-export([new/0, start/2, crash/1, pause/1, resume/1, state/1, starts/1, incarnation/1,
         machines/1, with_machines/2, streams/1, with_stream/3, without_stream/2,
         agree/4, agreed/1, start_machine_anew/2, fate/2, hold/2]).
-export_type([sim_node/0, happening/0]).

-record(node, {
    %% How often it was started, and the number that it tells others.
    starts = 0 :: non_neg_integer(),
    incarnation = 0 :: non_neg_integer(),
    state = down :: down | running | paused,
    machines = weft_sim_machines:none() :: weft_sim_machines:machines(),
    %% The streams this node believes in.
    streams = #{} :: #{node() => weft_sim_network:stream_id()},
    %% The peers that a machine takes for neighbours, so that other machines may use the link.
    agreed = #{} :: #{node() => Machine :: atom()},
    %% What arrived while the node was paused, newest first.
    held = [] :: [happening()]}).

-opaque sim_node() :: #node{}.

-type happening() ::
    {timer, node(), Starts :: non_neg_integer(), Machine :: atom(),
     Generation :: non_neg_integer(), Timer :: term()}
  | {deliver, weft_sim_network:stream_id(), From :: node(), To :: node(), Machine :: atom(),
     Msg :: term()}
  | {link_up, weft_sim_network:stream_id(), node(), Peer :: node()}
  | {link_down, weft_sim_network:stream_id(), node(), Peer :: node(), Reason :: term()}
  | {connect_failed, node(), Starts :: non_neg_integer(), Peer :: node()}
  | {pause_noticed, node(), Starts :: non_neg_integer()}.

%% @doc One that was never started.
-spec new() -> sim_node().
new() -> #node{}.

%% @doc One that is down starts, with no machines yet.
-spec start(Incarnation :: non_neg_integer(), sim_node()) -> sim_node().
start(Incarnation, #node{starts = Starts}) ->
    #node{starts = Starts + 1, incarnation = Incarnation, state = running}.

%% @doc All state is lost, but for how often it was started.
-spec crash(sim_node()) -> sim_node().
crash(#node{starts = Starts}) -> #node{starts = Starts}.

%% @doc From now on what happens at it waits.
-spec pause(sim_node()) -> sim_node().
pause(Node) -> Node#node{state = paused}.

%% @doc It runs again. Also what has waited, the oldest first.
-spec resume(sim_node()) -> {[happening()], sim_node()}.
resume(#node{held = Held} = Node) ->
    {lists:reverse(Held), Node#node{state = running, held = []}}.

%% @doc Whether it runs.
-spec state(sim_node()) -> down | running | paused.
state(#node{state = State}) -> State.

%% @doc How often it was started.
-spec starts(sim_node()) -> non_neg_integer().
starts(#node{starts = Starts}) -> Starts.

%% @doc The number of this run that it tells others.
-spec incarnation(sim_node()) -> non_neg_integer().
incarnation(#node{incarnation = Incarnation}) -> Incarnation.

%% @doc What runs on it.
-spec machines(sim_node()) -> weft_sim_machines:machines().
machines(#node{machines = Machines}) -> Machines.

%% @doc The same with other states of its machines.
-spec with_machines(weft_sim_machines:machines(), sim_node()) -> sim_node().
with_machines(Machines, Node) -> Node#node{machines = Machines}.

%% @doc The streams that it believes in, by the node at the other end.
-spec streams(sim_node()) -> #{Peer :: node() => weft_sim_network:stream_id()}.
streams(#node{streams = Streams}) -> Streams.

%% @doc From now on it believes in this stream to the peer.
-spec with_stream(Peer :: node(), weft_sim_network:stream_id(), sim_node()) -> sim_node().
with_stream(Peer, Id, #node{streams = Streams} = Node) ->
    Node#node{streams = Streams#{Peer => Id}}.

%% @doc It believes in no stream to the peer any more.
-spec without_stream(Peer :: node(), sim_node()) -> sim_node().
without_stream(Peer, #node{streams = Streams, agreed = Agreed} = Node) ->
    Node#node{streams = maps:remove(Peer, Streams), agreed = maps:remove(Peer, Agreed)}.

%% @doc A machine takes the peer for a neighbour from now on, or no longer. It ends with the stream.
-spec agree(Machine :: atom(), Peer :: node(), boolean(), sim_node()) -> sim_node().
agree(Machine, Peer, true, #node{agreed = Agreed} = Node) ->
    Node#node{agreed = Agreed#{Peer => Machine}};
agree(_Machine, Peer, false, #node{agreed = Agreed} = Node) ->
    Node#node{agreed = maps:remove(Peer, Agreed)}.

%% @doc The peers that a machine has taken for neighbours, in term order.
-spec agreed(sim_node()) -> [node()].
agreed(#node{agreed = Agreed}) -> lists:sort(maps:keys(Agreed)).

%% @doc A machine starts anew: what it took for a neighbour is none any more.
-spec start_machine_anew(Machine :: atom(), sim_node()) -> sim_node().
start_machine_anew(Machine, #node{agreed = Agreed, machines = Machines} = Node) ->
    Node#node{agreed = maps:filter(fun(_Peer, By) -> By =/= Machine end, Agreed),
              machines = weft_sim_machines:forget_views(Machine, Machines)}.

%% @doc What becomes of something that happens at this node now.
-spec fate(happening(), sim_node()) -> take | hold | lost.
fate({timer, _, Starts, _, _, _}, #node{state = paused, starts = Starts}) -> hold;
fate({timer, _, Starts, Machine, Generation, _},
     #node{state = running, starts = Starts, machines = Machines}) ->
    case weft_sim_machines:generation(Machine, Machines) of
        Generation -> take;
        _Restarted -> lost
    end;
fate({deliver, Id, From, _, _, _}, #node{state = running, streams = Streams}) ->
    case Streams of
        #{From := Id} -> take;
        #{} -> lost
    end;
%% That the stream is up may be held, too; then it comes first.
fate({deliver, _, _, _, _, _}, #node{state = paused}) -> hold;
fate({link_up, _, _, _}, #node{state = running}) -> take;
fate({link_up, _, _, _}, #node{state = paused}) -> hold;
fate({link_down, Id, _, Peer, _}, #node{state = State, streams = Streams}) ->
    case {State, Streams} of
        {running, #{Peer := Id}} -> take;
        {paused, #{Peer := Id}} -> hold;
        _NotThisOne -> lost
    end;
fate({connect_failed, _, Starts, Peer},
     #node{state = running, starts = Starts, streams = Streams})
  when not is_map_key(Peer, Streams) -> take;
fate({pause_noticed, _, Starts}, #node{state = paused, starts = Starts}) -> take;
fate(_Happening, _Node) -> lost.

%% @doc It waits until the node is resumed.
-spec hold(happening(), sim_node()) -> sim_node().
hold(Happening, #node{held = Held} = Node) -> Node#node{held = [Happening | Held]}.
