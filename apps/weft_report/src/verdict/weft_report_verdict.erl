%% SPDX-License-Identifier: Apache-2.0
%% @doc Judges the targets of `weft_report_targets' by the results of a run.
%%
%% A cell meets a target if the whole interval of what was measured (`weft_report_interval') is on
%% the right side of the threshold, and misses it if all of that is on the wrong side. In between it
%% is within noise of the target: another run may say otherwise. One repetition has no interval, so
%% its value decides. A target is missed if it is in one of the cells that were measured, else
%% within noise if one is, else met. A cell in which the variant failed while what it is compared
%% with worked is missed too. What was skipped, or can not be compared, is no verdict: it is counted
%% apart, so that a short run does not look like a success. The worst cell tells how far off a
%% target is, or how near to be missed.
-module(weft_report_verdict).

-export([all/1, judge/2, counts/1, has_interval/1, losses/1]).
-export_type([verdict/0, judged/0, check/0, loss/0]).

-type verdict() :: met | within_noise | missed | not_measured.
-type check() :: #{cell := weft_report_record:cell(), verdict := met | within_noise | missed,
                   threshold := number(), is_fast := boolean(),
                   %% Of a ratio, or of the value itself; `failed' with the reason.
                   result := weft_report_results:ratio() | weft_report_results:absolute()
                             | {failed, binary()}}.
-type judged() :: #{target := weft_report_targets:target(), verdict := verdict(),
                    checks := [check()], unmeasured := [weft_report_record:cell()],
                    worst := check() | none}.
-type loss() :: #{cell := weft_report_record:cell(), variant := binary(), metric := binary(),
                  ratio := weft_report_results:ratio()}.

%% @doc All targets.
-spec all(weft_report_results:results()) -> [judged()].
all(Results) ->
    [judge(Target, Results) || Target <- weft_report_targets:all()].

%% @doc One target.
-spec judge(weft_report_targets:target(), weft_report_results:results()) -> judged().
judge(#{where := Where} = Target, Results) ->
    Cells = [Cell || Cell <- weft_report_results:cells(Results), selects(Where, Cell)],
    Judged = [{Cell, check(Cell, Target, Results)} || Cell <- Cells],
    Checks = [Check || {_, #{} = Check} <- Judged],
    #{target => Target, verdict => verdict([Verdict || #{verdict := Verdict} <- Checks]),
      checks => Checks, unmeasured => [Cell || {Cell, none} <- Judged],
      worst => worst(Checks, Target)}.

verdict([]) -> not_measured;
verdict(Verdicts) ->
    lists:last(lists:sort(fun(A, B) -> severity(A) =< severity(B) end, Verdicts)).

severity(met) -> 0;
severity(within_noise) -> 1;
severity(missed) -> 2.

%% @doc How many targets have each verdict.
-spec counts([judged()]) -> #{verdict() => non_neg_integer()}.
counts(All) ->
    maps:from_list([{Kind, length([x || #{verdict := Verdict} <- All, Verdict =:= Kind])}
                    || Kind <- [met, missed, within_noise, not_measured]]).

%% ---- which cells ----

selects(Where, {Suite, Workload, SizeBytes, Pairs, Streams, Link}) ->
    Columns = #{suite => Suite, workload => Workload, size_bytes => SizeBytes, pairs => Pairs,
                streams => Streams, link => Link},
    lists:all(fun({Column, Allowed}) ->
                  lists:member(map_get(Column, Columns), [as_read(Value) || Value <- Allowed])
              end, maps:to_list(Where)).

as_read(Value) when is_atom(Value) -> atom_to_binary(Value);
as_read(Value) -> Value.

%% ---- one cell ----

check(Cell, #{variant := Variant, metric := Metric} = Target, Results) ->
    Ours = {Cell, atom_to_binary(Variant), atom_to_binary(Metric)},
    Other = other(Cell, Target),
    case result(Ours, Other, Results) of
        {ok, Result} ->
            {IsFast, Threshold} = threshold(Other, Target, Results),
            #{cell => Cell, result => Result, threshold => Threshold, is_fast => IsFast,
              verdict => compare(Result, Threshold, Target)};
        none ->
            failed(Cell, Ours, Other, Target, Results)
    end.

other(Cell, #{with := {variant, Variant}, metric := Metric}) ->
    {Cell, atom_to_binary(Variant), atom_to_binary(Metric)};
other(Cell, #{with := {metric, Metric}, variant := Variant}) ->
    {Cell, atom_to_binary(Variant), atom_to_binary(Metric)};
other({Suite, Workload, SizeBytes, _, Streams, Link},
      #{with := {pairs, Pairs}, variant := Variant, metric := Metric}) ->
    {{Suite, Workload, SizeBytes, Pairs, Streams, Link}, atom_to_binary(Variant),
     atom_to_binary(Metric)};
other(_Cell, #{with := none}) ->
    none.

result(Ours, none, Results) ->
    weft_report_results:absolute(Ours, Results);
result(Ours, Other, Results) ->
    weft_report_results:ratio(Ours, Other, Results).

threshold({Cell, Variant, Metric}, #{fast := {Above, Fast}, threshold := Threshold}, Results) ->
    {ok, #{median := Median}} = weft_report_results:measured(Cell, Variant, Metric, Results),
    case Median > Above of
        true -> {true, Fast};
        false -> {false, Threshold}
    end;
threshold(_Other, #{threshold := Threshold}, _Results) ->
    {false, Threshold}.

compare(#{interval := none, median := Median}, Threshold, Target) ->
    compare(#{interval => {Median, Median}}, Threshold, Target);
compare(#{interval := {Low, High}}, Threshold, #{comparison := Comparison}) ->
    case Comparison of
        at_least when Low >= Threshold -> met;
        at_most when High =< Threshold -> met;
        at_least when High >= Threshold -> within_noise;
        at_most when Low =< Threshold -> within_noise;
        _ -> missed
    end.

%% That ours went wrong where the other one did not is a result.
failed(Cell, {_, Variant, _}, Other, #{threshold := Threshold}, Results) ->
    Failures = [Note || {failed, Note} <- weft_report_results:trouble(Cell, Variant, Results)],
    case {Failures, is_measured(Other, Results)} of
        {[Note | _], true} -> #{cell => Cell, result => {failed, Note}, threshold => Threshold,
                                is_fast => false, verdict => missed};
        _ -> none
    end.

is_measured(none, _Results) -> true;
is_measured({Cell, Variant, Metric}, Results) ->
    none =/= weft_report_results:measured(Cell, Variant, Metric, Results).

worst([], _Target) ->
    none;
worst(Checks, Target) ->
    {_, Worst} = hd(lists:keysort(1, [{{-severity(Verdict), margin(Check, Target)}, Check}
                                      || #{verdict := Verdict} = Check <- Checks])),
    Worst.

%% Below 1 is missed.
margin(#{result := {failed, _}}, _Target) -> -1;
margin(#{result := #{median := Median}, threshold := Threshold}, #{comparison := at_least}) ->
    Median / Threshold;
margin(#{result := #{median := Median}}, #{comparison := at_most}) when Median =< 0 ->
    1.0e9;
margin(#{result := #{median := Median}, threshold := Threshold}, #{comparison := at_most}) ->
    Threshold / Median.

%% @doc Is there more than one repetition to judge by? What failed is judged by that.
-spec has_interval(check() | none) -> boolean().
has_interval(#{result := #{interval := Interval}}) -> Interval =/= none;
has_interval(_FailedOrNone) -> true.

%% ---- beyond targets ----

%% @doc Everything in which a variant of weft is worse than the stock carrier in the metrics that
%% say most about the workload, the worst first, as how many times as good.
-spec losses(weft_report_results:results()) -> [loss()].
losses(Results) ->
    Found = [Loss || {_, Workload, _, _, _, _} = Cell <- weft_report_results:cells(Results),
                     Variant <- weft_report_results:variants(Cell, Results),
                     not weft_report_results:is_stock(Variant),
                     Metric <- weft_report_results:headline_metrics(Workload),
                     Loss <- loss({Cell, Variant, Metric}, Results)],
    lists:sort(fun(#{ratio := #{median := A}}, #{ratio := #{median := B}}) -> A =< B end, Found).

loss({Cell, Variant, Metric} = Ours, Results) ->
    case better(Ours, weft_report_results:baseline(Ours, Results), Results) of
        {ok, #{median := Median} = Ratio} when Median < 1 ->
            [#{cell => Cell, variant => Variant, metric => Metric, ratio => Ratio}];
        _ ->
            []
    end.

better(_Ours, none, _Results) ->
    none;
better({_, _, Metric} = Ours, Stock, Results) ->
    case weft_report_results:best(Metric) of
        more -> weft_report_results:ratio(Ours, Stock, Results);
        less -> weft_report_results:ratio(Stock, Ours, Results);
        none -> none
    end.
