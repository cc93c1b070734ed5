%% SPDX-License-Identifier: Apache-2.0
%% @doc Small runs: the connections of groups are those of the formulas, and the file has a row for
%% each role (with FULL=1); links and ways of a topology are those that can be counted by hand.
-module(weft_bench_groups_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([connections_are_those_of_the_formulas/1, ways_of_a_topology_are_counted/1,
         wrong_arguments_are_refused/1]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [ways_of_a_topology_are_counted, wrong_arguments_are_refused]
        ++ [connections_are_those_of_the_formulas || os:getenv("FULL") =/= false].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

connections_are_those_of_the_formulas(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "groups"),
    ?assertEqual(0, weft_bench_groups:main(["--nodes", "5", "--groups", "2", "--idle_s", "1",
                                            "--out", Dir])),
    Rows = rows(filename:join(Dir, "groups.csv")),
    ?assertEqual([{<<"stock_mesh">>, <<"node">>, <<"4">>}, {<<"weft_mesh">>, <<"node">>, <<"4">>},
                  {<<"weft_groups">>, <<"master">>, <<"2">>},
                  {<<"weft_groups">>, <<"head">>, <<"3">>},
                  {<<"weft_groups">>, <<"worker">>, <<"1">>}],
                 [{Variant, Role, Formula} || #{<<"variant">> := Variant, <<"role">> := Role,
                                                <<"formula">> := Formula} <- Rows]),
    [?assertEqual({Formula, Formula}, {Min, Max})
     || #{<<"formula">> := Formula, <<"connections_min">> := Min,
          <<"connections_max">> := Max} <- Rows],
    [?assert(binary_to_float(Packets) > 0) || #{<<"packets_uniform">> := Packets,
                                                <<"role">> := Role} <- Rows,
                                              Role =/= <<"master">>].

%% Three groups of two: four nodes in a row.
ways_of_a_topology_are_counted(Config) ->
    Dir = ?config(priv_dir, Config),
    ?assertEqual(0, weft_bench_topologies:main(["--nodes", "4", "--only", "groups", "--settle_s",
                                                "0", "--idle_s", "1", "--out", Dir])),
    [#{<<"connections_mean">> := <<"1.5">>, <<"connections_max">> := <<"2">>,
       <<"connections_all">> := <<"3">>, <<"hops_mean">> := <<"1.7">>, <<"hops_max">> := <<"3">>,
       <<"idle_bytes_s">> := Bytes} = Row] = rows(filename:join(Dir, "topologies.csv")),
    ?assert(binary_to_float(Bytes) >= 0),
    [?assert(binary_to_float(map_get(Call, Row)) > 0)
     || Call <- [<<"call_1_us">>, <<"call_2_us">>, <<"call_3_us">>]].

rows(File) ->
    {ok, Text} = file:read_file(File),
    [Header | Lines] = [string:lexemes(Line, ",") || Line <- string:lexemes(Text, "\n")],
    [maps:from_list(lists:zip(Header, Line)) || Line <- Lines].

wrong_arguments_are_refused(_Config) ->
    [?assertEqual({Arguments, 2}, {Arguments, weft_bench_topologies:main(Arguments)})
     || Arguments <- [["--nodes", "3"], ["--only", "ring"], ["--settle_s", "-1"]]],
    [?assertEqual({Arguments, 2}, {Arguments, weft_bench_groups:main(Arguments)})
     || Arguments <- [["--nodes", "x"], ["--nodes", "8", "--groups", "3"],
                      ["--nodes", "4", "--groups", "3"], ["--groups", "3,x"], ["--groups", "1"],
                      ["--idle_s", "0"], ["--node", "7"], ["--out"]]].
