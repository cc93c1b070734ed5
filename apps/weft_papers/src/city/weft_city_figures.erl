%% SPDX-License-Identifier: Apache-2.0
%% @doc What N. Chechina et al. (IEEE TPDS 28(8), 2017, section 6.4) say of the City of Sim-Diasca,
%% and what is measured here with the city of `weft_diasca': packets, and, with quotas, time. And
%% how many events per second the engine handles with PHOLD.
-module(weft_city_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(WEATHER, <<"city_weather">>).
-define(EVENTS, <<"events_per_s">>).
%% So many nodes are measured: without quotas, and with them.
-define(UP_TO, 8).
-define(UP_TO_WITH_QUOTAS, 16).
-define(VARIANTS, [<<"stock">>, <<"weft_mesh">>, <<"weft_groups">>, <<"weft_peers">>]).

%% @private
figures() ->
    [#{id => "city", where => "SD Erlang 2017, Figs. 14 and 15: the City of Sim-Diasca",
       claim => "The packets between the nodes get more with each node. 1000 minutes on one node "
       "of 16 cores, less than 300 on 16 nodes: a speed-up of 1.5 on 2 nodes, of 2.2 on 4, of 3.45 "
       "on 16.",
       bound => "Packets are more on each number of nodes than on fewer, on each carrier."
       ++ weft_papers_remarks:up_to(?UP_TO, "nodes"),
       cells => ["--suites", "city", "--only", "city: city( districts)?[^ a-z]"],
       charts => fun charts/1, findings => fun packets/1,
       not_shown => "Speed-up, and runtime: all nodes share the cores of one machine, so more of "
       "them are not faster (with quotas they are: city_quota). Engine and city are smaller than "
       "the original ones."},
     #{id => "city_quota", where => "SD Erlang 2017, Fig. 14, with quotas: speed-up of the City of "
       "Sim-Diasca",
       claim => "The runtime falls up to 16 nodes: a speed-up of 1.5 on 2 nodes, of 2.2 on 4, of "
       "3.45 on 16.",
       bound => "As fast on each number of nodes as on fewer, or faster, on each carrier; so many "
       "times is not judged." ++ weft_papers_remarks:up_to(?UP_TO_WITH_QUOTAS, "nodes"),
       cells => ["--suites", "city", "--quota", "10", "--only", "city: city weather"],
       charts => fun speed_ups/1,
       findings => fun(Results) ->
                       weft_papers_verdict:quotas(Results, fun() -> faster(Results) end)
                   end,
       not_shown => "Nodes of 16 cores: each has 10 % of a core. The city is smaller than the "
       "original one, and ten minutes are simulated; its weather takes 500 times as long to work "
       "out as by default, so that a node alone has most of its time to compute."},
     #{id => "phold", where => "PHOLD (Fujimoto 1990), on the engine of the City",
       claim => "A workload that engines of simulation are compared by. The SD Erlang paper has no "
       "numbers of it.",
       bound => "Nothing, as nothing is claimed.",
       cells => ["--suites", "city", "--only", "city: phold"],
       charts => fun(Results) -> [chart(<<"phold">>, Metric, Results)
                                  || Metric <- [?EVENTS, <<"received_packets">>]] end,
       findings => fun events/1,
       not_shown => "Speed-up: all nodes share the cores of one machine, so more of them are not "
       "faster. An event computes nothing, and all nodes wait for each other in each diasca."}].

events(Results) ->
    [{open, text(<<"phold">>, Variant, [[weft_report_words:value(Rate, "1/s"), on(Nodes)]
                                        || {Nodes, Rate} <- Values])}
     || Variant <- ?VARIANTS, [_ | _] = Values <- [values(<<"phold">>, Variant, ?EVENTS, Results)]].

%% With what the text (section 6.4) says.
speed_ups(Results) ->
    [weft_report_chart:said("the paper's text",
                            [{2, 1.5, "1.5 on 2 nodes"}, {4, 2.2, "2.2 on 4 nodes"},
                             {16, 3.45, "3.45 on 16 nodes"}],
                            weft_papers_speed_up:chart(?WEATHER, Results))].

%% From few nodes to many, all do the same work.
faster(Results) ->
    [{weft_papers_speed_up:rises(?UP_TO_WITH_QUOTAS, SpeedUp), weft_papers_speed_up:text(SpeedUp)}
     || SpeedUp <- weft_papers_speed_up:all([?WEATHER], Results)].

charts(Results) ->
    [chart(Workload, Metric, Results)
     || Workload <- [<<"city">>, <<"city_districts">>], cells(Workload, Results) =/= [],
        Metric <- [<<"received_packets">>, <<"connections_max">>]].

chart(Workload, Metric, Results) ->
    weft_report_chart:over(fun({_, _, _, Nodes, _, _}) -> Nodes end, "nodes",
                           cells(Workload, Results), Metric,
                           [weft_report_words:workload(Workload), ", ",
                            weft_report_words:metric(Metric)], Results).

packets(Results) ->
    [{weft_papers_verdict:up_to(?UP_TO, most(Values), weft_papers_verdict:is(rises(Values))),
      text(Workload, Variant, [[integer_to_list(round(Packets)), " packets", on(Nodes)]
                               || {Nodes, Packets} <- Values])}
     || {Workload, Variant, Values} <- each(<<"received_packets">>, Results)].

rises(Values) ->
    Numbers = [Number || {_, Number} <- Values],
    Numbers =:= lists:usort(Numbers).

most(Values) ->
    {Most, _} = lists:last(Values),
    Most.

on(Nodes) -> [" on ", integer_to_list(Nodes)].

text(Workload, Variant, Values) ->
    [weft_report_words:workload(Workload), ", ", weft_report_words:variant(Variant), ": ",
     lists:join(", ", Values), " nodes"].

%% The values of a metric for each number of nodes, where there are several.
each(Metric, Results) ->
    [{Workload, Variant, Values}
     || Workload <- [<<"city">>, <<"city_districts">>], Variant <- ?VARIANTS,
        [_, _ | _] = Values <- [values(Workload, Variant, Metric, Results)]].

values(Workload, Variant, Metric, Results) ->
    lists:sort([{Nodes, Median}
                || {_, _, _, Nodes, _, _} = Cell <- cells(Workload, Results),
                   {ok, #{median := Median}} <- [weft_report_results:measured(Cell, Variant, Metric,
                                                                              Results)]]).

cells(Workload, Results) ->
    [Cell || {_, Found, _, _, _, _} = Cell <- weft_report_results:cells(Results),
             Found =:= Workload].
