%% SPDX-License-Identifier: Apache-2.0
%% @doc Full meshes of real nodes with SWIM as failure detector: many join at once, one is stopped
%% for a while and nobody else is taken for failed, one is killed and everybody knows.
%%
%% Who is late is rightly suspected, and on a busy machine some are. That nobody else is suspected
%% is shown in virtual time (`weft_sim_swim_tests').
%%
%% One cluster goes through all of it; with FULL=1 a larger one joins at once, too.
-module(weft_swim_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2, init_per_testcase/2]).
-export([many_nodes_join_at_once/1,
         while_one_node_is_stopped_nobody_else_fails/1,
         a_killed_node_is_failed_everywhere_in_time_and_comes_back/1,
         a_node_that_leaves_is_gone_without_suspicion/1,
         halves_that_were_cut_apart_meet_again/1]).
%% Run on the nodes.
-export([watch/0, watched/0, watcher/1]).

-define(MEMBERS, 9).
-define(STORM, 24).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [{group, one_cluster} | [{group, storm} || os:getenv("FULL") =:= "1"]].

%% One leaves and one is killed, and does not come back to the cases after it: in this order, what
%% one case has said of a member is over when the next one begins.
groups() ->
    [{one_cluster, [],
      [many_nodes_join_at_once,
       a_node_that_leaves_is_gone_without_suspicion,
       while_one_node_is_stopped_nobody_else_fails,
       halves_that_were_cut_apart_meet_again,
       a_killed_node_is_failed_everywhere_in_time_and_comes_back]},
     {storm, [], [many_nodes_join_at_once]}].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% All boot first, then all join in the same moment.
init_per_group(Group, Config) ->
    Count = case Group of one_cluster -> ?MEMBERS; storm -> ?STORM end,
    Names = [list_to_atom(lists:concat([Group, N])) || N <- lists:seq(1, Count)],
    Nodes = boot(Names, node_name(hd(Names)), Config),
    {Us, ok} = timer:tc(fun() ->
                            parallel(fun join/1, Nodes),
                            until_all_see_all(Nodes, 60000)
                        end),
    parallel(fun(Node) -> call(Node, ?MODULE, watch, []) end, Nodes),
    [{nodes, Nodes}, {joined_ms, Us div 1000} | Config].

end_per_group(_Group, _Config) -> weft_test_nodes:stop_all().

%% What was said before is not the case's.
init_per_testcase(_Case, Config) ->
    _ = [call(Node, ?MODULE, watched, []) || Node <- members(Config)],
    Config.

%% --- cases ------------------------------------------------------------------------------------

many_nodes_join_at_once(Config) ->
    Nodes = members(Config),
    until_all_see_all(Nodes, 60000),
    Ups = [Up || Node <- Nodes, #{ups := Up} <- call(Node, weft_links, info, [])],
    ct:pal("~b nodes joined at once and saw each other after ~b ms; ~b links came up ~b times",
           [length(Nodes), ?config(joined_ms, Config), length(Ups), lists:sum(Ups)]),
    ?assertEqual([], [Node || #{node := Node, log := Log} <- Nodes,
                              string:find(text(Log), "overload") =/= nomatch]).

while_one_node_is_stopped_nobody_else_fails(Config) ->
    [_, Stopped | _] = Nodes = members(Config),
    Others = lists:delete(Stopped, Nodes),
    ok = weft_test_nodes:pause(Stopped),
    weft_test_nodes:until(fun() -> all_lack(Stopped, Others) end, 60000),
    ok = weft_test_nodes:continue(Stopped),
    until_all_see_all(Nodes, 60000),
    Changes = changes(Nodes),
    told_of_others(Stopped, Changes),
    ?assertEqual(lists:duplicate(length(Others), name(Stopped)),
                 [Node || {Node, failed} <- Changes]).

%% Of all members, as each of these nodes was told them.
changes(Nodes) ->
    lists:append([call(Node, ?MODULE, watched, []) || Node <- Nodes]).

told_of_others(#{node := Name}, Changes) ->
    ct:pal("suspected beside ~s: ~0p",
           [Name, lists:usort([Node || {Node, suspected} <- Changes, Node =/= Name])]).

%% The bound: the link breaks; the round in which the node is probed through others comes next, and
%% the one after it accuses (2 s); the suspicion of twelve members, when two confirm, takes 4.3 s,
%% of fewer less; the gossip less than a second. Twice that for a busy machine.
a_killed_node_is_failed_everywhere_in_time_and_comes_back(Config) ->
    [_, Victim | _] = Nodes = members(Config),
    Others = lists:delete(Victim, Nodes),
    ok = weft_test_nodes:kill(Victim),
    {Us, ok} = timer:tc(fun() ->
                            weft_test_nodes:until(fun() -> all_lack(Victim, Others) end, 15000)
                        end),
    ct:pal("failed everywhere after ~b ms", [Us div 1000]),
    ?assertEqual([name(Victim)],
                 lists:usort([Node || Watching <- Others,
                                      {Node, failed} <- call(Watching, ?MODULE, watched, [])])),
    [?assertEqual([name(Victim)], call(Node, weft_overlay, failed, [])) || Node <- Others],
    [Back] = boot([short(Victim)], name(hd(Nodes)), Config),
    join(Back),
    until_all_see_all([Back | Others], 30000),
    [?assertEqual([], call(Node, weft_overlay, failed, [])) || Node <- [Back | Others]].

a_node_that_leaves_is_gone_without_suspicion(Config) ->
    [_, Leaver | _] = Nodes = members(Config),
    Others = lists:delete(Leaver, Nodes),
    ok = call(Leaver, weft_overlay, leave, []),
    weft_test_nodes:until(fun() -> all_lack(Leaver, Others) end),
    Changes = changes(Others),
    told_of_others(Leaver, Changes),
    ?assertEqual([{name(Leaver), left}],
                 lists:usort([Change || {Node, What} = Change <- Changes,
                                        Node =:= name(Leaver)
                                            orelse not lists:member(What, [suspected, cleared])])),
    weft_test_nodes:kill(Leaver),
    until_all_see_all(Others, 60000).

halves_that_were_cut_apart_meet_again(Config) ->
    Nodes = members(Config),
    {Left, Right} = lists:split(length(Nodes) div 2, Nodes),
    Across = [{A, name(B)} || A <- Left, B <- Right],
    [ok = call(A, weft_fault, cut, [B]) || {A, B} <- Across],
    weft_test_nodes:until(fun() -> see_only(Left) andalso see_only(Right) end, 60000),
    [ok = call(A, weft_fault, heal, [B]) || {A, B} <- Across],
    {Us, ok} = timer:tc(fun() -> until_all_see_all(Nodes, 60000) end),
    ct:pal("one cluster again ~b ms after the cut was healed", [Us div 1000]),
    ?assertEqual([[]], lists:usort([call(Node, weft_overlay, failed, []) || Node <- Nodes])).

see_only(Nodes) ->
    Names = lists:sort([name(Node) || Node <- Nodes]),
    lists:all(fun(Node) -> lists:sort(call(Node, weft_overlay, members, [])) =:= Names end, Nodes).

%% --- clusters ---------------------------------------------------------------------------------

%% Those that have not left.
members(Config) ->
    [First | _] = Nodes = ?config(nodes, Config),
    Members = call(First, weft_overlay, members, []),
    [Node || Node <- Nodes, lists:member(name(Node), Members)].

boot(Names, Seed, Config) ->
    Options = #{config => [{topology, {full_mesh, #{seeds => [Seed], detector => swim}}},
                           {faults, true}],
                args => ["-pa", weft_test_nodes:ebin(?MODULE),
                         "-kernel", "prevent_overlapping_partitions", "false"]},
    parallel(fun(Name) -> weft_test_nodes:start(Name, Options, ?config(place, Config)) end, Names).

join(Node) ->
    {ok, _} = call(Node, application, ensure_all_started, [weft]).

%% Members, links and connections.
until_all_see_all(Nodes, TimeoutMs) ->
    Names = lists:sort([name(Node) || Node <- Nodes]),
    weft_test_nodes:until(
      fun() -> lists:all(fun(Node) -> sees(Node, Names) end, Nodes) end, TimeoutMs).

sees(Node, Names) ->
    Others = Names -- [name(Node)],
    lists:sort(call(Node, weft_overlay, members, [])) =:= Names
        andalso [N || {N, _} <- call(Node, weft_overlay, neighbours, [])] =:= Others
        andalso lists:sort(call(Node, erlang, nodes, [])) =:= Others.

all_lack(#{node := Name}, Nodes) ->
    lists:all(fun(Node) -> not lists:member(Name, call(Node, weft_overlay, members, [])) end,
              Nodes).

%% --- on the nodes -----------------------------------------------------------------------------

%% @doc Collects from now on what the detector says of members.
-spec watch() -> ok.
watch() ->
    Pid = spawn(?MODULE, watcher, [[]]),
    true = register(?MODULE, Pid),
    weft_driver:subscribe(weft_topology, Pid).

%% @doc What it has said since the last time, oldest first.
-spec watched() -> [{node(), atom()}].
watched() ->
    ?MODULE ! {changes, self()},
    receive {?MODULE, Changes} -> lists:reverse(Changes) end.

%% @private
-spec watcher([{node(), atom()}]) -> no_return().
watcher(Changes) ->
    receive
        {weft_notice, weft_topology, {member, Node, Change}} -> watcher([{Node, Change} | Changes]);
        {weft_notice, weft_topology, _Other} -> watcher(Changes);
        {changes, From} -> From ! {?MODULE, Changes}, watcher([])
    end.

%% --- parts ------------------------------------------------------------------------------------

parallel(Fun, List) ->
    Self = self(),
    Pids = [spawn_link(fun() ->
                           Self ! {self(), Fun(Element)},
                           receive stop -> ok end
                       end) || Element <- List],
    [receive {Pid, Result} -> Pid ! stop, Result end || Pid <- Pids].

short(#{node := Name}) ->
    [Short, _] = string:split(atom_to_list(Name), "@"),
    list_to_atom(Short).

text(Log) ->
    case file:read_file(Log) of
        {ok, Text} -> Text;
        {error, enoent} -> <<>>
    end.
