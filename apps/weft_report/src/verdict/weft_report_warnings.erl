%% SPDX-License-Identifier: Apache-2.0
%% @doc What makes the numbers of a run doubtful, in sentences: a congestion control that is not the
%% one of the machine, quotas that could not be had or did not bind, repetitions that failed, and
%% measurements that took less time than their warm-up.
-module(weft_report_warnings).

-export([all/2, shares/1, share/2]).
-export_type([environment/0]).

%% Above this cores have nothing left to give.
-define(BUSY_PERCENT, 95).
%% Above this nodes had more than their quotas. A little more is how processor time is counted.
-define(USED_PERCENT, 110).
%% Where repetitions failed, and of the reason: all of it is in the results.
-define(FAILURES_TOLD, 10).
-define(REASON_CHARACTERS, 100).

%% As weft_report_record reads it.
-type environment() :: #{Key :: binary() => Value :: binary()}.

%% @doc The warnings of a run.
-spec all(weft_report_results:results(), environment()) -> [unicode:chardata()].
all(Results, Environment) ->
    congestion_control(Environment) ++ quotas(Environment) ++ failures(Results) ++ shares(Results)
        ++ warm_ups(Results).

%% A namespace may refuse what is asked of it, and takes another one without a word.
congestion_control(#{<<"congestion_control">> := InForce,
                     <<"congestion_control_of_the_machine">> := OfMachine})
  when InForce =/= OfMachine, OfMachine =/= <<>> ->
    [["the connections of this run had the congestion control ", InForce, ", those of the machine "
      "have ", OfMachine]];
congestion_control(_Environment) ->
    [].

quotas(#{<<"quota">> := <<"none; ", Why/binary>>}) ->
    [["nodes had no quotas, and shared the cores as they could: ", Why]];
quotas(_Environment) ->
    [].

%% What works now and then looks as good as what always works: its numbers are those of the
%% repetitions that did not fail.
failures(Results) ->
    Failures = [failure(Cell, Variant, Notes)
                || Cell <- weft_report_results:cells(Results),
                   Variant <- weft_report_results:variants(Cell, Results),
                   [_ | _] = Notes <- [[Note || {failed, Note} <- weft_report_results:trouble(
                                                                    Cell, Variant, Results)]]],
    case length(Failures) - ?FAILURES_TOLD of
        More when More > 0 ->
            lists:sublist(Failures, ?FAILURES_TOLD)
                ++ [io_lib:format("failed were also repetitions of ~b others", [More])];
        _ ->
            Failures
    end.

failure(Cell, Variant, [Note | _] = Notes) ->
    [weft_report_words:cell(Cell), ", ", weft_report_words:variant(Variant),
     io_lib:format(": failed ~b times, and no number has these repetitions: ", [length(Notes)]),
     string:slice(Note, 0, ?REASON_CHARACTERS)].

%% @doc Those about quotas, which are a promise of the machine.
-spec shares(weft_report_results:results()) -> [unicode:chardata()].
shares(Results) ->
    [[weft_report_words:cell(Cell), ", ", weft_report_words:variant(Variant), ": ", Text]
     || Cell <- weft_report_results:cells(Results),
        Variant <- weft_report_results:variants(Cell, Results),
        {ok, _} <- [recorded(Cell, Variant, <<"quota_percent">>, Results)],
        Metric <- [<<"machine_busy_percent">>, <<"quota_used_percent">>],
        {ok, #{median := Percent}} <- [recorded(Cell, Variant, Metric, Results)],
        Text <- share(Metric, Percent)].

%% @doc The warning about quotas where that was recorded beside them, if it is one.
-spec share(Metric :: binary(), Percent :: number()) -> [unicode:chardata()].
share(<<"machine_busy_percent">>, Percent) when Percent > ?BUSY_PERCENT ->
    [["the cores were busy for ", weft_report_words:value(Percent, "%"), " of the time, and nodes "
      "may have had less than their quotas"]];
share(<<"quota_used_percent">>, Percent) when Percent > ?USED_PERCENT ->
    [["nodes used ", weft_report_words:value(Percent, "%"), " of their quotas, which did not hold "
      "them up"]];
share(_Metric, _Percent) ->
    [].

%% Then most of what there was to get used to may have come while it was measured.
warm_ups(Results) ->
    [[weft_report_words:cell(Cell), ", ", weft_report_words:variant(Variant),
      ": was measured for ", weft_report_words:value(Measured, "s"), ", after a warm-up of ",
      weft_report_words:value(WarmUp, "s")]
     || Cell <- weft_report_results:cells(Results),
        Variant <- weft_report_results:variants(Cell, Results),
        {ok, #{median := WarmUp}} <- [recorded(Cell, Variant, <<"warm_up_s">>, Results)],
        {ok, #{median := Measured}} <- [recorded(Cell, Variant, <<"measured_s">>, Results)],
        Measured < WarmUp].

recorded(Cell, Variant, Metric, Results) ->
    weft_report_results:absolute({Cell, Variant, Metric}, Results).
