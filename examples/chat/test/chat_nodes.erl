%% SPDX-License-Identifier: Apache-2.0
%% @doc A few nodes on this machine running the chat, with an epmd of their own, steered through
%% their standard input and output, so that nothing but the chat uses the distribution.
-module(chat_nodes).

-export([start/1, stop/1, stop_node/2, call/5, all/4, wait/2]).

-type cluster() :: #{epmd := port(), peers := #{node() => pid()}}.

-define(QUIET, ["+S", "1:1", "+SDcpu", "1:1", "+SDio", "1", "+A", "1", "+sbwt", "none"]).
%% Without the first, one cut connection makes `global' cut others, as it likes.
-define(KERNEL, ["-kernel", "prevent_overlapping_partitions", "false",
                 "-kernel", "inet_dist_use_interface", "{127,0,0,1}"]).
%% Of epmd: below all that systems give to connections, above those of well-known services.
-define(PORT_MIN, 12000).
-define(PORTS, 20000).

-spec start([atom()]) -> cluster().
start(Names) ->
    EpmdPort = free_port(),
    Epmd = open_port({spawn_executable, os:find_executable("epmd")},
                     [{args, ["-port", integer_to_list(EpmdPort), "-address", "127.0.0.1"]}]),
    try start(Names, Epmd, EpmdPort)
    catch
        Class:Reason:Stack ->
            stop_epmd(Epmd),
            erlang:raise(Class, Reason, Stack)
    end.

start(Names, Epmd, EpmdPort) ->
    wait(fun() -> listens(EpmdPort) end, "epmd"),
    Peers = maps:from_list([start_peer(Name, EpmdPort) || Name <- Names]),
    Cluster = #{epmd => Epmd, peers => Peers},
    Nodes = maps:keys(Peers),
    [[true = call(Cluster, Node, net_kernel, connect_node, [Other]) || Other <- Nodes -- [Node]]
     || Node <- Nodes],
    Cluster.

-spec stop(cluster()) -> ok.
stop(#{epmd := Epmd, peers := Peers}) ->
    lists:foreach(fun peer:stop/1, [Peer || Peer <- maps:values(Peers), is_process_alive(Peer)]),
    stop_epmd(Epmd).

stop_epmd(Epmd) ->
    case erlang:port_info(Epmd, os_pid) of
        {os_pid, OsPid} ->
            true = port_close(Epmd),
            "" = os:cmd("kill " ++ integer_to_list(OsPid)),
            ok;
        undefined ->
            ok
    end.

-spec stop_node(cluster(), node()) -> cluster().
stop_node(#{peers := Peers} = Cluster, Node) ->
    ok = peer:stop(maps:get(Node, Peers)),
    Cluster#{peers := maps:remove(Node, Peers)}.

-spec call(cluster(), node(), module(), atom(), [term()]) -> term().
call(#{peers := Peers}, Node, Module, Function, Args) ->
    peer:call(maps:get(Node, Peers), Module, Function, Args, 30000).

-spec all(cluster(), module(), atom(), [term()]) -> [term()].
all(#{peers := Peers} = Cluster, Module, Function, Args) ->
    [call(Cluster, Node, Module, Function, Args) || Node <- maps:keys(Peers)].

%% @doc Waits until Fun is true; fails after 30 s saying for what it waited.
-spec wait(fun(() -> boolean()), term()) -> ok.
wait(Fun, What) ->
    wait(Fun, What, erlang:monotonic_time(millisecond) + 30000).

wait(Fun, What, DeadlineMs) ->
    case Fun() of
        true ->
            ok;
        false ->
            erlang:monotonic_time(millisecond) < DeadlineMs orelse error({never_happened, What}),
            receive after 20 -> wait(Fun, What, DeadlineMs) end % pacing: next look
    end.

start_peer(Name, EpmdPort) ->
    Options = #{name => Name, host => "127.0.0.1", longnames => true,
                connection => standard_io, wait_boot => 30000,
                env => [{"ERL_EPMD_PORT", integer_to_list(EpmdPort)},
                        {"ERL_EPMD_ADDRESS", "127.0.0.1"}],
                args => ?QUIET ++ ?KERNEL ++ ["-setcookie", "chat_test",
                                              "-pa", filename:dirname(code:which(chat))]},
    {ok, Peer, Node} = peer:start_link(Options),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [chat]),
    {Node, Peer}.

%% One that nobody listens on now, and that the system gives to nobody meanwhile: what it gives to
%% connections, and to who listens on any port, is above all of these.
free_port() ->
    Number = 101 * list_to_integer(os:getpid()) + erlang:unique_integer([positive, monotonic]),
    Port = ?PORT_MIN + Number rem ?PORTS,
    case gen_tcp:listen(Port, []) of
        {ok, Socket} -> ok = gen_tcp:close(Socket), Port;
        {error, _} -> free_port()
    end.

%% Asks for the names known to epmd, as `epmd -names' does. Somebody else may have the port still,
%% or epmd is not ready.
listens(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, [{active, false}]) of
        {ok, Socket} ->
            Answers = gen_tcp:send(Socket, <<1:16, $n>>) =:= ok
                andalso element(1, gen_tcp:recv(Socket, 0, 5000)) =:= ok,
            ok = gen_tcp:close(Socket),
            Answers;
        {error, _} ->
            false
    end.
