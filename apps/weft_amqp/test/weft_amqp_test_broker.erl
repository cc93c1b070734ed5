%% SPDX-License-Identifier: Apache-2.0
%% @doc A RabbitMQ broker for one suite: own ports and directory, an epmd that the suite brings
%% along, loopback only. It lives as a child of a shell that reads from us, and ends with it,
%% whatever happens to this emulator. The process that starts it must be the one that stops it.
-module(weft_amqp_test_broker).

-export([is_installed/0, client_dirs/0, new/2, start/1, stop/1, ctl/2, url/1, url/3]).
-export_type([broker/0]).

-define(BIN, "/usr/lib/rabbitmq/bin/").
-define(START_MS, 120000).
-define(CTL_MS, 60000).
%% Kills the process group when its input ends, and when the program ends.
-define(SHELL, "{ \"$@\" </dev/null >\"$0\" 2>&1; kill -KILL -$$; } & read line; kill -KILL -$$").

-type broker() :: #{name := string(), dir := file:filename(), port := inet:port_number(),
                    dist_port := inet:port_number(), epmd_port := inet:port_number(),
                    running => port()}.

-spec is_installed() -> boolean().
is_installed() ->
    filelib:is_regular(?BIN "rabbitmq-server") andalso code:which(amqp_client) =/= non_existing.

%% @doc Where the object code of RabbitMQ's client and of what it needs is, without that of OTP.
-spec client_dirs() -> [file:filename()].
client_dirs() ->
    [filename:join(Dir, "ebin") || App <- needed([amqp_client], []), Dir <- [code:lib_dir(App)],
                                   not lists:prefix(code:lib_dir() ++ "/", Dir)].

needed([], Known) ->
    Known;
needed([App | Others], Known) ->
    case lists:member(App, Known) of
        true ->
            needed(Others, Known);
        false ->
            _ = application:load(App),
            {ok, Needs} = application:get_key(App, applications),
            needed(Needs ++ Others, [App | Known])
    end.

%% @doc A broker that was not started yet. Those with one epmd can form a cluster.
-spec new(file:filename(), EpmdPort :: inet:port_number()) -> broker().
new(Dir, EpmdPort) ->
    Port = weft_test_nodes:free_port(),
    ok = filelib:ensure_dir(filename:join([Dir, "home", "x"])),
    CookieFile = filename:join([Dir, "home", ".erlang.cookie"]),
    ok = file:write_file(CookieFile, integer_to_list(EpmdPort) ++ os:getpid()),
    ok = file:change_mode(CookieFile, 8#400),
    ok = file:write_file(filename:join(Dir, "plugins"), "[].\n"),
    ok = file:write_file(filename:join(Dir, "rabbitmq.conf"), config(Port)),
    #{name => lists:concat(["weft", Port, "@localhost"]), dir => Dir, port => Port,
      dist_port => weft_test_nodes:free_port(), epmd_port => EpmdPort}.

config(Port) ->
    ["listeners.tcp.default = 127.0.0.1:", integer_to_list(Port), "\n"
     "log.console = true\nlog.console.level = info\nlog.file = false\n"
     "disk_free_limit.absolute = 50MB\nvm_memory_high_watermark.absolute = 1024MB\n"].

%% @doc Starts it, also again, and waits until it serves.
-spec start(broker()) -> broker().
start(#{dir := Dir} = Broker) ->
    Log = filename:join(Dir, "broker.log"),
    _ = file:delete(Log),
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", ?SHELL, Log, ?BIN "rabbitmq-server"]}, {env, env(Broker)},
                      exit_status]),
    ok = weft_test_nodes:until(fun() -> contains(Log, "Server startup complete") end, ?START_MS),
    Broker#{running => Port}.

%% @doc Kills it; what it had in memory is lost.
-spec stop(broker()) -> broker().
stop(#{running := Port} = Broker) ->
    true = port_command(Port, "end\n"),
    receive {Port, {exit_status, _}} -> ok after ?CTL_MS -> error(still_running) end,
    maps:remove(running, Broker);
stop(Broker) ->
    Broker.

%% @doc Runs rabbitmqctl.
-spec ctl([string()], broker()) -> string().
ctl(Args, #{name := Name} = Broker) ->
    Port = open_port({spawn_executable, ?BIN "rabbitmqctl"},
                     [{args, ["-n", Name | Args]}, {env, env(Broker)}, exit_status,
                      stderr_to_stdout]),
    {0, Output} = collect(Port, ""),
    Output.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, Output ++ Data);
        {Port, {exit_status, Status}} -> {Status, Output}
    after ?CTL_MS -> error({rabbitmqctl, Output})
    end.

-spec url(broker()) -> string().
url(Broker) -> url("guest", "guest", Broker).

-spec url(User :: string(), Password :: string(), broker()) -> string().
url(User, Password, #{port := Port}) ->
    lists:concat(["amqp://", User, ":", Password, "@127.0.0.1:", Port]).

contains(File, Text) ->
    case file:read_file(File) of
        {ok, Bin} -> binary:match(Bin, list_to_binary(Text)) =/= nomatch;
        {error, enoent} -> false
    end.

env(#{name := Name, dir := Dir, port := Port, dist_port := DistPort, epmd_port := EpmdPort}) ->
    Files = [{"CONFIG_FILE", "rabbitmq.conf"}, {"ENABLED_PLUGINS_FILE", "plugins"},
             {"MNESIA_BASE", "mnesia"}, {"LOG_BASE", "log"}, {"PID_FILE", "pid"},
             {"GENERATED_CONFIG_DIR", "generated"}, {"SCHEMA_DIR", "schema"},
             {"FEATURE_FLAGS_FILE", "feature_flags"}],
    [{"RABBITMQ_NODENAME", Name}, {"RABBITMQ_NODE_PORT", integer_to_list(Port)},
     {"RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1"},
     {"RABBITMQ_DIST_PORT", integer_to_list(DistPort)}, {"RABBITMQ_CONF_ENV_FILE", "/dev/null"},
     {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none "
      "-kernel inet_dist_use_interface {127,0,0,1}"},
     {"HOME", filename:join(Dir, "home")}, {"ERL_EPMD_PORT", integer_to_list(EpmdPort)},
     {"ERL_EPMD_ADDRESS", "127.0.0.1"}, {"LC_ALL", "C.UTF-8"}, {"ERL_LIBS", false},
     {"ERL_FLAGS", false}, {"ERL_CRASH_DUMP_BYTES", "0"}]
        ++ [{"RABBITMQ_" ++ Key, filename:join(Dir, File)} || {Key, File} <- Files].
