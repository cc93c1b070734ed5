%% SPDX-License-Identifier: Apache-2.0
%% @doc What `bin/bench compare' looks at in each workload is there: of the metrics that a workload
%% writes at least one says more about it than others, and more or less of it is better.
-module(weft_papers_headlines_tests).

-include_lib("eunit/include/eunit.hrl").

-define(RECORDED, "docs/benchmarks").
%% There is no run of them: they write what `erpc', `key_value', `orbit' and `ads' do, nodes at rest
%% have a suite, and `simulated_ads' is still to be measured.
-define(NOT_RECORDED, [connection, echo, idle, orbit_grouped_uneven, orbit_uneven, rpc,
                       simulated_ads, slow_ads]).

workloads() ->
    #{workloads := More} = weft_papers:more(),
    lists:usort([Workload || Scope <- [quick, full],
                             #{workload := Workload}
                                 <- weft_bench_workload:cells(
                                      weft_bench_workload:modules() ++ More, Scope)]).

each_workload_has_a_headline_test() ->
    [?assertNotEqual({Workload, []}, {Workload, compared(atom_to_binary(Workload))})
     || Workload <- workloads()].

%% Of each variant in each cell that was measured.
what_was_measured_has_a_headline_test_() ->
    {timeout, 60, fun() ->
        Recorded = lists:append([recorded(filename:join(?RECORDED, filename:dirname(File)))
                                 || File <- filelib:wildcard("**/results.csv", ?RECORDED)]),
        ?assertEqual([], [Workload || Workload <- workloads() -- ?NOT_RECORDED,
                                      not lists:member(atom_to_binary(Workload), Recorded)])
    end}.

%% Some are of other programs.
recorded(Dir) ->
    case weft_report_record:read(Dir) of
        {ok, Rows} -> with_headlines(Dir, Rows);
        {error, _} -> []
    end.

with_headlines(Dir, Rows) ->
    Add = fun(#{variant := Variant, metric := Metric} = Row, Acc) ->
              maps:update_with({weft_report_record:cell(Row), Variant},
                               fun(Metrics) -> [Metric | Metrics] end, [Metric], Acc)
          end,
    Measured = lists:foldl(Add, #{}, [Row || #{metric := Metric} = Row <- Rows,
                                             Metric =/= <<"skipped">>, Metric =/= <<"failed">>]),
    lists:usort([begin
                     Found = [Metric || Metric <- compared(Workload),
                                        lists:member(Metric, Metrics)],
                     ?assertNotEqual({Dir, Key, []}, {Dir, Key, Found}),
                     Workload
                 end || {{{_, Workload, _, _, _, _}, _} = Key, Metrics} <- maps:to_list(Measured)]).

compared(Workload) ->
    [Metric || Metric <- weft_report_results:headline_metrics(Workload),
               weft_report_results:best(Metric) =/= none].
