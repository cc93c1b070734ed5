%% SPDX-License-Identifier: Apache-2.0
%% @doc What `bin/bench stores' and `bin/bench bencherl' have left, as results of the benchmark, so
%% that two such runs can be compared like others. Of stores each turn is a repetition, of BenchErl
%% each iteration. What failed has a line without a number. Other commands leave tables that can not
%% be compared; which one it was is told.
-module(weft_bench_tables).

-export([read/2]).

%% What has no number.
-define(NONE, <<"none">>).
-define(BENCHERL, [<<"bench">>, <<"otp">>, <<"erl_args">>, <<"axis">>, <<"at">>, <<"what">>,
                   <<"ms">>]).
%% Columns of stores.csv, and which metrics they are.
-define(STORES, [{<<"calls">>, calls}, {<<"errors">>, failed_operations},
                 {<<"calls_per_s">>, calls_per_s}, {<<"p50_us">>, latency_p50_us},
                 {<<"p99_us">>, latency_p99_us}, {<<"lost">>, lost_keys}]).
%% These measure each number once, or count what is no metric.
-define(OTHERS, ["names", "locks", "groups", "topologies", "costs"]).

%% @doc What is in a directory. The one that it is compared with, beside it, may know names of what
%% failed in this one. None where there is a table that is no such one, as that of cells. The error
%% is a text.
-spec read(file:filename(), Beside :: file:filename()) ->
          {ok, weft_report_results:results(), weft_report_warnings:environment()}
          | {error, string()} | none.
read(Dir, Beside) ->
    case {lines(Dir, "results"), lines(Dir, "stores"), others(Dir)} of
        {{ok, [?BENCHERL | Lines]}, _, _} ->
            results(bencherl(Lines, Lines ++ bencherl_lines(Beside)), Dir);
        {{error, enoent}, {ok, [Columns | Lines]}, _} ->
            results(stores(Columns, Lines), Dir);
        {{error, enoent}, {error, enoent}, [Command | _]} ->
            error_text("~ts has what \"bin/bench ~ts\" measured, which can not be compared",
                       [Dir, Command]);
        {{error, enoent}, {error, enoent}, []} ->
            error_text("~ts has no results.csv, series.csv or stores.csv: nothing to be compared",
                       [Dir]);
        _ ->
            none
    end.

bencherl_lines(Dir) ->
    case lines(Dir, "results") of
        {ok, [?BENCHERL | Lines]} -> Lines;
        _ -> []
    end.

lines(Dir, Name) ->
    case file:read_file(table(Dir, Name)) of
        {ok, Text} -> {ok, weft_report_csv:parse(Text)};
        {error, Reason} -> {error, Reason}
    end.

others(Dir) -> [Name || Name <- ?OTHERS, filelib:is_regular(table(Dir, Name))].

table(Dir, Name) -> filename:join(Dir, Name ++ ".csv").

results(Rows, Dir) ->
    case weft_report_record:read_environment(Dir) of
        {ok, Environment} -> {ok, weft_report_results:new(Rows), Environment};
        {error, Text} -> {error, Text}
    end.

error_text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

%% Iterations of a point follow each other, and have no number in the file.
bencherl(Lines, Known) ->
    Names = maps:map(fun(_Point, Whats) -> lists:usort(Whats) end,
                     maps:groups_from_list(fun(Line) -> lists:sublist(Line, 5) end,
                                           fun(Line) -> lists:nth(6, Line) end,
                                           [Line || Line <- Known, lists:last(Line) =/= ?NONE])),
    {Rows, _} = lists:mapfoldl(fun time/2, #{}, [Named || Line <- Lines,
                                                          Named <- named(Line, Names)]),
    Rows.

%% What failed has not told its phases, nor its arguments if the point failed before them. It is all
%% of this point that is known by such a name.
named([Bench, Otp, Args, Axis, At, What, ?NONE] = Line, Names) ->
    Point = [Bench, Otp, Args, Axis, At],
    case [Point ++ [Name, ?NONE] || Name <- maps:get(Point, Names, []), is_of(What, Name)] of
        [] -> [Line];
        Found -> Found
    end;
named(Line, _Names) ->
    [Line].

is_of(<<>>, _Name) -> true;
is_of(What, Name) -> Name =:= What orelse string:prefix(Name, [What, " "]) =/= nomatch.

time([Bench, Otp, Args, Axis, At, What, Ms], Counts) ->
    Point = {Bench, Otp, Args, Axis, At, What},
    Iteration = maps:get(Point, Counts, 0) + 1,
    Varied = case Axis of
                 <<"sched">> -> {binary_to_integer(At), 0};
                 <<"node">> -> {0, binary_to_integer(At)}
             end,
    Variant = iolist_to_binary(["OTP ", Otp, [[" ", Args] || Args =/= <<>>]]),
    {Metric, Value} = case Ms of
                          ?NONE -> {failed, 0};
                          _ -> {run_us, number(Ms) * 1000}
                      end,
    {row(<<"bencherl">>, iolist_to_binary([Bench, [[" ", What] || What =/= <<>>]]), Varied, Variant,
         {Iteration, Metric, Value}),
     Counts#{Point => Iteration}}.

stores(Columns, Lines) ->
    [row(<<"stores">>, Operation, {binary_to_integer(Clients), 0},
         binary:replace(Store, <<"_">>, <<" ">>, [global]),
         {binary_to_integer(Turn), Metric, Value})
     || Line <- Lines, length(Line) =:= length(Columns),
        #{<<"store">> := Store, <<"operation">> := Operation, <<"clients">> := Clients,
          <<"repetition">> := Turn} = Row <- [maps:from_list(lists:zip(Columns, Line))],
        {Metric, Value} <- values(Row)].

%% A turn that failed has none.
values(#{<<"calls">> := ?NONE}) ->
    [{failed, 0}];
values(Row) ->
    [{Metric, number(Field)} || {Column, Metric} <- ?STORES, #{Column := Field} <- [Row],
                                Field =/= ?NONE].

row(Suite, What, {Pairs, Streams}, Variant, {Repetition, Metric, Value}) ->
    #{run => Suite, suite => Suite, workload => <<Suite/binary, " ", What/binary>>,
      variant => Variant, size_bytes => 0, pairs => Pairs, streams => Streams,
      link => <<"loopback">>, rtt_ms => 0, rate_mbit => 0, loss_percent => 0,
      repetition => Repetition, metric => atom_to_binary(Metric),
      unit => list_to_binary(weft_report_words:unit(atom_to_binary(Metric))), value => Value,
      at_ms => 0, note => <<>>}.

number(Field) ->
    try binary_to_integer(Field)
    catch error:badarg -> binary_to_float(Field)
    end.
