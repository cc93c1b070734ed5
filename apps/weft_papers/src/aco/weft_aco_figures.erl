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

%% @private
figures() ->
    [#{id => "aco_7", where => "SD Erlang 2017, Fig. 7: mean error of ACO",
       claim => "With more colonies, from 1 to 256, the best solution comes closer to the optimum, "
       "though not at each step.",
       cells => ?QUALITY, findings => fun falls/1,
       not_shown => "256 colonies, and the instances of the paper (100 jobs): 5 problems of 40 "
       "jobs made by the same kind of rule, up to 16 colonies."},
     #{id => "aco_8", where => "SD Erlang 2017, Fig. 8: weak scaling of ACO",
       claim => "The time grows slowly with the number of colonies, each on its own host.",
       cells => ?QUALITY, findings => fun grows/1,
       not_shown => "Weak scaling needs a core for each colony. Where they share two, time grows "
       "with the work; the time for each colony is what can be compared."},
     #{id => "aco_9", where => "SD Erlang 2017, Fig. 9: versions of ACO",
       claim => "SR is the fastest, ML slightly faster than TL, GR much slower than all.",
       cells => ?VERSIONS, findings => fun(Results) -> order(<<"duration_s">>, Results) end,
       not_shown => "250 hosts: 47 nodes here. On few of them the master of TL is no bottleneck, "
       "so TL and ML do not differ by more than chance. Connections are made before anything "
       "is timed."},
     #{id => "aco_10", where => "SD Erlang 2017, Fig. 10: packets of ACO",
       claim => "SR receives the fewest packets; on 145 nodes ML twice and GR three times as many.",
       cells => ?VERSIONS,
       findings => fun(Results) -> order(<<"received_packets">>, Results) ++ times(Results) end,
       not_shown => "145 nodes: 47 here, a tree of degree 2 with 5 levels; 6 levels are 95 nodes, "
       "which start and connect for more than a minute, fourteen times. Packets are "
       "counted from the start of the nodes on, connecting them included; stock distribution "
       "counts a message as a packet. So many times: to the nearest whole number."},
     #{id => "aco_failures", where => "SD Erlang 2017, section 5.4.2: ACO with failures",
       claim => "Processes killed at random have no measurable impact on the time of GR and SR.",
       cells => ["--suites", "aco", "--only", "aco (gr|sr) (steady|killed)"],
       findings => fun failures/1, charts => fun failure_charts/1,
       not_shown => "Other processes of the nodes are spared: those of the program are killed, "
       "masters and submasters among them. Killed nodes are in the tests. No impact: 10 % more "
       "time at most, or no more than the slowest run without failures took."}].

falls(Results) ->
    Errors = by_colonies(<<"cost_error_percent">>, Results),
    compared(Errors, "~b colonies: ~.1f % above the best known cost",
             fun(First, Last) -> Last < First end).

grows(Results) ->
    Times = [{Colonies, Time / Colonies} || {Colonies, Time} <- by_colonies(<<"duration_s">>,
                                                                            Results)],
    [{open, io_lib:format("~b colonies on the same cores: ~.3f s for each",
                          [Colonies, float(Time)])}
     || {Colonies, Time} <- Times].

by_colonies(Metric, Results) ->
    lists:sort([{Colonies, Median}
                || {_, <<"aco_quality">>, _, _, Colonies, _} = Cell
                       <- weft_report_results:cells(Results),
                   {ok, #{median := Median}} <- [weft_report_results:measured(Cell, ?GROUPED,
                                                                              Metric, Results)]]).

compared([], _Format, _Holds) ->
    [];
compared(Pairs, Format, Holds) ->
    {_, First} = hd(Pairs),
    {_, Last} = lists:last(Pairs),
    [{is(length(Pairs) > 1 andalso Holds(First, Last)),
      lists:join(", ", [io_lib:format(Format, [Colonies, float(Value)])
                       || {Colonies, Value} <- Pairs])}].

is(true) -> agrees;
is(false) -> differs.

failures(Results) ->
    Value = fun(Cell, Variant, Metric) ->
                [Measured || {ok, Measured} <- [weft_report_results:measured(Cell, Variant, Metric,
                                                                             Results)]]
            end,
    [failures_in_words([string:uppercase(Version), ", ", weft_report_words:variant(Variant)],
                       SteadyS, KilledS, Kills)
     || {_, <<"aco_", Version:2/binary, "_steady">>, _, _, _, _} = Steady
            <- weft_report_results:cells(Results),
        {_, <<"aco_", Of:2/binary, "_killed">>, _, _, _, _} = Killed
            <- weft_report_results:cells(Results), Of =:= Version,
        Variant <- weft_report_results:variants(Steady, Results),
        SteadyS <- Value(Steady, Variant, <<"duration_s">>),
        #{median := KilledS} <- Value(Killed, Variant, <<"duration_s">>),
        #{median := Kills} <- Value(Killed, Variant, <<"kills">>)].

%% What runs without failures differ by is no impact of them.
failures_in_words(What, #{median := SteadyS, high := SlowestS}, KilledS, Kills) ->
    LimitS = max(?SAME * SteadyS, SlowestS),
    {is(KilledS =< LimitS),
     io_lib:format("~ts: ~.2f s, with ~b processes killed ~.2f s, no impact up to ~.2f s",
                   [What, float(SteadyS), round(Kills), float(KilledS), float(LimitS)])}.

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
    Value = fun(Version, Variant, Nodes) ->
                value(Version, Variant, <<"received_packets">>, Nodes, Results)
            end,
    [{is(round(Many / Sr) =:= Claimed),
      io_lib:format("~b nodes: ~s receives ~.1f times as many packets as SR, claimed ~b",
                    [Nodes, Name, Many / Sr, Claimed])}
     || [_ | _] = Sizes <- [sizes(Results)], Nodes <- [lists:last(Sizes)],
        Sr <- Value(<<"aco_sr">>, ?GROUPED, Nodes), Sr > 0,
        {Name, Version, Claimed} <- [{"ML", <<"aco_ml">>, 2}, {"GR", <<"aco_gr">>, 3}],
        Many <- Value(Version, ?MESH, Nodes)].

order(Metric, Nodes, Results) ->
    Value = fun(Version, Variant) -> value(Version, Variant, Metric, Nodes, Results) end,
    Four = [{"SR", Value(<<"aco_sr">>, ?GROUPED)}, {"ML", Value(<<"aco_ml">>, ?MESH)},
            {"TL", Value(<<"aco_tl">>, ?MESH)}, {"GR", Value(<<"aco_gr">>, ?MESH)}],
    Weft = [{"SR on weft groups", Value(<<"aco_sr">>, <<"weft_groups">>)},
            {"GR on weft groups", Value(<<"aco_gr">>, <<"weft_groups">>)}],
    [{kind(Four), in_words(Nodes, Four, Metric)}]
        ++ [{open, in_words(Nodes, Known, Metric)}
            || Known <- [[One || {_, [_]} = One <- Weft]], Known =/= []].

value(Version, Variant, Metric, Nodes, Results) ->
    [Median || {_, Of, _, Count, _, _} = Cell <- weft_report_results:cells(Results),
               Of =:= Version, Count =:= Nodes,
               {ok, #{median := Median}} <- [weft_report_results:measured(Cell, Variant, Metric,
                                                                          Results)]].

%% Between ML and TL the paper's own difference is small.
kind([{_, [Sr]}, {_, [Ml]}, {_, [Tl]}, {_, [Gr]}]) when Sr < Ml, Sr < Tl, Gr > Ml, Gr > Tl ->
    agrees;
kind([{_, [_]}, {_, [_]}, {_, [_]}, {_, [_]}]) -> differs;
kind(_Incomplete) -> open.

in_words(Nodes, Values, Metric) ->
    Unit = weft_report_words:unit(Metric),
    [integer_to_list(Nodes), " nodes, ", weft_report_words:metric(Metric), ": ",
     lists:join(", ", [[Name, " ", weft_report_words:value(Value, Unit)]
                       || {Name, [Value]} <- Values])].
