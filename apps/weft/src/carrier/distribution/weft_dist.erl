%% SPDX-License-Identifier: Apache-2.0
%% @doc The distribution module that `-proto_dist weft' names: the functions that the kernel calls.
%%
%% Follows "How to Implement an Alternative Carrier for the Erlang Distribution" (ERTS User's
%% Guide). The stock handshake of `dist_util' runs unchanged over a session, so cookies, flags and
%% simultaneous connects are those of stock Erlang. Nodes without weft are served by `weft_stock' on
%% the same port.
-module(weft_dist).

-export([childspecs/0, listen/1, listen/2, accept/1, accept_connection/5, setup/5, close/1,
         select/1, is_node_name/1, address/0, setopts/2, getopts/2]).
-export([accept_session/5, setup_session/5]).

-include_lib("kernel/include/net_address.hrl").
-include_lib("kernel/include/dist_util.hrl").

%% Version 6 of the distribution protocol, OTP 23 and later.
-define(DIST_VERSION, 6).

%% @doc Processes that the carrier needs, started with the kernel's network supervisor.
-spec childspecs() -> {ok, [supervisor:child_spec()]}.
childspecs() ->
    {ok, [weft_carrier_keeper:child_spec()]}.

-spec listen(atom()) -> {ok, {inet:socket(), #net_address{}, non_neg_integer()}} | {error, term()}.
listen(Name) ->
    {ok, Host} = inet:gethostname(),
    listen(Name, Host).

%% @doc Opens the node's port and registers it with epmd, or with the module that replaces it.
-spec listen(atom(), string()) ->
          {ok, {inet:socket(), #net_address{}, non_neg_integer()}} | {error, term()}.
listen(Name, Host) ->
    case weft_config:check() of
        ok -> listen_with(weft_tls_options:check(), weft_epmd:listen_port(Name, Host), Name);
        {error, Text} -> {error, Text}
    end.

listen_with(ok, Port, Name) -> listen_on(Port, Name);
listen_with({error, Text}, _Port, _Name) -> {error, Text}.

listen_on(Port, Name) ->
    Epmd = net_kernel:epmd_module(),
    case weft_transport:listen(Port) of
        {ok, Socket} ->
            {ok, {_, ListenPort} = Address} = inet:sockname(Socket),
            case Epmd:register_node(Name, ListenPort, weft_config:get(family)) of
                {ok, Creation} ->
                    weft_identity:init(ListenPort),
                    {ok, {Socket, (address())#net_address{address = Address}, Creation}};
                Error ->
                    gen_tcp:close(Socket),
                    Error
            end;
        {error, Reason} ->
            {error, weft_transport:explain_listen(Port, Reason)}
    end.

-spec address() -> #net_address{}.
address() ->
    weft_dist_socket:address().

-spec close(inet:socket()) -> ok.
close(Listen) ->
    gen_tcp:close(Listen).

%% @doc Any well-formed node name: its address is looked up later, not in the kernel's process.
-spec select(node()) -> boolean().
select(Node) ->
    is_node_name(Node).

-spec is_node_name(term()) -> boolean().
is_node_name(Node) when is_atom(Node) ->
    case string:split(atom_to_list(Node), "@", all) of
        [[_ | _], [_ | _]] -> true;
        _ -> false
    end;
is_node_name(_) ->
    false.

%% @doc Options for the listening socket (net_kernel:setopts(new, ..) keeps them for later ones).
-spec setopts(inet:socket(), list()) -> ok | {error, term()}.
setopts(Listen, Options) ->
    weft_transport:user_setopts(Listen, Options).

-spec getopts(inet:socket(), list()) -> {ok, list()} | {error, term()}.
getopts(Listen, Options) ->
    inet:getopts(Listen, Options).

%% --- incoming ---------------------------------------------------------------------------------

-spec accept(inet:socket()) -> pid().
accept(Listen) ->
    {ok, Listener} = weft_listener:start_link(Listen, {weft_stock, offer}),
    Listener.

%% @doc The kernel accepts what a session, or a stock connection, has offered it.
-spec accept_connection(pid(), pid() | weft_stock:offered(), node(), list(), non_neg_integer()) ->
          pid().
accept_connection(AcceptPid, Session, MyNode, Allowed, SetupTime) when is_pid(Session) ->
    spawn_opt(?MODULE, accept_session, [self(), Session, MyNode, Allowed, {AcceptPid, SetupTime}],
              dist_util:net_ticker_spawn_options());
accept_connection(AcceptPid, Stock, MyNode, Allowed, SetupTime) ->
    spawn_opt(weft_stock, accept, [self(), AcceptPid, Stock, MyNode, Allowed, SetupTime],
              dist_util:net_ticker_spawn_options()).

%% @private
-spec accept_session(pid(), pid(), node(), list(), {pid(), non_neg_integer()}) -> no_return().
accept_session(Kernel, Session, MyNode, Allowed, {AcceptPid, SetupTime}) ->
    Monitor = monitor(process, AcceptPid),
    receive
        {AcceptPid, controller} -> true = demonitor(Monitor, [flush]);
        {'DOWN', Monitor, process, AcceptPid, _} -> ?shutdown(no_node)
    end,
    Timer = dist_util:start_timer(SetupTime),
    weft_session:await_earlier(Session) =:= closed andalso ?shutdown(no_node),
    HsData = weft_dist_socket:hs_data(Kernel, Session, MyNode, Timer),
    dist_util:handshake_other_started(HsData#hs_data{allowed = Allowed}).

%% --- outgoing ---------------------------------------------------------------------------------

-spec setup(node(), normal | hidden, node(), longnames | shortnames, non_neg_integer()) -> pid().
setup(Node, Type, MyNode, _LongOrShortNames, SetupTime) ->
    spawn_opt(?MODULE, setup_session, [self(), Node, Type, MyNode, SetupTime],
              dist_util:net_ticker_spawn_options()).

%% @private
-spec setup_session(pid(), node(), normal | hidden, node(), non_neg_integer()) -> no_return().
setup_session(Kernel, Node, Type, MyNode, SetupTime) ->
    Timer = dist_util:start_timer(SetupTime),
    Session = session(weft_session:start_link(Node), Node),
    %% As on the stock carrier, each attempt dials, whatever became of those before.
    ok = weft_links:hurry(Node),
    case weft_session:connect(Session) of
        ok ->
            dist_util:reset_timer(Timer),
            HsData = weft_dist_socket:hs_data(Kernel, Session, MyNode, Timer),
            dist_util:handshake_we_started(
              HsData#hs_data{other_node = Node, other_version = ?DIST_VERSION,
                             request_type = request_type(Node, Type)});
        {error, Reason} ->
            case is_stock(Reason, Node) of
                true ->
                    unlink(Session),
                    exit(Session, kill),
                    weft_stock:setup(Kernel, Node, Type, MyNode, Timer);
                false ->
                    ?shutdown2(Node, {weft, Reason})
            end
    end.

session({ok, Session}, _Node) -> Session;
session({error, Reason}, Node) -> ?shutdown2(Node, {weft, Reason}).

%% A program that is no VM has no place in a topology, so no route leads to it.
is_stock({dial, not_weft}, _Node) -> true;
is_stock(no_route, Node) -> weft_dialer:is_foreign(Node, weft_config:get(handshake_timeout_ms));
is_stock(_Reason, _Node) -> false.

request_type(Node, Type) ->
    case weft_next_hop:is_hidden(Node) of
        true -> hidden;
        false -> Type
    end.
