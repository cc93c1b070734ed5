%% SPDX-License-Identifier: Apache-2.0
%% @doc The page of a load, from its files alone: what came out, over time, and under what
%% circumstances. One HTML file, without a network.
-module(weft_report_load).

-export([write/1, file/1]).

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).
%% More operations than that do not fit into one chart.
-define(SERIES_MAX, 6).
-define(RATE, "operations per second").
-define(FAILURES, "failed per second").

-spec file(file:filename()) -> file:filename().
file(Dir) -> filename:join(Dir, "report.html").

%% @doc Makes the page of the run in Dir. The error is a text.
-spec write(file:filename()) -> ok | {error, string()}.
write(Dir) ->
    case {read(Dir, "series.csv"), read(Dir, "total.csv"), read(Dir, "environment.csv"),
          read(Dir, "errors.csv"), read(Dir, "distribution.csv"), weft_report_sharing:read(Dir)} of
        {{ok, Series}, {ok, Totals}, {ok, Environment}, {ok, Errors}, {ok, Distribution},
         {ok, Sharing}} ->
            Page = page(Series, Totals, Environment, Errors, Distribution, Sharing),
            case file:write_file(file(Dir), Page) of
                ok -> ok;
                {error, Reason} -> failure(file(Dir), Reason)
            end;
        Answers ->
            hd([{error, Text} || {error, Text} <- tuple_to_list(Answers)])
    end.

read(Dir, Name) ->
    File = filename:join(Dir, Name),
    case file:read_file(File) of
        {ok, Text} when Name =:= "environment.csv" -> {ok, weft_report_csv:parse(Text)};
        {ok, Text} -> {ok, tl(weft_report_csv:parse(Text))};
        %% Older runs have none.
        {error, enoent} when Name =:= "distribution.csv" -> {ok, []};
        {error, Reason} -> failure(File, Reason)
    end.

failure(File, Reason) ->
    {error, lists:flatten(io_lib:format("~ts: ~ts", [File, file:format_error(Reason)]))}.

page(Series, Totals, Environment, Errors, Distribution, Sharing) ->
    Driver = proplists:get_value(<<"config_driver">>, [{K, V} || [K, V] <- Environment], <<"?">>),
    Title = ["load: ", Driver],
    weft_report_html:page(Title, weft_report_html:style(),
                          [?E(header, [], [?E(h1, [], ?T(Title)), ?E(p, [{class, "dim"}],
                                                                    ?T(how_to_read()))]),
                           section("Operations", totals(Totals)),
                           section("Over time",
                                   in_parts(Series, fun(Part) -> charts_of(Part, Series) end)),
                           [section("Distribution",
                                    in_parts(Series, fun(Part) -> shares(Part, Distribution) end))
                            || Distribution =/= []],
                           [section("Errors", errors(Errors)) || Errors =/= []],
                           [section("The nodes and the machine", sharing(Sharing))
                            || Sharing =/= []],
                           section("Environment", environment(Environment))]).

how_to_read() ->
    "Service is the time of the operation itself. Response is counted from when it should have "
        "begun: with a given rate, what a slow operation held up is in it. Only successful "
        "operations are in the times; but in the response times also what was due in the run and "
        "ended after it or, under Errors as unfinished, not at all. "
        "Raw data: total.csv, distribution.csv, series.csv, *_latencies.csv.".

section(Title, Content) ->
    ?E(section, [], [?E(h2, [], ?T(Title)), Content]).

totals(Totals) ->
    Rows = [[?T(Operation), ?T(per_second(Seconds, Count)), ?T(Count), ?T(Failed)
             | [?T(us(Value)) || Value <- [P50, P99, P999, Max, R50, R99, R999, RMax]]]
            || [Seconds, Operation, Count, _Units, Failed, _Mean, P50, _P95, P99, P999, Max,
                R50, R99, R999, RMax] <- Totals],
    weft_report_html:table("Whole run",
                           [{"operation", ""} | [{Head, "number"} || Head <-
                            ["per second", "done", "failed", "service p50", "p99", "p99.9", "max",
                             "response p50", "p99", "p99.9", "max"]]], Rows).

per_second(Seconds, Count) ->
    io_lib:format("~.1f", [binary_to_integer(Count) / max(0.001, number(Seconds))]).

us(Bin) ->
    case number(Bin) of
        Value when Value >= 10000 -> io_lib:format("~.1f ms", [Value / 1000]);
        Value when Value >= 1000 -> io_lib:format("~.2f ms", [Value / 1000]);
        Value -> io_lib:format("~p us", [Value])
    end.

number(Bin) ->
    try binary_to_integer(Bin)
    catch error:badarg -> binary_to_float(Bin)
    end.

%% --- charts -----------------------------------------------------------------------------------

%% The operations of which most were done come first; the reader opens those of the others.
in_parts(Series, Charts) ->
    [First | Others] = parts(by_count(Series)),
    Count = length(First) + lists:sum([length(Part) || Part <- Others]),
    [Charts(First)
     | [?E(details, [], [?E(summary, [], ?T(summary(Part, Count))), Charts(Part)])
        || Part <- Others]].

by_count(Series) ->
    Done = lists:foldl(fun([_, Operation, Count, _, Failed | _], Sums) ->
                               More = binary_to_integer(Count) + binary_to_integer(Failed),
                               maps:update_with(Operation, fun(Sum) -> Sum + More end, More, Sums)
                       end, #{}, Series),
    [Operation || {_, Operation} <- lists:sort([{-Sum, Operation}
                                                || {Operation, Sum} <- maps:to_list(Done)])].

parts(Operations) when length(Operations) =< ?SERIES_MAX -> [Operations];
parts(Operations) ->
    {Part, Rest} = lists:split(?SERIES_MAX, Operations),
    [Part | parts(Rest)].

summary(Part, Count) ->
    io_lib:format("~ts (~b of ~b operations, done less often)",
                  [lists:join(", ", Part), length(Part), Count]).

charts_of(Operations, Series) ->
    Named = [{Name, column(Head)} || {Name, Head} <- [{?RATE, 3}, {"service p50", 7},
                                                     {"service p99", 9}, {"response p99", 13}]
                                         ++ [{?FAILURES, 5} || have_failed(Operations, Series)]],
    [legend(Operations),
     ?E('div', [{class, "charts"}],
        [?E(figure, [], chart(Name, Column, Operations, Series)) || {Name, Column} <- Named])].

%% What is counted is told per second.
column(N) when N =:= 3; N =:= 5 ->
    fun([Second | Fields], Before) ->
            number(lists:nth(N - 1, Fields)) / max(0.001, Second - Before)
    end;
column(N) ->
    fun([_ | Fields], _Before) -> number(lists:nth(N - 1, Fields)) end.

have_failed(Operations, Series) ->
    lists:any(fun([_, Operation, _, _, Failed | _]) ->
                      Failed =/= <<"0">> andalso lists:member(Operation, Operations)
              end, Series).

legend(Operations) ->
    ?E(p, [{class, "legend"}],
       [?E(span, [], [weft_report_svg:marker(class(N), N - 1), ?T([" ", Operation, "  "])])
        || {N, Operation} <- lists:enumerate(Operations)]).

class(N) -> "s" ++ integer_to_list(N).

chart(Name, Column, Operations, Series) ->
    Text = case Name of
               _ when Name =:= ?RATE; Name =:= ?FAILURES -> fun plain/1;
               _ -> fun in_us/1
           end,
    weft_report_svg:chart(
      #{title => Name, description => [Name, " of each operation, second by second"],
        x_label => "seconds", y_label => "", x => linear, y => linear, y_text => Text,
        series => [#{name => Operation, class => class(N), shape => N - 1,
                     points => points(Column, Text, [L || [_, Op | _] = L <- Series,
                                                          Op =:= Operation])}
                   || {N, Operation} <- lists:enumerate(Operations)]}).

plain(Value) -> io_lib:format("~b", [round(Value)]).

in_us(Value) -> us(integer_to_binary(round(Value))).

points(Column, Text, Lines) ->
    {Points, _} = lists:mapfoldl(fun([Second0 | Rest], Before) ->
                                         Second = float(number(Second0)),
                                         Y = Column([Second | Rest], Before),
                                         {{Second, Y, Y, Y, Text(Y)}, Second}
                                 end, 0.0, Lines),
    Points.

%% ---- distribution ----

%% Times over percentiles, in the manner of HDR histograms: each step to the right is a tenth of the
%% operations that are left.
shares(Operations, Distribution) ->
    [legend(Operations),
     ?E('div', [{class, "charts"}],
        [?E(figure, [], weft_report_svg:chart(share(Time, Series)))
         || Time <- [<<"service">>, <<"response">>],
            Series <- [[#{name => Operation, class => class(N), shape => N - 1, points => Points}
                        || {N, Operation} <- lists:enumerate(Operations),
                           [_ | _] = Points <- [share_of(Operation, Time, Distribution)]]],
            Series =/= []])].

share(Time, Series) ->
    #{title => [Time, " time"], description => [Time, " time of each operation, by percentile"],
      x_label => "percentile", y_label => "", x => log, y => log, series => Series,
      x_text => fun(OneOf) -> percentile(100 * (1 - 1 / OneOf)) end, y_text => fun in_us/1}.

%% All but one of how many take at most so long? Of the last there is no other.
share_of(Operation, Time, Distribution) ->
    Values = [{number(Percent), number(Value)}
              || [Of, In, Percent, Value] <- Distribution, Of =:= Operation, In =:= Time],
    [{1 / (1 - Percent / 100), Us, Us, Us, [percentile(Percent), ": ", in_us(Us)]}
     || {Percent, Us} <- Values, Percent < 100, Us > 0].

percentile(Percent) -> [float_to_list(float(Percent), [{decimals, 9}, compact]), " %"].

errors(Errors) ->
    weft_report_html:table("By reason, most frequent first", [{"error", ""}, {"count", "number"}],
                           [[?T(Error), ?T(Count)] || [Error, Count] <- Errors]).

%% Throttled near 100 %: the quota is what held the nodes up.
sharing(Sharing) ->
    [[?E(p, [], ?T(["Warning: ", Text]))
      || lists:keymember(<<"quota_percent">>, 1, Sharing), {Metric, Percent} <- Sharing,
         Text <- weft_report_warnings:share(Metric, Percent)],
     weft_report_html:table("While it was measured", [{"what", ""}, {"value", "number"}],
                            [[?T(Name), ?T(Value)]
                             || {Name, Value} <- weft_report_sharing:texts(Sharing)])].

environment(Environment) ->
    weft_report_html:table("Machine, system and configuration", [{"what", ""}, {"value", "long"}],
                           [[?T(Key), ?T(Value)] || [Key, Value] <- Environment]).
