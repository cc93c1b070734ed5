%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: what net_kernel and its friends say of a connected node.
%% Circuits through gateways are hidden by default, so here nodes(connected) is asked instead of
%% nodes(); the visible lists are the matter of weft_conformance_visibility.
-module(weft_conformance_net_kernel).

-include("weft_conformance.hrl").

-export([gateways_stand_between_the_nodes/1, both_nodes_are_connected/1,
         ping_of_a_connected_node_is_pong/1,
         ping_of_an_unknown_node_is_pang/1, connect_node_when_connected_is_true/1,
         connect_node_to_an_unknown_node_is_false/1, node_info_tells_that_the_node_is_up/1,
         node_info_counters_grow_with_traffic/1, nodes_info_lists_the_node/1,
         nodelay_is_set_and_read/1, options_of_an_unknown_node_are_refused/1,
         monitor_node_of_an_unknown_node_gives_nodedown/1,
         monitor_node_may_be_set_and_ended/1, distribution_controllers_are_listed/1,
         disconnect_of_an_unknown_node_is_false/1, nodes_known_after_a_foreign_pid/1,
         names_of_both_nodes_are_registered/1, wrong_node_names_are_refused/1,
         remote_node_flags_are_those_of_a_node/1]).

-define(NOBODY, 'nobody@127.0.0.1').

%% Says that the cluster is what the group's name promises: there is a TCP connection between the
%% nodes if, and only if, no gateway is between them. In peer_to_peer either may be.
gateways_stand_between_the_nodes(#{b := B, carrier := Carrier}) ->
    Mine = tcp_connections(),
    Theirs = [{Remote, Local} || {Local, Remote} <- erpc:call(B, fun tcp_connections/0)],
    Direct = [Connection || Connection <- Mine, lists:member(Connection, Theirs)],
    true = [] =/= Mine,
    Gateways = lists:member(Carrier, [gateway1, gateway3, groups, client_server, pubsub,
                                       own_topology]),
    true = ([] =:= Direct) =:= Gateways orelse Carrier =:= peer_to_peer.

tcp_connections() ->
    Sockets = [Port || Port <- erlang:ports(),
                       {name, "tcp_inet"} =:= erlang:port_info(Port, name)],
    [{Local, Remote} || Socket <- Sockets, {ok, Remote} <- [inet:peername(Socket)],
                        {ok, Local} <- [inet:sockname(Socket)]].

both_nodes_are_connected(#{a := A, b := B}) ->
    true = lists:member(B, nodes(connected)),
    true = lists:member(A, erpc:call(B, erlang, nodes, [connected])),
    true = lists:member(B, nodes(known)),
    [A] = nodes(this).

ping_of_a_connected_node_is_pong(#{a := A, b := B}) ->
    pong = net_adm:ping(B),
    pong = net_adm:ping(A),
    pong = erpc:call(B, net_adm, ping, [A]).

ping_of_an_unknown_node_is_pang(_) ->
    pang = net_adm:ping(?NOBODY).

connect_node_when_connected_is_true(#{a := A, b := B}) ->
    true = net_kernel:connect_node(B),
    true = net_kernel:connect_node(A),
    true = erpc:call(B, net_kernel, connect_node, [A]).

connect_node_to_an_unknown_node_is_false(_) ->
    false = net_kernel:connect_node(?NOBODY).

node_info_tells_that_the_node_is_up(#{b := B}) ->
    {ok, Info} = net_kernel:node_info(B),
    {ok, up} = net_kernel:node_info(B, state),
    up = proplists:get_value(state, Info),
    true = is_pid(proplists:get_value(owner, Info)),
    {error, _} = net_kernel:node_info(?NOBODY).

%% The counters are of packets; how many a carrier makes of a number of messages is its own
%% matter, so only that they grow is asked, and that both grow after a round trip.
node_info_counters_grow_with_traffic(#{b := B}) ->
    {In1, Out1} = counters(B),
    pong = erpc:call(B, fun() -> pong end),
    ok = weft_expect:until(fun() ->
                                   {In2, Out2} = counters(B),
                                   In2 > In1 andalso Out2 > Out1
                           end).

counters(Node) ->
    {ok, In} = net_kernel:node_info(Node, in),
    {ok, Out} = net_kernel:node_info(Node, out),
    {In, Out}.

nodes_info_lists_the_node(#{b := B}) ->
    {ok, Infos} = net_kernel:nodes_info(),
    {B, Info} = lists:keyfind(B, 1, Infos),
    up = proplists:get_value(state, Info).

nodelay_is_set_and_read(#{b := B}) ->
    ok = net_kernel:setopts(B, [{nodelay, true}]),
    {ok, [{nodelay, true}]} = net_kernel:getopts(B, [nodelay]),
    ok = net_kernel:setopts(B, [{nodelay, false}]),
    {ok, [{nodelay, false}]} = net_kernel:getopts(B, [nodelay]),
    ok = net_kernel:setopts(B, [{nodelay, true}]).

options_of_an_unknown_node_are_refused(_) ->
    {error, noconnection} = net_kernel:setopts(?NOBODY, [{nodelay, true}]),
    {error, noconnection} = net_kernel:getopts(?NOBODY, [nodelay]).

monitor_node_of_an_unknown_node_gives_nodedown(_) ->
    true = erlang:monitor_node(?NOBODY, true),
    ?expect({nodedown, ?NOBODY}),
    true = erlang:monitor_node(?NOBODY, true, [allow_passive_connect]),
    ?expect({nodedown, ?NOBODY}).

monitor_node_may_be_set_and_ended(#{b := B}) ->
    true = erlang:monitor_node(B, true),
    true = erlang:monitor_node(B, true),
    true = erlang:monitor_node(B, false),
    true = erlang:monitor_node(B, false),
    ok = weft_puppet:sync(weft_puppet:start(B)),
    ?refute({nodedown, B}).

distribution_controllers_are_listed(#{b := B}) ->
    Controllers = erlang:system_info(dist_ctrl),
    {B, Controller} = lists:keyfind(B, 1, Controllers),
    true = is_pid(Controller) orelse is_port(Controller).

disconnect_of_an_unknown_node_is_false(_) ->
    false = erlang:disconnect_node(?NOBODY).

nodes_known_after_a_foreign_pid(_) ->
    Foreign = 'conformance_foreign@127.0.0.1',
    Pid = binary_to_term(<<131, 88, 119, (byte_size(atom_to_binary(Foreign))),
                           (atom_to_binary(Foreign))/binary, 1:32, 0:32, 7:32>>),
    Foreign = node(Pid),
    true = lists:member(Foreign, nodes(known)),
    false = lists:member(Foreign, nodes(connected)).

names_of_both_nodes_are_registered(#{a := A, b := B}) ->
    {ok, Names} = net_adm:names({127, 0, 0, 1}),
    [[_ | _] = [Port || {Name, Port} <- Names, Name =:= short(Node)] || Node <- [A, B]].

short(Node) ->
    hd(string:split(atom_to_list(Node), "@")).

wrong_node_names_are_refused(_) ->
    pang = net_adm:ping(no_at_sign),
    pang = net_adm:ping('two@at@signs'),
    ?raises(error, badarg, erlang:monitor_node("not an atom", true)).

remote_node_flags_are_those_of_a_node(#{b := B}) ->
    true = erpc:call(B, erlang, is_alive, []),
    true = erlang:get_cookie() =:= erpc:call(B, erlang, get_cookie, []),
    B = erpc:call(B, erlang, node, []),
    longnames = erpc:call(B, fun() -> case net_kernel:longnames() of true -> longnames end end).
