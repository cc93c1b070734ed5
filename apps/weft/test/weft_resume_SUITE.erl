%% SPDX-License-Identifier: Apache-2.0
%% @doc Sessions on real nodes while connections, nodes and gateways fail.
%%
%% Faults are drawn from a seed, which is printed; SEED=<number> repeats a run. FULL=1 makes the
%% long version of the circuit case (1,000,000 messages, 100 faults and more), and 1,000 rounds of
%% simultaneous connects; ROUNDS=<number> as many.
-module(weft_resume_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2, init_per_testcase/2, end_per_testcase/2]).
-export([every_connection_killed_fifty_times/1, single_lanes_killed/1, simultaneous_connects/1,
         connects_at_once_after_a_disconnect/1, last_words_before_a_disconnect_arrive/1,
         a_disconnect_during_a_cut_is_heard_afterwards/1,
         an_end_with_the_process_of_a_link_is_heard/1,
         killed_peer_is_down_at_once_and_never_resumes/1,
         cut_beyond_the_timeout_is_one_nodedown/1, stopped_peer_comes_back/1,
         circuit_survives_gateways/1, epmd_restart_is_no_nodedown/1,
         who_was_dialled_looks_where_its_peer_listens/1,
         epmd_that_stands_still_is_no_nodedown/1, only_one_of_two_can_call/1,
         idle_link_is_closed/1]).

-define(T, weft_resume_traffic).
%% What a busy machine may add. The times to resume, and those of the kernel, are much longer.
-define(LATE_MS, 10000).
-define(RESUME_MS, 20000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [{group, one_pair}, single_lanes_killed, killed_peer_is_down_at_once_and_never_resumes,
     cut_beyond_the_timeout_is_one_nodedown, stopped_peer_comes_back,
     circuit_survives_gateways, only_one_of_two_can_call, idle_link_is_closed].

%% The first case needs nodes that have never asked epmd for each other; the last one ends `rex'.
groups() ->
    [{one_pair, [], [who_was_dialled_looks_where_its_peer_listens, epmd_restart_is_no_nodedown,
                     epmd_that_stands_still_is_no_nodedown, every_connection_killed_fifty_times,
                     connects_at_once_after_a_disconnect, last_words_before_a_disconnect_arrive,
                     a_disconnect_during_a_cut_is_heard_afterwards,
                     an_end_with_the_process_of_a_link_is_heard, simultaneous_connects]}].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_testcase(_Case, Config) ->
    Seed = weft_test_nodes:seed(),
    _ = rand:seed(exsss, Seed),
    [{seed, Seed} | Config].

end_per_testcase(_Case, Config) ->
    ?config(pair, Config) =/= undefined orelse weft_test_nodes:stop_all().

init_per_group(one_pair, Config) ->
    [{pair, pair(Config, [{faults, true}], ["-connect_all", "false"])} | Config].

end_per_group(one_pair, _Config) -> weft_test_nodes:stop_all().

%% --- direct sessions --------------------------------------------------------------------------

every_connection_killed_fifty_times(Config) ->
    kill_under_traffic(?config(pair, Config), #{which => all, kills => 50, resumes_min => 25},
                       Config).

single_lanes_killed(Config) ->
    [A, B] = Nodes = pair(Config, [{lanes, 4}]),
    kill_under_traffic(Nodes, #{which => one, kills => 30, resumes_min => 2}, Config),
    %% Whatever lanes were lost, they come back.
    weft_test_nodes:until(fun() -> lanes(A, B) =:= 4 andalso lanes(B, A) =:= 4 end).

lanes(A, #{node := Node}) ->
    [Lanes] = [L || #{node := N, lanes := L} <- call(A, weft_links, info, []), N =:= Node],
    length(Lanes).

kill_under_traffic([A, B] = Nodes, #{which := Which, kills := Kills, resumes_min := Least},
                   Config) ->
    connect_anew(A, B),
    begin_traffic(Nodes, ?config(seed, Config), #{rate => 1000, bytes_max => 2000}),
    Killed = kill_lanes(Kills, Least, Nodes, Which),
    Resumes = resumes(A, B),
    end_traffic(Nodes),
    ct:pal("resumes: ~b, after lanes were killed ~b times", [Resumes, Killed]),
    %% Each fault cost no more than its own: no thrashing.
    ?assert(Resumes =< 2 * Killed).

%% So many times, and until so many came to pass: on a busy machine many fall into one resume.
kill_lanes(Times, Least, [A, B] = Nodes, Which) ->
    [kill_lanes(Nodes, Which) || _ <- lists:seq(1, Times)],
    case resumes(A, B) >= Least of
        true -> Times;
        false -> Times + kill_lanes(1, Least, Nodes, Which)
    end.

kill_lanes(Nodes, Which) ->
    {Here, There} = pick_sides(Nodes),
    How = lists:nth(rand:uniform(2), [fin, rst]),
    _ = call(Here, ?T, kill_lanes, [maps:get(node, There), How, Which]),
    pause_ms(rand:uniform(100) - 1).

pick_sides([A, B]) ->
    case rand:uniform(2) of 1 -> {A, B}; 2 -> {B, A} end.

%% Two nodes connect to each other at the same moment, again and again: first with the link between
%% them up, then with the link down too. Nobody else may connect them: `global' would, with what it
%% still has to say to a node that is gone, and so would `rex', with the answer to what its peer has
%% asked when they were connected.
simultaneous_connects(Config) ->
    Nodes = ?config(pair, Config),
    [ok = call(N, supervisor, terminate_child, [kernel_sup, rex]) || N <- Nodes],
    try lists:foreach(fun(Round) -> connect_both(Nodes, Round) end, lists:seq(1, rounds()))
    catch
        error:Reason:Stack ->
            ct:pal("~p~n~p", [Reason, states(Nodes)]),
            erlang:raise(error, Reason, Stack)
    end.

%% Each is the same race anew.
rounds() ->
    Usual = case os:getenv("FULL") of "1" -> "1000"; _ -> "30" end,
    list_to_integer(os:getenv("ROUNDS", Usual)).

connect_both([A, B] = Nodes, Round) ->
    At = erlang:system_time(nanosecond) + 3000000,
    Self = self(),
    Answers = [{Here, spawn_monitor(
                        fun() ->
                                Self ! {self(), call(Here, ?T, connect_at, [name(There), At])}
                        end)} || {Here, There} <- [{A, B}, {B, A}]],
    Connected = [receive {Pid, Answer} -> demonitor(Ref, [flush]), Answer
                 after 20000 -> ct:fail({hangs, Round, name(Here), states(Nodes)})
                 end || {Here, {Pid, Ref}} <- Answers],
    %% One of the two may be told `false' as by the stock carrier, if it lost the race and looked
    %% before the other call was through; the nodes are connected all the same.
    ?assert(lists:member(true, Connected), {Round, Connected}),
    weft_test_nodes:until(fun() -> is_connected(A, B) andalso is_connected(B, A) end),
    {Here, There} = pick_sides(Nodes),
    true = call(Here, erlang, disconnect_node, [name(There)]),
    weft_test_nodes:until(fun() -> not is_connected(A, B) andalso not is_connected(B, A) end),
    [weft_test_nodes:until(fun() -> call(N, weft_sessions, list, []) =:= [] end) || N <- Nodes],
    Round rem 2 =:= 0 andalso break_link(Nodes).

%% A link that does not know yet that its session is gone would be dialled anew.
break_link([A, B] = Nodes) ->
    weft_test_nodes:until(fun() -> lists:all(fun is_without_sessions/1, Nodes) end),
    {Here, There} = pick_sides(Nodes),
    weft_test_nodes:until(fun() ->
                                  %% Both ends may have dialled once more.
                                  ok = call(Here, weft_fault, break, [name(There)]),
                                  not call(A, weft_links, up, [name(B)])
                                      andalso not call(B, weft_links, up, [name(A)])
                          end).

is_without_sessions(Node) ->
    lists:all(fun(#{above := #{sessions := Sessions, labels := Labels}}) ->
                      Sessions =:= [] andalso Labels =:= 0
              end, call(Node, weft_links, info, [])).

states(Nodes) ->
    [{name(N), call(N, weft_links, info, []),
      [call(N, weft_session, info, [S]) || S <- call(N, weft_sessions, list, [])]} || N <- Nodes].

%% Without a look at what the other node knows: there the one before may be on its way still.
connects_at_once_after_a_disconnect(Config) ->
    [A, B] = ?config(pair, Config),
    connect(A, B),
    [?assertEqual(0, weft_test_nodes:call(Here, ?T, reconnect, [name(There), 150], 60000))
     || {Here, There} <- [{A, B}, {B, A}]].

%% As on the stock carrier: what the socket takes is sent. Nobody promises the last ones, but none
%% before those that arrive is left out.
last_words_before_a_disconnect_arrive(Config) ->
    [A, B] = ?config(pair, Config),
    ok = call(B, ?T, expect, []),
    lists:foreach(fun(Round) ->
                          connect(A, B),
                          First = (Round - 1) * 500,
                          true = call(A, ?T, last_words, [name(B), First, First + 500]),
                          weft_test_nodes:until(fun() -> received(B) > First + 450 end),
                          weft_test_nodes:until(fun() -> not is_connected(B, A) end),
                          ct:pal("round ~b: ~b of 500", [Round, received(B) - First])
                  end, lists:seq(1, 5)),
    #{wrong := Wrong} = call(B, ?T, account, []),
    ?assertEqual([], [Gap || {expected, _, got, Got} = Gap <- Wrong, Got rem 500 =/= 1]).

%% First who was called is killed, and comes back; then who has called.
killed_peer_is_down_at_once_and_never_resumes(Config) ->
    [A, B] = pair(Config, []),
    connect(A, B),
    [Session] = call(A, weft_sessions, list, []),
    Incarnation = call(B, weft_identity, incarnation, []),
    killed_peer(B, A),
    B2 = weft_test_nodes:start(short_name(B), #{config => resume_config()}, ?config(place, Config)),
    ?assertEqual(name(B), name(B2)),
    weft_test_nodes:until(fun() -> not call(A, erlang, is_process_alive, [Session]) end,
                          ?RESUME_MS div 2),
    weft_test_nodes:until(fun() -> call(A, net_kernel, connect_node, [name(B2)]) end),
    ?assertNotEqual(Incarnation, call(B2, weft_identity, incarnation, [])),
    %% Link, two monitors, and nodedown, once each.
    weft_test_nodes:until(fun() -> length(bad_signals(A)) >= 4 end),
    ?assertEqual(4, length(bad_signals(A))),
    ?assertEqual([0], [Resumes || S <- call(A, weft_sessions, list, []),
                                  #{resumes := Resumes} <- [info(A, S)]]),
    killed_peer(A, B2).

killed_peer(Dead, Alive) ->
    ok = call(Alive, ?T, expect, []),
    ok = call(Dead, ?T, expect, []),
    ok = call(Alive, ?T, watch, [name(Dead)]),
    StartMs = call(Alive, erlang, monotonic_time, [millisecond]),
    ok = weft_test_nodes:kill(Dead),
    weft_test_nodes:until(fun() -> [] =/= nodedowns(Alive) end),
    [{AtMs, _}] = nodedowns(Alive),
    ct:pal("~s: nodedown after ~b ms", [name(Dead), AtMs - StartMs]),
    ?assert(AtMs - StartMs < ?LATE_MS).

%% Who was called asks for no path, and who has called has no session any more: it would end with
%% the time to resume, or by the kernel's ticks.
a_disconnect_during_a_cut_is_heard_afterwards(Config) ->
    [A, B] = ?config(pair, Config),
    connect(A, B),
    weft_test_nodes:until(fun() -> is_connected(A, B) andalso is_connected(B, A) end),
    ok = call(A, weft_fault, cut, [name(B)]),
    true = call(A, erlang, disconnect_node, [name(B)]),
    weft_test_nodes:until(fun() -> not is_connected(A, B) end),
    ?assert(is_connected(B, A)),
    ok = call(A, weft_fault, heal, []),
    weft_test_nodes:until(fun() -> not is_connected(B, A) end, ?RESUME_MS div 2).

%% Nor does who was called know that who has called has lost what the session needs there.
an_end_with_the_process_of_a_link_is_heard(Config) ->
    [A, B] = ?config(pair, Config),
    connect_anew(A, B),
    [ok = call(B, ?T, Begin, []) || Begin <- [expect, watch_nodes]],
    {ok, Link} = call(A, weft_links, lookup, [name(B)]),
    true = call(A, erlang, exit, [Link, kill]),
    weft_test_nodes:until(fun() -> nodedowns(B) =/= [] end, ?RESUME_MS div 4).

cut_beyond_the_timeout_is_one_nodedown(Config) ->
    TimeoutMs = 1500,
    [A, B] = Nodes = pair(Config, [{faults, true}, {resume_timeout_ms, TimeoutMs}]),
    connect(A, B),
    begin_watching(Nodes),
    {Here, There} = pick_sides(Nodes),
    Starts = [call(N, erlang, monotonic_time, [millisecond]) || N <- Nodes],
    ok = call(Here, weft_fault, cut, [name(There)]),
    weft_test_nodes:until(fun() -> lists:all(fun(N) -> nodedowns(N) =/= [] end, Nodes) end),
    Afters = [AtMs - StartMs || {N, StartMs} <- lists:zip(Nodes, Starts),
                                {AtMs, _} <- nodedowns(N)],
    ct:pal("nodedown after ~w ms", [Afters]),
    ?assertMatch([_, _], Afters),
    [?assert(Ms >= TimeoutMs andalso Ms < TimeoutMs + ?LATE_MS) || Ms <- Afters],
    ?assertNot(call(There, net_kernel, connect_node, [name(Here)])),
    ok = call(Here, weft_fault, heal, []),
    weft_test_nodes:until(fun() -> call(There, net_kernel, connect_node, [name(Here)]) end),
    weft_test_nodes:until(fun() -> is_connected(Here, There) end),
    [?assertMatch([_], nodedowns(N)) || N <- Nodes],
    ok.

%% A node that stands still is noticed, its session waits for it, and its peer's memory is bounded
%% meanwhile: the messages wait in the processes that send, as on any busy connection.
stopped_peer_comes_back(Config) ->
    [A, B] = Nodes = pair(Config, [{keepalive_ms, 200}, {link_timeout_ms, 1000}]),
    connect(A, B),
    begin_watching(Nodes),
    ok = call(A, ?T, send, [name(B), #{rate => 1000, bytes_max => 20000,
                                          seed => ?config(seed, Config)}]),
    weft_test_nodes:until(fun() -> received(B) > 100 end),
    Before = call(A, erlang, memory, [total]),
    ok = weft_test_nodes:pause(B),
    %% Noticed: the link is down. And it stays so over several attempts to dial.
    weft_test_nodes:until(fun() -> not call(A, weft_links, up, [name(B)]) end),
    Highest = lists:max([begin pause_ms(50), call(A, erlang, memory, [total]) end
                         || _ <- lists:seq(1, 60)]),
    ok = weft_test_nodes:continue(B),
    ct:pal("memory of the sender: ~b before, at most ~b while the peer stood still",
           [Before, Highest]),
    ?assert(Highest < Before + 8 * 1024 * 1024),
    Sent = call(A, ?T, finish, []),
    weft_test_nodes:until(fun() -> received(B) >= Sent end),
    ?assertMatch(#{received := Sent, wrong := []}, call(B, ?T, account, [])),
    [?assertEqual([], bad_signals(N)) || N <- Nodes],
    ?assert(resumes(A, B) >= 1).

%% A new epmd has to be told the names again; until then nobody may be taken for dead.
epmd_restart_is_no_nodedown(Config) ->
    without_epmd(Config, fun(Epmd) -> weft_test_nodes:restart_epmd(Epmd) end).

%% A has dialled, so B has never asked epmd for it. A stands still: it dials late, and does not
%% register again meanwhile.
who_was_dialled_looks_where_its_peer_listens(Config) ->
    [A, B] = Nodes = ?config(pair, Config),
    connect(A, B),
    ?assertMatch({_, #{dialled_us := _}}, call(A, weft_link_table, read, [name(B)])),
    begin_watching(Nodes),
    #{epmd := Epmd} = ?config(place, Config),
    ok = weft_test_nodes:pause(A),
    ok = weft_test_nodes:restart_epmd(Epmd),
    1 = call(B, ?T, kill_lanes, [name(A), rst, all]),
    pause_ms(1500),
    ok = weft_test_nodes:continue(A),
    weft_test_nodes:until(fun() -> resumes(A, B) >= 1 andalso resumes(B, A) >= 1 end),
    [?assertEqual([], bad_signals(N)) || N <- Nodes],
    ok.

%% It takes connections, and never answers.
epmd_that_stands_still_is_no_nodedown(Config) ->
    #{epmd := Epmd} = ?config(place, Config),
    try without_epmd(Config, fun(_) -> weft_test_nodes:signal_epmd("STOP", Epmd) end)
    after weft_test_nodes:signal_epmd("CONT", Epmd)
    end.

without_epmd(Config, Do) ->
    [A, B] = Nodes = ?config(pair, Config),
    connect(A, B),
    begin_watching(Nodes),
    #{epmd := Epmd} = ?config(place, Config),
    ok = Do(Epmd),
    [begin
         weft_test_nodes:until(fun() -> linked(A, B) andalso linked(B, A) end),
         {BeforeA, BeforeB} = {resumes(A, B), resumes(B, A)},
         1 = call(Here, ?T, kill_lanes, [name(There), rst, all]),
         weft_test_nodes:until(fun() -> resumes(A, B) > BeforeA andalso resumes(B, A) > BeforeB end)
     end || {Here, There} <- [{A, B}, {B, A}]],
    [?assertEqual([], bad_signals(N)) || N <- Nodes],
    ok.

%% What one node sends to the other's port is dropped. Its own attempt takes five seconds, and its
%% name is the greater one. The call of the other one is not refused for so long.
only_one_of_two_can_call(Config) ->
    {Listen, Full} = port_without_room(),
    [NameA, NameZ] = [unique(Name) || Name <- [a, z]],
    [PortA, PortZ] = [weft_test_nodes:free_port() || _ <- [a, z]],
    [A, Z] = [weft_test_nodes:start(Name, #{config => [{ports, Ports}],
                                            args => ["-start_epmd", "false",
                                                     "-epmd_module", "weft_epmd"]},
                                    ?config(place, Config))
              || {Name, Ports} <- [{NameA, #{atom_to_list(NameA) => PortA, default => PortZ}},
                                   {NameZ, #{atom_to_list(NameZ) => PortZ, default => Full}}]],
    connect_soon(Z, A),
    weft_test_nodes:until(fun() -> is_dialling(Z, A) end),
    connect_soon(A, Z),
    weft_test_nodes:until(fun() -> is_connected(A, Z) andalso is_connected(Z, A) end, 4000),
    ok = gen_tcp:close(Listen).

%% As many connections wait there as may.
port_without_room() ->
    {ok, Listen} = gen_tcp:listen(0, [{backlog, 1}]),
    {ok, Port} = inet:port(Listen),
    {error, timeout} = filled(Port, 100),
    {Listen, Port}.

filled(Port, Times) when Times > 0 ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, [], 300) of
        {ok, _Waits} -> filled(Port, Times - 1);
        Full -> Full
    end.

%% Does not wait for it.
connect_soon(Node, To) ->
    _ = call(Node, erlang, spawn, [net_kernel, connect_node, [name(To)]]),
    ok.

is_dialling(Node, #{node := To}) ->
    [dialling] =:= [State || #{node := N, state := State} <- call(Node, weft_links, info, []),
                             N =:= To].

%% A link stays while a connection needs it, and goes link_idle_ms after the last one, or a bit
%% later, though it looks at that rarely while it is at rest.
idle_link_is_closed(Config) ->
    IdleMs = 1000,
    [A, B] = Nodes = pair(Config, [{link_idle_ms, IdleMs}, {keepalive_ms, 50}]),
    connect(A, B),
    pause_ms(3 * IdleMs),
    ?assert(linked(A, B) andalso linked(B, A)),
    StartMs = call(A, erlang, monotonic_time, [millisecond]),
    true = call(A, erlang, disconnect_node, [name(B)]),
    weft_test_nodes:until(fun() -> [] =:= lists:append([call(N, weft_links, list, [])
                                                        || N <- Nodes]) end, IdleMs + ?LATE_MS),
    ?assert(call(A, erlang, monotonic_time, [millisecond]) - StartMs >= IdleMs),
    connect(A, B).

%% --- circuits ---------------------------------------------------------------------------------

%% a - g1 - b and a - g2 - b: gateways die and links are cut while a and b talk.
circuit_survives_gateways(Config) ->
    {Count, FaultsMin} = case os:getenv("FULL") of
                             "1" -> {1000000, 100};
                             _ -> {20000, 6}
                         end,
    Names = [unique(Name) || Name <- [a, b, g1, g2]],
    Stage0 = square(Names, Config),
    #{a := A, b := B} = Stage0,
    weft_test_nodes:until(fun() -> call(A, net_kernel, connect_node, [name(B)]) end),
    begin_watching([A, B]),
    Seed = ?config(seed, Config),
    Plan = #{rate => 8000, bytes_max => 200, seed => Seed},
    ok = call(A, ?T, send, [name(B), Plan]),
    ok = call(B, ?T, send, [name(A), Plan#{rate := 800}]),
    Done = fun(Faults) -> length(Faults) >= FaultsMin andalso received(B) >= Count end,
    Tally = faults_until(Done, #{faults => [], resumes => []}, Stage0),
    tell(Tally, resumes(A, B)),
    end_traffic([A, B]).

tell(#{faults := Faults, resumes := Resumes}, Count) ->
    Kinds = [{Kind, length([x || K <- Faults, K =:= Kind])} || Kind <- lists:usort(Faults)],
    %% By chance all faults may have met the gateway that was not used.
    Longest = lists:max([0 | [Ms || {_, Ms} <- Resumes]]),
    ct:pal("~b faults ~p, ~b resumes; ~b of them timed, the longest ~p ms",
           [length(Faults), Kinds, Count, length(lists:usort(Resumes)), Longest]).

square(Names, Config) ->
    [A, B, G1, G2] = Nodes = [node_name(Name) || Name <- Names],
    Links = [{A, G1}, {G1, B}, {A, G2}, {G2, B}],
    Options = #{config => [{topology, {static, #{links => Links}}}, {faults, true}
                           | resume_config()],
                args => ["-kernel", "prevent_overlapping_partitions", "false",
                         "-connect_all", "false"]},
    Boot = fun(Name) -> start_overlay(Name, Options, Config) end,
    Refs = [Boot(Name) || Name <- Names],
    ?assertEqual(Nodes, [name(Ref) || Ref <- Refs]),
    maps:from_list([{boot, Boot} | lists:zip([a, b, g1, g2], Refs)]).

start_overlay(Name, Options, Config) ->
    Ref = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft]),
    Ref.

faults_until(Done, #{faults := Faults, resumes := Resumes} = Tally, Stage) ->
    case Done(Faults) of
        true ->
            Tally;
        false ->
            #{a := A, b := B} = Stage,
            {Kind, Next} = fault(lists:nth(rand:uniform(6), [kill, cut, cut, break, break, break]),
                                 Stage),
            faults_until(Done, Tally#{faults := [Kind | Faults],
                                      resumes := resume_times(A, B) ++ Resumes}, Next)
    end.

%% The last resume of each session: {which, milliseconds}. More than one for a fault are not seen.
resume_times(A, #{node := Node}) ->
    [{{S, Resumes}, Ms}
     || S <- call(A, weft_sessions, list, []),
        #{node := N, resumes := Resumes, last_resume_ms := Ms} <- [info(A, S)],
        N =:= Node, Resumes > 0].

%% Of a session that has just ended there is nothing to tell.
info(Node, Session) ->
    try call(Node, weft_session, info, [Session]) catch exit:{noproc, _} -> #{} end.

%% One gateway is killed and started anew; the other one lives.
fault(kill, #{boot := Boot, a := A, b := B} = Stage) ->
    Which = lists:nth(rand:uniform(2), [g1, g2]),
    #{Which := Gateway} = Stage,
    ok = weft_test_nodes:kill(Gateway),
    pause_ms(rand:uniform(300)),
    Again = Boot(short_name(Gateway)),
    weft_test_nodes:until(fun() -> linked(A, Again) andalso linked(B, Again) end),
    {killed_gateway, Stage#{Which := Again}};
%% A link is cut for a while, or just broken, by one of its ends.
fault(Kind, Stage) ->
    Gateway = maps:get(lists:nth(rand:uniform(2), [g1, g2]), Stage),
    End = maps:get(lists:nth(rand:uniform(2), [a, b]), Stage),
    {Here, There} = pick_sides([Gateway, End]),
    {fault_on_link(Kind, Here, name(There)), Stage}.

fault_on_link(break, Here, There) ->
    ok = call(Here, weft_fault, break, [There]),
    pause_ms(rand:uniform(300)),
    broken_link;
fault_on_link(cut, Here, There) ->
    ok = call(Here, weft_fault, cut, [There]),
    pause_ms(rand:uniform(600)),
    ok = call(Here, weft_fault, heal, [There]),
    cut_link.

linked(Here, #{node := Node}) -> call(Here, weft_links, up, [Node]).

%% --- steps ------------------------------------------------------------------------------------

resume_config() ->
    [{resume_timeout_ms, ?RESUME_MS}].

pair(Config, More) -> pair(Config, More, []).

pair(Config, More, Args) ->
    Weft = lists:ukeysort(1, More ++ resume_config()),
    [weft_test_nodes:start(unique(Name), #{config => Weft, args => Args}, ?config(place, Config))
     || Name <- [a, b]].

unique(Name) ->
    list_to_atom(atom_to_list(Name) ++ integer_to_list(erlang:unique_integer([positive]))).

short_name(#{node := Node}) ->
    [Name, _Host] = string:split(atom_to_list(Node), "@"),
    list_to_atom(Name).

connect(A, B) ->
    true = call(A, net_kernel, connect_node, [name(B)]),
    weft_test_nodes:until(fun() -> is_connected(B, A) end).

%% Over a session that knows nothing of the case before.
connect_anew(A, B) ->
    _ = call(A, erlang, disconnect_node, [name(B)]),
    weft_test_nodes:until(fun() -> lists:all(fun(N) -> call(N, weft_sessions, list, []) =:= [] end,
                                             [A, B]) end),
    connect(A, B).

is_connected(A, #{node := Node}) ->
    lists:member(Node, call(A, erlang, nodes, [connected])).

begin_watching([A, B] = Nodes) ->
    [ok = call(N, ?T, expect, []) || N <- Nodes],
    [ok = call(Here, ?T, watch, [name(There)]) || {Here, There} <- [{A, B}, {B, A}]].

begin_traffic([A, B] = Nodes, Seed, Options) ->
    _ = begin_watching(Nodes),
    [ok = call(Here, ?T, send, [name(There), Options#{seed => Seed}])
     || {Here, There} <- [{A, B}, {B, A}]].

%% Everything that was sent arrives, once and in order, and nobody noticed anything.
end_traffic([A, B] = Nodes) ->
    [SentA, SentB] = [call(N, ?T, finish, []) || N <- Nodes],
    ct:pal("sent: ~b and ~b", [SentA, SentB]),
    [weft_test_nodes:until(fun() -> received(N) >= Sent end, 60000)
     || {N, Sent} <- [{B, SentA}, {A, SentB}]],
    [?assertMatch(#{received := Sent, wrong := []}, call(N, ?T, account, []))
     || {N, Sent} <- [{B, SentA}, {A, SentB}]],
    [?assertEqual([], bad_signals(N)) || N <- Nodes].

received(Node) ->
    maps:get(received, call(Node, ?T, account, [])).

signals(Node, Tags) ->
    [Signal || {_, Message} = Signal <- maps:get(signals, call(Node, ?T, account, [])),
               lists:member(element(1, Message), Tags)].

nodedowns(Node) -> signals(Node, [nodedown]).

bad_signals(Node) -> signals(Node, ['DOWN', 'EXIT', nodedown]).

%% Losses survived: of the path, or of one of its lanes.
resumes(A, #{node := Node}) ->
    lists:sum([Resumes + Repairs
               || S <- call(A, weft_sessions, list, []),
                  #{node := N, resumes := Resumes, repairs := Repairs} <- [info(A, S)],
                  N =:= Node]).

pause_ms(Ms) ->
    receive after Ms -> ok end. % pacing: of the faults and of what is sampled
