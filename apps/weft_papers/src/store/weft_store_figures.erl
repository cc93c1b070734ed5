%% SPDX-License-Identifier: Apache-2.0
%% @doc What the Riak talk (A. Ghaffari, N. Chechina, P. Trinder: "Scalable Persistent Storage for
%% Erlang: Theory and Practice", 2013) says of scalability, and what is measured here with the store
%% of weft (`weft_store_workload'). What it says of availability is in `weft_store_losses_figures'.
-module(weft_store_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).
%% For figures of the same store.
-export([cells/1, over_time/5, median/3, value/2, number/1, on/1]).

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
%% What more nodes cost, or do, is judged from so many on.
-define(UP_TO, 24).
%% Messages that wait for one process.
-define(WAITING_MAX, 1000).
-define(OPERATIONS, [<<"riak_get">>, <<"riak_insert">>, <<"riak_update">>]).
%% They are also measured on disk, in one size.
-define(WITH_DISK, ?OPERATIONS ++ [<<"riak_insert_disk">>]).
-define(AT_A_RATE, [<<"riak_get_rate">>, <<"riak_insert_rate">>, <<"riak_update_rate">>]).
-define(IN_RINGS, [<<"riak_get_rings">>, <<"riak_insert_rings">>, <<"riak_update_rings">>]).

%% @private
figures() -> one_supervisor_figures() ++ growth_figures() ++ cost_figures().

one_supervisor_figures() ->
    [#{id => "riak_wall", where => "Riak talk 2013, the limit of 60 nodes: one supervisor",
       claim => "Riak stops growing at about 60 nodes, and neither processors nor memory, disk or "
       "network are why. (Its authors found servers through which all requests went, and later "
       "releases have none.) Of weft: without such a supervisor the store does 3 times as much for "
       "64 clients; with it the p99 of as many requests per second is 10 times as long.",
       bound => io_lib:format("With ~b clients or more at least ~b times the throughput without "
                              "the supervisor; and with it a p99 at least ~b times as long, at the "
                              "same rate.", [?MANY, ?WON, ?LONGER]),
       cells => cells("riak (spawned|supervised)"),
       findings => fun(Results) ->
                       wall(Results) ++ same_load(Results) ++ supervisors(Results)
                           ++ wall_profiles(Results)
                   end,
       charts => fun wall_charts/1,
       not_shown => "60 nodes, and hosts that wait for the supervisor: on two cores all else of "
       "a request takes so much that a supervisor is seldom what is waited for. The same load "
       "are 70 % of the requests per second that the store does as fast as it can without it; "
       "times count from when requests are due. Where that is about all that is done with the "
       "supervisor, requests wait for longer and longer, and how many times as long depends on "
       "how long is measured. Each node has a supervisor of its own, so it is more cores of a node "
       "that come nearer to the wall. How many cores one supervisor can keep busy is told where "
       "it was measured; if all nodes went through one, it would be so many nodes of one core. "
       "How busy processors, memory, disk and network are: what an operation takes of each is "
       "told where it was counted. Values are in memory only."}].

growth_figures() ->
    [#{id => "riak_throughput", where => "Riak talk 2013: throughput of get, insert and update",
       claim => "Throughput grows with the nodes up to about 60 of them. Of weft: an operation "
       "takes the same processor time, within 10 %, on 4 and on 24 nodes, and never more than "
       "1,000 messages wait for one process.",
       bound => [same_time(), io_lib:format(" At most ~b messages wait, in each repetition. Stock "
                                            "is not judged.", [?WAITING_MAX])],
       cells => cells("riak (get|insert( disk)?|update) [0-9]"),
       findings => fun(Results) ->
                       growth(?OPERATIONS, Results) ++ waits(?WITH_DISK, Results)
                           ++ profiles(?WITH_DISK, Results)
                   end,
       charts => fun(Results) ->
                     growth_charts(?OPERATIONS, Results) ++ profile_charts(?OPERATIONS, Results)
                 end,
       not_shown => "Growth: all nodes share two cores, so that more of them can not do more "
       "(with quotas: riak_throughput_quota). The processor time of the store for each "
       "operation is what more nodes cost; it has what nodes do when they have nothing to do. "
       "While one distribution is measured nodes of the other one are there, idle. How many "
       "messages wait is looked at again and again, for processes without a name once a second; "
       "what comes and goes between two looks is not seen. Where it was counted, it is told "
       "what an operation takes of processors, network, disk and memory; how busy these are is "
       "not. With copies on disk inserts are measured, on 4 nodes which share one disk."},
     #{id => "riak_throughput_quota",
       where => "Riak talk 2013, with quotas: throughput of get, insert and update",
       claim => "Throughput grows linearly with the nodes up to about 60 of them.",
       bound => [io_lib:format("On both carriers: so many times the nodes do at least ~p times as "
                               "many times the operations.", [?LINEAR]),
                 weft_papers_remarks:up_to(?UP_TO, "nodes")],
       cells => cells("riak (get|insert|update) [0-9]")
       ++ ["--quota", "4", "--variants", "weft_mesh,stock_mesh"],
       minutes => 60,
       findings => fun(Results) ->
                       weft_papers_verdict:quotas(Results, fun() -> rising(Results) end)
                   end,
       charts => fun(Results) -> rates_charts(?OPERATIONS, Results) end,
       not_shown => "60 nodes: 24, and 8 of clients, each with 4 % of a core. Values are in "
       "memory. While one distribution is measured nodes of the other one are there, idle."}].

cost_figures() ->
    [#{id => "riak_cost", where => "Riak talk 2013: scalability, what an operation costs",
       claim => "Throughput grows with the nodes up to about 60 of them, so an operation takes no "
       "more with more nodes. Of weft, for programs that use the client of the store: with the "
       "same load for each node an operation takes the same processor time, within 10 %, on 4 "
       "and on 24 nodes.",
       bound => [same_time(), " Stock is not judged."],
       cells => cells("riak (get|insert|update) rate"),
       findings => fun(Results) -> growth(?AT_A_RATE, Results) end,
       charts => fun(Results) -> growth_charts(?AT_A_RATE, Results) end,
       not_shown => "Full load of each node: all nodes share two cores, so 24 of them have to "
       "be asked for little. The same data, and the same number of partitions, are on few nodes "
       "and on many. With 24 nodes the machine has six times the load that it has with 4 (with "
       "the same one: riak_rings). While one distribution is measured nodes of the other one are "
       "there, idle."},
     #{id => "riak_rings", where => "Riak talk 2013: scalability, at the same load of the machine",
       claim => "Throughput grows with the nodes up to about 60 of them, so an operation takes no "
       "more with more nodes. Of weft, for programs that use the client of the store: with the "
       "same load for each node and for the machine an operation takes the same processor time, "
       "within 10 %, in a ring of 24 nodes as in rings of 4.",
       bound => [io_lib:format("Processor time of the store for an operation differs by at most "
                               "~b % between the smallest and the largest rings.",
                               [round(100 * ?SAME)]),
                 weft_papers_remarks:up_to(?UP_TO, "nodes of a ring")],
       cells => cells("riak (get|insert|update) rings"),
       findings => fun(Results) -> growth(?IN_RINGS, Results) ++ profiles(?IN_RINGS, Results) end,
       charts => fun(Results) -> [over_nodes(?IN_RINGS, <<"store_cpu_us">>, Results)] end,
       not_shown => "Full load of each node: 24 of them and 12 of clients share two cores, so they "
       "are asked for little. They are one ring or six, and what differs is with how many others "
       "a node works. All 36 are connected with each other in both. Each node has as many keys, "
       "and 4 partitions in small rings, 5 or 6 in the large one. Stock is not measured."}].

same_time() ->
    [io_lib:format("Processor time of the store for an operation differs by at most ~b % between "
                   "the fewest and the most nodes.", [round(100 * ?SAME)]),
     weft_papers_remarks:up_to(?UP_TO, "nodes")].

%% @private
-spec cells(Title :: string()) -> [string()].
cells(Title) -> ["--suites", "store", "--only", "store: " ++ Title].

%% ---- one supervisor ----

wall(Results) -> lists:append([wall(Size, Results) || Size <- wall_sizes(Results)]).

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

%% What it can start in a second, and how many cores would do all else of as many requests.
supervisors(Results) ->
    [{open, ["store of ", on(Size), ", ", clients(Clients), ": a supervisor takes ",
             value(Us, "us"), " to start a request and to see its end, so it starts at most ",
             value(1.0e6 / Us, "1/s"), "; for a request the store takes ",
             value(median(Spawned, <<"store_cpu_us">>, Results), "us"),
             " of processors, so one supervisor can keep ", weft_report_words:ratio(Median),
             weft_papers_verdict:interval(Cores), " cores busy"]}
     || Size <- wall_sizes(Results),
        {Clients, Spawned} <- last(of_size(<<"riak_spawned">>, Size, Results)),
        Supervised <- [setelement(2, Spawned, <<"riak_supervised">>)],
        {ok, #{median := Median} = Cores} <- [weft_report_results:ratio(
                                                {Spawned, ?VARIANT, <<"store_cpu_us">>},
                                                {Supervised, ?VARIANT, <<"supervisor_us">>},
                                                Results)],
        Us <- [median(Supervised, <<"supervisor_us">>, Results)]].

wall_sizes(Results) ->
    lists:usort([Size || {_, <<"riak_spawned">>, _, _, Size, _}
                             <- weft_report_results:cells(Results)]).

of_other(Cell, Other, Metric, Results) ->
    weft_report_results:ratio({Cell, ?VARIANT, Metric}, {Other, ?VARIANT, Metric}, Results).

times(none) -> "an unknown number of times";
times({ok, #{median := Median} = Ratio}) ->
    [weft_report_words:ratio(Median), " times", weft_papers_verdict:interval(Ratio)].

waiting(Cell, Results) -> median(Cell, <<"mailbox_max">>, Results).

wall_charts(Results) ->
    Sizes = wall_sizes(Results),
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
    [{weft_papers_verdict:up_to(?UP_TO, most(Cells),
                                weft_papers_verdict:within({1 - ?SAME, 1 + ?SAME}, Ratio)),
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
    case [Cell || Operation <- Operations, {_, Cell} <- of_operation(Operation, Results),
                  waiting_most(Cell, <<"mailbox_max">>, Results) =/= []] of
        [] -> [];
        Cells ->
            Most = lists:max([High || Cell <- Cells,
                                      Metric <- [<<"mailbox_max">>, <<"mailbox_all_max">>],
                                      High <- waiting_most(Cell, Metric, Results)]),
            Clients = [Count || {_, _, _, _, Count, _} <- Cells],
            [{weft_papers_verdict:is(Most =< ?WAITING_MAX),
              ["at most ", number(Most), " messages wait for one process",
               looked_at(Cells, Results), " of the store. Clients wait for their answers, so at "
               "most ", number(lists:max(Clients)), " requests run at a time"]}]
    end.

waiting_most(Cell, Metric, Results) ->
    [High || {ok, #{high := High}} <- [weft_report_results:measured(Cell, ?VARIANT, Metric,
                                                                    Results)]].

%% Earlier runs have looked at processes with a name only, and before that on the first node only.
looked_at(Cells, Results) ->
    [case lists:all(fun(Cell) -> waiting_most(Cell, <<"mailbox_all_max">>, Results) =/= [] end,
                    Cells) of
         true -> "";
         false -> " with a name"
     end,
     case lists:all(fun(Cell) -> median(Cell, <<"mailbox_nodes">>, Results) > 1 end, Cells) of
         true -> ", of all nodes";
         false -> ", of one node"
     end].

grown(Operations, Variant, Results) ->
    [{Operation, Cells, Ratio}
     || Operation <- Operations,
        [{_, First} | _] = Cells <- [of_operation(Operation, Results)],
        {_, Last} <- last(Cells), Last =/= First,
        {ok, Ratio} <- [weft_report_results:ratio({Last, Variant, <<"store_cpu_us">>},
                                                  {First, Variant, <<"store_cpu_us">>}, Results)]].

grown(Cells, Variant, Ratio, Results) ->
    [lists:join(", ", [[value(median(Cell, Variant, <<"store_cpu_us">>, Results), "us"), " ",
                        of_nodes(Cell)] || {_, Cell} <- Cells]),
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
    [{weft_papers_verdict:up_to(?UP_TO, Most,
                                weft_papers_verdict:at_least(?LINEAR * Most / Fewest, Ratio)),
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

%% ---- processors, network, disk, memory ----

%% With the fewest and with the most nodes. Earlier runs have counted processor time only.
profiles(Operations, Results) ->
    [{open, [weft_report_words:workload(Operation), ": ",
             lists:join("; ", [[of_nodes(Cell), " ", profile(Cell, Results)]
                               || {_, Cell} <- lists:usort([hd(Cells) | last(Cells)])])]}
     || Operation <- Operations,
        [_ | _] = Cells <- [[One || {_, Cell} = One <- of_operation(Operation, Results),
                                    is_profiled(Cell, Results)]]].

%% Both ways of starting requests, with the most clients.
wall_profiles(Results) ->
    [{open, ["store of ", on(Size), ", ", clients(Clients), ": ",
             lists:join("; ", [[Name, " ", profile(Cell, Results)] || {Name, Cell} <- Both])]}
     || Size <- wall_sizes(Results),
        {Clients, Spawned} <- last(of_size(<<"riak_spawned">>, Size, Results)),
        Both <- [[{Name, setelement(2, Spawned, Workload)} || {Workload, Name} <- modes()]],
        lists:all(fun({_, Cell}) -> is_profiled(Cell, Results) end, Both)].

is_profiled(Cell, Results) ->
    weft_report_results:measured(Cell, ?VARIANT, <<"call_received_bytes">>, Results) =/= none.

%% Not all systems count what is written.
profile(Cell, Results) ->
    [value(median(Cell, <<"store_cpu_us">>, Results), "us"), " of processors, ",
     value(median(Cell, <<"call_received_bytes">>, Results), "bytes"), " received",
     [[" and ", value(Written, "bytes"), " written to disk"]
      || {ok, #{median := Written}} <- [weft_report_results:measured(
                                          Cell, ?VARIANT, <<"call_written_bytes">>, Results)]],
     " for an operation, and ", value(median(Cell, <<"store_node_bytes">>, Results), "bytes"),
     " of memory in each node"].

profile_charts(Operations, Results) ->
    [over_nodes(Operations, Metric, Results)
     || Metric <- [<<"call_received_bytes">>, <<"store_node_bytes">>]].

%% ---- words and points ----

%% @private One line for each cell, which is named by its workload, its streams and its pairs.
-spec over_time(Title :: unicode:chardata(), Metric :: binary(), YLabel :: string(),
                [{Name :: string(), {store, Workload :: binary(), Streams :: non_neg_integer(),
                                     Pairs :: non_neg_integer()}}],
                weft_report_results:results()) -> weft_report_svg:chart().
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

%% @private Of weft; zero if it was not measured.
-spec median(weft_report_record:cell(), Metric :: binary(), weft_report_results:results()) ->
          number().
median(Cell, Metric, Results) -> median(Cell, ?VARIANT, Metric, Results).

median(Cell, Variant, Metric, Results) ->
    case weft_report_results:measured(Cell, Variant, Metric, Results) of
        {ok, #{median := Median}} -> Median;
        none -> 0
    end.

most(Cells) ->
    {Most, _} = lists:last(Cells),
    Most.

last([]) -> [];
last(List) -> [lists:last(List)].

%% @private
-spec value(number(), Unit :: string()) -> iodata().
value(Value, Unit) -> weft_report_words:value(Value, Unit).

%% @private
-spec number(number()) -> string().
number(Value) -> integer_to_list(round(Value)).

%% @private
-spec on(Nodes :: pos_integer()) -> iolist().
on(1) -> "1 node";
on(Count) -> [integer_to_list(Count), " nodes"].

of_nodes({_, Workload, _, Nodes, _, _}) ->
    [case lists:member(Workload, ?IN_RINGS) of true -> "in rings of "; false -> "with " end,
     on(Nodes)].

clients(1) -> "1 client";
clients(Count) -> [integer_to_list(Count), " clients"].
