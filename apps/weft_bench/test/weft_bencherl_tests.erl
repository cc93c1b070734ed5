%% SPDX-License-Identifier: Apache-2.0
-module(weft_bencherl_tests).

-include_lib("eunit/include/eunit.hrl").

-export([bench_args/2, run/3]).

%% --- a benchmark ------------------------------------------------------------------------------

bench_args(short, Conf) -> proplists:get_value(datadir, Conf).

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
    Output = filename:join(code:lib_dir(weft_bench), "bencherl_tests.out"),
    Answer = weft_bencherl_executor:run(?MODULE, Iterations,
                                        #{version => short, slaves => [], schedulers => 1,
                                          output => Output, datadir => Sets, timeout_ms => 300}),
    {ok, Text} = file:read_file(Output),
    {Answer, Text}.

%% Output is kept once, times of each iteration.
times_and_output_test() ->
    {{ok, Timings}, Output} = execute([[ok], [wait]], 2),
    ?assertMatch([{"[ok]", _}, {"[ok]", _}, {"[wait]", _}, {"[wait]", _}], Timings),
    [?assert(Ms >= 20) || {"[wait]", Ms} <- Timings],
    ?assertEqual(<<"fine\n">>, Output).

phases_are_timed_one_by_one_test() ->
    {{ok, [{"[phases] one", One}, {"[phases] two", Two}]}, _} = execute([[phases]], 1),
    ?assert(One >= 20),
    ?assert(Two < One).

what_goes_wrong_is_told_test() ->
    [begin
         {{error, Text}, _} = execute([Set], 1),
         ?assertMatch({_, _}, binary:match(list_to_binary(Text), Word))
     end || {Set, Word} <- [{[failing], <<"failed: on_purpose">>},
                            {[crashing], <<"crashed: on_purpose">>},
                            {[hanging], <<"did not end">>},
                            {[odd], <<"unknown_answer">>}]].

configuration_test() ->
    {ok, Config} = weft_bencherl_config:parse(<<"# a comment\nNUMBER_OF_SCHEDULERS=2..4 # few\n"
                                                "VERSION=long\nITERATIONS = 7\n"
                                                "INCLUDE_BENCH=bang,big\nERL_ARGS=\"+sbt u;+P 5\"\n"
                                                "OTPS=25=erl,27=/opt/27/bin/erl\n"
                                                "OUTPUT_FORMAT=avg_min_max\nCHECK_SANITY=0\n">>),
    ?assertMatch(#{schedulers := [1, 2, 3, 4], version := long, iterations := 7,
                   include := ["bang", "big"], erl_args := ["+sbt u", "+P 5"],
                   otps := [{"25", "erl"}, {"27", "/opt/27/bin/erl"}],
                   output_format := avg_min_max, sanity := false}, Config).

bad_configurations_test() ->
    [begin
         {error, Text} = weft_bencherl_config:parse(Line),
         ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"line 1">>))
     end || Line <- [<<"nonsense">>, <<"COLOUR=red">>, <<"VERSION=huge">>, <<"ITERATIONS=none">>,
                     <<"NUMBER_OF_SCHEDULERS=0">>, <<"OTPS=25">>]],
    {error, _} = weft_bencherl_config:read("no_such_run.conf"),
    {error, Unknown} = weft_bencherl_bench:find((weft_bencherl_config:defaults())
                                                #{include := ["bing"]}),
    ?assertMatch({_, _}, binary:match(list_to_binary(Unknown), <<"bing">>)).

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
%% the second one holds the table against what was done.
ets_benchmarks_test_() ->
    Mixes = lists:usort([Mix || [_, _, Mix | _] <- bencherl_ets_random_ops:bench_args(short, [])]),
    Random = [{bencherl_ets_random_ops, [Mix, 2000, 100], ["mix"]} || Mix <- Mixes],
    Bench = {bencherl_ets_bench, [10, 128, 256, 1024],
             ["insert", "mixed", "insert again", "delete"]},
    [{lists:concat([Type, " ", Concurrency]),
      [?_assertEqual(Timed, timed(Module, [Type, Concurrency | Args], [{schedulers, Workers}]))
       || Workers <- [1, 7], {Module, Args, Timed} <- [Bench | Random]]}
     || {Type, Concurrency} <- bencherl_ets:sets()].

timed(Module, Args, Conf) -> timed(Module, Args, Args, Conf).

timed(Module, Args, Given, Conf) ->
    case Module:run(Given, [], Conf) of
        {{continue, ignore}, State} -> timed(Module, Args, [State | Args], Conf);
        {{continue, Name}, State} -> [Name | timed(Module, Args, [State | Args], Conf)];
        {{done, ignore}, _} -> []
    end.

%% A table that lost keys, or operations that were not done, are no result.
a_damaged_table_is_told_test() ->
    Args = [set, rw, {50, 50, 0}, 100, 10],
    {_, {operate, Table} = Operate} = bencherl_ets_random_ops:run(Args, [], []),
    {_, {check, Table, Done} = Check} =
        bencherl_ets_random_ops:run([Operate | Args], [], [{schedulers, 2}]),
    true = ets:insert(Table, {a_key_of_nobody}),
    ?assertMatch({error, {[keys], #{}}}, bencherl_ets_random_ops:run([Check | Args], [], [])),
    {_, {operate, Empty}} = bencherl_ets_random_ops:run(Args, [], []),
    ?assertMatch({error, {[operations], #{size := 0}}},
                 bencherl_ets_random_ops:run([{check, Empty, tl(Done)} | Args], [], [])).

%% What is compared between numbers of schedulers has the same arguments for all of them.
ets_arguments_do_not_depend_on_schedulers_test() ->
    [?assertEqual(Module:bench_args(short, [{schedulers, 1}, {number_of_cores, 1}]),
                  Module:bench_args(short, [{schedulers, 4}, {number_of_cores, 1}]))
     || Module <- [bencherl_ets_bench, bencherl_ets_random_ops]].

%% The three generators of orbit_int are 1, 2 and one of our own; the orbit is the same for any
%% number of workers.
the_orbit_does_not_depend_on_workers_test() ->
    ?assertEqual(printed([157, 1]), printed([157, 5])).

printed(Args) ->
    File = filename:join(code:lib_dir(weft_bench), "bencherl_printed.out"),
    {ok, Device} = file:open(File, [write]),
    Leader = group_leader(),
    group_leader(Device, self()),
    try ok = bencherl_orbit_int:run(Args, [], [])
    after group_leader(Leader, self()), file:close(Device)
    end,
    {ok, Text} = file:read_file(File),
    Text.
