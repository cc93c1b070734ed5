%% SPDX-License-Identifier: Apache-2.0
%% @doc DE-Bench on real nodes: what the nodes did adds up, on stock distribution and on weft, also
%% if one of them gets ready late or is lost.
-module(weft_de_bench_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([on_stock/1, on_weft/1, in_groups/1, all_begin_at_once/1, a_node_is_lost/1,
         a_cell_loses_a_node/1]).
%% A driver that takes its time to get ready on the first node, or does not.
-export([new/1, run/4, terminate/2, labels/1]).

-define(NODES, 3).
-define(LATE_MS, 5000).
-define(APART_US, 3000000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [in_groups, all_begin_at_once]
        ++ [Case || os:getenv("FULL") =/= false,
                    Case <- [a_node_is_lost, on_stock, on_weft, a_cell_loses_a_node]].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

on_stock(Config) ->
    adds_up(stock_mesh, global, Config).

on_weft(Config) ->
    adds_up(weft_mesh, names, Config).

%% The second node is in both groups; the others talk with it only.
in_groups(Config) ->
    File = config([{gen_server_call, 5}, {group_register, 2}], "{transitive_connection, false}.",
                  groups, Config),
    Dir = filename:join(?config(priv_dir, Config), groups),
    ?assertEqual(0, weft_de_bench:main([File, "--nodes", "3", "--variant", "weft_groups",
                                        "--groups", "2", "--quota", "30", "--out", Dir])),
    quotas_are_recorded(Dir),
    Total = counts(Dir, "total.csv"),
    [?assert(maps:get(Operation, Total) > 0)
     || Operation <- [<<"gen_server_call">>, <<"group_register">>, <<"group_whereis">>,
                      <<"group_unregister">>]],
    %% What another run would have to be alike in.
    ?assertEqual([{<<"node_count">>, <<"3">>}, {<<"variant">>, <<"weft_groups">>},
                  {<<"config_groups">>, <<"2">>}],
                 [{Key, proplists:get_value(Key, pairs(Dir))}
                  || Key <- [<<"node_count">>, <<"variant">>, <<"config_groups">>]]).

%% In a file, and on the page; where there are no quotas, how many nodes there were for a core.
quotas_are_recorded(Dir) ->
    {ok, [{<<"vms_per_core">>, Vms} | Quotas]} = weft_report_sharing:read(Dir),
    ?assert(Vms > 0),
    {ok, Page} = file:read_file(weft_report_load:file(Dir)),
    ?assertMatch({match, _}, re:run(Page, "VMs per core")),
    case weft_bench_quota:possible() of
        {ok, _} ->
            ?assertMatch([{<<"quota_percent">>, 30}, {<<"throttled_percent">>, _},
                          {<<"quota_used_percent">>, Used}, {<<"machine_busy_percent">>, _}]
                         when Used > 0, Quotas),
            ?assertMatch({match, _}, re:run(Page, "throttled"));
        {error, _} ->
            ?assertEqual([], Quotas)
    end.

%% Each look-up and each unregister was preceded by what it needs; the nodes' files tell the same
%% as the sum; and no operation failed.
adds_up(Variant, Kind, Config) ->
    Dir = filename:join(?config(priv_dir, Config), Variant),
    File = config([{spawning, 5}, {remote_call, 5}, {rex_call, 5}, {gen_server_call, 5},
                   {fsm_server_call, 5}, {operation(Kind, register), 2}, {local_register, 2}], "",
                  Variant, Config),
    ?assertEqual(0, weft_de_bench:main([File, "--nodes", integer_to_list(?NODES),
                                        "--variant", atom_to_list(Variant), "--out", Dir])),
    Total = counts(Dir, "total.csv"),
    [?assert(maps:get(Operation, Total) > 0)
     || Operation <- [<<"spawning">>, <<"remote_call">>, <<"rex_call">>, <<"gen_server_call">>,
                      <<"fsm_server_call">>]],
    [begin
         Counts = [maps:get(atom_to_binary(operation(Of, Step)), Total)
                   || Step <- [register, whereis, unregister]],
         %% Each of two workers of a node may have been in the middle, at the end and at the
         %% beginning: what was due before the run has no part in it.
         ?assertMatch({_, {Fewest, Most}} when Fewest > 0 andalso Most - Fewest =< 2 * ?NODES,
                      {Of, {lists:min(Counts), lists:max(Counts)}})
     end || Of <- [Kind, local]],
    ?assertEqual(Total, lists:foldl(fun add/2, #{}, [counts(filename:join(Dir, Number), "total.csv")
                                                     || Number <- ["1", "2", "3"]])),
    ?assertEqual(Total, counts(Dir, "series.csv")),
    as_in_windows(Total, Dir),
    {ok, Page} = file:read_file(weft_report_load:file(Dir)),
    ?assertMatch({_, _}, binary:match(Page, <<"fsm_server_call">>)).

%% The sum's windows have all, second by second.
as_in_windows(Total, Dir) ->
    Summary = spaced(Dir, "summary.csv"),
    ?assertEqual([1, 2, 3], [round(Elapsed) || [Elapsed | _] <- Summary]),
    ?assertEqual(lists:sum(maps:values(Total)),
                 lists:sum([Successful || [_, _, _, Successful, _] <- Summary])),
    [begin
         File = binary_to_list(binary:replace(Operation, <<"_">>, <<"-">>, [global])),
         Latencies = spaced(Dir, File ++ "_latencies.csv"),
         ?assertEqual({Operation, Done}, {Operation, lists:sum([N || [_, _, N | _] <- Latencies])}),
         [?assert(Min =< Median andalso Median =< P99 andalso P99 =< Max)
          || [_, _, N, Min, _, Median, _, P99, _, Max, _] <- Latencies, N > 0]
     end || {Operation, Done} <- maps:to_list(Total)].

%% --- what nodes may do ------------------------------------------------------------------------

%% The others wait for the first node, and the machine is looked at once.
all_begin_at_once(Config) ->
    with_nodes(Config, fun(Nodes) ->
        Dir = filename:join(?config(priv_dir, Config), at_once),
        {ok, #{lost := []}} = weft_de_bench:loads(load(1, [{first_node, late}]), Dir, Nodes),
        [_ | _] = Environment = pairs(Dir),
        Spread = binary_to_integer(proplists:get_value(<<"start_spread_us">>, Environment)),
        ct:pal("~b us apart", [Spread]),
        ?assert(Spread < ?APART_US),
        [?assertEqual([], pairs(filename:join(Dir, Number)) -- Environment)
         || Number <- ["1", "2", "3"]],
        a_node_does_not_get_ready(Nodes, Config)
    end).

a_node_does_not_get_ready(Nodes, Config) ->
    Dir = filename:join(?config(priv_dir, Config), not_ready),
    {error, Text} = weft_de_bench:loads(load(1, [{first_node, bad}]), Dir, Nodes),
    ct:pal("~ts", [Text]),
    First = atom_to_list(weft_bench_nodes:node(Nodes, {n, 1})),
    ?assertMatch({match, _}, re:run(Text, First ++ ": a worker does not start: .*not_today")).

%% What it did, and what the others did, is kept, and that it is missing is told.
a_node_is_lost(Config) ->
    with_nodes(Config, fun(Nodes) ->
        Dir = filename:join(?config(priv_dir, Config), lost),
        Run = fun() -> weft_de_bench:loads(load(6, []), Dir, Nodes) end,
        {ok, #{lost := [Text]} = Outcome} = while_one_is_lost(Nodes, Dir, Run),
        ct:pal("~ts", [Text]),
        Lost = atom_to_list(weft_bench_nodes:node(Nodes, {n, 2})),
        ?assertMatch({match, _}, re:run(Text, Lost ++ " was lost: its emulator has ended")),
        ?assertEqual(list_to_binary(Text),
                     proplists:get_value(<<"not_measured_to_the_end">>, pairs(Dir))),
        ?assertMatch([_ | _], spaced(filename:join(Dir, "2"), "summary.csv")),
        ?assertEqual(lists:sum([done(filename:join(Dir, Number)) || Number <- ["1", "2", "3"]]),
                     done(Dir)),
        ?assertEqual(1, weft_load_cli:report(Outcome, Dir)),
        {ok, Page} = file:read_file(weft_report_load:file(Dir)),
        ?assertMatch({_, _}, binary:match(Page, list_to_binary(Lost)))
    end).

%% A cell of the benchmark has failed then; what its nodes did is kept, too.
a_cell_loses_a_node(Config) ->
    with_nodes(Config, fun(Nodes) ->
        [Cell | _] = [Of || #{workload := de_calls} = Of <- weft_de_bench_workload:cells(quick)],
        Dir = ?config(priv_dir, Config),
        Own = filename:join([Dir, "de_bench", "de_calls-10-1-3-stock_mesh"]),
        Run = fun() ->
                      try weft_de_bench_workload:run(Cell#{dir => Dir, pairs := ?NODES,
                                                           quota => none, repetition => 1,
                                                           with := #{seconds => 6, warm_up_s => 0}},
                                                     Nodes)
                      catch error:{de_bench, Text} -> {failed, Text}
                      end
              end,
        {failed, Text} = while_one_is_lost(Nodes, Own, Run),
        ?assertMatch({match, _}, re:run(Text, "n2-.* was lost: .*de_calls-10-1-3-stock_mesh")),
        ?assertEqual([], [Number || Number <- ["1", "2", "3", "."],
                                    done(filename:join(Own, Number)) =:= 0])
    end).

%% The second node, once it has written something.
while_one_is_lost(Nodes, Dir, Run) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Self ! {self(), Run()} end),
    Second = filename:join(Dir, "2"),
    weft_test_nodes:until(fun() ->
                                  filelib:file_size(filename:join(Second, "summary.csv")) > 0
                                      andalso done(Second) > 0
                          end),
    [] = os:cmd("kill -KILL " ++ weft_bench_nodes:os_pid(Nodes, {n, 2})),
    receive
        {Pid, Answer} -> Answer;
        {'DOWN', Monitor, process, Pid, Why} -> ct:fail(Why)
    end.

done(Dir) -> lists:sum([Successful || [_, _, _, Successful, _] <- spaced(Dir, "summary.csv")]).

with_nodes(Config, Test) ->
    weft_bench_test_cluster:with_nodes(stock_mesh, weft_bench_cluster:shape(?NODES, []), Config,
                                       Test).

load(Seconds, More) ->
    {ok, Load} = weft_load_config:check(
                   More ++ [{driver, ?MODULE}, {mode, {rate, 100}}, {concurrent, 2},
                            {duration, {seconds, Seconds}}, {report_interval, 1},
                            {operation_timeout_s, 10}, {operations, [{remote_call, 1}]}]),
    Load.

new(Id) ->
    IsFirst = lists:prefix("n1-", atom_to_list(node())),
    case basho_bench_config:get(first_node, good) of
        late when IsFirst -> receive after ?LATE_MS -> ok end; % pacing: later than the others
        bad when IsFirst -> exit(not_today);
        _ -> ok
    end,
    weft_de_bench_driver:new(Id).

run(Operation, Key, Value, Driver) -> weft_de_bench_driver:run(Operation, Key, Value, Driver).

terminate(Reason, Driver) -> weft_de_bench_driver:terminate(Reason, Driver).

labels(Operations) -> weft_de_bench_driver:labels(Operations).

%% --- files ------------------------------------------------------------------------------------

pairs(Dir) ->
    {ok, Text} = file:read_file(filename:join(Dir, "environment.csv")),
    [{Key, Value} || [Key, Value] <- weft_report_csv:parse(Text)].

spaced(Dir, File) -> weft_report_sample:read_numbers(filename:join(Dir, File)).

config(Operations, More, Name, Config) ->
    File = filename:join(?config(priv_dir, Config), lists:concat([Name, ".config"])),
    ok = file:write_file(File, io_lib:format("{mode, {rate, 50}}. {duration, {seconds, 3}}.~n"
                                             "{concurrent, 2}. {report_interval, 1}.~n"
                                             "{operations, ~p}.~n~s~n", [Operations, More])),
    File.

operation(Kind, Step) -> list_to_atom(lists:concat([Kind, "_", Step])).

%% Done of each operation, where none failed.
counts(Dir, File) ->
    {ok, Text} = file:read_file(filename:join(Dir, File)),
    lists:foldl(fun add/2, #{}, [#{Operation => binary_to_integer(Done)}
                                 || [_, Operation, Done, _, <<"0">> | _]
                                        <- tl(weft_report_csv:parse(Text))]).

add(One, Sum) ->
    maps:fold(fun(Operation, Count, Acc) ->
                      maps:update_with(Operation, fun(N) -> N + Count end, Count, Acc)
              end, Sum, One).
