%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: who may connect, when connections are made, and racing connects.
-module(weft_conformance_admission).

-include("weft_conformance.hrl").

-export([wrong_cookie_is_refused/1, cookie_per_node_agreed_by_both_is_accepted/1,
         node_not_allowed_is_refused/1, auto_connect_never/1, auto_connect_once/1,
         reconnect_right_after_a_disconnect/1, two_hundred_racing_connects/1,
         many_processes_connect_at_once/1]).
-export([needs/0]).

-define(RACES, 200).

needs() ->
    Own = #{own => true, time_ms => 60_000},
    AutoConnect = fun(When) -> Own#{args => ["-kernel", "dist_auto_connect", When]} end,
    #{reconnect_right_after_a_disconnect => #{time_ms => 60_000},
      two_hundred_racing_connects => #{time_ms => 60_000},
      wrong_cookie_is_refused => Own#{whole => true},
      cookie_per_node_agreed_by_both_is_accepted => Own,
      node_not_allowed_is_refused => Own#{whole => true},
      auto_connect_never => AutoConnect("never"),
      auto_connect_once => AutoConnect("once")}.

wrong_cookie_is_refused(#{b := B}) ->
    Cookie = erlang:get_cookie(),
    await_down(B),
    true = erlang:set_cookie(B, conformance_wrong_cookie),
    false = net_kernel:connect_node(B),
    ?raises(error, {erpc, noconnection}, erpc:call(B, erlang, node, [])),
    true = erlang:set_cookie(B, Cookie),
    reconnect(B).

cookie_per_node_agreed_by_both_is_accepted(#{a := A, b := B}) ->
    true = erpc:call(B, erlang, set_cookie, [A, conformance_our_cookie]),
    await_down(B),
    false = net_kernel:connect_node(B),
    true = erlang:set_cookie(B, conformance_our_cookie),
    reconnect(B),
    pong = net_adm:ping(B).

node_not_allowed_is_refused(#{a := A, b := B}) ->
    true = erlang:monitor_node(B, true),
    Socket = socket_between(B, fun(Theirs) -> allow_later(A, Theirs) end),
    ?expect({nodedown, B}),
    meet(Socket),
    false = net_kernel:connect_node(B),
    false = net_kernel:connect_node(B),
    meet(Socket),
    %% The far node may connect as soon as it allows us, and does; then we may too.
    ok = weft_expect:until(fun() -> lists:member(B, nodes(connected)) end),
    %% net_kernel may hear a moment later than nodes() that it is connected.
    true = erlang:monitor_node(B, true),
    ok = weft_expect:until(fun() -> erlang:disconnect_node(B) end),
    ?expect({nodedown, B}),
    reconnect(B).

allow_later(A, Socket) ->
    ok = net_kernel:allow(['conformance_somebody_else@127.0.0.1']),
    true = erlang:monitor_node(A, true),
    true = erlang:disconnect_node(A),
    ?expect({nodedown, A}),
    meet(Socket),
    meet(Socket),
    ok = net_kernel:allow([A]),
    ok = weft_expect:until(fun() -> net_kernel:connect_node(A) =:= true end).

auto_connect_never(#{b := B}) ->
    await_down(B),
    pang_or_lost(B),
    true = net_kernel:connect_node(B),
    B = erpc:call(B, erlang, node, []).

%% Once lost, the connection is not made again by a mere send; on purpose it is.
auto_connect_once(#{b := B}) ->
    await_down(B),
    pang_or_lost(B),
    true = net_kernel:connect_node(B),
    B = erpc:call(B, erlang, node, []).

pang_or_lost(B) ->
    {conformance_any_name, B} ! lost,
    Monitor = monitor(process, {conformance_any_name, B}),
    ?expect({'DOWN', Monitor, process, {conformance_any_name, B}, noconnection}),
    ?raises(error, {erpc, noconnection}, erpc:call(B, erlang, node, [])),
    false = lists:member(B, nodes(connected)).

%% The far side may still believe in the old connection; that must not make the new one fail.
reconnect_right_after_a_disconnect(#{b := B}) ->
    [begin
         await_down(B),
         true = net_kernel:connect_node(B),
         B = erpc:call(B, erlang, node, [])
     end || _ <- lists:seq(1, ?RACES)].

%% Both sides, unconnected, connect at the same time, and both must succeed. They agree on the
%% moment by a socket of their own.
two_hundred_racing_connects(#{a := A, b := B, carrier := Carrier}) ->
    Connect = racing_connect(Carrier),
    Socket = socket_between(B, fun(Theirs) -> race(A, Theirs, Connect, ?RACES) end),
    race(B, Socket, Connect, ?RACES),
    pong = net_adm:ping(B).

%% On the carrier of OTP one of them fails in some race out of thousands.
racing_connect(stock) ->
    fun(Node) -> weft_expect:until(fun() -> net_kernel:connect_node(Node) =:= true end) end;
racing_connect(_Weft) ->
    fun(Node) -> true = net_kernel:connect_node(Node), ok end.

race(_Node, _Socket, _Connect, 0) ->
    ok;
race(Node, Socket, Connect, Races) ->
    true = erlang:monitor_node(Node, true),
    meet(Socket),
    _ = erlang:disconnect_node(Node),
    ?expect({nodedown, Node}),
    meet(Socket),
    ok = Connect(Node),
    meet(Socket),
    race(Node, Socket, Connect, Races - 1).

%% A socket to a process there which does Fun(Socket): to agree with it while the nodes are apart.
socket_between(Node, Fun) ->
    {ok, Listen} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {active, false}, binary]),
    {ok, Port} = inet:port(Listen),
    spawn(Node, fun() ->
                        {ok, Theirs} = gen_tcp:connect({127, 0, 0, 1}, Port,
                                                       [{active, false}, binary]),
                        Fun(Theirs)
                end),
    {ok, Socket} = gen_tcp:accept(Listen, ?DEADLINE_MS),
    Socket.

%% Returns when both sides are here.
meet(Socket) ->
    ok = gen_tcp:send(Socket, <<"x">>),
    {ok, <<"x">>} = gen_tcp:recv(Socket, 1, ?DEADLINE_MS).

many_processes_connect_at_once(#{b := B}) ->
    Far = spawn(B, fun() -> count_to(?RACES) end),
    await_down(B),
    Near = self(),
    Use = fun() -> Far ! {one, Near} end,
    [spawn(Use) || _ <- lists:seq(1, ?RACES)],
    ?expect({counted, Far}).

count_to(0) ->
    ok;
count_to(Left) ->
    From = ?expect({one, Pid}, Pid),
    Left > 1 orelse (From ! {counted, self()}),
    count_to(Left - 1).

await_down(Node) ->
    true = erlang:monitor_node(Node, true),
    true = erlang:disconnect_node(Node),
    ?expect({nodedown, Node}).

reconnect(Node) ->
    ok = weft_expect:until(fun() -> net_kernel:connect_node(Node) =:= true end).
