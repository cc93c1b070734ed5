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
