%% SPDX-License-Identifier: Apache-2.0
%% @doc What a workload is: a module that names its cells and runs one of them on given nodes.
%%
%% A cell is one line of a table: the same work for each variant. The harness starts the nodes (new
%% ones for each repetition, since connections of stock distribution differ in their state), calls
%% run/2 for one variant after the other, and writes down what it returns. run/2 has a warm-up
%% of its own, uses the connection under test for nothing but the work, and may raise any exception:
%% the repetition has then failed, and the nodes are replaced.
-module(weft_bench_workload).

-export([modules/0, cells/2, title/1, mode/2, cpu_us_per_message/3, warmed_up/2]).
-export_type([cell/0, scope/0, measurement/0]).

-type scope() :: quick | full.
%% Where files of the run belong is `dir', which the harness adds, and so are the quota of each node
%% and the number of the repetition, from which seeds are made.
-type cell() :: #{module => module(), dir => file:filename(),
                  quota => weft_bench_quota:percent() | none, repetition => pos_integer(),
                  suite := atom(), workload := atom(),
                  size_bytes := non_neg_integer(), pairs := non_neg_integer(),
                  streams := non_neg_integer(), link := weft_bench_link:link(),
                  layout := weft_bench_nodes:layout(), variants := [weft_bench_variant:variant()],
                  %% At most so many repetitions, for cells that take long, if none are asked for.
                  repetitions_max => pos_integer(),
                  %% What is something else where nodes are to have quotas.
                  with_quota => #{cost_ms => pos_integer(), with => term(),
                                  repetitions_max => pos_integer()},
                  %% Nodes that have done nothing else before, because memory is measured; and those
                  %% of a cluster have the machine for themselves (`weft_bench_runner').
                  fresh => boolean(),
                  %% Only measured if its suite is asked for.
                  on_demand => boolean(),
                  %% Sends signals to its nodes, which by their numbers are others on another host.
                  only_here => boolean(),
                  %% What run/2 takes, warm-up included.
                  cost_ms := pos_integer(),
                  %% What only the workload understands.
                  with => term()}.
-type measurement() :: {Metric :: atom(), number()}
                     | {Metric :: atom(), number(), AtMs :: non_neg_integer()}.

-callback cells(scope()) -> [cell()].
-callback run(cell(), weft_bench_nodes:nodes()) ->
    {ok, [measurement()]} | {skipped, Why :: string()}.

%% @doc The workloads that are here.
-spec modules() -> [module(), ...].
modules() ->
    [weft_bench_throughput, weft_bench_both_ways, weft_bench_latency, weft_bench_calls,
     weft_bench_slow_receiver, weft_bench_fan_out, weft_bench_peers, weft_bench_busy,
     weft_bench_mesh, weft_bench_form, weft_bench_idle, weft_bench_connection].

%% @doc The cells of workloads, each with its module.
-spec cells([module()], scope()) -> [cell()].
cells(Modules, Scope) ->
    [Cell#{module => Module} || Module <- Modules, Cell <- Module:cells(Scope)].

%% @doc A cell in words, for people and for filters.
-spec title(cell()) -> string().
title(#{on_demand := true, suite := Suite, workload := Workload} = Cell) ->
    #{size_bytes := SizeBytes, pairs := Pairs, streams := Streams, link := #{label := Link}} = Cell,
    Words = weft_report_words:cell({atom_to_binary(Suite), atom_to_binary(Workload), SizeBytes,
                                    Pairs, Streams, atom_to_binary(Link)}),
    unicode:characters_to_list([atom_to_list(Suite), ": ", Words]);
title(#{suite := Suite, workload := Workload, size_bytes := SizeBytes, pairs := Pairs,
        streams := Streams, link := #{label := Link}}) ->
    lists:flatten([io_lib:format("~s ~s ~s x ~b", [Suite, Workload, in_units(SizeBytes), Pairs]),
                   [io_lib:format(" beside ~b", [Streams]) || Streams > 0],
                   [io_lib:format(" ~s", [Link]) || Link =/= loopback]]).

in_units(Bytes) when Bytes >= 1048576, Bytes rem 1048576 =:= 0 ->
    io_lib:format("~b MB", [Bytes div 1048576]);
in_units(Bytes) when Bytes >= 1024, Bytes rem 1024 =:= 0 ->
    io_lib:format("~b KB", [Bytes div 1024]);
in_units(Bytes) ->
    io_lib:format("~b B", [Bytes]).

%% @doc How the nodes of a variant send for a purpose.
-spec mode(weft_bench_nodes:nodes(), weft_bench_variant:purpose()) -> weft_bench_variant:mode().
mode(Nodes, Purpose) ->
    weft_bench_variant:mode(weft_bench_nodes:variant(Nodes), Purpose).

%% @doc The metric, from the processor time before. Nothing where the system does not tell it.
-spec cpu_us_per_message(weft_bench_nodes:nodes(), BeforeUs :: non_neg_integer(),
                         Messages :: pos_integer()) -> [measurement()].
cpu_us_per_message(Nodes, BeforeUs, Messages) ->
    case weft_bench_nodes:cpu_us(Nodes) - BeforeUs of
        UsedUs when UsedUs > 0 -> [{cpu_us_per_message, UsedUs / Messages}];
        _ -> []
    end.

%% @doc Does the one before the other, and adds how long both took: the warm-up, and what returns
%% measurements. Where the first took longer the report tells so.
-spec warmed_up(WarmUp :: fun(() -> term()), fun(() -> [measurement()])) -> [measurement()].
warmed_up(WarmUp, Measure) ->
    {WarmUpUs, _} = timer:tc(WarmUp),
    {MeasuredUs, Values} = timer:tc(Measure),
    Values ++ [{warm_up_s, WarmUpUs / 1.0e6}, {measured_s, MeasuredUs / 1.0e6}].
