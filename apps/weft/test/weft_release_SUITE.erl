%% SPDX-License-Identifier: Apache-2.0
%% @doc weft in a release: embedded mode, a boot script, configuration from sys.config.
%%
%% In embedded mode the kernel starts the distribution before the on_load functions of modules have
%% run (crypto is not there yet) and before any other application is started.
-module(weft_release_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([embedded_nodes_connect_and_read_their_sys_config/1,
         a_wrong_value_stops_the_boot_with_a_text/1,
         an_unknown_option_stops_the_boot_with_a_text/1]).

suite() -> [{timetrap, {seconds, 60}}].

all() ->
    [embedded_nodes_connect_and_read_their_sys_config, a_wrong_value_stops_the_boot_with_a_text,
     an_unknown_option_stops_the_boot_with_a_text].

init_per_suite(Config) ->
    Boot = boot_script(?config(priv_dir, Config)),
    weft_test_nodes:begin_suite([{boot, Boot} | Config]).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

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

start(Name, SysConfig, Config) ->
    Options = #{args => embedded_args(SysConfig, Config)},
    weft_test_nodes:start(Name, Options, ?config(place, Config)).

embedded_args(SysConfig, Config) ->
    ["-mode", "embedded", "-boot", ?config(boot, Config), "-config", SysConfig].

%% What a node that does not come up says.
boot_output(Env, Config) ->
    #{epmd := #{port := EpmdPort}} = ?config(place, Config),
    Args = ["-sname", "c", "-noinput", "-proto_dist", "weft"]
        ++ embedded_args(sys_config(Env, Config), Config),
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
