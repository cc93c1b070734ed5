%% SPDX-License-Identifier: Apache-2.0
%% @doc What makes measurements of DE-Bench unfit for a verdict: operations that failed, times that
%% are those of a few, and, with names, a throughput that still changed while it was measured. What
%% was not recorded is not doubted.
-module(weft_de_bench_doubts).

-export([verdict/3, text/2, bound/0]).

%% Of all operations.
-define(FAILED_MAX, 0.01).
%% Times of which a mean may be taken.
-define(FEWEST, 5).
%% By how many percent the last half may differ from the first.
-define(CHANGE_MAX, 20).
%% Where commands that wait for all nodes become more and more.
-define(CHANGING, [<<"de_global">>, <<"de_names">>]).

%% @doc The verdict, if there is no doubt about what it was found in.
-spec verdict([weft_report_results:key()], weft_papers_verdict:verdict(),
              weft_report_results:results()) -> weft_papers_verdict:verdict().
verdict(Keys, Verdict, Results) ->
    case lists:any(fun(Key) -> is_doubtful(Key, Results) end, Keys) of
        true -> open;
        false -> Verdict
    end.

is_doubtful(Key, Results) ->
    too_many_failed(Key, Results) orelse few(Key, Results) =/= []
        orelse changes(Key, Results) =/= [].

%% @doc When that is so, for what is said of figures.
-spec bound() -> iolist().
bound() ->
    io_lib:format(" Open where more than ~b % of the operations failed, where a mean is one of "
                  "fewer than ~b times, and, with names, where the last half of the time has over "
                  "~b % more or less than the first.",
                  [round(100 * ?FAILED_MAX), ?FEWEST, ?CHANGE_MAX]).

%% @doc The doubts and all that failed, in words that follow on others.
-spec text([weft_report_results:key()], weft_report_results:results()) -> iolist().
text(Keys, Results) ->
    Once = lists:usort([{Cell, Variant, any} || {Cell, Variant, _} <- Keys]),
    Failed = lists:sum([failed(Key, Results) || Key <- Once]),
    Unfinished = lists:sum([sum(<<"unfinished_operations">>, Key, Results) || Key <- Once]),
    [[io_lib:format("; ~b failed", [Failed]) || Failed > 0],
     [io_lib:format("; ~b not done at the end", [Unfinished]) || Unfinished > 0],
     [io_lib:format("; from ~b times with ~b nodes", [Count, Nodes])
      || {{_, _, _, Nodes, _, _}, _, _} = Key <- Keys, Count <- few(Key, Results)],
     [io_lib:format("; with ~b nodes the last half of the time has ~b % of the first",
                    [Nodes, round(Percent)])
      || {{_, _, _, Nodes, _, _}, _, _} = Key <- Once, Percent <- changes(Key, Results)]].

%% What was not done at the end is told apart: workers are in the midst of something then.
failed(Key, Results) ->
    sum(<<"failed_operations">>, Key, Results) - sum(<<"unfinished_operations">>, Key, Results).

too_many_failed(Key, Results) ->
    Failed = failed(Key, Results),
    case sum(<<"calls">>, Key, Results) of
        0 -> false;
        Done -> Failed > ?FAILED_MAX * (Done + Failed)
    end.

%% How many times a mean is taken from, in the repetition that has the fewest.
few({Cell, Variant, Metric}, Results) ->
    [round(Fewest)
     || [Operation, <<>>] <- [binary:split(Metric, <<"_mean_us">>)],
        {ok, #{low := Fewest}} <- [measured(<<Operation/binary, "_count">>, {Cell, Variant, Metric},
                                            Results)],
        Fewest < ?FEWEST].

changes({{_, Workload, _, _, _, _}, _, _} = Key, Results) ->
    [Percent || lists:member(Workload, ?CHANGING),
                {ok, #{median := Percent}} <- [measured(<<"last_half_percent">>, Key, Results)],
                abs(Percent - 100) > ?CHANGE_MAX].

sum(Metric, Key, Results) ->
    case measured(Metric, Key, Results) of
        {ok, #{sum := Sum}} -> Sum;
        none -> 0
    end.

measured(Metric, {Cell, Variant, _}, Results) ->
    weft_report_results:measured(Cell, Variant, Metric, Results).
