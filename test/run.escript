#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput +sbtu
%% Runs every test of the project and counts them:
%%
%%   test/run.escript [WORD ...]      all suites, or those whose name contains one of the words
%%
%% Suites are found, not listed: the house checks (test/house), EUnit of each application, and each
%% *_SUITE.erl below apps/*/test, examples/*/test and test/. Each runs in an emulator of its own, so
%% that no suite sees what another one left, and a suite that hangs is ended and counts as failed.
%% Most of them wait for something most of the time, so some run side by side, each in a build
%% directory of its own (JOBS=N says how many; 1 for one after the other).
%% Common Test suites run on real nodes and sockets of a machine that may be busy: if few cases of
%% one fail, these are run a second time, alone, which counts. The suite is then told to be
%% unsteady, with both logs. Prints a line per suite, the failed cases, and last, alone on its line:
%%
%%   N passed, N failed[, N skipped]
%%
%% The exit code is 0 if nothing failed. Output of the suites: <build>/test/logs/*.log.
-mode(compile).

-define(JOBS, "2").
-define(SUITE_MINUTES_MAX, 15).
-define(ALL_MINUTES_MAX, 29).
%% So often somebody who waits is told what runs.
-define(WORD_EVERY_MS, 60_000).
%% More failed cases than this are no accident.
-define(UNSTEADY_MAX, 3).
%% What a suite gets to end its nodes in an orderly way, once its time is up.
-define(GRACE_MS, 15_000).
%% A variable of the environment of what a suite starts, by which all of it is found.
-define(MARK, "WEFT_TEST_SUITE").

main(Words) ->
    Base = os:getenv("REBAR_BASE_DIR", "_build"),
    Logs = filename:absname(filename:join(Base, "test/logs")),
    Context = #{base => Base, logs => Logs, started => now_ms(),
                slots => lists:seq(1, max(1, list_to_integer(os:getenv("JOBS", ?JOBS))))},
    ok = filelib:ensure_dir(filename:join(Logs, "x")),
    Results = run_all([Suite || Suite <- suites(), is_wanted(Suite, Words)], Context),
    [] =/= Results orelse io:format("no suite is named like ~s~n", [lists:join(" or ", Words)]),
    summary(Results, Context),
    halt(case Results =/= [] andalso sum(failed, Results) =:= 0 of true -> 0; false -> 1 end).

%% Without the code nothing else can run, so a failed compilation ends the list.
run_all([], _) ->
    [];
run_all(Suites, #{slots := Slots} = Context) ->
    case run({compile, "apps"}, "", 1, Context) of
        #{failed := 0} ->
            [again(Result, Context) || Result <- side_by_side(Suites, Slots, #{}, [], Context)];
        Compile ->
            [Compile]
    end.

%% Each suite that runs has a slot.
side_by_side([Suite | Suites], [Slot | Free], Running, Results, Context) ->
    Main = self(),
    Worker = spawn_link(fun() -> Main ! {self(), run(Suite, "", Slot, Context)} end),
    Entry = #{suite => Suite, slot => Slot, since => now_ms()},
    side_by_side(Suites, Free, Running#{Worker => Entry}, Results, Context);
side_by_side([], _Free, Running, Results, _Context) when Running =:= #{} ->
    lists:reverse(Results);
side_by_side(Suites, Free, Running, Results, Context) ->
    receive
        {Worker, Result} when is_map_key(Worker, Running) ->
            {#{slot := Slot}, Others} = maps:take(Worker, Running),
            side_by_side(Suites, [Slot | Free], Others, [Result | Results], Context)
    after ?WORD_EVERY_MS ->
        Words = [[title(Suite), " for ", integer_to_list((now_ms() - Since) div 1000), " s"]
                 || #{suite := Suite, since := Since} <- maps:values(Running)],
        io:format("  running: ~s~n", [lists:join(", ", Words)]),
        side_by_side(Suites, Free, Running, Results, Context)
    end.

%%% Which suites

suites() ->
    [{house, "checks"}]
        ++ [{eunit, Dir} || Dir <- filelib:wildcard("{apps,examples}/*"), eunit_modules(Dir) =/= []]
        ++ [{eunit_dir, Dir} || Dir <- eunit_dirs()]
        ++ [{ct, filename:rootname(File)} || File <- ct_suites()].

%% All that have tests. (Left to itself, rebar3 runs for an application only the test modules that
%% are named after one of its modules, and says nothing about the others.) EUnit itself adds
%% x_tests to x.
eunit_modules(Dir) ->
    Modules = [filename:basename(File, ".erl")
               || File <- filelib:wildcard(Dir ++ "/{src,test}/**/*.erl"), has_eunit(File)],
    Modules -- [Module ++ "_tests" || Module <- Modules].

has_eunit(File) ->
    {ok, Text} = file:read_file(File),
    not lists:suffix("_SUITE.erl", File)
        andalso binary:match(Text, <<"eunit/include/eunit.hrl">>) =/= nomatch.

eunit_dirs() ->
    lists:usort([filename:dirname(File) || File <- filelib:wildcard("test/**/*_tests.erl")]).

%% The longest are in test/ and of weft_bench: at the end nothing would run beside them.
ct_suites() ->
    First = filelib:wildcard("test/**/*_SUITE.erl")
        ++ filelib:wildcard("apps/weft_bench/test/**/*_SUITE.erl"),
    First ++ (filelib:wildcard("{apps,examples}/*/test/**/*_SUITE.erl") -- First).

is_wanted(_, []) -> true;
is_wanted(Suite, Words) -> lists:any(fun(W) -> string:find(title(Suite), W) =/= nomatch end, Words).

title({Kind, Name}) ->
    lists:concat([Kind, " ", Name]).

%%% Running one suite

again(#{id := Suite} = First, Context) ->
    case is_worth_again(Suite, First, Context) of
        true ->
            Only = only(First),
            Second = run(Suite, " (again)", 1, Context#{only => Only}),
            (together(Only, First, Second))#{unsteady => First};
        false ->
            First
    end.

%% If only the failed cases ran again, those that passed before count too. (Two of different groups
%% are chosen by groups and by names, so that others of these may run with them.)
together([], _First, Second) ->
    Second;
together(_Only, #{failed := Ran}, #{passed := Passed, failed := Failed} = Second)
  when Passed + Failed < Ran ->
    Second#{failed => Ran - Passed, cases => [<<"cases that failed did not run again">>]};
together(_Only, #{passed := Before, failed := Ran}, #{failed := Failed} = Second) ->
    Second#{passed => Before + Ran - Failed}.

%% The arguments that choose the failed cases; none, which is the whole suite, if something else
%% failed or cases of groups and others did.
only(#{failed := Failed, cases := Cases}) ->
    Paths = [string:lexemes(Path, ".") || Case <- Cases, Path <- failed_path(Case)],
    Names = [lists:last(Path) || Path <- Paths],
    Groups = [hd(Path) || [_, _ | _] = Path <- Paths],
    IsWhole = length(Paths) < Failed orelse lists:any(fun is_preparation/1, Names)
        orelse (Groups =/= [] andalso length(Groups) < Failed),
    case IsWhole of
        true -> [];
        false -> option("--group=", Groups) ++ option("--case=", Names)
    end.

failed_path(Case) ->
    [binary_to_list(Path) || Path <- matches("^\\S+ ==> (\\S+)$", Case)].

is_preparation(Name) ->
    re:run(Name, "^(init|end)_per_") =/= nomatch.

option(_Name, []) -> [];
option(Name, Values) -> [Name ++ lists:append(lists:join(",", lists:usort(Values)))].

run(Suite, Try, Slot, #{base := Base, logs := Logs} = Context) ->
    Started = now_ms(),
    Title = title(Suite) ++ Try,
    Name = re:replace(Title, "[ /()]+", "-", [global, {return, list}]),
    Log = filename:join(Logs, Name ++ ".log"),
    Result = result(Suite, Log, Context#{base := base(Slot, Base)}),
    io:format("~-62s ~s, ~.1f s~s~n",
              [Title, verdict(Result), (now_ms() - Started) / 1000, left(Result)]),
    [io:format("  ~ts~n", [Case]) || Case <- maps:get(cases, Result)],
    Result#{id => Suite, suite => title(Suite), log => Log}.

base(1, Base) -> Base;
base(Slot, Base) -> filename:join(Base, lists:concat(["slot", Slot])).

is_worth_again({ct, _}, #{failed := Failed}, Context) ->
    Failed > 0 andalso Failed =< ?UNSTEADY_MAX andalso time_left_ms(Context) > 60_000;
is_worth_again(_Suite, _Result, _Context) ->
    false.

result({house, _}, Log, #{base := Base}) ->
    house_checks(Base, Log);
result(Suite, Log, #{base := Base} = Context) ->
    Arguments = arguments(Suite) ++ maps:get(only, Context, []),
    {Exit, Left} = command(Arguments, Base, Log, time_left_ms(Context)),
    {ok, Output} = file:read_file(Log),
    Plain = re:replace(Output, "\e\\[[0-9;]*m", "", [global, {return, binary}]),
    (parse(Suite, Exit, Plain))#{left => Left}.

arguments({compile, _}) -> ["compile"];
arguments({eunit, Dir}) -> ["eunit", "-v", "--module=" ++ lists:join(",", eunit_modules(Dir))];
arguments({eunit_dir, Dir}) -> ["eunit", "-v", "--dir=" ++ Dir];
arguments({ct, Path}) -> ["ct", "--dir=" ++ filename:dirname(Path),
                          "--suite=" ++ filename:basename(Path)].

time_left_ms(#{started := Started}) ->
    min(?SUITE_MINUTES_MAX * 60_000, max(1, Started + ?ALL_MINUTES_MAX * 60_000 - now_ms())).

%% What it says goes to the log past this emulator: who waits for the end of a pipe waits for all
%% that hold it, as nodes do that a suite left running.
command(Arguments, Base, Log, TimeoutMs) ->
    Mark = lists:concat([os:getpid(), "-", erlang:unique_integer([positive])]),
    Port = open_port({spawn_executable, os:find_executable("sh")},
                     [{args, ["-c", "exec rebar3 \"$@\" > \"$0\" 2>&1", Log | Arguments]},
                      {env, [{"TERM", "dumb"}, {"REBAR_BASE_DIR", Base}, {?MARK, Mark}]},
                      exit_status, hide]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    Exit = wait_for_end(Port, Pid, TimeoutMs),
    Left = marked(Mark),
    [signal("KILL", LeftPid) || LeftPid <- Left],
    {Exit, length(Left)}.

wait_for_end(Port, Pid, TimeoutMs) ->
    receive
        {Port, {exit_status, 0}} -> ok;
        {Port, {exit_status, Status}} -> {exit, Status}
    after TimeoutMs ->
        signal("TERM", Pid),
        receive {Port, {exit_status, _}} -> ok after ?GRACE_MS -> signal("KILL", Pid) end,
        time_is_up
    end.

%% The processes that a suite started, and these in turn, as far as they still run (on Linux).
marked(Mark) ->
    Variable = iolist_to_binary([?MARK, "=", Mark, 0]),
    [filename:basename(Dir) || Dir <- filelib:wildcard("/proc/[0-9]*"),
                               is_marked(filename:join(Dir, "environ"), Variable)].

is_marked(File, Variable) ->
    case file:read_file(File) of
        {ok, Environment} -> binary:match(Environment, Variable) =/= nomatch;
        {error, _} -> false
    end.

signal(Name, Pid) ->
    os:cmd(lists:concat(["kill -", Name, " ", Pid])).

%%% House checks: compiled and run here, they need no test emulator

house_checks(Base, Log) ->
    Out = filename:join(Base, "house"),
    ok = filelib:ensure_dir(filename:join(Out, "x")),
    true = code:add_patha(Out),
    [{ok, _} = compile:file(File, [{outdir, Out}, report])
     || File <- filelib:wildcard("test/house/*.erl"), not lists:suffix("_tests.erl", File)],
    {ok, File} = file:open(Log, [write, {encoding, utf8}]),
    Shell = group_leader(),
    true = group_leader(File, self()),
    {Kept, Broken} = house:run(".", filename:join(Base, "default/lib")),
    true = group_leader(Shell, self()),
    ok = file:close(File),
    {ok, Problems} = file:read_file(Log),
    #{passed => length(Kept), failed => length(Broken), skipped => 0,
      cases => string:lexemes(Problems, "\n")}.

%%% What the output of a suite says

parse({compile, _}, ok, _) ->
    #{passed => 0, failed => 0, skipped => 0, cases => []};
parse({ct, _}, Exit, Output) ->
    Failed = number("Failed (\\d+) tests", Output)
        + number("Skipped \\d+ \\(\\d+, (\\d+)\\)", Output),
    Counts = #{passed => max(dots(Output), number("(?:All|Passed) (\\d+) tests", Output)),
               skipped => number("Skipped \\d+ \\((\\d+), \\d+\\)", Output)},
    finish(Exit, Output, Failed, "^%%% +(.+ ==> .+): FAILED", Counts);
parse({_EunitOrCompile, _}, Exit, Output) ->
    Failed = number("Failed: (\\d+)\\.", Output) + number("Skipped: (\\d+)\\.", Output)
        + length(matches("^.*(\\*timed out\\*|\\*\\*\\* .*failed \\*\\*\\*)", Output)),
    Passed = number("All (\\d+) tests passed", Output) + number("Passed: (\\d+)\\.", Output)
        + length(matches("^ +(Test) passed\\.$", Output)) + twice(Output),
    Case = "^ *(.*(?:\\*failed\\*|\\*timed out\\*|\\*\\*\\* .*failed \\*\\*\\*))",
    finish(Exit, Output, Failed, Case, #{passed => Passed, skipped => 0}).

%% A suite that was ended has no sum, but a dot for each case that passed.
dots(Output) ->
    lists:sum([byte_size(Dots) || Dots <- matches("^%%% \\w+: (\\.+)", Output)]).

%% EUnit has its own words for two tests.
twice(Output) ->
    2 * length(matches("^ +(2 tests) passed\\.$", Output)).

%% A suite that ended badly has failed, whatever its counts say.
finish(Exit, Output, Failed, CasePattern, Counts) ->
    Cases = matches(CasePattern, Output),
    case {Exit, max(Failed, length(Cases))} of
        {ok, Count} -> Counts#{failed => Count, cases => Cases};
        {time_is_up, Count} -> Counts#{failed => Count + 1, cases => Cases ++ [<<"out of time">>]};
        {{exit, _}, 0} -> Counts#{failed => 1, cases => last_lines(Output)};
        {{exit, _}, Count} -> Counts#{failed => Count, cases => Cases}
    end.

number(Pattern, Output) ->
    lists:sum([binary_to_integer(Digits) || Digits <- matches(Pattern, Output)]).

matches(Pattern, Output) ->
    case re:run(Output, Pattern, [global, multiline, {capture, [1], binary}]) of
        {match, Found} -> [Text || [Text] <- Found];
        nomatch -> []
    end.

last_lines(Output) ->
    Lines = [Line || Line <- binary:split(Output, <<"\n">>, [global]), Line =/= <<>>],
    lists:nthtail(max(0, length(Lines) - 15), Lines).

%%% Report

summary(Results, #{started := Started}) ->
    [io:format("~n~ts~n~ts  log: ~ts~n", [Suite, [["  ", Case, "\n"] || Case <- Cases], Log])
     || #{suite := Suite, failed := Failed, cases := Cases, log := Log} <- Results, Failed > 0],
    [io:format("~n~ts was unsteady: failed at first, then ~ts~n~ts  log: ~ts~n",
               [Suite, verdict(Result), [["  ", Case, "\n"] || Case <- Cases], Log])
     || #{suite := Suite, failed := 0, unsteady := #{cases := Cases, log := Log}} = Result
            <- Results],
    io:format("~n~w suites in ~w s~n", [length(Results), (now_ms() - Started) div 1000]),
    Sum = maps:from_list([{Key, sum(Key, Results)} || Key <- [passed, failed, skipped]]),
    io:format("~s~n", [counts(Sum)]).

left(#{left := Left}) when Left > 0 ->
    io_lib:format(", ended ~w processes it left", [Left]);
left(_) ->
    "".

verdict(#{passed := Passed, failed := 0, skipped := 0}) ->
    io_lib:format("ok: ~w", [Passed]);
verdict(#{passed := Passed, failed := 0, skipped := Skipped}) ->
    io_lib:format("ok: ~w (~w skipped)", [Passed, Skipped]);
verdict(#{passed := Passed, failed := Failed, skipped := Skipped}) ->
    io_lib:format("FAILED: ~w of ~w", [Failed, Passed + Failed + Skipped]).

counts(#{passed := Passed, failed := Failed, skipped := 0}) ->
    io_lib:format("~w passed, ~w failed", [Passed, Failed]);
counts(#{passed := Passed, failed := Failed, skipped := Skipped}) ->
    io_lib:format("~w passed, ~w failed, ~w skipped", [Passed, Failed, Skipped]).

sum(Key, Results) ->
    lists:sum([maps:get(Key, Result) || Result <- Results]).

now_ms() ->
    erlang:monotonic_time(millisecond).
