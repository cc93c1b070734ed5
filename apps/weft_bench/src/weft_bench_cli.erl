%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark from the command line.
%%
%% ```
%% --quick            fewer and shorter cells and repetitions: at most three minutes
%% --suites a,c       only these groups of workloads
%% --only "RE,RE"     only cells whose title in the list matches one of the regular expressions
%% --variants a,b     only these variants
%% --repetitions N    instead of 5 (quick: 2)
%% --minutes N        as many of these as are expected to fit, and what has not begun by then is
%%                    left out
%% --out DIR          where to put the results, instead of a new directory in _build/bench
%% --list             the cells and how long they take, and no measurement
%% --terminal         show progress in one line
%% '''
%%
%% Instead of these: `report DIR' makes the report of a run again, `compare OLD NEW' compares two
%% (weft_bench_compare), `load CONFIG' runs operations of a driver (weft_load_config).
-module(weft_bench_cli).

-export([run/1, main/1, expected/1]).

-define(QUICK_LIMIT_MS, 165000).
-define(REPETITIONS, 5).
%% A machine that does other things too takes longer than expected.
-define(RESERVE, 0.9).

%% @doc `main/1', then ends the emulator with its exit status.
-spec run([string()]) -> no_return().
run(Arguments) ->
    halt(main(Arguments)).

%% @doc 0: measured or helped, 1: a measurement failed, or something got worse in a comparison, 2:
%% bad arguments, or the results can not be written.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    try command(Arguments)
    catch
        throw:{results, Text} ->
            io:format(standard_error, "~ts~n", [Text]),
            2;
        throw:{usage, Text} ->
            usage(Text)
    end.

command([Help | _]) when Help =:= "--help"; Help =:= "help" ->
    io:put_chars(help()),
    0;
command(["report" | Arguments]) ->
    weft_bench_report:main(Arguments -- ["--terminal"]);
command(["load" | Arguments]) ->
    weft_load_cli:main(Arguments);
command(["de_bench" | Arguments]) ->
    weft_de_bench:main(Arguments);
command(["bencherl" | Arguments]) ->
    weft_bencherl:main(Arguments);
command(["groups" | Arguments]) ->
    weft_bench_groups:main(Arguments);
command(["names" | Arguments]) ->
    weft_bench_names:main(Arguments);
command(["locks" | Arguments]) ->
    weft_bench_locks:main(Arguments);
command(["paper" | Arguments]) ->
    weft_bench_paper:main(Arguments);
command(["compare" | Arguments]) ->
    weft_bench_compare:main(Arguments -- ["--terminal"]);
command(Arguments) ->
    Options = options(Arguments, #{}),
    case {cells(Options), Options} of
        {[], _} -> usage("no cell is left by --suites, --only and --variants");
        {Cells, #{list := true}} -> list(Cells, Options);
        {Cells, _} -> measure(Cells, Options)
    end.

options([], Options) -> Options;
options(["--quick" | Rest], Options) -> options(Rest, Options#{quick => true});
options(["--list" | Rest], Options) -> options(Rest, Options#{list => true});
options(["--terminal" | Rest], Options) -> options(Rest, Options#{terminal => true});
options(["--suites", Text | Rest], Options) ->
    options(Rest, Options#{suites => words(Text)});
options(["--only", Text | Rest], Options) ->
    options(Rest, Options#{only => [checked_re(string:trim(Part))
                                    || Part <- string:lexemes(Text, ",")]});
options(["--variants", Text | Rest], Options) ->
    options(Rest, Options#{variants => [variant(Word) || Word <- words(Text)]});
options(["--repetitions", Text | Rest], Options) ->
    options(Rest, Options#{repetitions => number("--repetitions", Text)});
options(["--minutes", Text | Rest], Options) ->
    options(Rest, Options#{minutes => number("--minutes", Text)});
options(["--out", Dir | Rest], Options) -> options(Rest, Options#{out => Dir});
options([Other | _], _Options) ->
    throw({usage, io_lib:format("unknown or incomplete argument ~ts", [Other])}).

number(Option, Text) ->
    case string:to_integer(Text) of
        {Number, ""} when Number > 0 -> Number;
        _ -> throw({usage, io_lib:format("~ts needs a number, not ~ts", [Option, Text])})
    end.

words(Text) -> string:lexemes(Text, ", ").

checked_re(Text) ->
    case re:compile(Text) of
        {ok, _} -> Text;
        {error, {Why, At}} -> throw({usage, io_lib:format("--only ~ts: ~ts at character ~b",
                                                          [Text, Why, At + 1])})
    end.

variant(Word) ->
    case [Variant || Variant <- weft_bench_variant:all(), atom_to_list(Variant) =:= Word] of
        [Variant] -> Variant;
        [] -> throw({usage, io_lib:format("no variant ~ts; there are ~0p",
                                          [Word, weft_bench_variant:all()])})
    end.

usage(Text) ->
    io:format(standard_error, "~ts~n~ts", [Text, help()]),
    2.

help() ->
    ["bin/bench [--quick] [--suites a,c] [--only RE,RE] [--variants V,V] [--repetitions N]\n"
     "          [--minutes N] [--out DIR] [--list]\n"
     "                                        measure; --list only tells what and how long\n"
     "bin/bench report DIR                    make the report of a run again\n"
     "bin/bench compare OLD NEW [--threshold 0.9]\n"
     "bin/bench paper [FIGURE,FIGURE [--quick] [--repetitions N] [--minutes N]\n"
     "          [--out DIR]]\n"
     "                                        figures of papers, claimed and measured\n"
     "bin/bench load CONFIG [--out DIR]       operations of a driver, as Basho Bench runs them\n"
     "bin/bench de_bench CONFIG [--nodes N] [--variant V] [--groups SIZE] [--out DIR]\n"
     "                                        operations between nodes, as DE-Bench runs them\n"
     "bin/bench bencherl [run.conf] [--bench a,b] [--out DIR]\n"
     "                                        benchmarks of BenchErl: schedulers, nodes, releases\n"
     "bin/bench groups [--nodes N] [--groups S,S] [--idle_s S] [--out DIR]\n"
     "                                        connections and packets of groups and meshes\n"
     "bin/bench names [--nodes N,N] [--kinds K,K] [--workloads W,W] [--seconds S]\n"
     "                [--callers N,N] [--voters N] [--out DIR]\n"
     "                                        names: global, and scopes of both kinds\n"
     "bin/bench locks [--nodes N] [--rate R] [--seconds S] [--out DIR]\n"
     "                                        a storm of locks: global, and weft_global\n"
     "Variants: ", lists:join(" ", [atom_to_list(V) || V <- weft_bench_variant:all()]),
     "\nSuites, cells and what they mean: docs/guide/benchmark.md\n"].

%% ---- what to measure ----

cells(Options) ->
    [Chosen || Cell <- weft_bench_workload:cells(scope(Options)),
               is_chosen(Cell, Options), Chosen <- with_variants(Cell, Options)].

scope(#{quick := true}) -> quick;
scope(_) -> full.

is_chosen(#{suite := Suite} = Cell, Options) ->
    Suites = maps:get(suites, Options, [atom_to_list(Suite)
                                        || not maps:get(on_demand, Cell, false)]),
    Title = weft_bench_workload:title(Cell),
    lists:member(atom_to_list(Suite), Suites)
        andalso case Options of
                    #{only := Wanted} ->
                        lists:any(fun(W) -> re:run(Title, W) =/= nomatch end, Wanted);
                    #{} -> true
                end.

with_variants(Cell, #{variants := Wanted}) ->
    case [Variant || Variant <- maps:get(variants, Cell), lists:member(Variant, Wanted)] of
        [] -> [];
        Variants -> [Cell#{variants := Variants}]
    end;
with_variants(Cell, _Options) ->
    [Cell].

repetitions(_Cells, #{repetitions := Repetitions}) -> Repetitions;
repetitions(_Cells, #{quick := true}) -> 2;
repetitions(Cells, #{minutes := Minutes}) ->
    lists:max([1 | [Repetitions || Repetitions <- lists:seq(1, ?REPETITIONS),
                                   weft_bench_runner:expected_ms(Cells, Repetitions)
                                       =< ?RESERVE * Minutes * 60000]]);
repetitions(_Cells, _Options) -> ?REPETITIONS.

%% @doc What a run with these arguments would do, and how long that is expected to take.
-spec expected([string()]) -> #{repetitions := pos_integer(), minutes := pos_integer()}.
expected(Arguments) ->
    Options = options(Arguments, #{}),
    expected(cells(Options), Options).

expected(Cells, Options) ->
    Repetitions = repetitions(Cells, Options),
    Ms = weft_bench_runner:expected_ms(Cells, Repetitions),
    #{repetitions => Repetitions, minutes => ceil(min(Ms, limit_ms(Options)) / 60000)}.

list(Cells, Options) ->
    [io:format("~-60ts ~5.1f s  ~ts~n",
               [weft_bench_workload:title(Cell), CostMs / 1000,
                lists:join(" ", [atom_to_list(Variant) || Variant <- Variants])])
     || #{cost_ms := CostMs, variants := Variants} = Cell <- Cells],
    io:format("~ts~n", [in_words(Cells, Options)]),
    0.

in_words(Cells, Options) ->
    #{repetitions := Repetitions, minutes := Minutes} = expected(Cells, Options),
    io_lib:format("~b cells, about ~b min, ~b of each at most",
                  [length(Cells), Minutes, Repetitions]).

%% ---- measuring ----

measure(Cells, Options) ->
    {{Year, Month, Day}, {Hour, Minute, Second}} = calendar:local_time(),
    Run = lists:flatten(io_lib:format("~4..0b~2..0b~2..0bT~2..0b~2..0b~2..0b",
                                      [Year, Month, Day, Hour, Minute, Second])),
    BuildDir = filename:join(os:getenv("REBAR_BASE_DIR", "_build"), "bench"),
    Dir = maps:get(out, Options, filename:join(BuildDir, Run)),
    ok = weft_bench_file:directory(filename:join(Dir, "logs")),
    Repetitions = repetitions(Cells, Options),
    ok = write_environment(Dir, BuildDir, Run, Options, Repetitions),
    io:format("~ts; results go to ~ts~n", [in_words(Cells, Options), Dir]),
    {ok, Failed} = weft_bench_runner:run(#{run => Run, dir => Dir, build_dir => BuildDir,
                                           cells => Cells, repetitions => Repetitions,
                                           terminal => maps:get(terminal, Options, false),
                                           limit_ms => limit_ms(Options)}),
    case weft_bench_report:main([Dir]) of
        0 when Failed > 0 ->
            io:format(standard_error, "~b measurements failed; why is in results.csv~n", [Failed]),
            1;
        Status ->
            Status
    end.

limit_ms(#{quick := true}) -> ?QUICK_LIMIT_MS;
limit_ms(#{minutes := Minutes}) -> Minutes * 60000;
limit_ms(_) -> infinity.

write_environment(Dir, BuildDir, Run, Options, Repetitions) ->
    Given = [{"run", Run}, {"scope", atom_to_list(scope(Options))},
             {"repetitions", integer_to_list(Repetitions)},
             {"congestion_control", congestion_control(Dir)},
             {"filters", lists:flatten(io_lib:format("~0tp", [maps:with([suites, only, variants],
                                                                        Options)]))},
             {"emulated_links", case weft_bench_place:can_emulate(BuildDir) of
                                    ok -> "yes";
                                    {error, Why} -> "no: " ++ Why
                                end}],
    weft_bench_environment:write(weft_bench_record:environment_file(Dir),
                                 weft_bench_environment:gather(Given)).

%% Where there is no place for nodes each measurement fails, and tells why.
congestion_control(Dir) ->
    case weft_bench_place:with(weft_bench_link:loopback(), Dir,
                               fun weft_bench_place:congestion_control/1) of
        {error, Why} -> "unknown: " ++ Why;
        CongestionControl -> CongestionControl
    end.
