%% SPDX-License-Identifier: Apache-2.0
%% @doc `make otp-suites': builds OTP's own suites, runs them on stock distribution and in the
%% variants with weft (weft_otp_run), and prints a line per run, a table, and each difference with
%% its reason. A suite is run on stock first. The cases that differ then run once more, alone, on
%% stock and in the variant: a machine is busy at times. If they pass, they are told as unsteady.
-module(weft_otp_suites).

-export([main/1, settings/1, check/2]).
-export_type([plan/0, outcome/0]).

%% A line of suites.config: {suite, Name, Directory, Minutes, Cases}, or with `migrated' for a suite
%% that is rewritten before (weft_otp_migrated) and compared with itself on stock.
-type plan() :: {suite | migrated, string(), string(), pos_integer(),
                 all | [{atom(), all | [atom()]}]}.
-type context() :: #{source := file:filename(), work := file:filename(), weft := file:filename(),
                     accepted := #{{atom(), weft_otp_run:variant()} => #{atom() => string()}},
                     except := #{string() => #{atom() => string()}}}.
-type outcome() :: #{suite := string(), variant := weft_otp_run:variant(),
                     results := weft_otp_run:results(), exit := done | string(),
                     seconds := non_neg_integer(), verdict := weft_otp_verdict:verdict(),
                     unsteady := [weft_otp_verdict:difference()]}.

-define(REASON_CHARACTERS, 400).
%% A case that runs a second time gets so much more time for what it waits for.
-define(PATIENCE, 3).

%% @doc Settings: root (of the project), work, source, weft (directories), suites (words, none for
%% all), variants, jobs. Ends the emulator: with 0 if every difference is an accepted one.
-spec main(map()) -> no_return().
main(#{root := Root, work := Work, source := Source, weft := Weft, words := Words,
       variants := Variants, jobs := Jobs}) ->
    {Plans, Context0} = settings(Root),
    Context = Context0#{source => Source, work => Work, weft => Weft},
    Wanted = [Plan || Plan <- Plans, Words =:= [] orelse lists:member(title(Plan), Words)],
    Unknown = Words -- [title(Plan) || Plan <- Wanted],
    Unknown =:= [] orelse io:format("no suites are named ~ts~n", [lists:join(", ", Unknown)]),
    Outcomes = lists:append(side_by_side([fun() -> run(Plan, Variants, Context) end
                                          || Plan <- Wanted], Jobs)),
    report(Outcomes, Variants ++ [migrated], filename:join(Work, "logs")),
    halt(case Unknown =:= [] andalso Outcomes =/= [] andalso lists:all(fun is_well/1, Outcomes) of
             true -> 0;
             false -> 1
         end).

title({suite, Suite, _, _, _}) -> Suite;
title({migrated, Suite, _, _, _}) -> "migrated_" ++ Suite.

%% @doc What test/otp/suites.config and accepted.config say.
-spec settings(Root :: file:filename()) -> {[plan()], map()}.
settings(Root) ->
    {ok, Lines} = file:consult(filename:join(Root, "test/otp/suites.config")),
    {ok, Entries} = file:consult(filename:join(Root, "test/otp/accepted.config")),
    Except = [{Suite, maps:from_list([{Case, Reason} || {except, S, Cases, Reason} <- Lines,
                                                        S =:= Suite, Case <- Cases])}
              || {suite, Suite, _, _, _} <- Lines],
    {[Plan || {_, _, _, _, _} = Plan <- Lines],
     #{accepted => weft_otp_verdict:accepted(Entries), except => maps:from_list(Except)}}.

%% One suite on stock and in each of Variants.
run({Kind, Suite, _, _, _} = Plan, Variants, Context) ->
    case task(Plan, Context) of
        {ok, Task} ->
            Stock = run_once(Task, ""),
            told(Stock),
            Tasks = case Kind of
                        suite -> [Task#{variant := Of} || Of <- Variants, Of =/= stock];
                        migrated -> [migrated(Plan, Task, Context)]
                    end,
            [Stock | [compared(Of, Stock, Context) || Of <- Tasks]];
        {error, Why} ->
            io:format("~ts: ~ts~n", [Suite, Why]),
            []
    end.

%% The same cases of the rewritten suite.
migrated({migrated, Suite, Dir, _, _}, #{weft := Weft, beams := Original} = Task,
         #{source := Source, work := Work}) ->
    Place = filename:join(Work, "migrated"),
    {Root, {Rewritten, Left, ByHand}} = weft_otp_migrated:source(Suite, Dir, Source, Place),
    io:format("~ts: ~w places rewritten, ~w left, ~w words in macros changed by hand~n",
              [Suite, Rewritten, Left, ByHand]),
    {ok, Beams, _} = weft_otp_build:suite(Suite, Dir, Root,
                                          filename:join([Place, Suite, "build"])),
    Task#{variant := migrated, beams := Beams, original => Original,
          boot => weft_otp_migrated:boot(filename:join(Place, Suite), Weft)}.

task({Kind, Suite, Dir, Minutes, Cases} = Plan, #{source := Source, work := Work, weft := Weft,
                                                  except := Except}) ->
    case weft_otp_build:suite(Suite, Dir, Source, filename:join([Work, "build", title(Plan)])) of
        {ok, Beams, Problems} ->
            [io:format("~ts: its data cannot be built:~n~ts~n", [Suite, Text]) || Text <- Problems],
            {ok, #{suite => Suite, variant => stock, beams => Beams, weft => Weft,
                   logs => filename:join([Work, "logs" | [Kind || Kind =:= migrated]]),
                   minutes => Minutes, cases => Cases,
                   except => maps:get(Suite, Except), patience => 1}};
        {error, _} = Error ->
            Error
    end.

%% @doc One suite with weft on all nodes. Stock is asked only about cases that fail, so this takes a
%% third of the time. Context is what settings/1 says, with the directories source, work and weft.
-spec check(plan(), context()) -> {ok, weft_otp_run:results()}
                                      | {different, [weft_otp_verdict:difference()]}
                                      | {listed_but_passed, [atom()]} | {error, string()}.
check(Plan, Context) ->
    case task(Plan, Context) of
        {ok, Task} ->
            Run = run_once(Task#{variant := weft}, ""),
            checked(compared(Task#{variant := weft}, Run, as_if_passed(Run), Context));
        {error, _} = Error ->
            Error
    end.

as_if_passed(#{results := Results}) ->
    maps:map(fun(_Case, Result) -> Result#{status := passed} end,
             maps:filter(fun(_Case, #{status := Status}) -> Status =:= failed end, Results)).

checked(#{exit := Exit}) when Exit =/= done -> {error, Exit};
checked(#{verdict := #{unexpected := [_ | _] = Unexpected}}) -> {different, Unexpected};
checked(#{verdict := #{stale := [_ | _] = Stale}}) -> {listed_but_passed, Stale};
checked(#{results := Results}) -> {ok, Results}.

run_once(#{suite := Suite, variant := Variant} = Task, Try) ->
    Started = erlang:monotonic_time(second),
    {Exit, Results} = weft_otp_run:suite(Task, Try),
    #{suite => Suite, variant => Variant, results => Results, exit => Exit, unsteady => [],
      seconds => erlang:monotonic_time(second) - Started,
      verdict => #{accepted => [], unexpected => [], stale => []}}.

compared(Task, #{results := OnStock}, Context) ->
    Outcome = compared(Task, run_once(Task, ""), OnStock, Context),
    told(Outcome),
    Outcome.

compared(#{suite := Suite, variant := Variant} = Task,
         #{results := Results, exit := Exit} = Run, OnStock, #{accepted := Accepted}) ->
    Here = maps:get({list_to_atom(Suite), Variant}, Accepted, #{}),
    Differences = weft_otp_verdict:differences(OnStock, Results, Exit),
    again(Task, Run#{verdict := weft_otp_verdict:judge(Differences, Results, Here)}).

%% Whatever is not expected gets a second chance.
again(_Task, #{verdict := #{unexpected := []}} = Run) ->
    Run;
again(Task, #{verdict := #{unexpected := Unexpected} = Verdict} = Run) ->
    Alone = Task#{cases := weft_otp_verdict:again(Unexpected), patience := ?PATIENCE},
    Stock = Alone#{variant := stock, beams := maps:get(original, Task, maps:get(beams, Task))},
    #{results := OnStock} = run_once(Stock, "_again_" ++ variant(Task)),
    #{results := Results, exit := Exit} = run_once(Alone, "_again"),
    Confirmed = [Case || #{'case' := Case}
                             <- weft_otp_verdict:differences(OnStock, Results, Exit)],
    {Left, Unsteady} = lists:partition(fun(#{'case' := Case}) -> lists:member(Case, Confirmed) end,
                                       Unexpected),
    Run#{verdict := Verdict#{unexpected := Left}, unsteady := Unsteady}.

variant(#{variant := Variant}) -> atom_to_list(Variant).

is_well(#{verdict := #{unexpected := Unexpected, stale := Stale}}) ->
    Unexpected =:= [] andalso Stale =:= [].

%%% Some at a time

side_by_side(Funs, Jobs) ->
    side_by_side(Funs, Jobs, [], []).

side_by_side([], _Jobs, [], Done) ->
    lists:reverse(Done);
side_by_side([Fun | Funs], Jobs, Running, Done) when length(Running) < Jobs ->
    Self = self(),
    Pid = spawn_link(fun() -> Self ! {self(), Fun()} end),
    side_by_side(Funs, Jobs, [Pid | Running], Done);
side_by_side(Funs, Jobs, Running, Done) ->
    receive
        {Pid, Result} -> side_by_side(Funs, Jobs, lists:delete(Pid, Running), [Result | Done])
    end.

%%% What is told

told(#{suite := Suite, variant := Variant, seconds := Seconds, exit := Exit} = Outcome) ->
    io:format("~-20ts ~-10ts ~-14ts ~5w s~ts~ts~n",
              [Suite, Variant, numbers(Outcome), Seconds, text_of_exit(Exit), words(Outcome)]).

text_of_exit(done) -> "";
text_of_exit(Exit) -> ["  ", Exit].

words(#{verdict := #{unexpected := Unexpected, accepted := Accepted, stale := Stale},
        unsteady := Unsteady}) ->
    [io_lib:format("  ~w ~ts", [length(List), Word])
     || {List, Word} <- [{Unexpected, "DIFFERENT"}, {Stale, "LISTED BUT PASSED"},
                         {Accepted, "accepted"}, {Unsteady, "unsteady"}], List =/= []].

numbers(#{results := Results}) ->
    {Passed, Failed, Skipped} = weft_otp_verdict:counts(Results),
    io_lib:format("~w/~w/~w", [Passed, Failed, Skipped]).

report(Outcomes, Variants, Logs) ->
    Suites = lists:usort([Suite || #{suite := Suite} <- Outcomes]),
    Columns = [stock | Variants -- [stock]],
    io:format("~npassed/failed/skipped~n~ts", [row("", Columns)]),
    [io:format("~ts", [row(Suite, [cell(Suite, Variant, Outcomes) || Variant <- Columns])])
     || Suite <- Suites],
    [differences(Outcome) || Outcome <- Outcomes],
    io:format("~nlogs: ~ts/VARIANT/SUITE~n", [Logs]).

row(Title, Cells) ->
    [io_lib:format("~-18ts", [Title]), [io_lib:format("~-14ts", [Cell]) || Cell <- Cells], "\n"].

cell(Suite, Variant, Outcomes) ->
    case [O || #{suite := S, variant := V} = O <- Outcomes, S =:= Suite, V =:= Variant] of
        [Outcome] -> numbers(Outcome);
        [] -> "-"
    end.

differences(#{suite := Suite, variant := Variant, unsteady := Unsteady,
              verdict := #{accepted := Accepted, unexpected := Unexpected, stale := Stale}}) ->
    Say = fun(Word, Case, Text) ->
                  io:format("~n~ts ~ts: ~ts ~ts~n  ~ts~n", [Suite, Variant, Case, Word, Text])
          end,
    [Say(atom_to_list(Status), Case, shortened(Reason))
     || #{'case' := Case, status := Status, reason := Reason} <- Unexpected],
    [Say("is listed as accepted, and passed", Case, "test/otp/accepted.config may only shrink")
     || Case <- Stale],
    [Say(["accepted: ", Why], Case, shortened(Reason))
     || {#{'case' := Case, reason := Reason}, Why} <- Accepted],
    [Say("differed at first, alone it did not", Case, shortened(Reason))
     || #{'case' := Case, reason := Reason} <- Unsteady],
    ok.

shortened(Reason) ->
    case string:slice(Reason, 0, ?REASON_CHARACTERS) of
        Reason -> Reason;
        Start -> [Start, " ..."]
    end.
