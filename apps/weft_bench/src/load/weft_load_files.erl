%% SPDX-License-Identifier: Apache-2.0
%% @doc The files of a load, written while it runs; what is cut keeps what it had.
%%
%% ```
%% summary.csv            elapsed, window, total, successful, failed          \
%% OP_latencies.csv       elapsed, window, n, min, mean, median, 95th, ...     > as Basho Bench and
%% errors.csv             "error","count"                                     /  DE-Bench write them
%% series.csv             each second and operation, service and response times
%% total.csv              each operation over the whole run
%% environment.csv        machine, system, flags, commit, the configuration
%% '''
%% Times are microseconds; `elapsed' and `window' are seconds.
-module(weft_load_files).

-export([open/3, window/3, series/2, finish/2, close/1, sum/1]).
-export_type([files/0]).

-record(files, {dir :: file:filename(),
                devices :: #{atom() | {latencies, atom()} => file:io_device()},
                interval_us :: pos_integer(),
                written_us = 0 :: non_neg_integer(),
                windows = [] :: [weft_load_meters:reading()]}).
-opaque files() :: #files{}.

-define(LATENCIES, "elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors\n").
-define(SERIES, [second, operation, n, units, failed,
                 service_mean_us, service_p50_us, service_p95_us, service_p99_us, service_p999_us,
                 service_max_us, response_p50_us, response_p99_us, response_p999_us,
                 response_max_us]).

%% @doc Makes the directory and the files. The error is a text.
-spec open(file:filename(), weft_load_config:config(), [atom()]) ->
          {ok, files()} | {error, string()}.
open(Dir, #{report_interval_s := Interval, pairs := Pairs}, Labels) ->
    Heads = [{summary, "summary.csv", "elapsed, window, total, successful, failed\n"},
             {series, "series.csv", weft_bench_csv:line(?SERIES)}
             | [{{latencies, Label}, latencies_file(Label), ?LATENCIES} || Label <- Labels]],
    Environment = filename:join(Dir, "environment.csv"),
    try
        ok = checked(Dir, filelib:ensure_dir(filename:join(Dir, "x"))),
        ok = weft_bench_environment:write(Environment,
                                          weft_bench_environment:gather(given(Pairs))),
        Devices = maps:from_list([{Key, created(filename:join(Dir, File), Head)}
                                  || {Key, File, Head} <- Heads]),
        {ok, #files{dir = Dir, devices = Devices, interval_us = Interval * 1000000}}
    catch
        throw:{file, File, Reason} -> failure(File, Reason);
        throw:{results, Text} -> {error, Text}
    end.

%% As in the file names of DE-Bench.
latencies_file(Label) ->
    lists:flatten(string:replace(atom_to_list(Label), "_", "-", all)) ++ "_latencies.csv".

given(Pairs) ->
    [{"config_" ++ atom_to_list(Key), lists:flatten(io_lib:format("~0tp", [Value]))}
     || {Key, Value} <- Pairs].

checked(_File, ok) -> ok;
checked(File, {error, Reason}) -> throw({file, File, Reason}).

created(File, Head) ->
    case file:open(File, [write, raw]) of
        {ok, Device} -> ok = checked(File, file:write(Device, Head)), Device;
        {error, Reason} -> throw({file, File, Reason})
    end.

failure(File, Reason) ->
    {error, lists:flatten(io_lib:format("~ts: ~ts. What was measured before is kept.",
                                        [File, file:format_error(Reason)]))}.

%% @doc What one second has brought.
-spec window(ElapsedUs :: pos_integer(), weft_load_meters:reading(), files()) ->
          {ok, files()} | {error, string()}.
window(ElapsedUs, Reading, #files{dir = Dir, windows = Windows, interval_us = IntervalUs,
                                  written_us = WrittenUs} = Files0) ->
    Files = Files0#files{windows = [Reading | Windows]},
    try
        write(series, [weft_bench_csv:line([ElapsedUs / 1.0e6 | row(Label, Meter)])
                       || {Label, Meter} <- lists:sort(maps:to_list(Reading))], Files),
        %% The last second of an interval may end a few milliseconds early.
        case ElapsedUs - WrittenUs >= IntervalUs - 100000 of
            true -> {ok, interval(ElapsedUs, Files)};
            false -> {ok, Files}
        end
    catch
        throw:{file, File, Reason} -> failure(filename:join(Dir, File), Reason)
    end.

write(Key, Lines, #files{devices = Devices}) ->
    #{Key := Device} = Devices,
    checked(io_lib:format("~0tp", [Key]), file:write(Device, Lines)).

%% @doc The fields of a line behind its time: the operation, its counts and times.
-spec row(atom(), map()) -> [atom() | number()].
row(Label, #{service := Service, response := Response, units := Units, failed := Failed}) ->
    P = fun weft_load_histogram:percentile/2,
    [Label, weft_load_histogram:count(Service), Units, Failed,
     weft_load_histogram:mean(Service), P(50, Service), P(95, Service), P(99, Service),
     P(99.9, Service), weft_load_histogram:max(Service),
     P(50, Response), P(99, Response), P(99.9, Response), weft_load_histogram:max(Response)].

interval(ElapsedUs, #files{windows = Windows, written_us = WrittenUs} = Files) ->
    Sum = sum(Windows),
    Times = [ElapsedUs / 1.0e6, (ElapsedUs - WrittenUs) / 1.0e6],
    Failed = lists:sum([Count || #{failed := Count} <- maps:values(Sum)]),
    Done = lists:sum([weft_load_histogram:count(Service) || #{service := Service}
                                                                <- maps:values(Sum)]),
    write(summary, spaced(Times ++ [Done + Failed, Done, Failed]), Files),
    maps:foreach(fun(Label, #{service := Service, failed := Errors}) ->
                         write({latencies, Label}, spaced(Times ++ latencies(Service, Errors)),
                               Files)
                 end, Sum),
    Files#files{windows = [], written_us = ElapsedUs}.

latencies(Service, Errors) ->
    P = fun(Percent) -> weft_load_histogram:percentile(Percent, Service) end,
    [weft_load_histogram:count(Service), weft_load_histogram:min(Service),
     weft_load_histogram:mean(Service), P(50), P(95), P(99), P(99.9),
     weft_load_histogram:max(Service), Errors].

spaced(Fields) ->
    [lists:join(", ", [case Field of
                           _ when is_float(Field) -> float_to_list(Field, [{decimals, 3}, compact]);
                           _ -> integer_to_list(Field)
                       end || Field <- Fields]), $\n].

%% @doc The seconds of several nodes in one file: their counts are added; of their times there is
%% the worst.
-spec series([file:filename()], files()) -> ok | {error, string()}.
series(Sources, #files{dir = Dir} = Files) ->
    try
        Rows = lists:append([tl(weft_bench_csv:parse(read(Source))) || Source <- Sources]),
        Sums = lists:sort(maps:to_list(lists:foldl(fun added/2, #{}, Rows))),
        write(series, [weft_bench_csv:line([Second, Operation | Fields])
                       || {{Second, Operation}, Fields} <- Sums], Files)
    catch
        throw:{file, File, Reason} -> failure(filename:join(Dir, File), Reason)
    end.

read(File) ->
    case file:read_file(File) of
        {ok, Text} -> Text;
        {error, Reason} -> throw({file, File, Reason})
    end.

added([Second, Operation | Fields0], Rows) ->
    Fields = [number(Field) || Field <- Fields0],
    maps:update_with({round(number(Second)), Operation},
                     fun(Sum) -> lists:zipwith3(fun(N, A, B) when N =< 3 -> A + B;
                                                   (_, A, B) -> max(A, B)
                                                end, lists:seq(1, length(Sum)), Sum, Fields)
                     end, Fields, Rows).

number(Bin) ->
    try binary_to_integer(Bin)
    catch error:badarg -> binary_to_float(Bin)
    end.

%% @doc Readings of several windows in one.
-spec sum([weft_load_meters:reading()]) -> weft_load_meters:reading().
sum([First | _] = Readings) ->
    maps:map(fun(Label, _) ->
                     Meters = [maps:get(Label, Reading) || Reading <- Readings],
                     All = fun(Key) -> [maps:get(Key, Meter) || Meter <- Meters] end,
                     #{service => weft_load_histogram:merge(All(service)),
                       response => weft_load_histogram:merge(All(response)),
                       units => lists:sum(All(units)), failed => lists:sum(All(failed))}
             end, First).

%% @doc The rest of the files, at the end.
-spec finish(weft_load:outcome(), files()) -> ok | {error, string()}.
finish(#{total := Total, elapsed_us := ElapsedUs, errors := Errors},
       #files{dir = Dir, windows = Windows} = Files) ->
    try
        _ = [interval(ElapsedUs, Files) || Windows =/= []],
        Lines = [weft_bench_csv:line([ElapsedUs / 1.0e6 | row(Label, Meter)])
                 || {Label, Meter} <- lists:sort(maps:to_list(Total))],
        [ok = checked(File, file:write_file(filename:join(Dir, File), Content))
         || {File, Content} <-
                [{"total.csv", [weft_bench_csv:line([seconds | tl(?SERIES)]) | Lines]},
                 {"errors.csv", ["\"error\",\"count\"\n"
                                 | [weft_bench_csv:line([[atom_to_list(Label), " ", Reason], Count])
                                    || {Label, Reason, Count} <- Errors]]}]],
        ok
    catch
        throw:{file, File, Reason} -> failure(filename:join(Dir, File), Reason)
    end.

-spec close(files()) -> ok.
close(#files{devices = Devices}) ->
    lists:foreach(fun file:close/1, maps:values(Devices)).
