%% SPDX-License-Identifier: Apache-2.0
%% @doc The command as its user has it: the built file, run by the operating system, with a cluster
%% of real nodes of its own. Usually only those commands run so for which that makes a difference;
%% the others run one after another in one emulator (`weft_cli_emulator'). With FULL=1 all run so.
%%
%% The cluster is two groups that share two gateways: n01 and n04 have no link. Its directory is in
%% the log directory of the suite.
-module(weft_cli_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([status_counts_connections/1, status_counts_broadcasts/1,
         status_shows_groups_and_names/1, eval_on_one_and_on_all/1,
         eval_reports_what_is_wrong/1, path_adds_code/1, trace_follows_the_session/1,
         why_in_plain_words/1, doctor_finds_nothing/1, doctor_finds_a_cut_and_a_dead_node/1,
         doctor_finds_what_differs/1, doctor_finds_few_lanes/1, doctor_on_a_node/1,
         doctor_by_a_node/1, watch_shows_rates/1, watch_ends/1, alarms_need_weft_ops/1,
         cut_link_is_gone_around/1, killed_node_comes_back/1,
         foreign_process_is_left_alone/1, shell_needs_a_terminal/1, shell_on_a_terminal/1,
         names_are_checked/1, bad_clusters_are_refused/1, directory_that_can_not_be/1,
         second_up_is_refused/1, why_follows_the_session/1,
         cluster_from_a_file/1, tls_cluster/1, servers_and_clients/1, visible_circuits/1,
         profile_records_nodes/1, help_teaches/1, no_cluster/1, restart_beside_cuts/1,
         heal_needs_each_node/1, down_leaves_nothing/1]).

-define(GROUPS, "left=n01..n03;right=n02..n04").
-define(NODES, ["n01", "n02", "n03", "n04"]).
-define(DEADLINE_MS, 60000).
-define(LOOK_MS, 300).
-define(LAST_CHARS, 400).

suite() -> [{timetrap, {minutes, 2}}].

%% The last case stops the cluster that the others use.
all() ->
    [status_counts_connections, status_counts_broadcasts, status_shows_groups_and_names,
     eval_on_one_and_on_all, eval_reports_what_is_wrong, path_adds_code,
     trace_follows_the_session, why_in_plain_words, doctor_finds_nothing,
     doctor_finds_a_cut_and_a_dead_node, doctor_finds_what_differs, doctor_finds_few_lanes,
     doctor_on_a_node, doctor_by_a_node, watch_shows_rates, watch_ends, alarms_need_weft_ops,
     cut_link_is_gone_around,
     killed_node_comes_back, foreign_process_is_left_alone, shell_needs_a_terminal,
     shell_on_a_terminal, names_are_checked, bad_clusters_are_refused,
     directory_that_can_not_be, second_up_is_refused, why_follows_the_session,
     cluster_from_a_file, tls_cluster, servers_and_clients]
        ++ [visible_circuits || os:getenv("FULL") =/= false]
        ++ [profile_records_nodes, help_teaches, no_cluster, restart_beside_cuts,
            heal_needs_each_node, down_leaves_nothing].

init_per_suite(Config) ->
    Dir = ?config(priv_dir, Config),
    Ebin = filename:join(Dir, "user_code"),
    ok = filelib:ensure_dir(filename:join(Ebin, "x")),
    Context = [{command, weft_cli_build:file()}, {root, filename:join(Dir, "clusters")},
               {ebin, Ebin} | Config],
    {ok, _} = file:copy(code:which(weft_cli_user_code),
                        filename:join(Ebin, "weft_cli_user_code.beam")),
    Emulator = [{emulator, weft_cli_emulator:start()} || os:getenv("FULL") =:= false],
    {0, _} = run(["up", "--groups", ?GROUPS, "--path", Ebin], Context),
    Emulator ++ Context.

%% A case that failed may have left its cluster.
end_per_suite(Config) ->
    Left = filelib:wildcard("*/*/pid", ?config(root, Config)),
    _ = [run(["down", "--name", Name], Config)
         || Name <- lists:usort([hd(filename:split(File)) || File <- Left])],
    [ok = weft_cli_emulator:stop(Emulator) || {emulator, Emulator} <- Config],
    ok.

%% Cases that need the file: for terminals, variables of the environment, TLS and what is beside the
%% file, and to see that both outputs and exit codes are those of the emulator.
by_file() ->
    [status_counts_connections, shell_needs_a_terminal, directory_that_can_not_be, tls_cluster,
     down_leaves_nothing].

%% A node that has ended unasked is a failure of its own, told with its last words.
init_per_testcase(Case, Config) ->
    case {ended(Config), lists:member(Case, by_file())} of
        {[], true} -> lists:keydelete(emulator, 1, Config);
        {[], false} -> Config;
        {Ended, _} ->
            LastWords = [{Name, last_words(Name, Config)} || Name <- Ended],
            ok = restarted(Ended, Config),
            {fail, {nodes_ended, LastWords}}
    end.

%% Every case begins without faults and with all nodes up. Cases heal what they broke, if they can.
end_per_testcase(_Case, Config) ->
    ?config(tc_status, Config) =:= ok orelse run(["heal"], Config),
    ?config(tc_status, Config) =:= ok orelse restarted(ended(Config), Config),
    ok.

ended(Config) ->
    [Name || Name <- ?NODES, {ok, OsPid} <- [file:read_file(in_cluster([Name, "pid"], Config))],
             not exists(binary_to_integer(string:trim(OsPid)))].

restarted(Names, Config) -> lists:foreach(fun(Name) -> run(["restart", Name], Config) end, Names).

last_words(Name, Config) ->
    [lists:nthtail(max(0, length(Text) - ?LAST_CHARS), Text)
     || {ok, Binary} <- [file:read_file(in_cluster([Name, "log"], Config))],
        Text <- [unicode:characters_to_list(Binary)]]
        ++ [string:slice(Text, 0, ?LAST_CHARS)
            || {ok, Text} <- [file:read_file(in_cluster([Name, "crash_dump"], Config))]].

in_cluster(Words, Config) -> filename:join([?config(root, Config), "local" | Words]).

%% --- looking ----------------------------------------------------------------------------------

%% Nodes are up when they know ways to each other, which may be before all links are there.
status_counts_connections(Config) ->
    await(fun() -> #{links := #{used := Links}} = json(["status"], Config), Links =:= 5 end),
    Status = json(["status"], Config),
    ?assertMatch(#{tcp_connections := #{used := 5, full_mesh := 6}, name := "local",
                   links := #{used := 5, full_mesh := 6}}, Status),
    ?assertEqual([{Node, true} || Node <- ?NODES], running(Status)),
    ?assertEqual(["n02", "n03"], lists:sort([short(N) || N <- neighbours("n01", Status)])),
    {0, Text} = run(["status"], Config),
    ?assertMatch({match, _}, re:run(Text, "4 of 4 nodes up, topology groups \\(left, right\\)")),
    ?assertMatch({match, _},
                 re:run(Text, "5 links of 5 TCP connections, 6 links would be a full mesh")).

status_counts_broadcasts(Config) ->
    ?assertEqual({0, "ok\n"}, run(["eval", "n02", "weft:broadcast(room, hello)"], Config)),
    await(fun() -> #{broadcast := #{received := Received}} = json(["status"], Config),
                   Received >= 4 end),
    {0, Text} = run(["status"], Config),
    ?assertMatch({match, _}, re:run(Text, "[0-9]+ broadcasts received, .* eager, .* lazy; ")).

status_shows_groups_and_names(Config) ->
    {0, "yes\n"} = run(["eval", "n01", "weft_names:register_name({cluster, x}, whereis(init))"],
                       Config),
    #{nodes := Nodes, groups := Groups, scopes := Scopes} = json(["status"], Config),
    Gateways = ["n02@127.0.0.1", "n03@127.0.0.1"],
    ?assertEqual([#{name => "left", members => ["n01@127.0.0.1" | Gateways],
                    gateways => [#{to => "right", nodes => Gateways}]},
                  #{name => "right", members => Gateways ++ ["n04@127.0.0.1"],
                    gateways => [#{to => "left", nodes => Gateways}]}], Groups),
    ?assertEqual([["left"], ["left", "right"], ["left", "right"], ["right"]],
                 [Own || #{groups := Own} <- Nodes]),
    ?assert(lists:member(#{scope => "cluster", kind => "eventual", nodes => 4, names => 1},
                         Scopes)),
    {0, Text} = run(["status"], Config),
    [?assertMatch({_, {match, _}}, {Line, re:run(Text, Line, [multiline])})
     || Line <- ["^left +n01 n02 n03 +right: n02 n03$", "^right +n02 n03 n04 +left: n02 n03$",
                 "^cluster +eventual +4 +1$"]],
    {0, _} = run(["eval", "n01", "weft_names:unregister_name({cluster, x})"], Config).

trace_follows_the_session(Config) ->
    connect("n01", "n04", Config),
    #{hops := Hops, end_to_end_us := EndToEndUs} = json(["trace", "n01", "n04"], Config),
    ?assertMatch([#{from := "n01@127.0.0.1", to := Gateway, by := "session", rtt_us := Us},
                  #{from := Gateway, to := "n04@127.0.0.1", by := "session"}]
                   when is_integer(Us), Hops),
    ?assert(EndToEndUs > 0),
    ?assertEqual([short(To) || #{to := To} <- Hops], tl(circuit("n01", "n04", Config))),
    {0, Text} = run(["trace", "n01", "n04"], Config),
    ?assertMatch({match, _}, re:run(Text, "n01 -> n04: 2 links")).

why_in_plain_words(Config) ->
    connect("n01", "n04", Config),
    #{connected := true, text := Far} = json(["why", "n01", "n04"], Config),
    ?assertMatch({match, _}, re:run(lists:join("\n", Far),
                                    "a circuit of 2 links by way of n0[23]@")),
    {0, Near} = run(["why", "n01", "n02"], Config),
    [?assertMatch({_, {match, _}}, {Words, re:run(Near, Words)})
     || Words <- ["are connected", "Path: direct", "Session: up", "Queue: \\d+ bytes",
                  "Link to n02@127.0.0.1: up, 1 lane, round trip", "Last error: "]].

%% --- doctor, watch ----------------------------------------------------------------------------

%% Notes may be there, and for a moment a warning, for the machine may be busy.
doctor_finds_nothing(Config) ->
    await(fun() ->
                  {Code, Text} = run(["doctor", "--json"], Config),
                  #{name := "local", nodes := Nodes, answered := Answered, errors := Errors,
                    warnings := Warnings} = decode(Text),
                  {Code, Errors, Warnings, Answered, [short(Node) || Node <- Nodes]}
                      =:= {0, 0, 0, Nodes, ?NODES}
          end).

doctor_finds_a_cut_and_a_dead_node(Config) ->
    {0, _} = run(["cut", "n01", "n02"], Config),
    {0, _} = run(["kill", "n04"], Config),
    await(fun() -> lists:sort(found(Config)) =:= [{"answers", ["n04"]}, {"cuts", ["n01", "n02"]}]
          end),
    {1, Text} = run(["doctor"], Config),
    [?assertMatch({_, {match, _}}, {Words, re:run(Text, Words)})
     || Words <- ["local: 3 of 4 nodes examined in [0-9.]+ s: 1 error, [1-9][0-9]* warnings?",
                  "\nerror on n04: does not answer: it is not running",
                  "\nwarning on n01 n02: the link between", "\n  why: ", "\n  do:  End the cut: "]],
    {0, _} = run(["heal"], Config),
    {0, _} = run(["restart", "n04"], Config),
    await(fun() -> found(Config) =:= [] end).

doctor_finds_what_differs(Config) ->
    {0, "ok\n"} = run(["eval", "n01", "application:set_env(kernel, net_ticktime, 7)"], Config),
    {0, _} = run(["eval", "n02", "application:set_env(weft, hop_limit, 9)"], Config),
    await(fun() -> found(Config) =:= [{"ticktime", ["n01"]}, {"configuration", ["n02"]}] end),
    {1, Text} = run(["doctor"], Config),
    ?assertMatch({match, _}, re:run(Text, "warning on n01: differs: net_ticktime .s. is 60 on ")),
    {0, _} = run(["eval", "all", "application:unset_env(kernel, net_ticktime), "
                  "application:unset_env(weft, hop_limit)"], Config),
    await(fun() -> found(Config) =:= [] end).

%% Links look so seldom whether they need further lanes that the doctor is there before.
doctor_finds_few_lanes(Config) ->
    Lanes = ["--name", "lanes"],
    {0, _} = run(["up", "-n", "2", "--set", "keepalive_ms=600000",
                  "--set", "link_timeout_ms=3600000" | Lanes], Config),
    await(fun() -> found(Lanes, Config) =:= [] end),
    {0, _} = run(["eval", "all", "application:set_env(weft, lanes, 3)" | Lanes], Config),
    {1, Text} = run(["doctor" | Lanes], Config),
    ?assertMatch({match, _}, re:run(Text, "has 1\\s+of\\s+3\\s+lanes")),
    ?assertEqual([{"lanes", ["n01", "n02"]}], found(Lanes, Config)),
    ?assertMatch(#{stopped := [_, _]}, json(["down" | Lanes], Config)).

%% As on a node of any system; its members are found there.
doctor_on_a_node(Config) ->
    {0, Text} = run(["eval", "n01", "weft_doctor:examine()"], Config),
    ?assertMatch({match, _}, re:run(Text, "^4 nodes examined in .*\nok\n$", [dotall])).

%% The cluster stands for any other: the command gets nothing but the node, its cookie and epmd.
doctor_by_a_node(Config) ->
    {ok, #{cookie := Cookie, epmd_port := EpmdPort}} =
        weft_local_files:load(?config(root, Config), "local"),
    File = filename:join(?config(priv_dir, Config), "cookie"),
    ok = file:write_file(File, [atom_to_list(Cookie), $\n]),
    Elsewhere = lists:keystore(root, 1, Config, {root, ?config(priv_dir, Config)}),
    ByFile = [{env, [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}]}
              | lists:keydelete(emulator, 1, Elsewhere)],
    Doctor = ["doctor", "--cookie-file", File, "--node"],
    {_, Text} = run(Doctor ++ ["n01@127.0.0.1"], ByFile),
    ?assertMatch({match, _}, re:run(Text, "^n01@127.0.0.1: 4 nodes examined in ")),
    ?assertMatch({4, "weft: n09@127.0.0.1 can not be reached" ++ _},
                 run(Doctor ++ ["n09@127.0.0.1"], ByFile)),
    ?assertMatch({2, _}, run(Doctor ++ ["n01"], Elsewhere)),
    ?assertMatch({1, "weft: no cookie: /no/file: no such file" ++ _},
                 run(["doctor", "--node", "n01@127.0.0.1", "--cookie-file", "/no/file"],
                     Elsewhere)).

%% What is evaluated waits in code that was compiled: the emulator of OTP 25.2 failed now and then
%% at the end of a time in a `receive' that was not.
watch_shows_rates(Config) ->
    Flood = "register(flood, spawn(fun F() -> {x, 'n04@127.0.0.1'} ! lists:seq(1, 99), "
        "timer:sleep(1), F() end)), ok", % pacing: some hundred messages a second
    {0, "ok\n"} = run(["eval", "n01", Flood], Config),
    await(fun() -> circuit("n01", "n04", Config) =/= [] end),
    {0, Text} = run(["watch", "--count", "2", "--interval", "1"], Config),
    ?assertMatch({match, [_, _]}, re:run(Text, "^local at .*: 4 of 4 nodes up, 5 links, .*$",
                                         [global, multiline, {capture, first}])),
    [?assertMatch({_, {match, _}}, {Row, re:run(Text, Row, [multiline])})
     || Row <- ["^n01 +- +- +- +- +[0-9]", "^n01 +[1-9][0-9.]* k?B +[0-9.]+ k?B +",
                "^n04 +[0-9.]+ k?B +[1-9][0-9.]* k?B +0 B +[0-9]+ ",
                "^all +[1-9][0-9.]* k?B +[1-9][0-9.]* k?B +[1-9]"]],
    {0, Lines} = run(["watch", "--count", "2", "--interval", "0.5", "--json"], Config),
    [#{all := #{bytes_out_per_s := undefined}}, #{nodes := Nodes, nodes_up := 4}] =
        [decode(Line) || Line <- string:lexemes(Lines, "\n")],
    ?assertMatch([#{node := "n01@127.0.0.1", bytes_out_per_s := Out, running := true} | _]
                   when Out > 0, Nodes),
    {0, _} = run(["eval", "n01", "exit(whereis(flood), kill)"], Config).

%% And with the cluster, as the last case shows.
watch_ends(Config) ->
    _ = [?assertEqual({Signal, {Status, <<>>}}, {Signal, watch_killed(Signal, Config)})
         || {Signal, Status} <- [{"INT", 130}, {"TERM", 143}]],
    %% The reader of a pipe may have seen enough.
    Watch = lists:join($\s, [?config(command, Config), "watch", "--interval", "0.2", "--dir",
                             ?config(root, Config)]),
    %% OTP's own output may say so, since OTP 27.
    ?assertEqual(nomatch, string:find(os:cmd(lists:flatten(Watch) ++ " 2>&1 > /dev/full"), "weft")).

watch_killed(Signal, Config) ->
    Port = start(["watch", "--interval", "60"], Config),
    _ = read_until(Port, "\nall ", <<>>),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    _ = os:cmd("kill -" ++ Signal ++ " " ++ integer_to_list(OsPid)),
    collect(Port, <<>>).

%% The checks that found something, with the nodes. The machine may be busy.
found(Config) -> found([], Config).

found(Cluster, Config) ->
    {_, Text} = run(["doctor", "--json" | Cluster], Config),
    #{findings := Findings} = decode(Text),
    [{Check, [short(Node) || Node <- Nodes]}
     || #{check := Check, severity := Severity, nodes := Nodes} <- Findings,
        Severity =/= "note" orelse Check =:= "configuration", Check =/= "schedulers"].

%% n01 and n04 talk over a gateway, which the profile names.
profile_records_nodes(Config) ->
    connect("n01", "n04", Config),
    Dir = filename:join(?config(priv_dir, Config), "profile"),
    {0, _} = run(["eval", "n01", "spawn(fun Ask() -> net_adm:ping('n04@127.0.0.1'), "
                  "timer:sleep(5), Ask() end)"], % pacing: some hundred calls a second
                 Config),
    {0, Text} = run(["profile", "n01", "n02", "n03", "n04", "--seconds", "1", "--continuous",
                     "--out", Dir], Config),
    [?assertMatch({_, {match, _}}, {Words, re:run(Text, Words)})
     || Words <- ["n01 +\\d+ +", "n01 +-> +n04 +\\d+ +median .* by way of n0[23]", "trace.json"]],
    [?assert(filelib:file_size(filename:join(Dir, File)) > 100)
     || File <- ["trace.json", "flame.svg", "speedscope/trace.js", "speedscope/index.html"]],
    {ok, Page} = file:read_file(filename:join(Dir, "summary.html")),
    ?assertMatch({match, _}, re:run(Page, "Which processes talk to which: [1-9]")),
    %% A node that stands still while it is traced goes on with that for longer.
    await(fun() ->
                  #{nodes := [#{ended := "time",
                                sampled := #{window_ms := 40, every_ms := 1000},
                                traced_ms := TracedMs}],
                    files := [_, _, _, _], failed := []} =
                      json(["profile", "n02", "--seconds", "1", "--pids", "3", "--out", Dir],
                           Config),
                  TracedMs > 0 andalso TracedMs < 500
          end),
    {2, _} = run(["profile"], Config),
    {2, _} = run(["profile", "n01", "--pids", "0"], Config),
    {4, _} = run(["profile", "nobody"], Config),
    {0, Json} = run(["profile", "--group", "left", "--seconds", "1", "--out", Dir, "--json"],
                    Config),
    {ok, #{<<"nodes">> := OfGroup, <<"talks">> := _}} =
        weft_json:decode(unicode:characters_to_binary(Json)),
    ?assertEqual(["n01", "n02", "n03"],
                 [short(binary_to_list(Node)) || #{<<"node">> := Node} <- OfGroup]),
    {4, Unknown} = run(["profile", "--group", "nobodys"], Config),
    ?assertMatch({match, _}, re:run(Unknown, "no group nobodys in this cluster: it has ")).

%% What they say where it runs is in `weft_cli_truth_SUITE'.
alarms_need_weft_ops(Config) ->
    [?assertMatch({1, "weft: weft_ops runs on no node that answers: " ++ _},
                  run([Command], Config)) || Command <- ["alarms", "events"]],
    ?assertMatch({2, "weft: --node is one of any cluster" ++ _},
                 run(["alarms", "--node", "a@h", "--cluster", "no.deploy"], Config)).

%% --- faults -----------------------------------------------------------------------------------

cut_link_is_gone_around(Config) ->
    connect("n01", "n04", Config),
    ["n01", Gateway, "n04"] = circuit("n01", "n04", Config),
    [Other] = ["n02", "n03"] -- [Gateway],
    {Resumes, Reroutes} = counted("n01", "n04", Config),
    {0, _} = run(["cut", "n01", Gateway], Config),
    await(fun() -> circuit("n01", "n04", Config) =:= ["n01", Other, "n04"] end),
    %% It counts as a resume when the other end has answered on the new path.
    await(fun() -> element(1, counted("n01", "n04", Config)) > Resumes end),
    ?assertEqual(Reroutes + 1, element(2, counted("n01", "n04", Config))),
    #{text := Why} = json(["why", "n01", Gateway], Config),
    ?assertMatch({match, _}, re:run(lists:join("\n", Why), "is cut on purpose")),
    {0, _} = run(["heal", "n01", Gateway], Config),
    await(fun() -> length(neighbours("n01", json(["status"], Config))) =:= 2 end),
    ?assertMatch(#{tcp_connections := #{used := 5}}, json(["status"], Config)).

killed_node_comes_back(Config) ->
    Pid = os_pid("n03", Config),
    ?assertMatch(#{killed := "n03@127.0.0.1"}, json(["kill", "n03"], Config)),
    ?assertNot(exists(Pid)),
    ?assertMatch({_, false}, lists:keyfind("n03", 1, running(json(["status"], Config)))),
    ?assertMatch({4, _}, run(["kill", "n03"], Config)),
    ?assertMatch({4, _}, run(["eval", "n03", "ok"], Config)),
    {0, Why} = run(["why", "n01", "n03"], Config),
    ?assertMatch({match, _}, re:run(Why, "n03 is not running")),
    {0, _} = run(["restart", "n03"], Config),
    Status = json(["status"], Config),
    ?assertNotEqual([], neighbours("n03", Status)),
    ?assertEqual([{Node, true} || Node <- ?NODES], running(Status)),
    ?assertNotEqual(Pid, os_pid("n03", Config)).

%% A node that nobody can reach, on purpose, is not waited for.
restart_beside_cuts(Config) ->
    [{0, _} = run(["cut", "n01", Gateway], Config) || Gateway <- ["n02", "n03"]],
    await(fun() -> {0, "false\n"} =:= run(["eval", "n04", "maps:is_key('n01@127.0.0.1', maps:get("
                                           "routes, weft:status()))"], Config)
          end),
    ?assertMatch(#{restarted := "n04@127.0.0.1"}, json(["restart", "n04"], Config)),
    {0, _} = run(["heal"], Config),
    await(fun() -> length(neighbours("n01", json(["status"], Config))) =:= 2 end).

heal_needs_each_node(Config) ->
    {0, "ok\n"} = run(["eval", "n02", "application:set_env(weft, faults, false)"], Config),
    ?assertMatch({1, "weft: faults are off" ++ _}, run(["heal"], Config)),
    {0, "ok\n"} = run(["eval", "n02", "application:set_env(weft, faults, true)"], Config),
    ?assertEqual({0, "all cuts are healed\n"}, run(["heal"], Config)).

%% A recorded id that now belongs to another process must not be signalled.
foreign_process_is_left_alone(Config) ->
    File = in_cluster(["n02", "pid"], Config),
    {ok, Recorded} = file:read_file(File),
    Port = open_port({spawn_executable, os:find_executable("sleep")}, [{args, ["600"]}]),
    {os_pid, Foreign} = erlang:port_info(Port, os_pid),
    ok = file:write_file(File, integer_to_list(Foreign)),
    ?assertMatch({4, _}, run(["kill", "n02"], Config)),
    ?assert(exists(Foreign)),
    ok = file:write_file(File, Recorded),
    _ = os:cmd("kill " ++ integer_to_list(Foreign)),
    ?assertMatch({_, true}, lists:keyfind("n02", 1, running(json(["status"], Config)))).

%% --- eval, shell ------------------------------------------------------------------------------

eval_on_one_and_on_all(Config) ->
    ?assertEqual({0, "6\n"}, run(["eval", "n01", "X = 3, X * 2."], Config)),
    ?assertEqual({0, "hello\nok\n"},
                 run(["eval", "n02@127.0.0.1", "io:format(\"hello~n\")"], Config)),
    ?assertEqual({0, "n01: 1\nn02: 1\nn03: 1\nn04: 1\n"}, run(["eval", "all", "1"], Config)),
    ?assertEqual([#{node => "n04@127.0.0.1", value => "<<\"\\\"q\\\"\">>"}],
                 json(["eval", "n04", "<<\"\\\"q\\\"\">>"], Config)).

eval_reports_what_is_wrong(Config) ->
    ?assertMatch({1, "weft: n01: badarith" ++ _}, run(["eval", "n01", "1 / 0"], Config)),
    ?assertMatch({1, "weft: n01: exit: over" ++ _}, run(["eval", "n01", "exit(over)"], Config)),
    ?assertMatch({2, "weft: not Erlang: syntax error" ++ _}, run(["eval", "n01", "foo("], Config)).

path_adds_code(Config) ->
    ?assertEqual({0, "42\n"}, run(["eval", "n04", "weft_cli_user_code:answer()"], Config)).

shell_needs_a_terminal(Config) ->
    ?assertMatch({1, "weft: a shell needs a terminal" ++ _}, run(["shell", "n01"], Config)).

%% script(1) of util-linux gives the command a terminal.
shell_on_a_terminal(Config) ->
    case os:find_executable("script") of
        false -> {skip, "no script(1) on this machine"};
        Script -> shell_on_a_terminal(Script, Config)
    end.

shell_on_a_terminal(Script, Config) ->
    Command = lists:join($\s, [?config(command, Config), "shell", "n02", "--dir",
                               ?config(root, Config)]),
    Port = open_port({spawn_executable, Script},
                     [{args, ["-q", "-c", lists:flatten(Command), "/dev/null"]}, binary,
                      %% The shell of OTP 25 does not start on a dumb terminal.
                      {env, [{"TERM", "xterm"}]}, exit_status, stderr_to_stdout]),
    Prompt = "\\(n02@127\\.0\\.0\\.1\\)1> ",
    _ = read_until(Port, Prompt, <<>>),
    true = port_command(Port, "{answer, 6 * 7}.\n"),
    _ = read_until(Port, "\\{answer,42\\}", <<>>),
    true = port_command(Port, <<7>>),
    _ = read_until(Port, "--> ", <<>>),
    true = port_command(Port, "q\n"),
    receive {Port, {exit_status, Status}} -> ?assertEqual(0, Status)
    after ?DEADLINE_MS -> ct:fail(shell_does_not_end)
    end,
    ?assertMatch({_, true}, lists:keyfind("n02", 1, running(json(["status"], Config)))).

read_until(Port, Pattern, Read) ->
    case re:run(Read, Pattern) of
        {match, _} -> Read;
        nomatch ->
            receive {Port, {data, Data}} -> read_until(Port, Pattern, <<Read/binary, Data/binary>>)
            after ?DEADLINE_MS -> ct:fail({not_seen, Pattern, Read})
            end
    end.

%% --- words that make no sense -----------------------------------------------------------------

names_are_checked(Config) ->
    ?assertMatch({2, "weft: there is no command stauts, did you mean status?" ++ _},
                 run(["stauts"], Config)),
    ?assertMatch({2, "weft: unknown option --jsn, did you mean --json?" ++ _},
                 run(["status", "--jsn"], Config)),
    ?assertMatch({2, "weft: B is missing" ++ _}, run(["trace", "n01"], Config)),
    ?assertMatch({4, "weft: no node n7 in the cluster local: it has n01 n02 n03 n04" ++ _},
                 run(["why", "n01", "n7"], Config)),
    ?assertEqual({4, "{\"error\":\"no_node\",\"message\":"
                     "\"no node n7 in the cluster local: it has n01 n02 n03 n04\"}\n"},
                 run(["kill", "n7", "--json"], Config)).

bad_clusters_are_refused(Config) ->
    [?assertMatch({Words, {2, _}, {match, _}}, {Words, Answer, re:run(Text, Expected)})
     || {Words, Expected} <- [{["-t", "rnig"], "rnig is no topology"},
                              {["--groups", "n01,n02"], "write 'a=n01,n02"},
                              {["--groups", "a=n1,n2;b=n3,n4"], "no path leads from"},
                              {["--set", "lanse=2"], "did you mean lanes"},
                              {["--circuits", "both"], "it must be hidden or visible"},
                              {["--path", "no/such/dir"], "is no directory"},
                              {["--epmd-port", "80000"], "write a number from 1 to 65535"},
                              {["--groups", "left=n1..n3,right=n3"], "stands a semicolon"},
                              {["--file", "no_such_file"], "no such file"}],
        {_, Text} = Answer <- [run(["up", "--name", "bad" | Words], Config)]],
    ?assertNot(filelib:is_dir(filename:join(?config(root, Config), "bad"))).

%% Nobody can make directories there.
directory_that_can_not_be(Config) ->
    {Code, Text} = run(["up"], lists:keystore(root, 1, Config, {root, "/proc/x"})),
    ?assertMatch({1, "weft: can not make the directory /proc/x/local: " ++ _}, {Code, Text}),
    ?assertMatch({match, _}, re:run(Text, "choose another --dir")).

second_up_is_refused(Config) ->
    ?assertMatch({1, "weft: the cluster local is up already" ++ _}, run(["up"], Config)).

no_cluster(Config) ->
    Elsewhere = [{root, filename:join(?config(priv_dir, Config), "elsewhere")} | Config],
    ?assertMatch({3, "weft: no cluster is up" ++ _}, run(["status"], Elsewhere)),
    ?assertMatch({3, "weft: no cluster other is up" ++ _},
                 run(["down", "--name", "other"], Config)).

help_teaches(Config) ->
    {0, Overview} = run(["--help"], Config),
    ?assertMatch({match, _}, re:run(Overview, "weft trace A B +the way from A to B")),
    {0, Help} = run(["help", "up"], Config),
    ?assertEqual({0, Help}, run(["up", "--help"], Config)),
    ?assertMatch({match, _}, re:run(Help, "--groups GROUPS")),
    ?assertMatch({0, "weft " ++ _}, run(["--version"], Config)).

%% --- other clusters, the end ------------------------------------------------------------------

cluster_from_a_file(Config) ->
    File = filename:join(?config(priv_dir, Config), "cluster.config"),
    ok = file:write_file(File, "{name, \"filed\"}.\n{links, [{a, b}, {b, c}]}.\n"
                               "{settings, [{lanes, 2}]}.\n"),
    #{nodes := Nodes, name := "filed"} = json(["up", "--file", File], Config),
    ?assertEqual(["a", "b", "c"], [short(Node) || Node <- Nodes]),
    Filed = ["--name", "filed"],
    await(fun() ->
                  #{tcp_connections := #{used := Used}} = json(["status" | Filed], Config),
                  Used =:= 4
          end),
    {0, Text} = run(["status" | Filed], Config),
    ?assertMatch({match, _}, re:run(Text, "\n2 links of 4 TCP connections, 3 links would be")),
    ?assertMatch(#{stopped := [_, _, _]}, json(["down" | Filed], Config)).

%% A session goes around a cut, and stays on that longer way when the cut is healed. The command
%% says how long its own way is, not that of the route, and that it stays.
why_follows_the_session(Config) ->
    Ring = ["--name", "ring"],
    {0, _} = run(["up", "-n", "5", "-t", "ring" | Ring], Config),
    %% The first route that is known may be the longer one, and a session would stay there.
    await_why("a circuit of 2 links by way of n02@127.0.0.1, as the routes are now", Ring, Config),
    ?assertEqual({0, "pong\n"},
                 run(["eval", "n01", "net_adm:ping('n03@127.0.0.1')" | Ring], Config)),
    await_why("a circuit of 2 links by way of n02@127.0.0.1: n01 - n02 - n03", Ring, Config),
    {0, _} = run(["cut", "n02", "n03" | Ring], Config),
    Around = "a circuit of 3 links by way of n05@127.0.0.1: n01 - n05 - n04 - n03",
    await_why(Around, Ring, Config),
    {0, _} = run(["heal" | Ring], Config),
    await_why("The best route is now one of 2 links by way of n02@127.0.0.1. "
              "A session stays on its circuit until that breaks", Ring, Config),
    await_why(Around, Ring, Config),
    ?assertMatch(#{stopped := [_, _, _, _, _]}, json(["down" | Ring], Config)).

await_why(Words, Ring, Config) ->
    await(fun() ->
                  {0, Text} = run(["why", "n01", "n03" | Ring], Config),
                  string:find(Text, Words) =/= nomatch
          end).

tls_cluster(Config) ->
    Tls = ["--name", "tls"],
    {0, _} = run(["up", "-n", "3", "-t", "line", "--transport", "tls" | Tls], Config),
    %% Its certificates are good for long.
    ?assertEqual({0, "{pong,['n01@127.0.0.1','n02@127.0.0.1','n03@127.0.0.1'],[]}\n"},
                 run(["eval", "n01", "{net_adm:ping('n03@127.0.0.1'), lists:sort(weft:members()), "
                      "[F || #{check := certificates} = F <- maps:get(findings, "
                      "weft_doctor:report())]}" | Tls], Config)),
    %% The command itself, though a weft node here, is no member and no neighbour for long.
    ?assertMatch(#{tcp_connections := #{used := 2}, sessions := 3, circuits := [_]},
                 json(["status" | Tls], Config)),
    ?assertMatch(#{stopped := [_, _, _]}, json(["down" | Tls], Config)).

%% Three TCP connections: between the servers, and of each client to one of them.
servers_and_clients(Config) ->
    Served = ["--name", "served"],
    {0, _} = run(["up", "-n", "4", "--servers", "n01,n02" | Served], Config),
    ?assertEqual({0, "pong\n"},
                 run(["eval", "n03", "net_adm:ping('n04@127.0.0.1')" | Served], Config)),
    await(fun() ->
                  #{tcp_connections := #{used := Used}} = json(["status" | Served], Config),
                  Used =:= 3
          end),
    ?assertEqual({0, "n04: left, and is alone\n"}, run(["leave", "n04" | Served], Config)),
    ?assertEqual({0, "1\n"}, run(["eval", "n04", "length(weft:members())" | Served], Config)),
    ?assertMatch(#{joined := ["n04@127.0.0.1", "n01@127.0.0.1"]},
                 json(["join", "n04", "n01" | Served], Config)),
    ?assertMatch(#{stopped := [_, _, _, _]}, json(["down" | Served], Config)).

%% The two ends of a line see each other without a connection between them.
visible_circuits(Config) ->
    Visible = ["--name", "visible"],
    {0, _} = run(["up", "-n", "3", "-t", "line", "--circuits", "visible" | Visible], Config),
    await(fun() ->
                  {0, "['n02@127.0.0.1','n03@127.0.0.1']\n"}
                      =:= run(["eval", "n01", "lists:sort(nodes())" | Visible], Config)
          end),
    %% A node that is busy when it starts may have tried the direct way before it knew another one.
    await(fun() ->
                  #{tcp_connections := #{used := Used}} = json(["status" | Visible], Config),
                  Used =:= 2
          end),
    ?assertMatch(#{stopped := [_, _, _]}, json(["down" | Visible], Config)).

down_leaves_nothing(Config) ->
    Pids = [list_to_integer(string:trim(binary_to_list(Text)))
            || File <- filelib:wildcard(filename:join(?config(root, Config), "local/*/pid")),
               {ok, Text} <- [file:read_file(File)]],
    ?assertEqual(5, length(Pids)),
    ?assert(lists:all(fun exists/1, Pids)),
    Watch = start(["watch", "--interval", "0.2"], Config),
    _ = read_until(Watch, "\nall +[0-9]", <<>>),
    ?assertMatch(#{stopped := [_, _, _, _]}, json(["down"], Config)),
    {Code, Output} = collect(Watch, <<>>),
    ?assertEqual(3, Code),
    ?assertMatch({match, _}, re:run(Output, "weft: the cluster local is down")),
    ?assertEqual([], [Pid || Pid <- Pids, exists(Pid)]),
    ?assertMatch({3, _}, run(["down"], Config)).

%% --- helpers ----------------------------------------------------------------------------------

%% The exit code and all output.
run(Words, Config) ->
    {Status, Output} = case ?config(emulator, Config) of
                           undefined -> collect(start(Words, Config), <<>>);
                           Emulator ->
                               weft_cli_emulator:run(?config(priv_dir, Config),
                                                     with_dir(Words, Config), Emulator)
                       end,
    ct:log("weft ~ts~n~ts(~b)", [lists:join($\s, Words), Output, Status]),
    {Status, unicode:characters_to_list(Output)}.

start(Words, Config) ->
    open_port({spawn_executable, ?config(command, Config)},
              [{args, with_dir(Words, Config)},
               {env, proplists:get_value(env, Config, [])},
               exit_status, stderr_to_stdout, binary]).

with_dir([Word | _] = Words, _Config)
  when Word =:= "help"; Word =:= "--help"; Word =:= "--version" -> Words;
with_dir(Words, Config) -> Words ++ ["--dir", ?config(root, Config)].

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    after 90000 ->
        ct:fail({command_hangs, Output})
    end.

%% The answer of a command that must succeed.
json(Words, Config) ->
    {0, Text} = run(Words ++ ["--json"], Config),
    decode(Text).

%% JSON is close enough to Erlang terms to be read as such; strings come out as lists.
decode(Text) ->
    Keys = re:replace(Text, "\"([a-z_]+)\":", "\\1=>", [global]),
    Maps = re:replace(Keys, "\\{", "#{", [global]),
    Term = re:replace(Maps, "\\bnull\\b", "undefined", [global, {return, list}]),
    {ok, Tokens, _} = erl_scan:string(Term ++ "."),
    {ok, Decoded} = erl_parse:parse_term(Tokens),
    Decoded.

connect(From, To, Config) ->
    Ping = "net_adm:ping('" ++ To ++ "@127.0.0.1').",
    ?assertEqual({0, "pong\n"}, run(["eval", From, Ping], Config)).

%% The way of the session between two nodes, in short names.
circuit(From, To, Config) ->
    case session(From, To, Config) of
        [#{hops := Hops}] -> [short(Hop) || Hop <- Hops];
        [] -> []
    end.

counted(From, To, Config) ->
    [#{resumes := Resumes, reroutes := Reroutes}] = session(From, To, Config),
    {Resumes, Reroutes}.

session(From, To, Config) ->
    #{circuits := Circuits} = json(["status"], Config),
    [Circuit || #{from := F, to := T} = Circuit <- Circuits, short(F) =:= From, short(T) =:= To].

neighbours(Name, #{nodes := Nodes}) ->
    [Neighbours] = [N || #{node := Node, neighbours := N} <- Nodes, short(Node) =:= Name],
    Neighbours.

running(#{nodes := Nodes}) ->
    [{short(Node), Running} || #{node := Node, running := Running} <- Nodes].

os_pid(Name, Config) ->
    #{nodes := Nodes} = json(["status"], Config),
    [Pid] = [Pid || #{node := Node, os_pid := Pid} <- Nodes, short(Node) =:= Name],
    Pid.

short(Node) -> hd(string:split(Node, "@")).

%% Does a process of that id run? (A zombie does not.)
exists(OsPid) ->
    string:trim(os:cmd("kill -0 " ++ integer_to_list(OsPid) ++ " 2>/dev/null && "
                       "ps -o stat= -p " ++ integer_to_list(OsPid) ++ " | grep -v Z")) =/= "".

await(Condition) ->
    await(Condition, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

%% Each look runs a command.
await(Condition, Deadline) ->
    case Condition() of
        true -> ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline orelse ct:fail(never_happened),
            receive after ?LOOK_MS -> await(Condition, Deadline) end % pacing: of this very loop
    end.
