%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: nodes which see each other in nodes(), and those which are hidden.
%% All need visible connections: with gateways the circuits are made visible.
-module(weft_conformance_visibility).

-include("weft_conformance.hrl").

-export([nodes_lists_both_peers/1, visible_nodes_are_not_hidden_ones/1,
         nodeup_and_nodedown_to_subscribers/1, nodeup_with_options_tells_type_and_reason/1,
         unsubscribed_processes_are_told_nothing/1, hidden_nodes_are_in_the_hidden_list/1,
         hidden_connection_between_usual_nodes/1, abcast_to_all_nodes/1, rpc_multicall_of_all/1]).
-export([needs/0]).

needs() ->
    Own = #{own => true, visible => true},
    #{nodes_lists_both_peers => #{visible => true},
      visible_nodes_are_not_hidden_ones => #{visible => true},
      nodeup_and_nodedown_to_subscribers => Own#{whole => true},
      nodeup_with_options_tells_type_and_reason => Own#{whole => true},
      unsubscribed_processes_are_told_nothing => Own#{whole => true},
      hidden_nodes_are_in_the_hidden_list => #{own => true, args => ["-hidden"]},
      hidden_connection_between_usual_nodes => Own#{whole => true},
      abcast_to_all_nodes => #{visible => true},
      rpc_multicall_of_all => #{visible => true}}.

nodes_lists_both_peers(#{a := A, b := B, c := C}) ->
    [] = [B, C] -- nodes(),
    [] = [A, C] -- erpc:call(B, erlang, nodes, []),
    [] = [A, B] -- erpc:call(C, erlang, nodes, []).

visible_nodes_are_not_hidden_ones(#{a := A, b := B}) ->
    false = lists:member(B, nodes(hidden)),
    true = lists:member(B, nodes(visible)),
    false = lists:member(A, erpc:call(B, erlang, nodes, [hidden])).

nodeup_and_nodedown_to_subscribers(#{a := A, b := B}) ->
    ok = weft_expect:global_knows([A, B]),
    ok = net_kernel:monitor_nodes(true),
    true = erlang:disconnect_node(B),
    ?expect({nodedown, B}),
    true = net_kernel:connect_node(B),
    ?expect({nodeup, B}),
    ok = weft_puppet:sync(weft_puppet:start(B)),
    ?refute({nodeup, B}),
    ?refute({nodedown, B}).

nodeup_with_options_tells_type_and_reason(#{a := A, b := B}) ->
    ok = weft_expect:global_knows([A, B]),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
    true = erlang:disconnect_node(B),
    Down = ?expect({nodedown, B, Info}, lists:sort(Info)),
    [{node_type, visible}, {nodedown_reason, disconnect}] = Down,
    true = net_kernel:connect_node(B),
    ?expect({nodeup, B, [{node_type, visible}]}).

unsubscribed_processes_are_told_nothing(#{a := A, b := B}) ->
    ok = weft_expect:global_knows([A, B]),
    ok = net_kernel:monitor_nodes(true),
    ok = net_kernel:monitor_nodes(false),
    true = erlang:monitor_node(B, true),
    true = erlang:disconnect_node(B),
    ?expect({nodedown, B}),
    true = net_kernel:connect_node(B),
    ok = weft_puppet:sync(weft_puppet:start(B)),
    ?refute({nodeup, B}),
    ?refute({nodedown, B}).

hidden_nodes_are_in_the_hidden_list(#{a := A, b := B}) ->
    false = lists:member(B, nodes()),
    true = lists:member(B, nodes(hidden)),
    true = lists:member(B, nodes(connected)),
    true = lists:member(A, erpc:call(B, erlang, nodes, [hidden])),
    ok = net_kernel:monitor_nodes(true, [{node_type, hidden}]),
    true = erlang:disconnect_node(B),
    ?expect({nodedown, B, [{node_type, hidden}]}),
    pong = net_adm:ping(B),
    ?expect({nodeup, B, [{node_type, hidden}]}).

%% What `global' of B still has to say after the loss connects as usual, if it comes first.
hidden_connection_between_usual_nodes(#{a := A, b := B}) ->
    ok = weft_expect:until(fun() ->
                               _ = lists:member(B, nodes())
                                   andalso weft_expect:global_knows([A, B]),
                               true = erlang:monitor_node(B, true),
                               true = erlang:disconnect_node(B),
                               ?expect({nodedown, B}),
                               true = net_kernel:hidden_connect_node(B),
                               lists:member(B, nodes(hidden))
                           end),
    false = lists:member(B, nodes()),
    true = lists:member(A, erpc:call(B, erlang, nodes, [hidden])),
    true = erlang:disconnect_node(B).

abcast_to_all_nodes(#{a := A, b := B, c := C}) ->
    Puppets = [weft_puppet:start(Node) || Node <- [A, B, C]],
    [true = weft_puppet:do(P, fun() -> register(conformance_all, self()) end) || P <- Puppets],
    abcast = gen_server:abcast(conformance_all, x),
    ok = weft_expect:until(fun() ->
        lists:all(fun(P) -> weft_puppet:mailbox(P) =:= [{'$gen_cast', x}] end, Puppets)
    end).

rpc_multicall_of_all(#{a := A, b := B, c := C}) ->
    {Answers, []} = rpc:multicall(erlang, node, []),
    [] = [A, B, C] -- Answers.
