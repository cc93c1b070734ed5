#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput +sbtu +sbwt none
%% Runs every test of the project and counts them:
%%
%%   test/run.escript [WORD ...]         all suites, or those whose name contains one of the words
%%   test/run.escript --long [WORD ...]  the same of those that have a long form (FULL=1), in it
%%
%% Suites are found, not listed: the house checks (test/house), EUnit of each application, and each
%% *_SUITE.erl below apps/*/test, examples/*/test and test/. All is compiled once; then each runs in
%% an emulator of its own (test/runner), so that no suite sees what another one left, and a suite
%% that hangs is ended and counts as failed. Most of them wait for something most of the time, so
%% some run side by side, and more while the processors are idle (JOBS=N says how many; 1 for one
%% after the other).
%% Suites run on real nodes, sockets and clocks of a machine that may be busy: if few cases of one
%% fail, these are run a second time, alone, which counts. The suite is then told to be unsteady,
%% with both logs. A case that was so in the last three runs too has failed: what came before is in
%% <build>/test/history (or WEFT_TEST_HISTORY=FILE, to keep it elsewhere). One whose unsteadiness is
%% known has failed at once. Which suites begin first, run alone or have only a long form, and which
%% cases are known to be unsteady, is in test/suites.config.
%% Prints a line per suite, with its processor time (on Linux, and with all that it started; this
%% is what the whole run takes), the failed cases, why others were skipped, that a run of all suites
%% took longer than it may (on two cores or more), and last, alone on its line:
%%
%%   N passed, N failed[, N skipped]
%%
%% The exit code is 0 if nothing failed. Output of the suites: <build>/test/logs/*.log.
-mode(compile).

%% Suites wait more than they compute: so many run side by side, and more while processors are idle.
-define(JOBS, 4).
-define(JOBS_MAX, 10).
%% So often it is looked whether they are.
-define(LOOK_MS, 2_000).
%% So long all suites may take on two cores. More than this is told.
-define(USUAL_MINUTES_MAX, 15).
-define(USUAL_CORES_MIN, 2).
%% A slower machine gets more, but not without end.
-define(ALL_MINUTES_MAX, 60).
%% Of these one suite may have as many, unless more than usual is asked for.
-define(SUITE_MINUTES_MAX, 15).
-define(MORE, ["FULL", "WEFT_CONFORMANCE_ALL"]).
-define(MORE_MINUTES_MAX, 12 * 60).
%% So often somebody who waits is told what runs.
-define(WORD_EVERY_MS, 60_000).
%% More failed cases than this are no accident.
-define(UNSTEADY_MAX, 3).
%% What the nodes of a suite get to end in an orderly way, once it ended or its time is up.
-define(GRACE_MS, 15_000).
%% A variable of the environment of what a suite starts, by which all of it is found.
-define(MARK, "WEFT_TEST_SUITE").
%% Emulators that wait do nothing: to spin until something comes takes a tenth of all processor time
%% when many of them share few cores.
-define(FLAGS, "+sbwt none +sbwtdcpu none +sbwtdio none").

main(["--long" | Words]) ->
    true = os:putenv("FULL", "1"),
    main(Words, fun has_long_form/2);
main(Words) ->
    main(Words, fun(_Suite, _Config) -> true end).

main(Words, IsMeant) ->
    Base = os:getenv("REBAR_BASE_DIR", "_build"),
    Logs = filename:absname(filename:join(Base, "test/logs")),
    {ok, Config} = file:consult("test/suites.config"),
    ok = compiled_here(["test/runner/suite_" ++ Name ++ ".erl"
                        || Name <- ["history", "processor", "room"]],
                       filename:join(Base, "runner")),
    ok = suite_processor:start(?MARK),
    Context = #{base => Base, logs => Logs, started => now_ms(), config => Config,
                is_whole => Words =:= []},
    ok = filelib:ensure_dir(filename:join(Logs, "x")),
    Ran = run_all([Suite || Suite <- suites(Config), IsMeant(Suite, Config),
                            is_wanted(Suite, Words), is_in_this_run(Suite, Config)], Context),
    [] =/= Ran orelse io:format("no suite of this run is named like ~s~n",
                                [lists:join(" or ", Words)]),
    History = os:getenv("WEFT_TEST_HISTORY", filename:join(Base, "test/history")),
    Results = without_habits(Ran, History, Config),
    Words =:= [] andalso left_out(Config),
    summary(Results, Context),
    halt(case Results =/= [] andalso sum(failed, Results) =:= 0 of true -> 0; false -> 1 end).

%% Without the code nothing else can run, so a failed compilation ends the list.
run_all([], _) ->
    [];
run_all(Suites, Context) ->
    case side_by_side([{compile, "all"}], Context) of
        [#{failed := 0}] = Compiled ->
            {Alone, Together} = lists:partition(fun(S) -> runs_alone(S, Context) end, Suites),
            Results = side_by_side(Together, Context)
                ++ lists:append([side_by_side([Suite], Context) || Suite <- Alone]),
            Compiled ++ [again(Result, Context) || Result <- Results];
        Broken ->
            Broken
    end.

runs_alone(Suite, #{config := Config}) ->
    lists:member(title(Suite), [Title || {alone, Title, _Why} <- Config]).

side_by_side(Suites, Context) ->
    going(#{later => Suites, running => #{}, results => [], room => room(), told => now_ms()},
          Context).

room() ->
    case os:getenv("JOBS") of
        false -> suite_room:new(?JOBS, ?JOBS_MAX);
        Text -> suite_room:new(max(1, list_to_integer(Text)), max(1, list_to_integer(Text)))
    end.

going(#{later := [], running := Running, results := Results}, _Context) when Running =:= #{} ->
    lists:reverse(Results);
going(#{later := [Suite | Later], running := Running, room := Room} = State, Context) ->
    case suite_room:has_room(map_size(Running), suite_room:sample(), Room) of
        {true, Next} ->
            Main = self(),
            Worker = spawn_link(fun() -> Main ! {self(), run(Suite, "", Context)} end),
            Entry = #{suite => Suite, since => now_ms()},
            going(State#{later := Later, running := Running#{Worker => Entry}, room := Next},
                  Context);
        {false, Next} ->
            going(one_ended(State#{room := Next}), Context)
    end;
going(State, Context) ->
    going(one_ended(State), Context).

%% Or it is time to look again.
one_ended(#{running := Running, results := Results} = State) ->
    receive
        {Worker, Result} when is_map_key(Worker, Running) ->
            State#{running := maps:remove(Worker, Running), results := [Result | Results],
                   told := now_ms()}
    after ?LOOK_MS ->
        told(State)
    end.

told(#{told := BeforeMs, running := Running} = State) ->
    case now_ms() - BeforeMs >= ?WORD_EVERY_MS of
        true ->
            Words = [[title(Suite), " for ", integer_to_list((now_ms() - Since) div 1000), " s"]
                     || #{suite := Suite, since := Since} <- maps:values(Running)],
            io:format("  running: ~s~n", [lists:join(", ", Words)]),
            State#{told := now_ms()};
        false ->
            State
    end.

%%% Which suites

%% The longest begin first: at the end little would run beside them.
suites(Config) ->
    Found = [{house, "checks"}]
        ++ [{eunit, Dir} || Dir <- filelib:wildcard("{apps,examples}/*"), eunit_modules(Dir) =/= []]
        ++ [{eunit, Dir} || Dir <- eunit_dirs()]
        ++ [{ct, filename:rootname(File)} || File <- ct_suites()],
    Titles = [{title(Suite), Suite} || Suite <- Found],
    [error({no_such_suite, element(2, Entry), "test/suites.config"})
     || Entry <- Config, not lists:keymember(element(2, Entry), 1, Titles)],
    First = [proplists:get_value(Title, Titles) || {first, Title} <- Config],
    First ++ (Found -- First).

%% It is the only one, or their sources ask the environment.
has_long_form({house, _}, _) ->
    false;
has_long_form({eunit, Dir}, _) ->
    lists:any(fun asks_for_more/1, filelib:wildcard(Dir ++ "/**/*_tests.erl"));
has_long_form({ct, Path} = Suite, Config) ->
    is_only_long(Suite, Config) orelse asks_for_more(Path ++ ".erl").

%% Not even an emulator is started for what would skip all of its cases.
is_in_this_run(Suite, Config) ->
    os:getenv("FULL") =/= false orelse not is_only_long(Suite, Config).

left_out(Config) ->
    Left = [{Title, Why} || {long, Title, Why} <- Config, os:getenv("FULL") =:= false],
    Left =:= [] orelse io:format("~nwith FULL=1 only (make test-long):~n"),
    [io:format("  ~ts: ~ts~n", [Title, Why]) || {Title, Why} <- Left].

is_only_long(Suite, Config) ->
    lists:any(fun({long, Title, _Why}) -> Title =:= title(Suite); (_) -> false end, Config).

asks_for_more(File) ->
    {ok, Text} = file:read_file(File),
    binary:match(Text, <<"getenv(\"FULL\")">>) =/= nomatch.

%% All that have tests, but for those that EUnit itself adds: x_tests to x.
eunit_modules(Dir) ->
    Modules = modules_with_eunit(Dir),
    Modules -- [Module ++ "_tests" || Module <- Modules].

modules_with_eunit(Dir) ->
    [filename:basename(File, ".erl") || File <- filelib:wildcard(Dir ++ "/**/*.erl"),
                                        has_eunit(File)].

has_eunit(File) ->
    {ok, Text} = file:read_file(File),
    not lists:suffix("_SUITE.erl", File)
        andalso binary:match(Text, <<"eunit/include/eunit.hrl">>) =/= nomatch.

eunit_dirs() ->
    lists:usort([filename:dirname(File) || File <- filelib:wildcard("test/**/*_tests.erl")]).

ct_suites() ->
    filelib:wildcard("test/**/*_SUITE.erl")
        ++ filelib:wildcard("{apps,examples}/*/test/**/*_SUITE.erl").

is_wanted(_, []) -> true;
is_wanted(Suite, Words) -> lists:any(fun(W) -> string:find(title(Suite), W) =/= nomatch end, Words).

title({Kind, Name}) ->
    lists:concat([Kind, " ", Name]).

%%% Running one suite

again(#{parts := Parts} = First, Context) ->
    case is_worth_again(First, Context) of
        true ->
            #{id := Suite} = First,
            Second = run(Suite, " (again)", Context#{only => Parts}),
            (together(First, Second))#{unsteady => First};
        false ->
            First
    end.

%% Of a suite that was prepared only the failed cases ran again, those that passed before count too.
together(#{parts := all}, Second) ->
    Second;
together(#{failed := Ran}, #{passed := Passed, failed := Failed} = Second)
  when Passed + Failed < Ran ->
    Second#{failed => Ran - Passed, cases => [<<"cases that failed did not run again">>]};
together(#{passed := Before, failed := Ran, skipped := Skipped, why_skipped := Why},
         #{failed := Failed} = Second) ->
    Second#{passed => Before + Ran - Failed, skipped => Skipped, why_skipped => Why}.

%% What is unsteady in each run is no accident, nor is what was so before its cause was known.
without_habits(Results, File, Config) ->
    Before = suite_history:read(File),
    Known = [{Suite, Case} || {unsteady, Suite, Case, _Cause} <- Config],
    Unsteady = [{Suite, text(Case)} || #{suite := Suite, failed := 0, unsteady := #{cases := Cases}}
                                           <- Results, Case <- Cases],
    ok = suite_history:add(File, {run, [Suite || #{suite := Suite} <- Results], Unsteady}, Before),
    [judged([[Case, why_failed(Verdict), cause(S, Case, Config)]
             || {S, Case} <- Unsteady, S =:= Suite,
                Verdict <- [suite_history:judge(S, Case, Known, Before)], Verdict =/= accident],
            Result)
     || #{suite := Suite} = Result <- Results].

why_failed(habit) -> " (unsteady in the last three runs too)";
why_failed(known) -> " (unsteady once more)".

cause(Suite, Case, Config) ->
    [[": ", Cause] || Cause <- suite_history:causes(Suite, Case, Config)].

judged([], Result) ->
    Result;
judged(Failed, #{passed := Passed, unsteady := #{log := Log}} = Result) ->
    Result#{passed => Passed - length(Failed), failed => length(Failed), cases => Failed,
            log => Log}.

text(Case) -> unicode:characters_to_list(Case).

run(Suite, Try, #{logs := Logs} = Context) ->
    Started = now_ms(),
    Title = title(Suite) ++ Try,
    Name = re:replace(Title, "[ /()]+", "-", [global, {return, list}]),
    Log = filename:join(Logs, Name ++ ".log"),
    Result = result(Suite, Log, Context),
    io:format("~-62s ~s, ~.1f s~s~ts~n",
              [Title, verdict(Result), (now_ms() - Started) / 1000, processor(Result),
               left(Result)]),
    [io:format("  ~ts~ts~n", [Case, why(Case, Result)]) || Case <- maps:get(cases, Result)],
    Result#{id => Suite, suite => title(Suite), log => Log}.

is_worth_again(#{parts := Parts, failed := Failed}, Context) ->
    Parts =/= [] andalso Failed =< ?UNSTEADY_MAX andalso time_left_ms(Context) > 60_000.

result({house, _}, Log, #{base := Base}) ->
    house_checks(Base, Log);
result({compile, _All}, Log, Context) ->
    {Exit, Used} = command(["rebar3", "ct", "--compile_only"], Log, Context),
    {Failed, Cases} = case Exit of
                          ok -> {0, []};
                          _ -> {1, last_lines(Log)}
                      end,
    Used#{passed => 0, failed => Failed, skipped => 0, cases => Cases, parts => []};
result(Suite, Log, Context) ->
    Events = filename:rootname(Log) ++ ".events",
    _ = file:delete(Events),
    {Exit, Used} = command(emulator(Suite, Events, Context), Log, Context),
    maps:merge(outcome(Exit, Events, Log), Used).

emulator(Suite, Events, #{base := Base} = Context) ->
    Test = filename:absname(filename:join(Base, "test")),
    Paths = lists:append([filelib:wildcard(filename:join(Test, Wildcard))
                          || Wildcard <- ["lib/*/ebin", "lib/*/test", "extras/test"]]),
    Call = call(Suite, Events, Context),
    ["erl", "-noinput", "-pa"] ++ Paths ++ ["-eval", unicode:characters_to_list(Call)].

call({eunit, Dir}, Events, Context) ->
    io_lib:format("suite_run:eunit(~0tp, ~0tp).",
                  [[list_to_atom(Module) || Module <- eunit_chosen(Dir, Context)], Events]);
call({ct, Path}, Events, Context) ->
    Suite = list_to_atom(filename:basename(Path)),
    io_lib:format("suite_run:ct(~0tp, ~0tp, ~0tp, ~0tp).",
                  [Suite, filename:rootname(Events), maps:get(only, Context, all), Events]).

%% A test may be a function of a module that has none itself; whose it is is not known.
eunit_chosen(Dir, #{only := Parts}) when is_list(Parts) ->
    Chosen = lists:usort([atom_to_list(Module) || {Module, _Function} <- Parts]),
    case Chosen -- modules_with_eunit(Dir) of
        [] -> Chosen;
        _ -> eunit_modules(Dir)
    end;
eunit_chosen(Dir, _All) ->
    eunit_modules(Dir).

time_left_ms(#{started := Started}) ->
    Left = fun(Minutes) -> max(1, Started + Minutes * 60_000 - now_ms()) end,
    case is_more() of
        true -> Left(?MORE_MINUTES_MAX);
        false -> min(?SUITE_MINUTES_MAX * 60_000, Left(?ALL_MINUTES_MAX))
    end.

is_more() ->
    lists:any(fun(Variable) -> os:getenv(Variable) =/= false end, ?MORE).

%% What it says goes to the log past this emulator: who waits for the end of a pipe waits for all
%% that hold it, as nodes do that a suite left running.
command(Command, Log, #{base := Base} = Context) ->
    Mark = lists:concat([os:getpid(), "-", erlang:unique_integer([positive])]),
    Port = open_port({spawn_executable, os:find_executable("sh")},
                     [{args, ["-c", "exec \"$@\" > \"$0\" 2>&1", Log | Command]},
                      {env, [{"TERM", "dumb"}, {"REBAR_BASE_DIR", Base}, {?MARK, Mark},
                             {"ERL_AFLAGS", ?FLAGS}]},
                      exit_status, hide]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    Exit = wait_for_end(Port, Pid, time_left_ms(Context)),
    Left = left_after(now_ms() + ?GRACE_MS, Mark),
    Names = [named(LeftPid) || LeftPid <- Left],
    [signal("KILL", LeftPid) || LeftPid <- Left],
    {Exit, #{left => Names, processor_s => suite_processor:used_s(Mark)}}.

wait_for_end(Port, Pid, TimeoutMs) ->
    receive
        {Port, {exit_status, 0}} -> ok;
        {Port, {exit_status, Status}} -> {exit, Status}
    after TimeoutMs ->
        signal("KILL", Pid), % asked to end, it would call failed what it did not run
        receive {Port, {exit_status, _}} -> time_is_up end
    end.

%% Nodes end when the emulator that started them has.
left_after(Deadline, Mark) ->
    case marked(Mark) of
        [_ | _] = Left ->
            case now_ms() > Deadline of
                true -> Left;
                false -> receive after 100 -> left_after(Deadline, Mark) end % pacing: next look
            end;
        [] ->
            []
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

%% The program, and the node if it is one.
named(Pid) ->
    case file:read_file(filename:join(["/proc", Pid, "cmdline"])) of
        {ok, <<Program, _/binary>> = Line} when Program =/= 0 ->
            Words = binary:split(Line, <<0>>, [global, trim]),
            Node = case lists:dropwhile(fun(W) -> W =/= <<"-sname">> andalso W =/= <<"-name">> end,
                                        Words) of
                       [_, Name | _] -> [" ", Name];
                       _ -> ""
                   end,
            [filename:basename(hd(Words)), Node];
        _Ended -> "one that has ended"
    end.

signal(Name, Pid) ->
    os:cmd(lists:concat(["kill -", Name, " ", Pid])).

%%% House checks: compiled and run here, they need no test emulator

house_checks(Base, Log) ->
    ok = compiled_here([File || File <- filelib:wildcard("test/house/*.erl"),
                                not lists:suffix("_tests.erl", File)],
                       filename:join(Base, "house")),
    {ok, File} = file:open(Log, [write, {encoding, utf8}]),
    Shell = group_leader(),
    true = group_leader(File, self()),
    {Kept, Broken} = house:run(".", filename:join(Base, "test/lib")),
    true = group_leader(Shell, self()),
    ok = file:close(File),
    {ok, Problems} = file:read_file(Log),
    #{passed => length(Kept), failed => length(Broken), skipped => 0, parts => [],
      cases => string:lexemes(Problems, "\n")}.

compiled_here(Files, Out) ->
    ok = filelib:ensure_dir(filename:join(Out, "x")),
    true = code:add_patha(Out),
    [{ok, _} = compile:file(File, [{outdir, Out}, report]) || File <- Files],
    ok.

%%% What became of a suite

%% A suite that was ended, or ended itself, has told which cases failed, but no sum.
outcome(Exit, Events, Log) ->
    Told = case file:consult(Events) of
               {ok, Terms} -> Terms;
               {error, _} -> []
           end,
    Failures = [{Part, Text} || {failed, Part, Text, _Why} <- Told],
    Texts = [Text || {_, Text} <- Failures],
    Result = sum_of(Exit, Failures, Texts, Told, Log),
    Result#{why => maps:from_list([{Text, Why} || {failed, _, Text, Why} <- Told])}.

sum_of(Exit, Failures, Texts, Told, Log) ->
    case {Exit, lists:keyfind(sum, 1, Told)} of
        {ok, {sum, #{failed := Failed} = Sum}} ->
            Cases = case {Failed, Texts} of
                        {0, _} -> [];
                        {_, []} -> last_lines(Log);
                        _ -> Texts
                    end,
            Sum#{cases => Cases, parts => parts(Failures),
                 why_skipped => lists:usort([Why || {skipped, Why} <- Told])};
        {time_is_up, _} ->
            (ended(Texts ++ ["out of time"]))#{parts => []};
        {_, _} ->
            ended(Texts ++ last_lines(Log))
    end.

ended(Cases) ->
    #{passed => 0, failed => 1, skipped => 0, cases => Cases, parts => all}.

%% The whole suite, if something failed that is no case.
parts(Failures) ->
    Parts = lists:usort([Part || {Part, _} <- Failures]),
    case lists:any(fun is_preparation/1, Parts) of
        true -> all;
        false -> Parts
    end.

is_preparation(unknown) -> true;
is_preparation({_, Name}) when is_atom(Name) ->
    re:run(atom_to_list(Name), "^(init|end)_per_") =/= nomatch;
is_preparation({_, {_InitOrEnd, _Group}}) -> true.

last_lines(Log) ->
    {ok, Output} = file:read_file(Log),
    Lines = [Line || Line <- binary:split(Output, <<"\n">>, [global]), Line =/= <<>>],
    lists:nthtail(max(0, length(Lines) - 15), Lines).

%%% Report

summary(Results, #{started := Started, config := Config} = Context) ->
    [io:format("~n~ts~n~ts  log: ~ts~n",
               [Suite, [["  ", Case, why(Case, Result), "\n"] || Case <- Cases], Log])
     || #{suite := Suite, failed := Failed, cases := Cases, log := Log} = Result <- Results,
        Failed > 0],
    [io:format("~n~ts was unsteady: failed at first, then ~ts~n~ts  log: ~ts~n",
               [Suite, verdict(Result),
                [["  ", Case, why(Case, First), cause(Suite, text(Case), Config), "\n"]
                 || Case <- Cases], Log])
     || #{suite := Suite, failed := 0, unsteady := #{cases := Cases, log := Log} = First} = Result
            <- Results],
    [io:format("~n~ts, skipped ~w: ~ts~n", [Suite, Skipped, lists:join("; ", Why)])
     || #{suite := Suite, skipped := Skipped, why_skipped := Why} <- Results, Skipped > 0],
    io:format("~n~w suites in ~w s, ~w s of a processor~n",
              [length(Results), (now_ms() - Started) div 1000,
               round(lists:sum([Seconds || #{processor_s := Seconds} <- Results]))]),
    is_slow(Context)
        andalso io:format("longer than ~w minutes: that is what all suites may take~n",
                          [?USUAL_MINUTES_MAX]),
    Sum = maps:from_list([{Key, sum(Key, Results)} || Key <- [passed, failed, skipped]]),
    io:format("~s~n", [counts(Sum)]).

%% A run of all suites in their short form, where it should not be.
is_slow(#{is_whole := IsWhole, started := Started}) ->
    IsWhole andalso not is_more()
        andalso erlang:system_info(schedulers_online) >= ?USUAL_CORES_MIN
        andalso now_ms() - Started > ?USUAL_MINUTES_MAX * 60_000.

%% Of cases it is known, of other problems it is the text.
why(Case, #{why := Reasons}) when is_map_key(Case, Reasons) ->
    case maps:get(Case, Reasons) of
        "" -> "";
        Why -> [": ", Why]
    end;
why(_Problem, _Result) ->
    "".

%% With all that it started.
processor(#{processor_s := Seconds}) -> io_lib:format(" (~.1f s of a processor)", [Seconds]);
processor(_) -> "".

left(#{left := [_ | _] = Left}) ->
    io_lib:format(", ended ~w processes it left: ~ts", [length(Left), lists:join(", ", Left)]);
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
