%% SPDX-License-Identifier: Apache-2.0
%% @doc What figures make of results that are made up. That they can be measured is tested in
%% weft_aco_SUITE.
-module(weft_bench_paper_tests).

-include_lib("eunit/include/eunit.hrl").

findings(Wanted, Rows) ->
    [Findings] = [Read(weft_bench_sample:results(Rows))
                  || #{id := Id, findings := Read} <- weft_bench_paper:figures(), Id =:= Wanted],
    [{Kind, unicode:characters_to_list(Text)} || {Kind, Text} <- Findings].

orbit(Workload, Nodes) ->
    #{suite => <<"orbit">>, workload => Workload, size_bytes => 0, pairs => Nodes,
      streams => 20000}.

connections_are_held_against_the_formula_test() ->
    Rows = [{orbit(<<"orbit">>, 13), stock, connections_max, [12, 12]},
            {orbit(<<"orbit">>, 13), weft_groups, connections_max, [6]},
            {orbit(<<"orbit_grouped">>, 13), stock, connections_max, [6]},
            {orbit(<<"orbit_grouped">>, 13), stock, program_messages, [31000]},
            {orbit(<<"orbit_grouped">>, 7), stock, connections_max, [5]}],
    ?assertEqual(
       [{agrees, "orbit, 13 nodes, stock TCP: at most 12 connections, as by the formula"},
        {open, "orbit, 13 nodes, weft, groups: at most 6 connections, without a change of the "
         "program, instead of 12"},
        {agrees, "orbit grouped, 13 nodes, stock TCP: at most 6 connections, as by the formula"},
        {open, "orbit grouped, 13 nodes, space of 20000: 31000 messages"},
        {differs, "orbit grouped, 7 nodes, stock TCP: at most 5 connections, by the formula 4"}],
       findings("orbit", Rows)).

aco(Version, Colonies) ->
    #{suite => <<"aco">>, workload => <<"aco_", Version/binary>>, size_bytes => 0, pairs => 11,
      streams => Colonies}.

packets(Sr, Ml, Gr) ->
    [{aco(<<"tl">>, 8), stock_mesh, received_packets, [1200]},
     {aco(<<"ml">>, 8), stock_mesh, received_packets, [Ml]},
     {aco(<<"gr">>, 8), stock_mesh, received_packets, [Gr]},
     {aco(<<"sr">>, 8), stock, received_packets, [Sr]}].

versions_are_put_in_order_test() ->
    ?assertEqual([{agrees, "11 nodes, packets: SR 270, ML 1300, TL 1200, GR 4000"}],
                 findings("aco_10", packets(270, 1300, 4000))),
    ?assertMatch([{differs, _}], findings("aco_10", packets(1500, 1300, 4000))),
    ?assertMatch([{differs, _}], findings("aco_10", packets(270, 1300, 1250))),
    ?assertEqual([{open, "11 nodes, packets: ML 1300, TL 1200, GR 4000"}],
                 findings("aco_10", lists:droplast(packets(270, 1300, 4000)))).

the_error_has_to_fall_test() ->
    Rows = fun(Errors) -> [{aco(<<"quality">>, Colonies), stock, cost_error_percent, [Error]}
                           || {Colonies, Error} <- Errors] end,
    ?assertEqual([{agrees, "1 colonies: 9.0 % above the best known cost, "
                   "8 colonies: 4.5 % above the best known cost"}],
                 findings("aco_7", Rows([{8, 4.5}, {1, 9}]))),
    ?assertMatch([{differs, _}], findings("aco_7", Rows([{1, 9}, {8, 9}]))),
    ?assertEqual([], findings("aco_7", [])).

failures_may_cost_a_little_test() ->
    Rows = fun(Seconds) ->
               [{aco(<<"sr_steady">>, 8), stock, duration_s, [2, 2]},
                {aco(<<"sr_killed">>, 8), stock, duration_s, [Seconds]},
                {aco(<<"sr_killed">>, 8), stock, kills, [7]},
                {aco(<<"gr_steady">>, 8), stock_mesh, duration_s, [3]}]
           end,
    ?assertEqual([{agrees, "SR, stock TCP: 2.00 s, with 7 processes killed 2.20 s"}],
                 findings("aco_failures", Rows(2.2))),
    ?assertMatch([{differs, _}], findings("aco_failures", Rows(3))).

each_figure_has_cells_test() ->
    [?assertEqual({Id, 0}, {Id, weft_bench_cli:main(["--list" | Options ++ Cells])})
     || #{id := Id, cells := Cells} <- weft_bench_paper:figures(), Options <- [[], ["--quick"]]].

figures_are_listed_test() ->
    ?assertEqual(0, weft_bench_cli:main(["paper"])),
    ?assertNotEqual(nomatch, string:find(?capturedOutput, "aco_10 ")).

bad_arguments_are_refused_test_() ->
    [?_assertEqual(2, weft_bench_cli:main(["paper" | Arguments]))
     || Arguments <- [["aco_99"], ["aco_7", "--what"], ["aco_7,none"], [","]]].
