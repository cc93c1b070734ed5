%% SPDX-License-Identifier: Apache-2.0
-module(weft_local_spec_tests).

-include_lib("eunit/include/eunit.hrl").

new(Input) ->
    {ok, Spec} = weft_local_spec:new(Input),
    Spec.

error_text(Input) ->
    {error, Text} = weft_local_spec:new(Input),
    unicode:characters_to_list(Text).

many(Count) -> ["n" ++ integer_to_list(N) || N <- lists:seq(1, Count)].

nodes_of(Names) -> [weft_local_spec:full(Name) || Name <- Names].

three_nodes_in_full_mesh_are_the_default_test() ->
    ?assertMatch(#{name := "local", topology := {full_mesh, #{seeds := ['n01@127.0.0.1']}},
                   partial := false, carrier := weft}, new(#{})),
    ?assertEqual(nodes_of([n01, n02, n03]), maps:get(nodes, new(#{}))).

shapes_test_() ->
    Links = fun(Shape, Count) ->
                    #{topology := {static, #{links := L}}, partial := Partial} =
                        new(#{topology => Shape, nodes => Count}),
                    {[{weft_local_spec:short(A), weft_local_spec:short(B)} || {A, B} <- L], Partial}
            end,
    [?_assertEqual({[{"n01", "n02"}, {"n02", "n03"}], true}, Links(line, 3)),
     ?_assertEqual({[{"n01", "n02"}, {"n02", "n03"}, {"n03", "n04"}, {"n04", "n01"}], true},
                   Links(ring, 4)),
     ?_assertEqual({[{"n01", "n02"}, {"n01", "n03"}], true}, Links(star, 3)),
     ?_assertEqual({[{"n01", "n02"}], false}, Links(star, 2))].

groups_name_the_nodes_test() ->
    {ok, Groups} = weft_local_spec:groups("a=n01..n03; b=n03,gate"),
    ?assertEqual(#{a => ["n01", "n02", "n03"], b => ["n03", "gate"]}, Groups),
    Spec = new(#{groups => Groups}),
    ?assertEqual(nodes_of([gate, n01, n02, n03]), maps:get(nodes, Spec)),
    ?assertMatch(#{partial := true, topology := {groups, #{a := [_, _, _]}}}, Spec).

ranges_count_on_beyond_their_digits_test() ->
    ?assertEqual({ok, #{a => ["n8", "n9", "n10", "n11"]}}, weft_local_spec:groups("a=n8..n11")),
    ?assertEqual({ok, ["n08", "n09", "n10"]}, weft_local_spec:servers("n08..n10")).

a_setting_is_said_to_be_wrong_once_test() ->
    ?assertEqual("transport is udp, it must be tcp or tls", error_text(#{transport => udp})).

links_name_the_nodes_test() ->
    {ok, Links} = weft_local_spec:links("n1-n2,n2-n3"),
    ?assertEqual(nodes_of([n1, n2, n3]), maps:get(nodes, new(#{links => Links}))).

servers_have_another_role_than_clients_test() ->
    {ok, Names} = weft_local_spec:servers("n01..n02"),
    #{topology := Topology, partial := true} = new(#{servers => Names, nodes => 4}),
    Servers = nodes_of([n01, n02]),
    ?assertEqual([{client_server, #{role => Role, servers => Servers}}
                  || Role <- [server, server, client, client]],
                 [weft_local_spec:topology_of(Node, Topology)
                  || Node <- nodes_of([n01, n02, n03, n04])]),
    ?assertEqual(Topology, maps:get(topology, new(#{topology => client_server, nodes => 4}))),
    ?assertEqual({client_server, #{servers => nodes_of([n01]), links => 1}},
                 maps:get(topology, new(#{topology => {client_server, #{servers => [n01],
                                                                        links => 1}}}))).

servers_must_be_nodes_and_roles_are_not_given_test() ->
    [?assertNotEqual({nomatch, Input}, {string:find(error_text(Input), Words), Input})
     || {Input, Words} <- [{#{servers => [n09]}, "names n09, which is not among the nodes"},
                           {#{topology => client_server, nodes => 2}, "more than 2 nodes"},
                           {#{topology => {client_server, #{role => client, servers => [n01]}}},
                            "has no role"},
                           {#{servers => n01}, "write a list"},
                           {#{servers => [n01], topology => ring}, "exclude each other"}]],
    ?assertMatch({error, _}, weft_local_spec:servers("")).

peers_have_the_first_node_as_seed_test() ->
    ?assertMatch(#{partial := true, topology := {peer_to_peer, #{seeds := ['n01@127.0.0.1']}}},
                 new(#{topology => peer_to_peer, nodes => 5})).

neighbours_test() ->
    #{topology := Groups} = new(#{groups => #{a => [n1, n2], b => [n2, n3]}}),
    ?assertEqual(nodes_of([n1, n3]), weft_local_spec:neighbours('n2@127.0.0.1', Groups)),
    #{topology := Line} = new(#{topology => line, nodes => 3}),
    ?assertEqual(nodes_of([n01, n03]), weft_local_spec:neighbours('n02@127.0.0.1', Line)).

settings_reach_the_nodes_test() ->
    #{settings := Settings} = new(#{lanes => 2, settings => [{resume_timeout_ms, 5000}]}),
    ?assertEqual([2, 5000, true],
                 [proplists:get_value(Key, Settings) || Key <- [lanes, resume_timeout_ms, faults]]).

a_file_is_checked_test() ->
    ?assertEqual({ok, #{nodes => 2, lanes => 3}},
                 weft_local_spec:of_file([{nodes, 2}, {lanes, 3}])),
    {error, Text} = weft_local_spec:of_file([{node, 2}]),
    ?assertMatch("{node,2} is no setting of a cluster" ++ _, unicode:characters_to_list(Text)),
    {error, Twice} = weft_local_spec:of_file([{nodes, 2}, {lanes, 3}, {nodes, 4}]),
    ?assertEqual("nodes is there twice: remove one", unicode:characters_to_list(Twice)).

errors_say_what_to_change_test_() ->
    [{Expected, ?_assertNotEqual(nomatch, string:find(error_text(Input), Expected))}
     || {Expected, Input} <-
            [{"write a number from 1", #{nodes => 0}},
             {"is no topology: there are full_mesh", #{topology => rnig}},
             {"needs groups", #{topology => groups}},
             {"needs links", #{topology => static}},
             {"exclude each other", #{topology => ring, groups => #{a => [n1]}}},
             {"ring needs more than 2 nodes", #{topology => ring, nodes => 2}},
             {"no path leads from", #{groups => #{a => [n1, n2], b => [n3, n4]}}},
             {"group b is empty", #{groups => #{a => [n1, n2], b => []}}},
             {"n9, which is not among the nodes", #{nodes => [n1], links => [{n1, n9}]}},
             {"does not occur in the topology", #{nodes => [n1, n2, n3], links => [{n1, n2}]}},
             {"did you mean lanes?", #{settings => [{lane, 2}]}},
             {"lanes is 0", #{lanes => 0}},
             {"is no node of a local cluster", #{nodes => ['n1@elsewhere']}},
             {"a cluster without nodes", #{groups => #{a => []}}},
             {"there may be 500", #{groups => #{a => many(501)}}},
             {"between groups stands a semicolon",
              #{groups => #{left => ["n1", "right=n3"]}}},
             {"is no node of a local cluster", #{nodes => ["n 1"]}},
             {"the port of epmd is 80000: write a number from 1 to 65535",
              #{epmd_port => 80000}},
             {"the port of epmd is 0", #{epmd_port => 0}},
             {"letters, digits", #{name => "../up"}}]].

what_a_file_may_say_instead_is_an_error_too_test_() ->
    [{Expected, ?_assertNotEqual(nomatch, string:find(error_text(Input), Expected))}
     || {Expected, Input} <-
            [{"settings is lanes: write a list", #{settings => lanes}},
             {"lanes is no setting: write {Key, Value}", #{settings => [lanes]}},
             {"lanes is given twice", #{lanes => 2, settings => [{lanes, 3}]}},
             {"topology of a cluster is no setting", #{settings => [{topology, full_mesh}]}},
             {"paths is ebin: write a list", #{paths => ebin}},
             {"each between quotes", #{paths => "ebin"}},
             {"n1 is twice among the nodes", #{nodes => [n1, n2, n1]}},
             {"64 at most", #{nodes => [lists:duplicate(300, $a)]}},
             {"the name [up] must be", #{name => [up]}},
             {"carrier is tcp: write weft or stock", #{carrier => tcp}},
             {"group a is [n1|n2]: write a list", #{groups => #{a => [n1 | n2]}}},
             {"groups is [a]: write a map", #{topology => {groups, [a]}}},
             {"servers is [n1|n2]: write a list", #{servers => [n1 | n2]}},
             {"links is [{n1,n2}|n3]: write a list", #{links => [{n1, n2} | n3]}},
             %% n3..n1 on the command line.
             {"is no node of a local cluster", #{groups => groups("a=n3..n1")}}]].

words_that_make_no_sense_test() ->
    ?assertMatch({error, _}, weft_local_spec:groups("n01,n02")),
    ?assertMatch({error, _}, weft_local_spec:groups("")),
    ?assertMatch({error, _}, weft_local_spec:groups("a=n1;b=n1;a=n2")),
    ?assertMatch({error, _}, weft_local_spec:groups("=n1")),
    ?assertMatch({error, _}, weft_local_spec:groups(lists:duplicate(300, $a) ++ "=n1")),
    ?assertMatch({error, _}, weft_local_spec:links("n01")).

groups(Words) ->
    {ok, Groups} = weft_local_spec:groups(Words),
    Groups.
