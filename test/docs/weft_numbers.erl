%% SPDX-License-Identifier: Apache-2.0
%% @doc Numbers that documents say were measured, held against the data beside them.
%%
%% Each file of test/docs/numbers is for one document. It has parts of it: all, or from a heading to
%% the next one. In each part it names the fragments of the text in which measured numbers stand,
%% with `~' in the place of each number, and what the data say there: medians of repetitions, and
%% ratios, smallest and largest ones of such. These are {Text, [Value]}, or
%% {Text, Run, Cell, [Metric]} for the metrics of one cell of a run, which is
%% {Workload, Variant, Size, Pairs, Streams, Link}.
%%
%% A number is right if it is what the data say, rounded to the digits that are written. Where a
%% goal follows in the row of a table, the verdict on it has to be that of the interval in the data,
%% with which the fragment ends, or of its first number if there is no interval. A number with a
%% unit that is in no fragment has to be among those that are no results: settings, and what others
%% claim. Ends of lines and bold type do not matter.
-module(weft_numbers).

-export([problems/1, commits/1, changed/1, joined/1, failed/1, without_environment/1]).

-define(DATA, "docs/benchmarks").
-define(NUMBER, "(-?[0-9][0-9,]*(?:\\.[0-9]+)?)").
%% A number with a unit, in which something is measured.
-define(MEASURED, "[0-9][0-9.,]*(?: ?(?:%|x|k|M|us|ms|s|[kMG]B)(?:/s)?(?![A-Za-z0-9_])"
                  "| times| connections)").
%% What follows a fragment in the row of a table.
-define(GOAL, "[ %|]* at (least|most) " ?NUMBER "(?: %)? \\| (met|missed|within noise) \\|").
-define(VERDICT, "\\| at (?:least|most) [^|]*\\| (?:met|missed|within noise) \\|").
-define(COLUMNS, [<<"workload">>, <<"variant">>, <<"size_bytes">>, <<"pairs">>, <<"streams">>,
                  <<"link">>]).

%% @doc What is wrong with a part of a document: {part, File, Heading | all, Fragments, NoResults}.
-spec problems(tuple()) -> [string()].
problems({part, File, Heading, Fragments, NoResults}) ->
    {ok, Binary} = file:read_file(File),
    Text = flat(part(Binary, Heading)),
    Checked = [checked(Fragment, Text) || Fragment <- Fragments],
    Left = lists:foldl(fun without/2, without_links(Text),
                       [flat(Said) || Said <- [template(Of) || Of <- Fragments] ++ NoResults]),
    Judged = lists:append([judged(Fragment, Text) || Fragment <- Fragments]),
    [in(File, Problem) || Problem <- lists:append(Checked) ++ wrong(Judged)]
        ++ [in(File, "a verdict on a goal has no data") || length(Judged) < verdicts(Text)]
        ++ [in(File, ["no data for \"", Said, "\""]) || Said <- measured(Left)]
        ++ [in(File, ["it does not say \"", Said, "\""])
            || Said <- NoResults, re:run(Text, pattern(flat(Said))) =:= nomatch].

in(File, Problem) -> lists:flatten(io_lib:format("~ts: ~ts", [File, Problem])).

part(Binary, all) ->
    Binary;
part(Binary, Heading) ->
    [_, Rest] = binary:split(Binary, iolist_to_binary(["\n", Heading, "\n"])),
    hd(re:split(Rest, "\n#+ ")).

flat(Text) ->
    re:replace(re:replace(Text, "\\*\\*", "", [global]), "\\s+", " ",
               [global, {return, binary}]).

without_links(Text) -> re:replace(Text, "\\]\\([^)]*\\)", "]", [global, {return, binary}]).

without(Said, Text) ->
    re:replace(Text, pattern(without_links(Said)), " ; ", [global, {return, binary}]).

measured(Text) ->
    case re:run(Text, ?MEASURED, [global]) of
        nomatch -> [];
        {match, Places} ->
            [binary:part(Text, max(0, At - 40), min(byte_size(Text), At + Size + 20)
                                                    - max(0, At - 40))
             || [{At, Size}] <- Places]
    end.

%% ---- fragments ----

template(Fragment) -> element(1, Fragment).

pattern(Template) ->
    Parts = [re:replace(Part, "[][.*+?^${}()|\\\\]", "\\\\&", [global])
             || Part <- binary:split(iolist_to_binary(Template), <<"~">>, [global])],
    iolist_to_binary(lists:join(?NUMBER, Parts)).

checked(Fragment, Text) ->
    Template = flat(template(Fragment)),
    Values = values(Fragment),
    case re:run(Text, pattern(Template), [global, {capture, all_but_first, list}]) of
        nomatch -> [["it does not say \"", Template, "\""]];
        {match, Said} ->
            [["\"", Template, "\": ", Number, " is ", shown(Value / Scale), " in the data"]
             || Numbers <- Said,
                {Number, {Value, Scale}} <- lists:zip(Numbers, scaled(Template, Values)),
                not is_rounded(Number, Value / Scale)]
    end.

%% The verdict that is written behind a fragment, and the one that is right.
judged(Fragment, Text) ->
    Template = flat(template(Fragment)),
    case re:run(Text, [pattern(Template), ?GOAL], [global, {capture, all_but_first, list}]) of
        nomatch ->
            [];
        {match, Rows} ->
            Interval = interval(Template, [Number || {Number, _Kind} <- values(Fragment)]),
            [{Template, Said, verdict(Least, goal(Goal), Interval)}
             || Row <- Rows, [Least, Goal, Said] <- [lists:nthtail(length(Row) - 3, Row)]]
    end.

interval(Template, [First | _] = Numbers) ->
    case string:find(Template, "~ to ~ |", trailing) of
        <<"~ to ~ |">> -> list_to_tuple(lists:nthtail(length(Numbers) - 2, Numbers));
        _ -> {First, First}
    end.

goal(Text) ->
    {Goal, _} = written(Text),
    Goal.

verdict("least", Goal, {Low, _High}) when Low >= Goal -> "met";
verdict("least", Goal, {_Low, High}) when High < Goal -> "missed";
verdict("most", Goal, {_Low, High}) when High =< Goal -> "met";
verdict("most", Goal, {Low, _High}) when Low > Goal -> "missed";
verdict(_Least, _Goal, _Interval) -> "within noise".

wrong(Judged) ->
    [["\"", Template, "\": ", Said, " is ", Right, " by the data"]
     || {Template, Said, Right} <- Judged, Said =/= Right].

verdicts(Text) ->
    case re:run(Text, ?VERDICT, [global]) of
        nomatch -> 0;
        {match, Found} -> length(Found)
    end.

shown(Value) -> io_lib:format("~.4g", [float(Value)]).

is_rounded(Said, Value) ->
    {Number, Digits} = written(Said),
    abs(Number - Value) =< 0.5001 * math:pow(10, -Digits).

%% A number, and the digits behind its point that count.
written(Said) ->
    Plain = lists:append(string:replace(Said, ",", "", all)),
    case string:split(Plain, ".") of
        [Whole] -> {list_to_integer(Whole), zeros(Plain)};
        [_, Fraction] -> {list_to_float(Plain), length(Fraction)}
    end.

%% 5,100 and 16,200 are rounded to hundreds, 10 is not.
zeros(Plain) when length(Plain) > 3 ->
    -(length(Plain) - length(string:trim(Plain, trailing, "0")));
zeros(_Plain) ->
    0.

values({_, Values}) -> [value(Value) || Value <- Values];
values({_, Run, Cell, Metrics}) -> [value({Run, Cell, Metric}) || Metric <- Metrics].

%% The number of each, with what it is divided by before it is written. In a list the unit is
%% behind the last one.
scaled(Template, Values) ->
    [_ | Behind] = binary:split(Template, <<"~">>, [global]),
    Units = lists:foldr(fun(Text, Units) -> [unit(Text, Units) | Units] end, [], Behind),
    [{Number, scale(Kind, Unit)} || {{Number, Kind}, Unit} <- lists:zip(Values, Units)].

unit(Separator, [Next | _]) when Separator =:= <<" / ">>; Separator =:= <<", ">>;
                                 Separator =:= <<" to ">> ->
    Next;
unit(Text, _) ->
    case re:run(Text, "^ ?(%|k|M|us|ms|s|[KMG]B)(?![A-Za-z0-9_])", [{capture, [1], list}]) of
        {match, [Unit]} -> Unit;
        nomatch -> ""
    end.

scale(us, "ms") -> 1.0e3;
scale(us, "s") -> 1.0e6;
scale(s, "ms") -> 1.0e-3;
scale(bytes, "KB") -> 1.0e3;
scale(bytes, "MB") -> 1.0e6;
scale(mega, "GB") -> 1.0e3;
scale(ratio, "%") -> 0.01;
scale(count, "k") -> 1.0e3;
scale(count, "M") -> 1.0e6;
scale(_Kind, _Unit) -> 1.

%% ---- what the data say ----

%% {Run, Cell, Metric}: of results.csv; {over, Variant, Value}: such a value by that of another
%% variant; {ms, Value}: in milliseconds, in a column without units. {csv, File, Wanted, Column}: of
%% other files, which is {names, ...} for a row about names, {groups, ...}, {topologies, ...} and
%% {costs, ...} for others, and of the benchmarks of ETS {speedup, ...} by a second scheduler, and
%% {slower, ...}: how many times as long two take for the writes to these tables. {ratio, Value},
%% {low, Value} and {high, Value}: of ratios.csv, the ratio to stock and the ends of its interval.
%% {one_lane, ratio, Value} and so on: the ratio to weft with one lane there. {goal, Id}: what a
%% target of reports promises.
%% {slope, File, X, Y, Max} and {r2, File, X, Y, Max}: of the line through the points of these
%% columns, up to this X. {rows, File, Wanted}: how many rows there are.
%% {verdicts, [Run], Which}: of the targets of reports those with this verdict by all these runs
%% together: met, missed, within_noise; `judged' for all that have one, and `right_side' for those
%% within noise whose worst cell has its median on the right side.
%% {'/', One, Other} and {'-', One, Other}: of two values, one of which may be a number.
value(Number) when is_number(Number) ->
    {Number, count};
value({over, Other, {Run, Cell, Metric} = Value}) ->
    value({'/', Value, {Run, setelement(2, Cell, Other), Metric}});
value({'/', One, Other}) ->
    {A, _} = value(One),
    {B, _} = value(Other),
    {A / B, ratio};
value({'-', One, Other}) ->
    {A, Kind} = value(One),
    {B, _} = value(Other),
    {A - B, Kind};
value({verdicts, Runs, Which}) ->
    {length([Judged || Judged <- judged_by(Runs), is_counted(Which, Judged)]), count};
value({Which, [_ | _] = Values}) ->
    All = [value(Value) || Value <- Values],
    {lists:Which([Number || {Number, _} <- All]), element(2, hd(All))};
value({Which, {slower, Types, Options}}) ->
    value({Which, [{'/', {ets, "ets_bench", What, "2"}, {ets, "ets_bench", What, "1"}}
                   || Type <- Types, Option <- Options, Updates <- [0, 1, 10],
                      Part <- ["insert", "insert again", "delete"],
                      What <- [lists:concat(["[", Type, ",", Option, ",", Updates,
                                             ",16384,32768,131072] ", Part])]]});
value({ets, Bench, What, Schedulers}) ->
    value({csv, "ets/results.csv", [{"bench", Bench}, {"what", What}, {"at", Schedulers}], "ms"});
value({speedup, Bench, What}) ->
    value({'/', {ets, Bench, What, "1"}, {ets, Bench, What, "2"}});
value({ms, Value}) ->
    {Us, us} = value(Value),
    {Us / 1000, count};
value({names, Kind, Nodes, Workload, Callers, Column}) ->
    value({csv, "names/names.csv", [{"kind", Kind}, {"nodes", integer_to_list(Nodes)},
                                    {"workload", Workload},
                                    {"callers", integer_to_list(Callers)}], Column});
value({groups, Variant, Groups, Role, Column}) ->
    value({csv, "groups/groups.csv", [{"variant", Variant}, {"groups", Groups}, {"role", Role}],
           Column});
value({costs, Run, Cell, Variant, What, Of}) ->
    value({csv, "costs/" ++ Run ++ "/totals.csv",
           [{"cell", atom_to_list(Cell)}, {"variant", atom_to_list(Variant)},
            {"what", atom_to_list(What)}, {"of", Of}], "value"});
value({topologies, Topology, Column}) ->
    value({csv, "topologies/topologies.csv", [{"topology", Topology}], Column});
value({slope, File, X, Y, Max}) -> {element(1, line(File, X, Y, Max)), count};
value({r2, File, X, Y, Max}) -> {element(3, line(File, X, Y, Max)), count};
value({rows, File, Wanted}) ->
    {length(rows(File, [{iolist_to_binary(Key), iolist_to_binary(Is)} || {Key, Is} <- Wanted])),
     count};
value({csv, File, Wanted, Column}) ->
    {median(File, [{iolist_to_binary(Key), iolist_to_binary(Is)} || {Key, Is} <- Wanted],
            iolist_to_binary(Column)), kind(Column)};
value({least, {Run, Cell, Metric}}) ->
    {Least, _} = weft_report_interval:median(results(Run, Cell, Metric)),
    {Least, kind(atom_to_list(Metric))};
value({most, {Run, Cell, Metric}}) ->
    {_, Most} = weft_report_interval:median(results(Run, Cell, Metric)),
    {Most, kind(atom_to_list(Metric))};
value({one_lane, Column, {Run, Cell, Metric}}) ->
    {ratio_to(<<"weft_1">>, Run, Cell, Metric, Column), ratio};
value({goal, Id}) ->
    [Goal] = [{Threshold, kind(atom_to_list(Metric))}
              || #{id := Of, threshold := Threshold, metric := Metric} <- weft_report_targets:all(),
                 Of =:= Id],
    Goal;
value({Column, {Run, Cell, Metric}}) ->
    {ratio_to(<<"stock">>, Run, Cell, Metric, Column), ratio};
value({Run, Cell, Metric}) ->
    {middle(results(Run, Cell, Metric)), kind(atom_to_list(Metric))}.

is_counted(judged, #{verdict := Verdict}) ->
    Verdict =/= not_measured;
is_counted(right_side, #{verdict := within_noise, target := #{comparison := Comparison},
                         worst := #{result := #{median := Median}, threshold := Threshold}}) ->
    case Comparison of
        at_least -> Median >= Threshold;
        at_most -> Median =< Threshold
    end;
is_counted(Which, #{verdict := Verdict}) ->
    Verdict =:= Which.

judged_by(Runs) ->
    once({judged, Runs},
         fun() ->
             Rows = [begin {ok, Of} = weft_report_record:read(filename:join(?DATA, Run)), Of end
                     || Run <- Runs],
             weft_report_verdict:all(weft_report_results:new(lists:append(Rows)))
         end).

%% By a variant of which the name begins so.
ratio_to(Other, Run, Cell, Metric, Column) ->
    File = Run ++ "/ratios.csv",
    {Head, _} = data(File),
    [Row] = [Row || Row <- rows(File, wanted(Cell, Metric)),
                    string:prefix(lists:nth(place(<<"stock">>, Head), Row), Other) =/= nomatch],
    number(lists:nth(place(atom_to_binary(Column), Head), Row)).

results(Run, Cell, Metric) ->
    column(Run ++ "/results.csv", wanted(Cell, Metric), <<"value">>).

wanted(Cell, Metric) ->
    lists:zip(?COLUMNS ++ [<<"metric">>],
              [list_to_binary(lists:concat([Of])) || Of <- tuple_to_list(Cell)]
                  ++ [atom_to_binary(Metric)]).

kind("megabytes_per_s") -> mega;
kind("received_bytes") -> bytes;
kind("connection_bytes") -> bytes;
kind("connection_rest_bytes") -> bytes;
kind(Metric) ->
    case re:run(Metric, "_us(_per_message)?$") of
        {match, _} -> us;
        nomatch when Metric =:= "duration_s" -> s;
        nomatch -> count
    end.

median(File, Wanted, Column) -> middle(column(File, Wanted, Column)).

%% In order.
column(File, Wanted, Column) ->
    {Head, _} = data(File),
    Value = place(Column, Head),
    Found = lists:sort([number(lists:nth(Value, Row)) || Row <- rows(File, Wanted)]),
    Found =:= [] andalso error({no_rows, File, Wanted}),
    Found.

middle(Found) ->
    Count = length(Found),
    (lists:nth((Count + 1) div 2, Found) + lists:nth(Count div 2 + 1, Found)) / 2.

line(File, X, Y, Max) ->
    {Head, Rows} = data(File),
    [AtX, AtY] = [place(iolist_to_binary(Column), Head) || Column <- [X, Y]],
    weft_report_line:fit([{number(lists:nth(AtX, Row)), number(lists:nth(AtY, Row))}
                          || Row <- Rows, number(lists:nth(AtX, Row)) =< Max]).

rows(File, Wanted) ->
    {Head, Rows} = data(File),
    Places = [{place(Key, Head), Is} || {Key, Is} <- Wanted],
    [Row || Row <- Rows, lists:all(fun({At, Is}) -> lists:nth(At, Row) =:= Is end, Places)].

number(Text) ->
    try binary_to_float(Text) catch error:badarg -> binary_to_integer(Text) end.

place(Column, Head) ->
    length(lists:takewhile(fun(Other) -> Other =/= Column end, Head)) + 1.

data(File) ->
    once({data, File},
         fun() ->
             {ok, Text} = file:read_file(filename:join(?DATA, File)),
             [Head | Rows] = weft_report_csv:parse(Text),
             {Head, Rows}
         end).

%% By each process.
once(Key, Make) ->
    case get({?MODULE, Key}) of
        undefined ->
            Made = Make(),
            put({?MODULE, Key}, Made),
            Made;
        Made ->
            Made
    end.

%% ---- commits ----

%% @doc The commits at which the runs below a directory were measured, each with its runs.
-spec commits(file:filename()) -> #{Commit :: string() => [Run :: string()]}.
commits(Dir) ->
    lists:foldl(fun({Run, Said}, Commits) ->
                        {Commit, _Behind} = commit(Said),
                        maps:update_with(Commit, fun(Runs) -> [Run | Runs] end, [Run], Commits)
                end, #{}, said_commits(Dir)).

%% @doc The runs below a directory that were measured with something else than the code of a commit:
%% with changes that are in none, or compiled before a change.
-spec changed(file:filename()) -> [Run :: string()].
changed(Dir) ->
    [Run || {Run, Said} <- said_commits(Dir), {_Commit, [_ | _]} <- [commit(Said)]].

%% The commit, and what weft_bench_environment:commit_text/3 tells behind it.
commit(Said) -> string:take(Said, " ;", true).

said_commits(Dir) ->
    [{filename:dirname(File), said_commit(filename:join(Dir, File))}
     || File <- filelib:wildcard("**/environment.csv", Dir)].

said_commit(File) ->
    {ok, Text} = file:read_file(File),
    [Said] = [binary_to_list(Commit) || [<<"commit">>, Commit] <- weft_report_csv:parse(Text)],
    Said.

%% @doc The runs below a directory whose results are those of several: the environment beside them
%% is that of one of these, with its variants and repetitions.
-spec joined(file:filename()) -> [Run :: string()].
joined(Dir) ->
    [Run || {Run, Rows} <- results(Dir),
            [_, _ | _] <- [lists:usort([Of || #{run := Of} <- Rows])]].

%% @doc The runs below a directory in which repetitions failed, which are in no number.
-spec failed(file:filename()) -> [Run :: string()].
failed(Dir) ->
    [Run || {Run, Rows} <- results(Dir),
            lists:any(fun(#{metric := Metric}) -> Metric =:= <<"failed">> end, Rows)].

results(Dir) ->
    [{Run, Rows} || File <- filelib:wildcard("**/results.csv", Dir),
                    Run <- [filename:dirname(File)],
                    {ok, Rows} <- [weft_report_record:read(filename:join(Dir, Run))]].

%% @doc Where data are below a directory, and neither their commit nor their machine.
-spec without_environment(file:filename()) -> [Run :: string()].
without_environment(Dir) ->
    Runs = lists:usort([filename:dirname(File) || File <- filelib:wildcard("**/*.csv", Dir)]),
    [Run || Run <- Runs, not filelib:is_regular(filename:join([Dir, Run, "environment.csv"]))].
