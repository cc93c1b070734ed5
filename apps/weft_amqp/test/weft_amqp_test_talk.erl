%% SPDX-License-Identifier: Apache-2.0
%% @doc What nodes do to each other in the suite of `weft_amqp'; runs on the nodes.
-module(weft_amqp_test_talk).

-include_lib("stdlib/include/assert.hrl").

-export([all/1, echo/2, by_channel/2, peer_ports/0, start_error/0]).
-export([echoing/1]).

-define(MS, 30000).

%% @doc All kinds of signals to a node and back.
-spec all(node()) -> ok.
all(Node) ->
    ?assertEqual(Node, erpc:call(Node, erlang, node, [], ?MS)),
    ?assertEqual(pong, net_adm:ping(Node)),
    ok = echo(Node, 1000),
    Server = spawn(Node, timer, sleep, [infinity]),
    ?assertEqual(true, gen_server:call({net_kernel, Node}, longnames, ?MS)),
    Monitor = monitor(process, Server),
    process_flag(trap_exit, true),
    link(Server),
    exit(Server, ended),
    receive {'EXIT', Server, ended} -> ok after ?MS -> error(no_exit) end,
    receive {'DOWN', Monitor, process, Server, ended} -> ok after ?MS -> error(no_down) end.

%% @doc Sends a binary of that size there and gets it back.
-spec echo(node(), pos_integer()) -> ok.
echo(Node, Bytes) ->
    Binary = rand:bytes(Bytes),
    Echo = spawn(Node, ?MODULE, echoing, [self()]),
    Echo ! Binary,
    receive {Echo, Binary} -> ok after ?MS -> error({no_echo, Bytes}) end.

%% @private
-spec echoing(pid()) -> ok.
echoing(From) ->
    receive Binary when is_binary(Binary) -> From ! {self(), Binary}, ok end.

%% @doc Numbers by a channel with lanes of its own, in order.
-spec by_channel(node(), pos_integer()) -> ok.
by_channel(Node, Count) ->
    Self = self(),
    Receiver = spawn(Node, fun() -> Self ! {self(), [receive N when is_integer(N) -> N end
                                                     || _ <- lists:seq(1, Count)]} end),
    [ok = weft:send(Receiver, N, bulk) || N <- lists:seq(1, Count)],
    Expected = lists:seq(1, Count),
    receive {Receiver, Expected} -> ok after ?MS -> error(not_all_in_order) end.

%% @doc The ports that this node has TCP connections to.
-spec peer_ports() -> [inet:port_number()].
peer_ports() ->
    lists:usort([Port || Socket <- erlang:ports(),
                         erlang:port_info(Socket, name) =:= {name, "tcp_inet"},
                         {ok, {_, Port}} <- [inet:peername(Socket)]]).

%% @doc What the application weft answers to its start.
-spec start_error() -> {error, {weft, string()}} | term().
start_error() ->
    case application:ensure_all_started(weft) of
        {error, {weft, {{weft, Text}, {weft_app, start, _}}}} -> {error, {weft, Text}};
        Other -> Other
    end.
