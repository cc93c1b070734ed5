%% SPDX-License-Identifier: Apache-2.0
%% @doc The partition policy on a node that nobody is connected to: sides, messages, applications.
-module(weft_partition_tests).

-include_lib("eunit/include/eunit.hrl").

policy_test_() ->
    {foreach, fun start/0, fun stop/1,
     [fun nobody_counts/1, fun alone_among_three/1, fun applications_are_paused/1]}.

start() ->
    ok = weft_view:new(),
    [ok = application:set_env(weft, Key, Value)
     || {Key, Value} <- [{partition_grace_ms, 0}, {partition_policy, stay}, {partition_nodes, []},
                         {pause_applications, []}]],
    ok.

stop(_) ->
    case whereis(weft_partition) of
        undefined -> ok;
        Pid ->
            unlink(Pid),
            Monitor = monitor(process, Pid),
            exit(Pid, kill),
            receive {'DOWN', Monitor, _, _, _} -> ok end
    end,
    [application:unset_env(weft, Key)
     || Key <- [partition_grace_ms, partition_policy, partition_nodes, pause_applications]].

nobody_counts(_) ->
    ?_test(begin
               {ok, _} = weft_partition:start_link(),
               ?assertEqual(unknown, weft_partition:side()),
               ?assertEqual(#{policy => stay, side => unknown, reachable => [], unreachable => [],
                              paused => []}, weft_partition:status())
           end).

alone_among_three(_) ->
    ?_test(begin
               {ok, _} = weft_partition:start_link(),
               ok = weft_partition:subscribe(),
               Three = [node(), 'b@nowhere', 'c@nowhere'],
               ok = application:set_env(weft, partition_nodes, Three),
               ?assertEqual({minority, #{reachable => [node()],
                                         unreachable => ['b@nowhere', 'c@nowhere']}}, told()),
               ?assertEqual(minority, weft_partition:side()),
               ok = application:set_env(weft, partition_nodes, [node()]),
               ?assertMatch({majority, _}, told())
           end).

applications_are_paused(_) ->
    {timeout, 30, ?_test(begin
        _ = application:ensure_all_started(sasl),
        ok = application:set_env(weft, partition_policy, pause_minority),
        ok = application:set_env(weft, pause_applications, [sasl, not_running]),
        {ok, _} = weft_partition:start_link(),
        ok = weft_partition:subscribe(),
        ok = application:set_env(weft, partition_nodes, [node(), 'b@nowhere', 'c@nowhere']),
        ?assertMatch({minority, _}, told()),
        ?assertMatch(#{paused := [sasl]}, weft_partition:status()),
        ok = weft_test_nodes:until(fun() -> not is_running(sasl) end),
        ok = application:set_env(weft, partition_nodes, [node()]),
        ?assertMatch({majority, _}, told()),
        ?assertMatch(#{paused := []}, weft_partition:status()),
        ok = weft_test_nodes:until(fun() -> is_running(sasl) end),
        ok = application:stop(sasl)
    end)}.

told() ->
    receive {weft_partition, Side, Info} -> {Side, Info} after 20000 -> nothing end.

is_running(App) -> lists:keymember(App, 1, application:which_applications()).
