%% SPDX-License-Identifier: Apache-2.0
%% @doc A deployment by ssh. Hosts are network namespaces, each with its own sshd and its own
%% directory in the same place. That needs root; elsewhere the suite is skipped.
%%
%% Nodes use TLS, and refuse nodes without weft.
%%
%% Usually two hosts with one node each; with FULL=1 eight hosts with four nodes each. Then as many
%% in two groups, which are upgraded while people talk, and the guide about three hosts.
-module(weft_deploy_ssh_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").
-include_lib("public_key/include/public_key.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([up_and_the_second_time_nothing/1, nodes_are_looked_at/1, an_unknown_host_key_is_refused/1,
         a_script_that_takes_too_long_is_ended/1, what_a_profile_says_is_not_what_a_script_says/1,
         the_benchmark_measures_between_them/1, figures_are_measured_between_them/1,
         a_load_is_on_several_hosts/1, an_interrupted_load_leaves_nothing/1,
         a_host_that_can_not_have_a_load_is_named/1,
         a_host_that_dies_is_told_and_the_rest_goes_on/1, a_host_that_dies_blames_no_version/1,
         down_leaves_nothing/1, nobody_who_stays_loses_anything/1,
         the_guide_from_a_release_to_three_hosts/1]).

-define(PORT, 20022).
%% Whose shell says something before it does what it is asked to.
-define(TALKATIVE_PORT, 20023).
-define(CALL_MS, 300000).

suite() -> [{timetrap, {minutes, 20}}, {userdata, in_sequence}].

%% Each case goes on with what the one before has left.
all() ->
    [up_and_the_second_time_nothing, nodes_are_looked_at, an_unknown_host_key_is_refused,
     a_script_that_takes_too_long_is_ended, what_a_profile_says_is_not_what_a_script_says]
        ++ [Case || Case <- [the_benchmark_measures_between_them, figures_are_measured_between_them,
                             a_load_is_on_several_hosts, an_interrupted_load_leaves_nothing,
                             a_host_that_can_not_have_a_load_is_named],
                    os:getenv("FULL") =/= false]
        ++ [a_host_that_dies_is_told_and_the_rest_goes_on, a_host_that_dies_blames_no_version,
            down_leaves_nothing]
        ++ [Case || Case <- [nobody_who_stays_loses_anything,
                             the_guide_from_a_release_to_three_hosts],
                    os:getenv("FULL") =/= false].

size() -> case os:getenv("FULL") of false -> {2, 1}; _ -> {8, 4} end.

init_per_suite(Config) ->
    Needed = ["ip", "sshd", "ssh", "ssh-keygen", "unshare", "mount"]
        ++ [P || os:getenv("FULL") =/= false, P <- ["ssh-keyscan", "git", "rebar3"]],
    Path = os:getenv("PATH") ++ ":/usr/sbin:/sbin",
    case {string:trim(os:cmd("id -u")),
          [P || P <- Needed, os:find_executable(P, Path) =:= false]} of
        {"0", []} ->
            case os:cmd("ip netns add wdprobe && ip netns del wdprobe") of
                "" -> prepared(Config);
                Text -> {skip, "no network namespaces: " ++ Text}
            end;
        {"0", [Missing | _]} -> {skip, "no program " ++ Missing};
        _ -> {skip, "only root may make network namespaces"}
    end.

prepared(Config) ->
    {Count, _} = size(),
    Dir = ?config(priv_dir, Config),
    Mark = integer_to_list(list_to_integer(os:getpid()) rem 100000),
    Hosts = ["10.99.77." ++ integer_to_list(N) || N <- lists:seq(1, Count)],
    All = [{mark, Mark}, {hosts, Hosts}, {file, filename:join(Dir, "shop.deploy")},
           {keys, filename:join(Dir, "keys")}, {root, filename:join(Dir, "weft")},
           {dir, "/tmp/weft-deploy-" ++ Mark} | Config],
    keys(All),
    command(Dir ++ "/bin"),
    certificate(All),
    network(All),
    [start_host(N, All) || N <- lists:seq(1, Count)],
    [weft_test_nodes:until(fun() -> listens(Host) end) || Host <- Hosts],
    All.

sh(Format, Args) ->
    Command = lists:flatten(io_lib:format(Format, Args)),
    Output = os:cmd(Command),
    ct:log("~ts~n~ts", [Command, Output]),
    Output.

keys(Config) ->
    Keys = ?config(keys, Config),
    Dir = ?config(priv_dir, Config),
    ok = filelib:ensure_path(Keys),
    sh("ssh-keygen -q -t ed25519 -N '' -f ~ts/id_ed25519", [Keys]),
    sh("ssh-keygen -q -t ed25519 -N '' -f ~ts/hostkey", [Dir]),
    {ok, Public} = file:read_file(filename:join(Keys, "id_ed25519.pub")),
    ok = file:write_file(filename:join(Dir, "authorized_keys"), Public),
    {ok, HostKey} = file:read_file(filename:join(Dir, "hostkey.pub")),
    [Kind, Key | _] = string:lexemes(binary_to_list(HostKey), " \n"),
    ok = file:write_file(filename:join(Keys, "known_hosts"),
                         [["[", Host, "]:", integer_to_list(Port), " ", Kind, " ", Key, "\n"]
                          || Host <- ?config(hosts, Config), Port <- [?PORT, ?TALKATIVE_PORT]]),
    Talkative = integer_to_list(?TALKATIVE_PORT),
    ok = file:write_file(filename:join(Dir, "sshd_config"),
                         ["Port ", integer_to_list(?PORT), "\nPort ", Talkative, "\nPort 22\n"
                          "HostKey ", Dir, "/hostkey\n"
                          "AuthorizedKeysFile ", Dir, "/authorized_keys\nPidFile none\n"
                          "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
                          "UsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\n"
                          "Subsystem sftp internal-sftp\n"
                          "Match LocalPort ", Talkative, "\n"
                          "ForceCommand printf hello; exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n"]).

%% One certificate for all hosts, as if each had its own. The key of this one needs no password.
certificate(Config) ->
    Key = {key, {namedCurve, secp256r1}},
    Digest = {digest, sha256}, % the default, SHA-1, is refused by ssl of OTP 27 and later
    Names = #'Extension'{extnID = ?'id-ce-subjectAltName', critical = false,
                         extnValue = [{dNSName, Host} || Host <- ?config(hosts, Config)]
                             ++ [{iPAddress, list_to_binary(tuple_to_list(Address))}
                                 || Host <- ?config(hosts, Config),
                                    {ok, Address} <- [inet:parse_address(Host)]]},
    Chain = #{root => [Key, Digest], intermediates => [],
              peer => [Key, Digest, {extensions, [Names]}]},
    #{server_config := Made} = public_key:pkix_test_data(#{server_chain => Chain,
                                                           client_chain => Chain}),
    {KeyType, KeyDer} = proplists:get_value(key, Made),
    Files = [{authority, [{'Certificate', Der} || Der <- proplists:get_value(cacerts, Made)]},
             {certificate, [{'Certificate', proplists:get_value(cert, Made)}]},
             {key, [{KeyType, KeyDer}]}],
    [ok = file:write_file(pem(Name, Config),
                          public_key:pem_encode([{Type, Der, not_encrypted}
                                                 || {Type, Der} <- Entries]))
     || {Name, Entries} <- Files].

pem(Name, Config) -> filename:join(?config(priv_dir, Config), atom_to_list(Name) ++ ".pem").

tls_options(Config) ->
    [{certfile, pem(certificate, Config)}, {keyfile, pem(key, Config)},
     {cacertfile, pem(authority, Config)}, {password, "open sesame"}].

%% One bridge in this namespace, a leg of it in each host.
network(Config) ->
    Mark = ?config(mark, Config),
    sh("ip link add wb~ts type bridge; ip link set wb~ts up; ip addr add 10.99.77.254/24 dev wb~ts",
       [Mark, Mark, Mark]).

start_host(N, Config) ->
    Mark = ?config(mark, Config),
    ok = filelib:ensure_path(filename:join(?config(priv_dir, Config),
                                           "host" ++ integer_to_list(N))),
    ok = filelib:ensure_path(?config(dir, Config)),
    ok = filelib:ensure_path("/run/sshd"),
    Name = host_name(N, Config),
    sh("ip netns add ~ts; ip link add v~ts~b type veth peer name eth0 netns ~ts; "
       "ip link set v~ts~b master wb~ts up; ip -n ~ts link set lo up; "
       "ip -n ~ts addr add 10.99.77.~b/24 dev eth0; ip -n ~ts link set eth0 up",
       [Name, Mark, N, Name, Mark, N, Mark, Name, Name, N, Name]),
    serve(N, Config).

serve(N, Config) ->
    Dir = ?config(priv_dir, Config),
    Own = filename:join(Dir, "host" ++ integer_to_list(N)),
    sh("ip netns exec ~ts unshare -m sh -c 'mount --bind ~ts ~ts; "
       "for f in .profile .bash_profile .bash_login .bashrc; do "
       "if [ -e ~~/$f ]; then mount --bind /dev/null ~~/$f; fi; done; "
       "/usr/sbin/sshd -D -f ~ts/sshd_config -E ~ts/sshd.log < /dev/null > /dev/null 2>&1 & "
       "echo $! > ~ts/sshd.pid'",
       [host_name(N, Config), Own, ?config(dir, Config), Dir, Own, Own]).

host_name(N, Config) -> "wd" ++ ?config(mark, Config) ++ "-" ++ integer_to_list(N).

listens(Host) ->
    case gen_tcp:connect(Host, ?PORT, [], 1000) of
        {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
        {error, _} -> false
    end.

end_per_suite(Config) ->
    _ = run(down, Config),
    Mark = ?config(mark, Config),
    _ = [stop_host(N, Config) || N <- lists:seq(1, length(?config(hosts, Config)))],
    sh("ip link del wb~ts; rmdir ~ts", [Mark, ?config(dir, Config)]),
    ok.

stop_host(N, Config) ->
    kill_all(N, Config),
    sh("ip netns del ~ts", [host_name(N, Config)]).

%% What runs there is of this suite.
kill_all(N, Config) ->
    sh("for p in $(ip netns pids ~ts); do kill -9 $p; done", [host_name(N, Config)]).

%% --- the deployment -----------------------------------------------------------------------------

deployment(Config) -> deployment(flags(), Config).

deployment(Flags, Config) ->
    written([{name, shop}, {dir, ?config(dir, Config)},
             {family, web, #{count => count(), weft => weft_settings(Config), flags => Flags}}],
            Config).

%% With what both deployments have in common.
written(Terms, Config) ->
    All = [{provider, {ssh, #{user => "root", port => ?PORT, keys => "keys"}}},
           {hosts, [{Host, #{cores => 1}} || Host <- ?config(hosts, Config)]},
           {epmd_port, 4391}, {stable_s, 0.2}, {parallel, 4},
           {erl, filename:join([code:root_dir(), "bin", "erl"])} | Terms],
    ok = file:write_file(?config(file, Config), [io_lib:format("~p.~n", [T]) || T <- All]).

weft_settings(Config) ->
    [{transport, tls}, {stock_nodes, deny}, {tls_options, tls_options(Config)}].

flags() -> ["+S", "1:1", "+sbwt", "none"].

run(Function, Config) -> run(Function, [], Config).

run(Function, Words, Config) ->
    Options = #{root => ?config(root, Config), progress => fun(Line) -> ct:log("~ts", [Line]) end},
    Result = apply(weft_deploy, Function, [?config(file, Config) | Words] ++ [Options]),
    ct:log("~s ~p~n~tp", [Function, Words, Result]),
    Result.

count() ->
    {Hosts, Each} = size(),
    Hosts * Each.

%% --- cases --------------------------------------------------------------------------------------

up_and_the_second_time_nothing(Config) ->
    deployment(Config),
    {ok, #{started := Started, failed := []}, _} = run(apply, Config),
    ?assertEqual(count(), length(Started)),
    ?assertMatch({ok, #{started := [], stopped := [], changed := [], failed := []}, _},
                 run(apply, Config)),
    {ok, #{nodes := Nodes}, _} = run(status, Config),
    PerHost = [length([N || #{host := At} = N <- Nodes, At =:= list_to_binary(Host)])
               || Host <- ?config(hosts, Config)],
    ?assertEqual([count() div length(PerHost)], lists:usort(PerHost)).

%% From here, which has neither their cookie nor their certificate. Nothing is left on the hosts.
nodes_are_looked_at(Config) ->
    Up = io_lib:format("~b of ~b nodes up, topology full_mesh", [count(), count()]),
    [?assertMatch({_, {match, _}}, {Words, re:run(weft(Words, Config), Said, [multiline])})
     || {Words, Said} <- [{"status", [Up, "(.*\n)*web1 +[0-9]+ .* web2(.*\n)*0$"]},
                          {"why web1 web2", "Path: direct(.*\n)*0$"},
                          {"doctor", io_lib:format("^shop: ~b nodes examined", [count()])}]],
    [weft_test_nodes:until(fun() -> length(string:split(beams(N, Config), "beam", all))
                                        =:= count() div length(?config(hosts, Config)) + 1
                           end) || N <- [1, 2]].

%% What the command says, and its exit code.
weft(Words, Config) -> sh("~ts; echo $?", [weft_line(Words, Config)]).

weft_line(Words, Config) ->
    io_lib:format("~ts/bin/weft ~ts --cluster ~ts --dir ~ts 2>&1",
                  [?config(priv_dir, Config), Words, ?config(file, Config), ?config(root, Config)]).

an_unknown_host_key_is_refused(Config) ->
    Known = filename:join(?config(keys, Config), "known_hosts"),
    {ok, Right} = file:read_file(Known),
    ok = file:write_file(Known, <<>>),
    {wanting, #{lost := [#{why := Why} | _] = Lost, start := []}, _} = run(plan, Config),
    ok = file:write_file(Known, Right),
    ?assertEqual(length(?config(hosts, Config)), length(Lost)),
    ?assertMatch({match, _}, re:run(Why, "known_hosts")).

%% With all that it has started but for nodes, and the host can be worked with afterwards.
a_script_that_takes_too_long_is_ended(Config) ->
    Connection = connected(?PORT, Config),
    Script = "echo begun; sleep 3601 & sleep 3602 | cat & wait\n",
    ?assertEqual({error, "a command took too long"},
                 weft_deploy_ssh:run(Connection, Script, 2000)),
    weft_test_nodes:until(fun() -> sleepers(Config) =:= "" end),
    ?assertEqual({ok, 3, <<"one\ntwo\n">>},
                 weft_deploy_ssh:run(Connection, "echo one; echo two >&2; exit 3\n", 20000)),
    ok = weft_deploy_ssh:close(Connection),
    ?assertMatch({ok, #{started := [], stopped := [], failed := []}, _}, run(apply, Config)).

connected(Port, Config) ->
    {ok, Connection} = weft_deploy_ssh:open("10.99.77.1", #{keys => ?config(keys, Config),
                                                            user => "root", port => Port}),
    Connection.

%% A profile that ends no line: what the shell says next is on the same one.
what_a_profile_says_is_not_what_a_script_says(Config) ->
    Connection = connected(?TALKATIVE_PORT, Config),
    ?assertEqual({ok, 3, <<"one\n">>},
                 weft_deploy_ssh:run(Connection, "echo one; exit 3\n", 20000)),
    ?assertEqual({error, "a command took too long"},
                 weft_deploy_ssh:run(Connection, "sleep 3603 & wait\n", 2000)),
    weft_test_nodes:until(fun() -> sleepers(Config) =:= "" end),
    ok = weft_deploy_ssh:close(Connection).

sleepers(Config) ->
    sh("for p in $(ip netns pids ~ts); do tr '\\0' ' ' < /proc/$p/cmdline; echo; done "
       "| grep '^sleep 360'", [host_name(1, Config)]).

%% Nodes of its own, by the program ssh; what is deployed stays.
the_benchmark_measures_between_them(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "bench"),
    0 = weft_papers_cli:main(["--cluster", ?config(file, Config), "--quick", "--repetitions", "1",
                              "--only", "^a small 10 B x 1$", "--variants", "stock,weft_1",
                              "--out", Dir]),
    {ok, Rows} = weft_report_record:read(Dir),
    [?assertMatch([_ | _], [Value || #{variant := V, metric := Metric, value := Value,
                                       link := <<"hosts">>} <- Rows,
                                     V =:= Variant, Metric =:= Of, Value > 0])
     || Variant <- [<<"stock">>, <<"weft_1">>],
        Of <- [<<"messages_per_s">>, <<"cpu_us_per_message">>]],
    ?assertMatch({ok, #{<<"hosts">> := <<"1: 10.99.77.1, 2: 10.99.77.2">>, <<"cores">> := _,
                        <<"congestion_control">> := _, <<"commit">> := _}},
                 weft_report_record:read_environment(Dir)),
    nothing_is_left(Config).

%% As the guide says, with one of its cells.
figures_are_measured_between_them(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "figures"),
    0 = weft_papers_cli:main(["--cluster", ?config(file, Config), "--suites", "e", "--only",
                              "unicast.1.MB x 16$", "--repetitions", "1",
                              "--out", filename:join(Dir, "partisan_1")]),
    0 = weft_papers_cli:main(["figures", Dir]),
    Figures = ["partisan_1", "partisan_3", "partisan_4"],
    ?assertEqual([Figure ++ ".svg" || Figure <- Figures], filelib:wildcard("*.svg", Dir)),
    {ok, Page} = file:read_file(filename:join(Dir, "README.md")),
    [?assertMatch({_, [_]}, {Figure, binary:matches(Page, iolist_to_binary(["\n## ", Figure,
                                                                            "\n"]))})
     || Figure <- Figures],
    nothing_is_left(Config).

%% What is deployed goes on, and hosts have nothing of the benchmark.
nothing_is_left(Config) ->
    ?assertMatch({ok, #{started := [], stopped := [], failed := []}, _}, run(apply, Config)),
    [begin
         Own = filename:join(?config(priv_dir, Config), "host" ++ integer_to_list(N)),
         ?assertNot(filelib:is_file(filename:join(Own, "bench"))),
         ?assertEqual("", sh("for p in $(ip netns pids ~ts); do "
                             "tr '\\0' ' ' < /proc/$p/cmdline; echo; done | grep /bench/",
                             [host_name(N, Config)]))
     end || N <- [1, 2]].

%% Nodes that only take TLS are called from both hosts. What both did is in one report.
a_load_is_on_several_hosts(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "load"),
    ?assertEqual(0, weft_papers_cli:main(load(4, Config) ++ ["--out", Dir])),
    [Whole | Each] = [called(filename:join(Dir, Name)) || Name <- [".", "1", "2"]],
    ct:log("~b calls, ~w of each host", [Whole, Each]),
    ?assertEqual([], [Count || Count <- Each, Count =:= 0]),
    ?assertEqual(lists:sum(Each), Whole),
    {ok, Environment} = weft_report_record:read_environment(Dir),
    ?assertMatch(#{<<"hosts">> := <<"1: 10.99.77.1, 2: 10.99.77.2">>,
                   <<"deployment">> := <<"shop">>, <<"cores">> := _}, Environment),
    {ok, Page} = file:read_file(weft_report_load:file(Dir)),
    ?assertMatch({_, _}, binary:match(Page, <<"10.99.77.2">>)),
    nothing_is_left(Config).

%% On the first two hosts, for the nodes on all.
load(Seconds, Config) ->
    File = filename:join(?config(priv_dir, Config), "load.config"),
    ok = file:write_file(File, io_lib:format(
                                 "{driver, weft_load_driver_call}. {operations, [{node, {erlang, "
                                 "node, []}, 1}]}.~n{mode, {rate, 20}}. {concurrent, 2}. "
                                 "{duration, {seconds, ~b}}. {report_interval, 1}.~n", [Seconds])),
    ["load", File, "--cluster", ?config(file, Config), "--hosts", "10.99.77.1,10.99.77.2"].

called(Dir) ->
    {ok, Text} = file:read_file(filename:join(Dir, "total.csv")),
    [_Head, [_Seconds, <<"node">>, Count | _]] = weft_report_csv:parse(Text),
    binary_to_integer(Count).

%% Twice, so that nothing is waited for. What was measured is in the report.
an_interrupted_load_leaves_nothing(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "interrupted"),
    Port = weft_bench_command:open(["exec ", weft_bench_command:line(load(600, Config)
                                                                     ++ ["--out", Dir])]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    Measured = filename:join(Dir, "2/histograms.terms"),
    weft_test_nodes:until(fun() -> filelib:file_size(Measured) > 0 end, 120000),
    [] = os:cmd(io_lib:format("kill -TERM ~b; sleep 0.1; kill -TERM ~b", [OsPid, OsPid])),
    {Status, Output} = weft_bench_command:collect(Port),
    ct:log("~ts", [Output]),
    ?assertEqual(130, Status),
    ?assert(called(Dir) > 0),
    ?assert(filelib:is_regular(weft_report_load:file(Dir))),
    nothing_is_left(Config).

%% Before anything is begun, and the others are left as they were.
a_host_that_can_not_have_a_load_is_named(Config) ->
    {ok, Terms} = file:consult(?config(file, Config)),
    {ok, Load} = weft_load_config:read(lists:nth(2, load(1, Config))),
    File = filename:join(?config(priv_dir, Config), "other.deploy"),
    Refused = fun(Term) ->
                  Other = lists:keystore(element(1, Term), 1, Terms, Term),
                  ok = file:write_file(File, [io_lib:format("~p.~n", [T]) || T <- Other]),
                  {error, Text} = weft_papers_load_hosts:open(File, all, Load),
                  ct:log("~ts", [Text]),
                  Text
              end,
    Nobody = "10.99.77.99",
    ?assertMatch({match, _}, re:run(Refused({hosts, ?config(hosts, Config) ++ [Nobody]}),
                                    "^" ++ Nobody ++ ": ssh: ")),
    ?assertMatch({match, _}, re:run(Refused({erl, "/no/erl"}),
                                    "^10.99.77.1: .*there is no program /no/erl")),
    nothing_is_left(Config).

%% All that runs on the first host is killed while one node more is started on each host, and while
%% somebody looks.
a_host_that_dies_is_told_and_the_rest_goes_on(Config) ->
    Line = lists:flatten(["exec ", weft_line("watch --interval 0.5", Config)]),
    Watch = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Line]}, binary]),
    {os_pid, Watching} = erlang:port_info(Watch, os_pid),
    said(Watch, "\nweb1 +[0-9]", <<>>),
    Hosts = length(?config(hosts, Config)),
    New = "web" ++ integer_to_list(count() + 1) ++ "@10.99.77.1",
    Started = filename:join([?config(priv_dir, Config), "host1", "nodes", New, "pid"]),
    Killer = spawn_link(fun() ->
                                weft_test_nodes:until(fun() -> filelib:is_file(Started) end),
                                kill_all(1, Config)
                        end),
    {wanting, #{started := Others, failed := Failed}, _} =
        run(scale, [["web=" ++ integer_to_list(count() + Hosts)]], Config),
    weft_test_nodes:until(fun() -> not is_process_alive(Killer) end),
    ?assertEqual(Hosts - 1, length(Others)),
    ?assertEqual([list_to_binary(New)], [What || #{what := What} <- Failed]),
    {wanting, #{start := [], lost := [#{what := <<"10.99.77.1">>}]}, _} = run(plan, Config),
    said(Watch, "\n10.99.77.1 can not be reached: the connection to it was lost", <<>>),
    "" = sh("kill ~b", [Watching]),
    Status = weft("status", Config),
    [?assertMatch({_, {match, _}}, {Said, re:run(Status, Said)})
     || Said <- ["\nweb1 +not known\n", "\nweb[0-9]+ +[0-9]+ ",
                 "\n10.99.77.1 can not be reached: ssh: .*\n1\n$"]],
    serve(1, Config),
    weft_test_nodes:until(fun() -> listens("10.99.77.1") end),
    {ok, #{started := Again, failed := []}, _} = run(apply, Config),
    ?assertEqual(count() div Hosts + 1, length(Again)),
    ?assertMatch({ok, #{started := [], stopped := [], failed := []}, _}, run(apply, Config)).

said(Watch, Text, Before) ->
    case re:run(Before, Text) of
        {match, _} -> ok;
        nomatch ->
            receive {Watch, {data, Data}} -> said(Watch, Text, <<Before/binary, Data/binary>>)
            after 60000 -> ct:fail({not_said, Text, Before})
            end
    end.

%% All that runs on the last host is killed while a node starts there that is upgraded. Nothing is
%% rolled back for that, and when the host is there again the upgrade goes on.
a_host_that_dies_blames_no_version(Config) ->
    deployment(flags() ++ ["+A", "2"], Config),
    Last = length(?config(hosts, Config)),
    Host = list_to_binary(lists:last(?config(hosts, Config))),
    {wanting, #{nodes := Nodes}, _} = run(status, Config),
    [Node | _] = [binary_to_list(Name) || #{node := Name, host := At} <- Nodes, At =:= Host],
    [Id, Pid] = [filename:join([?config(priv_dir, Config), "host" ++ integer_to_list(Last),
                                "nodes", Node, File]) || File <- ["id", "pid"]],
    IsNew = [is_new(File) || File <- [Id, Pid]],
    %% Its turn may come when most others have had theirs.
    Killer = spawn_link(fun() ->
                                weft_test_nodes:until(
                                  fun() -> lists:all(fun(New) -> New() end, IsNew) end, 900000),
                                kill_all(Last, Config)
                        end),
    {wanting, Ended, _} = run(upgrade, Config),
    weft_test_nodes:until(fun() -> not is_process_alive(Killer) end),
    ?assertMatch(#{rolled_back := [], bad := [], failed := [#{what := _}]}, Ended),
    #{failed := [#{what := What, why := Why}]} = Ended,
    ?assertEqual(list_to_binary(Node), What),
    ?assertMatch({match, _}, re:run(Why, "its host does not answer")),
    serve(Last, Config),
    weft_test_nodes:until(fun() -> listens(binary_to_list(Host)) end),
    ?assertMatch({ok, #{unproven := [_]}, _}, run(plan, Config)),
    ?assertMatch({ok, #{rolled_back := [], bad := [], failed := []}, _}, run(upgrade, Config)),
    %% Others died with the host, and are no part of the upgrade.
    ?assertMatch({ok, #{failed := []}, _}, run(apply, Config)),
    nothing_changes(Config).

%% Has a file another content by now?
is_new(File) ->
    {ok, Before} = file:read_file(File),
    fun() ->
            case file:read_file(File) of
                {ok, Now} -> Now =/= Before;
                {error, enoent} -> false
            end
    end.

down_leaves_nothing(Config) ->
    {ok, #{stopped := Stopped, failed := []}, _} = run(down, Config),
    ?assertEqual(count() + length(?config(hosts, Config)), length(Stopped)),
    [begin
         ?assertEqual(none, beams(N, Config)),
         Own = filename:join(?config(priv_dir, Config), "host" ++ integer_to_list(N)),
         ?assertEqual(["deployment", "logs", "nodes", "releases", "state"],
                      lists:sort(filelib:wildcard("{*,.[a-z]*}", Own)) -- ["sshd.log", "sshd.pid"]),
         ?assertEqual([], filelib:wildcard("nodes/*", Own))
     end || N <- lists:seq(1, length(?config(hosts, Config)))].

%% A process that ends meanwhile is none, and what is said of its file is no name.
beams(N, Config) ->
    case sh("for p in $(ip netns pids ~ts); do cat /proc/$p/comm 2> /dev/null; done"
            " | grep -E 'beam|epmd'", [host_name(N, Config)]) of
        "" -> none;
        Left -> Left
    end.

%% Up, upgraded and down by one command each, in a deployment of its own, in which two gateways are
%% between two groups. Nodes of the families `near' and `far' stay as they are, one on each host:
%% people talk there meanwhile, and each sends numbers to one that is in the other group. How long
%% it takes is in the file hosts.csv, with the machine beside it.
nobody_who_stays_loses_anything(Config0) ->
    Config = lists:keyreplace(file, 1, Config0,
                              {file, filename:join(?config(priv_dir, Config0), "talk.deploy")}),
    Kept = filename:join(?config(priv_dir, Config), "hosts"),
    ok = environment(Kept),
    ok = in_groups(1, Config),
    {UpS, {ok, #{started := Started, failed := []}, _}} = timed(fun() -> run(apply, Config) end),
    ?assertEqual(count(), length(Started)),
    nothing_changes(Config),
    #{s := UpgradeS, said := Said, numbers := Numbers} =
        weft_deploy:reach(?config(file, Config), #{root => ?config(root, Config)},
                          fun(Reach) -> upgraded_while_people_talk(Reach, Config) end),
    nothing_changes(Config),
    {DownS, {ok, #{stopped := Stopped, failed := []}, _}} = timed(fun() -> run(down, Config) end),
    ?assertEqual(count(), length(Stopped)),
    [?assertEqual({N, none}, {N, beams(N, Config)})
     || N <- lists:seq(1, length(?config(hosts, Config)))],
    Csv = io_lib:format("hosts,nodes,up_s,upgrade_s,down_s,messages,numbers~n"
                        "~b,~b,~.2f,~.2f,~.2f,~b,~b~n",
                        [length(?config(hosts, Config)), count(), UpS, UpgradeS, DownS, Said,
                         Numbers]),
    ct:pal("~ts", [Csv]),
    ok = file:write_file(filename:join(Kept, "hosts.csv"), Csv).

%% What the numbers depend on.
environment(Dir) ->
    Flags = lists:append(lists:join(" ", flags())),
    ok = filelib:ensure_path(Dir),
    weft_report_record:write_environment(
      Dir, weft_bench_environment:gather([{"flags_of_nodes", Flags}])).

timed(Fun) ->
    {Us, Result} = timer:tc(Fun),
    {Us / 1.0e6, Result}.

nothing_changes(Config) ->
    ?assertMatch({ok, #{started := [], stopped := [], changed := [], failed := []}, _},
                 run(apply, Config)).

%% Four nodes on each of the eight hosts.
in_groups(Version, Config) ->
    {Near, Far} = lists:split(4, ?config(hosts, Config)),
    [Gate1, Gate2 | Others] = ?config(hosts, Config),
    Stays = #{paths => weft_deploy_talk:code(?config(priv_dir, Config)),
              flags => flags() ++ weft_deploy_talk:flags()},
    New = #{flags => flags(), env => [{shop, [{version, Version}]}]},
    Families = [{near, Stays#{count => 4, hosts => Near, groups => [front]}},
                {far, Stays#{count => 4, hosts => Far, groups => [back]}},
                {gate, New#{count => 2, hosts => [Gate1, Gate2], groups => [front, back]}},
                {web, New#{count => 16, groups => [front]}},
                {db, New#{count => 6, hosts => Others, groups => [back]}}],
    written([{name, talk}, {dir, ?config(dir, Config) ++ "/talk"}, {healthy_s, 120},
             {drain_s, 120}
             | [{family, Name, Family#{weft => weft_settings(Config)}}
                || {Name, Family} <- Families]], Config).

upgraded_while_people_talk(Reach, Config) ->
    Call = fun(Node, M, F, A) -> weft_deploy_reach:call(Node, M, F, A, ?CALL_MS, Reach) end,
    {Near, Far} = lists:split(4, ?config(hosts, Config)),
    %% The next one is in the other group.
    Talkers = lists:append([[talker("near", Number, NearHost), talker("far", Number, FarHost)]
                            || {Number, NearHost, FarHost}
                                   <- lists:zip3(lists:seq(1, 4), Near, Far)]),
    weft_deploy_talk:during(Talkers, Call, fun() -> all_others(count() - 8, Config) end).

talker(Family, Number, Host) -> list_to_atom(lists:concat([Family, Number, "@", Host])).

all_others(Count, Config) ->
    ok = in_groups(2, Config),
    {ok, #{upgraded := Upgraded, rolled_back := [], failed := []}, _} = run(upgrade, Config),
    ?assertEqual(Count, length(Upgraded)),
    ok.

%% Each file and each command of the chapter, with the application of another page. What the reader
%% does by other means is to let the key in; names of hosts and the directory are others.
the_guide_from_a_release_to_three_hosts(Config) ->
    Dir = ?config(priv_dir, Config),
    Shop = [{Name, Text} || {file, "shop/" ++ _ = Name, Text} <- weft_guide:steps("start.md")],
    [{file, "shop/shop.deploy" = File, Deployment}, {script, Keys}, {script, Use}] =
        [Step || Step <- weft_guide:steps("deploy.md"),
                 element(1, Step) =:= file orelse lists:prefix("cd shop\n", element(2, Step))],
    Others = [{"a.example.org", "10.99.77.1"}, {"b.example.org", "10.99.77.2"},
              {"c.example.org", "10.99.77.3"}, {"/srv/shop", ?config(dir, Config) ++ "/guide"},
              {"<this repository>", "file://" ++ Dir ++ "/repository"}],
    [begin
         ok = filelib:ensure_dir(filename:join(Dir, Name)),
         ok = file:write_file(filename:join(Dir, Name), other_words(Text, Others))
     end || {Name, Text} <- [{File, Deployment} | Shop]],
    repository(Dir ++ "/repository"),
    Place = {Dir, [{"PATH", Dir ++ "/bin:" ++ os:getenv("PATH")}, {"HOME", Dir}]},
    Run = fun(Script) ->
              weft_guide:run(other_words(Script, Others), Place, #{epmd => #{port => 4369}})
          end,
    {0, _} = Run(Keys),
    {ok, Public} = file:read_file(Dir ++ "/shop/keys/id_ed25519.pub"),
    ok = file:write_file(Dir ++ "/authorized_keys", Public, [append]),
    {0, Said} = Run(Use),
    [?assertNotEqual({Said, nomatch}, {Said, string:find(Said, Part)})
     || Part <- ["3 changes, 0 as they should be", "3 started, 0 stopped, 0 failed",
                 "3 of 3 nodes up", "0 started, 3 stopped, 0 failed"]],
    ?assert(length(string:lexemes(Keys ++ Use, "\n")) =< 10).

other_words(Text, Others) ->
    lists:foldl(fun({Old, New}, Now) ->
                        lists:flatten(string:replace(Now, Old, New, all))
                end, Text, Others).

%% Where weft comes from.
repository(Dir) ->
    ok = filelib:ensure_path(Dir ++ "/apps/weft"),
    "" = sh("cp -r ~ts/apps/weft/src ~ts/apps/weft", [weft_guide:root(), Dir]),
    "" = sh("cd ~ts && git init -q . && git checkout -q -b main && git add -A "
            "&& git -c user.name=x -c user.email=x commit -q -m x", [Dir]).

%% The command `weft', of the code that is tested.
command(Dir) ->
    ok = filelib:ensure_path(Dir),
    Paths = [[" -pa ", Path] || Path <- code:get_path(), string:find(Path, "_build") =/= nomatch],
    ok = file:write_file(Dir ++ "/weft",
                         ["#!/bin/sh\nexec erl -noinput", Paths, " -eval "
                          "'weft_cli:main(init:get_plain_arguments())' -extra \"$@\"\n"]),
    ok = file:change_mode(Dir ++ "/weft", 8#755).
