%% SPDX-License-Identifier: Apache-2.0
%% @doc Compares two runs: what got worse, what got better, and whether that is more than noise. A
%% run is one of cells, a load, one of DE-Bench or of a command that writes a table of its own
%% (`weft_bench_tables'), or figures of papers, compared one by one.
%%
%% For each cell, variant and metric of `weft_report_results:headline_metrics/1' that both runs
%% have, the change is new against old, turned so that less than 1 is worse. A change counts if it
%% is beyond the threshold and its interval (`weft_report_interval') does not contain 1; with an
%% interval that does it is noise, and told as such; so is one of several repetitions that have no
%% interval, as too many of them are zero. A single repetition has no interval, and its change
%% counts as it is; so runs to be compared should have several. What a load has counted once is
%% compared by its share (`weft_bench_compare_shares').
%%
%% What was measured and now fails is worse, also if only more repetitions fail than before, and so
%% is a number that a cell does not have any more, though it was measured. Other failures are told,
%% as the cell may have no number: of a cell in which as many repetitions fail as before, or that
%% only the new run has. What was zero has no size that a change could be compared with: more of it
%% is worse where less is better, for example of lost messages, unless the intervals of both medians
%% overlap.
%%
%% The stock carriers are not ours, nor are the stores of others: they are the yardstick. That they
%% changed says that the machine did, or its load; it is told, and is no regression. So runs that
%% have nothing else in common can not be compared.
-module(weft_bench_compare).

-export([command/0, main/1, changes/3, text/2]).
-export_type([change/0]).

-define(THRESHOLD, 0.9).
-define(COLUMNS, 100).

-type change() :: #{cell := weft_report_record:cell(), variant := binary(), metric := binary(),
                    verdict := worse | better | noise | same | fails | failing | gone,
                    %% Less than 1 is worse. None where there is nothing to compare with.
                    change := float() | none, interval := weft_report_interval:interval(),
                    old := weft_report_results:measured() | repetitions(),
                    new := weft_report_results:measured() | repetitions() | none}.
%% Of the metric `failed'.
-type repetitions() :: {Failed :: non_neg_integer(), Of :: non_neg_integer()}.

%% @doc From the command line. The exit status: 0, 1 if something got worse, 2 if the arguments or
%% the runs can not be read.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench compare").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "what got worse or better between two runs",
      arguments => [#{name => old, help => "directory of a run"},
                    #{name => new, help => "directory of another"},
                    #{name => threshold, long => "-threshold", type => {custom, fun threshold/1},
                      default => ?THRESHOLD, value => "NUMBER",
                      help => "less than that is a change (default 0.9)"},
                    #{name => terminal, long => "-terminal", type => boolean, help => hidden}],
      handler => fun compared/1}.

%% What make gives for a directory that is not named.
compared(#{old := Old, new := New}) when Old =:= ""; New =:= "" ->
    fail("Arguments: OLD NEW [--threshold 0.9], directories of two runs");
compared(#{old := Old, new := New, threshold := Threshold}) ->
    compare(Old, New, Threshold).

threshold(Text) ->
    case string:to_float(Text) of
        {Threshold, ""} when Threshold > 0, Threshold < 1 -> Threshold;
        _ -> throw("a number between 0 and 1, like 0.9")
    end.

fail(Text) ->
    io:format(standard_error, "~ts~n", [Text]),
    2.

compare(OldDir, NewDir, Threshold) ->
    case {parts(OldDir), parts(NewDir)} of
        {[{whole, _}] = Old, [{whole, _}] = New} -> all(Old, New, Threshold);
        {[{whole, _}], _} -> fail([NewDir, " is a run of another kind than ", OldDir]);
        {_, [{whole, _}]} -> fail([NewDir, " is a run of another kind than ", OldDir]);
        {Old, New} -> all(Old, New, Threshold)
    end.

%% Figures have a run each.
parts(Dir) ->
    case {weft_load_cli:is_load(Dir), filelib:wildcard("*/results.csv", Dir)} of
        {true, _} -> [{whole, Dir}];
        {false, []} -> [{whole, Dir}];
        {false, Files} -> [{filename:dirname(File), filename:join(Dir, filename:dirname(File))}
                           || File <- Files]
    end.

all(Old, New, Threshold) ->
    Both = [{Name, OldDir, NewDir} || {Name, OldDir} <- Old, {Same, NewDir} <- New,
                                      Same =:= Name],
    [io:format("~ts: only in one of them~n", [Name])
     || {Name, _} <- Old ++ New, not lists:keymember(Name, 1, Both)],
    case [one(Name, OldDir, NewDir, Threshold) || {Name, OldDir, NewDir} <- Both] of
        [] -> fail("there is no figure that both runs have");
        Statuses -> status_of_all([Status || Status <- Statuses, Status =/= nothing])
    end.

%% One of several figures may have nothing. That of nothing nothing got worse is no good news.
status_of_all([]) ->
    fail("no variant was measured in the same cell in both runs, but for those of others");
status_of_all(Statuses) -> lists:max(Statuses).

one(Name, OldDir, NewDir, Threshold) ->
    case {read(OldDir, NewDir), read(NewDir, OldDir)} of
        {{ok, Old, OldPlace}, {ok, New, NewPlace}} ->
            Changes = changes(Old, New, Threshold),
            [io:format("~n~ts~n", [Name]) || Name =/= whole],
            io:put_chars(text(Changes, differences(OldPlace, NewPlace))),
            status(Changes);
        {{error, Text}, _} -> fail(Text);
        {_, {error, Text}} -> fail(Text)
    end.

status(Changes) ->
    Ours = [Verdict || #{verdict := Verdict} = Change <- Changes, is_ours(Change)],
    case {[x || Verdict <- Ours, Verdict =:= worse orelse Verdict =:= fails],
          [x || Verdict <- Ours, Verdict =/= gone, Verdict =/= failing]} of
        {[], []} -> nothing;
        {[], _} -> 0;
        {[_ | _], _} -> 1
    end.

read(Dir, Beside) ->
    case weft_load_cli:is_load(Dir) of
        true -> weft_load_results:read(Dir);
        false -> read_table(Dir, Beside)
    end.

read_table(Dir, Beside) ->
    case weft_bench_tables:read(Dir, Beside) of
        none -> read_cells(Dir);
        Table -> Table
    end.

read_cells(Dir) ->
    case {weft_report_record:read(Dir), weft_report_record:read_environment(Dir)} of
        {{ok, Rows}, {ok, Environment}} -> {ok, weft_report_results:new(Rows), Environment};
        {{error, Text}, _} -> {error, Text};
        {_, {error, Text}} -> {error, Text}
    end.

%% What makes runs hard to compare, and for loads also whatever is another one in what they do.
differences(Old, New) ->
    [{Key, maps:get(Key, Old, <<>>), maps:get(Key, New, <<>>)}
     || Key <- [<<"otp_release">>, <<"kernel">>, <<"processor">>, <<"cores">>,
                <<"congestion_control">>, <<"flags_of_nodes">>, <<"flags_of_clusters">>,
                <<"scope">>, <<"quota">>, <<"deployment">>, <<"hosts">>, <<"variant">>,
                <<"node_count">>
                | configured(maps:merge(Old, New))],
        maps:get(Key, Old, <<>>) =/= maps:get(Key, New, <<>>)].

%% But for names of nodes that were started for the run, and what was measured before it.
configured(Both) ->
    [Key || <<"config_", _/binary>> = Key <- lists:sort(maps:keys(Both)),
            Key =/= <<"config_rounds_per_us">>,
            Key =/= <<"config_nodes">> orelse not is_map_key(<<"node_count">>, Both)].

%% ---- changes ----

%% @doc All that the old run has measured, compared with the new one, and what failed in either.
-spec changes(Old :: weft_report_results:results(), New :: weft_report_results:results(),
              Threshold :: float()) -> [change()].
changes(Old, New, Threshold) ->
    [change({Cell, Variant, Metric}, Measured, Best, {Old, New}, Threshold)
     || {_, Workload, _, _, _, _} = Cell <- weft_report_results:cells(Old),
        Metric <- weft_report_results:headline_metrics(Workload),
        Best <- [weft_report_results:best(Metric)], Best =/= none,
        Variant <- weft_report_results:variants(Cell, Old),
        {ok, Measured} <- [weft_report_results:measured(Cell, Variant, Metric, Old)]]
        ++ [Change || {Cell, Variant} <- lists:usort(pairs(Old) ++ pairs(New)),
                      Change <- failures(Cell, Variant, Old, New)].

pairs(Results) ->
    [{Cell, Variant} || Cell <- weft_report_results:cells(Results),
                        Variant <- weft_report_results:variants(Cell, Results)].

change({Cell, Variant, Metric} = Key, Measured, Best, {Old, New} = Runs, Threshold) ->
    Change = #{cell => Cell, variant => Variant, metric => Metric, old => Measured},
    case weft_report_results:measured(Cell, Variant, Metric, New) of
        {ok, Now} ->
            {Turned, Interval, IsNoise} =
                case weft_bench_compare_shares:compared(Key, Old, New) of
                    none -> turned(Key, Measured, Now, Best, Runs);
                    Share -> Share
                end,
            Change#{new => Now, change => Turned, interval => Interval,
                    verdict => case Turned of
                                   none -> from_zero(Measured, Now, Best, IsNoise);
                                   _ -> verdict(Turned, IsNoise, Threshold)
                               end};
        none ->
            Change#{new => none, change => none, interval => none,
                    verdict => missing(failed(Cell, Variant, New))}
    end.

%% A cell that was left out may be there in the next run. One that was measured and no longer has
%% this number may lack it for what is wrong: a cluster that never recovers has no time of recovery.
missing({0, 0}) -> gone;
missing({All, All}) -> fails;
missing({_, _}) -> worse.

%% The change, its interval, and whether it is noise. From or to zero there is nothing to divide by.
turned(Key, #{median := Was}, #{median := Is}, _Best, {Old, New}) when Was =< 0; Is =< 0 ->
    {ok, #{interval := OfOld}} = weft_report_results:absolute(Key, Old),
    {ok, #{interval := OfNew}} = weft_report_results:absolute(Key, New),
    {none, none, overlap(OfOld, OfNew)};
turned(Key, Was, Is, Best, {Old, New}) ->
    {ok, #{median := Change, interval := Interval}} =
        case Best of
            more -> weft_report_results:ratio(Key, New, Key, Old);
            less -> weft_report_results:ratio(Key, Old, Key, New)
        end,
    {Change, Interval, is_noise(Interval, Was, Is)}.

from_zero(#{median := Was}, #{median := Is}, _Best, _IsNoise) when Was == Is -> same; % 0 and 0.0
from_zero(_Was, _Is, _Best, true) -> noise;
from_zero(#{median := Was}, #{median := Is}, more, false) when Is < Was -> worse;
from_zero(#{median := Was}, #{median := Is}, less, false) when Is > Was -> worse;
from_zero(_Was, _Is, _Best, false) -> better.

overlap({Low, High}, {OtherLow, OtherHigh}) -> Low =< OtherHigh andalso OtherLow =< High;
overlap(_, _) -> false.

is_noise(none, #{count := Before}, #{count := Now}) -> Before > 1 andalso Now > 1;
is_noise(Interval, _Before, _Now) -> weft_report_interval:contains(1, Interval).

verdict(Change, true, Threshold) when Change < Threshold; Change > 1 / Threshold -> noise;
verdict(Change, false, Threshold) when Change < Threshold -> worse;
verdict(Change, false, Threshold) when Change > 1 / Threshold -> better;
verdict(_Change, _IsNoise, _Threshold) -> same.

%% Repetitions that failed are in no number.
failures(Cell, Variant, Old, New) ->
    {Before, _} = Was = failed(Cell, Variant, Old),
    {Now, _} = Is = failed(Cell, Variant, New),
    [#{cell => Cell, variant => Variant, metric => <<"failed">>, verdict => Verdict, change => none,
       interval => none, old => Was, new => Is}
     || Before + Now > 0, Verdict <- [of_failures(Was, Is)]].

of_failures(_Was, {0, 0}) -> gone;
of_failures({0, 0}, _Is) -> failing;
of_failures({Before, OfOld}, {Now, OfNew}) when Now * OfOld > Before * OfNew -> worse;
of_failures({Before, OfOld}, {Now, OfNew}) when Now * OfOld < Before * OfNew -> better;
of_failures(_Was, _Is) -> failing.

failed({_, Workload, _, _, _, _} = Cell, Variant, Results) ->
    Failed = length([x || {failed, _} <- weft_report_results:trouble(Cell, Variant, Results)]),
    Worked = [Count || Metric <- weft_report_results:headline_metrics(Workload),
                       {ok, #{count := Count}}
                           <- [weft_report_results:measured(Cell, Variant, Metric, Results)]],
    {Failed, Failed + lists:max([0 | Worked])}.

is_ours(#{cell := {<<"stores">>, _, _, _, _, _}, variant := Variant}) ->
    string:prefix(Variant, "weft") =/= nomatch;
is_ours(#{variant := Variant}) ->
    not weft_report_results:is_stock(Variant).

%% ---- text ----

%% @doc The comparison as lines of at most 100 columns: differences of the environment, what changed
%% (worst first), other failures, and a sum.
-spec text([change()], [{Key :: binary(), Old :: binary(), New :: binary()}]) ->
          unicode:chardata().
text(Changes, Differences) ->
    {Ours, Others} = lists:partition(fun is_ours/1, Changes),
    [[note(Difference) || Difference <- Differences],
     yardstick(Others),
     group("WORSE", [worse, fails], Ours), group("better", [better], Ours),
     group("not of weft, changed", [worse, fails, better], Others),
     group("other failures", [failing], Changes), sum(Ours)].

%% What has no room is in the files.
note({Key, Old, New}) ->
    Text = io_lib:format("note: ~ts was ~ts, is ~ts~n", [Key, shown(Old), shown(New)]),
    case string:length(Text) =< ?COLUMNS of
        true -> Text;
        false -> io_lib:format("note: ~ts is another one, see environment.csv~n", [Key])
    end.

shown(<<>>) -> "-";
shown(Value) -> Value.

yardstick(Others) ->
    case [Change || #{change := Change} <- Others, Change =/= none] of
        [] -> "";
        Values -> io_lib:format("not of weft: x ~.2f at the median of ~b numbers "
                                "(far from 1: another machine or load)~n",
                                [float(weft_report_statistics:median(Values)), length(Values)])
    end.

group(Title, Verdicts, Changes) ->
    Found = [Change || #{verdict := Verdict} = Change <- Changes, lists:member(Verdict, Verdicts)],
    Sorted = lists:sort(fun(A, B) -> size_of(A) >= size_of(B) end, Found),
    [[io_lib:format("~n~ts: ~b~n", [Title, length(Found)]),
      weft_report_terminal:table(["cell", "variant", "metric", "old", "new", "change",
                                  "interval"],
                                 [left, left, left, right, right, right, right],
                                 [row(Change) || Change <- Sorted])] || Found =/= []].

%% The largest first; a failure is the largest.
size_of(#{change := none}) -> infinity;
size_of(#{change := Change}) -> max(Change, 1 / Change).

row(#{cell := Cell, variant := Variant, metric := Metric, change := Change,
      interval := Interval} = Row) ->
    [weft_report_words:cell(Cell), weft_report_words:variant(Variant),
     weft_report_words:metric(Metric), side(maps:get(old, Row), Metric),
     side(maps:get(new, Row), Metric),
     case {Change, Row} of
         {none, #{verdict := fails}} -> "fails";
         {none, #{new := none}} -> "gone";
         {none, _} -> "";
         _ -> weft_report_words:ratio(Change)
     end,
     weft_report_words:interval(Interval)].

side(none, _Metric) -> "-";
side({0, 0}, _Metric) -> "-";
side({Failed, Of}, _Metric) -> io_lib:format("~b of ~b fail", [Failed, Of]);
side(#{median := Median}, Metric) ->
    weft_report_words:value(Median, weft_report_words:unit(Metric)).

sum(Changes) ->
    Counts = [io_lib:format("~b ~ts", [length([x || #{verdict := V} <- Changes, V =:= Verdict]),
                                       Word])
              || {Verdict, Word} <- [{worse, "worse"}, {fails, "fail now"}, {better, "better"},
                                     {same, "the same"}, {noise, "changed within noise"},
                                     {gone, "not measured in the new run"}]],
    ["\n", lists:join(", ", Counts), "\n"].
