%% SPDX-License-Identifier: Apache-2.0
%% @doc A cluster of real nodes on this machine: started, stopped, killed, restarted.
%%
%% Every node is an ordinary `erl' in the background, small enough for dozens, on the loopback
%% address, with an epmd of the cluster's own. Nodes outlive the command; what it needs to find
%% them again is in the directory (`weft_local_files'). Only processes that this module started,
%% and that still are what it started (`weft_os_process'), are ever signalled.
-module(weft_local).

-export([up/3, find/2, down/1, kill/2, restart/2, cut/3, heal/1, heal/3,
         is_running/2, running/1]).
-export_type([cluster/0, progress/0]).

-type cluster() :: #{name := string(), dir := file:filename(), id := string(), cookie := atom(),
                     nodes := [node()], topology := term(), partial := boolean(),
                     settings := [{atom(), term()}], kernel := [{atom(), term()}],
                     paths := [file:filename()], carrier := weft | stock,
                     epmd_port := inet:port_number(), epmd := own | given}.
%% Called about ten times a second while nodes start. routes: pairs of nodes that know a way.
-type progress() :: fun((#{of_nodes := pos_integer(), nodes := non_neg_integer(),
                           of_routes := non_neg_integer(), routes := non_neg_integer()}) -> ok).

-define(BOOT_TIMEOUT_MS, 60000).
-define(POLL_MS, 100).
-define(STOP_GRACE_MS, 5000).
%% How long a node that did not run may take to find a way.
-define(WAY_MS, 10000).
%% A node looks that seldom whether its log is longer than that.
-define(LOG_LOOK_MS, 5000).
-define(LOG_BYTES_MAX, 10000000).
%% Flags that let dozens of nodes share a few processors.
-define(SMALL, ["+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none",
                "+sbwtdcpu", "none", "+sbwtdio", "none"]).

%% --- up ---------------------------------------------------------------------------------------

%% @doc Starts the cluster of a specification in Root/Name; returns when every node runs and, under
%% a topology, knows a way to every other. Stops all it started if that fails.
-spec up(weft_local_spec:spec(), Root :: file:filename(), progress()) ->
          {ok, cluster()} | {error, iolist()}.
up(#{name := Name} = Spec, Root, Progress) ->
    case find(Root, Name) of
        {ok, _} ->
            {error, ["the cluster ", Name, " is up already: weft down --name ", Name]};
        {error, _} ->
            Cluster = new(Spec, Root),
            case weft_local_files:create(Cluster) of
                ok -> start_all(Cluster, Progress);
                Error -> Error
            end
    end.

new(#{name := Name, partial := Partial, carrier := Carrier, settings := Settings} = Spec,
    Root) ->
    Id = Name ++ "-" ++ random_hex(8),
    {EpmdPort, Epmd} = case Spec of
                           #{epmd_port := Port} -> {Port, owner(Port)};
                           #{} -> {free_port(), own}
                       end,
    Dir = filename:absname(filename:join(Root, Name)),
    Spec#{dir => Dir, id => Id, settings => Settings ++ tls_settings(Settings, Dir),
          cookie => list_to_atom(random_hex(20)), epmd_port => EpmdPort, epmd => Epmd,
          kernel => [{inet_dist_use_interface, {127, 0, 0, 1}}
                     | [{prevent_overlapping_partitions, false} || Partial, Carrier =:= weft]]}.

%% The user may have certificates of his own.
tls_settings(Settings, Dir) ->
    [{tls_options, weft_local_tls:options(filename:join(Dir, "tls"))}
     || proplists:get_value(transport, Settings) =:= tls,
        not lists:keymember(tls_options, 1, Settings)].

random_hex(Bytes) ->
    binary_to_list(binary:encode_hex(crypto:strong_rand_bytes(Bytes))).

free_port() ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

%% A port given by the user may have an epmd already.
owner(Port) ->
    case listens(Port) of true -> given; false -> own end.

listens(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, []) of
        {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
        {error, _} -> false
    end.

start_all(#{nodes := Nodes} = Cluster, Progress) ->
    Started = case start_epmd(Cluster) of
                  ok -> first_error([fun() -> start_node(Cluster, Node) end || Node <- Nodes]);
                  EpmdError -> EpmdError
              end,
    Ready = case Started of
                ok -> weft_local_control:connect(Cluster);
                _ -> Started
            end,
    case Ready of
        ok -> await(Cluster, Nodes, Progress);
        _ -> give_up(Ready, Cluster)
    end.

first_error([]) -> ok;
first_error([Fun | Funs]) ->
    case Fun() of
        ok -> first_error(Funs);
        Error -> Error
    end.

give_up({error, Text}, Cluster) ->
    ok = down(Cluster),
    {error, Text}.

start_epmd(#{epmd := given}) ->
    ok;
start_epmd(#{epmd_port := Port} = Cluster) ->
    case epmd_executable() of
        false ->
            {error, "epmd is neither on the PATH nor beside erl"};
        Epmd ->
            Command = [Epmd, "-port", integer_to_list(Port), "-address", "127.0.0.1"],
            first_error([fun() -> start_member(Cluster, "epmd", Command) end,
                         fun() -> await_epmd(Port, ?STOP_GRACE_MS) end])
    end.

epmd_executable() ->
    Erts = filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "bin"]),
    case os:find_executable("epmd", Erts) of
        false -> os:find_executable("epmd");
        File -> File
    end.

await_epmd(Port, LeftMs) ->
    case listens(Port) of
        true -> ok;
        false when LeftMs =< 0 ->
            {error, io_lib:format("epmd does not answer on port ~b", [Port])};
        false -> receive after ?POLL_MS -> await_epmd(Port, LeftMs - ?POLL_MS) end
    end.

start_node(Cluster, Node) ->
    start_member(Cluster, weft_local_spec:short(Node), command(Cluster, Node)).

start_member(#{epmd_port := EpmdPort, dir := Dir} = Cluster, Member, Command) ->
    Log = weft_local_files:prepare(Cluster, Member, Command),
    Environment = [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)},
                   {"ERL_CRASH_DUMP", filename:join([Dir, Member, "crash_dump"])}],
    case weft_os_process:start(Command, Environment, Log) of
        {ok, OsPid} -> weft_local_files:set_pid(Cluster, Member, OsPid);
        {error, Text} -> {error, ["can not start ", Member, ": ", Text]}
    end.

%% The mark -weft_cluster tells later whether a process is this node.
command(#{id := Id, cookie := Cookie, dir := Dir} = Cluster, Node) ->
    Log = weft_local_files:log(Cluster, weft_local_spec:short(Node)),
    [filename:join([code:root_dir(), "bin", "erl"]), "-noinput", "-weft_cluster", Id,
     "-name", atom_to_list(Node), "-setcookie", atom_to_list(Cookie), "-start_epmd", "false",
     "-config", filename:join(Dir, "sys.config"),
     "-eval", weft_deploy_output:bounded(Log, ?LOG_BYTES_MAX, ?LOG_LOOK_MS)]
        ++ ?SMALL
        ++ lists:append([["-pa", Path] || Path <- weft_local_files:code_paths(Cluster)])
        ++ carrier(Cluster, Node).

carrier(#{carrier := stock}, _Node) ->
    [];
carrier(#{partial := Partial, topology := Topology} = Cluster, Node) ->
    Hidden = proplists:get_value(circuits, maps:get(settings, Cluster), hidden) =:= hidden,
    ["-proto_dist", "weft"] ++ own_topology(weft_local_spec:topology_of(Node, Topology), Topology)
        ++ lists:append([["-connect_all", "false"] || Partial andalso Hidden])
        ++ ["-eval", "case application:ensure_all_started(weft) of "
            "{ok, _} -> ok; "
            "{error, {weft, {{weft, Text}, _}}} -> io:format(\"~ts~n\", [Text]), halt(1); "
            "{error, Reason} -> io:format(\"~tp~n\", [Reason]), halt(1) end."].

%% What is the same for all nodes is in their sys.config.
own_topology(Topology, Topology) -> [];
own_topology(Own, _Topology) -> ["-weft", "topology", lists:flatten(io_lib:format("~0tp", [Own]))].

%% --- waiting for nodes ------------------------------------------------------------------------

await(Cluster, Nodes, Progress) ->
    Deadline = now_ms() + ?BOOT_TIMEOUT_MS,
    case await(Cluster, {Nodes, Nodes}, Progress, Deadline) of
        ok -> {ok, Cluster};
        Error -> give_up(Error, Cluster)
    end.

%% Until each of Nodes runs and knows a way to each of Others that runs.
await(Cluster, {Nodes, Others} = Wanted, Progress, Deadline) ->
    State = state(Cluster, Nodes, [Other || Other <- Others, is_running(Cluster, Other)]),
    ok = Progress(State),
    Dead = [Node || Node <- Nodes, not is_running(Cluster, Node)],
    case {State, Dead} of
        {#{of_nodes := N, nodes := N, of_routes := R, routes := R}, []} ->
            ok;
        {_, [Node | _]} ->
            {error, died(Cluster, weft_local_spec:short(Node))};
        _ ->
            case now_ms() > Deadline of
                true -> {error, late(State, Cluster)};
                false -> receive after ?POLL_MS -> await(Cluster, Wanted, Progress, Deadline) end
            end
    end.

state(#{carrier := stock}, Nodes, _Others) ->
    Alive = [ok || {_, {ok, _}} <- weft_local_control:all(Nodes, {erlang, node, []})],
    #{of_nodes => length(Nodes), nodes => length(Alive), of_routes => 0, routes => 0};
state(#{topology := Topology}, Nodes, Others) ->
    Statuses = [S || {_, {ok, S}} <- weft_local_control:all(begun(Nodes), {weft, status, []})],
    Routed = [ok || #{node := Node, routes := Routes} <- Statuses, Dest <- Others -- [Node],
                    is_map_key(Dest, Routes)],
    #{of_nodes => length(Nodes), nodes => length(Statuses), routes => length(Routed),
      of_routes => case Topology of
                       undefined -> 0;
                       _ -> lists:sum([length(Others -- [Node]) || Node <- Nodes])
                   end}.

%% There are routes before the services of weft have begun.
begun(Nodes) ->
    [Node || {Node, {ok, Applications}}
                 <- weft_local_control:all(Nodes, {application, which_applications, []}),
             lists:keymember(weft, 1, Applications)].

died(Cluster, Member) ->
    [Member, " stopped while starting. Its log (", weft_local_files:log(Cluster, Member),
     ") ends with:\n",
     [["  ", Line, $\n] || Line <- weft_local_files:log_tail(Cluster, Member, 8)]].

late(#{nodes := Up, of_nodes := Of, routes := Routes, of_routes := OfRoutes}, #{dir := Dir}) ->
    io_lib:format("after ~b s only ~b of ~b nodes answer and ~b of ~b routes are known; see the "
                  "logs in ~ts", [?BOOT_TIMEOUT_MS div 1000, Up, Of, Routes, OfRoutes, Dir]).

%% --- what runs --------------------------------------------------------------------------------

%% @doc The cluster of that name, if any of its processes runs.
-spec find(Root :: file:filename(), Name :: string()) ->
          {ok, cluster()} | {error, not_found | not_running}.
find(Root, Name) ->
    case weft_local_files:load(Root, Name) of
        {ok, #{nodes := Nodes} = Cluster} ->
            case lists:any(fun(Member) -> is_running(Cluster, Member) end, [epmd | Nodes]) of
                true -> {ok, Cluster};
                false -> {error, not_running}
            end;
        {error, not_found} ->
            {error, not_found}
    end.

-spec is_running(cluster(), node() | epmd) -> boolean().
is_running(Cluster, Member) ->
    case process(Cluster, Member) of
        {ok, Process} -> weft_os_process:is_alive(Process);
        error -> false
    end.

%% @doc The nodes that run.
-spec running(cluster()) -> [node()].
running(#{nodes := Nodes} = Cluster) ->
    [Node || Node <- Nodes, is_running(Cluster, Node)].

process(#{epmd_port := Port} = Cluster, epmd) ->
    process(Cluster, "epmd", ["-port", integer_to_list(Port)]);
process(#{id := Id} = Cluster, Node) ->
    process(Cluster, weft_local_spec:short(Node), ["-weft_cluster", Id, atom_to_list(Node)]).

process(Cluster, Member, Marks) ->
    case weft_local_files:pid(Cluster, Member) of
        {ok, OsPid} -> {ok, #{os_pid => OsPid, marks => Marks}};
        error -> error
    end.

%% --- down, kill, restart ----------------------------------------------------------------------

%% @doc Stops all processes of the cluster that still run: politely, then by force. The directory
%% stays, with the logs.
-spec down(cluster()) -> ok.
down(#{nodes := Nodes} = Cluster) ->
    Processes = [{Node, Process} || Node <- Nodes, {ok, Process} <- [process(Cluster, Node)]],
    _ = [weft_os_process:signal("TERM", Process) || {_, Process} <- Processes],
    [stop(Cluster, Node, Process) || {Node, Process} <- Processes],
    case process(Cluster, epmd) of
        {ok, Epmd} -> stop(Cluster, epmd, Epmd);
        error -> ok
    end.

stop(Cluster, Member, Process) ->
    ok = weft_os_process:stop(Process, ?STOP_GRACE_MS),
    weft_local_files:clear_pid(Cluster, case Member of
                                            epmd -> "epmd";
                                            Node -> weft_local_spec:short(Node)
                                        end).

%% @doc Ends a node at once (SIGKILL), as a crash of its machine would.
-spec kill(cluster(), node()) -> ok | {error, not_running | still_running}.
kill(Cluster, Node) ->
    case process(Cluster, Node) of
        {ok, Process} ->
            case weft_os_process:signal("KILL", Process) of
                ok -> weft_os_process:stop(Process, ?STOP_GRACE_MS);
                Error -> Error
            end;
        error ->
            {error, not_running}
    end.

%% @doc Starts a node again, after stopping it if it runs, and waits until it is as it was: until it
%% knows a way to those that knew one to it. Others may be cut off on purpose, or have left. Of one
%% that does not run nobody knows that: it waits for some time until it knows a way to anybody.
-spec restart(cluster(), node()) -> ok | {error, iolist()}.
restart(Cluster, Node) ->
    WasRunning = is_running(Cluster, Node),
    Others = [Other || WasRunning, Other <- routed_to(Node, Cluster)],
    _ = case process(Cluster, Node) of
            {ok, Process} -> stop(Cluster, Node, Process);
            error -> ok
        end,
    Deadline = now_ms() + ?BOOT_TIMEOUT_MS,
    case first_error([fun() -> start_node(Cluster, Node) end,
                      fun() -> await(Cluster, {[Node], Others}, fun(_) -> ok end, Deadline) end]) of
        ok when not WasRunning -> await_way(Cluster, Node, now_ms() + ?WAY_MS);
        Result -> Result
    end.

routed_to(Node, Cluster) ->
    [Other || {Other, {ok, #{routes := Routes}}}
                  <- weft_local_control:all(running(Cluster) -- [Node], {weft, status, []}),
              is_map_key(Node, Routes)].

%% There may be none.
await_way(#{carrier := Carrier, topology := Topology} = Cluster, Node, Deadline) ->
    Others = running(Cluster) -- [Node],
    case Carrier =:= stock orelse Topology =:= undefined orelse Others =:= []
        orelse is_routed(Node, Others) orelse now_ms() > Deadline of
        true -> ok;
        false -> receive after ?POLL_MS -> await_way(Cluster, Node, Deadline) end
    end.

is_routed(Node, Others) ->
    case weft_local_control:call(Node, {weft, status, []}) of
        {ok, #{routes := Routes}} -> map_size(maps:with(Others, Routes)) > 0;
        _NoAnswer -> false
    end.

%% --- links ------------------------------------------------------------------------------------

%% @doc Cuts the link between two nodes until heal/1 or heal/3. Needs a connection of the caller
%% (`weft_local_control'), as all that follows.
-spec cut(cluster(), node(), node()) -> ok | {error, iolist()}.
cut(Cluster, A, B) -> on_both(Cluster, cut, A, B).

-spec heal(cluster(), node(), node()) -> ok | {error, iolist()}.
heal(Cluster, A, B) -> on_both(Cluster, heal, A, B).

%% @doc Ends all cuts of all nodes that run.
-spec heal(cluster()) -> ok | {error, iolist()}.
heal(Cluster) ->
    Results = weft_local_control:all(running(Cluster), {weft_fault, heal, []}),
    done([Result || {_, Result} <- Results]).

%% A node that is gone needs no fault.
on_both(Cluster, Function, A, B) ->
    case [weft_local_control:call(Node, {weft_fault, Function, [Peer]})
          || {Node, Peer} <- [{A, B}, {B, A}], is_running(Cluster, Node)] of
        [] -> {error, "neither of the two nodes runs"};
        Results -> done(Results)
    end.

done(Results) ->
    case [Error || Error <- Results, Error =/= {ok, ok}] of
        [] -> ok;
        [{ok, {error, disabled}} | _] ->
            {error, "faults are off: start the cluster with --set faults=true"};
        [{_, Text} | _] -> {error, Text}
    end.

now_ms() -> erlang:monotonic_time(millisecond).
