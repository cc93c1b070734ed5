%% SPDX-License-Identifier: Apache-2.0
%% @doc A node that is lost, or does not get all, or has done its part too early, makes a
%% measurement fail: it neither hangs nor ends the command, and the others do not stand for it. The
%% nodes are processes of this emulator.
-module(weft_bench_lost_nodes_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NO_TRAFFIC, #{connections => 0, packets => 0, bytes => 0}).

%% What a node answers to a call of Module:Function is up to the function.
fake(Roles, Answer) ->
    #{variant => stock, tls => none, are_here => true, quota => none, groups => [],
      peers => maps:from_list([{Role, #{peer => spawn_link(fun() -> peer(Role, Answer) end),
                                        node => name(Role), os_pid => os:getpid(), boot => #{}}}
                               || Role <- Roles])}.

name({Letter, Number}) -> list_to_atom(lists:concat([Letter, Number, "@host"]));
name(Letter) -> list_to_atom(lists:concat([Letter, "@host"])).

peer(Role, Answer) ->
    receive
        {'$gen_call', From, {call, Module, Function, Arguments}} ->
            gen:reply(From, case Answer(Role, Module, Function, Arguments) of
                                lost -> {error, noconnection};
                                Reply -> {ok, Reply}
                            end),
            peer(Role, Answer)
    end.

%% The command goes on with the other cells then: it must not end with a process of its own.
a_node_of_a_mesh_test() ->
    Nodes = fake([{n, 1}, {n, 2}], fun({n, 1}, _, _, _) -> ok;
                                      ({n, 2}, _, _, _) -> lost
                                   end),
    Measure = fun() -> weft_bench_mesh:prepare(Nodes) end,
    {Pid, Monitor} = spawn_monitor(fun() -> exit({caught, catch Measure()}) end),
    receive
        {'DOWN', Monitor, process, Pid, Why} ->
            ?assertMatch({caught, {'EXIT', {{no_answer_of, {n, 2}, _}, _}}}, Why)
    end.

%% Nodes that connect slowly: nobody calls before all are connected, and that is no warm-up.
a_mesh_is_connected_before_it_is_warmed_up_test() ->
    Self = self(),
    Nodes = fake([{n, 1}, {n, 2}],
                 fun(Role, _, connect, _) ->
                         %% pacing: connecting takes so long.
                         receive after 1000 -> Self ! {connected, Role}, ok end;
                    (Role, _, run_callers, _) -> Self ! {called, Role}, {9500.5, [100]};
                    (_, _, start_echo, _) -> ok
                 end),
    {ok, Values} = weft_bench_mesh:run(#{streams => 1, with => #{duration_ms => 10}}, Nodes),
    Of = fun(Metric) -> proplists:get_value(Metric, Values) end,
    ?assert(Of(connect_s) >= 1),
    ?assert(Of(warm_up_s) < 1),
    ?assert(Of(measured_s) < 1),
    ?assertEqual(19001.0, Of(calls_per_s)),
    ?assertMatch([connected, connected, called, called, called, called],
                 [What || {What, _} <- received()]).

received() -> receive {_, {n, _}} = Message -> [Message | received()] after 0 -> [] end.

-define(THREE, [{n, 1}, {n, 2}, {n, 3}]).

%% Nodes that are connected with each other at first, and do what they are measured for. In the end
%% the third one is there, has ended, or is not connected with the second any more.
cluster(End) ->
    Names = [name(Role) || Role <- ?THREE],
    fake(?THREE, fun({n, 3}, _, nodes, _) when End =:= ended -> lost;
                    ({n, 2}, _, nodes, _) when End =:= lost -> Names -- [name({n, 2}),
                                                                         name({n, 3})];
                    (Role, _, nodes, _) -> Names -- [name(Role)];
                    (_, _, join, _) -> os:system_time(microsecond);
                    (_, _, taken, _) -> #{bytes => 1000, processes => 10};
                    (_, _, _, _) -> ok
                 end).

%% Who has less to do, or fewer connections, would take less.
a_cluster_at_rest_that_loses_a_node_test_() ->
    [{lists:concat([Module, " ", End]),
      {timeout, 20,
       fun() ->
               [Cell | _] = Module:cells(quick),
               Of = Cell#{with := #{settle_ms => 0, measure_ms => 20, rest_ms => 0}},
               case End of
                   here -> ?assertMatch({ok, [_, _, _]}, Module:run(Of, cluster(End)));
                   ended -> ?assertError({no_answer_of, {n, 3}, _}, Module:run(Of, cluster(End)));
                   lost -> ?assertError({lost, ['n3@host'], by, {n, 2}},
                                        Module:run(Of, cluster(End)))
               end
       end}}
     || Module <- [weft_bench_idle, weft_bench_connection], End <- [here, ended, lost]].

an_hour_in_which_a_connection_is_lost_test() ->
    ?assertError({lost, ['n3@host'], by, {n, 2}},
                 weft_bench_hour:measured([{stock_mesh, cluster(lost)}],
                                          #{settle_ms => 0, samples => 2, each_ms => 20},
                                          fun(_, _) -> ok end)).

%% Its time is not 0.
what_the_system_does_not_know_has_no_processor_time_test() ->
    #{peers := #{a := Peer} = Peers} = Nodes = fake([a], fun(_, _, _, _) -> ok end),
    Gone = Nodes#{peers := Peers#{a := Peer#{os_pid := "none"}}},
    ?assert(weft_bench_idle:cpu_us(Nodes, [a]) > 0),
    ?assertError({no_processor_time_of, a}, weft_bench_idle:cpu_us(Gone, [a])).

processor_time_is_counted_by_ticks_where_the_scheduler_tells_nothing_test_() ->
    [?_assertEqual(Expected, weft_bench_idle:used_us(Texts, fun() -> 70000 end))
     || {Texts, Expected} <- [{[<<"5000 1 2\n">>, <<"0 0 0\n">>, <<"7000 1 2\n">>], 12},
                              {[<<"0 0 0\n">>, <<"0 0 0\n">>], 70000}, {[<<>>], 70000},
                              {[], 70000}]].

%% Clusters that are there at the same time share the cores: each is told with the nodes of all.
clusters_at_once_share_the_machine_test() ->
    Self = self(),
    Fake = fun(Count) ->
                   Roles = [{n, N} || N <- lists:seq(1, Count)],
                   fake(Roles, fun(_, _, nodes, _) -> [name(Role) || Role <- Roles] end)
           end,
    Cores = erlang:system_info(logical_processors_available),
    Shared = fun(Clusters) ->
                     ok = weft_bench_hour:measured(
                            Clusters, #{settle_ms => 0, samples => 2, each_ms => 20},
                            fun(Variant, Values) -> Self ! {{Variant, Values}, {n, 0}}, ok end),
                     [{Variant, round(Cores * Value), proplists:get_value(clusters_at_once, Values)}
                      || {{Variant, Values}, _} <- received(), {vms_per_core, Value} <- Values]
             end,
    ?assertEqual([{stock_mesh, 2, 1}], Shared([{stock_mesh, Fake(2)}])),
    ?assertEqual([{stock_mesh, 5, 2}, {weft_mesh, 5, 2}],
                 Shared([{stock_mesh, Fake(2)}, {weft_mesh, Fake(3)}])).

a_worker_of_a_group_test_() ->
    {timeout, 10,
     fun() ->
             Nodes = fake([{n, Number} || Number <- [1, 2, 3]],
                          fun({n, 3}, _, talk, _) -> lost;
                             (_, _, talk, _) -> ok;
                             (_, _, heard, _) -> 0;
                             (_, _, traffic, _) -> ?NO_TRAFFIC
                          end),
             ?assertError({talk_failed, _}, weft_bench_groups:talked(uniform, [[2, 3]], Nodes, 3))
     end}.

%% The others have all: without the one that has not, the rate would look well.
a_receiver_of_a_fan_out_test() ->
    Collector = {self(), [self()]},
    Nodes = fake([a, {r, 1}, {r, 2}],
                 fun(a, _, broadcast, _) -> 0;
                    (_, _, start_sinks, _) -> Collector;
                    ({r, 1}, _, await_sinks, _) -> {ok, 1000, 10};
                    ({r, 2}, _, await_sinks, _) -> {error, {a_sink_got, 3, messages_of, 10}}
                 end),
    Cell = #{pairs => 2, with => #{duration_ms => 10}},
    ?assertError({badmatch, {error, {a_sink_got, 3, messages_of, 10}}},
                 weft_bench_fan_out:run(Cell, Nodes)).

a_sender_that_fails_test_() ->
    {timeout, 10, ?_assertError({sender_failed, {badarg, _}},
                                weft_bench_flood:flood(plain, [nobody_has_this_name],
                                                       {binary, 10}, {messages, 1}))}.

%% Of a connection that is lost and comes back there are rates and latencies as of any other.
a_connection_that_is_lost_beside_calls_test_() ->
    [?_assertEqual({Module, Expected},
                   {Module, try element(1, Module:run(Cell, streams(Ends)))
                            catch error:Why -> Why
                            end})
     || {Module, Workload} <- [{weft_bench_latency, call_beside_bulk},
                               {weft_bench_busy, flood_to_busy}],
        [Cell | _] <- [[Of || #{workload := Is} = Of <- Module:cells(quick), Is =:= Workload]],
        {Ends, Expected} <- [{ok, ok}, {{error, {lost, [b@host]}},
                                        {badmatch, {error, {lost, [b@host]}}}}]].

streams(Ends) ->
    fake([a, b], fun(_, _, start_sinks, _) -> {self(), []};
                    (_, _, stop_senders, _) -> Ends;
                    (_, _, stop_sinks, _) -> ok;
                    (_, _, count, _) -> {os:perf_counter(microsecond), 0, 0};
                    (_, weft_bench_ping, run, _) -> #{calls => 1};
                    (_, _, result, _) -> #{elapsed_us => 10, cpu_us => 10, work => 10};
                    (_, _, _, _) -> self()
                 end).

%% Latencies of a node that does nothing any more are not those of a busy one. What computes at a
%% high priority ends by itself, whatever calls take.
a_busy_node_that_has_done_its_work_test_() ->
    {timeout, 30, fun() ->
        ?assertError(computing_ended_before_the_calls, busy(call_to_busy, 20, 7100)),
        ?assertMatch({ok, _}, busy(call_to_busy, 20, 0)),
        ?assertMatch({ok, _}, busy(call_to_high, 20, 1100))
    end}.

%% The calls take longer than is computed, or not.
busy(Workload, DurationMs, TakesMs) ->
    Answer = fun(_, _, start_echo, _) -> self();
                (_, _, begin_to_compute, _) -> self();
                (b, _, _, _) -> ok;
                (a, _, calls, [_, ForMs | _]) when ForMs =:= DurationMs ->
                     %% pacing: the calls take so long.
                     receive after TakesMs -> #{latency_p50_us => 100} end;
                (a, _, calls, _) -> #{latency_p50_us => 100}
             end,
    [Cell | _] = [Of || #{workload := Is} = Of <- weft_bench_busy:cells(quick), Is =:= Workload],
    weft_bench_busy:run(Cell#{with := #{duration_ms => DurationMs}}, fake([a, b], Answer)).
