%% SPDX-License-Identifier: Apache-2.0
%% @doc What the Riak talk (A. Ghaffari, N. Chechina, P. Trinder: "Scalable Persistent Storage for
%% Erlang: Theory and Practice", 2013) says of availability and scalability, and what is measured
%% here with the store of weft (`weft_store_workload').
-module(weft_store_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(VARIANT, <<"weft_mesh">>).
-define(STOCK, <<"stock_mesh">>).
%% The throughput that has to be won by not having one supervisor, with many clients.
-define(WON, 3).
-define(MANY, 64).
%% And how many times as long the p99 is with one, under the same load.
-define(LONGER, 10).
%% Processor time of an operation that differs by at most so much is the same.
-define(SAME, 0.1).
%% N times the nodes do at least so much of N times the operations.
-define(LINEAR, 0.7).
%% Messages that wait for one process.
-define(WAITING_MAX, 1000).
%% Of the operations, of which there have to be enough.
-define(FAILED_SHARE, 1.0e-5).
-define(OPERATIONS_MIN, 3000000).
-define(OPERATIONS, [<<"riak_get">>, <<"riak_insert">>, <<"riak_update">>]).
-define(AT_A_RATE, [<<"riak_get_rate">>, <<"riak_insert_rate">>, <<"riak_update_rate">>]).

%% @private
figures() -> one_supervisor_figures() ++ growth_figures() ++ losses_figures().

one_supervisor_figures() ->
    [#{id => "riak_wall", where => "Riak talk 2013, the limit of 60 nodes: one supervisor",
       claim => "Riak stops growing at about 60 nodes, and neither processors nor memory, disk or "
       "network are why. (Its authors found servers through which all requests went, and later "
       "releases have none.) Of weft: without such a supervisor the store does 3 times as much for "
       "64 clients; with it the p99 of as many requests per second is 10 times as long.",
       cells => cells("riak (spawned|supervised)"),
       findings => fun(Results) -> wall(Results) ++ same_load(Results) end,
       charts => fun wall_charts/1,
       not_shown => "60 nodes, and hosts that wait for the supervisor: on two cores all else of "
       "a request takes so much that a supervisor is seldom what is waited for. The same load "
       "are 70 % of the requests per second that the store does as fast as it can without it; "
       "times count from when requests are due. Where that is about all that is done with the "
       "supervisor, requests wait for longer and longer, and how many times as long depends on "
       "how long is measured. Memory, disk and network: only processor time is measured, values "
       "are in memory, and bytes are not counted."}].

growth_figures() ->
    [#{id => "riak_throughput", where => "Riak talk 2013: throughput of get, insert and update",
       claim => "Throughput grows with the nodes up to about 60 of them. Of weft: an operation "
       "takes the same processor time, within 10 %, on 4 and on 24 nodes, and never more than "
       "1,000 messages wait for one process.",
       cells => cells("riak (get|insert|update) [0-9]"),
       findings => fun(Results) -> growth(?OPERATIONS, Results) ++ waits(?OPERATIONS, Results) end,
       charts => fun(Results) -> growth_charts(?OPERATIONS, Results) end,
       not_shown => "Growth: all nodes share two cores, so that more of them can not do more "
       "(with quotas: riak_throughput_quota). The processor time of the store for each "
       "operation is what more nodes cost; it has what nodes do when they have nothing to do. "
       "While one distribution is measured nodes of the other one are there, idle. How many "
       "messages wait is looked at again and again, for processes with a name, which partitions "
       "have."},
     #{id => "riak_throughput_quota",
       where => "Riak talk 2013, with quotas: throughput of get, insert and update",
       claim => "Throughput grows linearly with the nodes up to about 60 of them.",
       cells => cells("riak (get|insert|update) [0-9]")
       ++ ["--quota", "4", "--variants", "weft_mesh,stock_mesh"],
       minutes => 60,
       findings => fun(Results) ->
                       weft_papers_verdict:quotas(Results, fun() -> rising(Results) end)
                   end,
       charts => fun(Results) -> rates_charts(?OPERATIONS, Results) end,
       not_shown => "60 nodes: 24, and 8 of clients, each with 4 % of a core. Values are in "
       "memory. While one distribution is measured nodes of the other one are there, idle. "
       "Linearly: so many times the nodes do at least 0.7 times as many times the operations."},
     #{id => "riak_cost", where => "Riak talk 2013: scalability, what an operation costs",
       claim => "Throughput grows with the nodes up to about 60 of them, so an operation takes no "
       "more with more nodes. Of weft, for programs that use the client of the store: with the "
       "same load for each node an operation takes the same processor time, within 10 %, on 4 "
       "and on 24 nodes.",
       cells => cells("riak (get|insert|update) rate"),
       findings => fun(Results) -> growth(?AT_A_RATE, Results) end,
       charts => fun(Results) -> growth_charts(?AT_A_RATE, Results) end,
       not_shown => "Full load of each node: all nodes share two cores, so 24 of them have to "
       "be asked for little. The same data, and the same number of partitions, are on few nodes "
       "and on many. While one distribution is measured nodes of the other one are there, idle."}].

losses_figures() ->
    [#{id => "riak_elasticity", where => "Riak talk 2013: availability and elasticity",
       claim => "While nodes fail and come back, 37 operations fail beside 3.41 million that do "
       "not, and throughput grows when nodes come back. Of weft: it is back at 95 % after a kill "
       "and after a start.",
       cells => cells("riak elasticity"), findings => fun elastic/1,
       charts => fun elastic_charts/1,
       not_shown => "Millions of operations (riak_availability), and nodes with processors of "
       "their own: those that are left get the time of one that was killed, and a node that "
       "starts takes it from them."},
     #{id => "riak_availability", where => "Riak talk 2013: availability, of millions of requests",
       claim => "While nodes fail and come back, 37 operations fail beside 3.41 million that do "
       "not. Of weft, for programs that use the client of the store: of 3 million or more "
       "operations at most 1 of 100,000 fails.",
       cells => cells("riak availability"), findings => fun available/1,
       charts => fun available_charts/1,
       not_shown => "Nodes that are away for long, and hosts that are cut off. One node is "
       "killed at a time, never the first one, and the next one when the copies are back."}].

cells(Title) -> ["--suites", "store", "--only", "store: " ++ Title].

%% ---- one supervisor ----

wall(Results) ->
    Sizes = lists:usort([Size || {_, <<"riak_spawned">>, _, _, Size, _}
                                     <- weft_report_results:cells(Results)]),
    lists:append([wall(Size, Results) || Size <- Sizes]).

wall(Size, Results) ->
    Pairs = [{Clients, Cell, setelement(2, Cell, <<"riak_supervised">>)}
             || {Clients, Cell} <- of_size(<<"riak_spawned">>, Size, Results)],
    [{case Clients >= ?MANY of
          true -> weft_papers_verdict:at_least(?WON, Ratio);
          false -> open
      end,
      ["store of ", on(Size), ", ", clients(Clients), ": without the supervisor ",
       times(Times), " the throughput; with it the p99 is ", times(P99), " as long (p50 ",
       times(P50), "), and at most ", number(waiting(Supervised, Results)), " messages wait for "
       "it, ", number(waiting(Spawned, Results)), " without"]}
     || {Clients, Spawned, Supervised} <- Pairs,
        {ok, Ratio} = Times <- [of_other(Spawned, Supervised, <<"calls_per_s">>, Results)],
        P50 <- [of_other(Supervised, Spawned, <<"latency_p50_us">>, Results)],
        P99 <- [of_other(Supervised, Spawned, <<"latency_p99_us">>, Results)]].

%% As many requests per second with the supervisor and without.
same_load(Results) ->
    [{weft_papers_verdict:at_least(?LONGER, P99),
      ["store of ", on(Size), ", ", clients(Clients), ", ",
       value(median(Spawned, <<"asked_per_s">>, Results), "1/s"), " asked for: p99 ",
       value(median(Spawned, <<"latency_p99_us">>, Results), "us"), "; with the supervisor, ",
       value(median(Supervised, <<"asked_per_s">>, Results), "1/s"), " asked for, ",
       value(median(Supervised, <<"latency_p99_us">>, Results), "us"), ", ", times({ok, P99}),
       " as long; at most ", number(waiting(Supervised, Results)), " messages wait for it"]}
     || {_, <<"riak_spawned_rate">>, _, Clients, Size, _} = Spawned
            <- lists:sort(weft_report_results:cells(Results)),
        Supervised <- [setelement(2, Spawned, <<"riak_supervised_rate">>)],
        {ok, P99} <- [of_other(Supervised, Spawned, <<"latency_p99_us">>, Results)]].

of_other(Cell, Other, Metric, Results) ->
    weft_report_results:ratio({Cell, ?VARIANT, Metric}, {Other, ?VARIANT, Metric}, Results).

times(none) -> "an unknown number of times";
times({ok, #{median := Median} = Ratio}) ->
    [weft_report_words:ratio(Median), " times", weft_papers_verdict:interval(Ratio)].

waiting(Cell, Results) -> median(Cell, <<"mailbox_max">>, Results).

wall_charts(Results) ->
    Cells = weft_report_results:cells(Results),
    Sizes = lists:usort([Size || {_, <<"riak_spawned">>, _, _, Size, _} <- Cells]),
    [weft_report_chart:lines([on(Size), ", ", weft_report_words:metric(Metric)], "clients", log,
                             Metric, weft_report_words:metric(Metric),
                             [{Name, measured(of_size(Workload, Size, Results), Metric, Results)}
                              || {Workload, Name} <- modes()])
     || Size <- Sizes, Metric <- [<<"calls_per_s">>, <<"latency_p99_us">>]]
        ++ [over_time(["messages that wait, ", on(Size), ", ", clients(Clients)],
                      <<"mailbox">>, "messages",
                      [{Name, {store, Workload, Size, Clients}} || {Workload, Name} <- modes()],
                      Results)
            || Size <- Sizes, {Clients, _} <- last(of_size(<<"riak_spawned">>, Size, Results))].

modes() -> [{<<"riak_spawned">>, "spawned"}, {<<"riak_supervised">>, "one supervisor"}].

%% Cells of a store of that size, by the number of clients.
of_size(Workload, Size, Results) ->
    lists:sort([{Clients, Cell} || {_, Of, _, Clients, Count, _} = Cell
                                       <- weft_report_results:cells(Results),
                                   Of =:= Workload, Count =:= Size]).

%% ---- more nodes ----

growth(Operations, Results) ->
    [{weft_papers_verdict:within({1 - ?SAME, 1 + ?SAME}, Ratio),
      [weft_report_words:workload(Operation), ": ", grown(Cells, ?VARIANT, Ratio, Results),
       "; throughput ",
       rates(Cells, <<"calls_per_s">>, Results), asked(Cells, Results), "; clients take at most ",
       value(lists:max([median(Cell, <<"clients_cpu_us">>, Results) || {_, Cell} <- Cells]), "us")]}
     || {Operation, Cells, Ratio} <- grown(Operations, ?VARIANT, Results)]
        ++ [{open, ["on stock distribution, ", weft_report_words:workload(Operation), ": ",
                    grown(Cells, ?STOCK, Ratio, Results)]}
            || {Operation, Cells, Ratio} <- grown(Operations, ?STOCK, Results)]
        ++ [{open, counts(Cells, Results)}
            || {_Get, Cells, _} <- grown([hd(Operations)], ?VARIANT, Results),
               {_, First} <- [hd(Cells)], median(First, <<"writes_per_call">>, Results) > 0].

%% In any repetition, with any number of nodes.
waits(Operations, Results) ->
    case [{High, Clients, median(Cell, <<"mailbox_nodes">>, Results) > 1}
          || Operation <- Operations,
             {_, {_, _, _, _, Clients, _} = Cell} <- of_operation(Operation, Results),
             {ok, #{high := High}} <- [weft_report_results:measured(
                                         Cell, ?VARIANT, <<"mailbox_max">>, Results)]] of
        [] -> [];
        All ->
            {Waiting, Clients, OfAll} = lists:unzip3(All),
            [{weft_papers_verdict:is(lists:max(Waiting) =< ?WAITING_MAX),
              ["at most ", number(lists:max(Waiting)), " messages wait for one process, of ",
               case lists:all(fun(Is) -> Is end, OfAll) of
                   true -> "all nodes";
                   %% Earlier runs have looked at the first one.
                   false -> "one node"
               end, " of the store. Clients wait for their answers, so at most ",
               number(lists:max(Clients)), " requests run at a time"]}]
    end.

grown(Operations, Variant, Results) ->
    [{Operation, Cells, Ratio}
     || Operation <- Operations,
        [{_, First} | _] = Cells <- [of_operation(Operation, Results)],
        {_, Last} <- last(Cells), Last =/= First,
        {ok, Ratio} <- [weft_report_results:ratio({Last, Variant, <<"store_cpu_us">>},
                                                  {First, Variant, <<"store_cpu_us">>}, Results)]].

grown(Cells, Variant, Ratio, Results) ->
    [lists:join(", ", [[value(median(Cell, Variant, <<"store_cpu_us">>, Results), "us"), " with ",
                        on(Nodes)] || {Nodes, Cell} <- Cells]),
     " for an operation, in the end ", times({ok, Ratio}), " that of the beginning"].

%% Of the fewest and of the most nodes.
counts(Cells, Results) ->
    [lists:join(", ", [[Name, " ", lists:join(" and ", [value(median(Cell, Metric, Results), "")
                                                        || {_, Cell} <- [hd(Cells) | last(Cells)]])]
                       || {Metric, Name} <- [{<<"writes_per_call">>, "writes to sockets"},
                                             {<<"switches_per_call">>, "context switches"},
                                             {<<"reductions_per_call">>, "reductions"},
                                             {<<"collections_per_call">>, "collections"}]]),
     " for a get with the fewest and with the most nodes; at rest these take ",
     lists:join(" and ", [value(median(Cell, <<"store_rest_percent">>, Results), "%")
                          || {_, Cell} <- [hd(Cells) | last(Cells)]]), " of a core"].

of_operation(Operation, Results) ->
    lists:sort([{Nodes, Cell} || {_, Of, _, Nodes, _, _} = Cell
                                     <- weft_report_results:cells(Results), Of =:= Operation]).

rates(Cells, Metric, Results) ->
    lists:join(", ", [value(median(Cell, Metric, Results), "1/s") || {_, Cell} <- Cells]).

asked(Cells, Results) ->
    [[" of ", rates(Cells, <<"asked_per_s">>, Results), " asked for"]
     || {_, First} <- [hd(Cells)], median(First, <<"asked_per_s">>, Results) > 0].

%% What nodes that have a core each would do.
rising(Results) ->
    [{weft_papers_verdict:at_least(?LINEAR * Most / Fewest, Ratio),
      [weft_report_words:workload(Operation), ", ", weft_report_words:variant(Variant), ": ",
       lists:join(", ", [[value(median(Cell, Variant, Metric, Results), "1/s"), " with ", on(Nodes)]
                         || {Nodes, Cell} <- Cells]),
       ", ", times({ok, Ratio}), " as much with ", weft_report_words:ratio(Most / Fewest),
       " times the nodes"]}
     || Metric <- [<<"calls_per_s">>], Operation <- ?OPERATIONS, Variant <- [?VARIANT, ?STOCK],
        [{Fewest, First}, _ | _] = Cells
            <- [[One || {_, Cell} = One <- of_operation(Operation, Results),
                        median(Cell, Variant, Metric, Results) > 0]],
        {Most, Last} <- last(Cells),
        {ok, Ratio} <- [weft_report_results:ratio({Last, Variant, Metric},
                                                  {First, Variant, Metric}, Results)]].

growth_charts(Operations, Results) ->
    [over_nodes(Operations, <<"store_cpu_us">>, Results) | rates_charts(Operations, Results)].

rates_charts(Operations, Results) -> [over_nodes(Operations, <<"calls_per_s">>, Results)].

over_nodes(Operations, Metric, Results) ->
    weft_report_chart:lines(weft_report_words:metric(Metric), "nodes", linear, Metric,
                            weft_report_words:metric(Metric),
                            [{weft_report_words:workload(Operation),
                              measured(of_operation(Operation, Results), Metric, Results)}
                             || Operation <- Operations]).

%% ---- losses ----

elastic(Results) ->
    lists:append(
      [[{weft_papers_verdict:is(is_back(Cell, Metric, Results)),
         [on(Nodes), ", ", number(median(Cell, <<"kills">>, Results)), " ", What, ": ",
          back(Cell, Metric, Results)]}
        || {Metric, What} <- [{<<"recovery_kill_s">>, "killed"},
                              {<<"recovery_start_s">>, "started again"}]]
       ++ [{open, [number(median(Cell, <<"failed_operations">>, Results)), " operations failed "
                   "and ", number(median(Cell, <<"calls">>, Results)), " did not; a client that "
                   "loses its node counts one"]}]
       || {_, <<"riak_elasticity">>, _, Nodes, _, _} = Cell <- weft_report_results:cells(Results),
          weft_report_results:measured(Cell, ?VARIANT, <<"calls">>, Results) =/= none]).

%% In each repetition.
is_back(Cell, Metric, Results) ->
    times_measured(Cell, Metric, Results) =:= times_measured(Cell, <<"calls">>, Results).

times_measured(Cell, Metric, Results) ->
    case weft_report_results:measured(Cell, ?VARIANT, Metric, Results) of
        {ok, #{count := Count}} -> Count;
        none -> 0
    end.

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
    [over_time(["operations in each second, ", on(Nodes)], <<"operations_per_s">>,
               "operations", [{"operations", {store, Workload, Clients, Nodes}}], Results)
     || {_, Of, _, Nodes, Clients, _} <- weft_report_results:cells(Results), Of =:= Workload].

%% ---- availability ----

%% Of all repetitions together.
available(Results) ->
    [{available_verdict(Done, Failed, Lost, Fewest),
      [on(Nodes), ", ", number(sum(Cell, <<"kills">>, Results)), " kills and starts",
       weft_papers_verdict:no_failures(Fewest), ": ",
       number(Failed), " operations failed and ", number(Done), " did not; ",
       number(sum(Cell, <<"repeated_operations">>, Results)), " times the client asked another "
       "node after an error", read_back(Lost, sum(Cell, <<"read_keys">>, Results))]}
     || {_, <<"riak_availability">>, _, Nodes, _, _} = Cell <- weft_report_results:cells(Results),
        Done <- [sum(Cell, <<"calls">>, Results)], Done > 0,
        Failed <- [sum(Cell, <<"failed_operations">>, Results)],
        Lost <- [sum(Cell, <<"lost_keys">>, Results)],
        Fewest <- [fewest(Cell, <<"kills">>, Results)]].

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

fewest(Cell, Metric, Results) ->
    case weft_report_results:measured(Cell, ?VARIANT, Metric, Results) of
        {ok, #{low := Low}} -> Low;
        none -> 0
    end.

sum(Cell, Metric, Results) ->
    case weft_report_results:measured(Cell, ?VARIANT, Metric, Results) of
        {ok, #{sum := Sum}} -> Sum;
        none -> 0
    end.

%% ---- words and points ----

%% One line for each cell, which is named by its workload, its streams and its pairs.
over_time(Title, Metric, YLabel, Named, Results) ->
    weft_report_chart:lines(
      Title, "seconds", linear, Metric, YLabel,
      [{Name, [{AtMs / 1000, #{median => Value, low => Value, high => Value, count => 1}}
               || {AtMs, Value} <- weft_report_results:series(Cell, ?VARIANT, Metric, Results)]}
       || {Name, {store, Workload, Streams, Pairs}} <- Named,
          {_, W, _, P, S, _} = Cell <- weft_report_results:cells(Results),
          {W, P, S} =:= {Workload, Pairs, Streams}]).

measured(Cells, Metric, Results) ->
    [{X, Measured} || {X, Cell} <- Cells,
                      {ok, Measured} <- [weft_report_results:measured(Cell, ?VARIANT, Metric,
                                                                      Results)]].

median(Cell, Metric, Results) -> median(Cell, ?VARIANT, Metric, Results).

median(Cell, Variant, Metric, Results) ->
    case weft_report_results:measured(Cell, Variant, Metric, Results) of
        {ok, #{median := Median}} -> Median;
        none -> 0
    end.

last([]) -> [];
last(List) -> [lists:last(List)].

value(Value, Unit) -> weft_report_words:value(Value, Unit).

number(Value) -> integer_to_list(round(Value)).

on(1) -> "1 node";
on(Count) -> [integer_to_list(Count), " nodes"].

clients(1) -> "1 client";
clients(Count) -> [integer_to_list(Count), " clients"].
