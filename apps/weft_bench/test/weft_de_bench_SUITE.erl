%% SPDX-License-Identifier: Apache-2.0
%% @doc DE-Bench on real nodes: what the nodes did adds up, on stock distribution and on weft.
-module(weft_de_bench_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0]).
-export([on_stock/1, on_weft/1, in_groups/1]).

-define(NODES, 3).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [on_stock, on_weft, in_groups].

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
                                        "--groups", "2", "--out", Dir])),
    Total = counts(Dir, "total.csv"),
    [?assert(maps:get(Operation, Total) > 0)
     || Operation <- [<<"gen_server_call">>, <<"group_register">>, <<"group_whereis">>,
                      <<"group_unregister">>]].

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
         [Registered, Found, Gone] = [maps:get(atom_to_binary(operation(Of, Step)), Total)
                                      || Step <- [register, whereis, unregister]],
         ct:pal("~ts ~p", [Of, {Registered, Found, Gone}]),
         ?assert(Registered > 0 andalso Registered >= Found andalso Found >= Gone),
         %% At the end each worker may have been in the middle.
         ?assert(Registered - Gone =< 2 * ?NODES)
     end || Of <- [Kind, local]],
    ?assertEqual(Total, lists:foldl(fun add/2, #{}, [counts(filename:join(Dir, Number), "total.csv")
                                                     || Number <- ["1", "2", "3"]])),
    ?assertEqual(Total, counts(Dir, "series.csv")),
    {ok, Page} = file:read_file(weft_load_report:file(Dir)),
    ?assertMatch({_, _}, binary:match(Page, <<"fsm_server_call">>)).

config(Operations, More, Name, Config) ->
    File = filename:join(?config(priv_dir, Config), lists:concat([Name, ".config"])),
    ok = file:write_file(File, io_lib:format("{duration, {seconds, 3}}. {concurrent, 2}.~n"
                                             "{report_interval, 1}.~n{operations, ~p}.~n~s~n",
                                             [Operations, More])),
    File.

operation(Kind, Step) -> list_to_atom(lists:concat([Kind, "_", Step])).

%% Done of each operation, where none failed.
counts(Dir, File) ->
    {ok, Text} = file:read_file(filename:join(Dir, File)),
    lists:foldl(fun add/2, #{}, [#{Operation => binary_to_integer(Done)}
                                 || [_, Operation, Done, _, <<"0">> | _]
                                        <- tl(weft_bench_csv:parse(Text))]).

add(One, Sum) ->
    maps:fold(fun(Operation, Count, Acc) ->
                      maps:update_with(Operation, fun(N) -> N + Count end, Count, Acc)
              end, Sum, One).
