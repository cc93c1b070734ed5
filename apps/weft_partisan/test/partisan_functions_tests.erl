%% SPDX-License-Identifier: Apache-2.0
%% The functions of Partisan 5 are there: those that weft has not say so.
-module(partisan_functions_tests).

-include_lib("eunit/include/eunit.hrl").

all_functions_test_() ->
    [{atom_to_list(Module), ?_assertEqual([], Functions -- Module:module_info(exports))}
     || {Module, Functions} <- functions()].

%% As version 5.0.3 exports them, without what its own processes call.
functions() ->
    [{partisan,
      [{start, 0}, {stop, 0}, {cancel_timer, 1}, {cancel_timer, 2}, {demonitor, 1}, {demonitor, 2},
       {disconnect_node, 1}, {exit, 2}, {is_alive, 0}, {is_pid, 1}, {is_process_alive, 1},
       {is_reference, 1}, {make_ref, 0}, {monitor, 1}, {monitor, 2}, {monitor, 3}, {node, 0},
       {node, 1}, {process_info, 1}, {process_info, 2}, {self, 0}, {send, 2}, {send, 3},
       {send_after, 3}, {send_after, 4}, {spawn, 2}, {spawn, 4}, {spawn_monitor, 2},
       {spawn_monitor, 4}, {whereis, 1}, {monitor_node, 2}, {monitor_node, 3}, {monitor_nodes, 1},
       {monitor_nodes, 2}, {broadcast, 2}, {cast_message, 2}, {cast_message, 3}, {cast_message, 4},
       {channel_opts, 1}, {default_channel, 0}, {forward_message, 2}, {forward_message, 3},
       {forward_message, 4}, {is_connected, 1}, {is_connected, 2}, {is_fully_connected, 1},
       {is_local, 1}, {is_local_name, 1}, {is_local_name, 2}, {is_local_pid, 1},
       {is_local_pid, 2}, {is_local_reference, 1}, {is_local_reference, 2}, {is_self, 1},
       {join, 1}, {kill_connections, 1}, {leave, 0}, {node_spec, 0}, {node_spec, 1},
       {node_spec, 2}, {nodes, 0}, {nodes, 1}, {nodestring, 0}, {self, 1}]},
     {partisan_gen_server,
      [{start, 3}, {start, 4}, {start_link, 3}, {start_link, 4}, {start_monitor, 3},
       {start_monitor, 4}, {stop, 1}, {stop, 3}, {call, 2}, {call, 3}, {send_request, 2},
       {send_request, 3}, {wait_response, 2}, {receive_response, 2}, {check_response, 2},
       {cast, 2}, {cast, 3}, {reply, 2}, {abcast, 2}, {abcast, 3}, {multi_call, 2},
       {multi_call, 3}, {multi_call, 4}, {enter_loop, 3}, {enter_loop, 4}, {enter_loop, 5}]},
     {partisan_peer_service,
      [{add_sup_callback, 1}, {broadcast_members, 0}, {broadcast_members, 1},
       {cancel_exchanges, 1}, {connections, 0}, {decode, 1}, {exchanges, 0}, {exchanges, 1},
       {get_local_state, 0}, {inject_partition, 2}, {join, 1}, {leave, 0}, {leave, 1},
       {manager, 0}, {member, 1}, {members, 0}, {members_for_orchestration, 0}, {on_down, 2},
       {on_down, 3}, {on_up, 2}, {on_up, 3}, {partitions, 0}, {reserve, 1},
       {resolve_partition, 1}, {stop, 0}, {stop, 1}, {sync_join, 1}, {update_members, 1}]},
     {partisan_rpc, [{call, 4}, {call, 5}]}].

what_has_no_meaning_here_says_so_test_() ->
    [?_assertError({not_supported, {partisan_peer_service, Function, _}, [_ | _]},
                   apply(partisan_peer_service, Function, Args))
     || {Function, Args} <- [{exchanges, []}, {exchanges, ['n@h']}, {cancel_exchanges, [all]},
                             {get_local_state, []}, {broadcast_members, [1000]}]].

%% The options of a call, as Partisan 5 has them.
rpc_test() ->
    [?assertEqual(3, partisan_rpc:call(node(), erlang, '+', [1, 2], TimeoutOrOptions))
     || TimeoutOrOptions <- [1000, #{timeout => 1000}, [{timeout, 1000}, {channel, votes}]]],
    ?assertError({unknown_option, clok, _}, partisan_rpc:call(node(), erlang, node, [],
                                                              #{clok => 1})).

a_timer_for_a_name_of_this_node_test() ->
    true = register(?MODULE, self()),
    _ = partisan:send_after(0, {?MODULE, node()}, now),
    ?assertEqual(now, receive Message -> Message after 5000 -> nothing end),
    true = unregister(?MODULE),
    ?assertError({not_supported, {send_after, _}, _}, partisan:send_after(0, {?MODULE, n@h}, now)).

what_is_local_test() ->
    [Self, Reference] = [self(), make_ref()],
    ?assertEqual([true, true, true, false, false],
                 [partisan:is_local_name(Name) || Name <- [a, {a, node()}, {b, node()}, {a, n@h},
                                                           Self]]),
    ?assertEqual([true, true, false, false],
                 [partisan:is_local_name(Name, a) || Name <- [a, {a, node()}, b, {a, n@h}]]),
    ?assert(partisan:is_local_pid(Self, Self)),
    ?assertNot(partisan:is_local_pid(Self, whereis(init))),
    ?assert(partisan:is_local_reference(Reference, Reference)),
    ?assertNot(partisan:is_local_reference(Reference, make_ref())).

%% A server of Partisan that was started by other means; its requests and answers.
requests_test() ->
    Pid = proc_lib:spawn_link(partisan_gen_server, enter_loop,
                              [partisan_functions_server, [{channel, votes}], state]),
    Id = partisan_gen_server:send_request(Pid, get),
    ?assertEqual({reply, state}, partisan_gen_server:wait_response(Id, 5000)),
    Other = partisan_gen_server:send_request(Pid, get, [{channel, votes}]),
    ?assertEqual({reply, state}, partisan_gen_server:receive_response(Other, 5000)),
    Last = partisan_gen_server:send_request(Pid, get),
    ?assertEqual(no_reply, partisan_gen_server:check_response(another_message, Last)),
    ?assertEqual({reply, state}, receive Answer -> partisan_gen_server:check_response(Answer, Last)
                                 after 5000 -> nothing
                                 end),
    ok = partisan_gen_server:stop(Pid).
