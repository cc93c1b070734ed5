%% SPDX-License-Identifier: Apache-2.0
%% @doc Broadcast on real nodes: on each topology every message reaches every node once, also
%% those that were cut off meanwhile.
-module(weft_broadcast_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([no_topology/1, no_weft_carrier/1, full_mesh/1, full_mesh_with_swim/1, static/1, groups/1,
         client_server/1, peer_to_peer/1, what_a_node_could_not_take_comes_when_it_can/1,
         the_status_tells_what_was_sent_and_received/1]).

-define(NAMES, [b1, b2, b3, b4, b5]).
-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(SCOPE, {room, 1}).
-define(EACH, 20).
-define(PATIENCE_MS, 60000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [no_topology, no_weft_carrier, static, peer_to_peer,
     what_a_node_could_not_take_comes_when_it_can, the_status_tells_what_was_sent_and_received]
        ++ [Case || Case <- [full_mesh, full_mesh_with_swim, groups, client_server],
                    os:getenv("FULL") =:= "1"].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- topologies -------------------------------------------------------------------------------

%% Neighbours are the nodes that are connected.
no_topology(Config) ->
    Nodes = [First | Others] = start([b1, b2, b3], fun(_) -> undefined end, [], Config),
    connected_send_to_all(First, Others, Nodes).

no_weft_carrier(Config) ->
    Nodes = [First | Others] = [boot(Name, #{carrier => stock,
                                             args => ["-pa", weft_test_nodes:ebin(weft_dist)]},
                                     Config) || Name <- [b1, b2, b3]],
    connected_send_to_all(First, Others, Nodes).

connected_send_to_all(First, Others, Nodes) ->
    [pong = call(First, net_adm, ping, [name(Node)]) || Node <- Others],
    until_all_got_a_message(Nodes),
    send(1, ?EACH, Nodes),
    until_all_got(?EACH, Nodes, Nodes).

full_mesh(Config) ->
    reaches_all(fun(_) -> {full_mesh, #{seeds => [node_name(b1)]}} end, Config).

full_mesh_with_swim(Config) ->
    reaches_all(fun(_) -> {full_mesh, #{seeds => [node_name(b1)], detector => swim}} end, Config).

%% A ring.
static(Config) ->
    [First | _] = Nodes = names(),
    Links = lists:zip(Nodes, tl(Nodes) ++ [First]),
    reaches_all(fun(_) -> {static, #{links => Links}} end, Config).

groups(Config) ->
    [N1, N2, N3, N4, N5] = names(),
    reaches_all(fun(_) -> {groups, #{left => [N1, N2, N3], right => [N2, N3, N4, N5]}} end, Config).

client_server(Config) ->
    Servers = lists:sublist(names(), 2),
    reaches_all(fun(Name) ->
                    Role = case Name =:= b1 orelse Name =:= b2 of
                               true -> server;
                               false -> client
                           end,
                    {client_server, #{role => Role, servers => Servers}}
                end, Config).

peer_to_peer(Config) ->
    reaches_all(fun(_) -> {peer_to_peer, #{seeds => [node_name(b1)], active => 2, passive => 4,
                                           shuffle_ms => 1000, probe_ms => 2000}}
                end, Config).

%% All send, then while the last one is cut off, then again when it is back. What the others send
%% meanwhile it gets after the heal, and they what it has sent.
reaches_all(Topology, Config) ->
    Nodes = start(Topology, Config),
    until_all_got_a_message(Nodes),
    send(1, ?EACH, Nodes),
    until_all_got(?EACH, Nodes, Nodes),
    {Others, [Alone]} = lists:split(length(Nodes) - 1, Nodes),
    [ok = call(Alone, weft_fault, cut, [name(Node)]) || Node <- Others],
    until(fun() -> [] =:= [up || #{state := up} <- call(Alone, weft_links, info, [])] end),
    send(?EACH + 1, 2 * ?EACH, Nodes),
    until_all_got(2 * ?EACH, Others, Others),
    until_all_got(2 * ?EACH, [Alone], [Alone]),
    until_all_got(?EACH, Others, [Alone]),
    until_all_got(?EACH, [Alone], Others),
    ok = call(Alone, weft_fault, heal, []),
    until_all_got(2 * ?EACH, Nodes, Nodes),
    send(2 * ?EACH + 1, 3 * ?EACH, Nodes),
    until_all_got(3 * ?EACH, Nodes, Nodes),
    ?assertEqual([], [Missed || Node <- Nodes,
                                Missed <- call(Node, weft_broadcast_listener, missed, [])]).

%% --- more than a neighbour takes --------------------------------------------------------------

%% In a line of three the last one stands still, while more is sent to it than may wait for it. That
%% the sender is not held up by it, and that no link is closed, is seen by the middle one.
what_a_node_could_not_take_comes_when_it_can(Config) ->
    [N1, N2, N3 | _] = names(),
    Line = {static, #{links => [{N1, N2}, {N2, N3}]}},
    [First, Middle, Last] = Nodes = start([b1, b2, b3], fun(_) -> Line end,
                                          [{link_timeout_ms, 60000}], Config),
    until_all_got_a_message(Nodes),
    Ups = ups(Nodes),
    ok = weft_test_nodes:pause(Last),
    ok = call(First, weft_broadcast_listener, send, [?SCOPE, {1, 140}, 100000]),
    until(fun() -> 140 =:= length(numbers(Middle, First)) end),
    ok = weft_test_nodes:continue(Last),
    until(fun() -> 140 =:= length(numbers(Last, First)) end),
    ?assertEqual(lists:seq(1, 140), numbers(Last, First)),
    ?assertEqual(Ups, ups(Nodes)).

%% How often each link came up; calls that crossed may have made it twice at the beginning.
ups(Nodes) ->
    [[{Peer, Ups} || #{node := Peer, ups := Ups} <- lists:sort(call(Node, weft_links, info, []))]
     || Node <- Nodes].

the_status_tells_what_was_sent_and_received(Config) ->
    Nodes = [A, B] = start([b1, b2], fun(_) -> full_mesh_of_two() end, [], Config),
    until_all_got_a_message(Nodes),
    #{broadcast := #{sent := Sent, received := Received}} = call(B, weft, status, []),
    send(1, 5, [A]),
    until_all_got(5, [A], [B]),
    #{broadcast := After} = call(B, weft, status, []),
    ?assertMatch(#{sent := Sent, missed := 0, dropped := 0, malformed := 0, mailbox_drops := 0,
                   subscribers := #{?SCOPE := 1}}, After),
    ?assertEqual(Received + 5, maps:get(received, After)),
    ?assertMatch(#{tree := #{eager := 1, lazy := 0, trees := 1, missing := 0}}, After).

full_mesh_of_two() -> {full_mesh, #{seeds => [node_name(b1)]}}.

%% --- helpers ----------------------------------------------------------------------------------

start(Topology, Config) ->
    start(?NAMES, Topology, [], Config).

start(Names, Topology, More, Config) ->
    [begin
         Env = [{topology, T} || T <- [Topology(Name)], T =/= undefined] ++ [{faults, true} | More],
         boot(Name, #{config => Env, args => ?PARTIAL}, Config)
     end || Name <- Names].

boot(Name, Options, Config) ->
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    ok = call(Node, weft_broadcast_listener, start, [?SCOPE]),
    Node.

%% Until then the cluster is forming. These messages, which have the number 0, do not count.
until_all_got_a_message(Nodes) ->
    [ok = call(Node, weft_broadcast_listener, send, [?SCOPE, {0, 0}, 1]) || Node <- Nodes],
    until(fun() -> [] =:= [none || Node <- Nodes, From <- Nodes,
                                   not lists:keymember(name(From), 1, got(Node))] end).

send(From, To, Nodes) ->
    [ok = call(Node, weft_broadcast_listener, send, [?SCOPE, {From, To}, 10]) || Node <- Nodes],
    ok.

%% Exactly the messages 1 to Count of all Senders, each of them once.
until_all_got(Count, Senders, Nodes) ->
    [begin
         until(fun() -> length(numbers(Node, Sender)) >= Count end),
         ?assertEqual(lists:seq(1, Count), numbers(Node, Sender))
     end || Node <- Nodes, Sender <- Senders],
    ok.

numbers(Node, Sender) ->
    [N || {From, N} <- got(Node), From =:= name(Sender), N > 0].

got(Node) -> call(Node, weft_broadcast_listener, got, []).

until(Condition) -> weft_test_nodes:until(Condition, ?PATIENCE_MS).

names() -> [node_name(Name) || Name <- ?NAMES].
