%% SPDX-License-Identifier: Apache-2.0
%% @doc What the figures of DE-Bench make of clusters of which some were not measured.
-module(weft_de_bench_figures_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_papers_found, [findings/2, says/3]).

global(Nodes, Streams, Variant, Rate) ->
    [{cell(Nodes, Streams), Variant, calls_per_s, [Rate]}].

cell(Nodes, Streams) ->
    #{suite => <<"de_bench">>, workload => <<"de_global">>, size_bytes => 10, pairs => Nodes,
      streams => Streams}.

%% What is claimed of more nodes is neither true nor wrong of two.
two_nodes_do_not_tell_what_more_do_test() ->
    Rows = fun(Variant, Rate) ->
               global(2, 0, Variant, 100) ++ global(2, 500, Variant, Rate)
           end,
    [says([{open, [Variant, 2, {"0.0 %", "100 /s"}, {"5.0 %", Said}]}], "de_5",
          Rows(Variant, Rate))
     || {Variant, Rate, Said} <- [{stock_mesh, 100, "100 /s"}, {stock_mesh, 50, "50.0 /s"},
                                  {weft_mesh, 100, "100 /s"}, {weft_mesh, 50, "50.0 /s"}]],
    Registers = [{cell(2, 500), stock_mesh, Metric, Times}
                 || {Metric, Times} <- [{register_mean_us, [500, 501, 502]},
                                        {spawning_mean_us, [200, 201, 202]}]],
    [{open, Text}] = findings("de_6", Registers),
    %% There is nothing that it could be so many times of.
    ?assertEqual(nomatch, string:find(Text, "times as long")).

%% Two nodes want less than sixty: that is no loss.
throughput_is_that_of_as_many_nodes_test() ->
    Rows = global(2, 0, weft_mesh, 100) ++ global(60, 0, weft_mesh, 3000)
        ++ global(2, 500, weft_mesh, 100),
    says([{open, [weft_mesh, 2, {"0.0 %", "100 /s"}, {"5.0 %", "100 /s"}]}], "de_5", Rows),
    More = global(24, 0, weft_mesh, 1200) ++ global(24, 500, weft_mesh, 1201),
    says([{agrees, [weft_mesh, {"100 %", 2}, {"100 %", 24}]},
          {agrees, [weft_mesh, 24, {"0.0 %", "1.20 k/s"}, {"5.0 %", "1.20 k/s"}]}], "de_5",
         Rows ++ More),
    %% Nothing was measured on as many nodes.
    ?assertEqual([], findings("de_5", global(60, 0, weft_mesh, 3000)
                                  ++ global(2, 500, weft_mesh, 100))).

%% With sixty nodes no name was registered in time.
names_are_held_against_what_as_many_nodes_do_test() ->
    Rows = [{cell(Nodes, 500), stock_mesh, Metric, [Us]}
            || {Nodes, Metric, Us} <- [{2, register_mean_us, 1000}, {24, register_mean_us, 900000},
                                       {2, spawning_mean_us, 100}, {24, spawning_mean_us, 200},
                                       {60, spawning_mean_us, 500000}]],
    says([{agrees, [stock_mesh, {"1.00 ms", 2}, {"900 ms", 24}, {"spawn", "200 \x{b5}s"}]}],
         "de_6", Rows).

%% ---- doubts ----

names(Metrics) ->
    [{cell(Nodes, 500), stock_mesh, Metric, [Value]}
     || {Nodes, Of} <- [{2, [{register_mean_us, 1000}, {spawning_mean_us, 100}]},
                        {24, [{register_mean_us, 900000}, {spawning_mean_us, 200} | Metrics]}],
        {Metric, Value} <- Of].

failures_are_told_and_many_decide_nothing_test() ->
    Rows = fun(Failed) ->
               names([{calls, 1000}, {failed_operations, Failed}, {unfinished_operations, 40}])
           end,
    says([{agrees, [stock_mesh, "10 failed", "40 not done at the end"]}], "de_6", Rows(50)),
    says([{open, [stock_mesh, "11 failed", "40 not done at the end"]}], "de_6", Rows(51)).

a_mean_of_few_decides_nothing_test() ->
    says([{agrees, [stock_mesh]}], "de_6", names([{register_count, 5}])),
    says([{open, [stock_mesh, "from 4 times with 24 nodes"]}], "de_6",
         names([{register_count, 4}])).

what_still_changes_decides_nothing_test() ->
    says([{agrees, [stock_mesh]}], "de_6", names([{last_half_percent, 80}])),
    says([{open, [stock_mesh, "with 24 nodes the last half of the time has 79 % of the first"]}],
         "de_6", names([{last_half_percent, 79}])),
    Rates = global(2, 0, stock_mesh, 100) ++ global(2, 500, stock_mesh, 100)
        ++ global(24, 0, stock_mesh, 1200) ++ global(24, 500, stock_mesh, 500),
    ?assertMatch([{agrees, _}, {agrees, _}], findings("de_5", Rates)),
    ?assertMatch([{open, _}, {open, _}],
                 findings("de_5", [{cell(24, 500), stock_mesh, last_half_percent, [121]} | Rates])).

%% What is done without global commands is no share of itself.
without_global_commands_nothing_is_said_of_them_test() ->
    Rows = global(2, 0, stock_mesh, 100) ++ global(60, 0, stock_mesh, 3000),
    ?assertMatch([{_, "stock, full mesh, 60 nodes" ++ _}], findings("de_5", Rows)).
