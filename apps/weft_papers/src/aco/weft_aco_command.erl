%% SPDX-License-Identifier: Apache-2.0
%% @doc `bin/bench aco': the program ACO once, on a problem of the user and from a seed. Its tree is
%% of degree 2, as that of the cells of the benchmark, which measure it with repetitions.
-module(weft_aco_command).

-export([command/0, main/1]).

-define(JOBS, 40).
-define(DEGREE, 2).
%% Of a tree of more levels nobody needs to know how many nodes it has.
-define(COUNTED_MAX, 60).

%% @doc Exit status: 0 a schedule was found, 1 it failed, 2 bad arguments.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench aco").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "the program ACO once, on a problem and with a seed of yours",
      details => ["Ants look for an order of jobs on one machine in which little is late. The file "
                  "has whole",
                  "numbers: durations, weights and due dates of the jobs; docs/guide/workloads.md"],
      arguments =>
          [#{name => problem, long => "-problem", value => "FILE",
             help => ["its number of jobs first, or with --jobs (default: one of ",
                      integer_to_list(?JOBS), " jobs)"]},
           #{name => jobs, long => "-jobs", type => {integer, [{min, 1}]}, value => "N",
             help => "so many has each problem of the file"},
           #{name => number, long => "-number", type => {integer, [{min, 1}]}, value => "N",
             help => "which problem of the file, with --jobs (default 1)"},
           #{name => seed, long => "-seed", type => integer, value => "N", default => 1,
             help => "of the random numbers of the ants (default 1)"},
           #{name => version, long => "-version", type => {atom, [tl, ml, gr, sr]}, value => "V",
             default => tl, help => "tl, ml, gr or sr (default tl)"},
           (count(levels, 2, "of the tree of degree 2: 2 has 5 nodes, 3 has 11, 4 has 23"))#{
             type := {custom, fun levels/1}},
           count(ants, 10, "of each colony"),
           count(rounds, 20, "after each all are told the best schedule"),
           count(iterations, 20, "of each ant in a round")
           | weft_papers_program:arguments(stock_mesh)],
      handler => fun given/1}.

count(Name, Default, Help) ->
    #{name => Name, long => [$- | atom_to_list(Name)], type => {integer, [{min, 1}]},
      value => "N", default => Default,
      help => [Help, " (default ", integer_to_list(Default), ")"]}.

%% Each node is an emulator of this machine.
levels(Text) ->
    Max = weft_papers_program:nodes_max(),
    Most = weft_aco_tree:levels(Max, ?DEGREE),
    case string:to_integer(Text) of
        {Levels, ""} when Levels >= 2, Levels =< Most -> Levels;
        {Levels, ""} when Levels > Most, Levels =< ?COUNTED_MAX ->
            throw([wanted_levels(Most, Max),
                   io_lib:format(", and that has ~b", [node_count(Levels)])]);
        _ ->
            throw(wanted_levels(Most, Max))
    end.

wanted_levels(Most, Max) ->
    io_lib:format("a whole number from 2 on up to ~b: there may be ~b nodes", [Most, Max]).

node_count(Levels) -> weft_aco_tree:needed(Levels, ?DEGREE).

given(#{version := Version, variant := Variant} = Given) ->
    case {weft_aco_workload:names(Version, Variant), weft_bench_variant:is_weft(Variant)} of
        {{weft, _}, false} ->
            Text = io_lib:format("--version ~s --variant ~s: names that all nodes know need "
                                 "--variant stock_mesh, where all are connected, or one of weft",
                                 [Version, Variant]),
            weft_bench_arguments:status({error, Text});
        _ ->
            case problem(Given) of
                {ok, Problem} -> run(Problem, Given);
                {error, _} = Error -> weft_bench_arguments:status(Error)
            end
    end.

problem(#{problem := File} = Given) -> weft_aco_file:read(File, Given);
problem(#{jobs := _}) -> {error, "--jobs is for the file of --problem, which is missing"};
problem(#{number := _}) -> {error, "--number is for the file of --problem, which is missing"};
problem(#{}) -> {ok, weft_aco_problem:generate(1, ?JOBS, 0.6, 0.6)}.

run(Problem, #{levels := Levels, version := Version, variant := Variant} = Given) ->
    Shape = weft_bench_cluster:shape(node_count(Levels), weft_aco_tree:groups(Levels, ?DEGREE)),
    Options = (maps:with([seed, version, ants, rounds, iterations], Given))#{
                problem => Problem, degree => ?DEGREE,
                colonies => weft_aco_tree:colonies(Levels, ?DEGREE),
                names => weft_aco_workload:names(Version, Variant)},
    Ran = weft_papers_program:run(weft_aco, fun(_Names) -> Options end, Shape, [], Given),
    weft_papers_program:lines(values(Problem, Ran)).

%% The best of those that need no ants, to compare with.
values(Problem, {ok, Result}) ->
    Greedy = lists:min([weft_aco_problem:cost(weft_aco_problem:greedy(Heuristic, Problem), Problem)
                        || Heuristic <- [mdd, edd, au]]),
    {ok, [{"cost", map_get(cost, Result)}, {"greedy_cost", Greedy}
          | [{atom_to_list(Key), map_get(Key, Result)}
             || Key <- [duration_s, restarts, given_up, program_messages, connections_max,
                        connections_mean, received_packets, received_bytes, schedule]]]};
values(_Problem, {error, _} = Error) ->
    Error.
