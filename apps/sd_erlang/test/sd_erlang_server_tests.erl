%% SPDX-License-Identifier: Apache-2.0
-module(sd_erlang_server_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 30000).
-define(GROUPS, #{g => [node(), 'n1@h', 'n2@h']}).

%% A process of the version before had two fields.
old_state_test() ->
    Subscribers = #{self() => make_ref()},
    {ok, State} = sd_erlang_server:code_change("0.1.0", {state, Subscribers, #{}}, []),
    ?assertEqual({ok, State}, sd_erlang_server:code_change("0.1.0", State, [])),
    ?assertEqual({reply, [self()], State},
                 sd_erlang_server:handle_call(monitoring, {self(), tag}, State)),
    ok = net_kernel:monitor_nodes(false, #{node_type => all}),
    Node = 'n1@127.0.0.1',
    {noreply, Up} = sd_erlang_server:handle_info({nodeup, Node, #{node_type => visible}}, State),
    ?assertMatch({noreply, State}, sd_erlang_server:handle_info({nodedown, Node, #{}}, Up)).

%% Of hidden nodes that are not in the cluster, as tools are, nobody is told.
tool_test() ->
    {ok, State} = sd_erlang_server:code_change("0.1.0", {state, #{}, #{}}, []),
    ok = net_kernel:monitor_nodes(false, #{node_type => all}),
    Tool = 'tool@127.0.0.1',
    ?assertEqual({noreply, State},
                 sd_erlang_server:handle_info({nodeup, Tool, #{node_type => hidden}}, State)).

%% --- with processes of the test in place of those of weft's groups ----------------------------

with_weft_test_() ->
    [{Name, {timeout, 60, fun() -> with_weft(Test) end}}
     || {Name, Test} <- [{"again", fun what_starts_anew_is_told_again/1},
                         {"difference", fun of_what_is_still_there_nothing_is_told/1},
                         {"sync", fun the_groups_of_the_last_sync_count/1},
                         {"attributes", fun no_change_of_attributes_is_lost/1}]].

what_starts_anew_is_told_again(Server) ->
    [begin
         ok = ended(Process),
         ok = begun(Process, ['n1@h', 'n2@h']),
         ok = is_told(Process, Server)
     end || Process <- [weft_group_monitor, weft_group_names, weft_group_monitor]].

is_told(weft_group_monitor, Server) ->
    asked(weft_group_monitor, {subscribe, all, Server});
is_told(weft_group_names, _Server) ->
    ok = asked(weft_group_names, {configure, #{names_per_pid => one}}),
    asked(weft_groups, {command, {configure, ?GROUPS}}).

%% The new process finds the other nodes by and by.
of_what_is_still_there_nothing_is_told(Server) ->
    _ = told_before(),
    ok = sd_erlang_server:monitor_nodes(self(), true),
    ok = ended(weft_group_monitor),
    ok = begun(weft_group_monitor, []),
    ok = is_told(weft_group_monitor, Server),
    Server ! {weft_group, g, {up, 'n1@h'}},
    ?assertEqual([], told(Server)),
    ok = ended(weft_group_monitor),
    ok = begun(weft_group_monitor, ['n1@h', 'n3@h']),
    ok = is_told(weft_group_monitor, Server),
    weft_view:put(weft_groups, {group, g}, [node(), 'n1@h', 'n3@h']),
    Server ! settle,
    ?assertEqual([{nodedown, 'n2@h'}, {nodeup, 'n3@h'}], told(Server)).

the_groups_of_the_last_sync_count(_Server) ->
    Groups = #{g => [node()], other => ['n9@h']},
    ok = application:set_env(kernel, s_groups, [{Name, normal, Nodes}
                                                || {Name, Nodes} <- maps:to_list(Groups)]),
    try
        ?assertEqual(ok, s_group:sync()),
        ok = asked(weft_groups, {command, {configure, Groups}}),
        ?assertEqual([g, other], proplists:get_value(sync_error, s_group:info())),
        weft_view:put(weft_groups, {group, other}, ['n9@h']),
        ?assertEqual([g], proplists:get_value(sync_error, s_group:info())),
        ok = ended(weft_group_names),
        ok = begun(weft_group_names, []),
        ok = asked(weft_group_names, {configure, #{names_per_pid => one}}),
        ok = asked(weft_groups, {command, {configure, Groups}})
    after
        application:unset_env(kernel, s_groups)
    end.

%% All have begun before the first change is made.
no_change_of_attributes_is_lost(_Server) ->
    ok = application:set_env(weft, attributes, #{}),
    {ok, Attributes} = gen_server:start({local, weft_attributes}, weft_attributes, [], []),
    try
        ok = sys:suspend(Attributes),
        Callers = [spawn_monitor(fun() -> exit(s_group:add_attributes([N])) end)
                   || N <- lists:seq(1, 20)],
        [weft_test_nodes:until(fun() -> process_info(Pid, status) =:= {status, waiting} end)
         || {Pid, _} <- Callers],
        ok = sys:resume(Attributes),
        [receive {'DOWN', Ref, process, Pid, Result} -> ?assertEqual(ok, Result)
         after ?MS -> error(no_answer)
         end || {Pid, Ref} <- Callers],
        ?assertEqual(lists:seq(1, 20), s_group:registered_attributes()),
        ?assertEqual(ok, s_group:remove_attributes(lists:seq(1, 19))),
        ?assertEqual([20], s_group:registered_attributes()),
        ?assertError(function_clause, s_group:add_attributes(no_list))
    after
        gen_server:stop(Attributes),
        application:unset_env(weft, attributes)
    end,
    ?assertEqual({error, not_running}, s_group:add_attributes([1])).

with_weft(Test) ->
    ok = weft_view:new(),
    weft_view:put(weft_groups, {group, g}, map_get(g, ?GROUPS)),
    [ok = begun(Process, ['n1@h', 'n2@h'])
     || Process <- [weft_groups, weft_group_names, weft_group_monitor]],
    {ok, Server} = sd_erlang_server:start_link(?GROUPS),
    [ok = is_told(Process, Server) || Process <- [weft_group_names, weft_group_monitor]],
    ok = nothing_is_left(),
    try Test(Server)
    after
        gen_server:stop(Server),
        [ok = ended(Process)
         || Process <- [weft_groups, weft_group_names, weft_group_monitor]],
        ets:delete(weft_view)
    end.

%% It asks more than once who is there.
nothing_is_left() ->
    receive {asked, _, _} -> nothing_is_left() after 0 -> ok end.

%% Answers what that process of weft would, and tells the test what it is asked.
begun(Process, Connected) ->
    Test = self(),
    Pid = spawn(fun() -> answering(Process, Connected, Test) end),
    true = register(Process, Pid),
    ok.

ended(Process) ->
    Pid = whereis(Process),
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

answering(Process, Connected, Test) ->
    receive
        {'$gen_call', From, Request} ->
            Test ! {asked, Process, Request},
            gen_server:reply(From, case Process of
                                       weft_group_monitor -> {ok, Connected};
                                       _ -> ok
                                   end)
    end,
    answering(Process, Connected, Test).

asked(Process, Request) ->
    receive {asked, Process, Request} -> ok
    after ?MS -> error({not_asked, Process, Request})
    end.

%% What the server has told this process of nodes.
told(Server) ->
    _ = sys:get_state(Server),
    told_before().

told_before() ->
    receive {Change, Node} when Change =:= nodeup; Change =:= nodedown ->
        [{Change, Node} | told_before()]
    after 0 -> []
    end.
