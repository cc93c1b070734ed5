%% SPDX-License-Identifier: Apache-2.0
%% @doc `bin/bench diasca': a simulation once, on nodes of this machine. Cells of the benchmark
%% measure the city with repetitions.
-module(weft_city_command).

-export([command/0, main/1]).

%% @doc Exit status: 0 simulated, 1 it failed, 2 bad arguments.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench diasca").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "a simulation once, on some nodes",
      details => ["Workloads: "
                  | [[atom_to_list(Name), ": ", Text, "."]
                     || {Name, #{text := Text}} <- weft_diasca:workloads()]]
          ++ ["What is printed, and workloads of yours: docs/guide/simulation.md"],
      arguments =>
          [#{name => workload, long => "-workload",
             type => {atom, [Name || {Name, _} <- weft_diasca:workloads()]}, value => "W",
             default => city, help => "what is simulated (default city)"},
           #{name => scale, long => "-scale", type => {atom, [tiny, small, medium]},
             value => "SCALE", help => "of the city (default tiny)"},
           #{name => districts, long => "-districts", type => boolean,
             help => "what is near each other in the city is on one node"},
           #{name => ticks, long => "-ticks", type => {integer, [{min, 0}]}, value => "N",
             help => "the last tick (default: the workload's)"},
           #{name => seed, long => "-seed", type => {integer, []}, value => "N", default => 1,
             help => "of all chance (default 1)"},
           #{name => nodes, long => "-nodes",
             type => {integer, [{min, 1}, {max, weft_papers_program:nodes_max()}]}, value => "N",
             default => 2, help => "so many (default 2)"}
           | weft_papers_program:arguments(stock)],
      handler => fun given/1}.

given(#{workload := Workload} = Given) ->
    case [Option || Option <- [scale, districts], is_map_key(Option, Given), Workload =/= city] of
        [Option | _] ->
            weft_bench_arguments:status({error, io_lib:format("--~ts is for the city only",
                                                              [Option])});
        [] ->
            run(Given)
    end.

run(#{nodes := Count} = Given) ->
    Options = (maps:with([workload, ticks, seed], Given))
        #{options => maps:with([scale, districts], Given)},
    Shape = weft_bench_cluster:shape(Count, weft_city_workload:groups(Count)),
    weft_papers_program:lines(
      values(weft_papers_program:run(weft_city, fun(_Names) -> Options end, Shape, [], Given))).

values({ok, #{hash := Hash} = Result}) ->
    {ok, [{"hash", Hash}
          | [{atom_to_list(Key), map_get(Key, Result)}
             || Key <- [ticks, diascas, acted, program_messages, away, duration_s,
                        connections_max, connections_mean, received_packets, received_bytes]]]};
values({error, _} = Error) ->
    Error.
