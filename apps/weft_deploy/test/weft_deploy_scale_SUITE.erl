%% SPDX-License-Identifier: Apache-2.0
%% @doc How long a deployment takes by the number of its nodes, on this machine: all are started,
%% looked at again, and stopped by one command each; some are upgraded by one command.
%%
%% It runs with FULL=1 only. Nodes are in groups of ten; two of each are in a group of those that
%% join the others. An upgrade goes node by node and takes long, so it is a case of its own, with
%% fewer nodes. WEFT_DEPLOY_NODES and WEFT_DEPLOY_UPGRADED have other numbers of nodes than these.
%% What was measured is in times.csv and upgrades.csv of the directory of the suite, with
%% environment.csv; docs/benchmarks/deploy has such files.
-module(weft_deploy_scale_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([time_grows_in_proportion_to_nodes/1, all_are_upgraded_by_one_command/1]).

-define(GROUP, 10).
%% With one it would be the only way, and not be drained.
-define(GATES, 2).
%% What a line has to explain, up to so many nodes. Beyond, the machine is what is measured.
-define(R2, 0.98).
-define(IN_LINE_MAX, 100).

suite() -> [{timetrap, {hours, 2}}].

all() -> [time_grows_in_proportion_to_nodes, all_are_upgraded_by_one_command].

init_per_suite(Config) ->
    Dir = ?config(priv_dir, Config),
    Here = weft_bench_environment:gather([{"flags_of_nodes",
                                           lists:append(lists:join(" ", flags()))}]),
    ok = weft_report_record:write_environment(Dir, Here),
    [{port, weft_test_nodes:free_port()}, {file, filename:join(Dir, "many.deploy")},
     {root, filename:join(Dir, "weft")} | Config].

end_per_suite(Config) ->
    _ = filelib:is_regular(?config(file, Config)) andalso run(down, #{purge => true}, Config),
    ok.

numbers(Variable, Default) ->
    [list_to_integer(Count) || Count <- string:lexemes(os:getenv(Variable, Default), " ")].

time_grows_in_proportion_to_nodes(Config) ->
    Times = [measured(Count, Config)
             || Count <- numbers("WEFT_DEPLOY_NODES", "5 10 25 50 100 200")],
    Lines = [{Step, Max, line(Step, Max, Times)}
             || Step <- [up_s, down_s], Max <- [?IN_LINE_MAX, infinity]],
    [ct:pal("~s, up to ~p nodes: ~.3f s a node and ~.2f s, R2 ~.4f; "
            "WombatOAM: 0.0125 s a node and 83 s", [Step, Max, Slope, Height, R2])
     || {Step, Max, {Slope, Height, R2}} <- Lines],
    %% To stop some nodes takes as long as to stop one.
    {_, _, Explained} = line(up_s, ?IN_LINE_MAX, Times),
    ?assert(Explained > ?R2).

line(Step, Max, Times) ->
    weft_report_line:fit([{Count, S} || #{nodes := Count, Step := S} <- Times, Count =< Max]).

measured(Count, Config) ->
    deployment(Count, 1, Config),
    {UpS, {ok, #{started := Started}, _}} = timed(fun() -> run(apply, #{}, Config) end),
    {AgainS, Again} = timed(fun() -> run(apply, #{}, Config) end),
    ?assertMatch({ok, #{started := [], stopped := [], changed := [], failed := []}, _}, Again),
    {DownS, {ok, #{stopped := Stopped}, _}} = timed(fun() -> run(down, #{}, Config) end),
    ?assertEqual([Count, Count], [length(List) || List <- [Started, Stopped]]),
    noted("times.csv", "nodes,up_s,again_s,down_s", {Count, [UpS, AgainS, DownS]}, Config),
    #{nodes => Count, up_s => UpS, down_s => DownS}.

all_are_upgraded_by_one_command(Config) ->
    [upgraded(Count, Config) || Count <- numbers("WEFT_DEPLOY_UPGRADED", "5 10 100")].

upgraded(Count, Config) ->
    deployment(Count, 1, Config),
    {ok, #{failed := []}, _} = run(apply, #{}, Config),
    deployment(Count, 2, Config),
    {S, {ok, #{upgraded := All}, _}} = timed(fun() -> run(upgrade, #{}, Config) end),
    ?assertEqual(Count, length(All)),
    {ok, #{failed := []}, _} = run(down, #{}, Config),
    noted("upgrades.csv", "nodes,upgrade_s", {Count, [S]}, Config).

noted(Name, Head, {Count, Seconds}, Config) ->
    File = filename:join(?config(priv_dir, Config), Name),
    _ = filelib:is_file(File) orelse file:write_file(File, [Head, $\n]),
    Row = [integer_to_list(Count), [io_lib:format(",~.2f", [S]) || S <- Seconds], $\n],
    ct:pal("~ts~n~ts", [Head, Row]),
    ok = file:write_file(File, Row, [append]).

timed(Fun) ->
    {Us, Result} = timer:tc(Fun),
    {Us / 1.0e6, Result}.

flags() -> ["+S", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none"].

deployment(Count, Version, Config) ->
    Groups = (Count + ?GROUP - 1) div ?GROUP,
    Own = #{flags => flags(), env => [{kernel, [{many_version, Version}]}]},
    Families =
        lists:append([begin
                          Group = list_to_atom("g" ++ integer_to_list(Number)),
                          Here = min(?GROUP, Count - (Number - 1) * ?GROUP),
                          [{family, list_to_atom(lists:concat(["in-", Number, "-"])),
                            Own#{count => Here - ?GATES, groups => [Group]}},
                           {family, list_to_atom(lists:concat(["gate-", Number, "-"])),
                            Own#{count => ?GATES, groups => [Group, joined]}}]
                      end || Number <- lists:seq(1, Groups)]),
    Terms = [{name, many}, {epmd_port, ?config(port, Config)}, {healthy_s, 600}, {stable_s, 0},
             {drain_s, 600} | Families],
    ok = file:write_file(?config(file, Config), [io_lib:format("~p.~n", [T]) || T <- Terms]).

run(Function, More, Config) ->
    Result = apply(weft_deploy, Function,
                   [?config(file, Config),
                    More#{root => ?config(root, Config),
                          progress => fun(Line) -> ct:log("~ts", [Line]) end}]),
    ct:log("~s~n~tp", [Function, Result]),
    Result.
