%% SPDX-License-Identifier: Apache-2.0
%% What `weft doctor --config' reads.
-module(weft_cli_configured_tests).

-include_lib("eunit/include/eunit.hrl").

words_are_those_of_a_file_of_arguments_test() ->
    ?assertEqual(["-name", "a@h", "-kernel", "x", "[{a, \"b\"}]", "+Q", "9", "a b", "c#d", ""],
                 weft_cli_configured:words("# the name\n-name a@h ## not this: -x y\n\n"
                                           "-kernel x '[{a, \"b\"}]'\r\n+Q\t9 a\\ b c#d \"\"")),
    ?assertEqual(["open end"], weft_cli_configured:words("'open end")),
    ?assertEqual([], weft_cli_configured:words("# nothing")).

a_release_is_the_node_of_its_vm_args_test() ->
    with([{"sys.config", "[{weft, [{topology, {groups, #{g => ['a@127.0.0.1', 'b@127.0.0.1'], "
           "h => ['b@127.0.0.1', 'c@127.0.0.1']}}}]}, \"more.config\"]."},
          {"vm.args", "-name a@127.0.0.1\n-proto_dist weft\n"}],
         fun(Dir) ->
             Sys = Dir ++ "/sys.config",
             ?assertMatch({ok, Sys, [#{node := 'a@127.0.0.1', is_here := true,
                                       members := ['a@127.0.0.1', 'b@127.0.0.1', 'c@127.0.0.1'],
                                       words := ["-name", "a@127.0.0.1", "-proto_dist", "weft"],
                                       config := [{weft, [_]}]}]},
                          weft_cli_configured:read(Sys, Dir ++ "/vm.args")),
             ?assertMatch({ok, _, [#{node := configured@localhost, words := []}]},
                          weft_cli_configured:read(Sys, none)),
             ?assertMatch({error, _}, weft_cli_configured:read(Sys, Dir ++ "/none")),
             ?assertMatch({error, _}, weft_cli_configured:read(Dir ++ "/none", none)),
             ?assertMatch({usage, _}, weft_cli_doctor:doctor([], #{vm_args => "vm.args"})),
             %% The flags of the kernel are missing.
             ?assertMatch({wanting, #{errors := 1, findings := [#{check := kernel_flags}]}, _},
                          weft_cli_doctor:doctor([], #{config => Sys,
                                                       vm_args => Dir ++ "/vm.args"}))
         end).

%% What weft deploy sets is as it should be: the cookie and two nodes at one port are not.
a_deployment_is_examined_before_its_code_is_built_test() ->
    with([{"shop.deploy",
           "{name, shop}. {cookie_file, \"cookie\"}.\n"
           "{family, web, #{count => 2, groups => [front], release => \"none.tar.gz\"}}.\n"
           "{family, db, #{groups => [front, back],\n"
           "               env => [{kernel, [{inet_dist_listen_min, 4370}]}]}}.\n"
           "{family, log, #{groups => [back],\n"
           "                env => [{kernel, [{inet_dist_listen_min, 4370}]}]}}.\n"},
          {"cookie", "secret"}],
         fun(Dir) ->
             {wanting, #{nodes := Nodes, findings := Findings}, Text} =
                 weft_cli_doctor:doctor([], #{config => Dir ++ "/shop.deploy"}),
             ?assertEqual(['db1@127.0.0.1', 'log1@127.0.0.1', 'web1@127.0.0.1', 'web2@127.0.0.1'],
                          Nodes),
             ?assertEqual([{ports, ['db1@127.0.0.1', 'log1@127.0.0.1']}, {cookie, Nodes},
                           {cookie_file, Nodes}],
                          [{Check, On} || #{check := Check, nodes := On, severity := error}
                                              <- Findings]),
             ?assertEqual(nomatch, string:find(Text, "secret")),
             ?assertMatch({error, _}, weft_cli_configured:read(Dir ++ "/shop.deploy", "vm.args"))
         end).

a_wrong_deployment_is_told_test() ->
    with([{"shop.deploy", "{name, shop}. {nam, shop}."}],
         fun(Dir) ->
             File = Dir ++ "/shop.deploy",
             ?assertMatch({usage, _}, weft_cli_doctor:doctor([], #{config => File}))
         end).

with(Files, Fun) ->
    Dir = filename:join("/tmp", lists:concat(["weft_cli_configured-", os:getpid()])),
    ok = filelib:ensure_path(Dir),
    [ok = file:write_file(filename:join(Dir, Name), Text) || {Name, Text} <- Files],
    Fun(Dir),
    ok = file:del_dir_r(Dir).
