%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes that find each other by discovery, and what a node does when names, addresses and
%% answers change. The module is a source as well, whose process does not start.
-module(weft_discovery_SUITE).
-behaviour(weft_discovery).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([nodes_find_each_other_by_beacons/1, epmd_names_the_nodes_of_a_host/1,
         an_empty_file_evicts_nobody_and_a_seed_that_is_down_is_told/1,
         a_node_restarted_on_a_new_address_replaces_the_old_one/1,
         functions_for_libcluster/1, a_change_of_the_topology_changes_the_sources/1,
         a_wrong_source_stops_the_application_with_a_text/1]).
%% Run on the nodes.
-export([move_host/3]).
-export([discover/1, start_link/1]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [nodes_find_each_other_by_beacons, epmd_names_the_nodes_of_a_host,
     an_empty_file_evicts_nobody_and_a_seed_that_is_down_is_told,
     a_node_restarted_on_a_new_address_replaces_the_old_one,
     functions_for_libcluster, a_change_of_the_topology_changes_the_sources,
     a_wrong_source_stops_the_application_with_a_text].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% The third has another cookie: it is neither taken for a node of the cluster nor dialled.
nodes_find_each_other_by_beacons(Config) ->
    Port = weft_test_nodes:free_port(),
    Gossip = #{address => {127, 255, 255, 255}, port => Port, interval_ms => 100},
    Env = [{discovery, [{gossip, Gossip}]}],
    [A, B] = [start(Name, full_mesh, Env, #{}, Config) || Name <- [a, b]],
    C = start(c, full_mesh, Env, #{cookie => "another"}, Config),
    weft_test_nodes:until(fun() -> nodes_of(A) =:= [name(B)] andalso nodes_of(B) =:= [name(A)] end),
    weft_test_nodes:until(fun() -> holds(C, "another cookie") end),
    ?assertEqual([], call(C, weft_discovery_poller, found, [])),
    ?assertEqual([], nodes_of(C)).

epmd_names_the_nodes_of_a_host(Config) ->
    {ok, Host} = inet:gethostname(),
    Options = #{hosts => [Host, "host.invalid"], prefix => "app"},
    Env = [{discovery, [{epmd, Options}]}, {discovery_interval_ms, 200}],
    Other = start(tool, full_mesh, [], #{}, Config),
    [A, B] = [start(Name, full_mesh, Env, #{}, Config) || Name <- [app1, app2]],
    weft_test_nodes:until(fun() -> nodes_of(A) =:= [name(B)] end),
    ?assertEqual([], nodes_of(Other)),
    ?assertEqual({error, {no_answer, ["host.invalid"]}},
                 call(A, weft_discovery_epmd, discover,
                      [#{hosts => ["host.invalid"], prefix => "", timeout_ms => 5000}])).

an_empty_file_evicts_nobody_and_a_seed_that_is_down_is_told(Config) ->
    Path = filename:join(?config(priv_dir, Config), "nodes"),
    ok = file:write_file(Path, atom_to_list(node_name(a))),
    Env = [{discovery, [{file, #{path => Path}}]}, {discovery_interval_ms, 100}],
    [A, B] = [start(Name, full_mesh, Env, #{}, Config) || Name <- [a, b]],
    weft_test_nodes:until(fun() -> nodes_of(B) =:= [name(A)] end),
    ok = file:write_file(Path, "# nobody\n"),
    weft_test_nodes:until(fun() -> holds(B, "nobody_found") end),
    ok = file:write_file(Path, "nobody@host.invalid"),
    weft_test_nodes:until(fun() -> call(B, weft_discovery_poller, found, [])
                                       =:= ['nobody@host.invalid'] end),
    weft_test_nodes:until(fun() -> holds(B, "unreachable_seeds") end),
    ?assertEqual(1, occurrences(B, "unreachable_seeds")),
    ?assertEqual([name(A)], nodes_of(B)),
    ?assertEqual([name(A), name(B)], call(B, weft, members, [])).

%% The host of b gets another address; the old b is stopped in its tracks, as if its machine were
%% cut off. The new b is known by its name, not by where it is.
a_node_restarted_on_a_new_address_replaces_the_old_one(Config) ->
    Port = weft_test_nodes:free_port(),
    At = fun(Address, Host) ->
                 #{long => Host,
                   args => ["-epmd_module", "weft_epmd", "-start_epmd", "false",
                            "-kernel", "inet_dist_use_interface", term(Address),
                            "-kernel", "inetrc", term(inetrc(Config))]}
         end,
    Env = [{ports, #{default => Port}}, {resume_timeout_ms, 60000}, {link_timeout_ms, 60000}],
    A = start(a, full_mesh, Env, At({127, 0, 0, 1}, "fixed.test"), Config),
    Seeds = {full_mesh, #{seeds => [name(A)]}},
    OldB = start(b, Seeds, Env, At({127, 0, 0, 2}, "moving.test"), Config),
    weft_test_nodes:until(fun() -> nodes_of(A) =:= [name(OldB)] end),
    OldPid = call(OldB, erlang, whereis, [init]),
    ok = weft_test_nodes:pause(OldB),
    ok = call(A, ?MODULE, move_host, ["moving.test", {127, 0, 0, 2}, {127, 0, 0, 3}]),
    NewB = start(b, Seeds, Env, At({127, 0, 0, 3}, "moving.test"), Config),
    weft_test_nodes:until(fun() -> pid_of_init(A, name(NewB)) =:= pid_of_init(NewB) end),
    ?assertNotEqual(OldPid, pid_of_init(NewB)),
    ?assertEqual([name(A), name(NewB)], lists:sort(call(A, weft, members, []))),
    %% A dials the new address, too.
    ok = call(A, weft_links, break, [name(NewB)]),
    weft_test_nodes:until(fun() -> pid_of_init(A, name(NewB)) =:= pid_of_init(NewB) end),
    %% The old one wakes up, and is told why nobody wants it.
    ok = weft_test_nodes:continue(OldB),
    weft_test_nodes:until(fun() -> holds(A, "stop the older one") end),
    weft_test_nodes:until(fun() -> lists:member(superseded, last_errors(OldB)) end),
    ?assertEqual(pid_of_init(NewB),
                 call(A, erpc, call, [name(NewB), erlang, whereis, [init], 20000])).

%% C calls B, and B is called; so only C has named one.
functions_for_libcluster(Config) ->
    [A, B, C] = [start(Name, full_mesh, [], #{}, Config) || Name <- [a, b, c]],
    ?assertEqual([], call(A, weft_discovery, list, [])),
    ?assertEqual([true], connected_by_libcluster(A, [name(B)])),
    ?assertEqual([true], connected_by_libcluster(C, [name(B)])),
    ?assertEqual([], connected_by_libcluster(A, [name(B)])),
    ?assertEqual([false], connected_by_libcluster(A, ['nobody@host.invalid'])),
    until_members([A, B, C]),
    %% A node that lives stays; one that does not is forgotten.
    ?assertEqual([true], disconnected_by_libcluster(A, [name(B)])),
    ?assertEqual([true], disconnected_by_libcluster(A, ['nobody@host.invalid'])),
    weft_test_nodes:until(fun() -> not call(A, weft_links, wanted, ['nobody@host.invalid']) end),
    ?assertEqual([], disconnected_by_libcluster(A, ['nobody@host.invalid'])),
    ?assert(lists:member(name(B), nodes_of(A))),
    weft_test_nodes:kill(C),
    weft_test_nodes:until(fun() -> not lists:member(name(C), nodes_of(B)) end),
    weft_test_nodes:until(fun() -> disconnected_by_libcluster(B, [name(C)]) =:= [true] end),
    until_members([A, B]),
    weft_test_nodes:kill(B),
    weft_test_nodes:until(fun() -> nodes_of(A) =:= [] end),
    weft_test_nodes:until(fun() -> disconnected_by_libcluster(A, [name(B)]) =:= [true] end),
    until_members([A]).

%% What `connect_nodes' and `disconnect_nodes' of its `Cluster.Strategy' do.
connected_by_libcluster(Node, Names) ->
    [call(Node, weft_discovery, connect, [Name])
     || Name <- Names -- call(Node, weft_discovery, list, [])].

disconnected_by_libcluster(Node, Names) ->
    Listed = call(Node, weft_discovery, list, []),
    [call(Node, weft_discovery, disconnect, [Name]) || Name <- Names, lists:member(Name, Listed)].

%% Those of the start would be asked for ever.
a_change_of_the_topology_changes_the_sources(Config) ->
    [A, B] = [start(Name, full_mesh, [], #{}, Config) || Name <- [a, b]],
    Sources = fun(List) -> ok = call(A, application, set_env, [weft, discovery, List]) end,
    ok = call(A, weft_discovery_poller, add, ['nobody@host.invalid']),
    Sources([{static, #{nodes => [name(B)]}}]),
    ok = call(A, weft, topology, [full_mesh]),
    weft_test_nodes:until(fun() -> call(A, weft_discovery_poller, found, [])
                                       =:= lists:sort([name(B), 'nobody@host.invalid']) end),
    until_members([A, B]),
    %% A source that does not start changes nothing.
    Sources([{?MODULE, #{}}]),
    {error, Text} = call(A, weft, topology, [{full_mesh, #{seeds => []}}]),
    ?assertNotEqual(nomatch, string:find(Text, "does not start")),
    ?assertEqual(full_mesh, call(A, weft, topology, [])),
    weft_test_nodes:until(fun() -> call(A, weft_discovery_poller, found, [])
                                       =:= lists:sort([name(B), 'nobody@host.invalid']) end).

a_wrong_source_stops_the_application_with_a_text(Config) ->
    Static = {static, #{links => [{node_name(x), node_name(y)}]}},
    Partial = ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"],
    Node = weft_test_nodes:start(x, #{args => Partial}, ?config(place, Config)),
    [begin
         [ok = call(Node, application, set_env, [weft, Key, Value])
          || {Key, Value} <- [{topology, undefined}, {discovery, []} | Env]],
         {error, {weft, Reason}} = call(Node, application, ensure_all_started, [weft]),
         Text = lists:flatten(io_lib:format("~0tp", [Reason])),
         ?assertNotEqual({nomatch, Env, Text}, {string:find(Text, Words), Env, Text})
     end || {Env, Words} <-
                [{[{topology, full_mesh}, {discovery, [{dns, #{}}]}], "dns needs name"},
                 {[{topology, Static}, {discovery, [{gossip, #{}}]}], "find their members"},
                 {[{discovery, [{gossip, #{}}]}], "discovery finds the nodes of a topology"},
                 {[{topology, {client_server, #{role => client, servers => discovered}}}],
                  "servers of topology client_server are to be discovered, but no source is"},
                 {[{topology, {peer_to_peer, #{seeds => discovered}}}],
                  "seeds of the topology are to be discovered, but no source is configured"}]].

%% --- on the nodes -----------------------------------------------------------------------------

%% @private
discover(_Options) -> {ok, []}.

%% @private
start_link(_Options) -> {error, it_cannot}.

%% @private
move_host(Host, Old, New) ->
    ok = inet_db:del_host(Old),
    ok = inet_db:add_host(New, [Host]),
    {ok, New} = inet:getaddr(Host, inet),
    ok.

%% --- helpers ----------------------------------------------------------------------------------

start(Name, Topology, Env, Options, Config) ->
    Node = weft_test_nodes:start(Name, Options#{config => [{topology, Topology} | Env]},
                                 ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

%% Names are looked up in this file only, and in what inet_db is told later.
inetrc(Config) ->
    Path = filename:join(?config(priv_dir, Config), "inetrc"),
    ok = file:write_file(Path, ["{lookup, [file]}.\n{host, {127, 0, 0, 1}, [\"fixed.test\"]}.\n"
                                "{host, {127, 0, 0, 2}, [\"moving.test\"]}.\n"]),
    Path.

term(Term) ->
    lists:flatten(io_lib:format("~0p", [Term])).

nodes_of(Node) -> lists:sort(call(Node, erlang, nodes, [])).

until_members(Nodes) ->
    Names = lists:sort([name(Node) || Node <- Nodes]),
    [weft_test_nodes:until(fun() -> members(Node) =:= Names end) || Node <- Nodes].

members(Node) -> lists:sort(call(Node, weft, members, [])).

pid_of_init(Node) -> call(Node, erlang, whereis, [init]).

%% As seen by another node; the same pid only if both speak of the same incarnation of the node.
pid_of_init(Node, Peer) ->
    try
        call(Node, erpc, call, [Peer, erlang, whereis, [init], 1000])
    catch
        _:_ -> unreachable
    end.

last_errors(Node) ->
    [Reason || #{last_error := Reason} <- call(Node, weft_links, info, [])].

holds(Node, Words) -> occurrences(Node, Words) > 0.

occurrences(#{log := Log}, Words) ->
    case file:read_file(Log) of
        {ok, Text} -> length(binary:matches(Text, list_to_binary(Words)));
        {error, enoent} -> 0
    end.
