%% SPDX-License-Identifier: Apache-2.0
%% @doc What the figures make of results that are made up. That they can be measured is tested in
%% weft_paper_SUITE.
-module(weft_im_figures_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_papers_found, [findings/2, says/3]).

im(Workload, Nodes) ->
    #{suite => <<"im">>, workload => Workload, size_bytes => 0, pairs => Nodes, streams => 200}.

forms_are_held_against_each_other_test() ->
    Rows = fun(Rsd) ->
               [{im(<<"im_rd">>, 5), stock_mesh, delivered_per_min, [28000, 28010]},
                {im(<<"im_rd">>, 5), weft_groups, delivered_per_min, [25000]},
                {im(<<"im_rsd">>, 5), stock, delivered_per_min, [Rsd]}]
           end,
    says([{agrees, [5, {"RD", 28005}, "full mesh", {"RSD", 28000}, "groups"]},
          {differs, [5, "RD", weft_groups, "89.3 %", "stock"]}], "im_11", Rows(28000)),
    ?assertMatch([{differs, _}, {differs, _}], findings("im_11", Rows(26000))),
    ?assertEqual([], findings("im_11", [])).

failures_are_held_against_none_test() ->
    Rows = fun(Killed, Lost) ->
               [{im(<<"im_rsd_steady">>, 16), stock, delivered_per_min, [28000]},
                {im(<<"im_rsd_killed">>, 16), stock, delivered_per_min, [Killed]},
                {im(<<"im_rsd_killed">>, 16), stock, kills, [15]},
                {im(<<"im_rsd_steady">>, 16), stock, lost_messages, [0]},
                {im(<<"im_rsd_killed">>, 16), stock, lost_messages, Lost},
                {im(<<"im_rd_steady">>, 16), stock_mesh, delivered_per_min, [28000]}]
           end,
    says([{agrees, ["RSD", 16, stock, 28000, {"96.4 %", 15}, {0, "lost"}]}],
         "im_12", Rows(27000, [0, 0, 0])),
    ?assertMatch([{differs, _}], findings("im_12", Rows(26000, [0]))),
    Unhurt = fun(Lost) ->
                 [case Row of
                      {Cell, Variant, kills, _} -> {Cell, Variant, kills, [15, 0, 15]};
                      _ -> Row
                  end || Row <- Rows(27000, Lost)]
             end,
    says([{open, ["RSD", {15, "killed"}, "none", {0, "lost"}]}], "im_12", Unhurt([0])),
    ?assertMatch([{differs, _}], findings("im_12", Unhurt([1]))),
    says([{differs, ["RSD", 16, stock, 28000, {"96.4 %", 15}, {1, "lost"}]}],
         "im_12", Rows(27000, [0, 1, 0])).

%% Whatever was wrong in it, the numbers of the others do not tell.
a_repetition_that_failed_leaves_it_open_test() ->
    Rows = fun(Killed) ->
               [{im(<<"im_rsd_steady">>, 16), stock, delivered_per_min, [28000]},
                {im(<<"im_rsd_killed">>, 16), stock, delivered_per_min, [Killed]},
                {im(<<"im_rsd_killed">>, 16), stock, kills, [15]},
                {im(<<"im_rsd_steady">>, 16), stock, lost_messages, [0]},
                {im(<<"im_rsd_killed">>, 16), stock, lost_messages, [0]}]
           end,
    Failed = fun(How, Variant) ->
                 [{im(<<"im_rsd_", How/binary>>, 16), Variant, failed, [<<"3 came twice">>]}]
             end,
    ?assertMatch([{agrees, _}], findings("im_12", Rows(27000))),
    [says([{open, ["RSD", 16, stock, "one repetition failed"]}], "im_12",
          Rows(27000) ++ Failed(How, stock)) || How <- [<<"steady">>, <<"killed">>]],
    says([{open, ["RSD", "2 repetitions failed"]}], "im_12",
         Rows(27000) ++ Failed(<<"steady">>, stock) ++ Failed(<<"killed">>, stock)),
    ?assertMatch([{agrees, _}],
                 findings("im_12", Rows(27000) ++ Failed(<<"killed">>, weft_groups))),
    ?assertMatch([{differs, _}], findings("im_12", Rows(20000) ++ Failed(<<"killed">>, stock))).

%% ---- what people would say ----

typed(Workload, Nodes, People, Variant, Delivered, Typed) ->
    Cell = #{suite => <<"im">>, workload => Workload, size_bytes => 0, pairs => Nodes,
             streams => People},
    [{Cell, Variant, Metric, [Value]}
     || {Metric, Value} <- [{delivered_per_min, Delivered}, {typed_per_min, Typed},
                            {quota_percent, 4}]].

%% Then it is how much they type that grows.
nearly_all_that_people_type_says_nothing_of_servers_test() ->
    Rows = fun(First, Last) -> typed(<<"im_rd_grown">>, 6, 120, stock_mesh, First, 1000)
                                   ++ typed(<<"im_rd_grown">>, 25, 640, stock_mesh, Last, 5300)
           end,
    says([{agrees, ["RD", stock_mesh, {949, 1000}, {"typed", 120}, {5000, 5300}, {"typed", 640}]}],
         "im_11_quota", Rows(949, 5000)),
    ?assertMatch([{open, _}], findings("im_11_quota", Rows(950, 5000))),
    ?assertMatch([{open, _}], findings("im_11_quota", Rows(949, 5036))),
    ?assertMatch([{differs, _}], findings("im_11_quota", Rows(949, 3000))).

two_that_deliver_all_there_is_are_not_compared_test() ->
    Rows = fun(Rsd) ->
               typed(<<"im_rd">>, 5, 200, stock_mesh, 980, 1000)
                   ++ typed(<<"im_rsd">>, 5, 200, stock, Rsd, 1000)
           end,
    ?assertMatch([{open, _}], findings("im_11", Rows(970))),
    ?assertMatch([{agrees, _}], findings("im_11", Rows(940))),
    ?assertMatch([{differs, _}], findings("im_11", Rows(900))).

%% As many servers as people have is what is claimed.
few_servers_say_nothing_of_many_test() ->
    Rows = typed(<<"im_rd_grown">>, 6, 120, stock_mesh, 900, 1000)
        ++ typed(<<"im_rd_grown">>, 10, 240, stock_mesh, 1800, 2000),
    ?assertMatch([{open, _}], findings("im_11_quota", Rows)).

%% The throughputs of repetitions overlap with the limit of what is called the same.
what_more_repetitions_may_decide_is_open_test() ->
    Rows = fun(Rsd) -> [{im(<<"im_rd">>, 5), stock_mesh, delivered_per_min, [28000, 28000, 28000]},
                        {im(<<"im_rsd">>, 5), stock, delivered_per_min, Rsd}]
           end,
    ?assertMatch([{agrees, _}], findings("im_11", Rows([28000, 27500, 28300]))),
    ?assertMatch([{open, _}], findings("im_11", Rows([28000, 26000, 28000]))),
    ?assertMatch([{differs, _}], findings("im_11", Rows([25000, 26000, 26100]))).

%% What the commands of figures measure, at any size.
figures_have_cells_test_() ->
    [?_assertMatch({Scope, Only, [_, _ | _]},
                   {Scope, Only,
                    [Cell || #{suite := im} = Cell <- weft_im_workload:cells(Scope),
                             re:run(weft_bench_workload:title(Cell), Only) =/= nomatch]})
     || Scope <- [quick, full],
        #{cells := ["--suites", "im", "--only", Only | _]} <- weft_im_figures:figures()].

names_are_those_of_the_carrier_test() ->
    ?assertEqual([global, {weft, cluster}, {weft, cluster}, local, {weft, groups}],
                 [weft_im_workload:names(IsGrouped, Variant)
                  || {IsGrouped, Variant} <- [{false, stock_mesh}, {false, weft_mesh},
                                              {false, weft_groups}, {true, stock},
                                              {true, weft_groups}]]).
