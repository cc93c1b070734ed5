%% SPDX-License-Identifier: Apache-2.0
-module(weft_bencherl_tests).

-include_lib("eunit/include/eunit.hrl").

-export([bench_args/2, run/3]).

%% --- a benchmark ------------------------------------------------------------------------------

bench_args(short, Conf) ->
    case proplists:get_value(datadir, Conf) of
        hang -> receive never -> [] end;
        crash -> exit(on_purpose);
        Sets -> Sets
    end.

run([ok], _, _) -> io:format("fine~n"), ok;
run([wait], _, _) -> timer:sleep(20), ok; % pacing: what is timed
run([failing], _, _) -> {error, on_purpose};
run([crashing], _, _) -> exit(on_purpose);
run([hanging], _, _) -> receive never -> ok end;
run([odd], _, _) -> odd;
run([phases], _, _) -> {{continue, ignore}, first};
%% pacing: what is timed
run([first, phases], _, _) -> timer:sleep(20), {{continue, "one"}, second};
run([second, phases], _, _) -> {{done, two}, none}.

%% --- tests ------------------------------------------------------------------------------------

execute(Sets, Iterations) ->
    Output = filename:join(code:lib_dir(weft_papers), "bencherl_tests.out"),
    ok = file:write_file(Output, ""),
    Options = #{version => short, slaves => [], schedulers => 1, output => Output,
                %% Far more than those take that do not hang, on a machine that stands still, too.
                datadir => Sets, timeout_ms => 1000},
    Answers = case weft_bencherl_executor:sets(?MODULE, Options) of
                  {ok, Found} -> [weft_bencherl_executor:run(?MODULE, Args, Options)
                                  || Args <- Found, _ <- lists:seq(1, Iterations)];
                  {error, Text} -> [{error, Text}]
              end,
    {ok, Printed} = file:read_file(Output),
    case [Wrong || {error, _} = Wrong <- Answers] of
        [] -> {{ok, lists:append([Timings || {ok, Timings} <- Answers])}, Printed};
        [Error | _] -> {Error, Printed}
    end.

%% Output is added to what there is, times are those of each iteration.
times_and_output_test() ->
    {{ok, Timings}, Output} = execute([[ok], [wait]], 2),
    ?assertMatch([{"[ok]", _}, {"[ok]", _}, {"[wait]", _}, {"[wait]", _}], Timings),
    [?assert(Ms >= 20) || {"[wait]", Ms} <- Timings],
    ?assertEqual(<<"fine\nfine\n">>, Output).

phases_are_timed_one_by_one_test() ->
    {{ok, [{"[phases] one", One}, {"[phases] two", Two}]}, _} = execute([[phases]], 1),
    ?assert(One >= 20),
    ?assert(Two < One).

what_goes_wrong_is_told_test() ->
    [begin
         {{error, Text}, _} = execute(Sets, 1),
         ?assertMatch({_, _}, binary:match(list_to_binary(Text), Word))
     end || {Sets, Word} <- [{[[failing]], <<"failed: on_purpose">>},
                             {[[crashing]], <<"crashed: on_purpose">>},
                             {[[hanging]], <<"did not end">>},
                             {[[odd]], <<"unknown_answer">>},
                             {hang, <<"bench_args/2 did not end">>},
                             {crash, <<"bench_args/2 crashed: on_purpose">>},
                             {none, <<"no list of lists">>}]].

configuration_test() ->
    {ok, Config} = weft_bencherl_config:parse(<<"# a comment\nNUMBER_OF_SCHEDULERS=2..4 # few\n"
                                                "VERSION=long\nITERATIONS = 7\n"
                                                "INCLUDE_BENCH=bang,big\nERL_ARGS=\"+sbt u;+P 5\"\n"
                                                "OTPS=25=erl,27=/opt/27/bin/erl\n"
                                                "OUTPUT_FORMAT=avg_min_max\nCHECK_SANITY=0\n">>),
    ?assertMatch(#{schedulers := [1, 2, 3, 4], version := long, iterations := 7,
                   include := ["bang", "big"],
                   erl_args := [{"+sbt u", "+sbt u"}, {"+P 5", "+P 5"}],
                   otps := [{"25", "erl"}, {"27", "/opt/27/bin/erl"}],
                   output_format := avg_min_max, sanity := false}, Config).

%% As a run.conf of BenchErl has them.
configuration_of_bencherl_test() ->
    {ok, Config} = weft_bencherl_config:parse(<<"USE_LONG_NAMES=1\nMASTER_NODE=m@somehost\n"
                                                "SLAVE_NODES=a@somehost,b@somehost\n"
                                                "OTPS=\"R14B04=/opt/R14B04,here=\"\n"
                                                "ERL_ARGS=\"BOUND=+sbt u,LARGE=+P 5 -x y=z\"\n"
                                                "COOKIE=\"chocolate chip\"\nPLOT=1\n"
                                                "SKIP_SLAVE_SETUP=0\nNUMBER_OF_SLAVE_NODES=\n"
                                                "INCLUDE_BENCH=\nVERSION=\n">>),
    ?assertMatch(#{erl_args := [{"BOUND", "+sbt u"}, {"LARGE", "+P 5 -x y=z"}],
                   otps := [{"R14B04", "/opt/R14B04"}, {"here", "erl"}], slaves := [0],
                   cookie := "chocolate chip", include := all, version := short}, Config),
    ?assertEqual(["run.conf: no effect here: "
                  "MASTER_NODE, PLOT, SKIP_SLAVE_SETUP, SLAVE_NODES, USE_LONG_NAMES"],
                 weft_bencherl_config:ignored(Config, [])).

%% What a benchmark has for itself goes before what the run has, and is for it alone.
configuration_of_a_benchmark_test() ->
    Root = filename:absname(filename:join(code:lib_dir(weft_papers), "bencherl_root")),
    Dir = filename:join([Root, "bench", "one"]),
    Files = [{"src/one.erl", ""}, {"conf/pre_bench", ""},
             {"conf/bench.conf",
              "SLAVE_NODES=\nDEPENDENCIES=dep\nEXTRA_CODE_PATH=lib/ebin\nITERATIONS=9\n"
              "WORKING_DIRECTORY=${BENCHERL_ROOT}/work\nERL_ENV=\"A=1 B=2\"\nSD_VERSION=\"2\"\n"
              "EXTRA_ERL_ARGS=\"+W w +P 5\"\nINCLUDE_BENCH=other\n"}],
    [begin
         File = filename:join(Dir, Name),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, Text)
     end || {Name, Text} <- Files],
    Run = (weft_bencherl_config:defaults())#{bench_dir := filename:dirname(Dir), slaves := [0, 2],
                                             include := ["one", "ran"]},
    {ok, [One, Ran]} = weft_bencherl_bench:find(Run),
    {ok, Config} = weft_bencherl_config:of_bench(One, Run),
    ?assertEqual({ok, Run}, weft_bencherl_config:of_bench(Ran, Run)),
    ?assertEqual(Run#{slaves := [0], iterations := 9, extra_args := ["+W", "w", "+P", "5"],
                      code_path := [filename:join(Root, "app/dep/ebin"),
                                    filename:join(Root, "lib/ebin")],
                      environment := [{"A", "1"}, {"B", "2"}],
                      directory := filename:join(Root, "work"), ignored := []},
                 Config#{ignored := []}),
    ?assertEqual(["one: no effect here: INCLUDE_BENCH, SD_VERSION, pre_bench"],
                 weft_bencherl_config:ignored(Run, [{One, Config}])),
    ?assertEqual(filename:join(Dir, "data"), weft_bencherl_bench:data(One, "results")),
    ok = file:write_file(filename:join(Dir, "conf/bench.conf"), "\nITERATIONS=few\n"),
    {error, Text} = weft_bencherl_config:of_bench(One, Run),
    ?assertMatch({match, _}, re:run(Text, "one/conf/bench.conf: line 2: ITERATIONS wants")).

the_configuration_is_written_down_test() ->
    Config = (weft_bencherl_config:defaults())#{schedulers := [1, 4], cookie := "secret"},
    Own = Config#{iterations := 7, extra_args := ["+P", "5000"]},
    Told = weft_bencherl_config:environment(Config, [{#{name => "bang"}, Config},
                                                     {#{name => "big"}, Own}]),
    ?assertEqual("[1,4]", proplists:get_value("config_schedulers", Told)),
    ?assertEqual("short", proplists:get_value("config_version", Told)),
    ?assertEqual("[\"bang\",\"big\"]", proplists:get_value("benches", Told)),
    %% Keys of atoms have another order from OTP 26 on.
    {ok, Tokens, _} = erl_scan:string(proplists:get_value("config_of_big", Told) ++ "."),
    ?assertEqual({ok, #{extra_args => ["+P", "5000"], iterations => 7}},
                 erl_parse:parse_term(Tokens)),
    ?assertNot(proplists:is_defined("config_of_bang", Told)),
    ?assertEqual([], [Value || {_, Value} <- Told, string:find(Value, "secret") =/= nomatch]).

bad_configurations_test() ->
    [begin
         {error, Text} = weft_bencherl_config:parse(Line),
         ?assertMatch({0, _}, binary:match(list_to_binary(Text), <<"line 1: ", Word/binary>>))
     end || {Line, Word} <- [{<<"nonsense">>, <<"nonsense is not">>},
                             {<<"COLOUR=red">>, <<"unknown key COLOUR">>},
                             {<<"VERSION=huge">>, <<"VERSION wants one of [short,">>},
                             {<<"ITERATIONS=none">>, <<"ITERATIONS wants a number">>},
                             {<<"NUMBER_OF_SCHEDULERS=0">>, <<"NUMBER_OF_SCHEDULERS wants a">>},
                             {<<"NUMBER_OF_SCHEDULERS=4..2">>,
                              <<"NUMBER_OF_SCHEDULERS wants LEAST..GREATEST, not 4..2">>},
                             {<<"NUMBER_OF_SLAVE_NODES=,">>, <<"NUMBER_OF_SLAVE_NODES wants">>},
                             {<<"CHECK_SANITY=maybe">>, <<"CHECK_SANITY wants 0 or 1">>},
                             {<<"PLOT=nice">>, <<"PLOT wants 0 or 1, not nice">>},
                             {<<"OTPS=25">>, <<"OTPS wants LABEL=INSTALLATION, not 25">>}]],
    {error, _} = weft_bencherl_config:parse(<<255, 254>>),
    {error, NoDirectory} = weft_bencherl_bench:find((weft_bencherl_config:defaults())
                                                    #{bench_dir := "/nowhere"}),
    ?assertMatch({0, _}, binary:match(list_to_binary(NoDirectory),
                                      <<"BENCH_DIR wants a directory">>)),
    {error, _} = weft_bencherl_config:read("no_such_run.conf"),
    {error, Unknown} = weft_bencherl_bench:find((weft_bencherl_config:defaults())
                                                #{include := ["bing"]}),
    ?assertMatch({_, _}, binary:match(list_to_binary(Unknown), <<"bing">>)).

%% A run.conf of BenchErl may name those that are not here.
benchmarks_that_are_not_here_are_told_test() ->
    Config = (weft_bencherl_config:defaults())#{include := ["bang", "scalaris"],
                                                exclude := ["nobody"]},
    {ok, Benches} = weft_bencherl_bench:find(Config),
    ?assertEqual(["bang"], [Name || #{name := Name} <- Benches]),
    [Line] = weft_bencherl_bench:unknown(Config),
    ?assertMatch("no benchmark nobody, scalaris; there are bang, " ++ _, Line),
    ?assertEqual([], weft_bencherl_bench:unknown(weft_bencherl_config:defaults())).

%% Of a run that was ended before its end, too: the table is all that it needs.
the_page_is_made_again_test() ->
    Dir = filename:absname(filename:join(code:lib_dir(weft_papers), "bencherl_page")),
    Table = filename:join(Dir, "results.csv"),
    ok = filelib:ensure_dir(Table),
    try
        {ok, _} = file:copy("docs/benchmarks/ets/results.csv", Table),
        ?assertEqual(0, weft_papers_cli:main(["report", Dir])),
        {ok, Page} = file:read_file(weft_bencherl_report:file(Dir)),
        ?assertMatch({_, _}, binary:match(Page, <<"ets_random_ops">>))
    after
        file:del_dir_r(Dir)
    end.

%% Sizes as in the paper's set; each answers ok with few of everything.
own_benchmarks_test_() ->
    Small = #{bencherl_bang => [2, 5], bencherl_big => [4], bencherl_ehb => [1, 1],
              bencherl_ets_test => [5, 1, 2], bencherl_genstress => [gen_call, 2, 3, 5],
              bencherl_mbrot => [8, 2], bencherl_orbit_int => [157, 2],
              bencherl_parallel => [10, 2], bencherl_pcmark => [2, 3], bencherl_ran => [1],
              bencherl_serialmsg => [2, 3, 4], bencherl_timer_wheel => [wheel, 4]},
    [{timeout, 60, {atom_to_list(Module), ?_assertEqual(ok, Module:run(Args, [], []))}}
     || {Module, Args} <- maps:to_list(Small)].

%% Both workloads of ETS, each phase of them, whatever the table and for any number of schedulers;
%% the second one holds the table against what was done. What is timed finds its processes waiting.
ets_benchmarks_test_() ->
    Mixes = lists:usort([Mix || [_, _, Mix | _] <- bencherl_ets_random_ops:bench_args(short, [])]),
    Random = [{bencherl_ets_random_ops, [Mix, 2000, 100], ["mix"]} || Mix <- Mixes],
    Bench = {bencherl_ets_bench, [10, 128, 256, 1024],
             ["insert", "mixed", "insert again", "delete"]},
    [{lists:concat([Type, " ", Concurrency]),
      [?_assertEqual(Timed, timed(Module, [Type, Concurrency | Args], [{schedulers, Workers}]))
       || Workers <- [1, 7], {Module, Args, Timed} <- [Bench | Random]]}
     || {Type, Concurrency} <- bencherl_ets:sets()].

%% Each has what its name says; nobody lets a table have options that others have, too.
tables_have_the_options_of_their_names_test() ->
    Options = [{Of, options(Of)} || Of <- bencherl_ets:sets()],
    ?assertEqual({false, auto, true}, proplists:get_value({set, auto}, Options)),
    ?assertEqual({false, true, true}, proplists:get_value({set, wd}, Options)),
    ?assertEqual({false, true, false}, proplists:get_value({set, w}, Options)),
    ?assertEqual({false, true, true}, proplists:get_value({ordered_set, w}, Options)),
    [?assertEqual({Type, lists:usort(Different)}, {Type, lists:sort(Different)})
     || Type <- [set, ordered_set],
        Different <- [[Has || {{Of, _}, Has} <- Options, Of =:= Type]]].

options({Type, Concurrency}) ->
    Table = bencherl_ets:table(Type, Concurrency),
    Has = [ets:info(Table, Option)
           || Option <- [read_concurrency, write_concurrency, decentralized_counters]],
    true = ets:delete(Table),
    list_to_tuple(Has).

timed(Module, Args, Conf) ->
    timed(Module, Args, Args, Conf, linked()).

timed(Module, Args, Given, Conf, Before) ->
    Workers = proplists:get_value(schedulers, Conf),
    %% Those of the phase before may still be about to end.
    ok = weft_test_nodes:until(fun() -> lists:member(length(linked() -- Before), [0, Workers]) end),
    Waiting = length(linked() -- Before),
    case Module:run(Given, [], Conf) of
        {{continue, ignore}, State} -> timed(Module, Args, [State | Args], Conf, Before);
        {{continue, Name}, State} ->
            ?assertEqual(Workers, Waiting),
            [Name | timed(Module, Args, [State | Args], Conf, Before)];
        {{done, ignore}, _} -> []
    end.

linked() ->
    {links, Links} = process_info(self(), links),
    Links.

%% They begin when they are let go, not when they are made.
workers_of_ets_wait_test() ->
    Counter = counters:new(1, []),
    Workers = bencherl_ets:ready([fun() -> counters:add(Counter, 1, N), N end || N <- [1, 2, 3]]),
    ?assertEqual(0, counters:get(Counter, 1)),
    ?assertEqual([1, 2, 3], bencherl_ets:at_once(Workers)),
    ?assertEqual(6, counters:get(Counter, 1)).

%% A table that lost keys, or operations that were not done, are no result.
a_damaged_table_is_told_test() ->
    Args = [set, rw, {50, 50, 0}, 100, 10],
    Conf = [{schedulers, 2}],
    {_, {operate, Table, _} = Operate} = bencherl_ets_random_ops:run(Args, [], Conf),
    {_, {check, Table, Done} = Check} =
        bencherl_ets_random_ops:run([Operate | Args], [], Conf),
    true = ets:insert(Table, {a_key_of_nobody}),
    ?assertMatch({error, {[keys], #{}}}, bencherl_ets_random_ops:run([Check | Args], [], [])),
    {_, {operate, Empty, _}} = bencherl_ets_random_ops:run(Args, [], Conf),
    ?assertMatch({error, {[operations], #{size := 0}}},
                 bencherl_ets_random_ops:run([{check, Empty, tl(Done)} | Args], [], [])).

%% What is compared between numbers of schedulers has the same arguments for all of them.
ets_arguments_do_not_depend_on_schedulers_test() ->
    [?assertEqual(Module:bench_args(short, [{schedulers, 1}, {number_of_cores, 1}]),
                  Module:bench_args(short, [{schedulers, 4}, {number_of_cores, 1}]))
     || Module <- [bencherl_ets_bench, bencherl_ets_random_ops]].

%% Generators 1, 2 and 4 of Orbit have known orbits; and one that is counted here.
the_orbit_is_known_test_() ->
    [{lists:concat([Space, " by ", Workers]),
      {timeout, 60, ?_assertEqual(iolist_to_binary(io_lib:format("orbit of ~b\n", [Size])),
                                  printed(bencherl_orbit_int, [Space, Workers]))}}
     || {Space, Size} <- [{157, 133}, {1000, 854}, {2000, orbit(2000)}], Workers <- [1, 5]].

orbit(Space) -> orbit([0], #{0 => true}, Space).

orbit([], Known, _Space) -> map_size(Known);
orbit([X | Left], Known, Space) ->
    Fibonacci = fun(N) -> element(N + 1, fibonacci()) end,
    Percent = X rem 100,
    Last = if Percent < 49 -> 11; Percent < 98 -> 19; true -> 27 end,
    New = [Y || Y <- lists:usort([(Fibonacci(X rem 16) + X) rem Space,
                                  (Fibonacci(5 + X rem 16) + 2 * X * X + 5 * X - 1) rem Space,
                                  (Fibonacci(Last) - 1) rem Space]),
                not is_map_key(Y, Known)],
    orbit(New ++ Left, maps:merge(Known, maps:from_keys(New, true)), Space).

fibonacci() ->
    {List, _} = lists:mapfoldl(fun(_, {A, B}) -> {A, {B, A + B}} end, {1, 1}, lists:seq(0, 27)),
    list_to_tuple(List).

%% What a benchmark prints tells what it did, and is the same each time.
what_they_print_is_what_they_did_test_() ->
    [{atom_to_list(Module),
      ?_assertEqual(Printed, {printed(Module, Args), printed(Module, Args)})}
     || {Module, Args, Text} <- [{bencherl_bang, [2, 5], <<"messages sum up to 30\n">>},
                                 {bencherl_big, [4], <<"12 pings were answered\n">>},
                                 {bencherl_ehb, [1, 1], <<"40000 messages\n">>},
                                 {bencherl_ets_test, [5, 1, 2], <<"values sum up to 15\n">>},
                                 {bencherl_genstress, [gen_call, 2, 3, 5],
                                  <<"answers sum up to 12\n">>},
                                 {bencherl_serialmsg, [2, 3, 4], <<"24 words arrived\n">>}],
        Printed <- [{Text, Text}]].

%% The table has the modules of the application, whose code was read.
dialyzer_builds_a_table_test_() ->
    Dir = filename:join(code:lib_dir(weft_papers), "bencherl_dialyzer"),
    Plt = filename:join(Dir, "dialyzer.plt"),
    {timeout, 300,
     fun() ->
             _ = file:delete(Plt),
             Conf = [{datadir, Dir}],
             case code:which(dialyzer) of
                 non_existing ->
                     ?assertMatch({error, {no_dialyzer, _}},
                                  bencherl_dialyzer:run([[crypto]], [], Conf));
                 _ ->
                     ?assertEqual(ok, bencherl_dialyzer:run([[crypto]], [], Conf)),
                     {ok, Info} = dialyzer:plt_info(Plt),
                     ?assert(lists:member("crypto.beam",
                                          [filename:basename(File)
                                           || File <- proplists:get_value(files, Info)]))
             end
     end}.

printed(Module, Args) ->
    File = filename:join(code:lib_dir(weft_papers), "bencherl_printed.out"),
    {ok, Device} = file:open(File, [write]),
    Leader = group_leader(),
    group_leader(Device, self()),
    try ok = Module:run(Args, [], [])
    after group_leader(Leader, self()), file:close(Device)
    end,
    {ok, Text} = file:read_file(File),
    Text.
