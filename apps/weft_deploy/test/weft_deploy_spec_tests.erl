%% SPDX-License-Identifier: Apache-2.0
%% What a deployment file may say, and what is said about a wrong one.
-module(weft_deploy_spec_tests).

-include_lib("eunit/include/eunit.hrl").

small() -> [{name, shop}, {family, web, #{}}].

the_smallest_file_is_one_node_here_test() ->
    {ok, Spec} = weft_deploy_spec:new(small()),
    ?assertMatch(#{name := "shop", provider := local, topology := full_mesh,
                   hosts := [#{host := "127.0.0.1", cores := observed}],
                   families := [#{name := web, count := 1, hosts := all}]}, Spec).

groups_make_the_topology_groups_test() ->
    {ok, #{topology := Topology}} =
        weft_deploy_spec:new([{name, shop}, {family, web, #{groups => [a]}}]),
    ?assertEqual(groups, Topology).

each_error_names_what_is_wrong_and_what_could_stand_there_test_() ->
    Wrong =
        [{[{family, web, #{}}], "name is missing"},
         {[{name, shop}], "no family"},
         {[{nam, shop} | small()], "nam is no setting"},
         {[web | small()], "web: write {Key, Value}"},
         {[{name, "a b"}, {family, web, #{}}], "letters, digits"},
         {[{name, "a\n"}, {family, web, #{}}], "letters, digits"},
         {[{parallel, 0} | small()], "from 1 to 100"},
         {[{stop_s, 0} | small()], "stop_s is 0: write seconds, from 1"},
         {[{name, other} | small()], "name is there twice"},
         {[{provider, cloud} | small()], "provider is cloud"},
         {[{provider, {ssh, #{keys => "k", password => "p"}}} | small()], "provider is"},
         {[{provider, {ssh, #{keys => "keys"}}} | small()], "provider ssh needs hosts"},
         {[{provider, {ssh, #{keys => "keys"}}}, {hosts, ["h1"]} | small()], "ssh needs dir"},
         {[{hosts, ["h1", "h2"]} | small()], "local has one host"},
         {[{hosts, ["h1; reboot"]} | small()], "the name or the IPv4 address"},
         {[{hosts, [{"h1", #{cores => 0}}]} | small()], "#{cores => N}"},
         {[{dir, "relative"} | small()], "an absolute directory"},
         {[{dir, "/"} | small()], "an absolute directory"},
         {[{family, web, #{}} | small()], "family web is there twice"},
         {[{family, web1, #{}} | small()], "families web and web1"},
         {[{family, db, #{count => -1}} | small()], "count is -1"},
         {[{family, db, #{cuont => 1}} | small()], "cuont is no setting of a family"},
         {[{family, db, #{hosts => ["h9"]}} | small()], "host h9 is not among"},
         {[{family, db, #{release => "r.tar.gz", paths => ["p"]}} | small()], "leave one"},
         {[{family, db, #{flags => ["-setcookie", "x"]}} | small()], "flags is"},
         {[{family, db, #{flags => ["-name\n"]}} | small()], "flags is"},
         {[{family, db, #{version => "../up"}} | small()], "version is"},
         {[{family, a, #{version => "b-1"}}, {family, 'a-b', #{version => "1"}} | small()],
          "families a and a-b: with these versions the releases of both are named a-b-1"},
         {[{family, db, #{weft => [{lane, 2}]}} | small()], "family db: weft"},
         {[{family, db, #{weft => [{topology, none}]}} | small()], "outside of families"},
         {[{topology, groups} | small()], "family web has no groups"},
         {[{topology, full_mesh}, {family, db, #{groups => [a]}} | small()], "write {topology, g"},
         {[{topology, {nothing, 1}} | small()], "topology is"},
         {[{carrier, stock}, {topology, full_mesh} | small()], "carrier stock has no topology"}],
    [told(Terms, Part) || {Terms, Part} <- Wrong].

told(Terms, Part) ->
    {Part, ?_test(begin
                      {error, Text} = weft_deploy_spec:new(Terms),
                      ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Part)})
                  end)}.

what_is_no_list_or_no_text_is_wrong_test_() ->
    [told([Term | small()], Part)
     || {Term, Part} <- [{{family, db, #{flags => ["+S" | "1"]}}, "flags is"},
                         {{family, db, #{groups => [a | b]}}, "groups is"},
                         {{family, db, #{hosts => [[a | b]]}}, "hosts is"},
                         {{provider, {ssh, #{keys => "keys", user => [a]}}}, "provider is"}]].

a_scaled_number_holds_until_the_file_changes_test() ->
    {ok, Spec} = weft_deploy_spec:new([{name, shop}, {family, web, #{count => 3}}]),
    ?assertEqual(#{web => 5}, weft_deploy_spec:counts(Spec, #{web => {3, 5}})),
    ?assertEqual(#{web => 3}, weft_deploy_spec:counts(Spec, #{web => {2, 5}})).
