%% SPDX-License-Identifier: Apache-2.0
%% @doc Topologies that are not part of weft, on real nodes: refused at boot, run, changed to while
%% they run, and failing again and again under traffic.
-module(weft_own_topology_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_bad_one_stops_the_application_with_a_text/1, links_and_sessions_outlive_its_failures/1,
         a_running_cluster_changes_to_it_and_away/1]).

-define(BAD, weft_own_topology_core_tests).
-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [a_bad_one_stops_the_application_with_a_text, links_and_sessions_outlive_its_failures,
     a_running_cluster_changes_to_it_and_away].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

a_bad_one_stops_the_application_with_a_text(Config) ->
    Node = start(bad1, {no_such_ring, #{}}, Config),
    [begin
         ok = call(Node, application, set_env, [weft, topology, Topology]),
         {error, {weft, Reason}} = call(Node, application, ensure_all_started, [weft]),
         Text = lists:flatten(io_lib:format("~0tp", [Reason])),
         ?assertNotEqual({nomatch, Word, Text}, {string:find(Text, Word), Word, Text})
     end || {Topology, Word} <- [{{no_such_ring, #{}}, "no module no_such_ring"},
                                 {{lists, #{}}, "has to export"},
                                 {{?BAD, #{init => {crash, oops}}}, "oops"},
                                 {{?BAD, #{validate => {error, "more"}}}, "more"}]],
    ok = call(Node, application, set_env, [weft, topology, {?BAD, #{}}]),
    {ok, _} = call(Node, application, ensure_all_started, [weft]).

%% first - middle - last: the core of the middle one fails, and that of the first one.
links_and_sessions_outlive_its_failures(Config) ->
    [A, B, C] = Names = [node_name(N) || N <- [own1, own2, own3]],
    Nodes = [First, Middle, Last] =
        [start(Name, {?BAD, #{wants => Wants}}, Config)
         || {Name, Wants} <- lists:zip([own1, own2, own3], [[B], [A, C], [B]])],
    [{ok, _} = call(Node, application, ensure_all_started, [weft]) || Node <- Nodes],
    weft_test_nodes:until(fun() -> call(First, net_adm, ping, [C]) =:= pong end),
    ok = call(Last, weft_resume_traffic, expect, []),
    ok = call(First, weft_resume_traffic, expect, []),
    ok = call(First, weft_resume_traffic, watch, [C]),
    ok = call(First, weft_resume_traffic, send, [C, #{rate => 500, bytes_max => 2000, seed => 1}]),
    Before = [[call(Node, erlang, whereis, [Name]) || Name <- [weft_topology, weft_sup]]
              || Node <- Nodes],
    [[ok = call(Node, weft_driver, notice, [weft_topology, {crash, oops}])
      || _ <- lists:seq(1, 20)] || Node <- [Middle, First]],
    [weft_test_nodes:until(fun() -> warnings(Node) >= 1 end) || Node <- [Middle, First]],
    %% The link is kept, and dialled again, though nobody decides now.
    ok = call(Middle, weft_links, break, [C]),
    weft_test_nodes:until(fun() -> [A, C] =:= up(Middle) end),
    %% It has begun anew, and is a core that fails again.
    weft_test_nodes:until(
      fun() ->
              ok = call(Middle, weft_driver, notice, [weft_topology, {crash, again}]),
              warnings(Middle) >= 2
      end),
    ?assertEqual(Before, [[call(Node, erlang, whereis, [Name]) || Name <- [weft_topology, weft_sup]]
                          || Node <- Nodes]),
    Sent = call(First, weft_resume_traffic, finish, []),
    weft_test_nodes:until(
      fun() -> maps:get(received, call(Last, weft_resume_traffic, account, [])) =:= Sent end),
    ?assertMatch(#{wrong := []}, call(Last, weft_resume_traffic, account, [])),
    ?assertMatch(#{signals := []}, call(First, weft_resume_traffic, account, [])),
    %% One of twenty; another one if they took longer than its pause, which doubles: 1, 3, 7, 15 s.
    ?assert(warnings(First) < 5),
    ?assertEqual(Names, lists:sort([name(Node) || Node <- Nodes])).

a_running_cluster_changes_to_it_and_away(Config) ->
    Names = [ring1, ring2, ring3, ring4],
    All = [node_name(Name) || Name <- Names],
    Mesh = {full_mesh, #{seeds => [hd(All)]}},
    Ring = {weft_chord_ring, #{nodes => All, distances => [1]}},
    Nodes = [First | _] = [start(Name, Mesh, Config) || Name <- Names],
    [{ok, _} = call(Node, application, ensure_all_started, [weft]) || Node <- Nodes],
    weft_test_nodes:until(fun() -> length(up(First)) =:= 3 end),
    {error, Text} = call(First, weft, topology, [{weft_chord_ring, #{nodes => All}}]),
    ?assertNotEqual(nomatch, string:find(Text, "distances")),
    ?assertEqual(Mesh, call(First, weft, topology, [])),
    [ok = call(Node, weft, topology, [Ring]) || Node <- Nodes],
    weft_test_nodes:until(
      fun() -> up(First) =:= lists:sort([lists:nth(N, All) || N <- [2, 4]]) end),
    ?assertEqual(pong, call(First, net_adm, ping, [lists:nth(3, All)])),
    [ok = call(Node, weft, topology, [Mesh]) || Node <- Nodes],
    weft_test_nodes:until(fun() -> length(up(First)) =:= 3 end).

%% --- helpers ----------------------------------------------------------------------------------

start(Name, Topology, Config) ->
    Dirs = lists:append([["-pa", weft_test_nodes:ebin(Module)] || Module <- [weft_chord_ring]]),
    weft_test_nodes:start(Name, #{config => [{topology, Topology}, {keepalive_ms, 200}],
                                  args => ?PARTIAL ++ Dirs}, ?config(place, Config)).

up(Node) ->
    lists:sort([Peer || #{node := Peer, state := up} <- call(Node, weft_links, info, [])]).

warnings(#{log := Log}) ->
    case file:read_file(Log) of
        {ok, Text} -> length(binary:matches(Text, <<"topology_failed">>));
        {error, enoent} -> 0
    end.
