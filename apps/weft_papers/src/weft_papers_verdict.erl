%% SPDX-License-Identifier: Apache-2.0
%% @doc Does the ratio of two measurements agree with what a paper claims of it? What more
%% repetitions may decide the other way is open: then the interval of the ratio
%% (`weft_report_interval') is on both sides of the claim. With one repetition there is no interval,
%% and the ratio itself decides.
-module(weft_papers_verdict).

-export([at_least/2, at_most/2, less_than/2, within/2, all/1, is/1, with_failures/2, interval/1]).
-export([no_failures/1, quotas/2, up_to/3, failed/2, complete/2, incomplete/1]).
-export_type([verdict/0, finding/0]).

%% `open': what was measured neither confirms nor contradicts the claim.
-type verdict() :: agrees | differs | open.
-type finding() :: {verdict(), Text :: unicode:chardata()}.
-type ratio() :: weft_report_results:ratio() | weft_report_results:absolute().

%% @doc So many times as much, or more.
-spec at_least(number(), ratio()) -> verdict().
at_least(Claimed, #{median := Median} = Ratio) ->
    decided(Claimed, Ratio, Median >= Claimed).

%% @doc So many times as much, or less.
-spec at_most(number(), ratio()) -> verdict().
at_most(Claimed, #{median := Median} = Ratio) ->
    decided(Claimed, Ratio, Median =< Claimed).

%% @doc Not even so many times as much.
-spec less_than(number(), ratio()) -> verdict().
less_than(Claimed, #{median := Median} = Ratio) ->
    decided(Claimed, Ratio, Median < Claimed).

decided(Claimed, #{interval := Interval}, Holds) ->
    case weft_report_interval:contains(Claimed, Interval) of
        true -> open;
        false -> is(Holds)
    end.

%% @doc So many times as much, from Low to High.
-spec within({Low :: number(), High :: number()}, ratio()) -> verdict().
within({Low, High}, #{median := Median, interval := none}) ->
    is(Low =< Median andalso Median =< High);
within({Low, High}, #{interval := {Least, Most}}) when Low =< Least, Most =< High ->
    agrees;
within({Low, High}, #{interval := {Least, Most}}) when Most < Low; High < Least ->
    differs;
within(_Claimed, _Ratio) ->
    open.

%% @doc A claim of several parts.
-spec all([verdict()]) -> verdict().
all(Verdicts) ->
    case {lists:member(differs, Verdicts), lists:member(open, Verdicts)} of
        {true, _} -> differs;
        {false, true} -> open;
        {false, false} -> agrees
    end.

%% @doc What is counted, or has no ratio.
-spec is(boolean()) -> verdict().
is(true) -> agrees;
is(false) -> differs.

%% @doc A claim about failures, of which there were at least so many in each repetition. Where there
%% were none nothing is found.
-spec with_failures(Fewest :: number(), verdict()) -> verdict().
with_failures(Fewest, Verdict) when Fewest > 0 -> Verdict;
with_failures(_None, _Verdict) -> open.

%% @doc Why nothing is found then.
-spec no_failures(Fewest :: number()) -> unicode:chardata().
no_failures(Fewest) when Fewest > 0 -> "";
no_failures(_None) -> " (none in one repetition)".

%% @doc A claim about more and more of something, up to so many: of fewer it says nothing.
-spec up_to(Claimed :: pos_integer(), Most :: pos_integer(), verdict()) -> verdict().
up_to(Claimed, Most, Verdict) when Most >= Claimed -> Verdict;
up_to(_Claimed, _Fewer, _Verdict) -> open.

%% @doc How many repetitions failed, of these measurements together.
-spec failed([{weft_report_record:cell(), Variant :: binary()}], weft_report_results:results()) ->
          non_neg_integer().
failed(Measurements, Results) ->
    length([Note || {Cell, Variant} <- Measurements,
                    {failed, Note} <- weft_report_results:trouble(Cell, Variant, Results)]).

%% @doc A claim that each repetition has to bear out, of which so many failed: no number has these,
%% so they may be what contradicts it.
-spec complete(Failed :: non_neg_integer(), verdict()) -> verdict().
complete(0, Verdict) -> Verdict;
complete(_Failed, agrees) -> open;
complete(_Failed, Verdict) -> Verdict.

%% @doc How many failed, for what is said of it.
-spec incomplete(Failed :: non_neg_integer()) -> unicode:chardata().
incomplete(0) -> "";
incomplete(1) -> "; one repetition failed, and is in no number";
incomplete(Failed) ->
    ["; ", integer_to_list(Failed), " repetitions failed, and are in no number"].

%% @doc What is found in the results of nodes that had quotas. Without these, numbers are about
%% something else. Where the machine was too busy to give what it had promised, or nodes took more,
%% nothing is decided.
-spec quotas(weft_report_results:results(), fun(() -> [finding()])) ->
          [finding()].
quotas(Results, Find) ->
    case weft_report_results:sharing(weft_report_results:cells(Results), Results) of
        #{<<"quota_percent">> := _} ->
            case weft_report_warnings:shares(Results) of
                [] -> Find();
                [_ | _] -> [{open, Text} || {_, Text} <- Find()]
            end;
        _ -> [{open, "nodes had no quotas in this run, and shared the cores as they could"}]
    end.

%% @doc The interval in brackets, for what is said of a ratio.
-spec interval(ratio()) -> unicode:chardata().
interval(#{interval := none}) -> "";
interval(#{interval := Interval}) -> [" (", weft_report_words:interval(Interval), ")"].
