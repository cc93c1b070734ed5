%% SPDX-License-Identifier: Apache-2.0
-module(weft_de_bench_tests).

-include_lib("eunit/include/eunit.hrl").

-define(DRIVER, weft_de_bench_driver).

new(Pairs) ->
    ok = basho_bench_config:load(Pairs),
    {ok, State} = ?DRIVER:new(1),
    State.

run(Operation, State) ->
    ?DRIVER:run(Operation, fun() -> key end, fun() -> value end, State).

%% Whatever is drawn, a registered name is looked up and then unregistered, and counted as that.
a_name_goes_its_way_test() ->
    {ok, _, Registered} = run(local_register, new([])),
    ?assertEqual([self()], [whereis(Name) || Name <- registered(), is_ours(Name)]),
    {as, local_whereis, {ok, _, Found}} = run(local_register, Registered),
    {as, local_unregister, {ok, _, Gone}} = run(gen_server_call, Found),
    ?assertEqual([], [Name || Name <- registered(), is_ours(Name)]),
    {ok, _, Again} = run(local_register, Gone),
    ok = ?DRIVER:terminate(normal, Again),
    ?assertEqual([], [Name || Name <- registered(), is_ours(Name)]).

is_ours(Name) -> lists:prefix("weft_de_bench_", atom_to_list(Name)).

what_is_drawn_out_of_turn_is_not_counted_test() ->
    State = new([]),
    ?assertEqual({silent, State}, run(local_whereis, State)),
    ?assertEqual({silent, State}, run(global_unregister, State)),
    %% The only node is this one.
    ?assertEqual({silent, State}, run(remote_call, State)).

%% The node is drawn before the operation: half of all is nothing with two nodes, whatever it is.
%% What was begun waits.
each_operation_has_the_same_share_with_two_nodes_and_with_many_test() ->
    [begin
         Other = 'nobody@nowhere.invalid',
         State = new([{nodes, [node() | lists:duplicate(Count - 1, Other)]}]),
         _ = rand:seed(exsss, {1, 2, 3}),
         {Done, Silent, Last} = lists:foldl(fun name_operation/2, {0, 0, State},
                                            lists:seq(1, 3000)),
         ok = ?DRIVER:terminate(normal, Last),
         ?assertEqual({Count, round(10 * (Count - 1) / Count)},
                      {Count, round(10 * Done / (Done + Silent))})
     end || Count <- [2, 40]].

name_operation(_, {Done, Silent, State}) ->
    case run(local_register, State) of
        {silent, Same} ->
            ?assertEqual(State, Same),
            {Done, Silent + 1, Same};
        {ok, _, Next} -> {Done + 1, Silent, Next};
        {as, _, {ok, _, Next}} -> {Done + 1, Silent, Next}
    end.

a_node_that_is_not_there_is_an_error_test() ->
    State = new([{nodes, ['nobody@nowhere.invalid']}]),
    ?assertMatch({error, {remote_call, {badrpc, nodedown}}, _}, run(remote_call, State)),
    ?assertMatch({error, {spawning, noconnection}, _}, run(spawning, State)).

labels_hold_what_follows_test() ->
    ?assertEqual([global_register, global_unregister, global_whereis, spawning],
                 ?DRIVER:labels([spawning, global_register])).

the_work_takes_its_time_test() ->
    {Us, <<1, 2, 3>>} = timer:tc(?DRIVER, work, [<<1, 2, 3>>, 3, {us, 20000}]),
    ?assert(Us >= 20000),
    ?assertError(function_clause, ?DRIVER:work(<<1, 2>>, 3, {us, 0})).

%% By the clock all of them would be done after the time of one.
those_who_compute_share_a_core_test() ->
    Work = weft_de_bench_computation:new(20000, weft_de_bench_computation:rounds_per_us()),
    Online = erlang:system_flag(schedulers_online, 1),
    try
        {Us, _} = timer:tc(fun() ->
                                   Pids = [spawn_monitor(fun() -> ?DRIVER:work(<<>>, 0, Work) end)
                                           || _ <- lists:seq(1, 4)],
                                   [receive {'DOWN', Monitor, process, Pid, normal} -> ok end
                                    || {Pid, Monitor} <- Pids]
                           end),
        %% It would be 80 ms, if the machine were as fast now as when rounds were counted.
        ?assert(Us >= 40000)
    after erlang:system_flag(schedulers_online, Online)
    end.

%% And so they cost more.
names_are_measured_for_longer_with_quotas_test() ->
    Expected = fun(Figure, Arguments) ->
                   [Cells] = [Of || #{id := Id, cells := Of} <- weft_papers_figures:figures(),
                                    Id =:= Figure],
                   #{minutes := Minutes} =
                       weft_bench_cli:expected(Cells ++ ["--repetitions", "1" | Arguments],
                                               weft_papers:more()),
                   Minutes
               end,
    ?assert(Expected("riak_quota", []) >= Expected("riak", []) + 6),
    [?assertEqual({Nodes, case Nodes of 100 -> 30; _ -> 5 end}, {Nodes, Seconds})
     || #{suite := de_bench, workload := de_global, pairs := Nodes,
          with := #{seconds := Seconds}} <- weft_de_bench_workload:cells(full)].

%% On which names take as long as that.
names_are_measured_on_a_hundred_nodes_test() ->
    [Cells] = [Of || #{id := "de_6", cells := Of} <- weft_papers_figures:figures()],
    ?assertEqual([{100, [stock_mesh]}, {60, [stock_mesh, weft_mesh]}],
                 [{Nodes, Variants} || #{pairs := Nodes, variants := Variants}
                                           <- weft_papers_found:cells(Cells), Nodes >= 60]).

%% And the same for what is compared.
each_repetition_draws_something_else_test() ->
    [Cell | _] = [Of || #{workload := de_names} = Of <- weft_de_bench_workload:cells(quick)],
    Seeds = [proplists:get_value(rng_seed, weft_de_bench_workload:config(
                                             Cell#{repetition => Repetition, quota => 4},
                                             Register))
             || Repetition <- [1, 2, 3], Register <- [global_register, names_register]],
    ?assertMatch([A, A, B, B, C, C] when A =/= B andalso B =/= C andalso A =/= C, Seeds),
    [?assertMatch({ok, _}, weft_load_config:check([{driver, ?DRIVER}, {rng_seed, Seed}]))
     || Seed <- Seeds].

%% With a rate that would be the time that an operation waits for its worker, too.
names_that_are_late_are_among_the_times_test() ->
    Of = fun(Times) ->
             Histogram = weft_load_histogram:new(),
             [ok = weft_load_histogram:record(Us, Histogram) || Us <- Times],
             weft_load_histogram:snapshot(Histogram)
         end,
    Meter = #{service => Of([10, 20]), response => Of([10, 20, 60]), units => 2, failed => 1},
    Outcome = #{total => #{spawning => Meter, global_register => Meter}, elapsed_us => 1000000,
                began_us => 0, errors => [], hung => 0, finished => 0, crashed => [],
                unfinished => 1},
    Values = weft_de_bench_workload:measurements(Outcome, [10, 20, 99, 30, 30],
                                                 checked([{warm_up_s, 0.2}])),
    ?assertEqual([4.0, 4, 2, 1, 200.0, 15.0, 30.0, 3, 0.2, 1.0],
                 [proplists:get_value(Metric, Values)
                  || Metric <- [calls_per_s, calls, failed_operations, unfinished_operations,
                                last_half_percent, spawning_mean_us, register_mean_us,
                                register_count, warm_up_s, measured_s]]),
    ?assertEqual([], [Metric || {Metric, _} <- Values,
                                not lists:keymember(Metric, 1, weft_report_record:metrics())]),
    {ok, WithRate} = weft_load_config:check([{driver, ?DRIVER}, {mode, {rate, 5}}]),
    Rate = weft_de_bench_workload:measurements(Outcome, [10], WithRate),
    ?assertEqual([15.0, 2, undefined],
                 [proplists:get_value(Metric, Rate) || Metric <- [register_mean_us, register_count,
                                                                  last_half_percent]]).

%% Before any node is started.
bad_configurations_are_explained_test_() ->
    [{Expected, ?_assertMatch({match, _}, re:run(refused(Pairs, Options), Expected))}
     || {Pairs, Options, Expected} <-
            [{[{operations, [{dance, 1}]}], #{}, "no \\[dance\\]; there are \\[spawning"},
             {[{operations, [{names_register, 1}]}], #{}, "names_register needs weft"},
             {[{operations, [{channel_call, 1}]}], #{variant => stock}, "channel_call needs weft"},
             {[{operations, [{global_register, 1}]}], #{variant => weft_peers},
              "global_register needs .*mesh"},
             {[{operations, [{group_register, 1}]}], #{variant => weft_mesh},
              "group_register needs groups"},
             {[{packet_size, many}], #{}, "packet_size: a number, 0 or above, not many"},
             {[{delay_remote_function, -1}], #{}, "delay_remote_function: .*, not -1"},
             {[{transitive_connection, maybe_}], #{}, "true or false, not maybe_"},
             {[{duration, infinity}], #{}, "duration: infinity is not"},
             {[], #{groups => 3}, "--groups is for --variant weft_groups"}]].

a_value_of_any_size_is_refused_in_few_words_test() ->
    ?assert(length(refused([{packet_size, lists:seq(1, 100000)}], #{})) < 1000).

%% Keys and weights of the two configurations that DE-Bench comes with. Of operations with no weight
%% nothing is asked, and without groups transitive_connection means nothing.
original_configurations_test_() ->
    Weights = [{spawning, 100}, {remote_call, 100}, {global_register, 0}, {global_unregister, 0},
               {global_whereis, 0}, {local_register, 1}, {local_unregister, 1}, {local_whereis, 1},
               {gen_server_call, 10}, {fsm_server_call, 10}],
    Both = [{duration, 1}, {concurrent, 10}, {report_interval, 6}, {operations, Weights},
            {erlange_nodes, [nonode@nohost]}, {sleep_time_after_ping, 0},
            {sleep_time_before_ping, 0}, {packet_size, 1000}, {delay_remote_function, 100}],
    Template = [{max_random, 100}, {node_name, a}, {initial_global_size, 0},
                {initial_active_process, 0}, {delay_after_bench_finished, 0}],
    [?_assertEqual([], weft_de_bench_config:problems(checked(Pairs), Variant, #{}))
     || Pairs <- [[{transitive_connection, true} | Both],
                  [{transitive_connection, false} | Both ++ Template]],
        Variant <- [stock_mesh, weft_mesh, weft_peers]].

checked(Pairs) ->
    {ok, Config} = weft_load_config:check(Pairs ++ [{driver, ?DRIVER}, {mode, max}]),
    Config.

refused(Pairs, Options) ->
    Defaults = [{driver, ?DRIVER}, {operations, [{spawning, 1}]}],
    {ok, Config} = weft_load_config:check(Pairs ++ Defaults),
    {error, Text} = weft_de_bench:run(Config, "never_made", Options),
    ?assertNot(filelib:is_dir("never_made")),
    Text.

bad_arguments_are_explained_test_() ->
    [?_assertEqual(2, weft_de_bench:main(["/dev/null" | Arguments]))
     || Arguments <- [["--groups", "1"], ["--groups"], ["--nodes", "x"], ["--variant", "what"]]].
