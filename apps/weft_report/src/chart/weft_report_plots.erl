%% SPDX-License-Identifier: Apache-2.0
%% @doc Which charts a report has, and what is in them: throughput and its ratio to stock, processor
%% time, latencies beside bulk, lossy links, memory over time, programs on clusters. A chart without
%% data is left out.
-module(weft_report_plots).

-export([all/1]).

-define(LATENCIES, [{<<"latency_p50_us">>, "p50"}, {<<"latency_p99_us">>, "p99"},
                    {<<"latency_p999_us">>, "p99.9"}, {<<"latency_max_us">>, "max"}]).

%% @doc The groups of charts that have data: title, explanation, charts.
-spec all(weft_report_results:results()) ->
          [{Title :: string(), Explanation :: string(), [weft_report_svg:chart()]}].
all(Results) ->
    Groups = [throughput(Results), against_stock(Results), cpu(Results), latency(Results),
              lossy(Results), memory(Results), hour(Results) | clusters(Results)],
    [{Title, Text, Charts}
     || {Title, Text, All} <- Groups, Charts <- [[C || C <- All, has_data(C)]], Charts =/= []].

%% What so many nodes on one machine can do depends on how many of them share a core.
clusters(Results) ->
    Shared = case weft_report_words:sharing(weft_report_results:sharing(
                                              weft_report_results:cells(Results), Results)) of
                 [] -> "";
                 Words -> [" In this run: ", Words, "."]
             end,
    [{Title, lists:flatten([Text, Shared]), Charts}
     || {Title, Text, Charts} <- [orbits(Results), ants(Results), quality(Results), cities(Results),
                                  weft_report_im:group(Results)
                                  | weft_report_de_bench:groups(Results)]].

has_data(#{series := Series}) -> Series =/= [].

%% ---- throughput and processor time over the size of messages ----

throughput(Results) ->
    Text = "Small messages per second, and payload per second of large ones, over the size of a "
        "message, for each number of pairs of a sender and a receiver. Loopback. Whiskers are the "
        "smallest and the largest repetition.",
    {"Throughput by size and pairs", Text,
     [by_size(Workload, Pairs, rate(Workload), Results) || {Workload, Pairs} <- facets(Results)]}.

against_stock(Results) ->
    Text = "The same as a multiple of the stock carrier; for TLS, of the stock one over TLS. The "
        "dashed line is as fast as stock. Whiskers are the 95 % interval of the ratio.",
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
                                       <- weft_report_results:cells(Results), W =:= Workload])].

by_size(Workload, Pairs, Metric, Results) ->
    weft_report_chart:over(fun size_words/1, "message size", size_cells(Workload, Pairs, Results),
                           Metric, facet_title(Workload, Pairs), Results).

ratio_by_size(Workload, Pairs, Results) ->
    Cells = size_cells(Workload, Pairs, Results),
    Value = fun(Cell, Variant) ->
                ratio(weft_report_results:against_stock({Cell, Variant, rate(Workload)}, Results))
            end,
    Others = [Variant || Variant <- weft_report_chart:variants(Cells, Results),
                         not weft_report_results:is_stock(Variant)],
    Series = weft_report_chart:series(Cells, Value, Others),
    (weft_report_chart:new([facet_title(Workload, Pairs), ", against stock"], "message size",
                           [size_words(Cell) || Cell <- Cells], rate(Workload), Series))#{
      y => linear, y_label => [16#d7, " stock"], reference => 1,
      y_text => fun(Ratio) -> weft_report_words:tick(Ratio, "") end}.

ratio({ok, #{median := Median, interval := none}}) ->
    [{Median, Median, Median, [weft_report_words:ratio(Median), " times, measured once"]}];
ratio({ok, #{median := Median, interval := {Low, High} = Interval}}) ->
    [{Median, Low, High, [weft_report_words:ratio(Median), " times (",
                          weft_report_words:interval(Interval), ")"]}];
ratio(none) ->
    [].

facet_title(Workload, Pairs) ->
    io_lib:format("~ts, ~b pair~s", [weft_report_words:workload(Workload), Pairs,
                                     [$s || Pairs > 1]]).

size_cells(Workload, Pairs, Results) ->
    lists:sort([Cell || {_, W, _, P, _, <<"loopback">>} = Cell
                            <- weft_report_results:cells(Results), W =:= Workload, P =:= Pairs]).

size_words({_, _, SizeBytes, _, _, _}) -> weft_report_words:message_size(SizeBytes).

%% ---- latencies beside bulk ----

latency(Results) ->
    Text = "How long a small call takes while other processes stream 1 MB messages over the same "
        "connection, or flood it with small ones. Logarithmic: a line further up is ten times "
        "slower. Few calls get through where they take long; p99 and p99.9 are then the longest.",
    Cells = [Cell || {_, <<"call_beside_", _/binary>>, _, _, _, _} = Cell
                         <- weft_report_results:cells(Results)],
    {"Latency of a small call beside bulk", Text, [latency_chart(Cell, Results) || Cell <- Cells]}.

latency_chart({_, Workload, _, _, Streams, Link} = Cell, Results) ->
    Beside = case {Streams, Workload} of
                 {0, _} -> "idle";
                 {_, <<"call_beside_bulk">>} -> ["beside ", integer_to_list(Streams), " x 1 MB"];
                 {_, _} -> ["beside ", integer_to_list(Streams), " x flood"]
             end,
    Value = fun({Metric, _}, Variant) ->
                weft_report_chart:value(Cell, Variant, Metric, Results)
            end,
    Variants = weft_report_results:variants(Cell, Results),
    (weft_report_chart:new([Beside, ", ", weft_report_words:network(Link)],
                           "percentile of all calls", [Name || {_, Name} <- ?LATENCIES],
                           <<"latency_p50_us">>,
                           weft_report_chart:series(?LATENCIES, Value, Variants)))#{
      y_label => "time of a call"}.

%% ---- lossy links ----

lossy(Results) ->
    Text = "Payload per second on an emulated link that loses packets in both directions. A single "
        "TCP connection halves its rate at each loss; more lanes lose less at once.",
    Cells = [{{SizeBytes, Pairs, delay(Link)}, loss(Link), Cell}
             || {_, <<"bulk">>, SizeBytes, Pairs, _, Link} = Cell
                    <- weft_report_results:cells(Results), Link =/= <<"loopback">>],
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
    Title = io_lib:format("~ts x ~b, ~ts", [weft_report_words:message_size(SizeBytes), Pairs,
                                            weft_report_words:network(Delay)]),
    weft_report_chart:over(fun({_, _, _, _, _, Link}) -> io_lib:format("~p %", [loss(Link)]) end,
                           "loss", [Cell || {_, Cell} <- ByLoss], <<"megabytes_per_s">>, Title,
                           Results).

%% ---- memory over time ----

memory(Results) ->
    Text = "Resident memory of the nodes while the receiver stands still most of the time and "
        "senders do not stop to send: back-pressure or the policy of the channel must bound it. "
        "The repetition in which it was highest.",
    Cells = [Cell || {_, <<"slow_receiver">>, _, _, _, _} = Cell
                         <- weft_report_results:cells(Results)],
    {"Memory with a slow receiver", Text,
     [over_time(Cell, Metric, Title, "memory", Results)
      || Cell <- Cells, {Metric, Title} <- [{<<"sender_memory_bytes">>, "sending node"},
                                            {<<"receiver_memory_bytes">>, "receiving node"}]]}.

hour(Results) ->
    Text = "Nodes that are connected and have nothing to do: what a node used in each minute, and "
        "the memory that it had then.",
    Shown = [{<<"idle_minute_percent">>, "processor time of a node", "of a core"},
             {<<"node_memory_bytes">>, "memory of a node", "memory"}],
    {"An hour of rest", Text,
     [over_time(Cell, Metric, Title, Label, Results)
      || {_, <<"hour">>, _, _, _, _} = Cell <- weft_report_results:cells(Results),
         {Metric, Title, Label} <- Shown]}.

over_time(Cell, Metric, Title, Label, Results) ->
    At = fun({AtMs, Value}) ->
             {AtMs / 1000, Value, Value, Value, weft_report_chart:tip(Value, Metric)}
         end,
    Series = [weft_report_chart:line(Variant, [At(Point) || Point <- Points])
              || Variant <- weft_report_results:variants(Cell, Results),
                 Points <- [weft_report_results:series(Cell, Variant, Metric, Results)],
                 Points =/= []],
    (weft_report_chart:new(Title, "seconds", [], Metric, Series))#{
      x => linear, y => linear, y_label => Label}.

%% ---- programs on clusters ----

orbits(Results) ->
    Text = "The orbit of a set of functions, computed on clusters of a master and groups. "
        "Distributed, all workers send to each other; grouped, vertices leave a group by gateways. "
        "Connections are sockets of the node that has most of them.",
    {"Orbit", Text,
     [weft_report_chart:over(fun pairs/1, "nodes", cells(Workload, Results), Metric,
                             [weft_report_words:workload(Workload), ", ",
                              weft_report_words:metric(Metric)],
                             Results)
      || Workload <- [<<"orbit">>, <<"orbit_grouped">>],
         Metric <- [<<"connections_max">>, <<"received_bytes">>, <<"duration_s">>]]}.

cities(Results) ->
    Text = "A city, simulated by all nodes, with a barrier at the end of each moment. With "
        "districts most messages stay on a node. Packets are what all nodes received.",
    {"City", Text,
     [weft_report_chart:over(fun pairs/1, "nodes", cells(Workload, Results), Metric,
                             [weft_report_words:workload(Workload), ", ",
                              weft_report_words:metric(Metric)],
                             Results)
      || Workload <- [<<"city">>, <<"city_districts">>],
         Metric <- [<<"duration_s">>, <<"received_packets">>, <<"connections_max">>]]}.

ants(Results) ->
    Text = "Ant colonies in two levels (TL), in a tree (ML), and in a tree with names by which "
        "lost processes are replaced: everywhere (GR), in groups or on single nodes (SR). The same "
        "work in all of them, to the end of the last round; names are registered meanwhile.",
    Versions = [<<"aco_tl">>, <<"aco_ml">>, <<"aco_gr">>, <<"aco_sr">>],
    Cells = lists:append([cells(Version, Results) || Version <- Versions]),
    {"Ant colonies: versions", Text,
     [weft_report_chart:over(fun version/1, "version",
                             [Cell || Cell <- Cells, pairs(Cell) =:= Count], Metric,
                             [integer_to_list(Count), " nodes, ", weft_report_words:metric(Metric)],
                             Results)
      || Count <- lists:usort([pairs(Cell) || Cell <- Cells]),
         Metric <- [<<"received_packets">>, <<"connections_max">>, <<"duration_s">>]]}.

quality(Results) ->
    Text = "By how much the best schedule that was found costs more than the best known one, and "
        "how long it took, for a growing number of colonies that do the same work each.",
    {"Ant colonies: quality", Text,
     [weft_report_chart:over(fun(Cell) -> element(5, Cell) end, "colonies",
                             cells(<<"aco_quality">>, Results), Metric,
                             weft_report_words:metric(Metric), Results)
      || Metric <- [<<"cost_error_percent">>, <<"duration_s">>]]}.

cells(Workload, Results) ->
    lists:sort([Cell || {_, W, _, _, _, _} = Cell <- weft_report_results:cells(Results),
                        W =:= Workload]).

pairs({_, _, _, Pairs, _, _}) -> Pairs.

version({_, <<"aco_", Version/binary>>, _, _, _, _}) -> string:uppercase(Version).
