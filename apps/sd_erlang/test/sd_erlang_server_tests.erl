%% SPDX-License-Identifier: Apache-2.0
-module(sd_erlang_server_tests).

-include_lib("eunit/include/eunit.hrl").

%% A process of the version before had two fields.
old_state_test() ->
    Subscribers = #{self() => make_ref()},
    {ok, State} = sd_erlang_server:code_change("0.1.0", {state, Subscribers, #{}}, []),
    ?assertEqual({ok, State}, sd_erlang_server:code_change("0.1.0", State, [])),
    ?assertEqual({reply, [self()], State},
                 sd_erlang_server:handle_call(monitoring, {self(), tag}, State)),
    ok = net_kernel:monitor_nodes(false, #{node_type => all}),
    Node = 'n1@127.0.0.1',
    {noreply, Up} = sd_erlang_server:handle_info({nodeup, Node, #{node_type => visible}}, State),
    ?assertMatch({noreply, State}, sd_erlang_server:handle_info({nodedown, Node, #{}}, Up)).

%% Of hidden nodes that are not in the cluster, as tools are, nobody is told.
tool_test() ->
    {ok, State} = sd_erlang_server:code_change("0.1.0", {state, #{}, #{}}, []),
    ok = net_kernel:monitor_nodes(false, #{node_type => all}),
    Tool = 'tool@127.0.0.1',
    ?assertEqual({noreply, State},
                 sd_erlang_server:handle_info({nodeup, Tool, #{node_type => hidden}}, State)).
