%% SPDX-License-Identifier: Apache-2.0
%% Who is told of nodes that come and go, without nodes: routes are rows of the view.
-module(weft_partisan_watch_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODE, 'n2@127.0.0.1').
-define(HOST_MS, 5000).

%% A node behind a gateway has a hidden connection, or none yet.
a_node_over_others_is_told_test() ->
    with_watch(fun() ->
                       ok = partisan:monitor_nodes(true),
                       ok = partisan:monitor_nodes(true, [nodedown_reason]),
                       ok = partisan:monitor_nodes(true, [{node_type, hidden}]),
                       route(),
                       ?assertEqual([{nodeup, ?NODE}, {nodeup, ?NODE, []}], told(2)),
                       no_route(),
                       ?assertEqual([{nodedown, ?NODE},
                                     {nodedown, ?NODE, [{nodedown_reason, noconnection}]}], told(2))
               end).

no_more_test() ->
    with_watch(fun() ->
                       ok = partisan:monitor_nodes(true),
                       ok = partisan:monitor_nodes(true, [nodedown_reason]),
                       ok = partisan:monitor_nodes(false),
                       route(),
                       ?assertEqual([{nodeup, ?NODE, []}], told(1)),
                       ok = partisan:monitor_nodes(false, [nodedown_reason]),
                       ?assertEqual([], ets:tab2list(weft_partisan_watch)),
                       ?assertEqual([], monitored())
               end).

%% A node that came before is no news, though nobody has looked since.
what_was_before_is_not_told_test() ->
    with_watch(fun() ->
                       Self = self(),
                       ok = partisan:monitor_nodes(true),
                       route(),
                       ok = partisan_peer_service:on_up(any, fun(Node) -> Self ! {new, Node} end),
                       ?assertEqual([{nodeup, ?NODE}], told(1)),
                       no_route(),
                       ?assertEqual([{nodedown, ?NODE}], told(1))
               end).

who_has_ended_is_forgotten_test() ->
    with_watch(fun() ->
                       Both = fun() ->
                                      ok = partisan:monitor_nodes(true),
                                      ok = partisan:monitor_nodes(true, [nodedown_reason])
                              end,
                       {Pid, Monitor} = spawn_monitor(Both),
                       receive {'DOWN', Monitor, process, Pid, Reason} -> normal = Reason end,
                       weft_test_nodes:until(fun() -> ets:tab2list(weft_partisan_watch) =:= [] end),
                       weft_test_nodes:until(fun() -> monitored() =:= [] end)
               end).

%% The process that tells is killed; those that are told need not call again.
a_restart_forgets_nobody_test() ->
    with_watch(fun() ->
                       ok = partisan:monitor_nodes(true),
                       First = whereis(weft_partisan_watch),
                       Monitor = monitor(process, First),
                       true = exit(First, kill),
                       receive {'DOWN', Monitor, process, First, killed} -> ok end,
                       weft_test_nodes:until(fun() -> is_restarted(First) end),
                       %% It has its name before it knows who is there.
                       _ = sys:get_state(weft_partisan_watch),
                       route(),
                       ?assertEqual([{nodeup, ?NODE}], told(1)),
                       ?assertEqual([self()], monitored())
               end).

%% Stopped, as in Partisan.
without_the_application_test() ->
    ?assertEqual(error, partisan:monitor_nodes(true)).

%% Hidden connections of tools make no nodes, those over others do.
tools_are_no_nodes_test() ->
    ?assertEqual([n1@h, n2@h, n3@h],
                 weft_partisan_watch:up([n1@h], [n2@h, node()], [n1@h, n3@h, tool@h],
                                        [n1@h, n2@h, n3@h, node()])).

%% A process of the version before.
old_state_test() ->
    {ok, State} = weft_partisan_watch:code_change("0.1.0", {state, none}, []),
    ok = net_kernel:monitor_nodes(false, [{node_type, all}]),
    ?assertEqual({ok, State}, weft_partisan_watch:code_change("0.1.0", State, [])),
    ?assertMatch({noreply, State},
                 weft_partisan_watch:handle_info({nodeup, ?NODE, [{node_type, hidden}]}, State)).

%% --- helpers ----------------------------------------------------------------------------------

with_watch(Test) ->
    process_flag(trap_exit, true),
    ok = weft_view:new(),
    {ok, Sup} = weft_partisan_sup:start_link(),
    try Test()
    after
        no_route(),
        exit(Sup, shutdown),
        receive {'EXIT', Sup, _} -> ok end
    end.

route() -> ok = weft_view:put(?MODULE, {route, ?NODE}, {?NODE, 1, 1}).

no_route() -> ok = weft_view:delete(?MODULE, {route, ?NODE}).

%% The next messages, sorted: those of one change come in no order.
told(Count) ->
    lists:sort([receive
                    Message when element(1, Message) =/= 'EXIT' -> Message
                after ?HOST_MS -> nothing
                end || _ <- lists:seq(1, Count)]).

monitored() ->
    {monitors, Monitors} = process_info(whereis(weft_partisan_watch), monitors),
    [Pid || {process, Pid} <- Monitors].

is_restarted(First) ->
    Pid = whereis(weft_partisan_watch),
    is_pid(Pid) andalso Pid =/= First.
