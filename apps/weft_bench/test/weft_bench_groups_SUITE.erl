%% SPDX-License-Identifier: Apache-2.0
%% @doc A small run: the connections are those of the formulas, and the file has a row for each
%% role.
-module(weft_bench_groups_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([connections_are_those_of_the_formulas/1, wrong_arguments_are_refused/1]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [connections_are_those_of_the_formulas, wrong_arguments_are_refused].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

connections_are_those_of_the_formulas(Config) ->
    Dir = ?config(priv_dir, Config),
    ?assertEqual(0, weft_bench_groups:main(["--nodes", "5", "--groups", "2", "--idle_s", "1",
                                            "--out", Dir])),
    {ok, Text} = file:read_file(filename:join(Dir, "groups.csv")),
    [Header | Lines] = [string:lexemes(Line, ",") || Line <- string:lexemes(Text, "\n")],
    Rows = [maps:from_list(lists:zip(Header, Line)) || Line <- Lines],
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

wrong_arguments_are_refused(_Config) ->
    [?assertEqual({Arguments, 2}, {Arguments, weft_bench_groups:main(Arguments)})
     || Arguments <- [["--nodes", "x"], ["--nodes", "8", "--groups", "3"],
                      ["--nodes", "4", "--groups", "3"], ["--groups", "3,x"], ["--groups", "1"],
                      ["--idle_s", "0"], ["--node", "7"], ["--out"]]].
