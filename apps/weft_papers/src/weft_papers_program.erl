%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs a program of the papers once, with what a user has given, on nodes of this machine:
%% what the commands `bin/bench orbit' and `bin/bench aco' have in common. What is found is told as
%% lines with a name and a value each, which other programs can read. Measurements with repetitions
%% are cells of the benchmark.
-module(weft_papers_program).

-export([arguments/1, nodes_max/0, run/5, lines/1]).

-define(MINUTES, 10).
-define(CALL_MS, 60000).
%% As many as a cell of the benchmark has at most, on a machine that has the memory.
-define(NODES_MAX, 256).

%% @doc The arguments of each of them, with the variant that is the default.
-spec arguments(weft_bench_variant:variant()) -> [weft_argparse:argument()].
arguments(Variant) ->
    [#{name => variant, long => "-variant", type => {atom, weft_bench_variant:of_clusters()},
       value => "V", default => Variant,
       help => ["what carries the messages (default ", atom_to_list(Variant), ")"]},
     #{name => minutes, long => "-minutes", type => {integer, [{min, 1}]}, value => "N",
       default => ?MINUTES,
       help => ["the program is ended after so long (default ", integer_to_list(?MINUTES), ")"]}
     | weft_bench_arguments:common("where the logs of the nodes go")].

%% @doc How many nodes a command of a program starts at most: each is an emulator of this machine.
-spec nodes_max() -> pos_integer().
nodes_max() -> ?NODES_MAX.

%% @doc Runs the program on new nodes of that shape, which get these modules first. Its options are
%% made of the names of the nodes. The error is a text.
-spec run(Program :: module(), fun(([node(), ...]) -> Options :: map()),
          weft_bench_cluster:shape(), [{module(), binary()}], weft_argparse:given()) ->
          {ok, #{atom() => term()}} | {error, string()}.
run(Program, Options, #{nodes := Count} = Shape, Modules, Given) ->
    #{variant := Variant, minutes := Minutes} = Given,
    Dir = maps:get(out, Given, weft_bench_arguments:new("program")),
    io:format(standard_error, "~b nodes, ~ts; their logs: ~ts~n", [Count, Variant, Dir]),
    weft_bench_cluster:with_nodes(
      Variant, Shape, Dir,
      fun(Nodes) ->
              _ = [{module, Module} = weft_bench_nodes:call(Nodes, Role, code, load_binary,
                                                            {[Module, "given", Code], ?CALL_MS})
                   || Role <- weft_bench_nodes:roles(Nodes), {Module, Code} <- Modules],
              weft_bench_cluster:program(Program, Options(weft_bench_cluster:nodes(Nodes)), Nodes,
                                         Minutes * 60000)
      end).

%% @doc Prints a result, and returns the exit status.
-spec lines({ok, [{Name :: string(), term()}]} | {error, string()}) -> 0 | 1.
lines({ok, Values}) ->
    [io:format("~ts ~ts~n", [Name, shown(Value)]) || {Name, Value} <- Values],
    0;
lines({error, Text}) ->
    io:format(standard_error, "~ts~n", [Text]),
    1.

shown(Value) when is_float(Value) -> io_lib:format("~.3f", [Value]);
shown([_ | _] = Numbers) -> lists:join(" ", [integer_to_list(Number) || Number <- Numbers]);
shown(Value) when is_binary(Value) -> Value;
shown(Value) -> io_lib:format("~0p", [Value]).
