%% SPDX-License-Identifier: Apache-2.0
%% @doc `weft paper' as its user has it, from the built file: where what measures is, what it says,
%% and how it may end; with FULL=1 a figure that is measured.
-module(weft_cli_paper_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([paper_without_bench/1, paper_knows_figures/1, paper_that_ends_otherwise/1]).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [paper_without_bench, paper_knows_figures, paper_that_ends_otherwise].

init_per_suite(Config) -> [{command, weft_cli_build:file()} | Config].

end_per_suite(_Config) -> ok.

%% The file alone, where nothing is beside it.
paper_without_bench(Config) ->
    {1, Text} = run(["paper"], alone(Config)),
    ?assertMatch({match, _}, re:run(Text, "weft_papers, which is not in .*alone/lib.*ERL_LIBS")).

alone(Config) ->
    Alone = filename:join(?config(priv_dir, Config), "alone/bin/weft"),
    ok = filelib:ensure_dir(Alone),
    {ok, _} = file:copy(?config(command, Config), Alone),
    ok = file:change_mode(Alone, 8#755),
    lists:keystore(command, 1, Config, {command, Alone}).

paper_knows_figures(Config) ->
    {0, List} = run(["paper"], Config),
    ?assertMatch({match, _}, re:run(List, "aco_7 +[0-9]+ min +SD Erlang 2017, Fig. 7")),
    {0, Json} = run(["paper", "--json"], Config),
    ?assertMatch({match, _}, re:run(Json, "\"aco_7\".*SD Erlang 2017, Fig. 7: mean error of ACO")),
    {2, Unknown} = run(["paper", "aco_99"], Config),
    ?assertMatch({match, _}, re:run(Unknown, "no figure aco_99; there are .*aco_7")),
    os:getenv("FULL") =:= false orelse paper_measures(Config).

%% Figures are those of weft_paper_SUITE.
paper_measures(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "figures"),
    {0, Output} = run(["paper", "aco_7", "--quick", "--repetitions", "1", "--minutes", "9",
                        "--out", Dir], Config),
    ?assertMatch({match, _}, re:run(Output, "1 colonies: [0-9.]+ % above the best known cost")),
    ?assert(filelib:is_regular(filename:join(Dir, "paper.html"))).

%% In place of the application that measures is one that ends at once. Only a wrong use is the
%% user's.
paper_that_ends_otherwise(Config) ->
    Lib = filename:join(?config(priv_dir, Config), "libraries"),
    [begin
         ok = ends_with(Papers, filename:join(Lib, "weft_papers/ebin")),
         {Code, Text} = run(["paper", "aco_7", "--out", Lib],
                            [{env, [{"ERL_LIBS", Lib}]} | alone(Config)]),
         ?assertMatch({match, _}, re:run(Text, Says))
     end || {Papers, Code, Says} <- [{0, 0, ""}, {1, 1, "not all figures were measured"},
                                     {2, 2, "why is said above.*tells which figures"},
                                     {3, 1, "ended with status 3; what was measured before"},
                                     {130, 1, "ended with status 130; what was measured before"}]].

ends_with(Status, Ebin) ->
    Forms = [{attribute, 1, module, weft_papers_cli}, {attribute, 1, export, [{run, 1}]},
             {function, 1, run, 1, [{clause, 1, [{var, 1, '_'}], [],
                                     [{call, 1, {atom, 1, halt}, [{integer, 1, Status}]}]}]}],
    {ok, Module, Beam} = compile:forms(Forms),
    ok = filelib:ensure_path(Ebin),
    file:write_file(filename:join(Ebin, atom_to_list(Module) ++ ".beam"), Beam).

%% The exit code and all output.
run(Words, Config) ->
    Port = open_port({spawn_executable, ?config(command, Config)},
                     [{args, Words}, {env, proplists:get_value(env, Config, [])},
                      exit_status, stderr_to_stdout, binary]),
    {Status, Output} = collect(Port, <<>>),
    ct:log("weft ~ts~n~ts(~b)", [lists:join($\s, Words), Output, Status]),
    {Status, unicode:characters_to_list(Output)}.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    end.
