%% SPDX-License-Identifier: Apache-2.0
%% @doc Distances in the sample network of the original, and what is wrong with a network.
-module(dist_tests).

-include_lib("eunit/include/eunit.hrl").

sample_test_() ->
    {setup, fun() -> with_file(sample(), fun dist:init/1) end, fun(_) -> ok end,
     [?_assertEqual(0, dist:distance('Anne@ash', 'Anne@ash')),
      ?_assertEqual(0.125, dist:distance('Anne@ash', 'Brian@ash')),
      ?_assertEqual(0.25, dist:distance('Anne@ash', 'Derek@bay')),
      ?_assertEqual(0.5, dist:distance('Anne@ash', 'Henrietta@cypress')),
      ?_assertEqual(1.0, dist:distance('Anne@ash', 'Aud@Thor')),
      ?_assertEqual(0.125, dist:min_dist()),
      ?_assertEqual(1.0, dist:max_dist()),
      ?_assertEqual(8, length(dist:nodenames())),
      ?_assertEqual(['Anne@ash', 'Brian@ash'],
                    dist:choose_nodes('Anne@ash', {dist, lt, 0.25})),
      ?_assertEqual(['Derek@bay'], dist:choose_nodes('Anne@ash', [{dist, gt, 0}, {dist, ge, 0.25},
                                                                  {dist, le, 0.4}])),
      ?_assertEqual(['Derek@bay'], dist:choose_nodes('Anne@ash', ['Aud@Thor', 'Derek@bay'],
                                                     {dist, eq, 0.25})),
      ?_assertEqual(['Aud@Thor'], dist:choose_nodes('Anne@ash', ['Aud@Thor', 'Derek@bay'],
                                                    {dist, ne, 0.25})),
      ?_assertEqual('Brian@ash', dist:choose_node('Anne@ash', {dist, eq, 0.125})),
      ?_assertEqual(none, dist:choose_node('Anne@ash', {dist, gt, 1})),
      ?_assertError({unknown_node, 'Nobody@ash'}, dist:distance('Anne@ash', 'Nobody@ash')),
      ?_assertError({bad_predicate, {dist, near, 1}},
                    dist:choose_nodes('Anne@ash', {dist, near, 1})),
      fun networks_of_one_name_are_different/0,
      fun it_is_drawn/0]}.

it_is_drawn() ->
    with_file("", fun(File) ->
                      ok = with_file(sample(), fun dist:init/1),
                      ok = dist:render(File),
                      {ok, Text} = file:read_file(File),
                      ?assertEqual(8, count(Text, "shape=box")),
                      %% A tree: one edge less than vertices.
                      ?assertEqual(count(Text, "label="), count(Text, " -- ") + 1)
                  end).

count(Text, Words) -> length(string:split(Text, Words, all)) - 1.

networks_of_one_name_are_different() ->
    ok = with_file("{network, [{network, lan, [{node, 'a@h'}]}, {network, lan, [{node, 'b@h'}]}]}.",
                   fun dist:init/1),
    ?assertEqual(1.0, dist:distance('a@h', 'b@h')),
    ok = with_file(sample(), fun dist:init/1).

what_is_no_network_is_an_error_test_() ->
    [?_assertError(Reason, with_file(Text, fun dist:init/1))
     || {Text, Reason} <- [{"{net, []}.", {bad_network, {net, []}}},
                           {"{network, [{node, 'a@h'}, 'b@h']}.", {bad_network, 'b@h'}},
                           {"{network, [{node, 'a@h'}, {node, 'a@h'}]}.",
                            {node_occurs_twice, 'a@h'}},
                           {"", {network_file_error, not_one_term}}]]
        ++ [?_assertError({network_file_error, enoent}, dist:init("no/such/file"))].

sample() ->
    "{network, cloud, ["
    "  {network, cluster_a, ["
    "    {network, lan_a1, ["
    "      {network, machine_ash, [{node, 'Anne@ash'}, {node, 'Brian@ash'}]},"
    "      {network, machine_bay, [{node, 'Derek@bay'}]}]},"
    "    {network, lan_a2, ["
    "      {network, machine_cypress, [{node, 'Henrietta@cypress'}]}]}]},"
    "  {network, cluster_b, ["
    "    {network, machine_thor, [{node, 'Aud@Thor'}]},"
    "    {network, machine_zeus, [{node, 'Achilles@Zeus'}]},"
    "    {network, [{network, [{node, 'Fintan@Lug'}]}]}]},"
    "  {network, cluster_c, [{network, c1, [{network, c2, [{network, c3, [{node, 'deep@C'}]}]}]}]}"
    "]}.".

with_file(Text, Fun) ->
    File = filename:join(filename:basedir(user_cache, "dist_tests"),
                         integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text),
    try Fun(File)
    after
        _ = file:delete(File),
        file:del_dir(filename:dirname(File))
    end.
