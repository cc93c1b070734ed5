%% SPDX-License-Identifier: Apache-2.0
%% @doc Agents of groups on real nodes: who watches whom, what becomes of it when nodes end and
%% groups change, and the alarms that real faults raise. Cases share five nodes in two groups. Each
%% leaves them as they were; one that failed, or changes the groups, ends them.
-module(weft_ops_agents_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([each_group_has_an_agent/1, another_member_becomes_the_agent/1,
         alarms_go_on_at_the_next_agent/1, alarms_go_on_where_the_agent_leaves_its_group/1,
         agents_follow_the_groups/1,
         a_paused_agent_hides_nobody/1, nor_does_the_next_one_that_is_paused_too/1,
         samples_go_on_beside_a_connection_without_a_path/1, a_killed_node_is_an_alarm/1,
         traffic_between_groups_is_told/1, a_busy_node_is_told/1,
         what_happened_is_recorded/1, killed_processes_come_back/1,
         without_a_topology_each_is_its_own/1, a_free_node_is_missed/1,
         faults_of_two_nodes_are_told/1]).
%% On the nodes.
-export([flood/1, trickle/1, flap/1, pile/2, is_choked/1, crowd/1, spin/0, listed/2]).

-define(SAMPLE_MS, 300).
-define(QUICK, [{sample_ms, ?SAMPLE_MS}, {clear_ms, 2 * ?SAMPLE_MS},
                {grace_ms, #{default => ?SAMPLE_MS, unreachable => ?SAMPLE_MS}}]).
%% Thresholds that two nodes reach.
-define(LOW, #{crossing_bytes_per_s => 20000, lane_bytes_per_s => 20000, queued_bytes => 1000000}).
%% Less than one flood, and more than all questions to agents.
-define(HOT, #{relayed_bytes_per_s => 500000}).
-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(NAMES, [n1, n2, n3, n4, n5]).
-define(G1, {group, g1}).
-define(G2, {group, g2}).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [each_group_has_an_agent, another_member_becomes_the_agent, alarms_go_on_at_the_next_agent,
     alarms_go_on_where_the_agent_leaves_its_group,
     a_paused_agent_hides_nobody, nor_does_the_next_one_that_is_paused_too,
     a_killed_node_is_an_alarm, traffic_between_groups_is_told, a_busy_node_is_told,
     what_happened_is_recorded, killed_processes_come_back,
     agents_follow_the_groups, without_a_topology_each_is_its_own, a_free_node_is_missed,
     faults_of_two_nodes_are_told, samples_go_on_beside_a_connection_without_a_path].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_testcase(Case, Config) when Case =:= without_a_topology_each_is_its_own;
                                     Case =:= a_free_node_is_missed;
                                     Case =:= faults_of_two_nodes_are_told;
                                     Case =:= samples_go_on_beside_a_connection_without_a_path ->
    Config;
init_per_testcase(_Case, Config) ->
    Start = fun() -> [start(Name, Config) || Name <- ?NAMES] end,
    [{nodes, weft_test_nodes:shared(?NAMES, Start)} | Config].

end_per_testcase(Case, Config) ->
    case {Case, ?config(tc_status, Config)} of
        {agents_follow_the_groups, _} -> weft_test_nodes:stop_all();
        {_, ok} -> ok;
        _ -> weft_test_nodes:stop_all()
    end.

%% --- who watches whom ---------------------------------------------------------------------------

each_group_has_an_agent(Config) ->
    Nodes = ?config(nodes, Config),
    [until(fun() -> {agents(Node), reported(Node)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES} end)
     || Node <- Nodes].

%% And gives its place back. From then on it misses nobody. As long as it has that place it rightly
%% misses a node that is late, but not each time.
another_member_becomes_the_agent(Config) ->
    [N1, N2 | _] = ?config(nodes, Config),
    until(fun() -> reported(N2) =:= ?NAMES end),
    weft_test_nodes:until(fun() ->
                              Before = misses(N2),
                              another_member_is_the_agent(N1, N2),
                              misses(N2) =:= Before
                          end, 60000).

another_member_is_the_agent(N1, N2) ->
    ok = call(N1, application, stop, [weft_ops]),
    until(fun() -> {agents(N2), reported(N2)} =:= {[{?G1, n2}, {?G2, n3}], ?NAMES -- [n1]} end),
    {ok, _} = call(N1, application, ensure_all_started, [weft_ops]),
    until(fun() -> {agents(N2), reported(N2)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES} end),
    until(fun() -> listed(N2, ?G1) =:= [] end).

%% The next one has never heard of the node that is silent, and is who says when that is over.
alarms_go_on_at_the_next_agent(Config) ->
    [N1, N2, N3 | _] = ?config(nodes, Config),
    until(fun() -> reported(N2) =:= ?NAMES end),
    ok = call(N1, application, stop, [weft_ops]),
    %% It answers as the agent before anybody has reported to it.
    until(fun() -> listed(N2, ?G1) =:= [node_name(N) || N <- [n2, n3]] end),
    ok = call(N3, application, stop, [weft_ops]),
    Silent = {silent, node_name(n3), node_name(n3)},
    until(fun() -> lists:member(Silent, alarms_of(N2)) end),
    OversThere = overs(N2, n3),
    {ok, _} = call(N1, application, ensure_all_started, [weft_ops]),
    until(fun() -> lists:member(Silent, alarms_of(N1)) end),
    ?assertNot(lists:member(Silent, alarms_of(N2))),
    Overs = overs(N1, n3),
    {ok, _} = call(N3, application, ensure_all_started, [weft_ops]),
    until(fun() -> overs(N1, n3) > Overs end),
    ?assertEqual(OversThere, overs(N2, n3)),
    until(fun() -> {agents(N2), reported(N2)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES} end).

%% It reports to itself as before, as a node of its own, and nobody else of the group has heard who
%% is silent. As long as weft_ops runs on no other member, who would take the alarms?
alarms_go_on_where_the_agent_leaves_its_group(Config) ->
    [N1, N2, N3 | _] = ?config(nodes, Config),
    until(fun() -> {agents(N2), reported(N2)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES} end),
    [ok = call(Node, application, stop, [weft_ops]) || Node <- [N2, N3]],
    Silent = {silent, node_name(n3), node_name(n3)},
    until(fun() -> lists:member(Silent, alarms_of(N1)) end),
    Overs = overs(N1, n3),
    {ok, _} = call(N2, weft_group, remove, [g1, [node_name(n1)]]),
    until(fun() -> listed(N1, {node, node_name(n1)}) =:= [node_name(n1)] end),
    samples_pass(N1),
    ?assert(lists:member(Silent, alarms_of(N1))),
    {ok, _} = call(N2, application, ensure_all_started, [weft_ops]),
    until(fun() -> lists:member(Silent, alarms_of(N2)) end),
    ?assertNot(lists:member(Silent, alarms_of(N1))),
    a_member_without_weft_ops_is_given_nothing(N1, N2, Silent),
    OversThere = overs(N2, n3),
    {ok, _} = call(N3, application, ensure_all_started, [weft_ops]),
    until(fun() -> overs(N2, n3) > OversThere end),
    ?assertEqual(Overs, overs(N1, n3)),
    {ok, _} = call(N2, weft_group, add, [g1, [node_name(n1)]]),
    until(fun() -> {agents(N2), reported(N2)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES} end).

%% It would be the agent, and it is connected.
a_member_without_weft_ops_is_given_nothing(N1, N2, Silent) ->
    ok = call(N1, application, stop, [weft_ops]),
    {ok, _} = call(N2, weft_group, add, [g1, [node_name(n1)]]),
    until(fun() ->
              {ok, Members} = call(N2, weft_group, members, [g1]),
              lists:member(node_name(n1), Members)
          end),
    samples_pass(N2),
    ?assert(lists:member(Silent, alarms_of(N2))),
    {ok, _} = call(N2, weft_group, remove, [g1, [node_name(n1)]]),
    {ok, _} = call(N1, application, ensure_all_started, [weft_ops]).

%% In which an alarm that does not hold is over.
samples_pass(Node) ->
    SinceMs = sampled_ms(Node),
    until(fun() -> sampled_ms(Node) > SinceMs + 5 * ?SAMPLE_MS end).

sampled_ms(Node) ->
    #{at_ms := AtMs} = call(Node, weft_ops_sampler, last, [weft_test_nodes:name(Node)]),
    AtMs.

%% Nodes of its group report to it as before: they do not know that it stands still.
a_paused_agent_hides_nobody(Config) ->
    [N1, _, _, N4 | _] = ?config(nodes, Config),
    until(fun() -> reported(N4) =:= ?NAMES end),
    ok = weft_test_nodes:pause(N1),
    PausedMs = erlang:system_time(millisecond),
    until(fun() ->
              #{nodes := Nodes} = call(N4, weft_ops, picture, []),
              IsLater = case maps:get(node_name(n2), Nodes, none) of
                            #{at_ms := AtMs} -> AtMs > PausedMs;
                            _SilentOrNone -> false
                        end,
              {maps:get(node_name(n1), Nodes, none), IsLater} =:= {silent, true}
          end),
    ok = weft_test_nodes:continue(N1),
    until(fun() -> reported(N4) =:= ?NAMES end).

%% As soon as they stand still, and asked once: later on they are no members that answer any more.
%% Others may be late just then, so it is done again.
nor_does_the_next_one_that_is_paused_too(Config) ->
    [N1, N2, _, N4 | _] = ?config(nodes, Config),
    AsBefore = fun() ->
                   until(fun() ->
                             {agents(N4), reported(N4)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES}
                         end)
               end,
    until(fun() ->
              ok = AsBefore(),
              #{nodes := Nodes, agents := Agents} = seen_beside_paused(N4, [N1, N2]),
              Agents =:= #{?G1 => node_name(n3), ?G2 => node_name(n3)}
                  andalso lists:all(fun(Name) ->
                                        maps:get(node_name(Name), Nodes, none) =:= silent
                                    end, [n1, n2])
          end),
    AsBefore().

seen_beside_paused(Node, Paused) ->
    [ok = weft_test_nodes:pause(Other) || Other <- Paused],
    Picture = call(Node, weft_ops, picture, []),
    [ok = weft_test_nodes:continue(Other) || Other <- Paused],
    Picture.

%% Node e, the agent of one of its groups, stands still, and much is sent to it: until all who send
%% to it wait. The agent of the other group, node f itself, gets its samples all the same.
samples_go_on_beside_a_connection_without_a_path(Config) ->
    Groups = #{ge => [node_name(e), node_name(f)], gf => [node_name(f)]},
    Topology = {topology, {groups, Groups}},
    [E, F] = [start(Name, [Topology, {queue_bytes, 65536}], ?PARTIAL, Config) || Name <- [e, f]],
    until(fun() -> {agents(F), reported(F)} =:= {[{{group, ge}, e}, {{group, gf}, f}], [e, f]} end),
    ok = weft_test_nodes:pause(E),
    until(fun() -> call(F, ?MODULE, is_choked, [node_name(e)]) end),
    Self = node_name(f),
    samples_go_on(F),
    ?assertNot(logged(F, "ERROR", ["silent on ", f])),
    Choked = node_name(e),
    ?assertMatch(#{nodes := #{Choked := silent}, agents := #{{group, ge} := Self}},
                 call(F, weft_ops, picture, [])),
    %% One that begins monitors the agent on e.
    true = call(F, erlang, exit, [call(F, erlang, whereis, [weft_ops_sampler]), kill]),
    samples_go_on(F),
    %% What was to be told meanwhile is told when e goes on.
    ok = call(F, weft_ops, tell, [choked, "somebody waits"]),
    until(fun() -> is_told(F, f) end),
    ok = weft_test_nodes:continue(E),
    until(fun() -> is_told(E, e) end).

samples_go_on(F) ->
    Self = node_name(f),
    SinceMs = erlang:system_time(millisecond),
    until(fun() ->
              {ok, #{nodes := #{Self := Sample}}} =
                  call(F, weft_ops_agent, ask, [Self, {group, gf}, 5000]),
              Sample =/= silent andalso map_get(at_ms, Sample) > SinceMs + 5 * ?SAMPLE_MS
          end).

is_told(Node, Name) ->
    {ok, Events} = call(Node, weft_ops_agent, events, [node_name(Name), 0, 5000]),
    [] =/= [told || #{kind := told, about := choked} <- Events].

agents_follow_the_groups(Config) ->
    [N1, _, _, N4, _] = ?config(nodes, Config),
    until(fun() -> reported(N4) =:= ?NAMES end),
    {ok, _} = call(N4, weft_group, delete, [g2]),
    until(fun() -> agents(N1) =:= [{?G1, n1}, {{node, node_name(n4)}, n4},
                                   {{node, node_name(n5)}, n5}] end),
    until(fun() -> reported(N1) =:= ?NAMES end),
    {ok, _} = call(N1, weft_group, add, [g1, [node_name(n4)]]),
    until(fun() -> lists:member(node_name(n4), listed(N1, ?G1)) end).

%% --- alarms -------------------------------------------------------------------------------------

a_killed_node_is_an_alarm(Config) ->
    [N1, N2, _, N4 | _] = ?config(nodes, Config),
    until(fun() -> reported(N4) =:= ?NAMES end),
    IsOfN2 = fun({{_, Node, _}, _}) -> Node =:= node_name(n2) end,
    until(fun() -> not lists:any(IsOfN2, alarms(N4)) end),
    ok = weft_test_nodes:kill(N2),
    Id = {unreachable, node_name(n2), node_name(n2)},
    until(fun() -> lists:member({Id, no}, alarms(N4)) end),
    ?assertEqual({error, unknown_alarm}, call(N4, weft_ops, acknowledge, [setelement(1, Id, busy),
                                                                          "?"])),
    until(fun() ->
              Alarms = call(N4, weft_ops, alarms, []),
              Raised = [AtMs || #{at_ms := AtMs} <- Alarms],
              ?assertEqual(lists:sort(Raised), Raised),
              [true] =:= [abs(erlang:system_time(millisecond) - AtMs) < 60000
                          || #{id := Of, at_ms := AtMs} <- Alarms, Of =:= Id]
          end),
    until(fun() -> logged(N1, "ERROR", ["unreachable on ", n2, ": no path to it from "]) end),
    %% An agent that does not answer in time is not told.
    until(fun() ->
              call(N4, weft_ops, acknowledge, [Id, "going to look"]) =:= ok
                  andalso lists:member({Id, <<"going to look">>}, alarms(N1))
          end),
    start(n2, Config),
    until(fun() -> not lists:any(IsOfN2, alarms(N4)) end),
    until(fun() -> logged(N1, "NOTICE", ["over: unreachable on ", n2, ": no path to it "]) end),
    until(fun() -> reported(N4) =:= ?NAMES end).

traffic_between_groups_is_told(Config) ->
    [N1, _, _, N4, N5] = ?config(nodes, Config),
    begun_again(N1, set_env, [weft_ops, thresholds, ?HOT]),
    until(fun() -> {agents(N4), reported(N4)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES} end),
    Flood = call(N1, erlang, spawn, [?MODULE, flood, [node_name(n5)]]),
    Crosses = {crosses_groups, node_name(n1), node_name(n5)},
    Hot = {hot_gateway, node_name(n3), node_name(n3)},
    until(fun() -> [Crosses, Hot] -- [Id || {Id, _} <- alarms(N4)] =:= [] end),
    Expected = [node_name(N) || N <- [n1, n5, n3]],
    until(fun() ->
              case call(N4, weft_ops, traffic, []) of
                  #{nodes := [#{from := From, to := To, via := Via} | _],
                    groups := [#{from := g1, to := g2} | _]} -> [From, To, Via] =:= Expected;
                  #{} -> false
              end
          end),
    ?assertNot(lists:keymember({bypasses_gateways, node_name(n1), node_name(n5)}, 1, alarms(N5))),
    until(fun() -> logged(N1, "NOTICE", ["crosses_groups on ", n1, ": [0-9]+ bytes/s with "]) end),
    true = call(N1, erlang, exit, [Flood, kill]),
    until(fun() -> [Crosses, Hot] -- [Id || {Id, _} <- alarms(N4)] =:= [Crosses, Hot] end),
    begun_again(N1, unset_env, [weft_ops, thresholds]),
    until(fun() -> {agents(N4), reported(N4)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES} end).

%% With so many processes that compute each waits for its turn; until it is told.
a_busy_node_is_told(Config) ->
    [N1, _, N3 | _] = ?config(nodes, Config),
    until(fun() -> reported(N3) =:= ?NAMES end),
    Crowd = call(N1, ?MODULE, crowd, [60]),
    Busy = {busy, node_name(n1), node_name(n1)},
    until(fun() -> lists:keymember(Busy, 1, alarms(N3)) end),
    %% That has to wait for its turn as well, and what ends the crowd, too.
    Said = ["busy on ", n1, ": processes are woken up to "],
    weft_test_nodes:until(fun() -> logged(N1, "WARNING", Said) end, 90000),
    true = weft_test_nodes:call(N1, erlang, exit, [Crowd, kill], 90000),
    until(fun() -> not lists:keymember(Busy, 1, alarms(N3)) end).

%% --- recording ----------------------------------------------------------------------------------

%% On a node that is no agent. While the directory cannot be written to, only that is lost.
what_happened_is_recorded(Config) ->
    [N1, _, N3, N4, N5] = ?config(nodes, Config),
    Dir = filename:join(?config(priv_dir, Config), "recording"),
    begun_again(N4, set_env, [weft_ops, recording, #{dir => Dir}]),
    until(fun() -> reported(N4) =:= ?NAMES end),
    ok = call(N3, weft_ops, tell, [deployment, "version 2"]),
    until(fun() -> happened(N1, told, n3) end),
    KilledMs = erlang:system_time(millisecond),
    ok = weft_test_nodes:kill(N5),
    %% It may have been late before.
    until(fun() ->
              happened(N4, silent, n5, KilledMs) andalso happened(N4, alarm_raised, n5, KilledMs)
          end),
    ok = call(N4, weft_ops_recorder, flush, []),
    start(n5, Config),
    %% The newest first.
    Silent = fun() -> [AtMs || #{at_ms := AtMs} <- recorded(Dir, silent, n5), AtMs >= KilledMs] end,
    Joined = fun(SinceMs) -> [AtMs || #{at_ms := AtMs} <- recorded(Dir, joined, n5),
                                      AtMs > SinceMs]
             end,
    until(fun() ->
              ok = call(N4, weft_ops_recorder, flush, []),
              case Silent() of
                  [] -> false;
                  [_ | _] = All -> Joined(lists:last(All)) =/= []
              end
          end),
    SilentMs = lists:last(Silent()),
    ?assertMatch([#{about := deployment, text := <<"version 2">>}], recorded(Dir, told, n3)),
    {ok, {FromMs, ToMs}} = weft_ops_recording:span(Dir),
    ?assert(FromMs < SilentMs andalso SilentMs < ToMs),
    {ok, #{nodes := Then}} = weft_ops_recording:picture(Dir, SilentMs + 3 * ?SAMPLE_MS),
    ?assertMatch({silent, #{groups := [g1]}}, {maps:get(node_name(n5), Then),
                                               maps:get(node_name(n1), Then)}),
    {ok, #{nodes := Last}} = weft_ops_recording:picture(Dir, ToMs),
    ?assertMatch(#{groups := [g2]}, maps:get(node_name(n5), Last)),
    spoilt(N4, Dir),
    begun_again(N4, unset_env, [weft_ops, recording]).

begun_again(Node, Change, Args) ->
    [ok = call(Node, application, Function, With)
     || {Function, With} <- [{stop, [weft_ops]}, {Change, Args}, {start, [weft_ops]}]],
    ok.

spoilt(N4, Dir) ->
    Recorder = call(N4, erlang, whereis, [weft_ops_recorder]),
    ok = file:del_dir_r(Dir),
    ok = file:write_file(Dir, "in the way"),
    [begin
         until(fun() -> {message_queue_len, 0} =:= call(N4, erlang, process_info,
                                                        [Recorder, message_queue_len]) end),
         ok = call(N4, weft_ops_recorder, flush, [])
     end || _ <- [1, 2]],
    ok = file:delete(Dir),
    until(fun() ->
              ok = call(N4, weft_ops_recorder, flush, []),
              element(1, weft_ops_recording:span(Dir)) =:= ok
          end),
    ?assertEqual(Recorder, call(N4, erlang, whereis, [weft_ops_recorder])).

happened(Node, Kind, Name) -> happened(Node, Kind, Name, 0).

happened(Node, Kind, Name, SinceMs) ->
    lists:any(fun(#{kind := Of, node := About}) -> {Of, About} =:= {Kind, node_name(Name)} end,
              call(Node, weft_ops, events, [SinceMs])).

recorded(Dir, Kind, Name) ->
    {ok, Events, []} = weft_ops_recording:fold(Dir, {0, infinity},
                                               fun({_, {event, Event}}, All) -> [Event | All];
                                                  (_, All) -> All
                                               end, []),
    [Event || #{kind := Of, node := About} = Event <- Events,
              {Of, About} =:= {Kind, node_name(Name)}].

%% --- inside -------------------------------------------------------------------------------------

killed_processes_come_back(Config) ->
    [N1, N2 | _] = ?config(nodes, Config),
    until(fun() -> reported(N2) =:= ?NAMES end),
    [begin
         Before = call(Node, erlang, whereis, [Name]),
         stray = call(Node, erlang, send, [Name, stray]),
         Odd = {weft_ops_sample, ?G1, #{node => node_name(n2), at_ms => 1}},
         Odd = call(Node, erlang, send, [Name, Odd]),
         ?assertMatch({error, _}, call(Node, gen_server, call, [Name, stray])),
         ?assertEqual(Before, call(Node, erlang, whereis, [Name])),
         true = call(Node, erlang, exit, [Before, kill]),
         until(fun() -> is_pid(call(Node, erlang, whereis, [Name])) end),
         until(fun() -> {agents(N2), reported(N2)} =:= {[{?G1, n1}, {?G2, n3}], ?NAMES} end)
     end || {Node, Name} <- [{N1, weft_ops_agent}, {N1, weft_ops_sampler}, {N2, weft_ops_agent},
                             {N2, weft_ops_sampler}]].

without_a_topology_each_is_its_own(Config) ->
    [A, B] = [start(Name, [], [], Config) || Name <- [a, b]],
    until(fun() -> call(A, net_kernel, connect_node, [node_name(b)]) end),
    [until(fun() -> reported(Node) =:= [a, b] end) || Node <- [A, B]],
    until(fun() -> agents(A) =:= [{{node, node_name(a)}, a}, {{node, node_name(b)}, b}] end).

%% Each is its own agent in a mesh. The next one misses it, whether it is dead or only weft_ops is
%% stopped there: f3, as long as weft_ops does not run on f2b.
a_free_node_is_missed(Config) ->
    Names = [f1, f2, f3],
    Start = fun(Name) -> start(Name, free(), ?PARTIAL, Config) end,
    [F1, F2, F3] = [Start(Name) || Name <- Names],
    Between = joined(f2b, free(), ?PARTIAL, Config),
    {ok, _} = call(Between, application, ensure_all_started, [weft]),
    until(fun() ->
              call(F3, net_kernel, connect_node, [node_name(f2b)])
                  andalso lists:member(node_name(f2b), call(F3, weft_overlay, members, []))
          end),
    Free = {node, node_name(f2)},
    until(fun() -> {reported(F1), listed(F3, Free)} =:= {Names, [node_name(f2)]} end),
    ok = weft_test_nodes:kill(F2),
    until(fun() ->
              #{nodes := Nodes, agents := Agents} = call(F1, weft_ops, picture, []),
              {silent, none} =:= {maps:get(node_name(f2), Nodes, gone), maps:get(Free, Agents)}
          end),
    until(fun() -> happened(F1, silent, f2) end),
    Again = Start(f2),
    until(fun() -> {reported(F1), listed(F3, Free)} =:= {Names, [node_name(f2)]} end),
    Silent = {silent, node_name(f2), node_name(f2)},
    until(fun() -> not lists:keymember(Silent, 1, alarms(F1)) end),
    ok = call(Again, application, stop, [weft_ops]),
    until(fun() -> lists:keymember(Silent, 1, alarms(F1)) end),
    another_witness_is_chosen(F1, Again, Between),
    until(fun() -> not lists:keymember(Silent, 1, alarms(F1)) end),
    %% It leaves on purpose.
    ok = call(Again, weft, leave, []),
    until(fun() -> happened(F1, left, f2) end),
    ?assertNot(lists:keymember(Silent, 1, alarms(F1))).

free() -> [{topology, {full_mesh, #{seeds => [node_name(f1)]}}}].

%% When it is back it reports to f2b, and f3, which misses it, is told by nobody.
another_witness_is_chosen(F1, F2, Between) ->
    {ok, _} = call(Between, application, ensure_all_started, [weft_ops]),
    until(fun() -> lists:member(f2b, reported(F1)) end),
    until(fun() -> call(F2, net_kernel, connect_node, [node_name(f2b)]) end),
    {ok, _} = call(F2, application, ensure_all_started, [weft_ops]),
    until(fun() -> listed(Between, {node, node_name(f2)}) =:= [node_name(f2)] end).

%% They have no group in common, and a link all the same. Small messages stay on one of its lanes.
faults_of_two_nodes_are_told(Config) ->
    [C, D] = Nodes = [start(Name, [{lanes, 2}, {faults, true}], [], Config) || Name <- [c, d]],
    Groups = #{gc => [node_name(c)], gd => [node_name(d)]},
    [ok = call(Node, weft_group, configure, [Groups]) || Node <- Nodes],
    begun_again(C, set_env, [weft_ops, thresholds, ?LOW]),
    until(fun() -> call(C, net_kernel, connect_node, [node_name(d)]) end),
    raised([bypasses_gateways, lanes_unequal], trickle, [node_name(d)], C),
    over([bypasses_gateways, lanes_unequal], C),
    ?assertNot(is_raised(crosses_groups, C)),
    %% That is not over for a minute.
    raised([link_flaps], flap, [node_name(d)], C),
    ok = call(C, weft_fault, cut, [node_name(d)]),
    raised([queue_grows, senders_suspended], pile, [node_name(d), 20], C),
    over([queue_grows, senders_suspended], C),
    until(fun() -> call(D, net_adm, ping, [node_name(c)]) =:= pong end),
    a_free_node_joins_one_without_weft_ops(C, D).

%% That would be its agent, and gets no alarms: what was said of them would be lost with them.
a_free_node_joins_one_without_weft_ops(C, D) ->
    begun_again(D, set_env, [weft_ops, thresholds, ?LOW]),
    ok = call(C, application, stop, [weft_ops]),
    Self = node_name(d),
    {ok, _} = call(D, weft_group, leave, [gd]),
    until(fun() -> listed(D, {node, Self}) =:= [Self] end),
    Trickle = call(D, erlang, spawn, [?MODULE, trickle, [node_name(c)]]),
    Id = {lanes_unequal, Self, node_name(c)},
    until(fun() -> ok =:= call(D, weft_ops_agent, acknowledge, [Self, Id, <<"mine">>, 5000]) end),
    {ok, _} = call(D, weft_group, create, [gcd, [node_name(c), Self]]),
    until(fun() -> listed(D, {group, gcd}) =:= [Self] end),
    samples_pass(D),
    ?assert(lists:member({Id, <<"mine">>}, alarms(D))),
    true = call(D, erlang, exit, [Trickle, kill]).

%% What that process does raises alarms about the two nodes. It is ended then.
raised(Kinds, Does, Arguments, C) ->
    over(Kinds, C),
    Doer = call(C, erlang, spawn, [?MODULE, Does, Arguments]),
    until(fun() -> lists:all(fun(Kind) -> is_raised(Kind, C) end, Kinds) end),
    true = call(C, erlang, exit, [Doer, kill]),
    ok = call(C, weft_fault, heal, []).

over(Kinds, C) ->
    until(fun() -> not lists:any(fun(Kind) -> is_raised(Kind, C) end, Kinds) end).

%% As its agent, which it is itself, says.
is_raised(Kind, C) ->
    {ok, #{alarms := Alarms}} = call(C, weft_ops_agent, ask, [node_name(c), {group, gc}, 5000]),
    [] =/= [Id || #{id := {Is, From, About} = Id} <- Alarms,
                  {Is, From, About} =:= {Kind, node_name(c), node_name(d)}].

%% --- on the nodes -------------------------------------------------------------------------------

%% @doc Sends for ever to nobody.
flood(Node) ->
    {nobody, Node} ! binary:copy(<<0>>, 65536),
    receive after 10 -> ok end, % pacing: some megabytes a second
    flood(Node).

%% @doc Sends small messages for ever to nobody.
trickle(Node) ->
    {nobody, Node} ! binary:copy(<<0>>, 4096),
    receive after 10 -> trickle(Node) end. % pacing: some hundred kilobytes a second

%% @doc Breaks the link all the time.
flap(Node) ->
    _ = weft_fault:break(Node),
    receive after 50 -> flap(Node) end. % pacing: a network that flaps

%% @doc So many processes send a large message to nobody; it waits.
pile(Node, Count) ->
    Message = binary:copy(<<0>>, 1048576),
    lists:foreach(fun(_) -> spawn(fun() -> {nobody, Node} ! Message end) end,
                  lists:seq(1, Count)),
    receive after infinity -> ok end.

%% @doc Whether all who send to a node have to wait for that. Sends some more to nobody.
is_choked(Node) ->
    Message = binary:copy(<<0>>, 1048576),
    [spawn(fun() -> {nobody, Node} ! Message end) || _ <- [1, 2, 3]],
    receive after 100 -> ok end, % pacing: they send meanwhile
    Other = spawn(fun() -> {nobody, Node} ! small end),
    receive after 100 -> ok end, % pacing: by then it has sent that, unless it has to wait
    is_process_alive(Other).

%% @doc A process with so many others that compute until it ends. Each of their turns takes some
%% milliseconds: it is of so many reductions, and a conversion counts as one.
crowd(Count) ->
    spawn(fun() ->
                  _ = process_flag(priority, high),
                  [spawn_link(?MODULE, spin, []) || _ <- lists:seq(1, Count)],
                  receive after infinity -> ok end
          end).

spin() ->
    _ = float_to_binary(1.0e-30, [{scientific, 200}]),
    spin().

%% @doc The nodes that report under a duty to the agent on that node.
listed(Node, Duty) ->
    {ok, #{nodes := Nodes}} = call(Node, weft_ops_agent, ask, [weft_test_nodes:name(Node), Duty,
                                                               5000]),
    maps:keys(Nodes).

%% --- steps --------------------------------------------------------------------------------------

start(Name, Config) ->
    Groups = #{g1 => [node_name(N) || N <- [n1, n2, n3]],
               g2 => [node_name(N) || N <- [n3, n4, n5]]},
    start(Name, [{topology, {groups, Groups}}], ?PARTIAL, Config).

start(Name, Weft, Args, Config) ->
    Node = joined(Name, Weft, Args, Config),
    {ok, _} = call(Node, application, ensure_all_started, [weft_ops]),
    Node.

%% With no weft_ops yet.
joined(Name, Weft, Args, Config) ->
    Options = #{config => Weft, args => Args ++ weft_ops_test_args:args([?MODULE])},
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    [ok = call(Node, application, set_env, [weft_ops, Key, Value]) || {Key, Value} <- ?QUICK],
    Node.

%% Samples are taken less often.
until(Condition) ->
    weft_test_nodes:until(fun() ->
                              Condition() orelse receive after 100 -> false end % pacing: of looks
                          end).

agents(Node) ->
    #{agents := Agents} = call(Node, weft_ops, picture, []),
    lists:sort([{Duty, short(Agent)} || {Duty, Agent} <- maps:to_list(Agents)]).

reported(Node) ->
    #{nodes := Nodes} = call(Node, weft_ops, picture, []),
    lists:sort([short(Of) || {Of, Sample} <- maps:to_list(Nodes), Sample =/= silent]).

alarms(Node) ->
    [{Id, case Acknowledged of #{comment := Comment} -> Comment; no -> no end}
     || #{id := Id, acknowledged := Acknowledged} <- call(Node, weft_ops, alarms, [])].

%% Those of the agent on that node.
alarms_of(Node) ->
    {ok, #{alarms := Alarms}} = call(Node, weft_ops_agent, ask, [weft_test_nodes:name(Node), ?G1,
                                                                 5000]),
    [Id || #{id := Id} <- Alarms].

%% Whether a node has logged that, with a severity, in a report of its own.
logged(#{log := Log}, Severity, Words) ->
    {ok, Text} = file:read_file(Log),
    Pattern = ["(?m)^=", Severity, " REPORT=.*\n", [pattern(Word) || Word <- Words]],
    re:run(Text, Pattern, [{capture, none}]) =:= match.

%% How often a node has logged that another one is silent.
misses(#{log := Log}) ->
    {ok, Text} = file:read_file(Log),
    case re:run(Text, "(?m)^=ERROR REPORT=.*\nsilent on ", [global]) of
        {match, All} -> length(All);
        nomatch -> 0
    end.

%% How often a node has logged that this one is silent no more.
overs(#{log := Log}, Name) ->
    {ok, Text} = file:read_file(Log),
    length(binary:matches(Text, iolist_to_binary(["over: silent on ", pattern(Name)]))).

pattern(Name) when is_atom(Name) -> atom_to_list(node_name(Name));
pattern(Words) -> Words.

short(none) -> none;
short(Node) -> list_to_atom(hd(string:split(atom_to_list(Node), "@"))).
