%% SPDX-License-Identifier: Apache-2.0
%% @doc A large peer-to-peer cluster over time, for plots: how it comes together, its degrees and
%% paths, each broadcast by itself, how many nodes broadcasts reach after crashes of all sizes, and
%% how that recovers with the shuffles. The same clusters as in `weft_sim_gossip'.
-module(weft_sim_curves).

-export([run/2]).
-export_type([curve/0]).

-define(SAMPLE_MS, 1000).
-define(SHUFFLE_MS, 10000).
-define(CRASHES, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95]).
-define(RECOVERIES, [50, 80, 90, 95]).
-define(RECOVERY_SHUFFLES, 5).
-define(MESSAGES, 50).
-define(MESSAGES_PER_BATCH, 20).
%% Paths from so many nodes.
-define(PATHS_FROM, 50).

%% Name of the plot, name of the curve, and its points.
-type curve() :: {Plot :: atom(), Curve :: atom(), [{X :: number(), Y :: number()}]}.

%% @doc All curves. Needs some minutes of one core for 1,000 nodes.
-spec run(NodeCount :: pos_integer(), Seed :: integer()) -> [curve()].
run(NodeCount, Seed) ->
    {Start, GrownMs} = weft_sim_gossip:starting(NodeCount, Seed),
    {Samples, Cluster} = samples(?SAMPLE_MS, GrownMs, Start, []),
    Grown = weft_sim_gossip:senders(500, in_turn, 20, Cluster),
    convergence(Samples) ++ shape(Cluster)
        ++ broadcasts(one_sender, first, Cluster) ++ broadcasts(many_senders, in_turn, Cluster)
        ++ crashes(Grown, Seed)
        ++ lists:append([recoveries(Percent, Grown, Seed) || Percent <- ?RECOVERIES]).

%% --- the cluster ------------------------------------------------------------------------------

samples(AtMs, UntilMs, World, Samples) when AtMs > UntilMs ->
    {lists:reverse(Samples), World};
samples(AtMs, UntilMs, World0, Samples) ->
    World = weft_sim_world:run_until(AtMs, World0),
    samples(AtMs + ?SAMPLE_MS, UntilMs, World, [{AtMs / 1000, sample(World)} | Samples]).

sample(World) ->
    Graph = weft_sim_graph:symmetric(weft_sim_peers:graph(World)),
    Nodes = max(1, map_size(Graph)),
    Largest = case weft_sim_graph:components(Graph) of
                  [Part | _] -> length(Part);
                  [] -> 0
              end,
    Links = lists:sum([length(Peers) || Peers <- maps:values(Graph)]),
    {100 * Largest / Nodes, 100 * proplists:get_value(5, weft_sim_graph:degrees(Graph), 0) / Nodes,
     Links / Nodes}.

convergence(Samples) ->
    [{convergence, connected, [{S, Connected} || {S, {Connected, _, _}} <- Samples]},
     {convergence, all_neighbours, [{S, Full} || {S, {_, Full, _}} <- Samples]},
     {neighbours, mean, [{S, Degree} || {S, {_, _, Degree}} <- Samples]}].

shape(World) ->
    Graph = weft_sim_graph:symmetric(weft_sim_peers:graph(World)),
    From = lists:sublist(lists:sort(maps:keys(Graph)), ?PATHS_FROM),
    [{degrees, nodes, shares(weft_sim_graph:degrees(Graph))},
     {paths, paths, shares(weft_sim_graph:path_counts(From, Graph))}].

shares(Counts) ->
    Sum = lists:sum([Count || {_, Count} <- Counts]),
    [{X, 100 * Count / Sum} || {X, Count} <- Counts].

%% --- broadcasts -------------------------------------------------------------------------------

broadcasts(Name, Who, Cluster) ->
    SinceMs = weft_sim_world:now_ms(Cluster),
    Messages = lists:enumerate(
                 weft_sim_deliveries:messages(
                   weft_sim_gossip:senders(2000, Who, ?MESSAGES, Cluster), SinceMs)),
    [{Plot, Name, [{N, map_get(Plot, Message)} || {N, Message} <- Messages]}
     || Plot <- [last_hop, redundancy]].

%% Ten messages per second from the moment of the crash.
crashes(Grown, Seed) ->
    Sent = [{Percent, sent(?MESSAGES, weft_sim_gossip:crash(Percent, Grown, Seed))}
            || Percent <- ?CRASHES],
    [{reliability, mean, [{Percent, mean(reached, Messages)} || {Percent, {Messages, _}} <- Sent]},
     {reliability, least, [{Percent, 100 * lists:min([Share || #{reached := Share} <- Messages])}
                           || {Percent, {Messages, _}} <- Sent]},
     {crash_ms, mean, [{Percent, mean(last_ms, Messages)} || {Percent, {Messages, _}} <- Sent]}].

sent(Count, World0) ->
    SinceMs = weft_sim_world:now_ms(World0),
    World = weft_sim_gossip:senders(100, in_turn, Count, World0),
    {weft_sim_deliveries:messages(World, SinceMs), World}.

%% A batch of messages takes a bit more than a shuffle cycle to be sent and to arrive, then comes
%% the next; each counts for itself, at its begin.
recoveries(Percent, Grown, Seed) ->
    Crashed = weft_sim_gossip:crash(Percent, Grown, Seed),
    Batches = batches(weft_sim_world:now_ms(Crashed), Crashed),
    Name = list_to_atom("crash_" ++ integer_to_list(Percent)),
    [{Plot, Name, [{Shuffles, mean(Figure, Messages)} || {Shuffles, Messages} <- Batches]}
     || {Plot, Figure} <- [{recovery, reached}, {recovery_ms, last_ms}]].

batches(CrashMs, World) ->
    case (weft_sim_world:now_ms(World) - CrashMs) / ?SHUFFLE_MS of
        Shuffles when Shuffles > ?RECOVERY_SHUFFLES ->
            [];
        Shuffles ->
            {Messages, Later} = sent(?MESSAGES_PER_BATCH, World),
            [{Shuffles, Messages} | batches(CrashMs, Later)]
    end.

mean(reached, Messages) ->
    100 * lists:sum([Share || #{reached := Share} <- Messages]) / length(Messages);
mean(last_ms, Messages) ->
    lists:sum([Ms || #{last_ms := Ms} <- Messages]) / length(Messages).
