%% SPDX-License-Identifier: Apache-2.0
%% @doc SD Erlang's check list on five real nodes, g1 = {1, 2, 3} and g2 = {3, 4, 5}: on the stock
%% carrier, and on weft, where the topology is these groups. The cases have the same nodes, on which
%% the applications are started anew.
-module(s_group_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [node_name/1]).

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2]).
-export([nodes_see_their_groups/1, names_are_per_group/1, crash_and_return/1,
         groups_change_at_run_time/1, results_and_errors/1, free_nodes/1,
         free_nodes_over_a_circuit/1, two_initiators/1, attributes_choose_nodes/1,
         the_module_attr/1, without_the_application/1]).
-export([holder/0, listen/1, messages/0, attempt/3]).

-define(NAMES, [n1, n2, n3, n4, n5]).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [{group, stock}, {group, weft}].

%% Those that kill nodes or change much are the last, or have their nodes alone.
groups() ->
    [{stock, [], [{group, two_stock}] ++ more(five)},
     {weft, [], [{group, five}, {group, hub}] ++ more(two)},
     {five, [], [nodes_see_their_groups, names_are_per_group, attributes_choose_nodes,
                 two_initiators, groups_change_at_run_time, results_and_errors,
                 crash_and_return]},
     {two, [], [free_nodes]},
     {hub, [], [free_nodes_over_a_circuit]},
     {two_stock, [], [the_module_attr, free_nodes, without_the_application]}].

%% What is the same on both carriers.
more(Group) -> [{group, Group} || os:getenv("FULL") =:= "1"].

init_per_suite(Config) -> Config.

end_per_suite(_Config) -> ok.

init_per_group(Carrier, Config) when Carrier =:= stock; Carrier =:= weft ->
    [{carrier, Carrier} | Config];
init_per_group(five, Config) ->
    Placed = weft_test_nodes:begin_suite(Config),
    [{nodes, [boot_in_groups(Name, Placed) || Name <- ?NAMES]} | Placed];
init_per_group(hub, Config) ->
    weft_test_nodes:begin_suite(Config);
init_per_group(_Two, Config) ->
    Placed = weft_test_nodes:begin_suite(Config),
    Options = carrier(?config(carrier, Config), []),
    [{nodes, [start(boot(Name, Options, [], Placed)) || Name <- [n1, n2]]} | Placed].

end_per_group(Carrier, _Config) when Carrier =:= stock; Carrier =:= weft -> ok;
end_per_group(_Nodes, Config) -> weft_test_nodes:end_suite(Config).

nodes_see_their_groups(Config) ->
    [N1, _, N3, N4, _] = Nodes = start_five(Config),
    ?assertEqual({[g1], [g2]}, s(N1, s_groups, [])),
    ?assertEqual({[g1, g2], []}, s(N3, s_groups, [])),
    ?assertEqual([{g1, names([n1, n2, n3])}], s(N1, own_s_groups, [])),
    ?assertEqual(names([n1, n2, n3]), s(N1, own_nodes, [])),
    ?assertEqual(names(?NAMES), s(N3, own_nodes, [])),
    ?assertEqual(names([n3, n4, n5]), s(N4, own_nodes, [g2])),
    ?assertEqual([], s(N4, own_nodes, [g1])),
    Info = s(N4, info, []),
    ?assertEqual([synced, [g2], names([n3, n5]), [], [], [{g1, names([n1, n2, n3])}]],
                 [proplists:get_value(Key, Info)
                  || Key <- [state, own_group_names, synced_nodes, sync_error, no_contact,
                             other_groups]]),
    ?assertEqual([ok || _ <- Nodes], [s(Node, sync, []) || Node <- Nodes]),
    groups_start_anew(N1, N3).

%% Under who hears of nodes, and with it what this application has said of groups and names.
groups_start_anew(N1, N3) ->
    until(fun() -> is_all_up(N1) end),
    Pid = process(N1),
    ?assertEqual(yes, s(N1, register_name, [g1, one, Pid])),
    ok = call(N1, ?MODULE, listen, [true]),
    true = call(N1, erlang, exit, [call(N1, erlang, whereis, [weft_group_monitor]), kill]),
    ?assertEqual(ok, s(N3, remove_nodes, [g1, names([n2])])),
    until(fun() -> last_told(n2, N1) =:= nodedown andalso last_told(n3, N1) =/= nodedown end),
    %% The name is still there, and the rule of one name holds for this and for new groups.
    Refused = {no, name_or_pid_already_registered},
    until(fun() -> {s(N1, whereis_name, [g1, one]), s(N1, register_name, [g1, two, Pid])}
                       =:= {Pid, Refused}
          end),
    {ok, late, _} = s(N1, new_s_group, [late, [node_name(n1)]]),
    ?assertEqual([yes, Refused],
                 [s(N1, register_name, [late, Name, Pid]) || Name <- [one, two]]),
    true = call(N1, erlang, exit, [call(N1, erlang, whereis, [listener]), kill]).

last_told(Name, Node) ->
    Of = node_name(Name),
    case [Change || {Change, Other} <- call(Node, ?MODULE, messages, []), Other =:= Of] of
        [] -> nothing;
        Changes -> lists:last(Changes)
    end.

%% Those of one group connect when they know of it, each pair in its own time. The groups hear of
%% that somewhat later.
is_all_up(Node) ->
    {ok, Up} = call(Node, weft_group, monitor_nodes, [all, true]),
    s(Node, own_nodes, []) -- [weft_test_nodes:name(Node) | Up] =:= [].

names_are_per_group(Config) ->
    [N1, N2, N3, N4, N5] = start_five(Config),
    [A, B, C] = [process(Node) || Node <- [N1, N2, N4]],
    ?assertEqual(yes, s(N1, register_name, [g1, a, A])),
    [until(fun() -> s(Node, whereis_name, [g1, a]) =:= A end) || Node <- [N1, N2, N3]],
    %% n4 knows of g1 and asks there; n3 is in g2 too, and has a name for itself there.
    ?assertEqual(A, s(N4, whereis_name, [g1, a])),
    ?assertEqual(undefined, s(N4, whereis_name, [g2, a])),
    ?assertEqual(yes, s(N4, register_name, [g2, a, C])),
    [until(fun() -> s(Node, whereis_name, [g2, a]) =:= C end) || Node <- [N3, N5]],
    ?assertEqual(A, s(N3, whereis_name, [g1, a])),
    ?assertEqual(C, s(N1, whereis_name, [node_name(n5), g2, a])),
    %% Taken, or the process has a name in this group; in another group it may have one.
    ?assertEqual({no, name_or_pid_already_registered}, s(N2, register_name, [g1, a, B])),
    ?assertEqual({no, name_or_pid_already_registered}, s(N1, register_name, [g1, b, A])),
    ?assertEqual({no, cannot_register_in_remote_group}, s(N4, register_name, [g1, b, C])),
    ?assertEqual({no, cannot_re_register_in_remote_group},
                 s(N4, re_register_name, [g1, a, C])),
    ?assertEqual({no, cannot_unregister_from_remote_group}, s(N4, unregister_name, [g1, a])),
    ?assertEqual(yes, s(N2, re_register_name, [g1, a, B])),
    [until(fun() -> s(Node, whereis_name, [g1, a]) =:= B end) || Node <- [N1, N2, N3]],
    ?assertEqual([{g1, a}], s(N1, registered_names, [{s_group, g1}])),
    ?assertEqual([{g2, a}], s(N1, registered_names, [{s_group, g2}])),
    ?assertEqual([{g1, a}, {g2, a}], s(N5, registered_names, [{node, node_name(n3)}])),
    ?assertEqual({error, no_information_about_remote_group},
                 s(N1, registered_names, [{s_group, g9}])),
    %% From inside, from outside, to a certain node.
    [?assertEqual(B, s(Node, send, [g1, a, {hello, N}])) || {N, Node} <- [{1, N1}, {4, N4}]],
    ?assertEqual(B, s(N1, send, [node_name(n3), g1, a, {hello, 3}])),
    until(fun() -> lists:sort(held(N2, B)) =:= [{hello, 1}, {hello, 3}, {hello, 4}] end),
    ?assertEqual({badarg, {g1, none, x}}, s(N1, send, [g1, none, x])),
    ?assertEqual({badarg, {g9, a, x}}, s(N1, send, [g9, a, x])),
    ?assertEqual(ok, s(N3, unregister_name, [g1, a])),
    [until(fun() -> s(Node, whereis_name, [g1, a]) =:= undefined end) || Node <- [N1, N2]],
    %% A name ends with its process.
    true = call(N4, erlang, exit, [C, kill]),
    [until(fun() -> s(Node, whereis_name, [g2, a]) =:= undefined end) || Node <- [N3, N4, N5]].

crash_and_return(Config) ->
    [N1, N2, N3, N4, _] = start_five(Config),
    Pid = process(N1),
    yes = s(N1, register_name, [g1, a, Pid]),
    Lost = process(N2),
    yes = s(N2, register_name, [g1, lost, Lost]),
    until(fun() -> s(N3, whereis_name, [g1, lost]) =:= Lost end),
    [until(fun() -> is_all_up(Node) end) || Node <- [N1, N3, N4]],
    [ok = call(Node, ?MODULE, listen, [true]) || Node <- [N1, N3, N4]],
    ok = one_is_silent(N2, N3, N4, Pid),
    weft_test_nodes:kill(N2),
    Down = {nodedown, node_name(n2)},
    [until(fun() -> call(Node, ?MODULE, messages, []) =:= [Down] end) || Node <- [N1, N3]],
    until(fun() -> s(N1, whereis_name, [g1, lost]) =:= undefined end),
    ?assertEqual(names([n2]), proplists:get_value(no_contact, s(N1, info, []))),
    ?assertEqual(names([n1, n2, n3]), s(N1, own_nodes, [])),
    Back = start(boot_in_groups(n2, Config)),
    [until(fun() -> call(Node, ?MODULE, messages, []) =:= [Down, {nodeup, node_name(n2)}] end)
     || Node <- [N1, N3]],
    until(fun() -> s(Back, whereis_name, [g1, a]) =:= Pid end),
    ?assertEqual([], call(N4, ?MODULE, messages, [])).

%% Who is not in the group asks three of its members, and does not wait for the silent one.
one_is_silent(N2, N3, N4, Pid) ->
    until(fun() -> s(N3, whereis_name, [g1, a]) =:= Pid end),
    ok = weft_test_nodes:pause(N2),
    lists:foreach(fun({Name, Expected}) ->
                      {Us, Found} = timer:tc(fun() -> s(N4, whereis_name, [g1, Name]) end),
                      ?assertEqual({Name, Expected}, {Name, Found}),
                      ?assert(Us < 4000000, {Name, Us})
                  end, [{a, Pid}, {nobody, undefined}]).

%% The order of the test that came with the original's tools.
groups_change_at_run_time(Config) ->
    [N1, N2, N3, N4, _] = Nodes = start_five(Config),
    ok = s(N1, delete_s_group, [g1]),
    until_groups(Nodes, #{g2 => [n3, n4, n5]}),
    ?assertEqual(undefined, s(N1, s_groups, [])),
    ?assertEqual({ok, g1, names([n1, n2])}, s(N1, new_s_group, [g1, names([n2, n1])])),
    ?assertEqual({ok, g1, names([n3])}, s(N1, add_nodes, [g1, names([n3])])),
    until_groups(Nodes, #{g1 => [n1, n2, n3], g2 => [n3, n4, n5]}),
    Pid = process(N1),
    yes = s(N1, register_name, [g1, a, Pid]),
    until(fun() -> s(N3, whereis_name, [g1, a]) =:= Pid end),
    ?assertEqual(ok, s(N1, remove_nodes, [g1, names([n3])])),
    until(fun() -> s(N3, s_groups, []) =:= {[g2], [g1]} end),
    ?assertEqual({no, cannot_register_in_remote_group}, s(N3, register_name, [g1, b, Pid])),
    ?assertEqual(names([n1, n2]), s(N1, own_nodes, [])),
    %% As it is not configured, and is not made.
    ?assertEqual(ok, s(N1, sync, [])),
    ?assertEqual([g1], proplists:get_value(sync_error, s(N1, info, []))),
    ?assertEqual(names([n1, n2]), s(N1, own_nodes, [])),
    ?assertEqual({ok, g1, names([n3])}, s(N2, add_nodes, [g1, names([n3])])),
    until(fun() -> s(N3, whereis_name, [g1, a]) =:= Pid end),
    %% A group that was made at run time is known to those outside as well.
    ?assertEqual(Pid, s(N4, whereis_name, [g1, a])),
    {ok, Made, _} = s(N4, new_s_group, [names([n4])]),
    ?assertEqual({lists:sort([g2, Made]), [g1]}, s(N4, s_groups, [])).

results_and_errors(Config) ->
    [N1, _, _, N4, _] = start_five(Config),
    Here = node_name(n1),
    [?assertEqual({Function, Args, Expected}, {Function, Args, s(N1, Function, Args)})
     || {Function, Args, Expected} <-
            [{new_s_group, [undefined, [Here]], {error, reserved_s_group_name}},
             {new_s_group, [no_group, [Here]], {error, reserved_s_group_name}},
             {new_s_group, [new, []], {ok, new, []}},
             {new_s_group, [new, names([n2])], {error, remote_s_group}},
             {new_s_group, [g1, [Here]], {error, s_group_name_is_in_use}},
             {new_s_group, [new, [Here, here]], {error, {not_a_node, here}}},
             {add_nodes, [g1, []], {ok, g1, []}},
             {add_nodes, [g1, [Here]], {ok, g1, []}},
             {add_nodes, [g1, names([n2])], {ok, g1, names([n2])}},
             {add_nodes, [g2, names([n2])], {error, node_does_not_belong_to_the_s_group}},
             {add_nodes, [g9, names([n2])], {error, node_does_not_belong_to_the_s_group}},
             {remove_nodes, [g1, []], ok},
             {remove_nodes, [g1, [Here]], {error, "cannot_remove_itself"}},
             {remove_nodes, [g1, names([n5])], ok},
             {remove_nodes, [g2, names([n3])], {error, {"node_does_not_belong_to_s_group", g2}}},
             {remove_nodes, [g9, names([n3])], {error, {"node_does_not_belong_to_s_group", g9}}},
             {delete_s_group, [g2], {error, {"remote_s_group", g2}}},
             {delete_s_group, [g9], {error, {"remote_s_group", g9}}},
             {monitor_nodes, [yes], {error, not_boolean}},
             {own_nodes, [g9], []},
             {own_nodes, [undefined], []},
             {whereis_name, [g9, a], undefined},
             {whereis_name, ['nobody@nowhere', g1, a], undefined},
             {registered_names, [{node, 'nobody@nowhere'}], []}]],
    %% A node that is not there is in the group, but not in the result.
    ?assertEqual({ok, "any term", names([n1, n2])},
                 s(N1, new_s_group, ["any term", names([n1, n2, gone])])),
    ?assertEqual(names([gone]), proplists:get_value(no_contact, s(N1, info, []))),
    ?assertEqual({error, s_group_name_is_in_use},
                 s(N1, new_s_group, ["any term", names([n1])])),
    Pid = process(N1),
    ?assertEqual(yes, s(N1, register_name, ["any term", a, Pid])),
    until(fun() -> s(N4, whereis_name, ["any term", a]) =:= Pid end).

free_nodes(Config) ->
    [N1, N2] = Nodes = ?config(nodes, Config),
    true = call(N1, net_kernel, connect_node, [node_name(n2)]),
    ?assertEqual(undefined, s(N1, s_groups, [])),
    ?assertEqual([], s(N1, own_s_groups, [])),
    ?assertEqual(names([n1, n2]), s(N1, own_nodes, [])),
    ?assertEqual(names([n1, n2]), s(N1, own_nodes, [undefined])),
    ?assertEqual(no_conf, proplists:get_value(state, s(N1, info, []))),
    Pid = process(N1),
    ?assertEqual(yes, s(N1, register_name, [undefined, a, Pid])),
    until(fun() -> s(N2, whereis_name, [undefined, a]) =:= Pid end),
    ?assertEqual({no, cannot_register_in_remote_group}, s(N1, register_name, [g1, a, Pid])),
    ?assertEqual([{undefined, a}], s(N2, registered_names, [{node, node_name(n1)}])),
    %% A free node hears of all nodes.
    [ok = call(Node, ?MODULE, listen, [true]) || Node <- Nodes],
    weft_test_nodes:kill(N2),
    until(fun() -> call(N1, ?MODULE, messages, []) =:= [{nodedown, node_name(n2)}] end).

%% Connections over the hub are hidden. So are those of tools, which are no nodes of the cluster.
free_nodes_over_a_circuit(Config) ->
    Hub = [node_name(n1)],
    [_, N2, N3] = [start(boot(Name, carrier(weft, [{topology, {client_server, Role}},
                                                   {keepalive_ms, 200}]), [], Config))
                   || {Name, Role} <- [{n1, #{role => server, servers => Hub}},
                                       {n2, #{role => client, servers => Hub}},
                                       {n3, #{role => client, servers => Hub}}]],
    [Name2, Name3] = names([n2, n3]),
    until(fun() -> lists:member(Name3, call(N2, weft, members, [])) end),
    ok = call(N2, ?MODULE, listen, [true]),
    %% A member may be known before there is a route to it.
    until(fun() -> call(N2, net_kernel, connect_node, [Name3]) =:= true end),
    until(fun() -> lists:member({nodeup, Name3}, call(N2, ?MODULE, messages, [])) end),
    ?assertEqual([Name3], call(N2, erlang, nodes, [hidden])),
    ?assert(lists:member(Name3, s(N2, own_nodes, []))),
    ?assert(lists:member(Name2, s(N3, own_nodes, [undefined]))),
    Tool = boot(n4, #{carrier => stock}, ["-hidden"], Config),
    true = call(Tool, net_kernel, connect_node, [Name2]),
    until(fun() -> lists:member(node_name(n4), call(N2, erlang, nodes, [hidden])) end),
    weft_test_nodes:kill(Tool),
    weft_test_nodes:kill(N3),
    until(fun() -> lists:member({nodedown, Name3}, call(N2, ?MODULE, messages, [])) end),
    until(fun() -> not lists:member(node_name(n4), call(N2, erlang, nodes, [hidden])) end),
    Of = [Message || {_, Node} = Message <- call(N2, ?MODULE, messages, []),
                     lists:member(Node, names([n3, n4]))],
    ?assertEqual([{nodeup, Name3}, {nodedown, Name3}], Of).

%% The original blocks for ever.
two_initiators(Config) ->
    [N1, N2 | _] = Nodes = start_five(Config),
    Self = self(),
    [begin
         Refs = [begin
                     Ref = make_ref(),
                     spawn_link(fun() -> Self ! {Ref, s(Node, new_s_group, [Round, Names])} end),
                     Ref
                 end || {Node, Names} <- [{N1, names([n1, n2, n3])}, {N2, names([n2, n1, n4])}]],
         Answers = [receive {Ref, Answer} -> Answer after 60000 -> error(blocked) end
                    || Ref <- Refs],
         [{ok, Round, Members}] = Answers -- [{error, s_group_name_is_in_use}],
         [until(fun() -> {ok, Members} =:= call(Node, weft_group, members, [Round]) end)
          || Node <- Nodes]
     end || Round <- [r1, r2, r3]].

attributes_choose_nodes(Config) ->
    [N1, _, _, N4, _] = start_five(Config),
    ?assertEqual([], s(N1, registered_attributes, [])),
    ?assertEqual(ok, s(N1, add_attributes, [[big, fast]])),
    ?assertEqual(ok, s(N1, add_attributes, [names([n3]), [big]])),
    ?assertEqual([big, fast], s(N1, registered_attributes, [])),
    ?assertEqual(names([n1, n3]), s(N1, choose_nodes, [[{s_group, g1}, {attribute, big}]])),
    ?assertEqual(names([n1]), s(N1, choose_nodes, [[{attribute, big}, {attribute, fast}]])),
    ?assertEqual(names([n3, n4, n5]), s(N1, choose_nodes, [[{s_group, g2}]])),
    %% Nothing in common is nothing, and no lack of a condition.
    ?assertEqual([], s(N1, choose_nodes, [[{s_group, g2}, {attribute, fast}]])),
    ?assertEqual([], s(N1, choose_nodes, [[{s_group, g9}, {attribute, big}]])),
    ?assertEqual(ok, s(N4, remove_attributes, [names([n1]), [big, unknown]])),
    ?assertEqual(names([n3]), s(N1, choose_nodes, [[{attribute, big}]])),
    ?assertEqual({error, {no_contact, ['nobody@nowhere']}},
                 s(N1, add_attributes, [['nobody@nowhere'], [x]])).

the_module_attr(Config) ->
    [N1, N2] = ?config(nodes, Config),
    File = filename:join(?config(priv_dir, Config), "attributes"),
    ok = file:write_file(File, "[{disk, 100}, {fast, yes}, {once, {automatic, {erlang, node}}},"
                         " {now, {dynamic, {erlang, unique_integer, [[monotonic]]}}}]."),
    A = fun(Node, Function, Args) -> call(Node, attr, Function, Args) end,
    ok = bad_attributes_are_none(N1, Config),
    ?assertEqual(ok, A(N1, start, [])),
    ?assertEqual({error, already_running}, A(N1, start, [])),
    ?assertEqual(ok, A(N2, start, [File, nobuiltins])),
    Both = names([n1, n2]),
    [{One, [{num_erlang_processes, Count}, {disk, undefined}]},
     {Other, [{num_erlang_processes, undefined}, {disk, 100}]}] =
        A(N1, request_attrs, [Both, [num_erlang_processes, disk]]),
    ?assertEqual(Both, [One, Other]),
    ?assert(Count > 10),
    ?assertEqual([Other], A(N1, choose_nodes, [Both, {disk, ge, 100}])),
    ?assertEqual([Other], A(N1, choose_nodes, [Both, [{disk, ge, 100}, {fast, yes}, {}]])),
    ?assertEqual([], A(N1, choose_nodes, [Both, [{fast, true}]])),
    ?assertEqual([One], A(N1, choose_nodes, [Both, {otp_release, ge, "25"}])),
    [{Other, [{once, Other}, {now, Now}]}] = A(N1, request_attrs, [[Other], [once, now]]),
    [{Other, [{now, Later}]}] = A(N1, request_attrs, [[Other], [now]]),
    ?assert(Later > Now),
    ?assertEqual(true, A(N1, insert, [disk, 5])),
    ?assertEqual({error, {attr_exists, disk}},
                 call(N1, ?MODULE, attempt, [attr, insert, [disk, 6]])),
    ?assertEqual(true, A(N1, update, [disk, 500])),
    ?assertEqual({error, {attr_not_set, tape}},
                 call(N1, ?MODULE, attempt, [attr, update, [tape, 6]])),
    ?assertEqual(Both, A(N2, choose_nodes, [Both, {disk, gt, 0}])),
    ?assertEqual(true, A(N1, delete, [disk])),
    %% A node that is not there is no reason to fail.
    ?assertEqual([Other], A(N1, choose_nodes, [['nobody@nowhere' | Both], {disk, gt, 0}, 3000])),
    ?assertEqual({error, {attr_config_error, enoent}},
                 call(N1, ?MODULE, attempt, [attr, start, ["no/such/file"]])),
    ?assertEqual(stop, A(N1, stop, [])),
    ?assertEqual({error, not_running}, A(N1, stop, [])),
    ?assertEqual([{One, [{vm_num_processors, undefined}]}],
                 A(N1, request_attrs, [[One], [vm_num_processors]])).

%% What can not be started has not been started.
bad_attributes_are_none(Node, Config) ->
    Bad = filename:join(?config(priv_dir, Config), "bad_attributes"),
    [begin
         ok = file:write_file(Bad, Text),
         ?assertEqual({error, Reason},
                      call(Node, ?MODULE, attempt, [attr, start, [Bad, nobuiltins]]))
     end || {Text, Reason} <-
                [{"[{disk, 100}, tape].", {attr_config_error, {no_attribute, tape}}},
                 {"[{disk, 100}, {once, {automatic, {erlang, nothing}}}].", {bad_function, once}}]],
    ?assertEqual([{node_name(n1), [{disk, undefined}]}],
                 call(Node, attr, request_attrs, [[node_name(n1)], [disk]])),
    ok.

without_the_application(Config) ->
    [Node | _] = ?config(nodes, Config),
    ok = stop(Node),
    Here = node_name(n1),
    [?assertEqual({Function, {error, s_group_not_runnig}}, {Function, s(Node, Function, Args)})
     || {Function, Args} <- [{new_s_group, [g, [Here]]}, {delete_s_group, [g]},
                             {add_nodes, [g, ['x@y']]}, {remove_nodes, [g, ['x@y']]},
                             {s_groups, []}, {own_s_groups, []}, {own_nodes, []}, {info, []},
                             {whereis_name, [g, a]}, {send, [g, a, x]}, {sync, []},
                             {monitor_nodes, [true]}, {choose_nodes, [[]]}]],
    ?assertEqual(ok, s(Node, start, [])),
    ?assertEqual({ok, g, [Here]}, s(Node, new_s_group, [g, [Here]])),
    ?assertEqual(ok, s(Node, stop, [])),
    ok = call(Node, application, set_env, [kernel, s_groups, [{g, hidden, [Here]}]]),
    {error, Reason} = s(Node, start, []),
    ?assertNotEqual(nomatch, string:find(lists:flatten(io_lib:format("~0p", [Reason])),
                                         "publish type")).

%% --- on the nodes -----------------------------------------------------------------------------

holder() -> hold([]).

hold(Messages) ->
    receive
        {held, From} -> From ! {holds, Messages}, hold(Messages);
        Message -> hold([Message | Messages])
    end.

%% A process that has called monitor_nodes/1 and keeps what it gets.
listen(IsOn) ->
    Self = self(),
    register(listener, spawn(fun() -> Self ! {listens, s_group:monitor_nodes(IsOn)}, hold([]) end)),
    receive {listens, Result} -> Result end.

messages() -> lists:reverse(held(listener)).

held(Process) ->
    Process ! {held, self()},
    receive {holds, Messages} -> Messages end.

attempt(Module, Function, Args) ->
    try apply(Module, Function, Args)
    catch
        error:Reason -> {error, Reason}
    end.

%% --- helpers ----------------------------------------------------------------------------------

%% Whatever the case before has made of them.
start_five(Config) ->
    Nodes = ?config(nodes, Config),
    [ok = stop(Node) || Node <- Nodes],
    %% A link of groups that were made at run time is not brought up again; one that was being
    %% dialled comes up first, and so does a connection that is being made: it has a session.
    until(fun() ->
              [call(Node, erlang, disconnect_node, [Other])
               || Node <- Nodes, Other <- call(Node, erlang, nodes, [connected])],
              [call(Node, weft_links, break, [Other])
               || Node <- Nodes, {Other, _Link} <- call(Node, weft_links, list, [])],
              lists:all(fun(Node) ->
                            {connected(Node), sessions(Node), links(Node)} =:= {[], [], []}
                        end, Nodes)
          end),
    [ok = call(Node, application, set_env, [weft, Key, Value])
     || Node <- Nodes, {Key, Value} <- weft_config(?config(carrier, Config))],
    Nodes = [start(Node) || Node <- Nodes],
    [until_connected(Expected, Node)
     || {Node, Expected} <- lists:zip(Nodes, [[n2, n3], [n1, n3], [n1, n2, n4, n5], [n3, n5],
                                              [n3, n4]])],
    until_groups(Nodes, #{g1 => [n1, n2, n3], g2 => [n3, n4, n5]}),
    Nodes.

start(Node) ->
    {ok, _} = call(Node, application, ensure_all_started, [sd_erlang]),
    Node.

stop(Node) ->
    Running = [Name || {Name, _, _} <- call(Node, application, which_applications, [])],
    [ok = call(Node, application, stop, [Name]) || Name <- [sd_erlang, weft],
                                                   lists:member(Name, Running)],
    ok.

boot_in_groups(Name, Config) ->
    boot(Name, carrier(?config(carrier, Config), weft_config(?config(carrier, Config))),
         ["-kernel", "s_groups", text(groups_at_first())], Config).

groups_at_first() ->
    [{g1, normal, names([n1, n2, n3])}, {g2, normal, names([n3, n4, n5])}].

%% Where the topology is groups, those that are made at run time become its configuration.
weft_config(stock) ->
    [];
weft_config(weft) ->
    Groups = [{Group, Nodes} || {Group, normal, Nodes} <- groups_at_first()],
    [{topology, {groups, maps:from_list(Groups)}}, {keepalive_ms, 200}].

boot(Name, Options, Args, Config) ->
    Paths = [weft_test_nodes:ebin(Module) || Module <- [weft_dist, s_group, ?MODULE]],
    Partial = ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"],
    weft_test_nodes:start(Name, Options#{args => Partial ++ ["-pa" | Paths] ++ Args},
                          ?config(place, Config)).

carrier(stock, []) -> #{carrier => stock};
carrier(weft, Env) -> #{carrier => weft, config => Env}.

process(Node) -> call(Node, erlang, spawn, [?MODULE, holder, []]).

held(Node, Pid) ->
    call(Node, erlang, apply, [fun(P) -> held(P) end, [Pid]]).

until_groups(Nodes, Groups) ->
    Named = maps:map(fun(_, Names) -> names(Names) end, Groups),
    [until(fun() -> call(Node, weft_group, groups, []) =:= Named end) || Node <- Nodes].

until(Condition) -> weft_test_nodes:until(Condition, 30000).

connected(Node) -> lists:sort([short(N) || N <- call(Node, erlang, nodes, [connected])]).

%% What a process of an earlier case has sent may have connected others, over a gateway. Those that
%% are in the way for good are told of.
until_connected(Expected, Node) ->
    try until(fun() ->
                  [call(Node, erlang, disconnect_node, [Other])
                   || Other <- call(Node, erlang, nodes, [connected]),
                      not lists:member(short(Other), Expected)],
                  connected(Node) =:= Expected
              end)
    catch error:{never_true, _} -> ?assertEqual({Node, Expected}, {Node, connected(Node)})
    end.

%% There is no table of them on the carrier of OTP.
sessions(Node) ->
    case call(Node, ets, whereis, [weft_sessions]) of
        undefined -> [];
        _Table -> call(Node, weft_sessions, distribution_peers, [])
    end.

links(Node) -> [Peer || #{node := Peer, state := up} <- call(Node, weft_links, info, [])].

short(Node) -> list_to_existing_atom(hd(string:split(atom_to_list(Node), "@"))).

names(Names) -> [node_name(Name) || Name <- Names].

text(Term) -> lists:flatten(io_lib:format("~0p", [Term])).

s(Node, Function, Args) -> call(Node, s_group, Function, Args).

call(Node, Module, Function, Args) -> weft_test_nodes:call(Node, Module, Function, Args, 60000).
