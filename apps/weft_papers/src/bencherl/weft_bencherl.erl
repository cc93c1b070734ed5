%% SPDX-License-Identifier: Apache-2.0
%% @doc BenchErl (Aronis et al. 2012): how do programs scale with schedulers, with nodes, from one
%% release of OTP to the next, with other flags of the emulator?
%%
%% `bin/bench bencherl [run.conf] [--bench a,b] [--out DIR]' runs each benchmark on a fresh emulator
%% for each point: each OTP, each set of arguments, each number of schedulers (`+S n:n') or of slave
%% nodes. Files in DIR/BENCH are those of BenchErl: measurements/*.time and *.speedup, output/*;
%% DIR/results.csv has every single time, as soon as it is measured, DIR/report.html the plots. A
%% benchmark that crashes or hangs is told, with its emulator if need be, and is in results.csv
%% without a time; the others go on.
-module(weft_bencherl).

-export([command/0, main/1, run/2]).
-export_type([row/0, row/1]).

%% One time: schedulers or nodes is what was swept.
-type row() :: row(float()).
-type row(Ms) :: #{bench := string(), otp := string(), erl_args := string(),
                   axis := sched | node, at := non_neg_integer(), what := string(), ms := Ms}.
%% A benchmark with the configuration it has, and where it is in what is swept.
-type point() :: #{bench := weft_bencherl_bench:bench(), config := weft_bencherl_config:config(),
                   otp := {string(), string()}, erl_args := {string(), string()},
                   schedulers := pos_integer(), slaves := non_neg_integer(), axis := sched | node}.

-define(LOAD_MS, 30000).
%% Beyond what a benchmark may take: an emulator that is alive has answered by then.
-define(ANSWER_MS, 5000).

%% @doc 0: all measured and sane, 1: something failed or is insane, 2: not measured.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    weft_argparse:run(Arguments, command(), "bin/bench bencherl").

%% @doc Its arguments.
-spec command() -> weft_argparse:command().
command() ->
    #{help => "benchmarks of BenchErl: schedulers, nodes, releases",
      arguments =>
          [#{name => config, required => false, value => "run.conf",
             help => "what to do: docs/guide/bencherl.md"},
           #{name => include, long => "-bench", type => {list, string}, value => "A,B",
             help => "only these benchmarks"}
           | weft_bench_arguments:common("where the results go")],
      handler => fun given/1}.

given(Given) ->
    Options = maps:from_list([{include, Names} || #{include := Names} <- [Given]]
                             ++ [{results, Dir} || #{out := Dir} <- [Given]]),
    case config(maps:get(config, Given, none), Options) of
        {ok, Config} -> told(recorded(Config));
        {error, Text} -> told({error, Text})
    end.

%% Results of another run stay as they are.
recorded(Config) ->
    case weft_load_files:is_free(dir(Config)) of
        ok -> run(Config, fun(Line) -> io:format("~ts~n", [Line]) end);
        {error, Text} -> {error, Text}
    end.

config(none, Given) ->
    {ok, maps:merge(weft_bencherl_config:defaults(), Given)};
config(File, Given) ->
    case weft_bencherl_config:read(File) of
        {ok, Config} -> {ok, maps:merge(Config, Given)};
        {error, Text} -> {error, Text}
    end.

told({error, Text}) ->
    io:format(standard_error, "~ts~n", [Text]),
    2;
told({ok, #{dir := Dir, failed := Failed, insane := Insane}}) ->
    [io:format("failed: ~ts~n", [Text]) || Text <- Failed],
    [io:format("not sane: ~ts (its outputs differ, see ~ts)~n",
               [Bench, filename:join([Dir, Bench, "output"])]) || Bench <- Insane],
    io:format("~nreport: ~ts~n", [weft_bencherl_report:file(Dir)]),
    case {Failed, Insane} of
        {[], []} -> 0;
        _ -> 1
    end.

%% @doc Runs a configuration; Progress gets a line for each point. The error is a text.
-spec run(weft_bencherl_config:config(), Progress :: fun((unicode:chardata()) -> term())) ->
          {ok, #{dir := file:filename(), rows := [row()], failed := [string()],
                 insane := [string()]}} | {error, string()}.
run(Config, Progress) ->
    case configured(Config) of
        {ok, Benches} ->
            _ = [Progress(Line) || Line <- weft_bencherl_bench:unknown(Config)
                                       ++ weft_bencherl_config:ignored(Config, Benches)],
            Dir = filename:absname(dir(Config)),
            ok = weft_report_file:directory(filename:join(Dir, "logs")),
            Wanted = weft_bencherl_config:environment(Config, Benches),
            ok = weft_report_record:write_environment(Dir, weft_bench_environment:gather(Wanted)),
            Points = points(Benches),
            weft_bench_place:with(weft_bench_link:loopback(), Dir,
                                  fun(Place) -> measured(Points, Dir, Place, Progress) end);
        {error, Text} ->
            {error, Text}
    end.

dir(#{results := Dir}) when Dir =/= none -> Dir;
dir(_) ->
    {{Year, Month, Day}, {Hour, Minute, Second}} = calendar:local_time(),
    filename:join([os:getenv("REBAR_BASE_DIR", "_build"), "bench",
                   io_lib:format("bencherl-~4..0b~2..0b~2..0bT~2..0b~2..0b~2..0b",
                                 [Year, Month, Day, Hour, Minute, Second])]).

%% The benchmarks, each with the configuration it has.
configured(Config) ->
    case weft_bencherl_bench:find(Config) of
        {ok, Benches} ->
            With = [{Bench, weft_bencherl_config:of_bench(Bench, Config)} || Bench <- Benches],
            case [Text || {_, {error, Text}} <- With] of
                [] -> {ok, [{Bench, Own} || {Bench, {ok, Own}} <- With]};
                [Text | _] -> {error, Text}
            end;
        {error, Text} -> {error, Text}
    end.

%% A sweep over schedulers, with as many slave nodes as there are to be at most; and one over slave
%% nodes, if there are to be any.
-spec points([{weft_bencherl_bench:bench(), weft_bencherl_config:config()}]) -> [point()].
points(Benches) ->
    [#{bench => Bench, config => Config, otp => Otp, erl_args => Arg, schedulers => S,
       slaves => N, axis => Axis}
     || {Bench, #{schedulers := Schedulers, slaves := Slaves} = Config} <- Benches,
        Otp <- maps:get(otps, Config), Arg <- maps:get(erl_args, Config),
        {Axis, S, N} <- [{sched, S, lists:last(Slaves)} || S <- Schedulers]
            ++ [{node, lists:max(Schedulers), N} || N <- Slaves, Slaves =/= [0]]].

measured(Points, Dir, Place, Progress) ->
    Count = length(Points),
    Tables = weft_bencherl_files:open(Dir),
    Results = [begin
                   Progress(io_lib:format("~b of ~b  ~ts", [Number, Count, title(Point)])),
                   {Point, kept(Point, measure(Point, Dir, Place, Tables), Tables)}
               end || {Number, Point} <- lists:enumerate(Points)],
    ok = weft_bencherl_files:close(Tables),
    Rows = lists:append([Of || {_, {Of, _}} <- Results]),
    ok = weft_bencherl_files:write(Dir, Rows, formats(Points)),
    ok = weft_bencherl_report:write(Dir, Rows),
    {ok, #{dir => Dir, rows => Rows, insane => insane(Results, Dir),
           failed => [lists:flatten([title(Point), ": ", Text])
                      || {Point, {_, {error, Text, _}}} <- Results]}}.

%% What has no time because of a failure is in the table, too.
kept(Point, {_, {error, _, Left}} = Result, Tables) ->
    _ = weft_bencherl_files:append(Tables, rows(Point, [{What, none} || What <- Left])),
    Result;
kept(_Point, Result, _Tables) ->
    Result.

formats(Points) ->
    maps:from_list([{Name, maps:get(output_format, Config)}
                    || #{bench := #{name := Name}, config := Config} <- Points]).

%% What failed has printed as much as it came to.
insane(Results, Dir) ->
    weft_bencherl_files:insane(
      [{Name, output(Point, Iteration, Dir)}
       || {#{bench := #{name := Name}, config := Config} = Point, {_, ok}} <- Results,
          maps:get(sanity, Config), Iteration <- lists:seq(1, maps:get(iterations, Config))]).

title(#{bench := #{name := Name}, otp := {Otp, _}, erl_args := {Args, _}, schedulers := S,
        slaves := N}) ->
    io_lib:format("~ts, OTP ~ts~ts, ~b schedulers, ~b slaves",
                  [Name, Otp, [[" ", Args] || Args =/= ""], S, N]).

rows(#{bench := #{name := Name}, otp := {Otp, _}, erl_args := {Args, _}, axis := Axis} = Point,
     Timings) ->
    [#{bench => Name, otp => Otp, erl_args => Args, axis => Axis, at => at(Point), what => What,
       ms => Ms} || {What, Ms} <- Timings].

at(#{axis := sched, schedulers := S}) -> S;
at(#{axis := node, slaves := N}) -> N.

%% Each point has an emulator of its own, so no benchmark finds what another one has left.
measure(#{slaves := Count} = Point, Dir, Place, Tables) ->
    Started = [weft_bencherl_node:start(Number, emulator(Point), Dir, Place)
               || Number <- lists:seq(0, Count)],
    try
        case [Text || {error, Text} <- Started] of
            [] -> on([Emulator || {ok, Emulator} <- Started], Point, Dir, Tables);
            [Text | _] -> not_begun(Text, Point)
        end
    after
        [weft_bencherl_node:stop(Emulator) || {ok, Emulator} <- Started]
    end.

%% How many iterations there would have been is known, and not of what.
not_begun(Text, #{config := #{iterations := Iterations}}) ->
    {[], {error, Text, lists:duplicate(Iterations, "")}}.

emulator(#{otp := {_, Emulator}, config := Config} = Point) ->
    #{cookie := Cookie, code_path := Path, environment := Environment,
      directory := Directory} = Config,
    #{emulator => Emulator, cookie => Cookie, code_path => Path, environment => Environment,
      directory => Directory, arguments => flags(Point)}.

flags(#{erl_args := {_, Args}, schedulers := S, config := #{extra_args := Extra}}) ->
    string:lexemes(Args, " ") ++ Extra ++ ["+S", lists:flatten(io_lib:format("~b:~b", [S, S]))].

%% An emulator that does not answer is told of where it is measured.
told_of(Master, Sets, Point, Tables) ->
    case weft_bencherl_node:call(Master, weft_bencherl_executor, emulator, [], ?ANSWER_MS) of
        {ok, Emulator} -> weft_bencherl_files:point(Tables, described(Point, Sets, Emulator));
        {error, _} -> ok
    end.

described(#{bench := #{name := Name}, otp := {Otp, _}, axis := Axis, schedulers := S, slaves := N,
            config := #{version := Version, iterations := Iterations}} = Point, Sets, Emulator) ->
    Emulator#{bench => Name, otp => Otp, axis => Axis, schedulers => S, slaves => N,
              version => Version, iterations => Iterations,
              arguments => lists:join(" ", [weft_bencherl_executor:what(Args) || Args <- Sets]),
              emulator_flags => lists:join(" ", flags(Point))}.

on([Master | Slaves] = All, #{bench := #{module := Module} = Bench, config := Config} = Point,
   Dir, Tables) ->
    #{timeout_ms := TimeoutMs, iterations := Iterations} = Config,
    Options = for_executor(Point, [weft_bencherl_node:name(Slave) || Slave <- Slaves], Dir),
    Outputs = [output(Point, Iteration, Dir) || Iteration <- lists:seq(1, Iterations)],
    ok = weft_bencherl_files:emptied(Outputs),
    Call = fun(Function, Arguments) ->
                   weft_bencherl_node:call(Master, weft_bencherl_executor, Function,
                                           [Module | Arguments], TimeoutMs + ?ANSWER_MS)
           end,
    case [Text || One <- All,
                  {error, Text} <- [weft_bencherl_node:call(One, weft_bencherl_bench, load,
                                                            [Bench], ?LOAD_MS)]] of
        [] ->
            case Call(sets, [Options]) of
                {ok, Sets} ->
                    ok = told_of(Master, Sets, Point, Tables),
                    Runs = [[Args, Options#{output := Output}] || Args <- Sets, Output <- Outputs],
                    each(Runs, Call, fun(Timings) ->
                                             weft_bencherl_files:append(Tables,
                                                                        rows(Point, Timings))
                                     end, []);
                {error, Text} -> not_begun(Text, Point)
            end;
        [Text | _] -> not_begun(Text, Point)
    end.

%% The rows of all runs until one fails, and how that ended: with that run and those left then.
each([], _Call, _Kept, Rows) -> {lists:append(lists:reverse(Rows)), ok};
each([Run | Left] = Runs, Call, Kept, Rows) ->
    case Call(run, Run) of
        {ok, Timings} -> each(Left, Call, Kept, [Kept(Timings) | Rows]);
        {error, Text} ->
            {lists:append(lists:reverse(Rows)),
             {error, Text, [weft_bencherl_executor:what(Args) || [Args, _Options] <- Runs]}}
    end.

for_executor(#{bench := Bench, schedulers := S, config := Config}, Slaves, Dir) ->
    #{version := Version, timeout_ms := TimeoutMs} = Config,
    #{version => Version, timeout_ms => TimeoutMs, slaves => Slaves, schedulers => S,
      output => "", datadir => weft_bencherl_bench:data(Bench, Dir)}.

output(#{bench := #{name := Name}, otp := {Otp, _}, erl_args := {Args, _}, axis := Axis} = Point,
       Iteration, Dir) ->
    weft_bencherl_files:output(Dir, Name, {Otp, Args, Axis, at(Point)}, Iteration).
