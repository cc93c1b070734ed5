%% SPDX-License-Identifier: Apache-2.0
%% @doc Real nodes in a ring and in a tree: connections and hops are those that were counted on
%% paper, and the death of a gateway does what was counted too.
-module(grouping_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, call/5, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_ring_goes_the_other_way/1, a_tree_made_at_run_time/1]).

-define(NAMES, [g1, g2, g3, g4, g5, g6]).
-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(WAIT_MS, 30000).

suite() -> [{timetrap, {minutes, 3}}].

%% A node ends in the last one.
all() -> [a_tree_made_at_run_time, a_ring_goes_the_other_way].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% {g1, g2, g3}, {g3, g4, g5}, {g5, g6, g1}: one gateway between each two groups is enough.
a_ring_goes_the_other_way(Config) ->
    Groups = grouping:groups(ring, names(), #{size => 2, gateways => 1}),
    Nodes = [G1, _, G3, G4, _, _] = start({groups, Groups}, Config),
    as_on_paper(Nodes, Groups),
    until_reached(G1, G4),
    weft_test_nodes:kill(G3),
    Left = maps:map(fun(_, Members) -> Members -- [name(G3)] end, Groups),
    as_on_paper(Nodes -- [G3], Left),
    until_reached(G1, G4),
    OtherWay = {ok, [name(G1), node_name(g5), name(G4)]},
    until(fun() -> path(G1, G4) =:= OtherWay end, ?WAIT_MS).

%% A mesh becomes {g1, g2}, {g3, g4, g1}, {g5, g6, g2} without a restart, and code that sends stays.
a_tree_made_at_run_time(Config) ->
    Nodes = [G1, _, G3, _, _, G6] = start({groups, #{all => names()}}, Config),
    as_on_paper(Nodes, #{all => names()}),
    Groups = grouping:groups(tree, names(), #{size => 2, gateways => 1}),
    Made = call(G1, grouping, create, [Groups]),
    [?assertMatch({_, {ok, #{unreachable := []}}}, One) || One <- maps:to_list(Made)],
    {ok, _} = call(G1, weft_group, delete, [all]),
    as_on_paper(Nodes, Groups),
    %% Work for another branch of the tree: by group, on one of its nodes, and to all of them.
    {ok, Worker} = call(G3, weft_group, spawn, [3, timer, sleep, [infinity]]),
    ?assert(lists:member(node(Worker), map_get(3, Groups))),
    true = call(G6, erlang, register, [board, call(G6, erlang, spawn, [timer, sleep,
                                                                       [infinity]])]),
    _ = call(G3, weft_group, send, [3, board, news]),
    Board = call(G6, erlang, whereis, [board]),
    until(fun() -> call(G6, erlang, process_info, [Board, messages]) =:= {messages, [news]} end,
          ?WAIT_MS).

%% --- helpers ----------------------------------------------------------------------------------

names() -> [node_name(Name) || Name <- ?NAMES].

%% The same nodes for both cases.
start(Topology, Config) ->
    Nodes = [weft_test_nodes:lasting(node_name(Name), fun() -> start(Name, Topology, Config) end)
             || Name <- ?NAMES],
    [ok = call(Node, weft, topology, [Topology]) || Node <- Nodes],
    Nodes.

start(Name, Topology, Config) ->
    Paths = [weft_test_nodes:ebin(Module) || Module <- [grouping, ?MODULE]],
    Env = [{topology, Topology}, {keepalive_ms, 200}],
    Node = weft_test_nodes:start(Name, #{config => Env, args => ?PARTIAL ++ ["-pa" | Paths]},
                                 ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

as_on_paper(Nodes, Groups) ->
    Expected = grouping_facts:facts(Groups),
    until(fun() -> measured(Nodes) =:= Expected end, ?WAIT_MS).

%% The facts of the graph of links that there is, with the hops of weft's routes.
measured(Nodes) ->
    Names = [name(Node) || Node <- Nodes],
    Of = maps:from_list([{name(Node), lists:sort([Near || {Near, _} <- call(Node, weft, neighbours,
                                                                            []),
                                                          lists:member(Near, Names)])}
                         || Node <- Nodes]),
    Hops = [Hop || Node <- Nodes, {To, {_, _, Hop}} <- call(Node, weft_overlay, routes, []),
                   lists:member(To, Names)],
    case length(Hops) =:= length(Names) * (length(Names) - 1) of
        true -> (grouping_facts:of_neighbours(Of))#{hops_max := lists:max(Hops),
                                                    hops_mean := lists:sum(Hops) / length(Hops)};
        false -> not_yet
    end.

%% A connection of before may be about to end.
until_reached(From, To) ->
    until(fun() -> call(From, net_adm, ping, [name(To)]) =:= pong end, ?WAIT_MS).

path(From, To) ->
    case call(From, weft, trace, [name(To)], ?WAIT_MS) of
        {ok, Hops} -> {ok, [name(From) | [Node || #{to := Node} <- Hops]]};
        Other -> Other
    end.
