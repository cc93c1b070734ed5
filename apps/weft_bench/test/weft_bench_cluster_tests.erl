%% SPDX-License-Identifier: Apache-2.0
%% @doc Shapes of clusters. Clusters themselves are in weft_orbit_SUITE and weft_aco_SUITE.
-module(weft_bench_cluster_tests).

-include_lib("eunit/include/eunit.hrl").

without_groups_all_are_in_one_test() ->
    ?assertEqual(#{nodes => 3, groups => [[1, 2, 3]]}, weft_bench_cluster:shape(3, [])).

groups_get_names_and_nodes_test() ->
    Shape = weft_bench_cluster:shape(5, [[1, 2, 3], [3, 4, 5]]),
    ?assertEqual([{n, 1}, {n, 2}, {n, 3}, {n, 4}, {n, 5}], weft_bench_cluster:roles(Shape)),
    NameOf = fun({n, Number}) -> list_to_atom("n" ++ integer_to_list(Number)) end,
    ?assertEqual(#{seeds => [n1], groups => #{group_1 => [n1, n2, n3], group_2 => [n3, n4, n5]}},
                 weft_bench_cluster:named(Shape, NameOf)).

%% Clusters of different sizes are compared with each other.
nodes_of_all_clusters_have_the_same_flags_test() ->
    Flags = fun(Count) ->
                weft_bench_nodes:flags(stock, {cluster, weft_bench_cluster:shape(Count, [])})
            end,
    ?assertEqual([Flags(1)], lists:usort([Flags(Count) || Count <- lists:seq(1, 40)])),
    ?assertEqual([Flags(1)], lists:usort([weft_bench_nodes:flags(stock, {fan, Count})
                                          || Count <- [2, 10]])),
    ?assertEqual(["+S", "1:1"], lists:sublist(Flags(1) -- weft_bench_nodes:flags(stock, pair), 2)),
    ?assertEqual([weft_bench_nodes:flags(stock, pair)],
                 lists:usort([weft_bench_nodes:flags(stock, Layout)
                              || Layout <- [alone, trio, {cluster, (weft_bench_cluster:shape(3, []))
                                                                       #{schedulers => all}}]])).

nodes_that_are_not_there_can_not_be_reached_test() ->
    ?assertEqual(['none@nowhere'], weft_bench_cluster:unreachable([node(), 'none@nowhere'])).

bytes_of_a_connection_that_was_closed_are_counted_test() ->
    Bytes = 300000,
    Before = weft_bench_cluster:received_bytes(),
    ok = received_and_closed(Bytes),
    Received = weft_bench_cluster:received_bytes() - Before,
    ?assert(Received >= Bytes),
    ?assert(Received < 2 * Bytes).

what_comes_from_another_program_is_not_counted_test() ->
    Before = weft_bench_cluster:received_bytes(),
    Program = open_port({spawn, "sh -c 'head -c 300000 /dev/zero; read line'"}, [binary]),
    ok = received_from(Program, 300000),
    ?assert(weft_bench_cluster:received_bytes() - Before < 300000),
    true = port_close(Program).

received_from(_Program, 0) -> ok;
received_from(Program, Bytes) ->
    receive
        {Program, {data, Data}} -> received_from(Program, Bytes - byte_size(Data))
    after 10000 -> {late, Bytes}
    end.

received_and_closed(Bytes) ->
    {ok, Listening} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listening),
    {ok, From} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary]),
    {ok, To} = gen_tcp:accept(Listening),
    ok = gen_tcp:send(From, binary:copy(<<0>>, Bytes)),
    {ok, Received} = gen_tcp:recv(To, Bytes),
    ?assertEqual(Bytes, byte_size(Received)),
    lists:foreach(fun gen_tcp:close/1, [From, To, Listening]).
