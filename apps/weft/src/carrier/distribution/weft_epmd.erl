%% SPDX-License-Identifier: Apache-2.0
%% @doc Distribution without epmd: fixed ports from the configuration.
%%
%% Start nodes with `-start_epmd false -epmd_module weft_epmd' and the same
%% {weft, [{tuning, #{ports => #{default => 4370, "db" => 4371}}}]} everywhere: the port of node
%% db@host is 4371, of any other 4370. Implements the interface of erl_epmd(3), but for
%% `noport': that no port of a node is configured does not say that it has ended.
-module(weft_epmd).

-export([start_link/0, register_node/2, register_node/3, port_please/2, port_please/3,
         listen_port_please/2, address_please/3, names/1, listen_port/2]).

%% @doc There is no process to start.
-spec start_link() -> ignore.
start_link() -> ignore.

-spec register_node(atom() | string(), inet:port_number()) -> {ok, pos_integer()}.
register_node(Name, Port) -> register_node(Name, Port, inet).

%% @doc A creation that no other start of the node has.
-spec register_node(atom() | string(), inet:port_number(), atom()) -> {ok, pos_integer()}.
register_node(_Name, _Port, _Family) ->
    {ok, max(4, weft_random:distinct() band 16#ffffffff)}.

-spec port_please(atom() | string(), inet:ip_address() | string()) ->
          {port, inet:port_number(), 5..6} | {error, no_port}.
port_please(Name, Host) -> port_please(Name, Host, infinity).

-spec port_please(atom() | string(), inet:ip_address() | string(), timeout()) ->
          {port, inet:port_number(), 5..6} | {error, no_port}.
port_please(Name, _Host, _TimeoutMs) ->
    case fixed_port(Name) of
        0 -> {error, no_port};
        Port -> {port, Port, 6}
    end.

-spec listen_port_please(atom() | string(), string()) -> {ok, inet:port_number()}.
listen_port_please(Name, _Host) -> {ok, fixed_port(Name)}.

-spec address_please(string(), string(), inet | inet6) ->
          {ok, inet:ip_address()} | {error, term()}.
address_please(_Name, Host, Family) -> inet:getaddr(Host, Family).

%% @doc Without epmd there is no list of the nodes of a host.
-spec names(term()) -> {error, address}.
names(_Host) -> {error, address}.

%% @doc The port that this node should listen on; 0 lets the system choose.
-spec listen_port(atom() | string(), string()) -> inet:port_number().
listen_port(Name, Host) ->
    Epmd = net_kernel:epmd_module(),
    case erlang:function_exported(Epmd, listen_port_please, 2) of
        true ->
            {ok, Port} = Epmd:listen_port_please(Name, Host),
            case Port of 0 -> fixed_port(Name); _ -> Port end;
        false ->
            fixed_port(Name)
    end.

fixed_port(Name) ->
    Text = if is_atom(Name) -> atom_to_list(Name); true -> Name end,
    Ports = weft_config:get(ports),
    Default = maps:get(default, Ports, 0),
    case [Port || {Key, Port} <- maps:to_list(Ports), Key =/= default,
                  unicode:characters_to_list(Key) =:= Text] of
        [Port | _] -> Port;
        [] -> Default
    end.
