%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds the address of a node, connects and authenticates; runs in a process of its own.
%%
%% Addresses come from the kernel's epmd module (epmd, or `weft_epmd' for fixed ports). If it does
%% not answer, the last known address of a peer is tried. If it does not know the name, that address
%% is tried, too, or the port that the peer has named: epmd may have been restarted. With a tunnel
%% (`weft_tunnel') there are no addresses. Results distinguish what the caller must handle
%% differently: `no_such_node' (epmd answered and does not know the name), `no_epmd' (its host
%% cannot be reached), `not_weft' (the other side speaks another protocol), all else (may succeed
%% later).
%%
%% A node without weft hangs up on a hello. So does a weft node at times: it is at its limit of
%% ports, or drops a stranger for another one. So who hangs up is dialled once more, and who does so
%% twice in a row is taken for a node without weft. That is no proof that a node has ended.
%%
%% A program that is no VM (a C node) may accept one connection and end with it. epmd tells which
%% nodes are VMs; others are not dialled, and are `not_weft'. If another module than epmd was asked,
%% all nodes may be VMs.
-module(weft_dialer).

-export([dial/5, look_up/2, resolve/2, is_foreign/2]).
-export_type([address/0, known/0]).

%% So long epmd may take to answer where another address could be tried.
-define(EPMD_MS, 1000).
%% Before who has hung up is dialled again. Each connection to a node without weft takes so much
%% longer.
-define(AGAIN_MS, 10).

-type address() :: {inet:ip_address(), inet:port_number()}.
%% Where the peer was dialled before, or the port that it has named.
-type known() :: address() | {listening, inet:port_number()} | undefined.
-type kind() :: weft_epmd_client:kind() | unknown.

%% @doc Connects to Node for a link, or for a further lane given its index and the link's token.
%% Calling is called as soon as something answers at the address of Node, before it has said what it
%% is, and once more if it is dialled again. An error of it is the result.
-spec dial(node(), link | {weft_hello:purpose(), binary()}, known(),
           Calling :: weft_transport:connected(), TimeoutMs :: pos_integer()) ->
          {ok, weft_transport:socket(), weft_handshake:peer(), address() | undefined}
        | {error, term()}.
dial(Node, What, Known, Calling, TimeoutMs) ->
    Deadline = erlang:monotonic_time(millisecond) + TimeoutMs,
    case weft_fault_table:is_cut(Node) of
        true -> {error, cut};
        false ->
            weft_tunnel:connect(
              Node,
              fun(Connection) ->
                      tunnelled(Calling(), Connection, {Node, What}, Deadline)
              end,
              fun() ->
                      called(address(Node, Known, Deadline), Node, What, Calling, Deadline)
              end)
    end.

tunnelled(ok, Connection, Whom, Deadline) ->
    introduce(Connection, undefined, Whom, Deadline);
tunnelled({error, Reason}, Connection, _Whom, _Deadline) ->
    weft_transport:close(Connection),
    {error, Reason}.

called({error, Reason}, _Node, _What, _Calling, _Deadline) ->
    {error, Reason};
called({forgotten, Address}, Node, What, Calling, Deadline) ->
    case twice(Address, Node, What, Calling, Deadline) of
        {error, Reason} -> {error, forgotten(Reason)};
        Ok -> Ok
    end;
called({ok, Address}, Node, What, Calling, Deadline) ->
    case twice(Address, Node, What, Calling, Deadline) of
        {error, hung_up} -> {error, not_weft};
        Result -> Result
    end.

twice(Address, Node, What, Calling, Deadline) ->
    case once(Address, Node, What, Calling, Deadline) of
        {error, hung_up} ->
            receive after ?AGAIN_MS -> ok end,
            once(Address, Node, What, Calling, Deadline);
        Result ->
            Result
    end.

once({Ip, Port} = Address, Node, What, Calling, Deadline) ->
    {_Name, Host} = split(Node),
    case weft_transport:connect(Ip, Port, Host, left(Deadline), Calling) of
        {ok, Socket} -> introduce(Socket, Address, {Node, What}, Deadline);
        {error, Reason} -> {error, Reason}
    end.

address(Node, Known, Deadline) ->
    LastKnown = last(Known),
    case ask_epmd(Node, epmd_ms(LastKnown, left(Deadline))) of
        {ok, _Address, foreign} -> {error, not_weft};
        {ok, Address, _MayBeWeft} -> {ok, Address};
        {unknown, Ip} -> unknown(Known, Ip);
        {error, no_such_node} when LastKnown =/= undefined -> {forgotten, LastKnown};
        {error, no_such_node} -> {error, no_such_node};
        {error, _} when LastKnown =/= undefined -> {ok, LastKnown};
        {error, Reason} -> {error, Reason}
    end.

%% The port alone is no address: the peer may have called from another one than it listens at.
last({listening, _Port}) -> undefined;
last(AddressOrNone) -> AddressOrNone.

unknown(undefined, _Ip) -> {error, no_such_node};
unknown({listening, Port}, Ip) -> {forgotten, {Ip, Port}};
unknown(Address, _Ip) -> {forgotten, Address}.

%% An epmd that takes the question and stands still leaves time for the last known address.
epmd_ms(undefined, LeftMs) -> LeftMs;
epmd_ms(_LastKnown, LeftMs) -> min(?EPMD_MS, max(1, LeftMs div 2)).

introduce(Socket, Address, {Node, What}, Deadline) ->
    case authenticate(Socket, Node, What, Deadline) of
        {ok, Peer} ->
            {ok, Socket, Peer, Address};
        {error, Reason} ->
            weft_transport:close(Socket),
            {error, Reason}
    end.

authenticate(Socket, Node, What, Deadline) ->
    case weft_transport:may_speak_weft(Socket) of
        true -> weft_handshake:dial(Socket, Node, What, Deadline);
        false -> {error, not_weft}
    end.

%% A node whose name epmd lost (it was restarted itself) still answers where it did, or hangs up if
%% it has no room.
forgotten(Reason) when Reason =:= econnrefused; Reason =:= wrong_target; Reason =:= not_weft ->
    no_such_node;
forgotten(hung_up) ->
    closed;
forgotten(Reason) ->
    Reason.

left(Deadline) ->
    max(1, Deadline - erlang:monotonic_time(millisecond)).

%% @doc Is it certain that nobody can be dialled under this name now? Without addresses it never is.
-spec look_up(node(), TimeoutMs :: pos_integer()) -> known | {error, no_such_node}.
look_up(Node, TimeoutMs) ->
    case weft_tunnel:provider() =:= none andalso not weft_fault_table:is_cut(Node)
        andalso resolve(Node, TimeoutMs) of
        {error, no_such_node} = Unknown -> Unknown;
        _ -> known
    end.

%% @doc The address of a node, and whether it is a VM.
-spec resolve(node(), TimeoutMs :: pos_integer()) ->
          {ok, address(), kind()} | {error, no_such_node | term()}.
resolve(Node, TimeoutMs) ->
    case ask_epmd(Node, TimeoutMs) of
        {unknown, _Ip} -> {error, no_such_node};
        Found -> Found
    end.

%% Unknown: to the epmd of the host with that address.
ask_epmd(Node, TimeoutMs) ->
    {Name, Host} = split(Node),
    Epmd = net_kernel:epmd_module(),
    case epmd_call(Epmd, address_please, [Name, Host, weft_config:get(family)]) of
        {ok, Ip, Port, _Version} -> {ok, {Ip, Port}, unknown};
        {ok, Ip} -> port(port_please(Epmd, Name, Ip, TimeoutMs), Ip);
        {error, Reason} -> {error, Reason}
    end.

%% @doc Is that a node that runs now and is no VM?
-spec is_foreign(node(), TimeoutMs :: pos_integer()) -> boolean().
is_foreign(Node, TimeoutMs) ->
    case resolve(Node, TimeoutMs) of
        {ok, _Address, foreign} -> true;
        _ -> false
    end.

port({ok, Port, Kind}, Ip) -> {ok, {Ip, Port}, Kind};
port({port, Port, _Version}, Ip) -> {ok, {Ip, Port}, unknown};
port(noport, Ip) -> {unknown, Ip};
port({error, Reason}, _Ip) -> {error, Reason};
port(Other, _Ip) -> {error, Other}.

%% With -erl_epmd_port the port is known without asking.
port_please(erl_epmd, Name, Ip, TimeoutMs) ->
    case erl_epmd:listen_port_please(Name, Ip) of
        {ok, 0} ->
            EpmdPort = weft_epmd_client:epmd_port(),
            answered(weft_epmd_client:port_please(Name, Ip, EpmdPort, TimeoutMs), Name, Ip);
        {ok, Port} ->
            {ok, Port, unknown}
    end;
port_please(Epmd, Name, Ip, TimeoutMs) ->
    case erlang:function_exported(Epmd, port_please, 3) of
        true -> Epmd:port_please(Name, Ip, TimeoutMs);
        false -> Epmd:port_please(Name, Ip)
    end.

answered({error, unexpected}, Name, Ip) -> erl_epmd:port_please(Name, Ip);
answered(Answer, _Name, _Ip) -> Answer.

epmd_call(Module, Function, Args) ->
    case erlang:function_exported(Module, Function, length(Args)) of
        true -> apply(Module, Function, Args);
        false -> apply(erl_epmd, Function, Args)
    end.

split(Node) ->
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    {Name, Host}.
