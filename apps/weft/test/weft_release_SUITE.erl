%% SPDX-License-Identifier: Apache-2.0
%% @doc weft in a release: embedded mode, a boot script, configuration from sys.config.
%%
%% In embedded mode the kernel starts the distribution before the on_load functions of modules have
%% run (crypto is not there yet) and before any other application is started.
%%
%% And releases made by the tools, rebar3 (relx) and mix, of which each verb of the script is used
%% against a node with groups.
-module(weft_release_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([embedded_nodes_connect_and_read_their_sys_config/1,
         a_wrong_value_stops_the_boot_with_a_text/1,
         an_unknown_option_stops_the_boot_with_a_text/1,
         a_carrier_given_twice_is_taken_or_stops_the_boot_with_a_text/1, verbs_of_a_relx_release/1,
         verbs_of_a_mix_release/1]).

%% A verb starts a VM or two.
-define(VERB_MS, 120000).
-define(COOKIE, "weft_test").

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [embedded_nodes_connect_and_read_their_sys_config, a_wrong_value_stops_the_boot_with_a_text,
     a_carrier_given_twice_is_taken_or_stops_the_boot_with_a_text, verbs_of_a_relx_release]
        ++ [Case || os:getenv("FULL") =:= "1",
                    Case <- [verbs_of_a_mix_release, an_unknown_option_stops_the_boot_with_a_text]].

init_per_suite(Config) ->
    Boot = boot_script(?config(priv_dir, Config)),
    weft_test_nodes:begin_suite([{boot, Boot} | Config]).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% The node of a release writes where it can be found.
end_per_testcase(Case, Config) ->
    _ = [os:cmd("kill -KILL " ++ binary_to_list(OsPid))
         || {ok, OsPid} <- [file:read_file(os_pid_file(Case, Config))]],
    weft_test_nodes:stop_all().

embedded_nodes_connect_and_read_their_sys_config(Config) ->
    SysConfig = sys_config([{resume_timeout_ms, 4321}], Config),
    [A, #{node := NodeB}] = [start(Name, SysConfig, Config) || Name <- [a, b]],
    ?assertEqual(embedded, weft_test_nodes:call(A, code, get_mode, [])),
    ?assertEqual(pong, weft_test_nodes:call(A, net_adm, ping, [NodeB])),
    ?assertEqual(NodeB, weft_test_nodes:call(A, erpc, call, [NodeB, erlang, node, []])),
    ?assertEqual(4321, weft_test_nodes:call(A, weft_config, get, [resume_timeout_ms])),
    ?assertMatch([{NodeB, Pid}] when is_pid(Pid),
                 weft_test_nodes:call(A, erlang, system_info, [dist_ctrl])).

a_wrong_value_stops_the_boot_with_a_text(Config) ->
    Output = boot_output([{lanes, 0}], Config),
    ?assertNotEqual(nomatch, string:find(Output, "lanes is 0, it must be an integer from 1 to 64")).

an_unknown_option_stops_the_boot_with_a_text(Config) ->
    Output = boot_output([{lane, 2}], Config),
    ?assertNotEqual(nomatch, string:find(Output, "unknown option lane, did you mean lanes?")).

%% As happens with a flag in vm.args and in ERL_FLAGS: the kernel ignores both.
%% Since OTP 29 the first one is taken.
a_carrier_given_twice_is_taken_or_stops_the_boot_with_a_text(Config) ->
    Taken = "is_pid(whereis(weft_links)) andalso begin io:put_chars(\"it is taken\"), halt(1) end.",
    Output = boot_output([{topology, full_mesh}], ["-proto_dist", "weft", "-eval", Taken], Config),
    ?assertMatch({match, _}, re:run(Output, "-proto_dist is given 2 times|it is taken")).

%% --- release tools ----------------------------------------------------------------------------

verbs_of_a_relx_release(Config) ->
    Case = ?FUNCTION_NAME,
    Dir = project(Case, Config,
                  [{"rebar.config",
                    "{relx, [{release, {relx, \"1\"}, [relx, weft, sasl]}, {mode, prod},\n"
                    "        {include_erts, false}, {extended_start_script, true},\n"
                    "        {sys_config, \"sys.config\"}, {vm_args, \"vm.args\"}]}.\n"},
                   {"src/relx.app.src",
                    "{application, relx, [{vsn, \"1\"}, {applications, [kernel, stdlib]}]}.\n"},
                   {"sys.config", io_lib:format("~0p.~n", [[{weft, groups_of(relx)}]])},
                   {"vm.args", ["-sname relx\n-setcookie " ?COOKIE "\n",
                                "-proto_dist weft -env ERL_LIBS lib\n-connect_all false\n"]}]),
    made(run("rebar3", ["release"], [{"ERL_LIBS", libs()}, {"REBAR_BASE_DIR", false}], Dir, Config),
         fun() ->
                 Script = filename:join(Dir, "_build/default/rel/relx/bin/relx"),
                 Verb = fun(Verb) -> run(Script, Verb, [], Dir, Config) end,
                 relx_verbs(Verb, fun() -> shell(Script, "remote_console", Dir, Config) end,
                            os_pid_file(Case, Config), Config)
         end).

%% `daemon' and `stop' ask the node themselves until it is there, or gone. Each verb starts VMs, so
%% what does not need one is seen without.
relx_verbs(Verb, Shell, OsPidFile, Config) ->
    Name = atom_to_list(weft_test_nodes:node_name(relx)),
    {0, _} = Verb(["daemon"]),
    {0, OsPid} = Verb(["pid"]),
    ok = file:write_file(OsPidFile, OsPid),
    Member = member(relx, Config),
    Incarnation = until_started(relx, none, Member),
    ?assertEqual({0, "pong"}, Verb(["ping"])),
    ?assertEqual({0, "2"}, Verb(["eval", "1+1."])),
    ?assertEqual({0, Name}, Verb(["rpc", "erlang", "node"])),
    ?assertMatch({match, _}, re:run(Shell(), "i am " ++ Name)),
    {0, _} = Verb(["restart"]),
    _ = until_started(relx, Incarnation, Member),
    ?assertEqual(OsPid, weft_test_nodes:call(Member, erpc, call,
                                             [weft_test_nodes:node_name(relx), os, getpid, []])),
    {0, _} = Verb(["stop"]),
    ?assertMatch({1, _}, Verb(["ping"])).

%% Its applications run, in another incarnation of the node than the one before. A member is asked,
%% as a verb takes long.
until_started(Release, Before, Member) ->
    Node = weft_test_nodes:node_name(Release),
    Ask = fun(Module, Function) ->
                  try weft_test_nodes:call(Member, erpc, call, [Node, Module, Function, [], 5000])
                  catch _:_ -> nothing
                  end
          end,
    Ref = make_ref(),
    weft_test_nodes:until(
      fun() ->
              Now = Ask(weft_identity, incarnation),
              Apps = Ask(application, which_applications),
              IsStarted = not lists:member(Now, [Before, nothing]) andalso is_list(Apps)
                  andalso lists:keymember(Release, 1, Apps),
              _ = [self() ! {Ref, Now} || IsStarted],
              IsStarted
      end, ?VERB_MS),
    receive {Ref, Incarnation} -> Incarnation end.

verbs_of_a_mix_release(Config) ->
    Case = ?FUNCTION_NAME,
    Environment = [{"ERL_LIBS", libs()}, {"MIX_ENV", "prod"}],
    Dir = project(Case, Config,
                  [{"mix.exs",
                    "defmodule Mixed.MixProject do\n"
                    "  use Mix.Project\n"
                    "  def project, do: [app: :mixed, version: \"1.0.0\", releases: [mixed: [\n"
                    "    include_erts: false, cookie: \"" ?COOKIE "\",\n"
                    "    applications: [weft: :permanent]]]]\n"
                    "  def application, do: []\n"
                    "end\n"},
                   {"lib/mixed.ex", "defmodule Mixed do\nend\n"},
                   {"config/config.exs",
                    ["import Config\nconfig :weft, :erlang.binary_to_term(Base.decode64!(\"",
                     base64:encode(term_to_binary(groups_of(mixed))), "\"))\n"]},
                   {"rel/vm.args.eex", "-proto_dist weft\n-connect_all false\n"}]),
    made(run("mix", ["release"], Environment, Dir, Config),
         fun() ->
                 Script = filename:join(Dir, "_build/prod/rel/mixed/bin/mixed"),
                 Verb = fun(Verb) -> run(Script, Verb, [], Dir, Config) end,
                 mix_verbs(Verb, fun() -> shell(Script, "remote", Dir, Config) end,
                           os_pid_file(Case, Config), Config)
         end).

mix_verbs(Verb, Shell, OsPidFile, Config) ->
    Name = atom_to_list(weft_test_nodes:node_name(mixed)),
    {0, _} = Verb(["daemon"]),
    Member = member(mixed, Config),
    Incarnation = until_started(mixed, none, Member),
    {0, OsPid} = Verb(["pid"]),
    ok = file:write_file(OsPidFile, OsPid),
    ?assertEqual({0, "2"}, Verb(["eval", "IO.puts(1 + 1)"])),
    ?assertEqual({0, Name}, Verb(["rpc", "IO.puts(node())"])),
    ?assertMatch({match, _}, re:run(Shell(), "i am " ++ Name)),
    {0, _} = Verb(["restart"]),
    _ = until_started(mixed, Incarnation, Member),
    ?assertEqual({0, OsPid}, Verb(["pid"])),
    {0, _} = Verb(["stop"]),
    weft_test_nodes:until(fun() -> not filelib:is_dir("/proc/" ++ OsPid) end, ?VERB_MS).

%% What a remote shell prints when the expression is typed into it. Without its terminal its node
%% ends.
shell(Script, Verb, Dir, Config) ->
    Port = opened(os:find_executable("script"), ["-qec", Script ++ " " ++ Verb, "/dev/null"],
                  [{"TERM", "xterm"}], Dir, Config),
    Prompt = shown(Port, ")1>", []),
    true = port_command(Port, typed(Verb)),
    Output = shown(Port, ")2>", Prompt),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    port_close(Port),
    _ = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
    Output.

typed("remote_console") -> "io:format(\"i ~s ~p~n\", [am, node()]).\n";
typed("remote") -> "IO.puts(\"i \" <> \"am #{node()}\")\n".

shown(Port, Text, Output) ->
    case string:find(Output, Text) of
        nomatch ->
            receive {Port, {data, Data}} -> shown(Port, Text, lists:flatten([Output, Data]))
            after ?VERB_MS -> ct:fail({not_shown, Text, Output})
            end;
        _ ->
            Output
    end.

%% Groups with a node of a release in one of them.
groups_of(Release) ->
    [A, B, C] = [weft_test_nodes:node_name(Name) || Name <- [Release, b, c]],
    [{topology, {groups, #{one => [A, B], two => [B, C]}}}].

%% Another member, once the release is linked to one and routed to this one.
member(Release, Config) ->
    Options = #{config => groups_of(Release), args => ["-connect_all", "false"]},
    [B, C] = [weft_test_nodes:start(Name, Options, ?config(place, Config)) || Name <- [b, c]],
    [{ok, _} = weft_test_nodes:call(Node, application, ensure_all_started, [weft])
     || Node <- [B, C]],
    Node = weft_test_nodes:node_name(Release),
    weft_test_nodes:until(fun() -> weft_test_nodes:call(C, net_adm, ping, [Node]) =:= pong end,
                          ?VERB_MS),
    C.

project(Case, Config, Files) ->
    Dir = filename:join(?config(priv_dir, Config), Case),
    [begin
         File = filename:join(Dir, Name),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, Content)
     end || {Name, Content} <- Files],
    Dir.

os_pid_file(Case, Config) ->
    filename:join(?config(priv_dir, Config), atom_to_list(Case) ++ ".os_pid").

%% Where the applications under test are.
libs() -> filename:dirname(filename:dirname(weft_test_nodes:ebin(weft_dist))).

made({0, _}, Verbs) ->
    case os:find_executable("script") of
        false -> {skip, "no program `script` to give a remote shell a terminal"};
        _ -> Verbs()
    end;
made({error, Reason}, _Verbs) -> {skip, Reason};
made({Status, Output}, _Verbs) -> ct:fail({not_made, Status, Output}).

%% Exit code and output of a program.
run(Program, Arguments, Environment, Dir, Config) ->
    case os:find_executable(Program) of
        false -> {error, "there is no " ++ Program ++ " here"};
        Executable -> ended(opened(Executable, Arguments, Environment, Dir, Config), [])
    end.

opened(Executable, Arguments, Environment, Dir, Config) ->
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    open_port({spawn_executable, Executable},
              [{args, Arguments}, {cd, Dir}, exit_status, stderr_to_stdout,
               {env, [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}, {"ERL_LIBS", false}
                      | Environment]}]).

ended(Port, Output) ->
    receive
        {Port, {data, Data}} -> ended(Port, [Output, Data]);
        {Port, {exit_status, Status}} -> {Status, string:trim(lists:flatten(Output))}
    after ?VERB_MS ->
        ct:fail({still_running, Output})
    end.

%% --- small parts ------------------------------------------------------------------------------

start(Name, SysConfig, Config) ->
    Options = #{args => embedded_args(SysConfig, Config)},
    weft_test_nodes:start(Name, Options, ?config(place, Config)).

embedded_args(SysConfig, Config) ->
    ["-mode", "embedded", "-boot", ?config(boot, Config), "-config", SysConfig].

%% What a node that does not come up says.
boot_output(Env, Config) ->
    boot_output(Env, [], Config).

boot_output(Env, More, Config) ->
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    Args = ["-sname", "c", "-noinput", "-proto_dist", "weft"]
        ++ More ++ embedded_args(sys_config(Env, Config), Config),
    Port = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [{args, Args}, {env, [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)},
                                           {"ERL_CRASH_DUMP_SECONDS", "0"}]},
                      exit_status, stderr_to_stdout, use_stdio]),
    output(Port, []).

output(Port, Acc) ->
    receive
        {Port, {data, Data}} -> output(Port, [Acc, Data]);
        {Port, {exit_status, Status}} -> ?assertNotEqual(0, Status), lists:flatten(Acc)
    after 30000 ->
        ct:fail("the node is still running")
    end.

sys_config(Env, Config) ->
    Name = "sys" ++ integer_to_list(erlang:unique_integer([positive])),
    Base = filename:join(?config(priv_dir, Config), Name),
    ok = file:write_file(Base ++ ".config", io_lib:format("~0p.~n", [[{weft, Env}]])),
    Base.

%% The boot script of a release with weft, as a release tool makes it.
boot_script(Dir) ->
    Base = filename:join(Dir, "with_weft"),
    Apps = [{App, version(App)} || App <- [kernel, stdlib, crypto, asn1, public_key, ssl, weft]],
    Release = {release, {"with_weft", "1"}, {erts, erlang:system_info(version)}, Apps},
    ok = file:write_file(Base ++ ".rel", io_lib:format("~0p.~n", [Release])),
    {ok, _, _} = systools:make_script(Base, [{outdir, Dir}, no_dot_erlang, silent, local,
                                             {path, [weft_test_nodes:ebin(weft_dist)]}]),
    Base.

version(App) ->
    _ = application:load(App),
    {ok, Version} = application:get_key(App, vsn),
    Version.
