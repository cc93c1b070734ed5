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
    {ok, Registered} = run(local_register, new([])),
    ?assertEqual([self()], [whereis(Name) || Name <- registered(), is_ours(Name)]),
    {as, local_whereis, {ok, Found}} = run(local_register, Registered),
    {as, local_unregister, {ok, Gone}} = run(gen_server_call, Found),
    ?assertEqual([], [Name || Name <- registered(), is_ours(Name)]),
    {ok, Again} = run(local_register, Gone),
    ok = ?DRIVER:terminate(normal, Again),
    ?assertEqual([], [Name || Name <- registered(), is_ours(Name)]).

is_ours(Name) -> lists:prefix("weft_de_bench_", atom_to_list(Name)).

what_is_drawn_out_of_turn_is_not_counted_test() ->
    State = new([]),
    ?assertEqual({silent, State}, run(local_whereis, State)),
    ?assertEqual({silent, State}, run(global_unregister, State)),
    %% The only node is this one.
    ?assertEqual({silent, State}, run(remote_call, State)).

a_node_that_is_not_there_is_an_error_test() ->
    State = new([{nodes, ['nobody@nowhere.invalid']}]),
    ?assertMatch({error, {remote_call, {badrpc, nodedown}}, _}, run(remote_call, State)),
    ?assertMatch({error, {spawning, noconnection}, _}, run(spawning, State)).

labels_hold_what_follows_test() ->
    ?assertEqual([global_register, global_unregister, global_whereis, spawning],
                 ?DRIVER:labels([spawning, global_register])).

the_work_takes_its_time_test() ->
    {Us, <<1, 2, 3>>} = timer:tc(?DRIVER, work, [<<1, 2, 3>>, 3, 20000]),
    ?assert(Us >= 20000),
    ?assertError(function_clause, ?DRIVER:work(<<1, 2>>, 3, 0)).

unknown_operations_are_named_test() ->
    {ok, Config} = weft_load_config:check([{driver, ?DRIVER}, {operations, [{dance, 1}]}]),
    {error, Text} = weft_de_bench:run(Config, "never_made", #{}),
    ?assertMatch({_, _}, binary:match(list_to_binary(Text), <<"dance">>)).
