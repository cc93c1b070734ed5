%% SPDX-License-Identifier: Apache-2.0
%% @doc How long a deployment takes by the number of its nodes, on this machine: all are started,
%% made of something else, and stopped by one command each.
%%
%% It runs with FULL=1 only. WEFT_DEPLOY_NODES has other numbers of nodes than these. Nodes are in
%% groups of ten; two of each are in a group of those that join the others. An upgrade takes long,
%% so up to ten nodes are upgraded, and the most. What was measured is in times.csv of the directory
%% of the case.
-module(weft_deploy_scale_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([time_grows_in_proportion_to_nodes/1]).

-define(GROUP, 10).
%% With one it would be the only way, and not be drained.
-define(GATES, 2).
-define(UPGRADED_MAX, 10).

suite() -> [{timetrap, {hours, 2}}].

all() -> [time_grows_in_proportion_to_nodes].

init_per_suite(Config) ->
    Dir = ?config(priv_dir, Config),
    [{port, weft_test_nodes:free_port()}, {file, filename:join(Dir, "many.deploy")},
     {root, filename:join(Dir, "weft")} | Config].

end_per_suite(Config) ->
    _ = filelib:is_regular(?config(file, Config)) andalso run(down, #{purge => true}, Config),
    ok.

sizes() ->
    [list_to_integer(Size) || Size <- string:lexemes(os:getenv("WEFT_DEPLOY_NODES",
                                                               "5 10 25 50 100"), " ")].

time_grows_in_proportion_to_nodes(Config) ->
    Times = [measured(Count, Config) || Count <- sizes()],
    Lines = [{Step, line([{Count, Time} || #{nodes := Count, Step := Time} <- Times])}
             || Step <- [up_s, upgrade_s, down_s]],
    [ct:pal("~s: ~.3f s a node and ~.2f s, R2 ~.4f; WombatOAM: 0.0125 s a node and 83 s",
            [Step, A, B, R2]) || {Step, {A, B, R2}} <- Lines],
    %% To stop some nodes takes as long as to stop one.
    [?assert(R2 > 0.95) || {Step, {_, _, R2}} <- Lines, Step =/= down_s],
    ok.

measured(Count, Config) ->
    deployment(Count, 1, Config),
    {UpS, {ok, #{started := Started}, _}} = timed(fun() -> run(apply, #{}, Config) end),
    {AgainS, Again} = timed(fun() -> run(apply, #{}, Config) end),
    ?assertMatch({ok, #{started := [], stopped := [], changed := [], failed := []}, _}, Again),
    Upgrade = upgraded(Count, Config),
    {DownS, {ok, #{stopped := Stopped}, _}} = timed(fun() -> run(down, #{}, Config) end),
    ?assertEqual([Count, Count], [length(List) || List <- [Started, Stopped]]),
    Row = io_lib:format("~b,~.2f,~.2f,~ts,~.2f~n",
                        [Count, UpS, AgainS, [io_lib:format("~.2f", [S]) || S <- Upgrade], DownS]),
    File = filename:join(?config(priv_dir, Config), "times.csv"),
    _ = filelib:is_file(File)
        orelse file:write_file(File, "nodes,up_s,again_s,upgrade_s,down_s\n"),
    ok = file:write_file(File, Row, [append]),
    ct:pal("~ts", [Row]),
    maps:from_list([{nodes, Count}, {up_s, UpS}, {down_s, DownS}
                    | [{upgrade_s, S} || S <- Upgrade]]).

upgraded(Count, Config) ->
    case Count =< ?UPGRADED_MAX orelse Count =:= lists:max(sizes()) of
        true ->
            deployment(Count, 2, Config),
            {S, {ok, #{upgraded := All}, _}} = timed(fun() -> run(upgrade, #{}, Config) end),
            ?assertEqual(Count, length(All)),
            [S];
        false ->
            []
    end.

timed(Fun) ->
    {Us, Result} = timer:tc(Fun),
    {Us / 1.0e6, Result}.

deployment(Count, Version, Config) ->
    Groups = (Count + ?GROUP - 1) div ?GROUP,
    Own = #{flags => ["+S", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none"],
            env => [{kernel, [{many_version, Version}]}]},
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

%% Least squares: the time for each node, the rest, and how much of the variance that explains.
line(Points) ->
    Count = length(Points),
    MeanX = lists:sum([X || {X, _} <- Points]) / Count,
    MeanY = lists:sum([Y || {_, Y} <- Points]) / Count,
    Sxx = lists:sum([(X - MeanX) * (X - MeanX) || {X, _} <- Points]),
    Sxy = lists:sum([(X - MeanX) * (Y - MeanY) || {X, Y} <- Points]),
    Syy = lists:sum([(Y - MeanY) * (Y - MeanY) || {_, Y} <- Points]),
    A = Sxy / Sxx,
    {A, MeanY - A * MeanX, Sxy * Sxy / (Sxx * Syy)}.
