%% SPDX-License-Identifier: Apache-2.0
%% @doc Process groups on real nodes of which not all are connected by links.
-module(weft_pg_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([on_a_star/1, on_overlapping_groups/1, on_peer_to_peer/1]).
%% Run on the nodes.
-export([member/1, watch/1, seen/1]).

-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).
-define(WAIT_MS, 60000).
%% A killed node is known over circuits after this time.
-define(RESUME_MS, 3000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [on_overlapping_groups]
        ++ [Case || Case <- [on_a_star, on_peer_to_peer], os:getenv("FULL") =:= "1"].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- cases ------------------------------------------------------------------------------------

on_a_star(Config) ->
    Links = [{node_name(hub), node_name(Leaf)} || Leaf <- [a, b, c]],
    all_see_the_same([a, b, c, hub], {static, #{links => Links}}, Config).

on_overlapping_groups(Config) ->
    Groups = #{left => [node_name(N) || N <- [a, b, g]], right => [node_name(N) || N <- [g, c]]},
    all_see_the_same([a, b, c, g], {groups, Groups}, Config).

on_peer_to_peer(Config) ->
    Topology = {peer_to_peer, #{seeds => [node_name(a)], active => 2, passive => 6}},
    all_see_the_same([a, b, c, d, e], Topology, Config).

%% A member on each node; the first one leaves, the second one's node is killed.
all_see_the_same(Names, Topology, Config) ->
    [First, Second | Others] = Nodes =
        [node(Name, [{topology, Topology}, {resume_timeout_ms, ?RESUME_MS}], Config)
         || Name <- Names],
    [until(fun() -> members(Node) =:= length(Nodes) end, ?WAIT_MS) || Node <- Nodes],
    Pids = [Left, Killed | Stay] = [call(Node, ?MODULE, member, [g]) || Node <- Nodes],
    [until(fun() -> in_group(Node) =:= lists:sort(Pids) end, ?WAIT_MS) || Node <- Nodes],
    [?assertEqual([Pid], call(Node, weft_pg, get_local_members, [g]))
     || {Node, Pid} <- lists:zip(Nodes, Pids)],
    Watcher = call(lists:last(Others), ?MODULE, watch, [g]),
    ok = call(First, weft_pg, leave, [g, Left]),
    [until(fun() -> in_group(Node) =:= lists:sort([Killed | Stay]) end, ?WAIT_MS)
     || Node <- Nodes],
    ok = weft_test_nodes:kill(Second),
    [until(fun() -> in_group(Node) =:= lists:sort(Stay) end, ?WAIT_MS)
     || Node <- [First | Others]],
    until(fun() -> call(lists:last(Others), ?MODULE, seen, [Watcher]) =:=
                       [{leave, g, [Left]}, {leave, g, [Killed]}] end, ?WAIT_MS).

members(Node) ->
    length(lists:usort([name(Node) | call(Node, weft_overlay, members, [])])).

in_group(Node) -> lists:sort(call(Node, weft_pg, get_members, [g])).

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc A process that is in the group.
member(Group) ->
    Pid = spawn(fun() -> receive the_end -> ok end end),
    ok = weft_pg:join(Group, Pid),
    Pid.

%% @doc A process that collects what it is told of the group.
watch(Group) ->
    Caller = self(),
    Pid = spawn(fun() ->
                    {Ref, _} = weft_pg:monitor(Group),
                    Caller ! {self(), watches},
                    collect(Ref, [])
                end),
    receive {Pid, watches} -> Pid end.

collect(Ref, Events) ->
    receive
        {Ref, What, Group, Pids} -> collect(Ref, [{What, Group, Pids} | Events]);
        {seen, From} -> From ! {self(), lists:reverse(Events)}, collect(Ref, Events)
    end.

%% @doc What it was told so far.
seen(Watcher) ->
    Watcher ! {seen, self()},
    receive {Watcher, Events} -> Events end.

%% --- small parts ------------------------------------------------------------------------------

node(Name, Env, Config) ->
    Node = weft_test_nodes:start(Name, #{config => Env, args => ?PARTIAL}, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

call(Node, Module, Function, Args) ->
    weft_test_nodes:call(Node, Module, Function, Args, 60000).
