%% SPDX-License-Identifier: Apache-2.0
%% @doc Talks to the nodes of a local cluster, each directly, as a hidden node that nobody can call;
%% and to one node of any other cluster.
%%
%% Links that are cut, or a topology, do not matter here: the command is a stock Erlang node, which
%% weft serves on the same port (for TLS, a weft node outside of the topology; see `weft_cli_dist').
%% Calls of a node that is gone fail at once, of one that hangs after a timeout.
-module(weft_local_control).

-export([connect/1, connect/2, disconnect/0, call/2, call/3, call/4, all/2, all/3]).
-export_type([result/0]).

-type result() :: {ok, term()} | {not_running | error, iolist()}.
-type mfa_() :: {module(), atom(), [term()]}.

-define(TIMEOUT_MS, 10000).
-define(EPMD_PORT, 4369).

%% @doc Makes this VM able to reach the nodes of the cluster.
-spec connect(weft_local:cluster()) -> ok | {error, iolist()}.
connect(#{epmd_port := EpmdPort, cookie := Cookie, settings := Settings}) ->
    ok = weft_cli_epmd:use_port(EpmdPort),
    ok = weft_cli_dist:use(proplists:get_value(transport, Settings, tcp)),
    ok = weft_config:load(),
    [ok = application:set_env(weft, Key, Value)
     || {Key, Value} <- Settings, lists:member(Key, [transport, tls_options, cluster_name])],
    start_distribution("127.0.0.1", Cookie).

%% @doc Makes this VM able to reach a node of any cluster, as tools without weft do: over TCP, by
%% the epmd on its host.
-spec connect(node(), Cookie :: atom()) -> ok | {error, iolist()}.
connect(Node, Cookie) ->
    ok = weft_cli_epmd:use_port(epmd_port(os:getenv("ERL_EPMD_PORT"))),
    ok = weft_cli_dist:use(tcp),
    [_Name, Host] = string:split(atom_to_list(Node), "@"),
    %% Nobody calls the command, so its own host may have any name of the same kind.
    start_distribution(case lists:member($., Host) of true -> "127.0.0.1"; false -> "localhost" end,
                       Cookie).

epmd_port(false) -> ?EPMD_PORT;
epmd_port(Text) -> list_to_integer(Text).

start_distribution(Host, Cookie) ->
    Name = list_to_atom("weft_command_" ++ os:getpid() ++ "@" ++ Host),
    Domain = case lists:member($., Host) of true -> longnames; false -> shortnames end,
    Options = #{name_domain => Domain, hidden => true, dist_listen => false},
    case is_alive() orelse net_kernel:start(Name, Options) of
        {error, Reason} ->
            {error, io_lib:format("the command can not start its own node: ~0tp", [Reason])};
        _Runs ->
            true = erlang:set_cookie(node(), Cookie),
            ok
    end.

%% @doc Says good-bye, so that no node waits for this one to come back.
-spec disconnect() -> ok.
disconnect() ->
    _ = net_kernel:stop(),
    ok.

%% @doc Calls a function on a node and waits at most 10 s.
-spec call(node(), mfa_()) -> result().
call(Node, Function) ->
    call(Node, Function, ?TIMEOUT_MS).

%% @doc The same with a timeout.
-spec call(node(), mfa_(), timeout()) -> result().
call(Node, Function, TimeoutMs) ->
    call(Node, Function, TimeoutMs, fun erpc:call/5).

%% @doc The same by another way to nodes, which answers and fails as `erpc:call/5' does.
-spec call(node(), mfa_(), timeout(), weft_doctor:call()) -> result().
call(Node, {M, F, A}, TimeoutMs, Call) ->
    try {ok, Call(Node, M, F, A, TimeoutMs)}
    catch Class:Reason -> failed(Node, Class, Reason)
    end.

%% @doc Calls a function on all nodes at once.
-spec all([node()], mfa_()) -> [{node(), result()}].
all(Nodes, {M, F, A}) ->
    Results = erpc:multicall(Nodes, M, F, A, ?TIMEOUT_MS),
    [{Node, case Result of
                {ok, Value} -> {ok, Value};
                {Class, Reason} -> failed(Node, Class, Reason)
            end} || {Node, Result} <- lists:zip(Nodes, Results)].

%% @doc The same by another way to nodes.
-spec all([node()], mfa_(), weft_doctor:call()) -> [{node(), result()}].
all(Nodes, Function, Call) ->
    Ask = fun(Node) -> call(Node, Function, ?TIMEOUT_MS, Call) end,
    lists:zip(Nodes, weft_deploy_parallel:map(length(Nodes), Ask, Nodes)).

failed(Node, error, {erpc, noconnection}) ->
    {not_running, io_lib:format("~ts does not answer: it is not running", [Node])};
failed(Node, error, {erpc, timeout}) ->
    {error, io_lib:format("~ts did not answer in time", [Node])};
failed(_Node, error, {exception, Reason, _Stack}) ->
    {error, io_lib:format("~0tp", [Reason])};
failed(_Node, exit, {exception, Reason}) ->
    {error, io_lib:format("exit: ~0tp", [Reason])};
failed(_Node, Class, Reason) ->
    {error, io_lib:format("~ts: ~0tp", [Class, Reason])}.
