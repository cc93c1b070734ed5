%% SPDX-License-Identifier: Apache-2.0
%% @doc What N. Chechina et al. (IEEE TPDS 28(8), 2017, section 5.2.1) say of Orbit, and what is
%% measured here: connections and messages of the distributed and the grouped form.
-module(weft_orbit_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(FORMS, [<<"orbit">>, <<"orbit_grouped">>]).
%% So many nodes are measured with quotas.
-define(UP_TO, 37).

%% @private
figures() ->
    [#{id => "orbit", where => "SD Erlang 2017, section 5.2.1 and Fig. 6: Orbit",
       claim => "Distributed, each of N nodes has N-1 connections. With S groups the master has S, "
       "a submaster (N-1)/S + S-1 and a worker (N-1)/S - 1. The speed-up of the distributed form "
       "falls beyond 40 hosts, that of the grouped one does not.",
       bound => "Of stock: the node that has most connections has as many as by the formula. "
       "Weft, messages and times are not judged.",
       cells => ["--suites", "orbit", "--only", "orbit: orbit( grouped)?. .*space of (3|20)000$"],
       findings => fun findings/1,
       not_shown => "Speed-up: all nodes share the cores of one machine, so more of them are not "
       "faster (with quotas: orbit_quota). Orbits of more than a million elements: memory."},
     #{id => "orbit_quota", where => "SD Erlang 2017, Fig. 6, with quotas: speed-up of Orbit",
       claim => "The speed-up of the distributed form grows, and falls beyond 40 hosts; that of "
       "the grouped one does not fall.",
       bound => "Of stock: each form is as fast on each number of nodes as on fewer, or faster. "
       "Weft is not judged." ++ weft_papers_remarks:up_to(?UP_TO, "nodes"),
       cells => ["--suites", "orbit", "--quota", "4",
                 "--only", "orbit: orbit( grouped)?. .*space of (3000|25000)$"],
       findings => fun(Results) ->
                       weft_papers_verdict:quotas(Results, fun() -> faster(Results) end)
                   end,
       charts => fun speed_ups/1,
       not_shown => "More than 37 nodes: each has 4 % of a core. 2 to 5 million elements: a space "
       "of 25,000, which takes so little of a core some seconds. Speed-up is in terms of one "
       "worker's node with its master."}].

%% From few nodes to many, all do the same work.
faster(Results) ->
    [{case Variant of
          <<"stock">> -> weft_papers_speed_up:rises(?UP_TO, SpeedUp);
          _ -> open
      end, weft_papers_speed_up:text(SpeedUp)}
     || #{variant := Variant} = SpeedUp <- weft_papers_speed_up:all(?FORMS, Results)].

speed_ups(Results) ->
    [weft_papers_speed_up:chart(Form, Results) || Form <- ?FORMS].

findings(Results) ->
    lists:append([connections(Cell, Results) ++ messages(Cell, Results)
                  || {_, <<"orbit", _/binary>>, _, _, _, _} = Cell
                         <- weft_report_results:cells(Results)]).

connections({_, Workload, _, Nodes, _, _} = Cell, Results) ->
    Expected = expected(Workload, Nodes),
    [finding(Variant, Workload, Nodes, round(Most), Expected)
     || Variant <- [<<"stock">>, <<"weft_groups">>],
        {ok, #{median := Most}} <- [weft_report_results:measured(Cell, Variant,
                                                                 <<"connections_max">>, Results)]].

%% Of the node that has most.
expected(<<"orbit_grouped", _/binary>>, Nodes) ->
    Groups = weft_orbit_workload:group_count(Nodes),
    (Nodes - 1) div Groups + Groups - 1;
expected(_Distributed, Nodes) ->
    Nodes - 1.

finding(<<"stock">> = Variant, Workload, Nodes, Expected, Expected) ->
    {agrees, connections_text(Variant, Workload, Nodes, Expected, "as by the formula")};
finding(<<"stock">> = Variant, Workload, Nodes, Most, Expected) ->
    {differs, connections_text(Variant, Workload, Nodes, Most,
                               ["by the formula ", integer_to_list(Expected)])};
finding(Variant, <<"orbit">> = Workload, Nodes, Most, Expected) when Most < Expected ->
    {open, connections_text(Variant, Workload, Nodes, Most,
                            ["without a change of the program, instead of ",
                             integer_to_list(Expected)])};
finding(Variant, Workload, Nodes, Most, _Expected) ->
    {open, connections_text(Variant, Workload, Nodes, Most, "the links of the groups")}.

connections_text(Variant, Workload, Nodes, Most, More) ->
    [weft_report_words:workload(Workload), ", ", integer_to_list(Nodes), " nodes, ",
     weft_report_words:variant(Variant), ": at most ", integer_to_list(Most), " connections, ",
     More].

messages({_, Workload, _, Nodes, Space, _} = Cell, Results) ->
    [{open, io_lib:format("~ts, ~b nodes, space of ~b: ~b messages",
                          [weft_report_words:workload(Workload), Nodes, Space, round(Messages)])}
     || {ok, #{median := Messages}} <- [weft_report_results:measured(Cell, <<"stock">>,
                                                                     <<"program_messages">>,
                                                                     Results)]].
