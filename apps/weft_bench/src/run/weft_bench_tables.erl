%% SPDX-License-Identifier: Apache-2.0
%% @doc What commands have left that write tables of their own, as results of the benchmark, so that
%% two such runs can be compared like others. Of `stores' each turn is a repetition, of `bencherl'
%% each iteration. What failed there has a line without a number. Of `names', `locks', `groups',
%% `topologies' and `costs' each number was measured once.
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
%% What is said of the stock carrier: names and locks of `global' are there on that alone.
-define(STOCK_NAMES, <<"global">>).

%% @doc What is in a directory. The one that it is compared with, beside it, may know names of what
%% failed in this one. None where there is a table that is no such one, as that of cells. The error
%% is a text.
-spec read(file:filename(), Beside :: file:filename()) ->
          {ok, weft_report_results:results(), weft_report_warnings:environment()}
          | {error, string()} | none.
read(Dir, Beside) ->
    case {lines(Dir, "results"), lines(Dir, "stores"), measured_once(Dir)} of
        {{ok, [?BENCHERL | Lines]}, _, _} ->
            results(bencherl(Lines, Lines ++ bencherl_lines(Beside)), Dir);
        {{error, enoent}, {ok, [Columns | Lines]}, _} ->
            results(stores(Columns, Lines), Dir);
        {{error, enoent}, {error, enoent}, [Table | _]} ->
            {ok, weft_report_results:new(once(Table)), environment(Dir)};
        {{error, enoent}, {error, enoent}, []} ->
            error_text("~ts has no results.csv, series.csv or table of another command: nothing to "
                       "be compared", [Dir]);
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

%% Those that there are, with what is in them.
measured_once(Dir) ->
    [{Table, Columns, Lines} || {_, File, _, _, _} = Table <- tables(),
                                {ok, [Columns | Lines]} <- [lines(Dir, File)]].

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

%% ---- tables with one line for each thing ----

%% The command and its file; the column that has the variant, and those that tell what was measured;
%% and which metrics the columns of numbers are, after they are multiplied.
tables() ->
    [{"names", "names", <<"kind">>, [<<"workload">>, <<"nodes">>, <<"callers">>],
      [{<<"calls_per_s">>, calls_per_s, 1}, {<<"p50_us">>, latency_p50_us, 1},
       {<<"p99_us">>, latency_p99_us, 1}]},
     {"locks", "locks", <<"module">>, [<<"nodes">>, <<"rate">>, <<"seconds">>],
      [{<<"granted">>, granted_locks, 1}, {<<"granted">>, calls, 1},
       {<<"aborted">>, failed_operations, 1}, {<<"p50_ms">>, latency_p50_us, 1000},
       {<<"p99_ms">>, latency_p99_us, 1000}, {<<"drain_s">>, duration_s, 1}]},
     {"groups", "groups", <<"variant">>, [<<"groups">>, <<"role">>, <<"nodes">>],
      [{<<"connections_max">>, connections_max, 1}, {<<"connections_mean">>, connections_mean, 1},
       {<<"idle_packets_s">>, idle_packets_per_s, 1}, {<<"idle_bytes_s">>, idle_bytes_per_s, 1},
       {<<"packets_uniform">>, packets_uniform, 1}, {<<"packets_local">>, packets_local, 1}]},
     {"topologies", "topologies", <<"topology">>, [<<"nodes">>],
      [{<<"connections_max">>, connections_max, 1}, {<<"connections_mean">>, connections_mean, 1},
       {<<"hops_mean">>, hops_mean, 1}, {<<"idle_bytes_s">>, idle_bytes_per_s, 1},
       {<<"call_1_us">>, call_1_us, 1}, {<<"call_2_us">>, call_2_us, 1},
       {<<"call_3_us">>, call_3_us, 1}]},
     {"costs", "totals", <<"variant">>, [<<"cell">>, <<"what">>], [{<<"value">>, counted, 1}]}].

once({{Command, _File, By, Of, Numbers}, Columns, Lines}) ->
    Read = [Row || Line <- Lines, length(Line) =:= length(Columns),
                   Row <- [maps:from_list(lists:zip(Columns, Line))], is_whole(Row)],
    {Rows, _} = lists:mapfoldl(
                  fun(Row, Counts) ->
                          {Variant, What} = {maps:get(By, Row), what(Of, Row)},
                          Repetition = maps:get({Variant, What}, Counts, 0) + 1,
                          {[row(list_to_binary(Command), What, {0, 0}, named(Variant),
                                {Repetition, Metric, Value})
                            || {Metric, Value} <- numbers(Numbers, Row)],
                           Counts#{{Variant, What} => Repetition}}
                  end, #{}, Read),
    lists:append(Rows).

%% Of counts the sums, and no rates, which the counting makes smaller.
is_whole(#{<<"of">> := Of, <<"what">> := What}) ->
    Of =:= <<"all">> andalso What =/= <<"units_per_s">>;
is_whole(_Row) ->
    true.

what(Of, Row) ->
    iolist_to_binary(lists:join(", ", [case string:to_integer(maps:get(Column, Row)) of
                                           {Number, <<>>} ->
                                               [integer_to_list(Number), " ", Column];
                                           _ ->
                                               maps:get(Column, Row)
                                       end || Column <- Of])).

named(?STOCK_NAMES) ->
    <<"stock ", ?STOCK_NAMES/binary>>;
named(Variant) ->
    case lists:member(Variant, [atom_to_binary(Known) || Known <- weft_report_record:variants()]) of
        true -> Variant;
        false -> binary:replace(Variant, <<"_">>, <<" ">>, [global])
    end.

%% What is negative did not come to an end.
numbers(Numbers, Row) ->
    [{Metric, Times * Number}
     || {Column, Metric, Times} <- Numbers, #{Column := Field} <- [Row],
        Field =/= ?NONE, Field =/= <<>>, Number <- [number(Field)], Number >= 0].

%% Old tables have none.
environment(Dir) ->
    case weft_report_record:read_environment(Dir) of
        {ok, Environment} -> Environment;
        {error, _} -> #{}
    end.
