%% SPDX-License-Identifier: Apache-2.0
%% @doc What is found in results of DE-Bench, and by which bounds it is judged, for its figures
%% without quotas and with them. What a claim is judged by is the stock carrier; weft is shown
%% beside it, and judged by what is claimed of its names.
-module(weft_de_bench_findings).

-export([behind/0, slower_names/0, less/0, more/0, slow_calls/0, linear/0]).
-export([falls_behind/1, falls_with_share/1, names/2, less_with_more/2, more_with_servers/1,
         linear/1, calls/3, keys/5]).

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
%% What is done with global commands is less if it is less than so much of what is done without.
-define(BEHIND, 0.9).
%% How many times the time of spawn names take, at least.
-define(MANY_TIMES, 5).
%% As many nodes, each with one command after the other, do at least so much more.
-define(LINEAR, 0.85).
%% What grows with the nodes is judged from so many on.
-define(UP_TO, 24).

%% ---- what is judged ----

%% @doc What `falls_behind/1' and `falls_with_share/1' judge.
-spec behind() -> iolist().
behind() ->
    [io_lib:format("Of stock, with most global commands: on the most nodes less than ~p of what is "
                   "done there without, and less of it than on the fewest. Of names of weft: "
                   "within ~b % of it on each number of nodes.",
                   [?BEHIND, round(100 * ?FLAT)]), open_below()].

%% @doc What `names/2' judges.
-spec slower_names() -> iolist().
slower_names() ->
    [io_lib:format("Of stock: on the most nodes a register takes at least ~b times as long as on "
                   "the fewest, and ~b times as long as spawn. Weft is not judged.",
                   [?GROWS, ?MANY_TIMES]), open_below()].

%% @doc What `less_with_more/2' judges.
-spec less() -> iolist().
less() ->
    ["Of stock, on the most nodes: with the largest value less is done than with the smallest. "
     "Weft is not judged.", weft_de_bench_doubts:bound()].

%% @doc What `more_with_servers/1' judges.
-spec more() -> iolist().
more() ->
    ["Of stock, on the most nodes: with the most server calls as much is done as with the fewest, "
     "or more. Weft is not judged.", weft_de_bench_doubts:bound()].

open_below() -> [weft_papers_remarks:up_to(?UP_TO, "nodes"), weft_de_bench_doubts:bound()].

%% @doc What `calls/3' judges.
-spec slow_calls() -> iolist().
slow_calls() ->
    [io_lib:format("Of stock: on the most nodes rpc and rex calls take at least ~b times as long "
                   "as on the fewest, and ~p times as long as spawn; server calls less than ~b "
                   "times as long as on the fewest, and at most ~p times as long as spawn. Weft is "
                   "not judged.", [?GROWS, ?SLOWER, ?GROWS, ?SAME]),
     weft_papers_remarks:up_to(?UP_TO, "nodes")].

%% @doc What `linear/1' judges.
-spec linear() -> iolist().
linear() ->
    [io_lib:format("Of stock: for each other node at least ~p of the commands per second, on the "
                   "most nodes in terms of the fewest. Weft is not judged.", [?LINEAR]),
     weft_papers_remarks:up_to(?UP_TO, "nodes")].

%% ---- what is found ----

%% @doc Of what is done without global commands, how much is done with them?
-spec falls_behind(weft_report_results:results()) -> [weft_papers_verdict:finding()].
falls_behind(Results) ->
    Workload = <<"de_global">>,
    [{weft_de_bench_doubts:verdict(
        Keys, weft_papers_verdict:up_to(
                ?UP_TO, Most,
                of_variant(Variant, [weft_papers_verdict:less_than(?BEHIND, Last),
                                     weft_papers_verdict:is(LastTimes < FirstTimes)],
                           [flat(Share) || {_, Share} <- Shares])), Results),
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
        {Most, #{median := LastTimes} = Last} <- [lists:last(Shares)]].

%% @doc On most nodes, over the percentage.
-spec falls_with_share(weft_report_results:results()) -> [weft_papers_verdict:finding()].
falls_with_share(Results) ->
    [{weft_de_bench_doubts:verdict(
        Keys, of_more_nodes(
                sizes(by_parameter(<<"de_global">>, Variant, Results)),
                of_variant(Variant, [last_of(Ratios,
                                             fun(Ratio) ->
                                                 weft_papers_verdict:less_than(?BEHIND, Ratio)
                                             end)],
                           [differs || Ratios =:= []] ++ [flat(Ratio) || Ratio <- Ratios])),
        Results),
      Text}
     || {Variant, Ratios, Text, Keys} <- rates(<<"de_global">>, Results)].

%% What is claimed of more nodes says nothing of few.
of_more_nodes([], _Verdict) -> open;
of_more_nodes(Sizes, Verdict) ->
    weft_papers_verdict:up_to(?UP_TO, lists:last(Sizes), Verdict).

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

%% @doc Names against what does not involve all nodes.
-spec names(Workload :: binary(), weft_report_results:results()) -> [weft_papers_verdict:finding()].
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
    {Most, Last} = lists:last(More),
    weft_papers_verdict:up_to(
      ?UP_TO, Most,
      weft_papers_verdict:all([weft_papers_verdict:at_least(Times, Ratio)
                               || {Times, Of} <- [{?GROWS, First}, {?MANY_TIMES, Spawn}],
                                  {ok, Ratio} <- [weft_report_results:ratio(Last, Of, Results)]])).

others(Workload, Parameter, Variant, Nodes, Results) ->
    [[", ", Operation, " ", in_us(median(Key, Results))]
     || Operation <- ["unregister", "whereis"],
        Key <- on(Nodes, keys(Workload, Parameter, Variant,
                              list_to_binary(Operation ++ "_mean_us"), Results))].

%% @doc The largest of what is varied against the smallest, on most nodes.
-spec less_with_more(Workload :: binary(), weft_report_results:results()) ->
          [weft_papers_verdict:finding()].
less_with_more(Workload, Results) ->
    judged_rates(Workload, fun(Ratio) -> weft_papers_verdict:less_than(1, Ratio) end, Results).

%% @doc The same, where more of it is claimed to do more.
-spec more_with_servers(weft_report_results:results()) -> [weft_papers_verdict:finding()].
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

%% @doc A command that is drawn for the own node is nothing: N nodes do N - 1 times as much as two.
-spec linear(weft_report_results:results()) -> [weft_papers_verdict:finding()].
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
        {ok, Ratio} ->
            Linear = weft_papers_verdict:at_least(?LINEAR * (Many - 1) / (Few - 1), Ratio),
            weft_papers_verdict:up_to(?UP_TO, Many, Linear);
        none -> open
    end.

%% @doc rpc as it is today, and as it was.
-spec calls(Workload :: binary(), weft_report_de_bench:parameter() | last,
            weft_report_results:results()) -> [weft_papers_verdict:finding()].
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
    {Most, Last} = lists:last(More),
    case [Ratio || Of <- [First, Spawn],
                   {ok, Ratio} <- [weft_report_results:ratio(Last, Of, Results)]] of
        [Growth, Ratio] ->
            weft_papers_verdict:up_to(?UP_TO, Most,
                                      weft_papers_verdict:all(called(Operation, Growth, Ratio)));
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

%% @doc What was measured, by the number of nodes.
-spec keys(Workload :: binary(), weft_report_de_bench:parameter(), Variant :: binary(),
           Metric :: binary(), weft_report_results:results()) ->
          [{Nodes :: pos_integer(), weft_report_results:key()}].
keys(Workload, Parameter, Variant, Metric, Results) ->
    [{Nodes, {Cell, Variant, Metric}}
     || {Nodes, Cell} <- weft_report_de_bench:measured(Workload, Parameter, Variant, Metric,
                                                       Results)].

last([]) -> [];
last(Parameters) -> [lists:last(Parameters)].
