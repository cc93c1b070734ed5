%% SPDX-License-Identifier: Apache-2.0
%% @doc What N. Chechina et al. (IEEE TPDS 28(8), 2017, section 6.8) say of the cost of monitoring
%% by WombatOAM, and what that of weft costs: Figs. 18 and 19.
-module(weft_watched_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(METRIC, <<"watched_percent">>).
-define(RATE, <<"watched_rate_percent">>).
%% "Not intrusive, at 1.33 % maximum."
-define(MOST, 101.33).
-define(RATE_LEAST, 100 / 1.0133).
%% Deployment takes as long if it differs by at most so much.
-define(SAME, {95, 105}).

%% @private
figures() ->
    [#{id => "sd_18", where => "SD Erlang 2017, Fig. 18: monitoring and the time of a deployment",
       claim => "Monitoring has no impact on how long it takes to deploy nodes.",
       bound => lists:concat(["It takes ", element(1, ?SAME), " to ", element(2, ?SAME),
                              " % of the time without."]),
       cells => ["--suites", "watched", "--only", "watched: watched deployment"],
       findings => fun(Results) -> found(<<"watched_deploy">>, ?METRIC, Results) end,
       charts => fun deployment_charts/1,
       not_shown => "Up to 6,144 nodes on the authors' cluster Athos, one for each core (their "
       "10,000 nodes, three on a core, were not monitored): up to 20 here, on the cores of one "
       "machine, which start their agents and metrics too. prometheus.erl has the configuration "
       "of the guide: without it its start takes longer."},
     #{id => "sd_19", where => "SD Erlang 2017, Fig. 19: monitoring and a program that runs",
       claim => "Monitoring costs ACO 1.33 % at most.",
       bound => io_lib:format("Processor time with monitoring is at most ~.2f % of that without, "
                              "and throughput at least ~.2f %.", [?MOST, ?RATE_LEAST]),
       cells => ["--suites", "watched", "--only", "watched: watched (Instant|ACO)"],
       findings => fun(Results) ->
                       lists:append([found(Workload, Metric, Results)
                                     || Workload <- [<<"watched_aco">>, <<"watched_im">>],
                                        Metric <- [?METRIC, ?RATE]])
                   end,
       charts => fun running_charts/1,
       not_shown => "Nodes with a core of their own: several share one here, and each is "
       "monitored. Monitoring is an agent and metrics on each node, a scrape every five seconds, "
       "a dashboard and its browser, which are counted as parts of a node. Compared are processor "
       "time, for each message or schedule, and throughput. The Instant Messenger is not in the "
       "paper."}].

found(Workload, Metric, Results) ->
    [{verdict(Workload, Metric, Absolute),
      io_lib:format("~ts: ~ts~ts % of that without~ts",
                    [weft_report_words:cell(Cell), what(Metric), number(Median),
                     within(Absolute)])}
     || {_, Of, _, _, _, _} = Cell <- lists:sort(weft_report_results:cells(Results)),
        Of =:= Workload, Variant <- weft_report_results:variants(Cell, Results),
        {ok, #{median := Median} = Absolute} <-
            [weft_report_results:absolute({Cell, Variant, Metric}, Results)]].

verdict(<<"watched_deploy">>, _, Ratio) -> weft_papers_verdict:within(?SAME, Ratio);
verdict(_, ?METRIC, Ratio) -> weft_papers_verdict:at_most(?MOST, Ratio);
verdict(_, ?RATE, Ratio) -> weft_papers_verdict:at_least(?RATE_LEAST, Ratio).

what(?METRIC) -> "";
what(?RATE) -> "throughput ".

within(#{interval := none}) -> "";
within(#{interval := {Low, High}}) ->
    io_lib:format(" (~ts to ~ts)", [number(Low), number(High)]).

number(Percent) -> io_lib:format("~.1f", [float(Percent)]).

%% No impact is as long as without.
deployment_charts(Results) ->
    [weft_report_chart:said_level("no impact, the paper's text", 100, "as long as without", Chart)
     || Chart <- charts([<<"watched_deploy">>], "nodes", Results)].

%% The text (section 6.8) speaks of ACO.
running_charts(Results) ->
    [weft_report_chart:said_level("at most, the paper's text", ?MOST, "1.33 % more", Chart)
     || Chart <- charts([<<"watched_aco">>], "nodes", Results)]
        ++ charts([<<"watched_im">>], "nodes", Results).

charts(Workloads, Axis, Results) ->
    [weft_report_chart:over(fun({_, _, _, Nodes, _, _}) -> Nodes end, Axis,
                            [Cell || {_, Of, _, _, _, _} = Cell
                                         <- weft_report_results:cells(Results),
                                     Of =:= Workload],
                            ?METRIC, weft_report_words:workload(Workload), Results)
     || Workload <- Workloads].
