%% SPDX-License-Identifier: Apache-2.0
%% @doc What C. Meiklejohn et al. ("Partisan: Enabling Cloud-Scale Erlang Applications", 2018,
%% section 4) say of a distribution in Erlang and of channels, and what is measured here of weft:
%% Figs. 1 to 4. Workloads are those of `weft_partisan_workload'; what runs on the ring of weft, as
%% the paper's Figs. 2 and 3 run on Riak Core, is in `weft_partisan_vnode_workload'. Figs. 5 to 7
%% are in `weft_partisan_application_figures'.
-module(weft_partisan_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(PACED, <<"key_value_paced">>).
-define(UNICAST, ["--suites", "e", "--only", "unicast 1 MB"]).
-define(RING, ["--suites", "e", "--only", "key.value 1 MB",
               "--variants", "stock,weft_1,weft_8,channel,channel_8"]).
%% Below this share of stock it is no longer the same performance.
-define(SAME, 0.9).
%% What is called faster.
-define(FASTER, 1.2).
-define(PARALLEL_CLAIM, "With more senders or more delay 8 connections are nearly 8 times as fast "
        "as one; with few senders they are of less use.").
-define(FASTER_BOUND, io_lib:format("At least ~p times as fast, with delay and more than one at "
                                    "once; others are told, and not judged.", [?FASTER])).
-define(NEARLY, " Nearly 8 times is not judged.").
%% So many times the requests, in the mean.
-define(IN_THE_MEAN, 10).
-define(CHANNELS_BOUND, io_lib:format("In the mean of all cells at least ~p times the requests of "
                                      "stock; none is judged alone.", [?IN_THE_MEAN * ?SAME])).
-define(PACED_BOUND, io_lib:format("Where ~p to ~p times the gossip of stock arrives: at least as "
                                   "many requests, in each cell.", tuple_to_list(?SAME_GOSSIP))).
%% Where so much of the gossip of stock arrives, or so little more, it is the same.
-define(SAME_GOSSIP, {0.95, 1.05}).
%% Eight connections, and one.
-define(PARALLEL, [{<<"weft_8">>, <<"weft_1">>}, {<<"channel_8">>, <<"channel">>}]).
-define(NOT_SHOWN, "Links are emulated, with a rate that two cores can do: connections share it, "
        "so that eight of them can not be eight times as fast as one that fills it. Each sender "
        "has fewer than 1,000 messages, 96 in all: 1,000 of each of 64 senders take 22 minutes at "
        "20 ms, for one variant once; 24 in all where packets are lost or buffers are small. "
        "Without the rights to emulate links only loopback is measured.").

%% @private
figures() -> of_processes() ++ of_the_ring().

of_processes() ->
    [(unicast("partisan_1", "Fig. 1: one channel"))#{
       claim => "With one channel a distribution in Erlang is as fast as that of the emulator, and "
       "sometimes faster, at 1 ms and at 20 ms.",
       bound => io_lib:format("At least ~p times as fast as stock, in each cell.", [?SAME]),
       findings => fun one_channel/1, charts => charts(["stock", "weft_1", "channel"])},
     #{id => "partisan_2", where => "Partisan 2018, Fig. 2: requests beside background traffic",
       claim => "With channels of their own for gossip and metadata requests are faster, at best "
       "12.5 times, and ten times in the mean.",
       bound => ?CHANNELS_BOUND, cells => ?RING, findings => background(<<"key_value">>),
       charts => ring_charts(<<"key_value">>),
       not_shown => "Riak Core, or the ring of weft (partisan_2_ring): partitions are a list of "
       "processes on three nodes, which gossip 1 MB every 20 ms. Workers ask for two seconds "
       "instead of 1,000 times, which take more than half an hour for 64 of them at 20 ms, for "
       "one variant once. More is gossiped than links can carry; where gossip waits for "
       "requests, there is more of the link for them. So what was gossiped meanwhile, and "
       "arrived, is told beside the requests, where it was counted; and in partisan_2_paced as "
       "much arrives of both."},
     #{id => "partisan_2_paced",
       where => "Partisan 2018, Fig. 2: requests beside equal background traffic",
       claim => "With channels of their own for gossip and metadata requests are faster.",
       bound => ?PACED_BOUND, cells => ["--suites", "e", "--only", "key value paced"],
       findings => fun beside_equal_gossip/1, charts => fun beside_equal_gossip_charts/1,
       not_shown => "Riak Core: partitions are a list of processes on three nodes, each of which "
       "gossips 1 MB every 200 ms, a tenth of what the slowest link can carry. Workers ask for "
       "six seconds instead of 1,000 times."},
     (unicast("partisan_3", "Fig. 3: parallel connections"))#{
       claim => ?PARALLEL_CLAIM, bound => [?FASTER_BOUND, ?NEARLY],
       findings => fun parallel/1, charts => fun parallel_charts/1,
       not_shown => "A cluster of Riak Core, or weft's ring (partisan_3_ring): two nodes, of which "
       "one sends to the other. " ?NOT_SHOWN},
     (unicast("partisan_4", "Fig. 4: parallel connections against distributed Erlang"))#{
       claim => "Messages of 1 MB are faster over parallel connections than over distributed "
       "Erlang, the more so the more delay.",
       bound => ?FASTER_BOUND, findings => fun against_stock/1,
       charts => charts(["stock", "weft_8", "channel_8"])}].

of_the_ring() ->
    [#{id => "partisan_2_ring", where => "Partisan 2018, Fig. 2, on weft's ring: requests beside "
       "background traffic",
       claim => "With channels of their own for gossip and metadata requests to partitions are "
       "faster, at best 12.5 times, and ten times in the mean.",
       bound => ?CHANNELS_BOUND,
       cells => on_ring("vnode gossip"), findings => background(<<"vnode_gossip">>),
       charts => ring_charts(<<"vnode_gossip">>),
       not_shown => "Gossip of a ring: that of weft's own is small. Three nodes gossip 1 MB "
       "every 20 ms, more than links can carry, in a channel or beside the requests. These are "
       "echoes of 1 MB, by calls, for two seconds, on the longest link for eight. What was "
       "gossiped meanwhile, and arrived, is told beside the requests.", minutes => 24},
     #{id => "partisan_3_ring", where => "Partisan 2018, Fig. 3, on weft's ring: parallel "
       "connections",
       claim => ?PARALLEL_CLAIM, bound => [?FASTER_BOUND, ?NEARLY],
       cells => on_ring("vnode echo"), findings => fun parallel_ring/1,
       charts => fun parallel_ring_charts/1,
       not_shown => "Messages without answers: workers ask partitions for echoes, for two seconds, "
       "on the longest link for eight, instead of 1,000 times. Links are emulated, with a rate "
       "that two cores can do, and eight connections share it."}].

unicast(Id, Title) ->
    #{id => Id, where => "Partisan 2018, " ++ Title, cells => ?UNICAST,
      not_shown => ?NOT_SHOWN}.

on_ring(Title) -> ["--suites", "store", "--only", "store: " ++ Title].

%% ---- charts: over the number of actors, one for each link ----

charts(Variants) ->
    fun(Results) ->
        [only(Variants, over(<<"unicast">>, "senders", <<"duration_s">>, Link, Results))
         || Link <- links(<<"unicast">>, Results)]
    end.

parallel_charts(Results) ->
    (charts(["weft_1", "weft_8", "channel", "channel_8"]))(Results)
        ++ [in_terms_of_one(Pair, Results) || Pair <- ?PARALLEL].

%% Of eight connections the text (section 4.2) says "near linearly".
in_terms_of_one({Variant, One}, Results) ->
    All = faster([Variant], One, Results),
    eight({Variant, One}, "senders", <<"duration_s">>,
          [{weft_report_words:network(Link),
            [{Senders, weft_report_chart:ratio(Times)}
             || {{_, _, _, Senders, _, Of}, _, Times} <- All, Of =:= Link]}
           || Link <- links(<<"unicast">>, Results)]).

eight({Variant, One}, XLabel, Metric, Lines) ->
    weft_report_chart:said_level(
      "linear, the paper's text: nearly", 8, "8 connections, 8 times as fast",
      weft_report_chart:in_terms(
        weft_report_chart:lines([weft_report_words:variant(Variant), " in terms of ",
                                 weft_report_words:variant(One)], XLabel, linear,
                                Metric, "times as fast", Lines),
        weft_report_words:variant(One))).

parallel_ring_charts(Results) ->
    Answered = answered(Results),
    [only(["weft_1", "weft_8"], over(<<"vnode_echo">>, "workers", <<"calls_per_s">>, Link, Results))
     || Link <- links(<<"vnode_echo">>, Results)]
        ++ [eight({<<"weft_8">>, <<"weft_1">>}, "workers", <<"calls_per_s">>,
                  [{weft_report_words:network(Link),
                    [{Workers, weft_report_chart:ratio(Times)}
                     || {{_, _, _, Workers, _, Of}, Times} <- Answered, Of =:= Link]}
                   || Link <- links(<<"vnode_echo">>, Results)])].

beside_equal_gossip_charts(Results) ->
    [over(?PACED, "workers", Metric, Link, Results)
     || Link <- links(?PACED, Results),
        Metric <- [<<"calls_per_s">>, <<"background_megabytes_per_s">>]].

ring_charts(Workload) ->
    fun(Results) ->
        [Chart || Link <- links(Workload, Results),
                  Metric <- [<<"calls_per_s">>, <<"latency_p50_us">>,
                             <<"background_megabytes_per_s">>],
                  #{series := [_ | _]} = Chart <- [over(Workload, "workers", Metric, Link,
                                                        Results)]]
            ++ [Chart || #{series := [_ | _]} = Chart <- [in_terms_of_stock(Workload, Results)]]
    end.

%% The text (section 4.2) does not say of how many workers it speaks.
in_terms_of_stock(Workload, Results) ->
    Metric = <<"calls_per_s">>,
    Lines = [{weft_report_words:network(Link),
              [{Workers, weft_report_chart:ratio(Times)}
               || {_, _, _, Workers, _, _} = Cell <- cells(Workload, Link, Results),
                  {ok, Times} <- [weft_report_results:ratio({Cell, <<"channel">>, Metric},
                                                            {Cell, <<"stock">>, Metric},
                                                            Results)]]}
             || Link <- links(Workload, Results)],
    Chart = weft_report_chart:in_terms(
              weft_report_chart:lines("channel in terms of stock", "workers", linear, Metric,
                                      "times the requests", Lines), "stock"),
    lists:foldl(fun({What, Times}, Before) ->
                    weft_report_chart:said_level([What, ", the paper's text"], Times, What, Before)
                end, Chart, [{"in the mean", 10}, {"at best", 12.5}]).

over(Workload, XLabel, Metric, Link, Results) ->
    weft_report_chart:over(fun({_, _, _, Pairs, _, _}) -> Pairs end, XLabel,
                           cells(Workload, Link, Results), Metric,
                           [weft_report_words:workload(Workload), ", ",
                            weft_report_words:network(Link)], Results).

only(Variants, #{series := Series} = Chart) ->
    Chart#{series := [One || #{class := Class} = One <- Series,
                             lists:member(binary_to_list(Class), Variants)]}.

links(Workload, Results) ->
    lists:usort([Link || {_, Of, _, _, _, Link} <- weft_report_results:cells(Results),
                         Of =:= Workload]).

%% In the order of the number of actors.
cells(Workload, Link, Results) ->
    lists:keysort(4, [Cell || {_, Of, _, _, _, On} = Cell <- weft_report_results:cells(Results),
                              Of =:= Workload, On =:= Link]).

%% ---- what is found ----

one_channel(Results) ->
    [{weft_papers_verdict:at_least(?SAME, Times), said(Cell, Variant, Times, <<"stock">>)}
     || {Cell, Variant, Times} <- faster([<<"weft_1">>, <<"channel">>], <<"stock">>, Results)].

parallel(Results) ->
    [{kind(Cell, Times), said(Cell, Variant, Times, One)}
     || {Variant, One} <- ?PARALLEL,
        {Cell, _, Times} <- faster([Variant], One, Results)].

parallel_ring(Results) ->
    [{kind(Cell, Times), said(Cell, <<"weft_8">>, Times, <<"weft_1">>)}
     || {Cell, Times} <- answered(Results)].

%% How many times the answers of one connection eight of them bring.
answered(Results) ->
    Metric = <<"calls_per_s">>,
    [{Cell, Times}
     || Link <- links(<<"vnode_echo">>, Results), Cell <- cells(<<"vnode_echo">>, Link, Results),
        {ok, Times} <- [weft_report_results:ratio({Cell, <<"weft_8">>, Metric},
                                                  {Cell, <<"weft_1">>, Metric}, Results)]].

against_stock(Results) ->
    [{kind(Cell, Times), said(Cell, Variant, Times, <<"stock">>)}
     || {Cell, Variant, Times} <- faster([<<"weft_8">>, <<"channel_8">>], <<"stock">>, Results)].

%% The claim is about links with delay, and about many senders.
kind({_, _, _, Senders, _, Link}, Times) when Senders > 1, Link =/= <<"loopback">> ->
    weft_papers_verdict:at_least(?FASTER, Times);
kind(_Cell, _Times) ->
    open.

%% How many times as fast variants are as another one.
faster(Variants, Other, Results) ->
    Metric = <<"duration_s">>,
    [{Cell, Variant, Times}
     || Link <- links(<<"unicast">>, Results), Cell <- cells(<<"unicast">>, Link, Results),
        Variant <- Variants,
        {ok, Times} <- [weft_report_results:ratio({Cell, Other, Metric}, {Cell, Variant, Metric},
                                                  Results)]].

background(Workload) -> fun(Results) -> background(Workload, Results) end.

background(Workload, Results) ->
    All = times_of_stock(Workload, Results),
    case [Median || {_, #{median := Median}} <- All] of
        [] -> [];
        Ratios ->
            Mean = lists:sum(Ratios) / length(Ratios),
            [{weft_papers_verdict:is(Mean >= ?IN_THE_MEAN * ?SAME),
              io_lib:format("channels: ~ts times the requests of stock in the mean, at best ~ts",
                            [weft_report_words:ratio(Mean),
                             weft_report_words:ratio(lists:max(Ratios))])}
             | [{open, [said(Cell, <<"channel">>, Times, <<"stock">>),
                        gossiped(gossip(Cell, Results))]} || {Cell, Times} <- All]]
    end.

%% How many times the requests of stock a channel for gossip brings.
times_of_stock(Workload, Results) ->
    Metric = <<"calls_per_s">>,
    [{Cell, Times}
     || Link <- links(Workload, Results), Cell <- cells(Workload, Link, Results),
        {ok, Times} <- [weft_report_results:ratio({Cell, <<"channel">>, Metric},
                                                  {Cell, <<"stock">>, Metric}, Results)]].

beside_equal_gossip(Results) ->
    [begin
         Gossip = gossip(Cell, Results),
         {where_it_is_equal(Gossip, Times), [said(Cell, <<"channel">>, Times, <<"stock">>),
                                             gossiped(Gossip)]}
     end || {Cell, Times} <- times_of_stock(?PACED, Results)].

where_it_is_equal({ok, #{median := Gossip}}, Times) ->
    {Least, Most} = ?SAME_GOSSIP,
    case Least =< Gossip andalso Gossip =< Most of
        true -> weft_papers_verdict:at_least(1, Times);
        false -> open
    end;
where_it_is_equal(none, _Times) ->
    open.

%% More requests at the cost of what was gossiped are no gain, and fewer beside more are no loss.
gossip(Cell, Results) ->
    Metric = <<"background_megabytes_per_s">>,
    weft_report_results:ratio({Cell, <<"channel">>, Metric}, {Cell, <<"stock">>, Metric}, Results).

gossiped({ok, #{median := Times} = Ratio}) ->
    [", beside ", weft_report_words:ratio(Times), " times the gossip",
     weft_papers_verdict:interval(Ratio)];
gossiped(none) ->
    ", beside gossip that was not counted".

said({_, _, _, Pairs, _, Link}, Variant, #{median := Times} = Ratio, Other) ->
    io_lib:format("~ts, ~b at once: ~ts is ~ts times as fast as ~ts~ts",
                  [weft_report_words:network(Link), Pairs, weft_report_words:variant(Variant),
                   weft_report_words:ratio(Times), weft_report_words:variant(Other),
                   weft_papers_verdict:interval(Ratio)]).
