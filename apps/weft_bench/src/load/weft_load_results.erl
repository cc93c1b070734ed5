%% SPDX-License-Identifier: Apache-2.0
%% @doc What a load or DE-Bench has left, as results of the benchmark, so that two such runs can be
%% compared like others. Each operation is a cell, and each of ten parts of the run a repetition: an
%% interval tells by how much parts of this run differ, and nothing of how runs differ. Seconds
%% would be too many repetitions, as one is much like the next. Failed operations are those of the
%% whole run, and so is the time that stalled: an outage shorter than half of the run moves no
%% median of parts. Beside them is of how many operations they are, and of how much time.
-module(weft_load_results).

-export([read/1]).

-define(VARIANT, <<"load">>).
-define(PARTS, 10).
%% The last second may be a short one.
-define(SHORT_S, 0.5).
%% Columns of series.csv without that of the operation, the first one as how long the second was.
-define(LENGTH, 1).
-define(COUNT, 2).
-define(TIMES, [{latency_p50_us, 6}, {latency_p99_us, 8}, {response_p99_us, 12}]).
%% Longer than anything takes that only is slow.
-define(STALL_US, 1000000).

%% @doc Reads the directory. The error is a text.
-spec read(file:filename()) ->
          {ok, weft_report_results:results(), weft_report_warnings:environment()}
          | {error, string()}.
read(Dir) ->
    File = filename:join(Dir, "series.csv"),
    case {file:read_file(File), weft_report_record:read_environment(Dir)} of
        {{ok, Text}, {ok, Environment}} ->
            [_Head | Lines] = weft_report_csv:parse(Text),
            Rows = [row(Operation, Workers, Repetition, Metric, Value)
                    || Workers <- [workers(Environment)],
                       Operation <- lists:usort([Of || [_, Of | _] <- Lines]),
                       {Repetition, Metric, Value}
                           <- measured([[number(Field) || Field <- [Second | Fields]]
                                        || [Second, Of | Fields] <- Lines, Of =:= Operation])],
            {ok, weft_report_results:new(Rows), Environment};
        {{error, Reason}, _} ->
            {error, lists:flatten(io_lib:format("~ts: ~ts", [File, file:format_error(Reason)]))};
        {_, {error, Why}} ->
            {error, Why}
    end.

workers(#{<<"config_concurrent">> := Workers}) -> binary_to_integer(Workers);
workers(_Environment) -> 0.

number(Field) ->
    try binary_to_integer(Field)
    catch error:badarg -> binary_to_float(Field)
    end.

measured(Seconds) ->
    {Windows, _} = lists:mapfoldl(fun([Second | Fields], Before) ->
                                          {[Second - Before | Fields], Second}
                                  end, 0, Seconds),
    Whole = [Window || [Length | _] = Window <- Windows, Length > ?SHORT_S],
    [EndS | _] = lists:last(Seconds),
    [{1, failed_operations, lists:sum([Failed || [_, _, _, Failed | _] <- Windows])},
     {1, calls, lists:sum([Count || [_, Count | _] <- Windows])},
     {1, stalled_s, stalled_s(Seconds)}, {1, measured_s, EndS}
     | [Value || {Number, Part} <- parts(Whole), Value <- part(Number, Part)]].

%% An outage in which nothing is done is seen when it is over, or at the end of the run, in what was
%% waited up to then. That is the last column; in older files it is the longest response time, which
%% of the last second goes on beyond the end. Several of them may be about the same time.
stalled_s(Seconds) ->
    Stalls = [{Second - lists:last(Fields) / 1.0e6, Second}
              || [Second | Fields] <- Seconds, lists:last(Fields) >= ?STALL_US],
    {StalledS, _} = lists:foldl(fun({From, To}, {Sum, Until}) ->
                                        {Sum + max(0, To - max(From, Until)), max(To, Until)}
                                end, {0, 0}, lists:sort(Stalls)),
    StalledS.

%% Of a short run each second is one.
parts(Windows) ->
    All = length(Windows),
    Parts = min(?PARTS, All),
    maps:to_list(maps:groups_from_list(fun({Second, _}) -> (Second - 1) * Parts div All + 1 end,
                                       fun({_, Window}) -> Window end, lists:enumerate(Windows))).

part(Number, Windows) ->
    Sum = fun(Column) -> lists:sum([lists:nth(Column, Window) || Window <- Windows]) end,
    [{Number, calls_per_s, Sum(?COUNT) / Sum(?LENGTH)}
     | [{Number, Metric, weft_report_statistics:median(Values)}
        || {Metric, Column} <- ?TIMES,
           [_ | _] = Values <- [[lists:nth(Column, Window)
                                 || Window <- Windows, lists:nth(?COUNT, Window) > 0]]]].

row(Operation, Workers, Repetition, Metric, Value) ->
    #{run => <<"load">>, suite => <<"load">>, workload => <<"load ", Operation/binary>>,
      variant => ?VARIANT, size_bytes => 0, pairs => Workers, streams => 0,
      link => <<"loopback">>, rtt_ms => 0, rate_mbit => 0, loss_percent => 0,
      repetition => Repetition, metric => atom_to_binary(Metric),
      unit => list_to_binary(weft_report_words:unit(atom_to_binary(Metric))), value => Value,
      at_ms => 0, note => <<>>}.
