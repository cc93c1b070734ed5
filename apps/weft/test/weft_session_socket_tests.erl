%% SPDX-License-Identifier: Apache-2.0
%% @doc What is said of the socket of a connection that may use several, or go over other nodes. The
%% test is the process of the link that the connection uses.
-module(weft_session_socket_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SOCKET, weft_session_socket).
-define(PEER, peer@host).
-define(LOOPBACK, {127, 0, 0, 1}).

socket_test_() ->
    {foreach, fun prepared/0, fun cleared/1,
     [{atom_to_list(Name), fun() -> Test() end}
      || {Name, Test} <- [{direct, fun a_direct_connection_has_the_address_of_its_lane/0},
                          {over_others, fun over_another_node_there_is_no_address_of_its_own/0},
                          {lanes, fun with_several_lanes_there_is_not_one_address/0},
                          {options, fun options_are_those_of_the_lane/0},
                          {lost, fun without_a_path_there_is_no_socket/0}]]}.

prepared() ->
    ok = weft_identity:init(true),
    ok = weft_sessions:new_table(),
    ok = weft_link_table:new(),
    ok = application:set_env(weft, lanes, 1).

cleared(ok) ->
    ok = application:unset_env(weft, lanes),
    [true = ets:delete(Table) || Table <- [weft_links, weft_sessions]].

a_direct_connection_has_the_address_of_its_lane() ->
    {Port, Stream} = stream(),
    ?assertEqual({ok, {?LOOPBACK, Port}}, ?SOCKET:peername(?PEER, Stream)).

over_another_node_there_is_no_address_of_its_own() ->
    {_, Stream} = stream(),
    ?assertEqual({error, circuit}, ?SOCKET:peername(behind@host, Stream)).

with_several_lanes_there_is_not_one_address() ->
    {_, Stream} = stream(),
    ok = application:set_env(weft, lanes, 2),
    ?assertEqual({error, lanes}, ?SOCKET:peername(?PEER, Stream)).

options_are_those_of_the_lane() ->
    {_, Stream} = stream(),
    [begin
         ok = ?SOCKET:setopts([{nodelay, IsOn}], Stream),
         ?assertEqual({ok, [{nodelay, IsOn}]}, ?SOCKET:getopts([nodelay], Stream))
     end || IsOn <- [true, false]],
    %% How packets are read is not for others to say.
    ?assertMatch({error, {badopts, _}}, ?SOCKET:setopts([{active, true}], Stream)).

without_a_path_there_is_no_socket() ->
    {_, Stream} = stream(),
    {ok, Broken} = weft_stream:handle({weft_path, closed, self(), any, broken}, Stream),
    ?assertEqual({error, enotconn}, ?SOCKET:getopts([nodelay], Broken)),
    ?assertEqual({error, circuit}, ?SOCKET:peername(?PEER, Broken)).

%% A stream over a connection of this node with itself.
stream() ->
    ok = weft_link_table:enter(?PEER, self()),
    {ok, Listen} = gen_tcp:listen(0, [{ip, ?LOOPBACK}, {active, false}]),
    {ok, Port} = inet:port(Listen),
    {ok, Socket} = gen_tcp:connect(?LOOPBACK, Port, [binary, {active, false}]),
    Lane = weft_lane:new(Socket, {<<>>, 0}, {weft_fault_table, lateness, [?PEER]}),
    {ok, Stream} = weft_stream:acceptor(distribution, <<1:128>>, <<"peer@host">>,
                                        {self(), [Lane], 1}, weft_session_counters:new(), self()),
    {Port, Stream}.
