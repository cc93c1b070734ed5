%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: net_ticktime. Idle connections live, dead ones are noticed. The waits in
%% these cases are what is tested: nothing (no nodedown) must happen for that long. A node which
%% is stopped by the system (SIGSTOP) neither answers nor closes its sockets.
-module(weft_conformance_ticks).

-include("weft_conformance.hrl").

-export([idle_connection_lives_over_several_ticktimes/1,
         traffic_in_one_direction_keeps_the_connection/1, stopped_node_is_noticed/1,
         stop_shorter_than_the_ticktime_is_survived/1, ticktime_changed_at_run_time_is_used/1]).
-export([needs/0]).

%% Ticks come each second then: nobody is down before three seconds of silence.
-define(TICKTIME_S, 4).
-define(IDLE_MS, 9_000).
-define(ONE_WAY_MS, 6_000).
-define(SHORT_STOP_MS, 800).

needs() ->
    Quick = #{own => true,
              args => ["-kernel", "net_ticktime", integer_to_list(?TICKTIME_S)]},
    #{idle_connection_lives_over_several_ticktimes => Quick#{whole => true},
      traffic_in_one_direction_keeps_the_connection => Quick#{whole => true},
      stopped_node_is_noticed => Quick,
      stop_shorter_than_the_ticktime_is_survived => Quick#{whole => true},
      ticktime_changed_at_run_time_is_used => #{own => true}}.

idle_connection_lives_over_several_ticktimes(#{b := B}) ->
    true = erlang:monitor_node(B, true),
    receive
        {nodedown, B} -> erlang:error(idle_connection_was_dropped)
    after ?IDLE_MS -> ok
    end,
    ok = weft_puppet:sync(weft_puppet:start(B)).

traffic_in_one_direction_keeps_the_connection(#{b := B}) ->
    true = erlang:monitor_node(B, true),
    Far = weft_puppet:start(B),
    Count = send_until(Far, 0, erlang:monotonic_time(millisecond) + ?ONE_WAY_MS),
    Count = length(weft_puppet:mailbox(Far)).

send_until(Far, Count, EndMs) ->
    Far ! {number, Count},
    receive
        {nodedown, Node} -> erlang:error({busy_connection_was_dropped, Node})
    after 1 -> ok
    end,
    case erlang:monotonic_time(millisecond) < EndMs of
        true -> send_until(Far, Count + 1, EndMs);
        false -> Count + 1
    end.

%% The reason is that of the stock carrier there; others may know better why a node is gone.
stopped_node_is_noticed(#{b := B, carrier := Carrier} = Context) ->
    ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
    Far = weft_puppet:start(B),
    Monitor = monitor(process, Far),
    stop(Context),
    ?expect({'DOWN', Monitor, process, Far, noconnection}),
    Reason = ?expect({nodedown, B, Info}, proplists:get_value(nodedown_reason, Info)),
    true = Carrier =/= stock orelse Reason =:= net_tick_timeout.

stop_shorter_than_the_ticktime_is_survived(#{b := B} = Context) ->
    true = erlang:monitor_node(B, true),
    Far = weft_puppet:start(B),
    stop(Context),
    Numbers = lists:seq(1, 1_000),
    [Far ! N || N <- Numbers],
    receive
        {nodedown, B} -> erlang:error(dropped_too_early)
    after ?SHORT_STOP_MS -> continue(Context)
    end,
    Numbers = weft_puppet:mailbox(Far),
    ?refute({nodedown, B}).

ticktime_changed_at_run_time_is_used(#{b := B} = Context) ->
    60 = net_kernel:get_net_ticktime(),
    unchanged = net_kernel:set_net_ticktime(60),
    [change_initiated = erpc:call(Node, net_kernel, set_net_ticktime, [?TICKTIME_S, 0])
     || Node <- [node(), B]],
    [ok = weft_expect:until(fun() ->
        erpc:call(Node, net_kernel, get_net_ticktime, []) =:= ?TICKTIME_S
     end) || Node <- [node(), B]],
    true = erlang:monitor_node(B, true),
    stop(Context),
    ?expect({nodedown, B}).

%% The cluster's end kills stopped nodes too.
stop(#{os_pids := #{b := OsPid}}) ->
    "" = os:cmd("kill -STOP " ++ OsPid).

continue(#{os_pids := #{b := OsPid}}) ->
    "" = os:cmd("kill -CONT " ++ OsPid).
