%% SPDX-License-Identifier: Apache-2.0
%% @doc What A. Ghaffari says of distributed Erlang ("Investigating the Scalability Limits of
%% Distributed Erlang", Erlang Workshop 2014, section 3, and the talk "Scalable Persistent Storage
%% for Erlang", 2013), and what is measured here: Figs. 5 to 13, small. What a claim is judged by is
%% the stock carrier; weft is shown beside it, and judged by what is claimed of its names.
-module(weft_de_bench_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).
%% For the same figures with quotas.
-export([figure/3, falls_behind/1, less_with_more/2, more_with_servers/1, names/0, names/2,
         keys/5]).

-define(STOCK, <<"stock_mesh">>).
-define(THROUGHPUT, <<"calls_per_s">>).
%% No global commands.
-define(NONE, {10, 0}).
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

-define(NAMES, "Names of weft are of another kind than those of stock: eventual. A register is "
        "done when this node has the name, and does not wait for the others.").

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
       "each, they would take half an hour more. " ?NAMES},
     (figure("de_6", "Fig. 6: latency of commands", <<"de_global">>))#{
       claim => "The time of register and unregister grows dramatically with the nodes, to 20 s "
       "with 100 of them; spawn, rpc and whereis are negligible beside it.",
       findings => fun(Results) -> names(<<"de_global">>, Results) end,
       charts => fun(Results) ->
                     [weft_report_chart:said("register, the paper's text",
                                             [{100, 20000000, "20 s with 100 nodes"}], Chart)
                      || Chart <- latencies(<<"de_global">>, last, commands() ++ peers(), Results)]
                 end,
       not_shown => ?TWO_CORES "100 nodes were not tried, as two cores carry all of them. "
       "Operations that take longer than the measurement are not in the means, here and there. "
       ?NAMES},
     (figure("riak", "Riak talk 2013: latency of register, unregister, whereis", <<"de_names">>))#{
       where => "Riak talk 2013: latency of register, unregister, whereis",
       claim => "With 2 % of global updates the time of register and unregister grows with the "
       "nodes; that of spawn and whereis does not.",
       findings => fun(Results) -> names(<<"de_names">>, Results) end,
       charts => fun(Results) ->
                     latencies(<<"de_names">>, last,
                               commands() ++ ["spawning", "local_register", "local_whereis"],
                               Results)
                 end,
       not_shown => ?TWO_CORES "Riak itself, its throughput and its availability: another "
       "program. Where the peak is (50 nodes with 0.5 %, 30 with 1 %): see de_5. " ?NAMES}].

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
       not_shown => ?TWO_CORES "Scaling, and computations of 100 ms and of one second: 10 ms "
       "instead, of which two cores do 200 in a second."},
     (figure("de_9", "Fig. 9: data size and computation time", <<"de_heavy">>))#{
       claim => "With 1,000 B, 1 ms and no global commands throughput grows linearly to 150 nodes.",
       findings => fun linear/1, charts => throughput(<<"de_heavy">>),
       not_shown => ?TWO_CORES "150 nodes were not tried, as two cores carry all of them. Each "
       "node wants 30 commands per second, which all of them together can compute. A third of "
       "them are \"rex calls\" (de_10), the others spawn and rpc, as there."},
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

%% @private What may not be left out where names of weft stand beside others.
-spec names() -> string().
names() -> ?NAMES.

%% @private
-spec figure(Id :: string(), Title :: string(), Workload :: binary()) -> map().
figure(Id, Title, Workload) ->
    #{id => Id, where => "DE-Bench 2014, " ++ Title,
      cells => ["--suites", "de_bench", "--only", lists:flatten(chosen(Workload))]}.

%% A list of them is separated by commas.
chosen(<<"de_global">> = Workload) ->
    ["de_bench: ", weft_report_words:workload(Workload),
     " .* (2|3|6|8|24|60) nodes. (0.0|0.01|0.5|1.0|5.0) %"];
chosen(Workload) ->
    ["de_bench: ", weft_report_words:workload(Workload), " .* (2|4|8|16|24) nodes"].

throughput(Workload) ->
    fun(Results) -> weft_report_de_bench:throughput(Workload, Results) end.

latencies(Workload, last, Operations, Results) ->
    lists:append([latencies(Workload, Parameter, Operations, Results)
                  || Parameter <- last(weft_report_de_bench:parameters(Workload, Results))]);
latencies(Workload, Parameter, Operations, Results) ->
    weft_report_de_bench:latencies(Workload, Parameter, Operations, Results).

last([]) -> [];
last(Parameters) -> [lists:last(Parameters)].

commands() -> ["register", "unregister", "whereis"].
peers() -> ["spawning", "remote_call"].
calls() -> ["spawning", "remote_call", "rex_call"].

%% ---- what is found ----

%% Of what is done without global commands, how much is done with them?
%% @private
-spec falls_behind(weft_report_results:results()) -> [weft_papers_figures:finding()].
falls_behind(Results) ->
    Workload = <<"de_global">>,
    [{weft_de_bench_doubts:verdict(
        Keys, of_variant(Variant, [weft_papers_verdict:less_than(0.9, Last),
                                   weft_papers_verdict:is(LastTimes < FirstTimes)],
                         [flat(Share) || {_, Share} <- Shares]), Results),
      [weft_report_words:variant(Variant), ", ",
       weft_report_de_bench:parameter(Workload, Parameter), ": of what is done without, ",
       lists:join(", ", [io_lib:format("~b % on ~b nodes~ts",
                                       [round(100 * Times), Nodes,
                                        weft_papers_verdict:interval(Share)])
                         || {Nodes, #{median := Times} = Share} <- Shares]),
       weft_de_bench_doubts:text(Keys, Results)]}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Parameter <- last(weft_report_de_bench:parameters(Workload, Results) -- [?NONE]),
        Shares <- [shares(Parameter, Variant, Results)], length(Shares) > 1,
        Keys <- [[Key || Of <- [Parameter, ?NONE],
                         {Nodes, Key} <- keys(Workload, Of, Variant, ?THROUGHPUT, Results),
                         lists:keymember(Nodes, 1, Shares)]],
        {_, #{median := FirstTimes}} <- [hd(Shares)],
        {_, #{median := LastTimes} = Last} <- [lists:last(Shares)]].

%% On most nodes, over the percentage.
falls_with_share(Results) ->
    [{weft_de_bench_doubts:verdict(
        Keys, of_more_nodes(
                sizes(by_parameter(<<"de_global">>, Variant, Results)),
                of_variant(Variant, [last_of(Ratios,
                                             fun(Ratio) ->
                                                 weft_papers_verdict:less_than(0.9, Ratio)
                                             end)],
                           [differs || Ratios =:= []] ++ [flat(Ratio) || Ratio <- Ratios])),
        Results),
      Text}
     || {Variant, Ratios, Text, Keys} <- rates(<<"de_global">>, Results)].

%% What is claimed of more nodes is open where these are all that were measured.
of_more_nodes([_, _ | _], Verdict) -> Verdict;
of_more_nodes(_Sizes, _Verdict) -> open.

%% The claim is about global names; another one is made for those of weft.
of_variant(<<"weft", _/binary>>, _Falls, AreFlat) -> weft_papers_verdict:all(AreFlat);
of_variant(?STOCK, Falls, _AreFlat) -> weft_papers_verdict:all(Falls);
of_variant(_Variant, _Falls, _AreFlat) -> open.

%% It does not differ much from what is done without global commands.
flat(Ratio) -> weft_papers_verdict:within({1 - ?FLAT, 1 + ?FLAT}, Ratio).

last_of([], _Judge) -> differs;
last_of(Ratios, Judge) -> Judge(lists:last(Ratios)).

shares(Parameter, Variant, Results) ->
    [{Nodes, Share}
     || {Nodes, Key} <- keys(<<"de_global">>, Parameter, Variant, ?THROUGHPUT, Results),
        {Of, Without} <- keys(<<"de_global">>, ?NONE, Variant, ?THROUGHPUT, Results),
        Of =:= Nodes, {ok, Share} <- [weft_report_results:ratio(Key, Without, Results)]].

%% Names against what does not involve all nodes.
%% @private
-spec names(Workload :: binary(), weft_report_results:results()) -> [weft_papers_figures:finding()].
names(Workload, Results) ->
    [{judged(Variant, weft_de_bench_doubts:verdict(Keys, grows(Registers, Spawn, Results),
                                                   Results)),
      io_lib:format("~ts: register ~ts~ts; spawn then ~ts~ts~ts",
                    [weft_report_words:variant(Variant), change(Registers, Results),
                     times(", ", element(2, lists:last(Registers)), element(2, hd(Registers)),
                           " times as long", Results), in_us(median(Spawn, Results)),
                     others(Workload, Parameter, Variant, Most, Results),
                     weft_de_bench_doubts:text(Keys, Results)])}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Parameter <- last(weft_report_de_bench:parameters(Workload, Results)),
        Registers <- [keys(Workload, Parameter, Variant, <<"register_mean_us">>, Results)],
        {Most, _} <- last(Registers),
        Spawn <- on(Most, keys(Workload, Parameter, Variant, <<"spawning_mean_us">>, Results)),
        Keys <- [lists:usort([element(2, hd(Registers)), element(2, lists:last(Registers))])]].

%% What was measured on so many nodes.
on(Nodes, Keys) -> [Key || {Of, Key} <- Keys, Of =:= Nodes].

%% From few nodes to many.
change([{Nodes, Key}], Results) ->
    io_lib:format("~ts with ~b nodes", [in_us(median(Key, Results)), Nodes]);
change([{Few, First} | More], Results) ->
    {Many, Last} = lists:last(More),
    io_lib:format("~ts with ~b nodes, ~ts with ~b",
                  [in_us(median(First, Results)), Few, in_us(median(Last, Results)), Many]).

%% What is judged, if several repetitions tell how far it can be trusted.
times(_Before, Same, Same, _After, _Results) ->
    "";
times(Before, Key, Of, After, Results) ->
    [[Before, weft_report_words:ratio(Times), After, weft_papers_verdict:interval(Ratio)]
     || {ok, #{median := Times, interval := {_, _}} = Ratio}
            <- [weft_report_results:ratio(Key, Of, Results)]].

grows([_], _Spawn, _Results) ->
    open;
grows([{_, First} | More], Spawn, Results) ->
    {_, Last} = lists:last(More),
    weft_papers_verdict:all([weft_papers_verdict:at_least(Times, Ratio)
                             || {Times, Of} <- [{?GROWS, First}, {5, Spawn}],
                                {ok, Ratio} <- [weft_report_results:ratio(Last, Of, Results)]]).

others(Workload, Parameter, Variant, Nodes, Results) ->
    [[", ", Operation, " ", in_us(median(Key, Results))]
     || Operation <- ["unregister", "whereis"],
        Key <- on(Nodes, keys(Workload, Parameter, Variant,
                              list_to_binary(Operation ++ "_mean_us"), Results))].

%% The largest of what is varied against the smallest, on most nodes.
%% @private
-spec less_with_more(Workload :: binary(), weft_report_results:results()) ->
          [weft_papers_figures:finding()].
less_with_more(Workload, Results) ->
    judged_rates(Workload, fun(Ratio) -> weft_papers_verdict:less_than(1, Ratio) end, Results).

%% @private
-spec more_with_servers(weft_report_results:results()) -> [weft_papers_figures:finding()].
more_with_servers(Results) ->
    judged_rates(<<"de_server">>, fun(Ratio) -> weft_papers_verdict:at_least(1, Ratio) end,
                 Results).

judged_rates(Workload, Judge, Results) ->
    [{judged(Variant, weft_de_bench_doubts:verdict(Keys, last_of(Ratios, Judge), Results)), Text}
     || {Variant, Ratios, Text, Keys} <- rates(Workload, Results)].

judged(?STOCK, Verdict) -> Verdict;
judged(_Variant, _Verdict) -> open.

%% Throughput for each value of what is varied: those after the first in terms of it. All are of the
%% most nodes on which both the first and the last value were measured: fewer nodes do less.
rates(Workload, Results) ->
    [{Variant, [Ratio || {_, Key} <- More,
                         {ok, Ratio} <- [weft_report_results:ratio(Key, First, Results)]],
      [weft_report_words:variant(Variant), ", ", integer_to_list(Nodes), " nodes: ",
       lists:join(", ", [rate(Workload, Parameter, Key, First, Results)
                         || {Parameter, Key} <- Rates]),
       weft_de_bench_doubts:text([Key || {_, Key} <- Rates], Results)],
      [Key || {_, Key} <- Rates]}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Measured <- [by_parameter(Workload, Variant, Results)], Nodes <- last(sizes(Measured)),
        [{_, First} | More] = Rates <- [[{Parameter, Key} || {Parameter, Keys} <- Measured,
                                                             Key <- on(Nodes, Keys)]]].

%% The numbers of nodes on which both the first and the last value were measured.
sizes([]) -> [];
sizes([{_, FirstKeys} | _] = Measured) ->
    {_, LastKeys} = lists:last(Measured),
    [Nodes || {Nodes, _} <- FirstKeys, lists:keymember(Nodes, 1, LastKeys)].

%% Where throughput was measured, for each value of what is varied that was.
by_parameter(Workload, Variant, Results) ->
    [{Parameter, Keys}
     || Parameter <- weft_report_de_bench:parameters(Workload, Results),
        [_ | _] = Keys <- [keys(Workload, Parameter, Variant, ?THROUGHPUT, Results)]].

rate(Workload, Parameter, Key, First, Results) ->
    [weft_report_de_bench:parameter(Workload, Parameter), " ",
     weft_report_words:value(median(Key, Results), "1/s"),
     [weft_papers_verdict:interval(Ratio) || {ok, Ratio} <- [weft_report_results:ratio(Key, First,
                                                                                       Results)]]].

%% A command that is drawn for the own node is nothing: N nodes do N - 1 times as much as two.
linear(Results) ->
    Workload = <<"de_heavy">>,
    [{judged(Variant, is_linear(Rates, Results)),
      [weft_report_words:variant(Variant), ", commands per second for each other node: ",
       lists:join(", ", [io_lib:format("~.1f with ~b", [median(Key, Results) / (Nodes - 1), Nodes])
                         || {Nodes, Key} <- Rates])]}
     || Variant <- weft_report_de_bench:variants(Workload, Results),
        Parameter <- weft_report_de_bench:parameters(Workload, Results),
        [_ | _] = Rates <- [keys(Workload, Parameter, Variant, ?THROUGHPUT, Results)]].

is_linear([_], _Results) ->
    open;
is_linear([{Few, First} | More], Results) ->
    {Many, Last} = lists:last(More),
    case weft_report_results:ratio(Last, First, Results) of
        {ok, Ratio} -> weft_papers_verdict:at_least(0.85 * (Many - 1) / (Few - 1), Ratio);
        none -> open
    end.

%% rpc as it is today, and as it was.
calls(Workload, Which, Results) ->
    Parameters = case Which of
                     last -> last(weft_report_de_bench:parameters(Workload, Results));
                     _ -> [Which]
                 end,
    [{judged(Variant, called(Operation, Keys, Spawn, Results)),
      io_lib:format("~ts: ~ts ~ts~ts, when spawn takes ~ts~ts",
                    [weft_report_words:variant(Variant), Operation, change(Keys, Results),
                     times(", ", element(2, lists:last(Keys)), element(2, hd(Keys)),
                           " times as long", Results),
                     in_us(median(Spawn, Results)),
                     times(": ", element(2, lists:last(Keys)), Spawn, " times that", Results)])}
     || Variant <- weft_report_de_bench:variants(Workload, Results), Parameter <- Parameters,
        {Operation, Metric} <- [{"rpc", <<"remote_call_mean_us">>},
                                {"rex call", <<"rex_call_mean_us">>},
                                {"gen_server call", <<"gen_server_call_mean_us">>},
                                {"gen_statem call", <<"fsm_server_call_mean_us">>}],
        Keys <- [keys(Workload, Parameter, Variant, Metric, Results)], {Most, _} <- last(Keys),
        Spawn <- on(Most, keys(Workload, Parameter, Variant, <<"spawning_mean_us">>, Results))].

called(_Operation, [_], _Spawn, _Results) ->
    open;
called(Operation, [{_, First} | More], Spawn, Results) ->
    {_, Last} = lists:last(More),
    case [Ratio || Of <- [First, Spawn],
                   {ok, Ratio} <- [weft_report_results:ratio(Last, Of, Results)]] of
        [Growth, Ratio] -> weft_papers_verdict:all(called(Operation, Growth, Ratio));
        _ZeroTimes -> open
    end.

called("r" ++ _RpcOrRex, Growth, Ratio) ->
    [weft_papers_verdict:at_least(?GROWS, Growth), weft_papers_verdict:at_least(?SLOWER, Ratio)];
called(_Server, Growth, Ratio) ->
    [weft_papers_verdict:less_than(?GROWS, Growth), weft_papers_verdict:at_most(?SAME, Ratio)].

in_us(Value) -> weft_report_words:value(Value, "us").

median(Key, Results) ->
    {Cell, Variant, Metric} = Key,
    {ok, #{median := Median}} = weft_report_results:measured(Cell, Variant, Metric, Results),
    Median.

%% What was measured, by the number of nodes.
%% @private
-spec keys(Workload :: binary(), weft_report_de_bench:parameter(), Variant :: binary(),
           Metric :: binary(), weft_report_results:results()) ->
          [{Nodes :: pos_integer(), weft_report_results:key()}].
keys(Workload, Parameter, Variant, Metric, Results) ->
    [{Nodes, {Cell, Variant, Metric}}
     || {Nodes, Cell} <- weft_report_de_bench:measured(Workload, Parameter, Variant, Metric,
                                                       Results)].
