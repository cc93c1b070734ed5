%% SPDX-License-Identifier: Apache-2.0
%% @doc Which charts a report has, and what is in them: throughput and its ratio to stock, processor
%% time, latencies beside bulk, lossy links, memory over time, programs on clusters. A chart without
%% data is left out.
-module(weft_bench_plots).

-export([all/1, legend/1]).

-define(LATENCIES, [{<<"latency_p50_us">>, "p50"}, {<<"latency_p99_us">>, "p99"},
                    {<<"latency_p999_us">>, "p99.9"}, {<<"latency_max_us">>, "max"}]).

%% @doc The groups of charts that have data: title, explanation, charts.
-spec all(weft_bench_results:results()) ->
          [{Title :: string(), Explanation :: string(), [weft_bench_svg:chart()]}].
all(Results) ->
    Groups = [throughput(Results), against_stock(Results), cpu(Results), latency(Results),
              lossy(Results), memory(Results), orbits(Results), ants(Results), quality(Results)],
    [{Title, Text, Charts}
     || {Title, Text, All} <- Groups, Charts <- [[C || C <- All, has_data(C)]], Charts =/= []].

has_data(#{series := Series}) -> Series =/= [].

%% @doc What the marks mean, for the variants of some charts.
-spec legend([weft_bench_svg:chart()]) -> weft_bench_html:html().
legend(Charts) ->
    Variants = weft_bench_results:variant_order([Class || #{series := Series} <- Charts,
                                                          #{class := Class} <- Series]),
    weft_bench_html:tag(
      p, [{class, "legend"}],
      [weft_bench_html:tag(span, [], [weft_bench_svg:marker(Variant, shape(Variant)), " ",
                                          weft_bench_html:text(weft_bench_words:variant(Variant))])
       || Variant <- Variants]).

%% ---- throughput and processor time over the size of messages ----

throughput(Results) ->
    Text = "Small messages per second, and payload per second of large ones, over the size of a "
        "message, for each number of pairs of a sender and a receiver. Loopback. Whiskers are the "
        "smallest and the largest repetition.",
    {"Throughput by size and pairs", Text,
     [by_size(Workload, Pairs, rate(Workload), Results) || {Workload, Pairs} <- facets(Results)]}.

against_stock(Results) ->
    Text = "The same as a multiple of the stock carrier; for TLS, of the stock one over TLS. The "
        "dashed line is as fast as stock.",
    {"Throughput against stock", Text,
     [ratio_by_size(Workload, Pairs, Results) || {Workload, Pairs} <- facets(Results)]}.

%% The rate of large messages falls with their size, whatever carries them.
rate(<<"bulk">>) -> <<"megabytes_per_s">>;
rate(_Small) -> <<"messages_per_s">>.

cpu(Results) ->
    Text = "User and system time of all nodes that take part, a gateway included, per message. "
        "Loopback. Less is better.",
    {"CPU per message", Text,
     [by_size(Workload, Pairs, <<"cpu_us_per_message">>, Results)
      || {Workload, Pairs} <- facets(Results)]}.

facets(Results) ->
    [{Workload, Pairs}
     || Workload <- [<<"small">>, <<"bulk">>],
        Pairs <- lists:usort([P || {_, W, _, P, _, <<"loopback">>}
                                       <- weft_bench_results:cells(Results), W =:= Workload])].

by_size(Workload, Pairs, Metric, Results) ->
    Cells = size_cells(Workload, Pairs, Results),
    chart(facet_title(Workload, Pairs), "message size", sizes(Cells), Metric,
          series(Cells, fun(Cell, Variant) -> value(Cell, Variant, Metric, Results) end, Results)).

ratio_by_size(Workload, Pairs, Results) ->
    Cells = size_cells(Workload, Pairs, Results),
    Value = fun(Cell, Variant) ->
                Metric = rate(Workload),
                Stock = {Cell, weft_bench_results:baseline(Variant), Metric},
                ratio(weft_bench_results:ratio({Cell, Variant, Metric}, Stock, Results))
            end,
    Series = [One || #{class := Class} = One <- series(Cells, Value, Results),
                     Class =/= <<"stock">>, Class =/= <<"stock_tls">>],
    (chart([facet_title(Workload, Pairs), ", against stock"], "message size", sizes(Cells),
           rate(Workload), Series))#{
      y => linear, y_label => [16#d7, " stock"], reference => 1,
      y_text => fun(Ratio) -> weft_bench_words:tick(Ratio, "") end}.

facet_title(Workload, Pairs) ->
    io_lib:format("~ts, ~b pair~s", [weft_bench_words:workload(Workload), Pairs,
                                     [$s || Pairs > 1]]).

size_cells(Workload, Pairs, Results) ->
    lists:sort([Cell || {_, W, _, P, _, <<"loopback">>} = Cell <- weft_bench_results:cells(Results),
                        W =:= Workload, P =:= Pairs]).

sizes(Cells) ->
    [weft_bench_words:message_size(SizeBytes) || {_, _, SizeBytes, _, _, _} <- Cells].

%% ---- latencies beside bulk ----

latency(Results) ->
    Text = "How long a small call takes while other processes stream 1 MB messages over the same "
        "connection, or flood it with small ones. Logarithmic: a line further up is ten times "
        "slower. Few calls get through where they take long; p99 and p99.9 are then the longest.",
    Cells = [Cell || {_, <<"call_beside_", _/binary>>, _, _, _, _} = Cell
                         <- weft_bench_results:cells(Results)],
    {"Latency of a small call beside bulk", Text, [latency_chart(Cell, Results) || Cell <- Cells]}.

latency_chart({_, Workload, _, _, Streams, Link} = Cell, Results) ->
    Beside = case {Streams, Workload} of
                 {0, _} -> "idle";
                 {_, <<"call_beside_bulk">>} -> ["beside ", integer_to_list(Streams), " x 1 MB"];
                 {_, _} -> ["beside ", integer_to_list(Streams), " x flood"]
             end,
    Value = fun({Metric, _}, Variant) -> value(Cell, Variant, Metric, Results) end,
    Series = series(?LATENCIES, Value, weft_bench_results:variants(Cell, Results)),
    (chart([Beside, ", ", weft_bench_words:network(Link)], "percentile of all calls",
           [Name || {_, Name} <- ?LATENCIES], <<"latency_p50_us">>, Series))#{
      y_label => "time of a call"}.

%% ---- lossy links ----

lossy(Results) ->
    Text = "Payload per second on an emulated link that loses packets in both directions. A single "
        "TCP connection halves its rate at each loss; more lanes lose less at once.",
    Cells = [{{SizeBytes, Pairs, delay(Link)}, loss(Link), Cell}
             || {_, <<"bulk">>, SizeBytes, Pairs, _, Link} = Cell
                    <- weft_bench_results:cells(Results), Link =/= <<"loopback">>],
    {"Throughput on a link with loss", Text,
     [lossy_chart(Facet, lists:sort([{Loss, Cell} || {F, Loss, Cell} <- Cells, F =:= Facet]),
                  Results) || Facet <- lists:usort([F || {F, _, _} <- Cells])]}.

%% 20ms-400mbit-0.1% has a loss of 0.1; without a third part there is none.
loss(Link) ->
    case binary:split(Link, <<"-">>, [global]) of
        [_, _, Percent] -> number(string:trim(Percent, trailing, "%"));
        _ -> 0
    end.

number(Digits) ->
    try binary_to_float(Digits) catch error:badarg -> binary_to_integer(Digits) end.

delay(Link) ->
    case binary:split(Link, <<"-">>, [global]) of
        [Delay, Rate | _] -> <<Delay/binary, "-", Rate/binary>>;
        [Only] -> Only
    end.

lossy_chart({SizeBytes, Pairs, Delay}, ByLoss, Results) ->
    Cells = [Cell || {_, Cell} <- ByLoss],
    Metric = <<"megabytes_per_s">>,
    chart(io_lib:format("~ts x ~b, ~ts", [weft_bench_words:message_size(SizeBytes), Pairs,
                                          weft_bench_words:network(Delay)]),
          "loss", [io_lib:format("~p %", [Loss]) || {Loss, _} <- ByLoss], Metric,
          series(Cells, fun(Cell, Variant) -> value(Cell, Variant, Metric, Results) end, Results)).

%% ---- memory over time ----

memory(Results) ->
    Text = "Resident memory of the nodes while the receiver stands still most of the time and "
        "senders do not stop to send: back-pressure or the policy of the channel must bound it. "
        "The repetition in which it was highest.",
    Cells = [Cell || {_, <<"slow_receiver">>, _, _, _, _} = Cell
                         <- weft_bench_results:cells(Results)],
    {"Memory with a slow receiver", Text,
     [memory_chart(Cell, Metric, Title, Results)
      || Cell <- Cells, {Metric, Title} <- [{<<"sender_memory_bytes">>, "sending node"},
                                            {<<"receiver_memory_bytes">>, "receiving node"}]]}.

memory_chart(Cell, Metric, Title, Results) ->
    Series = [one(Variant, [{AtMs / 1000, Value, Value, Value, tip(Value, Metric)}
                            || {AtMs, Value} <- Points])
              || Variant <- weft_bench_results:variants(Cell, Results),
                 Points <- [weft_bench_results:series(Cell, Variant, Metric, Results)],
                 Points =/= []],
    (chart(Title, "seconds", [], Metric, Series))#{x => linear, y => linear, y_label => "memory"}.

%% ---- programs on clusters ----

orbits(Results) ->
    Text = "The orbit of a set of functions, computed on clusters of a master and groups. "
        "Distributed, all workers send to each other; grouped, vertices leave a group by gateways. "
        "Connections are sockets of the node that has most of them.",
    {"Orbit", Text,
     [by(fun pairs/1, "nodes", cells(Workload, Results), Metric,
         [weft_bench_words:workload(Workload), ", ", weft_bench_words:metric(Metric)], Results)
      || Workload <- [<<"orbit">>, <<"orbit_grouped">>],
         Metric <- [<<"connections_max">>, <<"received_bytes">>, <<"duration_s">>]]}.

ants(Results) ->
    Text = "Ant colonies in two levels (TL), in a tree (ML), and in a tree with names by which "
        "lost processes are replaced: everywhere (GR), in groups or on single nodes (SR). The same "
        "work in all of them, to the end of the last round; names are registered meanwhile.",
    Versions = [<<"aco_tl">>, <<"aco_ml">>, <<"aco_gr">>, <<"aco_sr">>],
    Cells = lists:append([cells(Version, Results) || Version <- Versions]),
    {"Ant colonies: versions", Text,
     [by(fun version/1, "version", [Cell || Cell <- Cells, pairs(Cell) =:= Count], Metric,
         [integer_to_list(Count), " nodes, ", weft_bench_words:metric(Metric)], Results)
      || Count <- lists:usort([pairs(Cell) || Cell <- Cells]),
         Metric <- [<<"received_packets">>, <<"connections_max">>, <<"duration_s">>]]}.

quality(Results) ->
    Text = "By how much the best schedule that was found costs more than the best known one, and "
        "how long it took, for a growing number of colonies that do the same work each.",
    {"Ant colonies: quality", Text,
     [by(fun(Cell) -> element(5, Cell) end, "colonies", cells(<<"aco_quality">>, Results), Metric,
         weft_bench_words:metric(Metric), Results)
      || Metric <- [<<"cost_error_percent">>, <<"duration_s">>]]}.

cells(Workload, Results) ->
    lists:sort([Cell || {_, W, _, _, _, _} = Cell <- weft_bench_results:cells(Results),
                        W =:= Workload]).

pairs({_, _, _, Pairs, _, _}) -> Pairs.

version({_, <<"aco_", Version/binary>>, _, _, _, _}) -> string:uppercase(Version).

by(Of, XLabel, Cells, Metric, Title, Results) ->
    chart(Title, XLabel, [in_words(Of(Cell)) || Cell <- Cells], Metric,
          series(Cells, fun(Cell, Variant) -> value(Cell, Variant, Metric, Results) end, Results)).

in_words(Number) when is_integer(Number) -> integer_to_list(Number);
in_words(Text) -> Text.

%% ---- parts ----

chart(Title, XLabel, Categories, Metric, Series) ->
    Unit = weft_bench_words:unit(Metric),
    #{title => Title, x_label => XLabel, x => {categories, Categories}, y => log,
      y_label => weft_bench_words:metric(Metric), series => Series,
      y_text => fun(Value) -> weft_bench_words:tick(Value, Unit) end,
      description => [weft_bench_words:metric(Metric), " by ", XLabel, "; the table of all cells "
                      "has the numbers."]}.

%% The points of each variant over some cells, or over other things that Value understands.
series(Cells, Value, Results) when not is_list(Results) ->
    Variants = weft_bench_results:variant_order(
                 lists:append([weft_bench_results:variants(Cell, Results) || Cell <- Cells])),
    series(Cells, Value, Variants);
series(Things, Value, Variants) ->
    [one(Variant, Points)
     || Variant <- Variants,
        Points <- [[{X, Y, Low, High, Tip}
                    || {X, Thing} <- lists:zip(lists:seq(1, length(Things)), Things),
                       {Y, Low, High, Tip} <- Value(Thing, Variant)]],
        Points =/= []].

one(Variant, Points) ->
    #{name => weft_bench_words:variant(Variant), class => Variant, shape => shape(Variant),
      points => Points}.

value(Cell, Variant, Metric, Results) ->
    case weft_bench_results:measured(Cell, Variant, Metric, Results) of
        {ok, #{median := Median, low := Low, high := High}} when Median > 0 ->
            [{Median, Low, High, [tip(Median, Metric), " (", tip(Low, Metric), " to ",
                                  tip(High, Metric), ")"]}];
        _ ->
            []
    end.

tip(Value, Metric) ->
    weft_bench_words:value(Value, weft_bench_words:unit(Metric)).

ratio({ok, #{median := Median, low := Low, high := High}}) ->
    [{Median, Low, High, [weft_bench_words:ratio(Median), " times (", weft_bench_words:ratio(Low),
                          " to ", weft_bench_words:ratio(High), ")"]}];
ratio(none) ->
    [].

shape(<<"stock">>) -> 0;
shape(<<"stock_tls">>) -> 0;
shape(<<"weft_1">>) -> 1;
shape(<<"weft_tls_1">>) -> 1;
shape(<<"weft_4">>) -> 2;
shape(<<"weft_tls_4">>) -> 2;
shape(<<"weft_8">>) -> 4;
shape(<<"weft_gateway">>) -> 5;
shape(<<"stock_mesh">>) -> 1;
shape(<<"weft_mesh">>) -> 2;
shape(<<"weft_groups">>) -> 4;
shape(<<"weft_peers">>) -> 5;
shape(_Channel) -> 3.
