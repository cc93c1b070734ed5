%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs on a node under test: what one node notices of a process on another.
-module(weft_interop_talk).

-export([link_and_monitor/1]).

-define(DEADLINE_MS, 30000).

%% @doc Kills a process on Node that is linked and monitored. Returns what both signals said.
-spec link_and_monitor(node()) -> {LinkReason :: term(), MonitorReason :: term()}.
link_and_monitor(Node) ->
    process_flag(trap_exit, true),
    Pid = spawn_link(Node, timer, sleep, [infinity]),
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    Linked = receive {'EXIT', Pid, LinkReason} -> LinkReason after ?DEADLINE_MS -> no_exit end,
    Monitored = receive {'DOWN', Monitor, _, _, Reason} -> Reason after ?DEADLINE_MS -> no_down end,
    process_flag(trap_exit, false),
    {Linked, Monitored}.
