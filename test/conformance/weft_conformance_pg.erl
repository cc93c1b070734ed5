%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: process groups by `pg', which finds its peers in nodes().
-module(weft_conformance_pg).

-include("weft_conformance.hrl").

-export([pg_members_are_seen_on_all_nodes/1, pg_leave_and_death_remove_members/1,
         pg_monitor_tells_of_far_changes/1, pg_many_members/1, pg_loses_members_of_a_lost_node/1,
         pg_members_come_back_after_reconnection/1]).
-export([needs/0]).

-define(GROUP, conformance_group).

needs() ->
    Own = #{own => true, visible => true},
    #{pg_members_are_seen_on_all_nodes => #{visible => true},
      pg_leave_and_death_remove_members => #{visible => true},
      pg_monitor_tells_of_far_changes => #{visible => true},
      pg_many_members => #{visible => true},
      pg_loses_members_of_a_lost_node => Own#{ends_b => true},
      pg_members_come_back_after_reconnection =>
          Own#{whole => true, args => ["-kernel", "prevent_overlapping_partitions", "false"]}}.

pg_members_are_seen_on_all_nodes(#{a := A, b := B, c := C}) ->
    Scope = scope([A, B, C]),
    Members = [member(Node, Scope) || Node <- [A, B, C]],
    [await_members(Node, Scope, Members) || Node <- [A, B, C]],
    [Mine] = erpc:call(B, pg, get_local_members, [Scope, ?GROUP]),
    B = node(Mine).

pg_leave_and_death_remove_members(#{a := A, b := B, c := C}) ->
    Scope = scope([A, B, C]),
    [Near, Leaver, Mortal] = Members = [member(Node, Scope) || Node <- [A, B, B]],
    await_members(C, Scope, Members),
    ok = erpc:call(B, pg, leave, [Scope, ?GROUP, Leaver]),
    exit(Mortal, kill),
    await_members(C, Scope, [Near]),
    await_members(A, Scope, [Near]).

pg_monitor_tells_of_far_changes(#{a := A, b := B, c := C}) ->
    Scope = scope([A, B, C]),
    {Ref, []} = pg:monitor(Scope, ?GROUP),
    Far = member(B, Scope),
    ?expect({Ref, join, ?GROUP, [Far]}),
    exit(Far, kill),
    ?expect({Ref, leave, ?GROUP, [Far]}).

pg_many_members(#{a := A, b := B, c := C}) ->
    Scope = scope([A, B, C]),
    Members = [member(Node, Scope) || _ <- lists:seq(1, 50), Node <- [B, C]],
    await_members(A, Scope, Members).

pg_loses_members_of_a_lost_node(#{a := A, b := B}) ->
    Scope = scope([A, B]),
    Near = member(A, Scope),
    Far = member(B, Scope),
    await_members(A, Scope, [Near, Far]),
    erpc:cast(B, erlang, halt, []),
    await_members(A, Scope, [Near]).

%% With visible circuits the nodes are together again within milliseconds, so the group is without
%% the far member for a moment that nobody may see who only looks.
pg_members_come_back_after_reconnection(#{a := A, b := B}) ->
    Scope = scope([A, B]),
    Near = member(A, Scope),
    Far = spawn(B, fun() -> receive never -> ok after 60_000 -> ok end end),
    ok = erpc:call(B, pg, join, [Scope, ?GROUP, Far]),
    await_members(A, Scope, [Near, Far]),
    {Ref, _Members} = pg:monitor(Scope, ?GROUP),
    true = erlang:disconnect_node(B),
    ?expect({Ref, leave, ?GROUP, [Far]}),
    ok = weft_expect:until(fun() -> net_kernel:connect_node(B) =:= true end),
    ?expect({Ref, join, ?GROUP, [Far]}),
    await_members(A, Scope, [Near, Far]),
    await_members(B, Scope, [Near, Far]).

%% A scope of its own for each case; its processes are not linked and stay until the nodes stop.
scope(Nodes) ->
    Scope = list_to_atom("conformance_pg_" ++ integer_to_list(erlang:unique_integer([positive]))),
    [{ok, _} = erpc:call(Node, pg, start, [Scope]) || Node <- Nodes],
    Scope.

member(Node, Scope) ->
    Pid = weft_puppet:start(Node),
    ok = erpc:call(Node, pg, join, [Scope, ?GROUP, Pid]),
    Pid.

await_members(Node, Scope, Members) ->
    Expected = lists:sort(Members),
    weft_expect:until(fun() ->
        lists:sort(erpc:call(Node, pg, get_members, [Scope, ?GROUP])) =:= Expected
    end).
