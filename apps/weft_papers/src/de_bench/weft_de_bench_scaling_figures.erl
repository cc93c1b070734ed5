%% SPDX-License-Identifier: Apache-2.0
%% @doc The figures of DE-Bench (Ghaffari 2014) that are about scaling, measured so that something
%% can scale: each node has a quota of processor time, as if it was a small host
%% (`weft_bench_quota'). Workers are as fast as they can, as in the paper. Where quotas can not be
%% had nothing is found.
-module(weft_de_bench_scaling_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(FOUND, weft_de_bench_findings).
-define(STOCK, <<"stock_mesh">>).
-define(THROUGHPUT, <<"calls_per_s">>).
-define(PERCENT, "4").
%% Of 10,000 commands so many global ones, and on how many nodes most is done then: what the text of
%% the paper says of the first, and that of the talk of the others.
-define(PEAKS_SAID, [{1, 60}, {33, 70}, {50, 50}, {100, 30}]).
%% N times the nodes do at least so much of N times the work: that is called linear.
-define(LINEAR, 0.7).
%% So many are measured.
-define(UP_TO, 40).
%% Those of a quick run, too, which has numbers of nodes of its own where it has other percentages:
%% what is found takes each of them on several numbers of nodes. A comma would begin another
%% expression.
-define(NODES, "(2|4|8|24|40) nodes").
-define(NOT_SHOWN, "Each node has " ?PERCENT " % of a core, where the paper has a host with eight "
        "cores for each of up to 100 nodes (150 in Fig. 9), and five seconds where it has five "
        "minutes, 20 seconds after 20 others with global commands. A name that is asked for in "
        "that time and has its answer later, or none, counts with the time until then. "
        "A node that has used its share of a twentieth of a second stands still for the "
        "rest of it, so commands that wait for all other nodes wait longer here.").

%% @private
figures() ->
    [global_commands(),
     scaling("riak_quota", "Riak talk 2013, with quotas: register, unregister, whereis",
             <<"de_names">>, ?NODES,
             "With 2 % of global updates the time of register and unregister grows with the nodes; "
             "that of spawn and whereis does not.",
             fun(Results) ->
                 ?FOUND:names(<<"de_names">>, Results)
             end),
     scaling("de_7_quota", "Fig. 7, with quotas: scalability and data size", <<"de_size">>,
             "(10|1000|10000) B. " ?NODES, "Throughput grows with the nodes, the less the larger "
             "the argument: 10 B is best, 10 kB worst.",
             fun(Results) ->
                 grows(<<"de_size">>, Results, fun ?FOUND:less_with_more/2)
             end),
     scaling("de_8_quota", "Fig. 8, with quotas: scalability and computation time",
             <<"de_compute">>, ?NODES ". (10 us|1 ms)",
             "Throughput grows with the nodes, the less the longer a command computes.",
             fun(Results) ->
                 grows(<<"de_compute">>, Results, fun ?FOUND:less_with_more/2)
             end),
     scaling("de_9_quota", "Fig. 9, with quotas: data size and computation time", <<"de_heavy">>,
             ?NODES,
             "With 1,000 B, 1 ms and no global commands throughput grows linearly to 150 nodes.",
             fun(Results) -> grows(<<"de_heavy">>, Results, fun(_, _) -> [] end) end),
     scaling("de_11_quota", "Fig. 11, with quotas: scalability and server process calls",
             <<"de_server">>, ?NODES, "Throughput grows with the nodes, the more the more of "
             "all commands are calls to server processes.",
             fun(Results) ->
                 grows(<<"de_server">>, Results,
                       fun(_, _) -> ?FOUND:more_with_servers(Results) end)
             end)].

global_commands() ->
    Workload = <<"de_global">>,
    (scaling("de_5_quota", "Fig. 5, with quotas: scalability and percentage of global commands",
             Workload,
             "((2|8|24|40) nodes. (0.0|0.01|0.33|0.5|1.0)|(3|6) nodes. (0.0|5.0)) %",
             "The more global commands, the sooner more nodes do not do more: with 0.01 % beyond "
             "60 nodes. Of weft: its names keep throughput flat, within 5 %.",
             fun(Results) -> peaks(Results) ++ ?FOUND:falls_behind(Results) end))#{
      charts := fun(Results) ->
                    [peaks_chart(Results) | weft_report_de_bench:throughput(Workload, Results)]
                end}.

%% Only some of them have names.
names(<<"de_global">>) ->
    " " ++ weft_papers_remarks:names();
names(<<"de_names">>) ->
    names(<<"de_global">>) ++ " Riak and the store of weft: these are the names of DE-Bench. The "
        "store is in riak_throughput_quota.";
names(_Workload) ->
    "".

bound(<<"de_global">>) ->
    ["Of stock: the more global commands, the fewer nodes do most, and with most of them fewer "
     "than with none.", weft_papers_remarks:up_to(?UP_TO, "nodes"), " ", ?FOUND:behind()];
bound(<<"de_names">>) -> ?FOUND:slower_names();
bound(<<"de_heavy">>) -> [linear(), weft_de_bench_doubts:bound()];
bound(<<"de_server">>) -> [linear(), " ", ?FOUND:more()];
bound(_Workload) -> [linear(), " ", ?FOUND:less()].

linear() ->
    [io_lib:format("On each carrier: with most nodes at least ~p of so many times as much is done "
                   "as there are nodes, in terms of the fewest.", [?LINEAR]),
     weft_papers_remarks:up_to(?UP_TO, "nodes")].

%% Three repetitions.
minutes(<<"de_global">>) -> 120;
minutes(<<"de_names">>) -> 32;
minutes(_Workload) -> 24.

scaling(Id, Title, Workload, Cells, Claim, Findings) ->
    #{where := Where} = Figure = weft_de_bench_figures:figure(Id, Title, Workload),
    Only = lists:flatten(["de_bench: ", weft_report_words:workload(Workload), " .*", Cells]),
    Figure#{where := case Title of
                         "Riak" ++ _ -> Title;
                         _ -> Where
                     end,
            cells := ["--suites", "de_bench", "--quota", ?PERCENT, "--only", Only],
            minutes => minutes(Workload), claim => Claim, bound => bound(Workload),
            findings => fun(Results) ->
                            weft_papers_verdict:quotas(Results, fun() -> Findings(Results) end)
                        end,
            not_shown => ?NOT_SHOWN ++ names(Workload),
            charts => fun(Results) -> weft_report_de_bench:throughput(Workload, Results) end}.

grows(Workload, Results, More) ->
    [growth(Workload, Variant, Rates, Parameter, Results)
     || {Variant, Parameter, Rates} <- rates(Workload, Results)] ++ More(Workload, Results).

%% What is measured on several numbers of nodes.
rates(Workload, Results) ->
    [{Variant, Parameter, Rates}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Parameter <- weft_report_de_bench:parameters(Workload, Results),
        [_, _ | _] = Rates <- [?FOUND:keys(Workload, Parameter, Variant, ?THROUGHPUT, Results)]].

growth(Workload, Variant, [{Few, First} | _] = Rates, Parameter, Results) ->
    {Many, Last} = lists:last(Rates),
    Keys = [Key || {_, Key} <- Rates],
    {Verdict, Times} = grown(Many / Few, weft_report_results:ratio(Last, First, Results)),
    {weft_de_bench_doubts:verdict(Keys, weft_papers_verdict:up_to(?UP_TO, Many, Verdict), Results),
     [weft_report_words:variant(Variant), ", ",
      weft_report_de_bench:parameter(Workload, Parameter), ": ", in_words(Rates, Results),
      " nodes", Times, weft_de_bench_doubts:text(Keys, Results)]}.

%% Nothing is so many times as much as nothing.
grown(_NodesTimes, none) ->
    {open, ""};
grown(NodesTimes, {ok, #{median := Times} = Ratio}) ->
    {weft_papers_verdict:at_least(?LINEAR * NodesTimes, Ratio),
     io_lib:format(", ~ts times as much~ts with ~ts times the nodes",
                   [weft_report_words:ratio(Times), weft_papers_verdict:interval(Ratio),
                    weft_report_words:ratio(NodesTimes)])}.

in_words(Rates, Results) ->
    lists:join(", ", [[weft_report_words:value(median(Key, Results), "1/s"), " with ",
                       integer_to_list(Nodes)] || {Nodes, Key} <- Rates]).

median({Cell, Variant, Metric}, Results) ->
    {ok, #{median := Median}} = weft_report_results:measured(Cell, Variant, Metric, Results),
    Median.

%% On how many nodes most is done, from few global commands to many.
peaks(Results) ->
    Workload = <<"de_global">>,
    All = rates(Workload, Results),
    [{case Variant of
          ?STOCK -> weft_de_bench_doubts:verdict(
                      Keys, weft_papers_verdict:up_to(
                              ?UP_TO, lists:max([Nodes || {_, _, Rates} <- Peaks,
                                                          {Nodes, _} <- Rates]),
                              sooner([Nodes || {_, Nodes, _} <- Peaks])), Results);
          _ -> open
      end,
      [weft_report_words:variant(Variant), ", most is done: ",
       lists:join("; ", [[weft_report_de_bench:parameter(Workload, Parameter), " on ",
                          integer_to_list(Nodes), " nodes (", in_words(Rates, Results), ")"]
                         || {Parameter, Nodes, Rates} <- Peaks]),
       weft_de_bench_doubts:text(Keys, Results)]}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        [_, _ | _] = Peaks <- [[{Parameter, peak(Rates, Results), Rates}
                                || {Of, Parameter, Rates} <- All, Of =:= Variant]],
        Keys <- [[Key || {_, _, Rates} <- Peaks, {_, Key} <- Rates]]].

peak(Rates, Results) ->
    {_, Nodes} = lists:max([{median(Key, Results), Nodes} || {Nodes, Key} <- Rates]),
    Nodes.

sooner(Peaks) ->
    weft_papers_verdict:is(lists:reverse(lists:sort(Peaks)) =:= Peaks
                           andalso hd(Peaks) > lists:last(Peaks)).

%% Over the share of global commands, as texts speak of peaks.
peaks_chart(Results) ->
    Workload = <<"de_global">>,
    All = rates(Workload, Results),
    Shares = lists:usort([Parameter || {_, Parameter, _} <- All]),
    Value = fun(Share, Variant) ->
                [{Nodes, Nodes, Nodes, [integer_to_list(Nodes), " nodes"]}
                 || {Of, Parameter, Rates} <- All, Of =:= Variant, Parameter =:= Share,
                    Nodes <- [peak(Rates, Results)]]
            end,
    Chart = weft_report_chart:new("where most is done", "share of global commands",
                                  [weft_report_de_bench:parameter(Workload, Share)
                                   || Share <- Shares], ?THROUGHPUT,
                                  weft_report_chart:series(
                                    Shares, Value,
                                    weft_report_de_bench:variants(Workload, Results))),
    said(Shares, Chart#{y := linear, y_label := "nodes",
                        y_text := fun(Nodes) -> integer_to_list(round(Nodes)) end,
                        description := "On how many nodes most is done, by share of commands."}).

said(Shares, Chart) ->
    case [{X, Nodes, [integer_to_list(Nodes), " nodes"]}
          || {X, {_, Part}} <- lists:enumerate(Shares), {Of, Nodes} <- ?PEAKS_SAID, Of =:= Part] of
        [] -> Chart;
        Peaks -> weft_report_chart:said("the texts of the paper and the talk", Peaks, Chart)
    end.
