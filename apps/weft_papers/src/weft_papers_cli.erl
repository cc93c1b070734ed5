%% SPDX-License-Identifier: Apache-2.0
%% @doc `bin/bench': the benchmark (weft_bench_cli) with the workloads of papers, and the commands
%% for their figures and programs.
-module(weft_papers_cli).

-export([run/1, main/1, command/0]).

%% @doc `main/1', then ends the emulator with its exit status, which is 130 after an interrupt.
-spec run([string()]) -> no_return().
run(Arguments) ->
    %% OTP's client of ssh tells of each connection.
    ok = logger:set_primary_config(level, warning),
    ok = weft_papers_libraries:add(),
    halt(weft_bench_interrupt:run(fun() -> main(Arguments) end)).

%% @doc See weft_bench_cli:main/2.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) -> weft_bench_cli:main(Arguments, more()).

%% @doc What the words are read with.
-spec command() -> weft_argparse:command().
command() -> weft_bench_cli:command(more()).

more() ->
    Commands = #{"report" => report(),
                 "paper" => weft_papers_figures:command(),
                 "figures" => weft_papers_document:command(),
                 "orbit" => weft_orbit_command:command(),
                 "diasca" => weft_city_command:command(),
                 "aco" => weft_aco_command:command(),
                 "de_bench" => weft_de_bench:command(),
                 "bencherl" => weft_bencherl:command(),
                 "stores" => weft_stores:command()},
    (weft_papers:more())#{commands := Commands, hosts => fun weft_papers_hosts:open/1,
                              load_hosts => fun weft_papers_load_hosts:open/3}.

%% What BenchErl has left is another table than those of the benchmark.
report() ->
    #{handler := Handler} = Command = weft_bench_cli:report(),
    Command#{handler := fun(#{dir := Dir} = Given) ->
                                case weft_bencherl_files:read(Dir) of
                                    {ok, []} -> refused(Dir, "has no times yet");
                                    {ok, _} when is_map_key(pictures, Given) ->
                                        refused(Dir, "is of bencherl, whose report has its "
                                                "pictures: leave out --pictures");
                                    {ok, Rows} -> of_bencherl(Dir, Rows);
                                    none -> Handler(Given)
                                end
                        end}.

refused(Dir, Text) ->
    weft_bench_arguments:status({error, lists:concat([Dir, " ", Text])}).

of_bencherl(Dir, Rows) ->
    ok = weft_bencherl_report:write(Dir, Rows),
    io:format("report: ~ts~n", [weft_bencherl_report:file(Dir)]),
    0.
