%% SPDX-License-Identifier: Apache-2.0
%% What the doctor finds in the configuration of nodes that do not run.
-module(weft_doctor_configured_tests).

-include_lib("eunit/include/eunit.hrl").

-define(NODE, 'a@127.0.0.1').
-define(FLAGS, [{connect_all, false}, {prevent_overlapping_partitions, false}]).
-define(PARTIAL, {topology, {groups, #{g => [?NODE, 'b@127.0.0.1'],
                                       h => ['b@127.0.0.1', 'c@127.0.0.1']}}}).

nothing_is_found_in_a_good_one_test() ->
    ?assertEqual([], found(node([{weft, [?PARTIAL]}, {kernel, ?FLAGS}], ["-proto_dist", "weft"]))),
    ?assertEqual([], found(node([], []))).

what_keeps_a_node_from_its_start_is_found_test() ->
    ?assertEqual([{settings, error}], found(node([{weft, [{lane, 2}]}], []))),
    ?assertEqual([{settings, error}], found(node([{weft, [{topology, {groups, #{}}}]}], []))),
    ?assertEqual([{settings, error}], found(node([{weft, [{tuning, no_map}]}], []))),
    %% Its own module is on the nodes.
    ?assertEqual([{incomplete, note}],
                 found(node([{weft, [{topology, {no_such_module, #{}}}]}], []))).

%% The flags are in sys.config, or on the command line, which counts more.
flags_at_odds_with_the_topology_are_found_test() ->
    ?assertEqual([{kernel_flags, error}], found(node([{weft, [?PARTIAL]}], []))),
    ?assertEqual([{kernel_flags, error}],
                 found(node([{weft, [?PARTIAL]}, {kernel, tl(?FLAGS)}], []))),
    Words = ["-proto_dist", "weft", "-kernel", "prevent_overlapping_partitions", "false",
             "-connect_all", "false"],
    ?assertEqual([], found(node([{weft, [?PARTIAL]}], Words))),
    ?assertEqual([{kernel_flags, error}],
                 found(node([{weft, [?PARTIAL]}, {kernel, ?FLAGS}],
                            ["-proto_dist", "weft", "-kernel", "connect_all", "true",
                             "-kernel", "prevent_overlapping_partitions", "true"]))),
    %% It may be on the command line that is not known here; without -proto_dist it is not.
    ?assertEqual([{start, note}],
                 found(node([{weft, [?PARTIAL]}, {kernel, ?FLAGS}], ["-sname", "a"]))).

cookies_that_are_weak_or_shown_are_found_test() ->
    Long = "aaaaabbbbbcccccddddd",
    ?assertEqual([{cookie, error}, {cookie_told, warning}],
                 found(node([], ["-setcookie", "secret"]))),
    ?assertEqual([{cookie, warning}, {cookie_told, warning}],
                 found(node([], ["-setcookie", "aQ9"]))),
    ?assertEqual([{cookie_told, warning}], found(node([], ["-setcookie", Long]))),
    File = filename:join("/tmp", "weft_doctor_configured-" ++ os:getpid()),
    ok = file:write_file(File, [Long, $\n]),
    ok = file:change_mode(File, 8#640),
    ?assertEqual([{cookie_file, error}], found((node([], []))#{cookie => File})),
    ok = file:change_mode(File, 8#400),
    ?assertEqual([], found((node([], []))#{cookie => File})),
    ok = file:delete(File).

%% The text has nothing of it.
a_cookie_is_not_in_the_report_test() ->
    #{findings := Findings} = weft_doctor:configured([node([], ["-setcookie", "aQ9"])]),
    ?assertEqual(nomatch, re:run(io_lib:format("~p", [Findings]), "aQ9")).

hosts_without_an_address_are_found_test() ->
    Other = (node([], []))#{members := [?NODE, 'b@no-such-host.invalid']},
    ?assertEqual([{names, error}], found(Other)).

%% Two nodes share a port, or three a range of two.
too_few_ports_are_found_test() ->
    Fixed = [{weft, [{tuning, #{ports => #{"a" => 4370, "b" => 4370}}}]}],
    Two = [(node(Fixed, []))#{node := Node, is_here := false}
           || Node <- ['a@127.0.0.1', 'b@127.0.0.1']],
    ?assertEqual([{ports, error}], found(Two)),
    Range = [{kernel, [{inet_dist_listen_min, 4370}, {inet_dist_listen_max, 4371}]}],
    Three = [(node(Range, []))#{node := Node, is_here := false}
             || Node <- ['a@127.0.0.1', 'b@127.0.0.1', 'c@127.0.0.1']],
    ?assertEqual([{ports, error}], found(Three)),
    ?assertEqual([], found(tl(Three))).

a_port_that_is_in_use_is_found_test() ->
    {ok, Socket} = gen_tcp:listen(0, []),
    {ok, Port} = inet:port(Socket),
    Config = [{kernel, [{inet_dist_listen_min, Port}]}],
    ?assertEqual([{port_use, warning}], found(node(Config, []))),
    ?assertEqual([], found((node(Config, []))#{is_here := false})),
    ok = gen_tcp:close(Socket),
    ?assertEqual([], found(node(Config, []))).

%% A full mesh of 60 nodes, with more lanes than there may be sockets.
what_a_full_mesh_needs_is_found_test() ->
    Nodes = [list_to_atom(lists:concat([n, N, "@127.0.0.1"])) || N <- lists:seq(1, 60)],
    Mesh = (node([{weft, [{topology, full_mesh}, {lanes, 8}]}],
                 ["-proto_dist", "weft", "+Q", "400"]))#{node := hd(Nodes), members := Nodes},
    ?assertEqual([{limits, error}, {full_mesh, note}], found(Mesh)),
    ?assertEqual([{full_mesh, note}], found(Mesh#{words := ["-proto_dist", "weft"],
                                                  is_here := false})).

certificates_that_are_not_there_are_found_test() ->
    Config = [{weft, [{transport, tls}, {tls_options, [{certfile, "/none/x.pem"}]}]}],
    ?assertEqual([{certificates, error}], found(node(Config, []))),
    %% Those of another machine are there.
    ?assertEqual([], found((node(Config, []))#{is_here := false})).

nodes_that_are_configured_differently_are_found_test() ->
    A = (node([{kernel, [{net_ticktime, 30}]}], []))#{node := 'a@127.0.0.1'},
    B = (node([{weft, [{cluster_name, "x"}]}], []))#{node := 'b@127.0.0.1'},
    ?assertEqual([{configuration, warning}, {ticktime, warning}], found([A, B])).

node(Config, Words) ->
    #{node => ?NODE, config => Config, words => Words, members => [?NODE], is_here => true}.

found(#{} = Node) -> found([Node]);
found(Nodes) ->
    #{findings := Findings} = weft_doctor:configured(Nodes),
    [{Check, Severity} || #{check := Check, severity := Severity} <- Findings].
