%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiments on Riak (Ghaffari et al., "Scalable Persistent Storage for Erlang", 2013),
%% with the store of weft:
%%
%% ```
%% riak_spawned      get by `pairs' clients from a store of `streams' nodes, whose requests are
%%                   processes of their own
%% riak_supervised   the same, but one supervisor of each node starts these processes
%% riak_spawned_rate, riak_supervised_rate
%%                   the same with as many requests per second as are 70 % of what the store does as
%%                   fast as it can without the supervisor, which the first of these cells measures
%%                   for all of them, so that they have the same load
%% riak_get          one operation, on a store of `pairs' nodes with `streams' clients in all;
%% riak_insert       there is one node of clients for three of the store
%% riak_update
%% riak_insert_disk  the same as riak_insert with copies that are on disk, too, and synced
%% riak_get_rate     the same by way of the client of the store (`weft_kv_client'), with so many
%% riak_insert_rate  requests per second for each node of the store that the cores can do them for
%% riak_update_rate  the most nodes
%% riak_get_rings    the same as these on as many nodes, be they rings of `pairs' nodes or one ring:
%% riak_insert_rings the machine has the same load, and nodes have as many keys and about as many
%% riak_update_rings partitions
%% riak_elasticity   all three operations by way of the client of the store (`weft_kv_client'), at a
%%                   rate, while two nodes are killed and started again
%% riak_availability all three operations by way of that client, while one node after the other is
%%                   killed and started again
%% '''
%% Values have 1 KB (`size_bytes'), in three copies (one, on one node), in memory but for
%% riak_insert_disk. The nodes of clients are no part of the store, and their processor time is
%% counted apart. Nodes have one scheduler; those of riak_spawned and riak_supervised have one for
%% each core, since a supervisor holds up what could run beside it.
-module(weft_store_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).

-define(CALL_MS, 60000).
-define(LOOK_MS, 100).
-define(LOOK_SELDOM_MS, 1000).
-define(SUPERVISED_MS, 200).
-define(KEYS, 1000).
-define(FEW_KEYS, 100).
-define(QUOTA_MS, 15000).
%% Nodes of their own, and a disk that has to be waited for.
-define(ON_DISK_MS, 6000).
-define(VALUE_BYTES, 1024).
-define(CLIENTS_PER_NODE, 4).
-define(PER_GENERATOR, 3).
%% Of a repetition: what is compared in it has the same requests at the same times.
-define(SEEDS, 10000).
%% Added where there is a rate: what is inserted on the same nodes has to be new there, too.
-define(SEEDS_OF_RATES, 5000).
%% Of what the store can do without a supervisor. With one it does less (`riak_supervised').
-define(OF_CAPACITY, 0.7).
%% Of `riak_availability': before a kill, and before the start after it.
-define(PAUSE_MS, 10000).
%% Of so many keys that are inserted there one is read when all is over.
-define(READ_BACK, 32).
%% Requests per second and node of the store. 24 nodes are well below what two cores can do.
-define(PER_NODE, #{get => 40, insert => 30, update => 15}).
%% Of `riak_elasticity': in all about a third of what two cores do in `riak_availability'.
-define(PER_NODE_WITH_LOSSES, 200).
-define(AT_A_RATE, [riak_get_rate, riak_insert_rate, riak_update_rate]).
%% Of several rings each has nodes of clients of its own.
-define(IN_RINGS, [riak_get_rings, riak_insert_rings, riak_update_rings]).
-define(OF_RINGS_PER_GENERATOR, 2).
-define(KEYS_PER_NODE, 250).
%% There are as many partitions as are a power of two, or more.
-define(PARTITIONS_PER_NODE, 4).
%% Nodes of their own for each cell.
-define(FRESH_NODE_MS, 250).
%% Shares of the time of `riak_elasticity'.
-define(KILLS, [0.2, 0.4]).
-define(START, 0.6).

%% @private
cells(quick) ->
    walls([1], [16], 1000) ++ rates([1], 16, 1000)
        ++ [with_few_keys(Cell) || Cell <- growths([4, 8], 1000)]
        ++ even([4, 8], 3000) ++ in_rings(8, [4, 8], 3000) ++ on_disk(1000)
        ++ [elasticity(15000), availability(12000)];
cells(full) ->
    walls([1, 3], [1, 4, 16, 64], 3000) ++ rates([1, 3], 64, 5000)
        ++ growths([4, 8, 16, 24], 5000)
        ++ even([4, 8, 24], 10000) ++ in_rings(24, [4, 24], 10000) ++ on_disk(5000)
        ++ [elasticity(90000), availability(235000)].

walls(Sizes, Clients, DurationMs) ->
    [on_all_cores(cell(Workload, Size, 1, Count, Size, DurationMs))
     || Size <- Sizes, Count <- Clients, Workload <- [riak_spawned, riak_supervised]].

rates(Sizes, Clients, DurationMs) ->
    [on_all_cores(cell(Workload, Size, 1, Clients, Size, 2 * DurationMs))
     || Size <- Sizes, Workload <- [riak_spawned_rate, riak_supervised_rate]].

on_all_cores(#{layout := {cluster, Shape}} = Cell) ->
    Cell#{layout := {cluster, Shape#{schedulers => all}}}.

%% Nodes with a small part of a core do few operations, and take long to have the keys.
growths(Sizes, DurationMs) ->
    [Cell#{with_quota => #{cost_ms => CostMs + 4 * DurationMs + ?QUOTA_MS,
                           with => With#{duration_ms := 3 * DurationMs}}}
     || #{with := With, cost_ms := CostMs} = Cell
            <- growths([riak_get, riak_insert, riak_update], Sizes, DurationMs)].

with_few_keys(#{with := With, with_quota := #{with := Other} = Quota} = Cell) ->
    Cell#{with := With#{keys => ?FEW_KEYS},
          with_quota := Quota#{with := Other#{keys => ?FEW_KEYS}}}.

%% Each node has the same load, however many there are.
even(Sizes, DurationMs) ->
    [Cell#{with := With#{per_node => per_node(Workload)}}
     || #{workload := Workload, with := With} = Cell <- growths(?AT_A_RATE, Sizes, DurationMs)].

per_node(Workload) -> maps:get(operation(Workload), ?PER_NODE).

%% So has the machine, as there are as many nodes. What is compared is measured one after the other.
in_rings(Count, Sizes, DurationMs) ->
    [begin
         #{with := With, cost_ms := CostMs} = Cell =
             cell(Workload, Count, Count div ?OF_RINGS_PER_GENERATOR, Size,
                  ?CLIENTS_PER_NODE * Count, DurationMs),
         Cell#{fresh => true,
               cost_ms := CostMs + DurationMs div 2 + ?FRESH_NODE_MS * Count,
               with := With#{rings => Count div Size, keys => ?KEYS_PER_NODE * Size,
                             partitions => partitions(?PARTITIONS_PER_NODE * Size),
                             per_node => per_node(Workload), rest_ms => DurationMs div 2}}
     end || Workload <- ?IN_RINGS, Size <- Sizes].

partitions(Least) -> 1 bsl ceil(math:log2(Least)).

growths(Workloads, Sizes, DurationMs) ->
    [begin
         #{with := With, cost_ms := CostMs} = Cell =
             cell(Workload, Size, generators(Size), Size, ?CLIENTS_PER_NODE * Size, DurationMs),
         Cell#{with := With#{rest_ms => DurationMs div 2}, cost_ms := CostMs + DurationMs div 2,
               variants := growth_variants(Workload)}
     end || Size <- Sizes, Workload <- Workloads].

%% The last one of those with so many nodes: their store has ended then.
on_disk(DurationMs) ->
    [Cell#{fresh => true, cost_ms := CostMs + ?ON_DISK_MS}
     || #{cost_ms := CostMs} = Cell <- growths([riak_insert_disk], [4], DurationMs)].

%% What grows with the nodes on any distribution, is seen on the stock one.
growth_variants(Get) when Get =:= riak_get; Get =:= riak_get_rate -> [weft_mesh, stock_mesh];
growth_variants(_) -> [weft_mesh].

elasticity(DurationMs) ->
    #{with := With} = Cell = cell(riak_elasticity, 6, 2, 6, 24, DurationMs),
    Cell#{fresh => true, repetitions_max => 3, with := With#{per_node => ?PER_NODE_WITH_LOSSES}}.

%% Four repetitions fit into the time of a figure, and have as many operations as it asks for.
availability(DurationMs) ->
    #{with := With} = Cell = cell(riak_availability, 6, 2, 6, 24, DurationMs),
    Cell#{fresh => true, with := With#{pause_ms => min(?PAUSE_MS, DurationMs div 8)}}.

generators(Size) -> ceil(Size / ?PER_GENERATOR).

cell(Workload, Size, Generators, Pairs, Streams, DurationMs) ->
    Count = Size + Generators,
    #{suite => store, workload => Workload, size_bytes => ?VALUE_BYTES, pairs => Pairs,
      streams => Streams, link => weft_bench_link:loopback(), on_demand => true,
      layout => {cluster, weft_bench_cluster:shape(Count, [])}, variants => [weft_mesh],
      cost_ms => DurationMs + 1500 + 250 * Count,
      with => #{size => Size, duration_ms => DurationMs}}.

%% @private
run(#{dir := Dir, workload := Workload, with := #{size := Size} = With} = Cell, Nodes) ->
    {Store, Others} = lists:split(Size, lists:sort(weft_bench_nodes:roles(Nodes))),
    Rings = rings(maps:get(rings, With, 1), Store, Others),
    Options = (maps:with([partitions], With))#{on_disk => Workload =:= riak_insert_disk},
    Form = fun({Members, _}) -> weft_store_ring:form(Nodes, Members, Dir, Options) end,
    lists:foreach(fun(ok) -> ok end, weft_kv_crew:map(Form, Rings, length(Rings))),
    Generators = [{Role, names(Members, Nodes)} || {Members, Roles} <- Rings, Role <- Roles],
    Load = load(Cell, Rings, Generators, Nodes),
    ok = filled(coordinators(Workload), keys(With), Rings, Nodes),
    case Workload of
        riak_availability -> {ok, available(Load, Store, Generators, With, Dir, Nodes)};
        riak_elasticity -> {ok, elastic(Load, Store, Generators, With, Dir, Nodes)};
        riak_insert_disk ->
            try {ok, steady(Load, Store, Generators, Cell, Nodes)}
            after ok = weft_store_ring:removed(Nodes, Store, Dir)
            end;
        _ -> {ok, steady(Load, Store, Generators, Cell, Nodes)}
    end.

%% Each with the nodes of its clients.
rings(Count, Store, Others) -> lists:zip(parts(Count, Store), parts(Count, Others)).

parts(Count, List) ->
    Length = length(List) div Count,
    [lists:sublist(List, 1 + Number * Length, Length) || Number <- lists:seq(0, Count - 1)].

names(Roles, Nodes) -> [weft_bench_nodes:node(Nodes, Role) || Role <- Roles].

%% Of each ring.
keys(With) -> maps:get(keys, With, ?KEYS).

load(#{workload := Workload, repetition := Repetition, with := #{size := Size} = With} = Cell,
     Rings, Generators, Nodes) ->
    Clients = max(1, clients(Cell) div length(Generators)),
    Load = #{operation => operation(Workload), keys => keys(With), value_bytes => ?VALUE_BYTES,
             seed => ?SEEDS * Repetition, clients => Clients,
             nodes => lists:append([names(Members, Nodes) || {Members, _} <- Rings])},
    case {is_of_capacity(Workload), With} of
        {true, _} ->
            Measure = fun() ->
                          ok = filled(spawned, keys(With), Rings, Nodes),
                          capacity(Load, Generators, With, Nodes)
                      end,
            PerSecond = once({?MODULE, Size, clients(Cell)}, Measure),
            Load#{per_second => ?OF_CAPACITY * PerSecond / clients(Cell)};
        {false, #{per_node := PerNode}} ->
            Load#{through => library, seed := ?SEEDS * Repetition + ?SEEDS_OF_RATES,
                  per_second => PerNode * Size / (Clients * length(Generators))};
        {false, #{}} ->
            Load
    end.

is_of_capacity(Workload) ->
    Workload =:= riak_spawned_rate orelse Workload =:= riak_supervised_rate.

coordinators(Workload) when Workload =:= riak_spawned; Workload =:= riak_spawned_rate -> spawned;
coordinators(Workload) when Workload =:= riak_supervised; Workload =:= riak_supervised_rate ->
    one_supervisor;
coordinators(_Workload) ->
    as_they_are.

%% The store starts again with other coordinators. Its partitions are those of the ring and stay,
%% with what they have in memory. Each node fills in a part of the keys of its ring.
filled(How, Keys, Rings, Nodes) ->
    _ = [ok = weft_store_ring:coordinators(Nodes, Store, How)
         || How =/= as_they_are, {Store, _} <- Rings],
    Fill = fun({Numbers, Role}) ->
               call(Nodes, Role, weft_store_clients, fill, [Numbers, ?VALUE_BYTES])
           end,
    Shares = [{lists:seq(First, Keys, length(Store)), Role}
              || {Store, _} <- Rings, {First, Role} <- numbered(Store)],
    lists:foreach(fun(ok) -> ok end, weft_kv_crew:map(Fill, Shares, length(Shares))).

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

%% In the emulator of the benchmark, which measures cells one after the other.
once(Key, Measure) ->
    case persistent_term:get(Key, none) of
        none ->
            Measured = Measure(),
            ok = persistent_term:put(Key, Measured),
            Measured;
        Measured -> Measured
    end.

%% Requests per second, as fast as it goes.
capacity(Load, Generators, #{duration_ms := DurationMs}, Nodes) ->
    _ = loads(Load#{duration_ms => DurationMs div 8}, 3, Generators, Nodes),
    Outcomes = loads(Load#{duration_ms => DurationMs div 4}, 4, Generators, Nodes),
    proplists:get_value(calls_per_s, weft_store_clients:metrics(Outcomes)).

clients(#{workload := Workload, pairs := Pairs, streams := Streams}) ->
    case coordinators(Workload) of
        as_they_are -> Streams;
        _ -> Pairs
    end.

operation(Workload) ->
    case atom_to_list(Workload) of
        "riak_insert" ++ _ -> insert;
        "riak_update" ++ _ -> update;
        Mixed when Mixed =:= "riak_elasticity"; Mixed =:= "riak_availability" -> mixed;
        _ -> get
    end.

call(Nodes, Role, Module, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, Module, Function, {Arguments, ?CALL_MS}).

%% ---- as fast as it goes ----

steady(Load, Store, Generators, #{with := #{duration_ms := DurationMs} = With} = Cell, Nodes) ->
    _ = loads(Load#{duration_ms => DurationMs div 5}, 1, Generators, Nodes),
    Supervised = supervised(Cell, Store, Nodes),
    %% What it takes to look is part of what nodes do at rest, too.
    Looking = looking(Store, Nodes),
    RestUs = at_rest(Store, With, Nodes),
    Before = weft_store_cost:counts(Nodes, Store),
    StoreUs = cpu_us(Store, Nodes),
    ClientRoles = [Role || {Role, _} <- Generators],
    GeneratorsUs = cpu_us(ClientRoles, Nodes),
    {Outcomes, Sharing} = shared(Cell, Nodes,
                                 fun() ->
                                     loads(Load#{duration_ms => DurationMs}, 2, Generators, Nodes)
                                 end),
    UsedUs = cpu_us(Store, Nodes) - StoreUs,
    ClientsUs = cpu_us(ClientRoles, Nodes) - GeneratorsUs,
    After = weft_store_cost:counts(Nodes, Store),
    Waited = waited(Looking, Nodes),
    Metrics = weft_store_clients:metrics(Outcomes),
    Done = max(1, proplists:get_value(calls, Metrics)),
    Metrics ++ Sharing ++ [{asked_per_s, weft_store_clients:due(Outcomes) * 1000 / DurationMs}
                           || is_map_key(per_second, Load)]
        ++ weft_store_cost:per_call(Before, After, Done)
        ++ [{store_rest_percent, Us / 1.0e4} || Us <- RestUs]
        ++ [{store_cpu_us, UsedUs / Done}, {clients_cpu_us, ClientsUs / Done},
            {store_node_bytes, weft_store_cost:node_bytes(Nodes, Store)} | Supervised ++ Waited].

%% Of one node: all are alike.
supervised(#{workload := Workload}, [First | _], Nodes) ->
    [{supervisor_us, weft_store_cost:supervisor_us(Nodes, First, ?SUPERVISED_MS)}
     || coordinators(Workload) =:= one_supervisor].

%% Without the time in which the store is made.
shared(#{layout := Layout, quota := Quota}, Nodes, Function) ->
    weft_bench_sharing:measured(Layout, Quota, Nodes, Function).

%% At processes with a name: on the first node ten times a second, for a picture; on the others a
%% look costs as much. At all processes seldom, as there are many.
looking([First | Others] = Store, Nodes) ->
    EveryMs = maps:from_list([{First, ?LOOK_MS} | [{Role, ?LOOK_SELDOM_MS} || Role <- Others]]),
    [{Which, Role, call(Nodes, Role, weft_store_mailbox, start, [Which, Ms])}
     || Role <- Store,
        {Which, Ms} <- [{named, map_get(Role, EveryMs)}, {all, ?LOOK_SELDOM_MS}]].

%% In the series are those with a name.
waited(Looking, Nodes) ->
    [Named, All] = [weft_store_mailbox:of_all([call(Nodes, Role, weft_store_mailbox, stop, [Pid])
                                               || {Of, Role, Pid} <- Looking, Of =:= Which])
                    || Which <- [named, all]],
    [{mailbox_nodes, length([Role || {all, Role, _} <- Looking])}, {mailbox_max, most(Named)},
     {mailbox_all_max, most(All)} | [{mailbox, Length, AtMs} || {AtMs, Length} <- Named]].

most(Seen) -> lists:max([0 | [Length || {_, Length} <- Seen]]).

%% Where cells have so much time.
at_rest(Store, #{rest_ms := Ms}, Nodes) -> [weft_store_cost:at_rest(Nodes, Store, Ms)];
at_rest(_Store, _With, _Nodes) -> [].

cpu_us(Roles, Nodes) ->
    lists:sum([weft_bench_nodes:cpu_us_of(weft_bench_nodes:os_pid(Nodes, Role)) || Role <- Roles]).

%% On all nodes of clients at the same time, each of which asks some nodes of the store.
loads(Load, Round, Generators, Nodes) ->
    [awaited(One) || One <- begun(Load, Round, Generators, Nodes)].

begun(#{duration_ms := DurationMs, seed := Seed} = Load, Round, Generators, Nodes) ->
    Self = self(),
    [{spawn_monitor(fun() ->
                        Arguments = [Load#{seed := Seed + 1000 * Round + Number,
                                           nodes := Asked}],
                        Self ! {self(), weft_bench_nodes:call(Nodes, Role, weft_store_clients, run,
                                                              {Arguments, DurationMs + ?CALL_MS})}
                    end), DurationMs + 2 * ?CALL_MS}
     || {Number, {Role, Asked}} <- numbered(Generators)].

awaited({{Pid, Monitor}, TimeoutMs}) ->
    receive
        {Pid, Outcome} -> true = demonitor(Monitor, [flush]), Outcome;
        {'DOWN', Monitor, process, Pid, Why} -> erlang:error({generator, Why})
    after TimeoutMs -> erlang:error({generator, no_answer})
    end.

%% ---- with losses ----

elastic(Load, Store, Generators, #{duration_ms := DurationMs}, Dir, Nodes) ->
    _ = loads(Load#{duration_ms => DurationMs div 10}, 1, Generators, Nodes),
    StartMs = erlang:monotonic_time(millisecond),
    Running = begun(Load#{duration_ms => DurationMs}, 2, Generators, Nodes),
    Victims = lists:nthtail(length(Store) - length(?KILLS), Store),
    _ = [begin
             ok = wait_until(StartMs + round(Share * DurationMs)),
             ok = weft_bench_nodes:kill(Nodes, Role)
         end || {Share, Role} <- lists:zip(?KILLS, Victims)],
    ok = wait_until(StartMs + round(?START * DurationMs)),
    #{nodes := Members} = Load,
    again(Nodes, Victims, {Dir, Members},
          fun() ->
              Outcomes = [awaited(One) || One <- Running],
              timeline(Outcomes, DurationMs) ++ weft_store_clients:metrics(Outcomes)
          end).

again(_Nodes, [], _Ring, Then) ->
    Then();
again(Nodes, [Role | Roles], Ring, Then) ->
    weft_store_ring:again(Nodes, Role, Ring, fun(New) -> again(New, Roles, Ring, Then) end).

available(Load, Store, Generators, #{duration_ms := DurationMs, pause_ms := PauseMs}, Dir, Nodes) ->
    Through = Load#{through => library},
    _ = loads(Through#{duration_ms => DurationMs div 10}, 1, Generators, Nodes),
    Running = begun(Through#{duration_ms => DurationMs, read_back => ?READ_BACK}, 2, Generators,
                    Nodes),
    #{nodes := Members} = Load,
    Round = #{until_ms => erlang:monotonic_time(millisecond) + DurationMs, pause_ms => PauseMs,
              dir => Dir, members => Members},
    weft_store_availability:during(
      Nodes, Store, Round,
      fun(Kills) ->
          Outcomes = [awaited(One) || One <- Running],
          [{kills, Kills} | per_second(Outcomes, DurationMs)
               ++ weft_store_clients:metrics(Outcomes)]
      end).

wait_until(AtMs) ->
    receive after max(0, AtMs - erlang:monotonic_time(millisecond)) -> ok end.

timeline(Outcomes, DurationMs) ->
    Done = done(Outcomes, DurationMs),
    Seconds = length(Done),
    [First | Later] = Kills = [floor(Share * Seconds) || Share <- ?KILLS],
    Start = floor(?START * Seconds),
    Before = lists:sum(lists:sublist(Done, First)) / First,
    [{Metric, Second}
     || {Metric, Times} <- [{recovery_kill_s, lists:zip(Kills, Later ++ [Start])},
                            {recovery_start_s, [{Start, Seconds}]}],
        {ok, Second} <- [weft_store_timeline:longest(Done, Times, Before)]]
        ++ [{kills, length(?KILLS)} | per_second(Outcomes, DurationMs)].

per_second(Outcomes, DurationMs) ->
    Done = done(Outcomes, DurationMs),
    [{operations_per_s, Count, 1000 * Second}
     || {Second, Count} <- lists:zip(lists:seq(1, length(Done)), Done)].

%% In each second, by all clients.
done(Outcomes, DurationMs) ->
    All = [lists:sublist(Each, DurationMs div 1000) || #{seconds := Each} <- Outcomes],
    [lists:sum([Count || {Count, _} <- Each]) || Each <- transposed(All)].

transposed([[] | _]) -> [];
transposed(Lists) -> [[hd(List) || List <- Lists] | transposed([tl(List) || List <- Lists])].
