%% SPDX-License-Identifier: Apache-2.0
%% @doc Three RabbitMQ brokers on this machine, each on a loopback address of its own so that the
%% network between them can be cut by address, with their own epmd, cookie and directories.
%%
%% The distribution carrier is a parameter; the brokers and `rabbitmqctl' are those installed,
%% unchanged. They form a cluster when they start. The first one is configured as the only one, and
%% the others find it: of those that know of others, version 3.10 serves alone if it finds none of
%% them, and version 4 waits for one. rabbitmqctl, and the node from which expressions are evaluated
%% in brokers, always have the stock carrier.
-module(weft_rabbitmq_brokers).

-export([installed/0, new/2, start/1, stop/1, ctl/3, eval/3, eval_all/2, cluster_status/2, views/1,
         amqp_address/2, all_nodes/1, network/1, log_lines/2]).

-type ordinal() :: 1..3.
-type brokers() :: #{carrier := stock | weft, dir := file:filename(), epmd := pid(),
                     epmd_port := inet:port_number(), amqp_port := inet:port_number(),
                     dist_ports := [inet:port_number()], running := #{ordinal() => pid()},
                     cookie := string(), control => pid()}.
-export_type([brokers/0, ordinal/0]).

-define(BIN, "/usr/lib/rabbitmq/bin/").
-define(NUMBERS, [1, 2, 3]).
%% Host addresses 1 to 6.
-define(NETWORK, "127.0.7.0/29").
-define(START_MS, 150000).
-define(CTL_MS, 40000).

%% @doc Whether there is a server, and its client library on the code path.
-spec installed() -> boolean().
installed() ->
    filelib:is_regular(?BIN "rabbitmq-server") andalso code:which(amqp_client) =/= non_existing.

%% @doc Three brokers that do not run yet, and their epmd, which does.
-spec new(stock | weft, file:filename()) -> brokers().
new(Carrier, Dir) ->
    [EpmdPort, AmqpPort | DistPorts] = free_ports(2 + length(?NUMBERS), []),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Epmd = weft_rabbitmq_process:start(
             #{command => os:find_executable("epmd"), output => filename:join(Dir, "epmd.out"),
               args => ["-port", integer_to_list(EpmdPort), "-address",
                        lists:append(lists:join(",", [host(N) || N <- ?NUMBERS]))]}),
    Cookie = integer_to_list(erlang:unique_integer([positive])) ++ "_" ++ os:getpid(),
    #{carrier => Carrier, dir => Dir, epmd => Epmd, epmd_port => EpmdPort, amqp_port => AmqpPort,
      dist_ports => DistPorts, running => #{}, cookie => Cookie}.

%% @doc Starts them, and waits until they serve.
-spec start(brokers()) -> brokers().
start(Brokers) ->
    lists:foldl(fun start_more/2, Brokers#{control => start_control(Brokers)}, [[1], [2, 3]]).

start_more(Numbers, #{running := Running} = Brokers) ->
    More = maps:from_list([{N, start_one(N, Brokers)} || N <- Numbers]),
    Started = Brokers#{running := maps:merge(Running, More)},
    try
        lists:foreach(fun(N) -> wait_until_serving(N, Started) end, Numbers),
        Started
    catch
        Class:Reason:Stack ->
            stop(Started),
            erlang:raise(Class, Reason, Stack)
    end.

%% Hidden, so that no broker takes it for one of them.
start_control(#{epmd_port := EpmdPort, cookie := Cookie}) ->
    {ok, Control, _} =
        peer:start(#{name => "control" ++ os:getpid(), host => "127.0.0.1", longnames => true,
                     connection => standard_io,
                     exec => filename:join([code:root_dir(), "bin", "erl"]),
                     env => [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}],
                     args => ["-hidden", "-setcookie", Cookie]}),
    Control.

-spec stop(brokers()) -> ok.
stop(#{epmd := Epmd, running := Running} = Brokers) ->
    _ = [peer:stop(Control) || #{control := Control} <- [Brokers]],
    lists:foreach(fun weft_rabbitmq_process:stop/1, maps:values(Running) ++ [Epmd]).

%% @doc Runs `rabbitmqctl Args' for one broker.
-spec ctl(ordinal(), [string()], brokers()) -> {ExitCode :: non_neg_integer(), binary()}.
ctl(N, Args, Brokers) ->
    weft_rabbitmq_process:run(#{command => ?BIN "rabbitmqctl",
                                args => ["-n", atom_to_list(node_name(N)) | Args],
                                env => common_env(N, Brokers)}, ?CTL_MS).

%% @doc The value of Erlang expressions evaluated in a broker.
-spec eval(ordinal(), iodata(), brokers()) -> term().
eval(N, Expressions, #{control := Control}) ->
    {ok, Tokens, _} = erl_scan:string(binary_to_list(iolist_to_binary(Expressions))),
    {ok, Parsed} = erl_parse:parse_exprs(Tokens),
    {value, Value, _} = peer:call(Control, erpc, call,
                                  [node_name(N), erl_eval, exprs, [Parsed, []], ?CTL_MS],
                                  2 * ?CTL_MS),
    Value.

%% @doc The same in all brokers at the same time; `Expressions' depend on the broker's number.
-spec eval_all(fun((ordinal()) -> iodata()), brokers()) -> [term()].
eval_all(Expressions, Brokers) ->
    Calls = [spawn_monitor(fun() -> exit({value, eval(N, Expressions(N), Brokers)}) end)
             || N <- ?NUMBERS],
    [receive {'DOWN', Monitor, process, Pid, {value, Value}} -> Value;
             {'DOWN', Monitor, process, Pid, Failure} -> error(Failure)
     end || {Pid, Monitor} <- Calls].

%% @doc What rabbitmqctl says of the cluster: its running nodes, and partitions that are remembered
%% (versions without Mnesia, as 4.3, know none).
-spec cluster_status(ordinal(), brokers()) ->
    #{running := [node()], partitions := [{Node :: binary(), Away :: [binary()]}]}.
cluster_status(N, Brokers) ->
    {0, Output} = ctl(N, ["-q", "cluster_status", "--formatter", "json"], Brokers),
    #{<<"running_nodes">> := Running} = Status = rabbit_json:decode(iolist_to_binary(Output)),
    #{running => lists:sort([binary_to_atom(Node) || Node <- Running]),
      partitions => maps:to_list(maps:get(<<"partitions">>, Status, #{}))}.

%% @doc The same as each broker sees it, asked inside.
-spec views(brokers()) -> [#{running := [node()], partitions := [node()]}].
views(Brokers) ->
    See = "Running = case erlang:function_exported(rabbit_nodes, list_running, 0) of"
          "    true -> rabbit_nodes:list_running();"
          "    false -> rabbit_mnesia:cluster_nodes(running)"
          "  end,"
          "Partitions = case erlang:function_exported(rabbit_node_monitor, partitions, 0) of"
          "    true -> rabbit_node_monitor:partitions();"
          "    false -> []"
          "  end,"
          "#{running => lists:sort(Running), partitions => Partitions}.",
    eval_all(fun(_) -> See end, Brokers).

-spec amqp_address(ordinal(), brokers()) -> {string(), inet:port_number()}.
amqp_address(N, #{amqp_port := Port}) ->
    {host(N), Port}.

-spec all_nodes(brokers()) -> [node()].
all_nodes(_Brokers) ->
    [node_name(N) || N <- ?NUMBERS].

%% @doc The network of all brokers, and the ports of the distribution there. (One port for all would
%% do but for RabbitMQ, which believes it taken when another name in epmd has it.)
-spec network(brokers()) -> {string(), [inet:port_number()]}.
network(#{dist_ports := Ports}) ->
    {?NETWORK, Ports}.

%% @doc Number of lines in the brokers' logs that match.
-spec log_lines(iodata(), brokers()) -> non_neg_integer().
log_lines(Pattern, Brokers) ->
    lists:sum([matches(log(N, Brokers), Pattern) || N <- ?NUMBERS]).

start_one(N, #{dir := Dir, cookie := Cookie} = Brokers) ->
    Own = own_dir(N, Brokers),
    ok = filelib:ensure_dir(filename:join([Own, "home", "x"])),
    CookieFile = filename:join([Own, "home", ".erlang.cookie"]),
    ok = file:write_file(CookieFile, Cookie),
    ok = file:change_mode(CookieFile, 8#400),
    ok = file:write_file(filename:join(Own, "plugins"), "[]."),
    ok = file:write_file(filename:join(Own, "rabbitmq.conf"), configuration(N, Brokers)),
    weft_rabbitmq_process:start(#{command => ?BIN "rabbitmq-server", env => env(N, Brokers),
                                  output => filename:join(Dir, integer_to_list(N) ++ ".out")}).

configuration(N, #{amqp_port := Port} = Brokers) ->
    ["listeners.tcp.default = ", host(N), ":", integer_to_list(Port), "\n"
     "log.console = false\n"
     "log.file = ", log(N, Brokers), "\n"
     "disk_free_limit.absolute = 50MB\n"
     "vm_memory_high_watermark.absolute = 512MB\n"
     "cluster_formation.peer_discovery_backend = classic_config\n"
     | [["cluster_formation.classic_config.nodes.", integer_to_list(M), " = ",
         atom_to_list(node_name(M)), "\n"] || M <- ?NUMBERS, N > 1 orelse M =:= 1]].

env(N, #{dist_ports := DistPorts} = Brokers) ->
    Own = own_dir(N, Brokers),
    Files = [{"CONFIG_FILE", "rabbitmq.conf"}, {"ENABLED_PLUGINS_FILE", "plugins"},
             {"MNESIA_BASE", "mnesia"}, {"LOG_BASE", "log"}, {"PID_FILE", "pid"},
             {"GENERATED_CONFIG_DIR", "generated"}, {"SCHEMA_DIR", "schema"},
             {"FEATURE_FLAGS_FILE", "feature_flags"}],
    [{"RABBITMQ_NODENAME", atom_to_list(node_name(N))},
     {"RABBITMQ_DIST_PORT", integer_to_list(lists:nth(N, DistPorts))},
     {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", lists:flatten(lists:join(" ", erl_args(N, Brokers)))}]
    ++ [{"RABBITMQ_" ++ Name, filename:join(Own, File)} || {Name, File} <- Files]
    ++ plugins_env(Own) ++ common_env(N, Brokers).

%% There are no plugins to start, so none need be looked for, which takes a third of a start: a
%% directory with no more applications than a broker insists on.
plugins_env(Own) ->
    Plugins = filename:join(Own, "only"),
    ok = filelib:ensure_dir(filename:join(Plugins, "x")),
    Installed = filename:dirname(code:lib_dir(amqp_client)),
    Needed = [Path || Name <- ["rabbit-*", "rabbit_common-*"],
                      Path <- filelib:wildcard(filename:join(Installed, Name))],
    _ = [file:make_symlink(Path, filename:join(Plugins, filename:basename(Path)))
         || Path <- Needed],
    [{"RABBITMQ_PLUGINS_DIR", Plugins} || length(Needed) =:= 2].

%% What rabbitmqctl needs as well.
common_env(N, #{epmd_port := EpmdPort, carrier := Carrier} = Brokers) ->
    [{"HOME", filename:join(own_dir(N, Brokers), "home")}, {"RABBITMQ_CONF_ENV_FILE", "/dev/null"},
     {"RABBITMQ_USE_LONGNAME", "true"}, {"ERL_EPMD_PORT", integer_to_list(EpmdPort)},
     {"LC_ALL", "C.UTF-8"}, {"ERL_LIBS", false}, {"ERL_FLAGS", erl_flags(Carrier)},
     {"ERL_CRASH_DUMP_BYTES", "0"}].

%% From version 4 on, a broker looks for others from another node that it starts, to which it hands
%% on the carrier and no settings. That node has this environment too, and would be refused if it
%% had not the name of the cluster.
erl_flags(stock) ->
    false;
erl_flags(weft) ->
    "-weft faults true -weft cluster_name \\\"rabbits\\\"".

%% Both directions of a connection use the broker's address, so that it can be cut by address.
erl_args(N, #{carrier := Carrier}) ->
    Address = "{" ++ lists:flatten(string:replace(host(N), ".", ",", all)) ++ "}",
    ["+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
     "-kernel inet_dist_use_interface " ++ Address,
     "-kernel inet_dist_connect_options [{ip," ++ Address ++ "}]" | carrier_args(Carrier)].

carrier_args(stock) ->
    [];
carrier_args(weft) ->
    ["-pa " ++ filename:absname(filename:dirname(code:which(weft_dist))),
     "-proto_dist weft"].

wait_until_serving(N, #{running := Running, dir := Dir} = Brokers) ->
    Keeper = maps:get(N, Running),
    Serves = fun() ->
        Runs = weft_rabbitmq_process:is_running(Keeper),
        Output = filename:join(Dir, integer_to_list(N) ++ ".out"),
        Runs orelse error({broker_ended, N, file:read_file(Output)}),
        matches(log(N, Brokers), "Server startup complete") > 0
    end,
    weft_rabbitmq_wait:until(Serves, {broker_serves, N}, ?START_MS).

matches(File, Pattern) ->
    case file:read_file(File) of
        {ok, Text} ->
            case re:run(Text, Pattern, [global, {capture, first, index}]) of
                {match, All} -> length(All);
                nomatch -> 0
            end;
        {error, enoent} ->
            0
    end.

host(N) ->
    "127.0.7." ++ integer_to_list(N).

node_name(N) ->
    list_to_atom("rabbit" ++ integer_to_list(N) ++ "@" ++ host(N)).

own_dir(N, #{dir := Dir}) ->
    filename:join(Dir, "broker" ++ integer_to_list(N)).

log(N, Brokers) ->
    filename:join(own_dir(N, Brokers), "broker.log").

%% Below the range from which the kernel takes ports for outgoing connections: a broker closes and
%% opens its port when it joins a cluster, and must not find it taken.
free_ports(0, Ports) ->
    Ports;
free_ports(Count, Ports) ->
    Port = 20000 + rand:uniform(12000),
    Hosts = [{127, 0, 0, 1} | [{127, 0, 7, N} || N <- ?NUMBERS]],
    case not lists:member(Port, Ports) andalso lists:all(fun(H) -> is_free(H, Port) end, Hosts) of
        true -> free_ports(Count - 1, [Port | Ports]);
        false -> free_ports(Count, Ports)
    end.

is_free(Address, Port) ->
    case gen_tcp:listen(Port, [{ip, Address}, {reuseaddr, true}]) of
        {ok, Socket} -> gen_tcp:close(Socket), true;
        {error, _} -> false
    end.
