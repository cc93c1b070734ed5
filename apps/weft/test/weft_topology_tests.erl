%% SPDX-License-Identifier: Apache-2.0
%% @doc What is a topology, what is not, and what the errors say.
-module(weft_topology_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@host').
-define(B, 'b@host').
-define(C, 'c@host').
-define(D, 'd@host').

each_form_names_its_core_test() ->
    ?assertEqual({ok, weft_full_mesh_core, #{}}, weft_topology:parse(full_mesh)),
    ?assertEqual({ok, weft_full_mesh_core, #{seeds => [?A]}},
                 weft_topology:parse({full_mesh, #{seeds => [?A]}})),
    ?assertEqual({ok, weft_full_mesh_core, #{detector => ticks}},
                 weft_topology:parse({full_mesh, #{detector => ticks}})),
    ?assertEqual({ok, weft_swim_mesh_core, #{detector => swim, seeds => [?A]}},
                 weft_topology:parse({full_mesh, #{detector => swim, seeds => [?A]}})),
    ?assertEqual({ok, weft_static_core, #{links => [{?A, ?B}]}},
                 weft_topology:parse({static, #{links => [{?A, ?B}]}})),
    ?assertEqual({ok, weft_groups_core, #{groups => #{one => [?A, ?B]}}},
                 weft_topology:parse({groups, #{one => [?A, ?B]}})).

good_topologies_are_accepted_test_() ->
    [?_assertEqual(ok, weft_topology:validate(?A, Term))
     || Term <- [full_mesh, {full_mesh, #{seeds => []}}, {full_mesh, #{seeds => [?A, ?B]}},
                 {full_mesh, #{detector => ticks}},
                 {full_mesh, #{detector => swim, seeds => [?B], probe_interval_ms => 2000,
                               lifeguard => [], reconnect_interval_ms => 1000}},
                 {static, #{links => [{?B, ?A}]}},
                 {static, #{links => [{?A, ?B}, {?B, ?C}, {?C, ?A}]}},
                 {client_server, #{role => server, servers => [?A]}},
                 {client_server, #{role => server, servers => [?B]}},
                 {client_server, #{role => client, servers => [?B, ?C], links => 2}},
                 {client_server, #{role => client, servers => discovered}},
                 {groups, #{one => [?A]}},
                 {groups, #{one => [?A, ?B], two => [?B, ?C], "three" => [?C, ?D]}}]].

%% {Configured term, words that the error must contain}.
errors_say_what_is_wrong_where_and_what_to_write_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Term])), fun() -> assert_error(Term, Words) end}
     || {Term, Words} <- full_mesh_errors() ++ static_errors() ++ client_server_errors()
            ++ groups_errors()].

full_mesh_errors() ->
    [{full_mash, ["full_mash", "no topology", "full_mesh", "static", "groups"]},
     {{full_mesh, [?A]}, ["options", "full_mesh", "seeds =>"]},
     {{full_mesh, #{seed => [?A]}}, ["full_mesh", "no option seed", "seeds"]},
     {{full_mesh, #{detector => phi}}, ["detector", "is phi", "ticks or swim"]},
     {{full_mesh, #{detector => swim, seed => [?A]}}, ["no option seed", "probe_interval_ms"]},
     {{full_mesh, #{detector => swim, seeds => [a]}}, ["a is no node name"]},
     {{full_mesh, #{probe_interval_ms => 100}}, ["no option probe_interval_ms", "detector"]},
     {{full_mesh, #{detector => swim, probe_interval_ms => 0}}, ["probe_interval_ms is 0",
                                                                 "from 10 to"]},
     {{full_mesh, #{detector => swim, reconnect_interval_ms => 1}}, ["reconnect_interval_ms is 1",
                                                                     "from 100"]},
     {{full_mesh, #{detector => swim, probe_timeout_ms => 1000}}, ["probe_timeout_ms (1000)",
                                                                   "less than"]},
     {{full_mesh, #{seeds => ?A}}, ["seeds", "a@host", "no list"]},
     {{full_mesh, #{seeds => [a]}}, ["seeds", "a is no node name", "'name@host'"]},
     {{full_mesh, #{seeds => ["a@host"]}}, ["\"a@host\" is no node name"]},
     {{full_mesh, #{seeds => ['@host', 'a@']}}, ["'@host' is no node name"]}].

static_errors() ->
    [{{static, #{}}, ["needs its links", "links =>"]},
     {{static, #{links => [{?A, ?B}], link => 1}}, ["static", "no option link", "links"]},
     {{static, #{links => []}}, ["non-empty list of pairs"]},
     {{static, #{links => [?A]}}, ["a@host", "pair {NodeA, NodeB}"]},
     {{static, #{links => [{?A, ?A}]}}, ["link of a node to itself", "remove"]},
     {{static, #{links => [{?A, b}]}}, ["links of the static", "b is no node name"]},
     {{static, #{links => [{?A, ?B}, {?B, ?A}]}}, ["twice", "remove one"]},
     {{static, #{links => [{?B, ?C}]}}, ["this node, a@host, does not occur", "links", "b@host"]},
     {{static, #{links => [{?A, ?B}, {?C, ?D}]}}, ["no path leads from a@host to c@host",
                                                   "add a link"]}].

client_server_errors() ->
    [{{client_server, client}, ["options", "client_server", "role =>", "servers =>"]},
     {{client_server, #{servers => [?B]}}, ["needs the role", "role => client"]},
     {{client_server, #{role => gateway, servers => [?B]}}, ["role", "is gateway", "client or"]},
     {{client_server, #{role => client}}, ["needs its servers", "servers => ["]},
     {{client_server, #{role => client, servers => []}}, ["servers", "is empty", "discovered"]},
     {{client_server, #{role => client, servers => ?B}}, ["servers", "b@host is no list"]},
     {{client_server, #{role => client, servers => [b]}}, ["servers", "b is no node name"]},
     {{client_server, #{role => client, servers => [?A, ?B]}}, ["this node, a@host",
                                                                "role => server"]},
     {{client_server, #{role => client, servers => [?B], link => 2}}, ["no option link", "links"]},
     {{client_server, #{role => client, servers => [?B], links => 0}}, ["links", "from 1 to 16"]},
     {{client_server, #{role => server, servers => [?A], links => 2}}, ["links", "for clients"]}].

groups_errors() ->
    [{{groups, #{}}, ["groups", "non-empty map"]},
     {{groups, #{one => [], two => [?A]}}, ["group one is empty", "remove the group"]},
     {{groups, #{one => ?A}}, ["group one is a@host", "list of nodes"]},
     {{groups, #{one => [?A, 'b.host']}}, ["group one", "'b.host' is no node name"]},
     {{groups, #{one => [?A, ?B, ?A]}}, ["group one names a@host twice"]},
     {{groups, #{one => [?B, ?C]}}, ["this node, a@host, does not occur", "a group"]},
     {{groups, #{one => [?A, ?B], two => [?C, ?D]}}, ["no path leads from a@host to c@host",
                                                      "2 nodes are cut off"]}].

assert_error(Term, Words) ->
    {error, Text0} = weft_topology:validate(?A, Term),
    Text = lists:flatten(Text0),
    lists:foreach(fun(Word) ->
                      ?assert(string:find(Text, Word) =/= nomatch, Text ++ " lacks " ++ Word)
                  end, Words).

a_topology_is_partial_if_two_members_are_no_neighbours_test_() ->
    [?_assertEqual(IsPartial, is_partial(Term))
     || {Term, IsPartial} <-
            [{full_mesh, false},
             {{client_server, #{role => server, servers => [?A]}}, true},
             {{static, #{links => [{?A, ?B}]}}, false},
             {{static, #{links => [{?A, ?B}, {?C, ?B}]}}, true},
             {{static, #{links => [{?A, ?B}, {?C, ?B}, {?C, ?A}]}}, false},
             {{groups, #{one => [?A, ?B, ?C]}}, false},
             {{groups, #{one => [?A, ?B], two => [?B, ?C]}}, true},
             {{groups, #{one => [?A, ?B], two => [?B, ?C], three => [?A, ?C]}}, false}]].

is_partial(Term) ->
    {ok, Module, Options} = weft_topology:parse(Term),
    Module:partial(?A, Options).

neighbours_of_a_static_node_are_those_it_shares_a_link_with_test() ->
    {_, Effects} = weft_static_core:init(?A, #{links => [{?B, ?A}, {?A, ?C}, {?C, ?D}]}),
    ?assertEqual([?B, ?C], dialled(Effects)),
    ?assertEqual([?A, ?B, ?C, ?D], members(Effects)).

neighbours_of_a_grouped_node_are_the_members_of_its_groups_test() ->
    {_, Effects} = weft_groups_core:init(?B, #{groups => #{one => [?A, ?B], two => [?C, ?B],
                                                           three => [?C, ?D]}}),
    ?assertEqual([?A, ?C], dialled(Effects)),
    ?assertEqual([?A, ?B, ?C, ?D], members(Effects)).

a_static_node_that_leaves_gives_up_its_links_and_dials_no_more_test() ->
    {State0, Effects0} = weft_static_core:init(?A, #{links => [{?A, ?B}]}),
    {State1, []} = weft_static_core:handle({neighbour_up, ?B}, 1, State0),
    {State2, Effects2} = weft_static_core:handle({command, ref, leave}, 2, State1),
    ?assertEqual([{disconnect, ?B}, {reply, ref, ok}], Effects2),
    {State3, []} = weft_static_core:handle({neighbour_down, ?B, closed}, 3, State2),
    [Timer] = [T || {after_ms, _, T} <- Effects0],
    ?assertMatch({_, []}, weft_static_core:handle({timer, Timer}, 4, State3)).

dialled(Effects) ->
    [Node || {after_ms, _, {dial, Node, _}} <- Effects].

members(Effects) ->
    [Node || {view, {member, Node}, configured} <- Effects].
