%% SPDX-License-Identifier: Apache-2.0
%% @doc Small runs of the measurements of names and locks: the files have what they should.
-module(weft_bench_names_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([names_are_measured/1, locks_are_measured/1, wrong_arguments_are_refused/1]).

suite() -> [{timetrap, {minutes, 8}}].

all() ->
    [names_are_measured, wrong_arguments_are_refused]
        ++ [locks_are_measured || os:getenv("FULL") =/= false].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

names_are_measured(Config) ->
    Dir = ?config(priv_dir, Config),
    Kinds = ["eventual" | ["global" || os:getenv("FULL") =/= false]],
    ?assertEqual(0, weft_bench_names:main(["--nodes", "2", "--kinds",
                                           lists:append(lists:join(",", Kinds)),
                                           "--callers", "1,2", "--seconds", "1",
                                           "--out", Dir])),
    Rows = rows(filename:join(Dir, "names.csv")),
    ?assertMatch({ok, #{<<"commit">> := _, <<"option_nodes">> := _,
                        <<"congestion_control">> := <<_, _/binary>>}},
                 weft_report_record:read_environment(Dir)),
    ?assertEqual([{list_to_binary(Kind), Workload, Callers}
                  || Kind <- Kinds,
                     {Workload, Callers} <- [{<<"one">>, 1}, {<<"all">>, 2}, {<<"all">>, 4},
                                             {<<"visible">>, 1}, {<<"mix 0.01">>, 2},
                                             {<<"mix 0.5">>, 2}, {<<"mix 1.0">>, 2}]],
                 [{Kind, Workload, binary_to_integer(Callers)}
                  || #{<<"kind">> := Kind, <<"workload">> := Workload,
                       <<"callers">> := Callers} <- Rows]),
    [?assert(binary_to_integer(Calls) > 0) || #{<<"calls">> := Calls} <- Rows].

%% Stock global may take any time; what is promised is weft_global's: bounded, and soon over.
locks_are_measured(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "locks"),
    ?assertEqual(0, weft_bench_locks:main(["--nodes", "3", "--rate", "40", "--seconds", "2",
                                           "--out", Dir])),
    [#{<<"module">> := <<"global">>}, #{<<"module">> := <<"weft_global">>} = Ours] =
        rows(filename:join(Dir, "locks.csv")),
    Number = fun(Key) -> binary_to_integer(maps:get(Key, Ours)) end,
    ?assertEqual(0, Number(<<"running">>)),
    ?assertEqual(Number(<<"asked">>), Number(<<"granted">>) + Number(<<"aborted">>)),
    ?assert(Number(<<"granted">>) > 0),
    ?assert(Number(<<"queue_max">>) < 1000).

wrong_arguments_are_refused(_Config) ->
    [?assertEqual({Module, Arguments, 2}, {Module, Arguments, Module:main(Arguments)})
     || {Module, Arguments} <-
            [{weft_bench_names, A} || A <- [["--nodes", "x"], ["--nodes", "1"], ["--kinds", "weak"],
                                            ["--workloads", ""], ["--seconds", "0"],
                                            ["--callers", "0"], ["--node"]]]
            ++ [{weft_bench_locks, A} || A <- [["--nodes", "1"], ["--rate", "x"], ["--out"],
                                               ["--seconds"]]]].

rows(File) ->
    {ok, Text} = file:read_file(File),
    [Header | Lines] = [string:lexemes(Line, ",") || Line <- string:lexemes(Text, "\n")],
    [maps:from_list(lists:zip(Header, Line)) || Line <- Lines].
