%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmark from the command line: measures cells, or runs another command; what there is
%% is in command/1, and in `bin/bench --help'. Other applications add workloads and commands:
%% `bin/bench' is weft_papers_cli.
-module(weft_bench_cli).

-export([main/1, main/2, command/1, report/0, expected/2, status/2]).
-export_type([more/0]).

-define(QUICK_LIMIT_MS, 165000).
-define(REPETITIONS, 5).
%% A machine that does other things too takes longer than expected.
-define(RESERVE, 0.9).
-define(PROGRAM, "bin/bench").

%% What other applications add to it.
%% `hosts' opens two hosts of a deployment, and closes them; `load_hosts' all that a load is for.
-type more() :: #{workloads := [module()], commands := #{string() => weft_argparse:command()},
                  hosts => fun((File :: string()) ->
                                   {ok, weft_bench_hosts:hosts(), Close :: fun(() -> term())}
                                 | {error, Text :: string()}),
                  load_hosts => weft_load_cli:open()}.

%% @doc The benchmark alone.
-spec main([string()]) -> 0 | 1 | 2.
main(Arguments) ->
    main(Arguments, #{workloads => [], commands => #{}}).

%% @doc 0: measured or helped, 1: a measurement failed, or something got worse in a comparison, 2:
%% bad arguments, or the results can not be written.
-spec main([string()], more()) -> 0 | 1 | 2.
main(Arguments, More) ->
    Words = case Arguments of
                ["help" | Rest] -> Rest ++ ["--help"];
                _ -> Arguments
            end,
    try weft_argparse:run(Words, command(More), ?PROGRAM)
    catch
        throw:{results, Text} -> failed(Text);
        throw:{usage, Text} -> failed(Text)
    end.

failed(Text) ->
    io:format(standard_error, "~ts~n", [Text]),
    2.

%% @doc What the words are read with.
-spec command(more()) -> weft_argparse:command().
command(#{workloads := Workloads, commands := Commands} = More) ->
    #{help => "measures weft against the carriers of OTP",
      details =>
          ["Without a command it measures cells, each with all its variants, and makes a report.",
           ["Variants: ", lists:join(" ", [atom_to_list(V) || V <- weft_bench_variant:all()])],
           "Suites, cells and what they mean: docs/guide/benchmark.md"],
      arguments => cluster(More) ++ arguments(),
      handler => fun(Options) -> cells(Workloads, Options, More) end,
      commands => maps:merge(
                    #{"report" => report(),
                      "compare" => weft_bench_compare:command(),
                      "load" => weft_load_cli:command(maps:get(load_hosts, More, none)),
                      "groups" => weft_bench_groups:command(),
                      "hour" => weft_bench_hour:command(),
                      "topologies" => weft_bench_topologies:command(),
                      "costs" => weft_bench_costs:command(),
                      "names" => weft_bench_names:command(),
                      "locks" => weft_bench_locks:command()}, Commands)}.

%% @doc The command that makes reports again. What a load or DE-Bench has left is another thing than
%% the results of cells.
-spec report() -> weft_argparse:command().
report() ->
    #{handler := Handler} = Command = weft_report_page:command(),
    Command#{handler := fun(#{dir := Dir} = Given) ->
                                case weft_load_cli:is_load(Dir) of
                                    true when is_map_key(pictures, Given) ->
                                        weft_bench_arguments:status(
                                          {error, lists:concat([Dir, " is of a load, whose report "
                                                                "has its pictures: leave out "
                                                                "--pictures"])});
                                    true -> weft_load_cli:report(Dir);
                                    false -> Handler(Given)
                                end
                        end}.

cluster(#{hosts := _}) ->
    [#{name => cluster, long => "-cluster", value => "FILE",
       help => "cells of two nodes, on the first two hosts of that deployment"}];
cluster(#{}) ->
    [].

arguments() ->
    [#{name => quick, long => "-quick", type => boolean,
       help => "fewer and shorter cells and repetitions: at most three minutes, or --minutes"},
     #{name => set, long => "-set", type => {atom, weft_bench_sets:names()}, value => "NAME",
       help => "cells that belong together: won (where weft is ahead of stock)"},
     #{name => suites, long => "-suites", type => {list, string}, value => "a,c",
       help => "only these groups of workloads"},
     #{name => only, long => "-only", type => {list, {custom, fun checked_re/1}}, value => "RE,RE",
       help => "only cells whose title in the list matches one of the regular expressions"},
     #{name => variants, long => "-variants", type => {list, {atom, weft_bench_variant:all()}},
       value => "V,V", help => "only these variants"},
     #{name => repetitions, long => "-repetitions", type => {integer, [{min, 1}]}, value => "N",
       help => "instead of 5 (quick: 2)"},
     #{name => minutes, long => "-minutes", type => {integer, [{min, 1}]}, value => "N",
       help => "as many repetitions as are expected to fit; what has not begun then is left out"},
     weft_bench_arguments:quota(),
     #{name => list, long => "-list", type => boolean,
       help => "the cells and how long they take, and no measurement"}
     | weft_bench_arguments:common("where results go, instead of a new directory in _build/bench")].

checked_re(Text) ->
    case re:compile(Text) of
        {ok, _} -> Text;
        {error, {Why, At}} -> throw(io_lib:format("a regular expression: ~ts at character ~b",
                                                  [Why, At + 1]))
    end.

cells(Workloads, Options, More) ->
    case {chosen(Workloads, Options), Options} of
        {[], _} -> throw({usage, "no cell is left by --suites, --only and --variants"});
        {Cells, #{list := true}} -> list(Cells, Options);
        {Cells, #{cluster := File}} -> on_hosts(File, Cells, Options, More);
        {Cells, _} -> measure(Cells, Options)
    end.

on_hosts(File, Cells, Options, #{hosts := Open}) ->
    case Open(File) of
        {ok, Hosts, Close} ->
            ok = weft_bench_interrupt:afterwards(hosts, Close),
            try measure(weft_bench_hosts:on(Hosts, Cells), Options#{hosts => Hosts})
            after Close()
            end;
        {error, Text} ->
            throw({usage, Text})
    end.

%% ---- what to measure ----

chosen(Workloads, #{cluster := _} = Options) ->
    weft_bench_hosts:cells(chosen(Workloads, maps:remove(cluster, Options)));
%% What is given besides the set is in the place of what the set says.
chosen(Workloads, #{set := Set} = Options) ->
    chosen(Workloads, maps:merge(weft_bench_sets:options(Set), maps:remove(set, Options)));
chosen(Workloads, Options) ->
    Of = fun(Scope) ->
             weft_bench_workload:cells(weft_bench_workload:modules() ++ Workloads, Scope)
         end,
    ok = known(maps:get(suites, Options, []), Of(quick) ++ Of(full)),
    [as_asked(Chosen, Options) || Cell <- Of(scope(Options)), is_chosen(Cell, Options),
                                  Chosen <- with_variants(Cell, Options)].

%% Who says how many repetitions there shall be has them.
as_asked(#{with_quota := Other} = Cell, #{quota := _} = Options) ->
    as_asked(maps:merge(maps:remove(with_quota, Cell), Other), Options);
as_asked(Cell, #{repetitions := _}) ->
    maps:remove(repetitions_max, Cell);
as_asked(Cell, _Options) ->
    Cell.

known(Wanted, Cells) ->
    Suites = lists:usort([atom_to_list(Suite) || #{suite := Suite} <- Cells]),
    case Wanted -- Suites of
        [] -> ok;
        [Unknown | _] -> throw({usage, io_lib:format("--suites: there is no ~ts; there are ~ts",
                                                     [Unknown, lists:join(", ", Suites)])})
    end.

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
repetitions(Cells, #{minutes := Minutes}) ->
    lists:max([1 | [Repetitions || Repetitions <- lists:seq(1, ?REPETITIONS),
                                   weft_bench_runner:expected_ms(Cells, Repetitions)
                                       =< ?RESERVE * Minutes * 60000]]);
repetitions(_Cells, #{quick := true}) -> 2;
repetitions(_Cells, _Options) -> ?REPETITIONS.

%% @doc What a run with these arguments would do, and how long that is expected to take.
-spec expected([string()], more()) -> #{repetitions := pos_integer(), minutes := pos_integer()}.
expected(Arguments, #{workloads := Workloads} = More) ->
    case weft_argparse:parse(Arguments, command(More), ?PROGRAM) of
        {ok, Options, _, _} -> plan(chosen(Workloads, Options), Options);
        {error, Text} -> throw({usage, Text})
    end.

plan(Cells, Options) ->
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
    #{repetitions := Repetitions, minutes := Minutes} = plan(Cells, Options),
    io_lib:format("~b cells, about ~b min, ~b of each at most",
                  [length(Cells), Minutes, Repetitions]).

%% ---- measuring ----

measure(Cells, Options) ->
    Run = weft_bench_arguments:run_name(),
    BuildDir = filename:join(os:getenv("REBAR_BASE_DIR", "_build"), "bench"),
    Dir = maps:get(out, Options, filename:join(BuildDir, Run)),
    ok = free(Dir),
    ok = weft_report_file:directory(filename:join(Dir, "logs")),
    Repetitions = repetitions(Cells, Options),
    {Quota, OfQuota} = weft_bench_arguments:given_quota(Options),
    OfNodes = weft_bench_environment:of_nodes(
                [{Variant, Layout} || #{layout := Layout, variants := Variants} <- Cells,
                                      Variant <- Variants]),
    ok = write_environment(Dir, BuildDir, Run, Options,
                           [{"repetitions", integer_to_list(Repetitions)} | OfNodes ++ OfQuota]),
    io:format("~ts; results go to ~ts~n", [in_words(Cells, Options), Dir]),
    ok = weft_bench_interrupt:afterwards(cells, fun() -> weft_report_page:main([Dir]) end),
    {ok, Failed} = weft_bench_runner:run(#{run => Run, dir => Dir, build_dir => BuildDir,
                                           cells => Cells, repetitions => Repetitions,
                                           terminal => maps:get(terminal, Options, false),
                                           quota => Quota,
                                           limit_ms => limit_ms(Options)}),
    case weft_report_page:main([Dir]) of
        0 -> status(Failed, Dir);
        Status -> Status
    end.

%% @private The exit status of a run in which so much failed. One that has left out everything has
%% not shown that anything works.
-spec status(Failed :: non_neg_integer(), Dir :: file:filename()) -> 0 | 1 | 2.
status(0, Dir) ->
    case weft_report_record:read(Dir) of
        {ok, Rows} ->
            case [x || #{metric := Metric} <- Rows, Metric =/= <<"skipped">>] of
                [] -> weft_bench_arguments:status({failed, "nothing was measured; why is in "
                                                           "results.csv"});
                _ -> 0
            end;
        {error, Text} ->
            failed(Text)
    end;
status(Failed, _Dir) ->
    weft_bench_arguments:status({failed, io_lib:format("~b measurements failed; why is in "
                                                       "results.csv", [Failed])}).

free(Dir) ->
    case weft_load_files:is_free(Dir) of
        ok -> ok;
        {error, Text} -> throw({usage, Text})
    end.

limit_ms(#{minutes := Minutes}) -> Minutes * 60000;
limit_ms(#{quick := true}) -> ?QUICK_LIMIT_MS;
limit_ms(_) -> infinity.

write_environment(Dir, BuildDir, Run, Options, Known) ->
    Given = [{"run", Run}, {"scope", atom_to_list(scope(Options))},
             {"filters", lists:flatten(io_lib:format("~0tp", [maps:with([set, suites, only,
                                                                         variants, cluster],
                                                                        Options)]))},
             {"emulated_links", case weft_bench_place:can_emulate(BuildDir) of
                                    ok -> "yes";
                                    {error, Why} -> "no: " ++ Why
                                end} | Known],
    weft_report_record:write_environment(Dir, environment(Dir, Given, Options)).

%% On hosts of somebody's own only the code is that of this machine.
environment(_Dir, Given, #{hosts := Hosts}) ->
    case weft_bench_hosts:environment(Hosts) of
        {ok, There} ->
            [Pair || {Key, _} = Pair <- weft_bench_environment:gather([]),
                     lists:member(Key, ["date", "commit"])] ++ There ++ Given;
        {error, Text} ->
            throw({usage, Text})
    end;
environment(Dir, Given, _Options) ->
    weft_bench_environment:gather(
      [{"congestion_control", weft_bench_environment:congestion_control(Dir)} | Given]).
