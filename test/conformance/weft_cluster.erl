%% SPDX-License-Identifier: Apache-2.0
%% @doc Starts and stops the real nodes of the conformance suites, on any carrier.
%%
%% A cluster has the nodes `a' and `b', on demand `c', and the gateways of the carrier:
%%   stock     a - b    the carrier of OTP over TCP: the oracle
%%   direct    a - b    weft, nothing configured
%%   tls       a - b    weft over TLS, two lanes
%%   gateway1  a - g1 - b            weft, static links; no TCP connection between a and b
%%   gateway3  a - g1 - g2 - g3 - b  three lanes each
%%   triangle  a - g1 - b and a - b  for hostile networks: a way around each link
%% or a topology of weft:
%%   full_mesh      a - b
%%   swim           the same, watched by SWIM
%%   groups         a - g1 - b       two groups that share g1
%%   client_server  a - g1 - g2 - b  clients a and b, servers g1 and g2
%%   peer_to_peer   a, b and three more, each with up to three neighbours
%%   pubsub         a - broker - b   no TCP connection but to a RabbitMQ broker
%%   own_topology   a - g1 - b - g2 - a  a topology that is not part of weft: weft_chord_ring, or
%% the
%%                  term in WEFT_CONFORMANCE_OWN, in which `nodes' stands for the list of all nodes
%% A third node c hangs at the gateway next to b. Nodes are controlled by `peer' over standard
%% input and output, so control works whatever the distribution does. Names are unique, epmd is
%% our own on a free port, each node logs to a file <name>.log in the given directory.
%% Hostile networks and other variations are given as more arguments of erl (option args, and
%% the environment variable WEFT_CONFORMANCE_ARGS for all weft nodes). A session waits resume_ms
%% for a path.
-module(weft_cluster).

-export([carriers/0, topologies/0, start_epmd/0, stop_epmd/1, start/3, start_again/2,
         start_overlay/2, stop/1, call/4, call/5, context/1]).

-define(HOST, "127.0.0.1").
-define(BOOT_MS, 60_000).
-define(CONNECT_MS, 30_000).
-define(CALL_MS, 30_000).
-define(FEW_NODES, 3).
%% A node that is gone for good has to be given up within the deadline of a case.
-define(RESUME_MS, 3_000).

-type topology() :: full_mesh | swim | groups | client_server | peer_to_peer | pubsub
                  | own_topology.
-type carrier() :: stock | direct | tls | gateway1 | gateway3 | triangle | topology().
-type name() :: a | b | c | g1 | g2 | g3.
-type epmd() :: #{port := inet:port_number(), os_pid := integer(), handle := port()}.
-type options() :: #{circuits => hidden | visible, third => boolean(), args => [string()],
                     resume_ms => pos_integer()}.
-type place() :: #{epmd := epmd(), log_dir := file:filename(), broker => Url :: string()}.
-type cluster() :: #{carrier := carrier(), nodes := #{name() => node()},
                     peers := #{name() => pid()}, os_pids := #{name() => string()},
                     boots := #{name() => map()}}.
-export_type([carrier/0, topology/0, cluster/0, epmd/0, name/0, options/0, place/0]).

%% @doc All carriers that every case runs on.
-spec carriers() -> [carrier()].
carriers() ->
    [stock, direct, gateway1, gateway3, tls].

%% @doc The other topologies than static links.
-spec topologies() -> [topology()].
topologies() ->
    [full_mesh, swim, groups, client_server, peer_to_peer, pubsub, own_topology].

%% @doc Starts an epmd for us alone, on a port that is free now.
-spec start_epmd() -> epmd().
start_epmd() ->
    Port = weft_test_nodes:free_port(),
    %% It complains of clients which ask and leave; nodes that connect often do.
    Handle = open_port({spawn_executable, "/bin/sh"},
                       [{args, ["-c", "exec \"$0\" \"$@\" 2> /dev/null", epmd_executable(),
                                "-port", integer_to_list(Port), "-address", ?HOST]}]),
    {os_pid, OsPid} = erlang:port_info(Handle, os_pid),
    ok = weft_expect:until(fun() -> answers(Port) end),
    #{port => Port, os_pid => OsPid, handle => Handle}.

%% @doc Stops the epmd started by start_epmd/0.
-spec stop_epmd(epmd()) -> ok.
stop_epmd(#{os_pid := OsPid}) ->
    kill(integer_to_list(OsPid)).

%% @doc Starts the nodes of a cluster and connects them. Node logs go to log_dir; pubsub needs the
%% URL of a broker.
-spec start(carrier(), options(), place()) -> cluster().
start(Carrier, Options, Place) ->
    Unique = integer_to_list(erlang:unique_integer([positive])) ++ "x" ++ os:getpid(),
    Names = names(Carrier, Options),
    Nodes = maps:from_list([{Name, node_name(Name, Unique)} || Name <- Names]),
    Common = carrier_args(Carrier, Options, Place#{unique => Unique}) ++ common_args(Names, Unique)
        ++ maps:get(args, Options, []),
    Boots = maps:map(fun(Name, Node) ->
                             Shape = topology(Carrier, Name, Nodes#{place => Place}),
                             Args = topology_args(Shape) ++ Common,
                             boot(Name, Node, Unique, Args, Place)
                     end, Nodes),
    Peers = boot_all(Boots),
    Cluster = #{carrier => Carrier, nodes => Nodes, peers => Peers, boots => Boots,
                os_pids => os_pids(Peers)},
    try
        start_overlay(Carrier, maps:values(Peers)),
        connect(Cluster),
        Cluster
    catch
        Class:Reason:Stack ->
            stop(Cluster),
            erlang:raise(Class, Reason, Stack)
    end.

%% @doc Starts a node that has ended, or will now, and connects it.
-spec start_again(name(), cluster()) -> cluster().
start_again(Name, #{carrier := Carrier, peers := Peers, os_pids := OsPids, boots := Boots} = Old) ->
    #{Name := Former} = Peers,
    _ = is_process_alive(Former) andalso kill(maps:get(Name, OsPids)),
    await_end(Former),
    {ok, Peer, _} = peer:start(maps:get(Name, Boots)),
    ok = start_overlay(Carrier, [Peer]),
    OsPid = peer:call(Peer, os, getpid, [], ?CALL_MS),
    Cluster = Old#{peers := Peers#{Name := Peer}, os_pids := OsPids#{Name := OsPid}},
    connect(Cluster),
    Cluster.

%% @doc Stops all nodes of the cluster that are still there, stopped (SIGSTOP) ones too.
-spec stop(cluster()) -> ok.
stop(#{peers := Peers, os_pids := OsPids}) ->
    [kill(OsPid) || OsPid <- maps:values(OsPids)],
    [await_end(Peer) || Peer <- maps:values(Peers)],
    ok.

%% @doc Calls a function on node `a', by its control channel.
-spec call(cluster(), module(), atom(), {list(), timeout()}) -> term().
call(Cluster, Module, Function, Arguments) ->
    call(Cluster, a, Module, Function, Arguments).

%% @doc The same on any node of the cluster.
-spec call(cluster(), name(), module(), atom(), {list(), timeout()}) -> term().
call(#{peers := Peers}, Name, Module, Function, {Arguments, TimeoutMs}) ->
    peer:call(maps:get(Name, Peers), Module, Function, Arguments, TimeoutMs).

%% @doc What a case gets to know of its cluster; boot_of_b is for peer:start/1.
-spec context(cluster()) -> map().
context(#{carrier := Carrier, nodes := Nodes, os_pids := OsPids, boots := #{b := BootOfB}}) ->
    Nodes#{carrier => Carrier, os_pids => OsPids, boot_of_b => BootOfB}.

%% @doc Starts the weft application on nodes whose carrier has a topology.
-spec start_overlay(carrier(), [pid()]) -> ok.
start_overlay(Carrier, Peers) ->
    [{ok, _} = peer:call(Peer, application, ensure_all_started, [weft], ?CALL_MS)
     || not lists:member(Carrier, [stock, direct, tls]), Peer <- Peers],
    ok.

%% ---- shape ----

names(Carrier, Options) ->
    [a, b] ++ [c || maps:get(third, Options, false)] ++ gateways(Carrier).

gateways(gateway1) -> [g1];
gateways(triangle) -> [g1];
gateways(gateway3) -> [g1, g2, g3];
gateways(groups) -> [g1];
gateways(client_server) -> [g1, g2];
gateways(peer_to_peer) -> [g1, g2, g3];
gateways(own_topology) -> [g1, g2];
gateways(_) -> [].

%% What the node of that name is configured with.
topology(Carrier, _Name, _Nodes) when Carrier =:= stock; Carrier =:= direct; Carrier =:= tls ->
    none;
topology(full_mesh, _Name, #{a := A}) ->
    {full_mesh, #{seeds => [A]}};
topology(swim, _Name, #{a := A}) ->
    {full_mesh, #{seeds => [A], detector => swim}};
topology(groups, _Name, #{a := A, g1 := G} = Nodes) ->
    {groups, #{left => [A, G], right => maps:values(maps:without([a, place], Nodes))}};
topology(client_server, Name, #{g1 := G1, g2 := G2}) ->
    case Name of
        a -> {client_server, #{role => client, servers => [G1]}};
        _ when Name =:= g1; Name =:= g2 -> {client_server, #{role => server, servers => [G1, G2]}};
        _ -> {client_server, #{role => client, servers => [G2]}}
    end;
topology(peer_to_peer, _Name, #{g1 := G}) ->
    {peer_to_peer, #{seeds => [G], active => 3}};
topology(pubsub, _Name, #{place := #{broker := Url}}) ->
    {pubsub, #{broker => Url, announce_ms => 1000}};
topology(own_topology, _Name, Nodes) ->
    All = [maps:get(Name, Nodes) || Name <- [a, g1, b, c, g2], is_map_key(Name, Nodes)],
    Given = os:getenv("WEFT_CONFORMANCE_OWN",
                      "{weft_chord_ring, #{nodes => nodes, distances => [1]}}"),
    {ok, Tokens, _} = erl_scan:string(Given ++ "."),
    {ok, {Module, Options}} = erl_parse:parse_term(Tokens),
    {Module, maps:map(fun(_Key, nodes) -> All; (_Key, Value) -> Value end, Options)};
topology(Gateways, _Name, Nodes) ->
    {static, #{links => links(Gateways, Nodes)}}.

links(Carrier, Nodes) ->
    Gateways = gateways(Carrier),
    Line = [a] ++ Gateways ++ [b],
    Third = [{lists:last(Gateways), c} || is_map_key(c, Nodes)],
    Short = [{a, b} || Carrier =:= triangle],
    [{maps:get(X, Nodes), maps:get(Y, Nodes)}
     || {X, Y} <- lists:zip(lists:droplast(Line), tl(Line)) ++ Third ++ Short].

node_name(Name, Unique) ->
    list_to_atom(short_name(Name, Unique) ++ "@" ++ ?HOST).

short_name(Name, Unique) ->
    "conf_" ++ atom_to_list(Name) ++ "_" ++ Unique.

%% ---- arguments of erl ----

common_args(Names, Cookie) ->
    ["-setcookie", Cookie, "-pa", directory_of(?MODULE),
     "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]
        ++ scheduler_args(length(Names)).

%% Pairs run with all schedulers, which finds more races; larger clusters must fit the machine.
scheduler_args(Count) when Count > ?FEW_NODES ->
    ["+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1"];
scheduler_args(_) ->
    [].

topology_args(none) -> [];
topology_args(Topology) -> ["-weft", "topology", term(Topology)].

carrier_args(stock, _Options, _Place) ->
    [];
carrier_args(Direct, Options, _Place)
  when Direct =:= direct; Direct =:= full_mesh; Direct =:= swim ->
    weft_args(Options);
carrier_args(tls, Options, #{log_dir := Dir}) ->
    weft_args(Options) ++ ["-weft", "transport", "tls", "-weft", "lanes", "2",
                           "-weft", "tls_options", term(tls_options(Dir))];
%% Brokers know clusters by their names.
carrier_args(pubsub, Options, #{unique := Unique}) ->
    weft_args(Options)
        ++ ["-weft", "cluster_name", term("conformance_" ++ Unique)]
        ++ lists:append([["-pa", Dir] || Dir <- [directory_of(weft_amqp)
                                              | weft_amqp_test_broker:client_dirs()]]);
carrier_args(Partial, Options, _Place) ->
    Circuits = maps:get(circuits, Options, hidden),
    Lanes = case Partial of gateway3 -> ["-weft", "lanes", "3"]; _ -> [] end,
    weft_args(Options) ++ Lanes ++ ["-weft", "circuits", atom_to_list(Circuits),
                                    "-kernel", "prevent_overlapping_partitions", "false"]
        ++ connect_all_args(Circuits).

%% One certificate for all nodes, on their common address.
tls_options(Dir) ->
    Options = weft_local_tls:options(Dir),
    filelib:is_regular(proplists:get_value(keyfile, Options)) orelse weft_local_tls:create(Dir),
    Options.

%% With hidden circuits a mesh made by `global' would hide that there is a topology. With visible
%% circuits everybody is connected with everybody, and `global' keeps no names without it.
connect_all_args(hidden) -> ["-connect_all", "false"];
connect_all_args(visible) -> [].

weft_args(Options) ->
    ["-pa", directory_of(weft_dist), "-proto_dist", "weft",
     "-weft", "resume_timeout_ms", integer_to_list(maps:get(resume_ms, Options, ?RESUME_MS))]
        ++ string:lexemes(os:getenv("WEFT_CONFORMANCE_ARGS", ""), " ").

directory_of(Module) ->
    case code:which(Module) of
        File when is_list(File) -> filename:absname(filename:dirname(File));
        _ -> erlang:error({module_not_on_code_path, Module})
    end.

term(Term) ->
    lists:flatten(io_lib:format("~0p", [Term])).

%% ---- booting and connecting ----

boot(Name, Node, Unique, Args, #{epmd := #{port := EpmdPort}, log_dir := LogDir}) ->
    LogFile = filename:join(LogDir, atom_to_list(Node) ++ ".log"),
    Logger = [{handler, default, logger_std_h, #{config => #{file => LogFile}}}],
    #{name => short_name(Name, Unique), host => ?HOST, longnames => true,
      connection => standard_io, wait_boot => ?BOOT_MS,
      exec => filename:join([code:root_dir(), "bin", "erl"]),
      env => [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}],
      args => Args ++ ["-kernel", "logger", term(Logger)]}.

%% All at once, since a node needs about the same time as five.
boot_all(Boots) ->
    Booting = maps:map(fun(_, Boot) ->
                               spawn_monitor(fun() -> exit({booted, peer:start(Boot)}) end)
                       end, Boots),
    maps:map(fun booted/2, Booting).

booted(Name, {Pid, Monitor}) ->
    receive
        {'DOWN', Monitor, process, Pid, {booted, {ok, Peer, _}}} -> Peer;
        {'DOWN', Monitor, process, Pid, Why} -> erlang:error({node_does_not_boot, Name, Why})
    end.

os_pids(Peers) ->
    maps:map(fun(_, Peer) -> peer:call(Peer, os, getpid, [], ?CALL_MS) end, Peers).

%% Routes need some time to be found in a partial topology; so until it works.
connect(#{nodes := Nodes, peers := Peers}) ->
    Pairs = [{a, b}] ++ [{X, c} || X <- [a, b], is_map_key(c, Nodes)],
    [weft_expect:until(fun() -> connects(maps:get(X, Peers), maps:get(Y, Nodes)) end, ?CONNECT_MS)
     || {X, Y} <- Pairs],
    ok.

connects(Peer, Node) ->
    peer:call(Peer, net_kernel, connect_node, [Node], ?CALL_MS) =:= true.

%% ---- operating system ----

epmd_executable() ->
    Erts = filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "bin"]),
    case os:find_executable("epmd", Erts) of
        false -> os:find_executable("epmd");
        File -> File
    end.

%% Asks for the registered names (NAMES_REQ of the distribution protocol).
answers(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]) of
        {ok, Socket} ->
            ok = gen_tcp:send(Socket, <<1:16, $n>>),
            {ok, <<Port:32>>} = gen_tcp:recv(Socket, 4, ?CALL_MS),
            gen_tcp:close(Socket) =:= ok;
        {error, _} ->
            false
    end.

kill(OsPid) ->
    _ = os:cmd("kill -KILL " ++ OsPid),
    ok.

await_end(Peer) ->
    Monitor = monitor(process, Peer),
    receive
        {'DOWN', Monitor, process, Peer, _} -> ok
    after ?CALL_MS ->
        erlang:error({node_does_not_end, Peer})
    end.
