%% SPDX-License-Identifier: Apache-2.0
%% @doc The files of a load, written while it runs; what is cut keeps what it had.
%%
%% ```
%% summary.csv            elapsed, window, total, successful, failed          \
%% OP_latencies.csv       elapsed, window, n, min, mean, median, 95th, ...     > as Basho Bench and
%% errors.csv             "error","count"                                     /  DE-Bench write them
%% series.csv             each second and operation, service and response times
%% total.csv              each operation over the whole run
%% distribution.csv       percentiles of its times, close to 100
%% environment.csv        machine, system, flags, commit, the configuration
%% histograms.terms       each interval as terms with their length, to be added to those of others;
%%                        of the one that is not over each second
%% '''
%% Times are microseconds; `elapsed' and `window' are seconds.
-module(weft_load_files).

-export([environment/1, is_free/1, latencies_file/1, open/4, window/3, add_up/2, finish/2,
         close/1, sum/1, done/1, recover/1]).
-export_type([files/0]).

-record(files, {dir :: file:filename(),
                devices :: #{atom() | {latencies, atom()} => file:io_device()},
                interval_us :: pos_integer(),
                %% What Basho Bench calls an operation: its label and what the driver gets.
                tags :: #{atom() => {atom(), term()}},
                written_us = 0 :: non_neg_integer(),
                %% Of histograms.terms what is before the seconds of this interval.
                whole_bytes = 0 :: non_neg_integer(),
                windows = [] :: [weft_load_meters:reading()]}).
-opaque files() :: #files{}.

-define(LATENCIES, "elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors\n").
-define(ERRORS, "\"error\",\"count\"\n").
-define(HISTOGRAMS, "histograms.terms").
-define(COLUMNS, [operation, n, units, failed,
                  service_mean_us, service_p50_us, service_p95_us, service_p99_us, service_p999_us,
                  service_max_us, response_p50_us, response_p99_us, response_p999_us,
                  response_max_us]).
%% Response times of the last second go on beyond the end of the run, and so does what is not done
%% then. The last column has what was waited in the run; of other seconds it is response_max_us.
-define(SERIES, [second | ?COLUMNS] ++ [waited_max_us]).

%% @doc What numbers depend on, as it is now: the machine, the system and the configuration.
-spec environment(weft_load_config:config()) -> [{string(), string()}].
environment(#{pairs := Pairs}) ->
    weft_bench_environment:gather([{"config_" ++ atom_to_list(Key),
                                    lists:flatten(io_lib:format("~0tp", [Value]))}
                                   || {Key, Value} <- Pairs,
                                      %% The first one counts; a default is behind it.
                                      proplists:get_value(Key, Pairs) =:= Value]).

%% @doc Is there nothing in this directory that a run would write over? The error is a text.
-spec is_free(file:filename()) -> ok | {error, string()}.
is_free(Dir) ->
    case [File || File <- ["summary.csv", "environment.csv", "results.csv"],
                  filelib:is_regular(filename:join(Dir, File))]
        ++ filelib:wildcard("[1-9]*/series.csv", Dir) of
        [] -> ok;
        [File | _] ->
            {error, lists:flatten(io_lib:format("~ts has the results of another run (~ts); give "
                                                "another directory as --out, or remove it",
                                                [Dir, File]))}
    end.

%% @doc Makes the directory and the files. The error is a text.
-spec open(file:filename(), weft_load_config:config(), [atom()], [{string(), string()}]) ->
          {ok, files()} | {error, string()}.
open(Dir, #{report_interval_s := Interval, operations := Operations}, Labels, Environment) ->
    Heads = [{summary, "summary.csv", "elapsed, window, total, successful, failed\n"},
             {series, "series.csv", weft_report_csv:line(?SERIES)},
             {histograms, ?HISTOGRAMS, ""}
             | [{{latencies, Label}, latencies_file(Label), ?LATENCIES} || Label <- Labels]],
    try
        ok = checked(Dir, filelib:ensure_dir(filename:join(Dir, "x"))),
        ok = weft_report_record:write_environment(Dir, Environment),
        Devices = maps:from_list([{Key, created(filename:join(Dir, File), Head)}
                                  || {Key, File, Head} <- Heads]),
        {ok, #files{dir = Dir, devices = Devices, interval_us = Interval * 1000000,
                    tags = maps:from_list([{Label, {Label, Operation}}
                                           || {Label, Operation, _} <- Operations])}}
    catch
        throw:{file, File, Reason} -> failure(File, Reason);
        throw:{results, Text} -> {error, Text}
    end.

%% @doc The file of an operation, called as by DE-Bench.
-spec latencies_file(Label :: atom()) -> string().
latencies_file(Label) ->
    lists:flatten(string:replace(atom_to_list(Label), "_", "-", all)) ++ "_latencies.csv".

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
        write(series, [weft_report_csv:line([ElapsedUs / 1.0e6 | row(Label, Meter)]
                                            ++ [waited_us(Meter)])
                       || {Label, Meter} <- lists:sort(maps:to_list(Reading))], Files),
        case ended(ElapsedUs, IntervalUs) > ended(WrittenUs, IntervalUs) of
            true -> {ok, interval(ElapsedUs, Files)};
            false ->
                _ = histograms(ElapsedUs, Reading, Files),
                {ok, Files}
        end
    catch
        throw:{file, File, Reason} -> failure(filename:join(Dir, File), Reason)
    end.

%% How many intervals have ended: those of several nodes end at the same times, even if one of them
%% is read late. Its last second may end a few milliseconds early.
ended(ElapsedUs, IntervalUs) -> (ElapsedUs + 100000) div IntervalUs.

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

waited_us(#{waited_us := WaitedUs}) -> WaitedUs;
waited_us(#{response := Response}) -> weft_load_histogram:max(Response).

interval(ElapsedUs, #files{windows = Windows, written_us = WrittenUs,
                           whole_bytes = Before} = Files) ->
    Sum = sum(Windows),
    Times = [ElapsedUs / 1.0e6, (ElapsedUs - WrittenUs) / 1.0e6],
    Failed = lists:sum([Count || #{failed := Count} <- maps:values(Sum)]),
    %% Units, as in Basho Bench: an operation may answer that it did many at once.
    Done = lists:sum([Units || #{units := Units} <- maps:values(Sum)]),
    ok = without_seconds(Files),
    Bytes = histograms(ElapsedUs, Sum, Files),
    write(summary, spaced(Times ++ [Done + Failed, Done, Failed]), Files),
    maps:foreach(fun(Label, Meter) ->
                         write({latencies, Label}, spaced(Times ++ latencies(Meter)), Files)
                 end, Sum),
    Files#files{windows = [], written_us = ElapsedUs, whole_bytes = Before + Bytes}.

%% Returns how many bytes that is.
histograms(ElapsedUs, Reading, Files) ->
    Terms = term_to_binary({ElapsedUs, Reading}),
    write(histograms, [<<(byte_size(Terms)):32>>, Terms], Files),
    4 + byte_size(Terms).

%% They are in the interval that follows.
without_seconds(#files{devices = #{histograms := Device}, whole_bytes = Bytes}) ->
    checked(?HISTOGRAMS, case file:position(Device, Bytes) of
                             {ok, Bytes} -> file:truncate(Device);
                             Error -> Error
                         end).

latencies(#{service := Service, units := Units, failed := Errors}) ->
    P = fun(Percent) -> weft_load_histogram:percentile(Percent, Service) end,
    [Units, weft_load_histogram:min(Service),
     weft_load_histogram:mean(Service), P(50), P(95), P(99), P(99.9),
     weft_load_histogram:max(Service), Errors].

spaced(Fields) ->
    [lists:join(", ", [case Field of
                           _ when is_float(Field) -> float_to_list(Field, [{decimals, 3}, compact]);
                           _ -> integer_to_list(Field)
                       end || Field <- Fields]), $\n].

%% ---- several loads in one ----

%% @doc Adds up what loads that began at the same time have in these directories, and returns all
%% of it in one reading, with the time of the last. Intervals are read as histograms, so that their
%% percentiles are those of all operations. In the seconds counts are added; of their times there is
%% the worst. What a load did not write, because it was cut, is nothing; one of them has something.
-spec add_up([file:filename()], files()) ->
          {ok, {weft_load_meters:reading(), ElapsedUs :: pos_integer()}, files()}
          | {error, string()}.
add_up(Dirs, #files{dir = Dir} = Files) ->
    try
        ok = series([filename:join(Source, "series.csv") || Source <- Dirs], Files),
        Intervals = intervals([filename:join(Source, ?HISTOGRAMS) || Source <- Dirs], Files),
        {LastUs, _} = lists:last(Intervals),
        Sum = sum([Reading || {_, Reading} <- Intervals]),
        {ok, {Sum, LastUs}, lists:foldl(fun one_interval/2, Files, Intervals)}
    catch
        throw:{file, File, Reason} -> failure(filename:join(Dir, File), Reason)
    end.

one_interval({ElapsedUs, Reading}, Files) ->
    interval(ElapsedUs, Files#files{windows = [Reading]}).

series(Sources, Files) ->
    write(series, sums(Sources), Files).

sums(Sources) ->
    Rows = lists:append([case weft_report_csv:parse(read(Source)) of
                             [_Head | Rows] -> Rows;
                             [] -> []
                         end || Source <- Sources]),
    Sums = lists:sort(maps:to_list(lists:foldl(fun added/2, #{}, Rows))),
    [weft_report_csv:line([Second, Operation | Fields]) || {{Second, Operation}, Fields} <- Sums].

intervals(Sources, #files{interval_us = IntervalUs}) ->
    Add = fun({ElapsedUs, Reading}, Sums) ->
                  maps:update_with(number_of(ElapsedUs, IntervalUs),
                                   fun({Us, Sum}) -> {max(Us, ElapsedUs), sum([Sum, Reading])} end,
                                   {ElapsedUs, Reading}, Sums)
          end,
    Sums = lists:foldl(fun(Source, Acc) -> lists:foldl(Add, Acc, terms(read(Source))) end, #{},
                       Sources),
    [Interval || {_Number, Interval} <- lists:sort(maps:to_list(Sums))].

%% An interval may be read late, and the last one may be short.
number_of(ElapsedUs, IntervalUs) -> max(1, ceil((ElapsedUs - 500000) / IntervalUs)).

%% The last one may have been cut.
terms(<<Size:32, Terms:Size/binary, Rest/binary>>) -> [binary_to_term(Terms) | terms(Rest)];
terms(_Cut) -> [].

read(File) ->
    case file:read_file(File) of
        {ok, Text} -> Text;
        {error, enoent} -> <<>>;
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
                     Sum = #{service => weft_load_histogram:merge(All(service)),
                             response => weft_load_histogram:merge(All(response)),
                             units => lists:sum(All(units)), failed => lists:sum(All(failed))},
                     maps:merge(Sum, maps:with([waited_us], lists:last(Meters)))
             end, First).

%% @doc The rest of the files, at the end.
-spec finish(weft_load:outcome(), files()) -> ok | {error, string()}.
finish(#{total := Total, elapsed_us := ElapsedUs, errors := Errors},
       #files{dir = Dir, windows = Windows, tags = Tags} = Files) ->
    try
        _ = [interval(ElapsedUs, Files) || Windows =/= []],
        ok = whole(Dir, "total.csv", totals(Total, ElapsedUs)),
        ok = whole(Dir, "distribution.csv", distribution(Total)),
        whole(Dir, "errors.csv", [?ERRORS | [error_line(maps:get(Label, Tags, {Label, Label}),
                                                        Reason, Count)
                                             || {Label, Reason, Count} <- Errors]])
    catch
        throw:{file, File, Reason} -> failure(filename:join(Dir, File), Reason)
    end.

%% Under another name at first: who reads it meanwhile has the one before, and not a part of it.
whole(Dir, File, Content) ->
    Name = filename:join(Dir, File),
    New = Name ++ ".new",
    ok = checked(File, file:write_file(New, Content)),
    checked(File, file:rename(New, Name)).

totals(Total, ElapsedUs) ->
    [weft_report_csv:line([seconds | ?COLUMNS])
     | [weft_report_csv:line([ElapsedUs / 1.0e6 | row(Label, Meter)])
        || {Label, Meter} <- lists:sort(maps:to_list(Total))]].

distribution(Total) ->
    [weft_report_csv:line([operation, time, percent, value_us])
     | [weft_report_csv:line([Label, Time, percent(Percent), Value])
        || {Label, Meter} <- lists:sort(maps:to_list(Total)), Time <- [service, response],
           {Percent, Value} <- weft_load_histogram:distribution(maps:get(Time, Meter))]].

%% With as many digits as tell it from 100: of millions of operations the last percentiles differ by
%% less than a ten-thousandth.
percent(Percent) -> float_to_binary(Percent, [{decimals, 9}, compact]).

%% As Basho Bench writes them, but that quotes in a reason are doubled.
error_line(Tag, Reason, Count) ->
    Text = unicode:characters_to_binary(io_lib:format("{~0tp,~ts}", [Tag, Reason])),
    [$", string:replace(Text, "\"", "\"\"", all), "\",\"", integer_to_list(Count), "\"\n"].

%% @doc How much was done in each interval of the summary, in order.
-spec done(file:filename()) -> [non_neg_integer()].
done(Dir) ->
    [_Head | Lines] = binary:split(read(filename:join(Dir, "summary.csv")), <<"\n">>,
                                   [global, trim]),
    [binary_to_integer(lists:nth(4, binary:split(Line, <<", ">>, [global]))) || Line <- Lines].

%% @doc Makes the files that a load writes at its end, of one that was ended before, or still runs:
%% from the intervals that it has written, or those of its nodes, in directories 1, 2 ... They are
%% made again where a load has written more since. What it has written itself is left alone, since
%% it may still write there. Of the reasons of errors nothing is known then. The error is a text.
-spec recover(file:filename()) -> ok | {error, string()}.
recover(Dir) ->
    Parts = parts(Dir),
    Latest = lists:max([filelib:last_modified(filename:join(Part, ?HISTOGRAMS)) || Part <- Parts]),
    case filelib:last_modified(filename:join(Dir, "total.csv")) of
        Made when Made =/= 0, Made >= Latest -> ok;
        _NotMadeOrBefore -> recover(Dir, Parts)
    end.

parts(Dir) ->
    case filelib:wildcard("[1-9]*/" ?HISTOGRAMS, Dir) of
        [] -> [Dir];
        Files -> [filename:join(Dir, filename:dirname(File)) || File <- Files]
    end.

recover(Dir, Parts) ->
    try
        Intervals = lists:append([terms(read(filename:join(Part, ?HISTOGRAMS))) || Part <- Parts]),
        Intervals =/= [] orelse throw({nothing, Dir}),
        ok = in_one(Dir, Parts),
        ok = unless_there(Dir, "errors.csv", ?ERRORS),
        Total = sum([Reading || {_, Reading} <- Intervals]),
        ok = whole(Dir, "distribution.csv", distribution(Total)),
        whole(Dir, "total.csv", totals(Total, lists:max([Us || {Us, _} <- Intervals])))
    catch
        throw:{nothing, In} -> {error, In ++ ": no interval of a load was written there"};
        throw:{file, File, Reason} -> failure(filename:join(Dir, File), Reason)
    end.

%% What a load writes as it goes on: of one that is in Dir itself it is there.
in_one(Dir, [Dir]) ->
    ok;
in_one(Dir, [First | _] = Parts) ->
    Sources = [filename:join(Part, "series.csv") || Part <- Parts],
    %% Older ones have fewer columns.
    Heads = [Head || Source <- Sources, [Head | _] <- [weft_report_csv:parse(read(Source))]],
    ok = whole(Dir, "series.csv", [weft_report_csv:line(hd(Heads ++ [?SERIES])) | sums(Sources)]),
    unless_there(Dir, "environment.csv", read(filename:join(First, "environment.csv"))).

unless_there(Dir, File, Content) ->
    case filelib:is_regular(filename:join(Dir, File)) of
        true -> ok;
        false -> whole(Dir, File, Content)
    end.

-spec close(files()) -> ok.
close(#files{devices = Devices}) ->
    lists:foreach(fun file:close/1, maps:values(Devices)).
