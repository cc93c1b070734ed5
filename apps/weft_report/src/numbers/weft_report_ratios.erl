%% SPDX-License-Identifier: Apache-2.0
%% @doc All ratios of a report as a file for other programs, `ratios.csv': a line for each cell,
%% variant and metric that is compared with a stock carrier, and one more for a variant with several
%% lanes, which is compared with one lane, too.
%%
%% ```
%% suite, workload, size_bytes, pairs, streams, link, variant, metric    as in weft_report_record
%% stock         the variant that it is divided by: the stock carrier, or the one with one lane
%% ratio         of the medians
%% low, high     the 95 % interval of the ratio; empty if one of both was measured once
%% within_noise  true if that contains 1; empty without an interval
%% superiority   the share of all pairs of repetitions, of variant and stock, in which the value of
%%               the variant was more: 0.5 is no effect
%% '''
-module(weft_report_ratios).

-export([file/1, lines/1]).

-define(HEADS, [suite, workload, size_bytes, pairs, streams, link, variant, metric, stock, ratio,
                low, high, within_noise, superiority]).

%% @doc Where they are.
-spec file(Dir :: file:filename()) -> file:filename().
file(Dir) -> filename:join(Dir, "ratios.csv").

%% @doc The file of a run.
-spec lines(weft_report_results:results()) -> iodata().
lines(Results) ->
    [weft_report_csv:line(?HEADS)
     | [line(Key, Other, Ratio)
        || Cell <- weft_report_results:cells(Results),
           Variant <- weft_report_results:variants(Cell, Results),
           {Metric, _, _, _} <- weft_report_record:metrics(),
           Key <- [{Cell, Variant, atom_to_binary(Metric)}],
           Other <- others(Key, Results),
           {ok, Ratio} <- [weft_report_results:ratio(Key, Other, Results)]]].

%% What a measurement is compared with, if more or less of it is better.
others({_, Variant, Metric} = Key, Results) ->
    Stock = weft_report_results:baseline(Key, Results),
    [Stock || Stock =/= none, element(2, Stock) =/= Variant,
              weft_report_results:best(Metric) =/= none]
        ++ [OneLane || {_, _, _} = OneLane <- [weft_report_results:one_lane(Key, Results)]].

line({Cell, Variant, Metric}, {_, Stock, _}, Ratio) ->
    #{median := Median, interval := Interval, superiority := Superiority} = Ratio,
    weft_report_csv:line(tuple_to_list(Cell) ++ [Variant, Metric, Stock, Median]
                         ++ interval(Interval) ++ [Superiority]).

interval(none) -> ["", "", ""];
interval({Low, High} = Interval) -> [Low, High, weft_report_interval:contains(1, Interval)].
