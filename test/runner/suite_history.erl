%% SPDX-License-Identifier: Apache-2.0
%% @doc Which cases were unsteady in earlier runs: they failed, and passed when they ran once more,
%% alone. Once is an accident of a busy machine. What is unsteady each time is a bug that is hidden
%% by its second try, so that it counts as failed.
%%
%% The history is a file of terms, one for each run, the newest last:
%% `{run, [Suite], [{Suite, Case}]}', the suites that ran and the cases that were unsteady.
-module(suite_history).

-export([read/1, add/3, judge/4, causes/3]).
-export_type([run/0, unsteady/0, verdict/0]).

-type suite() :: string().
-type unsteady() :: {suite(), Case :: string()}.
-type run() :: {run, [suite()], [unsteady()]}.
%% An accident passes, what is known or a habit has failed.
-type verdict() :: accident | known | habit.

%% So many runs before this one, of those in which the suite ran.
-define(HABIT_RUNS, 3).
%% Older ones are forgotten.
-define(RUNS_MAX, 20).

%% @doc The runs so far, the newest last. A file that is not there, or not whole, has none.
-spec read(file:filename()) -> [run()].
read(File) ->
    case file:consult(File) of
        {ok, Runs} -> [Run || {run, _, _} = Run <- Runs];
        {error, _} -> []
    end.

%% @doc Writes one run more, after those that were read.
-spec add(file:filename(), run(), [run()]) -> ok | {error, term()}.
add(File, Run, Before) ->
    Runs = Before ++ [Run],
    Kept = lists:nthtail(max(0, length(Runs) - ?RUNS_MAX), Runs),
    Text = [io_lib:format("~0tp.~n", [R]) || R <- Kept],
    file:write_file(File, unicode:characters_to_binary(Text)).

%% @doc What it means that a case was unsteady once more. `Known' are those of the rows, `Runs' came
%% before. A habit was so in each of the last three runs of its suite.
-spec judge(suite(), Case :: string(), Known :: [unsteady()], [run()]) -> verdict().
judge(Suite, Case, Known, Runs) ->
    case {lists:member({Suite, Case}, Known), is_habit({Suite, Case}, Runs)} of
        {_, true} -> habit;
        {true, false} -> known;
        {false, false} -> accident
    end.

is_habit({Suite, _} = Case, Runs) ->
    Of = [Unsteady || {run, Suites, Unsteady} <- lists:reverse(Runs), lists:member(Suite, Suites)],
    length(Of) >= ?HABIT_RUNS
        andalso lists:all(fun(Unsteady) -> lists:member(Case, Unsteady) end,
                          lists:sublist(Of, ?HABIT_RUNS)).

%% @doc What is known of why the case was unsteady, from rows
%% `{unsteady, Suite, Case | any, Cause}'. It is told beside the case.
-spec causes(suite(), Case :: string(), Config :: [tuple()]) -> [Cause :: string()].
causes(Suite, Case, Config) ->
    [Cause || {unsteady, S, C, Cause} <- Config, S =:= Suite, C =:= any orelse C =:= Case].
