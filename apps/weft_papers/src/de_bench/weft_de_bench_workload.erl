%% SPDX-License-Identifier: Apache-2.0
%% @doc The experiments of DE-Bench (Ghaffari 2014, section 3) as workloads of the benchmark: the
%% load of `weft_de_bench' on clusters of growing size, for the figures of papers.
%%
%% ```
%% de_global    spawn and rpc, 10 bytes, 10 us; of 10,000 commands `streams' are global ones
%%              (a name is registered, looked up and unregistered; two of these are global)
%% de_names     the same with 2 % of global commands and 2 % of local ones
%% de_size      spawn and rpc of `size_bytes', 10 us
%% de_compute   spawn and rpc of 10 bytes, which compute what takes `streams' microseconds on a core
%%              of one's own (`weft_de_bench_computation')
%% de_heavy     spawn, rpc and calls to a server as rpc once was, 1,000 bytes, 1 ms
%% de_server    the same, 10 bytes, 1 us; `streams' of 100 are calls to server processes
%% de_calls     as de_server, for times: with a given rate
%% '''
%% `pairs' is the number of nodes. Names are those of `global' where stock distribution carries
%% them, and of `weft_names' (the eventual scope of the cluster) on weft.
%%
%% Without quotas all nodes share the cores of one machine, so that more of them can not do more. In
%% `de_global', `de_names', `de_heavy' and `de_calls' each node therefore wants a fixed number of
%% commands per second, which the machine can bear: what grows with the nodes is what is wanted, and
%% what is done falls behind where commands wait for each other. In the others, and where each node
%% has a quota (`weft_bench_quota'), workers are as fast as they can, as in the paper.
-module(weft_de_bench_workload).
-behaviour(weft_bench_workload).

-export([cells/1, run/2]).
-export([config/2, measurements/3]).

-define(REPETITIONS_MAX, 3).
-define(MANY, 60).
%% Of Fig. 6. On weft so many are not up in the time that a node has to start.
-define(MOST, 100).
%% As many as can have a quota of 4 % of a core on two cores.
-define(QUOTAS, 40).
-define(WORKERS, 10).
%% Commands per second of each worker, where the rate is given.
-define(RATE, 25).
-define(GLOBAL_RATE, 5).
-define(HEAVY_RATE, 3).
-define(OPERATION_TIMEOUT_S, 10).
%% How long names are measured with quotas, and before that warmed up.
-define(NAMES_S, 20).
%% What is waited for at the end: for the full time with names of stock distribution, for none with
%% those of weft.
-define(DRAIN_MS, 500 * ?OPERATION_TIMEOUT_S).
%% Between the seeds of two repetitions; workers take some of what is between.
-define(APART, 100000).
%% The longest computation, of which two cores do 200 in a second.
-define(LONG_US, 10000).
-define(BOTH, [stock_mesh, weft_mesh]).
%% Names of the cluster.
-define(NAMES, [global_register, global_whereis, global_unregister,
                names_register, names_whereis, names_unregister]).

%% @private
cells(quick) ->
    globals([3, 6], [0, 500]) ++ others([4], [10, 10000], [10, 1000], [1, 100])
        ++ [cell(de_heavy, 2, 1000, 1000, ?BOTH)];
cells(full) ->
    %% What has no time left in a run is not what decides.
    Globals = [cell(de_global, ?MOST, 10, 500, [stock_mesh])
               | globals([?MANY, ?QUOTAS, 24, 8, 2], [0, 1, 33, 50, 100, 500])],
    Others = others([2, 4, 8, 16, 24, ?QUOTAS], [10, 100, 1000, 10000], [10, 1000, ?LONG_US],
                    [1, 50, 100]),
    [(timed(Cell))#{fresh => true, repetitions_max => repetitions_max(Cell)}
     || Cell <- Globals ++ Others].

%% There a name may take half a minute.
timed(#{pairs := ?MOST} = Cell) ->
    timed(1, 30, Cell);
%% With quotas and global names it takes a while until as many workers wait for a name as will wait
%% all the time. With 24 nodes each of the long computations takes more than a second.
timed(#{workload := Workload} = Cell) when Workload =:= de_names; Workload =:= de_global ->
    #{cost_ms := CostMs, with := With} = timed(?NAMES_S, ?NAMES_S, Cell),
    (timed(1, 5, Cell))#{with_quota => #{cost_ms => CostMs + ?DRAIN_MS, with => With}};
timed(#{workload := de_compute, streams := ?LONG_US} = Cell) -> timed(3, 15, Cell);
timed(Cell) -> timed(1, 5, Cell).

timed(WarmUpS, Seconds, #{cost_ms := CostMs} = Cell) ->
    Cell#{cost_ms := CostMs + 1000 * (WarmUpS + Seconds),
          with := #{seconds => Seconds, warm_up_s => WarmUpS}}.

%% Most of the time of many nodes is that of their start.
repetitions_max(#{pairs := Nodes}) when Nodes >= ?MANY -> 1;
repetitions_max(_Cell) -> ?REPETITIONS_MAX.

globals(Counts, Parts) ->
    [cell(de_global, Nodes, 10, Part, ?BOTH) || Nodes <- Counts, Part <- Parts].

others(Counts, Sizes, Computations, Servers) ->
    [cell(Workload, Nodes, Bytes, Streams, ?BOTH)
     || {Workload, Parameters} <- [{de_names, [{10, 200}]},
                                   {de_size, [{Bytes, 10} || Bytes <- Sizes]},
                                   {de_compute, [{10, ComputeUs} || ComputeUs <- Computations]},
                                   {de_heavy, [{1000, 1000}]},
                                   {de_server, [{10, Percent} || Percent <- Servers]},
                                   {de_calls, [{10, Percent} || Percent <- [1, 50]]}],
        Nodes <- Counts, {Bytes, Streams} <- Parameters].

cell(Workload, Nodes, SizeBytes, Streams, Variants) ->
    #{suite => de_bench, workload => Workload, size_bytes => SizeBytes, pairs => Nodes,
      streams => Streams, link => weft_bench_link:loopback(), on_demand => true,
      layout => {cluster, weft_bench_cluster:shape(Nodes, [])}, variants => Variants,
      cost_ms => 1300 + 300 * Nodes, with => #{seconds => 1, warm_up_s => 0.2}}.

%% @private
run(#{dir := Dir, workload := Workload, size_bytes := SizeBytes, pairs := Count,
      streams := Streams, layout := Layout, quota := Quota} = Cell, Nodes) ->
    Variant = weft_bench_nodes:variant(Nodes),
    {ok, Config} = weft_load_config:check(config(Cell, names(Variant))),
    Name = lists:concat([Workload, "-", SizeBytes, "-", Streams, "-", Count, "-", Variant]),
    Own = filename:absname(filename:join([Dir, "de_bench", Name])),
    Shared = fun(Wait) -> weft_bench_sharing:measured(Layout, Quota, Nodes, Wait) end,
    case weft_de_bench:loads(Config, Own, Nodes, Shared) of
        {ok, #{lost := []} = Outcome, {ok, Sharing}} ->
            Done = weft_load_files:done(Own),
            %% The files of each node, which are in those of their sum; and there are many.
            _ = [file:del_dir_r(filename:join(Own, integer_to_list(Number)))
                 || Number <- lists:seq(1, Count)],
            {ok, measurements(Outcome, Done, Config) ++ Sharing};
        {ok, #{lost := [Text | _]}, _Sharing} ->
            erlang:error({de_bench, lists:concat([Text, "; what the nodes did is in ", Own])});
        {error, Text} ->
            erlang:error({de_bench, Text})
    end.

names(Variant) ->
    case weft_bench_variant:is_weft(Variant) of
        true -> names_register;
        false -> global_register
    end.

%% @private For tests: what the nodes are told.
-spec config(weft_bench_workload:cell(), Register :: atom()) -> [{atom(), term()}].
config(#{workload := Workload, size_bytes := SizeBytes, streams := Streams,
         repetition := Repetition,
         with := #{seconds := Seconds, warm_up_s := WarmUpS}} = Cell, Register) ->
    [{driver, weft_de_bench_driver}, {mode, mode(Workload, Cell)}, {duration, {seconds, Seconds}},
     {warm_up_s, WarmUpS}, {exact_start, false}, {report_interval, 1}, {concurrent, ?WORKERS},
     {operation_timeout_s, ?OPERATION_TIMEOUT_S}, {packet_size, SizeBytes},
     {delay_remote_function, computation_us(Workload, Streams)},
     %% Other draws each time, and the same for all variants.
     {rng_seed, {42, 23 + ?APART * Repetition, 12}},
     {rounds_per_us, weft_de_bench_computation:rounds_per_us()},
     {operations, [{Operation, Weight}
                   || {Operation, Weight} <- operations(Workload, Streams, Register),
                      Weight > 0]}].

mode(Workload, #{quota := none}) -> mode(Workload);
mode(_Workload, _WithQuota) -> max.

mode(de_global) -> {rate, ?GLOBAL_RATE};
mode(Workload) when Workload =:= de_names; Workload =:= de_calls -> {rate, ?RATE};
mode(de_heavy) -> {rate, ?HEAVY_RATE};
mode(_Workload) -> max.

computation_us(Workload, Streams) when Workload =:= de_compute; Workload =:= de_heavy -> Streams;
computation_us(Workload, _Streams) when Workload =:= de_server; Workload =:= de_calls -> 1;
computation_us(_Workload, _Streams) -> 10.

%% A name that is registered is unregistered, too.
operations(Workload, Streams, Register) when Workload =:= de_global; Workload =:= de_names ->
    [{spawning, 10000 - Streams}, {remote_call, 10000 - Streams}, {Register, Streams}]
        ++ [{local_register, Streams} || Workload =:= de_names];
operations(de_heavy, _Streams, _Register) ->
    [{spawning, 1}, {remote_call, 1}, {rex_call, 1}];
operations(Workload, Percent, _Register) when Workload =:= de_server; Workload =:= de_calls ->
    [{Operation, 2 * (100 - Percent)} || Operation <- [spawning, remote_call, rex_call]]
        ++ [{Operation, 3 * Percent} || Operation <- [gen_server_call, fsm_server_call]];
operations(_Workload, _Streams, _Register) ->
    [{spawning, 1}, {remote_call, 1}].

%% @private For tests: the outcome, what was done in each second, and what the nodes were told.
-spec measurements(weft_load:outcome(), [non_neg_integer()], weft_load_config:config()) ->
          [weft_bench_workload:measurement()].
measurements(#{total := Total, elapsed_us := ElapsedUs, unfinished := Unfinished}, Done,
             #{rate := Rate, warm_up_ms := WarmUpMs}) ->
    Count = lists:sum([weft_load_histogram:count(Service)
                       || #{service := Service} <- maps:values(Total)]),
    [{calls_per_s, Count * 1.0e6 / ElapsedUs}, {calls, Count},
     {failed_operations, lists:sum([Failed || #{failed := Failed} <- maps:values(Total)])},
     {unfinished_operations, Unfinished},
     {warm_up_s, WarmUpMs / 1000}, {measured_s, ElapsedUs / 1.0e6}]
        ++ last_half(Done)
        ++ [{metric(Operation, What), Value}
            || {Operation, Meter} <- maps:to_list(Total),
               Times <- [times(Operation, Rate, Meter)], weft_load_histogram:count(Times) > 0,
               {What, Value} <- [{"_mean_us", weft_load_histogram:mean(Times)},
                                 {"_p99_us", weft_load_histogram:percentile(99, Times)}
                                 | [{"_count", weft_load_histogram:count(Times)}
                                    || lists:member(Operation, ?NAMES)]]].

%% A name that was asked for in the run, and had its answer after it or never, is among the times:
%% with many nodes these are the longest, and most of all. With a rate responses have the time that
%% an operation waits for its worker, too.
times(Operation, Rate, #{service := Service, response := Response}) ->
    case Rate =:= max andalso lists:member(Operation, ?NAMES) of
        true -> Response;
        false -> Service
    end.

%% Does what was measured still change?
last_half(Done) ->
    {First, Others} = lists:split(length(Done) div 2, Done),
    Last = lists:nthtail(length(Others) - length(First), Others),
    [{last_half_percent, 100 * lists:sum(Last) / lists:sum(First)} || lists:sum(First) > 0].

%% Names of the cluster are those of the variant.
metric(Operation, What) ->
    Text = atom_to_list(Operation),
    case lists:member(Operation, ?NAMES) of
        true -> list_to_atom(lists:last(string:lexemes(Text, "_")) ++ What);
        false -> list_to_atom(Text ++ What)
    end.
