%% SPDX-License-Identifier: Apache-2.0
%% @doc Experiments with large peer-to-peer clusters: HyParView and Plumtree with the questions of
%% their papers, and limits that the answers have to keep.
%%
%% A cluster starts through five seeds and runs undisturbed for a while. Since a world is a value,
%% all experiments begin with the very same cluster:
%% <ul>
%% <li>`one_sender': a node sends a message each second.</li>
%% <li>`many_senders': each message comes from another node, the next when the last has
%%     arrived.</li>
%% <li>`at_once': the same, five messages per second, so that several are under way.</li>
%% <li>`crash_50', `crash_80', `crash_95': after some messages so many percent of the nodes crash at
%%     once; from that moment the others send in turn, ten messages per second.</li>
%% <li>`crash_N_later': the same three shuffles after the crash.</li>
%% </ul>
%% Latency is 10 to 50 ms, a dead neighbour is noticed after 0.1 to 3 s. The limits are those of
%% the paper for reliability, and those that iroh-gossip's simulator keeps for hops and redundancy
%% with 1,000 nodes.
-module(weft_sim_gossip).

-export([run/2, experiments/0, is_kept/1, starting/2, starting/4, senders/4, crash/3]).
-export_type([row/0]).

-define(SEEDS, 5).
-define(SHUFFLE_MS, 10000).
-define(WARM_SHUFFLES, 20).
-define(LAST_WAIT_MS, 10000).

-type row() :: #{experiment := atom(), nodes := pos_integer(), seed := integer(),
                 virtual_ms := non_neg_integer(), real_ms := non_neg_integer(),
                 violations := [string()], atom() => number()}.

%% @doc The names of the experiments. `cluster' is about the shape of the cluster before all others.
-spec experiments() -> [atom()].
experiments() ->
    [cluster, one_sender, many_senders, at_once, crash_50, crash_50_later, crash_80, crash_80_later,
     crash_95, crash_95_later].

%% @doc Runs all experiments with a cluster of that size. Needs about a minute of one core for 1,000
%% nodes, and memory of about 50 kB per node.
-spec run(NodeCount :: pos_integer(), Seed :: integer()) -> [row()].
run(NodeCount, Seed) ->
    %% A heap of its own that does not have to grow in small steps.
    Self = self(),
    {Pid, Ref} = spawn_opt(fun() -> Self ! {self(), rows(NodeCount, Seed)} end,
                           [monitor, {min_heap_size, 10000 * NodeCount div 10}]),
    receive
        {Pid, Rows} -> true = demonitor(Ref, [flush]), Rows;
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
    end.

rows(NodeCount, Seed) ->
    {Row, Cluster} = row(cluster, NodeCount, Seed, fun() -> cluster(NodeCount, Seed) end),
    %% Only with a tree there is something that a crash can break.
    Grown = senders(500, in_turn, 20, Cluster),
    [Row | lists:append([experiment(Name, World, NodeCount, Seed)
                         || {World, Names} <- [{Cluster, [one_sender, many_senders, at_once]},
                                               {Grown, [{crash, 50}, {crash, 80}, {crash, 95}]}],
                            Name <- Names])].

%% @doc Whether a row keeps all its limits.
-spec is_kept(row()) -> boolean().
is_kept(#{violations := Violations}) ->
    Violations =:= [].

%% --- the cluster ------------------------------------------------------------------------------

cluster(NodeCount, Seed) ->
    {World, GrownMs} = starting(NodeCount, Seed),
    weft_sim_world:run_until(GrownMs, World).

%% @doc A cluster that is about to start, and when it has run undisturbed for a while. Some hundred
%% nodes join per second.
-spec starting(NodeCount :: pos_integer(), Seed :: integer()) ->
          {weft_sim_world:world(), GrownMs :: pos_integer()}.
starting(NodeCount, Seed) ->
    starting(NodeCount, Seed, #{}, {10000, 50000}).

%% @doc The same with options of the topology, and with another latency.
-spec starting(NodeCount :: pos_integer(), Seed :: integer(), weft_core:options(),
               weft_sim_network:latency_us()) ->
          {weft_sim_world:world(), GrownMs :: pos_integer()}.
starting(NodeCount, Seed, Options, LatencyUs) ->
    Names = names(NodeCount),
    Machines = [{topology, weft_peer_to_peer_core,
                 Options#{seeds => lists:sublist(Names, ?SEEDS)}},
                {broadcast, weft_plumtree_core, #{}}],
    World0 = weft_sim_world:new(#{seed => Seed, machines => fun(_Node) -> Machines end,
                                  latency_us => LatencyUs,
                                  observer => {weft_sim_deliveries, weft_sim_deliveries:new()}}),
    StartMs = max(5000, 10 * NodeCount),
    {World, _} = lists:foldl(fun(Name, {World1, Rand0}) ->
                                 {AtMs, Rand} = rand:uniform_s(StartMs, Rand0),
                                 {weft_sim_world:schedule(AtMs, {start, Name}, World1), Rand}
                             end, {World0, rand:seed_s(exsss, Seed)}, Names),
    {World, StartMs + ?WARM_SHUFFLES * ?SHUFFLE_MS}.

names(Count) ->
    [list_to_atom(lists:flatten(io_lib:format("n~5..0b@sim", [N]))) || N <- lists:seq(1, Count)].

%% --- experiments ------------------------------------------------------------------------------

experiment({crash, Percent}, Cluster, NodeCount, Seed) ->
    Name = "crash_" ++ integer_to_list(Percent),
    Crashed = crash(Percent, Cluster, Seed),
    {Row, World} = row(list_to_existing_atom(Name), NodeCount, Seed,
                       fun() -> senders(100, in_turn, count(NodeCount), Crashed) end),
    LaterMs = weft_sim_world:now_ms(Crashed) + 3 * ?SHUFFLE_MS,
    {Later, _} = row(list_to_existing_atom(Name ++ "_later"), NodeCount, Seed,
                     fun() -> senders(1000, in_turn, count(NodeCount) div 2,
                                      weft_sim_world:run_until(LaterMs, World))
                     end),
    [Row, Later];
experiment(Name, Cluster, NodeCount, Seed) ->
    {EveryMs, Who} = case Name of
                         one_sender -> {1000, first};
                         many_senders -> {2000, in_turn};
                         at_once -> {200, in_turn}
                     end,
    {Row, _} = row(Name, NodeCount, Seed,
                   fun() -> senders(EveryMs, Who, count(NodeCount), Cluster) end),
    [Row].

count(NodeCount) when NodeCount =< 1000 -> 100;
count(_NodeCount) -> 30.

%% @doc So many percent of the nodes crash at once.
-spec crash(Percent :: 0..99, weft_sim_world:world(), Seed :: integer()) -> weft_sim_world:world().
crash(Percent, World, Seed) ->
    Running = weft_sim_world:running(World),
    NowMs = weft_sim_world:now_ms(World),
    {Victims, _} = weft_choice:some(round(length(Running) * Percent / 100), Running,
                                    rand:seed_s(exsss, {Seed, Percent, 0})),
    Crash = fun(Node, W) -> weft_sim_world:schedule(NowMs, {crash, Node}, W) end,
    Doomed = lists:foldl(Crash, World, Victims),
    weft_sim_world:run_until(NowMs, Doomed).

%% @doc Has messages sent, and arrive. The senders are spread over the nodes, which are in the order
%% they were named, not started.
-spec senders(EveryMs :: pos_integer(), first | in_turn, Count :: pos_integer(),
              weft_sim_world:world()) -> weft_sim_world:world().
senders(EveryMs, Who, Count, World) ->
    NowMs = weft_sim_world:now_ms(World),
    Running = weft_sim_world:running(World),
    Sending = lists:foldl(
                fun(N, W) ->
                    Sender = case Who of
                                 first -> hd(Running);
                                 in_turn -> lists:nth(1 + N * 7919 rem length(Running), Running)
                             end,
                    Command = {command, Sender, broadcast, {broadcast, <<N:256>>}},
                    weft_sim_world:schedule(NowMs + 1 + (N - 1) * EveryMs, Command, W)
                end, World, lists:seq(1, Count)),
    weft_sim_world:run_until(NowMs + Count * EveryMs + ?LAST_WAIT_MS, Sending).

%% --- figures and limits -----------------------------------------------------------------------

row(Name, NodeCount, Seed, Run) ->
    Start = erlang:monotonic_time(millisecond),
    World = Run(),
    RealMs = erlang:monotonic_time(millisecond) - Start,
    SinceMs = since_ms(Name, NodeCount, World),
    Violations = [Text || {Checker, Options} <- limits(Name),
                          {violation, Text0} <- [Checker:settled(World,
                                                                 Options#{since_ms => SinceMs})],
                          Text <- [lists:flatten(Text0)]],
    Row = #{experiment => Name, nodes => NodeCount, seed => Seed, real_ms => RealMs,
            virtual_ms => weft_sim_world:now_ms(World) - SinceMs, violations => Violations},
    {maps:merge(figures(Name, World, SinceMs), Row), World}.

%% All messages that this experiment sent, and none of one before.
since_ms(cluster, _NodeCount, _World) -> 0;
since_ms(Name, NodeCount, World) ->
    {EveryMs, Count} = case lists:suffix("_later", atom_to_list(Name)) of
                           true -> {1000, count(NodeCount) div 2};
                           false -> {every_ms(Name), count(NodeCount)}
                       end,
    weft_sim_world:now_ms(World) - Count * EveryMs - ?LAST_WAIT_MS.

every_ms(one_sender) -> 1000;
every_ms(many_senders) -> 2000;
every_ms(at_once) -> 200;
every_ms(_Crash) -> 100.

figures(cluster, World, _SinceMs) ->
    Graph = weft_sim_graph:symmetric(weft_sim_peers:graph(World)),
    [Largest | _] = weft_sim_graph:components(Graph),
    {Mean, Longest} = weft_sim_graph:path_lengths(lists:sublist(lists:sort(Largest), 20), Graph),
    #{events := Events, messages := Messages, bytes := Bytes} = weft_sim_world:counters(World),
    PerNodeAndSecond = map_size(Graph) * weft_sim_world:now_ms(World) / 1000,
    #{connected => length(Largest) / map_size(Graph),
      degree => lists:sum([length(Peers) || Peers <- maps:values(Graph)]) / map_size(Graph),
      clustering => weft_sim_graph:clustering(Graph), path => Mean, path_max => Longest,
      events => Events, messages_per_node_s => Messages / PerNodeAndSecond,
      bytes_per_node_s => Bytes / PerNodeAndSecond};
figures(_Name, World, SinceMs) ->
    weft_sim_deliveries:figures(World, #{since_ms => SinceMs}).

limits(cluster) ->
    [{weft_sim_connectivity_checker, #{}}, {weft_sim_symmetry_checker, #{}},
     {weft_sim_degree_checker, #{full => 0.95}}];
limits(one_sender) -> reaches(1.0) ++ costs(15, 0.2);
limits(many_senders) -> reaches(1.0) ++ costs(18, 1);
%% Our own: messages that travel at once hinder each other in shaping the tree.
limits(at_once) -> reaches(1.0) ++ costs(20, 1);
limits(crash_80) -> reaches(0.99);
limits(crash_95) -> reaches(0.9);
%% Some of the last 5 % may know nobody who lives, not even a seed.
limits(crash_95_later) -> reaches(0.9);
limits(_Crash) -> reaches(1.0).

reaches(Share) ->
    [{weft_sim_reliability_checker, #{least => Share}}].

costs(Hops, Redundancy) ->
    [{weft_sim_last_hop_checker, #{below => Hops}},
     {weft_sim_redundancy_checker, #{below => Redundancy}}].
