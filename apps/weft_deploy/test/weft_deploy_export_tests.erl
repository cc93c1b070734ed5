%% SPDX-License-Identifier: Apache-2.0
%% Files for other tools; where a tool is here, it reads them.
-module(weft_deploy_export_tests).

-include_lib("eunit/include/eunit.hrl").

files(Kind) ->
    {ok, Spec} = weft_deploy_spec:new(
                   [{name, shop}, {epmd_port, 4390}, {stop_s, 45},
                    {family, web, #{count => 2, groups => [a], start => [sasl],
                                    flags => ["-shop", "price", "5$ or 100%"]}},
                    {family, gate, #{groups => [a, b], weft => [{lanes, 2}]}},
                    {family, db, #{groups => [b], count => 0}}]),
    Facts = #{counts => weft_deploy_spec:counts(Spec, #{}), dir => "/srv/shop", erl => "/bin/true",
              versions => #{web => "w1", gate => "g1", db => "d1"}, cores => #{}, placed => #{}},
    ok = weft_deploy_export:check(Kind, Spec),
    [{Name, unicode:characters_to_list(Content)}
     || {Name, Content} <- weft_deploy_export:files(Kind, Spec, [], Facts)].

has(Name, Part, Kind) ->
    {Name, Content} = lists:keyfind(Name, 1, files(Kind)),
    ?assertNotEqual({Content, nomatch}, {Content, string:find(Content, Part)}).

in_directory(Kind, Fun) ->
    Dir = "/tmp/weft_deploy_export-" ++ os:getpid() ++ "-" ++ Kind,
    [begin
         File = filename:join(Dir, Name),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, unicode:characters_to_binary(Content))
     end || {Name, Content} <- files(Kind)],
    try Fun(Dir) after ok = file:del_dir_r(Dir) end.

%% A test of EUnit, where the program is.
with_program(Program, Fun) ->
    case os:find_executable(Program) of
        false -> {"skipped: there is no " ++ Program ++ " here", []};
        _ -> {timeout, 60, Fun}
    end.

%% --- the command --------------------------------------------------------------------------------

%% A host that does not answer, and a directory that can not be there: each would be below a file.
what_can_not_be_exported_is_told_and_why_test_() ->
    {timeout, 60, fun what_can_not_be_exported_is_told_and_why/0}.

what_can_not_be_exported_is_told_and_why() ->
    in_directory("compose", fun(Dir) ->
        Export = fun(Kind, Terms, Out) ->
                     File = Dir ++ "/shop.deploy",
                     ok = file:write_file(File, [io_lib:format("~p.~n", [Term])
                                                 || Term <- [{name, shop}, {family, web, #{}}
                                                             | Terms]]),
                     weft_deploy:export(File, [Kind], #{root => Dir ++ "/root", out => Dir ++ Out})
                 end,
        Lost = [{dir, Dir ++ "/compose.yaml/host"}],
        [begin
             {failed, Text} = Export(Kind, Lost, "/" ++ Kind),
             ?assertMatch({match, _}, re:run(Text, "127.0.0.1 does not answer: can not make the "
                                                   "directory"))
         end || Kind <- ["systemd", "ansible"]],
        %% These have hosts of their own.
        ?assertMatch({ok, #{files := [_, _ | _]}, _}, Export("compose", Lost, "/out")),
        {failed, Why} = Export("systemd", [], "/compose.yaml/out"),
        ?assertMatch({match, _}, re:run(Why, "compose.yaml/out/.*: not a directory"))
    end).

%% --- systemd ------------------------------------------------------------------------------------

a_unit_for_each_node_that_waits_until_it_is_ready_test() ->
    Unit = "127.0.0.1/weft-web1@127.0.0.1.service",
    ?assertEqual(7, length(files("systemd"))),
    [has(Unit, Part, "systemd") || Part <- ["Type=notify", "\"5$$ or 100%%\"", "NOTIFY_SOCKET",
                                            "Environment=\"ERL_EPMD_PORT=4390\""]],
    has("127.0.0.1/nodes/gate1@127.0.0.1/sys.config", "{lanes,2}", "systemd").

%% The unit of the node that comes first would end it for all.
no_node_starts_an_epmd_test() ->
    Epmd = "weft-epmd-4390.service",
    [has("127.0.0.1/weft-web1@127.0.0.1.service", Part, "systemd")
     || Part <- ["\"-start_epmd\" \"false\"", "Wants=network-online.target " ++ Epmd,
                 "After=network-online.target " ++ Epmd]],
    [has("127.0.0.1/" ++ Epmd, Part, "systemd")
     || Part <- ["Environment=\"ERL_EPMD_PORT=4390\"", "erl='/bin/true'; epmd=epmd; ",
                 "exec \\\"$$epmd\\\"\"\n", "ExecStartPost="]].

systemd_finds_nothing_wrong_test_() ->
    with_program("systemd-analyze", fun() ->
        in_directory("systemd", fun(Dir) ->
            %% The directory of the node is not there, which verify does not look at.
            ?assertEqual("", os:cmd("systemd-analyze verify " ++ Dir ++ "/*/*.service"))
        end)
    end).

who_waits_is_told_that_the_node_is_ready_test() ->
    Path = "/tmp/weft_deploy_notify-" ++ os:getpid(),
    {ok, Socket} = gen_udp:open(0, [binary, {active, false}, {ifaddr, {local, Path}}]),
    true = os:putenv("NOTIFY_SOCKET", Path),
    evaluated(weft_deploy_export:ready()),
    ?assertMatch({ok, {_, _, <<"READY=1">>}}, gen_udp:recv(Socket, 0, 5000)),
    ok = gen_udp:close(Socket),
    ok = file:delete(Path),
    true = os:unsetenv("NOTIFY_SOCKET"),
    ok = evaluated(weft_deploy_export:ready()).

an_abstract_address_begins_with_a_zero_test_() ->
    case os:type() of {unix, linux} -> [fun abstract/0]; _ -> [] end.

abstract() ->
    Name = "weft_deploy_notify-" ++ os:getpid(),
    {ok, Socket} = gen_udp:open(0, [binary, {active, false},
                                    {ifaddr, {local, [0 | Name]}}]),
    true = os:putenv("NOTIFY_SOCKET", [$@ | Name]),
    evaluated(weft_deploy_export:ready()),
    ?assertMatch({ok, {_, _, <<"READY=1">>}}, gen_udp:recv(Socket, 0, 5000)),
    ok = gen_udp:close(Socket),
    true = os:unsetenv("NOTIFY_SOCKET").

evaluated(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, Value, _} = erl_eval:exprs(Expressions, []),
    Value.

%% --- the others ---------------------------------------------------------------------------------

services_are_called_by_their_nodes_and_dollars_are_doubled_test() ->
    [has("compose.yaml", Part, "compose")
     || Part <- ["\"web1@web1\"", "\"web2@web2\"", "\"gate1@gate1\"", "\"5$$ or 100%\"",
                 "file: \"./cookie\""]],
    has("gate1.config", "web2@web2", "compose").

pods_are_called_by_their_family_and_number_test() ->
    has("gate.config", "'web2@web-1.web'", "kustomize"),
    [has("web.yaml", Part, "kustomize") || Part <- ["replicas: 2", "clusterIP: \"None\"",
                                                    "kind: \"StatefulSet\"", "shop-tls"]],
    ?assertEqual(false, lists:keyfind("db.yaml", 1, files("kustomize"))).

the_next_pod_is_not_ended_before_a_new_one_has_its_links_test() ->
    [has("gate.yaml", Part, "kustomize")
     || Part <- ["minReadySeconds: 10", "readinessProbe:", "- \"test\"",
                 "rm -f /tmp/weft/ready; ", "weft_links:all_wanted()"]].

a_node_has_the_same_time_to_end_everywhere_test() ->
    [has(File, Part, Kind)
     || {File, Part, Kind} <- [{"127.0.0.1/weft-web1@127.0.0.1.service", "TimeoutStopSec=45\n",
                                "systemd"},
                               {"compose.yaml", "stop_grace_period: \"45s\"", "compose"},
                               {"gate.yaml", "terminationGracePeriodSeconds: 75", "kustomize"}]].

%% Of nodes without weft it is known that they run.
a_stock_node_is_ready_when_it_runs_test() ->
    File = "/tmp/weft_deploy_linked-" ++ os:getpid(),
    ok = evaluated(weft_deploy_export:linked(stock, File)),
    ?assertEqual(ok, file:delete(File)).

%% The user of the image is in the group of the pod.
secrets_can_be_read_by_a_user_other_than_root_test() ->
    [has("gate.yaml", Part, "kustomize")
     || Part <- ["fsGroup: 1000", "defaultMode: " ++ integer_to_list(8#440)]].

%% As one of compose is, with its files: root may write over a cookie that only can be read.
a_container_may_be_started_again_test() ->
    [has(File, "cp -f ", Kind) || {File, Kind} <- [{"compose.yaml", "compose"},
                                                   {"gate.yaml", "kustomize"}]].

kubectl_reads_the_base_test_() ->
    with_program("kubectl", fun() ->
        in_directory("kustomize", fun(Dir) ->
            [ok = file:write_file(filename:join(Dir, File), <<"x">>)
             || File <- ["cookie", "tls.crt", "tls.key", "ca.crt"]],
            Built = os:cmd("kubectl kustomize " ++ Dir),
            ?assertEqual({match, [["kind: StatefulSet"], ["kind: StatefulSet"]]},
                         re:run(Built, "kind: StatefulSet", [global, {capture, all, list}]))
        end)
    end).

names_that_kubernetes_does_not_take_are_refused_test() ->
    {ok, Spec} = weft_deploy_spec:new([{name, shop}, {family, my_web, #{}}]),
    ?assertMatch({error, _}, weft_deploy_export:check("kustomize", Spec)),
    ?assertEqual(ok, weft_deploy_export:check("compose", Spec)).

an_inventory_has_a_group_for_each_family_test() ->
    has("inventory.yaml", "\"weft_web\":\n                - \"web1@127.0.0.1\"", "ansible").

text_in_yaml_is_only_text_test() ->
    Text = fun(Value) -> lists:flatten(io_lib:format("~ts", [weft_deploy_yaml:encode(Value)])) end,
    ?assertEqual("a: \"yes: #\\\"\\\\\\n\"\n", Text({object, [{a, "yes: #\"\\\n"}]})),
    ?assertEqual("- 1\n- {}\n- x: []\n  y: true\n",
                 Text({list, [1, {object, []}, {object, [{x, {list, []}}, {y, true}]}]})).
