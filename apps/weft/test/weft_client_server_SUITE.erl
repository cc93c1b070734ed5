%% SPDX-License-Identifier: Apache-2.0
%% @doc Clients and servers as real nodes: clients talk through servers, and go on talking, with
%% nothing lost, when the servers they are linked to are cut off or killed.
-module(weft_client_server_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([clients_that_lose_their_servers_lose_no_message/1,
         a_client_keeps_no_more_links_than_it_wants/1,
         a_client_does_not_stay_with_a_server_that_has_left/1,
         a_wrong_role_or_no_server_stops_the_application_with_a_text/1]).

-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(SERVERS, [s1, s2, s3]).
%% Less than the kernel needs to find out that a node does not answer, also on a busy machine.
-define(SOON_MS, 20000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [a_client_keeps_no_more_links_than_it_wants, a_client_does_not_stay_with_a_server_that_has_left,
     clients_that_lose_their_servers_lose_no_message,
     a_wrong_role_or_no_server_stops_the_application_with_a_text].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% The client is linked to one server at a time. Each server is cut off from it in turn, then the
%% one it is at is killed.
clients_that_lose_their_servers_lose_no_message(Config) ->
    Servers = servers(Config),
    [C1, C2] = [start(C, client(1), Config) || C <- [c1, c2]],
    until_connected(C1, C2),
    [ok = call(C, weft_resume_traffic, expect, []) || C <- [C1, C2]],
    ok = call(C1, weft_resume_traffic, watch, [name(C2)]),
    ok = call(C1, weft_resume_traffic, send, [name(C2), #{rate => 500, bytes_max => 2000,
                                                          seed => 1}]),
    [until_elsewhere(C1, fun(Server) -> ok = call(C1, weft_fault, cut, [Server]) end)
     || _ <- lists:seq(1, 2)],
    ok = call(C1, weft_fault, heal, []),
    [At] = until_linked(C1, 1),
    [Victim] = [Server || Server <- Servers, name(Server) =:= At],
    until_elsewhere(C1, fun(_) -> weft_test_nodes:kill(Victim) end),
    Sent = call(C1, weft_resume_traffic, finish, []),
    weft_test_nodes:until(fun() -> received(C2) =:= Sent end),
    ?assertMatch(#{wrong := []}, call(C2, weft_resume_traffic, account, [])),
    %% No DOWN or EXIT of a process on c2, and no nodedown of it.
    ?assertMatch(#{signals := []}, call(C1, weft_resume_traffic, account, [])),
    ?assertNot(lists:member(name(C2), up(C1))).

%% Links that a client wants no more are closed although there are sessions on them, which go on.
a_client_keeps_no_more_links_than_it_wants(Config) ->
    _ = servers(Config),
    C = start(c0, client(2), Config),
    Names = [node_name(S) || S <- ?SERVERS],
    Two = until_linked(C, 2),
    [Third] = Names -- Two,
    weft_test_nodes:until(fun() -> call(C, net_adm, ping, [Third]) =:= pong end),
    ok = until_nodes(C, Names),
    ok = call(C, weft_resume_traffic, expect, []),
    ok = call(C, weft_resume_traffic, watch_nodes, []),
    [Cut, _] = Two,
    ok = call(C, weft_fault, cut, [Cut]),
    weft_test_nodes:until(fun() -> lists:member(Third, up(C)) end),
    ok = call(C, weft_fault, heal, []),
    [_, _] = until_linked(C, 2),
    ok = until_nodes(C, Names),
    ?assertMatch(#{signals := []}, call(C, weft_resume_traffic, account, [])).

%% The node of that server goes on, and takes part in links. The client was not told.
a_client_does_not_stay_with_a_server_that_has_left(Config) ->
    [Server | _] = servers(Config),
    Left = start(s4, server(), Config),
    until_connected(Left, Server),
    ok = call(Left, weft, leave, [#{drain_ms => 200}]),
    C = start(c4, (client(1))#{servers => [name(Left)]}, Config),
    weft_test_nodes:until(fun() -> up(C) =:= [name(Left)] end),
    ok = call(C, weft_discovery_poller, add, [name(Server)]),
    weft_test_nodes:until(fun() -> up(C) =:= [name(Server)] end, ?SOON_MS).

a_wrong_role_or_no_server_stops_the_application_with_a_text(Config) ->
    [Partial, Default] = [weft_test_nodes:start(Name, #{args => Args}, ?config(place, Config))
                          || {Name, Args} <- [{c8, ?PARTIAL}, {c9, []}]],
    [begin
         ok = call(Node, application, set_env, [weft, topology, {client_server, Options}]),
         {error, {weft, Reason}} = call(Node, application, ensure_all_started, [weft]),
         Text = lists:flatten(io_lib:format("~0tp", [Reason])),
         ?assertNotEqual({nomatch, Options, Text}, {string:find(Text, Words), Options, Text})
     end || {Options, Node, Words} <-
                [{#{role => klient, servers => [a@b]}, Partial, "write client or server"},
                 {#{role => client, servers => []}, Partial, "at least one server"},
                 {#{role => client, servers => [a@b]}, Default, "prevent_overlapping_partitions"}]].

%% --- helpers ----------------------------------------------------------------------------------

start(Name, Options, Config) ->
    Servers = [node_name(S) || S <- lists:sublist(?SERVERS, 2)],
    Env = [{topology, {client_server, maps:merge(#{servers => Servers}, Options)}}, {faults, true},
           {keepalive_ms, 200}, {link_timeout_ms, 2000}],
    Node = weft_test_nodes:start(Name, #{config => Env, args => ?PARTIAL}, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

%% The same ones for both cases.
servers(Config) ->
    [weft_test_nodes:lasting(node_name(S), fun() -> start(S, server(), Config) end)
     || S <- ?SERVERS].

server() -> #{role => server}.

client(Links) -> #{role => client, links => Links}.

until_connected(A, B) ->
    weft_test_nodes:until(fun() -> call(A, net_adm, ping, [name(B)]) =:= pong end).

until_nodes(Node, Names) ->
    weft_test_nodes:until(fun() -> lists:sort(call(Node, erlang, nodes, [connected]))
                                       =:= lists:sort(Names) end).

%% The nodes that a node has a TCP connection with.
up(Node) ->
    lists:sort([Peer || #{node := Peer, state := up} <- call(Node, weft_links, info, [])]).

%% Links change: what was counted is what is given back.
until_linked(Node, Count) ->
    weft_test_nodes:until(fun() -> length(up(Node)) =:= Count end),
    case up(Node) of
        Up when length(Up) =:= Count -> Up;
        _ -> until_linked(Node, Count)
    end.

until_elsewhere(Client, Disturb) ->
    [At] = until_linked(Client, 1),
    _ = Disturb(At),
    weft_test_nodes:until(fun() -> up(Client) -- [At] =/= [] end, ?SOON_MS).

received(Node) ->
    maps:get(received, call(Node, weft_resume_traffic, account, [])).
