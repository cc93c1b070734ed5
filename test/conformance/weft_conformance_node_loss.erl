%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: what happens when a node or the connection with it is lost, and after.
%% A connection is lost by erlang:disconnect_node/1, a node by erlang:halt/0. Subscriptions ask for
%% all node types, so that hidden circuits are told of too.
-module(weft_conformance_node_loss).

-include("weft_conformance.hrl").

-export([halt_of_the_peer_gives_noconnection_to_all/1, halt_of_the_peer_ends_pending_calls/1,
         disconnect_gives_noconnection_to_both_sides/1,
         each_monitor_node_gives_one_nodedown/1, down_comes_once_though_nodes_reconnect/1,
         processes_survive_a_disconnect/1, each_kind_of_first_use_connects/1,
         connection_id_changes_with_reconnection/1, nodeup_messages_and_nodedown_in_this_order/1,
         messages_of_a_halting_node_are_a_prefix/1,
         old_pids_of_a_restarted_node_are_dead/1, disconnect_during_large_messages/1,
         linked_supervisor_sees_noconnection/1]).
-export([needs/0]).

-define(ROUNDS, 20).
-define(BURST, 50).

needs() ->
    #{halt_of_the_peer_gives_noconnection_to_all => #{own => true, ends_b => true},
      halt_of_the_peer_ends_pending_calls => #{own => true, ends_b => true},
      messages_of_a_halting_node_are_a_prefix => #{own => true, ends_b => true},
      old_pids_of_a_restarted_node_are_dead => #{own => true, time_ms => 60_000},
      each_kind_of_first_use_connects => #{time_ms => 60_000}}.

halt_of_the_peer_gives_noconnection_to_all(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = weft_puppet:start_link(B),
    true = weft_puppet:do(Far, fun() -> register(conformance_doomed, self()) end),
    ByPid = monitor(process, Far),
    ByName = monitor(process, {conformance_doomed, B}),
    Tagged = monitor(process, Far, [{tag, mine}]),
    true = erlang:monitor_node(B, true),
    halt_node(B),
    ?expect({'EXIT', Far, noconnection}),
    ?expect({'DOWN', ByPid, process, Far, noconnection}),
    ?expect({'DOWN', ByName, process, {conformance_doomed, B}, noconnection}),
    ?expect({mine, Tagged, process, Far, noconnection}),
    ?expect({nodedown, B}),
    false = connected(B),
    pang = net_adm:ping(B).

halt_of_the_peer_ends_pending_calls(#{b := B}) ->
    {ok, _} = erpc:call(B, fun() -> weft_echo_server:start(conformance_waits) end),
    Server = {conformance_waits, B},
    Call = fun(F) -> spawn_monitor(fun() -> exit({result, outcome(F)}) end) end,
    Calls = [Call(fun() -> gen_server:call(Server, wait, infinity) end),
             Call(fun() -> erpc:call(B, timer, sleep, [infinity]) end),
             Call(fun() -> rpc:call(B, timer, sleep, [infinity]) end),
             Call(fun() -> gen_server:multi_call([B], conformance_waits, wait) end)],
    ok = weft_expect:until(fun() -> far_waiters(B) >= 3 end),
    halt_node(B),
    [{exit, {{nodedown, B}, _}}, {error, {erpc, noconnection}}, {value, {badrpc, nodedown}},
     {value, {[], [B]}}] =
        [?expect({'DOWN', M, process, Pid, {result, Outcome}}, Outcome) || {Pid, M} <- Calls].

%% How many calls have arrived there: two sleepers and the server with a caller to release.
far_waiters(B) ->
    erpc:call(B, fun() ->
        Sleeps = {current_function, {timer, sleep, 1}},
        Sleepers = [P || P <- processes(), Sleeps =:= process_info(P, current_function)],
        #{waiting := Waiting} = sys:get_state(conformance_waits),
        length(Sleepers) + case Waiting of none -> 0; _ -> 1 end
    end).

outcome(Fun) ->
    try Fun() of
        Value -> {value, Value}
    catch
        Class:Reason -> {Class, Reason}
    end.

disconnect_gives_noconnection_to_both_sides(#{a := A, b := B}) ->
    process_flag(trap_exit, true),
    Near = self(),
    Far = spawn(B, fun() -> watch(Near, A) end),
    link(Far),
    Monitor = monitor(process, Far),
    ?expect({watching, Far}),
    true = erlang:disconnect_node(B),
    ?expect({'EXIT', Far, noconnection}),
    ?expect({'DOWN', Monitor, process, Far, noconnection}),
    ?expect({seen, Far, [noconnection, noconnection, A]}).

watch(Near, A) ->
    process_flag(trap_exit, true),
    link(Near),
    Monitor = monitor(process, Near),
    true = erlang:monitor_node(A, true),
    Near ! {watching, self()},
    Exit = ?expect({'EXIT', Near, Reason}, Reason),
    Down = ?expect({'DOWN', Monitor, process, Near, Reason}, Reason),
    Node = ?expect({nodedown, N}, N),
    send_until_it_comes(Near, A, {seen, self(), [Exit, Down, Node]}).

%% A node that has not ended the former connection yet may end the new one with it, and with that
%% the message. Whoever waits for it ends when it has come.
send_until_it_comes(To, Node, Message) ->
    reconnect(Node),
    Monitor = monitor(process, To),
    To ! Message,
    receive
        {'DOWN', Monitor, process, To, noconnection} -> send_until_it_comes(To, Node, Message);
        {'DOWN', Monitor, process, To, _Ended} -> ok
    end.

each_monitor_node_gives_one_nodedown(#{b := B}) ->
    [true = erlang:monitor_node(B, true) || _ <- [1, 2, 3]],
    true = erlang:monitor_node(B, false),
    true = erlang:disconnect_node(B),
    ?expect({nodedown, B}),
    ?expect({nodedown, B}),
    reconnect(B),
    ?refute({nodedown, B}).

down_comes_once_though_nodes_reconnect(#{b := B}) ->
    Far = survivor(B),
    Monitor = monitor(process, Far),
    true = erlang:disconnect_node(B),
    ?expect({'DOWN', Monitor, process, Far, noconnection}),
    reconnect(B),
    Again = monitor(process, Far),
    exit(Far, kill),
    ?expect({'DOWN', Again, process, Far, killed}),
    ?refute({'DOWN', Monitor, _, _, _}).

processes_survive_a_disconnect(#{b := B}) ->
    Far = survivor(B),
    pong = ping(Far),
    [begin
         await_down(B),
         reconnect(B),
         pong = ping(Far)
     end || _ <- lists:seq(1, 5)].

%% Whatever is used first after a loss sets up the connection by itself. What each use expects
%% can come over a connection only.
each_kind_of_first_use_connects(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = survivor(B),
    true = erpc:call(B, erlang, register, [conformance_first_use, Far]),
    {Dead, Monitor} = spawn_monitor(B, erlang, exit, [dead]),
    ?expect({'DOWN', Monitor, process, Dead, dead}),
    Nobody = {conformance_nobody_has_this_name, B},
    Uses = [fun() -> pong = ping(Far) end,
            fun() -> pong = ping({conformance_first_use, B}) end,
            fun() -> monitor(process, Dead), ?expect({'DOWN', _, process, Dead, noproc}) end,
            fun() -> monitor(process, Nobody), ?expect({'DOWN', _, process, Nobody, noproc}) end,
            fun() -> link(Dead), ?expect({'EXIT', Dead, noproc}) end,
            fun() -> spawn_link(B, erlang, exit, [hi]), ?expect({'EXIT', _, hi}) end,
            fun() -> spawn_request(B, erlang, node, []), ?expect({spawn_reply, _, ok, _}) end,
            fun() -> B = erpc:call(B, erlang, node, []) end,
            fun() -> B = rpc:call(B, erlang, node, []) end,
            fun() -> pong = net_adm:ping(B) end,
            fun() -> exit(Far, forget_it), weft_expect:until(fun() -> connected(B) end) end],
    [begin await_down(B), Use(), true = connected(B) end || Use <- Uses].

%% Connection ids are shown since kernel 8.5.1; before that all there is to see is that it works.
connection_id_changes_with_reconnection(#{b := B}) ->
    First = connection_id(B),
    First = connection_id(B),
    await_down(B),
    reconnect(B),
    Second = connection_id(B),
    true = is_integer(First) andalso First =/= Second.

connection_id(Node) ->
    #{connection_id := Id} = proplists:get_value(Node, nodes(connected, #{connection_id => true})),
    Id.

nodeup_messages_and_nodedown_in_this_order(#{a := A, b := B}) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}]),
    Near = self(),
    Burst = fun(Round) -> [Near ! {burst, Round, N} || N <- lists:seq(1, ?BURST)] end,
    spawn(B, fun() -> rounds(A, Burst, ?ROUNDS), send_until_it_comes(Near, A, finished) end),
    follow(B, up).

%% The far process connects, sends a burst and drops the connection in the middle of it.
rounds(_A, _Burst, 0) ->
    ok;
rounds(A, Burst, Round) ->
    reconnect(A),
    Burst(Round),
    await_down(A),
    rounds(A, Burst, Round - 1).

%% What we may see: (nodeup, messages in order, nodedown)*; nothing else, in no other order.
follow(B, State) ->
    Event = ?expect(Any, Any),
    case {State, Event} of
        {_, finished} when State =/= down -> ok;
        {up, {nodedown, B, _}} -> follow(B, down);
        {{burst, _, _}, {nodedown, B, _}} -> follow(B, down);
        {down, {nodeup, B, _}} -> follow(B, up);
        {up, {burst, _, 1}} -> follow(B, Event);
        {{burst, Round, N}, {burst, Round, M}} when M =:= N + 1 -> follow(B, Event);
        _ -> erlang:error({wrong_order, #{in => State, came => Event}})
    end.

messages_of_a_halting_node_are_a_prefix(#{b := B}) ->
    Near = self(),
    {_, Monitor} = spawn_monitor(B, fun() ->
                                            [Near ! {number, N} || N <- lists:seq(1, 1_000)],
                                            erlang:halt(0, [{flush, false}])
                                    end),
    ?expect({'DOWN', Monitor, process, _, noconnection}),
    Here = fun Here() -> receive {number, N} -> [N | Here()] after 0 -> [] end end,
    Numbers = Here(),
    Numbers = lists:seq(1, length(Numbers)).

%% The node comes back under its name as another incarnation: what was there is dead.
old_pids_of_a_restarted_node_are_dead(#{b := B, carrier := Carrier, boot_of_b := Boot}) ->
    Old = survivor(B),
    true = erlang:monitor_node(B, true),
    halt_node(B),
    ?expect({nodedown, B}),
    {ok, Peer, B} = peer:start(Boot),
    try
        ok = weft_cluster:start_overlay(Carrier, [Peer]),
        reconnect(B),
        Old ! {ping, self()},
        Monitor = monitor(process, Old),
        ?expect({'DOWN', Monitor, process, Old, noproc}),
        pong = ping(survivor(B)),
        ?refute(_)
    after
        ok = peer:stop(Peer)
    end.

disconnect_during_large_messages(#{b := B}) ->
    Large = rand:bytes(5_000_000),
    [begin
         Far = survivor(B),
         Monitor = monitor(process, Far),
         spawn(fun() -> Far ! {large, Large} end),
         Far ! {ping, self()},
         await_down(B),
         ?expect({'DOWN', Monitor, process, Far, noconnection}),
         reconnect(B),
         receive pong -> ok after 0 -> ok end,
         pong = ping(Far)
     end || _ <- lists:seq(1, 5)].

linked_supervisor_sees_noconnection(#{b := B}) ->
    process_flag(trap_exit, true),
    {ok, Near} = supervisor:start_link(weft_conformance_supervisor, #{intensity => 5}),
    Start = {weft_conformance_supervisor, start_far_server, [B, conformance_lost_child]},
    {ok, Child} = supervisor:start_child(Near, #{id => x, start => Start, restart => temporary}),
    await_down(B),
    ok = weft_expect:until(fun() -> supervisor:which_children(Near) =:= [] end),
    ok = until_ended(Child, B).

%% It may live on for a moment, and the former connection may end the new one with it.
until_ended(Process, Node) ->
    reconnect(Node),
    Monitor = monitor(process, Process),
    case ?expect({'DOWN', Monitor, process, Process, Reason}, Reason) of
        noproc -> ok;
        noconnection -> until_ended(Process, Node)
    end.

%% ---- losing, finding again ----

halt_node(Node) ->
    erpc:cast(Node, fun() -> erlang:halt(0, [{flush, false}]) end).

await_down(Node) ->
    true = erlang:monitor_node(Node, true),
    _ = erlang:disconnect_node(Node),
    ?expect({nodedown, Node}).

reconnect(Node) ->
    ok = weft_expect:until(fun() -> net_kernel:connect_node(Node) =:= true end).

connected(Node) ->
    lists:member(Node, nodes(connected)).

%% A process there which outlives the connection, and answers to pings.
survivor(Node) ->
    spawn(Node, fun() -> process_flag(trap_exit, true), survive() end).

survive() ->
    receive
        {ping, From} -> From ! pong, survive();
        {'EXIT', _, {stop, Reason}} -> exit(Reason);
        _ -> survive()
    end.

ping(Process) ->
    Process ! {ping, self()},
    ?expect(pong, pong).
