%% SPDX-License-Identifier: Apache-2.0
%% @doc The topology of a running cluster is changed node by node, under traffic that loses nothing.
-module(weft_topology_change_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2, end_per_testcase/2]).
-export([sessions_outlive_every_change/1, a_bad_topology_changes_nothing/1,
         a_topology_that_was_changed_to_survives_a_crash_of_its_driver/1,
         an_application_that_starts_again_has_no_links_of_before/1]).

-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(NAMES, [n1, n2, n3, n4, n5]).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, mesh}, a_bad_topology_changes_nothing].

%% They begin with a full mesh, and the first one ends with it.
groups() ->
    [{mesh, [], [sessions_outlive_every_change,
                 a_topology_that_was_changed_to_survives_a_crash_of_its_driver,
                 an_application_that_starts_again_has_no_links_of_before]}].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_group(mesh, Config) ->
    [{nodes, [start(Name, mesh(Name), ?PARTIAL, Config) || Name <- ?NAMES]} | Config].

end_per_group(mesh, _Config) -> weft_test_nodes:stop_all().

end_per_testcase(_Case, Config) ->
    ?config(nodes, Config) =/= undefined orelse weft_test_nodes:stop_all().

%% n1 talks to n5 all the time. In groups and as clients they are no neighbours.
sessions_outlive_every_change(Config) ->
    [First, _, _, _, Last] = Nodes = ?config(nodes, Config),
    until_links(Nodes, fun mesh_links/1),
    %% A link is up before nodes are connected by it, which the watcher below would hear of.
    weft_test_nodes:until(fun() ->
                                  lists:member(name(Last), call(First, erlang, nodes, [connected]))
                          end),
    [ok = call(Node, weft_resume_traffic, expect, []) || Node <- [First, Last]],
    ok = call(First, weft_resume_traffic, watch, [name(Last)]),
    ok = call(First, weft_resume_traffic, send, [name(Last), #{rate => 500, bytes_max => 2000,
                                                               seed => 1}]),
    [change(Nodes, Topology, Links)
     || {Topology, Links} <- [{fun groups/1, fun group_links/1},
                              {fun mesh/1, fun mesh_links/1},
                              {fun client_server/1, fun client_server_links/1},
                              {fun groups/1, fun group_links/1},
                              {fun peer_to_peer/1, any},
                              {fun mesh/1, fun mesh_links/1}]],
    Sent = call(First, weft_resume_traffic, finish, []),
    weft_test_nodes:until(fun() -> received(Last) =:= Sent end),
    ?assert(Sent > 500),
    ?assertMatch(#{wrong := []}, call(Last, weft_resume_traffic, account, [])),
    ?assertMatch(#{signals := []}, call(First, weft_resume_traffic, account, [])).

a_bad_topology_changes_nothing(Config) ->
    Node = weft_test_nodes:start(n1, #{config => []}, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    {error, NoTopology} = call(Node, weft, topology, [full_mesh]),
    ?assertNotEqual(nomatch, string:find(NoTopology, "no topology runs")),
    ok = call(Node, application, stop, [weft]),
    ok = call(Node, application, set_env, [weft, topology, mesh(n1)]),
    ok = call(Node, application, start, [weft]),
    [begin
         {error, Text} = call(Node, weft, topology, [Topology]),
         ?assertNotEqual({nomatch, Topology, Text}, {string:find(Text, Words), Topology, Text})
     end || {Topology, Words} <- [{ring, "no topology"},
                                  {{full_mesh, #{seed => []}}, "no option seed"},
                                  {groups(n1), "prevent_overlapping_partitions"}]],
    ?assertEqual(mesh(n1), call(Node, weft, topology, [])).

a_topology_that_was_changed_to_survives_a_crash_of_its_driver(Config) ->
    [First | _] = Nodes = ?config(nodes, Config),
    change(Nodes, fun groups/1, fun group_links/1),
    %% As a topology that chooses its neighbours does; the next driver does not choose the same.
    ok = call(First, weft_links, connect, [node_name(gone)]),
    weft_test_nodes:until(fun() -> call(First, weft_links, wanted, [node_name(gone)]) end),
    ok = weft_test_nodes:kill_named(First, weft_topology),
    ?assertEqual(groups(n1), call(First, weft, topology, [])),
    until_links(Nodes, fun group_links/1),
    weft_test_nodes:until(fun() -> not call(First, weft_links, wanted, [node_name(gone)]) end,
                          20000),
    ?assert(call(First, weft_overlay, is_partial, [])).

%% Whatever topology ran before: the configuration says which links there are now.
an_application_that_starts_again_has_no_links_of_before(Config) ->
    Nodes = ?config(nodes, Config),
    change(Nodes, fun groups/1, fun group_links/1),
    [ok = call(Node, application, stop, [weft]) || Node <- Nodes],
    weft_test_nodes:until(fun() -> [] =:= [Row || Node <- Nodes,
                                                  #{wanted := true} = Row
                                                      <- call(Node, weft_links, info, [])] end),
    [ok = call(Node, application, set_env, [weft, topology, client_server(short(Node))])
     || Node <- Nodes],
    [ok = call(Node, application, start, [weft]) || Node <- Nodes],
    until_links(Nodes, fun client_server_links/1).

%% --- topologies, and the links that a node has in them ----------------------------------------

mesh(_Name) -> {full_mesh, #{seeds => [node_name(n1), node_name(n2)]}}.

mesh_links(Name) -> ?NAMES -- [Name].

groups(_Name) ->
    {groups, #{left => [node_name(N) || N <- [n1, n2, n3]],
               right => [node_name(N) || N <- [n3, n4, n5]]}}.

group_links(n3) -> [n1, n2, n4, n5];
group_links(Left) when Left =:= n1; Left =:= n2 -> [n1, n2, n3] -- [Left];
group_links(Right) -> [n3, n4, n5] -- [Right].

client_server(n4) -> {client_server, #{role => server, servers => [node_name(n4)]}};
client_server(_) -> {client_server, #{role => client, servers => [node_name(n4)]}}.

client_server_links(n4) -> ?NAMES -- [n4];
client_server_links(_) -> [n4].

peer_to_peer(_Name) -> {peer_to_peer, #{seeds => [node_name(n1)]}}.

%% --- helpers ----------------------------------------------------------------------------------

change(Nodes, Topology, Links) ->
    [ok = call(Node, weft, topology, [Topology(short(Node))]) || Node <- Nodes],
    until_links(Nodes, Links).

%% No links but these. What peer_to_peer chooses is up to it.
until_links(Nodes, any) ->
    [weft_test_nodes:until(fun() -> up(Node) =/= [] end) || Node <- Nodes],
    ok;
until_links(Nodes, Links) ->
    All = [name(Node) || Node <- Nodes],
    [weft_test_nodes:until(
       fun() -> up(Node) =:= [N || N <- lists:sort([node_name(L) || L <- Links(short(Node))]),
                                   lists:member(N, All)]
       end, 20000) || Node <- Nodes],
    ok.

start(Name, Topology, Args, Config) ->
    Env = [{topology, Topology}, {keepalive_ms, 200}],
    Node = weft_test_nodes:start(Name, #{config => Env, args => Args}, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

up(Node) ->
    lists:sort([Peer || #{node := Peer, state := up} <- call(Node, weft_links, info, [])]).

received(Node) ->
    maps:get(received, call(Node, weft_resume_traffic, account, [])).

short(#{node := Node}) ->
    [Name, _Host] = string:split(atom_to_list(Node), "@"),
    list_to_existing_atom(Name).
