%% SPDX-License-Identifier: Apache-2.0
%% @doc What A. Ghaffari says of distributed Erlang ("Investigating the Scalability Limits of
%% Distributed Erlang", Erlang Workshop 2014, section 3, and the talk "Scalable Persistent Storage
%% for Erlang", 2013), and what is measured here: Figs. 5 to 13, small. What a claim is judged by is
%% the stock carrier; weft is shown beside it, and judged by what is claimed of its names.
-module(weft_de_bench_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).

-define(STOCK, <<"stock_mesh">>).
-define(THROUGHPUT, <<"calls_per_s">>).
%% What grows by less than this is taken for even, on a machine that does other things too.
-define(GROWS, 2).
%% A command that takes so many times as long as spawn is slower.
-define(SLOWER, 1.2).
%% And one that takes less than so many times as long is not.
-define(SAME, 1.1).
%% What differs by at most so much is flat.
-define(FLAT, 0.05).
-define(TWO_CORES, "Two cores for all nodes, up to 24 of them (60 in Figs. 5 and 6); the paper "
        "has a host with eight cores for each of up to 100 nodes, and five minutes where there "
        "are five seconds here. ").

%% @private
figures() ->
    global_figures() ++ peer_figures() ++ server_figures().

global_figures() ->
    [(figure("de_5", "Fig. 5: scalability and percentage of global commands", <<"de_global">>))#{
       claim => "The more global commands, the sooner more nodes do not do more: with 0.01 % "
       "beyond 60 nodes. Of weft: its names keep throughput flat, within 5 %.",
       findings => fun(Results) -> falls_behind(Results) ++ falls_with_share(Results) end,
       charts => fun(Results) ->
                     weft_report_de_bench:shares(<<"de_global">>, Results)
                         ++ weft_report_de_bench:throughput(<<"de_global">>, Results)
                 end,
       not_shown => ?TWO_CORES "So each node wants 50 commands per second, and what can be seen "
       "is what of that is done; it takes more global commands than in the paper until that is "
       "less. 0.01 % are a few names in all. 60 nodes are measured once; twice, and for a minute "
       "each, they would take half an hour more."},
     (figure("de_6", "Fig. 6: latency of commands", <<"de_global">>))#{
       claim => "The time of register and unregister grows dramatically with the nodes, to 20 s "
       "with 100 of them; spawn, rpc and whereis are negligible beside it.",
       findings => fun(Results) -> names(<<"de_global">>, Results) end,
       charts => fun(Results) -> latencies(<<"de_global">>, last, names() ++ peers(), Results) end,
       not_shown => ?TWO_CORES "Operations that take longer than the measurement are not in the "
       "means, here and there."},
     (figure("riak", "Riak talk 2013: latency of register, unregister, whereis", <<"de_names">>))#{
       where => "Riak talk 2013: latency of register, unregister, whereis",
       claim => "With 2 % of global updates the time of register and unregister grows with the "
       "nodes; that of spawn and whereis does not.",
       findings => fun(Results) -> names(<<"de_names">>, Results) end,
       charts => fun(Results) ->
                     latencies(<<"de_names">>, last,
                               names() ++ ["spawning", "local_register", "local_whereis"], Results)
                 end,
       not_shown => ?TWO_CORES "Riak itself, its throughput and its availability: another "
       "program. Where the peak is (50 nodes with 0.5 %, 30 with 1 %): see de_5."}].

peer_figures() ->
    [(figure("de_7", "Fig. 7: scalability and data size", <<"de_size">>))#{
       claim => "The larger the argument, the less is done: 10 B is best, 10 kB worst.",
       findings => fun(Results) -> less_with_more(<<"de_size">>, Results) end,
       charts => throughput(<<"de_size">>),
       not_shown => ?TWO_CORES "Scaling: throughput is what the cores carry, however many nodes."},
     (figure("de_8", "Fig. 8: scalability and computation time", <<"de_compute">>))#{
       claim => "The longer a command computes, the less is done.",
       findings => fun(Results) -> less_with_more(<<"de_compute">>, Results) end,
       charts => throughput(<<"de_compute">>),
       not_shown => ?TWO_CORES "Scaling, and a computation of one second: 100 ms instead."},
     (figure("de_9", "Fig. 9: data size and computation time", <<"de_heavy">>))#{
       claim => "With 1,000 B, 1 ms and no global commands throughput grows linearly to 150 nodes.",
       findings => fun linear/1, charts => throughput(<<"de_heavy">>),
       not_shown => ?TWO_CORES "Each node wants 30 commands per second, which all of them together "
       "can compute."},
     (figure("de_10", "Fig. 10: latency of spawn and rpc", <<"de_heavy">>))#{
       claim => "The time of rpc grows with the nodes, and that of spawn is much less.",
       findings => fun(Results) -> calls(<<"de_heavy">>, last, Results) end,
       charts => fun(Results) -> latencies(<<"de_heavy">>, last, calls(), Results) end,
       not_shown => ?TWO_CORES ++ rex()}].

server_figures() ->
    [(figure("de_11", "Fig. 11: scalability and server process calls", <<"de_server">>))#{
       claim => "The more of all commands are calls to server processes, the more is done.",
       findings => fun more_with_servers/1, charts => throughput(<<"de_server">>),
       not_shown => ?TWO_CORES "Scaling. What is no server call is spawn, rpc, or rex call."}
     | [(figure(Id, Title, <<"de_calls">>))#{
          claim => "Only the time of rpc grows with the nodes; server calls have the lowest.",
          findings => fun(Results) -> calls(<<"de_calls">>, {10, Percent}, Results) end,
          charts => fun(Results) ->
                        latencies(<<"de_calls">>, {10, Percent},
                                  calls() ++ ["gen_server_call", "fsm_server_call"], Results)
                    end,
          not_shown => ?TWO_CORES "Each node wants 250 commands per second: workers that are as "
          "fast as they can be would wait for the cores. " ++ rex()}
        || {Id, Percent, Title} <- [{"de_12", 1, "Fig. 12: latency with 1 % server calls"},
                                    {"de_13", 50, "Fig. 13: latency with 50 % server calls"}]]].

rex() ->
    "Since OTP 23 rpc makes a process for each call; \"rex call\" goes through one server process "
        "of the node, as rpc did when the paper was written.".

figure(Id, Title, Workload) ->
    #{id => Id, where => "DE-Bench 2014, " ++ Title,
      cells => ["--suites", "de_bench",
                "--only", lists:flatten(["de_bench: ", weft_report_words:workload(Workload)])]}.

throughput(Workload) ->
    fun(Results) -> weft_report_de_bench:throughput(Workload, Results) end.

latencies(Workload, last, Operations, Results) ->
    lists:append([latencies(Workload, Parameter, Operations, Results)
                  || Parameter <- last(weft_report_de_bench:parameters(Workload, Results))]);
latencies(Workload, Parameter, Operations, Results) ->
    weft_report_de_bench:latencies(Workload, Parameter, Operations, Results).

last([]) -> [];
last(Parameters) -> [lists:last(Parameters)].

names() -> ["register", "unregister", "whereis"].
peers() -> ["spawning", "remote_call"].
calls() -> ["spawning", "remote_call", "rex_call"].

%% ---- what is found ----

%% Of what is done without global commands, how much is done with them?
falls_behind(Results) ->
    Workload = <<"de_global">>,
    [{of_variant(Variant, Last < 0.9 andalso Last < First,
                 is_flat([1 | [Share || {_, Share} <- Shares]])),
      [weft_report_words:variant(Variant), ", ",
       weft_report_de_bench:parameter(Workload, Parameter), ": of what is done without, ",
       lists:join(", ", [io_lib:format("~b % on ~b nodes", [round(100 * Share), Nodes])
                         || {Nodes, Share} <- Shares])]}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Parameter <- last(weft_report_de_bench:parameters(Workload, Results)),
        Shares <- [shares(Parameter, Variant, Results)], length(Shares) > 1,
        {_, First} <- [hd(Shares)], {_, Last} <- [lists:last(Shares)]].

%% On most nodes, over the percentage.
falls_with_share(Results) ->
    [{of_variant(Variant, length(Rates) > 1 andalso lists:last(Rates) < 0.9 * hd(Rates),
                 length(Rates) > 1 andalso is_flat(Rates)), Text}
     || {Variant, Rates, Text} <- rates(<<"de_global">>, Results)].

%% The claim is about global names; another one is made for those of weft.
of_variant(<<"weft", _/binary>>, _Falls, IsFlat) -> is(IsFlat);
of_variant(Variant, Falls, _IsFlat) -> judged(Variant, Falls).

%% None differs much from the first, which is without global commands.
is_flat([First | Rest]) ->
    lists:all(fun(Value) -> abs(Value - First) =< ?FLAT * First end, Rest).

shares(Parameter, Variant, Results) ->
    Without = maps:from_list(medians(<<"de_global">>, {10, 0}, Variant, ?THROUGHPUT, Results)),
    [{Nodes, Rate / map_get(Nodes, Without)}
     || {Nodes, Rate} <- medians(<<"de_global">>, Parameter, Variant, ?THROUGHPUT, Results),
        maps:get(Nodes, Without, 0) > 0].

%% Names against what does not involve all nodes.
names(Workload, Results) ->
    [{case Variant of ?STOCK -> grows(First, Last, Spawn); _ -> open end,
      io_lib:format("~ts: register ~ts; spawn then ~ts~ts",
                    [weft_report_words:variant(Variant), change(Registers), in_us(Spawn),
                     others(Workload, Parameter, Variant, Results)])}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Parameter <- last(weft_report_de_bench:parameters(Workload, Results)),
        Registers <- [medians(Workload, Parameter, Variant, <<"register_mean_us">>, Results)],
        Registers =/= [], {_, First} <- [hd(Registers)], {_, Last} <- [lists:last(Registers)],
        {_, Spawn} <- last(medians(Workload, Parameter, Variant, <<"spawning_mean_us">>, Results))].

%% From few nodes to many.
change([{Nodes, Mean}]) ->
    io_lib:format("~ts with ~b nodes", [in_us(Mean), Nodes]);
change([{Few, First} | More]) ->
    {Many, Last} = lists:last(More),
    io_lib:format("~ts with ~b nodes, ~ts with ~b", [in_us(First), Few, in_us(Last), Many]).

grows(Same, Same, _Spawn) -> open;
grows(First, Last, Spawn) -> is(Last > ?GROWS * First andalso Last > 5 * Spawn).

others(Workload, Parameter, Variant, Results) ->
    [[", ", Operation, " ", in_us(Mean)]
     || Operation <- ["unregister", "whereis"],
        {_, Mean} <- last(medians(Workload, Parameter, Variant,
                                  list_to_binary(Operation ++ "_mean_us"), Results))].

%% The smallest of what is varied against the largest, on most nodes.
less_with_more(Workload, Results) ->
    [{judged(Variant, length(Rates) > 1 andalso hd(Rates) > lists:last(Rates)), Text}
     || {Variant, Rates, Text} <- rates(Workload, Results)].

more_with_servers(Results) ->
    [{judged(Variant, length(Rates) > 1 andalso hd(Rates) < lists:last(Rates)), Text}
     || {Variant, Rates, Text} <- rates(<<"de_server">>, Results)].

judged(?STOCK, Holds) -> is(Holds);
judged(_Variant, _Holds) -> open.

rates(Workload, Results) ->
    [{Variant, [Rate || {_, _, Rate} <- Rates],
      [weft_report_words:variant(Variant), ", ", integer_to_list(element(2, hd(Rates))), " nodes: ",
       lists:join(", ", [[weft_report_de_bench:parameter(Workload, Parameter), " ",
                          weft_report_words:value(Rate, "1/s")] || {Parameter, _, Rate} <- Rates])]}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Rates <- [[{Parameter, Nodes, Rate}
                   || Parameter <- weft_report_de_bench:parameters(Workload, Results),
                      {Nodes, Rate} <- last(medians(Workload, Parameter, Variant, ?THROUGHPUT,
                                                    Results))]],
        Rates =/= []].

%% A command that is drawn for the own node is nothing: N nodes do N - 1 times as much as two.
linear(Results) ->
    Workload = <<"de_heavy">>,
    [{case {Variant, Rates} of
          {?STOCK, [_, _ | _]} -> is(Last / (Many - 1) > 0.85 * First / (Few - 1));
          _ -> open
      end,
      [weft_report_words:variant(Variant), ", commands per second for each other node: ",
       lists:join(", ", [io_lib:format("~.1f with ~b", [Rate / (Nodes - 1), Nodes])
                         || {Nodes, Rate} <- Rates])]}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Parameter <- weft_report_de_bench:parameters(Workload, Results),
        Rates <- [medians(Workload, Parameter, Variant, ?THROUGHPUT, Results)], Rates =/= [],
        {Few, First} <- [hd(Rates)], {Many, Last} <- [lists:last(Rates)]].

%% rpc as it is today, and as it was.
calls(Workload, Which, Results) ->
    Parameters = case Which of
                     last -> last(weft_report_de_bench:parameters(Workload, Results));
                     _ -> [Which]
                 end,
    lists:append(
      [calls(Operation, Spawn, medians(Workload, Parameter, Variant, Metric, Results), Variant)
       || Variant <- weft_report_de_bench:variants(Workload, Results), Parameter <- Parameters,
          {_, Spawn} <- last(medians(Workload, Parameter, Variant, <<"spawning_mean_us">>,
                                     Results)),
          {Operation, Metric} <- [{"rpc", <<"remote_call_mean_us">>},
                                  {"rex call", <<"rex_call_mean_us">>},
                                  {"gen_server call", <<"gen_server_call_mean_us">>},
                                  {"gen_statem call", <<"fsm_server_call_mean_us">>}]]).

calls(_Operation, _Spawn, [], _Variant) ->
    [];
calls(Operation, Spawn, Means, Variant) ->
    {_, Last} = lists:last(Means),
    [{case {Variant, Operation, Means} of
          {?STOCK, _, [_]} -> open;
          {?STOCK, "rex call", _} -> is(Last > ?SLOWER * Spawn);
          {?STOCK, "rpc", _} -> is(Last > ?SLOWER * Spawn);
          {?STOCK, _Server, _} -> is(Last < ?SAME * Spawn);
          _ -> open
      end,
      io_lib:format("~ts: ~ts ~ts, when spawn takes ~ts",
                    [weft_report_words:variant(Variant), Operation, change(Means), in_us(Spawn)])}].

is(true) -> agrees;
is(false) -> differs.

in_us(Value) -> weft_report_words:value(Value, "us").

medians(Workload, Parameter, Variant, Metric, Results) ->
    [{Nodes, Median} || {Nodes, #{median := Median}}
                            <- weft_report_de_bench:points(Workload, Parameter, Variant, Metric,
                                                           Results)].
