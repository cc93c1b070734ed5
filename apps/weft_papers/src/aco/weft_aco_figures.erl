%% SPDX-License-Identifier: Apache-2.0
%% @doc What N. Chechina et al. (IEEE TPDS 28(8), 2017, sections 5.2.2 and 5.3) say of ACO, and what
%% is measured here: Figs. 7 to 10, small.
-module(weft_aco_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(VERSIONS, ["--suites", "aco", "--only", "aco: aco (tl|ml|gr|sr)[^ a-z]"]).
-define(QUALITY, ["--suites", "aco", "--only", "aco: aco quality"]).
%% The carriers of the paper: distributed Erlang, and connections in groups only.
-define(MESH, <<"stock_mesh">>).
-define(GROUPED, <<"stock">>).
%% What takes at most so many times as long is not slower, on a machine that does other things too.
-define(SAME, 1.1).
%% So many colonies, and nodes of the versions, are measured.
-define(COLONIES, 16).
-define(UP_TO, 47).
-define(ORDER, "Of stock, for each number of nodes: SR less than ML and than TL, and both of these "
        "less than GR. TL and ML are not judged against each other, and weft is not judged. ").

%% @private
figures() -> quality() ++ versions() ++ with_quotas().

quality() ->
    [#{id => "aco_7", where => "SD Erlang 2017, Fig. 7: mean error of ACO",
       claim => "With more colonies, from 1 to 256, the best solution comes closer to the optimum, "
       "though not at each step.",
       bound => "The error with most colonies is less than with fewest."
       ++ weft_papers_remarks:up_to(?COLONIES, "colonies"),
       cells => ?QUALITY, findings => fun falls/1,
       not_shown => "256 colonies, and the instances of the paper (100 jobs): 5 problems of 40 "
       "jobs made by the same kind of rule, up to 16 colonies."},
     #{id => "aco_8", where => "SD Erlang 2017, Fig. 8: weak scaling of ACO",
       claim => "The time grows slowly with the number of colonies, each on its own host.",
       bound => "Nothing: what colonies on the same cores take is told.",
       cells => ?QUALITY, findings => fun grows/1,
       not_shown => "Weak scaling needs a core for each colony. Where they share two, time grows "
       "with the work; the time for each colony is what can be compared (with quotas: "
       "aco_8_quota)."}].

versions() ->
    [#{id => "aco_9", where => "SD Erlang 2017, Fig. 9: versions of ACO",
       claim => "SR is the fastest, ML slightly faster than TL, GR much slower than all.",
       bound => ?ORDER "Much slower: slower. Open where a time was measured once.",
       cells => ?VERSIONS, findings => fun(Results) -> order(<<"duration_s">>, Results) end,
       not_shown => "250 hosts: 47 nodes here. On few of them the master of TL is no bottleneck, "
       "so TL and ML do not differ by more than chance. Connections are made before anything "
       "is timed. With quotas: aco_9_quota. " ++ weft_papers_remarks:names()},
     #{id => "aco_10", where => "SD Erlang 2017, Fig. 10: packets of ACO",
       claim => "SR receives the fewest packets; on 145 nodes ML twice and GR three times as many.",
       bound => ?ORDER "So many times, on the most nodes: to the nearest whole number."
       ++ weft_papers_remarks:up_to(?UP_TO, "nodes"),
       cells => ?VERSIONS,
       findings => fun(Results) -> order(packets(Results), Results) ++ times(Results) end,
       charts => fun packet_charts/1,
       not_shown => "145 nodes: 47 here, a tree of degree 2 with 5 levels; 6 levels are 95 nodes, "
       "which start and connect for more than a minute, fourteen times. Packets are those after "
       "set-up, while the program runs; where these were not counted apart, all from the start of "
       "the nodes on, connecting them included. Stock distribution counts a message as a packet. "
       ++ weft_papers_remarks:names()},
     #{id => "aco_failures", where => "SD Erlang 2017, section 5.4.2: ACO with failures",
       claim => "Processes killed at random have no measurable impact on the time of GR and SR.",
       bound => io_lib:format("At most ~p times the median time without failures, or no more than "
                              "the slowest run without failures took. Open where nothing was "
                              "killed in a repetition, or a repetition failed.", [?SAME]),
       cells => ["--suites", "aco", "--only", "aco (gr|sr) (steady|killed)"],
       findings => fun failures/1, charts => fun failure_charts/1,
       not_shown => "Other processes of the nodes are spared: those of the program are killed, "
       "masters and submasters among them. Killed nodes are in the tests. "
       ++ weft_papers_remarks:names()}].

with_quotas() ->
    [#{id => "aco_8_quota", where => "SD Erlang 2017, Fig. 8, with quotas: weak scaling of ACO",
       claim => "The time grows with the number of colonies, each on its own host, and less than "
       "the work.",
       bound => "With most colonies it is as long as with fewest or longer, and less than so many "
       "times as long." ++ weft_papers_remarks:up_to(?COLONIES, "colonies"),
       cells => ?QUALITY ++ ["--quota", "4"],
       findings => fun(Results) ->
                       weft_papers_verdict:quotas(Results, fun() -> weak(Results) end)
                   end,
       charts => fun weak_charts/1,
       not_shown => "256 hosts: 16 colonies and a master, each with 4 % of a core. 5 problems of "
       "40 jobs."},
     #{id => "aco_9_quota", where => "SD Erlang 2017, Fig. 9, with quotas: versions of ACO",
       claim => "SR is the fastest, ML slightly faster than TL, GR much slower than all.",
       bound => ?ORDER "Much slower: slower. Open where a time was measured once.",
       cells => ?VERSIONS ++ ["--quota", "3", "--variants", "stock,stock_mesh,weft_groups"],
       minutes => 30,
       findings => fun(Results) ->
                       weft_papers_verdict:quotas(
                         Results, fun() -> order(<<"duration_s">>, Results) end)
                   end,
       charts => fun version_charts/1,
       not_shown => "250 hosts: 47 nodes, each with 3 % of a core. On so few the master of TL is "
       "no bottleneck. Connections are made before anything is timed. "
       ++ weft_papers_remarks:names()}].

falls(Results) ->
    Metric = <<"cost_error_percent">>,
    case by_colonies(Metric, Results) of
        [] ->
            [];
        Errors ->
            {Most, Last, _} = lists:last(Errors),
            {_, First, _} = hd(Errors),
            Ratio = weft_report_results:ratio({Last, ?GROUPED, Metric}, {First, ?GROUPED, Metric},
                                              Results),
            [{case Ratio of
                  {ok, Falls} -> weft_papers_verdict:up_to(
                                   ?COLONIES, Most, weft_papers_verdict:less_than(1, Falls));
                  none -> open
              end,
              [lists:join(", ", [io_lib:format("~b colonies: ~.1f % above the best known cost",
                                               [Colonies, float(Value)])
                                 || {Colonies, _, Value} <- Errors]),
               [[", ", weft_report_words:ratio(Times), " times as much",
                 weft_papers_verdict:interval(Falls)]
                || {ok, #{median := Times, interval := {_, _}} = Falls} <- [Ratio]]]}]
    end.

grows(Results) ->
    [{open, io_lib:format("~b colonies on the same cores: ~.3f s for each",
                          [Colonies, Time / Colonies])}
     || {Colonies, _, Time} <- by_colonies(<<"duration_s">>, Results)].

%% With most colonies in terms of one.
weak(Results) ->
    Metric = <<"duration_s">>,
    case by_colonies(Metric, Results) of
        [{Fewest, First, _}, _ | _] = Times ->
            {Most, Last, _} = lists:last(Times),
            {ok, #{median := Longer} = Ratio} =
                weft_report_results:ratio({Last, ?GROUPED, Metric}, {First, ?GROUPED, Metric},
                                          Results),
            [{weft_papers_verdict:up_to(
                ?COLONIES, Most,
                weft_papers_verdict:all([weft_papers_verdict:at_least(1, Ratio),
                                         weft_papers_verdict:less_than(Most / Fewest, Ratio)])),
              [lists:join(", ", [io_lib:format("~b colonies: ~.2f s", [Colonies, float(Time)])
                                 || {Colonies, _, Time} <- Times]),
               ", ", weft_report_words:ratio(Longer), " times as long",
               weft_papers_verdict:interval(Ratio), " with ",
               weft_report_words:ratio(Most / Fewest), " times the work"]}];
        _ ->
            []
    end.

weak_charts(Results) ->
    Metric = <<"duration_s">>,
    [weft_report_chart:over(fun({_, _, _, _, Colonies, _}) -> Colonies end, "colonies",
                            [Cell || {_, Cell, _} <- by_colonies(Metric, Results)], Metric,
                            "mean time of a problem", Results)].

%% One for each number of nodes.
version_charts(Results) ->
    [weft_report_chart:over(fun({_, Version, _, _, _, _}) ->
                                    weft_report_words:workload(Version)
                            end, "version", [Cell || Version <- [<<"aco_sr">>, <<"aco_ml">>,
                                                            <<"aco_tl">>, <<"aco_gr">>],
                                                Cell <- cells(Version, Nodes, Results)],
                            <<"duration_s">>, [integer_to_list(Nodes), " nodes, duration"], Results)
     || Nodes <- sizes(Results)].

by_colonies(Metric, Results) ->
    lists:sort([{Colonies, Cell, Median}
                || {_, <<"aco_quality">>, _, _, Colonies, _} = Cell
                       <- weft_report_results:cells(Results),
                   {ok, #{median := Median}} <- [weft_report_results:measured(Cell, ?GROUPED,
                                                                              Metric, Results)]]).

failures(Results) ->
    Metric = <<"duration_s">>,
    Value = fun(Cell, Variant, Of) ->
                [Measured || {ok, Measured} <- [weft_report_results:measured(Cell, Variant, Of,
                                                                             Results)]]
            end,
    [failures_in_words([string:uppercase(Version), ", ", weft_report_words:variant(Variant)],
                       SteadyS, KilledS, Kills, {Ratio, Failed})
     || {_, <<"aco_", Version:2/binary, "_steady">>, _, _, _, _} = Steady
            <- weft_report_results:cells(Results),
        {_, <<"aco_", Of:2/binary, "_killed">>, _, _, _, _} = Killed
            <- weft_report_results:cells(Results), Of =:= Version,
        Variant <- weft_report_results:variants(Steady, Results),
        SteadyS <- Value(Steady, Variant, Metric),
        #{median := KilledS} <- Value(Killed, Variant, Metric),
        Kills <- Value(Killed, Variant, <<"kills">>),
        {ok, Ratio} <- [weft_report_results:ratio({Killed, Variant, Metric},
                                                  {Steady, Variant, Metric}, Results)],
        Failed <- [weft_papers_verdict:failed([{Steady, Variant}, {Killed, Variant}], Results)]].

%% What runs without failures differ by is no impact of them.
failures_in_words(What, #{median := SteadyS, high := SlowestS}, KilledS,
                  #{median := Kills, low := Fewest}, {Ratio, Failed}) ->
    LimitS = max(?SAME * SteadyS, SlowestS),
    Verdict = weft_papers_verdict:at_most(LimitS / SteadyS, Ratio),
    {weft_papers_verdict:complete(Failed, weft_papers_verdict:with_failures(Fewest, Verdict)),
     io_lib:format("~ts: ~.2f s, with ~b processes killed~ts ~.2f s~ts, no impact up to ~.2f s~ts",
                   [What, float(SteadyS), round(Kills), weft_papers_verdict:no_failures(Fewest),
                    float(KilledS), times_as_long(Ratio), float(LimitS),
                    weft_papers_verdict:incomplete(Failed)])}.

times_as_long(#{interval := none}) -> "";
times_as_long(#{interval := Interval}) ->
    [" (", weft_report_words:interval(Interval), " times as long)"].

failure_charts(Results) ->
    Cells = lists:sort([Cell || {_, <<"aco_", _:2/binary, Rest/binary>>, _, _, _, _} = Cell
                                    <- weft_report_results:cells(Results),
                                Rest =:= <<"_steady">> orelse Rest =:= <<"_killed">>]),
    [weft_report_chart:over(fun({_, <<"aco_", Workload/binary>>, _, _, _, _}) ->
                                    weft_report_words:workload(Workload)
                            end, "version", Cells, <<"duration_s">>, "duration", Results)].

%% On the carriers of the paper, then weft in groups, which is not in it.
order(Metric, Results) ->
    lists:append([order(Metric, Nodes, Results) || Nodes <- sizes(Results)]).

sizes(Results) ->
    lists:usort([Nodes || {_, <<"aco_ml">>, _, Nodes, _, _} <- weft_report_results:cells(Results)]).

%% How many times the packets of SR the others receive, on most nodes.
times(Results) ->
    [{weft_papers_verdict:up_to(
        ?UP_TO, Nodes, weft_papers_verdict:within({Claimed - 0.5, Claimed + 0.5}, Ratio)),
      io_lib:format("~b nodes: ~s receives ~.1f times~ts as many ~ts as SR~s, claimed ~b",
                    [Nodes, Name, Times, weft_papers_verdict:interval(Ratio),
                     weft_report_words:metric(packets(Results)), with_set_up(packets(Results)),
                     Claimed])}
     || [_ | _] = Sizes <- [sizes(Results)], Nodes <- [lists:last(Sizes)],
        {Name, Version, Claimed} <- [{"ML", <<"aco_ml">>, 2}, {"GR", <<"aco_gr">>, 3}],
        #{median := Times} = Ratio <- ratio({Version, ?MESH}, {<<"aco_sr">>, ?GROUPED},
                                            packets(Results), Nodes, Results)].

%% Without those that it takes to connect the nodes, where these were counted apart.
packets(Results) ->
    case [Cell || {_, <<"aco_sr">>, _, _, _, _} = Cell <- weft_report_results:cells(Results),
                  {ok, _} <- [weft_report_results:measured(Cell, ?GROUPED, <<"run_packets">>,
                                                           Results)]] of
        [] -> <<"received_packets">>;
        _ -> <<"run_packets">>
    end.

with_set_up(<<"run_packets">>) -> "";
with_set_up(<<"received_packets">>) -> ", with those that connect the nodes".

%% In terms of SR, with what the text (section 5.3) says of 145 nodes.
packet_charts(Results) ->
    Metric = packets(Results),
    Lines = [{Name, [{Nodes, weft_report_chart:ratio(Times)}
                     || Nodes <- sizes(Results),
                        Times <- ratio({Version, ?MESH}, {<<"aco_sr">>, ?GROUPED},
                                       Metric, Nodes, Results)]}
             || {Name, Version} <- [{"ML", <<"aco_ml">>}, {"GR", <<"aco_gr">>}]],
    Chart = weft_report_chart:in_terms(
              weft_report_chart:lines([weft_report_words:metric(Metric), ", in terms of SR"],
                                      "nodes", linear, Metric, "times", Lines), "SR"),
    [weft_report_chart:over(fun({_, _, _, Nodes, _, _}) -> Nodes end, "nodes",
                            lists:keysort(4, [Cell || {_, Of, _, _, _, _} = Cell
                                                          <- weft_report_results:cells(Results),
                                                      Of =:= Workload]),
                            Metric, [weft_report_words:workload(Workload), ", ",
                                     weft_report_words:metric(Metric)], Results)
     || Workload <- [<<"aco_sr">>, <<"aco_ml">>, <<"aco_gr">>]]
        ++ [weft_report_chart:said(
              "GR, the paper's text", [{145, 3, "3 times on 145 nodes"}],
              weft_report_chart:said(
                "ML, the paper's text", [{145, 2, "2 times on 145 nodes"}], Chart))
            || #{series := [_ | _]} <- [Chart]].

order(Metric, Nodes, Results) ->
    Value = fun({Version, Variant}) -> value(Version, Variant, Metric, Nodes, Results) end,
    [Sr, Ml, Tl, Gr] = Versions = [{<<"aco_sr">>, ?GROUPED}, {<<"aco_ml">>, ?MESH},
                                   {<<"aco_tl">>, ?MESH}, {<<"aco_gr">>, ?MESH}],
    Four = lists:zip(["SR", "ML", "TL", "GR"], [Value(Of) || Of <- Versions]),
    Weft = [{"SR on weft groups", Value({<<"aco_sr">>, <<"weft_groups">>})},
            {"GR on weft groups", Value({<<"aco_gr">>, <<"weft_groups">>})}],
    %% Between ML and TL the paper's own difference is small.
    Less = [ratio(One, Other, Metric, Nodes, Results)
            || {One, Other} <- [{Sr, Ml}, {Sr, Tl}, {Ml, Gr}, {Tl, Gr}]],
    [{ordered(Metric, Less), in_words(Nodes, Four, Metric)}]
        ++ [{open, in_words(Nodes, Known, Metric)}
            || Known <- [[One || {_, [_]} = One <- Weft]], Known =/= []].

%% A time that was measured once is that of one moment; counts are nearly the same each time.
ordered(Metric, Ratios) ->
    IsOpen = fun([#{interval := none}]) -> Metric =:= <<"duration_s">>;
                (Ratio) -> Ratio =:= []
             end,
    case lists:any(IsOpen, Ratios) of
        true -> open;
        false -> weft_papers_verdict:all([weft_papers_verdict:less_than(1, Ratio)
                                          || [Ratio] <- Ratios])
    end.

%% A measurement of one version in terms of that of another one.
ratio({Version, Variant}, {OtherVersion, OtherVariant}, Metric, Nodes, Results) ->
    [Ratio || Cell <- cells(Version, Nodes, Results), Other <- cells(OtherVersion, Nodes, Results),
              {ok, Ratio} <- [weft_report_results:ratio({Cell, Variant, Metric},
                                                        {Other, OtherVariant, Metric}, Results)]].

cells(Version, Nodes, Results) ->
    [Cell || {_, Of, _, Count, _, _} = Cell <- weft_report_results:cells(Results),
             Of =:= Version, Count =:= Nodes].

value(Version, Variant, Metric, Nodes, Results) ->
    [Median || Cell <- cells(Version, Nodes, Results),
               {ok, #{median := Median}} <- [weft_report_results:measured(Cell, Variant, Metric,
                                                                          Results)]].

in_words(Nodes, Values, Metric) ->
    Unit = weft_report_words:unit(Metric),
    [integer_to_list(Nodes), " nodes, ", weft_report_words:metric(Metric), ": ",
     lists:join(", ", [[Name, " ", weft_report_words:value(Value, Unit)]
                       || {Name, [Value]} <- Values])].
