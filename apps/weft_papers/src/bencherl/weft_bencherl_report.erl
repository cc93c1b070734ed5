%% SPDX-License-Identifier: Apache-2.0
%% @doc The page of a BenchErl run: time and speed-up of each benchmark over what was swept.
%% Made from the rows of a run; needs no network. Knows nothing of how they were measured.
-module(weft_bencherl_report).

-export([write/2, file/1]).

-define(E, weft_report_html:tag).
-define(T, weft_report_html:text).
%% Sets of arguments of one benchmark in one chart.
-define(SERIES_MAX, 6).

-spec file(file:filename()) -> file:filename().
file(Dir) -> filename:join(Dir, "report.html").

%% @doc Writes the page beside the files.
-spec write(file:filename(), [weft_bencherl:row()]) -> ok.
write(Dir, Rows) ->
    Sections = [sections(Dir, Of) || Of <- grouped(fun bench/1, Rows)],
    Page = weft_report_html:page("BenchErl", weft_report_html:style(),
                                 [header(), summary(Rows) | Sections]),
    weft_report_file:write(file(Dir), Page).

header() ->
    ?E(header, [], [?E(h1, [], ?T("BenchErl")),
                    ?E(p, [{class, "dim"}],
                       ?T("The least time of each point, with the range of all iterations. "
                          "Speed-up is the time with the least number of schedulers or nodes over "
                          "the time with that number. Raw data: results.csv."))]).

bench(#{bench := Bench}) -> Bench.

grouped(Key, Rows) ->
    lists:sort(maps:to_list(maps:groups_from_list(Key, Rows))).

%% One line for each benchmark and series: the geometric mean of the speed-ups.
summary(Rows) ->
    weft_report_html:table("Speed-up from the least to the greatest number",
                           [{"benchmark", ""}, {"", ""}, {"least", "number"},
                            {"greatest", "number"}, {"speed-up", "number"}],
                           [summary_row(Key, Of) || {Key, Of} <- grouped(fun series/1, Rows)]).

series(#{bench := Bench, otp := Otp, erl_args := Args, axis := Axis}) ->
    {Bench, Axis, Otp, Args}.

summary_row({Bench, Axis, Otp, Args}, Rows) ->
    Points = weft_bencherl_files:points(Rows),
    Ats = lists:usort([At || {_, At, _} <- Points]),
    {Least, Greatest} = {hd(Ats), lists:last(Ats)},
    Ratios = [lists:min(Ms1) / lists:min(Ms)
              || {What, At, Ms1} <- Points, At =:= Least,
                 {Same, Other, Ms} <- Points, Same =:= What, Other =:= Greatest],
    [?T(Bench), ?T(["OTP ", Otp, " ", Args, " by ", axis(Axis)]), ?T(integer_to_list(Least)),
     ?T(integer_to_list(Greatest)), ?T(mean(Ratios))].

%% A benchmark whose arguments depend on what was swept has nothing in common to be compared.
mean([]) -> "-";
mean(Ratios) ->
    io_lib:format("~.2f", [math:exp(lists:sum([math:log(Ratio) || Ratio <- Ratios])
                                    / length(Ratios))]).

axis(sched) -> "schedulers";
axis(node) -> "slave nodes".

sections(Dir, {Bench, Rows}) ->
    ?E(section, [], [?E(h2, [], ?T(Bench)),
                     [charts(Key, Of) || {Key, Of} <- grouped(fun series/1, Rows)],
                     ?E(p, [], [?T("Files: "), ?E(a, [{href, [Bench, "/measurements"]}],
                                                  ?T("measurements")), ?T(", "),
                                ?E(a, [{href, [Bench, "/output"]}],
                                   ?T(["output of ", filename:basename(Dir)]))])]).

charts({_, Axis, Otp, Args}, Rows) ->
    Points = weft_bencherl_files:points(Rows),
    Whats = lists:usort([What || {What, _, _} <- Points]),
    [charts_of(lists:sublist(Whats, First, ?SERIES_MAX), Points, Axis,
               ["OTP ", Otp, [[" ", Args] || Args =/= ""]])
     || First <- lists:seq(1, length(Whats), ?SERIES_MAX)].

charts_of(Whats, Points, Axis, Title) ->
    Numbered = lists:enumerate(Whats),
    [?E(p, [{class, "legend"}],
        [?E(span, [], [weft_report_svg:marker(class(N), N - 1), ?T([" ", What, "  "])])
         || {N, What} <- Numbered]),
     ?E('div', [{class, "charts"}],
        [?E(figure, [], chart([Title, ": time (ms)"], fun times/2, Numbered, Points, Axis)),
         ?E(figure, [], chart([Title, ": speed-up"], fun speedups/2, Numbered, Points, Axis))])].

class(N) -> "s" ++ integer_to_list(N).

chart(Title, Values, Numbered, Points, Axis) ->
    weft_report_svg:chart(
      #{title => Title, description => [Title, " over the number of ", axis(Axis)],
        x_label => axis(Axis), y_label => "", x => linear, y => linear, y_text => fun text/1,
        series => [#{name => What, class => class(N), shape => N - 1,
                     points => Values(What, Points)} || {N, What} <- Numbered]}).

text(Value) -> io_lib:format("~.2f", [float(Value)]).

times(What, Points) ->
    [{At, lists:min(Ms), lists:min(Ms), lists:max(Ms), text(lists:min(Ms))}
     || {Same, At, Ms} <- Points, Same =:= What].

speedups(What, Points) ->
    {_, _, First} = lists:keyfind(What, 1, Points),
    [begin
         Ratio = lists:min(First) / lists:min(Ms),
         {At, Ratio, Ratio, Ratio, text(Ratio)}
     end || {Same, At, Ms} <- Points, Same =:= What].
