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
%% Of what people would say if each message was heard at once. Where so much of it is delivered,
%% throughput is that of the people, and not of the servers.
-define(NEARLY_ALL, 0.95).
%% So many people are there, with as many more servers, where nodes have quotas.
-define(PEOPLE, 640).

%% @private
figures() -> [without_quotas(), with_quotas(), with_failures()].

%% For what is said of bounds.
percents() -> [round(100 * Share) || Share <- [?SAME, ?NEARLY_ALL]].

without_quotas() ->
    #{id => "im_11", where => "SD Erlang 2017, Fig. 11: throughput of the Instant Messenger",
      claim => "RD-IM and RSD-IM scale identically, with a router and 3 to 16 servers.",
      bound => io_lib:format("Each delivers within ~b % of what RD does on stock. Open where both "
                             "deliver ~b % or more of what people would say if each message was "
                             "heard at once, where that was recorded.", percents()),
      cells => ["--suites", "im", "--only", "im: im (rd|rsd)[^ a-z]"],
      findings => fun alike/1, charts => fun weft_report_im:sizes/1,
      not_shown => "More throughput with more servers: all of them share two cores, and people "
      "who type are what there is of load, the same for all. Up to 12 servers; time runs 50 "
      "times as fast as people type (100 times in a quick run). " ++ weft_papers_remarks:names()}.

with_quotas() ->
    #{id => "im_11_quota", where => "SD Erlang 2017, Fig. 11, with quotas: throughput of the "
      "Instant Messenger",
      claim => "RD-IM and RSD-IM scale identically, with a router and 3 to 16 servers.",
      bound => io_lib:format("With so many times the servers at least ~p of so many times the "
                             "messages are delivered, and RSD delivers within ~b % of what RD "
                             "does on stock. Open where ~b % or more is delivered of what people "
                             "would say if each message was heard at once (of both that are "
                             "compared): then the people are what was measured.",
                             [?LINEAR | percents()])
      ++ weft_papers_remarks:up_to(?PEOPLE, "people"),
      cells => ["--suites", "im", "--quota", "4", "--only", "im: im (rd|rsd) grown"],
      findings => fun(Results) ->
                      weft_papers_verdict:quotas(Results, fun() -> grown(Results) end)
                  end,
      charts => fun weft_report_im:grown/1,
      not_shown => "Servers of 16 cores: each node has 4 % of a core. There are 40 people for "
      "each server, and a node of clients for two, so what is said grows with the servers. "
      "Fifteen seconds, and time runs 50 times as fast as people type. "
      ++ weft_papers_remarks:names()}.

with_failures() ->
    #{id => "im_12", where => "SD Erlang 2017, Fig. 12: the Instant Messenger with failures",
      claim => "Processes killed at random, and then databases, once in 15 to 1 s, have no impact "
      "on the throughput of RD-IM and RSD-IM.",
      bound => io_lib:format("Within ~b % of the throughput without failures, and no message lost "
                             "in any repetition. Open where nothing was killed in a repetition, "
                             "or a repetition failed.", [round(100 * ?SAME)]),
      cells => ["--suites", "im", "--only", "im: im (rd|rsd) (steady|killed|emptied)",
                "--variants", "stock,stock_mesh,weft_groups"],
      findings => fun failures/1, charts => fun weft_report_im:failures/1,
      not_shown => "Runs of 15 minutes, which would be six hours for all of them twice: 15 "
      "seconds here, with kills once a second (0.3 s in a quick run) from beginning to end. "
      "60 nodes are measured once, and without databases alone. Each run checks that what was "
      "said was heard once, and acknowledged. " ++ weft_papers_remarks:names()}.

alike(Results) ->
    Rd = {<<"im_rd">>, <<"stock_mesh">>},
    [{alike(Ratio, [Rd, {<<"im_rsd">>, <<"stock">>}], Nodes, Results),
      io_lib:format("~b nodes: RD ~ts, RSD ~ts~ts",
                    [Nodes, in_words(OfRd, "full mesh"), in_words(OfRsd, "groups"),
                     weft_papers_verdict:interval(Ratio)])}
     || Nodes <- sizes(<<"im_rd">>, Results),
        OfRd <- value(<<"im_rd">>, <<"stock_mesh">>, Nodes, ?METRIC, Results),
        OfRsd <- value(<<"im_rsd">>, <<"stock">>, Nodes, ?METRIC, Results),
        Ratio <- ratio({<<"im_rsd">>, <<"stock">>}, Rd, Nodes, Results)]
        ++ [{alike(Ratio, [Rd, Of], Nodes, Results),
             io_lib:format("~b nodes, ~ts on ~ts: ~ts of RD on stock~ts",
                           [Nodes, name(Workload), weft_report_words:variant(Variant),
                            percent(Ratio), weft_papers_verdict:interval(Ratio)])}
            || Nodes <- sizes(<<"im_rd">>, Results),
               {Workload, Variant} = Of <- [{<<"im_rd">>, <<"weft_mesh">>},
                                            {<<"im_rd">>, <<"weft_groups">>},
                                            {<<"im_rsd">>, <<"weft_groups">>}],
               Ratio <- ratio(Of, Rd, Nodes, Results)].

%% Two that deliver all that there is are alike, whatever more they could deliver.
alike(Ratio, Both, Nodes, Results) ->
    case [Cell || {Workload, Variant} <- Both, Cell <- cells(Workload, Nodes, Results),
                  not is_nearly_all(Cell, Variant, Results)] of
        [] -> open;
        [_ | _] -> same(Ratio)
    end.

%% Where it was not recorded what people would say, nobody knows.
is_nearly_all(Cell, Variant, Results) ->
    case {weft_report_results:measured(Cell, Variant, ?METRIC, Results),
          weft_report_results:measured(Cell, Variant, <<"typed_per_min">>, Results)} of
        {{ok, #{median := Delivered}}, {ok, #{median := Typed}}} ->
            Delivered >= ?NEARLY_ALL * Typed;
        _ -> false
    end.

%% From few people and servers to many, and RSD in terms of RD.
grown(Results) ->
    Rd = {<<"im_rd_grown">>, <<"stock_mesh">>},
    [grown(Workload, Variant, Cells, Results)
     || {Workload, Variant} <- [Rd, {<<"im_rsd_grown">>, <<"stock">>},
                                {<<"im_rsd_grown">>, <<"weft_groups">>}],
        [_, _ | _] = Cells <- [weft_report_im:by_people(Workload, Variant, Results)]]
        ++ [{alike(Ratio, [Rd, Of], Nodes, Results),
             io_lib:format("~b nodes: RSD on ~ts is ~ts of RD on stock~ts",
                           [Nodes, weft_report_words:variant(Variant), percent(Ratio),
                            weft_papers_verdict:interval(Ratio)])}
            || Nodes <- sizes(<<"im_rd_grown">>, Results),
               {_, Variant} = Of <- [{<<"im_rsd_grown">>, <<"stock">>},
                                     {<<"im_rsd_grown">>, <<"weft_groups">>}],
               Ratio <- ratio(Of, Rd, Nodes, Results)].

grown(Workload, Variant, [{Least, First} | _] = Cells, Results) ->
    {Most, Last} = lists:last(Cells),
    {ok, #{median := Times} = Ratio} =
        weft_report_results:ratio({Last, Variant, ?METRIC}, {First, Variant, ?METRIC}, Results),
    Linear = weft_papers_verdict:at_least(?LINEAR * Most / Least, Ratio),
    {case lists:any(fun(Cell) -> is_nearly_all(Cell, Variant, Results) end, [First, Last]) of
         true -> open;
         false -> weft_papers_verdict:up_to(?PEOPLE, Most, Linear)
     end,
     [name(Workload), " on ", weft_report_words:variant(Variant), ": ",
      lists:join(", ", [delivered(People, Cell, Variant, Results) || {People, Cell} <- Cells]),
      " people, ", weft_report_words:ratio(Times), " times as much",
      weft_papers_verdict:interval(Ratio), " with ", weft_report_words:ratio(Most / Least),
      " times the servers"]}.

delivered(People, Cell, Variant, Results) ->
    [[number(Value) || {ok, #{median := Value}} <- [weft_report_results:measured(
                                                      Cell, Variant, ?METRIC, Results)]],
     [[" of ", number(Typed), " typed"]
      || {ok, #{median := Typed}} <- [weft_report_results:measured(
                                        Cell, Variant, <<"typed_per_min">>, Results)]],
     " with ", integer_to_list(People)].

%% None may be lost, in no repetition and with no failure.
failures(Results) ->
    [{without_loss(Lost, weft_papers_verdict:complete(
                           Failed, weft_papers_verdict:with_failures(Fewest, same(Ratio)))),
      io_lib:format("~ts, ~b nodes, ~ts: ~ts per minute, ~ts~ts with ~b ~ts killed~ts, ~b lost~ts",
                    [name(Form), Nodes, weft_report_words:variant(Variant), number(Steady),
                     percent(Ratio), weft_papers_verdict:interval(Ratio), round(Kills), What,
                     weft_papers_verdict:no_failures(Fewest), round(Lost),
                     weft_papers_verdict:incomplete(Failed)])}
     || Form <- [<<"im_rd">>, <<"im_rsd">>],
        Nodes <- sizes(<<Form/binary, "_steady">>, Results),
        Variant <- variants(<<Form/binary, "_steady">>, Results),
        Steady <- value(<<Form/binary, "_steady">>, Variant, Nodes, ?METRIC, Results),
        {How, What} <- [{<<"_killed">>, "processes"}, {<<"_emptied">>, "databases"}],
        Ratio <- ratio({<<Form/binary, How/binary>>, Variant},
                       {<<Form/binary, "_steady">>, Variant}, Nodes, Results),
        #{median := Kills, low := Fewest}
            <- measured(<<Form/binary, How/binary>>, Variant, Nodes, <<"kills">>, Results),
        Workloads <- [[<<Form/binary, "_steady">>, <<Form/binary, How/binary>>]],
        Lost <- lost(Workloads, Variant, Nodes, Results),
        Failed <- [weft_papers_verdict:failed([{Cell, Variant} || Workload <- Workloads,
                                                                  Cell <- cells(Workload, Nodes,
                                                                                Results)],
                                              Results)]].

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
