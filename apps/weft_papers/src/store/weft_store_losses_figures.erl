%% SPDX-License-Identifier: Apache-2.0
%% @doc What the Riak talk (see `weft_store_figures') says of availability and elasticity, and what
%% is measured here while nodes of the store of weft are killed and started again.
-module(weft_store_losses_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(STORE, weft_store_figures).
-define(VARIANT, <<"weft_mesh">>).
%% Of the operations, of which there have to be enough.
-define(FAILED_SHARE, 1.0e-5).
-define(OPERATIONS_MIN, 3000000).
%% Seconds until throughput is back.
-define(BACK_S, 30).

%% @private
figures() ->
    [#{id => "riak_elasticity", where => "Riak talk 2013: availability and elasticity",
       claim => "While nodes fail and come back, 37 operations fail beside 3.41 million that do "
       "not, and throughput grows when nodes come back. Of weft: it is back at 95 % within 30 s, "
       "after a kill and after a start.",
       bound => io_lib:format("Throughput is back within ~b s in each repetition, after the kills "
                              "and after the start. Open where a repetition failed. How many "
                              "operations fail is told, and not judged.", [?BACK_S]),
       cells => ?STORE:cells("riak elasticity"), findings => fun elastic/1,
       charts => fun elastic_charts/1,
       not_shown => "Millions of operations (riak_availability), and nodes with processors of "
       "their own. Clients ask for about a third of what two cores can do (riak_availability), "
       "since that differs from one half minute to the next. So throughput does not grow with "
       "the nodes that come back. The next kill, or the start, comes 18 s after a kill: throughput "
       "that takes longer counts as not back. Clients have the defaults of the library, without "
       "retries of the store."},
     #{id => "riak_availability", where => "Riak talk 2013: availability, of millions of requests",
       claim => "While nodes fail and come back, 37 operations fail beside 3.41 million that do "
       "not. Of weft, for programs that use the client of the store: of 3 million or more "
       "operations at most 1 of 100,000 fails.",
       bound => io_lib:format("Of all repetitions together at most ~b of a million operations "
                              "fail, of at least ~b million, and no inserted key is lost. Open "
                              "where nothing was killed in a repetition, or a repetition failed.",
                              [round(1.0e6 * ?FAILED_SHARE), ?OPERATIONS_MIN div 1000000]),
       cells => ?STORE:cells("riak availability"), findings => fun available/1,
       charts => fun available_charts/1,
       not_shown => "Nodes that are away for long, and hosts that are cut off. One node is "
       "killed at a time, never the first one, and the next one when the copies are back. Clients "
       "have the defaults of the library: three tries within five seconds, and no retries. Other "
       "than by default each write has to be on two nodes. Keys are read at the end with ten "
       "retries, so that what is there is found."}].

%% ---- what is found ----

elastic(Results) ->
    lists:append(
      [[{weft_papers_verdict:complete(Failed,
                                      weft_papers_verdict:is(is_back(Cell, Metric, Results))),
         [on(Nodes), ", ", number(median(Cell, <<"kills">>, Results)), " ", What, ": ",
          back(Cell, Metric, Results), weft_papers_verdict:incomplete(Failed)]}
        || {Metric, What} <- [{<<"recovery_kill_s">>, "killed"},
                              {<<"recovery_start_s">>, "started again"}]]
       ++ [{open, [number(median(Cell, <<"failed_operations">>, Results)), " operations failed "
                   "and ", number(median(Cell, <<"calls">>, Results)), " did not"]}]
       || {_, <<"riak_elasticity">>, _, Nodes, _, _} = Cell <- weft_report_results:cells(Results),
          weft_report_results:measured(Cell, ?VARIANT, <<"calls">>, Results) =/= none,
          Failed <- [weft_papers_verdict:failed([{Cell, ?VARIANT}], Results)]]).

%% In each repetition, and soon.
is_back(Cell, Metric, Results) ->
    times_measured(Cell, Metric, Results) =:= times_measured(Cell, <<"calls">>, Results)
        andalso of_measured(high, Cell, Metric, Results) =< ?BACK_S.

times_measured(Cell, Metric, Results) -> of_measured(count, Cell, Metric, Results).

back(Cell, Metric, Results) ->
    Runs = io_lib:format("in ~b of ~b runs", [times_measured(Cell, Metric, Results),
                                              times_measured(Cell, <<"calls">>, Results)]),
    case weft_report_results:measured(Cell, ?VARIANT, Metric, Results) of
        {ok, #{low := Low, median := Median, high := High}} ->
            io_lib:format("95 % of the throughput before ~s after ~b s (~b to ~b)",
                          [Runs, round(Median), round(Low), round(High)]);
        none ->
            ["95 % of the throughput before ", Runs]
    end.

elastic_charts(Results) -> per_second(<<"riak_elasticity">>, Results).

available_charts(Results) ->
    per_second(<<"riak_availability">>, Results) ++ failed_charts(Results).

%% Of all repetitions together, beside what the talk says.
failed_charts(Results) ->
    Cells = [Cell || {_, <<"riak_availability">>, _, _, _, _} = Cell
                         <- weft_report_results:cells(Results),
                     sum(Cell, <<"calls">>, Results) > 0],
    Points = [{X, Share, Share, Share, [number(Failed), " of ", number(Failed + Done)]}
              || {X, Cell} <- lists:zip(lists:seq(1, length(Cells)), Cells),
                 Done <- [sum(Cell, <<"calls">>, Results)],
                 Failed <- [sum(Cell, <<"failed_operations">>, Results)],
                 Share <- [1.0e6 * Failed / (Failed + Done)]],
    Chart = weft_report_chart:new("failed of a million operations", "nodes",
                                  [integer_to_list(Nodes) || {_, _, _, Nodes, _, _} <- Cells],
                                  <<"failed_operations">>,
                                  [weft_report_chart:line(?VARIANT, Points) || Points =/= []]),
    [weft_report_chart:said_level("Riak, the talk", 1.0e6 * 37 / 3410037,
                                  "37 beside 3.41 million", Chart#{y := linear})].

per_second(Workload, Results) ->
    [?STORE:over_time(["operations in each second, ", on(Nodes)], <<"operations_per_s">>,
                      "operations", [{"operations", {store, Workload, Clients, Nodes}}], Results)
     || {_, Of, _, Nodes, Clients, _} <- weft_report_results:cells(Results), Of =:= Workload].

%% Of all repetitions together.
available(Results) ->
    [{weft_papers_verdict:complete(Incomplete, available_verdict(Done, Failed, Lost, Fewest)),
      [on(Nodes), ", ", number(sum(Cell, <<"kills">>, Results)), " kills and starts",
       weft_papers_verdict:no_failures(Fewest), ": ",
       number(Failed), " operations failed and ", number(Done), " did not; ",
       number(sum(Cell, <<"repeated_operations">>, Results)), " times the client asked another "
       "node after an error", longest(Cell, Results),
       read_back(Lost, sum(Cell, <<"read_keys">>, Results)),
       weft_papers_verdict:incomplete(Incomplete)]}
     || {_, <<"riak_availability">>, _, Nodes, _, _} = Cell <- weft_report_results:cells(Results),
        Done <- [sum(Cell, <<"calls">>, Results)], Done > 0,
        Failed <- [sum(Cell, <<"failed_operations">>, Results)],
        Lost <- [sum(Cell, <<"lost_keys">>, Results)],
        Fewest <- [fewest(Cell, <<"kills">>, Results)],
        Incomplete <- [weft_papers_verdict:failed([{Cell, ?VARIANT}], Results)]].

%% What waits while a node is lost, and does not fail. Results of before have none.
longest(Cell, Results) ->
    [["; the longest took ", ?STORE:value(High, "us")]
     || {ok, #{high := High}} <- [weft_report_results:measured(Cell, ?VARIANT, <<"latency_max_us">>,
                                                               Results)]].

%% Results of before have none.
read_back(_Lost, Read) when Read == 0 -> "";
read_back(Lost, Read) ->
    ["; of ", number(Read), " inserted keys that were read at the end ", number(Lost),
     " were not there"].

%% Operations that fail while nothing else does are no better.
available_verdict(_Done, _Failed, Lost, _Fewest) when Lost > 0 -> differs;
available_verdict(Done, Failed, _Lost, _Fewest)
  when Failed > ?FAILED_SHARE * (Done + Failed) -> differs;
available_verdict(Done, Failed, _Lost, Fewest) when Done + Failed >= ?OPERATIONS_MIN ->
    weft_papers_verdict:with_failures(Fewest, agrees);
available_verdict(_Done, _Failed, _Lost, _Fewest) -> open.

fewest(Cell, Metric, Results) -> of_measured(low, Cell, Metric, Results).

sum(Cell, Metric, Results) -> of_measured(sum, Cell, Metric, Results).

of_measured(What, Cell, Metric, Results) ->
    case weft_report_results:measured(Cell, ?VARIANT, Metric, Results) of
        {ok, Measured} -> map_get(What, Measured);
        none -> 0
    end.

median(Cell, Metric, Results) -> ?STORE:median(Cell, Metric, Results).

number(Value) -> ?STORE:number(Value).

on(Nodes) -> ?STORE:on(Nodes).
