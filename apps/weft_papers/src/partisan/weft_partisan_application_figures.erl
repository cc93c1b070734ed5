%% SPDX-License-Identifier: Apache-2.0
%% @doc What C. Meiklejohn et al. ("Partisan: Enabling Cloud-Scale Erlang Applications", 2018,
%% section 4.3) say of applications, and what is measured here: Figs. 5 and 6 on weft's ring
%% (`weft_partisan_vnode_workload'), Fig. 7 with weft's data that merges
%% (`weft_partisan_ads_workload').
-module(weft_partisan_application_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

%% An order of magnitude.
-define(FASTER, 10).
%% What a change has at most of the bytes of a state, from this number of clients on.
-define(SMALL, 0.1).
-define(MANY, 128).
-define(ECHO_NOT_SHOWN, "Links are emulated, with a rate that two cores can do, and eight "
        "connections share it. Workers ask for two seconds, on the longest link for eight, instead "
        "of 1,000 times. Requests to partitions are calls, which use lanes and no channels; for "
        "channels see partisan_2_ring.").

-define(FASTER_BOUND, io_lib:format("At least ~p times the answers of stock, in each cell.",
                                    [?FASTER])).
-define(TOLD, "Nothing: what was received is told.").
-define(ADS_CLAIM, "What is transmitted depends on the topology, with redundancy in peer to peer, "
        "and on the data: a counter grows with its clients, and full states of it are sent. Client "
        "and server fail above 256 nodes, peer to peer does not up to 1,024.").
-define(SAME_OTHERS, "With any topology a node exchanges changes with the same others: all of them "
        "up to 8, else those at distance 1, 2, 4 and so on in the order of names. So topologies "
        "differ in what is relayed only: with client and server all that two clients exchange, by "
        "the server.").
-define(WHAT_ENDS, "Where it was counted, it is told what the first node, the server, used of a "
        "core, all nodes together of the two that they share, and how many messages waited for a "
        "process of the server: each of these may be what ends client and server. ").

%% @private
figures() ->
    [#{id => "partisan_5", where => "Partisan 2018, Fig. 5: an echo service on a ring",
       claim => "With parallel connections an echo service is an order of magnitude faster than "
       "over distributed Erlang at low latency, and nearly two at more.",
       bound => ?FASTER_BOUND, cells => cells("vnode echo"), charts => charts(<<"vnode_echo">>),
       findings => requests(<<"vnode_echo">>), not_shown => ?ECHO_NOT_SHOWN},
     #{id => "partisan_6", where => "Partisan 2018, Fig. 6: a key-value store on a ring",
       claim => "A store with a quorum of two of three, objects of 1 MB and a disk of 1 ms is an "
       "order of magnitude faster than over distributed Erlang.",
       bound => ?FASTER_BOUND, cells => cells("vnode quorum"), charts => charts(<<"vnode_quorum">>),
       findings => requests(<<"vnode_quorum">>), not_shown => ?ECHO_NOT_SHOWN},
     #{id => "partisan_7", where => "Partisan 2018, Fig. 7: an advertisement counter",
       claim => ?ADS_CLAIM " Of weft: a change has at most a tenth of the bytes of a state with "
       "128 clients.",
       bound => io_lib:format("A change of a counter with ~b clients or more has at most ~p of the "
                              "bytes of its state. What nodes received is told, and not judged.",
                              [?MANY, ?SMALL]),
       cells => cells("(ads|crdt)"), charts => fun bytes_charts/1, findings => fun bytes/1,
       minutes => 30,
       not_shown => "More than 128 nodes on two cores (64 and 128 once each, and not as a full "
       "mesh; up to 256 are in partisan_7_minutes, up to 1,024 in partisan_7_simulated), and half "
       "an hour: each node has 30 impressions, and times are those of the paper by 50. Weft sends "
       "changes, and a state only where nodes have missed some. " ?WHAT_ENDS ?SAME_OTHERS},
     #{id => "partisan_7_minutes", where => "Partisan 2018, Fig. 7, for ten minutes",
       claim => ?ADS_CLAIM, bound => ?TOLD, cells => cells("slow ads"), minutes => 110,
       charts => fun(Results) -> [transmitted(<<"slow_ads">>, Results)] end,
       findings => fun(Results) -> transmissions(<<"slow_ads">>, Results) end,
       not_shown => "Half an hour: nodes have 60 impressions, one each 10 s, and changes are sent "
       "each 5 s, as in the paper. Each size was measured once. All nodes share two cores, so what "
       "ends a topology here may be that. Weft sends changes, and a state only where nodes have "
       "missed some. " ?WHAT_ENDS ?SAME_OTHERS},
     #{id => "partisan_7_simulated", where => "Partisan 2018, Fig. 7, in virtual time",
       claim => ?ADS_CLAIM, bound => ?TOLD, cells => cells("simulated ads"), minutes => 70,
       charts => fun simulated_charts/1, findings => fun simulated/1,
       not_shown => "What a node or a link can do: none has more to do than it can, and to relay "
       "takes no time. Stores and HyParView are those that real nodes run; what is relayed is "
       "added up afterwards, by the server or along shortest paths. Nodes have an impression each "
       "10 s, and changes are sent each 5 s, as in the paper: for ten minutes with up to 256 "
       "nodes, for one minute with 512 and 1,024. So the charts have the bytes of a second. "
       ?SAME_OTHERS}].

cells(Title) -> ["--suites", "store", "--only", "store: " ++ Title].

%% ---- requests to a ring ----

requests(Workload) ->
    fun(Results) ->
        [{weft_papers_verdict:at_least(?FASTER, Times),
          io_lib:format("~ts, ~b at once: ~ts answers ~ts times as many as stock TCP~ts",
                        [weft_report_words:network(Link), Pairs, weft_report_words:variant(Variant),
                         weft_report_words:ratio(Median), weft_papers_verdict:interval(Times)])}
         || Link <- links(Workload, Results),
            {_, _, _, Pairs, _, _} = Cell <- on_link(Workload, Link, Results),
            Variant <- [<<"weft_1">>, <<"weft_8">>],
            {ok, #{median := Median} = Times}
                <- [weft_report_results:ratio({Cell, Variant, <<"calls_per_s">>},
                                              {Cell, <<"stock">>, <<"calls_per_s">>}, Results)]]
    end.

charts(Workload) ->
    fun(Results) ->
        [over("workers", on_link(Workload, Link, Results), Metric,
              [weft_report_words:workload(Workload), ", ", weft_report_words:network(Link)],
              Results)
         || Link <- links(Workload, Results), Metric <- [<<"calls_per_s">>, <<"latency_p50_us">>]]
    end.

links(Workload, Results) ->
    lists:usort([Link || {_, Of, _, _, _, Link} <- weft_report_results:cells(Results),
                         Of =:= Workload]).

on_link(Workload, Link, Results) ->
    [Cell || {_, _, _, _, _, On} = Cell <- of_workload(Workload, Results), On =:= Link].

%% In the order of the number of workers, nodes, actors or elements.
of_workload(Workload, Results) ->
    lists:keysort(4, [Cell || {_, Of, _, _, _, _} = Cell <- weft_report_results:cells(Results),
                              Of =:= Workload]).

over(XLabel, Cells, Metric, Title, Results) ->
    weft_report_chart:over(fun({_, _, _, Pairs, _, _}) -> Pairs end, XLabel, Cells, Metric, Title,
                           Results).

%% ---- bytes ----

bytes(Results) ->
    transmissions(<<"ads">>, Results) ++ changes(Results).

transmissions(Workload, Results) ->
    [{open, [weft_report_words:variant(Variant), ", ", integer_to_list(Nodes), " nodes: ",
             value(Bytes, "bytes"), by_server(Cell, Variant, Bytes, Results), " in ",
             value(Seconds, "s"), ", shown ",
             integer_to_list(round(TooOften)), " times too often",
             busy(Cell, Variant, Results)]}
     || {_, _, _, Nodes, _, _} = Cell <- of_workload(Workload, Results),
        Variant <- weft_report_results:variants(Cell, Results),
        {ok, #{median := Bytes}} <- [measured(Cell, Variant, <<"received_bytes">>, Results)],
        {ok, #{median := Seconds}} <- [measured(Cell, Variant, <<"duration_s">>, Results)],
        {ok, #{median := TooOften}} <- [measured(Cell, Variant, <<"shown_too_often">>, Results)]].

changes(Results) ->
    [{small(Workload, Count, Delta / State),
      [weft_report_words:cell(Cell), ": a change has ", integer_to_list(round(Delta)),
       " bytes, the state ", integer_to_list(round(State))]}
     || Workload <- [<<"crdt_counter">>, <<"crdt_set">>],
        {_, _, _, Count, _, _} = Cell <- of_workload(Workload, Results),
        Variant <- weft_report_results:variants(Cell, Results),
        {ok, #{median := Delta}} <- [measured(Cell, Variant, <<"delta_bytes">>, Results)],
        {ok, #{median := State}} <- [measured(Cell, Variant, <<"state_bytes">>, Results)]].

%% What the busiest node receives grows with the cluster, or does not.
simulated(Results) ->
    [{open, [integer_to_list(Nodes), " nodes: client and server ",
             bytes(Cell, client_server, Results), "; peer to peer ",
             bytes(Cell, peer_to_peer, Results), "; in ", value(Seconds, "s"), ", shown ",
             integer_to_list(round(TooOften)), " times too often"]}
     || {_, _, _, Nodes, _, _} = Cell <- of_workload(<<"simulated_ads">>, Results),
        {ok, #{median := Seconds}} <- [measured(Cell, <<"weft_1">>, <<"duration_s">>, Results)],
        {ok, #{median := TooOften}} <- [measured(Cell, <<"weft_1">>, <<"shown_too_often">>,
                                                 Results)]].

bytes(Cell, Topology, Results) ->
    [All, Most] = [begin
                       {ok, #{median := Bytes}} = measured(Cell, <<"weft_1">>, Metric, Results),
                       Bytes
                   end || Metric <- metrics(Topology)],
    [value(All, "bytes"), " (", value(Most, "bytes"), " by one node)"].

metrics(client_server) -> [<<"client_server_bytes">>, <<"client_server_most_bytes">>];
metrics(peer_to_peer) -> [<<"peer_to_peer_bytes">>, <<"peer_to_peer_most_bytes">>].

%% Where it was counted: what one node takes for all is what a cluster can not grow beyond.
by_server(Cell, Variant, Bytes, Results) ->
    [io_lib:format(" (~.1f % of it by the first node)", [100 * Server / Bytes])
     || {ok, #{median := Server}} <- [measured(Cell, Variant, <<"server_received_bytes">>,
                                               Results)]].

%% The same of what it has to do.
busy(Cell, Variant, Results) ->
    Metrics = [<<"server_cpu_percent">>, <<"nodes_cpu_percent">>, <<"server_mailbox_max">>],
    case [Median || Metric <- Metrics,
                    {ok, #{median := Median}} <- [measured(Cell, Variant, Metric, Results)]] of
        [OfServer, OfAll, Messages] ->
            ["; the first node used ", value(OfServer, "%"), " of a core, all together ",
             value(OfAll, "%"), ", and at most ", integer_to_list(round(Messages)),
             " messages waited for one process of the first"];
        _NotCounted -> ""
    end.

small(<<"crdt_counter">>, Count, Share) when Count >= ?MANY ->
    weft_papers_verdict:is(Share =< ?SMALL);
small(_Workload, _Count, _Share) ->
    open.

measured(Cell, Variant, Metric, Results) ->
    weft_report_results:measured(Cell, Variant, Metric, Results).

value(Value, Unit) -> weft_report_words:value(Value, Unit).

bytes_charts(Results) ->
    [transmitted(<<"ads">>, Results)
     | [sizes_chart(Workload, XLabel, of_workload(Workload, Results), Results)
        || {Workload, XLabel} <- [{<<"crdt_counter">>, "actors"}, {<<"crdt_set">>, "elements"}]]].

transmitted(Workload, Results) ->
    over("nodes", of_workload(Workload, Results), <<"received_bytes">>, "transmitted", Results).

%% Not all cells last as long.
simulated_charts(Results) ->
    Cells = of_workload(<<"simulated_ads">>, Results),
    PerSecond = fun(Metric) -> fun(Cell) -> per_second(Cell, Metric, Results) end end,
    [drawn(Title, "nodes", ClientServer, "bytes in a second",
           [{"client and server", PerSecond(ClientServer)},
            {"peer to peer", PerSecond(PeerToPeer)}], Cells)
     || {Title, ClientServer, PeerToPeer}
            <- lists:zip3(["received by all", "received by the busiest node"],
                          metrics(client_server), metrics(peer_to_peer))].

per_second(Cell, Metric, Results) ->
    case [measured(Cell, <<"weft_1">>, Of, Results) || Of <- [Metric, <<"duration_s">>]] of
        [{ok, #{median := Median, low := Low, high := High}}, {ok, #{median := Seconds}}] ->
            {ok, #{median => Median / Seconds, low => Low / Seconds, high => High / Seconds}};
        _NotBoth -> none
    end.

sizes_chart(Workload, XLabel, Cells, Results) ->
    of_metrics(weft_report_words:workload(Workload), XLabel, Cells,
               [{"state", <<"state_bytes">>}, {"change", <<"delta_bytes">>}], Results).

%% A line for each of these metrics, which are bytes.
of_metrics(Title, XLabel, Cells, [{_, First} | _] = Metrics, Results) ->
    drawn(Title, XLabel, First, "bytes",
          [{Name, fun(Cell) -> measured(Cell, <<"weft_1">>, Metric, Results) end}
           || {Name, Metric} <- Metrics], Cells).

drawn(Title, XLabel, Metric, YLabel, Lines, Cells) ->
    Numbered = lists:zip(lists:seq(1, length(Cells)), Cells),
    Chart = weft_report_chart:lines(
              Title, XLabel, log, Metric, YLabel,
              [{Name, [{X, Measured} || {X, Cell} <- Numbered, {ok, Measured} <- [Value(Cell)]]}
               || {Name, Value} <- Lines]),
    Chart#{x := {categories, [integer_to_list(Count) || {_, _, _, Count, _, _} <- Cells]}}.
