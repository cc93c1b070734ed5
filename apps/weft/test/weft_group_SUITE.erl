%% SPDX-License-Identifier: Apache-2.0
%% @doc Groups on real nodes: overlapping groups, crash and return, two initiators at once, links
%% that follow the groups, and a cluster on the stock carrier.
%%
%% The last cases have the same nodes.
-module(weft_group_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([overlapping_groups_crash_and_return/1, two_initiators_at_once_have_one_outcome/1,
         who_was_away_gets_the_news/1, links_follow_the_groups/1,
         groups_without_common_nodes_talk/1, a_topology_set_by_hand_is_kept/1,
         both_parts_of_a_cut_cluster_change_groups/1, all_change_all_groups_at_once/1,
         messages_and_processes_go_to_a_group/1, a_file_outlives_all_nodes/1,
         an_unreadable_file_is_an_error/1, groups_on_the_stock_carrier/1]).
-export([hold/0, listen/1, subscribe/1, forget/0, messages/0, change_at_random/2]).

-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(NAMES, [n1, n2, n3, n4, n5]).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [a_topology_set_by_hand_is_kept, both_parts_of_a_cut_cluster_change_groups,
     a_file_outlives_all_nodes, an_unreadable_file_is_an_error, groups_on_the_stock_carrier,
     overlapping_groups_crash_and_return, two_initiators_at_once_have_one_outcome,
     who_was_away_gets_the_news, links_follow_the_groups, groups_without_common_nodes_talk,
     messages_and_processes_go_to_a_group, all_change_all_groups_at_once].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

overlapping_groups_crash_and_return(Config) ->
    [N1, N2, N3, N4, _N5] = Nodes = start_two_groups(Config),
    [weft_test_nodes:until(fun() -> connected(Node) =:= Expected end, 30000)
     || {Node, Expected} <- lists:zip(Nodes, [[n2, n3], [n1, n3], [n1, n2, n4, n5], [n3, n5],
                                              [n3, n4]])],
    ?assertEqual(#{node_name(n3) => [g1, g2]}, call(N1, weft_group, gateways, [])),
    ?assertEqual(#{g1 => names([n1, n2, n3]), g2 => names([n3, n4, n5])},
                 call(N4, weft_group, groups, [])),
    Watched = [{N1, g1}, {N3, g1}, {N3, g2}, {N4, g2}],
    %% The groups hear of a connection somewhat later than the kernel.
    [weft_test_nodes:until(fun() -> is_all_up(Node, Group) end) || {Node, Group} <- Watched],
    [watch(Node, Group) || {Node, Group} <- Watched],
    ok = weft_test_nodes:kill(N2),
    Down = {weft_group, g1, {down, node_name(n2)}},
    [until_heard(Node, [Down]) || Node <- [N1, N3]],
    New = lasting(n2, Config),
    Up = {weft_group, g1, {up, node_name(n2)}},
    [until_heard(Node, [Down, Up]) || Node <- [N1, N3]],
    ?assertEqual([], heard(N4)),
    {ok, #{unreachable := []}} = call(N1, weft_group, remove, [g1, [node_name(n3)]]),
    [until_groups(Node, #{g1 => [n1, n2], g2 => [n3, n4, n5]}) || Node <- [New | Nodes -- [N2]]],
    ?assertEqual(names([n1, n2]), call(N1, weft_group, own_nodes, [])),
    Left = {weft_group, g1, {down, node_name(n3)}},
    until_heard(N1, [Down, Up, Left]),
    ?assertEqual({error, not_a_member}, call(N3, weft_group, add, [g1, [node_name(n3)]])).

%% Each round both create the same group and name each other, in the same moment.
two_initiators_at_once_have_one_outcome(Config) ->
    [N1, N2 | _] = Nodes = start_two_groups(Config),
    [begin
         Name = {round, Round},
         Answers = at_once([{N1, [Name, names([n1, n2, n3])]}, {N2, [Name, names([n1, n2, n4])]}]),
         {[{ok, #{members := Members}}], [{error, {name_in_use, Members}}]} =
             lists:partition(fun(Answer) -> element(1, Answer) =:= ok end, Answers),
         [weft_test_nodes:until(fun() -> {ok, Members} =:= call(Node, weft_group, members, [Name])
                                end) || Node <- Nodes]
     end || Round <- lists:seq(1, 8)],
    ok.

who_was_away_gets_the_news(Config) ->
    [N1, _, N3, N4, N5] = start_two_groups(Config),
    ok = weft_test_nodes:kill(N5),
    {ok, Created} = call(N1, weft_group, create, [new, names([n1, n3, n5])]),
    ?assertEqual(#{members => names([n1, n3, n5]), unreachable => names([n5])}, Created),
    {ok, #{unreachable := Away}} = call(N4, weft_group, delete, [g2]),
    ?assertEqual(names([n5]), Away),
    Back = lasting(n5, Config),
    until_groups(Back, groups(N3)),
    ?assertEqual({ok, names([n1, n3, n5])}, call(Back, weft_group, members, [new])).

links_follow_the_groups(Config) ->
    [N1, _, N3, N4, N5] = start_two_groups(Config),
    ?assertEqual([n2, n3], linked(N1)),
    %% By the gateway, and directly where it is asked for.
    until_connected(N1, n5),
    ?assertEqual(node_name(n5), call(N1, erpc, call, [node_name(n5), erlang, node, []])),
    ?assertEqual([n2, n3], linked(N1)),
    {ok, #{unreachable := []}} = call(N1, weft_group, direct, [node_name(n5)]),
    weft_test_nodes:until(fun() -> linked(N1) =:= [n2, n3, n5] andalso linked(N5) =:= [n1, n3, n4]
                          end, 30000),
    {ok, _} = call(N5, weft_group, delete, [{direct, node_name(n1), node_name(n5)}]),
    weft_test_nodes:until(fun() -> linked(N1) =:= [n2, n3] end, 30000),
    {ok, _} = call(N3, weft_group, add, [g1, [node_name(n4)]]),
    weft_test_nodes:until(fun() -> {linked(N1), linked(N4)}
                                       =:= {[n2, n3, n4], [n1, n2, n3, n5]}
                          end, 30000),
    ?assertMatch({groups, #{g1 := [_, _, _, _]}}, call(N1, weft, topology, [])).

%% What the last common node leaves behind is joined by two nodes of either side.
groups_without_common_nodes_talk(Config) ->
    [N1, _, N3, _, N5] = Nodes = start_two_groups(Config),
    {ok, _} = call(N3, weft_group, leave, [g1]),
    weft_test_nodes:until(fun() -> linked(N5) =:= [n3, n4] andalso linked(N1) =:= [n2, n3, n4] end,
                          30000),
    until_connected(N1, n5),
    ?assertEqual(node_name(n5), call(N1, erpc, call, [node_name(n5), erlang, node, []])),
    %% Free nodes have links to each other, and news reach everybody.
    {ok, _} = call(N1, weft_group, delete, [g1]),
    [until_groups(Node, #{g2 => [n3, n4, n5]}) || Node <- Nodes],
    ?assert(call(N1, weft_group, is_free, [])),
    weft_test_nodes:until(fun() -> linked(N1) =:= [n2, n3, n4] end, 30000).

a_topology_set_by_hand_is_kept(Config) ->
    Nodes = [N1, N2, _] = [start(Name, full_mesh(), Config) || Name <- [n1, n2, n3]],
    weft_test_nodes:until(fun() -> linked(N1) =:= [n2, n3] end, 30000),
    Set = {groups, #{left => names([n3, n1]), right => names([n3, n2])}},
    [ok = call(Node, weft, topology, [Set]) || Node <- Nodes],
    weft_test_nodes:until(fun() -> linked(N1) =:= [n3] end, 30000),
    {ok, #{unreachable := []}} = call(N1, weft_group, create, [top, names([n1, n2])]),
    [until_groups(Node, #{left => [n1, n3], right => [n2, n3], top => [n1, n2]})
     || Node <- Nodes],
    weft_test_nodes:until(fun() -> linked(N1) =:= [n2, n3] end, 30000),
    {ok, _} = call(N2, weft_group, delete, [top]),
    weft_test_nodes:until(fun() -> linked(N1) =:= [n3] end, 30000),
    links_wait_for_another_change(N1, N2).

%% Such as a call of weft:topology: what is done half may not become something else.
links_wait_for_another_change(N1, N2) ->
    _ = call(N1, erlang, spawn, [?MODULE, hold, []]),
    weft_test_nodes:until(fun() -> is_pid(call(N1, erlang, whereis, [weft_one_change])) end),
    Before = call(N1, weft, topology, []),
    {ok, _} = call(N2, weft_group, create, [top, names([n1, n2])]),
    Links = call(N1, erlang, whereis, [weft_group_links]),
    weft_test_nodes:until(fun() ->
                              call(N1, erlang, process_info, [Links, current_function])
                                  =:= {current_function, {weft_one_change, run, 1}}
                          end, 30000),
    ?assertEqual(Before, call(N1, weft, topology, [])),
    go_on = call(N1, erlang, send, [weft_one_change, go_on]),
    weft_test_nodes:until(fun() -> linked(N1) =:= [n2, n3] end, 30000),
    weft_test_nodes:until(fun() ->
                              {groups, Groups} = call(N1, weft, topology, []),
                              is_map_key(top, Groups)
                          end, 30000).

%% @doc A change of what the node is a member of that goes on until it is told to end.
hold() -> weft_one_change:run(fun() -> receive go_on -> ok end end).

%% n1 and n2 are cut off from n3 and n4.
both_parts_of_a_cut_cluster_change_groups(Config) ->
    Env = [{faults, true}, {resume_timeout_ms, 500} | full_mesh()],
    Nodes = [N1, N2, N3, N4] = [start(Name, Env, Config) || Name <- [n1, n2, n3, n4]],
    weft_test_nodes:until(fun() -> linked(N1) =:= [n2, n3, n4] end, 30000),
    {ok, #{unreachable := []}} = call(N1, weft_group, create, [g, names([n1, n2, n3, n4])]),
    [ok = call(Node, weft_fault, cut, [node_name(Other)]) || Node <- [N1, N2], Other <- [n3, n4]],
    [weft_test_nodes:until(fun() -> connected(Node) =:= [Other] end, 30000)
     || {Node, Other} <- [{N1, n2}, {N2, n1}, {N3, n4}, {N4, n3}]],
    {ok, #{unreachable := Lost}} = call(N1, weft_group, remove, [g, names([n2])]),
    ?assertEqual(names([n3, n4]), Lost),
    {ok, _} = call(N3, weft_group, add, [g, names([n9])]),
    {ok, _} = call(N2, weft_group, create, [h, names([n1, n2])]),
    {ok, _} = call(N4, weft_group, create, [h, names([n3, n4])]),
    [ok = call(Node, weft_fault, heal, []) || Node <- [N1, N2]],
    [weft_test_nodes:until(fun() -> call(Node, weft_group, members, [g])
                                        =:= {ok, names([n1, n3, n4, n9])} end, 60000)
     || Node <- Nodes],
    weft_test_nodes:until(fun() -> 1 =:= length(lists:usort([call(Node, weft_group, groups, [])
                                                             || Node <- Nodes])) end, 60000),
    {ok, Winner} = call(N1, weft_group, members, [h]),
    ?assert(lists:member(Winner, [names([n1, n2]), names([n3, n4])])).

%% And the driver of one of them crashes meanwhile, and forgets all.
all_change_all_groups_at_once(Config) ->
    Nodes = [N1 | _] = free(Config),
    weft_test_nodes:until(fun() -> linked(N1) =:= [n2, n3, n4, n5] end, 30000),
    Self = self(),
    Refs = [begin
                Ref = make_ref(),
                spawn_link(fun() -> Self ! {Ref, call(Node, ?MODULE, change_at_random,
                                                      [names(?NAMES), 30])} end),
                Ref
            end || Node <- Nodes],
    weft_test_nodes:until(fun() -> call(N1, weft_group, groups, []) =/= #{} end),
    Driver = call(N1, erlang, whereis, [weft_groups]),
    true = call(N1, erlang, exit, [Driver, kill]),
    Answers = lists:append([receive {Ref, List} -> List after 120000 -> error(blocked) end
                            || Ref <- Refs]),
    ?assertEqual([], [Answer || Answer <- Answers, not is_answer(Answer)]),
    weft_test_nodes:until(fun() -> 1 =:= length(lists:usort([call(Node, weft_group, groups, [])
                                                             || Node <- Nodes])) end, 60000),
    [?assertEqual(weft_group_table:groups(call(Node, weft_driver, command, [weft_groups, table])),
                  call(Node, weft_group, groups, [])) || Node <- Nodes].

%% A caller of the driver that was killed is told that it ended.
is_answer({ok, #{members := _, unreachable := _}}) -> true;
is_answer({error, _}) -> true;
is_answer(driver_ended) -> true;
is_answer(_) -> false.

messages_and_processes_go_to_a_group(Config) ->
    [N1, N2, N3, N4, _] = start_two_groups(Config),
    [true = call(Node, ?MODULE, listen, [listener]) || Node <- [N1, N2, N3, N4]],
    %% From outside of the group.
    {ok, #{reached := Reached, unreachable := []}} =
        call(N4, weft_group, send, [g1, listener, hello]),
    ?assertEqual(names([n1, n2, n3]), Reached),
    [until_heard(Node, [hello]) || Node <- [N1, N2, N3]],
    ?assertEqual([], heard(N4)),
    {ok, Pid} = call(N4, weft_group, spawn, [g1, timer, sleep, [infinity]]),
    ?assert(lists:member(node(Pid), names([n1, n2, n3]))),
    ok = weft_test_nodes:kill(N2),
    weft_test_nodes:until(fun() -> connected(N1) =:= [n3, n4] end),
    {ok, #{unreachable := Gone}} = call(N1, weft_group, send, [g1, listener, again]),
    ?assertEqual(names([n2]), Gone),
    ?assertEqual({error, unknown_group}, call(N1, weft_group, send, [none, listener, x])),
    %% Each group has names of its own, whatever it is called.
    Named = call(N1, erlang, spawn, [timer, sleep, [infinity]]),
    Long = list_to_atom(lists:duplicate(240, $n)),
    Groups = [{named, 1}, {named, 2}, "named", named, Long],
    Scopes = [begin
                  {ok, _} = call(N1, weft_group, create, [Group, names([n1, n3])]),
                  {ok, Scope} = call(N1, weft_group, scope, [Group]),
                  ok = call(N1, weft_names, register, [{Scope, Group}, Named]),
                  Scope
              end || Group <- Groups],
    ?assertEqual(length(Groups), length(lists:usort(Scopes))),
    [weft_test_nodes:until(fun() -> {ok, Scope} =:= call(N3, weft_group, scope, [Group])
                                        andalso [Group] =:= call(N3, weft_names, names, [Scope])
                           end) || {Group, Scope} <- lists:zip(Groups, Scopes)],
    ?assertEqual({error, not_a_member}, call(N4, weft_group, scope, [named])),
    ?assertEqual({error, unknown_group}, call(N1, weft_group, spawn, [none, erlang, node, []])),
    ?assertEqual({error, not_a_member}, call(N4, weft_group, monitor_nodes, [g1, true])),
    ?assertEqual({error, unknown_group}, call(N4, weft_group, monitor_nodes, [none, true])).

a_file_outlives_all_nodes(Config) ->
    Kept = fun(Name) -> [{groups_file, filename:join(?config(priv_dir, Config), Name)}
                         | full_mesh()] end,
    Nodes = [N1, N2] = [start(Name, Kept(Name), Config) || Name <- [n1, n2]],
    weft_test_nodes:until(fun() -> call(N1, net_kernel, connect_node, [node_name(n2)]) end),
    {ok, _} = call(N1, weft_group, create, [{a, "group"}, names([n1, n2])]),
    {ok, _} = call(N1, weft_group, create, [gone, names([n1, n2])]),
    {ok, _} = call(N2, weft_group, delete, [gone]),
    [weft_test_nodes:until(
       fun() ->
           {ok, Table} = call(Node, weft_group_file, load, [proplists:get_value(groups_file,
                                                                                Kept(Name))]),
           weft_group_table:groups(Table) =:= #{{a, "group"} => names([n1, n2])}
       end) || {Node, Name} <- [{N1, n1}, {N2, n2}]],
    [ok = weft_test_nodes:kill(Node) || Node <- Nodes],
    Again = start(n2, Kept(n2), Config),
    until_groups(Again, #{{a, "group"} => [n1, n2]}),
    %% Deletions are remembered as well: what is done again is done after them.
    {ok, _} = call(Again, weft_group, create, [gone, names([n2])]).

an_unreadable_file_is_an_error(Config) ->
    Path = filename:join(?config(priv_dir, Config), "unreadable"),
    ok = file:write_file(Path, "{weft_groups, 1"),
    Node = weft_test_nodes:start(n1, #{config => [{groups_file, Path}]}, ?config(place, Config)),
    {error, Reason} = call(Node, application, ensure_all_started, [weft]),
    Text = lists:flatten(io_lib:format("~0p", [Reason])),
    ?assertNotEqual({nomatch, Text}, {string:find(Text, "can not be read"), Text}).

%% Nothing but distribution: every node dials its fellow members, and no others.
groups_on_the_stock_carrier(Config) ->
    Groups = [{groups, #{g1 => names([n1, n2]), g2 => names([n2, n3])}}],
    [N1, N2, N3] = Nodes =
        [begin
             Node = weft_test_nodes:start(
                      Name, #{carrier => stock, args => ["-connect_all", "false", "-pa",
                                                         weft_test_nodes:ebin(weft_dist)]},
                      ?config(place, Config)),
             ok = call(Node, application, load, [weft]),
             [ok = call(Node, application, set_env, [weft, Key, Value]) || {Key, Value} <- Groups],
             {ok, _} = call(Node, application, ensure_all_started, [weft]),
             Node
         end || Name <- [n1, n2, n3]],
    [weft_test_nodes:until(fun() -> connected(Node) =:= Expected end, 30000)
     || {Node, Expected} <- lists:zip(Nodes, [[n2], [n1, n3], [n2]])],
    {ok, #{unreachable := []}} = call(N1, weft_group, add, [g1, [node_name(n3)]]),
    until_groups(N3, #{g1 => [n1, n2, n3], g2 => [n2, n3]}),
    weft_test_nodes:until(fun() -> connected(N1) =:= [n2, n3] end, 30000),
    {ok, _} = call(N2, weft_group, delete, [g1]),
    until_groups(N1, #{g2 => [n2, n3]}),
    ?assert(call(N1, weft_group, is_free, [])),
    %% There are no sessions to measure.
    ?assertError(needs_the_carrier_weft, suggest(N1)).

suggest(Node) ->
    try call(Node, weft_group, suggest, [])
    catch
        exit:{exception, Reason, _} -> error(Reason);
        error:{exception, Reason, _} -> error(Reason)
    end.

%% --- on the nodes -----------------------------------------------------------------------------

%% A process under that name that keeps what it gets.
listen(Name) ->
    register(Name, spawn(fun() -> keep([]) end)).

subscribe(Group) ->
    whereis(listener) =/= undefined orelse listen(listener),
    listener ! {run, fun() -> weft_group:monitor_nodes(Group, true) end, self()},
    receive {ran, Result} -> Result end.

%% Without what listened here.
forget() ->
    _ = [begin
             Monitor = monitor(process, Pid),
             exit(Pid, kill),
             receive {'DOWN', Monitor, _, _, _} -> ok end
         end || Pid <- [whereis(listener)], is_pid(Pid)],
    ok.

messages() ->
    listener ! {messages, self()},
    receive {kept, Messages} -> Messages end.

keep(Messages) ->
    receive
        {run, Fun, From} -> From ! {ran, Fun()}, keep(Messages);
        {messages, From} -> From ! {kept, lists:reverse(Messages)}, keep(Messages);
        Message -> keep([Message | Messages])
    end.

%% So many changes of four groups, one after the other.
change_at_random(Nodes, Count) ->
    [try random_change(lists:nth(rand:uniform(4), [g1, g2, g3, g4]),
                       [Node || Node <- Nodes, rand:uniform(2) =:= 1])
     catch
         exit:_ -> driver_ended
     end || _ <- lists:seq(1, Count)].

random_change(Group, Nodes) ->
    case rand:uniform(6) of
        1 -> weft_group:create(Group, [node() | Nodes]);
        2 -> weft_group:create(Group, [node() | Nodes]);
        3 -> weft_group:add(Group, Nodes);
        4 -> weft_group:remove(Group, Nodes);
        5 -> weft_group:leave(Group);
        6 -> weft_group:delete(Group)
    end.

%% --- helpers ----------------------------------------------------------------------------------

start_two_groups(Config) ->
    Nodes = [lasting(Name, Config) || Name <- ?NAMES],
    [ok = call(Node, ?MODULE, forget, []) || Node <- Nodes],
    TwoGroups = #{g1 => [n1, n2, n3], g2 => [n3, n4, n5]},
    weft_test_nodes:until(fun() -> 1 =:= length(lists:usort([call(Node, weft_group, groups, [])
                                                             || Node <- Nodes])) end, 30000),
    groups(hd(Nodes)) =:= TwoGroups orelse grouped_anew(Nodes, TwoGroups),
    [weft_test_nodes:until(fun() -> only_connected(Node, Expected) end, 30000)
     || {Node, Expected} <- lists:zip(Nodes, [[n2, n3], [n1, n3], [n1, n2, n4, n5], [n3, n5],
                                              [n3, n4]])],
    Nodes.

%% The same nodes in no group.
free(Config) ->
    Nodes = start_two_groups(Config),
    ok = grouped_anew(Nodes, #{}),
    Nodes.

grouped_anew(Nodes, Groups) ->
    At = fun(Name) -> hd([Node || #{node := N} = Node <- Nodes, N =:= node_name(Name)]) end,
    [{ok, _} = call(At(Member), weft_group, delete, [Group])
     || {Group, [Member | _]} <- maps:to_list(groups(hd(Nodes)))],
    [until_groups(Node, #{}) || Node <- Nodes],
    [{ok, _} = call(At(Member), weft_group, create, [Group, names(Members)])
     || {Group, [Member | _] = Members} <- maps:to_list(Groups)],
    [until_groups(Node, Groups) || Node <- Nodes],
    ok.

%% What the case before said over gateways is not said any more.
only_connected(Node, Expected) ->
    _ = [call(Node, erlang, disconnect_node, [node_name(Other)])
         || Other <- connected(Node) -- Expected],
    connected(Node) =:= Expected andalso linked(Node) =:= Expected.

lasting(Name, Config) ->
    weft_test_nodes:lasting(node_name(Name), fun() -> start(Name, two_groups(), Config) end).

two_groups() ->
    [{topology, {groups, #{g1 => names([n1, n2, n3]), g2 => names([n3, n4, n5])}}}].

full_mesh() -> [{topology, {full_mesh, #{seeds => names([n1, n2])}}}].

start(Name, Env, Config) ->
    Node = weft_test_nodes:start(Name, #{config => [{keepalive_ms, 200} | Env], args => ?PARTIAL},
                                 ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

at_once(Creations) ->
    Self = self(),
    Refs = [begin
                Ref = make_ref(),
                spawn_link(fun() -> Self ! {Ref, call(Node, weft_group, create, Args)} end),
                Ref
            end || {Node, Args} <- Creations],
    [receive {Ref, Answer} -> Answer after 60000 -> error(no_answer) end || Ref <- Refs].

watch(Node, Group) ->
    {ok, _} = call(Node, ?MODULE, subscribe, [Group]).

%% Who asks subscribes, too, and ends.
is_all_up(Node, Group) ->
    {ok, Up} = call(Node, weft_group, monitor_nodes, [Group, true]),
    {ok, Members} = call(Node, weft_group, members, [Group]),
    Members -- [weft_test_nodes:name(Node) | Up] =:= [].

heard(Node) -> call(Node, ?MODULE, messages, []).

until_heard(Node, Messages) ->
    weft_test_nodes:until(fun() -> heard(Node) =:= Messages end, 30000).

until_groups(Node, Groups) ->
    Named = maps:map(fun(_, Nodes) -> names(Nodes) end, Groups),
    weft_test_nodes:until(fun() -> call(Node, weft_group, groups, []) =:= Named end, 30000).

groups(Node) ->
    maps:map(fun(_, Nodes) -> [short(N) || N <- Nodes] end, call(Node, weft_group, groups, [])).

%% There may be a link before there is a route.
until_connected(Node, Name) ->
    weft_test_nodes:until(fun() -> call(Node, net_kernel, connect_node, [node_name(Name)]) =:= true
                          end).

connected(Node) -> lists:sort([short(N) || N <- call(Node, erlang, nodes, [connected])]).

linked(Node) ->
    lists:sort([short(Peer) || #{node := Peer, state := up} <- call(Node, weft_links, info, [])]).

short(Node) ->
    [Name, _Host] = string:split(atom_to_list(Node), "@"),
    list_to_existing_atom(Name).

names(Names) -> [node_name(Name) || Name <- Names].
