%% SPDX-License-Identifier: Apache-2.0
%% @doc ACO on real nodes: the same schedule from all versions over all carriers, and what happens
%% when processes and nodes are killed.
-module(weft_aco_SUITE).

-include_lib("stdlib/include/assert.hrl").

-import(weft_bench_test_cluster, [with_nodes/4, connections/1]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([in_groups/1, all_carriers_find_the_same/1, groups_have_fewer_connections/1,
         killed_processes_are_found_and_a_killed_node_is_given_up/1,
         command_takes_a_problem_and_a_seed/1]).
-export([die_with_colony/0]).

-define(RUN_MS, 90000).
-define(CALL_MS, 60000).
-define(KILL_EVERY_MS, 50).

suite() -> [{timetrap, {seconds, 240}}].

all() ->
    [killed_processes_are_found_and_a_killed_node_is_given_up,
     command_takes_a_problem_and_a_seed]
        ++ [Case || os:getenv("FULL") =/= false,
                    Case <- [in_groups, all_carriers_find_the_same, groups_have_fewer_connections]].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

%% As `bin/bench aco'. The second problem of the file has one order without a late job.
command_takes_a_problem_and_a_seed(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "two_problems.txt"),
    ok = file:write_file(File, "9 9 9 9 1 2 3 4 1 1 1 1  1 1 1 1 5 5 5 5 4 3 2 1\n"),
    Second = command(["--problem", File, "--jobs", "4", "--number", "2", "--version", "sr",
                      "--variant", "stock"], Config),
    ?assertEqual({"0", "4 3 2 1"}, {proplists:get_value("cost", Second),
                                    proplists:get_value("schedule", Second)}),
    os:getenv("FULL") =/= false andalso more_commands(File, Config).

more_commands(File, Config) ->
    ?assertEqual("4 3 2 1", proplists:get_value("schedule",
                                                command(["--problem", File, "--jobs", "4"],
                                                        Config))),
    [One, Other, Same] = [proplists:get_value("schedule", command(["--seed", Seed], Config))
                          || Seed <- ["7", "8", "7"]],
    ?assertNotEqual(One, Other),
    ?assertEqual(One, Same).

command(Arguments, Config) ->
    Short = ["--ants", "2", "--rounds", "2", "--iterations", "2"],
    {0, Lines} = weft_bench_test_cluster:command(weft_aco_command, Arguments ++ Short, Config),
    Lines.

%% Three levels of degree 2: eleven nodes, eight colonies.
shape() ->
    weft_bench_cluster:shape(11, weft_aco_tree:groups(3, 2)).

options(Version, Names) ->
    #{version => Version, names => Names, problem => problem(), ants => 2, rounds => 3,
      iterations => 2, degree => 2, colonies => 8}.

problem() ->
    weft_aco_problem:generate(1, 20, 0.6, 0.6).

%% Each version finds the same. Each node of submasters has a full mesh with the nodes below it, and
%% nobody has other connections; killed processes are found.
in_groups(Config) ->
    with_nodes(weft_groups, shape(), Config,
               fun(Nodes) ->
                   First = solution(sr, {weft, groups}, Nodes),
                   ?assertEqual(3 + 10 + 10, lists:sum(connections(Nodes)) div 2),
                   [?assertEqual({Version, First}, {Version, solution(Version, Names, Nodes)})
                    || {Version, Names} <- [{tl, none}, {ml, none}, {gr, {weft, cluster}}]],
                   {ok, #{schedule := Other}} =
                       aco((options(ml, none))#{seed => 8}, Nodes),
                   ?assertNotEqual(Other, element(2, First)),
                   survives_kills(options(sr, {weft, groups}), Nodes)
               end).

%% The long form: also with each way to find names.
all_carriers_find_the_same(Config) ->
    Versions = #{weft_groups => [{sr, {weft, groups}}],
                 stock => [{tl, none}, {ml, none}, {sr, local}],
                 stock_mesh => [{ml, none}, {gr, global}],
                 weft_mesh => [{tl, none}, {gr, global}],
                 weft_peers => [{ml, none}, {gr, {weft, cluster}}]},
    Found = lists:append([with_nodes(Variant, shape(), Config,
                                     fun(Nodes) -> [solution(Version, Names, Nodes)
                                                    || {Version, Names} <- Of]
                                     end) || {Variant, Of} <- maps:to_list(Versions)]),
    ?assertMatch([_], lists:usort(Found)),
    ?assertEqual(length(lists:append(maps:values(Versions))), length(Found)).

solution(Version, Names, Nodes) ->
    {ok, #{cost := Cost, schedule := Schedule}} = aco(options(Version, Names), Nodes),
    {Cost, Schedule}.

%% A mesh has all, a tree without meshes only its lines.
groups_have_fewer_connections(Config) ->
    Connections = fun(Variant, Version, Names) ->
                      with_nodes(Variant, shape(), Config,
                                 fun(Nodes) ->
                                     {ok, _} = aco(options(Version, Names), Nodes),
                                     lists:sum(connections(Nodes)) div 2
                                 end)
                  end,
    ?assertEqual(11 * 10 div 2, Connections(stock_mesh, gr, global)),
    ?assertEqual(2 + 4 + 4, Connections(stock, sr, local)),
    [Cell] = [Of || #{workload := aco_sr, pairs := 11} = Of <- weft_aco_workload:cells(quick)],
    [First, Second] = with_nodes(stock, shape(), Config,
                                 fun(Nodes) -> [run_packets(Cell, Nodes) || _ <- [1, 2]] end),
    %% What it takes to connect is no part of the first run: more than two for each connection.
    ct:pal("~b packets, then ~b", [First, Second]),
    ?assert(First - Second < 2 * (2 + 4 + 4)).

run_packets(Cell, Nodes) ->
    {ok, Values} = weft_aco_workload:run(Cell, Nodes),
    proplists:get_value(run_packets, Values).

%% By global names.
killed_processes_are_found_and_a_killed_node_is_given_up(Config) ->
    with_nodes(stock_mesh, weft_bench_cluster:shape(5, []), Config,
               fun(Nodes) ->
                   os:getenv("FULL") =/= false andalso survives_kills(options(gr, global), Nodes),
                   ?assertEqual([], weft_bench_test_cluster:loaded_in_run(
                                      weft_aco, options(ml, none), Nodes, ?RUN_MS)),
                   lost_colony_is_not_measured(Nodes),
                   killed_node_is_given_up(Nodes)
               end).

%% Processes of the tree are killed, on one node after the other, from the master to colonies.
survives_kills(Options, Nodes) ->
    Long = Options#{rounds => 40, iterations => 10},
    {{ok, #{restarts := Restarts, given_up := 0, cost := Cost, schedule := Schedule}}, Kills} =
        weft_aco_killer:during(Nodes, ?KILL_EVERY_MS, fun() -> aco(Long, Nodes) end),
    ct:pal("~b killed, ~b started anew", [Kills, Restarts]),
    ?assertEqual(Cost, weft_aco_problem:cost(Schedule, problem())),
    ?assert(weft_aco_problem:is_schedule(Schedule, problem())),
    ?assert(Kills > 0),
    ?assert(Restarts > 0).

killed_node_is_given_up(Nodes) ->
    ok = weft_bench_nodes:call(Nodes, {n, 5}, ?MODULE, die_with_colony, {[], ?CALL_MS}),
    ?assertMatch({ok, #{given_up := 1, cost := _}},
                 aco((options(sr, local))#{rounds => 300}, Nodes)).

%% A measurement would be of less work. The node is there, and lets nobody in.
lost_colony_is_not_measured(Nodes) ->
    Others = lists:droplast(weft_bench_cluster:nodes(Nodes)),
    Cookie = on_last(get_cookie, [], Nodes),
    true = on_last(set_cookie, [another], Nodes),
    [true = on_last(disconnect_node, [Node], Nodes) || Node <- Others],
    [Cell] = [Of || #{workload := aco_sr, pairs := 5} = Of <- weft_aco_workload:cells(full)],
    {weft_aco, Text} = try weft_aco_workload:run(Cell, Nodes) catch error:Why -> Why end,
    ?assertNotEqual(nomatch, string:find(Text, "given_up => 1")),
    true = on_last(set_cookie, [Cookie], Nodes).

on_last(Function, Arguments, Nodes) ->
    weft_bench_nodes:call(Nodes, {n, 5}, erlang, Function, {Arguments, ?CALL_MS}).

%% On a node: it ends as soon as a colony is at work there.
die_with_colony() ->
    _ = spawn(fun await_colony/0),
    ok.

await_colony() ->
    case colonies() of
        0 -> erlang:yield(), await_colony();
        _ -> erlang:halt(1, [{flush, false}])
    end.

colonies() ->
    length([Pid || Pid <- processes(),
                   process_info(Pid, initial_call) =:= {initial_call, {weft_aco_colony, init, 3}}]).

aco(Options, Nodes) ->
    weft_bench_test_cluster:run(weft_aco, Options, weft_bench_cluster:nodes(Nodes), Nodes, ?RUN_MS).
