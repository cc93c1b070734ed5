%% SPDX-License-Identifier: Apache-2.0
%% @doc The command about deployments: what the guide says of them, and what is seen of their nodes.
%%
%% The nodes that are looked at use TLS and refuse nodes without weft: web1 and db1, which have no
%% link and talk all the time, and the gateway between them. Hosts that are lost are those of
%% weft_deploy_ssh_SUITE.
-module(weft_cli_deploy_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([what_can_not_be_looked_at_is_told/1, status_shows_what_runs/1, way_and_reasons/1,
         watch_shows_rates/1, doctor_finds_nothing/1, profile_records_nodes/1,
         a_dead_node_is_shown/1,
         watch_ends_with_the_deployment/1, deploy_as_the_guide_says/1]).

-define(NODES, ["db1@127.0.0.1", "gate1@127.0.0.1", "web1@127.0.0.1"]).

suite() -> [{timetrap, {minutes, 3}}].

%% The first case is about what is not up yet.
all() ->
    [what_can_not_be_looked_at_is_told, status_shows_what_runs, way_and_reasons,
     watch_shows_rates, doctor_finds_nothing, profile_records_nodes, a_dead_node_is_shown,
     watch_ends_with_the_deployment, deploy_as_the_guide_says].

init_per_suite(Config0) ->
    Config = [{command, weft_cli_build:file()}, {port, weft_test_nodes:free_port()}
              | [{emulator, weft_cli_emulator:start()} || os:getenv("FULL") =:= false]] ++ Config0,
    Certificates = filename:join(?config(priv_dir, Config), "tls"),
    ok = weft_local_tls:create(Certificates),
    Tls = [{transport, tls}, {stock_nodes, deny},
           {tls_options, weft_local_tls:options(Certificates)}],
    Talk = "spawn(fun F() -> net_adm:ping('db1@127.0.0.1'), "
        "timer:sleep(5), F() end).", % pacing: some hundred calls a second
    Common = #{weft => Tls, flags => ["+S", "1:1", "+sbwt", "none"]},
    ok = write("shop.deploy", [{name, shop}, {epmd_port, ?config(port, Config)}, {stable_s, 0.2},
                               {family, web, Common#{groups => [front],
                                                     flags => ["+S", "1:1", "-eval", Talk]}},
                               {family, gate, Common#{groups => [front, back]}},
                               {family, db, Common#{groups => [back]}}], Config),
    Config.

write(Name, Terms, Config) ->
    file:write_file(filename:join(?config(priv_dir, Config), Name),
                    [io_lib:format("~p.~n", [Term]) || Term <- Terms]).

end_per_suite(Config) ->
    _ = weft("deploy down shop.deploy", Config),
    [ok = weft_cli_emulator:stop(Emulator) || {emulator, Emulator} <- Config],
    ok.

init_per_testcase(Case, Config) ->
    _ = Case =:= what_can_not_be_looked_at_is_told orelse Case =:= deploy_as_the_guide_says
        orelse applied(Config),
    Config.

applied(Config) -> {0, _} = weft("deploy apply shop.deploy", Config).

end_per_testcase(_Case, _Config) -> ok.

%% --- cases --------------------------------------------------------------------------------------

what_can_not_be_looked_at_is_told(Config) ->
    ok = write("local.config", [{links, [{a, b}]}], Config),
    ok = write("stock.deploy", [{name, stock}, {carrier, stock}, {family, web, #{}}], Config),
    [?assertMatch({_, {Code, _}, {match, _}}, {Words, Answer, re:run(Text, Expected)})
     || {Words, Code, Expected} <-
            [{"status --cluster none.deploy", 2, "none.deploy: no such file"},
             {"watch --cluster local.config", 2, "local.config: .*links"},
             {"status --cluster shop.deploy --name local", 2, "give one"},
             {"doctor --cluster shop.deploy --node a@b", 2, "give one"},
             {"status --cluster shop.deploy", 3, "no node of shop runs in .*weft deploy apply"},
             {"doctor --cluster stock.deploy", 1, "have no weft"}],
        {_, Text} = Answer <- [weft(Words, Config)]].

%% As the operating system has it. A node that has just started may have dialled the other end
%% before it knew of the gateway.
status_shows_what_runs(Config) ->
    weft_test_nodes:until(fun() ->
                                  #{<<"links">> := #{<<"used">> := Used}} = json("status", Config),
                                  Used =:= 2
                          end),
    Status = json("status", Config),
    ?assertMatch(#{<<"name">> := <<"shop">>, <<"lost">> := [],
                   <<"topology">> := <<"groups (back, front)">>,
                   <<"links">> := #{<<"used">> := 2, <<"full_mesh">> := 3}}, Status),
    {0, Deployed} = weft("deploy status shop.deploy --json", Config),
    {ok, #{<<"nodes">> := Rows}} = weft_json:decode(unicode:characters_to_binary(Deployed)),
    ?assertEqual([{Node, true, Pid} || #{<<"node">> := Node, <<"os_pid">> := Pid} <- Rows],
                 [{Node, Runs, Pid} || #{<<"node">> := Node, <<"running">> := Runs,
                                         <<"os_pid">> := Pid} <- maps:get(<<"nodes">>, Status)]),
    {0, Text} = weft("status --cluster shop.deploy", Config),
    [?assertMatch({_, {match, _}}, {Line, re:run(Text, Line, [multiline])})
     || Line <- ["^shop: 3 of 3 nodes up, topology groups \\(back, front\\)$",
                 "^gate1 +[0-9]+ .* db1 web1$", "^front +gate1 web1 +back: gate1$"]].

way_and_reasons(Config) ->
    until_said("trace web1 db1", "web1 -> db1: 2 links, the way their session goes", Config),
    until_said("why web1 db1", "a circuit of 2 links by way of gate1@127.0.0.1: web1 - gate1 - db1",
               Config),
    ?assertMatch({4, "weft: no node web9 in the cluster shop: it has db1 gate1 web1" ++ _},
                 weft("trace web9 db1 --cluster shop.deploy", Config)).

watch_shows_rates(Config) ->
    {0, Text} = weft("watch --cluster shop.deploy --count 2 --interval 1 --json", Config),
    [#{<<"all">> := #{<<"bytes_out_per_s">> := null}}, #{<<"nodes">> := Nodes} = Second] =
        [element(2, weft_json:decode(unicode:characters_to_binary(Line)))
         || Line <- string:lexemes(Text, "\n")],
    ?assertMatch(#{<<"nodes_up">> := 3, <<"lost">> := []}, Second),
    ?assertEqual(?NODES, [binary_to_list(Node) || #{<<"node">> := Node} <- Nodes]),
    [?assertMatch(#{<<"running">> := true, <<"bytes_out_per_s">> := Out} when Out > 0, Row)
     || Row <- Nodes],
    [?assertMatch(#{<<"relayed_per_s">> := Relayed} when Relayed > 0, Row)
     || #{<<"node">> := <<"gate1@127.0.0.1">>} = Row <- Nodes].

%% The machine may be busy.
doctor_finds_nothing(Config) ->
    weft_test_nodes:until(fun() -> found(Config) =:= [] end),
    {_, Text} = weft("doctor --cluster shop.deploy", Config),
    ?assertMatch({match, _}, re:run(Text, "^shop: 3 nodes examined in ")).

found(Config) ->
    {_, Text} = weft("doctor --cluster shop.deploy --json", Config),
    {ok, #{<<"findings">> := Findings}} = weft_json:decode(unicode:characters_to_binary(Text)),
    [{Check, Nodes} || #{<<"check">> := Check, <<"severity">> := Severity, <<"nodes">> := Nodes}
                           <- Findings, Severity =/= <<"note">>, Check =/= <<"schedulers">>].

%% web1 and db1 talk over the gateway.
profile_records_nodes(Config) ->
    {0, Text} = weft("profile web1 gate1 db1 --cluster shop.deploy --seconds 1 --continuous "
                     "--out profile", Config),
    [?assertMatch({_, {match, _}}, {Words, re:run(Text, Words)})
     || Words <- ["web1 +[0-9]+ +", "web1 +-> +db1 +[0-9]+ +median .* by way of gate1",
                  "trace.json"]],
    Dir = filename:join(?config(priv_dir, Config), "profile"),
    [?assert(filelib:file_size(filename:join(Dir, File)) > 100)
     || File <- ["trace.json", "summary.html", "flame.svg"]],
    {4, Nobody} = weft("profile web9 --cluster shop.deploy", Config),
    ?assertMatch({match, _}, re:run(Nobody, "no node web9")).

a_dead_node_is_shown(Config) ->
    [Pid] = [Pid || #{<<"node">> := <<"db1@", _/binary>>, <<"os_pid">> := Pid}
                        <- maps:get(<<"nodes">>, json("status", Config))],
    [] = os:cmd("kill -KILL " ++ integer_to_list(Pid)),
    weft_test_nodes:until(fun() ->
                                  [db1] =:= [db1 || #{<<"node">> := <<"db1@", _/binary>>,
                                                      <<"running">> := false}
                                                        <- maps:get(<<"nodes">>,
                                                                    json("status", Config))]
                          end),
    {0, Text} = weft("status --cluster shop.deploy", Config),
    [?assertMatch({_, {match, _}}, {Line, re:run(Text, Line, [multiline])})
     || Line <- ["^shop: 2 of 3 nodes up", "^db1 +down$"]],
    ?assertMatch({4, "weft: db1 is not running: weft deploy apply shop.deploy" ++ _},
                 weft("trace db1 web1 --cluster shop.deploy", Config)),
    {0, Why} = weft("why web1 db1 --cluster shop.deploy", Config),
    ?assertMatch({match, _}, re:run(Why, "db1 is not running: weft deploy apply shop.deploy")),
    {1, Found} = weft("doctor --cluster shop.deploy", Config),
    ?assertMatch({match, _}, re:run(Found, "error on db1: does not answer")).

%% Nothing of the commands before is left beside the nodes.
watch_ends_with_the_deployment(Config) ->
    Dir = ?config(priv_dir, Config),
    Port = open_port({spawn_executable, ?config(command, Config)},
                     [{args, ["watch", "--cluster", "shop.deploy", "--interval", "0.2"]},
                      {cd, Dir}, exit_status, stderr_to_stdout, binary]),
    receive {Port, {data, First}} -> ?assertMatch({match, _}, re:run(First, "^shop at ")) end,
    weft_test_nodes:until(fun() -> beside(Config) =:= 1 end),
    ?assertMatch({0, _}, weft("deploy down shop.deploy", Config)),
    {Code, Output} = ended(Port, <<>>),
    ?assertEqual(3, Code),
    ?assertMatch({match, _}, re:run(Output, "weft: the cluster shop is down")),
    weft_test_nodes:until(fun() -> beside(Config) =:= 0 end).

ended(Port, Output) ->
    receive
        {Port, {data, Data}} -> ended(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Code}} -> {Code, Output}
    end.

%% Emulators whose home is the directory of the deployment itself.
beside(Config) ->
    Home = unicode:characters_to_binary(
             [0, "HOME=", filename:join(?config(priv_dir, Config), ".weft/deploy/shop/host"), 0]),
    length([File || File <- filelib:wildcard("/proc/[0-9]*/environ"),
                    {ok, Environment} <- [file:read_file(File)],
                    binary:match(<<0, Environment/binary>>, Home) =/= nomatch,
                    {ok, <<"beam.smp\n">>} <- [file:read_file(filename:dirname(File) ++ "/comm")]]).

%% The commands of docs/guide/deploy.md, as they are written there; only the port is a free one, and
%% what goes on for ever looks once. With FULL=1 also those again that it has more than once, and
%% those that start all nodes anew, which weft_deploy_SUITE usually shows.
deploy_as_the_guide_says(Config) ->
    [File | _] = weft_guide:page("deploy.md", "erlang terms deploy"),
    Dir = filename:join(?config(priv_dir, Config), "deployment"),
    ok = filelib:ensure_path(Dir),
    Port = integer_to_list(weft_test_nodes:free_port()),
    ok = file:write_file(filename:join(Dir, "shop.deploy"), string:replace(File, "4390", Port)),
    All = [Line || Script <- weft_guide:page("deploy.md", "sh"),
                   "weft " ++ _ = Line <- string:lexemes(Script, "\n")],
    Looks = [Line || Line <- All, string:find(Line, " --cluster ") =/= nomatch],
    ?assertEqual(6, length(Looks)),
    Lines = usually(All -- Looks),
    ?assert(length(Lines) >= 10),
    try
        [?assertMatch({_, {0, _}}, {Line, weft_cli_emulator:line(Dir, Line, Config)})
         || Line <- with_looks(Lines, Looks)]
    after
        weft_cli_emulator:line(Dir, "weft deploy down shop.deploy", Config)
    end,
    ?assertEqual([], filelib:wildcard(Dir ++ "/.weft/deploy/shop/host/nodes/*")).

usually(All) ->
    Back = lists:reverse(All),
    case os:getenv("FULL") of
        false -> [Line || Line <- lists:reverse(Back -- (Back -- lists:usort(Back))),
                          re:run(Line, "upgrade|rollback") =:= nomatch];
        _ -> All
    end.

%% As soon as there are nodes. What the doctor finds is a matter of the machine, too.
with_looks(Lines, Looks) ->
    {Before, [Apply | After]} =
        lists:splitwith(fun(Line) -> Line =/= "weft deploy apply shop.deploy" end, Lines),
    Before ++ [Apply | [shortly(Line) || Line <- Looks, string:find(Line, "doctor") =:= nomatch]]
        ++ After.

shortly("weft watch" ++ _ = Line) -> Line ++ " --count 1";
shortly("weft profile" ++ _ = Line) -> Line ++ " --seconds 1";
shortly(Line) -> Line.

%% --- helpers ------------------------------------------------------------------------------------

weft(Words, Config) ->
    {Code, Said} = weft_cli_emulator:line(?config(priv_dir, Config), "weft " ++ Words, Config),
    {Code, unicode:characters_to_list(Said)}.

json(Words, Config) ->
    {0, Text} = weft(Words ++ " --cluster shop.deploy --json", Config),
    {ok, Json} = weft_json:decode(unicode:characters_to_binary(Text)),
    Json.

until_said(Words, Text, Config) ->
    weft_test_nodes:until(fun() ->
                                  {Code, Said} = weft(Words ++ " --cluster shop.deploy", Config),
                                  Code =:= 0 andalso string:find(Said, Text) =/= nomatch
                          end).
