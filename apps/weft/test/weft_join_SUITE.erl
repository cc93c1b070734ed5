%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes join a cluster, leave it under traffic, and join again, on each topology; what cannot
%% be joined is told in words; a node that is gone for good is forgotten.
-module(weft_join_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([full_mesh/1, swim/1, client_server/1, peer_to_peer/1, visible_clients/1, own_topology/1,
         written_members_are_not_joined_or_left/1, what_cannot_be_joined_is_told/1,
         the_last_server_leaves_and_joins_again/1,
         the_only_server_leaves_and_is_started_again/1,
         a_join_over_others_leaves_no_dial/1,
         a_node_that_is_gone_is_forgotten_and_comes_back/1,
         a_topology_that_hangs_is_left/1, a_node_that_disconnects_meanwhile_is_forgotten/1,
         leave_and_join_do_not_mix/1,
         a_connection_that_begins_while_a_node_leaves_ends_too/1,
         without_a_topology_the_errors_say_so/1]).
%% Run on the nodes.
-export([count/0, counted/0, send/2, is_asking/0]).

-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(MESSAGES, 3000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [peer_to_peer, what_cannot_be_joined_is_told, written_members_are_not_joined_or_left,
     without_a_topology_the_errors_say_so]
        ++ [Case || Case <- [swim, client_server, visible_clients, own_topology,
                             the_last_server_leaves_and_joins_again],
                    os:getenv("FULL") =:= "1"]
        ++ [full_mesh, a_connection_that_begins_while_a_node_leaves_ends_too,
            the_only_server_leaves_and_is_started_again, a_join_over_others_leaves_no_dial,
            leave_and_join_do_not_mix, a_topology_that_hangs_is_left,
            a_node_that_disconnects_meanwhile_is_forgotten,
            a_node_that_is_gone_is_forgotten_and_comes_back].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- join, leave under traffic, join again ----------------------------------------------------

full_mesh(Config) -> life(fun(_) -> full_mesh end, Config).

swim(Config) -> life(fun(_) -> {full_mesh, #{detector => swim}} end, Config).

client_server(Config) -> life(fun clients/1, Config).

visible_clients(Config) -> life(fun clients/1, [{env, [{circuits, visible}]} | Config]).

peer_to_peer(Config) -> life(fun(_) -> {peer_to_peer, #{seeds => [node_name(nobody)]}} end, Config).

own_topology(Config) -> life(fun(_) -> {weft_own_mesh, #{}} end, Config).

clients(j1) -> {client_server, #{role => server, servers => [node_name(j1)]}};
clients(_) -> {client_server, #{role => client, servers => [node_name(nobody)]}}.

%% j1 is alone, j2 and j3 join it. j3 leaves while it sends to j1.
life(Topology, Config) ->
    [A, B, C] = Nodes = [start(Name, Topology(Name), Config) || Name <- [j1, j2, j3]],
    [?assertEqual([name(Node)], members(Node)) || Node <- Nodes],
    ?assertEqual(ok, call(B, weft, join, [name(A)])),
    ?assertEqual(ok, call(C, weft, join, [name(A)])),
    ?assertEqual(ok, call(C, weft, join, [name(A)])),
    ?assertEqual(ok, call(C, weft, join, [name(C)])),
    until_members([A, B, C]),
    ?assertEqual(ok, call(B, weft, join, [name(C)])),
    ok = call(A, ?MODULE, count, []),
    weft_test_nodes:until(fun() -> call(C, net_adm, ping, [name(A)]) =:= pong end),
    ?MESSAGES = call(C, ?MODULE, send, [name(A), ?MESSAGES]),
    {Us, Left} = timer:tc(fun() -> call(C, weft, leave, []) end),
    ct:pal("left after ~b ms", [Us div 1000]),
    ?assertEqual(ok, Left),
    ?assertEqual(?MESSAGES, call(A, ?MODULE, counted, [])),
    ?assertEqual([name(C)], members(C)),
    %% A call that one of the others had begun may still arrive, and is not kept.
    weft_test_nodes:until(fun() -> {connected(C, Nodes), up(C)} =:= {[], []} end),
    ?assertEqual(ok, call(C, weft, leave, [])),
    until_members([A, B]),
    [?assertEqual([], call(Node, weft_overlay, failed, [])) || Node <- [A, B]],
    weft_test_nodes:until(fun() -> not lists:member(name(C), connected(A, Nodes)) end),
    %% It stays so, also when the driver of its topology, or all of the overlay, is started again.
    [begin
         started_again(Ended, C),
         ?assertMatch({weft_alone_core, _}, call(C, weft_overlay, topology, [])),
         ?assertEqual([name(C)], members(C))
     end || Ended <- [weft_topology, weft_overlay_sup]],
    ?assertEqual(ok, call(C, weft, join, [name(A)])),
    ?assert(call(C, weft_transit, is_open, [])),
    until_members([A, B, C]),
    weft_test_nodes:until(fun() -> call(C, net_adm, ping, [name(B)]) =:= pong end).

%% --- what is not possible ---------------------------------------------------------------------

written_members_are_not_joined_or_left(Config) ->
    [A, B] = Named = [node_name(j1), node_name(j2)],
    First = start(j1, {groups, #{one => Named}}, Config),
    ?assertMatch({error, _}, call(First, weft, join, [B])),
    Second = start(j2, {groups, #{one => Named}}, Config),
    ?assertEqual(ok, call(First, weft, join, [B])),
    ?assertEqual(ok, call(Second, weft, join, [A])),
    [?assertNotEqual(nomatch, string:find(Text, "weft:topology/1"))
     || {error, Text} <- [call(First, weft, join, [node_name(other)]), call(First, weft, leave, []),
                          call(Second, weft, leave, [node_name(j3)])]].

what_cannot_be_joined_is_told(Config) ->
    Node = start(j1, full_mesh, Config),
    Place = ?config(place, Config),
    _ = start(j2, full_mesh, [{options, #{cookie => "another"}} | Config]),
    _ = start(j3, full_mesh, [{env, [{cluster_name, "another"}]} | Config]),
    _ = weft_test_nodes:start(j4, #{carrier => stock}, Place),
    _ = weft_test_nodes:start(j5, #{}, Place),
    %% It takes ten seconds to be sure.
    Idle = [{node_name(j5), "application"} || os:getenv("FULL") =:= "1"],
    [begin
         {Us, Answer} = timer:tc(fun() -> call(Node, weft, join, [Other]) end),
         ct:pal("~p ms: ~tp", [Us div 1000, Answer]),
         ?assertMatch({_, {error, _}}, {Other, Answer}),
         ?assertNotEqual({nomatch, Answer}, {string:find(element(2, Answer), Word), Answer}),
         ?assert(Us < 15000000)
     end || {Other, Word} <- [{node_name(nobody), "not running"}, {node_name(j2), "cookie"},
                              {node_name(j3), "cluster"}, {node_name(j4), "weft"},
                              {no_name, "no node name"}, {"j2@host", "no node name"} | Idle]],
    ?assertEqual([name(Node)], members(Node)),
    %% An error before is no reason that it fails now, and nothing of it goes on.
    weft_test_nodes:until(fun() -> [] =:= [L || #{wanted := true} = L
                                                    <- call(Node, weft_links, info, [])] end),
    Late = start(nobody, full_mesh, Config),
    ?assertEqual(ok, call(Node, weft, join, [name(Late)])),
    ?assertMatch({error, "options of weft:leave" ++ _}, call(Node, weft, leave, [#{drain => 1}])).

without_a_topology_the_errors_say_so(Config) ->
    Node = weft_test_nodes:start(j1, #{}, ?config(place, Config)),
    Ask = fun() -> [?assertMatch({error, "no topology" ++ _}, call(Node, weft, Function, Arguments))
                    || {Function, Arguments} <- [{join, ['a@host']}, {leave, []},
                                                 {leave, ['a@host']}]]
          end,
    Ask(),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Ask().

%% --- odd cases --------------------------------------------------------------------------------

the_last_server_leaves_and_joins_again(Config) ->
    [Server, Client, Other] = Nodes = [start(Name, clients(Name), Config) || Name <- [j1, j2, j3]],
    [ok = call(Node, weft, join, [name(Server)]) || Node <- [Client, Other]],
    until_members(Nodes),
    ?assertEqual(ok, call(Server, weft, leave, [#{drain_ms => 200}])),
    weft_test_nodes:until(fun() -> not lists:member(name(Server), members(Client)) end),
    ?assertEqual([name(Server)], members(Server)),
    ?assertEqual(ok, call(Server, weft, join, [name(Client)])),
    ?assertEqual(ok, call(Other, weft, join, [name(Server)])),
    until_members(Nodes).

%% It has nobody to dial, and nobody calls weft:join.
the_only_server_leaves_and_is_started_again(Config) ->
    Options = #{servers => [node_name(j1)]},
    [Server, Client] = Nodes = [start(Name, {client_server, Options#{role => Role}}, Config)
                                || {Name, Role} <- [{j1, server}, {j2, client}]],
    until_members(Nodes),
    ?assertEqual(ok, call(Server, weft, leave, [#{drain_ms => 200}])),
    until_members([Client]),
    ?assertEqual([name(Server)], members(Server)),
    ok = call(Server, application, stop, [weft]),
    ok = call(Server, application, start, [weft]),
    until_members(Nodes).

%% The link of the two clients does nothing before they are members, by way of the server, and is
%% cut then.
a_join_over_others_leaves_no_dial(Config) ->
    Faults = [{env, [{faults, true}]} | Config],
    [Server, A, B] = Nodes = [start(Name, clients(Name), Faults) || Name <- [j1, j2, j3]],
    ok = call(A, weft, join, [name(Server)]),
    ok = call(A, weft_fault, cut, [name(B)]),
    {ok, Link} = call(A, weft_links, ensure, [name(B)]),
    ok = call(A, sys, suspend, [Link]),
    Test = self(),
    Joining = spawn_link(fun() -> Test ! {self(), call(A, weft, join, [name(B)])} end),
    weft_test_nodes:until(fun() -> lists:member(name(B), call(A, weft_discovery_poller, added, []))
                          end),
    ok = call(B, weft, join, [name(Server)]),
    receive {Joining, Answer} -> ?assertEqual(ok, Answer) end,
    ok = call(A, sys, resume, [Link]),
    weft_test_nodes:until(fun() -> not call(A, weft_links, wanted, [name(B)]) end),
    until_members(Nodes).

a_node_that_is_gone_is_forgotten_and_comes_back(Config) ->
    [A, B, C] = Nodes = [start(Name, full_mesh, Config) || Name <- [j1, j2, j3]],
    [ok = call(Node, weft, join, [name(A)]) || Node <- [B, C]],
    until_members(Nodes),
    weft_test_nodes:until(fun() -> lists:member(name(C), connected(A, Nodes)) end),
    ?assertMatch({error, _}, call(A, weft, leave, [name(C)])),
    weft_test_nodes:kill(C),
    weft_test_nodes:until(fun() -> not lists:member(name(C), connected(A, Nodes)) end),
    ?assert(lists:member(name(C), members(A))),
    ?assertEqual(ok, call(A, weft, leave, [name(C)])),
    until_members([A, B]),
    ?assertMatch({error, _}, call(A, weft, leave, [name(C)])),
    Again = start(j3, full_mesh, Config),
    ?assertEqual(ok, call(Again, weft, join, [name(B)])),
    until_members([A, B, Again]),
    %% Another topology brings back a node that has left, too.
    ?assertEqual(ok, call(Again, weft, leave, [])),
    until_members([A, B]),
    ?assertEqual(ok, call(Again, weft, topology, [{full_mesh, #{seeds => [name(A)]}}])),
    until_members([A, B, Again]),
    ?assert(call(Again, weft_transit, is_open, [])),
    %% It is that one which is started again, not the one of the start.
    started_again(weft_overlay_sup, Again),
    ?assertMatch({weft_full_mesh_core, #{seeds := [_]}}, call(Again, weft_overlay, topology, [])),
    until_members([A, B, Again]).

%% A member that is connected is asked whether it has left, and the connection ends before it
%% answers.
a_node_that_disconnects_meanwhile_is_forgotten(Config) ->
    [A, B] = Nodes = [start(Name, full_mesh, Config) || Name <- [j1, j2]],
    ok = call(B, weft, join, [name(A)]),
    until_members(Nodes),
    weft_test_nodes:until(fun() -> connected(A, Nodes) =:= [name(B)] end),
    ok = weft_test_nodes:pause(B),
    Test = self(),
    Forgetting = spawn_link(fun() -> Test ! {self(), call(A, weft, leave, [name(B)])} end),
    weft_test_nodes:until(fun() -> call(A, ?MODULE, is_asking, []) end),
    true = call(A, erlang, disconnect_node, [name(B)]),
    receive {Forgetting, Answer} -> ?assertEqual(ok, Answer) end,
    ok = weft_test_nodes:continue(B).

%% The driver of its topology does nothing any more.
a_topology_that_hangs_is_left(Config) ->
    [A, B, C] = Nodes = [start(Name, full_mesh, Config) || Name <- [j1, j2, j3]],
    [ok = call(Node, weft, join, [name(A)]) || Node <- [B, C]],
    until_members(Nodes),
    ok = call(C, sys, suspend, [weft_topology]),
    {error, Text} = call(C, weft, leave, [#{drain_ms => 200}]),
    ?assertNotEqual(nomatch, string:find(Text, "weft:leave(")),
    ?assertEqual([name(C)], members(C)),
    %% As the text says; until then the others dial it, and may connect again.
    weft_test_nodes:until(fun() -> call(A, net_kernel, connect_node, [name(C)]) end),
    ?assertEqual(ok, call(A, weft, leave, [name(C)])),
    until_members([A, B]),
    ?assertEqual([name(C)], members(C)),
    ?assertEqual(ok, call(C, weft, join, [name(A)])),
    until_members(Nodes),
    ?assert(call(C, weft_transit, is_open, [])).

%% The kernel of the other node answers only after the leaving node is alone: until then the
%% handshake goes on, and the other node is not among those that are connected.
a_connection_that_begins_while_a_node_leaves_ends_too(Config) ->
    [A, B] = Nodes = [start(Name, full_mesh, Config) || Name <- [j1, j2]],
    ok = call(B, weft, join, [name(A)]),
    until_members(Nodes),
    weft_test_nodes:until(fun() -> connected(B, Nodes) =:= [name(A)] end),
    ok = call(A, sys, suspend, [net_kernel]),
    Test = self(),
    Leaving = spawn_link(fun() -> Test ! {self(), call(B, weft, leave, [])} end),
    weft_test_nodes:until(fun() -> connected(B, Nodes) =:= [] end),
    _ = call(B, erlang, spawn, [net_kernel, connect_node, [name(A)]]),
    weft_test_nodes:until(fun() -> call(B, weft_sessions, list, []) =/= [] end),
    weft_test_nodes:until(fun() -> is_alone(B) end),
    ok = call(A, sys, resume, [net_kernel]),
    receive {Leaving, Answer} -> ?assertEqual(ok, Answer) end,
    ?assertEqual({[], []}, {connected(B, Nodes), up(B)}).

is_alone(Node) -> element(1, call(Node, weft_overlay, topology, [])) =:= weft_alone_core.

%% Whichever comes last, all say the same in the end.
leave_and_join_do_not_mix(Config) ->
    [A, B] = Nodes = [start(Name, full_mesh, Config) || Name <- [j1, j2]],
    ok = call(B, weft, join, [name(A)]),
    until_members(Nodes),
    Calls = [{leave, [#{drain_ms => 100}]}, {join, [name(A)]}, {leave, [#{drain_ms => 100}]},
             {join, [name(A)]}],
    Test = self(),
    Pids = [spawn_link(fun() -> Test ! {self(), call(B, weft, Function, Arguments)} end)
            || {Function, Arguments} <- Calls],
    [receive {Pid, Answer} -> ?assertEqual(ok, Answer) end || Pid <- Pids],
    {IsAlone, IsOpen} = {is_alone(B), call(B, weft_transit, is_open, [])},
    ?assertEqual(IsAlone, not IsOpen),
    case IsAlone of
        true -> until_members([A]), until_members([B]);
        false -> until_members(Nodes)
    end.

%% --- on the nodes -----------------------------------------------------------------------------

count() ->
    Parent = self(),
    _ = spawn(fun() -> register(?MODULE, self()), Parent ! {self(), ready}, counting(0) end),
    receive {_, ready} -> ok end.

counting(Count) ->
    receive
        {From, counted} -> From ! {counted, Count}, counting(Count);
        {next, Number} when Number =:= Count + 1 -> counting(Number);
        Padding when is_binary(Padding) -> counting(Count)
    end.

counted() ->
    ?MODULE ! {self(), counted},
    receive {counted, Count} -> Count end.

%% Sent when this returns, not yet arrived.
send(Node, Count) ->
    Padding = binary:copy(<<0>>, 1000),
    lists:foreach(fun(Number) -> {?MODULE, Node} ! {next, Number}, {?MODULE, Node} ! Padding end,
                  lists:seq(1, Count)),
    Count.

%% Whether a process here waits for another node to say whether that one has left.
is_asking() ->
    lists:any(fun(Pid) ->
                  case process_info(Pid, [status, current_stacktrace]) of
                      [{status, waiting}, {current_stacktrace, [{erpc, _, _, _} | Below]}] ->
                          lists:keymember(weft_membership_change, 1, Below);
                      _ -> false
                  end
              end, processes()).

%% --- helpers ----------------------------------------------------------------------------------

start(Name, Topology, Config) ->
    Env = [{topology, Topology}, {keepalive_ms, 200} | proplists:get_value(env, Config, [])],
    Options = proplists:get_value(options, Config, #{}),
    Node = weft_test_nodes:start(Name, Options#{config => Env, args => ?PARTIAL},
                                 ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

%% By its supervisor, after it was killed.
started_again(Name, Node) ->
    ok = weft_test_nodes:kill_named(Node, Name),
    weft_test_nodes:until(fun() -> call(Node, weft_overlay, topology, []) =/= none end).

until_members(Nodes) ->
    Names = lists:sort([name(Node) || Node <- Nodes]),
    [weft_test_nodes:until(fun() -> members(Node) =:= Names end) || Node <- Nodes],
    ok.

members(Node) -> lists:sort(call(Node, weft, members, [])).

connected(Node, Nodes) ->
    [Name || Name <- call(Node, erlang, nodes, [connected]),
             lists:member(Name, [name(N) || N <- Nodes])].

up(Node) -> [Peer || #{node := Peer, state := up} <- call(Node, weft_links, info, [])].
