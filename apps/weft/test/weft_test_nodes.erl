%% SPDX-License-Identifier: Apache-2.0
%% @doc Real nodes for the suites of the carrier: a private epmd, nodes controlled by `peer' over
%% standard input and output (so control works whatever the distribution does), signals to their
%% operating system processes, and waiting for conditions.
%%
%% Options of start/3: carrier (weft | stock), config ([{Key, Value}] of weft), args (more arguments
%% of erl), long ("host": a long name with that host), cookie, around (a program and its arguments,
%% which runs the words that follow: erl and its arguments).
%%
%% A suite begins with begin_suite/1 and ends with end_suite/1; its nodes start in the `place' that
%% is in the configuration then.
-module(weft_test_nodes).

-export([begin_suite/1, end_suite/1, seed/0, start_epmd/0, restart_epmd/1, signal_epmd/2,
         stop_epmd/1, start/3,
         stop_all/0, running/0, shared/2, share_all/0, lasting/2, ask/2, name/1, node_name/1,
         call/4, call/5, until/1, until/2, kill/1, kill_named/2, pause/1, continue/1, free_port/0,
         ebin/1, node_args/2]).
-export_type([epmd/0, node_ref/0, place/0]).

-define(BOOT_MS, 60000).
-define(CALL_MS, 30000).
%% The first pause between two looks at a condition, and the longest: each is twice the one before.
-define(POLL_MS, 5).
-define(POLL_MS_MAX, 40).
%% Below all that systems give to connections, above those of well-known services.
-define(PORT_MIN, 12000).
-define(PORTS, 20000).

-type epmd() :: #{port := inet:port_number(), keeper := pid()}.
-type place() :: #{epmd := epmd(), dir := file:filename()}.
-type node_ref() :: #{peer := pid(), node := node(), os_pid := string(), log := file:filename()}.

%% @doc The configuration of Common Test with the place for the suite's nodes: an epmd of its own,
%% and its private directory.
-spec begin_suite([{atom(), term()}]) -> [{atom(), term()}].
begin_suite(Config) ->
    Place = #{epmd => start_epmd(), dir => proplists:get_value(priv_dir, Config)},
    [{place, Place} | Config].

%% @doc Stops what the suite has started.
-spec end_suite([{atom(), term()}]) -> ok.
end_suite(Config) ->
    #{epmd := Epmd} = proplists:get_value(place, Config),
    stop_epmd(Epmd).

%% @doc Where the chances of a test begin: at SEED of the environment, so that a run can be
%% repeated, or anywhere. It is told.
-spec seed() -> integer().
seed() ->
    Seed = case os:getenv("SEED") of
               false -> erlang:phash2({os:timestamp(), self()}, 1 bsl 30);
               Text -> list_to_integer(Text)
           end,
    ct:pal("SEED=~b", [Seed]),
    Seed.

%% @doc An epmd for the caller's suite alone, on a port that is free now, and a process that keeps
%% what the suite has started.
-spec start_epmd() -> epmd().
start_epmd() ->
    Port = free_port(),
    Suite = self(),
    Keeper = spawn(fun() ->
                           register(?MODULE, self()),
                           EpmdPid = run_epmd(Port),
                           Suite ! {self(), ready},
                           keep([], [], EpmdPid, Port)
                   end),
    receive {Keeper, ready} -> ok end,
    until(fun() -> answers(Port) end),
    #{port => Port, keeper => Keeper}.

run_epmd(Port) ->
    Epmd = open_port({spawn_executable, epmd_executable()},
                     [{args, ["-port", integer_to_list(Port)]}]),
    {os_pid, OsPid} = erlang:port_info(Epmd, os_pid),
    integer_to_list(OsPid).

keep(Nodes, Shared, EpmdPid, Port) ->
    receive
        {started, Node} ->
            keep([Node | Nodes], Shared, EpmdPid, Port);
        {share, From, Ref} ->
            From ! {Ref, ok},
            keep([], Nodes ++ Shared, EpmdPid, Port);
        {take, From, Ref} ->
            From ! {Ref, Nodes},
            keep([], Shared, EpmdPid, Port);
        {list, From, Ref} ->
            From ! {Ref, Nodes ++ Shared},
            keep(Nodes, Shared, EpmdPid, Port);
        {restart, From, Ref} ->
            signal("KILL", EpmdPid),
            until(fun() -> not answers(Port) end),
            NewPid = run_epmd(Port),
            From ! {Ref, Nodes},
            keep(Nodes, Shared, NewPid, Port);
        {{signal, Signal}, From, Ref} ->
            signal(Signal, EpmdPid),
            From ! {Ref, ok},
            keep(Nodes, Shared, EpmdPid, Port);
        {stop, From, Ref} ->
            signal("KILL", EpmdPid),
            From ! {Ref, Nodes ++ Shared}
    end.

%% @doc Another epmd in place of the old one; it knows no names.
-spec restart_epmd(epmd()) -> ok.
restart_epmd(#{port := Port}) ->
    _ = ask(?MODULE, restart),
    until(fun() -> answers(Port) end).

%% @doc Sends the process of epmd a signal: "STOP" or "CONT".
-spec signal_epmd(string(), epmd()) -> ok.
signal_epmd(Signal, _Epmd) -> ask(?MODULE, {signal, Signal}).

%% @doc Asks a process that is registered here: it gets {What, From, Ref} and answers
%% {Ref, Answer}.
-spec ask(Name :: atom(), What :: term()) -> term().
ask(Name, What) ->
    Ref = monitor(process, Name),
    Name ! {What, self(), Ref},
    receive
        {Ref, Answer} -> demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, _, _, Reason} -> erlang:error({Name, Reason})
    end.

%% @doc Stops epmd and every node that was started with it.
-spec stop_epmd(epmd()) -> ok.
stop_epmd(_Epmd) ->
    lists:foreach(fun kill/1, ask(?MODULE, stop)).

%% @doc What was started until now stays for all cases of the suite: stop_all/0 leaves it alone.
-spec share_all() -> ok.
share_all() -> ask(?MODULE, share).

%% @doc The shared node of that name, or if there is none (any more) the one that Start() starts,
%% which is shared from now on.
-spec lasting(node(), fun(() -> node_ref())) -> node_ref().
lasting(Name, Start) ->
    case [Node || #{node := N} = Node <- running(), N =:= Name] of
        [Node] ->
            Node;
        [] ->
            Node = Start(),
            ok = share_all(),
            Node
    end.

%% @doc Ends every node that was started and is not shared, stopped (SIGSTOP) and dead ones too.
-spec stop_all() -> ok.
stop_all() ->
    lists:foreach(fun kill/1, ask(?MODULE, take)).

%% @doc The nodes that were started and have not ended.
-spec running() -> [node_ref()].
running() ->
    [Node || #{peer := Peer} = Node <- ask(?MODULE, list), is_process_alive(Peer)].

%% @doc For cases that share nodes: those with these names, if all still run. Otherwise all that
%% were started are ended, and Start() has new ones.
-spec shared([atom()], fun(() -> [node_ref()])) -> [node_ref()].
shared(Names, Start) ->
    Running = [{Node, Ref} || #{node := Node} = Ref <- running()],
    case [Ref || Name <- Names, {_, Ref} <- [lists:keyfind(node_name(Name), 1, Running)]] of
        Refs when length(Refs) =:= length(Names) -> Refs;
        _ -> stop_all(), Start()
    end.

%% @doc Starts a node that logs to a file of its own.
-spec start(atom(), map(), place()) -> node_ref().
start(Name, Options, #{epmd := #{port := EpmdPort}, dir := Dir}) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Log = filename:join(Dir, atom_to_list(Name) ++ "_" ++ Unique ++ ".log"),
    Settings = #{connection => standard_io, wait_boot => ?BOOT_MS,
                 exec => exec(Options),
                 env => [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)}],
                 args => name_args(Name, Options) ++ node_args(Options, Log)},
    {ok, Peer, _} = peer:start(Settings),
    Node = #{peer => Peer, node => peer:call(Peer, erlang, node, []), log => Log,
             os_pid => peer:call(Peer, os, getpid, [])},
    ?MODULE ! {started, Node},
    Node.

exec(Options) ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    case Options of
        #{around := {Program, Arguments}} -> {Program, Arguments ++ [Erl]};
        #{} -> Erl
    end.

%% The peer module's own `name' would insist on a name that is known now; `none' is without.
name_args(Name, #{long := Host}) when is_list(Host) ->
    ["-name", atom_to_list(Name) ++ "@" ++ Host];
name_args(none, _Options) ->
    [];
name_args(Name, _Options) ->
    ["-sname", atom_to_list(Name)].

%% @doc The arguments of erl for a node, without its name.
-spec node_args(map(), file:filename()) -> [string()].
node_args(Options, Log) ->
    Logger = [{handler, default, logger_std_h, #{config => #{file => Log}}}],
    carrier_args(maps:get(carrier, Options, weft), maps:get(config, Options, []))
        ++ ["-setcookie", maps:get(cookie, Options, "weft_test"),
            "-pa", ebin(?MODULE), "-kernel", "logger", term(Logger),
            "+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1",
            "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]
        ++ maps:get(args, Options, []).

carrier_args(stock, _Config) ->
    [];
carrier_args(weft, Config) ->
    ["-pa", ebin(weft_dist), "-proto_dist", "weft"]
        ++ lists:append([["-weft", atom_to_list(Key), term(Value)] || {Key, Value} <- Config]).

%% @doc Directory of the object code of a module.
-spec ebin(module()) -> file:filename().
ebin(Module) ->
    filename:absname(filename:dirname(code:which(Module))).

term(Term) ->
    lists:flatten(io_lib:format("~0p", [Term])).

%% @doc Kills a node (SIGKILL) and waits for its end.
-spec kill(node_ref()) -> ok.
kill(#{peer := Peer, os_pid := OsPid}) ->
    Monitor = monitor(process, Peer),
    %% It may have ended just before, which its peer process is about to see.
    _ = is_process_alive(Peer) andalso os:cmd("kill -KILL " ++ OsPid),
    receive {'DOWN', Monitor, process, Peer, _} -> ok
    after ?CALL_MS -> erlang:error({node_does_not_end, OsPid})
    end.

%% @doc Kills the process that has that name on a node, and waits until another one has it.
-spec kill_named(node_ref(), atom()) -> ok.
kill_named(Node, Name) ->
    Before = call(Node, erlang, whereis, [Name]),
    true = call(Node, erlang, exit, [Before, kill]),
    until(fun() -> not lists:member(call(Node, erlang, whereis, [Name]), [Before, undefined]) end).

%% @doc Stops a node's process in its tracks (SIGSTOP). The thread that gets the signal stops the
%% others, so on a busy machine they go on until it has had its turn.
-spec pause(node_ref()) -> ok.
pause(#{os_pid := OsPid}) ->
    ok = signal("STOP", OsPid),
    until(fun() -> stands_still(OsPid) end).

%% As Linux tells it (proc(5)); elsewhere it is believed.
stands_still(OsPid) ->
    lists:all(fun(File) ->
                  case file:read_file(File) of
                      {ok, Status} -> re:run(Status, "State:\\s+T") =/= nomatch;
                      {error, _} -> true % a thread that has ended
                  end
              end, filelib:wildcard("/proc/" ++ OsPid ++ "/task/*/status")).

-spec continue(node_ref()) -> ok.
continue(#{os_pid := OsPid}) -> signal("CONT", OsPid).

signal(Signal, OsPid) ->
    [] = os:cmd("kill -" ++ Signal ++ " " ++ OsPid),
    ok.

%% @doc What a node that was started is called.
-spec name(node_ref()) -> node().
name(#{node := Name}) -> Name.

%% @doc What a node of this host with that short name is called, before it is started too.
-spec node_name(atom() | string()) -> node().
node_name(Short) ->
    {ok, Host} = inet:gethostname(),
    list_to_atom(lists:concat([Short, "@", hd(string:split(Host, "."))])).

%% @doc Calls a function on a node over its control channel.
-spec call(node_ref(), module(), atom(), [term()]) -> term().
call(Node, Module, Function, Args) ->
    call(Node, Module, Function, Args, ?CALL_MS).

-spec call(node_ref(), module(), atom(), [term()], timeout()) -> term().
call(#{peer := Peer}, Module, Function, Args, TimeoutMs) ->
    peer:call(Peer, Module, Function, Args, TimeoutMs).

%% @doc Waits until Condition() is true, 30 s at most.
-spec until(fun(() -> boolean())) -> ok.
until(Condition) ->
    until(Condition, 30000).

-spec until(fun(() -> boolean()), TimeoutMs :: non_neg_integer()) -> ok.
until(Condition, TimeoutMs) ->
    poll(Condition, erlang:monotonic_time(millisecond) + TimeoutMs, ?POLL_MS).

poll(Condition, Deadline, PauseMs) ->
    case Condition() of
        true ->
            ok;
        false ->
            erlang:monotonic_time(millisecond) < Deadline
                orelse erlang:error({never_true, Condition}),
            receive after PauseMs -> ok end, % pacing: of this very loop
            poll(Condition, Deadline, min(2 * PauseMs, ?POLL_MS_MAX))
    end.

%% @doc A TCP port that nobody listens on now, another one each time. It is none of those that the
%% system gives to connections and to who listens on any port: one of these may be taken before it
%% is used, or while its owner is restarted. Suites that run side by side begin at different ports.
-spec free_port() -> inet:port_number().
free_port() ->
    Number = 101 * list_to_integer(os:getpid()) + erlang:unique_integer([positive, monotonic]),
    Port = ?PORT_MIN + Number rem ?PORTS,
    case gen_tcp:listen(Port, []) of
        {ok, Socket} -> ok = gen_tcp:close(Socket), Port;
        {error, _} -> free_port()
    end.

epmd_executable() ->
    Erts = filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "bin"]),
    case os:find_executable("epmd", Erts) of
        false -> os:find_executable("epmd");
        File -> File
    end.

answers(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]) of
        {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
        {error, _} -> false
    end.
