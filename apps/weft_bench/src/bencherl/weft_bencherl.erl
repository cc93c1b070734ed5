%% SPDX-License-Identifier: Apache-2.0
%% @doc BenchErl (Aronis et al. 2012): how do programs scale with schedulers, with nodes, from one
%% release of OTP to the next, with other flags of the emulator?
%%
%% `bin/bench bencherl [run.conf] [--bench a,b] [--out DIR]' runs each benchmark on a fresh emulator
%% for each point: each OTP, each set of arguments, each number of schedulers (`+S n:n') or of slave
%% nodes. Files in DIR/BENCH are those of BenchErl: measurements/*.time and *.speedup, output/*;
%% DIR/results.csv has every single time, DIR/report.html the plots. A benchmark that crashes or
%% hangs is told and left out; the others go on.
-module(weft_bencherl).

-export([main/1, run/2]).
-export_type([row/0]).

%% One time: schedulers or nodes is what was swept.
-type row() :: #{bench := string(), otp := string(), erl_args := string(),
                 axis := sched | node, at := non_neg_integer(), what := string(), ms := float()}.
-type point() :: #{bench := string(), module := module(), otp := {string(), string()},
                   erl_args := string(), schedulers := pos_integer(), slaves := non_neg_integer(),
                   axis := sched | node}.

-define(BOOT_MS, 30000).

%% @doc 0: all measured and sane, 1: something failed or is insane, 2: not measured.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    case options(Arguments -- ["--terminal"], none, #{}) of
        {ok, File, Given} ->
            case config(File, Given) of
                {ok, Config} -> told(run(Config, fun(Line) -> io:format("~ts~n", [Line]) end));
                {error, Text} -> told({error, Text})
            end;
        {error, Text} ->
            told({error, Text})
    end.

options([], File, Options) -> {ok, File, Options};
options(["--bench", Names | Rest], File, Options) ->
    options(Rest, File, Options#{include => string:lexemes(Names, ", ")});
options(["--out", Dir | Rest], File, Options) -> options(Rest, File, Options#{results => Dir});
options(["--" ++ _ = Other | _], _File, _Options) ->
    {error, "unknown or incomplete argument " ++ Other};
options([File | Rest], none, Options) -> options(Rest, File, Options);
options([Other | _], _File, _Options) -> {error, "one run.conf only, not also " ++ Other}.

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
    case weft_bencherl_bench:find(Config) of
        {ok, Benches} ->
            Dir = filename:absname(dir(Config)),
            ok = weft_bench_file:directory(filename:join(Dir, "logs")),
            ok = weft_bench_environment:write(filename:join(Dir, "environment.csv"),
                                              weft_bench_environment:gather([])),
            {ok, Place} = weft_bench_place:start(weft_bench_link:loopback(), Dir),
            try measured(points(Benches, Config), Config, Dir, Place, Progress)
            after weft_bench_place:stop(Place)
            end;
        {error, Text} ->
            {error, Text}
    end.

dir(#{results := Dir}) when Dir =/= none -> Dir;
dir(_) ->
    {{Year, Month, Day}, {Hour, Minute, Second}} = calendar:local_time(),
    filename:join([os:getenv("REBAR_BASE_DIR", "_build"), "bench",
                   io_lib:format("bencherl-~4..0b~2..0b~2..0bT~2..0b~2..0b~2..0b",
                                 [Year, Month, Day, Hour, Minute, Second])]).

%% A sweep over schedulers on one node; and one over slave nodes, if there are to be any.
-spec points([{string(), module()}], weft_bencherl_config:config()) -> [point()].
points(Benches, #{schedulers := Schedulers, slaves := Slaves, otps := Otps, erl_args := Args}) ->
    [#{bench => Bench, module => Module, otp => Otp, erl_args => Arg, schedulers => S,
       slaves => N, axis => Axis}
     || {Bench, Module} <- Benches, Otp <- Otps, Arg <- Args,
        {Axis, S, N} <- [{sched, S, 0} || S <- Schedulers]
            ++ [{node, lists:max(Schedulers), N} || N <- Slaves, Slaves =/= [0]]].

measured(Points, #{sanity := Sane} = Config, Dir, Place, Progress) ->
    Count = length(Points),
    Results = [begin
                   Progress(io_lib:format("~b of ~b  ~ts", [Number, Count, title(Point)])),
                   {Point, measure(Point, Config, Dir, Place)}
               end || {Number, Point} <- lists:enumerate(Points)],
    Rows = lists:append([rows(Point, Timings) || {Point, {ok, Timings}} <- Results]),
    Insane = case Sane of
                 true -> weft_bencherl_files:insane(Dir);
                 false -> []
             end,
    ok = weft_bencherl_files:write(Dir, Rows, Config),
    ok = weft_bencherl_report:write(Dir, Rows),
    {ok, #{dir => Dir, rows => Rows, insane => Insane,
           failed => [lists:flatten([title(Point), ": ", Text])
                      || {Point, {error, Text}} <- Results]}}.

title(#{bench := Bench, otp := {Otp, _}, erl_args := Args, schedulers := S, slaves := N}) ->
    io_lib:format("~ts, OTP ~ts~ts, ~b schedulers, ~b slaves",
                  [Bench, Otp, [[" ", Args] || Args =/= ""], S, N]).

rows(#{bench := Bench, otp := {Otp, _}, erl_args := Args, axis := Axis, schedulers := S,
       slaves := N}, Timings) ->
    At = case Axis of sched -> S; node -> N end,
    [#{bench => Bench, otp => Otp, erl_args => Args, axis => Axis, at => At, what => What,
       ms => Ms} || {What, Ms} <- Timings].

%% Each point has an emulator of its own, so no benchmark finds what another one has left.
measure(#{slaves := Count} = Point, Config, Dir, Place) ->
    Started = [boot(Number, Point, Dir, Place) || Number <- lists:seq(0, Count)],
    try
        case [Reason || {error, Reason} <- Started] of
            [] -> on([Peer || {ok, Peer, _} <- Started], [Node || {ok, _, Node} <- tl(Started)],
                     Point, Config, Dir);
            [Reason | _] -> text("an emulator does not start: ~0tP", [Reason, 20])
        end
    after
        [exit(Peer, kill) || {ok, Peer, _} <- Started]
    end.

text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

boot(Number, #{otp := {_, Emulator}, erl_args := Args, schedulers := S}, Dir, Place) ->
    Log = filename:join([Dir, "logs", "node.log"]),
    Logger = [{handler, default, logger_std_h, #{config => #{file => Log}}}],
    Name = lists:concat(["b", Number, "-", erlang:unique_integer([positive])]),
    try
        peer:start(#{name => Name, host => weft_bench_place:address(Place, near), longnames => true,
                     connection => standard_io, wait_boot => ?BOOT_MS,
                     exec => weft_bench_place:command(Place, near, [emulator(Emulator)]),
                     env => [{"ERL_EPMD_PORT",
                              integer_to_list(weft_bench_place:epmd_port(Place))},
                             {"ERL_CRASH_DUMP_BYTES", "0"}],
                     args => ["+S", io_lib:format("~b:~b", [S, S])]
                         ++ string:lexemes(Args, " ")
                         ++ ["-setcookie", "weft_bench", "-pa",
                             filename:absname(filename:dirname(code:which(?MODULE))),
                             "-kernel", "logger", lists:flatten(io_lib:format("~0p", [Logger]))]})
    catch
        _:Reason -> {error, Reason}
    end.

emulator("erl") -> filename:join([code:root_dir(), "bin", "erl"]);
emulator(Path) -> Path.

on([Master | _] = Peers, Slaves, #{module := Module} = Point, Config, Dir) ->
    #{bench_dir := BenchDir, iterations := Iterations} = Config,
    Loaded = [peer:call(Peer, weft_bencherl_bench, load, [Module, BenchDir], ?BOOT_MS)
              || Peer <- Peers],
    case [Text || {error, Text} <- Loaded] of
        [] ->
            try peer:call(Master, weft_bencherl_executor, run,
                          [Module, Iterations, options(Point, Slaves, Config, Dir)], infinity)
            catch Class:Reason -> text("the emulator ended: ~0tP ~0tP", [Class, 10, Reason, 20])
            end;
        [Text | _] -> {error, Text}
    end.

options(#{bench := Bench, schedulers := S} = Point, Slaves, Config, Dir) ->
    #{version := Version, timeout_ms := TimeoutMs} = Config,
    #{version => Version, timeout_ms => TimeoutMs, slaves => Slaves, schedulers => S,
      output => weft_bencherl_files:output(Dir, Point),
      datadir => filename:join([Dir, Bench, "data"])}.
