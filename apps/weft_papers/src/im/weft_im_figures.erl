%% SPDX-License-Identifier: Apache-2.0
%% @doc What N. Chechina et al. (IEEE TPDS 28(8), 2017, section 5.4.1) say of the Instant Messenger,
%% and what is measured here: Figs. 11 and 12, small.
-module(weft_im_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(METRIC, <<"delivered_per_min">>).
%% Two throughputs that are called the same differ by at most so much.
-define(SAME, 0.05).
%% N times the servers carry at least so much of N times the messages.
-define(LINEAR, 0.7).

%% @private
figures() ->
    [#{id => "im_11", where => "SD Erlang 2017, Fig. 11: throughput of the Instant Messenger",
       claim => "RD-IM and RSD-IM scale identically, with a router and 3 to 16 servers.",
       cells => ["--suites", "im", "--only", "im: im (rd|rsd)[^ a-z]"],
       findings => fun alike/1, charts => fun weft_report_im:sizes/1,
       not_shown => "More throughput with more servers: all of them share two cores, and people "
       "who type are what there is of load, the same for all. Up to 12 servers; time runs 50 "
       "times as fast as people type (100 times in a quick run). Identically: within 5 %."},
     #{id => "im_11_quota", where => "SD Erlang 2017, Fig. 11, with quotas: throughput of the "
       "Instant Messenger",
       claim => "RD-IM and RSD-IM scale identically, with a router and 3 to 16 servers.",
       cells => ["--suites", "im", "--quota", "4", "--only", "im: im (rd|rsd) grown"],
       findings => fun(Results) ->
                       weft_papers_verdict:quotas(Results, fun() -> grown(Results) end)
                   end,
       charts => fun weft_report_im:grown/1,
       not_shown => "Servers of 16 cores: each node has 4 % of a core. There are 40 people for "
       "each server, and a node of clients for two, so what is said grows with the servers. "
       "Fifteen seconds, and time runs 50 times as fast as people type."},
     #{id => "im_12", where => "SD Erlang 2017, Fig. 12: the Instant Messenger with failures",
       claim => "Processes killed at random, and then databases, once in 15 to 1 s, have no impact "
       "on the throughput of RD-IM and RSD-IM.",
       cells => ["--suites", "im", "--only", "im: im (rd|rsd) (steady|killed|emptied)",
                 "--variants", "stock,stock_mesh,weft_groups"],
       findings => fun failures/1, charts => fun weft_report_im:failures/1,
       not_shown => "Runs of 15 minutes, which would be six hours for all of them twice: 15 "
       "seconds here, with kills once a second (0.3 s in a quick run) from beginning to end. "
       "60 nodes are measured once, and without databases alone. Each run checks that what was "
       "said was heard once, and acknowledged. No impact: within 5 %, and nothing lost."}].

alike(Results) ->
    [{same(Ratio),
      io_lib:format("~b nodes: RD ~ts, RSD ~ts~ts",
                    [Nodes, in_words(Rd, "full mesh"), in_words(Rsd, "groups"),
                     weft_papers_verdict:interval(Ratio)])}
     || Nodes <- sizes(<<"im_rd">>, Results),
        Rd <- value(<<"im_rd">>, <<"stock_mesh">>, Nodes, ?METRIC, Results),
        Rsd <- value(<<"im_rsd">>, <<"stock">>, Nodes, ?METRIC, Results),
        Ratio <- ratio({<<"im_rsd">>, <<"stock">>}, {<<"im_rd">>, <<"stock_mesh">>}, Nodes,
                       Results)]
        ++ [{same(Ratio),
             io_lib:format("~b nodes, ~ts on ~ts: ~ts of RD on stock~ts",
                           [Nodes, name(Workload), weft_report_words:variant(Variant),
                            percent(Ratio), weft_papers_verdict:interval(Ratio)])}
            || Nodes <- sizes(<<"im_rd">>, Results),
               {Workload, Variant} = Of <- [{<<"im_rd">>, <<"weft_mesh">>},
                                            {<<"im_rd">>, <<"weft_groups">>},
                                            {<<"im_rsd">>, <<"weft_groups">>}],
               Ratio <- ratio(Of, {<<"im_rd">>, <<"stock_mesh">>}, Nodes, Results)].

%% From few people and servers to many, and RSD in terms of RD.
grown(Results) ->
    [grown(Workload, Variant, Cells, Results)
     || {Workload, Variant} <- [{<<"im_rd_grown">>, <<"stock_mesh">>},
                                {<<"im_rsd_grown">>, <<"stock">>},
                                {<<"im_rsd_grown">>, <<"weft_groups">>}],
        [_, _ | _] = Cells <- [weft_report_im:by_people(Workload, Variant, Results)]]
        ++ [{same(Ratio),
             io_lib:format("~b nodes: RSD on ~ts is ~ts of RD on stock~ts",
                           [Nodes, weft_report_words:variant(Variant), percent(Ratio),
                            weft_papers_verdict:interval(Ratio)])}
            || Nodes <- sizes(<<"im_rd_grown">>, Results),
               Variant <- [<<"stock">>, <<"weft_groups">>],
               Ratio <- ratio({<<"im_rsd_grown">>, Variant}, {<<"im_rd_grown">>, <<"stock_mesh">>},
                              Nodes, Results)].

grown(Workload, Variant, [{Least, First} | _] = Cells, Results) ->
    {Most, Last} = lists:last(Cells),
    {ok, #{median := Times} = Ratio} =
        weft_report_results:ratio({Last, Variant, ?METRIC}, {First, Variant, ?METRIC}, Results),
    Said = [[number(Value), " with ", integer_to_list(People)]
            || {People, Cell} <- Cells,
               {ok, #{median := Value}} <- [weft_report_results:measured(Cell, Variant, ?METRIC,
                                                                         Results)]],
    {weft_papers_verdict:at_least(?LINEAR * Most / Least, Ratio),
     [name(Workload), " on ", weft_report_words:variant(Variant), ": ", lists:join(", ", Said),
      " people, ", weft_report_words:ratio(Times), " times as much",
      weft_papers_verdict:interval(Ratio), " with ", weft_report_words:ratio(Most / Least),
      " times the servers"]}.

%% None may be lost, in no repetition and with no failure.
failures(Results) ->
    [{without_loss(Lost, weft_papers_verdict:with_failures(Fewest, same(Ratio))),
      io_lib:format("~ts, ~b nodes, ~ts: ~ts per minute, ~ts~ts with ~b ~ts killed~ts, ~b lost",
                    [name(Form), Nodes, weft_report_words:variant(Variant), number(Steady),
                     percent(Ratio), weft_papers_verdict:interval(Ratio), round(Kills), What,
                     weft_papers_verdict:no_failures(Fewest), round(Lost)])}
     || Form <- [<<"im_rd">>, <<"im_rsd">>],
        Nodes <- sizes(<<Form/binary, "_steady">>, Results),
        Variant <- variants(<<Form/binary, "_steady">>, Results),
        Steady <- value(<<Form/binary, "_steady">>, Variant, Nodes, ?METRIC, Results),
        {How, What} <- [{<<"_killed">>, "processes"}, {<<"_emptied">>, "databases"}],
        Ratio <- ratio({<<Form/binary, How/binary>>, Variant},
                       {<<Form/binary, "_steady">>, Variant}, Nodes, Results),
        #{median := Kills, low := Fewest}
            <- measured(<<Form/binary, How/binary>>, Variant, Nodes, <<"kills">>, Results),
        Lost <- lost([<<Form/binary, "_steady">>, <<Form/binary, How/binary>>], Variant, Nodes,
                     Results)].

lost(Workloads, Variant, Nodes, Results) ->
    [lists:sum(Most) || Most <- [[High || Workload <- Workloads,
                                          #{high := High} <- measured(Workload, Variant, Nodes,
                                                                      <<"lost_messages">>,
                                                                      Results)]],
                        length(Most) =:= length(Workloads)].

without_loss(Lost, Kind) when Lost == 0 -> Kind;
without_loss(_Lost, _Kind) -> differs.

same(Ratio) -> weft_papers_verdict:within({1 - ?SAME, 1 + ?SAME}, Ratio).

name(<<"im_rd", _/binary>>) -> "RD";
name(<<"im_rsd", _/binary>>) -> "RSD".

in_words(Value, Where) -> io_lib:format("~ts messages per minute (~s)", [number(Value), Where]).

number(Value) -> integer_to_list(round(Value)).

percent(#{median := Ratio}) -> io_lib:format("~.1f %", [100 * Ratio]).

sizes(Workload, Results) ->
    lists:usort([Nodes || {_, Of, _, Nodes, _, _} <- weft_report_results:cells(Results),
                          Of =:= Workload]).

variants(Workload, Results) ->
    lists:usort(lists:append([weft_report_results:variants(Cell, Results)
                              || {_, Of, _, _, _, _} = Cell <- weft_report_results:cells(Results),
                                 Of =:= Workload])).

value(Workload, Variant, Nodes, Metric, Results) ->
    [Median || #{median := Median} <- measured(Workload, Variant, Nodes, Metric, Results)].

%% Throughput in terms of another one.
ratio({Workload, Variant}, {OtherWorkload, OtherVariant}, Nodes, Results) ->
    [Ratio || Cell <- cells(Workload, Nodes, Results),
              Other <- cells(OtherWorkload, Nodes, Results),
              {ok, Ratio} <- [weft_report_results:ratio({Cell, Variant, ?METRIC},
                                                        {Other, OtherVariant, ?METRIC}, Results)]].

measured(Workload, Variant, Nodes, Metric, Results) ->
    [Measured || Cell <- cells(Workload, Nodes, Results),
                 {ok, Measured} <- [weft_report_results:measured(Cell, Variant, Metric, Results)]].

cells(Workload, Nodes, Results) ->
    [Cell || {_, Of, _, Count, _, _} = Cell <- weft_report_results:cells(Results),
             Of =:= Workload, Count =:= Nodes].
