%% SPDX-License-Identifier: Apache-2.0
%% @doc How the command finds nodes: it asks the epmd on their host, at the port of the cluster.
%%
%% Stands in for `erl_epmd' (`-epmd_module weft_cli_epmd'), which takes the port of epmd from the
%% command line of the VM only; the command learns it later, from the directory of the cluster.
%% The command itself is not registered anywhere: nobody calls it.
%% Protocol: "EPMD Protocol" in "Distribution Protocol", ERTS User's Guide.
-module(weft_cli_epmd).

-export([use_port/1, start_link/0, register_node/2, register_node/3, port_please/2, port_please/3,
         names/1]).

-define(TIMEOUT_MS, 5000).
-define(PORT2_REQUEST, $z).
-define(PORT2_RESPONSE, $w).

%% @doc From now on the epmd at this port is asked.
-spec use_port(inet:port_number()) -> ok.
use_port(Port) ->
    application:set_env(weft_cli, epmd_port, Port).

%% @doc There is no process to start.
-spec start_link() -> ignore.
start_link() -> ignore.

-spec register_node(term(), inet:port_number()) -> {ok, pos_integer()}.
register_node(Name, Port) -> register_node(Name, Port, inet).

%% @doc Registers nothing; the creation is one that another start does not have.
-spec register_node(term(), inet:port_number(), atom()) -> {ok, pos_integer()}.
register_node(_Name, _Port, _Family) ->
    {ok, 4 + rand:uniform(16#fffffff0)}.

-spec port_please(atom() | string(), term()) ->
          {port, inet:port_number(), 6} | noport | {error, term()}.
port_please(Name, Host) -> port_please(Name, Host, ?TIMEOUT_MS).

-spec port_please(atom() | string(), term(), timeout()) ->
          {port, inet:port_number(), 6} | noport | {error, term()}.
port_please(Name, Host, _TimeoutMs) ->
    {ok, EpmdPort} = application:get_env(weft_cli, epmd_port),
    Options = [binary, {active, false}, {packet, raw}],
    case gen_tcp:connect(Host, EpmdPort, Options, ?TIMEOUT_MS) of
        {ok, Socket} ->
            Answer = ask(Socket, unicode:characters_to_binary(io_lib:format("~ts", [Name]))),
            ok = gen_tcp:close(Socket),
            Answer;
        {error, Reason} ->
            {error, Reason}
    end.

ask(Socket, Name) ->
    Request = <<(byte_size(Name) + 1):16, ?PORT2_REQUEST, Name/binary>>,
    case gen_tcp:send(Socket, Request) =:= ok andalso gen_tcp:recv(Socket, 4, ?TIMEOUT_MS) of
        {ok, <<?PORT2_RESPONSE, 0, Port:16>>} -> {port, Port, 6};
        _ -> noport
    end.

-spec names(term()) -> {error, address}.
names(_Host) -> {error, address}.
